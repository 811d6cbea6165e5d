"""The replay: n-step targets at every kind of end, the ring's edges, frames stored once,
prioritised sampling."""

import numpy as np
import pytest
import torch

from ludus.algorithms.replay_buffer import BRANCHES, Replay, SumTree
from ludus.sim import Image
from ludus.sim.layout import Seen

GAMMA = torch.tensor(0.5)


def fill(replay, steps, *, ends=None, invalid=(), idle=(), first=0):
    """Observation and reward of time t are t and 10 + t; `ends`: time → 'terminated' or
    'truncated'. `idle` rows are not valid."""
    flags = torch.zeros(replay.rows, dtype=torch.bool)
    for t in range(first, first + steps):
        start = flags if t else ~flags
        replay.observe(torch.full((replay.rows, 1), float(t)), None, {}, start)
        end = (ends or {}).get(t)
        replay.add(
            torch.full((replay.rows,), t % 7),
            torch.full((replay.rows,), 10.0 + t),
            torch.full_like(flags, t not in {*invalid, *idle}),
            torch.full_like(flags, t in idle),
            torch.full_like(flags, end == "terminated"),
            torch.full_like(flags, end == "truncated"),
            GAMMA,
        )
    return replay


def make(capacity=40, rows=2, n_step=3, **options):
    return Replay(capacity, rows, 1, 0, {}, n_step=n_step, **options)


def one(replay, time):
    s = replay.transitions(torch.tensor([time]), torch.tensor([1]), GAMMA)
    return {
        "earned": s.earned.item(),
        "discount": s.discount.item(),
        "following": s.following.item(),
        "usable": bool(s.usable),
        "observation": s.observation.item(),
        "action": s.action.item(),
    }


def test_three_steps_of_reward_and_the_value_of_what_follows():
    """10 + 5.5 + 3 of rewards 10, 11, 12 at half the weight each; then the observation three steps
    on, at an eighth."""
    replay = fill(make(), 10)
    assert one(replay, 0) == {
        "earned": 10 + 0.5 * 11 + 0.25 * 12,
        "discount": 0.125,
        "following": 3.0,
        "usable": True,
        "observation": 0.0,
        "action": 0,
    }
    assert one(replay, 4)["observation"] == 4.0 and one(replay, 4)["action"] == 4


def test_nothing_follows_a_terminal_row():
    """Row 5 is terminal, row 6 starts the next episode."""
    replay = fill(make(), 12, ends={5: "terminated"}, invalid={6})
    assert one(replay, 4) == {
        "earned": 14 + 0.5 * 15,
        "discount": 0.0,
        "following": 6.0,
        "usable": True,
        "observation": 4.0,
        "action": 4,
    }
    assert one(replay, 5)["earned"] == 15 and one(replay, 5)["discount"] == 0.0
    assert (
        one(replay, 3)["earned"] == 13 + 0.5 * 14 + 0.25 * 15 and one(replay, 3)["discount"] == 0.0
    )
    assert one(replay, 2)["discount"] == 0.125
    assert not one(replay, 6)["usable"]
    assert one(replay, 7)["earned"] == 17 + 0.5 * 18 + 0.25 * 19


def test_a_truncated_row_bootstraps_from_the_final_observation():
    """The final observation of an episode that is cut off at row 5 is that of row 6, which itself
    is not valid."""
    replay = fill(make(), 12, ends={5: "truncated"}, invalid={6})
    assert one(replay, 5) == {
        "earned": 15.0,
        "discount": 0.5,
        "following": 6.0,
        "usable": True,
        "observation": 5.0,
        "action": 5,
    }
    assert (
        one(replay, 4)["earned"] == 14 + 0.5 * 15
        and one(replay, 4)["discount"] == 0.25
        and one(replay, 4)["following"] == 6.0
    )
    assert one(replay, 3)["discount"] == 0.125 and one(replay, 3)["following"] == 6.0


def test_nothing_bootstraps_from_a_row_without_a_decision():
    replay = fill(make(), 12, invalid={6})
    assert not one(replay, 3)["usable"] and one(replay, 4)["usable"] and one(replay, 2)["usable"]


def test_idle_rows_belong_to_the_decision_before_them():
    """Rows 4 and 5 are idle: what row 3 brings is 13 + 0.5·14 + 0.25·15 over three steps, and then
    row 6 decides."""
    replay, earned = fill(make(n_step=1), 12, idle={4, 5}), 13 + 0.5 * 14 + 0.25 * 15
    assert one(replay, 3) == {
        "earned": earned,
        "discount": 0.125,
        "following": 6.0,
        "usable": True,
        "observation": 3.0,
        "action": 3,
    }
    assert one(replay, 2)["earned"] == 12 and one(replay, 2)["following"] == 3.0
    assert not one(replay, 4)["usable"] and not one(replay, 5)["usable"]
    # two decisions: of rows 2 and 3, and of rows 3 and 6
    two = fill(make(n_step=2), 12, idle={4, 5})
    assert (
        one(two, 2)["earned"] == 12 + 0.5 * earned
        and one(two, 2)["discount"] == 0.5**4
        and one(two, 2)["following"] == 6.0
    )
    assert one(two, 3)["earned"] == earned + 0.125 * 16 and one(two, 3)["discount"] == 0.5**4


@pytest.mark.parametrize(("end", "discount"), [("terminated", 0.0), ("truncated", 0.125)])
def test_an_episode_that_ends_while_idle_ends_for_the_decision_before(end, discount):
    replay = fill(make(n_step=2), 12, idle={4, 5}, ends={5: end}, invalid={6})
    for time, earned, there in (
        (3, 13 + 0.5 * 14 + 0.25 * 15, discount),
        (2, 12 + 0.5 * (13 + 0.5 * 14 + 0.25 * 15), discount / 2),
    ):
        transition = one(replay, time)
        assert (
            transition["earned"] == earned
            and transition["discount"] == there
            and transition["usable"]
        )
        assert transition["following"] == 6.0
    # the next episode begins with row 6, to which nothing was added
    assert one(replay, 7)["earned"] == 17 + 0.5 * 18
    assert replay.reward[6, 1] == 16


def test_who_is_still_idle_waits_and_keeps_its_priority():
    replay = make(n_step=1, alpha=1.0)
    for t in range(8):
        fill(replay, 1, first=t, idle={5, 6, 7})
        replay.admit(1)
    sample = replay.transitions(
        torch.tensor([3, 4]), torch.tensor([1, 1]), GAMMA, torch.tensor(1.0)
    )
    assert sample.usable.tolist() == [True, False] and sample.waiting.tolist() == [False, True]
    replay.set_priority(sample, torch.tensor([7.0, 7.0]))
    assert replay.tree.priority[[3 * 2 + 1, 4 * 2 + 1]].tolist() == pytest.approx(
        [7.0, 1.0], abs=1e-4
    )
    fill(replay, 2, first=8)
    assert (
        one(replay, 4)["usable"]
        and one(replay, 4)["following"] == 8.0
        and one(replay, 4)["discount"] == 0.5**4
    )


def test_a_decision_that_was_overwritten_gets_nothing_more():
    """20 times fit: an agent that is idle for longer adds to no row of the ring."""
    replay = fill(make(n_step=1), 30, idle=set(range(4, 29)))
    assert replay.reward[24 % 20, 1] == 10 + 24 and replay.reward[29 % 20, 1] == 39


@pytest.mark.parametrize("alpha", [None, 0.6])
@pytest.mark.parametrize("steps", [10, 25, 47])
def test_only_whole_transitions_are_drawn(alpha, steps):
    """20 times fit. The last three have no three steps yet; those before the oldest are
    overwritten."""
    replay = make(alpha=alpha)
    for t in range(steps):
        fill(replay, 1, first=t)
        replay.admit(1)
    torch.manual_seed(0)
    sample = replay.sample(2000, GAMMA, torch.tensor(1.0))
    times = sample.observation.flatten()
    oldest, newest = max(0, steps - 20), steps - 4
    assert set(times.int().tolist()) == set(range(oldest, newest + 1))
    assert torch.allclose(sample.following.flatten(), times + 3)
    assert torch.allclose(sample.earned, 10 + times + 0.5 * (11 + times) + 0.25 * (12 + times))
    assert torch.equal(sample.age, steps - times.long())


def test_admitting_many_steps_at_once_is_the_same():
    one_by_one, at_once = make(alpha=1.0), make(alpha=1.0)
    for t in range(33):
        fill(one_by_one, 1, first=t, invalid={4, 20})
        one_by_one.admit(1)
    for t in range(0, 33, 11):
        fill(at_once, 11, first=t, invalid={4, 20})
        at_once.admit(11)
    for a, b in zip(one_by_one.tree.levels, at_once.tree.levels, strict=True):
        assert torch.equal(a, b)
    # of 20 times, three are not whole yet and one (20) is invalid
    assert one_by_one.tree.total == 2 * (20 - 3 - 1)


def test_frames_are_stored_once_and_stacked_within_the_episode():
    """Pictures show the time. Episodes start at times 0 and 6; the ring holds 12 times and has gone
    round."""
    part = Seen(Image(frames=3), 2, 2)
    replay = Replay(24, 2, 1, 0, {"camera": part}, n_step=1)
    assert replay.seen["camera"].shape == (12, 2, 2, 2)
    no = torch.zeros(2, dtype=torch.bool)
    for t in range(17):
        picture = torch.full((2, 2, 2), t + 1, dtype=torch.uint8)
        shown = replay.observe(
            torch.zeros(2, 1), None, {"camera": picture}, ~no if t in (0, 6) else no
        )
        begin = 0 if t < 6 else 6
        expected = [t + 1 - b if t - b >= begin else 0 for b in (2, 1, 0)]
        assert shown["camera"][0, 1, :, 0, 0].tolist() == expected
        replay.add(torch.zeros(2), torch.zeros(2), ~no, no, no, no, GAMMA)
    sample = replay.sample(500, GAMMA)
    time = replay.head - sample.age
    assert time.min() == 7 and time.max() == 15  # two times fewer, for the frames before
    newest = sample.seen["camera"][0, :, 2, 0, 0].long() - 1
    assert torch.equal(newest, time)
    assert torch.equal(sample.following_seen["camera"][0, :, 2, 1, 1].long() - 1, time + 1)
    first = sample.seen["camera"][0, :, 0, 0, 0].long() - 1
    assert torch.equal(first, torch.where(time >= 8, time - 2, -1))


@pytest.mark.parametrize("leaves", [5, 64, 65, 5000])
def test_leaves_come_up_in_proportion_to_their_priority(leaves):
    rng = np.random.default_rng(0)
    priority = torch.tensor(
        rng.exponential(size=leaves) * (rng.random(leaves) < 0.7), dtype=torch.float32
    )
    tree = SumTree(leaves, "cpu")
    tree.set(torch.arange(leaves), priority)
    assert tree.total.item() == pytest.approx(priority.sum().item(), rel=1e-5)
    torch.manual_seed(0)
    count = 400_000
    drawn = torch.bincount(
        torch.cat([tree.draw(1000) for _ in range(count // 1000)]), minlength=leaves
    ).double()
    assert not bool(drawn[priority == 0].any())
    expected = count * priority.double() / priority.double().sum()
    assert bool(((drawn - expected).abs() <= 5 * expected.sqrt() + 3).all())


def test_new_priorities_change_the_sums_above_them():
    tree = SumTree(BRANCHES * BRANCHES + 1, "cpu")
    tree.set(torch.arange(100, 300), torch.ones(200))
    # named twice: the highest counts
    tree.set(torch.tensor([150, 4096, 150]), torch.tensor([2.0, 3.0, 5.0]))
    assert tree.priority[150] == 5 and tree.total == 200 - 1 + 5 + 3
    for below, above in zip(tree.levels, tree.levels[1:], strict=False):
        sums = below.view(-1, BRANCHES).sum(-1)
        assert torch.equal(above[: len(sums)], sums)


def test_priorities_weights_and_what_is_new():
    """alpha 0.5: errors 4 and 9 are replayed 2 : 3; beta 1 makes up for it: weights 1 and 2/3."""
    replay = make(alpha=0.5)
    fill(replay, 10)
    replay.admit(10)
    pair = torch.tensor([0, 1]), torch.tensor([0, 0])
    replay.set_priority(replay.transitions(*pair, GAMMA), torch.tensor([4.0, -9.0]))
    sample = replay.transitions(*pair, GAMMA, torch.tensor(1.0))
    assert replay.tree.priority[sample.leaf].tolist() == pytest.approx([2.0, 3.0], rel=1e-4)
    assert sample.weight.tolist() == pytest.approx([1.0, 2 / 3], rel=1e-4)
    assert replay.transitions(*pair, GAMMA, torch.tensor(0.0)).weight.tolist() == [1.0, 1.0]
    fill(replay, 1, first=10)
    replay.admit(1)
    newest = replay.transitions(torch.tensor([7]), torch.tensor([0]), GAMMA)
    # as high as the highest
    assert replay.tree.priority[newest.leaf].item() == pytest.approx(3.0, rel=1e-4)


def test_what_cannot_be_used_is_not_drawn_again():
    replay = make(alpha=1.0)
    fill(replay, 10, invalid={6})
    replay.admit(10)
    sample = replay.transitions(torch.tensor([3]), torch.tensor([0]), GAMMA)
    assert replay.tree.priority[sample.leaf] == 1 and not sample.usable
    replay.set_priority(sample, torch.tensor([5.0]))
    assert replay.tree.priority[sample.leaf] == 0 and replay.highest == 1


def test_a_million_camera_transitions_fit_in_five_gigabytes():
    """Worked out from one of a thousandth: everything grows with the capacity."""
    small = Replay(1024, 128, 15, 0, {"camera": Seen(Image(frames=4), 64, 64)}, n_step=5, alpha=0.6)
    assert small.nbytes / 1024 * 1_000_000 < 5e9
