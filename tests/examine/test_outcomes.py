"""The selftest's checks on who won: draws that are counted as losses or as wins are noticed
wherever it is counted."""

import pytest

from ludus.examine.selftest import core
from ludus.league.ratings import RANKS
from tests.examine.faults import Fault, plant

SUMMARY, EPISODE, TALLY = (
    "ludus.play.evaluate:_summary",
    "ludus.sim.episode:",
    "ludus.league.tally:Tally.",
)
RATES = "(ours > 0, ours == 0, ours < 0)"

# fault, the part it must name
FAULTS = {
    "an evaluation counts draws as losses": (
        Fault(SUMMARY, RATES, "(ours > 0, ours > 1, ours <= 0)"),
        "evaluation",
    ),
    "an evaluation counts draws as wins": (
        Fault(SUMMARY, RATES, "(ours >= 0, ours > 1, ours < 0)"),
        "evaluation",
    ),
    "training counts draws as losses": (
        Fault(EPISODE + "count_agent", "agent] < 0", "agent] <= 0"),
        "episode statistics",
    ),
    "training counts draws as wins": (
        Fault(EPISODE + "count_agent", "agent] > 0", "agent] >= 0"),
        "episode statistics",
    ),
    "a lineup's draws are losses": (
        Fault(EPISODE + "count_lineup", "agent] < 0", "agent] <= 0"),
        "episode statistics",
    ),
    "a lineup's draws are wins": (
        Fault(EPISODE + "count_lineup", "agent] > 0", "agent] >= 0"),
        "episode statistics",
    ),
    "the tally counts draws as wins": (
        Fault(TALLY + "win_rate", "counts[1] /", "(counts[1] + counts[2]) /"),
        "win rates",
    ),
    "the tally leaves draws out": (
        Fault(TALLY + "win_rate", "/ counts[0])", "/ (counts[0] - counts[2]))"),
        "win rates",
    ),
    "payoffs count draws as wins": (
        Fault("ludus.league.payoff:cell", "interval(won,", "interval(won + drawn,"),
        "payoffs",
    ),
}


def wrong():
    return [
        (r.part, r.finding.evidence) for r in core.run(core.all_checks(["outcomes"])) if not r.ok
    ]


def test_the_shipped_code_passes():
    assert wrong() == []


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found_and_its_part_named(name, monkeypatch):
    fault, part = FAULTS[name]
    plant(monkeypatch, fault)
    assert [told for told, _ in wrong()] == [part]


def test_draws_that_are_rated_as_losses_are_found(monkeypatch):
    monkeypatch.setitem(RANKS, "drawn", RANKS["lost"])
    assert [told for told, _ in wrong()] == ["ratings"]
