"""The selftest is silent on the shipped code and names the part in which a fault was planted."""

import json

import pytest

from ludus.cli import main
from ludus.examine.selftest import core
from tests.examine.faults import ASKED, OTHERS, plant, put, wrap

QUICK = ("formulas", "playing", "ppo_update", "replay", "rainbow_update")
SLOW = (
    "the_loop_counts_schedules_and_evaluates",
    "a_resumed_run_goes_on_exactly",
    "a_loaded_agent_is_the_one_that_was_trained",
)


def wrong(checks):
    return [r for r in core.run(checks) if not r.ok]


def test_the_shipped_code_passes():
    """All but whole learning and whole runs, which tests of their own go through."""
    checks = [c for c in core.all_checks((*QUICK, "using")) if core.name_of(c) not in SLOW]
    assert len(checks) >= 50
    assert [(r.name, r.finding.evidence) for r in wrong(checks)] == []


@pytest.mark.parametrize("name", ASKED)
def test_a_planted_fault_is_found_and_its_part_named(name, monkeypatch):
    place, wrapper, checks, part = ASKED[name]
    wrap(monkeypatch, place, wrapper)
    found = wrong(core.chosen(checks))
    assert [r.part for r in found][:1] == [part]
    finding = found[0].finding
    assert finding.severity == "critical" and part in finding.cause and finding.evidence


def test_a_check_that_cannot_run_is_a_finding_and_does_not_stop_the_others(monkeypatch):
    def broken(*arguments):
        raise RuntimeError("no such thing")

    put(monkeypatch, "ludus.algorithms.advantage:generalised_advantages", broken)
    results = core.run(
        core.chosen(["advantages_of_random_episodes", "schedules_are_read_as_written"])
    )
    assert [r.ok for r in results] == [False, True]
    assert "RuntimeError: no such thing" in results[0].finding.evidence


def test_every_check_says_which_part_it_is_about_and_where():
    for check in core.all_checks():
        assert check.part and check.where.startswith("ludus/") and check.__doc__, core.name_of(
            check
        )


def test_the_command(capsys, monkeypatch):
    few = core.chosen(["schedules_are_read_as_written", "advantages_of_random_episodes"])
    monkeypatch.setattr(core, "all_checks", lambda: few)
    for fault, status, verdict in ((None, 0, "ok"), (ASKED["no discounting"], 1, "critical")):
        if fault is not None:
            wrap(monkeypatch, *fault[:2])
        with pytest.raises(SystemExit) as ended:
            main(["doctor", "selftest", "--json"])
        told = json.loads(capsys.readouterr().out)
        assert (
            ended.value.code == status and told["verdict"] == verdict and len(told["checks"]) == 2
        )
    assert (
        "advantages" in told["findings"][0]["cause"]
        and "ludus/algorithms/advantage.py" in told["findings"][0]["fix"]
    )
    with pytest.raises(SystemExit) as ended:
        main(["doctor", "selftest"])
    assert ended.value.code == 1 and "1 of 2 checks passed" in capsys.readouterr().out


@pytest.mark.slow
def test_the_whole_selftest_passes_as_shipped_and_fails_with_a_fault(monkeypatch):
    assert wrong(core.all_checks()) == []
    wrap(monkeypatch, *ASKED["no discounting"][:2])
    parts = {r.part for r in wrong(core.all_checks())}
    assert {"advantages", "value learning (PPO)"} <= parts


def test_every_fault_still_has_its_place_in_the_code(monkeypatch):
    """Whether they are noticed takes long to see; that a changed line leaves one behind is seen at
    once."""
    for fault in OTHERS:
        with monkeypatch.context() as one:
            plant(one, fault)


@pytest.mark.slow
@pytest.mark.parametrize("fault", OTHERS, ids=lambda f: f"{f.place.split(':')[1]}: {f.new[:40]}")
def test_faults_of_many_kinds_are_noticed(fault, monkeypatch):
    plant(monkeypatch, fault)
    bad = []
    checks = (c for c in core.all_checks((*QUICK, "using")) if not bad)  # the first is enough
    core.run(checks, told=lambda result: None if result.ok else bad.append(result))
    assert bad
