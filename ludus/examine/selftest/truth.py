"""What happens in the selftest's games, worked out from their rules in plain Python, step by
step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ludus.examine.selftest.games import DIES_AT, WEIGHT

MAX_STEPS = 5


def length(env: int) -> int:
    return MAX_STEPS + env % 3


@dataclass
class Truth:
    """Rows [times, envs, agents]: what each row must hold. The last time has only an
    observation."""

    observation: np.ndarray
    mask: np.ndarray
    reward: np.ndarray
    valid: np.ndarray
    idle: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    starts: np.ndarray
    step: np.ndarray
    episode: np.ndarray


def happened(
    times: int, envs: int, agents: int, acted: dict[str, np.ndarray], mortal: int, sleeper: int
) -> Truth:
    """`acted`: actions by name [times, envs, agents], in the order of the observation's last
    entries; 'push' counts squared.

    The first row of all is that of a fresh batch: step 0 of episode 0, and the first observation of
    an episode.
    """
    names = list(acted)
    keys = 1 if "press" in acted else 0
    t = Truth(
        *(np.zeros((times + 1, envs, agents, n)) for n in (4 + len(names), keys + 3)),
        *(np.zeros((times + 1, envs, agents)) for _ in range(1)),
        *(np.zeros((times + 1, envs, agents), bool) for _ in range(5)),
        *(np.zeros((times + 1, envs, agents), int) for _ in range(2)),
    )
    for env in range(envs):
        for agent in range(agents):
            _follow(t, env, agent, times, acted, agent == mortal, agent == sleeper)
    return t


def _follow(
    t: Truth,
    env: int,
    agent: int,
    times: int,
    acted: dict[str, np.ndarray],
    mortal: bool,
    sleeps: bool,
) -> None:
    step, episode, last = 0, 0, None
    for time in range(times + 1):
        at = (time, env, agent)
        alive = not (mortal and step >= DIES_AT)
        over = step == length(env)
        t.step[at], t.episode[at] = step, episode
        t.starts[at] = last is None
        scales = {"push": 1.0, "press": 1.0, "pick": 0.5}
        echo = [0.0 if last is None else scales[n] * last[n] for n in acted]
        t.observation[at] = [0.25 * env, 0.5 * agent, 0.125 * step, 0.25 * (episode % 8), *echo]
        t.mask[at] = ([step % 2 == 0] if "press" in acted else []) + [
            k != (step + agent) % 3 for k in range(3)
        ]
        if time == times:
            return
        doing = {n: float(a[at]) for n, a in acted.items()}
        if over:  # the next row starts anew: this one decides nothing
            step, episode, last = 0, episode + 1, None
            continue
        asleep = sleeps and step % 4 == 1
        step, last = step + 1, doing
        dies = mortal and step == DIES_AT
        ends = step == length(env)
        t.valid[at], t.idle[at] = alive and not asleep, alive and asleep
        if alive:
            t.reward[at] = WEIGHT * (
                1
                + 0.25 * step
                + doing.get("press", 0.0)
                + 0.5 * doing["pick"]
                - doing.get("push", 0.0) ** 2
            )
        t.terminated[at] = alive and (dies or (ends and env % 2 == 0))
        t.truncated[at] = alive and ends and env % 2 == 1 and not dies
