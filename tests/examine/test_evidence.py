"""Evidence about a run, where the answer is known."""

from types import SimpleNamespace

import torch

from ludus.examine.evidence import Diagnostics
from ludus.learn.algorithm import Evidence


def diagnostics(observation):
    """Of an algorithm with one role whose last rollout saw this: [time, rows, 2]."""
    evidence = Evidence(
        inputs=(observation[:1], torch.zeros(observation.shape[1], 0), None, None, {}),
        observation=observation.flatten(0, 1), suspects={"observation": observation},
    )  # fmt: skip
    algorithm = SimpleNamespace(policies={"player": None}, evidence=lambda name: evidence)
    layout = SimpleNamespace(observation=["place", "height"], observation_of=lambda role: ["place", "height"])
    return Diagnostics(algorithm, layout), evidence


def test_entries_that_are_not_finite_are_named():
    observation = torch.randn(3, 4, 2)
    assert diagnostics(observation)[0].broken_observations() == {}
    observation[2, 1, 1] = torch.nan
    assert diagnostics(observation)[0].broken_observations() == {"observation/player/not_finite": ["height"]}


def test_rows_that_all_see_the_same_say_nothing_about_units_and_inputs():
    """Short episodes that began all at once: equal outputs are no dead units, and shuffling the rows changes nothing."""
    looks, evidence = diagnostics(torch.ones(3, 4, 2))
    assert looks._units(None, evidence) == {}
    told = looks._inputs("player", None, evidence)
    assert told["observation/constant"] == ["place", "height"] and not [name for name in told if name.startswith("sensitivity")]
