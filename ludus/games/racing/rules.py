"""The race itself: which track, how far along it the car has come, what that earns, when it ends,
and what is observed.

A step in order: the car drives; it is found again on the centre line; a wall may stop it; progress
is counted and the end judged; the driver observes.
"""

import math

from ludus.games.racing.car import (
    AHEAD,
    GEARS,
    PRESSED_BRAKE,
    PRESSED_GAS,
    STEERED,
    STEP_SECONDS,
    TOP_RPM,
    X,
    Y,
    gear_at,
    known_action,
    rpm_at,
)
from ludus.games.racing.observation import GEAR, MEMORY_AT, MEMORY_END, PER_ACTION, RPM, SPEED
from ludus.games.racing.track import CURVATURE, POINT_X, POINT_Y, POINTS, TANGENT_X, TANGENT_Y
from ludus.sim import float32, geometry, phase, random

DRIVER = 0  # the only agent
MARK = 0.1  # metres of centre line that count as progress
MARKS_PER_REWARD = 100.0  # ten metres earn 1
SEARCH = (
    8  # points either way within which a car is found again; it moves past two or three in a step
)
GIVEN_STEPS = 70  # before these it may stand still
PATIENCE = 10  # steps without progress after them
BONUS_MOST = 5.0  # of the exponential bonus
SPEED_SCALE = 80.0  # metres a second

PICK, WALLS = 1, 9  # streams of randomness


@phase(writes=("track", "walled"))
def choose_track(env, tracks, first_track, key, walls, track, walled):
    """Any track of the bank. Whether a track has walls is its own property, the same in every
    env."""
    track[env] = random.integer(key[env], PICK, 0, tracks)
    walled[env] = (
        random.uniform(random.key(first_track + track[env], 0, 0, 0), WALLS, 0) < walls[env]
    )


@phase(lanes="agents", writes=("at", "laps", "across", "along", "reached", "stalled"))
def start_counting(env, agent, at, laps, across, along, reached, stalled):
    at[env, agent] = 0
    laps[env, agent] = 0
    across[env, agent] = 0.0
    along[env, agent] = 0.0
    reached[env, agent] = 0
    stalled[env, agent] = 0


@phase(lanes="agents", writes=("at", "laps", "across", "along"))
def follow(env, agent, track, car, bank_line, bank_length, at, laps, across, along):
    """Finds the car on the centre line near where it was: `along` metres from the start, `across`
    to the left of the line.

    Only nearby points are tried, so another stretch of road across the infield is never taken for
    progress.
    """
    line, before = track[env], at[env, agent]
    nearest, best = before, geometry.FAR
    for i in range(before - SEARCH, before + SEARCH + 1):
        dx = car[env, agent, X] - bank_line[line, (i + POINTS) % POINTS, POINT_X]
        dy = car[env, agent, Y] - bank_line[line, (i + POINTS) % POINTS, POINT_Y]
        if dx * dx + dy * dy < best:
            nearest, best = i, dx * dx + dy * dy
    if nearest >= POINTS:
        laps[env, agent] += 1
        nearest -= POINTS
    elif nearest < 0:
        laps[env, agent] -= 1
        nearest += POINTS
    at[env, agent] = nearest
    dx = car[env, agent, X] - bank_line[line, nearest, POINT_X]
    dy = car[env, agent, Y] - bank_line[line, nearest, POINT_Y]
    left = dy * bank_line[line, nearest, TANGENT_X] - dx * bank_line[line, nearest, TANGENT_Y]
    ahead = dx * bank_line[line, nearest, TANGENT_X] + dy * bank_line[line, nearest, TANGENT_Y]
    # inside a curve a metre driven is more than a metre of centre line
    ahead /= max(1.0 - left * bank_line[line, nearest, CURVATURE], 0.2)
    spacing = bank_length[line] / float32(POINTS)
    along[env, agent] = (
        float32(laps[env, agent]) * bank_length[line]
        + float32(nearest) * spacing
        + geometry.clamp(ahead, -0.5 * spacing, 0.5 * spacing)
    )
    across[env, agent] = left


@phase(
    writes=(
        "reached",
        "stalled",
        "term_progress",
        "term_finish",
        "term_time_bonus",
        "term_exponential_bonus",
        "goal_finish",
        "goal_time",
        "goal_progress",
        "terminated",
        "truncated",
        "outcome",
    ),
)
def judge(
    env,
    step,
    max_steps,
    track,
    bank_length,
    along,
    across,
    far_off,
    reached,
    stalled,
    term_progress,
    term_finish,
    term_time_bonus,
    term_exponential_bonus,
    goal_finish,
    goal_time,
    goal_progress,
    terminated,
    truncated,
    outcome,
):
    """Only centre line never reached before in this episode earns, so going back and forth earns
    nothing."""
    length = bank_length[track[env]]
    new = max(geometry.floor_int(min(along[env, DRIVER], length) / MARK) - reached[env, DRIVER], 0)
    reached[env, DRIVER] += new
    term_progress[env, DRIVER] = float32(new) / MARKS_PER_REWARD
    stalled[env, DRIVER] = stalled[env, DRIVER] + 1 if new == 0 and step[env] > GIVEN_STEPS else 0
    finished = along[env, DRIVER] >= length
    goal_progress[env, DRIVER] = 1.0 if finished else float32(reached[env, DRIVER]) * MARK / length
    goal_time[env, DRIVER] = float32(step[env] if finished else max_steps[env]) * STEP_SECONDS
    if finished:
        goal_finish[env, DRIVER] = 1.0
        term_finish[env, DRIVER] = 1.0
        term_time_bonus[env, DRIVER] = 1.0 - float32(step[env]) / float32(max_steps[env])
        # exp must stay finite
        speedy = geometry.clamp(float32(max_steps[env]) / float32(step[env]) - 1.0, 0.0, 10.0)
        term_exponential_bonus[env, DRIVER] = min(math.exp(speedy), BONUS_MOST)
    failed = stalled[env, DRIVER] > PATIENCE or abs(across[env, DRIVER]) > far_off[env]
    terminated[env] = finished or failed
    truncated[env] = not terminated[env] and step[env] >= max_steps[env]
    if terminated[env]:
        outcome[env, DRIVER] = 1 if finished else -1


@phase(lanes="agents", writes="observation")
def observe_car(env, agent, step, action_drive, action_history, car, observation):
    speed = car[env, agent, AHEAD]
    observation[env, agent, SPEED] = speed / SPEED_SCALE
    observation[env, agent, GEAR] = float32(gear_at(speed)) / float32(GEARS)
    observation[env, agent, RPM] = rpm_at(speed) / TOP_RPM
    if step[env] == 0 or action_history[env] == 0:
        for i in range(MEMORY_AT, MEMORY_END):
            observation[env, agent, i] = 0.0
        return
    for i in range(MEMORY_END - 1, MEMORY_AT + PER_ACTION - 1, -1):
        observation[env, agent, i] = observation[env, agent, i - PER_ACTION]
    action = known_action(action_drive[env, agent])
    observation[env, agent, MEMORY_AT] = PRESSED_GAS[action]
    observation[env, agent, MEMORY_AT + 1] = PRESSED_BRAKE[action]
    observation[env, agent, MEMORY_AT + 2] = STEERED[action]
