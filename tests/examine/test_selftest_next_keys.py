"""The selftest's part about predicting keys: silent on the shipped code, and loud where a fault
was planted."""

import pytest

from ludus.examine.selftest import core
from tests.examine.faults import PPO, Fault, plant

TERMS = PPO + "PPO.loss_terms"
RECORD, PREPARE, LOSS = (
    f"ludus.networks.next_keys:NextKeys.{name}" for name in ("record", "prepare", "forward")
)
FAULTS = {
    "own keys instead of the opponent's": (
        Fault(RECORD, ".flip(1)", ""),
        "stores_the_keys_that_the_opponent_pressed",
    ),
    "guesses and keys swapped": (
        Fault(LOSS, "_with_logits(guess, pressed,", "_with_logits(guess, 1 - pressed,"),
        "a_wrong_guess_costs_its_cross_entropy",
    ),
    "the encoder learns nothing": (
        Fault(
            LOSS,
            'self.predictor(output.notes["vector"],',
            'self.predictor(output.notes["vector"].detach(),',
        ),
        "encoder_and_predictor_learn_from_the_keys",
    ),
    "the weight is ignored": (
        Fault(TERMS, "auxiliary.weight * own", "own"),
        "encoder_and_predictor_learn_from_the_keys",
    ),
    "keys of another episode": (
        Fault(
            PREPARE,
            "later_steps(ends,",
            "later_steps(torch.zeros_like(ends),",
        ),
        "asks_for_later_steps_of_the_same_episode",
    ),
    "always the same step": (
        Fault(PREPARE, "torch.rand_like(rollout.reward)", "torch.zeros_like(rollout.reward)"),
        "asks_for_later_steps_of_the_same_episode",
    ),
    "the observation of now": (
        Fault(LOSS, "rollout.observation.flatten(0, 1)[later]", 'rows["observation"]'),
        "a_wrong_guess_costs_its_cross_entropy",
    ),
}


def wrong():
    return [r for r in core.run(core.all_checks(["next_keys"])) if not r.ok]


def test_the_shipped_code_passes():
    assert [(r.name, r.finding.evidence) for r in wrong()] == []


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name, monkeypatch):
    fault, first = FAULTS[name]
    plant(monkeypatch, fault)
    found = wrong()
    assert found and found[0].name == first and found[0].part == "opponent's keys"
