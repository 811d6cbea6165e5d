"""A script that plays the chain by hand, to prove that every reward term of a game can be earned
and to say how early.

One agent stands with a mine to the north, a generator to the east, and to the south the converter
that makes what is paid for. The rewards are those the simulator pays out, so a rate that got lost
on the way shows here.
"""

from __future__ import annotations

from collections.abc import Mapping

from ludus.games.arena.world import (
    ALTAR,
    ARMORY,
    BATTERY,
    BORDER,
    COLUMN_STEP,
    EAST,
    FACE,
    GENERATOR,
    GET,
    HEART,
    ITEM_NAMES,
    ITEMS,
    LASERY,
    MINE,
    NOOP,
    NORTH,
    ORE,
    PUT,
    ROW_STEP,
    SOUTH,
)
from ludus.sim import Batch

COUNTS = ("mines", "generators", "altars", "armories", "laseries")  # by kind
MAKER = {ORE: MINE, BATTERY: GENERATOR, HEART: ALTAR} | {2: ARMORY, 3: LASERY}
PLACE = {MINE: NORTH, GENERATOR: EAST}  # every other converter stands south
ROOM = 5
CENTRE = BORDER + ROOM // 2


def earliest_rewards(
    overrides: Mapping[str, float] | None = None, preset: str | None = None, most_steps: int = 1000
) -> dict[str, int | None]:
    """For each reward term the first step in which it pays, or None where it never does within
    `most_steps`."""
    return {
        ITEM_NAMES[item]: _first_pay(item, overrides or {}, preset, most_steps)
        for item in range(ITEMS)
    }


def _first_pay(
    item: int, overrides: Mapping[str, float], preset: str | None, most_steps: int
) -> int | None:
    from ludus.games.arena.spec import GAME

    settings = GAME.resolve(overrides, preset)
    kinds = sorted({MINE, GENERATOR, MAKER[item]})
    if not settings.params[COUNTS[MAKER[item]]] or not settings.weights[ITEM_NAMES[item]]:
        return None
    kinds = [kind for kind in kinds if settings.params[COUNTS[kind]]]
    one_of_each = {name: int(kind in kinds) for kind, name in enumerate(COUNTS)}
    values = {
        **settings.params,
        **one_of_each,
        **{f"reward.{t}": w for t, w in settings.weights.items()},
    }
    values |= dict(
        population=1,
        rooms=1,
        room=ROOM,
        side=ROOM + 2 * BORDER,
        converters=len(kinds),
        blocks=0,
        walls=0,
        groups=1,
    )
    batch = Batch(GAME, 1, overrides=values, jit=False)
    _arrange(batch, kinds)
    batch["facing"][0, 0] = PLACE.get(MAKER[item], SOUTH) if batch["initial_stock"][0] else NORTH
    for step in range(1, min(most_steps, int(settings.params["max_steps"])) + 1):
        batch["action_act"][0, 0] = _next_act(batch, item, kinds)
        batch.step()
        if batch[f"term_{ITEM_NAMES[item]}"][0, 0] * batch["weights"][0, item] > 0:
            return step
    return None


def _arrange(batch: Batch, kinds: list[int]) -> None:
    """The agent in the middle, the converters around it."""
    from ludus.games.arena.world import EMPTY, FIRST_CONVERTER

    inner = slice(BORDER, BORDER + ROOM)
    batch["grid"][0, inner, inner] = EMPTY
    batch["grid"][0, CENTRE, CENTRE] = -1
    batch["row"][0, 0] = batch["column"][0, 0] = CENTRE
    for number, kind in enumerate(kinds):
        way = PLACE.get(kind, SOUTH)
        r, c = CENTRE + ROW_STEP[way], CENTRE + COLUMN_STEP[way]
        batch["grid"][0, r, c] = FIRST_CONVERTER + number
        batch["converter_row"][0, number], batch["converter_column"][0, number] = r, c


def _next_act(batch: Batch, item: int, kinds: list[int]) -> int:
    """What the script does next to get hold of `item`."""
    held, stock, inside, recipe = (batch[name][0] for name in ("held", "stock", "inside", "recipe"))
    maker = MAKER[item]
    number = {kind: i for i, kind in enumerate(kinds)}

    def missing(kind: int, what: int) -> int:
        return int(recipe[kind, what] - inside[number[kind], what] - held[0, what])

    def do(kind: int, act: int) -> int:
        way = PLACE.get(kind, SOUTH)
        return act if batch["facing"][0, 0] == way else FACE + way

    if stock[number[maker]] or batch["converting"][0, number[maker]]:
        return do(maker, GET)
    if all(missing(maker, what) <= 0 for what in range(ITEMS)) and any(recipe[maker]):
        return do(maker, PUT)
    if GENERATOR in number and maker != GENERATOR and missing(maker, BATTERY) > 0:
        generator = number[GENERATOR]
        if stock[generator] or batch["converting"][0, generator]:
            return do(GENERATOR, GET)
        if held[0, ORE] > 0 and inside[generator, ORE] == 0:
            return do(GENERATOR, PUT)
    return do(MINE, GET) if MINE in number else NOOP
