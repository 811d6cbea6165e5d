"""What random play, standing still and each bot earn, and when: does the reward agree with the
goal, and can it be reached?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ludus.doctor.finding import Finding

SURE = 3.0
"""Standard errors of a difference between two players."""
LONG = 3.0
"""Times the time that bots take, at their slowest tenth: longer episodes only fill the buffer with
what teaches nothing. Recipes of ours give them at most twice that time."""
FAINT = 0.02
"""Share of the goal that the discount leaves at the start of an episode."""
MOSTLY = 0.5
OFTEN = 0.2
"""Share of the punished steps: now and then something good happens in the same step."""
FEWEST_PUNISHED = 5
FEWEST_TIMES = 5
"""Episodes in which a bot earned the goal."""


@dataclass(frozen=True)
class Play:
    """Whole episodes of one player in the seats of a role, the others at random."""

    player: str
    returns: np.ndarray
    """[episodes]"""
    goals: Mapping[str, np.ndarray]
    """Goal metric → [episodes]; the first is what the game is about."""
    terms: Mapping[str, float]
    """Reward term → what it added to an episode, mean."""
    earliest: Mapping[str, int] = field(default_factory=dict)
    """Reward term → first step at which anybody earned it."""
    first_goal: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """Step of the first goal reward, of the episodes that had one."""
    last_goal: np.ndarray = field(default_factory=lambda: np.zeros(0))
    lengths: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """[episodes]"""
    punished: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Reward term → what it added in each agent-step in which the goal took something: caught,
    crashed, lost."""

    whole: bool = True
    """All episodes that were begun came to their end in the time there was."""

    @property
    def is_idle(self) -> bool:
        return self.player in ("still", "random")


@dataclass(frozen=True)
class Earnings:
    """One role: its players, and what the recipe says about episodes."""

    role: str
    plays: tuple[Play, ...]
    goal_terms: tuple[str, ...]
    """Terms of positive weight that pay for the goal itself."""
    other_terms: tuple[str, ...]
    """Other terms that can pay something."""
    max_steps: int
    gamma: float
    lower_is_better: frozenset[str] = frozenset()
    pressed: Play | None = None
    """Random play where the others are bots: it meets what the goal punishes more often. For that
    alone."""
    contested: Play | None = None
    """A bot where the others are bots too: it takes longer than against random players."""
    gamma_option: str = ""
    """The full name of what sets gamma; empty: nobody knows."""
    unfinished: tuple[str, ...] = ()
    """Players for whom the time was too short to end all their episodes: who knows what they would
    have earned."""
    first_lengths: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """Lengths at which first episodes are cut to put envs out of step; empty: none are."""


def judge(*roles: Earnings) -> list[Finding]:
    """All roles of a game, or only those there is something to say about."""
    found = [finding for earned in roles for check in OF_A_ROLE for finding in check(earned)]
    return [
        *found,
        *(finding for check in OF_ALL_ROLES for finding in check(roles)),
        *map(summary, roles),
    ]


def summary(earned: Earnings) -> Finding:
    def told(play: Play) -> str:
        goals = "".join(
            f", {name} {values.mean():.3g}"
            for name, values in list(play.goals.items())[:1]
            if len(values)
        )
        parts = sorted(((abs(v), f"{n} {v:.3g}") for n, v in play.terms.items() if v), reverse=True)
        return f"{play.player} {play.returns.mean():.3g}{goals}" + (
            f" ({', '.join(t for _, t in parts[:4])})" if parts else ""
        )

    return Finding(
        check="what_is_earned",
        severity="info",
        cause=f"what players of {earned.role} earn before anybody has learnt, term by term",
        evidence="; ".join(
            [
                *map(told, earned.plays),
                *(
                    f"{name}: the time ran out before its episodes did"
                    for name in earned.unfinished
                ),
            ]
        ),
        fix="a trained policy must beat the best of them",
        confidence=1.0,
    )


def _sure(a: np.ndarray, b: np.ndarray) -> bool:
    """Is the mean of `a` surely above that of `b`?"""
    if len(a) < 2 or len(b) < 2:
        return False
    error = math.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b))
    difference = float(a.mean() - b.mean())
    return difference > SURE * error and difference > 0.01 * max(abs(a.mean()), abs(b.mean()))


def goal_out_earned(earned: Earnings) -> Iterator[Finding]:
    """A player that reaches the goal less earns more than one that reaches it.

    The reward pays for something else than the goal (watching, staying alive, standing still), so a
    learner that is any good at earning will do that instead.

    Lower what pays the idle player, or raise what the goal pays, until the order of earnings is the
    order of success.
    """
    for better in earned.plays:
        for worse in earned.plays:
            name = next(iter(better.goals), None)
            if better is worse or name is None:
                continue
            sign = -1.0 if name in earned.lower_is_better else 1.0
            if not (
                _sure(sign * better.goals[name], sign * worse.goals[name])
                and _sure(worse.returns, better.returns)
            ):
                continue
            most = max(
                worse.terms,
                key=lambda term: worse.terms[term] - better.terms.get(term, 0.0),
                default="",
            )
            yield Finding(
                check="goal_out_earned",
                severity="critical" if worse.is_idle else "warning",
                cause=f"'{worse.player}' earns {earned.role} more than '{better.player}', which is "
                "better at the goal" + (f": '{most}' pays for it" if most else ""),
                evidence=f"{better.player}: {name} {better.goals[name].mean():.3g}, return "
                f"{better.returns.mean():.4g}; "
                f"{worse.player}: {name} {worse.goals[name].mean():.3g}, return "
                f"{worse.returns.mean():.4g}"
                + (f", of which {most} {worse.terms[most]:.4g}" if most else ""),
                fix=f"lower the weight of '{most}', or raise what the goal pays"
                if most
                else "raise what the goal pays",
                confidence=0.9,
            )
            return  # one pair says it


def no_signal(earned: Earnings) -> Iterator[Finding]:
    """Random play earns exactly the same in every episode.

    All returns alike means all advantages zero: a policy that starts at random has nothing to learn
    from.

    Pay for progress, start nearer to the goal, or let the beginner meet easier opponents.
    """
    random = next((p for p in earned.plays if p.player == "random"), None)
    if (
        random is None
        or len(random.returns) < 8
        or float(np.ptp(random.returns)) > 1e-6 * max(1.0, abs(random.returns[0]))
    ):
        return
    yield Finding(
        check="no_signal",
        severity="warning",
        cause=f"random play earns {earned.role} the same in every episode: there is nothing to "
        "learn from at the start",
        evidence=f"{len(random.returns)} episodes earn exactly {random.returns[0]:.4g}",
        fix="pay for progress (a potential), start episodes nearer to the goal, or begin against "
        "easier opponents",
        confidence=0.7,
    )


def term_never_earned(earned: Earnings) -> Iterator[Finding]:
    """No player ever earned a reward term: not random play, not a bot. Told only where all of them
    ended their episodes.

    A condition that cannot come true, an episode too short for it, or bots that do not try for it.

    Play an episode by hand up to the point where it should be paid; remove it if it cannot be.
    """
    if earned.unfinished:
        return
    met = {term for play in earned.plays for term in play.earliest}
    for terms, severity, what in (
        (earned.goal_terms, "warning", "goal"),
        (earned.other_terms, "info", "reward"),
    ):
        missed = [t for t in terms if t not in met]
        if missed:
            yield Finding(
                check="term_never_earned",
                severity=severity,
                cause=f"nobody earned {earned.role} the {what} {', '.join(missed)}",
                evidence=f"{', '.join(p.player for p in earned.plays)} in "
                f"{sum(len(p.returns) for p in earned.plays)} episodes",
                fix="see whether its condition can come true within an episode, and whether a bot "
                "tries for it",
                confidence=0.5,
            )


def goal_beyond_the_discount(earned: Earnings) -> Iterator[Finding]:
    """When bots reach the goal, the discount has left next to nothing of it.

    What lies 1 / (1 - gamma) steps ahead counts a third, and each such stretch more again a third
    of that. Early steps then learn from what is near, whatever it is.

    Raise gamma so that its horizon reaches from the start to the goal, decide less often, or pay
    for progress.
    """
    times = np.concatenate([p.first_goal for p in earned.plays]) if earned.plays else np.zeros(0)
    scripted = np.concatenate(
        [p.first_goal for p in earned.plays if not p.is_idle] or [np.zeros(0)]
    )
    times = scripted if len(scripted) else times
    if not len(times) or earned.gamma >= 1:
        return
    usual = float(np.median(times))
    left = earned.gamma**usual
    paid_on_the_way = any(
        term in play.earliest for play in earned.plays for term in earned.other_terms
    )
    if left >= FAINT or paid_on_the_way:
        return
    option, enough = earned.gamma_option, f"{1 - 1 / max(usual, 2):.4g}"
    yield Finding(
        check="goal_beyond_the_discount",
        severity="warning",
        cause=f"at the start of an episode {earned.role} cannot see the goal: the discount leaves "
        f"{left:.2g} of it",
        evidence=f"the first goal comes after {usual:.0f} steps (median); gamma {earned.gamma:g} "
        f"looks {1 / (1 - earned.gamma):.0f} ahead; "
        f"nothing is paid on the way",
        fix=f"--{option} {enough}" if option else f"gamma at {enough}",
        confidence=0.6,
        overrides={option: enough} if option else {},
    )


def episodes_too_long(roles: Sequence[Earnings]) -> Iterator[Finding]:
    """Episodes are more than three times as long as the bots of the slowest role need for all they
    achieve, against random players and against each other. Silent where a role's bots do not reach
    its goal, or it has none: who knows what it needs.

    Most of what is gathered then comes from long after the last thing that mattered, or from agents
    that have lost their way.

    Shorten episodes to about twice what the slower bots need.
    """
    needed = {earned.role: time_needed(earned) for earned in roles}
    known = {role: steps for role, steps in needed.items() if steps is not None}
    slowest = max(known, key=known.__getitem__, default="")
    if len(known) < len(needed) or not known[slowest]:
        return
    slow, most = known[slowest], roles[0].max_steps
    if most <= LONG * slow:
        return
    others = (
        f", and no other role needs longer ({', '.join(r for r in known if r != slowest)})"
        if len(known) > 1
        else ""
    )
    yield Finding(
        check="episodes_too_long",
        severity="warning",
        cause=f"episodes are {most / slow:.1f} times as long as bots of {slowest} need{others}",
        evidence="nine of ten episodes in which a bot earned the goal had earned it all by step "
        f"{slow:.0f}; max_steps is {most}",
        fix=f"--game.max-steps {2 * math.ceil(slow)}",
        confidence=0.6,
        overrides={"game.max_steps": str(2 * math.ceil(slow))},
    )


def time_needed(earned: Earnings) -> float | None:
    """The step by which nine of ten bots' episodes have earned the goal for good. 0 where nothing
    is paid for a goal, or only when the time is up: such a role lasts as long as there is time.
    None: not known, as where its bots reach no goal, or the time for trying was over before they
    were."""
    if not earned.goal_terms:
        return 0.0
    plays = [*earned.plays, *([earned.contested] if earned.contested else [])]
    first = np.concatenate([p.first_goal for p in plays] or [np.zeros(0)])
    if len(first) and np.quantile(first, 0.1) >= earned.max_steps:
        return 0.0
    bots = [play for play in plays if not play.is_idle]
    if not all(play.whole for play in bots):
        return None
    last = np.concatenate([p.last_goal for p in bots] or [np.zeros(0)])
    return float(np.quantile(last, 0.9)) if len(last) >= FEWEST_TIMES else None


def first_episodes_cut(earned: Earnings) -> Iterator[Finding]:
    """First episodes are cut, to put envs out of step, before anything could be earned in most of
    them.

    The first rollouts then hold only failures, and normalisers and values start from a wrong
    picture.

    Keep first episodes longer (a game parameter stagger_least), or do not stagger.
    """
    steps = [
        s
        for play in earned.plays
        for term, s in play.earliest.items()
        if term in (*earned.goal_terms, *earned.other_terms)
    ]
    if not steps or not len(earned.first_lengths):
        return
    cut = float((earned.first_lengths < min(steps)).mean())
    if cut <= MOSTLY:
        return
    yield Finding(
        check="first_episodes_cut",
        severity="warning",
        cause=f"{cut:.0%} of the first episodes of {earned.role} end before anything can be earned",
        evidence=f"the earliest reward comes at step {min(steps)}; first episodes last "
        f"{int(np.median(earned.first_lengths))} steps (median)",
        fix="--train.stagger False, or give the game a parameter stagger_least",
        confidence=0.7,
        overrides={"train.stagger": "False"},
    )


def punishment_paid_back(earned: Earnings) -> Iterator[Finding]:
    """In the very step in which the goal punishes, another term pays more than the punishment
    takes.

    Who is in trouble then gains by losing at once. It happens where a potential falls back to zero
    at the end of an episode: what was taken for being in trouble is paid back to who did not get
    out of it.

    Leave the potential at its worst where the end is a loss, or make the punishment the larger of
    the two.
    """
    taken: dict[str, np.ndarray] = {}
    for play in (*earned.plays, *([earned.pressed] if earned.pressed else [])):
        for name, values in play.punished.items():
            taken[name] = np.concatenate([taken.get(name, np.zeros(0)), values])
    totals = np.sum(list(taken.values()), axis=0) if taken else np.zeros(0)
    paid = totals > 0
    if paid.sum() < FEWEST_PUNISHED or paid.mean() < OFTEN:
        return
    means = {name: float(values[paid].mean()) for name, values in taken.items()}
    most, least = max(means, key=lambda n: means[n]), min(means, key=lambda n: means[n])
    yield Finding(
        check="punishment_paid_back",
        severity="critical",
        cause=f"{earned.role} gains in the step in which it is punished: '{most}' pays more than "
        f"'{least}' takes",
        evidence=f"in {int(paid.sum())} of {len(totals)} such steps, on average {least} "
        f"{means[least]:.4g}, {most} {means[most]:.4g}, "
        f"together {float(totals[paid].mean()):.4g}",
        fix=f"do not pay '{most}' back where the end is a loss, or lower its weight below that of "
        f"'{least}'",
        confidence=0.85,
    )


OF_A_ROLE = (
    goal_out_earned,
    no_signal,
    term_never_earned,
    goal_beyond_the_discount,
    first_episodes_cut,
    punishment_paid_back,
)
OF_ALL_ROLES = (episodes_too_long,)
CHECKS = (*OF_A_ROLE, *OF_ALL_ROLES)
