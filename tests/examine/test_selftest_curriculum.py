"""The selftest's checks on what a run does with its results: silent on the shipped code, loud where
a fault was planted."""

import pytest

from ludus.examine.selftest import core
from tests.examine.faults import Fault, plant

STAGES, POOL = "ludus.curriculum.stages:Stages.", "ludus.curriculum.learning_progress:TaskPool."
TRAINS = "a_run_says_where_its_best_checkpoint_is"

# fault, the part it must name
FAULTS = {
    "a stage ends on the mean": (
        Fault(STAGES + "aim", "interval(stage.opponent)[0]", "win_rate(stage.opponent)"),
        "stages",
    ),
    "a stage ends after any number of episodes": (
        Fault(STAGES + "aim", ">= stage.least_episodes", ">= 0"),
        "stages",
    ),
    "a stage counts what was before": (
        Fault(STAGES + "enter", "counts.clear()", "counts"),
        "stages",
    ),
    "win rates never fade": (
        Fault("ludus.league.tally:Tally.add", "RECENT / max(counts[0], 1.0)", "1.0"),
        "win rates",
    ),
    "tasks that fall are not drawn": (
        Fault(POOL + "complete", "abs(fast - slow)", "max(0.0, fast - slow)"),
        "tasks",
    ),
    "tasks without progress are drawn": (
        Fault(
            "ludus.curriculum.samplers:LearningProgress.weight", "math.exp(-min(", "math.exp(min("
        ),
        "tasks",
    ),
    "slow is the best": (
        Fault("ludus.runs.measured:as_good", "value <= best if lower", "value >= best if lower"),
        "best checkpoint",
    ),
}


def wrong(*names):
    checks = (
        core.chosen(names)
        if names
        else [c for c in core.all_checks(["curriculum"]) if core.name_of(c) != TRAINS]
    )
    return [r.part for r in core.run(checks) if not r.ok]


def test_the_shipped_code_passes():
    assert wrong() == []


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found_and_its_part_named(name, monkeypatch):
    fault, part = FAULTS[name]
    plant(monkeypatch, fault)
    assert wrong() == [part]


@pytest.mark.slow
def test_a_run_that_keeps_its_worst_checkpoint_is_found(monkeypatch):
    assert wrong(TRAINS) == []
    plant(
        monkeypatch,
        Fault("ludus.training.evaluation:Evaluations.note_best", "not as_good(", "as_good("),
    )
    assert wrong(TRAINS) == ["best checkpoint"]
