"""Checks declare themselves, and users bring their own."""

import json

import numpy as np
import pytest

import ludus
from ludus.cli import main
from ludus.config import DoctorConfig
from ludus.doctor.checks import (
    AT_ONCE,
    FAMILIES,
    SECOND_HALF,
    USUALLY,
    Check,
    Early,
    check,
    checks_of,
    curves_of,
    declared,
    in_order,
)
from ludus.doctor.finding import Finding
from ludus.doctor.live import Watcher
from ludus.doctor.log import Curve, Log
from ludus.doctor.own_checks import load_checks
from ludus.doctor.watch import checked
from ludus.errors import LudusError
from ludus.recipes import load_recipe
from ludus.training.validate import validate
from ludus.training.watching import read_findings

MODULE = '''
from ludus.doctor.checks import AT_ONCE, check
from ludus.doctor.finding import Finding

def a_finding(name, severity="warning"):
    return Finding(check=name, severity=severity, cause="c", evidence="e", fix="f", confidence=1.0)

@check(family="learning", figure="episode/ROLE/return")
def too_good(log):
    """A return above 5."""
    for role in log.roles():
        curve = log.of(role, "return")
        if curve is not None and curve.values.max() > 5:
            yield a_finding("too_good")

@check(family="my_lab", early=AT_ONCE)
def always_critical(log):
    yield a_finding("another name", "critical")

@check(family="gradients")
def fails(log):
    yield a_finding("fails")
    raise KeyError("nothing here")

@check(family="gradients")
def leaves(log):
    raise SystemExit(3)

@check(family="gradients")
def says_nothing(log):
    pass

@check(family="learning")
def return_flat(log):
    yield a_finding("return_flat")

@check(family="learning")
def takes_two(log, role):
    yield a_finding("takes_two")

def undeclared(log):
    yield a_finding("undeclared")

NUMBER = 3
'''


@pytest.fixture
def module(tmp_path, monkeypatch, request):
    """The name of a module with checks, in the working folder."""
    name = f"own_checks_{abs(hash(request.node.name))}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def log_of(**curves):
    steps = 1000.0 * np.arange(1, 41)
    return Log(
        "here",
        {n: Curve(n, steps, np.full(40, float(v))) for n, v in curves.items()},
        ours=True,
    )


@pytest.fixture
def log():
    return log_of(**{"episode/agent/return": 10.0})


# -- declarations ----------------------------------------------------------------------------------


def test_every_check_stands_in_the_file_of_its_family():
    for family in FAMILIES:
        assert checks_of(family) and all(one.family == family for one in checks_of(family))
    assert [one.name for one in in_order()] == list(declared())


def test_what_the_watcher_may_do_early():
    early = {one.name: one.early for one in in_order() if one.early != USUALLY}
    assert {name for name, how in early.items() if how == AT_ONCE} == {
        "not_finite",
        "observations_broken",
        "value_impossible",
        "beginning_lost",
    }
    assert {name for name, how in early.items() if how.critical_from == 0.5} == {
        "return_flat",
        "entropy_stuck",
        "reward_never_met",
        "exploration_spent",
        "nothing_updated",
    }
    noted = {name: how.noted_until for name, how in early.items() if how.noted_until}
    assert noted == {"goal_not_reached": 0.5, "return_flat": 0.2}
    by_clock = {one.name for one in in_order() if one.by_clock}
    assert by_clock == {"slowing_down", "resets_dominate"}


NAMES = (
    "episode/red/return",
    "episode/blue/return",
    "episode/RED/return",
    "eval/bot:flee/catch_rate",
    "eval/bot:flee/catch_rate_low",
    "speed/average",
)


@pytest.mark.parametrize(
    ("figure", "role", "shown"),
    [
        ("episode/ROLE/return", "", list(NAMES[:3])),
        ("episode/ROLE/return", "red", [NAMES[0]]),
        ("episode/ROLE/return", "RED", [NAMES[2]]),
        ("eval/bot:NAME/GOAL", "", [NAMES[3]]),
        (("speed/agent_steps_per_s", "speed/average"), "", ["speed/average"]),
        ("learner/ROLE/q_mean", "", []),
        ((), "", []),
    ],
)
def test_a_figure_shows_the_metrics_it_stands_for(figure, role, shown):
    one = check(family="learning", figure=figure)(lambda log: [])
    assert curves_of(one, NAMES, role) == shown


# -- of the user's own -----------------------------------------------------------------------------


def test_they_run_in_their_family_and_a_new_family_comes_last(module, log):
    own = load_checks([f"{module}:always_critical", f"{module}:too_good"])
    order = [one.name for one in in_order(own)]
    assert order.index("return_swings") < order.index("too_good") < order.index("slowing_down")
    assert order[-1] == "always_critical"
    assert {"too_good", "always_critical"} <= {f.check for f in checked(log, own)}
    assert "too_good" not in {f.check for f in checked(log)}


def test_one_that_fails_is_noted_and_stops_nothing(module, log):
    own = load_checks([f"{module}:{name}" for name in ("fails", "leaves", "says_nothing")])
    expected = [f.check for f in checked(log)]
    log.notes.clear()
    assert [f.check for f in checked(log, own)] == expected
    assert [note.partition(" could not read this log: ")[0] for note in log.notes] == [
        "the check fails",
        "the check leaves",
        "the check says_nothing",
    ]
    assert f"KeyError: 'nothing here' ({module}.py, line" in log.notes[0]


def test_a_mistake_in_one_of_ours_is_not_hidden(log, monkeypatch):
    def broken(log):
        raise KeyError("x")

    one = Check(broken, "learning", (), USUALLY, False)
    monkeypatch.setattr("ludus.doctor.watch.in_order", lambda own: iter([one]))
    with pytest.raises(KeyError):
        checked(log)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("no_such_module:x", "there is no module 'no_such_module'"),
        ("MODULE:too_god", "has no 'too_god': did you mean 'too_good'"),
        ("MODULE", "is not the import path of a check: write package.module:function"),
        ("MODULE:", "write package.module:function"),
        ("MODULE:NUMBER", "is a int, not a function"),
        ("MODULE:undeclared", "is not declared as a check: write @check"),
        ("MODULE:return_flat", "has the name of one of Ludus, 'return_flat': rename"),
        ("MODULE:takes_two", "takes 2 arguments, but is called with one"),
    ],
)
def test_what_cannot_be_one_is_refused_in_one_sentence(module, path, words):
    with pytest.raises(LudusError) as refused:
        load_checks([path.replace("MODULE", module)])
    assert words in str(refused.value) and "\n" not in str(refused.value)


def test_two_of_one_name_are_refused(module):
    with pytest.raises(LudusError, match=r"has the name of one of '.*:too_good'"):
        load_checks([f"{module}:too_good", f"{module}:too_good"])


def test_the_watcher_takes_them_and_what_they_declare(module):
    own = load_checks([f"{module}:always_critical", f"{module}:fails"])
    watcher = Watcher({}, own=own)
    for i in range(20):
        watcher.add({"progress/agent_steps": 100 * i, "episode/agent/return": 1.0})
    certain = watcher.look(1900, 0.01)
    assert [f.check for f in certain] == ["always_critical"]
    assert any(note.startswith("the check fails could not") for note in watcher.notes)


@pytest.mark.parametrize(
    ("early", "share", "severity"),
    [
        (USUALLY, 0.1, "warning"),
        (USUALLY, 0.3, "critical"),
        (AT_ONCE, 0.0, "critical"),
        (SECOND_HALF, 0.4, "warning"),
        (Early(noted_until=0.5), 0.4, "info"),
    ],
)
def test_how_early_a_finding_counts(early, share, severity):
    @check(family="mine", early=early)
    def mine(log):
        yield Finding(
            check="mine", severity="critical", cause="c", evidence="", fix="", confidence=1.0
        )

    watcher = Watcher({}, own=(mine,))
    watcher.add({"progress/agent_steps": 1})
    watcher.look(1, share)
    assert {f.check: f.severity for f in watcher.findings}["mine"] == severity


def test_the_command_runs_them(module, tmp_path, capsys):
    log = tmp_path / "progress.csv"
    log.write_text("step,return\n" + "".join(f"{i},{10 + i % 3}\n" for i in range(30)))
    with pytest.raises(SystemExit) as ended:
        main(["doctor", "run", str(log), "--json", "--checks", f"{module}:always_critical"])
    told = json.loads(capsys.readouterr().out)
    assert ended.value.code == 1 and told["verdict"] == "critical"
    assert "always_critical" in [f["check"] for f in told["findings"]]
    with pytest.raises(SystemExit) as ended:
        main(["doctor", "run", str(log), "--checks", f"{module}:undeclared"])
    assert ended.value.code == 2 and "is not declared as a check" in capsys.readouterr().err


# -- in training -----------------------------------------------------------------------------------


def test_they_are_refused_before_the_first_step(module):
    config = load_recipe("pursuit")
    config.doctor = DoctorConfig(checks=(f"{module}:undeclared",))
    with pytest.raises(LudusError, match="is not declared as a check"):
        validate(config)


def test_they_watch_a_run(module, tmp_path, capsys):
    run = ludus.train(
        "gym:CartPole-v1",
        run=tmp_path / "run",
        quiet=True,
        envs=4,
        total_agent_steps=2000,
        **{
            "train.threads": 1,
            "eval.episodes": 2,
            "log.tensorboard": False,
            "doctor.checks": (f"{module}:too_good", f"{module}:fails"),
        },
    )
    told = [record.finding.check for record in read_findings(run)]
    assert "too_good" in told and "fails" not in told
    assert capsys.readouterr().err.count("the check fails could not read this log") == 1
