"""Configs: refused before anything is written, with both numbers; schedules; origins; presets."""

import pytest

from ludus.config import Config, PolicyConfig, apply_preset, check, flatten, origins, resolve, set_value, unflatten
from ludus.curriculum.schedules import parse
from ludus.errors import LudusError
from ludus.recipes import RECIPES, load_recipe
from ludus.training.sources import role_rows


def refuse(**values):
    config = load_recipe("pursuit")
    for name, value in values.items():
        set_value(config, name.replace("__", "."), value)
    with pytest.raises(LudusError) as error:
        check(resolve(config), role_rows(config))
    return str(error.value)


@pytest.mark.parametrize("recipe", RECIPES)
def test_shipped_recipes_pass_their_own_check(recipe):
    config = resolve(load_recipe(recipe))
    check(config, role_rows(config))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (dict(learn__minibatches=7), ["4096 rows", "7 minibatches", "use 4 or 8"]),
        (dict(train__total_agent_steps=1000), ["16,384 agent-steps", "1,000", "no update"]),
        (dict(envs=0), ["envs=0", "1 or more"]),
        (dict(learn__epochs=0), ["learn.epochs=0"]),
        (dict(learn__rollout=-1), ["learn.rollout=-1"]),
        (dict(learn__gamma=1.5), ["learn.gamma=1.5", "0 to 1"]),
        (dict(learn__gae_lambda=2.0), ["gae_lambda=2.0"]),
        (dict(learn__learning_rate="1e-3 -> -1"), ["learning_rate"]),
        (dict(learn__entropy="0:0.1, 0.5:0.2, 0.3:0.1"), ["runs backwards", "0.3", "0.5"]),
        (dict(learn__entropy="falling"), ["'falling'", "0.05 -> 0.01"]),
        (dict(learn__entropy="0.1 -> 0.2 @ 1.5"), ["1.5"]),
        (dict(policy__memory="gru"), ["policy.memory=gru", "lstm"]),
        (dict(policy__activation="than"), ["tanh"]),
        (dict(policy__memory="lstm", learn__bptt=5), ["32 steps", "chunks of 5"]),
        (dict(learn__bptt=4), ["without memory"]),
        (dict(policy__memory="lstm", learn__burn_in=16), ["burn_in=16", "16 steps"]),
        (dict(learn__auxiliary=0.1), ["policy.memory"]),
        (dict(learn__roles__chasr__entropy=0.1), ["'chasr'", "chaser"]),
        (dict(train__total_agent_steps=None), ["no budget"]),
        (dict(policy__hidden=[0]), ["0 units"]),
        (dict(device="tpu"), ["device=tpu"]),
        (dict(learn__minibatches=200_000), ["4096 rows", "use 4096"]),
        (dict(learn__roles__runner__minibatches=0), ["learn.roles.runner.minibatches=0"]),
        (dict(learn__roles__runner__epochs=0), ["learn.roles.runner.epochs=0"]),
        (dict(learn__roles__runner__auxiliary=0.1), ["policy.memory"]),
        (dict(learn__value_weight=-1.0), ["learn.value_weight=-1.0"]),
        (dict(policy__separate_value=False, learn__value_learning_rate=1e-4), ["separate_value"]),
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
        ("checkpoint.best_metric", "survival", "eval/self/"),
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
    with pytest.raises(LudusError, match=r"'learn\.gama': did you mean 'learn\.gamma'"):
        set_value(config, "learn.gama", 1)
    with pytest.raises(LudusError, match="the same for all roles"):
        set_value(config, "learn.roles.chaser.rollout", 1)
    with pytest.raises(LudusError, match="unknown recipe 'pursit': did you mean 'pursuit'"):
        load_recipe("pursit")


def test_flatten_and_back():
    config = load_recipe("pursuit")
    config.learn.roles["runner"] = {"entropy": 0.1}
    config.game_values["reward.catch"] = 3.0
    assert flatten(unflatten(flatten(config))) == flatten(config)


def test_origins():
    recipe = load_recipe("pursuit")
    final = load_recipe("pursuit")
    final.learn.gamma = 0.5
    apply_preset(final, "stable")
    where = origins(final, recipe, "stable")
    assert where["learn.gamma"] == "command line" and where["envs"] == "recipe"
    assert where["learn.clip"] == "preset stable" and where["learn.value_weight"] == "default"


def test_derived_values():
    assert resolve(Config(game="pursuit")).learn.bptt == 1
    recurrent = Config(game="pursuit", policy=PolicyConfig(memory="lstm"))
    assert resolve(recurrent).learn.bptt == 16 and recurrent.learn.bptt is None


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
