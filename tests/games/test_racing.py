"""Racing against what its rules say: tracks by geometry, the car by hand, progress and ends by
arithmetic, lidar and camera on an oval where every answer has a closed form."""

import itertools
import math
import sys

import numpy as np
import pytest

import ludus
from ludus.bench import peers
from ludus.config import resolve
from ludus.errors import LudusError
from ludus.games import load_game
from ludus.games.racing import car as car_rules
from ludus.games.racing import rules, track, vision
from ludus.games.racing.car import ACTIONS, AHEAD, HEADING, LEFT, STEER, YAW, X, Y
from ludus.games.racing.observation import (
    CAR_NAMES,
    LIDAR_0,
    LIDAR_NAMES,
    MEMORY_AT,
    MEMORY_END,
    SPEED,
)
from ludus.games.racing.spec import GAME, LIDAR
from ludus.games.racing.track import CURVATURE, OVAL_HALF_WIDTH, OVAL_RADIUS, OVAL_STRAIGHT, POINTS
from ludus.recipes import load_recipe
from ludus.sim import Batch

OVAL_LENGTH = 2 * OVAL_STRAIGHT + 2 * math.pi * OVAL_RADIUS
ACT = {name: i for i, name in enumerate(ACTIONS)}


def oval(num_envs=1, game=LIDAR, **overrides) -> Batch:
    return Batch(game, num_envs, preset="oval", overrides=overrides)


def put(batch, s, across=0.0, speed=0.0, turned=0.0, env=0):
    """Sets a car down s metres along the oval, as if it had driven there; what it reached before is
    kept."""
    line = batch["bank_line"][0]
    at = round(s / OVAL_LENGTH * POINTS) % POINTS
    x, y = track.oval_at(s % OVAL_LENGTH)
    ahead = np.array(track.oval_at((s + 0.01) % OVAL_LENGTH)) - np.array(
        track.oval_at((s - 0.01) % OVAL_LENGTH)
    )
    heading = math.atan2(ahead[1], ahead[0])
    batch["car"][env, 0] = 0.0
    batch["car"][env, 0, :2] = x - across * math.sin(heading), y + across * math.cos(heading)
    batch["car"][env, 0, HEADING] = heading + turned
    batch["car"][env, 0, AHEAD] = speed
    batch["at"][env, 0], batch["across"][env, 0] = at, across
    assert np.hypot(*(line[at, :2] - (x, y))) < 2.0


def act(batch, name="nothing"):
    batch["action_drive"][...] = ACT[name]
    batch.step()


def play(bot, episodes=64, **overrides):
    """The first episode of each env: goals, return, length."""
    batch = Batch(LIDAR, episodes, overrides={"first_track": 500_000, "tracks": 64, **overrides})
    batch.set_controller("driver", bot)
    batch.reset()
    open_, rows = np.ones(episodes, bool), []
    for _ in range(int(batch.settings.params["max_steps"])):
        batch.step()
        ended = open_ & batch["finished"]
        open_ &= ~ended
        for env in np.flatnonzero(ended):
            names = ("goal_finish", "goal_time", "goal_progress", "episode_return", "outcome")
            rows.append(
                [
                    *(float(batch[n][env, 0]) for n in names),
                    float(batch["bank_length"][batch["track"][env]]),
                ]
            )
    return np.array(rows).T


@pytest.fixture(scope="module")
def bank():
    return Batch(LIDAR, 1, overrides=dict(tracks=128))


# -- tracks ----------------------------------------------------------------------------------------


def test_centre_lines_are_closed_and_evenly_spaced(bank):
    line, length = bank["bank_line"][..., :2].astype(float), bank["bank_length"]
    # the last one leads back to the first point
    steps = np.linalg.norm(np.roll(line, -1, 1) - line, axis=-1)
    assert np.allclose(steps, (length / POINTS)[:, None], rtol=0.01)
    assert length.min() > 800 and length.max() <= track.LONGEST
    assert np.hypot(line[..., 0], line[..., 1]).max() + track.REACH < track.TEXEL * (
        track.TEXELS // 2 - 1
    )


def test_no_curve_is_sharper_than_the_smallest_radius(bank):
    """The circle through three points of the line, by its triangle's sides and area."""
    line = bank["bank_line"][..., :2].astype(float)
    before, after = np.roll(line, 2, 1), np.roll(line, -2, 1)
    a, b, c = (np.linalg.norm(d, axis=-1) for d in (line - before, after - line, after - before))
    one, two = line - before, after - before
    area = np.abs(one[..., 0] * two[..., 1] - one[..., 1] * two[..., 0]) / 2
    radius = a * b * c / np.maximum(4 * area, 1e-9)
    assert radius.min() > 0.97 * track.SHARPEST
    assert np.median(radius.min(1)) < 2 * track.SHARPEST  # and they are no circles


def test_tracks_run_both_ways_once_round_and_differ(bank):
    turned = (bank["bank_line"][..., CURVATURE] * (bank["bank_length"] / POINTS)[:, None]).sum(1)
    assert np.allclose(np.abs(turned), 2 * math.pi, atol=1e-3)
    assert 40 < (turned > 0).sum() < 88
    assert len({t.tobytes() for t in bank["bank_line"]}) == 128
    widths = bank["bank_half_width"]
    assert widths.min() >= track.NARROWEST and widths.max() <= track.WIDEST and np.ptp(widths) > 0.8


def test_a_track_follows_from_its_number_and_held_out_ones_are_others(bank):
    shifted = Batch(LIDAR, 1, overrides=dict(tracks=4, first_track=7))
    assert np.array_equal(shifted["bank_line"], bank["bank_line"][7:11])
    assert np.array_equal(shifted["bank_map"], bank["bank_map"][7:11])
    held_out = Batch(LIDAR, 1, overrides={**LIDAR.held_out, "tracks": 128})
    validation = Batch(LIDAR, 1, overrides={**LIDAR.validation, "tracks": 128})
    lines = [{t.tobytes() for t in batch["bank_line"]} for batch in (bank, held_out, validation)]
    assert len(set.union(*lines)) == sum(map(len, lines))


def test_envs_take_every_track_of_the_bank_and_change_it_from_episode_to_episode():
    batch = Batch(LIDAR, 64, overrides=dict(tracks=8))
    before = batch["track"].copy()
    batch.reset()
    assert set(batch["track"].tolist()) == set(range(8)) and (batch["track"] != before).any()


def test_the_map_knows_the_distance_to_the_line(bank):
    rng = np.random.default_rng(0)
    for k in range(8):
        line = bank["bank_line"][k]
        at = rng.integers(POINTS, size=40)
        across = rng.uniform(-8.5, 8.5, 40)
        x = line[at, 0] - across * line[at, 3]
        y = line[at, 1] + across * line[at, 2]
        fine = np.concatenate(
            [
                line[:, :2] + f * (np.roll(line[:, :2], -1, 0) - line[:, :2])
                for f in np.arange(0, 1, 0.1)
            ]
        )
        for i in range(40):
            true = np.hypot(fine[:, 0] - x[i], fine[:, 1] - y[i]).min()
            found = track.line_distance(bank["bank_map"], k, track.to_map(x[i]), track.to_map(y[i]))
            # on the line itself the field has a kink
            assert found == pytest.approx(true, abs=0.2 if true > 2 else 0.8)


def test_the_oval_has_its_closed_form():
    batch = oval()
    assert batch["bank_length"][0] == pytest.approx(OVAL_LENGTH, rel=1e-6)
    assert batch["car"][0, 0, :3].tolist() == pytest.approx([0.0, -OVAL_RADIUS, 0.0], abs=1e-4)
    curvature = batch["bank_line"][0, :, CURVATURE]
    straight = (np.abs(curvature) < 1e-4).mean()
    assert straight == pytest.approx(2 * OVAL_STRAIGHT / OVAL_LENGTH, abs=0.02)
    assert np.median(curvature[curvature > 1e-4]) == pytest.approx(1 / OVAL_RADIUS, rel=0.01)


# -- the car ---------------------------------------------------------------------------------------


def held_on_the_road(batch, actions):
    """Plays actions on an endless straight: the car is carried back to the start after every
    step."""
    for name in actions:
        batch["car"][:, 0, X], batch["at"][...], batch["across"][...], batch["stalled"][...] = (
            0.0,
            0,
            0.0,
            0,
        )
        act(batch, name)
        yield batch["car"][0, 0]


def test_full_gas_reaches_the_known_speeds():
    batch = oval(max_steps=1000)
    speeds = [3.6 * float(car[AHEAD]) for car in held_on_the_road(batch, ["gas"] * 300)]
    assert speeds[59] == pytest.approx(115, abs=2) and speeds[299] == pytest.approx(280, abs=3)
    # the same by hand: 11 m/s², less a drag of 0.0008 v², for a second
    assert speeds[19] / 3.6 == pytest.approx(11 - 0.0008 * 11**2 / 3, abs=0.01)
    assert abs(batch["car"][0, 0, LEFT]) < 1e-5 and abs(batch["car"][0, 0, YAW]) < 1e-6


def test_brakes_use_the_grip_and_never_reverse():
    batch = oval()
    put(batch, 10.0, speed=30.0)
    act(batch, "brake")
    front = min(0.6 * 14, 0.8 * 1.6 * 9.81 * 1.4 / 2.7)  # at the limit of its axle
    rear = min(0.4 * 14, 0.8 * 1.9 * 9.81 * 1.3 / 2.7)
    assert batch["car"][0, 0, AHEAD] == pytest.approx(
        30 - 0.05 * (front + rear + 0.0008 * 900), abs=0.01
    )
    speeds = [float(car[AHEAD]) for car in held_on_the_road(batch, ["brake"] * 60)]
    assert speeds[-1] == pytest.approx(0.0, abs=1e-3) and min(speeds) > -1e-3


def test_steering_left_turns_left_and_right_is_its_mirror_image():
    left, right = oval(), oval()
    for batch, name in ((left, "gas_left"), (right, "gas_right")):
        put(batch, 10.0, speed=20.0)
        for _ in range(10):
            act(batch, name)
    assert (
        left["car"][0, 0, YAW] > 0.2
        and left["across"][0, 0] > 0.5
        and left["car"][0, 0, HEADING] > 0.1
    )
    mirrored = left["car"][0, 0] * np.array([1, 1, -1, 1, -1, -1, -1], np.float32)
    assert right["car"][0, 0, HEADING:] == pytest.approx(mirrored[HEADING:], abs=1e-4)


def test_steering_moves_at_five_radians_a_second_up_to_its_limit():
    batch = oval()
    act(batch, "left")
    assert batch["car"][0, 0, STEER] == pytest.approx(0.25, abs=1e-5)
    act(batch, "left")
    assert batch["car"][0, 0, STEER] == pytest.approx(0.5, abs=1e-5)
    fast = oval()
    put(fast, 10.0, speed=40.0)
    act(fast, "slight_left")
    limit = 1.15 * 1.6 * 9.81 * 2.7 / 40**2 + 0.06
    assert fast["car"][0, 0, STEER] == pytest.approx(0.5 * limit, rel=0.01)


def test_the_eleven_actions_are_what_their_names_say_and_all_differ():
    assert len(ACTIONS) == 11
    for i, name in enumerate(ACTIONS):
        words = name.split("_")
        steer = (0.5 if "slight" in words else 1.0) * (("left" in words) - ("right" in words))
        pressed = car_rules.PRESSED_GAS[i], car_rules.PRESSED_BRAKE[i], car_rules.STEERED[i]
        assert pressed == ("gas" in words, "brake" in words, steer)
    batch = oval(11)
    for env in range(11):
        put(batch, 10.0, speed=15.0, env=env)
    batch["action_drive"][:, 0] = np.arange(11)
    batch.step()
    for a, b in itertools.combinations(range(11), 2):
        assert np.abs(batch["car"][a, 0] - batch["car"][b, 0]).max() > 1e-3


def test_the_car_drifts_without_spinning():
    """Equal grips and rear drive spun constantly; held at full lock and full gas this car goes
    round and recovers."""
    batch = oval(far_off=60.0)
    put(batch, 10.0, speed=25.0)
    for _ in range(40):
        batch["car"][0, 0, :2], batch["at"][...], batch["across"][...] = (0, -50), 0, 0.0
        act(batch, "gas_left")
    slide = math.atan2(batch["car"][0, 0, LEFT], batch["car"][0, 0, AHEAD])
    assert batch["car"][0, 0, AHEAD] > 10 and abs(slide) < math.radians(45)


def test_grass_slows_and_grips_less():
    road, grass = oval(), oval()
    for batch, across in ((road, 0.0), (grass, 9.0)):
        put(batch, 10.0, across=across, speed=20.0)
        act(batch)
    lost = [20.0 - float(b["car"][0, 0, AHEAD]) for b in (road, grass)]
    assert lost[0] == pytest.approx(0.05 * 0.0008 * 400, rel=0.05)
    assert lost[1] == pytest.approx(20 * (1 - math.exp(-0.4 * 0.05)) + lost[0], rel=0.05)
    for batch, across in ((road, 0.0), (grass, 9.0)):
        put(batch, 10.0, across=across, speed=20.0)
        act(batch, "brake")
    braked = [20.0 - float(b["car"][0, 0, AHEAD]) for b in (road, grass)]
    assert braked[1] - lost[1] == pytest.approx(
        0.05 * 0.8 * 0.6 * (1.6 * 1.4 + 1.9 * 1.3) * 9.81 / 2.7, rel=0.35
    )
    assert braked[1] - lost[1] < braked[0] - lost[0]


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_a_wall_stops_what_goes_into_it_and_takes_a_fifth_of_the_speed_along_it(side):
    batch = oval(walls=1.0)
    limit = OVAL_HALF_WIDTH + car_rules.WALL_GAP
    put(batch, 20.0, across=side * (limit - 0.1), speed=20.0, turned=side * math.radians(30))
    act(batch)
    assert batch["walled"][0] and batch["across"][0, 0] == pytest.approx(side * limit, abs=1e-4)
    car = batch["car"][0, 0]
    assert car[Y] == pytest.approx(-OVAL_RADIUS + side * limit, abs=1e-3)
    speed_y = car[AHEAD] * math.sin(car[HEADING]) + car[LEFT] * math.cos(car[HEADING])
    speed_x = car[AHEAD] * math.cos(car[HEADING]) - car[LEFT] * math.sin(car[HEADING])
    assert speed_y == pytest.approx(0.0, abs=1e-3)
    assert speed_x == pytest.approx(0.8 * 20 * math.cos(math.radians(30)), rel=0.08)
    free = oval(walls=0.0)
    put(free, 20.0, across=side * (limit - 0.1), speed=20.0, turned=side * math.radians(30))
    act(free)
    assert abs(free["across"][0, 0]) > limit + 0.3


def test_walls_are_a_property_of_the_track():
    batch = Batch(LIDAR, 256, overrides=dict(tracks=32, walls=0.5))
    walled = [set(batch["walled"][batch["track"] == k].tolist()) for k in range(32)]
    assert all(len(w) <= 1 for w in walled)
    assert 6 < sum(w == {True} for w in walled) < 26
    for share in (0.0, 1.0):
        assert (Batch(LIDAR, 32, overrides=dict(walls=share))["walled"] == bool(share)).all()


def test_gear_and_rpm_are_functions_of_speed_and_observed_in_scale():
    assert [car_rules.gear_at(v) for v in (-3.0, 0.0, 15.9, 16.0, 40.0, 90.0)] == [1, 1, 1, 2, 3, 5]
    assert [car_rules.rpm_at(v) for v in (0.0, 8.0, 16.0, 90.0)] == [
        1000.0,
        5500.0,
        1000.0,
        10000.0,
    ]
    batch = oval()
    put(batch, 10.0, speed=40.0)
    act(batch)
    speed = float(batch["car"][0, 0, AHEAD])
    expected = [speed / 80, 3 / 5, (1000 + 9000 * (speed / 16 - 2)) / 10000]
    assert batch["observation"][0, 0, SPEED : SPEED + 3].tolist() == pytest.approx(
        expected, rel=1e-4
    )


def test_an_action_that_does_not_exist_breaks_nothing():
    batch = oval(2)
    batch["action_drive"][:, 0] = [-7, 99]
    batch.step()
    assert np.isfinite(batch["car"]).all() and np.isfinite(batch["observation"]).all()


# -- progress --------------------------------------------------------------------------------------


def test_ten_metres_of_new_centre_line_earn_one():
    batch = oval()
    put(batch, 0.0, speed=20.0)
    earned = 0.0
    for _ in range(10):
        act(batch)
        earned += float(batch["reward"][0, 0])
    assert batch["along"][0, 0] == pytest.approx(batch["car"][0, 0, X], abs=0.02)
    assert earned == pytest.approx(math.floor(10 * batch["along"][0, 0]) / 100, abs=1e-5)
    assert earned == pytest.approx(1.0, abs=0.02)


def test_going_back_and_forth_earns_nothing():
    batch = oval()
    put(batch, 40.0)
    act(batch)
    best = int(batch["reached"][0, 0])
    for s in (35.0, 39.9, 30.0, 39.0, 20.0, 38.0):
        put(batch, s)
        act(batch)
        assert batch["reward"][0, 0] == 0.0 and batch["reached"][0, 0] == best
    put(batch, 41.0)
    act(batch)
    assert batch["reward"][0, 0] == pytest.approx(0.1, abs=0.011)  # only the last metre is new


def test_backwards_over_the_start_is_no_lap():
    batch = oval()
    put(batch, OVAL_LENGTH - 3.0)
    batch["at"][...] = 0  # it came from the start, backwards
    act(batch)
    assert batch["laps"][0, 0] == -1 and batch["along"][0, 0] == pytest.approx(-3.0, abs=0.05)
    assert batch["reward"][0, 0] == 0.0 and not batch["finished"][0]
    put(batch, 1.0)
    batch["at"][...] = POINTS - 2
    act(batch)
    assert (
        batch["laps"][0, 0] == 0
        and not batch["terminated"][0]
        and batch["reward"][0, 0] == pytest.approx(0.1, abs=0.011)
    )


@pytest.mark.parametrize("across", [-5.0, 0.0, 5.0])
def test_progress_in_a_curve_is_measured_on_the_centre_line(across):
    batch = oval()
    for s in np.arange(100.0, 200.0, 0.7):
        put(batch, s, across=across)
        act(batch)
        assert batch["along"][0, 0] == pytest.approx(s, abs=0.03)
        assert batch["across"][0, 0] == pytest.approx(across, abs=0.1)


def test_cutting_across_the_infield_is_never_progress():
    batch = oval()
    put(batch, 40.0)
    act(batch)
    reached = int(batch["reached"][0, 0])
    for across in np.arange(2.0, 24.0, 2.0):  # towards the other straight
        batch["car"][0, 0, Y] = -OVAL_RADIUS + across
        act(batch)
        assert not batch["terminated"][0] and batch["reached"][0, 0] <= reached + 1
    batch["car"][0, 0, Y] = OVAL_RADIUS  # even on it, the car is where it can have driven
    act(batch)
    assert (
        batch["terminated"][0]
        and batch["reward"][0, 0] == 0.0
        and batch["goal_finish"][0, 0] == 0.0
    )


def test_a_lap_earns_its_length_and_the_finish():
    batch = oval()
    batch.set_controller("driver", "driver")
    batch.reset()
    while not batch["finished"][0]:
        batch.step()
    steps = int(batch["step"][0])
    assert batch["terminated"][0] and not batch["truncated"][0] and batch["outcome"][0, 0] == 1
    assert batch["reward"][0, 0] > 100
    stats = batch.read_statistics()["driver"]
    assert stats["return"] == pytest.approx(100 + math.floor(10 * OVAL_LENGTH) / 100, abs=1e-2)
    assert stats["term/progress"] == pytest.approx(math.floor(10 * OVAL_LENGTH) / 100, abs=1e-2)
    assert stats["goal/finish"] == 1.0 and stats["goal/progress"] == 1.0
    assert stats["goal/time"] == pytest.approx(0.05 * steps, rel=1e-5)
    batch.step()  # the reset row: everything anew
    assert batch["reached"][0, 0] == 0 and batch["along"][0, 0] == 0.0 and batch["laps"][0, 0] == 0
    assert batch["reward"][0, 0] == 0.0 and not batch["car"][0, 0, AHEAD:].any()


def at_the_finish(step, **overrides):
    batch = oval(**overrides)
    put(batch, OVAL_LENGTH - 1.5, speed=40.0)
    batch["step"][...] = step - 1
    act(batch)
    assert batch["terminated"][0] and not batch["truncated"][0]
    return batch


@pytest.mark.parametrize("step", [200, 500, 1000])
def test_bonuses_at_the_finish(step):
    """Both are off unless asked for. Finishing in the very last step is a finish, not a
    truncation."""
    plain = at_the_finish(step)
    weights = {"reward.time_bonus": 10.0, "reward.exponential_bonus": 100.0}
    paid = at_the_finish(step, **weights)["reward"][0, 0] - plain["reward"][0, 0]
    assert paid == pytest.approx(
        10 * (1 - step / 1000) + min(500, 100 * math.exp(1000 / step - 1)), rel=1e-4
    )


def test_returns_stay_within_the_declared_bounds():
    for bot in ("driver", "random"):
        finish, _, progress, returns, _, length = play(bot)
        assert (returns >= 0).all() and (returns <= length / 10 + 100 * finish + 1e-3).all()
        assert returns == pytest.approx(100 * finish + progress * length / 10, abs=0.02)
        assert (length / 10 <= LIDAR.rewards["progress"].most).all()


# -- ends ------------------------------------------------------------------------------------------


def test_standing_still_ends_after_ten_steps_of_patience():
    batch = oval()
    for step in range(1, 82):
        act(batch)
        assert batch["terminated"][0] == (step == rules.GIVEN_STEPS + rules.PATIENCE + 1)
    assert (
        batch["outcome"][0, 0] == -1
        and batch["goal_time"][0, 0] == 50.0
        and batch["goal_progress"][0, 0] == 0.0
    )


def test_a_little_progress_restarts_the_patience():
    batch = oval()
    batch["step"][...] = 200
    for _ in range(10):
        act(batch)
    put(batch, 1.0)
    act(batch)
    assert batch["stalled"][0, 0] == 0
    for i in range(1, 12):
        act(batch)
        assert batch["terminated"][0] == (i == 11)


def test_creeping_less_than_a_mark_is_no_progress():
    batch = oval()
    batch["step"][...] = 200
    for i in range(1, 12):
        put(batch, 0.005 * i)
        act(batch)
    assert batch["terminated"][0] and batch["episode_return"][0, 0] == 0.0


@pytest.mark.parametrize(
    ("across", "lost"), [(24.5, False), (-24.5, False), (25.5, True), (-25.5, True)]
)
def test_far_off_the_track_is_terminal(across, lost):
    batch = oval()
    put(batch, 20.0, across=across)
    act(batch)
    assert batch["terminated"][0] == lost and batch["outcome"][0, 0] == (-1 if lost else 0)


def test_the_last_step_truncates_and_leaves_the_final_observation():
    batch = oval(max_steps=30)
    for step in range(1, 31):
        act(batch, "gas")
        assert batch["truncated"][0] == (step == 30) and not batch["terminated"][0]
    assert (
        batch["outcome"][0, 0] == 0
        and batch["agent_truncated"][0, 0]
        and not batch["agent_terminated"][0, 0]
    )
    assert batch["observation"][0, 0, SPEED] > 0.1


# -- lidar -----------------------------------------------------------------------------------------


def beams(batch):
    return batch["observation"][0, 0, LIDAR_0 : LIDAR_0 + 19] * vision.LIDAR_RANGE


def scan(s, across=0.0, turned=0.0):
    batch = oval()
    put(batch, s, across, turned=turned)
    act(batch)
    return beams(batch)


def test_the_lidar_on_a_straight_has_a_closed_form():
    felt = scan(0.0)
    for beam in range(19):
        angle = math.radians(90 - 10 * beam)
        if beam != 9:
            assert felt[beam] == pytest.approx(
                OVAL_HALF_WIDTH / abs(math.sin(angle)), rel=0.01, abs=0.05
            )
    assert felt[9] == pytest.approx(100.0)  # the outer edge of the bend is 106 m away
    ahead = 40 + math.sqrt((OVAL_RADIUS + OVAL_HALF_WIDTH) ** 2 - OVAL_RADIUS**2)
    assert scan(40.0)[9] == pytest.approx(ahead, abs=0.4)


def test_beams_run_from_left_to_right():
    felt = scan(0.0, across=2.0)  # two metres left of the middle
    assert felt[0] == pytest.approx(OVAL_HALF_WIDTH - 2, abs=0.05) and felt[18] == pytest.approx(
        OVAL_HALF_WIDTH + 2, abs=0.05
    )
    turned = scan(0.0, turned=math.radians(10))  # what was 10 degrees to the left is now ahead
    assert turned[9] == pytest.approx(OVAL_HALF_WIDTH / math.sin(math.radians(10)), rel=0.01)
    bend = scan(OVAL_STRAIGHT / 2 + 10)  # a left-hand bend: the way is longer to the left
    assert bend[8] > bend[10] and bend[7] > bend[11]


def test_off_the_road_distances_to_it_are_negative():
    felt = scan(0.0, across=OVAL_HALF_WIDTH + 2)
    assert felt[18] == pytest.approx(-2.0, abs=0.05) and felt[15] == pytest.approx(
        -2.0 / math.sin(math.radians(60)), abs=0.05
    )
    assert felt[0] == pytest.approx(-vision.OFF_ROAD_RANGE)  # away from it there is none
    assert (felt < 0).all()


def test_four_scans_are_kept_newest_first():
    batch = oval()
    frames = batch["observation"][0, 0, LIDAR_0:].reshape(4, 19)
    assert (frames == frames[0]).all() and len(LIDAR_NAMES) == len(CAR_NAMES) + 4 * 19
    seen = [frames[0].copy()]
    for s in (20.0, 50.0, 70.0, 90.0):
        put(batch, s)
        act(batch)
        seen.insert(0, beams(batch) / vision.LIDAR_RANGE)
        frames = batch["observation"][0, 0, LIDAR_0:].reshape(4, 19)
        assert frames[: len(seen)] == pytest.approx(np.array(seen[:4]), abs=1e-6)
    batch.reset()
    frames = batch["observation"][0, 0, LIDAR_0:].reshape(4, 19)
    assert (frames == frames[0]).all()


# -- the camera ------------------------------------------------------------------------------------


def picture(s, across=0.0, turned=0.0, **overrides):
    batch = oval(game=GAME, **overrides)
    put(batch, s, across, turned=turned)
    act(batch)
    return batch["seen_camera"][0, 0].copy()


def ground(size=64):
    """[row, column] metres ahead and to the right of every pixel; NaN where it looks at the sky.
    Straight from the optics."""
    edge = math.tan(math.radians(40)) * ((2 * np.arange(size) + 1) / size - 1)
    right, down = np.meshgrid(edge, edge)
    pitch = math.radians(12)
    falls = np.where(
        np.sin(pitch) + down * np.cos(pitch) > 0.0148, np.sin(pitch) + down * np.cos(pitch), np.nan
    )
    return 3.0 * (np.cos(pitch) - down * np.sin(pitch)) / falls, 3.0 * right / falls


@pytest.mark.parametrize("across", [0.0, 3.0, -4.0])
@pytest.mark.parametrize("turned", [0.0, 0.4, -0.4])
def test_every_pixel_of_a_straight_road_is_right(across, turned):
    """Turned left, the camera must see what lies to the left: a mirrored image fails here."""
    image = picture(10.0, across, turned)
    ahead, right = ground()
    forward = ahead * math.cos(turned) + right * math.sin(turned)
    sideways = np.abs(across + ahead * math.sin(turned) - right * math.cos(turned))
    straight = (forward < 60) & (forward > -60)
    sure = (
        straight
        & (np.abs(sideways - OVAL_HALF_WIDTH) > 0.15)
        & (np.abs(sideways - OVAL_HALF_WIDTH + 0.5) > 0.15)
    )
    expected = np.where(
        sideways > OVAL_HALF_WIDTH,
        vision.GRASS,
        np.where(sideways > OVAL_HALF_WIDTH - 0.5, vision.WHITE, vision.ROAD),
    )
    assert sure.sum() > 1500 and np.array_equal(image[sure], expected[sure])
    sky = np.isnan(ahead)
    assert (
        sky.sum() == 24 * 64
        and (image[sky] == vision.SKY).all()
        and (image[~sky] != vision.SKY).all()
    )


def test_a_straight_road_is_symmetric():
    image = picture(-10.0 + OVAL_LENGTH - 40)  # far from both bends and from the finish
    near = image[30:]
    assert (
        np.array_equal(near, near[:, ::-1])
        and (near == vision.ROAD).any()
        and (near == vision.GRASS).any()
    )


def test_a_left_hand_bend_shows_road_on_the_left():
    image = picture(OVAL_STRAIGHT / 2 - 15)
    far = np.isin(image[24:30], (vision.ROAD, vision.WHITE))
    assert far[:, :32].sum() > 2 * far[:, 32:].sum()


def test_the_finish_line_and_walls_are_seen():
    before, after = picture(OVAL_LENGTH - 8.0), picture(8.0)
    assert (before[:, 32] == vision.WHITE).any() and not (after[:, 32] == vision.WHITE).any()
    assert (picture(10.0, walls=1.0) == vision.WALL).any() and not (
        picture(10.0) == vision.WALL
    ).any()


def test_a_camera_of_another_size():
    small = picture(10.0, camera=32)
    assert small.shape == (32, 32)
    ahead, right = ground(32)
    road = (np.abs(right) < OVAL_HALF_WIDTH - 0.7) & (ahead < 50)
    assert (small[road] == vision.ROAD).all()


# -- observing, bots, bad input --------------------------------------------------------------------


@pytest.mark.parametrize("wanted", [0, 1])
def test_the_last_four_actions_are_observed_if_asked_for(wanted):
    batch = oval(action_history=wanted)
    done = ["gas", "brake", "gas_left", "slight_right", "gas_brake_right"]
    for name in done:
        act(batch, name)
    seen = batch["observation"][0, 0, MEMORY_AT:MEMORY_END].reshape(4, 3)
    expected = [[1, 1, -1], [0, 0, -0.5], [1, 0, 1], [0, 1, 0]] if wanted else np.zeros((4, 3))
    assert np.array_equal(seen, expected)
    batch.reset()
    assert not batch["observation"][0, 0, MEMORY_AT:MEMORY_END].any()


def test_the_scripted_driver_finishes_and_the_others_do_not():
    finish, time, progress, _, outcome, _ = play("driver")
    assert (
        finish.mean() == 1.0
        and 36 < time.mean() < 41
        and (progress == 1).all()
        and (outcome == 1).all()
    )
    for bot in ("full_gas", "random", "still"):
        finish, time, progress, _, outcome, _ = play(bot, walls=0.0)
        assert (
            finish.mean() == 0.0
            and (time == 50.0).all()
            and progress.mean() < 0.2
            and (outcome < 1).all()
        )


def test_presets():
    assert Batch(LIDAR, 1, preset="oval")["bank_line"].shape[0] == 1
    lines = Batch(LIDAR, 1, preset="oval", overrides={**LIDAR.held_out, "tracks": 3})["bank_line"]
    # there is only one oval to be evaluated on, however many tracks are asked for
    assert (lines == lines[0]).all()
    settings = load_game("racing:seed_failing")[0].resolve(preset="seed_failing")
    assert settings.weights["exponential_bonus"] == 100.0 and settings.params["action_history"] == 1


@pytest.mark.parametrize(
    ("game", "values", "message"),
    [
        (LIDAR, dict(beams=7), "beams must be at least 19"),
        (LIDAR, dict(tracks=0), "tracks must be at least 1"),
        (LIDAR, dict(walls=1.5), "outside 0.0 to 1.0"),
        (
            LIDAR,
            dict(first_track=249_990),
            "249990 to 250021 reach into.*250000: use first_track at most 249968",
        ),
        (GAME, dict(first_track=499_999, tracks=2), "reach into.*at most 499998"),
        (GAME, dict(camera=4), "camera must be at least 8"),
        (GAME, dict(far_off=2.0), "outside 10.0 to 60.0"),
        (GAME, dict(wals=0.5), "walls"),
    ],
)
def test_bad_settings_are_refused(game, values, message):
    with pytest.raises(LudusError, match=message):
        game.resolve(values)


def test_training_on_held_out_tracks_is_refused():
    for first in (250_000, 500_000, 750_000):
        with pytest.raises(
            LudusError, match=f"game.first_track={first} is held out for evaluation.*below 250,000"
        ):
            ludus.train("racing_lidar", quiet=True, **{"game.first_track": first})


def test_a_peer_that_is_not_there_is_refused(monkeypatch):
    with pytest.raises(LudusError, match="unknown peer 'rllib'"):
        peers.measure_env("rllib", "racing", 0.1)
    with pytest.raises(LudusError, match="no env like pursuit"):
        peers.measure_env("gymnasium", "pursuit", 0.1)
    monkeypatch.setitem(sys.modules, "Box2D", None)
    with pytest.raises(LudusError, match=r"pip install 'gymnasium\[box2d\]'"):
        peers.measure_env("gymnasium", "racing", 0.1)


def test_qr_dqn_replays_as_many_samples_per_step_as_rainbow(monkeypatch):
    pytest.importorskip("sb3_contrib")
    made = {}

    def one_round(model, env, step, seconds):
        model.learn(step)
        made.update(model=model, steps=step, seen=env.valid)
        return 1.0

    monkeypatch.setattr(peers, "_rate", one_round)
    config = load_recipe("racing_lidar")
    config.envs, config.learner.batch, config.learner.replay_ratio, config.learner.replay = (
        16,
        64,
        2.0,
        2048,
    )
    peers.sb3_qrdqn(resolve(config), 0.0, defaults=False)
    # two rounds of 32 steps in 16 envs
    assert made["model"]._n_updates * 64 == 2 * made["steps"] == 2 * 64 * 16
    assert 0.9 * made["steps"] < made["seen"] <= made["steps"]  # all but reset rows
    assert made["model"].policy.quantile_net.quantile_net[-1].out_features == 11 * 8


def test_sb3_is_given_no_pictures():
    with pytest.raises(LudusError, match=r"racing is seen as pictures.*racing_lidar"):
        peers.measure("sb3", resolve(load_recipe("racing")), 0.1)
