"""Bodies among blocks: walking, jumping, falling, and where an agent starts."""

import math

from ludus.sim import float32, geometry, phase, random

SUBSTEPS = 5
DT = 1.0 / 60.0
STEP_SECONDS = SUBSTEPS * DT
HALF, HEIGHT, EYE, CHEST = 0.25, 1.5, 1.4, 0.9  # of a body; eye and chest above the feet
GAP = 1e-3  # left between a body and the block that stopped it
GRAVITY, FASTEST_FALL, JUMP_SPEED = 32.0, 78.0, 8.4
JUMP_WAIT = 30  # sub-steps from one jump to the next
TURN, LOOK = math.radians(112.0), math.radians(30.0)  # a step, at full deflection
STEEPEST = math.radians(60.0)  # of the view, up or down
SPAWN_APART, SPAWN_TRIES = 5.0, 200

SPAWN_X, SPAWN_Z, SPAWN_YAW = 21, 22, 23  # streams of randomness


def collides(solid, env, world, x, y, z):
    """Would a body with its feet here be inside a block?"""
    low, high = max(int(y), 0), min(int(y + HEIGHT - GAP), 30)
    if high < low:
        return False
    bits = ((2 << (high - low)) - 1) << low
    x0, x1 = int(x - HALF), min(int(x + HALF), world - 1)
    z0, z1 = int(z - HALF), min(int(z + HALF), world - 1)
    return (
        (solid[env, x0, z0] | solid[env, x0, z1] | solid[env, x1, z0] | solid[env, x1, z1]) & bits
    ) != 0


def stopped(old, new):
    """Where a body that would move from old to new along one axis is stopped by the block it
    meets."""
    if new > old:
        return max(old, float32(int(new + HALF)) - HALF - GAP)
    return min(old, float32(int(new - HALF) + 1) + HALF + GAP)


def slide(solid, env, agent, world, position, fall, grounded, blocked, jump_wait, move_x, move_z):
    """One sub-step: along x, along z, then up or down, each as far as blocks allow."""
    x, y, z = position[env, agent, 0], position[env, agent, 1], position[env, agent, 2]
    edge = float32(world) - HALF
    wanted = x + move_x
    new = geometry.clamp(wanted, HALF, edge)
    hit = new != wanted
    if collides(solid, env, world, new, y, z):
        new, hit = stopped(x, new), True
    x = new
    if hit:
        blocked[env, agent, 0] = True
    wanted = z + move_z
    new = geometry.clamp(wanted, HALF, edge)
    hit = new != wanted
    if collides(solid, env, world, x, y, new):
        new, hit = stopped(z, new), True
    z = new
    if hit:
        blocked[env, agent, 1] = True
    speed = fall[env, agent]
    new = y + speed * DT - 0.5 * GRAVITY * DT * DT
    fall[env, agent] = max(speed - GRAVITY * DT, -FASTEST_FALL)
    grounded[env, agent] = False
    if collides(solid, env, world, x, new, z):
        fall[env, agent] = 0.0
        if new < y:
            grounded[env, agent] = True
            new = min(y, float32(int(new) + 1))
        else:
            new = max(y, float32(int(new + HEIGHT - GAP)) - HEIGHT)
    position[env, agent, 0] = x
    position[env, agent, 1] = new
    position[env, agent, 2] = z
    if jump_wait[env, agent] > 0:
        jump_wait[env, agent] -= 1


@phase(lanes="agents", writes=("yaw", "pitch", "facing"))
def turn(env, agent, alive, idle, action_turn, action_look, yaw, pitch, facing):
    if not alive[env, agent] or idle[env, agent]:
        return
    yaw[env, agent] = geometry.wrap_angle(
        yaw[env, agent] + TURN * geometry.clamp(action_turn[env, agent], -1.0, 1.0)
    )
    look = LOOK * geometry.clamp(action_look[env, agent], -1.0, 1.0)
    pitch[env, agent] = geometry.clamp(pitch[env, agent] + look, -STEEPEST, STEEPEST)
    face(facing, env, agent, yaw[env, agent], pitch[env, agent])


def face(facing, env, agent, yaw, pitch):
    facing[env, agent, 0] = math.cos(yaw)
    facing[env, agent, 1] = math.sin(yaw)
    facing[env, agent, 2] = math.cos(pitch)
    facing[env, agent, 3] = math.sin(pitch)


@phase(lanes="agents", writes=("position", "velocity", "fall", "grounded", "blocked", "jump_wait"))
def move(
    env,
    agent,
    world,
    seekers,
    alive,
    idle,
    action_forward,
    action_strafe,
    action_jump,
    facing,
    solid,
    seeker_speed,
    hider_speed,
    position,
    velocity,
    fall,
    grounded,
    blocked,
    jump_wait,
):
    """Five sub-steps of walking and falling. `velocity` is what the whole step came to."""
    if not alive[env, agent]:
        return
    forward = geometry.clamp(action_forward[env, agent], -1.0, 1.0)
    strafe = geometry.clamp(action_strafe[env, agent], -1.0, 1.0)
    pace = (seeker_speed[env] if agent < seekers else hider_speed[env]) / max(
        1.0, math.sqrt(forward * forward + strafe * strafe)
    )
    if idle[env, agent]:
        pace = float32(0.0)
    elif action_jump[env, agent] and grounded[env, agent] and jump_wait[env, agent] == 0:
        fall[env, agent] = JUMP_SPEED
        jump_wait[env, agent] = JUMP_WAIT
    ahead_x, ahead_z = facing[env, agent, 0], facing[env, agent, 1]
    move_x = pace * (forward * ahead_x - strafe * ahead_z) * DT
    move_z = pace * (forward * ahead_z + strafe * ahead_x) * DT
    x, y, z = position[env, agent, 0], position[env, agent, 1], position[env, agent, 2]
    blocked[env, agent, 0] = False
    blocked[env, agent, 1] = False
    for _ in range(SUBSTEPS):
        slide(
            solid, env, agent, world, position, fall, grounded, blocked, jump_wait, move_x, move_z
        )
    velocity[env, agent, 0] = (position[env, agent, 0] - x) / STEP_SECONDS
    velocity[env, agent, 1] = (position[env, agent, 1] - y) / STEP_SECONDS
    velocity[env, agent, 2] = (position[env, agent, 2] - z) / STEP_SECONDS


# -- where agents start ----------------------------------------------------------------------------


def clearance(position, env, agent, x, z):
    """Distance to the nearest of the agents placed before this one."""
    nearest = geometry.FAR
    for other in range(agent):
        dx, dz = position[env, other, 0] - x, position[env, other, 2] - z
        nearest = min(nearest, math.sqrt(dx * dx + dz * dz))
    return nearest


def put(position, solid, env, agent, x, z):
    """Stands an agent in the middle of a column, on its highest block."""
    top = 0
    while solid[env, x, z] >> top:
        top += 1
    position[env, agent, 0] = float32(x) + 0.5
    position[env, agent, 1] = float32(top)
    position[env, agent, 2] = float32(z) + 0.5


def find_place(position, solid, ground, env, agent, world, key):
    """A column of the middle area with nothing on its ground, far enough from the agents placed
    before."""
    margin = world // 8
    span = world - 2 * margin
    for attempt in range(SPAWN_TRIES):
        x = margin + random.integer(key, SPAWN_X, agent * SPAWN_TRIES + attempt, span)
        z = margin + random.integer(key, SPAWN_Z, agent * SPAWN_TRIES + attempt, span)
        free = solid[env, x, z] >> ground[env, x, z] == 0
        if (
            free
            and clearance(position, env, agent, float32(x) + 0.5, float32(z) + 0.5) >= SPAWN_APART
        ):
            put(position, solid, env, agent, x, z)
            return
    # very rare: take the free column farthest from the others
    best, best_x, best_z = float32(-1.0), margin, margin
    for x in range(world):
        for z in range(world):
            away = clearance(position, env, agent, float32(x) + 0.5, float32(z) + 0.5)
            if away > best and solid[env, x, z] >> ground[env, x, z] == 0:
                best, best_x, best_z = away, x, z
    put(position, solid, env, agent, best_x, best_z)


@phase(writes="position")
def spawn(env, agents, world, key, solid, ground, position):
    for agent in range(agents):
        find_place(position, solid, ground, env, agent, world, key[env])


@phase(
    lanes="agents",
    writes=("yaw", "pitch", "facing", "velocity", "fall", "grounded", "blocked", "jump_wait"),
)
def wake(env, agent, key, yaw, pitch, facing, velocity, fall, grounded, blocked, jump_wait):
    yaw[env, agent] = random.between(key[env], SPAWN_YAW, agent, -math.pi, math.pi)
    pitch[env, agent] = 0.0
    face(facing, env, agent, yaw[env, agent], pitch[env, agent])
    for axis in range(3):
        velocity[env, agent, axis] = 0.0
    fall[env, agent] = 0.0
    grounded[env, agent] = True
    blocked[env, agent, 0] = False
    blocked[env, agent, 1] = False
    jump_wait[env, agent] = 0
