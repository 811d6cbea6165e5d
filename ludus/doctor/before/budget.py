"""Will there be enough updates, exploration and memory? Arithmetic before the first step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ludus.doctor.finding import Finding

FEW = 20
"""Iterations. Schedules, normalisers and averages need more than a handful."""
FEW_EPISODES = 3.0
MUCH = 0.5
NEARLY_ALL = 0.9
LATE_WARM_UP = 0.2
HALF_A_ROLLOUT = 0.5
EXPLORED_OUT = 0.1
STILL_EXPLORING = 0.5
"""Random actions at nine tenths of the run: nothing is left of the budget to play well in."""


@dataclass(frozen=True)
class Budget:
    """What a config comes to on this machine. None: not known, as where the budget is in
    seconds."""

    refused: str = ""
    """Why training would not even start."""
    section: str = ""
    """The section of the algorithm's settings; empty: fixes name none of them."""
    iterations: float | None = None
    updates: float | None = None
    episodes_per_env: float | None = None
    buffer_bytes: float = 0.0
    free_bytes: float | None = None
    threads: int | None = None
    cores: int = 1
    epsilon: Mapping[float, float] = field(default_factory=dict)
    """Share of the run → share of random actions."""
    noisy: bool = False
    warm_up_share: float | None = None
    checkpoints: float | None = None
    """Checkpoints in the whole run."""
    iterations_per_checkpoint: float | None = None


def judge(budget: Budget) -> list[Finding]:
    return [f for check in CHECKS for f in check(budget)]


def refused(budget: Budget) -> Iterator[Finding]:
    """Training would be refused before the first step.

    Numbers that do not fit each other (a rollout longer than the budget makes no update at all, a
    batch that does not divide into its minibatches), or something that is not there, such as a GPU.

    The message says which number to change.
    """
    if budget.refused:
        yield Finding(
            check="refused",
            severity="critical",
            cause="training would not start",
            evidence=budget.refused,
            fix=budget.refused.rpartition(": ")[2],
            confidence=1.0,
        )


def few_updates(budget: Budget) -> Iterator[Finding]:
    """The budget allows only a handful of iterations.

    Each iteration gathers so much that the policy is improved only a few times; schedules then go
    in large jumps.

    Fewer envs or a shorter rollout, or a larger budget.
    """
    if budget.iterations is not None and budget.iterations < FEW:
        updates = f" and about {budget.updates:,.0f} updates" if budget.updates is not None else ""
        yield Finding(
            check="few_updates",
            severity="warning",
            cause=f"there will be only about {budget.iterations:.0f} iterations",
            evidence=f"{budget.iterations:.1f} rollouts fit in the budget{updates}; {FEW} is "
            "little",
            fix="fewer envs, a shorter rollout, or a larger budget (train.total_agent_steps, "
            "train.total_seconds)",
            confidence=0.7,
        )


def few_episodes(budget: Budget) -> Iterator[Finding]:
    """Every env plays only an episode or two in the whole run.

    What comes late in an episode is then hardly ever seen, and first episodes that are cut to put
    envs out of step are most of what there is.

    Fewer envs, or a larger budget.
    """
    if budget.episodes_per_env is not None and budget.episodes_per_env < FEW_EPISODES:
        yield Finding(
            check="few_episodes",
            severity="warning",
            cause=f"each env will play only {budget.episodes_per_env:.1f} episodes of full length",
            evidence=f"fewer than {FEW_EPISODES:g} in the whole budget",
            fix="fewer envs, shorter episodes, or a larger budget",
            confidence=0.5,
        )


def memory_short(budget: Budget) -> Iterator[Finding]:
    """Rollout or replay take most of the memory that is free.

    They grow with envs, rollout and observation; pictures are the usual cause. A run that swaps is
    a hundred times slower; one that runs out is killed without a word.

    Fewer envs, a shorter rollout, a smaller replay.
    """
    if budget.free_bytes and budget.buffer_bytes > MUCH * budget.free_bytes:
        share = budget.buffer_bytes / budget.free_bytes
        yield Finding(
            check="memory_short",
            severity="critical" if share > NEARLY_ALL else "warning",
            cause=f"buffers take {share:.0%} of the memory that is free",
            evidence=f"{budget.buffer_bytes / 1e9:.2f} GB of {budget.free_bytes / 1e9:.2f} GB",
            fix="fewer envs, a shorter rollout or a smaller replay",
            confidence=0.8,
        )


def too_many_threads(budget: Budget) -> Iterator[Finding]:
    """More threads than cores are asked for.

    They wait for each other at every barrier and run slower than fewer would.

    Leave train.threads out: the number is measured.
    """
    if budget.threads is not None and budget.threads > budget.cores:
        yield Finding(
            check="too_many_threads",
            severity="warning",
            cause=f"{budget.threads} threads share {budget.cores} cores",
            evidence=f"train.threads={budget.threads}, cores this process may use: {budget.cores}",
            fix=f"--train.threads {budget.cores}, or leave it out",
            confidence=0.9,
            overrides={"train.threads": str(budget.cores)},
        )


def exploration_budget(budget: Budget) -> Iterator[Finding]:
    """Random actions end within the first tenth of the run, or are still half of all at its end.

    Epsilon counted in episodes depends on how long they are: short ones spend it in minutes, long
    ones never. A schedule made for another budget does the same.

    Count in steps, over about a third of the budget.
    """
    if not budget.epsilon or budget.noisy:
        return
    shares = ", ".join(f"{e:.2g} at {s:.0%}" for s, e in sorted(budget.epsilon.items()))
    early, late = budget.epsilon[min(budget.epsilon)], budget.epsilon[max(budget.epsilon)]
    spent, never = early <= EXPLORED_OUT and early == late, late >= STILL_EXPLORING
    own = f"{budget.section}." if budget.section else ""
    if spent or never:
        yield Finding(
            check="exploration_budget",
            severity="warning",
            cause="random actions end almost at once"
            if spent
            else "most actions are still random near the end of the run",
            evidence=f"share of random actions: {shares} of the run",
            fix="let it fall over about a third of the run"
            + (
                f": --{own}epsilon-unit steps, --{own}epsilon-over a third of the budget"
                if own
                else ""
            ),
            confidence=0.7,
        )


def warm_up_long(budget: Budget) -> Iterator[Finding]:
    """Filling the replay takes a large part of the run.

    Nothing is learnt before the replay holds its warm-up.

    A warm-up of a few thousand transitions, or a percent of the budget.
    """
    if budget.warm_up_share is not None and budget.warm_up_share > LATE_WARM_UP:
        whole = budget.warm_up_share >= 1
        option = f"{budget.section}.warm_up" if budget.section else "the warm-up"
        yield Finding(
            check="warm_up_long",
            severity="critical" if whole else "warning",
            cause="nothing is ever learnt: the replay is never warm"
            if whole
            else "much of the run passes before the first update",
            evidence=f"the warm-up takes {budget.warm_up_share:.0%} of the budget",
            fix=f"lower {option} to a percent of the budget",
            confidence=0.9 if whole else 0.6,
        )


def checkpoint_rate(budget: Budget) -> Iterator[Finding]:
    """Checkpoints come with every iteration, or none before the end of the run.

    An interval in another unit than it was meant in: iterations taken for steps, steps for seconds.
    The one slows training down, the other loses everything when the machine goes down.

    Once a minute is usual: checkpoint.every_seconds 60.
    """
    never = budget.checkpoints is not None and budget.checkpoints < 1
    between = budget.iterations_per_checkpoint
    if never or (between is not None and between <= 1):
        # an interval that nobody can keep was not meant
        impossible = between is not None and between < HALF_A_ROLLOUT
        yield Finding(
            check="checkpoint_rate",
            severity="warning" if never or impossible else "info",
            cause="no checkpoint before the end of the run"
            if never
            else "a checkpoint after every iteration",
            evidence=f"{budget.checkpoints:.2g} in the whole run"
            if never
            else f"{between:.2g} iterations between two checkpoints",
            fix="--checkpoint.every-seconds 60",
            confidence=0.8,
            overrides={"checkpoint.every_seconds": "60"},
        )


CHECKS = (
    refused,
    few_updates,
    few_episodes,
    memory_short,
    too_many_threads,
    exploration_budget,
    warm_up_long,
    checkpoint_rate,
)
