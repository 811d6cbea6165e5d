"""Runs of an algorithm that Ludus does not have: it logs little, and has three settings. Every check
runs on them, and no fix names a setting that they lack."""

import json
import re

import numpy as np
import pytest

from ludus.doctor.compare import setting_differences
from ludus.doctor.finding import Finding
from ludus.doctor.live import Watcher
from ludus.doctor.log import Log, read_log
from ludus.doctor.options import equal, flag, in_brackets, lacks, named, overrides
from ludus.doctor.watch import examine

ROWS = 120
STEPS = 1000 * np.arange(1, ROWS + 1)
CONFIG = {
    "game": "gym:CartPole-v1",
    "envs": 8,
    "seed": 0,
    "algorithm": "my_lab.learners:Reinforce",
    "reinforce.gamma": 0.99,
    "reinforce.learning_rate": 1e-3,
    "reinforce.rollout": 64,
    "policy.network": "my_lab.nets:Small",
    "train.total_agent_steps": 120_000,
}
OPTION = re.compile(
    r"(?<![\w./])(?:--)?((?:[a-z_]+)\.[a-z][\w.-]*\w)(?![\w(])"  # ppo.gamma, --ppo.gamma
)
OF_FILES = {"metrics.jsonl", "diagnostics.jsonl", "game.json", "config.json"}
PER_CENT = np.arange(ROWS) / ROWS


def noisy(values, size=0.5):
    return np.broadcast_to(values, ROWS) + size * np.random.default_rng(1).normal(size=ROWS)


HEALTHY = {
    "episode/agent/return": noisy(20 + 400 * PER_CENT),
    "episode/agent/length": noisy(20 + 400 * PER_CENT),
    "learner/agent/policy_loss": noisy(0.0, 0.1),
    "learner/agent/entropy": 0.69 - 0.4 * PER_CENT,
    "learner/agent/grad_norm": noisy(1.0, 0.1),
    "learner/agent/lr": np.full(ROWS, 1e-3),
}
BROKEN = np.where(np.arange(ROWS) < 90, noisy(0.0, 0.1), np.nan)
RISES_AND_FALLS = noisy(20 + 400 * np.where(PER_CENT < 0.7, PER_CENT, 0.1), 5.0)
SWINGS = noisy(np.where(PER_CENT < 0.1, 20.0, 250 + 150 * np.sin(2 * np.pi * np.arange(ROWS) / 20)))
WHITE_NOISE = noisy(20.0)
SICK = {
    "not_finite": {"learner/agent/policy_loss": BROKEN},
    "entropy_collapsed": {
        "learner/agent/entropy": np.where(PER_CENT < 0.05, 0.69, 1e-4),
        "episode/agent/return": WHITE_NOISE,
    },
    "entropy_stuck": {
        "learner/agent/entropy": np.full(ROWS, 0.69),
        "episode/agent/return": WHITE_NOISE,
    },
    "entropy_rising": {
        "learner/agent/entropy": -1.0 + 4 * PER_CENT,
        "episode/agent/return": WHITE_NOISE,
    },
    "gradient_vanishes": {"learner/agent/grad_norm": 10.0 ** (-12 * PER_CENT)},
    "gradient_explodes": {"learner/agent/grad_norm": 10.0 ** (9 * PER_CENT)},
    "return_falls": {"episode/agent/return": RISES_AND_FALLS},
    "return_swings": {"episode/agent/return": SWINGS},
    "return_flat": {"episode/agent/return": WHITE_NOISE},
    "reward_never_met": {
        "episode/agent/return": np.full(ROWS, 20.0),
        "episode/agent/length": np.full(ROWS, 20.0),
    },
    "value_loss_grows": {
        "learner/agent/value_loss": 10.0 ** (-2 + 8 * PER_CENT),
        "episode/agent/return": WHITE_NOISE,
    },
    "value_impossible": {"learner/agent/value_mean": 10.0 ** (8 * PER_CENT)},
    "updates_too_large": {"learner/agent/approx_kl": np.full(ROWS, 3.0)},
    "policy_frozen": {"learner/agent/approx_kl": np.full(ROWS, 1e-9)},
    "values_explain_nothing": {
        "learner/agent/explained_variance": np.full(ROWS, -1.0),
        "episode/agent/return": WHITE_NOISE,
    },
    "actions_saturated": {"action/agent/turn/saturated": np.full(ROWS, 0.99)},
    "dead_units": {"units/agent/body.0/dead_share": np.full(ROWS, 0.99)},
    "only_exploring": {
        "learner/agent/epsilon": np.full(ROWS, 1.0),
        "episode/agent/return": WHITE_NOISE,
    },
    "exploration_spent": {
        "learner/agent/epsilon": np.where(PER_CENT < 0.02, 1.0, 0.01),
        "episode/agent/return": WHITE_NOISE,
    },
    "noise_collapsed": {
        "learner/agent/std": np.full(ROWS, 1e-3),
        "episode/agent/return": WHITE_NOISE,
    },
    "attention_uniform": {"strategy/agent/vector_std": np.full(ROWS, 1e-6)},
    "memory_unused": {
        "sensitivity/agent/memory": np.full(ROWS, 1e-6),
        "sensitivity/agent/observation": np.full(ROWS, 1.0),
    },
    "one_sided": {
        "episode/red/won": np.full(ROWS, 0.99),
        "episode/blue/won": np.full(ROWS, 0.01),
    },
}


def lines_of(curves):
    return [
        {
            "progress/agent_steps": int(step),
            "progress/seconds": float(i),
            "progress/episodes": 100 * (i + 1),
            **{n: None if np.isnan(v[i]) else float(v[i]) for n, v in curves.items()},
        }
        for i, step in enumerate(STEPS)
    ]


def run_of(folder, changes):
    """A run folder with these curves in place of healthy ones."""
    text = "".join(json.dumps(line) + "\n" for line in lines_of({**HEALTHY, **changes}))
    (folder / "metrics.jsonl").write_text(text)
    (folder / "config.json").write_text(json.dumps({"values": CONFIG, "origins": {}}))
    return folder


def options_in(finding: Finding) -> set[str]:
    text = f"{finding.cause} {finding.fix}"
    named = {name.replace("-", "_") for name in OPTION.findall(text)} - OF_FILES
    return named | set(finding.overrides)


def test_options_are_recognised_in_a_text():
    one = Finding(
        check="x",
        severity="info",
        cause="--ppo.target-kl 0.02",
        evidence="",
        fix="ppo.clip=0.2 (policy.strategy.next_keys); game.json says 0.5",
        confidence=1.0,
    )
    assert options_in(one) == {"ppo.target_kl", "ppo.clip", "policy.strategy.next_keys"}


@pytest.mark.parametrize("check", SICK)
def test_a_sick_run_is_told_what_it_can_do(check, tmp_path):
    log = read_log(run_of(tmp_path, SICK[check]))
    found = examine(log)
    assert check in [f.check for f in found]
    for one in found:
        assert options_in(one) <= set(CONFIG), one
        assert "could not read" not in one.evidence
        assert " at  " not in one.fix and not one.fix.endswith((" ", ",", "or"))


@pytest.mark.parametrize("check", SICK)
def test_the_watcher_sees_the_same(check):
    watcher = Watcher(CONFIG)
    for line in lines_of({**HEALTHY, **SICK[check]}):
        watcher.add(line)
    watcher.look(int(STEPS[-1]), 1.0)
    assert check in [f.check for f in watcher.findings]
    assert all(options_in(f) <= set(CONFIG) for f in watcher.findings)


def test_a_healthy_run_is_healthy(tmp_path):
    assert {f.severity for f in examine(read_log(run_of(tmp_path, {})))} == {"info"}


def test_what_it_has_is_named_and_changed(tmp_path):
    found = {f.check: f for f in examine(read_log(run_of(tmp_path, SICK["return_falls"])))}
    assert found["return_falls"].overrides == {"reinforce.learning_rate": "*0.3"}
    assert found["return_falls"].fix.endswith("a third of the learning rate")
    found = {f.check: f for f in examine(read_log(run_of(tmp_path, SICK["return_swings"])))}
    assert "(reinforce.rollout, envs)" in found["return_swings"].fix
    found = {f.check: f for f in examine(read_log(run_of(tmp_path, SICK["entropy_collapsed"])))}
    assert "add an entropy bonus of weight 0.01" in found["entropy_collapsed"].fix


def test_how_a_setting_is_named():
    ours, theirs = Log("here", config=CONFIG), Log("there")
    assert (ours.option("gamma"), ours.setting("gamma")) == ("reinforce.gamma", 0.99)
    assert (ours.option("clip"), ours.setting("clip"), theirs.option("gamma")) == ("", None, "")
    assert lacks(ours, "clip") and not lacks(ours, "gamma") and not lacks(theirs, "gamma")
    assert named(ours, "learning_rate") == "reinforce.learning_rate"
    assert flag(ours, "learning_rate", "1e-4") == "--reinforce.learning-rate 1e-4"
    assert equal(ours, "gamma", "0.9") == "reinforce.gamma=0.9"
    assert in_brackets(ours, "gamma", "0.9") == " (reinforce.gamma=0.9)"
    assert equal(ours, "policy.network", "standard") == "policy.network=standard"
    assert [f(theirs, "target_kl", "0.02") for f in (flag, equal)] == ["the target KL at 0.02"] * 2
    assert named(theirs, "learning_rate") == "the learning rate"
    assert in_brackets(theirs, "gamma") == ""
    assert overrides(ours, {"gamma": "0.9", "clip": "0.2"}) == {"reinforce.gamma": "0.9"}


def test_values_are_known_by_what_is_logged():
    """Not by an algorithm's name."""
    log = read_log_of(HEALTHY)
    assert not log.by_values
    assert read_log_of({**HEALTHY, "learner/agent/q_mean": np.ones(ROWS)}).by_values


def read_log_of(curves):
    watcher = Watcher(CONFIG)
    for line in lines_of(curves):
        watcher.add(line)
    return watcher.log()


def test_a_total_loss_is_not_that_of_the_values():
    """It counts only where the values' own is not logged."""
    grows = {"learner/agent/loss": 10.0 ** (-2 + 8 * PER_CENT), "episode/agent/return": WHITE_NOISE}
    own = {"learner/agent/value_loss": np.full(ROWS, 0.1)}
    for curves, told in ((grows, True), (grows | own, False)):
        found = [f.check for f in examine(read_log_of({**HEALTHY, **curves}))]
        assert ("value_loss_grows" in found) == told


def test_runs_of_it_are_compared():
    other = {**CONFIG, "reinforce.gamma": 0.9}
    found = setting_differences({"values": CONFIG}, {"values": other})
    assert [d.key for d in found] == ["reinforce.gamma"]
