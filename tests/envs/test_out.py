"""Ludus games as other libraries see them: their own checkers on every game, and what an episode's
end looks like."""

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from pettingzoo.test import parallel_api_test, parallel_seed_test

from ludus.envs.pettingzoo import make
from ludus.envs.port import Port, make_batch
from ludus.envs.single import LudusEnv
from ludus.envs.vector import LudusVectorEnv
from ludus.errors import LudusError
from ludus.games import REGISTRY

SMALL = {  # so that episodes end within the test
    "hide_and_seek": {"hide_steps": 2, "terrains": 1},
    "mechs": {"per_team": 2, "maps": 1},
    "racing": {"tracks": 1},
    "racing_lidar": {"tracks": 1},
}


@pytest.mark.parametrize("name", REGISTRY)
def test_the_checkers_of_gymnasium_and_pettingzoo_accept_every_game(name):
    values = {"max_steps": 10, **SMALL.get(name, {})}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env(gymnasium.make(f"ludus/{name}-v0", **values).unwrapped)
        parallel_api_test(make(name, **values), num_cycles=30)
        parallel_seed_test(lambda: make(name, **values), num_cycles=12)


def test_rows_are_single_envs_with_seeds_one_after_the_other():
    rows = LudusVectorEnv("pursuit", 3, max_steps=10)
    single = LudusEnv("pursuit", max_steps=10)
    rows.action_space.seed(0)
    first, _ = rows.reset(seed=40)
    actions = [rows.action_space.sample() for _ in range(10)]
    shown = [rows.step(action) for action in actions]
    for i in range(3):
        assert np.array_equal(single.reset(seed=40 + i)[0], first[i])
        for action, (observation, reward, _, truncated, info) in zip(actions, shown, strict=True):
            seen, earned, _, cut, _ = single.step(
                {kind: value[i] for kind, value in action.items()}
            )
            assert earned == reward[i] and cut == truncated[i]
            assert np.array_equal(seen, info["final_obs"][i] if cut else observation[i])
    assert shown[-1][3].all() and shown[-1][4]["_final_obs"].all()


def test_same_step_shows_the_next_episode_and_next_step_waits():
    """The two modes play the same episodes; one leaves out the row between them."""
    same = LudusVectorEnv("pursuit", 2, max_steps=10)
    late = LudusVectorEnv("pursuit", 2, max_steps=10, autoreset=AutoresetMode.NEXT_STEP)
    assert np.array_equal(same.reset(seed=7)[0], late.reset(seed=7)[0])
    still = {"continuous": np.zeros((2, 1), np.float32), "binary": np.zeros((2, 1), np.int8)}
    for step in range(20):
        a, b = same.step(still), late.step(still)
        if a[3].all():
            assert (step + 1) % 10 == 0
            assert all(np.array_equal(a[4]["final_obs"][i], b[0][i]) for i in range(2))
            b = late.step(still)
            assert not b[4]["valid"].any() and not b[3].any() and (b[1] == 0).all()
        assert np.array_equal(a[0], b[0])


def test_only_the_envs_that_are_over_restart():
    env = LudusVectorEnv("pursuit", 3, max_steps=10)
    env.reset(seed=1)
    still = {"continuous": np.zeros((3, 1), np.float32), "binary": np.zeros((3, 1), np.int8)}
    env.step(still)
    env.batch["max_steps"][1] = 2  # this env's episode has only one step left
    _, _, _, truncated, info = env.step(still)
    assert truncated.tolist() == info["_final_obs"].tolist() == [False, True, False]
    assert env.batch["step"].tolist() == [2, 0, 2] and env.batch["episode"].tolist() == [0, 1, 0]


def test_dead_rows_wait_for_the_others_and_the_last_death_ends_the_episode():
    env = LudusVectorEnv("pursuit", 3, role="runner", agents=3, opponent="bot:still", max_steps=50)
    env.reset(seed=3)
    batch = env.batch
    still = {"continuous": np.zeros((3, 1), np.float32), "binary": np.zeros((3, 1), np.int8)}
    batch["alive"][0, 1] = False  # one runner is caught
    _, reward, terminated, truncated, info = env.step(still)
    assert info["valid"].tolist() == [False, True, True] and reward[0] == 0
    assert not terminated.any() and not truncated.any()
    batch["alive"][0, 2:4] = False
    _, _, terminated, truncated, info = env.step(still)
    assert terminated.all() and not truncated.any() and info["_final_obs"].all()
    assert batch["alive"].all() and batch["step"][0] == 0


def test_a_camera_is_part_of_the_observation():
    env = LudusVectorEnv("racing", 2, tracks=1, camera=16)
    observation, _ = env.reset(seed=0)
    assert observation["camera"].shape == (2, 16, 16) and observation["camera"].dtype == np.uint8
    assert observation["camera"].any() and env.observation_space.contains(observation)


def test_masks_say_what_is_allowed():
    env = make("arena", population=2)
    _, infos = env.reset(seed=0)
    mask = infos["agent_0"]["action_mask"]
    assert mask.shape == (19,) and set(mask.tolist()) == {0, 1}
    assert env.action_space("agent_0").contains(env.action_space("agent_0").sample(mask))


def test_one_box_for_all_action_entries():
    """Hand-worked: keys above 0 are pressed; three options share [-1, 1] as [-1, -1/3), [-1/3,
    1/3), [1/3, 1]."""
    batch = make_batch("mechs", 1, None, {"per_team": 1, "maps": 1})
    port = Port(batch, box_action=True)
    keys_at = len(batch.layout.continuous)
    choice_at = keys_at + len(batch.layout.binary)
    options = len(batch.layout.choices["target"])
    action = np.zeros(port.action_space.shape, np.float32)
    action[0], action[keys_at], action[choice_at] = 0.5, 0.1, 1.0
    port.act((0, 0), action)
    assert batch["continuous"][0, 0, 0] == 0.5 and batch["binary"][0, 0].tolist() == [
        1,
        0,
        0,
        0,
        0,
        0,
    ]
    assert batch["choices"][0, 0, 0] == options - 1
    action[choice_at] = -1.0 + 2.0 / options + 0.01
    port.act((0, 0), action)
    assert batch["choices"][0, 0, 0] == 1


def test_what_cannot_be_is_refused():
    env = LudusEnv("racing_lidar", tracks=1)
    env.reset(seed=0)
    with pytest.raises(
        LudusError, match="choice 11 is not there: options are numbered from 0 to 10"
    ):
        env.step(11)
    with pytest.raises(LudusError, match="nan is not a number"):
        chase = LudusEnv("pursuit")
        chase.reset(seed=0)
        chase.step({"continuous": np.array([np.nan], np.float32), "binary": np.zeros(1, np.int8)})
    with pytest.raises(LudusError, match="unknown opponent 'bot:nobody'"):
        LudusEnv("pursuit", opponent="bot:nobody")
    with pytest.raises(LudusError, match="5 rows do not divide into envs of 3 agents"):
        LudusVectorEnv("pursuit", 5, role="runner", agents=3)
    with pytest.raises(
        LudusError, match="agents=4 cannot be: the role runner of pursuit has 1 to 3"
    ):
        LudusVectorEnv("pursuit", 4, role="runner", agents=4)
    with pytest.raises(LudusError, match="seed -1 is negative"):
        LudusVectorEnv("pursuit", 2).reset(seed=-1)
    game = make("pursuit")
    game.reset(seed=0)
    with pytest.raises(LudusError, match="no action for chaser_0"):
        game.step({})


def test_the_end_of_an_episode_tells_the_goals():
    """A car that stands still has made no progress and did not finish."""
    env = LudusEnv("racing_lidar", tracks=1, max_steps=3)
    env.reset(seed=0)
    infos = [env.step(0)[4] for _ in range(3)]
    assert "goal_finish" not in infos[1] and infos[2]["goal_finish"] == 0.0
    rows = LudusVectorEnv("racing_lidar", 2, tracks=1, max_steps=3)
    rows.reset(seed=0)
    for _ in range(3):
        info = rows.step(np.zeros(2, int))[4]
    assert (
        info["final_info"]["goal_finish"].tolist() == [0, 0]
        and info["final_info"]["_goal_finish"].all()
    )


def test_bots_play_the_others():
    env = LudusVectorEnv("pursuit", 2, opponent={"runner": "bot:flee"})
    flee = env.batch.controllers["runner"]["flee"]
    env.reset(seed=0)
    assert env.batch["controller"].tolist() == [[0, flee, flee, flee]] * 2


def test_a_trained_run_plays_the_others(tmp_path):
    """An untrained policy that was told to turn left: tanh(-3) is -0.995, in every episode."""
    from ludus.api import train
    from ludus.sim.episode import FROZEN

    values = {
        "policy.hidden": (4,),
        "policy.initial_mean_of": {"turn": -3.0},
        "policy.initial_log_std": -5.0,
        "game.max_steps": 10,
    }
    run = train(
        "pursuit",
        run=tmp_path / "run",
        quiet=True,
        envs=4,
        total_agent_steps=128,
        **values,
        **{"eval.episodes": 1, "ppo.rollout": 8, "train.threads": 1, "log.tensorboard": False},
    )
    rows = LudusVectorEnv("pursuit", 2, opponent=f"{run.path}@0", max_steps=10)
    single = LudusEnv("pursuit", opponent={"runner": f"{run.path}@0"}, max_steps=10)
    rows.reset(seed=0)
    single.reset(seed=0)
    assert rows.batch["controller"].tolist() == [[0, FROZEN, FROZEN, FROZEN]] * 2
    still = {"continuous": np.zeros((2, 1), np.float32), "binary": np.zeros((2, 1), np.int8)}
    for _ in range(12):
        rows.step(still)
        assert np.allclose(rows.batch["continuous"][:, 1:, 0], -0.995, atol=0.01)
        assert (rows.batch["continuous"][:, 0] == 0).all()
    single.step({kind: value[0] for kind, value in still.items()})
    assert np.allclose(single.batch["continuous"][0, 1:, 0], -0.995, atol=0.01)
    with pytest.raises(LudusError, match="differ in their observation"):
        LudusEnv("pursuit", opponent=str(run.path), runners=2)


def test_the_last_info_of_a_parallel_agent_has_the_goals():
    env = make("pursuit", max_steps=10)
    _, infos = env.reset(seed=0)
    assert not any(infos.values())
    while env.agents:
        playing = env.agents
        _, _, _, _, infos = env.step({name: env.action_space(name).sample() for name in playing})
        for name in playing:  # the caught leave earlier
            assert ("goal_catch_rate" in infos[name]) == (name not in env.agents)
    assert all(0 <= infos[name]["goal_catch_rate"] <= 1 for name in playing)
