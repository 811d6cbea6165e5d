"""What the value of a state can be at all, from what a game declares about its rewards."""

from __future__ import annotations

from ludus.sim.game import Game, Settings, evaluate


def feasible_values(game: Game, settings: Settings, role: str, gamma: float) -> tuple[float, float]:
    """The lowest and the highest possible value, in units of reward.

    A term that is bounded over an episode is so over its rest, if its sign never changes; otherwise
    what is still to come can be as large as the distance between its bounds. Values look beyond an
    episode that is cut off, so a term that pays every step may add up for 1 / (1 − gamma) steps
    where that is longer.
    """
    names = {**settings.sizes, **settings.params}
    steps = float(names.get("max_steps", 1000))
    longer = max(1.0, 1 / ((1 - gamma) * steps)) if gamma < 1 else 1.0
    low = high = 0.0
    for name, term in game.rewards.items():
        if not term.concerns(role):
            continue
        weight = settings.weights[name]
        ends = (
            weight * evaluate(term.least, names),
            weight * (evaluate(term.most, names) if term.most is not None else steps),
        )
        worst, best = min(ends), max(ends)
        if worst < 0 < best:
            worst, best = worst - best, best - worst
        low, high = low + min(worst, 0.0) * longer, high + max(best, 0.0) * longer
    return low, high
