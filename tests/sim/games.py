"""Small games made for tests."""

from dataclasses import replace

import numpy as np

from ludus.games import load_game
from ludus.sim import Binary, Choice, Game, Goal, Param, Role, Term, f32, float32, i32, phase

PURSUIT = load_game("pursuit")[0]


@phase(lanes="agents", writes="total")
def add(env, agent, action_push, total):
    total[env, agent] += action_push[env, agent]


@phase(writes=("terminated", "truncated", "alive"))
def end(env, step, max_steps, dies_at, ends, alive, terminated, truncated):
    if step[env] == dies_at[env]:
        alive[env, 1] = False
    if step[env] >= max_steps[env]:
        if ends[env]:
            terminated[env] = True
        else:
            truncated[env] = True


@phase(lanes="agents", writes=("observation", "term_one", "term_push", "goal_pushes", "mask_pick"))
def look(
    env,
    agent,
    total,
    step,
    action_push,
    resetting,
    observation,
    term_one,
    term_push,
    goal_pushes,
    mask_pick,
):
    observation[env, agent, 0] = float32(total[env, agent]) / 100.0
    observation[env, agent, 1] = float32(step[env]) / 10.0
    mask_pick[env, agent, 2] = False
    if not resetting[env]:
        term_one[env, agent] = 1.0
        term_push[env, agent] = float32(action_push[env, agent])
        goal_pushes[env, agent] = float32(total[env, agent])


@phase(lanes="agents", writes="total")
def clear(env, agent, total):
    total[env, agent] = 0


COUNTER = Game(
    name="counter",
    summary="two agents count; one may die",
    roles=[Role("left"), Role("right")],
    state=dict(total=i32("agents")),
    params=dict(
        max_steps=Param(5, 1, 100, "length"),
        dies_at=Param(0, 0, 100, "step at which the right agent dies; 0: never"),
        ends=Param(0, 0, 1, "1: the end is terminal"),
        slope=Param(1.0, -1.0, 1.0, "unused"),
    ),
    observation=["total", "time"],
    action=dict(push=Binary(), pick=Choice(("a", "b", "c"), masked=True)),
    rewards=dict(
        one=Term("goal", 2.0, most="max_steps"),
        push=Term("shaping", 0.5, most="max_steps", roles="left"),
    ),
    goal_metrics=dict(pushes=Goal("pushes")),
    step=[add, end, look],
    reset=[clear, look],
)


def variant(game: Game = COUNTER, **changes) -> Game:
    return replace(game, **changes)


@phase(lanes="agents", writes="speed")
def write_parameter(env, agent, speed):
    pass


@phase(lanes="agents", writes="x")
def neighbour(env, agent, x):
    x[env, 1 - agent] = 1.0


@phase(lanes="agents", writes="x")
def next_neighbour(env, agent, x):
    x[env, agent + 1] = 1.0


@phase(lanes="agents", writes="x")
def reads_previous(env, agent, x):
    x[env, agent] = x[env, agent - 1]


def with_default(x, scale=2.0):
    return x * scale


@phase(lanes="agents", writes="x")
def calls_with_default(env, agent, x):
    x[env, agent] = with_default(x[env, agent])


def poke(x, env, other):
    x[env, other] = 1.0


@phase(lanes="agents", writes="x")
def neighbour_through_helper(env, agent, x):
    poke(x, env, 1 - agent)


@phase(lanes="agents", writes="x")
def own_through_helper(env, agent, x):
    poke(x, env, agent)


@phase(lanes="agents", writes="x")
def reads_neighbour(env, agent, x):
    x[env, agent] = x[env, 1 - agent] + 1.0


@phase(lanes="agents", writes="x")
def undeclared(env, agent, x, total):
    x[env, agent] = 1.0
    total[env, agent] += 1


@phase(lanes="agents", writes=("x", "total"))
def never_written(env, agent, x, total):
    x[env, agent] = float32(total[env, agent])


@phase(lanes="agents", writes="x")
def unknown_field(env, agent, x, totl):
    x[env, agent] = totl[env, agent]


@phase(lanes="wheels", writes="x")
def unknown_lanes(env, wheel, x):
    x[env, wheel] = 1.0


@phase(lanes="agents", writes="x")
def another_env(env, agent, x):
    x[env, agent] = x[env - 1, agent]


@phase(lanes="agents", writes="x")
def wrong_axes(env, agent, x):
    x[env] = 1.0


@phase(lanes="agents", writes="reward")
def writes_reward(env, agent, reward):
    reward[env, agent] = 1.0


@phase(lanes="agents", writes="x")
def whole_field(env, agent, x):
    y = x
    y[env, agent] = 1.0


@phase(lanes="agents", writes="x")
def doubles(env, agent, x, step):
    x[env, agent] = 0.5 * step[env]


def with_phase(p) -> Game:
    """COUNTER with a field x and one more phase."""
    return variant(state=dict(total=i32("agents"), x=f32("agents")), step=[p, *COUNTER.step])


@phase(lanes=("squares", "digits"), writes="table")
def fill_table(env, square, digit, slope, table):
    table[square, digit] = slope[env] * float32(square * square + digit)


@phase(lanes="agents", writes="observation")
def look_up(env, agent, table, observation):
    observation[env, agent, 1] = table[agent + 1, 0] / 100.0


TABLED = variant(
    name="tabled",
    sizes=dict(squares=4, digits=3),
    state=dict(total=i32("agents"), table=f32("squares", "digits", shared=True)),
    setup=[fill_table],
    step=[*COUNTER.step, look_up],
    reset=[*COUNTER.reset, look_up],
)


@phase(lanes="agents", writes="total")
def stores_a_fraction(env, agent, step, total):
    total[env, agent] = 0.5 * float32(step[env])


def halved(value):
    return max(value, 0.5 * value)


@phase(lanes="agents", writes=("x", "total"))
def adds_a_fraction(env, agent, x, total):
    total[env, agent] += halved(x[env, agent])
    x[env, agent] = 0.0


@phase(lanes="agents", writes="x")
def clips(env, agent, x, total):
    x[env, agent] = np.clip(float32(total[env, agent]), 0.0, 1.0)


def lists(value):
    near = []
    near.append(value)
    return near[0]


@phase(lanes="agents", writes="x")
def calls_one_that_lists(env, agent, x):
    x[env, agent] = lists(x[env, agent])


@phase(lanes="agents", writes="x")
def calls_with_too_much(env, agent, x):
    x[env, agent] = halved(x[env, agent], 1.0)


@phase(lanes="agents", writes="observation")
def shows_too_much(env, agent, step, observation):
    if step[env] == 4:
        observation[env, agent, 2] = 1.0


@phase(lanes="agents", writes="x")
def sets_it_sometimes(env, agent, step, x):
    if step[env] < 3:
        y = 1.0
    x[env, agent] = y


SHOWS_TOO_MUCH = with_phase(shows_too_much)
SETS_SOMETIMES = with_phase(sets_it_sometimes)
