"""Playing other policies to measure: seats, sides, draws, and who is refused."""

import shutil

import numpy as np
import pytest
import torch

import ludus
from ludus.algorithms.ppo import PPOConfig
from ludus.config import Config, EvalConfig, LeagueConfig, LogConfig, PolicyConfig, TrainConfig
from ludus.errors import LudusError
from ludus.networks.heads import action_space
from ludus.networks.policy import Policy
from ludus.play.evaluate import intervals, measure
from ludus.runs.snapshots import evenly
from ludus.sim import Batch
from tests.league.games import HIGH_CARD

LOW, MIDDLE, HIGH = range(3)


def showing(*cards: int) -> dict[str, Policy]:
    """A policy that shows one of these cards, each as often."""
    layout = Batch(HIGH_CARD, 1).layout
    policy = Policy(layout.observation, action_space(layout, False), PolicyConfig(hidden=(4,)))
    with torch.no_grad():
        policy.action_head.weight.zero_()
        policy.action_head.bias[:3] = -100.0
        policy.action_head.bias[list(cards)] = 0.0
    return {"player": policy}


def against(mine, rivals=None, opponent="pool", episodes=100, **params):
    values = measure(
        lambda n: Batch(HIGH_CARD, n, overrides=params),
        mine,
        opponent,
        episodes,
        seed=3,
        rivals=rivals,
    )
    return intervals(values, HIGH_CARD.goal_metrics)


def rates(result) -> list[float]:
    return [result[name]["mean"] for name in ("win_rate", "draw_rate", "loss_rate")]


@pytest.mark.parametrize(
    ("mine", "theirs", "expected"),
    [(HIGH, LOW, [1, 0, 0]), (LOW, MIDDLE, [0, 0, 1]), (LOW, LOW, [0, 1, 0])],
)
def test_policies_sit_on_their_own_side_and_draws_are_no_wins(mine, theirs, expected):
    result = against(showing(mine), showing(theirs))
    assert rates(result) == expected and result["card"]["mean"] == mine


@pytest.mark.parametrize("episodes", [2, 7, 64, 300])
def test_each_side_is_played_half_of_the_time(episodes):
    """With an overwhelming bonus the first player always wins: from both seats equally often that
    is half of the episodes."""
    values = measure(
        lambda n: Batch(HIGH_CARD, n, overrides={"bonus": 10.0}),
        showing(HIGH),
        "pool",
        episodes,
        3,
        rivals=showing(HIGH),
    )
    assert values["win_rate"].sum() == -(-episodes // 2) and len(values["win_rate"]) == episodes
    bot = measure(
        lambda n: Batch(HIGH_CARD, n, overrides={"bonus": 10.0}),
        showing(HIGH),
        "bot:middle",
        episodes,
        3,
    )
    assert bot["win_rate"].sum() == -(-episodes // 2) and (bot["card"] == HIGH).all()


def test_mixed_strategies_win_as_often_as_they_should():
    """Low or high against middle: half won, half lost. Any of three against any of three: a third
    each."""
    assert rates(against(showing(LOW, HIGH), None, "bot:middle", 400)) == pytest.approx(
        [0.5, 0, 0.5], abs=0.08
    )
    third = against(showing(LOW, MIDDLE, HIGH), showing(LOW, MIDDLE, HIGH), episodes=600)
    assert rates(third) == pytest.approx([1 / 3] * 3, abs=0.06)


def test_a_sample_is_even_with_both_ends():
    assert (
        evenly([0, 10, 20, 30, 40], 3) == [0, 20, 40]
        and evenly([5, 6], 8) == [5, 6]
        and evenly([1, 2, 3], 1) == [1]
    )


# -- with real runs --------------------------------------------------------------------------------


def config(game="pursuit", mix="self 1, pool 1", steps=4000, **values):
    return Config(
        game=game,
        envs=8,
        game_values=values,
        policy=PolicyConfig(hidden=(8,)),
        learner=PPOConfig(rollout=16, epochs=1, minibatches=1, learning_rate=1e-3),
        train=TrainConfig(total_agent_steps=steps, threads=1),
        league=LeagueConfig(mix=mix, slots=2, snapshot_every=600, renew_every=1),
        eval=EvalConfig(episodes=2, against=("self",), greedy=False),
        log=LogConfig(tensorboard=False, replay_every=0),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("rivals")


@pytest.fixture(scope="module")
def run(folder):
    return ludus.train(config(max_steps=20), run=folder / "one", quiet=True).path


@pytest.fixture(scope="module")
def alone(folder):
    """A run without a pool."""
    return ludus.train(
        config(max_steps=20, mix="", steps=600), run=folder / "alone", quiet=True
    ).path


def test_one_snapshot_is_measured_for_both_roles(run):
    result = ludus.evaluate(run, "snapshot:0", 10)
    assert set(result["metrics"]) >= {
        "chaser/win_rate",
        "runner/win_rate",
        "catch_rate",
        "survival",
    }
    sums = [
        sum(result["metrics"][f"{role}/{name}_rate"]["mean"] for name in ("win", "draw", "loss"))
        for role in ("chaser", "runner")
    ]
    assert np.allclose(sums, 1)
    assert ludus.evaluate(run, "snapshot:0", 10) == result


def test_snapshots_are_an_even_sample_with_the_older_half_marked(run):
    steps = sorted(int(p.stem) for p in (run / "snapshots").iterdir())
    result = ludus.evaluate(run, ["snapshots", "bot:flee"], 3)
    groups = result["opponents"]
    assert [n for n in groups if n.startswith("snapshot:")] == [
        f"snapshot:{s}" for s in evenly(steps, 8)
    ]
    old = [int(n.split(":")[1]) for n, names in groups.items() if "older_snapshots" in names]
    assert (
        old
        and max(old) < steps[len(steps) // 2]
        and groups[f"snapshot:{steps[-1]}"] == ["snapshots"]
    )
    mean = np.mean([result["metrics"][f"snapshot:{s}/catch_rate"]["mean"] for s in old])
    assert result["metrics"]["older_snapshots/catch_rate"]["mean"] == pytest.approx(mean)
    assert (
        "bot:flee/catch_rate" in result["metrics"] and "bot:flee/survival" not in result["metrics"]
    )


def test_another_run_plays_and_its_own_newest_policy_is_itself(run, alone):
    assert "catch_rate" in ludus.evaluate(run, f"{alone}@0", 4)["metrics"]
    copy = ludus.evaluate(run, str(run), 40)["metrics"]
    itself = ludus.evaluate(run, "self", 40)["metrics"]
    # the same policies, but sampled in another order: equal within both intervals
    assert (
        copy["catch_rate"]["low"] <= itself["catch_rate"]["high"]
        and itself["catch_rate"]["low"] <= copy["catch_rate"]["high"]
    )


def test_a_game_of_roles_has_a_payoff_matrix_for_each(run):
    from ludus.league.payoff import payoff

    found = payoff(str(run), 2, 3)
    steps = sorted(int(p.stem) for p in (run / "snapshots").iterdir())
    policies = [f"snapshot:{steps[0]}", f"snapshot:{steps[-1]}", "now"]
    for role, bot in (("chaser", "bot:flee"), ("runner", "bot:greedy")):
        table = found["tables"][role]
        assert list(table) == policies and all(
            list(row) == [*policies, "bot:still", "bot:random", bot] for row in table.values()
        )
        assert found["forgetting"][role] == {name: table["now"][name] for name in policies[:2]}
        for cell in (cell for row in table.values() for cell in row.values()):
            assert 0 <= cell["low"] <= cell["win_rate"] <= cell["high"] <= 1
    caught_by_greedy = found["tables"]["runner"]["now"]["bot:greedy"]["loss_rate"]
    assert caught_by_greedy >= found["tables"]["runner"]["now"]["bot:still"]["loss_rate"]


def test_who_cannot_play_is_refused_with_the_reason(run, alone, folder):
    for opponent, words in {
        "snapshots": "has no snapshots: train with opponents from a pool",
        "snapshot:0": "has no snapshots",
        "snapshto": "unknown opponent 'snapshto': did you mean 'snapshots'",
        "bot:fle": "bot:flee",
        str(folder / "nothing"): "there is no run at",
    }.items():
        with pytest.raises(LudusError, match=words):
            ludus.evaluate(alone, opponent, 2)
    with pytest.raises(LudusError, match="has no snapshot:1: the nearest is snapshot:0"):
        ludus.evaluate(run, "snapshot:1", 2)


def test_another_game_or_layout_is_refused(run, folder, alone):
    cards = ludus.train(
        config("tests.league.games:HIGH_CARD", "", 600), run=folder / "cards", quiet=True
    ).path
    with pytest.raises(LudusError, match="was trained to play high_card, not pursuit"):
        ludus.evaluate(run, str(cards), 2)
    more = ludus.train(
        config(mix="", steps=900, runners=4, max_steps=20), run=folder / "more", quiet=True
    ).path
    with pytest.raises(LudusError, match="differ in their observation"):
        ludus.evaluate(run, str(more), 2)


def test_a_snapshot_that_was_changed_is_refused(run, tmp_path):
    shutil.copytree(run, tmp_path / "copy")
    path = min((tmp_path / "copy/snapshots").iterdir())
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(LudusError, match="is not the file that was written"):
        ludus.evaluate(tmp_path / "copy", "snapshot:0", 2)


def test_resumed_runs_have_the_same_ratings(tmp_path):
    from ludus.league.ratings import of_run
    from ludus.runs.run import Run

    half = ludus.train(
        config(max_steps=20, steps=6000, mix="self 1, bot:random 1, pool 2"),
        run=tmp_path / "half",
        quiet=True,
    )
    ludus.resume(half.path, quiet=True, total_agent_steps=12_000)
    whole = ludus.train(
        config(max_steps=20, steps=12_000, mix="self 1, bot:random 1, pool 2"),
        run=tmp_path / "whole",
        quiet=True,
    )
    assert of_run(Run(half.path)) == of_run(whole) and len(of_run(whole)) >= 4
