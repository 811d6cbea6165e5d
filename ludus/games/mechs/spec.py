"""Mechs, declared: spaces, roles, rewards, sizes, parameters, presets."""

from collections.abc import Mapping

from ludus.errors import LudusError
from ludus.games.mechs import maps, observation, voxels
from ludus.games.mechs.bots import defender, hunter, objective
from ludus.games.mechs.classes import KEYS
from ludus.games.mechs.damage import repair, suffer, tend
from ludus.games.mechs.match import EARNED, MOST_DAMAGE, earn, judge, line_up, pay, start
from ludus.games.mechs.movement import jostle, move, spawn
from ludus.games.mechs.projectiles import (
    BURSTS,
    clear_air,
    crumble,
    defend,
    fly_missile,
    fly_shell,
    lose_missile,
)
from ludus.games.mechs.sensing import CONTACTS, look, spot
from ludus.games.mechs.weapons import HIT, aim, disarm, fire, throw_smoke
from ludus.sim import (
    Binary,
    Choice,
    Continuous,
    Game,
    Goal,
    Headline,
    Image,
    Param,
    Role,
    Term,
    f32,
    flag,
    i8,
    i16,
    i32,
    u8,
)

HELD_OUT = 500_000  # first map of evaluation; training banks must end before it


def check(sizes: Mapping[str, int], params: Mapping[str, float]) -> None:
    per_team, world = sizes["per_team"], sizes["world"]
    side = float(maps.spawn_side(per_team))
    need = 2 * side + 2 * maps.SMALLEST_ZONE + 4
    if world < need:
        raise LudusError(
            f"a world of {world} is too small: two starts of {side:.1f} metres for {per_team} "
            "mechs each and a zone of radius "
            f"{maps.SMALLEST_ZONE:.0f} need {need:.0f}: use a larger world or fewer mechs"
        )
    first, last = sizes["first_map"], sizes["first_map"] + sizes["maps"] - 1
    if first < HELD_OUT <= last:
        raise LudusError(
            f"maps {first} to {last} reach into those held out for evaluation, which begin at "
            f"{HELD_OUT}: "
            f"use first_map at most {HELD_OUT - sizes['maps']}"
        )


GAME = Game(
    name="mechs",
    summary="two teams of mechs fight over a zone in a world of voxels",
    sizes=dict(
        per_team=10, world=100, height=20, maps=8, first_map=0, message=8, view=observation.VIEW
    ),
    size_limits=dict(
        per_team=(1, 20),
        world=(24, voxels.LARGEST),
        height=(16, 30),
        maps=(1, 4096),
        first_map=(0, 1_000_000),
        message=(0, observation.LONGEST_MESSAGE),
        view=(observation.VIEW, observation.VIEW),
    ),
    roles=[Role("mech", count="per_team", teams=2)],
    state=dict(
        # the bank of maps
        bank_solid=i32("maps", "world", "world", shared=True),
        bank_opaque=i32("maps", "world", "world", shared=True),
        bank_breakable=i32("maps", "world", "world", shared=True),
        bank_strength=u8("maps", "world", "world", shared=True),
        bank_floor=u8("maps", "world", "world", shared=True),
        bank_ground=i8("maps", "world", "world", shared=True),
        bank_top=i8("maps", "world", "world", shared=True),
        bank_stand=i8("maps", "world", "world", shared=True),
        bank_distance=i16("maps", "world", "world", shared=True),
        bank_queue=i32("maps", "world", "world", shared=True),
        bank_zone=f32("maps", 3, shared=True),
        bank_way=f32("maps", maps.WAYS, 2, shared=True),
        bank_brush=f32("maps", maps.MOST_BRUSHES, maps.BRUSH, shared=True),
        bank_coarse=f32("maps", maps.COARSE, maps.COARSE, shared=True),
        kind=i8("agents", shared=True),
        # this env's map, and what is damaged of it
        chart=i32(),
        patch_key=i16(voxels.SLOTS),
        patch_solid=i32(voxels.SLOTS),
        patch_opaque=i32(voxels.SLOTS),
        patch_debris=i32(voxels.SLOTS),
        patch_wear=f32(voxels.SLOTS),
        touched=u8(voxels.TILES, voxels.TILES),
        patches=i32(),
        # bodies
        position=f32("agents", 3),
        velocity=f32("agents", 3),
        yaw=f32("agents"),
        facing=f32("agents", 2),
        fall=f32("agents"),
        grounded=flag("agents"),
        jetting=f32("agents"),
        push=f32("agents", 2),
        hp=f32("agents"),
        legs=f32("agents"),
        heat=f32("agents"),
        shut=flag("agents"),
        stability=f32("agents"),
        down=f32("agents"),
        suppressed=f32("agents"),
        painted=f32("agents"),
        wreck=flag("agents"),
        # weapons
        target=i8("agents"),
        cooldown=f32("agents", KEYS),
        hit=f32("agents", HIT),
        missile=f32("agents", 3),
        missile_from=f32("agents", 3),
        missile_left=f32("agents"),
        missile_target=i8("agents"),
        shell=f32("agents", 6),
        shell_left=f32("agents"),
        burst=f32("agents", BURSTS, 3),
        burst_live=flag("agents", BURSTS),
        smoke=f32("agents", 3),
        smoke_left=f32("agents"),
        defence_wait=f32("agents"),
        intercepts=i8("agents"),
        # who did what to whom
        harm=f32("agents", "agents"),
        harmed=flag("agents", "agents"),
        killed=flag("agents"),
        killer=i8("agents"),
        earned=f32("agents", EARNED),
        # sensing and talking
        line=flag("agents", "agents"),
        ecm=flag("agents"),
        eccm=flag("agents"),
        quality=f32("agents"),
        contact=i8("agents", CONTACTS),
        contact_distance=f32("agents", CONTACTS),
        said=f32("agents", "message"),
        seen_occupancy=u8("agents", "view", "view"),
        # the match
        score=f32(2),
        tick=f32(2),
        left=i32(2),
        potential=f32("agents"),
    ),
    params=dict(
        max_steps=Param(
            240, 2, 10_000, "decisions of a quarter of a second until the match is decided by score"
        ),
        team_share=Param(
            0.3, 0.0, 1.0, "share of what an agent earns that is the mean over its team"
        ),
        sight_range=Param(40.0, 1.0, 200.0, "metres a mech can see"),
    ),
    observation=observation.NAMES,
    seen=dict(occupancy=Image()),
    action=dict(
        forward=Continuous(),
        strafe=Continuous(),
        vertical=Continuous(),
        turn=Continuous(),
        message=Continuous(size="message"),
        primary=Binary(masked=True),
        secondary=Binary(masked=True),
        tertiary=Binary(masked=True),
        special=Binary(masked=True),
        vent=Binary(masked=True),
        ewar=Binary(masked=True),
        target=Choice(("none", *(f"contact{i}" for i in range(CONTACTS))), masked=True),
    ),
    rewards=dict(
        zone=Term(
            "progress",
            0.10,
            most="max_steps",
            help="each decision, by how far the team holds the zone",
        ),
        approach=Term(
            "potential", 0.25, most=1, least=-1, help="1 from a world away into the zone, and back"
        ),
        damage=Term(
            "progress", 0.005, most=MOST_DAMAGE, help="for every hit point taken from a foe"
        ),
        kill=Term("progress", 1.0, most="per_team", help="for every foe destroyed"),
        assist=Term(
            "progress",
            0.5,
            most="per_team",
            help="for every foe destroyed by a mate that it damaged or painted",
        ),
        death=Term("cost", -0.5, most=1),
        win=Term(
            "goal",
            20.0,
            most=1,
            least=-1,
            help="1 for the team that wins, -1 for the one that loses",
        ),
    ),
    goal_metrics=dict(
        win=Goal("1 if its team won (a draw is no win)", share=True),
        draw=Goal("1 if neither team won", higher_is_better=False, share=True),
        zone_share=Goal("its team's share of the zone score", share=True),
        survival=Goal("1 if it was not destroyed", share=True),
    ),
    headline=Headline("win", against="bot:objective"),
    setup=[maps.enlist, maps.draw, maps.build, maps.level, maps.route, maps.survey],
    step=[
        aim,
        fire,
        throw_smoke,
        fly_missile,
        fly_shell,
        defend,
        lose_missile,
        crumble,
        suffer,
        jostle,
        move,
        tend,
        earn,
        judge,
        pay,
        look,
        spot,
        *observation.PHASES,
    ],
    reset=[
        maps.pick,
        voxels.mend,
        spawn,
        repair,
        disarm,
        clear_air,
        start,
        line_up,
        look,
        spot,
        *observation.PHASES,
    ],
    bots=dict(mech=[objective, hunter, defender]),
    held_out=dict(first_map=HELD_OUT, maps=256),
    validation=dict(first_map=HELD_OUT + 100_000),
    check=check,
    presets=dict(
        small=dict(per_team=2, world=32, max_steps=120),
    ),
)
