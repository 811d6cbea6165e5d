"""What Rainbow keeps of its play, and what it draws from it: rows, frames, sums of n rewards,
priorities."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ludus.algorithms.replay_buffer import SumTree
from ludus.examine.selftest.core import close, holds, part, same
from ludus.examine.selftest.scene import ENVS, Session, nothing
from ludus.examine.selftest.truth import Truth, happened, length

REPLAY, RAINBOW = "ludus/algorithms/replay_buffer.py", "ludus/algorithms/rainbow/rainbow.py"
ROLLOUTS = 11  # the ring holds 60 times: it has gone round after 88, when somebody is idle
N_STEP, GAMMA, ALPHA = 3, 0.9, 0.6


def played(s: Session) -> tuple[Any, Truth, Tensor]:
    """An algorithm that has played beyond the length of its ring, what happened, and the times that
    are still there."""

    def make() -> tuple[Any, Truth, Tensor]:
        algorithm = s.make_rainbow(prioritised=True, alpha=ALPHA)
        for _ in range(ROLLOUTS):
            algorithm.collect(nothing)
        r = algorithm.roles["agent"].replay
        times = torch.arange(int(r.head) - r.length + 1, int(r.head))
        acted = np.zeros((int(r.head), ENVS, 2))
        acted[times[0] - 1 :] = stored(
            r.action, torch.arange(int(times[0]) - 1, int(r.head)), r.length
        ).numpy()
        return (
            algorithm,
            happened(int(r.head), ENVS, 2, {"pick": acted}, mortal=1, sleeper=0),
            times,
        )

    return s.once("played", make)


def stored(x: Tensor, times: Tensor, size: int) -> Tensor:
    """Rows of the ring at these times: [times, envs, agents, …]."""
    return x.cpu()[times % size].unflatten(1, (ENVS, 2))


@part("observations", RAINBOW)
def keeps_what_was_seen(s: Session) -> None:
    """Every row of the ring holds the observation, mask and picture of its own step."""
    algorithm, truth, times = played(s)
    r = algorithm.roles["agent"].replay
    seen = stored(r.observation, times, r.length)
    close(
        "observations, entries env, agent, time, episode",
        seen[..., :4],
        truth.observation[times][..., :4],
    )
    same("masks", stored(r.mask, times, r.length), truth.mask[times])
    same(
        "newest pixels",
        stored(r.seen["picture"], times, r.length)[..., 0, 0],
        20 * (truth.step[times] + 1),
    )


@part("actions", RAINBOW)
def choices_reach_the_game(s: Session) -> None:
    """The game receives, and shows as done last, the choice that the row before stores; forbidden
    ones are never made."""
    algorithm, truth, times = played(s)
    r = algorithm.roles["agent"].replay
    close(
        "choices as the game received them",
        stored(r.observation, times, r.length)[..., 4],
        truth.observation[times][..., 4],
    )
    allowed = torch.from_numpy(truth.mask[times]).gather(
        -1, stored(r.action, times, r.length).long().unsqueeze(-1)
    )
    holds("an option was taken that its mask forbids", bool(allowed.all()))


def until_next_decision(
    truth: Truth, time: int, env: int, agent: int, now: int
) -> tuple[float, int, int]:
    """What the action of this row has come to by the time `now`, idle rows after it included:
    discounted reward, number of rows, how it ended (0: not, 1: truncated, 2: terminated)."""
    at, earned = time, 0.0
    while True:
        earned += GAMMA ** (at - time) * 0.5 * truth.reward[at, env, agent]
        end = int(2 * truth.terminated[at, env, agent] + truth.truncated[at, env, agent])
        at += 1
        if end or not truth.valid[time, env, agent] or at >= now or not truth.idle[at, env, agent]:
            return earned, at - time, end


def outcomes(truth: Truth, times: Tensor, now: int) -> np.ndarray:
    """[times, envs, agents, (reward, rows, end)] by `until_next_decision`."""
    return np.array(
        [
            [
                [until_next_decision(truth, int(t), env, agent, now) for agent in range(2)]
                for env in range(ENVS)
            ]
            for t in times
        ]
    )


@part("rewards", RAINBOW)
def keeps_the_reward_of_each_decision(s: Session) -> None:
    """Every row holds the reward of its own action, times reward_scale, and that of the idle rows
    after it, discounted."""
    algorithm, truth, times = played(s)
    r = algorithm.roles["agent"].replay
    expected = outcomes(truth, times, int(r.head))
    close("rewards", stored(r.reward, times, r.length), expected[..., 0])
    same("rows to the next decision", stored(r.span, times, r.length), expected[..., 1])


@part("episode ends", RAINBOW)
def keeps_episode_ends_where_they_are(s: Session) -> None:
    """The row whose action ends the episode, at once or while the agent is idle after it, is
    marked, as terminated (2) or truncated (1); valid rows are marked as such."""
    algorithm, truth, times = played(s)
    r = algorithm.roles["agent"].replay
    same("ends", stored(r.end, times, r.length), outcomes(truth, times, int(r.head))[..., 2])
    same("valid rows", stored(r.valid, times, r.length), truth.valid[times])


@part("frame stacks", REPLAY)
def stacks_hold_the_last_frames_of_the_episode(s: Session) -> None:
    """A picture of several frames shows the last ones of its own episode, oldest first, and black
    before its start."""
    algorithm, truth, times = played(s)
    r = algorithm.roles["agent"].replay
    some = times[2:].repeat_interleave(r.rows)
    row = torch.arange(r.rows).repeat(len(times) - 2)
    stack = r.stacks(some.to(s.device), row.to(s.device))["picture"][0].cpu()
    step = torch.from_numpy(truth.step[some, row // 2, row % 2])
    episode = torch.from_numpy(truth.episode[some, row // 2, row % 2])
    for k in range(3):
        back = 2 - k
        there = step >= back
        same(f"frame {k}", stack[:, k, 0, 0], torch.where(there, 20 * (step - back + 1), 0))
        same(f"episode of frame {k}", stack[:, k, 1, 0], torch.where(there, 30 * (episode % 8), 0))
        same(f"owner of frame {k}", stack[:, k, 1, 1], torch.where(there, 50 * (row // 2 + 1), 0))


def expected_transition(
    truth: Truth, time: int, row: int, now: int
) -> tuple[float, float, int, bool]:
    """Reward of up to n decisions, discount of what follows, when that is, and whether anything is
    to be learned from it."""
    env, agent = row // 2, row % 2
    if not truth.valid[time, env, agent]:
        return 0.0, 0.0, time, False
    earned, at, end = 0.0, time, 0
    for _ in range(N_STEP):
        if at >= now:
            break
        reward, rows, end = until_next_decision(truth, at, env, agent, now)
        earned += GAMMA ** (at - time) * reward
        at += rows
        if end:
            break
    return earned, 0.0 if end == 2 else GAMMA ** (at - time), at, at < now


@part("n-step targets", REPLAY)
def transitions_add_up_rewards_to_the_episodes_end(s: Session) -> None:
    """A drawn transition: discounted rewards of n decisions, idle steps after them included, or to
    the episode's end; then the observation after them, weighed by gamma to the steps between, by
    nothing after a terminal row; usable only from a decision of a living agent, and once what
    follows is there."""
    algorithm, truth, times = played(s)
    role = algorithm.roles["agent"]
    r = role.replay
    gamma, beta = torch.tensor(GAMMA, device=s.device), torch.tensor(0.5, device=s.device)
    drawn = (r.head - r.sample(300, gamma, beta).age).cpu()
    whole = torch.arange(int(times[0]) + 1, int(times[-1]) - N_STEP + 1)
    holds(
        "a transition is drawn whose steps are not all there",
        bool((drawn >= whole[0]).all() and (drawn <= whole[-1]).all()),
    )
    drawn, rows_ = whole.repeat_interleave(r.rows), torch.arange(r.rows).repeat(len(whole))
    draw = r.transitions(drawn.to(s.device), rows_.to(s.device), gamma, beta)
    now = int(r.head)
    told = [
        expected_transition(truth, int(t), int(row), now)
        for t, row in zip(drawn, rows_, strict=True)
    ]
    env, agent = rows_ // 2, rows_ % 2
    close("observations", draw.observation[0], truth.observation[drawn, env, agent])
    usable = torch.tensor([x[3] for x in told])
    same("what is usable", draw.usable, usable)
    same("what waits", draw.waiting, torch.from_numpy(truth.valid[drawn, env, agent]) & ~usable)
    holds("nobody of the test is idle at the end", bool(draw.waiting.any()))
    close("sums of rewards", draw.earned.cpu()[usable], torch.tensor([x[0] for x in told])[usable])
    close("discounts", draw.discount.cpu()[usable], torch.tensor([x[1] for x in told])[usable])
    after = torch.tensor([x[2] for x in told])
    holds("idle steps are not passed over", bool((after - drawn)[usable].max() > N_STEP))
    close(
        "what follows",
        draw.following[0].cpu()[usable],
        truth.observation[after, env, agent][usable],
    )
    same("its masks", draw.following_mask[0].cpu()[usable], truth.mask[after, env, agent][usable])
    same(
        "its newest pixel",
        draw.following_seen["picture"][0, :, 2, 0, 0].cpu()[usable],
        20 * (truth.step[after, env, agent] + 1)[usable],
    )
    close(
        "actions",
        draw.action.cpu(),
        stored(r.action, drawn, r.length)[torch.arange(len(drawn)), env, agent],
    )


@part("prioritised replay", REPLAY)
def transitions_come_up_by_their_priority(s: Session) -> None:
    """New transitions get the highest priority, invalid ones none; then each comes up in proportion
    to |error|^alpha, and its weight in the loss is (1 / priority)^beta, at most 1 in a batch. Those
    of idle agents wait."""
    algorithm, truth, times = played(s)
    r, device = algorithm.roles["agent"].replay, s.device
    gamma, beta = torch.tensor(GAMMA, device=device), torch.tensor(0.7, device=device)
    at_first = torch.zeros(r.length * r.rows)
    # two frames before and three steps after must be there
    for t in range(int(times[0]) + 1, int(times[-1]) + 1 - N_STEP):
        for row in range(r.rows):
            at_first[t % r.length * r.rows + row] = float(truth.valid[t, row // 2, row % 2])
    close("priorities of what was never replayed", r.tree.priority.cpu(), at_first)
    draw = r.sample(400, gamma, beta)
    holds("nobody of the test waits", bool(draw.waiting.any()))
    r.set_priority(draw, 1.0 + (draw.leaf % 5).float())
    leaf = draw.leaf.cpu()
    unusable = torch.where(draw.waiting.cpu(), at_first[leaf], 0.0)
    new = torch.where(draw.usable.cpu(), (1.0 + leaf % 5 + 1e-6) ** ALPHA, unusable)
    expected = at_first.clone()
    expected[leaf] = new.float()
    close("priorities after errors were seen", r.tree.priority.cpu(), expected, 1e-3)
    close(
        "the priority that new transitions get from now on",
        r.highest,
        max(1.0, float(new.max())),
        1e-3,
    )
    count = 40_000
    drawn = torch.cat([r.sample(1000, gamma, beta).leaf.cpu() for _ in range(count // 1000)])
    often = torch.bincount(drawn, minlength=len(expected)).double()
    wanted = count * expected.double() / expected.sum()
    apart = (often - wanted).abs() - 5 * wanted.sqrt() - 3
    holds(
        "transitions do not come up by their priority: one of priority "
        f"{expected[apart.argmax()]:.3g} came {often[apart.argmax()]:.0f} "
        f"times instead of {wanted[apart.argmax()]:.0f}",
        bool((apart <= 0).all()),
    )
    again = r.sample(200, gamma, beta)
    weight = expected[again.leaf.cpu()].double() ** -0.7
    close(
        "weights in the loss", again.weight.cpu(), again.usable.cpu() * weight / weight.max(), 1e-3
    )


@part("prioritised replay", REPLAY)
def the_sum_tree_draws_in_proportion(s: Session) -> None:
    """Leaves of many levels come up in proportion to their priority, those without any never; sums
    are exact."""
    for leaves in (5, 65, 5000):
        priority = torch.rand(leaves) * (torch.rand(leaves) < 0.7)
        priority[0] = 2.0
        tree = SumTree(leaves, s.device)
        tree.set(torch.arange(leaves, device=s.device), priority.to(s.device))
        close("the sum of all", tree.total, priority.sum())
        count = 50_000
        often = torch.bincount(
            torch.cat([tree.draw(1000).cpu() for _ in range(count // 1000)]), minlength=leaves
        ).double()
        wanted = count * priority.double() / priority.double().sum()
        holds("a leaf without priority is drawn", not bool(often[priority == 0].any()))
        holds(
            "leaves do not come up in proportion",
            bool(((often - wanted).abs() <= 5 * wanted.sqrt() + 3).all()),
        )


@part("replay", REPLAY)
def without_priorities_all_come_up_alike(s: Session) -> None:
    """Without priorities every whole transition is drawn equally often, with a weight of 1 if it is
    usable."""
    algorithm = s.make_rainbow(prioritised=False)
    for _ in range(ROLLOUTS):
        algorithm.collect(nothing)
    r = algorithm.roles["agent"].replay
    gamma = torch.tensor(GAMMA, device=s.device)
    draws = [r.sample(1000, gamma, torch.tensor(0.5, device=s.device)) for _ in range(20)]
    ages, leaves = torch.cat([d.age.cpu() for d in draws]), torch.cat([d.leaf.cpu() for d in draws])
    holds(
        f"ages {int(ages.min())} to {int(ages.max())} instead of {N_STEP + 1} to 58",
        int(ages.min()) == N_STEP + 1 and int(ages.max()) == 58,
    )
    often = torch.bincount(leaves, minlength=r.length * r.rows).double()
    wanted = len(leaves) / ((58 - N_STEP) * r.rows)
    holds(
        "transitions are not drawn equally often",
        bool((often[often > 0] - wanted).abs().max() <= 6 * wanted**0.5),
    )
    same("weights", draws[0].weight, draws[0].usable.float())


@part("episode ends", RAINBOW)
def counts_steps_and_episodes(s: Session) -> None:
    """What drives the schedules: valid rows and finished episodes of the agents are counted, each
    once."""
    algorithm = s.make_rainbow(warm_up=400)
    for _ in range(4):
        algorithm.collect(nothing)
        algorithm.learn(0.0)
    truth = happened(32, ENVS, 2, {"pick": np.zeros((32, ENVS, 2))}, mortal=1, sleeper=0)
    count = algorithm.roles["agent"].count
    same("agent-steps", count.steps, truth.valid.sum())
    ends = ((truth.valid | truth.idle) & (truth.terminated | truth.truncated)).sum()
    same("episodes", count.episodes, ends)
    holds("episodes of the test do not end where they should", length(1) == 6)


CHECKS = (
    keeps_what_was_seen,
    choices_reach_the_game,
    keeps_the_reward_of_each_decision,
    keeps_episode_ends_where_they_are,
    stacks_hold_the_last_frames_of_the_episode,
    transitions_add_up_rewards_to_the_episodes_end,
    the_sum_tree_draws_in_proportion,
    transitions_come_up_by_their_priority,
    without_priorities_all_come_up_alike,
    counts_steps_and_episodes,
)
