"""The game itself: who is caught, what is earned, when it ends, and what everybody observes.

A step in order: everyone turns, blocks are placed and removed, everyone moves; everyone looks who
is visible; hiders held in reach long enough are caught and leave; the end is judged; everyone
observes.
"""

import math

from ludus.games.hide_and_seek.building import aim, cell_before, placeable
from ludus.games.hide_and_seek.observation import (
    BLOCKS_AT,
    CLOCK_AT,
    EDGES_AT,
    LAST_SEEN_AT,
    MOTION_AT,
    NEAREST_AT,
    SELF_AT,
)
from ludus.games.hide_and_seek.physics import STEEPEST, STEP_SECONDS
from ludus.games.hide_and_seek.vision import RANGE, distance, in_line
from ludus.sim import float32, geometry, phase

EDGE_RANGE = 16.0  # the world's edge is felt from here on
# how far ahead, and how high above the feet, blocks ahead are felt
FEELER, FEELER_HEIGHT = 3.0, 0.5
TALLEST = 16.0  # scales heights
FASTEST, FASTEST_UP = 8.0, 20.0  # scale velocities
FORGOTTEN = 5.0  # seconds after which "a while ago" reads as never
HALF_NEAR = 8.0  # metres at which a hider counts as half near
PARTS = 8  # the world in 8x8 parts, for counting how much of it a seeker went through


@phase(lanes="agents", writes=("held", "caught"))
def hold(
    env,
    agent,
    seekers,
    world,
    step,
    hide_steps,
    alive,
    position,
    facing,
    pitch,
    sight,
    top,
    catch_distance,
    catch_seconds,
    held,
    caught,
):
    """A hider within reach of a seeker and in line with its eye is held; held without a break for
    long enough, it is caught."""
    caught[env, agent] = False
    if agent < seekers or not alive[env, agent] or step[env] <= hide_steps[env]:
        held[env, agent] = 0.0
        return
    within = False
    for seeker in range(seekers):
        near = distance(position, env, seeker, agent) <= catch_distance[env]
        within = within or (
            near
            and in_line(sight, position, facing, pitch, env, seeker, agent, world, top[env], False)
        )
    held[env, agent] = held[env, agent] + STEP_SECONDS if within else float32(0.0)
    caught[env, agent] = held[env, agent] >= catch_seconds[env] - 0.5 * STEP_SECONDS


@phase(
    lanes="agents",
    writes=(
        "alive",
        "term_sees",
        "term_sees_each",
        "term_catch",
        "term_hidden",
        "term_seen",
        "term_caught",
        "term_time",
        "goal_catch_rate",
        "goal_survival",
        "goal_lasted",
    ),
)
def leave(
    env,
    agent,
    agents,
    seekers,
    hiders,
    step,
    hide_steps,
    max_steps,
    visible,
    caught,
    alive,
    term_sees,
    term_sees_each,
    term_catch,
    term_hidden,
    term_seen,
    term_caught,
    term_time,
    goal_catch_rate,
    goal_survival,
    goal_lasted,
):
    """The caught leave. While hiding lasts nothing is earned."""
    if agent >= seekers and alive[env, agent]:
        goal_survival[env, agent] = 0.0 if caught[env, agent] else 1.0
    if not alive[env, agent] or step[env] <= hide_steps[env]:
        return
    term_time[env, agent] = 1.0
    if agent < seekers:
        seen, count = 0, 0
        for hider in range(seekers, agents):
            if visible[env, agent, hider]:
                seen += 1
            if caught[env, hider]:
                count += 1
        term_sees[env, agent] = 1.0 if seen > 0 else 0.0
        term_sees_each[env, agent] = float32(seen)
        term_catch[env, agent] = float32(count)
        goal_catch_rate[env, agent] += float32(count) / float32(hiders)
        return
    is_seen = False
    for seeker in range(seekers):
        is_seen = is_seen or visible[env, seeker, agent]
    term_hidden[env, agent] = 0.0 if is_seen else 1.0
    term_seen[env, agent] = 1.0 if is_seen else 0.0
    goal_lasted[env, agent] += 1.0 / float32(max(max_steps[env] - hide_steps[env], 1))
    if caught[env, agent]:
        alive[env, agent] = False
        term_caught[env, agent] = 1.0


@phase(
    writes=(
        "terminated",
        "outcome",
        "found",
        "term_all_caught",
        "term_none_caught",
        "term_survived",
    )
)
def judge(
    env,
    agents,
    seekers,
    hiders,
    alive,
    step,
    max_steps,
    terminated,
    outcome,
    found,
    term_all_caught,
    term_none_caught,
    term_survived,
):
    """All caught, or time is up. The time left is observed, so both ends are terminal."""
    left = 0
    for hider in range(seekers, agents):
        if alive[env, hider]:
            left += 1
    found[env] = hiders - left
    terminated[env] = left == 0 or step[env] >= max_steps[env]
    if not terminated[env]:
        return
    for seeker in range(seekers):
        term_all_caught[env, seeker] = 1.0 if left == 0 else 0.0
        term_none_caught[env, seeker] = 1.0 if left == hiders else 0.0
        outcome[env, seeker] = 1 if left == 0 else (-1 if left == hiders else 0)
    for hider in range(seekers, agents):
        term_survived[env, hider] = 1.0 if alive[env, hider] else 0.0
        outcome[env, hider] = 1 if alive[env, hider] else -1


def nearness(position, alive, env, seeker, seekers, agents):
    """A potential: 0 for hiders out of the world, 1 for each at hand or caught."""
    total = float32(0.0)
    for hider in range(seekers, agents):
        total += (
            HALF_NEAR / (HALF_NEAR + distance(position, env, seeker, hider))
            if alive[env, hider]
            else float32(1.0)
        )
    return total


@phase(lanes="agents", writes=("near", "term_approach"))
def approach(env, agent, agents, seekers, step, hide_steps, position, alive, near, term_approach):
    """Pays for coming nearer and takes it back for falling behind, so that it sums to nothing over
    a round trip."""
    if agent >= seekers:
        return
    now = nearness(position, alive, env, agent, seekers, agents)
    if step[env] > hide_steps[env]:
        term_approach[env, agent] = now - near[env, agent]
    near[env, agent] = now


@phase(lanes="agents", writes=("near", "term_cover"))
def take_cover(env, agent, seekers, step, hide_steps, visible, alive, terminated, near, term_cover):
    """Pays a hider for getting out of sight, and takes it back for coming into it. At the end
    everybody is out of sight."""
    if agent < seekers:
        return
    now = float32(0.0)
    for seeker in range(seekers):
        if visible[env, seeker, agent] and alive[env, agent] and not terminated[env]:
            now = float32(-1.0)
    if step[env] > hide_steps[env]:
        term_cover[env, agent] = now - near[env, agent]
    near[env, agent] = now


@phase(lanes="agents", writes=("been", "term_searches"))
def search(env, agent, seekers, world, step, hide_steps, alive, position, been, term_searches):
    """Counts each part of the world that a seeker enters for the first time in an episode."""
    if agent >= seekers or not alive[env, agent] or step[env] <= hide_steps[env]:
        return
    side = float32(world) / float32(PARTS)
    row = min(int(position[env, agent, 0] / side), PARTS - 1)
    bit = 1 << min(int(position[env, agent, 2] / side), PARTS - 1)
    term_searches[env, agent] = 0.0 if been[env, agent, row] & bit else 1.0
    been[env, agent, row] |= bit


@phase(lanes="agents", writes=("near", "been"))
def line_up(env, agent, agents, seekers, position, alive, near, been):
    near[env, agent] = (
        nearness(position, alive, env, agent, seekers, agents) if agent < seekers else float32(0.0)
    )
    for row in range(PARTS):
        been[env, agent, row] = 0


@phase(lanes="agents", writes=("held", "caught"))
def release(env, agent, held, caught):
    held[env, agent] = 0.0
    caught[env, agent] = False


@phase(writes="found")
def count_again(env, found):
    found[env] = 0


# -- what everybody observes -----------------------------------------------------------------------


def edge_nearness(x, z, dx, dz, world):
    """1 at the world's edge, falling to 0 at EDGE_RANGE, in the direction (dx, dz) of length 1."""
    far = float32(EDGE_RANGE)
    if dx > 1e-6:
        far = min(far, (float32(world) - x) / dx)
    elif dx < -1e-6:
        far = min(far, -x / dx)
    if dz > 1e-6:
        far = min(far, (float32(world) - z) / dz)
    elif dz < -1e-6:
        far = min(far, -z / dz)
    return 1.0 - far / EDGE_RANGE


@phase(lanes="agents", writes=("observation", "idle"))
def observe_self(
    env,
    agent,
    world,
    seekers,
    hiders,
    step,
    max_steps,
    hide_steps,
    alive,
    idle,
    found,
    position,
    velocity,
    yaw,
    pitch,
    facing,
    grounded,
    blocked,
    observation,
):
    """Body, edges of the world, clock, motion. A seeker takes no decision while the others hide."""
    idle[env, agent] = agent < seekers and step[env] < hide_steps[env]
    x, z = position[env, agent, 0], position[env, agent, 2]
    ahead_x, ahead_z = facing[env, agent, 0], facing[env, agent, 1]
    half = 0.5 * float32(world)
    observation[env, agent, SELF_AT] = x / half - 1.0
    observation[env, agent, SELF_AT + 1] = position[env, agent, 1] / TALLEST
    observation[env, agent, SELF_AT + 2] = z / half - 1.0
    observation[env, agent, SELF_AT + 3] = yaw[env, agent] / math.pi
    observation[env, agent, SELF_AT + 4] = pitch[env, agent] / STEEPEST
    going_x, going_z = velocity[env, agent, 0] / FASTEST, velocity[env, agent, 2] / FASTEST
    observation[env, agent, SELF_AT + 5] = going_x * ahead_x + going_z * ahead_z
    observation[env, agent, SELF_AT + 6] = velocity[env, agent, 1] / FASTEST_UP
    observation[env, agent, SELF_AT + 7] = going_z * ahead_x - going_x * ahead_z
    observation[env, agent, SELF_AT + 8] = 1.0 if grounded[env, agent] else 0.0
    observation[env, agent, EDGES_AT] = edge_nearness(x, z, ahead_x, ahead_z, world)
    observation[env, agent, EDGES_AT + 1] = edge_nearness(x, z, -ahead_z, ahead_x, world)
    observation[env, agent, EDGES_AT + 2] = edge_nearness(x, z, -ahead_x, -ahead_z, world)
    observation[env, agent, EDGES_AT + 3] = edge_nearness(x, z, ahead_z, -ahead_x, world)
    seeking = step[env] >= hide_steps[env]
    start = hide_steps[env] if seeking else 0
    end = max_steps[env] if seeking else hide_steps[env]
    observation[env, agent, CLOCK_AT] = 1.0 - float32(step[env]) / float32(max_steps[env])
    observation[env, agent, CLOCK_AT + 1] = float32(found[env]) / float32(hiders)
    observation[env, agent, CLOCK_AT + 2] = 1.0 if seeking else 0.0
    observation[env, agent, CLOCK_AT + 3] = float32(step[env] - start) / float32(
        max(end - start, 1)
    )
    moving = abs(velocity[env, agent, 0]) + abs(velocity[env, agent, 2]) > 0.1
    observation[env, agent, MOTION_AT] = 1.0 if blocked[env, agent, 0] else 0.0
    observation[env, agent, MOTION_AT + 1] = 1.0 if blocked[env, agent, 1] else 0.0
    observation[env, agent, MOTION_AT + 2] = 1.0 if moving else 0.0


@phase(lanes="agents", writes="observation")
def observe_others(
    env,
    agent,
    agents,
    seekers,
    hiders,
    alive,
    position,
    facing,
    visible,
    nearest,
    seen_at,
    seen_ago,
    catch_distance,
    observation,
):
    """The last place an opponent was seen, and the nearest one that is visible now. Zero where
    nothing is."""
    x, z = position[env, agent, 0], position[env, agent, 2]
    ahead_x, ahead_z = facing[env, agent, 0], facing[env, agent, 1]
    for i in range(LAST_SEEN_AT, BLOCKS_AT):
        observation[env, agent, i] = 0.0
    ago = min(seen_ago[env, agent] / FORGOTTEN, 1.0)
    observation[env, agent, LAST_SEEN_AT + 2] = ago
    if ago < 1.0:
        dx, dz = (seen_at[env, agent, 0] - x) / RANGE, (seen_at[env, agent, 2] - z) / RANGE
        observation[env, agent, LAST_SEEN_AT] = dx * ahead_x + dz * ahead_z
        observation[env, agent, LAST_SEEN_AT + 1] = dz * ahead_x - dx * ahead_z
    count = 0
    for other in range(agents):
        if visible[env, agent, other] and alive[env, other]:
            count += 1
    target = nearest[env, agent]
    if count == 0 or not alive[env, target]:
        return
    d = distance(position, env, agent, target)
    dx, dz = position[env, target, 0] - x, position[env, target, 2] - z
    flat = max(math.sqrt(dx * dx + dz * dz), 1e-3)
    observation[env, agent, LAST_SEEN_AT + 3] = 1.0
    observation[env, agent, NEAREST_AT] = 1.0
    observation[env, agent, NEAREST_AT + 1] = (dx * ahead_x + dz * ahead_z) / flat
    observation[env, agent, NEAREST_AT + 2] = (dz * ahead_x - dx * ahead_z) / flat
    observation[env, agent, NEAREST_AT + 3] = d / RANGE
    observation[env, agent, NEAREST_AT + 4] = float32(count) / float32(
        hiders if agent < seekers else seekers
    )
    observation[env, agent, NEAREST_AT + 5] = 1.0 if d <= catch_distance[env] else 0.0


@phase(lanes="agents", writes=("observation", "mask_jump", "mask_place", "mask_remove"))
def observe_blocks(
    env,
    agent,
    agents,
    world,
    alive,
    position,
    facing,
    solid,
    top,
    grounded,
    jump_wait,
    places_left,
    removes_left,
    observation,
    mask_jump,
    mask_place,
    mask_remove,
):
    """What could be done with blocks: 0 nothing here, a half if only the budget is missing, 1 if
    allowed."""
    can_place, can_remove = False, False
    t, x, y, z = aim(solid, position, facing, env, agent, world, top[env])
    if y >= 0:
        can_remove = y > 0
        x, y, z = cell_before(position, facing, env, agent, t)
        can_place = placeable(solid, position, alive, env, agents, world, x, y, z)
    mask_jump[env, agent] = grounded[env, agent] and jump_wait[env, agent] == 0
    mask_place[env, agent] = can_place and places_left[env, agent] > 0
    mask_remove[env, agent] = can_remove and removes_left[env, agent] > 0
    observation[env, agent, BLOCKS_AT] = half_or_one(can_place, places_left[env, agent])
    observation[env, agent, BLOCKS_AT + 1] = half_or_one(can_remove, removes_left[env, agent])
    ahead, _, _, _ = geometry.cast_columns(
        solid,
        env,
        world,
        top[env],
        position[env, agent, 0],
        position[env, agent, 1] + FEELER_HEIGHT,
        position[env, agent, 2],
        facing[env, agent, 0],
        float32(0.0),
        facing[env, agent, 1],
        FEELER,
    )
    observation[env, agent, BLOCKS_AT + 2] = 1.0 - ahead / FEELER


def half_or_one(possible, left):
    if not possible:
        return 0.0
    return 1.0 if left > 0 else 0.5
