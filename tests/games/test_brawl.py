"""Brawl against what its rules say: moves, bodies, hits and ends by hand, every reward on its event
for the right fighter, and each mistake of the original as a test. One frame a decision where frames
are counted."""

import math

import numpy as np
import pytest

from benchmarks.brawl_bots import play
from ludus.errors import LudusError
from ludus.games.brawl import movement, moves, senses, weapons
from ludus.games.brawl.bots import HELD_OUT_BOTS, SWITCH_FRAMES, TRAINING_BOTS
from ludus.games.brawl.observation import FIGHTER, NAMES, PER_FIGHTER
from ludus.games.brawl.spec import DENSE, GAME
from ludus.games.brawl.state import (
    AIR,
    AIRBORNE,
    COMBO_WAIT,
    DAMAGE,
    DODGE_WAIT,
    DODGING,
    FACING,
    FAST_FALLING,
    GROUND,
    HAMMER,
    JUMPS,
    KEY_NAMES,
    LEFT,
    LIGHT,
    MODE,
    MOVE,
    OUT,
    PLATFORM,
    RECOVERIES,
    RIGHT,
    SAFE,
    SHUTTLE,
    SIDE,
    SPEAR,
    SPEED_X,
    SPEED_Y,
    SPRINTING,
    STANDING,
    STOCKS,
    STUNNED,
    SURFACE,
    TAUNTING,
    TIMER,
    UNARMED,
    UP,
    WALKING,
    WEAPON,
    WEAPON_KIND,
    WEAPON_TIME,
    X,
    Y,
)
from ludus.sim import Batch

FRAME = 1 / 30
LEFT_FLOOR, RIGHT_FLOOR = -1.5, 0.5  # heights of a fighter that stands
KINDS = {name: i for i, name in enumerate(moves.KINDS)}
_made: dict = {}


def ring(num_envs=1, frames=1, weapon_wait=10_000, **overrides) -> Batch:
    """A match about to begin, fighter 0 on the left, no weapon in sight. Batches are kept: only
    their state starts anew."""
    values = dict(decision_frames=frames, weapon_wait=weapon_wait, **overrides)
    key = (num_envs, *sorted(values.items()))
    if key not in _made:
        batch = Batch(GAME, num_envs, overrides=values)
        _made[key] = batch, batch.state()
    batch, start = _made[key]
    batch.load_state(start)
    batch["stage"][:, WEAPON_TIME : WEAPON_TIME + 2] = 10_000
    for env in range(num_envs):
        for who, side in enumerate((1, -1)):
            batch["status"][env, who, SIDE] = side
            place(batch, who, -5.0 * side, facing=side, env=env)
    return batch


def place(batch, who, x, y=None, facing=None, env=0):
    """Stands a fighter on the ground at x, or leaves it in the air at (x, y)."""
    batch["motion"][env, who, [X, Y]] = (
        x,
        y if y is not None else (RIGHT_FLOOR if x > 0 else LEFT_FLOOR),
    )
    batch["motion"][env, who, [SPEED_X, SPEED_Y]] = 0
    batch["status"][env, who, SURFACE] = GROUND if y is None else AIR
    batch["status"][env, who, MODE] = STANDING if y is None else AIRBORNE
    if facing is not None:
        batch["status"][env, who, FACING] = facing


def hold(batch, keys0="", keys1="", steps=1):
    """Both hold keys, named on the stage as it is ("left+light"), for some steps."""
    for who, keys in enumerate((keys0, keys1)):
        for name in KEY_NAMES:
            batch[f"action_{name}"][:, who] = 0
        for name in filter(None, keys.split("+")):
            mirrored = batch["status"][0, who, SIDE] < 0 and name in ("left", "right")
            batch[f"action_{ {'left': 'right', 'right': 'left'}[name] if mirrored else name }"][
                :, who
            ] = 1
    for _ in range(steps):
        batch.step()


def motion(batch, who=0, env=0):
    return batch["motion"][env, who]


def status(batch, who=0, env=0):
    return batch["status"][env, who]


def seen(batch, who, name, env=0):
    return float(batch["observation"][env, who, NAMES.index(name)])


def term(batch, name):
    return batch[f"term_{name}"][0].tolist()


def number(weapon, kind):
    return weapon * moves.PER_WEAPON + KINDS[kind]


# -- the table of moves ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weapon", "first", "total", "damage", "stun"),
    [
        (UNARMED, (2, 10), (15, 32), (8, 20), (8, 15)),
        (SPEAR, (3, 18), (17, 38), (6, 27), (5, 13)),
        (HAMMER, (3, 16), (20, 53), (6, 50), (8, 17)),
    ],
)
def test_eleven_moves_of_each_weapon_keep_to_its_ranges(weapon, first, total, damage, stun):
    own = moves.TABLE[weapon * 11 : weapon * 11 + 11]
    assert len(own) == 11
    for move in own:
        assert first[0] <= move.hits[0].first <= first[1]
        assert total[0] <= move.total <= total[1]
        assert damage[0] <= sum(hit.damage for hit in move.hits) <= damage[1]
        assert all(stun[0] <= hit.stun <= stun[1] for hit in move.hits)
        ends = [0, *(hit.last for hit in move.hits)]
        assert all(
            end < hit.first <= hit.last < move.total
            for end, hit in zip(ends, move.hits, strict=False)
        )


def test_the_table_as_a_whole():
    assert len(moves.TABLE) == 33 == len(moves.TOTAL)
    assert {len(m.hits) for m in moves.TABLE} == {1, 2, 3, 4}
    ahead = [
        max(h.box[0] + h.box[2] for m in moves.TABLE[w * 11 : w * 11 + 11] for h in m.hits)
        for w in range(3)
    ]
    strongest = [
        max(h.fixed + h.variable for m in moves.TABLE[w * 11 : w * 11 + 11] for h in m.hits)
        for w in range(3)
    ]
    assert np.argmax(ahead) == SPEAR and np.argmax(strongest) == HAMMER


@pytest.mark.parametrize(
    ("keys", "in_air", "kind"),
    [
        ("light", False, "neutral_light"),
        ("light+down", False, "down_light"),
        ("light+left", False, "side_light"),
        ("light+left+up", False, "neutral_light"),
        ("heavy", False, "neutral_heavy"),
        ("heavy+down", False, "down_heavy"),
        ("heavy+right", False, "side_heavy"),
        ("light", True, "neutral_air"),
        ("light+down", True, "down_air"),
        ("light+right", True, "side_air"),
        ("heavy", True, "recovery"),
        ("heavy+down", True, "ground_pound"),
    ],
)
def test_keys_choose_the_move(keys, in_air, kind):
    batch = ring()
    for weapon in range(3):
        place(batch, 0, -5.0, 2.0 if in_air else None)
        status(batch)[[WEAPON, RECOVERIES]] = weapon, 1
        hold(batch, keys)
        assert status(batch)[MOVE] == number(weapon, kind)
        assert status(batch)[TIMER] == moves.TABLE[number(weapon, kind)].total


def test_a_move_lasts_its_frames_and_then_obeys_again():
    batch = ring()
    hold(batch, "light", steps=16)  # unarmed neutral light: 16 frames, the start included
    assert status(batch)[MOVE] == number(UNARMED, "neutral_light")
    hold(batch, "right")
    assert status(batch)[MODE] == WALKING


# -- bodies ----------------------------------------------------------------------------------------


def test_walking_dashing_sprinting_and_backdashing():
    batch = ring()
    hold(batch, "right")
    assert motion(batch)[X] == pytest.approx(-5 + 6.75 * FRAME)
    batch = ring()
    place(batch, 0, -6.9, facing=1)
    hold(batch, "right+dash", steps=9)
    assert motion(batch)[X] == pytest.approx(-6.9 + 9 * 10 * FRAME, abs=1e-4)
    hold(batch, "right")
    assert status(batch)[MODE] == SPRINTING and motion(batch)[SPEED_X] == pytest.approx(8.0)
    hold(batch, "")
    assert status(batch)[MODE] == STANDING and motion(batch)[SPEED_X] == 0
    batch = ring()
    hold(batch, "left+dash", steps=9)
    assert (
        motion(batch)[X] == pytest.approx(-5 - 9 * 4 * FRAME, abs=1e-4)
        and status(batch)[FACING] == 1
    )


def test_a_jump_rises_to_where_gravity_says_and_there_are_two_more_in_the_air():
    batch = ring()
    hold(batch, "jump")
    assert motion(batch)[SPEED_Y] == pytest.approx(8.9 - 17.8 * FRAME)
    heights = [motion(batch)[Y]]
    for _ in range(29):
        hold(batch)
        heights.append(motion(batch)[Y])
    frames = np.arange(1, 31)
    expected = LEFT_FLOOR + (8.9 * frames - 17.8 * FRAME * frames * (frames + 1) / 2) * FRAME
    assert np.allclose(heights[:28], expected[:28], atol=1e-3)
    assert max(heights) - LEFT_FLOOR > 2.0  # enough for the higher ground

    hold(batch, "jump")
    for left in (1, 0):
        hold(batch, "", steps=9)
        hold(batch, "jump")
        assert status(batch)[JUMPS] == left and motion(batch)[SPEED_Y] > 8
    hold(batch, "", steps=9)
    hold(batch, "jump")
    assert motion(batch)[SPEED_Y] < 8
    hold(batch, "", steps=60)
    assert status(batch)[[SURFACE, JUMPS]].tolist() == [GROUND, 2]


def test_one_recovery_per_airtime():
    batch = ring()
    place(batch, 0, -5.0, 0.0)
    hold(batch, "heavy", steps=2)
    assert motion(batch)[SPEED_Y] > 8 and status(batch)[RECOVERIES] == 0
    hold(batch, "", steps=23)
    hold(batch, "heavy")
    assert status(batch)[SURFACE] == AIR and status(batch)[MODE] == AIRBORNE
    hold(batch, "", steps=60)
    assert status(batch)[RECOVERIES] == 1


def test_fast_fall_and_falling_off_the_edge():
    batch = ring()
    place(batch, 0, -5.0, 5.0)
    hold(batch, "down", steps=2)
    assert status(batch)[MODE] == FAST_FALLING and motion(batch)[SPEED_Y] == -14
    place(batch, 0, -7.4)
    hold(batch, "left")
    assert status(batch)[SURFACE] == AIR
    place(batch, 0, -7.4)
    hold(batch, "right")
    assert status(batch)[SURFACE] == GROUND


def test_the_platform_shuttles_between_the_grounds_and_carries():
    xs = [float(movement.platform_x(f)) for f in range(movement.PLATFORM_PERIOD)]
    assert min(xs) == -1 and max(xs) == 1  # 2 wide: it touches both grounds
    assert (
        movement.platform_top(-1.0) == movement.LEFT_TOP
        and movement.platform_top(1.0) == movement.RIGHT_TOP
    )
    batch = ring()
    batch["stage"][0, SHUTTLE] = 0
    place(batch, 0, -1.0, 0.0)
    for _ in range(200):
        hold(batch)
        if status(batch)[SURFACE] == PLATFORM:
            middle = movement.platform_x(int(batch["stage"][0, SHUTTLE]))
            assert motion(batch)[Y] == pytest.approx(movement.platform_top(middle) + 0.5, abs=1e-5)
    assert status(batch)[SURFACE] == PLATFORM
    offset = motion(batch)[X] - movement.platform_x(int(batch["stage"][0, SHUTTLE]))
    hold(batch, "", steps=50)
    assert motion(batch)[X] - movement.platform_x(int(batch["stage"][0, SHUTTLE])) == pytest.approx(
        offset, abs=1e-4
    )
    hold(batch, "down", steps=3)
    assert status(batch)[SURFACE] == AIR


def test_fighters_do_not_collide():
    batch = ring()
    place(batch, 0, 4.0)
    place(batch, 1, 4.3)
    hold(batch, "right", "left", steps=10)
    assert motion(batch, 0)[X] > motion(batch, 1)[X]


@pytest.mark.parametrize(("in_air", "gap"), [(False, 30), (True, 82)])
def test_a_dodge_is_invulnerable_for_ten_frames_and_then_has_to_wait(in_air, gap):
    batch = ring()
    place(batch, 0, -5.0, 7.0 if in_air else None)
    hold(batch, "dash")
    assert status(batch)[[MODE, SAFE, DODGE_WAIT]].tolist() == [DODGING, 10, gap]
    hold(batch, "", steps=9)
    assert status(batch)[[MODE, SAFE]].tolist() == [DODGING, 1]
    hold(batch, "dash")
    assert status(batch)[SAFE] == 0 and status(batch)[MODE] != DODGING


def test_a_taunt_leaves_a_fighter_helpless():
    batch = ring()
    hold(batch, "taunt")
    hold(batch, "right", steps=29)
    assert status(batch)[MODE] == TAUNTING and motion(batch)[X] == -5
    hold(batch, "right")
    assert motion(batch)[X] > -5


# -- hits ------------------------------------------------------------------------------------------


def close_in(batch, facing=1, damage=0.0):
    """Fighter 0 with the other one right ahead of it, on the right ground."""
    place(batch, 0, 4.0, facing=facing)
    place(batch, 1, 4.0 + 0.8 * facing)
    motion(batch, 1)[DAMAGE] = damage


@pytest.mark.parametrize("facing", [1, -1])
def test_knockback_by_hand_mirrored_by_facing(facing):
    """Unarmed neutral light: 9 damage, fixed 28, variable 16, 60 degrees, stun 12; the victim had
    41 damage."""
    batch = ring()
    close_in(batch, facing, damage=41.0)
    hold(batch, "light", steps=2)
    assert motion(batch, 1)[DAMAGE] == 41
    hold(batch)  # its first active frame is the third
    x = 41 + 9
    speed = 0.096 * (28 + 16 * (x / 70 + x * x / 12000))
    assert motion(batch, 1)[DAMAGE] == x
    assert motion(batch, 1)[SPEED_X] == pytest.approx(
        facing * speed * math.cos(math.radians(60)), rel=1e-4
    )
    assert motion(batch, 1)[SPEED_Y] == pytest.approx(speed * math.sin(math.radians(60)), rel=1e-4)
    assert status(batch, 1)[[MODE, TIMER]].tolist() == [STUNNED, 12]
    assert term(batch, "damage_dealt") == [9, 0] and term(batch, "damage_taken") == [0, 9]
    hold(batch)
    # it decays
    assert motion(batch, 1)[SPEED_X] == pytest.approx(0.97 * facing * speed * 0.5, rel=1e-4)
    hold(batch, "", "light", steps=10)
    assert status(batch, 1)[MODE] == STUNNED  # keys do nothing until the stun is over
    assert motion(batch, 1)[DAMAGE] == x  # and one hit lands once


def test_knockback_is_a_parameter():
    speeds = []
    for knockback in (0.096, 0.192):
        batch = ring(knockback=knockback)
        close_in(batch)
        hold(batch, "light", steps=3)
        speeds.append(motion(batch, 1)[SPEED_X])
    assert speeds[1] == pytest.approx(2 * speeds[0], rel=1e-5)


def test_a_move_can_hit_several_times():
    batch = ring(knockback=0.01)
    close_in(batch)
    status(batch)[WEAPON] = SPEAR
    dealt = []
    for _ in range(12):
        hold(batch, "light" if not dealt else "")
        dealt.append(term(batch, "damage_dealt")[0])
    assert [d for d in dealt if d] == [3, 3, 5]


def test_damage_stops_at_700_and_only_real_damage_counts():
    batch = ring()
    close_in(batch, damage=695.0)
    hold(batch, "light", steps=3)
    assert motion(batch, 1)[DAMAGE] == 700 and term(batch, "damage_dealt")[0] == 5


def test_a_stunned_fighter_bounces_off_the_floor():
    batch = ring()
    place(batch, 1, 5.0, 0.8)
    motion(batch, 1)[SPEED_Y] = -9.0
    status(batch, 1)[[MODE, TIMER]] = STUNNED, 15
    hold(batch)
    assert motion(batch, 1)[SPEED_Y] == pytest.approx(0.6 * (0.97 * 9.0 + 17.8 * FRAME), rel=1e-4)
    assert status(batch, 1)[SURFACE] == AIR


def test_both_can_hit_each_other_in_one_frame():
    batch = ring()
    close_in(batch)
    status(batch, 1)[FACING] = -1
    hold(batch, "light", "light", steps=3)
    assert term(batch, "damage_dealt") == [9, 9] and (batch["status"][0, :, MODE] == STUNNED).all()


def test_out_of_reach_behind_or_dodging_is_not_hit():
    for change in ("far", "behind", "safe"):
        batch = ring()
        close_in(batch)
        if change == "far":
            place(batch, 1, 6.0)
        elif change == "behind":
            place(batch, 1, 3.0)
        else:
            status(batch, 1)[SAFE] = 20
        hold(batch, "light", steps=8)
        assert motion(batch, 1)[DAMAGE] == 0, change


# -- out, back, and the end ------------------------------------------------------------------------


@pytest.mark.parametrize(("x", "y"), [(14.1, 0), (-14.1, 0), (0, 8.2), (0, -8.1)])
def test_beyond_the_edge_a_stock_is_lost_once_and_paid_to_the_right_fighter(x, y):
    batch = ring()
    place(batch, 1, x, y)
    motion(batch, 1)[DAMAGE] = 80
    status(batch, 1)[WEAPON] = HAMMER
    hold(batch)
    assert (
        status(batch, 1)[[STOCKS, MODE, WEAPON]].tolist() == [2, OUT, UNARMED]
        and motion(batch, 1)[DAMAGE] == 0
    )
    assert term(batch, "knock_out") == [1, 0] and term(batch, "knocked_out") == [0, 1]
    assert batch["reward"][0].tolist() == [50, -50]
    hold(batch)
    assert term(batch, "knock_out") == [0, 0] and status(batch, 1)[STOCKS] == 2


@pytest.mark.parametrize(("x", "y"), [(13.9, 0), (0, 7.9), (0, -7.5)])
def test_inside_the_edge_nobody_is_knocked_out(x, y):
    batch = ring()
    place(batch, 1, x, y)
    hold(batch)
    assert status(batch, 1)[STOCKS] == 3


def test_90_frames_out_then_back_at_the_start_and_really_invulnerable_for_30():
    batch = ring()
    place(batch, 1, 15.0, 0.0)
    hold(batch)
    place(batch, 0, 4.2, facing=1)
    hold(batch, "", "left+jump+light", steps=89)
    assert status(batch, 1)[MODE] == OUT and motion(batch, 1)[X] == 5
    hold(batch)
    assert status(batch, 1)[[MODE, SAFE]].tolist() == [STANDING, 30] and motion(batch, 1)[
        [X, Y]
    ].tolist() == [5, RIGHT_FLOOR]
    hold(batch, "light", steps=29)
    assert motion(batch, 1)[DAMAGE] == 0
    hold(batch, "light", steps=20)
    assert motion(batch, 1)[DAMAGE] > 0


def test_who_is_out_takes_no_decision_and_who_is_hit_keeps_its_turn():
    batch = ring(frames=3)
    place(batch, 1, 15.0, 0.0)
    hold(batch)
    assert batch["idle"][0].tolist() == [False, True]
    idle = 1
    while batch["idle"][0, 1]:
        hold(batch)
        idle += 1
    assert 28 <= idle <= 31 and status(batch, 1)[MODE] in (OUT, STANDING)
    batch = ring(frames=3)
    close_in(batch)
    hold(batch, "light")
    assert status(batch, 1)[MODE] == STUNNED and not batch["idle"].any()


def at_the_end(stocks=(3, 3), damage=(0.0, 0.0)):
    """The last step of a match."""
    batch = ring(max_steps=50)
    batch["step"][0] = 49
    batch["status"][0, :, STOCKS] = stocks
    batch["motion"][0, :, DAMAGE] = damage
    hold(batch)
    return batch


@pytest.mark.parametrize(
    ("stocks", "damage", "outcome"),
    [
        ((3, 2), (500.0, 0.0), [1, -1]),
        ((1, 2), (0.0, 0.0), [-1, 1]),
        ((2, 2), (10.0, 11.0), [1, -1]),
        ((2, 2), (11.0, 10.0), [-1, 1]),
        ((2, 2), (10.0, 10.0), [0, 0]),
    ],
)
def test_time_up_is_a_real_end_and_the_winner_is_paid(stocks, damage, outcome):
    batch = at_the_end(stocks, damage)
    assert (
        batch["terminated"][0] and not batch["truncated"][0] and batch["agent_terminated"][0].all()
    )
    assert batch["outcome"][0].tolist() == outcome
    assert term(batch, "win") == [float(o == 1) for o in outcome] == batch["goal_win"][0].tolist()
    assert term(batch, "loss") == [float(o == -1) for o in outcome]
    assert batch["goal_draw"][0].tolist() == [float(o == 0) for o in outcome]
    assert batch["reward"][0].tolist() == [100 * o for o in outcome]
    assert seen(batch, 0, "time_left") == 0


def test_time_left_is_observed():
    batch = ring(max_steps=50)
    assert seen(batch, 0, "time_left") == 1
    hold(batch, "", "", steps=10)
    assert seen(batch, 1, "time_left") == pytest.approx(0.8)


def test_the_last_stock_ends_the_match_at_once_even_between_decisions():
    batch = ring(frames=9)
    batch["status"][0, :, STOCKS] = 1
    place(batch, 1, 15.0, 0.0)
    shuttle = int(batch["stage"][0, SHUTTLE])
    hold(batch)
    assert batch["finished"][0] and batch["outcome"][0].tolist() == [1, -1]
    assert batch["reward"][0].tolist() == [150, -150]
    assert batch["goal_stock_difference"][0].tolist() == [1, -1]
    # one frame of the nine
    assert batch["stage"][0, SHUTTLE] == (shuttle + 1) % movement.PLATFORM_PERIOD


def test_both_out_on_their_last_stock_is_a_draw():
    batch = ring()
    batch["status"][0, :, STOCKS] = 1
    place(batch, 0, -15.0, 0.0)
    place(batch, 1, 15.0, 0.0)
    motion(batch, 1)[DAMAGE] = 100
    hold(batch)
    assert (
        batch["finished"][0]
        and batch["outcome"][0].tolist() == [0, 0]
        and batch["goal_win"][0].tolist() == [0, 0]
    )


def test_a_new_match_starts_clean_with_sides_drawn():
    batch = Batch(GAME, 256, seed=3)
    assert (
        np.isin(batch["motion"][..., X], (-5, 5)).all()
        and (batch["motion"][:, 0, X] == -batch["motion"][:, 1, X]).all()
    )
    assert 90 < (batch["status"][:, 0, SIDE] == 1).sum() < 166
    assert np.array_equal(batch["status"][..., SIDE], -np.sign(batch["motion"][..., X]))
    assert (batch["status"][..., STOCKS] == 3).all() and (batch["motion"][..., DAMAGE] == 0).all()
    # towards the middle
    assert np.array_equal(batch["status"][..., FACING], batch["status"][..., SIDE])


# -- weapons ---------------------------------------------------------------------------------------


def test_weapons_of_both_kinds_lie_for_350_frames_at_two_places():
    batch = ring(num_envs=16, weapon_wait=20)
    batch["stage"][:, WEAPON_TIME : WEAPON_TIME + 2] = 1
    hold(batch)
    kinds = batch["stage"][:, WEAPON_KIND : WEAPON_KIND + 2]
    assert set(np.unique(kinds)) == {SPEAR, HAMMER}
    hold(batch, "", "", steps=349)
    assert (kinds != UNARMED).all()
    hold(batch)
    assert (kinds == UNARMED).all()
    hold(batch, "", "", steps=20)
    assert (kinds != UNARMED).all()


def test_one_key_picks_up_and_drops_and_each_signal_is_paid_once():
    batch = ring(**DENSE)
    batch["stage"][0, WEAPON_KIND] = SPEAR
    place(batch, 0, -weapons.PLACE_X)
    hold(batch, "pick")
    assert status(batch)[WEAPON] == SPEAR and batch["stage"][0, WEAPON_KIND] == UNARMED
    assert (
        term(batch, "pick_up") == [1, 0]
        and seen(batch, 0, "self_spear") == 1
        and seen(batch, 1, "opponent_spear") == 1
    )
    hold(batch)
    assert term(batch, "pick_up") == [0, 0]
    hold(batch, "pick")
    assert status(batch)[WEAPON] == UNARMED and term(batch, "drop") == [1, 0]
    hold(batch)
    assert term(batch, "drop") == [0, 0]


def test_a_decision_of_several_frames_does_not_pick_up_and_drop_at_once():
    batch = ring(frames=3)
    batch["stage"][0, WEAPON_KIND] = HAMMER
    place(batch, 0, -weapons.PLACE_X)
    hold(batch, "pick")
    assert status(batch)[WEAPON] == HAMMER


def test_the_nearer_of_two_gets_the_weapon_and_at_the_same_distance_neither():
    for x, taker in [((-3.2, -3.9), 0), ((-3.9, -3.2), 1), ((-3.25, -3.75), None)]:
        batch = ring()
        batch["stage"][0, WEAPON_KIND] = SPEAR
        place(batch, 0, x[0])
        place(batch, 1, x[1])
        hold(batch, "pick", "pick")
        assert batch["status"][0, :, WEAPON].tolist() == [
            SPEAR if who == taker else UNARMED for who in (0, 1)
        ]


# -- the other rewards -----------------------------------------------------------------------------


def test_presets_hold_the_weights_asked_for_and_dense_stays_below_a_tenth_of_a_win():
    sparse, dense = (GAME.resolve(preset=p).weights for p in ("sparse", "dense"))
    shaped = [name.removeprefix("reward.") for name in DENSE]
    assert sparse["damage_dealt"] == 0.1 == -sparse["damage_taken"]
    assert (
        sparse["knock_out"] == 50 == -sparse["knocked_out"]
        and sparse["win"] == 100 == -sparse["loss"]
    )
    assert not any(sparse[name] for name in shaped) and GAME.resolve().weights == sparse
    assert all(dense[name] == sparse[name] for name in sparse if name not in shaped)
    most = {
        name: max(abs(GAME.rewards[name].most), abs(GAME.rewards[name].least)) for name in shaped
    }
    assert sum(abs(dense[name]) * most[name] for name in shaped) < 0.1 * dense["win"]


def test_a_combo_is_the_next_move_in_time_not_the_next_hit_of_the_same():
    batch = ring(knockback=0.01)
    close_in(batch)
    hold(batch, "light", steps=3)
    assert term(batch, "combo") == [0, 0] and status(batch, 1)[COMBO_WAIT] == 12 + 15
    hold(batch, "", steps=13)
    hold(batch, "light", steps=3)
    assert term(batch, "damage_dealt")[0] == 9 and term(batch, "combo") == [1, 0]
    hold(batch)
    assert term(batch, "combo") == [0, 0]

    batch = ring(knockback=0.01)
    close_in(batch)
    status(batch)[WEAPON] = SPEAR
    hold(batch, "light")
    combos = 0.0
    for _ in range(14):
        hold(batch)
        combos += term(batch, "combo")[0]
    assert motion(batch, 1)[DAMAGE] == 11 and combos == 0


def test_a_move_that_ends_without_a_hit_is_spam_and_one_that_hit_is_not():
    for hits in (False, True):
        batch = ring()
        if hits:
            close_in(batch)
        spam = 0.0
        hold(batch, "light")
        for _ in range(20):
            hold(batch)
            spam += term(batch, "spam")[0]
        assert spam == (0 if hits else 1)


def test_danger_and_pressure_go_to_the_right_fighter():
    batch = ring()
    place(batch, 1, 10.0, 2.0)
    hold(batch)
    assert term(batch, "danger") == [0, 1]
    place(batch, 0, 5.0)
    place(batch, 1, 6.5)
    hold(batch)
    assert term(batch, "pressure") == [1, 0] and term(batch, "danger") == [0, 0]


def test_closing_in_and_backing_off_cancel_out():
    batch = ring()
    total = 0.0
    for keys in ["right"] * 12 + ["left"] * 12:
        hold(batch, keys)
        total += term(batch, "closing")[0]
        assert (term(batch, "closing")[0] > 0) == (keys == "right")
    assert total == pytest.approx(0, abs=1e-4)


def test_dense_rewards_stop_counting_at_their_limit():
    batch = ring()
    total = 0.0
    for _ in range(200):
        place(batch, 1, 10.0, 2.0)
        hold(batch)
        total += term(batch, "danger")[1]
    assert total == GAME.rewards["danger"].most == 150


# -- what is observed, and which keys can do anything ----------------------------------------------


def test_the_observation_is_two_times_32_named_entries_and_what_both_share():
    assert PER_FIGHTER == 32 and len(NAMES) == len(set(NAMES)) == 2 * 32 + 7 + 2 * 5
    assert NAMES[:32] == [f"self_{n}" for n in FIGHTER] and NAMES[32:64] == [
        f"opponent_{n}" for n in FIGHTER
    ]
    assert list(GAME.action) == [
        "up",
        "left",
        "down",
        "right",
        "jump",
        "pick",
        "dash",
        "light",
        "heavy",
        "taunt",
    ]


def test_one_fighters_self_is_the_others_opponent_mirrored_in_every_step():
    """The original never refreshed what its agents saw of the opponent."""
    batch = Batch(GAME, 8, seed=11)
    batch.set_controller("fighter", "aggressive", team=0)
    batch.set_controller("fighter", "random", team=1)
    batch.reset()
    mirrored = [FIGHTER.index(n) for n in ("x", "speed_x", "facing")]
    sign = np.ones(32)
    sign[mirrored] = -1
    last, changed = None, 0
    for _ in range(200):
        batch.step()
        o = batch["observation"]
        assert np.allclose(o[:, 0, :32], o[:, 1, 32:64] * sign, atol=1e-6)
        assert np.allclose(o[:, 1, :32], o[:, 0, 32:64] * sign, atol=1e-6)
        assert np.abs(o).max() <= 3
        assert np.array_equal(
            o[:, 0, :32][:, FIGHTER.index("x")],
            np.float32(batch["motion"][:, 0, X] * batch["status"][:, 0, SIDE]) / 14,
        )
        changed += last is not None and not np.array_equal(last, o[:, 0, 32:64])
        last = o[:, 0, 32:64].copy()
    assert changed > 190


def test_a_mirrored_fighters_keys_are_mirrored_too():
    batch = ring()
    assert seen(batch, 0, "mirror") == 1 and seen(batch, 1, "mirror") == -1
    batch["action_right"][0] = 1  # ahead, as each of them sees it
    batch.step()
    assert motion(batch, 0)[X] > -5 and motion(batch, 1)[X] < 5
    assert seen(batch, 1, "self_speed_x") > 0 and seen(batch, 1, "self_facing") == 1


def test_hand_worked_entries():
    batch = ring(frames=3)
    place(batch, 0, -7.0, 3.0)
    motion(batch, 0)[DAMAGE] = 50
    status(batch, 0)[[STOCKS, WEAPON]] = 2, HAMMER
    hold(batch, "light")
    assert seen(batch, 0, "self_winding_up") == 1 and seen(batch, 0, "self_airborne") == 0
    assert seen(batch, 0, "self_move") == pytest.approx((KINDS["neutral_air"] + 1) / 11)
    assert seen(batch, 0, "self_move_done") == pytest.approx(3 / 26)
    assert seen(batch, 0, "self_damage") == 0.25 and seen(batch, 0, "self_stocks") == pytest.approx(
        2 / 3
    )
    assert seen(batch, 0, "self_hammer") == 1 and seen(batch, 0, "self_unarmed") == 0
    assert seen(batch, 0, "self_x") == pytest.approx(-0.5) and seen(
        batch, 0, "opponent_ahead"
    ) == pytest.approx(12 / 5)


def test_a_masked_key_changes_nothing():
    """From states of real matches: pressing a masked key, whatever else is held, gives the same
    next state."""
    batch = Batch(GAME, 96, seed=21)
    batch.set_controller("fighter", "random", team=0)
    batch.set_controller("fighter", "aggressive", team=1)
    batch.reset()
    rng = np.random.default_rng(0)
    tried = np.zeros(10, int)
    for _ in range(25):
        for _ in range(12):
            batch.step()
        state = batch.state()
        state["controller"][...] = 0
        state["binary"][...] = rng.random(state["binary"].shape) < 0.4
        for k in range(10):
            masked = ~state["action_mask"][:, 0, k] & ~state["finished"]
            tried[k] += masked.sum()
            after = []
            for pressed in (0, 1):
                state["binary"][:, 0, k] = pressed
                batch.load_state(state)
                batch.step()
                after.append(
                    [batch.numpy(n)[masked] for n in ("motion", "stage", "observation", "reward")]
                )
            assert all(np.array_equal(a, b) for a, b in zip(*after, strict=True)), KEY_NAMES[k]
            state["binary"][:, 0, k] = 0
        batch.load_state(state)
        batch["controller"][...] = batch["controller_next"]
    assert (tried > 20).all(), dict(zip(KEY_NAMES, tried, strict=True))


def test_neither_fighter_comes_first():
    """A match with the fighters' numbers exchanged is the same match."""
    batch = Batch(GAME, 48, seed=5)
    rng = np.random.default_rng(1)
    swapped = Batch(GAME, 48, seed=5)
    for _ in range(120):
        keys = rng.random((48, 2, 10)) < 0.35
        state = batch.state()
        for name, field in batch.layout.arrays.items():
            if name in state and field.shape[:1] == ("agents",) and not field.shared:
                state[name] = state[name][:, ::-1].copy()
        swapped.load_state(state)
        batch["binary"][...] = keys
        swapped["binary"][...] = keys[:, ::-1]
        batch.step()
        swapped.step()
        going = ~batch["resetting"]  # sides are drawn for fighter 0
        for name in ("motion", "status", "event", "reward", "outcome"):
            assert np.array_equal(batch[name][going], swapped[name][going][:, ::-1]), name


def test_a_decision_is_held_for_its_frames():
    once, thrice = ring(frames=3), ring(frames=1)
    for keys in ("right", "right+jump", "right+light", "down", "left+heavy", ""):
        hold(once, keys)
        hold(thrice, keys, steps=3)
        assert (
            np.allclose(motion(once), motion(thrice), atol=1e-5)
            and status(once)[MODE] == status(thrice)[MODE]
        )


# -- bots ------------------------------------------------------------------------------------------


def won(first, second, matches=64):
    return play(first, second, matches, seed=77_000)[:, 0].mean()


@pytest.mark.parametrize(
    ("first", "second"), [("based", "constant"), ("based", "random"), ("aggressive", "constant")]
)
def test_the_stronger_bot_wins_clearly(first, second):
    assert won(first, second) >= 0.9


def test_random_against_random_is_even_and_random_loses_to_constant():
    rows = play("random", "random", 128, seed=77_000)
    wins, losses = rows[:, 0].mean(), 1 - rows[:, 0].mean() - rows[:, 1].mean()
    assert abs(wins - losses) < 0.25
    assert won("random", "constant") < 0.2  # it falls off the stage


def test_held_out_bots_are_apart_and_beat_random():
    assert not set(TRAINING_BOTS) & set(HELD_OUT_BOTS) and len(HELD_OUT_BOTS) >= 3
    assert set(GAME.bots["fighter"]) == {*TRAINING_BOTS, *HELD_OUT_BOTS}
    for bot in HELD_OUT_BOTS:
        assert won(bot.name, "random", 32) > 0.7, bot.name


def jab(batch, env):
    """Walks up and strikes quickly; written in the terms of the bots, in plain Python."""
    motions, states = batch["motion"], batch["status"]
    dx, dy = senses.ahead(motions, env, 0), senses.above(motions, env, 0)
    near = abs(dx) < 1.2 and abs(dy) < 0.9
    return senses.towards(dx) | LIGHT | UP if near else senses.chase(motions, states, env, 0)


def lunge(batch, env):
    """Strikes sideways from as far as that reaches, wherever the lunge does not end over the
    void."""
    motions, states = batch["motion"], batch["status"]
    dx, dy = senses.ahead(motions, env, 0), senses.above(motions, env, 0)
    if abs(dx) < 2.7 and abs(dy) < 0.9:
        return (
            senses.towards(dx) | LIGHT
            if movement.over_ground(motions[env, 0, X] + math.copysign(1.3, dx))
            else 0
        )
    return senses.chase(motions, states, env, 0)


def wins_with(answer, bot, matches=20):
    """The share of matches that fighter 0 wins by one of the answers above."""
    batch = Batch(GAME, matches, seed=78_000)
    batch.set_controller("fighter", bot, team=1)
    batch.reset()
    going, wins = np.ones(matches, bool), 0.0
    while going.any():
        for env in np.flatnonzero(going):
            keys = senses.come_home(batch["motion"], batch["status"], env, 0) or answer(batch, env)
            if batch["status"][env, 0, SIDE] < 0 and keys & (LEFT | RIGHT):
                keys ^= LEFT | RIGHT
            batch["binary"][env, 0] = [keys >> i & 1 for i in range(10)]
        batch.step()
        ended = going & batch["finished"]
        wins += batch["goal_win"][ended, 0].sum()
        going &= ~ended
    return wins / matches


def test_parry_and_pounce_need_opposite_answers():
    """They wait alike; knowing which one it is decides the match."""
    assert wins_with(jab, "parry") > 0.8 and wins_with(lunge, "parry") < 0.5
    assert wins_with(lunge, "pounce") > 0.8 and wins_with(jab, "pounce") < 0.5


def test_the_switcher_changes_its_style_in_the_middle_of_a_match():
    batch = Batch(GAME, 16, seed=4)
    batch.set_controller("fighter", "switcher", team=0)
    batch.set_controller("fighter", "based", team=1)
    batch.reset()
    style_steps = SWITCH_FRAMES // 3
    played = {
        name: batch.controller_number("fighter", name)
        for name in ("aggressive", "defensive", "kiter")
    }
    alike = {}
    for step in range(1, 3 * style_steps):
        if step % 10 == 5:
            state, style = batch.state(), step // style_steps
            batch.step()
            pressed = batch.numpy("binary")[:, 0]
            for name, bot in played.items():
                state["controller"][:, 0] = bot
                batch.load_state(state)
                batch.step()
                same = (batch.numpy("binary")[:, 0] == pressed).all(1)[~batch["resetting"]]
                alike.setdefault((style, name), []).append(same.mean())
            state["controller"][:, 0] = batch.controller_number("fighter", "switcher")
            batch.load_state(state)
        batch.step()
    for style, own in enumerate(played):
        for name in played:
            assert (np.mean(alike[style, name]) == 1) == (name == own), (style, name)


def test_an_opponent_changes_only_between_matches():
    batch = ring(max_steps=50)
    batch.set_controller("fighter", "based", team=1)
    hold(batch, "", "", steps=49)
    assert batch["controller"][0].tolist() == [0, 0] and motion(batch, 1)[X] == 5
    hold(batch, "", "", steps=2)
    assert batch["resetting"][0] and batch["controller"][0].tolist() == [
        0,
        batch.controller_number("fighter", "based"),
    ]


def test_bad_input_is_refused_with_the_limit():
    for overrides, message in [
        (dict(decision_frames=10), "outside 1 to 9"),
        (dict(stocks=0), "outside 1 to 9"),
        (dict(decision_frames=2.5), "whole number"),
        ({"reward.kill": 1.0}, "no size, parameter or reward"),
    ]:
        with pytest.raises(LudusError, match=message):
            GAME.resolve(overrides)
    with pytest.raises(LudusError, match="no preset 'dence'"):
        GAME.resolve(preset="dence")
    with pytest.raises(LudusError, match="no bot 'agressive'"):
        ring().set_controller("fighter", "agressive")
