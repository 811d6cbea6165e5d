"""The study of false alarms: which runs count, to which recipe they belong, what they were told."""

import json
import shutil
from pathlib import Path

from benchmarks import false_alarms

LUDUS = Path(__file__).parent / "logs" / "ludus"


def test_runs_are_watched_again(tmp_path):
    """A healthy run, one that has become slower for other programs' sake, a sick one, and one that
    was stopped."""
    for name in ("healthy_cartpole_seed", "healthy_crowded", "sick_learning_rate"):
        shutil.copytree(LUDUS / name, tmp_path / name)
    stopped = (
        shutil.copytree(LUDUS / "healthy_cartpole_seed", tmp_path / "stopped") / "metrics.jsonl"
    )
    stopped.write_text("".join(stopped.read_text().splitlines(keepends=True)[:20]))
    found, left_out = false_alarms.study(false_alarms.find_runs([tmp_path]))
    assert left_out == [str(tmp_path / "stopped")]
    told = found["gym:CartPole-v1"]
    assert [Path(run).name for run in told] == ["healthy_cartpole_seed", "healthy_crowded"]
    assert not any(t.end for t in told.values())
    (sick,) = found["gym:CartPole-v1, changed"].values()
    assert sick.end["updates_too_large"] == "critical" and sick.worst() == "critical"
    rows = false_alarms.table(found).splitlines()
    assert rows[2].startswith("| gym:CartPole-v1 | 2 | 0, 5 | 0 | 0 | none |")
    assert (
        rows[3].startswith("| gym:CartPole-v1, changed | 1 | 0 | 1 | 0 | ")
        and "updates_too_large critical (1)" in rows[3]
    )


def test_a_run_belongs_to_the_recipe_it_differs_least_from():
    values = json.loads(json.dumps(false_alarms._settings("racing_lidar")))
    assert false_alarms.recipe_of(values) == ("racing_lidar", [])
    assert false_alarms.recipe_of({**values, "seed": 7, "train.total_seconds": 5}) == (
        "racing_lidar",
        [],
    )
    assert false_alarms.recipe_of({**values, "rainbow.gamma": 0.5}) == (
        "racing_lidar",
        ["rainbow.gamma"],
    )
    assert false_alarms.recipe_of({**values, "game.reach": 2.0}) == ("racing_lidar", ["game.reach"])


def test_what_was_told_on_the_way_and_is_gone_at_the_end_is_counted_apart():
    told = [
        false_alarms.Told(2, end={"a": "warning"}, passing={"b": "critical"}),
        false_alarms.Told(0),
    ]
    assert false_alarms._row("x", told) == "| x | 2 | 0, 2 | 0 | 1 | a (1) | b critical (1) |"


def test_recipes_without_three_seeds_are_named():
    """Three runs of one seed are one seed."""
    told = {"racing": [0, 1, 2], "pursuit": [0, 1], "arena": [4, 4, 4]}
    found = {
        name: {str(i): false_alarms.Told(seed) for i, seed in enumerate(seeds)}
        for name, seeds in told.items()
    }
    few = false_alarms.too_few(found)
    assert "pursuit (2)" in few and "arena (1)" in few and "brawl (0)" in few
    assert not any(name.startswith("racing (") for name in few)
