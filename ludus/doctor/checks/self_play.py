"""Do agents that train against each other get better, or only used to each other?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ludus.doctor.checks import check
from ludus.doctor.finding import Finding
from ludus.doctor.log import Curve, Log
from ludus.doctor.options import full_key
from ludus.doctor.progress import Fall, progress, sure_fall
from ludus.doctor.statistics import tail
from ludus.intervals import is_plain

FEWEST_EVALUATIONS = 5
HALF = 0.5
FULL = 0.95
ONE_SIDED = 0.93
"""Share of the games: a side that loses nine in ten learns little, and the other nothing new."""


def _bot_evaluations(log: Log) -> list[Curve]:
    """Goal metrics that should rise, against scripted opponents, which stay the same while everyone
    else changes."""
    out = []
    for curve in log.starting("eval/bot"):
        other = not is_plain(curve.name) or curve.name.endswith(("length", "return"))
        if not other and curve.name.rsplit("/", 1)[-1] not in log.better_low and len(curve) >= 3:
            out.append(curve)
    return out


@check(family="self_play", figure="eval/bot:NAME/GOAL")
def forgetting(log: Log) -> Iterator[Finding]:
    """Against a scripted opponent that never changes, play has become worse than it once was,
    beyond both intervals and beyond what luck does in so many evaluations; and it earns less
    against that opponent. A measure that falls while the return does not was given up for a better
    one: mechs that hide survive and lose. What the first evaluation shows may have been there
    untrained (a hider that strays about is rarely caught by a seeker that stands still): of that,
    half has to be gone. While training plays other game values than evaluations do, nothing is
    said.

    Training only against the newest version of itself, a policy adapts to that one and unlearns
    what beat others.

    Keep old snapshots as opponents for a share of the games (a fifth is usual), and bots for
    another.
    """
    curves = _bot_evaluations(log) if log.evaluated_as_trained() else []
    found = [fall for c in curves if (fall := sure_fall(log, c, len(curves)))]
    falls = [
        f
        for f in found
        if (f.best > 0 or f.sure > HALF) and _earns_less(log, f) and not _still_wins(log, f.curve)
    ]
    if not falls:
        return
    worst = max(falls, key=lambda fall: fall.sure)
    curve, others = worst.curve, ", ".join(fall.curve.name for fall in falls if fall is not worst)
    yield Finding(
        check="forgetting",
        severity="critical" if worst.sure > HALF else "warning",
        cause=f"play against {curve.name.split('/')[1]} was better before: earlier skill is being "
        "lost",
        evidence=f"{curve.name} {curve.values[worst.best]:.3g} at step {worst.step:,}, now "
        f"{curve.values[-1]:.3g}, beyond both "
        f"intervals{f'; so fell {others}' if others else ''}",
        confidence=0.7,
        fix="keep old snapshots and bots as opponents for a share of the games; go on from the "
        "best checkpoint",
        first_step=worst.step,
        last_step=curve.last_step,
    )


def _earns_less(log: Log, fall: Fall) -> bool:
    """Is the return against the same opponent below what it was then, beyond both intervals? Yes
    where nobody says."""
    *opponent, metric = fall.curve.name.split("/")
    roles = (
        [role for role in log.roles() if log.get(f"goal/{role}/{metric}") is not None]
        if len(opponent) == 2
        else []
    )
    for name in (
        "/".join([*opponent, "return"]),
        *("/".join([*opponent, role, "return"]) for role in roles),
    ):
        low, high = log.get(f"{name}_low"), log.get(f"{name}_high")
        if low is not None and high is not None and fall.step in low.steps:
            return float(high.values[-1]) < float(low.values[low.steps == fall.step][-1])
    return True


def _still_wins(log: Log, curve: Curve) -> bool:
    """Who wins nearly every game against an opponent has forgotten nothing that matters, by
    whatever margin it wins."""
    wins = log.get(f"{curve.name.rsplit('/', 1)[0]}/win_rate")
    return wins is not None and float(wins.values[-1]) >= FULL


@check(family="self_play", figure="eval/bot:NAME/GOAL")
def only_beats_itself(log: Log) -> Iterator[Finding]:
    """Training looks better and better, while against scripted opponents nothing improves. Rows
    from before a game value last changed, and from before every env had an episode, do not count:
    what rises there may be the game's doing.

    Both sides drift into a corner of the game where they know each other's habits and nothing else.

    Add bots and old snapshots to the opponents; look at games against the bot that wins.
    """
    curves = [c for c in _bot_evaluations(log) if len(c) >= FEWEST_EVALUATIONS]
    if not curves or any(_improved(log, c) or float(c.values[-1]) > FULL for c in curves):
        return
    goals = (
        [c for role in log.roles() for c in log.starting(f"goal/{role}/")]
        if log.evaluated_as_trained()
        else []
    )
    rising = [c for c in goals if progress(log.after_first_episodes(log.in_this_game(c))).learned]
    if rising:
        yield Finding(
            check="only_beats_itself",
            severity="warning",
            cause="training improves against itself and not against scripted opponents",
            evidence=f"{rising[0].name} rises to {rising[0].values[-1]:.3g}; {curves[0].name} "
            f"stays at {curves[0].values[-1]:.3g}",
            confidence=0.55,
            fix="add bots and old snapshots to the opponents",
            first_step=curves[0].first_step,
            last_step=curves[0].last_step,
        )


def _improved(log: Log, curve: Curve) -> bool:
    """The last interval lies above the first; without intervals: the last value does."""
    low, high = log.get(f"{curve.name}_low"), log.get(f"{curve.name}_high")
    if low is None or high is None:
        return float(curve.values[-1]) > float(curve.values[0])
    return float(low.values[-1]) > float(high.values[0])


@check(family="self_play", figure="episode/ROLE/won")
def one_sided(log: Log) -> Iterator[Finding]:
    """One role wins nearly every game, in nearly all rows of the last half, or in most rows of the
    whole run. While the game's values still change, or differ from those that evaluations play,
    nothing is said: an easier game has an easy winner.

    One side learnt faster, and the other now loses whatever it does: no difference between its
    actions, no gradient. Then the winner learns nothing new either.

    Slow the winner down or stop it for a while, give the loser easier opponents, or change the
    game's balance.
    """
    for role in log.roles():
        found = log.get(f"episode/{role}/won")
        if found is None or len(log.roles()) < 2 or not log.evaluated_as_trained():
            continue
        curve = log.after_first_episodes(log.in_this_game(found))
        if len(curve) < 12:
            continue
        rows = (
            "of the run"
            if len(log.in_this_game(found)) == len(found)
            else "since the game last changed"
        )
        # a row of few episodes may well fall below
        late = float(np.quantile(curve.values[len(curve) // 2 :], 0.1))
        usual, now = float(np.median(curve.values)), float(np.median(tail(curve.values, 0.1)))
        if max(late, usual) <= ONE_SIDED:
            continue
        yield Finding(
            check="one_sided",
            severity="warning",
            cause=f"{role} wins nearly every game: the other side has nothing to learn from",
            evidence=f"share won at least {late:.2f} in nine of ten rows of the last half"
            if late > ONE_SIDED
            else f"share won at least {usual:.2f} in every second row {rows}, {now:.2f} at its end",
            confidence=0.5,
            fix=_weaken(log, role),
            first_step=int(curve.steps[len(curve) // 2 if late > ONE_SIDED else 0]),
            last_step=curve.last_step,
        )


def _weaken(log: Log, role: str) -> str:
    """Settings of a single role are in the config only where some role has them."""
    rate = full_key(log.config, f"roles.{role}.learning_rate")
    roles = rate.removesuffix(f"{role}.learning_rate")
    known = any(name.startswith(roles) for name in log.config)
    slower = f"a tenth of the learning rate for {role} alone" + (f" ({rate})" if known else "")
    return f"weaker opponents for the other side, or {slower}"
