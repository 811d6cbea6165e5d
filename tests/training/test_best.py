"""What decides which checkpoint is the best."""

import pytest

from ludus.errors import LudusError
from ludus.sim import Goal
from ludus.training.best import default_metrics, score

GOALS = {"catch_rate": Goal("caught"), "lap": Goal("steps of a lap", higher_is_better=False)}


def evaluated(**values):
    """Metrics of an evaluation, as a trainer has them: self_catch_rate=1 is eval/self/catch_rate."""
    return {"eval/" + name.replace("__", ":").replace("_", "/", 1): value for name, value in values.items()}


def test_goals_against_strong_bots_come_first_then_weak_ones_then_self():
    record = evaluated(self_catch_rate=0.9, bot__random_catch_rate=0.8, bot__flee_catch_rate=0.3, bot__flee_return=5.0)
    assert default_metrics(record, GOALS) == ["eval/bot:flee/catch_rate"]
    del record["eval/bot:flee/catch_rate"]
    assert default_metrics(record, GOALS) == ["eval/bot:random/catch_rate"]
    del record["eval/bot:random/catch_rate"]
    assert default_metrics(record, GOALS) == ["eval/self/catch_rate"]
    del record["eval/self/catch_rate"]
    assert default_metrics(record, GOALS) == ["eval/bot:flee/return"]
    assert score({}, None, GOALS) == (None, 0.0)


def test_what_is_better_low_counts_against_the_mean():
    record = evaluated(bot__flee_catch_rate=0.5, bot__flee_catch_rate_low=0.4, bot__flee_lap=30.0)
    name, value = score(record, None, GOALS)
    assert name == "mean of eval/bot:flee/catch_rate, eval/bot:flee/lap" and value == (0.5 - 30.0) / 2
    assert score(record, "eval/bot:flee/lap", GOALS) == ("eval/bot:flee/lap", -30.0)


def test_a_metric_that_is_not_evaluated_is_refused_with_what_there_is():
    with pytest.raises(LudusError, match="eval/self/wins is not evaluated: there is eval/self/catch_rate"):
        score(evaluated(self_catch_rate=0.9), "eval/self/wins", GOALS)
