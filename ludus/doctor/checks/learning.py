"""Does the return rise, and does it stay?"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ludus.doctor.checks import Early, check
from ludus.doctor.finding import Finding
from ludus.doctor.log import Curve, Log
from ludus.doctor.names import LEARNERS
from ludus.doctor.options import equal, in_brackets, lacks, named, overrides
from ludus.doctor.progress import (
    Progress,
    competitive,
    long_enough_at,
    of_role,
    progress,
    still_first_episodes,
    sure_fall,
)
from ludus.doctor.statistics import head, noise, tail, windows

FEWEST_EVALUATIONS = 3
ENOUGH_ROWS = 30
"""A shorter log may simply not have got there yet."""
NOTICEABLE = 0.5
"""Only if a rise by half would have shown is its absence sure."""
GONE = 0.8
HALF = 0.5
"""Share of what was gained that is lost again."""
LATE = 0.3
"""Share of the run, counted from its end, over which evaluation and training are compared."""
APART = 4.0
"""Standard errors between them: there are many things in which an evaluation differs a little."""
LESS_RANDOM = 0.1
"""Share of actions: exploration that falls by less changes nothing, and within this of its end it
has ended."""
STILL_EXPLORING = 0.5
"""Share of rows: with more of them, the log says more about exploration than about what was
learnt."""
ROUNDS = 4
"""Episodes of every env: of the first ones those that end early are counted first, and they go
otherwise than the rest."""
SWINGS = 4
"""Falls by half of the range, each made good again: fewer happen to healthy runs."""


@check(family="learning", figure="episode/ROLE/return")
def return_falls(log: Log) -> Iterator[Finding]:
    """The return was clearly better before and has lost at least half of what it had gained.

    An update too large for the policy (learning rate, clip, too many epochs on one batch) throws it
    out of the region where its data came from; values that diverge do the same more slowly. In
    self-play opponents improve too: there a falling return means little, and this check does not
    look at it.

    Go back to the best checkpoint and continue with a third of the learning rate; set a KL limit
    (target_kl 0.02).
    """
    for role in log.roles():
        judged, curve = of_role(log, role), log.of(role, "return")
        if curve is None or not (judged.whole and judged.learned) or judged.lost < HALF:
            continue
        yield Finding(
            check="return_falls",
            severity="critical" if judged.lost >= GONE else "warning",
            cause=f"the return of {role} has fallen from its own best: what was learnt is being "
            "lost",
            evidence=f"start {judged.start:.4g}, best {judged.best:.4g} from step "
            f"{judged.best_step:,}, end {judged.end:.4g}: "
            f"{judged.lost:.0%} of the gain is gone",
            confidence=0.75,
            fix="go back to the best checkpoint with a third of the learning rate"
            + _smaller_changes(log),
            overrides=overrides(
                log, {"learning_rate": "*0.3"} | ({} if log.by_values else {"target_kl": "0.02"})
            ),
            first_step=judged.best_step,
            last_step=curve.last_step,
        )


def _smaller_changes(log: Log) -> str:
    """What keeps an update from changing much, if the learner has that."""
    if log.by_values:
        return f", or move the target network more slowly{in_brackets(log, 'target_every')}"
    return "" if lacks(log, "target_kl") else f", or set {equal(log, 'target_kl', '0.02')}"


@check(
    family="learning", figure="episode/ROLE/return", early=Early(critical_from=0.5, noted_until=0.2)
)
def return_flat(log: Log) -> Iterator[Finding]:
    """The mean return at its best is no better than at the start, by more than the curve's own
    noise.

    Learning needs a signal that random play meets, a policy that moves, and values that keep up.
    One of them is missing:
    rewards that are never met, a learning rate that is far too small or too large, an entropy bonus
    that outweighs the reward, a discount that forgets the reward, observations that say nothing.

    Look at the other findings first: they name the missing part. If there is none, audit the reward
    (`ludus doctor check`), then try the learning rate ten times larger and ten times smaller, then
    gamma closer to 1. Where much of the log is from before every env had finished an episode it is
    only a note: those that end first are the short ones, and earn otherwise than the rest.
    """
    for role in log.roles():
        judged, curve = of_role(log, role), log.of(role, "return")
        if (
            curve is not None
            and still_first_episodes(log, role)
            and not competitive(log)
            and progress(curve).flat
        ):
            yield _too_soon(log, role, curve)
        if curve is None or not judged.flat:
            continue
        long_enough = len(curve) >= ENOUGH_ROWS and (
            judged.worse or judged.noticeable <= NOTICEABLE * abs(judged.start)
        )
        exploring = _exploring(log, role, curve)
        long_enough = long_enough and exploring < STILL_EXPLORING
        rose = _rose(judged)
        if judged.worse and exploring > 0:
            cause = (
                f"the {judged.measure} of {role} is below that of the random actions it began with"
            )
        elif rose:
            back = "back" if judged.best - judged.end > HALF * judged.gain else "now"
            cause = (
                f"the {judged.measure} of {role} rose to {judged.best:.4g} at most and is "
                f"{back} at {judged.end:.4g}"
            )
        elif judged.worse:
            cause = (
                f"the {judged.measure} of {role} is worse than at the start: what the updates "
                "do is harmful"
            )
        else:
            cause = (
                f"the {judged.measure} of {role} has not improved since the start: nothing is "
                "being learnt"
            )
        yield Finding(
            check="return_flat",
            severity="critical" if long_enough else "warning",
            cause=cause,
            evidence=f"first tenth {judged.start:.4g}, best tenth {judged.best:.4g}, last "
            f"{judged.end:.4g}; a lasting rise by "
            f"{judged.noticeable:.3g} would have been told from noise ({len(curve)} rows)",
            confidence=0.7 if long_enough else 0.4,
            fix=_mend(log, role, judged.worse, rose, exploring),
            first_step=curve.first_step,
            last_step=curve.last_step,
        )


def _too_soon(log: Log, role: str, curve: Curve) -> Finding:
    step = long_enough_at(log, curve)
    until = (
        f"{step:,.0f} agent-steps are made"
        if math.isfinite(step)
        else "envs have finished several episodes each"
    )
    return Finding(
        check="return_flat",
        severity="info",
        cause=f"the return of {role} has not improved, but it is too soon to tell: the episodes "
        "that end first are the short ones",
        evidence=f"envs have finished {_rounds(log, curve.last_step):.1f} episodes each "
        f"({len(curve)} rows)",
        confidence=0.3,
        fix=f"train on until {until}, or use fewer envs",
        first_step=curve.first_step,
        last_step=curve.last_step,
    )


def _rose(judged: Progress) -> bool:
    """Is the best tenth clearly above the first, though what came after it makes that no sure
    rise?"""
    return judged.gain > judged.noticeable and not judged.little


def _exploring(log: Log, role: str, curve: Curve) -> float:
    """Share of a curve's rows that were written while random actions became fewer. Values that were
    learnt from little often play worse than chance at first, so that the return falls with the
    share of random actions."""
    epsilon = log.of(role, "epsilon")
    if epsilon is None or float(np.ptp(epsilon.values)) < LESS_RANDOM:
        return 0.0
    settled = epsilon.steps[epsilon.values <= epsilon.values[-1] + LESS_RANDOM]
    return float((curve.steps < settled[0]).mean()) if len(settled) else 1.0


def _mend(log: Log, role: str, worse: bool, rose: bool, exploring: float) -> str:
    if all(log.of(role, key) is None for key in LEARNERS):
        return (
            "the log has no loss of any kind: see whether updates are made at all (a warm-up "
            "longer than the run?)"
        )
    if worse and exploring > 0:
        return (
            "give it several times the steps that exploration took; if it stays so, look for a "
            "wrong sign, or lower the learning rate"
        )
    if rose:
        return (
            "see the other findings for what ended it; without one: go on from the best "
            "checkpoint, with a lower learning rate"
        )
    if worse:
        return (
            "look for a wrong sign: of the reward, the advantage, the loss, or a cost that is "
            "maximised"
        )
    return (
        "see the other findings for the cause; without one: audit the reward, then try the "
        "learning rate 10x larger and smaller"
    )


@check(family="learning", figure="episode/ROLE/return")
def return_swings(log: Log) -> Iterator[Finding]:
    """The return falls by more than half of its range and recovers, again and again, since the game
    last changed.

    Updates that are too large for the batch they are made from: each one breaks what the last one
    built. A mix of opponents of different strength looks the same from afar, but there each
    opponent's own curve is steady.

    Lower the learning rate or the clip, enlarge the batch, or log the return per opponent.
    """
    for role in log.roles():
        found = log.of(role, "return")
        curve = log.in_this_game(found) if found is not None else None
        if curve is None or len(curve) < ENOUGH_ROWS or not of_role(log, role).whole:
            continue
        smooth = np.array([part.mean() for part in windows(curve.values, 60)])
        span = float(np.ptp(smooth))
        if span <= 0 or of_role(log, role).flat:
            continue
        falls = _falls(smooth, HALF * span)
        if falls >= SWINGS:
            yield Finding(
                check="return_swings",
                severity="warning",
                cause=f"the return of {role} swings up and down instead of settling",
                evidence=f"{falls} falls of more than {HALF:.0%} of its range ({smooth.min():.4g} "
                f"to {smooth.max():.4g})",
                confidence=0.55,
                fix=f"lower {named(log, 'learning_rate')} to a third, or collect twice as much per "
                f"update{_amount(log)}",
                overrides=overrides(log, {"learning_rate": "*0.3"}),
                first_step=curve.first_step,
                last_step=curve.last_step,
            )


def _amount(log: Log) -> str:
    """What sets how much is collected for an update."""
    ratio, rollout = log.option("replay_ratio"), log.option("rollout")
    if log.by_values and ratio:
        return f" (half of {ratio})"
    return f" ({rollout}, envs)" if rollout else ""


def _falls(values: np.ndarray, size: float) -> int:
    """How often a curve falls by `size` from a high before it rises by `size` from a low again."""
    count, high, low, falling = 0, values[0], values[0], False
    for value in values:
        high, low = max(high, value), min(low, value)
        if not falling and high - value >= size:
            count, falling, low = count + 1, True, value
        elif falling and value - low >= size:
            falling, high = False, value
    return count


@check(family="learning", figure="eval/self/GOAL")
def evaluation_falls(log: Log) -> Iterator[Finding]:
    """The measure by which the best checkpoint is chosen was surely higher before, where nobody
    else plays.

    The return of training may hide this: it comes from actions with noise, on levels that were
    trained on. Values that still move (a learning rate that does not fall, targets copied too
    often, a rare reward that comes to weigh too much) change what is greedy from one evaluation to
    the next. While training plays other game values than evaluations do, nothing is said.

    Take the best checkpoint. For the next run let the learning rate fall to a tenth, or average the
    weights.
    """
    name = str(log.config.get("checkpoint.best_metric") or "")
    curve = log.get(name)
    if (
        curve is None
        or len(curve) < FEWEST_EVALUATIONS
        or not name.startswith("eval/self/")
        or name.rsplit("/", 1)[-1] in log.better_low
        or log.self_play
        or len(log.roles()) > 1
    ):
        return
    fall = sure_fall(log, curve, 1)
    if fall is None or not log.evaluated_as_trained():
        return
    yield Finding(
        check="evaluation_falls",
        severity="warning",
        cause=f"evaluations were better before: '{name.removeprefix('eval/')}' has fallen",
        evidence=f"{curve.values[fall.best]:.3g} at step {fall.step:,}, now "
        f"{curve.values[-1]:.3g}, beyond both intervals",
        confidence=0.7,
        fix="take the best checkpoint (RUN@best); for the next run let the learning rate fall to a "
        "tenth, or average the weights",
        first_step=fall.step,
        last_step=curve.last_step,
    )


@check(family="learning", figure="league/bot:NAME/win_rate")
def learned_by_heart(log: Log) -> Iterator[Finding]:
    """Against the same scripted opponent, play is worse in evaluation than in training, beyond both
    intervals. Told only when envs have finished four episodes each: of the first ones those that
    end early are counted first. As many have to follow the last change of a game value, and
    training must play the same values as evaluation.

    Evaluation takes place on maps, tracks or levels that training never sees. Where there are few
    of those to train on, it is cheaper to learn them by heart than to learn the game.

    Train on many more of them, or on a fresh one every episode; a little more entropy and a smaller
    policy help too.
    """
    for trained in (
        c for c in log.starting("league/") if "bot:" in c.name and c.name.endswith("/win_rate")
    ):
        *role, opponent, metric = trained.name.split("/")[1:]
        name = "/".join(["eval", opponent, *role, metric])
        held_out, low, high = log.get(name), log.get(f"{trained.name}_low"), log.get(f"{name}_high")
        if held_out is None or low is None or high is None or not log.evaluated_as_trained():
            continue
        step = int(held_out.steps[-1])
        here = int(np.searchsorted(low.steps, step, side="right")) - 1
        changed = max((value.since for value in log.game_values()), default=-1.0)
        rounds = _rounds(log, step) - (_rounds(log, int(changed)) if changed >= 0 else 0.0)
        if here < 0 or float(high.values[-1]) >= float(low.values[here]) or rounds < ROUNDS:
            continue
        yield Finding(
            check="learned_by_heart",
            severity="warning",
            cause=f"play against {opponent} is worse where nothing was trained on: the training "
            "levels are known by heart",
            evidence=f"{trained.name} at least {low.values[here]:.2f}, {held_out.name} at most "
            f"{high.values[-1]:.2f} at step {step:,}",
            confidence=0.6,
            fix="train on many more maps, terrains or tracks (`ludus games GAME` lists what sets "
            "their number)",
            first_step=step,
            last_step=step,
        )


def _rounds(log: Log, step: int) -> float:
    """Episodes that an env has finished by then, on average; without end where the log does not
    tell."""
    episodes, envs = log.get("progress/episodes"), log.config.get("envs")
    if episodes is None or not envs:
        return math.inf
    here = int(np.searchsorted(episodes.steps, step, side="right")) - 1
    return float(episodes.values[here]) / envs if here >= 0 else 0.0


@check(family="learning", figure="eval/self/ROLE/return")
def evaluation_below_training(log: Log) -> Iterator[Finding]:
    """What training has gained does not show in evaluation: over the end of the run evaluations lie
    below training by half of the gain or more, and have not risen by half of it themselves. For
    logs of other libraries: runs of ours are told by learned_by_heart and evaluation_falls.

    The env of the evaluation is not the one of training (another wrapper, observations normalised
    with other statistics or not at all, other levels), or the policy does well only with the noise
    of its actions.

    Compare the wrappers of both envs and the statistics they normalise with; evaluate once with
    sampled actions; then evaluate on the levels of training.
    """
    trained, evaluated = log.get("episode/agent/return"), log.get("eval/self/agent/return")
    if log.ours or trained is None or evaluated is None or competitive(log):
        return
    judged, late = progress(trained), evaluated.steps >= (1 - LATE) * trained.last_step
    if not (judged.whole and judged.learned) or min(late.sum(), (~late).sum()) < FEWEST_EVALUATIONS:
        return
    here, there = tail(trained.values, LATE), evaluated.values[late]
    gap, risen = (
        float(here.mean() - there.mean()),
        float(there.mean() - head(evaluated.values).mean()),
    )
    error = float(np.hypot(noise(here).error(len(here)), there.std(ddof=1) / np.sqrt(len(there))))
    if gap < max(HALF * judged.gain, APART * error) or risen >= HALF * judged.gain:
        return
    yield Finding(
        check="evaluation_below_training",
        severity="warning",
        cause="evaluation does not show what training has gained",
        evidence=f"over the last {LATE:.0%} training earns {here.mean():.4g} and {len(there)} "
        f"evaluations {there.mean():.4g}; "
        f"training has gained {judged.gain:.4g}, evaluation {risen:.4g}",
        confidence=0.65,
        fix="compare the wrappers and the normalisation of both envs, then sampled with most "
        "likely actions, then the levels",
        first_step=int(evaluated.steps[late][0]),
        last_step=evaluated.last_step,
    )
