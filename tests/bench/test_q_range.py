"""benchmarks/q_range.py with logs written by hand."""

import json
import sys

import pytest

from benchmarks import q_range


def written(path, means, low=-0.5, high=30.0):
    """A run of racing whose values may be 0 to 100, as a log."""
    path.mkdir()
    lines = [{"progress/agent_steps": 10}]  # nothing was learned yet
    for i, mean in enumerate(means):
        values = dict(
            q_mean=mean,
            q_min=mean + low,
            q_max=mean + high,
            q_feasible_low=0.0,
            q_feasible_high=100.0,
        )
        lines.append(
            {
                "progress/agent_steps": 20 + i,
                **{f"learner/driver/{key}": value for key, value in values.items()},
            }
        )
    lines[-1]["eval/self/finish"] = 0.5
    (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def told(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["q_range", *arguments])
    with pytest.raises(SystemExit) as done:
        q_range.main()
    return done.value.code, capsys.readouterr().out


@pytest.mark.parametrize(
    ("means", "low", "status", "words"),
    [
        (
            [1.0, 70.0],
            -1.0,
            0,
            "2 iterations: mean 1 to 70, all 0 to 100: inside from start to end",
        ),
        ([1.0, 50.0], -6.0, 0, "means inside from start to end, single estimates up to 5.0% out"),
        ([1.0, 50.0], -12.0, 1, "leaves the range by 11.0% of its width"),
        # a mean, once, is enough
        ([1.0, -2.0, 50.0], 0.0, 1, "leaves the range by 2.0% of its width"),
    ],
)
def test_the_range_is_held_or_left(tmp_path, monkeypatch, capsys, means, low, status, words):
    code, out = told(
        monkeypatch,
        capsys,
        written(tmp_path / "run", means, low),
        "--plot",
        str(tmp_path / "q.png"),
    )
    assert code == status and words in out
    assert (tmp_path / "q.png").read_bytes()[:4] == b"\x89PNG"


def test_several_runs_with_their_goal_and_what_is_no_run(tmp_path, monkeypatch, capsys):
    runs = [written(tmp_path / name, [1.0, 2.0]) for name in "ab"]
    picture = ["--goal", "eval/self/finish", "--plot", str(tmp_path / "q.png")]
    assert told(monkeypatch, capsys, *runs, *picture)[0] == 0
    assert "no metrics.jsonl" in told(monkeypatch, capsys, str(tmp_path / "c"))[0]
    assert (
        "has no evaluation of eval/self/win"
        in told(monkeypatch, capsys, *runs, "--goal", "eval/self/win")[0]
    )
