"""The doctor at the trainer's side: a run that cannot learn stops or goes back, and every place
tells the same finding."""

import json
from pathlib import Path

import pytest

import ludus
from ludus.config import Config, TrainConfig
from ludus.doctor import live
from ludus.doctor.finding import Finding
from ludus.runs import checkpoint
from ludus.runs.run import Run
from ludus.training import rollback
from ludus.training.watching import RunDoctor

PROBE = "gym:ludus.examine.probes:ProbeMatch-v0"
SMALL = {
    "envs": 8,
    "train.threads": 1,
    "train.total_agent_steps": 4000,
    "ppo.rollout": 8,
    "ppo.minibatches": 1,
    "ppo.epochs": 4,
    "ppo.learning_rate": 0.01,
    "policy.hidden": (16,),
    "eval.episodes": 2,
    "eval.every_agent_steps": 10_000,
    "checkpoint.every_agent_steps": 1000,
    "log.tensorboard": False,
    "log.diagnostics_every": 0,
}
SICK = {"ppo.entropy": 10.0, "doctor.on_critical": "rollback"}


def findings_of(run: Run) -> list[dict]:
    return [json.loads(line) for line in (run.path / "findings.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A sick run, and the one it was rolled back into."""
    folder = tmp_path_factory.mktemp("doctor")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live, "MOST_TIME", 1.0)
        last = ludus.train(PROBE, run=folder / "sick", quiet=True, **SMALL, **SICK)
    return Run(folder / "sick"), last


def test_a_critical_finding_ends_the_run_early(runs):
    sick, _ = runs
    assert sick.metrics()[-1]["progress/agent_steps"] < 3000
    (stuck,) = [f for f in findings_of(sick) if f["check"] == "entropy_stuck"]
    assert stuck["severity"] == "critical" and stuck["gone"] is None


def test_the_rollback_is_a_fork_with_the_suggested_change(runs):
    sick, last = runs
    assert last.path.name == "sick-rollback-1"
    data = last.read_json("config.json")
    assert data["values"]["ppo.entropy"] == 0.01 and data["origins"]["ppo.entropy"] == "doctor"
    assert (
        data["forked_from"] == f"{sick.path}@0"
        and data["values"]["train.total_agent_steps"] == 4000
    )
    assert not [f for f in findings_of(last) if f["check"] == "entropy_stuck" and f["gone"] is None]


def test_the_report_tells_and_marks_it(runs):
    page = (runs[0].path / "report.html").read_text()
    assert "entropy_stuck" in page and "lower the entropy coefficient" in page


def test_the_command_ends_with_the_verdict(runs, capsys):
    from ludus.commands.summary import report, summary

    assert report(runs[0], as_json=False, full=False) == 1
    said = capsys.readouterr().out
    assert (
        said.startswith("stopped: ")
        and "by the doctor" in said
        and "doctor: critical" in said
        and "(entropy_stuck)" in said
    )
    assert summary(runs[0])["verdict"] == "critical"


def test_a_run_too_short_to_judge_is_not_called_healthy(tmp_path):
    from ludus.commands.summary import report, summary, text

    run = ludus.train(
        PROBE, run=tmp_path / "short", quiet=True, **{**SMALL, "train.total_agent_steps": 200}
    )
    assert (
        summary(run)["verdict"] == "too_little_data" and report(run, as_json=True, full=False) == 0
    )
    told = (
        f"doctor: too little data: {len(run.metrics())} row(s) say something about learning, "
        "and most checks wait for 12"
    )
    assert told in text(run, summary(run), full=False)
    assert "Verdict: too little data." in (run.path / "report.html").read_text()


def test_a_resumed_run_has_the_findings_of_its_checkpoint_and_is_not_stopped_for_them_again(runs):
    """Whoever resumes has seen why it stopped. It goes on to the end of its budget."""
    sick, _ = runs
    before = findings_of(sick)
    (sick.path / "findings.jsonl").unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live, "MOST_TIME", 1.0)
        again = ludus.resume(sick.path, quiet=True)
    assert again.path == sick.path and again.metrics()[-1]["progress/agent_steps"] >= 4000
    now = {(f["check"], f["cause"]): f for f in findings_of(again)}
    assert all((f["check"], f["cause"]) in now for f in before if f["check"] == "entropy_stuck")
    assert len(now) == len(findings_of(again))


def finding(first_step: int = 0, check: str = "return_falls", **overrides: str) -> Finding:
    return Finding(
        check=check,
        severity="critical",
        cause="",
        evidence="",
        fix="",
        confidence=1,
        first_step=first_step,
        overrides={name.replace("__", "."): value for name, value in overrides.items()},
    )


def run_with_checkpoints(path, *steps: int) -> Run:
    path.mkdir()
    for step in steps:
        folder = path / "checkpoints" / f"{step:012d}"
        folder.mkdir(parents=True)
        manifest = {
            "format": checkpoint.FORMAT,
            "step": step,
            "progress": {"seconds": 5.0, "schedule_share": 0.25},
        }
        (folder / "manifest.json").write_text(json.dumps(checkpoint.sealed(manifest)))
    (path / "config.json").write_text("{}")
    return Run(path)


def test_the_last_healthy_checkpoint_is_the_one_before_the_finding(tmp_path):
    run = run_with_checkpoints(tmp_path / "run", 0, 100, 200, 300)
    chosen = {
        at: rollback.plan(run, finding(at, ppo__gamma="0.9"), Config(game="pursuit"))
        for at in (0, 50, 200, 201)
    }
    assert {at: plan.step for at, plan in chosen.items() if plan} == {
        0: 0,
        50: 0,
        200: 100,
        201: 200,
    }


def test_a_rollback_has_what_is_left_of_the_budget_and_of_the_schedules(tmp_path):
    config = Config(game="pursuit", train=TrainConfig(total_agent_steps=1000, total_seconds=60.0))
    chosen = rollback.plan(
        run_with_checkpoints(tmp_path / "run", 100), finding(ppo__gamma="0.9"), config
    )
    assert chosen is not None
    rollback.apply(config, chosen)
    assert (config.train.total_agent_steps, config.train.total_seconds, chosen.schedule_share) == (
        900,
        55.0,
        0.25,
    )


@pytest.mark.parametrize(
    ("rate", "less"),
    [
        (1e-3, "0.0001"),
        ("3e-4 -> 0", "0:3e-05, 1:0"),
        ("1e-2 -> 1e-3 @ 0.5", "0:0.001, 0.5:0.0001"),
        ("cosine 1e-3 -> 1e-5", "cosine 0.0001 -> 1e-06"),
        ("0:1, 0.3:0.2, 1:0", "0:0.1, 0.3:0.02, 1:0"),
    ],
)
def test_a_tenth_of_a_schedule(tmp_path, rate, less):
    config = Config(game="pursuit")
    config.learner.learning_rate = rate
    config.learner.roles = {"runner": {"learning_rate": 0.5, "entropy": 0.1}}
    chosen = rollback.plan(
        run_with_checkpoints(tmp_path / "run", 0), finding(ppo__learning_rate="*0.1"), config
    )
    assert chosen is not None
    assert chosen.changes == {
        "ppo.learning_rate": less,
        "ppo.roles.runner.learning_rate": "0.05",
    }


def test_rainbow_has_a_learning_rate_of_its_own(tmp_path):
    config = Config(game="pursuit", algorithm="rainbow")
    config.learner.learning_rate = 0.01
    fix = finding(rainbow__learning_rate="*0.1")
    chosen = rollback.plan(run_with_checkpoints(tmp_path / "run", 0), fix, config)
    assert chosen is not None and chosen.changes == {"rainbow.learning_rate": "0.001"}


def test_no_rollback_without_a_change_or_after_three(tmp_path):
    config = Config(game="pursuit")
    assert rollback.plan(run_with_checkpoints(tmp_path / "run", 0), finding(), config) is None
    third = run_with_checkpoints(tmp_path / "run-rollback-3", 0)
    assert rollback.plan(third, finding(ppo__gamma="0.9"), config) is None


def doctor_of(path: Path, on_critical: str) -> RunDoctor:
    class Layout:
        def describe(self):
            return {}

    config = Config(game="pursuit")
    config.doctor.on_critical = on_critical
    return RunDoctor(run_with_checkpoints(path), config, Layout())


def test_a_doctor_that_fails_is_told_of_once_a_look_and_training_goes_on(
    tmp_path, monkeypatch, capsys
):
    def fails(log, own):
        raise ValueError("an empty column")

    monkeypatch.setattr(live, "checked", fails)
    monkeypatch.setattr(live, "MOST_TIME", 1e9)
    doctor = doctor_of(tmp_path / "run", "stop")
    lines = [{"progress/agent_steps": 100 * i} for i in range(1, 101)]
    assert not any(doctor.after_iteration(line, 0.5) for line in lines)
    told = capsys.readouterr().err.splitlines()
    assert 1 <= len(told) < 50
    assert all(
        "the doctor failed" in line and "training goes on: an empty column" in line for line in told
    )


def test_the_clock_never_rolls_a_run_back(tmp_path, monkeypatch):
    for mode, stops in (("rollback", False), ("stop", True), ("warn", False)):
        doctor = doctor_of(tmp_path / mode, mode)
        monkeypatch.setattr(doctor.watcher, "due", lambda: True)
        monkeypatch.setattr(
            doctor.watcher, "look", lambda step, share: [finding(check="slowing_down")]
        )
        assert doctor.after_iteration({"progress/agent_steps": 1}, 0.5) is stops


def test_a_run_that_meets_a_nan_goes_on_with_a_tenth_of_the_learning_rate(tmp_path, monkeypatch):
    from ludus.algorithms.ppo.ppo import PPO

    learn, calls = PPO.learn, []

    def spoiled(self, share):
        calls.append(share)
        return learn(self, share) | (
            {"learner/agent/policy_loss": float("nan")} if len(calls) == 3 else {}
        )

    monkeypatch.setattr(PPO, "learn", spoiled)
    small = {**SMALL, "train.total_agent_steps": 400, "doctor.on_critical": "rollback"}
    last = ludus.train(PROBE, run=tmp_path / "spoiled", quiet=True, **small)
    assert (
        last.path.name == "spoiled-rollback-1" and last.metrics()[-1]["progress/agent_steps"] >= 400
    )
    assert last.config().learner.learning_rate == pytest.approx(0.001)
    assert last.read_json("config.json")["forked_from"].endswith("spoiled@0")
