"""Is the policy's memory used?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ludus.doctor.checks import check
from ludus.doctor.finding import Finding
from ludus.doctor.log import Log
from ludus.doctor.options import equal, named
from ludus.doctor.statistics import tail

UNUSED = 0.01
"""Share of the change that shuffling the observation makes."""
UNIFORM = 0.99
NEXT_KEYS = "policy.strategy.next_keys"
NO_CHANGE = 0.01
"""Of the same yardstick, when something is taken away."""
KNOWS_KEYS = 0.95
"""Of what it costs to know only how often each key is pressed."""
TELLS_STYLE = 0.98
"""Of what it costs with the strategy vector of a match against another opponent."""


@check(family="memory", figure="sensitivity/ROLE/memory")
def memory_unused(log: Log) -> Iterator[Finding]:
    """Exchanging the memories of different games, or resetting the memory in every step, changes
    what the policy does by next to nothing.

    The memory carries nothing: it is reset too often, gets no gradient, backpropagation is shorter
    than what has to be remembered, or the task does not need it.

    Lengthen ppo.bptt beyond what has to be remembered, check that the memory gets a gradient;
    without need for it, leave it out.
    """
    for role in log.roles():
        memory, observation = (
            log.get(f"sensitivity/{role}/memory"),
            log.get(f"sensitivity/{role}/observation"),
        )
        shuffled = memory is not None and observation is not None and len(memory) >= 3
        found = _without_effect(log, role, "memory_reset")
        if found is None and shuffled:
            assert memory is not None and observation is not None
            a, b = float(np.median(tail(memory.values))), float(np.median(tail(observation.values)))
            if b > 0 and a < UNUSED * b:
                found = (
                    f"shuffled memories change its output by {a:.2g}, shuffled observations by "
                    f"{b:.2g}"
                )
        if found:
            yield Finding(
                check="memory_unused",
                severity="warning",
                cause=f"the memory of {role} does not matter to what it does",
                evidence=found,
                confidence=0.6,
                fix=f"lengthen {named(log, 'bptt')}, or set {equal(log, 'policy.memory', 'none')}",
                first_step=memory.first_step if memory is not None else None,
                last_step=log.steps,
            )


@check(family="memory")
def messages_unused(log: Log) -> Iterator[Finding]:
    """Silencing all messages changes nothing in what the policy does. Seen only after `ludus doctor
    run RUN --examine`.

    Nobody says anything worth hearing, so nobody learns to listen, so nobody learns to speak.

    Messages need a task that cannot be done without them, and time: pay for what only the sender
    knows, or leave them out.
    """
    for role in log.roles():
        found = _without_effect(log, role, "messages_silenced")
        if found:
            yield Finding(
                check="messages_unused",
                severity="warning",
                cause=f"messages do not matter to what {role} does",
                evidence=found,
                confidence=0.7,
                fix="give a task that needs them, or leave them out: the game's size of messages",
                last_step=log.steps,
            )


@check(family="memory")
def strategy_unused(log: Log) -> Iterator[Finding]:
    """Giving the policy the history of another opponent changes nothing in what it does. Seen only
    after `ludus doctor run RUN --examine`.

    The strategy vector is computed and then ignored: one opponent only, or opponents that are all
    answered alike.

    Train against several kinds of opponents that need different answers; add
    policy.strategy.next_keys, which rewards a vector that tells how the opponent plays.
    """
    for role in log.roles():
        found = _without_effect(log, role, "strategy_shuffled")
        if found:
            yield Finding(
                check="strategy_unused",
                severity="warning",
                cause=f"what {role} does does not depend on who its opponent is",
                evidence=found,
                confidence=0.7,
                fix="train against several kinds of opponents; or set "
                + equal(log, "policy.network", "standard"),
                last_step=log.steps,
            )


@check(family="memory")
def keys_not_foretold(log: Log) -> Iterator[Finding]:
    """The strategy vector was to foretell the opponent's keys (policy.strategy.next_keys), together
    with what is observed when they are pressed, and in matches it was not trained on it does no
    better than how often each key is pressed on the whole, or than the vector of a match against
    another opponent. Where it does better that is only noted. Seen only after `ludus doctor run RUN
    --examine`.

    The history holds nothing that tells how the opponent plays (entries, length), the loss is
    drowned by the policy's own, or opponents press keys at random.

    Put what shows the opponent's keys into the history's entries, raise policy.strategy.next_keys,
    train for longer.
    """
    for role in log.roles():
        found = [
            log.get(f"intervention/{role}/none/{name}")
            for name in ("keys_loss", "keys_guess", "keys_loss_shuffled")
        ]
        own, guess, shuffled = (float(c.values[-1]) if c is not None else None for c in found)
        if own is None or guess is None:
            continue
        blind = own >= KNOWS_KEYS * guess or (
            shuffled is not None and own >= TELLS_STYLE * shuffled
        )
        yield Finding(
            check="keys_not_foretold",
            severity="warning" if blind else "info",
            cause=f"the strategy vector of {role} {'does not foretell' if blind else 'foretells'} "
            "its opponent's keys",
            evidence=f"{own:.3g} nats a key; how often each is pressed costs {guess:.3g}"
            + (f"; the vector of another match {shuffled:.3g}" if shuffled is not None else ""),
            confidence=0.8,
            fix=f"show the opponent's keys in {named(log, 'policy.strategy.entries')}, raise "
            + named(log, NEXT_KEYS)
            if blind
            else "nothing",
            last_step=log.steps,
        )


@check(family="memory", figure=("strategy/ROLE/vector_std", "strategy/ROLE/attention_entropy"))
def attention_uniform(log: Log) -> Iterator[Finding]:
    """The strategy vector never varies; or the attention over an opponent's history is as even as
    on the first day, which is only noted: an even mean of the history may tell opponents apart,
    too.

    Nothing in the loss rewards telling opponents apart: one opponent only, or a history too short
    to tell.

    Train against several kinds of opponents; give the strategy encoder a task of its own (predict
    the opponent's next action).
    """
    next_keys = named(log, NEXT_KEYS)
    for curve in log.starting("strategy/"):
        late = float(np.median(tail(curve.values)))
        uniform = curve.name.endswith("attention_entropy") and late > UNIFORM
        still = curve.name.endswith("vector_std") and late < 1e-3
        if (uniform or still) and len(curve) >= 5:
            yield Finding(
                check="attention_uniform",
                severity="warning" if still else "info",
                cause="the strategy vector is the same for all opponents"
                if still
                else "the attention over the opponent's history is even: no step counts more than "
                "another",
                evidence=f"{curve.name} is {late:.3g} over the last half",
                confidence=0.55,
                fix=f"train against several kinds of opponents; add {next_keys}"
                if still
                else "nothing where `ludus eval RUN --analyse` names opponents well; else add "
                f"{next_keys}",
                first_step=curve.first_step,
                last_step=curve.last_step,
            )


@check(family="memory")
def taken_away(log: Log) -> Iterator[Finding]:
    """What a policy loses when its memory, messages or strategy vector are taken away: no
    complaint, but worth knowing.

    A part that changes what the policy does may still earn it nothing.

    Where taking it away costs nothing, a smaller network would do as well.
    """
    for role in log.roles():
        for kind in ("memory_reset", "messages_silenced", "strategy_shuffled"):
            told = [text for key in ("goal", "return") if (text := _lost(log, role, kind, key))]
            if not told:
                continue
            helps = any(text.endswith("(surely worse)") for text in told)
            yield Finding(
                check="taken_away",
                severity="info",
                cause=f"{kind.replace('_', ' ')}: {role} plays "
                f"{'surely worse' if helps else 'not surely worse'}",
                evidence="; ".join(told),
                confidence=0.9,
                fix="nothing" if helps else "a smaller network may do as well",
                last_step=log.steps,
            )


def _lost(log: Log, role: str, kind: str, key: str) -> str:
    usual, without = (log.get(f"intervention/{role}/{k}/{key}") for k in ("none", kind))
    if usual is None or without is None:
        return ""
    low, high = log.get(f"{usual.name}_low"), log.get(f"{without.name}_high")
    worse = low is not None and high is not None and high.values[-1] < low.values[-1]
    return f"{key} {usual.values[-1]:.3g} untouched, {without.values[-1]:.3g} without" + (
        " (surely worse)" if worse else ""
    )


def _without_effect(log: Log, role: str, kind: str) -> str | None:
    """What to say where an intervention changed next to nothing; "" where it changed something;
    None: nobody tried."""
    change, scale = (
        log.get(f"intervention/{role}/{k}/change") for k in (kind, "observation_shuffled")
    )
    if change is None or scale is None or scale.values[-1] <= 0:
        return None
    a, b = float(change.values[-1]), float(scale.values[-1])
    if a >= NO_CHANGE * b:
        return ""
    return (
        f"{kind.replace('_', ' ')}: its output changes by {a:.2g}; with another's observation "
        f"it changes by {b:.2g}"
    )
