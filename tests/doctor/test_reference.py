"""References: the band of known curves, and real runs on and off the shipped one."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ludus.cli import main
from ludus.doctor.log import Curve, Log, read_log
from ludus.doctor.reference import REFERENCES, differences, find, make, read, track
from ludus.errors import LudusError

LUDUS = Path(__file__).parent / "logs" / "ludus"
NAME = "episode/agent/return"


def log(shift: float, rows: int = 20, **config) -> Log:
    """Rises by 1 a row, a row every 100 steps, from `shift`."""
    steps = 100.0 * np.arange(1, rows + 1)
    curves = {NAME: Curve(NAME, steps, np.arange(1.0, rows + 1) + shift)}
    return Log("here", curves, config={"game": "pursuit", "algorithm": "ppo", "envs": 8, **config})


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    path = tmp_path_factory.mktemp("reference") / "pursuit.json"
    path.write_text(json.dumps(make("pursuit", [log(-2), log(0), log(2)])))
    return read(path)


def test_the_band_by_hand(reference):
    """Seeds lie 4 apart: half of that wider at both sides; neighbours differ by 1; the median goes
    19 up: 2 + 1 + 0.95."""
    band = reference.bands[NAME]
    assert band.steps.tolist() == [100.0 * i for i in range(1, 21)]
    assert band.median == pytest.approx(np.arange(1, 21)) and reference.seeds == 3
    assert band.low == pytest.approx(
        band.median - 2 - 3.95, rel=1e-3
    ) and band.high == pytest.approx(band.median + 2 + 3.95, rel=1e-3)


@pytest.mark.parametrize(
    ("shift", "check"),
    [(0, "on_track"), (5.5, "on_track"), (6.5, "off_track"), (-6.5, "off_track")],
)
def test_in_the_band_and_outside(reference, shift, check):
    found = track(log(shift), reference)
    assert found.check == check and found.severity == ("info" if check == "on_track" else "warning")


def test_when_it_left_the_band(reference):
    run = log(0)
    run.curves[NAME].values[12:] = 0.0  # the 13th row is at step 1300, where 7.05 is the least
    found = track(run, reference)
    assert (
        found.first_step == 1300 and "return 0, usual at this step 14.1 to 25.9" in found.evidence
    )
    run = log(0)
    run.curves[NAME].values[[5, 18]] = 0.0  # once or twice is chance
    assert track(run, reference).check == "on_track"


def test_a_run_that_has_not_got_far_is_compared_as_far_as_it_is(reference):
    assert track(log(0, rows=8), reference).check == "on_track"
    assert track(log(-9, rows=8), reference).check == "off_track"


@pytest.mark.parametrize("first", [2100, 1950, 1250])
def test_a_metric_that_begins_late_is_compared_from_there_on(reference, first):
    """As evaluations do: with many envs the first may come after all that the reference knows."""
    run = log(0)
    run.curves[NAME] = Curve(NAME, np.array([first, first + 900.0]), np.array([-50.0, -50.0]))
    found = track(run, reference)
    assert found.check == ("off_track" if first == 1250 else "on_track")
    assert "too early" in found.cause if first == 2100 else found.first_step in (0, 1300)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=6, unique=True))
def test_any_run_can_be_compared(reference, steps):
    run = log(0)
    run.curves[NAME] = Curve(NAME, 100.0 * np.sort(np.array(steps)), np.zeros(len(steps)))
    assert track(run, reference).check in ("on_track", "off_track")


def test_the_reference_with_the_fewest_differences_is_chosen(tmp_path):
    for name, envs in (("a", 8), ("b", 16)):
        (tmp_path / f"{name}.json").write_text(
            json.dumps(make(name, [log(0, envs=envs), log(1, envs=envs)]))
        )
    chosen = find(tmp_path, {"game": "pursuit", "algorithm": "ppo", "envs": 16})
    assert (
        chosen is not None
        and chosen.recipe == "b"
        and differences(chosen, {"game": "pursuit", "algorithm": "ppo", "envs": 32}) == ["envs"]
    )
    assert find(tmp_path, {"game": "pursuit", "algorithm": "rainbow"}) is None


def test_one_run_makes_no_band():
    with pytest.raises(LudusError, match="a reference of 1 run"):
        make("pursuit", [log(0)])


@pytest.mark.parametrize("path", sorted(REFERENCES.glob("*.json")), ids=lambda p: p.stem)
def test_shipped_references_can_be_read(path):
    assert read(path).bands and read(path).seeds >= 3


@pytest.mark.parametrize(
    ("name", "check"),
    [
        ("healthy_cartpole", "on_track"),
        ("healthy_cartpole_seed", "on_track"),
        ("healthy_crowded", "on_track"),
        ("sick_entropy", "off_track"),
        ("sick_learning_rate", "off_track"),
    ],
)
def test_real_runs_beside_the_shipped_reference(name, check):
    run = read_log(LUDUS / name)
    shipped = find(REFERENCES, run.config)
    assert shipped is not None and track(run, shipped).check == check


def test_the_commands(tmp_path, capsys):
    made = tmp_path / "made.json"
    for arguments, status in (
        (
            [
                "reference",
                "cart",
                str(LUDUS / "healthy_cartpole"),
                str(LUDUS / "healthy_cartpole_seed"),
                "--output",
                str(made),
            ],
            0,
        ),
        (
            [
                "reference",
                "cart",
                str(LUDUS / "healthy_cartpole"),
                str(LUDUS / "healthy_pursuit"),
                "--output",
                str(made),
            ],
            2,
        ),
        (["run", str(LUDUS / "sick_entropy"), "--reference", "--json"], 1),
        (["run", str(LUDUS / "sick_leak"), "--reference"], 2),
    ):
        with pytest.raises(SystemExit) as stop:
            main(["doctor", *arguments])
        assert int(stop.value.code or 0) == status
    assert read(made).bands
    told = capsys.readouterr()
    assert (
        "off_track" in told.out
        and "there is no reference for gym:tests.doctor.logs.leaky:Leaky-v0" in told.err
    )
