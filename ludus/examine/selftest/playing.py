"""What PPO stores while it plays, row by row, beside what really happened and what its networks
really said."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ludus.examine.selftest import reference
from ludus.examine.selftest.core import close, holds, part, same
from ludus.examine.selftest.scene import ENVS, LESSONS, ROLLOUT, RoleLesson, Session
from ludus.examine.selftest.truth import Truth, happened

PPO, ROLE = "ludus/algorithms/ppo/ppo.py", "ludus/algorithms/on_policy.py"
OTHERS = {"left": (0, 1), "right": (1, 3)}


def joined(mine: RoleLesson, name: str) -> Tensor:
    """Both rollouts one after the other; of what has a last row for the bootstrap, that of the
    second."""
    first, second = (r[name] for r in mine.rollouts[:2])
    return torch.cat([first[:ROLLOUT], second])


def rows(truth: np.ndarray, role: str) -> Tensor:
    """[times, envs, agents, …] as the rows of a role, env after env."""
    low, high = OTHERS[role]
    return torch.from_numpy(truth[:, :, low:high]).flatten(1, 2)


def bots(role: str) -> Tensor:
    """Rows that a bot plays."""
    flags = torch.zeros(ENVS, OTHERS[role][1] - OTHERS[role][0], dtype=torch.bool)
    if role == "left":
        flags[-1] = True
    return flags.flatten()


def truth_of(session: Session, lesson: str) -> Truth:
    def make() -> Truth:
        made = session.lesson(lesson)
        acted = {n: np.zeros((2 * ROLLOUT, ENVS, 3)) for n in ("push", "press", "pick")}
        for role, mine in made.roles.items():
            low, high = OTHERS[role]
            values = {
                "push": torch.tanh(joined(mine, "raw")),
                "press": joined(mine, "binary"),
                "pick": joined(mine, "choices"),
            }
            for name, value in values.items():
                value = torch.where(bots(role).unsqueeze(-1), 0, value)  # the bot that stands still
                acted[name][:, :, low:high] = (
                    value[..., 0].reshape(2 * ROLLOUT, ENVS, high - low).numpy()
                )
        return happened(2 * ROLLOUT, ENVS, 3, acted, mortal=2, sleeper=1)

    return session.once(("truth", lesson), make)


def each(session: Session) -> list[tuple[str, str, RoleLesson, Truth]]:
    return [
        (name, role, mine, truth_of(session, name))
        for name in LESSONS
        for role, mine in session.lesson(name).roles.items()
    ]


@part("observations", ROLE)
def stores_what_was_seen(s: Session) -> None:
    """Row t of a rollout holds what the game showed at step t; the last row what the bootstrap
    value is asked of."""
    for _, role, mine, truth in each(s):
        seen = joined(mine, "observation")
        close(
            f"observations of {role}, entries env, agent, time, episode",
            seen[..., :4],
            rows(truth.observation, role)[..., :4],
        )
        holds(f"the padding of {role}'s observations is not zero", not bool(seen[..., 7:].any()))


@part("actions", ROLE)
def actions_reach_the_game(s: Session) -> None:
    """The game receives, and shows as done last, the actions that row t stores; continuous ones
    squashed by tanh."""
    for _, role, mine, truth in each(s):
        shown, told = joined(mine, "observation")[..., 4:7], rows(truth.observation, role)[..., 4:]
        close(f"actions of {role} as the game received them", shown, told, 2e-3)


@part("masks", ROLE)
def forbidden_actions_are_not_taken(s: Session) -> None:
    """Masks are those of the same step, and what they forbid is never done."""
    for _, role, mine, truth in each(s):
        mask = rows(truth.mask, role)[:-1].bool()
        same(f"masks of {role}", joined(mine, "mask")[:-1][-ROLLOUT:], mask[-ROLLOUT:])
        allowed = mask[..., 1:].gather(-1, joined(mine, "choices").long())
        holds(f"{role} took an option that its mask forbids", allowed.all())
        holds(
            f"{role} pressed a key that its mask forbids",
            not bool((joined(mine, "binary")[..., 0].bool() & ~mask[..., 0]).any()),
        )


@part("rewards", ROLE)
def stores_the_reward_of_each_step(s: Session) -> None:
    """Row t holds the reward that its action earned, times reward_scale, and nothing is clipped."""
    for name, role, mine, truth in each(s):
        scale = s.lesson(name).config.learner.reward_scale
        earned = torch.where(bots(role), 0.0, rows(truth.reward, role)[:-1])
        close(
            f"rewards of {role}",
            torch.where(bots(role), 0.0, joined(mine, "reward").double()),
            scale * earned,
        )


@part("episode ends", ROLE)
def stores_episode_ends_where_they_are(s: Session) -> None:
    """The row whose action ends the episode is marked, as terminated (no future) or truncated (cut
    off), and no other row."""
    for _, role, mine, truth in each(s):
        same(
            f"terminated rows of {role}",
            joined(mine, "terminated"),
            rows(truth.terminated, role)[:-1],
        )
        same(
            f"truncated rows of {role}", joined(mine, "truncated"), rows(truth.truncated, role)[:-1]
        )


@part("valid rows", ROLE)
def knows_which_rows_count(s: Session) -> None:
    """Reset rows, the dead, the idle and rows of bots are not valid; all others are. Idle rows are
    known as such, and their values are learned, except those of bots."""
    for _, role, mine, truth in each(s):
        same(
            f"valid rows of {role}",
            joined(mine, "valid"),
            rows(truth.valid, role)[:-1] & ~bots(role),
        )
        same(f"idle rows of {role}", joined(mine, "idle"), rows(truth.idle, role)[:-1])
        learned = (rows(truth.valid, role) | rows(truth.idle, role))[:-1] & ~bots(role)
        same(f"rows of {role} whose value is learned", joined(mine, "valued"), learned)


@part("episode starts", ROLE)
def knows_where_episodes_start(s: Session) -> None:
    """The first observation of every episode is marked as its start: memories begin anew there and
    nowhere else."""
    for _, role, mine, truth in each(s):
        same(f"starts of {role}", joined(mine, "starts"), rows(truth.starts, role))


class Said(NamedTuple):
    """What the reference says about all rows of both rollouts."""

    states: list[Tensor]  # before each row, and after the last
    head: Tensor
    value: Tensor  # in units of reward


def said(s: Session, name: str, role: str) -> Said:
    """The whole sequence by the reference, from a fresh memory, with starts as they really were."""

    def make() -> Said:
        lesson = s.lesson(name)
        mine, truth = lesson.roles[role], truth_of(s, name)
        seen, starts = joined(mine, "observation")[..., :7].double(), rows(truth.starts, role)
        states = [torch.zeros_like(mine.final_states[0], dtype=torch.float64)]
        heads, values = [], []
        for t in range(2 * ROLLOUT + 1):
            out = reference.policy(
                mine.before, lesson.config.policy, seen[t : t + 1], states[-1], starts[t : t + 1], 8
            )
            states.append(out.state)
            heads.append(out.head[0])
            values.append(reference.real(mine.before, out.value[0]))
        return Said(states, torch.stack(heads), torch.stack(values))

    return s.once(("said", name, role), make)


@part("memory", "ludus/networks/memory.py")
def memory_is_carried_and_reset(s: Session) -> None:
    """While acting, the memory is carried from row to row and from rollout to rollout, and is zero
    at every episode's start."""
    for name in ("memory", "two memories"):
        for role, mine in s.lesson(name).roles.items():
            expected = said(s, name, role).states
            for k in range(2):
                for chunk, state in enumerate(mine.rollouts[k]["state"]):
                    at = k * ROLLOUT + 4 * chunk
                    fresh = rows(truth_of(s, name).starts, role)[at].unsqueeze(-1)
                    close(
                        f"memory of {role} before row {at}",
                        torch.where(fresh, 0.0, state),
                        torch.where(fresh, 0.0, expected[at]),
                    )
                close(
                    f"memory of {role} after rollout {k + 1}",
                    mine.final_states[k],
                    expected[(k + 1) * ROLLOUT],
                )


@part("values", "ludus/networks/policy.py")
def stores_the_values_of_the_network(s: Session) -> None:
    """Values are those of the normalised observation, in units of reward, the bootstrap of the last
    row included."""
    for name, role, mine, _ in each(s):
        close(f"values of {role} ({name})", joined(mine, "value"), said(s, name, role).value, 1e-3)


@part("log-probabilities", "ludus/networks/heads.py")
def stores_the_log_probability_of_each_action(s: Session) -> None:
    """The stored log-probability is that of the whole action: the squashed continuous part with the
    slope of tanh, keys, choices, with what masks forbid left out."""
    for name, role, mine, truth in each(s):
        p = mine.before
        actions = [joined(mine, n) for n in ("raw", "binary", "choices")]
        mask = rows(truth.mask, role)[:-1].bool()
        told = reference.distribution(
            mine.role.space, said(s, name, role).head[:-1], p["log_std"], mask, *actions
        )
        close(
            f"log-probabilities of {role} ({name})", joined(mine, "log_prob"), told.log_prob, 1e-3
        )


@part("sampling", PPO)
def continuous_actions_are_sampled(s: Session) -> None:
    """Continuous actions spread around the mean by the policy's deviation."""
    spread = []
    for name, role, mine, _ in each(s):
        if mine.role.space.state_dependent_std:
            continue
        mean = said(s, name, role).head[:-1, :, :1]
        spread.append(
            ((joined(mine, "raw") - mean) / mine.before["log_std"].clamp(-5, 2).exp()).flatten()
        )
    z = torch.cat(spread)
    holds(
        f"actions have a mean of {float(z.mean()):.2f} deviations instead of 0",
        abs(float(z.mean())) < 5 / len(z) ** 0.5,
    )
    holds(
        f"actions spread {float(z.std()):.2f} times as far as the policy says",
        abs(float(z.std()) - 1) < 5 / (2 * len(z)) ** 0.5,
    )


CHECKS = (
    stores_what_was_seen,
    actions_reach_the_game,
    forbidden_actions_are_not_taken,
    stores_the_reward_of_each_step,
    stores_episode_ends_where_they_are,
    knows_which_rows_count,
    knows_where_episodes_start,
    memory_is_carried_and_reset,
    stores_the_values_of_the_network,
    stores_the_log_probability_of_each_action,
    continuous_actions_are_sampled,
)
