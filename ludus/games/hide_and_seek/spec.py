"""Hide-and-seek, declared: spaces, roles, rewards, sizes, parameters, presets."""

from collections.abc import Mapping

from ludus.errors import LudusError
from ludus.games.hide_and_seek import observation, terrain
from ludus.games.hide_and_seek.bots import forget, hider, seeker
from ludus.games.hide_and_seek.building import build, hand_out, intend
from ludus.games.hide_and_seek.physics import SPAWN_APART, move, spawn, turn, wake
from ludus.games.hide_and_seek.rules import (
    PARTS,
    approach,
    count_again,
    hold,
    judge,
    leave,
    line_up,
    observe_blocks,
    observe_others,
    observe_self,
    release,
    search,
    take_cover,
)
from ludus.games.hide_and_seek.vision import look, see
from ludus.sim import (
    Binary,
    Continuous,
    Game,
    Goal,
    Headline,
    Param,
    Role,
    Term,
    f32,
    flag,
    i8,
    i32,
)

SEEKING = "max_steps - hide_steps"
# whoever walks as far as an eighth of the world is wide enters at most 1.42 of its 8x8 parts; a
# step is 1/12 s
MOST_PARTS = f"1 + 0.95 * seeker_speed * ({SEEKING}) / world"


def check(sizes: Mapping[str, int], params: Mapping[str, float]) -> None:
    agents, world = sizes["seekers"] + sizes["hiders"], sizes["world"]
    area = world - 2 * (world // 8) + SPAWN_APART
    need = 2 * agents * SPAWN_APART**2
    if need > area**2:
        raise LudusError(
            f"a world of {world} is too small: {agents} agents that start {SPAWN_APART:.0f} apart "
            f"need about {need:.0f} square "
            f"metres of its middle, which has {area**2:.0f}: use a larger world or fewer agents"
        )
    covered = params["trees"] + 9 * params["boulders"] + 7 * params["walls"]
    if covered > terrain.PER_AREA / 2:
        raise LudusError(
            f"trees={params['trees']:g}, boulders={params['boulders']:g} and "
            f"walls={params['walls']:g} cover about {covered:.0f} "
            f"of every {terrain.PER_AREA:.0f} columns: use fewer, at most "
            f"{terrain.PER_AREA / 2:.0f} columns can be covered"
        )
    top = terrain.BASE + 1.12 * params["height_range"]
    most = (terrain.HIGHEST_GROUND - terrain.BASE) / 1.12
    if top > terrain.HIGHEST_GROUND:
        raise LudusError(
            f"height_range={params['height_range']:g} raises the ground to layer {top:.0f}, beyond "
            "the "
            f"{terrain.HIGHEST_GROUND} that leave room for trees in {terrain.LAYERS} layers: use "
            f"at most {most:.1f}"
        )
    budget = agents * max(params["place_budget"], params["remove_budget"])
    if budget > world * world:
        raise LudusError(
            f"budgets of {agents} agents add up to {budget:.0f} blocks, more than the "
            f"{world * world} columns of the world: "
            f"use at most {world * world // agents} each"
        )
    if params["hide_steps"] >= params["max_steps"]:
        raise LudusError(
            f"hide_steps={params['hide_steps']} leaves no step to seek in: use less than "
            f"max_steps={params['max_steps']}"
        )


GAME = Game(
    name="hide_and_seek",
    summary="seekers hunt hiders among hills, trees and walls of blocks",
    sizes=dict(seekers=1, hiders=2, world=32, terrains=32, rays=observation.RAYS),
    size_limits=dict(
        seekers=(1, 4),
        hiders=(1, 4),
        world=(12, 64),
        terrains=(1, 4096),
        rays=(observation.RAYS, observation.RAYS),
    ),
    roles=[Role("seeker", count="seekers"), Role("hider", count="hiders")],
    state=dict(
        # the world
        solid=i32("world", "world"),
        sight=i32("world", "world"),
        placed=i32("world", "world"),
        ground=i8("world", "world"),
        plan=i8("world", "world"),
        top=i32(),
        terrain=i32(),
        terrain_source=i32(),
        recipe=f32(terrain.RECIPE),
        edited=flag(),
        builds=i32(),
        bank_solid=i32("terrains", "world", "world", shared=True),
        bank_sight=i32("terrains", "world", "world", shared=True),
        bank_ground=i8("terrains", "world", "world", shared=True),
        bank_plan=i8("terrains", "world", "world", shared=True),
        bank_builds=i32("terrains", "world", shared=True),
        bank_recipe=f32(terrain.RECIPE, shared=True),
        bank_first=i32(1, shared=True),
        # bodies
        position=f32("agents", 3),
        velocity=f32("agents", 3),
        yaw=f32("agents"),
        pitch=f32("agents"),
        facing=f32("agents", 4),
        fall=f32("agents"),
        grounded=flag("agents"),
        blocked=flag("agents", 2),
        jump_wait=i32("agents"),
        # blocks
        places_left=i32("agents"),
        removes_left=i32("agents"),
        wish=i8("agents"),
        wish_at=i32("agents", 3),
        # seeing and catching
        visible=flag("agents", "agents"),
        nearest=i32("agents"),
        seen_at=f32("agents", 3),
        seen_ago=f32("agents"),
        held=f32("agents"),
        caught=flag("agents"),
        found=i32(),
        near=f32("agents"),
        been=i32("agents", PARTS),
        # what the bots remember
        bot_goal=f32("agents", 2),
        bot_heading=f32("agents", 2),
        bot_timer=i32("agents"),
        bot_stuck=i32("agents"),
    ),
    params=dict(
        max_steps=Param(240, 2, 10_000, "steps until the hiders have won"),
        hide_steps=Param(36, 0, 1_000, "steps the seekers stand frozen and blind"),
        seeker_speed=Param(5.2, 0.5, 10.0, "metres a second"),
        hider_speed=Param(4.3, 0.5, 10.0, "metres a second"),
        catch_distance=Param(2.0, 0.5, 5.0, "metres within which a visible hider is held"),
        catch_seconds=Param(0.5, 0.05, 3.0, "time held without a break until caught"),
        place_budget=Param(0, 0, 1_000, "blocks an agent may place in an episode"),
        remove_budget=Param(0, 0, 1_000, "blocks an agent may remove in an episode"),
        height_range=Param(5.0, 0.0, 24.0, "levels of hills"),
        trees=Param(20.0, 0.0, 1024.0, "trees per 32x32 columns, on average"),
        boulders=Param(
            6.0, 0.0, 128.0, "boulders of 3x3 columns, two blocks high, per 32x32 columns"
        ),
        walls=Param(6.0, 0.0, 128.0, "walls of 7 columns, two blocks high, per 32x32 columns"),
        terrain_mode=Param(
            terrain.BANK,
            0,
            2,
            "0: always first_terrain; 1: any of the bank; 2: a fresh one every episode",
        ),
        first_terrain=Param(
            0,
            0,
            1_000_000,
            "seed of the first terrain of the bank; evaluate on others than trained on",
        ),
    ),
    observation=observation.NAMES,
    action=dict(
        forward=Continuous(),
        strafe=Continuous(),
        turn=Continuous(),
        look=Continuous(),
        jump=Binary(masked=True),
        place=Binary(masked=True),
        remove=Binary(masked=True),
    ),
    rewards=dict(
        sees=Term(
            "shaping", 0.01, most=SEEKING, roles="seeker", help="each step it sees any hider"
        ),
        sees_each=Term(
            "shaping",
            0.0,
            most=f"hiders * ({SEEKING})",
            roles="seeker",
            help="each step, for every hider it sees",
        ),
        catch=Term("goal", 50.0, most="hiders", roles="seeker", help="for every hider caught"),
        all_caught=Term("goal", 100.0, most=1, roles="seeker"),
        none_caught=Term("goal", -10.0, most=1, roles="seeker"),
        approach=Term(
            "potential",
            0.0,
            most="hiders",
            least="-hiders",
            roles="seeker",
            help="1 from far away up to a hider, and back",
        ),
        searches=Term(
            "shaping",
            0.0,
            most=MOST_PARTS,
            roles="seeker",
            help="each of 8x8 parts of the world, once",
        ),
        cover=Term(
            "potential",
            0.0,
            most=1,
            least=-1,
            roles="hider",
            help="0 out of sight, -1 while a seeker sees it",
        ),
        hidden=Term(
            "shaping", 0.02, most=SEEKING, roles="hider", help="each step no seeker sees it"
        ),
        seen=Term("shaping", -0.02, most=SEEKING, roles="hider", help="each step a seeker sees it"),
        survived=Term("goal", 50.0, most=1, roles="hider"),
        caught=Term("goal", -50.0, most=1, roles="hider"),
        time=Term("cost", -0.001, most=SEEKING, help="each step of seeking"),
    ),
    goal_metrics=dict(
        catch_rate=Goal("share of the hiders caught", roles="seeker", share=True),
        survival=Goal("1 if never caught", roles="hider", share=True),
        lasted=Goal("share of the seeking time it was free", roles="hider", share=True),
    ),
    headline=Headline("catch_rate", against="bot:hider"),
    setup=[terrain.note_recipe, terrain.plan_bank, terrain.raise_bank],
    step=[
        turn,
        intend,
        build,
        move,
        see,
        hold,
        leave,
        judge,
        approach,
        take_cover,
        search,
        look,
        observe_self,
        observe_others,
        observe_blocks,
    ],
    reset=[
        terrain.choose_terrain,
        terrain.plan_terrain,
        terrain.raise_terrain,
        terrain.find_top,
        hand_out,
        spawn,
        wake,
        line_up,
        release,
        count_again,
        forget,
        see,
        look,
        observe_self,
        observe_others,
        observe_blocks,
    ],
    bots=dict(seeker=[seeker], hider=[hider]),
    held_out=dict(first_terrain=500_000),
    validation=dict(first_terrain=250_000),
    check=check,
    presets=dict(
        original=dict(seeker_speed=6.5, trees=6.0, boulders=0.0, walls=0.0),
        watching_pays={
            "reward.sees": 0.0,
            "reward.sees_each": 0.1,
            "reward.catch": 10.0,
            "reward.all_caught": 20.0,
            "reward.none_caught": -5.0,
        },
        seed_final={"reward.hidden": 0.2, "reward.seen": -0.2},
    ),
)
