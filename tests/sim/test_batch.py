"""Hand-worked episodes of a two-agent counting game, parameters, staggering, statistics, state."""

import numpy as np
import pytest

from ludus.errors import LudusError
from ludus.sim import Batch
from tests.sim.games import COUNTER, PURSUIT, TABLED


@pytest.fixture(params=[True, False], ids=["compiled", "python"])
def jit(request):
    return request.param


def play(batch, steps, push=1):
    """Rows of (step, reward, terminated, truncated, valid) of env 0."""
    rows = []
    for _ in range(steps):
        batch["action_push"][...] = push
        batch.step()
        rows.append(
            [
                int(batch["step"][0]),
                batch["reward"][0].tolist(),
                batch["agent_terminated"][0].tolist(),
                batch["agent_truncated"][0].tolist(),
                batch["valid"][0].tolist(),
            ]
        )
    return rows


def test_truncation_by_hand(jit):
    """max_steps 3: two rows, the truncated one, the reset row. Left earns 2 + 0.5 a step, right 2
    (push is not its term)."""
    batch = Batch(COUNTER, 2, overrides=dict(max_steps=3), jit=jit)
    no, yes = [False, False], [True, True]
    assert play(batch, 5) == [
        [1, [2.5, 2.0], no, no, yes],
        [2, [2.5, 2.0], no, no, yes],
        [3, [2.5, 2.0], no, yes, yes],
        [0, [0.0, 0.0], no, no, no],
        [1, [2.5, 2.0], no, no, yes],
    ]


def test_the_final_observation_is_shown_before_the_reset(jit):
    batch = Batch(COUNTER, 1, overrides=dict(max_steps=3), jit=jit)
    play(batch, 3)
    assert batch["observation"][0, 0].tolist() == pytest.approx([0.03, 0.3])
    play(batch, 1)
    assert batch["observation"][0, 0].tolist() == [0.0, 0.0]


def test_a_terminal_end_by_hand(jit):
    batch = Batch(COUNTER, 1, overrides=dict(max_steps=2, ends=1), jit=jit)
    rows = play(batch, 3)
    assert [r[2] for r in rows] == [[False, False], [True, True], [False, False]]
    assert not any(any(r[3]) for r in rows)


def test_a_death_by_hand(jit):
    """Right dies in step 2: that row is valid, terminal and carries its reward; then it is out, and
    left plays on."""
    batch = Batch(COUNTER, 1, overrides=dict(max_steps=4, dies_at=2), jit=jit)
    rows = play(batch, 5)
    assert [r[1] for r in rows] == [[2.5, 2.0], [2.5, 2.0], [2.5, 0.0], [2.5, 0.0], [0.0, 0.0]]
    assert [r[2] for r in rows] == [
        [False, False],
        [False, True],
        [False, False],
        [False, False],
        [False, False],
    ]
    assert [r[3] for r in rows] == [
        [False, False],
        [False, False],
        [False, False],
        [True, False],
        [False, False],
    ]
    assert [r[4] for r in rows] == [
        [True, True],
        [True, True],
        [True, False],
        [True, False],
        [False, False],
    ]


def test_statistics_by_hand(jit):
    batch = Batch(COUNTER, 2, overrides=dict(max_steps=4, dies_at=2), jit=jit)
    play(batch, 4)
    stats = batch.read_statistics()
    assert (
        stats["left"]["episodes"] == 2
        and stats["left"]["return"] == 10.0
        and stats["left"]["length"] == 4
    )
    assert stats["right"]["return"] == 4.0 and stats["right"]["length"] == 2
    assert (
        stats["left"]["term/one"] == 4
        and stats["left"]["term/push"] == 4
        and stats["left"]["goal/pushes"] == 4
    )
    assert stats["left"]["truncated"] == 1.0 and stats["left"]["return_std"] == 0.0
    assert batch.read_valid_steps() == 2 * (4 + 2)
    assert batch.read_statistics()["left"] == {"episodes": 0.0} and batch.read_valid_steps() == 0


def test_masked_random_bot_never_takes_a_forbidden_option(jit):
    batch = Batch(COUNTER, 8, jit=jit)
    batch.set_controller("left", "random")
    batch.reset()
    seen = set()
    for _ in range(60):
        batch.step()
        seen |= set(batch["action_pick"][:, 0].tolist())
    assert seen == {0, 1}


def test_parameters_wait_for_each_envs_reset_row(jit):
    batch = Batch(COUNTER, 2, overrides=dict(max_steps=3), jit=jit)
    batch.set_params({"max_steps": np.array([1, 2])})
    play(batch, 3)
    assert batch["max_steps"].tolist() == [3, 3]
    play(batch, 1)
    assert batch["max_steps"].tolist() == [1, 2]
    assert [r[3][0] for r in play(batch, 1)] == [True]


def test_received_is_read_from_the_simulator():
    batch = Batch(PURSUIT, 4, overrides={"speed": 0.3, "reward.catch": 7.0})
    assert batch.received()["params"]["speed"] == pytest.approx(0.3)
    assert batch.received()["rewards"]["catch"] == 7.0
    batch.check_received()
    before = batch.fingerprint()
    batch.arrays["weights"][2, 0] = 0.0  # as if something on the way overwrote it in one env
    assert batch.received()["rewards"]["catch"] == {"low": 0.0, "high": 7.0}
    with pytest.raises(LudusError, match=r"reward\.catch is .* instead of 7\.0"):
        batch.check_received()
    assert batch.fingerprint() != before


def test_staggered_first_episodes_spread_out_and_do_not_count():
    batch = Batch(
        PURSUIT, 200, stagger=True, overrides=dict(speed=2.0, chaser_speed=0.01, reach=0.05)
    )
    ends = []
    for i in range(200):
        batch.step()
        ends += [i] * int(batch["finished"].sum())
    assert len(ends) >= 195
    assert np.histogram(ends, 4, (0, 200))[0].min() > 30
    assert batch.read_statistics()["chaser"]["episodes"] < 10


def test_bots_by_name():
    batch = Batch(PURSUIT, 4)
    with pytest.raises(LudusError, match="no bot 'gredy': did you mean 'greedy'"):
        batch.set_controller("chaser", "gredy")
    with pytest.raises(LudusError, match="no role 'chasr'"):
        batch.set_controller("chasr", "greedy")


def test_the_greedy_chaser_beats_the_random_one():
    rates = {}
    for bot in ("greedy", "random", "still"):
        batch = Batch(PURSUIT, 256, seed=5)
        batch.set_controller("chaser", bot)
        batch.set_controller("runner", "random")
        batch.reset()
        for _ in range(450):
            batch.step()
        rates[bot] = batch.read_statistics()["chaser"]["goal/catch_rate"]
    assert rates["greedy"] > 0.95 > 0.6 > rates["random"] > rates["still"]


def test_a_state_of_another_game_is_refused():
    with pytest.raises(LudusError, match="not a state of pursuit"):
        Batch(PURSUIT, 2).load_state(Batch(COUNTER, 2).state())
    with pytest.raises(LudusError, match=r"shape \(2.*\(3"):
        Batch(PURSUIT, 2).load_state(Batch(PURSUIT, 3).state())


def test_zero_copy_with_torch():
    batch = Batch(PURSUIT, 2)
    batch.tensor("continuous").fill_(0.25)
    assert (batch["action_turn"] == 0.25).all()
    assert batch.tensor("observation").data_ptr() == batch["observation"].ctypes.data


def test_setup_fills_shared_fields_once_with_the_batchs_parameters(jit):
    batch = Batch(TABLED, 3, overrides=dict(slope=0.5), jit=jit)
    assert batch["table"].tolist() == [[0.5 * (s * s + d) for d in range(3)] for s in range(4)]
    assert batch["observation"][2, :, 1].tolist() == pytest.approx([0.005, 0.02])
