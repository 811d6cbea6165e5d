"""Mixes become lineups; envs draw them in their reset rows and nowhere else."""

import numpy as np
import pytest

from ludus.errors import LudusError
from ludus.play.lineups import make_lineups
from ludus.sim import Batch
from ludus.sim.episode import FROZEN
from ludus.who import read_mix
from tests.sim.games import PURSUIT


@pytest.fixture(scope="module")
def batch():
    return Batch(PURSUIT, 64, seed=2, overrides={"max_steps": 10})


def test_a_mix_is_weights_by_name():
    assert read_mix("self 70, pool 7.5,bot:flee 20, bot:still 0") == {
        "self": 70,
        "pool": 7.5,
        "bot:flee": 20,
    }
    assert read_mix("") == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("self", "not an opponent and its weight"),
        ("self 0, pool 0", "sums to 0"),
        ("self -1", "not an opponent and its weight"),
    ],
)
def test_a_mix_that_cannot_work_is_refused(text, words):
    with pytest.raises(LudusError, match=words):
        read_mix(text)


def test_each_side_meets_the_opponents_it_can_meet(batch):
    table = make_lineups(
        batch.layout, batch.controllers, read_mix("self 1, pool 2, bot:flee 4, bot:random 6")
    )
    chaser, runners = batch.controllers["chaser"], batch.controllers["runner"]
    count = batch.layout.num_agents - 1
    assert [(x.opponent, x.side, x.weight) for x in table] == [
        ("self", "", 1),
        ("pool", "chaser", 1),
        ("pool", "runner", 1),
        ("bot:flee", "chaser", 4),
        ("bot:random", "chaser", 3),
        ("bot:random", "runner", 3),
    ]
    assert [x.controllers for x in table] == [
        (0,) * (count + 1),
        (0, *[FROZEN] * count),
        (FROZEN, *[0] * count),
        (0, *[runners["flee"]] * count),
        (0, *[runners["random"]] * count),
        (chaser["random"], *[0] * count),
    ]


def test_an_unknown_opponent_is_refused(batch):
    with pytest.raises(LudusError, match="did you mean 'bot:flee'"):
        make_lineups(batch.layout, batch.controllers, read_mix("bot:fle 1"))


def test_envs_draw_by_weight_in_reset_rows_only(batch):
    table = make_lineups(batch.layout, batch.controllers, read_mix("self 1, pool 1, bot:flee 2"))
    weights = np.array([x.weight for x in table])
    batch.set_lineups(np.array([x.controllers for x in table]), weights)
    batch["slot_open"][...] = True
    before, drawn = batch["controller"].copy(), []
    for _ in range(400):
        batch.step()
        fresh = batch["resetting"]
        assert np.array_equal(batch["controller"][~fresh], before[~fresh])
        before = batch["controller"].copy()
        drawn += batch["lineup"][fresh].tolist()
    shares = np.bincount(drawn, minlength=len(table)) / len(drawn)
    assert len(drawn) > 1500
    assert np.allclose(shares, weights / weights.sum(), atol=0.05)
    for lineup, controllers in zip(batch["lineup"], batch["controller"], strict=True):
        assert tuple(controllers) == table[lineup].controllers


def test_a_closed_slot_is_not_drawn(batch):
    table = make_lineups(batch.layout, batch.controllers, read_mix("self 1, pool 9"))
    batch.set_lineups(np.array([x.controllers for x in table]), np.array([x.weight for x in table]))
    batch["slot_open"][...] = np.arange(64) >= 32
    batch.reset()
    frozen = (batch["controller"] == FROZEN).any(1)
    assert not frozen[:32].any() and frozen[32:].mean() > 0.6


def test_without_anybody_live_a_closed_slot_would_have_nothing_to_draw(batch):
    table = make_lineups(batch.layout, batch.controllers, read_mix("pool 1"))
    with pytest.raises(LudusError, match="every lineup has a frozen opponent"):
        batch.set_lineups(
            np.array([x.controllers for x in table]), np.array([x.weight for x in table])
        )


def test_results_count_the_learning_side(batch):
    """The chaser wins when all runners are caught: its lineups' results are its outcomes, those of
    runners theirs."""
    table = make_lineups(batch.layout, batch.controllers, read_mix("bot:random 1"))
    batch.set_lineups(np.array([x.controllers for x in table]), np.array([x.weight for x in table]))
    batch.reset()
    batch.read_lineup_results([slice(None)])
    expected = np.zeros((2, 4))
    for _ in range(60):
        batch.step()
        for env in np.flatnonzero(batch["counted"]):
            outcomes = batch["outcome"][env][batch["controller"][env] == 0]
            at = batch["lineup"][env]
            expected[at] += [
                1,
                (outcomes > 0).mean(),
                (outcomes == 0).mean(),
                (outcomes < 0).mean(),
            ]
    assert expected[:, 0].min() > 20
    assert np.allclose(batch.read_lineup_results([slice(None)])[0][:2], expected, atol=1e-3)
    assert not batch.read_lineup_results([slice(None)])[0].any()
