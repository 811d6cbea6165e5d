"""What the table of the campaign says about seeds, and what it does not do twice."""

import json
from pathlib import Path

import pytest

from benchmarks.campaign import __main__ as campaign
from benchmarks.campaign.__main__ import interquartile_mean
from benchmarks.campaign.experiments import Evaluation, Experiment


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([5.0], 5.0),
        # three quarters of the lowest and of the highest are outside
        ([9.0, 1.0, 2.0], (0.25 * 1 + 2 + 0.25 * 9) / 1.5),
        ([0.0, 2.0, 4.0, 100.0], 3.0),
        ([100.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, -50.0], 3.5),
    ],
)
def test_the_interquartile_mean_by_hand(values, expected):
    assert interquartile_mean(values) == pytest.approx(expected)


def test_a_run_whose_evaluation_was_cut_off_is_evaluated_and_not_trained_again(
    tmp_path, monkeypatch
):
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
    experiment = Experiment(
        recipe="pursuit",
        evaluations=(Evaluation(name="won", metric="win", against="bot:flee"),),
        claim="",
    )
    with pytest.raises(RuntimeError, match="cut off"):
        campaign.run_one("x", experiment, 0)
    campaign.run_one("x", experiment, 0)
    campaign.run_one("x", experiment, 0)
    assert asked == ["train", "eval", "eval"]
    assert json.loads((tmp_path / "results" / "x" / "0.json").read_text())["agent_steps"] == 10


def test_an_experiment_begins_with_the_run_of_the_one_before_it_trained_first_where_it_is_missing(
    tmp_path, monkeypatch
):
    asked = []

    def ludus(*arguments, cores=None):
        asked.append(arguments)
        Path(arguments[arguments.index("--run") + 1]).mkdir(parents=True)
        return json.dumps({"agent_steps": 10, "seconds": 1.0})

    monkeypatch.setattr(campaign, "ludus", ludus)
    monkeypatch.setattr(campaign, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(campaign, "RESULTS", tmp_path / "results")
    experiments = {
        "small": Experiment(recipe="mechs_2v2"),
        "large": Experiment(recipe="mechs", after="small"),
    }
    monkeypatch.setattr(campaign, "EXPERIMENTS", experiments)
    for seed in (0, 1, 1):
        campaign.run_one("large", experiments["large"], seed)
    campaign.run_one("small", experiments["small"], 1)
    assert [a[1] for a in asked] == ["mechs_2v2", "mechs"] * 2  # each once
    begun = asked[3][asked[3].index("--init-from") + 1]
    assert begun == str(tmp_path / "runs" / "small" / "1") == asked[2][asked[2].index("--run") + 1]
    assert f"--init-from {tmp_path / 'runs' / 'small'}/SEED" in campaign.table(["large"])
