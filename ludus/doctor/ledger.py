"""The arithmetic of a described reward: what succeeding earns, what can be earned without, and what
living costs.

All sums are over one episode of one agent and not discounted: that is what people have in mind when
they choose weights, and it does not hide a leak that starts late. Discounting has a check of its
own.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property

from ludus.doctor.rewards import Reward, Term

UNLIMITED_EVERY = 10
"""An event without any limit is taken to happen every tenth step, for goals and for others alike,
so that only values count."""
BACK_AND_FORTH = 2
"""Steps of a round that goes back and forth, where the file does not say: one there, one back."""
FELT = 0.01
"""A goal paid every step guides if random play gets some of it in at least one of a hundred
episodes."""
SLACK = 4
"""A sensible time limit is at most four times what the goal takes; so a goal that ends the episode
comes at a quarter of it."""


def clipped(reward: Reward) -> Reward:
    """The reward as the learner receives it."""
    limit = reward.episode.reward_clip
    if not limit:
        return reward
    cut = [
        dataclasses.replace(
            t, low=min(max(t.low, -limit), limit), high=min(max(t.high, -limit), limit)
        )
        for t in reward.terms
    ]
    return Reward(reward.episode, tuple(cut))


class Ledger:
    """Sums over a reward. A *side term* is one that pays without the goal."""

    def __init__(self, reward: Reward) -> None:
        self.reward = reward
        self.steps = reward.episode.max_steps

    # -- one term ----------------------------------------------------------------------------------

    def times(self, term: Term) -> float:
        """How often it can be earned in an episode."""
        limit = term.max_times or self.steps
        if term.kind == "terminal" or term.ends_episode:
            return 1
        if term.cycles and not term.potential_based:
            return min(
                limit, self.steps // max(term.cycle_steps or BACK_AND_FORTH, term.respawns_after, 1)
            )
        if term.kind in ("per_step", "shaping"):
            # the value is that of the whole way, from worst to best
            whole = term.potential_based and not term.max_times
            return (
                1
                if whole and not (term.goal and term.kind == "per_step")
                else min(limit, self.steps)
            )
        if term.respawns_after:
            return min(limit, 1 + (self.steps - 1) // term.respawns_after)
        if term.max_times is None:
            return 1
        return min(term.max_times, self.steps) or max(1, self.steps // UNLIMITED_EVERY)

    def most(self, term: Term) -> float:
        """The most it can add to an episode."""
        return max(term.high, 0.0) * self.times(term)

    def span(self, term: Term) -> float:
        """What earning it well is worth over earning it badly: a cost that can be brought to 0 is
        worth its size."""
        if self.is_cost_to_lower(term):
            return (term.high - term.low) * self.times(term)
        return (
            (max(term.high, 0.0) - min(term.low, 0.0)) * self.times(term) if term.high >= 0 else 0.0
        )

    def is_cost_to_lower(self, term: Term) -> bool:
        """A goal that everybody pays for, and less who does it well (the length of a tour): random
        play is said to lie between worst and best, and nobody gets out before it is paid."""
        if not (
            term.goal and term.varies and term.low < term.high < 0 and 0 < term.random_share < 1
        ):
            return False
        way_out = self.reward.episode.failure_probability > 0 or any(
            t.ends_episode for t in self.reward.terms if t is not term
        )
        at_the_end = (
            term.kind == "terminal" and term.reach_probability in (None, 1.0) and not way_out
        )
        return term.kind == "per_step" or at_the_end

    def show(self, term: Term) -> str:
        return f"{term.name} {term.high:g} x {self.times(term):g} = {self.most(term):g}"

    # -- the goal ----------------------------------------------------------------------------------

    @cached_property
    def goals(self) -> list[Term]:
        return [t for t in self.reward.terms if t.goal]

    @cached_property
    def goal_is_dense(self) -> bool:
        """Most of the goal's pay comes step by step, so that doing a little better pays at once."""
        dense = sum(self.span(t) for t in self.goals if t.kind in ("per_step", "shaping"))
        return dense > 0 and dense >= 0.5 * sum(self.span(t) for t in self.goals)

    @cached_property
    def goal_ends(self) -> bool:
        return any(t.ends_episode or t.kind == "terminal" for t in self.goals)

    @cached_property
    def time_to_goal(self) -> float:
        """Steps lived through by an agent that succeeds."""
        return (
            max(1.0, self.steps / SLACK)
            if self.goal_ends and not self.goal_is_dense
            else self.steps
        )

    @cached_property
    def success(self) -> float:
        """What succeeding earns over not even trying: the goal's own pay and the costs of time it
        saves."""
        saved = self.time_cost * (self.steps - self.time_to_goal)
        return sum(self.span(t) for t in self.goals) + saved

    @cached_property
    def success_text(self) -> str:
        parts = [
            self.show(t) if t.low >= 0 else f"{t.name} {t.low:g} to {t.high:g} x {self.times(t):g}"
            for t in self.goals
        ]
        if self.time_cost and self.steps > self.time_to_goal:
            parts.append(f"time saved {self.time_cost:g} x {self.steps - self.time_to_goal:g}")
        return (
            f"succeeding is worth {self.success:g} "
            f"({' + '.join(parts) or 'nothing is marked as the goal'})"
        )

    # -- without the goal --------------------------------------------------------------------------

    def needs(self, term: Term) -> list[Term]:
        """Terms that must be earned before this one, the nearest first; a loop ends where it
        closes."""
        chain: list[Term] = []
        while term.requires and all(t.name != term.requires for t in chain):
            term = self.reward.term(term.requires)
            chain.append(term)
        return chain

    @cached_property
    def stepping_stones(self) -> list[Term]:
        """Events on the way to the goal that cannot be had more often than the goal itself."""
        return [
            t
            for t in self.reward.terms
            if not t.goal
            and t.kind == "event"
            and not t.cycles
            and any(t in self.needs(g) and self.times(t) <= self.times(g) for g in self.goals)
        ]

    @cached_property
    def side(self) -> list[Term]:
        """Terms that pay without the goal, largest first. Left out: shaping that telescopes,
        stepping stones, and a steady bonus that success collects too."""
        return sorted(
            (
                t
                for t in self.reward.terms
                if not t.goal
                and t.high > 0
                and not t.potential_based
                and t not in self.stepping_stones
                and not any(n.goal for n in self.needs(t))
                and not (self.shares_steady and t in self.steady)
            ),
            key=self.most,
            reverse=True,
        )

    @cached_property
    def shares_steady(self) -> bool:
        """Does success collect what is paid for being there? Beside a goal paid every step it does;
        beside goals that do not end the episode too, where staying in it is a skill."""
        return self.goal_is_dense or (
            not self.goal_ends and self.reward.episode.failure_probability > 0
        )

    @cached_property
    def steady(self) -> list[Term]:
        """Paid every step for being there."""
        return [
            t
            for t in self.reward.terms
            if not t.goal and t.kind == "per_step" and t.low == t.high > 0 and not t.cycles
        ]

    @cached_property
    def side_income(self) -> float:
        return sum(self.most(t) for t in self.side)

    @cached_property
    def failure_penalty(self) -> float:
        """Paid by whoever has not succeeded when the time is over."""
        return -sum(
            t.high
            for t in self.reward.terms
            if not t.goal and t.kind == "terminal" and not t.ends_episode and t.high < 0
        )

    # -- living ------------------------------------------------------------------------------------

    @cached_property
    def time_costs(self) -> list[Term]:
        """Paid every step whatever the agent does."""
        return [t for t in self.reward.terms if not t.goal and t.kind == "per_step" and t.high < 0]

    @cached_property
    def time_cost(self) -> float:
        return -sum(t.high for t in self.time_costs)

    @cached_property
    def steady_income(self) -> float:
        return sum(t.high for t in self.steady)

    @cached_property
    def idle_steps(self) -> float:
        """Steps until an agent that knows nothing has failed, on average."""
        p = self.reward.episode.failure_probability
        return (1 - (1 - p) ** self.steps) / p if p else self.steps

    # -- signal ------------------------------------------------------------------------------------

    @cached_property
    def guided(self) -> bool:
        """Something tells better from worse before the goal is met: the goal itself step by step,
        or shaping."""
        felt = self.goal_is_dense and any(
            self.chance(g) >= FELT for g in self.goals if g.kind in ("per_step", "shaping")
        )
        return felt or any(
            not t.goal
            and (t.low != 0 or t.high != 0)
            and (t.kind == "shaping" or (t.kind == "per_step" and t.varies and t.high > 0))
            for t in self.reward.terms
        )

    def chance(self, term: Term) -> float:
        """That random play meets it in an episode. A chance at or above that of what the term
        requires cannot be its share of all episodes: it is read as the share of those in which the
        requirement was met."""
        stated = [
            t.reach_probability
            for t in [term, *self.needs(term)]
            if t.reach_probability is not None
        ]
        chance = 1.0
        for p in reversed(stated):
            chance = p if p < chance else p * chance
        if not stated and term.kind == "terminal" and not term.ends_episode:
            # it has to live to see it
            chance = (1 - self.reward.episode.failure_probability) ** self.steps
        return max(chance, term.random_share)
