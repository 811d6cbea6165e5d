"""Tables as people write them: separators, decimal commas, units, JSON of several shapes; and whose
return it is."""

import json
import math

import numpy as np
import pytest

from ludus.doctor.log import read_log
from ludus.doctor.progress import of_role
from ludus.doctor.tables import number, without_unit
from ludus.doctor.watch import examine
from ludus.errors import LudusError

STEPS = [1000 * (i + 1) for i in range(20)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        (" -1.5e3 ", -1500),
        ("37%", 0.37),
        ("1,234,567.5", 1234567.5),
        ("12,34", None),
        ("", None),
        ("n/a", None),
        (True, 1),
        ([1], None),
    ],
)
def test_numbers(text, value):
    assert number(text) == value
    assert math.isnan(number(None)) and math.isnan(number("nan"))


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("Steps (M)", ("Steps", 1e6)),
        ("steps [k]", ("steps", 1e3)),
        ("Win (%)", ("Win", 0.01)),
        ("Total reward (max)", ("Total reward (max)", 1.0)),
    ],
)
def test_units(name, known):
    assert without_unit(name) == known


@pytest.mark.parametrize(
    ("table", "steps", "returns"),
    [
        ("steps;reward\n1000;1,5\n2000;2,25\n", [1000, 2000], [1.5, 2.25]),
        ("steps;reward\n1,000;1.5\n2,000;2.25\n", [1000, 2000], [1.5, 2.25]),
        ("Steps (M)\tmean reward\n0.001\t7\n0.002\t8\n", [1000, 2000], [7, 8]),
        ('Timesteps,Score\n"1,000",5\n"2,000",6\n', [1000, 2000], [5, 6]),
    ],
    ids=["decimal commas", "grouped by commas", "millions", "quoted groups"],
)
def test_tables_mean_what_they_say(tmp_path, table, steps, returns):
    path = tmp_path / "log.csv"
    path.write_text(table)
    curve = read_log(path).get("episode/agent/return")
    assert curve.steps.tolist() == steps and curve.values.tolist() == returns


@pytest.mark.parametrize("shape", ["lines", "rows", "columns"])
def test_json_of_any_shape(tmp_path, shape):
    rows = [{"step": s, "train": {"reward": s / 100}} for s in STEPS]
    columns = {"step": STEPS, "train": {"reward": [s / 100 for s in STEPS]}, "tags": ["a"]}
    texts = {
        "lines": "\n".join(map(json.dumps, rows)),
        "rows": json.dumps(rows, indent=1),
        "columns": json.dumps(columns),
    }
    path = tmp_path / "history.json"
    path.write_text(texts[shape])
    curve = read_log(path).get("episode/agent/return")
    assert curve.steps.tolist() == STEPS and curve.values[-1] == 200


def test_metrics_of_somebody_else_are_no_run_of_ours(tmp_path):
    (tmp_path / "metrics.jsonl").write_text(
        "\n".join(json.dumps({"step": s, "reward": 1.0}) for s in STEPS)
    )
    log = read_log(tmp_path)
    assert not log.ours and len(log.get("episode/agent/return")) == len(STEPS)


def test_what_is_no_table_or_holds_no_numbers_is_refused(tmp_path):
    (tmp_path / "model.zip").write_bytes(b"PK\0\1\2")
    with pytest.raises(LudusError, match="is no text"):
        read_log(tmp_path / "model.zip")
    (tmp_path / "log.csv").write_text("step,reward,phase\n1,2,warm\n")
    with pytest.raises(
        LudusError, match="the column 'phase' holds no numbers, but for example 'warm'"
    ):
        read_log(tmp_path / "log.csv", {"goal": "phase"})


@pytest.mark.parametrize(
    ("steps", "kept"),
    [
        ([10, 20, 30, 40], [0, 1, 2, 3]),
        ([100, 200, 195, 300], [0, 1, 2, 3]),
        ([10, 20, 30, 10, 20], [3, 4]),
        ([10, 20, 30, 15, 25, 40], [0, 3, 4, 5]),
        ([10, 20, 10, 20, 10, 20, 30], [4, 5, 6]),
    ],
    ids=["in order", "nearly in order", "started again", "resumed", "three attempts"],
)
def test_what_was_done_over_counts_once(tmp_path, steps, kept):
    values = [float(i) for i in range(len(steps))]
    (tmp_path / "log.csv").write_text(
        "step,reward\n" + "".join(f"{s},{v}\n" for s, v in zip(steps, values, strict=True))
    )
    log = read_log(tmp_path)
    assert sorted(log.get("episode/agent/return").values.tolist()) == [values[i] for i in kept]
    assert any("steps go back" in note for note in log.notes) == (len(kept) < len(steps))


def test_tables_that_were_not_read_are_named(tmp_path):
    for name in ("0.monitor.csv", "1.monitor.csv"):
        (tmp_path / name).write_text("#{}\nr,l,t\n" + "5,10,0.1\n" * 3)
    assert (
        "0.monitor.csv was read, 1 other CSV"
        in next(f for f in examine(read_log(tmp_path)) if f.check == "not_seen").evidence
    )


def rllib(folder, red, blue, learners=("shared",)):
    """A result.json of two agents and one or two policies; the sum of both is what it calls the
    episode's return."""
    lines = []
    for i, step in enumerate(STEPS):
        own = (
            {"shared": red[i] + blue[i]} if len(learners) == 1 else {"red": red[i], "blue": blue[i]}
        )
        lines.append(
            {
                "num_env_steps_sampled_lifetime": step,
                "config": {"lr": 0.1},
                "env_runners": {
                    "episode_return_mean": red[i] + blue[i],
                    "episode_len_mean": 9.0,
                    "agent_episode_returns_mean": {"red": red[i], "blue": blue[i]},
                    "module_episode_returns_mean": own,
                },
                "learners": {name: {"entropy": 0.5, "vf_loss": 1.0} for name in learners},
            }
        )
    (folder / "result.json").write_text("\n".join(map(json.dumps, lines)))
    return read_log(folder)


def test_the_return_of_a_policy_that_plays_all_agents(tmp_path):
    noise = np.random.default_rng(0).normal(size=len(STEPS))
    together = rllib(tmp_path, noise, noise)
    assert together.roles() == ["shared"] and of_role(together, "shared").flat
    assert together.get("episode/shared/length").values[0] == 9.0
    # what one gains the other loses: that nothing rises says nothing
    opposed = rllib(tmp_path, noise, -noise)
    assert (
        opposed.roles() == ["shared"] and opposed.self_play and not of_role(opposed, "shared").flat
    )
    two = rllib(tmp_path, noise, -noise, learners=("red", "blue"))
    assert two.roles() == ["red", "blue"] and not two.self_play and not of_role(two, "red").flat
