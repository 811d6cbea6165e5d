"""A loaded agent acts as a player in a batch does: the same actions step after step, from what the
adapters show."""

import numpy as np
import pytest
import torch

from ludus.config import PolicyConfig
from ludus.errors import LudusError
from ludus.networks.heads import action_space
from ludus.networks.policy import Policy
from ludus.networks.strategy_config import StrategyConfig
from ludus.play.agent import Agent
from ludus.play.player import Player
from ludus.sim.game import Image
from ludus.sim.layout import Seats, Seen


class Shown:
    """A batch as far as a player looks at it: two agents that see numbers and the last three
    pictures, and choose."""

    num_envs = 2

    def __init__(self):
        self.continuous, self.binary, self.choices = ["turn"], [], {"gear": ["a", "b", "c"]}
        self.binary_mask_at, self.choice_mask_at = [], [0]
        self.observation, self.seen = (
            ["my_x", "their_x", "their_y"],
            {"eye": Seen(Image(frames=3), 8, 8)},
        )
        self.seats = [Seats("driver", 0, 1, 1)]
        self.arrays = {
            "continuous": torch.zeros(2, 1, 1),
            "choices": torch.zeros(2, 1, 1, dtype=torch.int32),
            "resetting": torch.tensor([True, True]),
        }

    def show(self, random):
        self.arrays["observation"] = torch.from_numpy(
            random.normal(size=(2, 1, 3)).astype(np.float32)
        )
        self.arrays["seen_eye"] = torch.from_numpy(random.integers(0, 256, (2, 1, 8, 8), np.uint8))
        self.arrays["action_mask"] = torch.from_numpy(
            np.array([[[True, True, False]], [[False, True, True]]])
        )

    def tensor(self, name):
        return self.arrays[name]


@pytest.fixture(scope="module")
def agent():
    torch.manual_seed(1)
    shown = Shown()
    config = PolicyConfig(
        hidden=(16,),
        memory="lstm",
        memory_size=4,
        network="strategy",
        network_settings=StrategyConfig(size="small", entries="their_", history=9, stride=2),
    )
    policy = Policy(shown.observation, action_space(shown, False), config, shown.seen)
    with torch.no_grad():
        for weights in policy.parameters():
            weights.add_(0.3 * torch.randn_like(weights))
    return Agent(policy, {}, "driver")


def test_it_acts_as_in_the_batch(agent):
    """Twelve steps: longer than the frames of a picture and than the history of the strategy
    encoder."""
    shown, random, state = Shown(), np.random.default_rng(0), None
    player = Player(agent.policy, shown, slice(0, 1), greedy=True)
    for step in range(12):
        shown.show(random)
        player.act()
        shown.arrays["resetting"][:] = False
        observation = {
            "numbers": shown.arrays["observation"][:, 0].numpy(),
            "eye": shown.arrays["seen_eye"][:, 0].numpy(),
        }
        action, state = agent.act(
            observation, state, mask=shown.arrays["action_mask"][:, 0].numpy(), greedy=True
        )
        assert np.allclose(action["continuous"], shown.arrays["continuous"][:, 0], atol=1e-6), step
        assert action["choices"].tolist() == shown.arrays["choices"][:, 0].tolist(), step


def test_one_agent_is_a_row_of_many(agent):
    random, state = np.random.default_rng(2), None
    numbers, eye = random.normal(size=(3, 3)), random.integers(0, 256, (3, 8, 8), np.uint8)
    together, _ = agent.act({"numbers": numbers, "eye": eye}, greedy=True)
    for row in range(3):
        alone, state = agent.act({"numbers": numbers[row], "eye": eye[row]}, greedy=True)
        assert alone["continuous"].shape == (1,) and np.allclose(
            alone["continuous"], together["continuous"][row], atol=1e-6
        )
    # actor's and critic's memory, the pictures, the history
    assert state.shape == (1, 2 * 2 * 4 + 3 * 8 * 8 + 9 * 3)


def test_what_does_not_fit_is_named(agent):
    eye = np.zeros((8, 8), np.uint8)
    with pytest.raises(LudusError, match="of driver must have numbers, eye: eye is missing"):
        agent.act(np.zeros(3))
    with pytest.raises(
        LudusError,
        match=r"'numbers' in the observation of driver has the shape \[4\], its policy needs \[3\]",
    ):
        agent.act({"numbers": np.zeros(4), "eye": eye})
    with pytest.raises(
        LudusError, match=r"'eye' .* has the shape \[8, 8\], its policy needs \[2, 8, 8\]"
    ):
        agent.act({"numbers": np.zeros((2, 3)), "eye": eye})
    with pytest.raises(
        LudusError, match=r"the state has the shape \[1, 5\], 1 rows of driver need \[1, 235\]"
    ):
        agent.act({"numbers": np.zeros(3), "eye": eye}, np.zeros((1, 5)))
