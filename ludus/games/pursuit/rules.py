"""Pursuit: one chaser hunts several runners on a torus, a square whose opposite edges meet.

A step in order: everyone moves; each runner looks whether the chaser reaches it; the caught leave;
the end is judged; everyone looks around.
"""

import math

from ludus.sim import float32, phase, random

WORLD = 10.0
CHASER = 0  # agent 0; the runners follow
TURN = 0.6  # radians a step at full deflection
SPAWN_X, SPAWN_Y, SPAWN_HEADING = 1, 2, 3


def wrap(x):
    """A coordinate back inside the world."""
    if x < 0.0:
        return x + WORLD
    if x >= WORLD:
        return x - WORLD
    return x


def shortest(d):
    """A difference of coordinates, the short way round."""
    if d > WORLD / 2.0:
        return d - WORLD
    if d < -WORLD / 2.0:
        return d + WORLD
    return d


def distance(position, env, a, b):
    dx = shortest(position[env, a, 0] - position[env, b, 0])
    dy = shortest(position[env, a, 1] - position[env, b, 1])
    return math.sqrt(dx * dx + dy * dy)


@phase(lanes="agents", writes=("position", "heading"))
def move(env, agent, alive, position, heading, action_turn, action_go, speed, chaser_speed):
    if not alive[env, agent]:
        return
    turned = heading[env, agent] + TURN * min(max(action_turn[env, agent], -1.0), 1.0)
    heading[env, agent] = turned - 2.0 * math.pi * float32(math.floor(turned / (2.0 * math.pi)))
    if action_go[env, agent]:
        pace = chaser_speed[env] if agent == CHASER else speed[env]
        position[env, agent, 0] = wrap(
            position[env, agent, 0] + pace * math.cos(heading[env, agent])
        )
        position[env, agent, 1] = wrap(
            position[env, agent, 1] + pace * math.sin(heading[env, agent])
        )


@phase(lanes="agents", writes=("caught", "term_near"))
def reach_out(env, agent, agents, alive, position, reach, caught, term_near):
    caught[env, agent] = False
    if agent != CHASER:
        caught[env, agent] = (
            alive[env, agent] and distance(position, env, agent, CHASER) < reach[env]
        )
        return
    nearest = WORLD
    for other in range(1, agents):
        if alive[env, other]:
            nearest = min(nearest, distance(position, env, other, CHASER))
    term_near[env, agent] = 1.0 - nearest / WORLD


@phase(
    lanes="agents",
    writes=("alive", "term_catch", "term_caught", "goal_survival", "goal_catch_rate"),
)
def leave(
    env,
    agent,
    agents,
    runners,
    caught,
    alive,
    term_catch,
    term_caught,
    goal_survival,
    goal_catch_rate,
):
    if agent == CHASER:
        count = 0.0
        for other in range(1, agents):
            if caught[env, other]:
                count += 1.0
        term_catch[env, agent] = count
        goal_catch_rate[env, agent] += count / float32(runners)
    else:
        if caught[env, agent]:
            alive[env, agent] = False
            term_caught[env, agent] = 1.0
        goal_survival[env, agent] = 1.0 if alive[env, agent] else 0.0


@phase(writes=("terminated", "truncated", "outcome"))
def judge(env, agents, alive, step, max_steps, terminated, truncated, outcome):
    left = 0
    for runner in range(1, agents):
        if alive[env, runner]:
            left += 1
    terminated[env] = left == 0
    truncated[env] = left > 0 and step[env] >= max_steps[env]
    if terminated[env] or truncated[env]:
        outcome[env, CHASER] = 1 if left == 0 else -1
        for runner in range(1, agents):
            outcome[env, runner] = 1 if alive[env, runner] else -1


@phase(lanes="agents", writes=("position", "heading"))
def spawn(env, agent, key, position, heading):
    position[env, agent, 0] = random.between(key[env], SPAWN_X, agent, 0.0, WORLD)
    position[env, agent, 1] = random.between(key[env], SPAWN_Y, agent, 0.0, WORLD)
    heading[env, agent] = random.between(key[env], SPAWN_HEADING, agent, 0.0, 2.0 * math.pi)


@phase(lanes="agents", writes="observation")
def observe(env, agent, agents, alive, position, heading, observation):
    """Own heading, then every other agent: alive, and where it is as seen from here (ahead, to the
    left)."""
    ahead_x, ahead_y = math.cos(heading[env, agent]), math.sin(heading[env, agent])
    observation[env, agent, 0] = ahead_x
    observation[env, agent, 1] = ahead_y
    at = 2
    for other in range(agents):
        if other != agent:
            dx = shortest(position[env, other, 0] - position[env, agent, 0]) / WORLD
            dy = shortest(position[env, other, 1] - position[env, agent, 1]) / WORLD
            here = 1.0 if alive[env, other] else 0.0
            observation[env, agent, at] = here
            observation[env, agent, at + 1] = here * (dx * ahead_x + dy * ahead_y)
            observation[env, agent, at + 2] = here * (dy * ahead_x - dx * ahead_y)
            at += 3
