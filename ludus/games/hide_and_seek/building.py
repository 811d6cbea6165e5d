"""Placing and removing blocks: each agent says what it wants, then the env carries it out in the
order of the agents."""

from ludus.games.hide_and_seek.physics import EYE, HALF, HEIGHT
from ludus.sim import float32, geometry, phase

REACH = 3.0
NEITHER, PLACE, REMOVE = 0, 1, 2
BEFORE = 1e-3  # how far before the face it meets a new block's cell is looked for


def aim(solid, position, facing, env, agent, world, top):
    """The block an agent looks at within its reach: (distance, x, y, z), or y = -1."""
    x, y, z = position[env, agent, 0], position[env, agent, 1] + EYE, position[env, agent, 2]
    level = facing[env, agent, 2]
    return geometry.cast_columns(
        solid,
        env,
        world,
        top,
        x,
        y,
        z,
        facing[env, agent, 0] * level,
        facing[env, agent, 3],
        facing[env, agent, 1] * level,
        REACH,
    )


def cell_before(position, facing, env, agent, t):
    """The cell in front of the face met at distance t."""
    t = max(t - BEFORE, 0.0)
    level = facing[env, agent, 2]
    x = position[env, agent, 0] + t * facing[env, agent, 0] * level
    y = position[env, agent, 1] + EYE + t * facing[env, agent, 3]
    z = position[env, agent, 2] + t * facing[env, agent, 1] * level
    return int(x), int(y), int(z)


def occupied(position, alive, env, agents, x, y, z):
    """Does a living agent's body reach into the cell?"""
    for agent in range(agents):
        if alive[env, agent]:
            dx = abs(position[env, agent, 0] - float32(x) - 0.5)
            dz = abs(position[env, agent, 2] - float32(z) - 0.5)
            low = position[env, agent, 1] - float32(y)
            if dx < HALF + 0.5 and dz < HALF + 0.5 and -HEIGHT < low < 1.0:
                return True
    return False


def placeable(solid, position, alive, env, agents, world, x, y, z):
    if x < 0 or x >= world or z < 0 or z >= world or y < 1 or y > 30:
        return False
    return (solid[env, x, z] >> y) & 1 == 0 and not occupied(position, alive, env, agents, x, y, z)


@phase(lanes="agents", writes=("wish", "wish_at"))
def intend(
    env,
    agent,
    world,
    alive,
    idle,
    action_place,
    action_remove,
    places_left,
    removes_left,
    position,
    facing,
    solid,
    top,
    wish,
    wish_at,
):
    """What an agent wants to do, and where. Placing comes first if both keys are down."""
    wish[env, agent] = NEITHER
    if not alive[env, agent] or idle[env, agent]:
        return
    placing = action_place[env, agent] and places_left[env, agent] > 0
    removing = action_remove[env, agent] and removes_left[env, agent] > 0
    if not placing and not removing:
        return
    t, x, y, z = aim(solid, position, facing, env, agent, world, top[env])
    if y < 0:
        return
    wish[env, agent] = PLACE if placing else REMOVE
    if placing:
        x, y, z = cell_before(position, facing, env, agent, t)
    wish_at[env, agent, 0] = x
    wish_at[env, agent, 1] = y
    wish_at[env, agent, 2] = z


@phase(writes=("solid", "sight", "placed", "places_left", "removes_left", "edited", "top"))
def build(
    env,
    agents,
    world,
    alive,
    position,
    wish,
    wish_at,
    solid,
    sight,
    placed,
    places_left,
    removes_left,
    edited,
    top,
):
    for agent in range(agents):
        if wish[env, agent] == NEITHER:
            continue
        x, y, z = wish_at[env, agent, 0], wish_at[env, agent, 1], wish_at[env, agent, 2]
        if wish[env, agent] == PLACE:
            if placeable(solid, position, alive, env, agents, world, x, y, z):
                solid[env, x, z] |= 1 << y
                sight[env, x, z] |= 1 << y
                placed[env, x, z] |= 1 << y
                top[env] = max(top[env], y + 1)
                places_left[env, agent] -= 1
                edited[env] = True
        elif y > 0 and (solid[env, x, z] >> y) & 1:
            solid[env, x, z] &= ~(1 << y)
            sight[env, x, z] &= ~(1 << y)
            placed[env, x, z] &= ~(1 << y)
            removes_left[env, agent] -= 1
            edited[env] = True


@phase(lanes="agents", writes=("places_left", "removes_left"))
def hand_out(env, agent, place_budget, remove_budget, places_left, removes_left):
    places_left[env, agent] = place_budget[env]
    removes_left[env, agent] = remove_budget[env]
