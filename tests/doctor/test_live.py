"""The watcher of a run in progress, fed with logs of real runs line by line."""

import json
from pathlib import Path

import numpy as np
import pytest

from ludus.doctor import live
from ludus.doctor.finding import Finding
from ludus.doctor.live import MOST_ROWS, Column, Watcher
from ludus.doctor.log import began_with, read_log
from ludus.doctor.watch import examine

LUDUS = Path(__file__).parent / "logs" / "ludus"


@pytest.fixture(autouse=True)
def all_the_time(monkeypatch):
    """Real runs take seconds per look; these lines come in a burst."""
    monkeypatch.setattr(live, "MOST_TIME", 1e9)


def lines_of(name: str) -> list[dict]:
    return [json.loads(line) for line in (LUDUS / name / "metrics.jsonl").read_text().splitlines()]


def watched(name: str, watcher: Watcher | None = None, start: int = 0, stop: int | None = None):
    """The watcher after these lines, and what it was certain of on the way: (share of the run,
    check)."""
    lines = lines_of(name)
    stored = json.loads((LUDUS / name / "config.json").read_text())
    watcher = watcher or Watcher(stored["values"], began_with=began_with(stored))
    certain, last = [], lines[-1]["progress/agent_steps"]
    for line in lines[start:stop]:
        watcher.add(line)
        if watcher.due():
            step = line["progress/agent_steps"]
            certain += [(step / last, f.check) for f in watcher.look(step, step / last)]
    return watcher, certain


@pytest.mark.parametrize("name", sorted(p.name for p in LUDUS.glob("healthy*")))
def test_nothing_is_critical_at_any_time_of_a_healthy_run(name):
    watcher, certain = watched(name)
    assert not certain and not [r for r in watcher.records if r.finding.severity == "critical"]


@pytest.mark.parametrize(
    ("name", "check", "by"),
    [
        ("sick_entropy", "entropy_stuck", 0.7),
        ("sick_near_pays", "return_without_goal", 0.7),
        ("sick_learning_rate", "updates_too_large", 0.7),
        ("sick_forgets", "updates_too_large", 0.9),
        ("sick_begun", "beginning_lost", 0.7),
    ],
)
def test_a_sick_run_is_known_before_its_end(name, check, by):
    watcher, certain = watched(name)
    assert min(share for share, found in certain if found == check) <= by
    causes = [(r.finding.check, r.finding.cause) for r in watcher.records]
    assert len(causes) == len(set(causes))


def test_a_finding_is_certain_once_and_only_when_seen_twice():
    _, certain = watched("sick_entropy")
    assert [check for _, check in certain].count("entropy_stuck") == 1
    looks = []
    watcher = Watcher({})
    for line in lines_of("sick_entropy"):
        watcher.add(line)
        if watcher.due():
            looks.append(
                (
                    watcher.look(line["progress/agent_steps"], 0.5),
                    {f.check for f in watcher.findings},
                )
            )
    first = next(i for i, (_, seen) in enumerate(looks) if "entropy_stuck" in seen)
    assert not looks[first][0] and "entropy_stuck" in [f.check for f in looks[first + 1][0]]


def test_early_in_the_budget_only_what_cannot_mend_itself_is_critical():
    watcher, broken = Watcher({}), {"progress/agent_steps": 1, "learner/agent/policy_loss": None}
    for line in lines_of("sick_entropy"):
        watcher.add(line)
    watcher.look(100, 0.1)
    assert {f.severity for f in watcher.findings if f.check == "entropy_stuck"} == {"warning"}
    watcher.add(broken)
    assert "not_finite" in [f.check for f in watcher.look(101, 0.1)]


@pytest.mark.parametrize(
    ("share", "severity"), [(0.1, "info"), (0.3, "warning"), (0.6, "critical")]
)
def test_that_nothing_is_learnt_is_a_note_then_a_warning_then_critical(share, severity):
    random = np.random.default_rng(0)
    watcher = Watcher({})
    for i in range(200):
        watcher.add(
            {
                "progress/agent_steps": 1000 * i,
                "episode/agent/return": 10 + random.normal(),
                "learner/agent/policy_loss": 0.1,
            }
        )
    watcher.look(200_000, share)
    assert [f.severity for f in watcher.findings if f.check == "return_flat"] == [severity]


def test_going_on_from_a_checkpoint_finds_the_same():
    whole, _ = watched("sick_near_pays")
    half, _ = watched("sick_near_pays", stop=40)
    saved = json.loads(json.dumps(half.state()))
    again = Watcher(whole.config)
    again.load_state(saved, lines_of("sick_near_pays")[:40], [])
    again, _ = watched("sick_near_pays", again, start=40)
    assert again.state() == whole.state() and whole.records


def test_the_live_log_is_that_of_the_files():
    watcher, _ = watched("healthy_pursuit")
    read = read_log(LUDUS / "healthy_pursuit")
    for name, curve in watcher.log().curves.items():
        assert (curve.values == read.curves[name].values).all() and (
            curve.steps == read.curves[name].steps
        ).all()


def finding(check: str, cause: str, severity: str = "warning") -> Finding:
    return Finding(check=check, severity=severity, cause=cause, evidence="", fix="", confidence=1.0)


def test_one_record_per_finding():
    """Two roles with the same illness are two findings; a finding in new words is the old one; one
    that goes is marked."""
    watcher = Watcher({})
    watcher.conclude(
        [finding("a", "of hider"), finding("a", "of seeker"), finding("b", "by 3")], 10
    )
    watcher.conclude([finding("a", "of seeker", "critical"), finding("b", "by 4")], 20)
    told = [
        (r.finding.check, r.finding.cause, r.finding.severity, r.seen, r.gone)
        for r in watcher.records
    ]
    assert told == [
        ("a", "of hider", "warning", 10, 20),
        ("a", "of seeker", "critical", 10, None),
        ("b", "by 4", "warning", 10, None),
    ]
    assert [f.cause for f in watcher.findings] == ["of seeker", "by 4"]
    watcher.conclude([finding("a", "of hider")], 30)
    assert [(r.seen, r.gone) for r in watcher.records] == [(10, None), (10, 30), (10, 30)]


def test_a_long_column_keeps_every_second_row():
    column = Column()
    for i in range(MOST_ROWS + 3):
        column.add(i, 10.0 * i)
    curve = column.curve("x")
    assert len(curve) == MOST_ROWS // 2 + 2
    assert (curve.steps[1:] - curve.steps[:-1] == 2).all() and (
        curve.values == 10 * curve.steps
    ).all()


def test_looking_costs_little_of_the_time(monkeypatch):
    monkeypatch.setattr(live, "MOST_TIME", 0.005)
    watcher = Watcher({})
    for line in lines_of("healthy_cartpole"):
        watcher.add(line)
    assert watcher.due()
    watcher.look(1, 1.0)
    watcher._rows *= 2
    assert not watcher.due() and watcher.spent > 0
    watcher._begin -= 200 * watcher.spent + 1
    assert watcher.due()


def test_a_crowded_machine_is_no_illness():
    """Seven other programs on the only core of a healthy run, one after the other: a twelfth of the
    speed at the end."""
    (seen,) = [f for f in examine(read_log(LUDUS / "healthy_crowded")) if f.check == "slowing_down"]
    assert (
        seen.severity == "info"
        and "other work on the machine" in seen.evidence
        and "processor time still does 66%" in seen.evidence
    )
    (leak,) = [f for f in examine(read_log(LUDUS / "sick_leak")) if f.check == "slowing_down"]
    assert leak.severity == "critical" and "'simulate'" in leak.cause
