"""Mechs against what its rules say: maps, bodies, weapons and the match by hand, and each mistake
of the original as a test."""

import functools
import math
from collections import deque

import numpy as np
import pytest

import ludus
from ludus.errors import LudusError
from ludus.games.mechs import bots, maps, voxels
from ludus.games.mechs.classes import (
    DISSIPATION,
    GUNS,
    HALF,
    HEAT_CAP,
    HEAVY,
    LIGHT,
    MAX_HP,
    MEDIUM,
    SCOUT,
    SPECIAL,
    SPEED,
    TALL,
    TONS,
    TURN,
    class_of,
)
from ludus.games.mechs.observation import CLOSED, FREE, HIDDEN, HURTS, NAMES, SHALLOW
from ludus.games.mechs.spec import GAME, HELD_OUT
from ludus.games.mechs.weapons import NOBODY
from ludus.sim import Batch
from ludus.sim.layout import Layout

ENTRY = {name: i for i, name in enumerate(NAMES)}
STEP = 0.25
MINE, MATE, FOE, FOE_2 = range(4)  # agents of a match of two against two
KEYS = ("primary", "secondary", "tertiary", "special", "vent", "ewar")
GROUND = 1.0


@functools.cache
def made(num_envs, overrides) -> Batch:
    """Made once: what a test leaves behind is gone with the reset, or the reset forgets
    something."""
    return Batch(GAME, num_envs, preset="small", overrides={"maps": 1, **dict(overrides)})


def flat(kinds=(MEDIUM, LIGHT, MEDIUM, LIGHT), num_envs=1, **overrides) -> Batch:
    """An empty plain of 32 x 32 with a zone of radius 4 in the middle; everybody far from
    everybody, acting not at all.

    One batch serves all: the last one made is the one in play.
    """
    batch = made(num_envs, tuple(overrides.items()))
    batch["kind"][...] = kinds
    for name, value in dict(
        solid=1, opaque=1, breakable=0, strength=0, floor=0, ground=1, top=1, stand=1, distance=1
    ).items():
        batch[f"bank_{name}"][...] = value
    batch.reset()
    for env in range(num_envs):
        for agent, (x, z) in enumerate([(3, 3), (3, 29), (29, 29), (29, 3)]):
            stand(batch, agent, x, z, env=env)
    still(batch)
    batch.step()
    return batch


def stand(batch, agent, x, z, y=GROUND, yaw=0.0, env=0):
    batch["position"][env, agent] = x, y, z
    batch["yaw"][env, agent] = yaw
    batch["facing"][env, agent] = math.cos(yaw), math.sin(yaw)


def still(batch):
    batch["continuous"][...] = 0.0
    batch["binary"][...] = 0
    batch["choices"][...] = 0


def act(batch, agent=MINE, env=0, **actions):
    still(batch)
    for name, value in actions.items():
        batch[f"action_{name}"][env, agent] = value
    batch.step()


def slot_of(batch, agent, other, env=0):
    """The value of action_target that chooses another mech."""
    return batch["contact"][env, agent].tolist().index(other) + 1


def fire(batch, agent, other, *keys, env=0, **actions):
    act(
        batch,
        agent,
        env,
        target=slot_of(batch, agent, other, env),
        **dict.fromkeys(keys, 1),
        **actions,
    )


def observed(batch, agent, name, env=0):
    return float(batch["observation"][env, agent, ENTRY[name]])


def column(batch, x, z, solid=0, opaque=0, breakable=0, strength=0, floor=0):
    """Puts voxels on the ground of a column, as masks from the ground up."""
    batch["bank_solid"][0, x, z] = 1 | solid << 1
    batch["bank_opaque"][0, x, z] = 1 | opaque << 1
    batch["bank_breakable"][0, x, z] = breakable << 1
    batch["bank_strength"][0, x, z] = strength
    batch["bank_floor"][0, x, z] = floor


def wall(batch, x, solid=0b1111, opaque=0b1111, **more):
    for z in range(32):
        column(batch, x, z, solid, opaque, **more)


# -- maps ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bank() -> Batch:
    return Batch(GAME, 1, overrides=dict(maps=24))


BANK_FIELDS = (
    "solid",
    "opaque",
    "breakable",
    "strength",
    "floor",
    "ground",
    "top",
    "stand",
    "distance",
    "coarse",
)


def test_maps_are_the_same_from_both_sides_hit_points_too(bank):
    """The original moved blocks when it mirrored a map, and left their hit points behind."""
    for name in BANK_FIELDS:
        field = bank[f"bank_{name}"]
        assert np.array_equal(field, field[:, ::-1, ::-1]), name
    assert len(np.unique(bank["bank_strength"])) > 5
    breakable = bank["bank_breakable"] != 0
    # whatever can break has hit points, on both sides
    assert ((bank["bank_strength"] > 0) >= breakable).all()


def test_every_start_reaches_the_zone_on_level_ground(bank):
    """Walked here once more, by a flood of our own: steps of at most one layer, for a mech on 5 x 5
    columns and one on 1."""
    for chart in range(6):
        solid, floor = bank["bank_solid"][chart], bank["bank_floor"][chart]
        tops = np.vectorize(lambda mask: int(mask).bit_length())(solid)
        padded = np.pad(tops, 2)
        stands = np.max([padded[i : i + 100, j : j + 100] for i in range(5) for j in range(5)], 0)
        reached, queue = {(50, 50)}, deque([(50, 50)])
        while queue:
            x, z = queue.popleft()
            for nx, nz in ((x + 1, z), (x - 1, z), (x, z + 1), (x, z - 1)):
                inside = 0 <= nx < 100 and 0 <= nz < 100 and (nx, nz) not in reached
                level = (
                    inside
                    and max(abs(stands[nx, nz] - stands[x, z]), abs(tops[nx, nz] - tops[x, z])) <= 1
                )
                if level and floor[nx, nz] != voxels.MOLTEN:
                    reached.add((nx, nz))
                    queue.append((nx, nz))
        starts = bank["position"][0][:, (0, 2)].astype(int).tolist()
        assert all((x, z) in reached for x, z in starts)
        assert {
            (x, z) for x, z in np.argwhere(bank["bank_distance"][chart] < maps.UNREACHED).tolist()
        } == reached
        for x, z in bank["bank_way"][chart].astype(int).tolist():
            assert (x, z) in reached  # the main lane and both flanks


def test_zones_and_materials_vary(bank):
    radius = bank["bank_zone"][:, 2]
    assert radius.min() >= 4 and radius.max() <= 11 and np.ptp(radius) > 4
    assert (bank["bank_zone"][:, :2] == 50).all()
    found = set()
    for chart, x, z in np.argwhere(bank["bank_solid"] >= 0)[::7].tolist():
        fields = [int(bank[f"bank_{n}"][chart, x, z]) for n in ("solid", "opaque", "breakable")]
        floor, ground = int(bank["bank_floor"][chart, x, z]), int(bank["bank_ground"][chart, x, z])
        found |= {voxels.material(*fields, 0, floor, ground, y) for y in range(20)}
    assert found == {
        voxels.AIR,
        voxels.SOLID,
        voxels.ROCK,
        voxels.GLASS,
        voxels.FOLIAGE,
        voxels.LAVA,
        voxels.WATER,
    }
    assert voxels.material(0b111, 0b111, 0b110, 0b100, 0, 1, 2) == voxels.DEBRIS


def test_held_out_maps_are_others_and_training_cannot_reach_them(bank):
    assert GAME.held_out == {"first_map": HELD_OUT, "maps": 256}
    held_out = Batch(GAME, 1, overrides={**GAME.held_out, "maps": 8})
    assert not {m.tobytes() for m in bank["bank_solid"]} & {
        m.tobytes() for m in held_out["bank_solid"]
    }
    GAME.resolve(dict(maps=100, first_map=HELD_OUT - 100))
    with pytest.raises(LudusError, match=r"499950 to 500049 reach into.*500000.*at most 499900"):
        GAME.resolve(dict(maps=100, first_map=HELD_OUT - 50))
    with pytest.raises(
        LudusError, match=r"game.first_map=500000 is held out for evaluation.*below 500,000"
    ):
        ludus.train("mechs_2v2", quiet=True, **{"game.first_map": HELD_OUT})


def test_each_episode_picks_a_map_and_the_bank_stays():
    batch = Batch(GAME, 64, preset="small", overrides=dict(maps=4))
    before = batch["bank_solid"].copy()
    assert set(batch["chart"].tolist()) == {0, 1, 2, 3}
    batch.reset()
    assert np.array_equal(before, batch["bank_solid"]) and set(batch["chart"].tolist()) == {
        0,
        1,
        2,
        3,
    }


def test_a_pack_is_one_heavy_five_mediums_three_lights_and_a_scout(bank):
    for team in bank["kind"].reshape(2, 10):
        assert np.bincount(team, minlength=4).tolist() == [1, 3, 5, 1]
    assert [class_of(i, 2) for i in range(4)] == [MEDIUM, LIGHT, MEDIUM, LIGHT]
    assert [class_of(i, 20) for i in range(10, 20)] == [class_of(i, 20) for i in range(10)]


# -- bodies ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [SCOUT, LIGHT, MEDIUM, HEAVY])
def test_speed_and_turn_of_each_class(kind):
    batch = flat((kind, LIGHT, MEDIUM, LIGHT))
    stand(batch, MINE, 16, 16, yaw=0.5)
    act(batch, forward=1.0)
    assert batch["velocity"][0, MINE, (0, 2)] == pytest.approx(
        SPEED[kind] * np.array([math.cos(0.5), math.sin(0.5)]), rel=1e-3
    )
    act(batch, forward=-1.0, strafe=1.0)  # diagonally no faster
    assert np.hypot(*batch["velocity"][0, MINE, (0, 2)]) == pytest.approx(SPEED[kind], rel=1e-3)
    act(batch, turn=-1.0)
    assert batch["yaw"][0, MINE] == pytest.approx(0.5 - TURN[kind] * STEP, rel=1e-4)


def test_water_slows_and_cools_lava_burns_and_missing_legs_slow():
    batch = flat()
    batch["heat"][0, :] = 50.0
    stand(batch, MINE, 10.5, 16.5)
    for x in range(8, 14):
        for z in range(14, 19):
            column(batch, x, z, floor=voxels.WET)
    act(batch, forward=1.0)
    assert batch["velocity"][0, MINE, 0] == pytest.approx(5.5 * 0.6, rel=1e-3)
    assert batch["heat"][0, MINE] == pytest.approx(50 - (11 + 30) * STEP, rel=1e-4)
    assert observed(batch, MINE, "in_water") == 1.0 and observed(batch, MINE, "in_lava") == 0.0
    batch["legs"][0, MINE] = 0.0
    act(batch, forward=1.0)
    assert batch["velocity"][0, MINE, 0] == pytest.approx(5.5 * 0.6 * 0.4, rel=1e-3)
    assert observed(batch, MINE, "legged") == 1.0
    batch["bank_floor"][...] = voxels.MOLTEN
    heat = float(batch["heat"][0, MINE])
    act(batch)
    assert batch["hp"][0, MINE] == pytest.approx(150 - 5 * STEP)
    assert batch["heat"][0, MINE] == pytest.approx(heat + (40 - 11) * STEP, rel=1e-4)


@pytest.mark.parametrize(("high", "climbs"), [(1, True), (2, False)])
def test_a_step_of_one_is_climbed_and_of_two_is_not(high, climbs):
    batch = flat()
    for x in range(20, 26):
        wall(batch, x, (1 << high) - 1)
    stand(batch, MINE, 17, 16)
    for _ in range(5):
        act(batch, forward=1.0)
    x, y, _ = batch["position"][0, MINE]
    assert (x > 21) == climbs and y == (2.0 if climbs else 1.0)
    assert climbs or 20 - HALF[MEDIUM] - 0.3 < x <= 20 - HALF[MEDIUM]


@pytest.mark.parametrize(("solid", "opaque", "stops"), [(0b1111, 0, True), (0, 0b1111, False)])
def test_glass_stops_a_body_and_foliage_does_not(solid, opaque, stops):
    batch = flat()
    wall(batch, 20, solid, opaque)
    stand(batch, MINE, 17, 16)
    for _ in range(5):
        act(batch, forward=1.0)
    assert (batch["position"][0, MINE, 0] < 19) == stops


def test_jets_lift_the_light_classes_only():
    batch = flat((LIGHT, MEDIUM, MEDIUM, LIGHT))
    act(batch, MINE, vertical=1.0)
    rises = (16 - 9.81) * 0.05
    assert batch["position"][0, MINE, 1] == pytest.approx(
        GROUND + 0.05 * rises * (1 + 2 + 3 + 4 + 5), rel=1e-3
    )
    assert batch["heat"][0, MINE] == 0.0  # 10 a second, less than it dissipates
    act(batch, MATE, vertical=1.0)
    assert batch["position"][0, MATE, 1] == GROUND and batch["grounded"][0, MATE]


def test_free_fall():
    batch = flat()
    stand(batch, MINE, 16, 16, y=10.0)
    act(batch)
    assert batch["position"][0, MINE, 1] == pytest.approx(10 - 9.81 * 0.05**2 * 15, rel=1e-4)
    for _ in range(8):
        act(batch)
    assert batch["position"][0, MINE, 1] == GROUND and batch["grounded"][0, MINE]


def test_mechs_that_overlap_move_apart():
    batch = flat()
    stand(batch, MINE, 16, 16)
    stand(batch, MATE, 16.5, 16)
    for _ in range(6):
        act(batch)
    assert (
        batch["position"][0, MATE, 0] - batch["position"][0, MINE, 0]
        >= HALF[MEDIUM] + HALF[LIGHT] - 0.01
    )


def overlapping(batch):
    """Mechs that reach into a voxel."""
    fields = [batch[n] for n in ("bank_solid", "patch_solid", "patch_key", "touched")]
    world, kind = batch.settings.sizes["world"], batch["kind"]
    return [
        (env, agent)
        for env in range(batch.num_envs)
        for agent in range(batch.layout.num_agents)
        if voxels.overlaps(
            *fields,
            env,
            batch["chart"][env],
            world,
            HALF[kind[agent]],
            TALL[kind[agent]],
            *batch["position"][env, agent],
        )
    ]


@pytest.mark.parametrize("bot", ["random", "hunter"])
def test_no_mech_ends_inside_a_voxel_or_outside_the_world(bot):
    batch = Batch(GAME, 4, seed=5)
    batch.set_controller("mech", bot)
    batch.reset()
    for i in range(100):
        batch.step()
        p = batch["position"]
        edge = HALF[batch["kind"]][:, None]
        assert (
            (p[..., (0, 2)] >= edge).all()
            and (p[..., (0, 2)] <= 100 - edge).all()
            and (p[..., 1] >= 1.0).all()
        )
        if i % 20 == 0:
            assert not overlapping(batch)


# -- weapons ---------------------------------------------------------------------------------------


def duel(kind=MEDIUM, other=MEDIUM, distance=6.0, **overrides) -> Batch:
    """Mine at (10, 16) looks along x at a foe that looks back."""
    batch = flat((kind, LIGHT, other, LIGHT), **overrides)
    stand(batch, MINE, 10, 16)
    stand(batch, FOE, 10 + distance, 16, yaw=math.pi)
    act(batch)
    return batch


def test_the_laser_follows_the_choice_of_target():
    """In the original the laser hit the nearest, whatever was chosen."""
    for chosen, spared in ((FOE, FOE_2), (FOE_2, FOE)):
        batch = duel()
        stand(batch, FOE_2, 15, 17.5, yaw=math.pi)
        act(batch)
        full = batch["hp"][0].copy()
        fire(batch, MINE, chosen, "primary")
        assert (
            batch["hp"][0, chosen] == full[chosen] - 14 and batch["hp"][0, spared] == full[spared]
        )
        assert batch["target"][0, MINE] == chosen
        assert batch["heat"][0, MINE] == pytest.approx(22 - 11 * STEP)
        assert batch["term_damage"][0].tolist() == pytest.approx(
            [14 * (0.7 + 0.3 / 2), 14 * 0.3 / 2, 0, 0], rel=1e-3
        )
        assert batch["reward"][0, MATE] == pytest.approx(0.005 * 14 * 0.3 / 2, rel=1e-3)
    batch = duel()
    act(batch, primary=1)  # without a target nothing fires
    assert (batch["hp"][0] == MAX_HP[batch["kind"]]).all() and batch["heat"][0, MINE] == 0.0


def test_the_laser_fires_every_six_tenths_of_a_second_and_heats_the_target():
    batch = duel()
    shots = []
    for _ in range(8):
        batch["heat"][0, MINE] = 0.0
        before = float(batch["hp"][0, FOE])
        fire(batch, MINE, FOE, "primary")
        shots.append(round((before - float(batch["hp"][0, FOE])) / 14))
    assert shots == [1, 0, 1, 0, 1, 0, 0, 1]  # at 0, 0.6, 1.2 and 1.8 s
    batch = duel(other=HEAVY)
    fire(batch, MINE, FOE, "primary")
    assert batch["heat"][0, FOE] == pytest.approx(4 - 10 * STEP)


def test_weapons_faster_than_a_decision_fire_more_than_once():
    batch = duel(LIGHT, distance=4.0)
    taken = []
    for _ in range(3):
        before = float(batch["hp"][0, FOE])
        batch["heat"][0, MINE] = 0.0
        fire(batch, MINE, FOE, "secondary")
        taken.append(before - float(batch["hp"][0, FOE]))
    assert taken == [8.0, 8.0, 4.0]  # flames at 0 and 0.15, 0.30 and 0.45, 0.60 s


@pytest.mark.parametrize(
    ("distance", "yaw", "fires"),
    [
        (7.9, 0.0, True),
        (8.3, 0.0, False),
        (6.0, math.radians(58), True),
        (6.0, math.radians(63), False),
    ],
)
def test_range_and_arc_of_the_laser_agree_with_its_mask(distance, yaw, fires):
    batch = duel(distance=distance)
    stand(batch, MINE, 10, 16, yaw=yaw)
    act(batch)
    assert batch["mask_primary"][0, MINE] == fires
    fire(batch, MINE, FOE, "primary")
    assert (batch["hp"][0, FOE] < 150) == fires


def test_rear_hits_count_half_more_and_painted_targets_a_tenth():
    batch = duel()
    stand(batch, FOE, 16, 16, yaw=0.0)  # it looks away
    act(batch)
    fire(batch, MINE, FOE, "primary")
    assert batch["hp"][0, FOE] == 150 - 14 * 1.5
    batch = duel()
    fire(batch, MINE, FOE, "tertiary")
    assert batch["painted"][0, FOE] == 5.0 and batch["hp"][0, FOE] == 150
    fire(batch, MINE, FOE, "primary")
    assert batch["hp"][0, FOE] == pytest.approx(150 - 14 * 1.1)


def test_low_hits_go_to_the_legs_as_long_as_there_are_any():
    batch = duel(LIGHT, HEAVY)  # its muzzle at 1.5 is below 0.4 of the heavy's 4 metres
    fire(batch, MINE, FOE, "primary")
    assert batch["legs"][0, FOE] == 100 - 14 and batch["hp"][0, FOE] == 200
    assert observed(batch, MINE, "contact0_legs") == pytest.approx(0.86)
    batch["legs"][0, FOE] = 0.0
    batch["cooldown"][...] = 0.0
    fire(batch, MINE, FOE, "primary")
    assert batch["hp"][0, FOE] == 200 - 14


def test_too_much_heat_shuts_a_mech_down_until_it_has_cooled():
    batch = duel()
    batch["heat"][0, MINE] = 90.0
    fire(batch, MINE, FOE, "primary")
    assert batch["shut"][0, MINE] and batch["hp"][0, FOE] == 136
    assert (
        not batch["mask_target"][0, MINE, 1:].any()
        and not batch["mask_primary"][0, MINE]
        and batch["mask_vent"][0, MINE]
    )
    batch["cooldown"][...] = 0.0
    fire(batch, MINE, FOE, "primary", forward=1.0)
    assert batch["hp"][0, FOE] == 136 and not batch["velocity"][0, MINE].any()
    steps = 0
    while batch["shut"][0, MINE]:
        act(batch, vent=1)
        steps += 1
    heat = 90 + 22 - 2 * DISSIPATION[MEDIUM] * STEP  # after the two steps before
    assert (
        steps == math.floor((heat - 0.6 * HEAT_CAP[MEDIUM]) / (2 * DISSIPATION[MEDIUM] * STEP)) + 1
    )


def test_a_venting_mech_does_not_fire():
    batch = duel()
    batch["heat"][0, MINE] = 50.0
    fire(batch, MINE, FOE, "primary", "vent")
    assert batch["hp"][0, FOE] == 150 and batch["heat"][0, MINE] == pytest.approx(
        50 - 2 * 11 * STEP
    )


def test_a_fallen_mech_lies_three_seconds_and_does_not_fire():
    """In the original the fallen went on firing."""
    batch = duel()
    batch["stability"][0, MINE] = 0.0
    act(batch)
    assert batch["down"][0, MINE] == 3.0
    assert not batch["mask_primary"][0, MINE] and not batch["mask_target"][0, MINE, 1:].any()
    for step in range(12):
        fire(batch, MINE, FOE, "primary", "secondary", "tertiary", "special", forward=1.0, turn=1.0)
        assert batch["hp"][0, FOE] == 150 and not batch["velocity"][0, MINE].any()
        assert (batch["down"][0, MINE] > 0) == (step < 11)
    assert batch["stability"][0, MINE] == 50.0 and batch["painted"][0, FOE] == 0.0
    fire(batch, MINE, FOE, "primary")
    assert batch["hp"][0, FOE] < 150


def test_the_autocannon_suppresses_and_balance_comes_back_slowly():
    batch = duel(distance=10.0)
    fire(batch, MINE, FOE, "secondary")
    assert batch["hp"][0, FOE] == 150 - 16 and batch["suppressed"][0, FOE] == pytest.approx(1.2)
    # two shots; a quarter of the usual gain
    assert batch["stability"][0, FOE] == pytest.approx(100 - 10 + 10 * 0.25 * STEP)
    batch["suppressed"][...] = 0.0
    act(batch)
    assert batch["stability"][0, FOE] == pytest.approx(90 + 10 * 0.25 * STEP + 10 * STEP)
    act(batch, FOE, forward=1.0)
    assert batch["stability"][0, FOE] == pytest.approx(90 + 10 * 0.25 * STEP + 15 * STEP)


def fly(batch, steps=12):
    for _ in range(steps):
        act(batch)


def test_a_missile_needs_sight_within_twelve_metres_or_paint():
    batch = duel(HEAVY, distance=11.0)
    assert batch["mask_secondary"][0, MINE] and observed(batch, MINE, "lock") == 1.0
    fire(batch, MINE, FOE, "secondary")
    assert batch["heat"][0, MINE] == pytest.approx(45 - 10 * STEP)
    assert observed(batch, FOE, "hunted") == 1.0
    fly(batch)
    assert batch["hp"][0, FOE] == 150 - 40 and batch["missile_left"][0, MINE] == 0.0

    batch = duel(HEAVY, distance=16.0)
    assert not batch["mask_secondary"][0, MINE] and observed(batch, MINE, "lock") == 0.0
    fire(batch, MINE, FOE, "secondary")
    assert batch["missile_left"][0, MINE] == 0.0
    wall(batch, 20)  # nobody sees it any more, but it is painted
    batch["painted"][0, FOE] = 5.0
    act(batch)
    assert not batch["line"][0, MINE, FOE]
    fire(batch, MINE, FOE, "secondary")
    fly(batch)
    assert batch["hp"][0, FOE] == pytest.approx(150 - 40 * 1.1)  # it flew over the wall


def test_friendly_splash_hurts_but_is_no_damage_dealt():
    """The original paid for it."""
    batch = duel(HEAVY, distance=10.0)
    stand(batch, MATE, 20, 17.25 + 0.75 + 1.0)  # a metre from the foe's side
    fire(batch, MINE, FOE, "secondary")
    paid = np.zeros(4)
    for _ in range(12):
        stand(batch, MATE, 20, 19.0)
        act(batch)
        paid += batch["term_damage"][0] + batch["term_kill"][0]
    assert batch["hp"][0, FOE] == 110 and batch["hp"][0, MATE] < 80
    assert paid == pytest.approx([40 * 0.85, 40 * 0.15, 0, 0])
    assert not batch["harmed"][0, MATE].any() and batch["harmed"][0, FOE].tolist() == [
        True,
        False,
        False,
        False,
    ]


def test_a_shell_flies_ballistically_into_what_comes_first():
    batch = duel(HEAVY, distance=15.0)
    fire(batch, MINE, FOE, "tertiary")
    assert (
        batch["hp"][0, FOE] == 150
        and batch["shell_left"][0, MINE] > 0
        and observed(batch, MINE, "shell_flies") == 1.0
    )
    act(batch)
    assert batch["hp"][0, FOE] == 100 and batch["stability"][0, FOE] == pytest.approx(40, abs=3)
    batch = duel(HEAVY, distance=15.0)
    fire(batch, MINE, FOE, "tertiary")
    wall(batch, 21)
    act(batch)
    assert batch["hp"][0, FOE] == 150 and batch["shell_left"][0, MINE] == 0.0


def test_point_defence_stops_three_missiles_in_five():
    batch = flat((HEAVY, LIGHT, HEAVY, LIGHT), num_envs=256)
    for env in range(256):
        stand(batch, MINE, 8, 16, env=env)
        stand(batch, FOE, 18, 16, yaw=math.pi, env=env)
    still(batch)
    batch.step()
    batch["action_target"][:, MINE] = 1
    batch["action_secondary"][:, MINE] = 1
    batch.step()
    still(batch)
    for _ in range(6):
        batch.step()
    stopped = (batch["hp"][:, FOE] == 200).mean()
    assert stopped == pytest.approx(0.6, abs=0.1)


def test_smoke_blocks_sight_for_ten_seconds():
    batch = duel(distance=14.0)
    assert batch["line"][0, MINE, FOE]
    act(batch, special=1)
    assert batch["smoke"][0, MINE].tolist() == [16.0, 2.0, 16.0] and not batch["line"][0, MINE, FOE]
    assert not batch["mask_special"][0, MINE]
    for _ in range(40):
        assert not batch["line"][0, MINE, FOE]
        act(batch)
    assert batch["line"][0, MINE, FOE]


# -- voxels that break -----------------------------------------------------------------------------


def burst_at(batch, x, y, z):
    """A missile of mine that bursts here in this step: its target has just become a wreck."""
    batch["missile"][0, MINE] = x, y, z
    batch["missile_left"][0, MINE] = 1.0
    batch["missile_target"][0, MINE] = FOE
    batch["wreck"][0, FOE] = True
    act(batch)


def masks(batch, x, z):
    """The solid and the opaque voxels of a column, as they are now."""
    patches = batch["patch_key"], batch["touched"], 0, 0, x, z
    return [
        int(voxels.column(batch[f"bank_{name}"], batch[f"patch_{name}"], *patches))
        for name in ("solid", "opaque")
    ]


def test_a_voxel_breaks_into_debris_then_into_air_and_mends_with_the_episode():
    batch = flat()
    column(batch, 16, 8, 0b11, 0b11, breakable=0b11, strength=60)
    burst_at(batch, 16.5, 1.5, 8.5)
    # 40 in the middle, 20 above: 60 gathered
    assert masks(batch, 16, 8) == [0b111, 0b111] and batch["patches"][0] == 1
    slot = int(np.flatnonzero(batch["patch_key"][0])[0])
    assert int(batch["patch_debris"][0, slot]) == 0b100 and batch["patch_wear"][0, slot] == 0.0
    burst_at(batch, 16.5, 2.5, 8.5)
    assert masks(batch, 16, 8) == [0b011, 0b011]  # debris has half the hit points
    assert int(batch["bank_solid"][0, 16, 8]) == 0b111
    batch.reset()
    assert (
        masks(batch, 16, 8) == [0b111, 0b111]
        and batch["patches"][0] == 0
        and not batch["touched"].any()
    )


def test_glass_breaks_at_once_and_rock_never():
    batch = flat()
    column(batch, 16, 8, 0b1, 0, breakable=0b1, strength=20)
    column(batch, 20, 8, 0b1, 0b1)
    burst_at(batch, 16.5, 1.5, 8.5)
    burst_at(batch, 20.5, 1.5, 8.5)
    assert masks(batch, 16, 8) == [1, 1] and masks(batch, 20, 8) == [0b11, 0b11]


def test_a_full_table_breaks_no_more_and_loses_nothing():
    batch = flat()
    for x in range(32):
        for z in range(32):
            column(batch, x, z, 0b1, 0b1, breakable=0b1, strength=10)
    for x in range(1, 31, 2):
        for z in range(1, 31, 3):
            burst_at(batch, x + 0.5, 1.5, z + 0.5)
            batch["step"][...] = 5
            batch["hp"][...] = 50.0
    keys = batch["patch_key"][0]
    assert batch["patches"][0] == voxels.MOST_PATCHES == len(set(keys[keys > 0].tolist()))
    gone = sum(masks(batch, x, z)[0] == 1 for x in range(32) for z in range(32))
    # each is found again, and no other column is broken
    assert gone == (batch["patch_solid"][0][keys > 0] == 1).sum() > 0


# -- sensing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("solid", "opaque", "seen"), [(0b1111, 0b1111, False), (0b1111, 0, True), (0, 0b1111, False)]
)
def test_walls_and_foliage_block_sight_and_glass_does_not(solid, opaque, seen):
    batch = duel(distance=18.0)
    wall(batch, 20, solid, opaque)
    act(batch)
    assert batch["line"][0, MINE, FOE] == seen
    assert (FOE in batch["contact"][0, MINE]) == seen and (MINE in batch["contact"][0, FOE]) == seen


def test_radar_paint_and_heat_reach_behind_walls():
    batch = duel(distance=13.5)
    wall(batch, 20)
    act(batch)
    assert batch["contact"][0, MINE, 0] == FOE and observed(batch, MINE, "contact0_in_line") == 0.0
    for field, value in (("painted", 5.0), ("heat", 75.0)):
        batch = duel(distance=18.0)
        wall(batch, 20)
        act(batch)
        assert FOE not in batch["contact"][0, MINE]
        batch[field][0, FOE] = value
        act(batch)
        assert FOE in batch["contact"][0, MINE], field


def test_jamming_and_its_counter():
    batch = duel(MEDIUM, SCOUT, distance=10.0)
    assert batch["quality"][0, MINE] == 1.0
    act(batch, FOE, ewar=1)
    assert batch["quality"][0, MINE] == pytest.approx(
        1 - 0.85 * (1 - math.hypot(10, 0) / 50), rel=1e-4
    )
    assert batch["ecm"][0, FOE] and batch["quality"][0, FOE] == 1.0
    assert batch["heat"][0, FOE] == 0.0  # 3 a second, less than it dissipates
    batch = duel(SCOUT, SCOUT, distance=10.0)
    still(batch)
    batch["action_ewar"][0, FOE] = 1
    batch["action_secondary"][0, MINE] = 1
    batch.step()
    assert batch["eccm"][0, MINE] and batch["quality"][0, MINE] == pytest.approx(
        1 - 0.85 * 0.8 + 0.65, rel=1e-4
    )
    batch = duel(MEDIUM, MEDIUM)
    act(batch, ewar=1)
    assert not batch["ecm"].any() and not batch["mask_ewar"].any()  # only scouts carry it


def test_contacts_are_the_nearest_foes_then_friends():
    batch = duel(distance=9.0)
    stand(batch, FOE_2, 10, 12)
    stand(batch, MATE, 12, 16)
    act(batch)
    assert batch["contact"][0, MINE].tolist() == [FOE_2, FOE, MATE, NOBODY, NOBODY]
    assert batch["mask_target"][0, MINE].tolist() == [True, True, True, False, False, False]
    assert [observed(batch, MINE, f"contact{i}_foe") for i in range(5)] == [1, 1, 0, 0, 0]
    assert [observed(batch, MINE, f"contact{i}_valid") for i in range(5)] == [1, 1, 1, 0, 0]
    assert observed(batch, MINE, "contact1_ahead") == pytest.approx(9 / 50)
    assert observed(batch, MINE, "contact0_right") == pytest.approx(-4 / 50)
    act(batch, target=3)  # a friend is no target, whatever the mask was
    assert batch["target"][0, MINE] == NOBODY


# -- the match -------------------------------------------------------------------------------------


def test_the_zone_is_scored_by_margin_of_tons():
    batch = flat()
    stand(batch, MINE, 14, 16)
    act(batch)
    assert batch["tick"][0].tolist() == [1.0, 0.0] and batch["score"][0].tolist() == [0.25, 0.0]
    assert (
        batch["term_zone"][0].tolist() == [1, 1, 0, 0] and observed(batch, FOE, "foe_tick") == 1.0
    )
    stand(batch, FOE_2, 18, 16)
    act(batch)
    medium, light = float(TONS[MEDIUM]), float(TONS[LIGHT])
    assert batch["tick"][0, 0] == pytest.approx((medium - light) / (medium + light))
    stand(batch, MATE, 16, 18.5)
    stand(batch, FOE, 16, 13.5)
    act(batch)
    assert batch["tick"][0].tolist() == [0.0, 0.0]


def test_half_the_episodes_seconds_of_score_win():
    batch = flat(max_steps=20)
    stand(batch, FOE, 16, 16)
    for _ in range(9):
        act(batch)
        assert not batch["terminated"][0]
    act(batch)
    assert batch["terminated"][0] and batch["outcome"][0].tolist() == [-1, -1, 1, 1]
    assert batch["term_win"][0].tolist() == [-1, -1, 1, 1] and batch["goal_win"][0].tolist() == [
        0,
        0,
        1,
        1,
    ]
    assert batch["reward"][0, FOE] == pytest.approx(20.1) and batch["reward"][
        0, MINE
    ] == pytest.approx(-20)
    assert batch["goal_zone_share"][0].tolist() == [0, 0, 1, 1] and not batch["goal_draw"].any()


@pytest.mark.parametrize(
    ("hp", "score", "outcome"), [(100, 0, 0), (101, 0, 1), (99, 0, -1), (99, 1, 1)]
)
def test_time_is_decided_by_score_then_hit_points_and_a_draw_is_no_win(hp, score, outcome):
    batch = flat()
    batch["hp"][0] = hp, 80, 100, 80
    batch["score"][0] = 2 + score, 2
    batch["step"][...] = 119
    act(batch)
    assert batch["terminated"][0] and not batch["truncated"][0]  # the time left is observed
    assert batch["outcome"][0].tolist() == [outcome, outcome, -outcome, -outcome]
    assert batch["goal_win"][0, MINE] == (outcome > 0) and batch["goal_draw"][0, MINE] == (
        outcome == 0
    )
    assert observed(batch, MINE, "time_left") == 0.0


def destroy(batch, victim, shooter=MINE):
    """Leaves the victim a hit point, and the shooter fires."""
    batch["hp"][0, victim] = 1.0
    batch["cooldown"][...] = 0.0
    fire(batch, shooter, victim, "primary")


def test_a_death_ends_nothing_but_its_own_decisions():
    """The original ended the episode for all at the first death, and kept the dead in the loss."""
    batch = duel()
    destroy(batch, FOE)
    assert batch["wreck"][0, FOE] and not batch["finished"][0] and batch["valid"][0, FOE]
    assert batch["term_death"][0].tolist() == pytest.approx([0, 0, 0.85, 0.15])
    assert batch["term_kill"][0].tolist() == pytest.approx([0.85, 0.15, 0, 0])
    assert batch["term_damage"][0, MINE] == pytest.approx(0.85)  # one hit point was left to take
    for _ in range(5):
        act(batch)
        assert batch["valid"][0].tolist() == [True, True, False, True] and not batch["finished"][0]
        assert batch["reward"][0, FOE] == 0.0
    assert FOE not in batch["contact"][0, MINE] and batch["goal_survival"][0].tolist() == [
        1,
        1,
        0,
        1,
    ]
    assert observed(batch, FOE_2, "own_left") == 0.5
    stand(batch, FOE_2, 15, 16)
    act(batch)
    destroy(batch, FOE_2)
    assert batch["terminated"][0] and batch["outcome"][0].tolist() == [1, 1, -1, -1]
    # a wreck still loses with its team: dying is no way out
    assert batch["reward"][0, FOE] == pytest.approx(-20)
    batch.step()
    assert batch["resetting"][0] and not batch["wreck"].any() and not batch["idle"].any()


def test_a_wreck_neither_moves_nor_fires_nor_counts():
    batch = duel()
    destroy(batch, FOE)
    stand(batch, FOE, 16, 16)
    before = batch["position"][0, FOE].copy()
    act(batch, FOE, forward=1.0, primary=1, special=1, target=1, message=1.0)
    assert np.array_equal(batch["position"][0, FOE], before) and batch["tick"][0, 1] == 0.0
    assert (
        batch["smoke_left"][0, FOE] == 0.0
        and batch["hp"][0, MINE] == 150
        and not batch["said"][0, FOE].any()
    )


def test_an_assist_is_paid_once_per_kill():
    """In the original every hit paid one."""
    batch = duel(team_share=0.0)
    stand(batch, MATE, 13, 16)
    act(batch)
    total = np.zeros(4)
    for _ in range(4):
        batch["heat"][...] = 0.0
        fire(batch, MATE, FOE, "primary")
        total += batch["term_assist"][0]
    assert not total.any()  # hits alone pay no assist
    destroy(batch, FOE)
    total += batch["term_assist"][0]
    for _ in range(4):
        act(batch)
        total += batch["term_assist"][0]
    assert (
        total.tolist() == [0, 1, 0, 0]
        and batch["term_totals"][0, MINE, list(GAME.rewards).index("kill")] == 1.0
    )


def test_teams_that_destroy_each_other_are_judged_by_score():
    batch = duel()
    batch["wreck"][0, [MATE, FOE_2]] = True
    batch["score"][0] = 1.0, 2.0
    batch["hp"][0, [MINE, FOE]] = 1.0
    still(batch)
    for agent, other in ((MINE, FOE), (FOE, MINE)):
        batch["action_target"][0, agent] = slot_of(batch, agent, other)
        batch["action_primary"][0, agent] = 1
    batch.step()
    assert batch["wreck"].all() and batch["outcome"][0].tolist() == [-1, -1, 1, 1]


def test_approach_is_a_potential():
    batch = flat()
    total = 0.0
    stand(batch, MINE, 3, 16)
    act(batch)
    for forward in (1.0, 1.0, -1.0, 1.0, 1.0, 1.0):
        act(batch, forward=forward)
        total += float(batch["term_approach"][0, MINE])
    moved = float(batch["position"][0, MINE, 0]) - 3.0
    assert moved == pytest.approx(4 * 5.5 * STEP, rel=1e-3) and total == pytest.approx(
        moved / 32, rel=1e-3
    )


# -- observations ----------------------------------------------------------------------------------


def test_both_teams_see_the_same_from_mirrored_places():
    batch = Batch(GAME, 8, seed=3, preset="small")
    batch["position"][:, 2:, 0] = 32 - batch["position"][:, :2, 0]
    batch["position"][:, 2:, 2] = 32 - batch["position"][:, :2, 2]
    batch["yaw"][:, 2:] = batch["yaw"][:, :2] - np.float32(math.pi)
    batch["facing"][:, 2:] = -batch["facing"][:, :2]
    rng = np.random.default_rng(0)
    for _ in range(12):
        still(batch)
        batch["continuous"][:, :2] = rng.uniform(-1, 1, (8, 2, 12))
        batch["action_forward"][:, :2] = 1.0
        batch["continuous"][:, 2:] = batch["continuous"][:, :2]
        batch.step()
    assert batch["line"].any() and batch["observation"][:, 2:] == pytest.approx(
        batch["observation"][:, :2], abs=2e-3
    )
    assert (batch["seen_occupancy"][:, 2:] == batch["seen_occupancy"][:, :2]).mean() > 0.99


def test_messages_are_heard_in_the_next_observation_by_the_pack_only():
    batch = Batch(GAME, 1, overrides=dict(per_team=20, maps=1))
    still(batch)
    spoken = np.linspace(-1, 1, 8, dtype=np.float32)
    batch["action_message"][0, 3] = spoken
    batch.step()
    heard = {
        (agent, slot)
        for agent in range(40)
        for slot in range(9)
        if np.allclose([observed(batch, agent, f"mate{slot}_message{i}") for i in range(8)], spoken)
    }
    assert heard == {(0, 2), (1, 2), (2, 2), *((agent, 3) for agent in range(4, 10))}
    assert observed(batch, 0, "mate2_valid") == 1.0 and observed(batch, 25, "mate8_valid") == 1.0
    still(batch)
    batch.step()
    assert observed(batch, 0, "mate2_message0") == 0.0


def test_a_message_of_size_0_means_no_messages():
    batch = Batch(
        GAME, 1, preset="small", overrides=dict(message=0, maps=1, per_team=1, world=24), jit=False
    )
    assert len(batch.layout.continuous) == 4 and batch["said"].shape == (1, 2, 0)
    batch.step()
    assert np.isfinite(batch["observation"]).all()


def test_small_teams_leave_mate_slots_empty():
    batch = flat()
    valid = [observed(batch, MINE, f"mate{i}_valid") for i in range(9)]
    assert valid == [1, 0, 0, 0, 0, 0, 0, 0, 0]
    assert observed(batch, MINE, "mate0_right") == pytest.approx(26 / 50)


@pytest.mark.parametrize("yaw", [0.0, math.pi / 2, math.pi])
def test_the_occupancy_map_turns_with_the_mech_and_shows_glass(yaw):
    """Glass was invisible in the original's map."""
    batch = flat()
    stand(batch, MINE, 16.5, 16.5, yaw=yaw)
    ahead, right = (
        (round(math.cos(yaw)), round(math.sin(yaw))),
        (-round(math.sin(yaw)), round(math.cos(yaw))),
    )

    def cell(forward, sideways):
        return 16 + forward * ahead[0] + sideways * right[0], 16 + forward * ahead[
            1
        ] + sideways * right[1]

    column(batch, *cell(4, 0), solid=0b11, opaque=0)  # glass
    column(batch, *cell(0, 3), solid=0b11, opaque=0b11)
    column(batch, *cell(2, 2), solid=0b1, opaque=0b1)  # a step
    column(batch, *cell(-3, 0), opaque=0b11)  # foliage
    column(batch, *cell(0, -4), floor=voxels.MOLTEN)
    column(batch, *cell(-2, -2), floor=voxels.WET)
    act(batch)
    seen = batch["seen_occupancy"][0, MINE]
    assert seen[1, 5] == CLOSED and seen[5, 8] == CLOSED and seen[3, 7] == FREE
    assert seen[8, 5] == HIDDEN and seen[5, 1] == HURTS and seen[7, 3] == SHALLOW
    assert (seen != FREE).sum() == 5
    stand(batch, MINE, 1.5, 16.5, yaw=yaw)
    act(batch)
    assert (batch["seen_occupancy"][0, MINE] == CLOSED).any()  # beyond the edge


def test_masks_of_keys_without_effect():
    batch = duel()
    assert {key: bool(batch[f"mask_{key}"][0, MINE]) for key in KEYS} == dict(
        primary=True, secondary=True, tertiary=True, special=True, vent=False, ewar=False
    )
    batch["cooldown"][0, MINE] = 3.0
    batch["heat"][0, MINE] = 20.0
    act(batch)
    assert not any(
        batch[f"mask_{key}"][0, MINE] for key in ("primary", "secondary", "tertiary", "special")
    )
    assert batch["mask_vent"][0, MINE]
    assert not flat()["mask_primary"].any()  # nobody is in range


def test_nan_actions_break_nothing():
    batch = flat()
    batch["continuous"][...] = np.nan
    batch.step()
    assert np.isfinite(batch["position"]).all() and np.isfinite(batch["observation"]).all()


# -- sizes and bots --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (dict(per_team=0), "per_team=0.*at least 1"),
        (dict(per_team=21), "per_team=21.*at most 20"),
        (dict(world=40), r"world of 40 is too small: two starts of 19.0 metres for 10 mechs.* 50"),
        (dict(world=129), "world=129.*at most 128"),
        (dict(message=9), "message=9.*at most 8"),
        (dict(view=9), "view=9.*at least 11"),
        (dict(maps=0), "maps=0.*at least 1"),
        (dict(team_share=1.5), "team_share=1.5 is outside 0"),
        (dict(per_team=2.5), "per_team=2.5 must be a whole number"),
        ({"reward.win": math.inf}, "reward.win=inf is no weight"),
        ({"reward.win": math.nan}, "reward.win=nan is no weight"),
    ],
)
def test_what_cannot_work_is_refused_with_both_numbers(overrides, message):
    with pytest.raises(LudusError, match=message):
        GAME.resolve(overrides)


def test_a_policy_fits_every_size_of_team_and_world():
    """So that it carries over when a curriculum goes on with larger ones: `ludus train mechs
    --init-from RUN`."""
    fits = [
        Layout(GAME, GAME.resolve(dict(per_team=n, world=w))).describe()
        for n, w in ((1, 32), (2, 32), (10, 100), (20, 128))
    ]
    for part in ("observation", "seen", "action"):
        assert all(layout[part] == fits[0][part] for layout in fits), part


def test_an_env_is_small():
    assert Batch(GAME, 1, overrides=dict(maps=1)).layout.bytes_per_env() < 60_000


def test_bots_write_every_action_where_the_layout_has_it():
    layout = Layout(GAME, GAME.resolve())
    levers = bots.FORWARD, bots.STRAFE, bots.VERTICAL, bots.TURNING, bots.MESSAGE
    named = ["forward", "strafe", "vertical", "turn", "message0"]
    assert [layout.continuous[at] for at in levers] == named
    keys = [*range(GUNS), SPECIAL, bots.VENT_KEY, bots.EWAR_KEY]
    assert [layout.binary[at] for at in keys] == list(KEYS)
    assert layout.binary_mask_at[:GUNS] == list(range(GUNS))
    assert list(layout.choices)[bots.TARGET] == "target"


def wins(first, second, num_envs, seed=0, **options):
    """Share of matches that team 0, played by the first bot, won, and that it lost."""
    batch = Batch(GAME, num_envs, seed=seed, **options)
    batch.set_controller("mech", first, team=0)
    batch.set_controller("mech", second, team=1)
    batch.reset()
    result = np.full(num_envs, -9)
    for _ in range(int(batch.settings.params["max_steps"])):
        batch.step()
        ended = batch["finished"] & (result == -9)
        result[ended] = batch["outcome"][ended, 0]
    return (result > 0).mean(), (result < 0).mean()


@pytest.mark.parametrize("bot", ["objective", "hunter", "defender"])
@pytest.mark.parametrize("weak", ["random", "still"])
def test_bots_beat_those_that_do_not_think(bot, weak):
    assert wins(bot, weak, 32, preset="small")[0] >= 0.95


def test_every_class_but_the_slow_heavy_walks_to_the_zone_in_time():
    batch = Batch(GAME, 8, overrides=dict(maps=8))
    batch.set_controller("mech", "objective", team=0)
    batch.reset()
    nearest = np.full((8, 10), np.inf)
    for _ in range(120):  # before anybody can have won
        batch.step()
        away = np.hypot(batch["position"][:, :10, 0] - 50, batch["position"][:, :10, 2] - 50)
        nearest = np.minimum(nearest, away - batch["bank_zone"][batch["chart"], 2][:, None])
    fast = SPEED[batch["kind"][:10]] > 3
    assert (nearest[:, fast] < 4).all()  # a small zone does not hold all ten
    assert (nearest[:, ~fast] < 30).all()


def test_identical_bots_win_equally_often_from_both_sides():
    """Three standard errors of 512 matches: docs/games/mechs.md has 16,384, and ten against ten."""
    won, lost = wins("objective", "objective", 512, preset="small", seed=1, overrides=GAME.held_out)
    assert abs(won - lost) < 3 * math.sqrt((won + lost) / 512)
