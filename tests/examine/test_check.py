"""Evidence made before training: on a small game run as plain Python, whose answers are known, and
on a whole recipe."""

import numpy as np
import pytest

from ludus.examine.audit_game import config_of
from ludus.examine.check import check_config, received
from ludus.examine.gradients import blocks
from ludus.examine.overfit import Repeated
from ludus.examine.rollouts import Seen, play_all
from ludus.examine.spaces import dead_actions, examine_spaces, first_difference
from ludus.recipes import RECIPES
from ludus.sim import Batch, float32, phase
from tests.sim.games import COUNTER, clear, end, look, variant

CHAOS = np.random.default_rng()


@pytest.fixture
def plain(monkeypatch):
    monkeypatch.setenv("LUDUS_JIT", "0")


def played(batch: Batch, role: str = "left"):
    seen = Seen()
    return play_all(batch, role, 0.99, 60.0, seen, np.zeros(0)), seen


def test_what_each_player_earns(plain):
    """Five steps: 'one' pays 2 in each, a push half a point to the left agent only. Standing still
    never pushes."""
    earned, _ = played(Batch(COUNTER, 8))
    random, still = earned.plays
    assert (
        (still.returns == 10).all()
        and (still.goals["pushes"] == 0).all()
        and still.terms == {"one": 10.0, "push": 0.0}
    )
    assert random.returns == pytest.approx(10 + 0.5 * random.goals["pushes"])
    assert random.earliest == {"one": 1, "push": 1} and still.earliest == {"one": 1}
    assert (
        (still.first_goal == 1).all()
        and (still.last_goal == 5).all()
        and (still.lengths == 5).all()
    )
    assert (
        earned.goal_terms == ("one",) and earned.other_terms == ("push",) and earned.max_steps == 5
    )
    other, _ = played(Batch(COUNTER, 8), "right")
    assert other.other_terms == () and (other.plays[0].returns == 10).all()


def test_actions_that_nothing_reads_are_found(plain):
    """Nothing in the counter reads 'pick', and its third option is never allowed."""
    batch = Batch(COUNTER, 4, overrides={"max_steps": 100})
    _, seen = played(batch)
    dead, never, situations = dead_actions(batch, batch.layout.seats[0], seen.states, 60.0)
    assert (dead, never) == (["pick=b"], ["pick=c"]) and situations == 4 * len(seen.states) > 0


def test_extremes_of_what_is_seen(plain):
    batch = Batch(COUNTER, 4, overrides={"max_steps": 20})
    _, seen = played(batch)
    spaces = examine_spaces(batch, seen, normalised=True, seconds=10.0)
    assert [s.role for s in spaces] == ["left", "right"] and spaces[0].entries == ("total", "time")
    assert (
        spaces[0].high[1] >= 1.7
        and spaces[0].low[1] == pytest.approx(0.1)
        and not spaces[0].not_finite
    )


@phase(lanes="agents", writes="total")
def add_anything(env, agent, total):
    total[env, agent] += int(CHAOS.integers(2))


@phase(lanes="agents", writes="observation")
def look_through_zero(env, agent, step, observation):
    observation[env, agent, 0] = float32(np.nan) if step[env] == 5 else float32(1.0)


def test_randomness_that_no_seed_governs_is_found(plain):
    for step, expected in (([end, look], ""), ([add_anything, end, look], "total")):
        batch = Batch(variant(step=step), 2, overrides={"max_steps": 50}, jit=False)
        batch.step()
        assert first_difference(batch, batch.state()) == expected


def test_an_observation_that_is_not_a_number_is_found(plain):
    batch = Batch(
        variant(step=[end, look, look_through_zero], reset=[clear, look]),
        2,
        overrides={"max_steps": 9},
        jit=False,
    )
    _, seen = played(batch)
    assert examine_spaces(batch, seen, True, 5.0)[0].not_finite == ("total",)


def test_a_simulator_that_holds_other_values_is_found(plain):
    batch = Batch(COUNTER, 2)
    assert received(batch) == []
    batch["weights"][1, 0] = 3.0
    (finding,) = received(batch)
    assert (
        finding.check == "game_not_as_asked"
        and "reward.one is 3.0 instead of 2.0 in 1 of 2 envs" in finding.evidence
    )


def test_the_same_episode_again_and_again(plain):
    # stands for any randomness of an episode's start
    game = variant(step=[add_anything, end, look])
    batch = Batch(game, 3, jit=False)
    keys = []
    repeated = Repeated(batch, slice(0, 1))
    for _ in range(14):
        batch.step()
        keys.append(batch["key"].copy())
    assert (np.array(keys) == np.array(keys)[:, :1]).all()  # all envs alike
    # five steps and a reset row, then the same again
    assert keys[0].tolist() == keys[6].tolist() == keys[12].tolist()
    assert (repeated.returns == 2 * 5 + 0.0).all()


def test_blocks_of_an_observation():
    names = ["x", "y", "ray0", "ray1", "ray2", "message0_a", "message0_b", "message1_a", "speed"]
    assert blocks(names) == {"own state": [0, 1, 8], "ray": [2, 3, 4], "message": [5, 6, 7]}


@pytest.fixture(scope="module")
def pursuit():
    return check_config(config_of("pursuit"), seconds=4.0)


def test_a_shipped_recipe_is_ok_and_its_players_are_told(pursuit):
    assert {f.severity for f in pursuit} == {"info"}
    (chaser, runner) = [f.evidence for f in pursuit if f.check == "what_is_earned"]
    assert "bot:greedy" in chaser and "bot:flee" in runner


def test_a_recipe_that_would_be_refused_is_critical():
    config = config_of("pursuit")
    config.train.total_agent_steps = 100
    found = check_config(config, seconds=1.0)
    assert (
        found[0].check == "refused"
        and found[0].severity == "critical"
        and "would be no update" in found[0].evidence
    )
    assert {"few_updates", "few_episodes"} <= {f.check for f in found}


def test_a_gpu_that_is_not_there_is_critical(monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    config = config_of("pursuit")
    config.device = "cuda"
    found = check_config(config, seconds=1.0)
    assert found[0].check == "refused" and "finds no CUDA GPU" in found[0].evidence
    assert "what_is_earned" in {f.check for f in found}  # the rest was tried on the processor


def test_rewards_that_pay_for_standing_still_are_found_by_trying():
    """A small flat pay for being near, on paper a tenth of the goal, is more than the goal ever
    pays for idle chasers."""
    config = config_of("pursuit")
    config.game_values = {"reward.near": 20.0, "reward.catch": 0.5}
    found = [f for f in check_config(config, seconds=2.0) if f.check == "goal_out_earned"]
    assert found and found[0].severity == "critical" and "'near' pays for it" in found[0].cause


def test_a_loss_that_pays_is_found_by_trying():
    """Cover is paid back to a hider when it is caught: 40 as shipped, less than the 50 that being
    caught takes. With 60 a hider that is seen gains by running into the seeker."""
    config = config_of("hide_and_seek")
    assert not [f for f in check_config(config, seconds=4.0) if f.severity == "critical"]
    config.game_values["reward.cover"] = 60.0
    found = [
        f.cause for f in check_config(config, seconds=4.0) if f.check == "punishment_paid_back"
    ]
    assert found == [
        "hider gains in the step in which it is punished: 'cover' pays more than 'caught' takes"
    ]


def test_weapons_are_tried_where_bots_meet_each_other():
    """Against random opponents nobody of ten against ten comes into range: every weapon seemed to
    be without effect."""
    config = config_of("mechs")
    config.game_values["maps"] = 8
    assert [f.cause for f in check_config(config, seconds=60.0) if f.severity != "info"] == []


@pytest.mark.slow
# it is meant to be found ill
@pytest.mark.parametrize("recipe", [name for name in RECIPES if name != "racing_seed_failing"])
def test_every_shipped_recipe_is_ok(recipe):
    config = config_of(recipe)
    config.device = "cpu"
    assert [f.cause for f in check_config(config, seconds=60.0) if f.severity != "info"] == []
