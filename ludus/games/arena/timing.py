"""The earliest step at which each item can be had, by arithmetic over the parameters.

One agent stands between one mine, one generator and one altar. To turn and to put something in take
a step each; it takes a product out in the step in which it appears.
"""

from __future__ import annotations

from collections.abc import Mapping

TURN_AND_PUT = 2


def first_ore(params: Mapping[str, float], count: int = 1) -> int | None:
    """The step at which a mine has given `count` ore."""
    if not params["mines"]:
        return None
    if count <= params["initial_stock"]:
        return 1
    made = count - int(params["initial_stock"])
    cooldown = int(params["mine_cooldown"])
    return made * cooldown if params["start_cooling"] else 1 + (made - 1) * (cooldown + 1)


def first_battery(params: Mapping[str, float], count: int = 1) -> int | None:
    """The step at which a generator has given `count` batteries, one ore after the other."""
    if not params["generators"]:
        return None
    made = count - int(params["initial_stock"])
    if made <= 0:
        return 1
    one, last = first_ore(params), first_ore(params, made)
    if one is None or last is None:
        return None
    wait, period = (
        _production(params, "generator"),
        int(params["generator_cooldown"]) + (0 if params["start_cooling"] else 1),
    )
    return max(last + TURN_AND_PUT + wait, one + TURN_AND_PUT + wait + (made - 1) * period)


def first_heart(params: Mapping[str, float]) -> int | None:
    """The step of the first heart, or None where hearts cannot be had."""
    if not params["altars"]:
        return None
    if params["initial_stock"]:
        return 1
    battery = first_battery(params, int(params["altar_batteries"]))
    return None if battery is None else battery + TURN_AND_PUT + _production(params, "altar")


def _production(params: Mapping[str, float], converter: str) -> int:
    return int(params[f"{converter}_cooldown"]) if params["start_cooling"] else 1
