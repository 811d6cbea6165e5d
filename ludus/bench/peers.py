"""Other libraries: their trainers on the same envs, and their own envs of the same kind.

Trainers: Stable-Baselines3's PPO, sb3-contrib's RecurrentPPO and, beside Rainbow, its QR-DQN,
through a batched VecEnv.

They have no hybrid actions and one policy, so they get one role (the first; bots at random play the
others) and a Box for every action entry, keys pressed above 0. That is less work than Ludus does
for the same game, not more. QR-DQN gets the choice itself. It has neither dueling streams nor a
network for quantiles nor n-step targets: again less work.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ludus.algorithms.ppo import PPOConfig
from ludus.algorithms.rainbow import RainbowConfig
from ludus.batches import game_info, make_batch, of_game
from ludus.config import Config
from ludus.errors import LudusError


def _vec_env(config: Config, discrete: bool = False) -> Any:
    """`discrete`: the action is the game's only choice, not a Box."""
    try:
        from gymnasium import spaces
        from stable_baselines3.common.vec_env.base_vec_env import VecEnv
    except ImportError:
        raise LudusError(
            "--against sb3 needs Stable-Baselines3: pip install stable-baselines3 sb3-contrib"
        ) from None

    class LudusVecEnv(VecEnv):
        """One row per agent of a role. A finished row shows its final observation, the next one is
        the reset row."""

        def __init__(self) -> None:
            threads = config.train.threads or 1
            self.batch = of_game(
                make_batch(config, config.envs, config.seed, stagger=True, threads=threads)
            )
            seats = self.batch.layout.seats
            for other in seats[1:]:
                self.batch.set_controller(other.role, "random")
            self.batch.reset()
            self.agents = seats[0].agents
            self.rows = config.envs * (seats[0].stop - seats[0].start)
            entries = len(self.batch.layout.observation)
            layout = self.batch.layout
            width = len(layout.continuous) + len(layout.binary) + len(layout.choices)
            actions: Any = spaces.Box(-1, 1, (width,), np.float32)
            if discrete:
                actions = spaces.Discrete(len(next(iter(layout.choices.values()))))
            super().__init__(self.rows, spaces.Box(-10, 10, (entries,), np.float32), actions)
            self.valid = 0

        def reset(self) -> np.ndarray:
            self.batch.reset()
            return self._observation()

        def _observation(self) -> np.ndarray:
            return self.batch["observation"][:, self.agents].reshape(self.rows, -1).copy()

        def step_async(self, actions: np.ndarray) -> None:
            if discrete:
                self.batch["choices"][:, self.agents, 0] = actions.reshape(self.batch.num_envs, -1)
                return
            shaped = actions.reshape(self.batch.num_envs, -1, actions.shape[-1])
            c, b = len(self.batch.layout.continuous), len(self.batch.layout.binary)
            self.batch["continuous"][:, self.agents] = shaped[..., :c]
            self.batch["binary"][:, self.agents] = shaped[..., c : c + b] > 0
            for i, options in enumerate(self.batch.layout.choices.values()):
                share = (shaped[..., c + b + i] + 1) / 2
                self.batch["choices"][:, self.agents, i] = np.minimum(
                    (share * len(options)).astype(int), len(options) - 1
                )

        def step_wait(self) -> Any:
            self.batch.step()
            self.valid += int(self.batch["valid"][:, self.agents].sum())
            ended = (self.batch["agent_terminated"] | self.batch["agent_truncated"])[
                :, self.agents
            ].reshape(-1)
            infos: list[dict] = [{} for _ in range(self.rows)]
            return (
                self._observation(),
                self.batch["reward"][:, self.agents].reshape(-1).copy(),
                ended,
                infos,
            )

        def close(self) -> None: ...

        def get_attr(self, attr_name: str, indices: Any = None) -> list:
            return [None] * self.rows

        def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None: ...

        def env_method(
            self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any
        ) -> list:
            return [None] * self.rows

        def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
            return [False] * self.rows

    return LudusVecEnv()


def sb3_qrdqn(config: Config, seconds: float, defaults: bool) -> float:
    """The same for QR-DQN. Equal are envs, batch, replayed samples per step, sizes of layers and
    number of quantiles."""
    from dataclasses import replace

    import torch

    env = _vec_env(replace(config, envs=8) if defaults else config, discrete=True)
    from sb3_contrib import QRDQN

    options: dict[str, Any] = {}
    if not defaults:
        c = config.learner
        activation = {"tanh": torch.nn.Tanh, "relu": torch.nn.ReLU, "silu": torch.nn.SiLU}[
            config.policy.activation
        ]
        network = dict(
            net_arch=[*config.policy.hidden, c.stream],
            activation_fn=activation,
            n_quantiles=c.quantiles,
        )
        options = dict(
            batch_size=c.batch,
            buffer_size=c.replay,
            learning_starts=c.batch,
            policy_kwargs=network,
            train_freq=c.rollout,
            gradient_steps=max(1, round(c.rollout * env.rows * c.replay_ratio / c.batch)),
            # it counts agent-steps, not updates
            target_update_interval=round(c.target_every * c.batch / c.replay_ratio),
        )
    model: Any = QRDQN("MlpPolicy", env, device="cpu", seed=0, **options)
    # default settings update every 4 steps
    return _rate(model, env, max(model.train_freq.frequency, 64) * env.rows, seconds)


def sb3(config: Config, seconds: float, defaults: bool) -> float:
    """Valid agent-steps per second. `defaults`: 8 envs and the library's own settings, as most of
    its users run it."""
    from dataclasses import replace

    import torch

    env = _vec_env(replace(config, envs=8) if defaults else config)
    options: dict[str, Any] = {}
    if not defaults:
        learner = config.learner
        activation = {"tanh": torch.nn.Tanh, "relu": torch.nn.ReLU, "silu": torch.nn.SiLU}[
            config.policy.activation
        ]
        hidden = list(config.policy.hidden)
        network: dict[str, Any] = dict(
            net_arch=dict(pi=hidden, vf=hidden), activation_fn=activation
        )
        if config.policy.memory == "lstm":
            network |= dict(
                lstm_hidden_size=config.policy.memory_size,
                enable_critic_lstm=config.policy.separate_value,
                shared_lstm=not config.policy.separate_value,
            )
        rows = learner.rollout * env.rows
        options = dict(
            n_steps=learner.rollout,
            batch_size=rows // learner.minibatches,
            n_epochs=learner.epochs,
            policy_kwargs=network,
        )
    if config.policy.memory == "lstm":
        from sb3_contrib import RecurrentPPO

        model: Any = RecurrentPPO("MlpLstmPolicy", env, device="cpu", seed=0, **options)
    else:
        from stable_baselines3 import PPO

        model = PPO("MlpPolicy", env, device="cpu", seed=0, **options)
    return _rate(model, env, model.n_steps * env.rows, seconds)


def _rate(model: Any, env: Any, step: int, seconds: float) -> float:
    """Valid agent-steps per second, measured over whole rounds of `step` agent-steps after a first
    one."""
    model.learn(step)
    start, env.valid, total = time.perf_counter(), 0, 0
    while time.perf_counter() - start < seconds or not total:
        model.learn(step, reset_num_timesteps=False)
        total += 1
    return env.valid / (time.perf_counter() - start)


def measure(name: str, config: Config, seconds: float) -> dict[str, float]:
    """Rates by peer."""
    if name != "sb3":
        raise LudusError(f"unknown peer '{name}': there is sb3")
    if config.device != "cpu":
        raise LudusError("Stable-Baselines3 is measured on the CPU: leave --device cuda out")
    if isinstance(config.learner, RainbowConfig):
        if game_info(config).layout.seen:
            raise LudusError(
                f"sb3 is given numbers, and {config.game} is seen as pictures: leave --against sb3 "
                "out, or use racing_lidar"
            )
        return {
            "sb3_contrib_qrdqn_equal": sb3_qrdqn(config, seconds, False),
            "sb3_contrib_qrdqn_defaults": sb3_qrdqn(config, seconds, True),
        }
    if not isinstance(config.learner, PPOConfig):
        raise LudusError(
            f"Stable-Baselines3 has nothing like {config.algorithm} to compare with: leave "
            "--against sb3 out"
        )
    label = "sb3_contrib_recurrent" if config.policy.memory == "lstm" else "sb3"
    return {
        f"{label}_equal": sb3(config, seconds, False),
        f"{label}_defaults": sb3(config, seconds, True),
    }


# -- envs ------------------------------------------------------------------------------------------

# a game → the env of the same kind, with pixels and discrete actions
GYMNASIUM_ENVS = {"racing": "CarRacing-v3"}


def measure_env(name: str, game: str, seconds: float) -> dict[str, float]:
    """Steps per second by peer, in one process on one core, with random actions."""
    if name == "mettagrid":
        from ludus.bench.mettagrid import mettagrid_rate

        if game != "arena":
            raise LudusError(
                f"mettagrid has no env like {game}: --against mettagrid works with arena"
            )
        return {name: mettagrid_rate(seconds)}
    if name != "gymnasium":
        raise LudusError(f"unknown peer '{name}' of a game: there is gymnasium, mettagrid")
    if game not in GYMNASIUM_ENVS:
        raise LudusError(
            f"Gymnasium has no env like {game}: --against gymnasium works with "
            f"{', '.join(GYMNASIUM_ENVS)}"
        )
    return {name: gymnasium_rate(GYMNASIUM_ENVS[game], seconds)}


def gymnasium_rate(env_id: str, seconds: float) -> float:
    try:
        import Box2D  # noqa: F401
        import gymnasium
    except ImportError:
        raise LudusError(
            "--against gymnasium needs its Box2D envs: pip install 'gymnasium[box2d]'"
        ) from None
    env = gymnasium.make(env_id, continuous=False)
    env.action_space.seed(0)
    env.reset(seed=0)
    steps, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds or not steps:
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        steps += 1
        if terminated or truncated:
            env.reset()
    env.close()
    return steps / elapsed
