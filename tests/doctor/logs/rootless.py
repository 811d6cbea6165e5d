"""A game with a broken sensor: it shows the root of what becomes negative once a player gets
further than anyone meant."""

from ludus.config import Config, PolicyConfig, PPOConfig
from ludus.sim import Continuous, Game, Goal, Param, Role, Term, f32, float32, phase


@phase(writes="truncated")
def end(env, step, max_steps, truncated):
    truncated[env] = step[env] >= max_steps[env]


@phase(lanes="agents", writes=("place", "term_far", "goal_far"))
def push(env, agent, action_push, place, term_far, goal_far):
    place[env, agent] += float32(0.02) * action_push[env, agent]
    term_far[env, agent] = place[env, agent]
    goal_far[env, agent] = place[env, agent]


@phase(lanes="agents", writes="place")
def home(env, agent, place):
    place[env, agent] = 0.0


@phase(lanes="agents", writes="observation")
def look(env, agent, place, observation):
    observation[env, agent, 0] = place[env, agent]
    observation[env, agent, 1] = (float32(1.0) - place[env, agent] * place[env, agent]) ** float32(
        0.5
    )


GAME = Game(
    name="rootless",
    summary="push as far as you can",
    roles=[Role("pusher")],
    state=dict(place=f32("agents")),
    params=dict(max_steps=Param(100, 1, 1000)),
    observation=["place", "height"],
    action=dict(push=Continuous()),
    rewards=dict(far=Term("goal", 1.0, most="max_steps", least="-max_steps")),
    goal_metrics=dict(far=Goal()),
    step=[end, push, look],
    reset=[home, look],
)


def recipe() -> Config:
    """Learns to push; half of an episode at full force is enough to leave the sensor's range."""
    return Config(
        game="tests.doctor.logs.rootless:GAME",
        envs=16,
        policy=PolicyConfig(hidden=(16,)),
        learn=PPOConfig(rollout=50, epochs=4, minibatches=4, learning_rate=3e-3),
    )
