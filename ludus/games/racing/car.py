"""The car: a dynamic bicycle with tyres that slide, per unit mass, in five sub-steps of 10 ms a
decision.

`car[env, agent]` holds where it is and how it moves; speeds are in its own frame (ahead, to the
left).
"""

import math

import numpy as np

from ludus.games.racing.track import POINT_X, POINT_Y, TANGENT_X, TANGENT_Y
from ludus.sim import float32, geometry, phase

X, Y, HEADING, AHEAD, LEFT, YAW, STEER = range(7)
CAR = 7  # entries of `car`

ACTIONS = (
    "nothing",
    "gas",
    "brake",
    "gas_left",
    "gas_right",
    "left",
    "right",
    "slight_left",
    "slight_right",
    "gas_brake_left",
    "gas_brake_right",
)
(
    NOTHING,
    GAS,
    BRAKE,
    GAS_LEFT,
    GAS_RIGHT,
    STEER_LEFT,
    STEER_RIGHT,
    SLIGHT_LEFT,
    SLIGHT_RIGHT,
    DRIFT_LEFT,
    DRIFT_RIGHT,
) = range(11)
LAST_ACTION = DRIFT_RIGHT
PRESSED_GAS = np.array([0, 1, 0, 1, 1, 0, 0, 0, 0, 1, 1], np.float32)
PRESSED_BRAKE = np.array([0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 1], np.float32)
STEERED = np.array([0, 0, 0, 1, -1, 1, -1, 0.5, -0.5, 1, -1], np.float32)  # left is positive

STEP_SECONDS = 0.05
SUBSTEPS = 5
DT = STEP_SECONDS / float(SUBSTEPS)

GRAVITY = 9.81
TO_FRONT, TO_REAR = 1.3, 1.4  # metres from the centre of mass to the axles
WHEELBASE = TO_FRONT + TO_REAR
INERTIA = 1.9
GRIP_FRONT, GRIP_REAR = 1.6, 1.9  # equal grips spin
LOAD_FRONT, LOAD_REAR = GRAVITY * TO_REAR / WHEELBASE, GRAVITY * TO_FRONT / WHEELBASE
# the engine's strongest push, and its power: it pushes min(DRIVE, POWER / speed)
DRIVE, POWER = 11.0, 450.0
BRAKING, BRAKING_FRONT = 14.0, 0.6  # and the front's share
LENGTHWISE = 0.8  # of an axle's grip, at most, goes into driving and braking
TYRE_STIFFNESS, TYRE_SHAPE = 8.0, 1.4
DRAG = 0.0008
YAW_DAMPING = 1.0
SLOWEST = 3.0  # slip angles are computed as if it went at least this fast

STEER_RATE = 5.0  # radians a second
STEER_MOST, STEER_LEAST, STEER_GRIP = 0.5, 0.06, 1.15

GRASS_GRIP = 0.6
GRASS_DRAG = 0.4  # of the speed, a second

WALL_GAP = 1.5  # metres from the road's edge to a wall
WALL_LOSS = 0.2  # of the speed along it, in every step of contact

GEARS, GEAR_SPEED = 5, 16.0  # gears, and metres a second from one to the next
IDLE_RPM, TOP_RPM = 1000.0, 10000.0


def known_action(action):
    """An action as an index that is safe, whatever was handed in."""
    return min(max(action, 0), LAST_ACTION)


def steer_limit(speed):
    """The largest steering angle: what the front tyres can use at this speed, and a little."""
    return min(
        STEER_MOST, STEER_GRIP * GRIP_FRONT * GRAVITY * WHEELBASE / (speed * speed) + STEER_LEAST
    )


def lengthwise(force, grip):
    """As much of a driving or braking force as an axle can take."""
    return geometry.clamp(force, -LENGTHWISE * grip, LENGTHWISE * grip)


def tyre(slip, grip, along):
    """The sideways force of an axle that also drives or brakes."""
    return math.sqrt(grip * grip - along * along) * math.sin(
        TYRE_SHAPE * math.atan(TYRE_STIFFNESS * slip)
    )


@phase(lanes="agents", writes="car")
def drive(env, agent, action_drive, track, across, bank_half_width, car):
    """Five sub-steps with one action. What is under the wheels is what was there when the step
    began."""
    action = known_action(action_drive[env, agent])
    gas, brake, steering = PRESSED_GAS[action], PRESSED_BRAKE[action], STEERED[action]
    grass = abs(across[env, agent]) > bank_half_width[track[env]]
    grip_front = GRIP_FRONT * LOAD_FRONT * (GRASS_GRIP if grass else 1.0)
    grip_rear = GRIP_REAR * LOAD_REAR * (GRASS_GRIP if grass else 1.0)
    resistance = GRASS_DRAG if grass else 0.0
    x, y, heading = car[env, agent, X], car[env, agent, Y], car[env, agent, HEADING]
    ahead, left, yaw, steer = (
        car[env, agent, AHEAD],
        car[env, agent, LEFT],
        car[env, agent, YAW],
        car[env, agent, STEER],
    )
    for _ in range(SUBSTEPS):
        fast = max(abs(ahead), SLOWEST)
        turn = steering * steer_limit(fast) - steer
        steer += geometry.clamp(turn, -STEER_RATE * DT, STEER_RATE * DT)
        slip_front = steer - math.atan2(left + TO_FRONT * yaw, fast)
        slip_rear = -math.atan2(left - TO_REAR * yaw, fast)
        push = gas * min(DRIVE, POWER / fast)
        # stops the car, never reverses it
        braking = brake * geometry.clamp(ahead / DT, -BRAKING, BRAKING)
        along_front = lengthwise(0.5 * push - BRAKING_FRONT * braking, grip_front)
        along_rear = lengthwise(0.5 * push - (1.0 - BRAKING_FRONT) * braking, grip_rear)
        side_front, side_rear = (
            tyre(slip_front, grip_front, along_front),
            tyre(slip_rear, grip_rear, along_rear),
        )
        cos, sin = math.cos(steer), math.sin(steer)
        front_ahead, front_left = (
            along_front * cos - side_front * sin,
            along_front * sin + side_front * cos,
        )
        gain_ahead = (
            front_ahead + along_rear - DRAG * ahead * abs(ahead) - resistance * ahead + yaw * left
        )
        gain_left = front_left + side_rear - resistance * left - yaw * ahead
        gain_yaw = (TO_FRONT * front_left - TO_REAR * side_rear) / INERTIA - YAW_DAMPING * yaw
        ahead += DT * gain_ahead
        left += DT * gain_left
        yaw += DT * gain_yaw
        cos, sin = math.cos(heading), math.sin(heading)
        x += DT * (ahead * cos - left * sin)
        y += DT * (ahead * sin + left * cos)
        heading += DT * yaw
    car[env, agent, X], car[env, agent, Y], car[env, agent, HEADING] = (
        x,
        y,
        geometry.wrap_angle(heading),
    )
    car[env, agent, AHEAD], car[env, agent, LEFT], car[env, agent, YAW], car[env, agent, STEER] = (
        ahead,
        left,
        yaw,
        steer,
    )


@phase(lanes="agents", writes=("car", "across"))
def meet_wall(env, agent, track, walled, at, bank_line, bank_half_width, across, car):
    """A car that went through a wall is put back before it, without its speed into the wall and
    with less along it."""
    limit = bank_half_width[track[env]] + WALL_GAP
    beyond = abs(across[env, agent]) - limit
    if not walled[env] or beyond <= 0.0:
        return
    point = at[env, agent]
    tangent_x, tangent_y = (
        bank_line[track[env], point, TANGENT_X],
        bank_line[track[env], point, TANGENT_Y],
    )
    side = 1.0 if across[env, agent] > 0.0 else -1.0
    car[env, agent, X] += side * beyond * tangent_y
    car[env, agent, Y] -= side * beyond * tangent_x
    across[env, agent] = side * limit
    cos, sin = math.cos(car[env, agent, HEADING]), math.sin(car[env, agent, HEADING])
    speed_x = car[env, agent, AHEAD] * cos - car[env, agent, LEFT] * sin
    speed_y = car[env, agent, AHEAD] * sin + car[env, agent, LEFT] * cos
    along, into = (
        speed_x * tangent_x + speed_y * tangent_y,
        side * (speed_y * tangent_x - speed_x * tangent_y),
    )
    along *= 1.0 - WALL_LOSS
    into = min(into, 0.0)
    speed_x, speed_y = (
        along * tangent_x - side * into * tangent_y,
        along * tangent_y + side * into * tangent_x,
    )
    car[env, agent, AHEAD] = speed_x * cos + speed_y * sin
    car[env, agent, LEFT] = speed_y * cos - speed_x * sin


def gear_at(speed):
    """1 to GEARS."""
    return min(1 + int(max(speed, 0.0) / GEAR_SPEED), GEARS)


def rpm_at(speed):
    """Rises through a gear, falls back where it changes."""
    share = max(speed, 0.0) / GEAR_SPEED - float32(gear_at(speed) - 1)
    return IDLE_RPM + (TOP_RPM - IDLE_RPM) * min(share, 1.0)


@phase(lanes="agents", writes="car")
def line_up(env, agent, track, bank_line, car):
    """At the start of the track, standing still."""
    for i in range(CAR):
        car[env, agent, i] = 0.0
    car[env, agent, X] = bank_line[track[env], 0, POINT_X]
    car[env, agent, Y] = bank_line[track[env], 0, POINT_Y]
    car[env, agent, HEADING] = math.atan2(
        bank_line[track[env], 0, TANGENT_Y], bank_line[track[env], 0, TANGENT_X]
    )
