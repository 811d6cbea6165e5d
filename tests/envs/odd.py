"""Envs that are odd in one way each, for tests; every function makes one."""

import os
import sys
import time

import gymnasium
import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

TENTH = 10


class Counter(gymnasium.Env):
    """Shows how many steps were made; ends (terminated) after ten. Hooks make it odd."""

    observation_space: spaces.Space = spaces.Box(0, 100, (1,), np.float32)
    action_space: spaces.Space = spaces.Discrete(2)

    def __init__(self, number: int = 0) -> None:
        self.number = number

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self.look(), self.info()

    def step(self, action):
        self.action = action
        self.time += 1
        return self.look(), self.pay(), self.time >= TENTH, False, self.info()

    def look(self):
        return np.array([self.time], np.float32)

    def pay(self):
        return 1.0

    def info(self):
        return {}


def counter():
    return Counter()


class Noisy(Counter):
    """Its rewards and observations are random: they show whether seeds were kept."""

    def look(self):
        return np.array([self.time + self.np_random.random()], np.float32)

    def pay(self):
        return float(self.np_random.random())


class Raises(Counter):
    def pay(self):
        if self.time == 7:
            raise ZeroDivisionError("the ball left the field")
        return 1.0


class PaysNan(Counter):
    def pay(self):
        return float("nan") if self.time == 3 else 1.0


class ShowsNan(Counter):
    def look(self):
        return np.array([np.inf if self.time == 4 else 0.0], np.float32)


class Outside(Counter):
    """Just within its limits, rounded; then a little outside."""

    def look(self):
        return np.array([{2: 100.0001, 3: 101}.get(self.time, -1e-9)], np.float64)


class Grows(Counter):
    def look(self):
        return np.zeros(1 + (self.time == 2), np.float32)


class Crashes(Counter):
    def pay(self):
        if self.time == 5:
            os._exit(3)
        return 1.0


class Exits(Counter):
    def pay(self):
        if self.time == 5:
            sys.exit()
        return 1.0


class ExitsInReset(Counter):
    def reset(self, *, seed=None, options=None):
        sys.exit(0)


class ExitsInTheEnd(Counter):
    def close(self):
        sys.exit(0)


def exits():
    sys.exit(0)


class Hangs(Counter):
    def pay(self):
        if self.time == 5:
            time.sleep(3600)
        return 1.0


class Slow(Noisy):
    def pay(self):
        time.sleep(0.004)
        return super().pay()


def unequal(made=[]):  # noqa: B006 (it counts)
    env = Counter()
    env.observation_space = spaces.Box(0, 1, (len(made) // 3 + 1,), np.float32)
    made.append(env)
    return env


class Masked(Counter):
    """Four actions; only the one that equals the step is allowed. Another one ends the world."""

    action_space = spaces.Discrete(4)

    def info(self):
        return {"action_mask": np.arange(4) == self.time % 4}

    def step(self, action):
        assert action == self.time % 4, "a forbidden action was taken"
        return super().step(action)


class Mixed(Counter):
    """A container of everything, and an action of everything, which must come back as it was
    sent."""

    observation_space = spaces.Dict(
        {
            "eye": spaces.Box(0, 255, (9, 12, 3), np.uint8),
            "kind": spaces.Discrete(3),
            "pair": spaces.Tuple((spaces.MultiBinary(2), spaces.Box(-1, 1, (2, 2)))),
        }
    )
    action_space = spaces.Dict(
        {
            "move": spaces.Box(
                np.array([-2.0, 0.0], np.float32), np.array([2.0, 10.0], np.float32)
            ),
            "keys": spaces.MultiBinary(3),
            "modes": spaces.Tuple((spaces.Discrete(3, start=5), spaces.MultiDiscrete([2, 4]))),
        }
    )

    def look(self):
        eye = np.zeros((9, 12, 3), np.uint8)
        eye[1, 2] = (10, 20, 30)
        return {
            "eye": eye,
            "kind": 1,
            "pair": (np.array([1, 0], np.int8), np.array([[0.1, 0.2], [0.3, 0.4]], np.float32)),
        }

    def step(self, action):
        assert self.action_space.contains(action), action
        return super().step(action)


class Race(ParallelEnv):
    """Runners of one role and a judge of another, who sees less. Runner 0 dies in step 2; all end
    in step 4."""

    metadata = {"name": "race"}  # noqa: RUF012
    possible_agents = ["runner_0", "runner_1", "judge"]  # noqa: RUF012

    def observation_space(self, agent):
        return spaces.Box(0, 10, (3 if agent != "judge" else 1,), np.float32)

    def action_space(self, agent):
        return spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        self.agents, self.time = list(self.possible_agents), 0
        return self.look(), {name: {} for name in self.agents}

    def look(self):
        return {
            name: np.full(self.observation_space(name).shape, self.time, np.float32)
            for name in self.agents
        }

    def step(self, actions):
        assert list(actions) == self.agents
        self.time += 1
        shown, rewards = (
            self.look(),
            {name: float(self.possible_agents.index(name)) for name in self.agents},
        )
        ended = {
            name: self.time == 4 or (self.time == 2 and name == "runner_0") for name in self.agents
        }
        self.agents = [name for name in self.agents if not ended[name]]
        return shown, rewards, ended, dict.fromkeys(ended, False), {name: {} for name in ended}


class Newcomer(Race):
    def step(self, actions):
        out = super().step(actions)
        if self.time == 3:
            self.agents = [*self.agents, "runner_0"]
        return out


class Workshop(ParallelEnv):
    """Agents that act differently, in no order; the second apprentice is unlike the first. Episodes
    of four steps.

    The cutter earns its first number, the painter 1 for pressing its one key and choosing "2", an
    apprentice 1 for its highest allowed choice.
    """

    metadata = {"name": "workshop"}  # noqa: RUF012
    possible_agents = ["cutter_0", "apprentice_0", "painter_0", "cutter_1", "apprentice_1"]  # noqa: RUF012
    actions = {  # noqa: RUF012
        "cutter": spaces.Box(-1, 1, (2,), np.float32),
        "painter": spaces.Dict({"key": spaces.MultiBinary(1), "tone": spaces.Discrete(3)}),
        "apprentice_0": spaces.Discrete(4),
        "apprentice_1": spaces.Discrete(2),
    }

    def observation_space(self, agent):
        shown = spaces.Box(0, 10, (1,), np.float32)
        if not agent.startswith("apprentice"):
            return shown
        return spaces.Dict(
            {
                "observation": shown,
                "action_mask": spaces.MultiBinary(int(self.action_space(agent).n)),
            }
        )

    def action_space(self, agent):
        return next(space for name, space in self.actions.items() if agent.startswith(name))

    def reset(self, seed=None, options=None):
        self.agents, self.time = list(self.possible_agents), 0
        return self.look(), {name: {} for name in self.agents}

    def look(self):
        shown = {name: np.array([self.time], np.float32) for name in self.possible_agents}
        for name, allowed in (("apprentice_0", [1, 1, 1, 0]), ("apprentice_1", [1, 1])):
            shown[name] = {"observation": shown[name], "action_mask": np.array(allowed, np.int8)}
        return shown

    def step(self, actions):
        for name, action in actions.items():
            assert self.action_space(name).contains(action), (name, action)
        assert actions["apprentice_0"] < 3, "a forbidden action was taken"
        self.time += 1
        rewards = {
            "cutter_0": float(actions["cutter_0"][0]),
            "cutter_1": float(actions["cutter_1"][0]),
            "painter_0": float(
                actions["painter_0"]["key"][0] == 1 and actions["painter_0"]["tone"] == 2
            ),
            "apprentice_0": float(actions["apprentice_0"] == 2),
            "apprentice_1": float(actions["apprentice_1"] == 1),
        }
        over = dict.fromkeys(self.agents, self.time == 4)
        if self.time == 4:
            self.agents = []
        return self.look(), rewards, over, dict.fromkeys(over, False), {name: {} for name in over}


class Painter(Counter):
    """Draws a white column of ten pixels for every step."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 4}  # noqa: RUF012

    def __init__(self, render_mode=None):
        super().__init__()
        self.render_mode = render_mode

    def render(self):
        image = np.zeros((80, 640, 3), np.uint8)
        image[:, : 10 * self.time] = 255
        return image


class NoisyPainter(Painter, Noisy):
    pass


class CannotDraw(Painter):
    def render(self):
        raise RuntimeError("the paint is dry")


class Blindfold(Noisy):
    """Ends by the clock, and shows only noise."""

    def look(self):
        return np.array([self.np_random.random()], np.float32)


class Huge(Noisy):
    """Shows the time in units that no normaliser follows."""

    observation_space = spaces.Box(0, 1e8, (1,), np.float32)

    def look(self):
        return 1e6 * np.array([self.time], np.float32)


class Board(Counter):
    """Three squares to take, one a step; only free ones may be taken, and none is free at the end.
    The first is worth 1.

    `cut`: it ends truncated.
    """

    observation_space = spaces.Box(0, 1, (3,), np.float32)
    action_space = spaces.Discrete(3)
    cut = False

    def reset(self, *, seed=None, options=None):
        self.free = np.ones(3, np.int8)
        return super().reset(seed=seed)

    def step(self, action):
        assert self.free[action], "a taken square was taken"
        self.free[action] = 0
        over = not self.free.any()
        return (
            self.look(),
            float(action == 0),
            over and not self.cut,
            over and self.cut,
            self.info(),
        )

    def look(self):
        return self.free.astype(np.float32)

    def info(self):
        return {"action_mask": self.free.copy()}


class CutBoard(Board):
    cut = True


class Stuck(Board):
    """Goes on when nothing is free."""

    def step(self, action):
        observation, reward, _, _, info = super().step(action)
        return observation, reward, False, False, info


class Forgetful(Board):
    """Gives a mask at first, and none later."""

    def info(self):
        return {"action_mask": self.free.copy()} if self.free.all() else {}


class DictBoard(Board):
    """Its mask is part of the observation."""

    observation_space = spaces.Dict(
        {"observation": Board.observation_space, "action_mask": spaces.MultiBinary(3)}
    )

    def look(self):
        return {"observation": self.free.astype(np.float32), "action_mask": self.free.copy()}

    def info(self):
        return {}


class Turns(ParallelEnv):
    """Two agents on one board of four squares; who is not to move may do nothing, and what it does
    is ignored."""

    metadata = {"name": "turns"}  # noqa: RUF012
    possible_agents = ["player_0", "player_1"]  # noqa: RUF012

    def observation_space(self, agent):
        return spaces.Dict(
            {
                "observation": spaces.Box(0, 1, (4,), np.float32),
                "action_mask": spaces.MultiBinary(4),
            }
        )

    def action_space(self, agent):
        return spaces.Discrete(4)

    def reset(self, seed=None, options=None):
        self.agents, self.mover, self.free = list(self.possible_agents), 0, np.ones(4, np.int8)
        return self.look(), {name: {} for name in self.agents}

    def look(self):
        free, none = self.free.copy(), np.zeros(4, np.int8)
        masks = [free if i == self.mover else none for i in range(2)]
        return {
            name: {"observation": self.free.astype(np.float32), "action_mask": mask}
            for name, mask in zip(self.possible_agents, masks, strict=True)
        }

    def step(self, actions):
        chosen = actions[self.possible_agents[self.mover]]
        assert self.free[chosen], "a taken square was taken"
        self.free[chosen], self.mover = 0, 1 - self.mover
        over = not self.free.any()
        names, self.agents = self.agents, [] if over else self.agents
        return (
            self.look(),
            dict.fromkeys(names, 0.5),
            dict.fromkeys(names, over),
            dict.fromkeys(names, False),
            {name: {} for name in names},
        )


class Torque(Counter):
    action_space = spaces.Box(-2, 6, (1,), np.float32)
