"""What a task may be: for each parameter that varies, values to choose from ("1, 3, 5") or bounds
("0.1 to 0.5")."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ludus.errors import LudusError, nearest
from ludus.sim.game import Game

PARTS = 4  # of a range, to tell in the log which of it is played
MOST_SHOWN = 12  # values of a list that the log tells apart
MOST_CORNERS = 4096


@dataclass(frozen=True)
class Bucket:
    """The values of one parameter: either `values`, or everything from `low` to `high`."""

    name: str
    values: tuple[float, ...] = ()
    low: float = 0.0
    high: float = 0.0
    whole: bool = False

    @property
    def count(self) -> float:
        """How many values there are; infinite for bounds of real numbers."""
        if self.values:
            return len(self.values)
        return self.high - self.low + 1 if self.whole else math.inf

    def every(self) -> Sequence[float]:
        return self.values or range(int(self.low), int(self.high) + 1)

    def ends(self) -> tuple[float, float]:
        return (min(self.values), max(self.values)) if self.values else (self.low, self.high)

    def draw(self, source: random.Random) -> float:
        if self.values:
            return self.values[int(source.random() * len(self.values))]
        if self.whole:
            return self.low + int(source.random() * (self.high - self.low + 1))
        return self.low + source.random() * (self.high - self.low)

    def shares(self, played: np.ndarray) -> dict[str, float]:
        """How much of what is played has which value; bounds are told apart in four equal parts."""
        if 0 < len(self.values) <= MOST_SHOWN:
            return {f"{value:g}": float(np.isclose(played, value).mean()) for value in self.values}
        low, high = self.ends()
        edges = np.linspace(low, high, PARTS + 1)
        part = np.clip(np.searchsorted(edges, played, side="right") - 1, 0, PARTS - 1)
        names = [f"{a:g}-{b:g}" for a, b in itertools.pairwise(edges)]
        return {name: float((part == i).mean()) for i, name in enumerate(names)}


def parse_bucket(name: str, text: str, whole: bool) -> Bucket:
    """'1, 3, 5' or '0.1 to 0.5'; refuses what leaves nothing to choose."""
    where = f"curriculum.tasks.vary.{name}='{text}'"
    bounds = [part.strip() for part in text.split(" to ")]
    parts = bounds if len(bounds) == 2 else [part.strip() for part in text.split(",")]
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        raise LudusError(
            f"{where} is neither values nor bounds: write '1, 3, 5' or '0.1 to 0.5'"
        ) from None
    if whole and any(number != int(number) for number in numbers):
        raise LudusError(f"{where}: {name} must be a whole number")
    if len(bounds) == 2:
        low, high = numbers
        if low > high:
            raise LudusError(
                f"{where} has its bounds reversed, {low:g} is above {high:g}: write '{high:g} to "
                f"{low:g}'"
            )
        if low < high:
            return Bucket(name, low=low, high=high, whole=whole)
    values = tuple(dict.fromkeys(numbers))
    if len(values) < 2:
        raise LudusError(
            f"{where} has {len(values)} value, which leaves nothing to choose: give at least 2, or "
            f"set game.{name}"
        )
    return Bucket(name, values=values, whole=whole)


def make_buckets(
    vary: Mapping[str, str], game: Game, base: Mapping[str, float], preset: str | None
) -> list[Bucket]:
    """The buckets of a config. `base`: the game's other values. Refuses unknown parameters, and
    tasks that the game refuses:
    those with the lowest and highest value of everything that varies, in all combinations."""
    buckets = []
    for name, text in vary.items():
        term = name.removeprefix("reward.")
        if name in game.sizes:
            raise LudusError(
                f"curriculum.tasks.vary.{name}: {name} is a size, the same for all envs of a "
                "batch; vary parameters"
            )
        if name not in game.params and not (name.startswith("reward.") and term in game.rewards):
            known = [*game.params, *(f"reward.{t}" for t in game.rewards)]
            raise LudusError(
                f"curriculum.tasks.vary.{name}: {game.name} has no parameter '{name}': "
                f"{nearest(name, known)}"
            )
        buckets.append(parse_bucket(name, text, name in game.params and game.params[name].integer))
    if 2 ** len(buckets) > MOST_CORNERS:
        most = MOST_CORNERS.bit_length() - 1
        raise LudusError(f"curriculum.tasks.vary has {len(buckets)} parameters: use at most {most}")
    for corner in itertools.product(*(bucket.ends() for bucket in buckets)):
        task = {bucket.name: value for bucket, value in zip(buckets, corner, strict=True)}
        try:
            game.resolve({**base, **task}, preset)
        except LudusError as error:
            told = ", ".join(f"{name}={value:g}" for name, value in task.items())
            raise LudusError(f"curriculum.tasks.vary allows the task {told}, but {error}") from None
    return buckets
