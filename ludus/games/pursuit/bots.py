"""Scripted players of pursuit."""

import math

from ludus.games.pursuit.rules import CHASER, WORLD, distance, shortest
from ludus.sim import phase


def turn_towards(heading, dx, dy):
    """The turn in [-1, 1] that brings a heading closer to the direction (dx, dy)."""
    across = math.cos(heading) * dy - math.sin(heading) * dx
    along = math.cos(heading) * dx + math.sin(heading) * dy
    return min(max(math.atan2(across, along), -1.0), 1.0)


@phase(lanes="agents", writes=("action_turn", "action_go"))
def greedy(env, agent, agents, alive, position, heading, action_turn, action_go):
    """Runs at the nearest runner."""
    nearest, target = WORLD, CHASER
    for other in range(1, agents):
        d = distance(position, env, other, agent)
        if alive[env, other] and d < nearest:
            nearest, target = d, other
    dx = shortest(position[env, target, 0] - position[env, agent, 0])
    dy = shortest(position[env, target, 1] - position[env, agent, 1])
    action_turn[env, agent] = turn_towards(heading[env, agent], dx, dy)
    action_go[env, agent] = 1


@phase(lanes="agents", writes=("action_turn", "action_go"))
def flee(env, agent, position, heading, action_turn, action_go):
    """Runs straight away from the chaser."""
    dx = shortest(position[env, agent, 0] - position[env, CHASER, 0])
    dy = shortest(position[env, agent, 1] - position[env, CHASER, 1])
    action_turn[env, agent] = turn_towards(heading[env, agent], dx, dy)
    action_go[env, agent] = 1
