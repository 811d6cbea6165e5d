"""The arena, declared: spaces, rewards, sizes, parameters, presets."""

from collections.abc import Mapping

from ludus.errors import LudusError
from ludus.games.arena import observation
from ludus.games.arena.actions import FLOWS, act_in_turn, allow, fight
from ludus.games.arena.bots import forget, gatherer, raider
from ludus.games.arena.building import clear, place_agents, place_objects
from ludus.games.arena.converters import convert, read_recipes, stock_up
from ludus.games.arena.rewards import begin, judge, pay, read_caps, score, value
from ludus.games.arena.timing import first_heart
from ludus.games.arena.world import ACTS, BORDER, ITEMS, KINDS, MOST_SIDE, NUM_ACTS, WORDS
from ludus.sim import (
    Choice,
    Game,
    Goal,
    Headline,
    Param,
    Role,
    Term,
    Tokens,
    f32,
    flag,
    i8,
    i16,
    i32,
    u8,
)
from ludus.sim.game import Field

SMALL = dict(population=6, rooms=1, side=25 + 2 * BORDER, converters=22)
"""One room with its six agents, for a game that fits a laptop: overrides to use with any preset."""

UNOBTAINABLE = 100  # lasers an attack costs where nobody should fight: more than an agent can hold


def check(sizes: Mapping[str, int], params: Mapping[str, float]) -> None:
    rooms, room = int(params["rooms"]), int(params["room"])
    side = rooms * room + 2 * BORDER
    if side > sizes["side"]:
        raise LudusError(
            f"{rooms}x{rooms} rooms of {room}x{room} with their border need a side of {side} but "
            f"the map has side={sizes['side']}: "
            f"use side={side}"
        )
    per_room = {
        n: int(params[n])
        for n in ("mines", "generators", "altars", "armories", "laseries", "blocks", "walls")
    }
    agents = -(-sizes["population"] // rooms**2)
    things = agents + sum(per_room.values())
    if things > room * room:
        raise LudusError(
            f"a room of {room}x{room} has {room * room} cells but {agents} agents, "
            + ", ".join(f"{count} {name}" for name, count in per_room.items() if count)
            + f" need {things}: use fewer, or a larger room"
        )
    converters = rooms**2 * (things - agents - per_room["blocks"] - per_room["walls"])
    if converters > sizes["converters"]:
        raise LudusError(
            f"{rooms**2} rooms hold {converters} converters but there is space for "
            f"converters={sizes['converters']}: "
            f"use converters={converters}"
        )
    if params["groups"] > sizes["population"]:
        raise LudusError(
            f"groups={params['groups']} is more than the population of {sizes['population']}: use "
            "at most one group per agent"
        )
    earliest = first_heart(params)
    if earliest is not None and params["stagger_least"] < min(earliest, params["max_steps"]):
        raise LudusError(
            f"stagger_least={params['stagger_least']} would cut first episodes short before a "
            "heart can be had at step "
            f"{earliest}: use at least {earliest}"
        )


def _capped(cap: str, converters: str, cooldown: str) -> str:
    """The most an agent is paid for an item: the cap; with `gains`, all that converters can give
    out in an episode."""
    return f"{cap} + gains * {converters} * rooms * rooms * (max_steps // {cooldown} + 6)"


GAME = Game(
    name="arena",
    summary="many agents turn ore into batteries into hearts, side by side or against each other",
    sizes=dict(population=24, side=62, converters=96, tokens=48),
    size_limits=dict(
        population=(1, 1024),
        side=(2 * BORDER + 5, MOST_SIDE),
        converters=(1, 4096),
        tokens=(8, 255),
    ),
    roles=[Role("agent", count="population")],
    state=dict(
        # the map
        grid=i16("side", "side"),
        filled=Field("int64", ("side", WORDS)),
        converter_count=i32(),
        converter_kind=i8("converters"),
        converter_row=i16("converters"),
        converter_column=i16("converters"),
        stock=i16("converters"),
        inside=i16("converters", ITEMS),
        timer=i16("converters"),
        converting=flag("converters"),
        recipe=i16(KINDS, ITEMS),
        cooldown=i16(KINDS),
        caps=f32(ITEMS),
        # agents
        row=i16("agents"),
        column=i16("agents"),
        facing=i8("agents"),
        held=i16("agents", ITEMS),
        frozen_until=i32("agents"),
        turn_order=i16("agents"),
        last_act=i8("agents"),
        last_success=flag("agents"),
        # what is paid
        paid=f32("agents", ITEMS),
        gain=f32("agents", ITEMS),
        amount=f32("agents", ITEMS),
        pooled=f32("agents", ITEMS),
        earned=f32("agents"),
        # statistics of the episode
        item_counts=i32("agents", FLOWS, ITEMS),
        act_counts=i32("agents", NUM_ACTS, 2),
        first_step=i32("agents", ITEMS),
        still_steps=i32("agents"),
        frozen_steps=i32("agents"),
        # what is seen
        seen_tokens=u8("agents", "tokens", 3),
        token_count=u8("agents"),
        # what the bots remember
        bot_goal=i16("agents", 2),
        bot_known=i16("agents", KINDS),
        bot_timer=i16("agents"),
        bot_detour=i8("agents"),
    ),
    params=dict(
        max_steps=Param(1000, 2, 100_000, "steps of an episode"),
        rooms=Param(2, 1, 8, "rooms along each side of the map"),
        room=Param(25, 5, 128, "cells along each side of a room"),
        mines=Param(10, 0, 256, "mines per room", "{} mine per room|{} mines per room"),
        generators=Param(
            5, 0, 256, "generators per room", "{} generator per room|{} generators per room"
        ),
        altars=Param(5, 0, 256, "altars per room", "{} altar per room|{} altars per room"),
        armories=Param(0, 0, 256, "armories per room", "{} armory per room|{} armories per room"),
        laseries=Param(0, 0, 256, "laseries per room", "{} lasery per room|{} laseries per room"),
        blocks=Param(
            20, 0, 1024, "movable blocks per room", "{} block per room|{} blocks per room"
        ),
        walls=Param(20, 0, 1024, "wall cells per room", "{} wall per room|{} walls per room"),
        altar_batteries=Param(
            1,
            1,
            50,
            "batteries an altar needs for a heart",
            "altar needs {} battery|altar needs {} batteries",
        ),
        mine_cooldown=Param(50, 1, 1000, "steps a mine cools down"),
        generator_cooldown=Param(25, 1, 1000, "steps a generator cools down"),
        altar_cooldown=Param(10, 1, 1000, "steps an altar cools down"),
        armory_cooldown=Param(10, 1, 1000, "steps an armory cools down"),
        lasery_cooldown=Param(10, 1, 1000, "steps a lasery cools down"),
        start_cooling=Param(
            0,
            0,
            1,
            "1: converters cool down before they produce instead of after",
            "converters cool down before they produce|converters produce before they cool down",
        ),
        initial_stock=Param(
            0,
            0,
            5,
            "finished items in every converter at the start",
            "converters start with {} item in stock|converters start with {} items in stock",
        ),
        attack_cost=Param(
            UNOBTAINABLE,
            1,
            100,
            "lasers an attack costs; above 50 nobody can pay it",
            "an attack costs {} laser|an attack costs {} lasers",
        ),
        freeze_steps=Param(10, 1, 1000, "steps a hit freezes for"),
        ore_cap=Param(10.0, 0.0, 50.0, "ore held beyond this number pays nothing"),
        battery_cap=Param(1.25, 0.0, 50.0, "batteries held beyond this number pay nothing"),
        armor_cap=Param(2.0, 0.0, 50.0, "armor held beyond this number pays nothing"),
        laser_cap=Param(2.0, 0.0, 50.0, "lasers held beyond this number pay nothing"),
        gains=Param(
            0,
            0,
            1,
            "1: pays for what is taken from converters, and putting in costs nothing",
            "only what is taken from converters pays|changes of what is held pay",
        ),
        groups=Param(1, 1, 1024, "groups the agents are dealt into in turn"),
        group_share=Param(0.0, 0.0, 1.0, "share of a reward that is spread over the group"),
        masking=Param(
            1,
            0,
            1,
            "1: what cannot succeed is masked out",
            "what cannot succeed is masked out|nothing is masked out",
        ),
        stagger_least=Param(250, 1, 100_000, "shortest first episode where starts are staggered"),
    ),
    observation=observation.NAMES,
    seen=dict(tokens=Tokens(cells=observation.CELLS, features=observation.FEATURES)),
    action=dict(act=Choice(ACTS, masked=True)),
    rewards=dict(
        ore=Term(
            "shaping",
            0.1,
            most=_capped("ore_cap", "mines", "mine_cooldown"),
            help="ore held, up to ore_cap",
        ),
        batteries=Term(
            "shaping",
            0.8,
            most=_capped("battery_cap", "generators", "generator_cooldown"),
            help="batteries held, up to battery_cap",
        ),
        armor=Term(
            "shaping",
            0.5,
            most=_capped("armor_cap", "armories", "armory_cooldown"),
            help="armor held, up to armor_cap",
        ),
        lasers=Term(
            "shaping",
            0.5,
            most=_capped("laser_cap", "laseries", "lasery_cooldown"),
            help="lasers held, up to laser_cap",
        ),
        hearts=Term(
            "goal", 1.0, most=_capped("255", "altars", "altar_cooldown"), help="hearts held"
        ),
    ),
    goal_metrics=dict(
        hearts=Goal("hearts taken from altars"),
        batteries=Goal("batteries taken from generators"),
        ore=Goal("ore taken from mines"),
        first_ore=Goal(
            "step of the first ore; max_steps if there was none", higher_is_better=False
        ),
        first_battery=Goal(
            "step of the first battery; max_steps if there was none", higher_is_better=False
        ),
        first_heart=Goal(
            "step of the first heart; max_steps if there was none", higher_is_better=False
        ),
    ),
    headline=Headline("hearts"),
    step=[
        convert,
        fight,
        act_in_turn,
        value,
        pay,
        score,
        judge,
        allow,
        observation.look,
        observation.observe,
    ],
    reset=[
        clear,
        read_recipes,
        read_caps,
        place_agents,
        place_objects,
        stock_up,
        begin,
        forget,
        score,
        allow,
        observation.look,
        observation.observe,
    ],
    bots=dict(agent=[gatherer, raider]),
    check=check,
    presets=dict(
        easy_shaped=dict(),
        basic=dict(altar_batteries=3),
        combat=dict(altar_batteries=3, armories=1, laseries=1, attack_cost=1),
        default_after_rewrite={
            "blocks": 0,
            "walls": 10,
            "laseries": 1,
            "armories": 1,
            "altar_batteries": 3,
            "attack_cost": 1,
            "reward.ore": 0.0,
            "reward.batteries": 0.0,
            "reward.armor": 0.0,
            "reward.lasers": 0.0,
        },
        navigation=dict(mines=0, generators=0, initial_stock=1),
        gains=dict(gains=1),
    ),
)
