"""Configs: refused before anything is written, with both numbers; schedules; origins; presets."""

import numpy as np
import pytest

import ludus
from ludus.algorithms.ppo import PPOConfig
from ludus.batches import game_info
from ludus.config import (
    Config,
    PolicyConfig,
    apply_preset,
    check_types,
    flatten,
    origins,
    resolve,
    set_value,
    unflatten,
)
from ludus.config.schedules import parse
from ludus.errors import LudusError
from ludus.recipes import RECIPES, load_recipe


def refuse(**values):
    config = load_recipe("pursuit")
    for name, value in values.items():
        set_value(config, name.replace("__", "."), value)
    with pytest.raises(LudusError) as error:
        resolve(config).check(game_info(config).rows(config.envs))
    return str(error.value)


@pytest.mark.parametrize("recipe", RECIPES)
def test_shipped_recipes_pass_their_own_check(recipe):
    config = resolve(load_recipe(recipe))
    config.check(game_info(config).rows(config.envs))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (dict(ppo__minibatches=7), ["4096 rows", "7 minibatches", "use 4 or 8"]),
        (dict(train__total_agent_steps=1000), ["16,384 agent-steps", "1,000", "no update"]),
        (dict(envs=0), ["envs=0", "1 or more"]),
        (dict(ppo__epochs=0), ["ppo.epochs=0"]),
        (dict(ppo__rollout=-1), ["ppo.rollout=-1"]),
        (dict(ppo__gamma=1.5), ["ppo.gamma=1.5", "0 to 1"]),
        (dict(ppo__gae_lambda=2.0), ["gae_lambda=2.0"]),
        (dict(ppo__learning_rate="1e-3 -> -1"), ["learning_rate"]),
        (dict(ppo__entropy="0:0.1, 0.5:0.2, 0.3:0.1"), ["runs backwards", "0.3", "0.5"]),
        (dict(ppo__entropy="falling"), ["'falling'", "0.05 -> 0.01"]),
        (dict(ppo__entropy="0.1 -> 0.2 @ 1.5"), ["1.5"]),
        (dict(policy__memory="gru"), ["policy.memory=gru", "lstm"]),
        (dict(policy__activation="than"), ["tanh"]),
        (dict(policy__memory="lstm", ppo__bptt=5), ["32 steps", "chunks of 5"]),
        (dict(ppo__bptt=4), ["without memory"]),
        (dict(policy__memory="lstm", ppo__burn_in=16), ["burn_in=16", "16 steps"]),
        (dict(ppo__auxiliary=0.1), ["policy.memory"]),
        (dict(ppo__roles__chasr__entropy=0.1), ["'chasr'", "chaser"]),
        (dict(train__total_agent_steps=None), ["no budget"]),
        (dict(policy__hidden=[0]), ["policy.hidden=[0]", "1 or more"]),
        (dict(device="tpu"), ["device=tpu"]),
        (dict(ppo__minibatches=200_000), ["4096 rows", "use 4096"]),
        (dict(ppo__roles__runner__minibatches=0), ["ppo.roles.runner.minibatches=0"]),
        (dict(ppo__roles__runner__epochs=0), ["ppo.roles.runner.epochs=0"]),
        (dict(ppo__roles__runner__auxiliary=0.1), ["policy.memory"]),
        (dict(ppo__value_weight=-1.0), ["ppo.value_weight=-1.0"]),
        (dict(policy__separate_value=False, ppo__value_learning_rate=1e-4), ["separate_value"]),
        (dict(eval__seed=0), ["eval.seed=0", "trained on"]),
    ],
    ids=str,
)
def test_what_cannot_work_is_refused_with_both_numbers(values, words):
    message = refuse(**values)
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("eval.against", ["bot:fle"], "did you mean 'bot:flee'"),
        ("policy.initial_log_std_of.trun", -1.0, "did you mean 'turn'"),
        ("policy.quiet_inputs", ["rays"], "no observation entry begins so"),
        (
            "checkpoint.best_metric",
            "survival",
            "survival will not be evaluated: .*eval/AGAINST/METRIC with AGAINST one of self, "
            ".*survival",
        ),
        ("checkpoint.best_metric", "eval/bot:flee/survival", "will not be evaluated"),
    ],
)
def test_names_are_checked_before_training(name, value, words):
    from ludus.training.start import prepare

    config = load_recipe("pursuit")
    set_value(config, name, value)
    with pytest.raises(LudusError, match=words):
        prepare(config)


def test_unknown_keys_suggest_the_nearest():
    config = Config(game="pursuit")
    with pytest.raises(LudusError, match=r"'ppo\.gama': did you mean 'ppo\.gamma'"):
        set_value(config, "ppo.gama", 1)
    with pytest.raises(LudusError, match="the same for all roles"):
        set_value(config, "ppo.roles.chaser.rollout", 1)
    with pytest.raises(LudusError, match="unknown recipe 'pursit': did you mean 'pursuit'"):
        load_recipe("pursit")


@pytest.mark.parametrize(
    ("recipe", "changes", "words"),
    [
        (
            "racing_lidar",
            {"ppo.learning_rate": 0.1},
            "setting of ppo, and this run learns by rainbow: use rainbow.learning_rate",
        ),
        ("racing_lidar", {"ppo.roles.driver.gamma": 0.9}, "use rainbow.gamma"),
        (
            "racing_lidar",
            {"entropy": 0.1},
            "ppo.entropy is a setting of ppo, and this run learns by rainbow: leave it out",
        ),
        ("racing_lidar", {"preset": "stable"}, "rainbow has no preset 'stable'"),
        ("pursuit", {"rainbow.n_step": 3}, "leave it out, or choose algorithm rainbow"),
        ("pursuit", {"ppo.gamma": 0.9, "algorithm": "rainbow"}, "use rainbow.gamma"),
    ],
)
def test_settings_of_another_algorithm_are_refused(recipe, changes, words, tmp_path):
    """In Python by dotted names, on the command line as options; before anything is made."""
    from ludus.commands.options import parse_config

    with pytest.raises(LudusError, match=words):
        ludus.train(recipe, run=tmp_path / "run", **changes)
    if "entropy" not in changes:
        words = "has no preset" if "preset" in changes else "is a setting of"
        typed = [
            word
            for name, value in changes.items()
            for word in (f"--{name.replace('_', '-')}", str(value))
        ]
        with pytest.raises(LudusError, match=words):
            parse_config(load_recipe(recipe), typed, "train", "", "")
    assert not list(tmp_path.iterdir())


def test_the_algorithm_says_what_a_name_means(monkeypatch):
    """Whatever the order: a learning rate is that of the algorithm that is asked for, and its own
    section is accepted."""
    from ludus.commands.options import parse_config

    monkeypatch.setattr("ludus.training.start.train", lambda config, *_, **__: config)
    config = ludus.train("racing_lidar", learning_rate=0.5, algorithm="ppo")
    assert type(config.learner) is PPOConfig and config.learner.learning_rate == 0.5
    config, where, _ = parse_config(
        load_recipe("racing_lidar"), ["--ppo.gamma", "0.5", "--algorithm=ppo"], "train", "", ""
    )
    assert config.learner.gamma == 0.5 and where["algorithm"] == "command line"


def test_flatten_and_back():
    config = load_recipe("pursuit")
    config.learner.roles["runner"] = {"entropy": 0.1}
    config.game_values["reward.catch"] = 3.0
    assert flatten(unflatten(flatten(config))) == flatten(config)


def test_origins():
    recipe = load_recipe("pursuit")
    final = load_recipe("pursuit")
    final.learner.gamma = 0.5
    apply_preset(final, "stable")
    where = origins(final, recipe, "stable")
    assert where["ppo.gamma"] == "command line" and where["envs"] == "recipe"
    assert where["ppo.clip"] == "preset stable" and where["ppo.value_weight"] == "default"


def test_derived_values():
    assert resolve(Config(game="pursuit")).learner.bptt == 1
    recurrent = Config(game="pursuit", policy=PolicyConfig(memory="lstm"))
    assert resolve(recurrent).learner.bptt == 16 and recurrent.learner.bptt is None


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (0.3, [0.3, 0.3, 0.3]),
        ("0.3", [0.3, 0.3, 0.3]),
        ("1 -> 0", [1.0, 0.5, 0.0]),
        ("1 -> 0 @ 0.5", [1.0, 0.0, 0.0]),
        ("cosine 1 -> 0", [1.0, 0.5, 0.0]),
        ("0:1, 0.25:0.5, 1:0.2", [1.0, 0.4, 0.2]),
    ],
    ids=str,
)
def test_schedules(text, values):
    schedule = parse(text)
    assert [schedule(s) for s in (0.0, 0.5, 1.0)] == pytest.approx(values)


def test_a_cosine_starts_and_ends_gently():
    assert parse("cosine 1 -> 0")(0.1) > parse("1 -> 0")(0.1)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        (
            "total_agent_steps",
            "many",
            "train.total_agent_steps='many' is of type str: use a whole number or None",
        ),
        ("seed", 1.5, "seed=1.5 is of type float: use a whole number"),
        ("envs", True, "envs=True is of type bool: use a whole number"),
        ("ppo.gamma", [1], "use a number, or a schedule such as '1e-3 -> 0'"),
        (
            "ppo.roles.chaser.epochs",
            "two",
            "ppo.roles.chaser.epochs='two' is of type str: use a whole number",
        ),
        (
            "policy.hidden",
            64,
            "policy.hidden=64 is of type int: use a list of which each is a whole number",
        ),
        ("eval.greedy", "no", "eval.greedy='no' is of type str: use True or False"),
        ("policy", 3, "policy=3 is of type int: use a PolicyConfig"),
        ("game.speed", None, "game.speed=None is of type NoneType: use a number, or a schedule"),
        ("game.speed", "fast", "game.speed = 'fast' is no schedule"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_by_its_name(name, value, words, tmp_path):
    with pytest.raises(LudusError) as refused:
        ludus.train("pursuit", run=tmp_path / "run", **{name: value})
    assert words in str(refused.value) and not (tmp_path / "run").exists()


def test_numbers_that_mean_the_same_are_taken():
    config = load_recipe("pursuit")
    config.train.total_agent_steps, config.policy.hidden, config.learner.gamma = (
        5e6,
        [np.int64(8)],
        np.float32(0.5),
    )
    check_types(config)
    assert config.train.total_agent_steps == 5_000_000 and isinstance(
        config.train.total_agent_steps, int
    )
    assert config.policy.hidden == (8,) and config.learner.gamma == 0.5
