"""Plays a game with random play, standing still and every bot, and notes what is earned, when, and
what is seen."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from ludus.doctor.before.earnings import Earnings, Play
from ludus.sim import Batch

ENVS = 32
KEPT_AT = (0.03, 0.2, 0.5)
"""Shares of the longest episode: situations from which actions are tried out later."""


@dataclass
class Seen:
    """Extremes of every observation entry, by role, over all that was played; and states from the
    middle of games."""

    low: dict[str, np.ndarray] = field(default_factory=dict)
    high: dict[str, np.ndarray] = field(default_factory=dict)
    finite: dict[str, np.ndarray] = field(default_factory=dict)
    states: list[dict[str, np.ndarray]] = field(default_factory=list)

    def look(self, batch: Batch) -> None:
        for seats in batch.layout.seats:
            rows = batch["observation"][:, seats.agents].reshape(-1, len(batch.layout.observation))
            finite = np.isfinite(rows)
            if not finite.all():
                rows = np.where(finite, rows, 0.0)
            low, high = rows.min(0), rows.max(0)
            role = seats.role
            self.low[role] = np.minimum(self.low.get(role, low), low)
            self.high[role] = np.maximum(self.high.get(role, high), high)
            self.finite[role] = self.finite.get(role, True) & finite.all(0)


def play_all(
    batch: Batch,
    role: str,
    gamma: float,
    seconds: float,
    seen: Seen,
    first_lengths: np.ndarray,
    gamma_option: str = "",
) -> Earnings:
    """Every player in the seats of `role`; the other roles, or the other team, act at random."""
    game, weights = batch.game, batch.settings.weights
    paid = {n: t for n, t in game.rewards.items() if weights[n] != 0 and t.concerns(role)}
    goal = [n for n, t in paid.items() if t.kind == "goal" and weights[n] > 0]
    other = [
        n
        for n, t in paid.items()
        if t.kind in ("progress", "shaping", "potential") and weights[n] > 0
    ]
    bots = [n for n in batch.controllers[role] if n not in ("random", "still")]
    players = ["random", "still", *bots]
    # bots against bots for their situations too: weapons matter where those who can fight meet each
    # other
    planned = [
        *((player, False) for player in players),
        *((bot, True) for bot in bots[:1]),
        ("random", True),
    ]
    begin, made = time.process_time(), list[Play]()
    # what one leaves of its time is for those after it
    for i, (player, pressed) in enumerate(planned):
        left = seconds - (time.process_time() - begin)
        made.append(_play(batch, role, player, goal, left / (len(planned) - i), seen, pressed))
    plays, contested = made[: len(players)], made[len(players) : -1]
    return Earnings(
        role=role,
        plays=tuple(p for p in plays if len(p.returns)),
        pressed=made[-1],
        contested=contested[0] if contested else None,
        gamma_option=gamma_option,
        unfinished=tuple(p.player for p in plays if not p.whole),
        goal_terms=tuple(goal),
        other_terms=tuple(other),
        max_steps=int(batch.settings.params["max_steps"]),
        gamma=gamma,
        lower_is_better=frozenset(
            n for n, g in game.goal_metrics.items() if not g.higher_is_better
        ),
        first_lengths=first_lengths,
    )


def _play(
    batch: Batch,
    role: str,
    player: str,
    goal: list[str],
    seconds: float,
    seen: Seen,
    pressed: bool = False,
) -> Play:
    """One episode of every env, as far as the time goes: processor time, so that what is found does
    not depend on other programs."""
    layout, weights = batch.layout, batch.settings.weights
    mine = _seat(batch, role, player, pressed)
    batch.reset()
    done = np.zeros(batch.num_envs, bool)
    first, last = np.full(batch.num_envs, np.inf), np.full(batch.num_envs, -np.inf)
    at = [layout.terms.index(n) for n in goal]
    each = np.array([weights[n] for n in layout.terms])
    takes = np.array(
        [batch.game.rewards[n].kind == "goal" and weights[n] < 0 for n in layout.terms]
    )
    punished: list[np.ndarray] = []
    earliest: dict[str, int] = {}
    totals, returns, lengths = (
        np.zeros((batch.num_envs, len(layout.terms))),
        np.zeros(batch.num_envs),
        np.zeros(batch.num_envs),
    )
    goals = np.zeros((batch.num_envs, len(layout.goals)))
    keep_at = [int(batch.settings.params["max_steps"] * share) for share in KEPT_AT]
    begin, step = time.process_time(), 0
    while not done.all() and time.process_time() - begin < seconds:
        batch.step()
        step += 1
        if step in keep_at:
            seen.states.append(batch.state(setup=False))
        if step % 4 == 1:
            seen.look(batch)
        playing = ~done
        terms = batch["terms"][:, mine] != 0  # [env, agent, term]
        for i in np.flatnonzero(terms[playing].any((0, 1))):
            earliest.setdefault(layout.terms[i], step)
        if at:
            earned = (terms[:, :, at].any((1, 2))) & playing
            first[earned] = np.minimum(first[earned], step)
            last[earned] = step
        if takes.any():
            added = batch["terms"][playing][:, mine] * each
            punished.append(added[(added[..., takes] < 0).any(-1)])
        over = batch["counted"] & playing
        if over.any():
            totals[over] = batch["term_totals"][over][:, mine].mean(1)
            returns[over] = batch["episode_return"][over][:, mine].mean(1)
            lengths[over] = batch["episode_length"][over][:, mine].mean(1)
            goals[over] = batch["goals"][over][:, mine].mean(1)
            done |= over
    none = np.zeros((0, len(layout.terms)))
    about = [n for n in layout.goals if batch.game.goal_metrics[n].concerns(role)]
    return Play(
        player=player if player in ("random", "still") else f"bot:{player}",
        returns=returns[done],
        goals={n: goals[done, layout.goals.index(n)] for n in about},
        terms={
            n: float(totals[done, i].mean() * weights[n])
            for i, n in enumerate(layout.terms)
            if done.any() and weights[n]
        },
        earliest={n: s for n, s in earliest.items() if weights[n]},
        first_goal=first[done & np.isfinite(first)],
        last_goal=last[done & np.isfinite(last)],
        lengths=lengths[done],
        whole=bool(done.all()),
        punished={
            n: values
            for n, values in zip(layout.terms, np.concatenate([none, *punished]).T, strict=True)
            if weights[n]
        },
    )


def _seat(batch: Batch, role: str, player: str, pressed: bool) -> slice:
    """Hands out the seats; returns those of the player. The others act at random, or `pressed` as
    the first bot of theirs."""
    for seats in batch.layout.seats:
        bots = [n for n in batch.controllers[seats.role] if n not in ("random", "still")]
        batch.set_controller(seats.role, bots[0] if pressed and bots else "random")
    seats = next(s for s in batch.layout.seats if s.role == role)
    batch.set_controller(role, player, team=0 if seats.teams > 1 else None)
    return slice(seats.start, seats.start + seats.count) if seats.teams > 1 else seats.agents
