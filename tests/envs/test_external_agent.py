"""A run in envs of another library acts in them: their observations in, their actions out, and no
env is made."""

import json
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import ludus
from ludus.algorithms.ppo import PPOConfig
from ludus.config import Config, EvalConfig, LogConfig, PolicyConfig, TrainConfig
from ludus.errors import LudusError
from ludus.external.spaces import from_json, to_json
from tests.envs import odd
from tests.envs.test_in import ODD


def trained(folder, game):
    config = Config(
        game=game,
        envs=2,
        policy=PolicyConfig(hidden=(8,), initial_log_std=1.0),
        learner=PPOConfig(rollout=8, minibatches=1, epochs=1),
        train=TrainConfig(total_agent_steps=20, threads=1),
        eval=EvalConfig(episodes=1, greedy=False),
        log=LogConfig(tensorboard=False, replay_every=0),
    )
    return ludus.train(config, run=folder, quiet=True).path


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("agents")
    return {
        name: trained(folder / name, ODD + name)
        for name in ("Mixed", "Board", "DictBoard", "Torque")
    }


def test_a_box_has_its_own_limits(runs):
    """Torque from -2 to 6: not the -1 to 1 of the policy."""
    agent, env = ludus.load(runs["Torque"]), odd.Torque()
    observation, _ = env.reset(seed=0)
    actions = [agent.act(observation)[0] for _ in range(200)]
    assert all(env.action_space.contains(action) for action in actions)
    assert min(actions) < -1.5 and max(actions) > 5.5


def test_containers_in_and_out(runs):
    agent, env = ludus.load(runs["Mixed"]), odd.Mixed()
    observation, _ = env.reset(seed=0)
    action, state = agent.act(observation)
    assert env.action_space.contains(action), action
    env.step(action)  # it asserts
    action, state = agent.act(observation, state, greedy=True)
    assert env.action_space.contains(action)
    with pytest.raises(LudusError, match=r"the observation of agent does not match Dict.*'pair'"):
        agent.act({"eye": observation["eye"], "kind": 1})


def test_rows_of_a_vector_env(runs):
    """Each row as it would be alone, and the actions as a vector env takes them."""
    agent = ludus.load(runs["Mixed"])
    envs = gymnasium.vector.SyncVectorEnv([odd.Mixed] * 3)
    observation, _ = envs.reset(seed=0)
    actions, state = agent.act(observation, greedy=True)
    assert envs.action_space.contains(actions)
    alone, its_state = agent.act(odd.Mixed().look(), greedy=True)
    assert (
        np.allclose(actions["move"][1], alone["move"], atol=1e-5)
        and state[1].shape == its_state[0].shape
    )


def test_masks_are_needed_and_kept(runs):
    for name in ("Board", "DictBoard"):
        agent, env = ludus.load(runs[name]), getattr(odd, name)()
        for _ in range(5):
            observation, info = env.reset()
            over = False
            while not over:
                action, _ = agent.act(observation, mask=info.get("action_mask"))
                observation, _, over, _, info = env.step(action)  # it asserts
    with pytest.raises(LudusError, match=r"agent was trained with action masks: .*mask=info"):
        ludus.load(runs["Board"]).act(np.ones(3, np.float32))
    with pytest.raises(LudusError, match="allows nothing"):
        ludus.load(runs["Board"]).act(np.ones(3, np.float32), mask=np.zeros(3))
    rows = np.ones((2, 3), np.float32)
    actions, _ = ludus.load(runs["Board"]).act(rows, mask=np.array([[0, 1, 0], [0, 0, 1]]))
    assert actions.tolist() == [1, 2]


def test_no_env_is_made(runs, monkeypatch):
    monkeypatch.setattr(
        sys.modules["ludus.external.foreign"], "make_env", lambda *a: pytest.fail("an env is made")
    )
    assert odd.Torque.action_space.contains(
        ludus.load(runs["Torque"]).act(np.zeros(1, np.float32))[0]
    )


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-np.inf, np.inf, (2, 3), np.float32),
        spaces.Box(np.array([0, -1.5]), np.array([np.inf, 2]), dtype=np.float64),
        spaces.Box(0, 255, (9, 9, 3), np.uint8),
        spaces.Discrete(4, start=-2),
        spaces.MultiDiscrete([[2, 3], [4, 5]]),
        spaces.MultiBinary([2, 2]),
        spaces.Tuple(
            (spaces.Discrete(2), spaces.Dict({"b": spaces.Discrete(3), "a": spaces.MultiBinary(1)}))
        ),
        spaces.Dict([(2, spaces.Discrete(2)), (1, spaces.Discrete(3))]),
        spaces.Box(0, 1, (), np.float32),
    ],
    ids=str,
)
def test_spaces_survive_json(space):
    again = from_json(json.loads(json.dumps(to_json(space), allow_nan=False)))
    assert again == space and (
        not isinstance(space, spaces.Dict) or list(again.spaces) == list(space.spaces)
    )
