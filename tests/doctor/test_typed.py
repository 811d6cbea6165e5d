"""What the doctor tells people to type can be typed: options exist, take the value, and belong to
the algorithm in use."""

import ast
import contextlib
import dataclasses
import functools
import re
from pathlib import Path

import numpy as np
import pytest

import ludus
from ludus.commands.options import parse_config
from ludus.config import flatten, refuse_unused, set_value
from ludus.doctor.before import budget, earnings
from ludus.doctor.finding import Finding
from ludus.doctor.log import Curve, Log, read_log
from ludus.doctor.trial import judge as judge_trial
from ludus.doctor.watch import examine
from ludus.errors import LudusError
from ludus.recipes import load_recipe
from tests.doctor import test_before as before
from tests.doctor.test_trial import trial

LOGS = Path(__file__).parent / "logs" / "ludus"
RECIPE_OF = {"ppo": "pursuit", "rainbow": "racing_lidar"}
OPTION = re.compile(
    r"(?<![\w./])(?:--)?((?:ppo|rainbow|policy|train|checkpoint|league|curriculum|game)\.[a-zA-Z][\w.-]*\w)"
)
WITH_VALUE = re.compile(
    r"--([a-z]+\.[\w.-]*\w)[ =](-?\d[\w.>-]*|True|False)|(?<!-)\b([a-z]+\.[a-z_.]*[a-z])=([\w.]+)"
)
ASKED = re.compile(
    r"(?:named|flag|equal|lacks|in_brackets)\(\s*log,\s*[\"']([\w.]+)[\"']"
    r"|(?:option|setting)\([\"']([\w.]+)[\"']\)"
)
WITH_STRATEGY = "brawl_strategy"
RECIPES_OF_ALL = (*RECIPE_OF.values(), WITH_STRATEGY)
OF_RAINBOW = {"grad_norm", "clipped_updates", "lr"}
"""What its logs have in common with those of PPO."""
NOT_OF_RAINBOW = re.compile(r"strategy/|sensitivity/.*/memory|action/.*/saturated")
"""It plays one choice a step, without memory or strategy encoder."""


@functools.cache
def problem(option: str, algorithm: str, value: str | None = None) -> str:
    """Why an option cannot be typed for a recipe of this algorithm; nothing if it can."""
    name = option.replace("-", "_")
    config = load_recipe(WITH_STRATEGY if ".strategy." in name else RECIPE_OF[algorithm])
    try:
        if name not in (*flatten(config), "game.max_steps"):
            set_value(config, name.replace("ROLE", "driver"), 0)
        refuse_unused(config, name)
        if value is not None:
            with contextlib.redirect_stderr(None):
                parse_config(config, [f"--{name.replace('_', '-')}", value], "train", "", "")
    except (LudusError, SystemExit) as error:
        return f"{option} {value or ''} ({algorithm}): {error}"
    return ""


def problems(finding: Finding, algorithm: str) -> list[str]:
    valued = {(a or b).replace("-", "_"): v or w for a, v, b, w in WITH_VALUE.findall(finding.fix)}
    named = {name.replace("-", "_"): None for name in OPTION.findall(finding.fix)}
    named |= {
        name: None if value.startswith("*") else value for name, value in finding.overrides.items()
    }
    return [
        told
        for name, value in (named | valued).items()
        if (told := problem(name, algorithm, value))
    ]


@functools.cache
def settings_of(algorithm: str) -> dict:
    """Of a recipe that learns by it."""
    return flatten(load_recipe(RECIPE_OF[algorithm]))


def as_rainbow(log: Log) -> Log:
    """The same curves as Rainbow would log them, with values that diverge with its loss."""
    curves = {}
    for name, curve in log.curves.items():
        family, _, key = name.partition("/")
        if NOT_OF_RAINBOW.match(name):
            continue
        if family != "learner":
            curves[name] = curve
        elif key.endswith("/value_loss"):
            for own in ("value_loss", "q_mean", "td_error"):
                new = f"learner/{key.removesuffix('value_loss')}{own}"
                curves[new] = Curve(new, curve.steps, curve.values)
        elif key.split("/")[-1] in OF_RAINBOW:
            curves[f"learner/{key}"] = Curve(f"learner/{key}", curve.steps, curve.values)
    return Log(
        log.source,
        curves,
        log.not_finite,
        log.lists,
        settings_of("rainbow"),
        ours=True,
        better_low=log.better_low,
    )


def explodes(log: Log) -> Log:
    """Its gradients grow, and its losses run away, to the end in which one is not a number."""
    for name, curve in list(log.curves.items()):
        if name.endswith(("/grad_norm", "_loss", "/value_mean")):
            log.curves[name] = Curve(name, curve.steps, np.geomspace(1e-3, 1e5, len(curve)))
    log.not_finite["learner/agent/value_loss"] = log.steps
    return log


@pytest.mark.parametrize("algorithm", ["ppo", "rainbow"])
def test_fixes_of_runs_are_for_the_algorithm_in_use(algorithm):
    """Every stored run as it is, and as the other algorithm might have logged it."""
    checks, wrong = set(), []
    for folder in sorted(LOGS.iterdir()):
        whole = read_log(folder)
        for log in (
            whole,
            explodes(dataclasses.replace(whole, curves=dict(whole.curves), not_finite={})),
        ):
            mine = log.config.get("algorithm") or "ppo"
            if mine != algorithm:
                if mine == "rainbow":
                    continue
                log = as_rainbow(log)
            for finding in examine(log):
                checks.add(finding.check)
                wrong += [f"{finding.check}: {told}" for told in problems(finding, algorithm)]
    assert not wrong, "\n".join(sorted(set(wrong)))
    assert {
        "gradient_explodes",
        "not_finite",
        "return_falls",
        "return_swings",
        "dead_units",
        "one_sided",
        "value_loss_grows",
    } <= checks


@pytest.mark.parametrize(
    ("algorithm", "gamma"),
    [("ppo", "ppo.gamma"), ("ppo", "ppo.roles.chaser.gamma"), ("rainbow", "rainbow.gamma")],
)
def test_fixes_of_recipes_are_for_the_algorithm_in_use(algorithm, gamma):
    found = [
        f
        for case in before.CASES.values()
        for f in earnings.judge(dataclasses.replace(case, gamma_option=gamma))
    ]
    late = trial(lengths=np.full(40, 900.0), paid_share=1 / 900)
    found += [
        f
        for changes in ({}, {"returns": np.full(40, 1.0)})
        for f in judge_trial(dataclasses.replace(late, **changes), 0.99, gamma)
    ]
    found += [
        f
        for b in (
            dataclasses.replace(before.HEALTHY, threads=8),
            dataclasses.replace(before.HEALTHY, checkpoints=0.1),
        )
        for f in budget.judge(b)
    ]
    assert {"goal_beyond_the_discount", "credit_too_late_for_the_discount", "too_many_threads"} <= {
        f.check for f in found
    }
    assert not [told for finding in found for told in problems(finding, algorithm)]


def strings(path: Path) -> list[str]:
    """Every string of a module, docstrings too; what a formatted one puts in is written ROLE."""
    found, within = [], set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.JoinedStr):
            within |= {id(part) for part in node.values}
            found.append(
                "".join(
                    str(part.value) if isinstance(part, ast.Constant) else "ROLE"
                    for part in node.values
                )
            )
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in within
        ):
            found.append(node.value)
    return found


def test_every_option_that_the_doctor_names_exists():
    """Also in what no stored log brings to light; of whichever algorithm and network it is."""
    sources = sorted((Path(ludus.__file__).parent / "doctor").rglob("*.py"))
    named = {
        name
        for path in sources
        for text in strings(path)
        for name in OPTION.findall(text)
        if not name.endswith(".ROLE")
    }
    assert len(named) > 5
    known = {name for recipe in RECIPES_OF_ALL for name in flatten(load_recipe(recipe))}
    sections = {name.rpartition(".")[0] for name in known}
    unknown = {name.replace("-", "_") for name in named} - known - sections
    assert {name for name in unknown if not name.startswith("game.")} <= {"curriculum.stages"}


def test_every_setting_that_a_check_asks_for_exists():
    """Settings of the algorithm are asked for by their last name."""
    sources = sorted((Path(ludus.__file__).parent / "doctor" / "checks").rglob("*.py"))
    asked = {
        name
        for path in sources
        for pair in ASKED.findall(path.read_text())
        for name in pair
        if name
    }
    assert len(asked) > 15
    known = {name for recipe in RECIPES_OF_ALL for name in flatten(load_recipe(recipe))}
    assert asked <= known | {name.rpartition(".")[2] for name in known}
