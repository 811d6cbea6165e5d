"""What is said about logs of other libraries is said in their names, and in words that need no
option of ours."""

import csv
import re

import numpy as np
import pytest

from ludus.doctor.checks.gradients import not_finite
from ludus.doctor.finding import Finding
from ludus.doctor.foreign import in_their_words
from ludus.doctor.log import Log, read_log
from ludus.doctor.watch import examine

OURS = re.compile(r"(?:ppo|rainbow|policy)\.[a-z]|(?:learner|goal|episode)/agent/")


def table(folder, rows=60, **columns):
    """A progress.csv of these columns ("/" written as "__"), a constant or one value for each
    row."""
    cells = {
        name.replace("__", "/"): np.broadcast_to(np.asarray(values, float), rows)
        for name, values in columns.items()
    }
    cells = {"time/total_timesteps": np.arange(1, rows + 1) * 1000} | cells
    with open(folder / "progress.csv", "w", newline="") as file:
        csv.writer(file).writerows([list(cells), *zip(*cells.values(), strict=True)])
    return read_log(folder)


def noisy(values, size=1.0, rows=60):
    return np.broadcast_to(values, rows) + size * np.random.default_rng(0).normal(size=rows)


def not_seen(log):
    return " ".join(f.evidence for f in examine(log) if f.check == "not_seen")


@pytest.mark.parametrize(
    ("check", "columns", "words"),
    [
        (
            "updates_too_large",
            {"train__approx_kl": 2.0},
            "the learning rate at a tenth of what it is, or the target KL at 0.02",
        ),
        (
            "gradient_explodes",
            {"losses__grad_norm": np.geomspace(1, 1e6, 60)},
            "gradient clipping at 0.5",
        ),
        (
            "entropy_stuck",
            {"train__entropy_loss": -1.386},
            "lower the entropy coefficient to 0.01, or 0",
        ),
        (
            "values_explain_nothing",
            {"train__explained_variance": -0.1},
            "scale rewards, raise the weight of the value loss",
        ),
        ("value_impossible", {"losses__q_values": 1e6}, "losses/q_values reaches 1e+06"),
        (
            "not_finite",
            {"train__value_loss": np.where(np.arange(60) < 30, 1.0, np.nan)},
            "'train/value_loss' is not a number",
        ),
    ],
)
def test_findings_speak_of_their_columns_and_of_no_option_of_ours(tmp_path, check, columns, words):
    found = examine(table(tmp_path, rollout__ep_rew_mean=noisy(20.0), **columns))
    texts = {f.check: f"{f.cause} {f.evidence} {f.fix}" for f in found}
    assert words in texts[check]
    assert not [text for text in texts.values() if OURS.search(text)] and not any(
        f.overrides for f in found
    )


def test_the_goal_has_its_own_name(tmp_path):
    falls = noisy(np.linspace(0.4, 0.0, 60), 0.02)
    log = table(
        tmp_path, rollout__ep_rew_mean=noisy(np.linspace(0, 90, 60)), rollout__success_rate=falls
    )
    (found,) = [f for f in examine(log) if f.check == "return_without_goal"]
    assert (
        "'rollout/success_rate' does not" in found.cause
        and "; rollout/success_rate 0.3" in found.evidence
    )


def test_runs_of_ours_keep_names_and_options():
    log = Log("here", ours=True, not_finite={"learner/agent/value_loss": 7})
    log.config = {"algorithm": "ppo", "ppo.learning_rate": 1e-3}
    (found,) = not_finite(log)
    assert "'learner/agent/value_loss'" in found.cause
    assert found.overrides == {"ppo.learning_rate": "*0.1"}


def test_a_name_that_several_columns_share_stays():
    found = Finding(
        check="x",
        severity="info",
        cause="q_mean of red; learner/red/q_mean",
        evidence="",
        fix="",
        confidence=1.0,
    )
    log = Log(
        "here",
        theirs={
            "learner/red/q_mean": "learners/red/qf_mean",
            "learner/blue/q_mean": "learners/blue/qf_mean",
        },
    )
    assert in_their_words(found, log).cause == "q_mean of red; learners/red/qf_mean"


def test_what_is_read_under_another_name_or_kept_by_a_library_is_not_missed(tmp_path):
    log = table(
        tmp_path,
        rollout__ep_rew_mean=noisy(20.0),
        episode_reward=1.0,
        time__iterations=1.0,
        timers__x=1.0,
        pid=7.0,
        mood=1.0,
    )
    assert "columns not used: mood (--columns" in not_seen(log)


@pytest.mark.parametrize(
    "column", ["losses__q_values", "rollout__exploration_rate", "train__ent_coef"]
)
def test_a_learner_of_values_is_not_asked_for_entropy(tmp_path, column):
    assert "entropy" in not_seen(table(tmp_path, rollout__ep_rew_mean=noisy(20.0)))
    assert "entropy" not in not_seen(
        table(tmp_path, rollout__ep_rew_mean=noisy(20.0), **{column: 0.1})
    )
