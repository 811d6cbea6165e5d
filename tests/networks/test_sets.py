"""Members of a set are read by the same weights: their order does not matter, nor what is told of
those that are not there."""

import pytest
import torch

from ludus.config import PolicyConfig, set_value
from ludus.errors import LudusError
from ludus.games.mechs.observation import NAMES
from ludus.networks.heads import ActionSpace
from ludus.networks.policy import Policy
from ludus.networks.sets import sets_of
from ludus.recipes import load_recipe
from ludus.training.start import prepare

ENTRIES = [
    "speed",
    "mate0_valid",
    "mate0_x",
    "mate0_y",
    "mate1_valid",
    "mate1_y",
    "mate1_x",
    "mate2_x",
    "mate2_y",
    "mate2_valid",
]
SWAPPED = [0, 4, 6, 5, 1, 3, 2, 7, 8, 9]  # mates 0 and 1 have changed places


def make(**settings):
    torch.manual_seed(0)
    config = PolicyConfig(hidden=(16,), normalise_observation=False, **settings)
    return Policy(ENTRIES, ActionSpace(continuous=2, binary=0, choices=()), config)


def said(policy, observation):
    starts = torch.zeros(1, len(observation), dtype=torch.bool)
    output = policy(observation.unsqueeze(0), policy.initial_state(len(observation)), starts)
    return torch.cat([output.distribution.mean[0], output.value[0].unsqueeze(-1)], -1)


def observation():
    x = torch.randn(5, len(ENTRIES), generator=torch.Generator().manual_seed(1))
    x[:, [1, 4]], x[:, 9] = 1.0, 0.0  # mates 0 and 1 are there, mate 2 is not
    return x


def test_members_are_found_by_name_whatever_their_order():
    found = sets_of(ENTRIES, ("mate",))["mate"]
    assert found.names == ("valid", "x", "y") and found.places == ((1, 2, 3), (4, 6, 5), (9, 7, 8))
    mates = sets_of(NAMES, ("mate", "contact"))
    assert [len(m.places) for m in mates.values()] == [9, 5] and [
        len(m.names) for m in mates.values()
    ] == [11, 21]


@pytest.mark.parametrize("sets", [(), ("mate",)])
def test_the_order_of_members_does_not_matter(sets):
    policy, x = make(sets=sets), observation()
    assert torch.allclose(said(policy, x), said(policy, x[:, SWAPPED]), atol=1e-6) == bool(sets)


def test_only_members_that_are_there_matter():
    policy, x = make(sets=("mate",)), observation()
    for place, matters in ((0, True), (3, True), (6, True), (7, False), (8, False)):
        other = x.clone()
        other[:, place] += 1.0
        assert torch.allclose(said(policy, x), said(policy, other), atol=1e-6) != matters, ENTRIES[
            place
        ]


def test_one_set_alone_by_hand():
    """Weights of one: each member says tanh of the sum of what is told of it, their mean counts
    three times over (units)."""
    torch.manual_seed(0)
    policy = Policy(
        ENTRIES,
        ActionSpace(2, 0, ()),
        PolicyConfig(hidden=(3,), normalise_observation=False, sets=("mate",)),
    )
    mates = policy.actor.network.sets["mate"]
    with torch.no_grad():
        mates.each.weight.fill_(1.0)
        mates.into.weight.fill_(1.0)
    x = torch.tensor([[7.0, 1.0, 0.5, 0.0, 1.0, -1.0, 0.25, 9.0, 9.0, 0.0]])
    told = (torch.tanh(torch.tensor(1.5)) + torch.tanh(torch.tensor(0.25))) / 3
    assert torch.allclose(mates(x)[0], 3 * told.expand(3), atol=1e-6)


@pytest.mark.parametrize(
    ("recipe", "values", "words"),
    [
        (
            "mechs_2v2",
            {"policy.sets": ("mates",)},
            "policy.sets names 'mates'.*there is contact, map, mate",
        ),
        (
            "mechs_2v2",
            {"policy.sets": ("mate",), "policy.normalise_observation": True},
            "policy.normalise_observation False",
        ),
        (
            "pursuit",
            {"policy.sets": ("other",), "policy.hidden": (), "policy.normalise_observation": False},
            "policy.hidden a layer",
        ),
    ],
)
def test_sets_that_cannot_work_are_refused(recipe, values, words):
    config = load_recipe(recipe)
    config.train.threads = 1
    for name, value in values.items():
        set_value(config, name, value)
    with pytest.raises(LudusError, match=words):
        prepare(config)
