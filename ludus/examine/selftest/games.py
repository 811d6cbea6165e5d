"""Two tiny games in which everything that happens follows from env, agent, step and action, so that
it can be known twice.

Episodes of env e last max_steps + e % 3 steps; in even envs they end for good, in odd ones they are
cut off. In both games one agent dies at step 3, another has no decision at every fourth step, and
what is allowed changes from step to step. The observation says where and when it was made, and what
was done last.
"""

from __future__ import annotations

from ludus.sim import (
    Binary,
    Choice,
    Continuous,
    Game,
    Goal,
    Image,
    Param,
    Role,
    Term,
    f32,
    float32,
    phase,
    u8,
)

DIES_AT = 3
WEIGHT = 2.0


@phase(writes=("terminated", "truncated"))
def end(env, step, max_steps, terminated, truncated):
    over = step[env] >= max_steps[env] + env % 3
    terminated[env] = over and env % 2 == 0
    truncated[env] = over and env % 2 == 1


@phase(
    lanes="agents",
    writes=(
        "alive",
        "idle",
        "observation",
        "term_work",
        "goal_work",
        "mask_press",
        "mask_pick",
        "unused",
    ),
)
def diary(
    env,
    agent,
    step,
    episode,
    resetting,
    action_push,
    action_press,
    action_pick,
    alive,
    idle,
    observation,
    term_work,
    goal_work,
    mask_press,
    mask_pick,
    unused,
):
    if agent == 2 and step[env] >= DIES_AT:
        alive[env, agent] = False
    idle[env, agent] = agent == 1 and step[env] % 4 == 1
    observation[env, agent, 0] = 0.25 * float32(env)
    observation[env, agent, 1] = 0.5 * float32(agent)
    observation[env, agent, 2] = 0.125 * float32(step[env])
    observation[env, agent, 3] = 0.25 * float32(episode[env] % 8)
    mask_press[env, agent] = step[env] % 2 == 0
    for option in range(3):
        mask_pick[env, agent, option] = option != (step[env] + agent) % 3
    for entry in range(4, 7):
        observation[env, agent, entry] = 0.0
    if not resetting[env]:
        push, press, pick = (
            action_push[env, agent],
            float32(action_press[env, agent]),
            float32(action_pick[env, agent]),
        )
        observation[env, agent, 4] = push
        observation[env, agent, 5] = press
        observation[env, agent, 6] = 0.5 * pick
        term_work[env, agent] = (
            float32(1.0)
            + float32(0.25) * float32(step[env])
            + press
            + float32(0.5) * pick
            - push * push
        )
        goal_work[env, agent] = float32(step[env])
    unused[env, agent] = 0.0


DIARY = Game(
    name="diary",
    summary="for the selftest: two roles, every kind of action, death, idleness, masks, both kinds "
    "of end",
    roles=[Role("left"), Role("right", 2)],
    state=dict(unused=f32("agents")),
    params=dict(max_steps=Param(5, 1, 50)),
    observation=["env", "agent", "time", "episode", "pushed", "pressed", "picked"],
    action=dict(
        push=Continuous(), press=Binary(masked=True), pick=Choice(("a", "b", "c"), masked=True)
    ),
    rewards=dict(work=Term("goal", WEIGHT, most="10 * max_steps", least="-10 * max_steps")),
    goal_metrics=dict(work=Goal("the last step")),
    step=[end, diary],
    reset=[diary],
)


@phase(
    lanes="agents",
    writes=("alive", "idle", "observation", "term_work", "goal_work", "mask_pick", "seen_picture"),
)
def record(
    env,
    agent,
    step,
    episode,
    resetting,
    action_pick,
    alive,
    idle,
    observation,
    term_work,
    goal_work,
    mask_pick,
    seen_picture,
):
    if agent == 1 and step[env] >= DIES_AT:
        alive[env, agent] = False
    idle[env, agent] = agent == 0 and step[env] % 4 == 1
    observation[env, agent, 0] = 0.25 * float32(env)
    observation[env, agent, 1] = 0.5 * float32(agent)
    observation[env, agent, 2] = 0.125 * float32(step[env])
    observation[env, agent, 3] = 0.25 * float32(episode[env] % 8)
    observation[env, agent, 4] = 0.0
    for option in range(3):
        mask_pick[env, agent, option] = option != (step[env] + agent) % 3
    if not resetting[env]:
        observation[env, agent, 4] = 0.5 * float32(action_pick[env, agent])
        term_work[env, agent] = (
            float32(1.0)
            + float32(0.25) * float32(step[env])
            + float32(0.5) * float32(action_pick[env, agent])
        )
        goal_work[env, agent] = float32(step[env])
    seen_picture[env, agent, 0, 0] = 20 * (step[env] + 1)
    seen_picture[env, agent, 0, 1] = 40 * (agent + 1)
    seen_picture[env, agent, 1, 0] = 30 * (episode[env] % 8)
    seen_picture[env, agent, 1, 1] = 50 * (env + 1)


RECORD = Game(
    name="record",
    summary="for the selftest: one choice and a picture of which the last three are seen",
    roles=[Role("agent", 2)],
    state=dict(seen_picture=u8("agents", 2, 2)),
    params=dict(max_steps=Param(5, 1, 50)),
    observation=["env", "agent", "time", "episode", "picked"],
    seen=dict(picture=Image(frames=3)),
    action=dict(pick=Choice(("a", "b", "c"), masked=True)),
    rewards=dict(work=Term("goal", WEIGHT, most="10 * max_steps")),
    goal_metrics=dict(work=Goal("the last step")),
    step=[end, record],
    reset=[record],
)


@phase(
    lanes="agents", writes=("observation", "term_work", "goal_work", "pressed_up", "pressed_down")
)
def duel(
    env,
    agent,
    agents,
    step,
    resetting,
    action_up,
    action_down,
    observation,
    term_work,
    goal_work,
    pressed_up,
    pressed_down,
):
    other = agents - 1 - agent
    for entry in range(3):
        observation[env, agent, entry] = 0.0
    observation[env, agent, 2] = 0.125 * float32(step[env])
    if not resetting[env]:
        observation[env, agent, 0] = float32(action_up[env, other])
        observation[env, agent, 1] = float32(action_down[env, other])
        term_work[env, agent] = float32(action_up[env, agent]) - 0.5 * float32(
            action_down[env, agent]
        )
        goal_work[env, agent] = float32(step[env])
    pressed_up[env, agent] = float32(action_up[env, agent])
    pressed_down[env, agent] = float32(action_down[env, agent])


@phase(lanes="agents", writes="outcome")
def settle(env, agent, terminated, truncated, outcome):
    """The first agent draws in env 0, wins in env 1, loses in env 2 and so on; the second the other
    way round."""
    if terminated[env] or truncated[env]:
        first = (env + 1) % 3 - 1
        outcome[env, agent] = first if agent == 0 else -first


DUEL = Game(
    name="duel",
    summary="for the selftest: two against each other, each sees the keys that the other has just "
    "pressed",
    roles=[Role("player", teams=2)],
    state=dict(pressed_up=f32("agents"), pressed_down=f32("agents")),
    params=dict(max_steps=Param(5, 1, 50)),
    held_out=dict(max_steps=6),
    observation=["opponent_up", "opponent_down", "time"],
    action=dict(up=Binary(), down=Binary()),
    rewards=dict(work=Term("goal", WEIGHT, most="10 * max_steps", least="-10 * max_steps")),
    goal_metrics=dict(work=Goal("the last step")),
    step=[end, settle, duel],
    reset=[duel],
)
