"""Converters turn items into others: ore into batteries, batteries into hearts.

A conversion takes its inputs when it starts and gives its product one step later; then the
converter cools down. With `start_cooling` it is the other way round: it cools down first and gives
its product at the end.
"""

from ludus.games.arena.world import (
    ALTAR,
    ARMORY,
    BATTERY,
    GENERATOR,
    ITEMS,
    KINDS,
    LASERY,
    MINE,
    ORE,
    STORE,
)
from ludus.sim import phase


def start(env, c, kind, recipe, cooldown, start_cooling, stock, inside, timer, converting):
    """Starts a conversion if the converter is idle, its inputs are there, and its product will have
    room."""
    if timer[env, c] > 0 or stock[env, c] >= STORE:
        return
    for item in range(ITEMS):
        if inside[env, c, item] < recipe[env, kind, item]:
            return
    for item in range(ITEMS):
        inside[env, c, item] -= recipe[env, kind, item]
    converting[env, c] = True
    timer[env, c] = max(cooldown[env, kind], 1) if start_cooling[env] else 1


@phase(lanes="converters", writes=("stock", "inside", "timer", "converting"))
def convert(
    env,
    c,
    converter_count,
    converter_kind,
    recipe,
    cooldown,
    start_cooling,
    stock,
    inside,
    timer,
    converting,
):
    if c >= converter_count[env]:
        return
    kind = converter_kind[env, c]
    if timer[env, c] > 0:
        timer[env, c] -= 1
        if timer[env, c] == 0 and converting[env, c]:
            converting[env, c] = False
            stock[env, c] += 1
            timer[env, c] = 0 if start_cooling[env] else cooldown[env, kind]
    start(env, c, kind, recipe, cooldown, start_cooling, stock, inside, timer, converting)


@phase(writes=("recipe", "cooldown"))
def read_recipes(
    env,
    altar_batteries,
    mine_cooldown,
    generator_cooldown,
    altar_cooldown,
    armory_cooldown,
    lasery_cooldown,
    recipe,
    cooldown,
):
    """What each kind of converter needs and how long it cools down, in this episode."""
    for kind in range(KINDS):
        for item in range(ITEMS):
            recipe[env, kind, item] = 0
    recipe[env, GENERATOR, ORE] = 1
    recipe[env, ALTAR, BATTERY] = altar_batteries[env]
    recipe[env, ARMORY, ORE] = 3
    recipe[env, LASERY, ORE] = 1
    recipe[env, LASERY, BATTERY] = 2
    cooldown[env, MINE] = mine_cooldown[env]
    cooldown[env, GENERATOR] = generator_cooldown[env]
    cooldown[env, ALTAR] = altar_cooldown[env]
    cooldown[env, ARMORY] = armory_cooldown[env]
    cooldown[env, LASERY] = lasery_cooldown[env]


@phase(lanes="converters", writes=("stock", "inside", "timer", "converting"))
def stock_up(
    env,
    c,
    converter_count,
    converter_kind,
    recipe,
    cooldown,
    start_cooling,
    initial_stock,
    stock,
    inside,
    timer,
    converting,
):
    """A new episode: converters are empty but for the initial stock, and those without inputs start
    at once."""
    stock[env, c] = 0
    timer[env, c] = 0
    converting[env, c] = False
    for item in range(ITEMS):
        inside[env, c, item] = 0
    if c < converter_count[env]:
        stock[env, c] = initial_stock[env]
        start(
            env,
            c,
            converter_kind[env, c],
            recipe,
            cooldown,
            start_cooling,
            stock,
            inside,
            timer,
            converting,
        )
