"""The dashboard as a person sees it: at 80 and 160 columns, with whatever metrics an iteration has,
and when it fails."""

import io
import os
from types import SimpleNamespace

import pytest
from rich.console import Console

import ludus
from ludus.batches import game_info
from ludus.config import LeagueConfig, TrainConfig
from ludus.doctor.finding import Finding
from ludus.recipes import RECIPES, load_recipe
from ludus.training.dashboard import Dashboard, fitting
from ludus.viewer.library import Library
from tests.terminal import Program, Screen
from tests.training.test_runs import config

SHORT = TrainConfig(total_agent_steps=800, threads=1)
LONG = dict(evidence="", fix="lower it " * 20, confidence=0.9)
FINDINGS = [
    Finding(check=f"c{i}", severity="warning", cause="what was learnt is being lost " * 5, **LONG)
    for i in range(5)
]


def trainer(roles, **changes):
    """What a dashboard reads of a trainer in its first iteration."""
    base = dict(
        progress=SimpleNamespace(agent_steps=12_345_678, iteration=1, seconds=3.5, best={}),
        share=0.02,
        elapsed=4.0,
        algorithm=SimpleNamespace(policies=dict.fromkeys(roles)),
        run=SimpleNamespace(path="runs/some-run-with-a-long-name-20260101-000000"),
        doctor=SimpleNamespace(findings=[], watcher=SimpleNamespace(track=None)),
        stop_requested=False,
    )
    return SimpleNamespace(**{**base, **changes})


def drawn(dashboard, width):
    console = Console(width=width, file=io.StringIO(), force_terminal=False)
    console.print(dashboard.panel(width))
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("recipe", [*RECIPES, "gym:CartPole-v1"])
def test_the_first_line_of_every_recipe_is_drawn(recipe):
    """No role had a valid row and no episode has ended: nothing is known of any role."""
    made = load_recipe(recipe)
    roles = [seats.role for seats in game_info(made).layout.seats]
    made.checkpoint.best_metric = "eval/self/return"
    for line in (
        {},
        {
            "progress/agent_steps": 16,
            f"learner/{roles[-1]}/entropy_share": 0.5,
            f"goal/{roles[0]}/win": float("nan"),
        },
    ):
        for width in (80, 160):
            dashboard = Dashboard(made, quiet=True)
            dashboard.iteration(trainer(roles), line)
            lines = drawn(dashboard, width)
            assert {len(text) for text in lines} == {width} and len(lines) < 24
            assert all(any(text.startswith(f"│ {role} ") for text in lines) for role in roles)
            assert "nan" not in "".join(lines)


@pytest.mark.parametrize("width", [80, 160])
def test_everything_fits_however_much_there_is(width):
    """Numbers as long as they get, four goals, five findings, a status: no line wraps, and goals
    are whole or left out."""
    line = {
        f"goal/fighter/{name}": -123.4567
        for name in ("win", "draw", "stock_difference", "damage_difference")
    }
    line |= {
        "progress/episodes": 10**7,
        "episode/fighter/return": -1234.5,
        "speed/agent_steps_per_s": 12_345_678.0,
        "eval/bot:based/win": 0.5,
    }
    line |= {
        f"learner/fighter/{key}": 1.23456e-7
        for key in ("entropy_share", "approx_kl", "explained_variance")
    }
    line |= {"eval/bot:based/win_low": 0.4, "eval/bot:based/win_high": 0.6} | {
        f"speed/share/{c}": 0.1 for c in "abcdefghij"
    }
    made = load_recipe("brawl")
    made.checkpoint.best_metric = "eval/bot:based/win"
    dashboard = Dashboard(made, quiet=True)
    progress = SimpleNamespace(
        agent_steps=10**10, iteration=10**6, seconds=1e5, best={"value": 0.6, "step": 10**10}
    )
    doctor = SimpleNamespace(findings=FINDINGS, watcher=SimpleNamespace(track=FINDINGS[0]))
    dashboard.iteration(trainer(["fighter"], progress=progress, doctor=doctor, share=0.5), line)
    dashboard.status("evaluating against bot:based, 32 of 64 episodes")
    lines = drawn(dashboard, width)
    text = "\n".join(lines)
    assert {len(t) for t in lines} == {width} and len(lines) < 24
    for words in (
        "10,000,000,000 agent-steps",
        "12,345,678 per second",
        "elapsed",
        "remaining",
        "50%",
        "32 of 64 episodes",
        "win against bot:based 0.50 [0.40, 0.60]",
        "best 0.60",
        "warning: what was learnt",
        "and 2 more findings",
    ):
        assert words in text
    assert ("damage_difference -123.46" in text) == (width == 160) and "win -123.46" in text


def test_parts_that_do_not_fit_are_left_out_whole():
    assert (
        fitting(["win 0.50", "draw 0.10"], 20) == "win 0.50  draw 0.10"
        and fitting(["win 0.50", "draw 0.10"], 12) == "win 0.50  …"
    )


def test_a_training_is_drawn_in_which_a_role_has_no_valid_rows(tmp_path, monkeypatch):
    """On a terminal of 160 columns: bots play the runners."""
    written = io.StringIO()
    written.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", written)
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("LINES", "50")
    told = []
    monkeypatch.setattr(Dashboard, "status", lambda self, text: told.append(text))
    run = ludus.train(
        config(league=LeagueConfig(mix="bot:flee 1"), train=SHORT), run=tmp_path / "wide"
    )
    assert not any("learner/runner/entropy_share" in line for line in run.metrics()), (
        "the runners learned"
    )
    screen = Screen(160)
    screen.feed(written.getvalue())
    rows = screen.text.splitlines()
    panel = [row for row in rows if row.startswith(("╭", "│", "╰"))]
    assert (
        {len(row) for row in panel} == {160}
        and panel[0].startswith("╭")
        and "Traceback" not in screen.text
    )
    assert (
        "100%" in panel[1]
        and "agent-steps" in panel[2]
        and "per second" in panel[2]
        and "elapsed" in panel[3]
    )
    assert any(row.startswith("│ runner ") for row in panel) and any(
        "catch_rate against bot:flee" in row for row in panel
    )
    seen = Library(tmp_path).whole("wide")["metrics"]
    assert (
        "learner/runner/entropy_share" not in seen
        and None not in seen["learner/chaser/entropy_share"]
    )
    assert "Entropy share" in (run.path / "report.html").read_text()
    assert {
        "evaluating against self, 0 of 4 episodes",
        "evaluating against bot:flee, 0 of 4 episodes",
    } <= set(told)


def test_a_display_that_fails_is_reported_once_and_training_goes_on(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("ludus.training.finish.write_report", lambda run: None)

    def broken(self, trainer, line):
        raise KeyError("learner/seeker/entropy_share")

    monkeypatch.setattr(Dashboard, "iteration", broken)
    run = ludus.train(config(train=SHORT), run=tmp_path / "run")
    assert run.metrics()[-1]["progress/agent_steps"] >= 800 and run.state()[0] == "finished"
    said = capsys.readouterr().err
    assert (
        said.count("the display failed and training goes on (KeyError") == 1
        and "Traceback" not in said
    )


def test_a_panel_that_cannot_be_drawn_says_so(monkeypatch):
    dashboard = Dashboard(config())
    monkeypatch.setattr(Dashboard, "panel", lambda self, width: 1 / 0)
    assert "cannot be drawn and training goes on (ZeroDivisionError" in str(
        dashboard.draw(Console(width=80))
    )


ENDLESS = [
    "--envs",
    "8",
    "--ppo.rollout",
    "16",
    "--ppo.minibatches",
    "1",
    "--policy.hidden",
    "8",
    "--train.threads",
    "1",
    "--eval.episodes",
    "2",
    "--game.max-steps",
    "20",
    "--train.total-agent-steps",
    "100000000",
    "--log.tensorboard",
    "False",
]


def test_a_terminal_that_goes_away_saves_the_run(tmp_path):
    """A closed window or a lost connection: nobody reads what is said, and nothing is lost."""
    program = Program(["train", "pursuit", "--run", str(tmp_path / "run"), *ENDLESS], 80)
    program.until("agent-steps")
    program.until("iteration 3")
    os.close(program.terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(program.process, 0)[1]) == 3
    run = ludus.runs.run.Run(tmp_path / "run")
    assert run.state() == ("stopped", "on request")
    assert ludus.runs.checkpoint.steps(run)[-1] == run.metrics()[-1]["progress/agent_steps"]


def test_ctrl_c_is_acknowledged_and_saves_without_an_evaluation(tmp_path):
    """A training on a terminal of 80 columns: what is seen, and what one Ctrl-C does."""
    path = tmp_path / "run"
    program = Program(["train", "pursuit", "--run", str(path), *ENDLESS], 80)
    program.until("catch_rate against bot:flee: not evaluated yet")
    rows = [row for row in program.screen.lines if row.startswith(("╭", "│", "╰"))]
    assert {len(row) for row in rows} == {80} and "agent-steps" in rows[2]
    program.press(b"\x03")
    program.until("stopping after this iteration: saving; press Ctrl-C again to stop at once", 10)
    assert program.wait() == 3, program.screen.text
    said = program.screen.text
    assert (
        "stopped: " in said
        and "on request" in said
        and "catch_rate against bot:flee: not evaluated yet" in said
    )
    assert "^C" not in program.seen and "Traceback" not in said and "cannot be drawn" not in said
    run = ludus.runs.run.Run(path)
    lines = run.metrics()
    assert run.state() == ("stopped", "on request") and not any(
        name.startswith("eval/") for line in lines for name in line
    )
    assert ludus.runs.checkpoint.steps(run)[-1] == lines[-1]["progress/agent_steps"]
