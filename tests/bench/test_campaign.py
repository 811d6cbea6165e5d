"""What the table of the campaign says about seeds, and what it does not do twice."""

import json

import pytest

from benchmarks.campaign import __main__ as campaign
from benchmarks.campaign.__main__ import interquartile_mean
from benchmarks.campaign.experiments import Evaluation, Experiment


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([5.0], 5.0),
        ([9.0, 1.0, 2.0], (0.25 * 1 + 2 + 0.25 * 9) / 1.5),  # three quarters of the lowest and of the highest are outside
        ([0.0, 2.0, 4.0, 100.0], 3.0),
        ([100.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, -50.0], 3.5),
    ],
)
def test_the_interquartile_mean_by_hand(values, expected):
    assert interquartile_mean(values) == pytest.approx(expected)


def test_a_run_whose_evaluation_was_cut_off_is_evaluated_and_not_trained_again(tmp_path, monkeypatch):
    asked = []

    def ludus(*arguments, cores=None):
        asked.append(arguments[0])
        if arguments[0] == "train":
            (tmp_path / "runs" / "x" / "0").mkdir(parents=True)
            return json.dumps({"agent_steps": 10, "seconds": 1.0})
        if asked.count("eval") == 1:
            raise RuntimeError("cut off")
        return json.dumps({"metrics": {"win": {"mean": 0.5}}})

    monkeypatch.setattr(campaign, "ludus", ludus)
    monkeypatch.setattr(campaign, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(campaign, "RESULTS", tmp_path / "results")
    experiment = Experiment(recipe="pursuit", evaluations=(Evaluation(name="won", metric="win", against="bot:flee"),), claim="")
    with pytest.raises(RuntimeError, match="cut off"):
        campaign.run_one("x", experiment, 0)
    campaign.run_one("x", experiment, 0)
    campaign.run_one("x", experiment, 0)
    assert asked == ["train", "eval", "eval"]
    assert json.loads((tmp_path / "results" / "x" / "0.json").read_text())["agent_steps"] == 10
