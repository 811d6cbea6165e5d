"""A recipe's reference: how its metrics usually go, as the median and a band over seeds. Is a run
on track?

A reference is a small JSON file under ludus/doctor/references, made by `ludus doctor reference`
from finished runs. A run's own reference is the one of the same game and algorithm whose settings
differ least.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ludus.doctor.finding import Finding
from ludus.doctor.log import Curve, Log
from ludus.doctor.statistics import Array
from ludus.errors import LudusError
from ludus.files import read_json
from ludus.imports import section_name
from ludus.intervals import is_plain

REFERENCES = Path(__file__).parent / "references"
"""Those that Ludus brings: made by `ludus doctor reference`."""
POINTS = 20
FEWEST_SEEDS = 2
WIDER = 0.5
"""Share of its width by which a band is widened at either side, beside the noise: three seeds do
not show all there is."""
OF_RANGE = 0.05
"""And this share of the way the metric goes in the whole run: late in it, seeds lie close
together."""
IN_A_ROW = 3
"""Points outside that make a run off track; one or two may be chance."""
TOLD = 4


@dataclass(frozen=True)
class Band:
    """Of one metric: median, lowest and highest over seeds, at some steps."""

    steps: Array
    median: Array
    low: Array
    high: Array


@dataclass(frozen=True)
class Reference:
    recipe: str
    seeds: int
    config: Mapping[str, Any]
    bands: Mapping[str, Band]


def metrics_of(log: Log) -> list[str]:
    """What a reference holds: returns, goal metrics in training and against bots, entropy."""

    def kept(name: str) -> bool:
        parts = name.split("/")
        if not is_plain(name) or name.endswith(("_std", "_min", "_max")):
            return False
        return (
            (parts[0] == "episode" and parts[-1] in ("return", "length") and len(parts) == 3)
            or parts[0] == "goal"
            or (parts[0] == "eval" and parts[1].startswith("bot:"))
            or parts[-1] == "entropy_share"
        )

    return sorted(name for name in log.curves if kept(name))


def make(recipe: str, logs: Sequence[Log]) -> dict[str, Any]:
    """The JSON of a reference, from runs that differ in their seed."""
    if len(logs) < FEWEST_SEEDS:
        raise LudusError(
            f"a reference of {len(logs)} run(s) has no band: give at least {FEWEST_SEEDS} that "
            "differ in their seed"
        )
    names = [n for n in metrics_of(logs[0]) if all(log.get(n) is not None for log in logs)]
    bands = {}
    for name in names:
        curves = [log.curves[name] for log in logs]
        grid = _grid(curves)
        if len(grid) < IN_A_ROW:
            continue
        values = np.stack([_at(curve, grid) for curve in curves])
        noise = np.stack([_noise(curve) for curve in curves]).max()
        median, low, high = np.median(values, 0), values.min(0), values.max(0)
        room = WIDER * (high - low) + noise + OF_RANGE * float(np.ptp(median))
        parts = {"steps": grid, "median": median, "low": low - room, "high": high + room}
        bands[name] = {key: [float(f"{v:.4g}") for v in part] for key, part in parts.items()}
    config = logs[0].config
    own = section_name(str(config.get("algorithm", "")))
    settings = {k: v for k, v in config.items() if k.split(".")[0] in (*SETTINGS, own)}
    return {"recipe": recipe, "seeds": len(logs), "config": settings, "metrics": bands}


SETTINGS = ("game", "algorithm", "envs", "policy", "league")
"""Sections that a reference holds, beside that of the algorithm."""


def _grid(curves: Sequence[Curve]) -> Array:
    """Evenly spaced steps that all runs reached; no more of them than the shortest has rows."""
    last, rows = min(c.last_step for c in curves), min(len(c) for c in curves)
    points = min(POINTS, rows)
    return np.linspace(last / points, last, points) if points else np.zeros(0)


def _at(curve: Curve, grid: Array) -> Array:
    """Means over the stretches that end at each point; where a stretch has no row, the line between
    its neighbours."""
    edges = np.concatenate([[-np.inf], grid])
    means = [
        curve.values[(curve.steps > a) & (curve.steps <= b)] for a, b in itertools.pairwise(edges)
    ]
    known = np.array([len(m) > 0 for m in means])
    values = np.array([m.mean() if len(m) else np.nan for m in means])
    return values if known.all() else np.interp(grid, grid[known], values[known])


def _noise(curve: Curve) -> float:
    """How far means of a stretch scatter by chance: from one row to the next, over a stretch's
    rows."""
    if len(curve) < 3:
        return 0.0
    stretch = max(1.0, len(curve) / POINTS)
    return float(np.median(np.abs(np.diff(curve.values)))) / np.sqrt(stretch)


# -- reading and finding ---------------------------------------------------------------------------


def read(path: Path) -> Reference:
    try:
        data = read_json(path)
        bands = {
            n: Band(*(np.array(b[k], float) for k in ("steps", "median", "low", "high")))
            for n, b in data["metrics"].items()
        }
        return Reference(data["recipe"], int(data["seeds"]), data["config"], bands)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise LudusError(
            f"{path} is no reference: {error}; make one with `ludus doctor reference`"
        ) from None


def find(folder: Path, config: Mapping[str, Any]) -> Reference | None:
    """The reference of the same game and algorithm whose settings differ least; None: there is
    none."""
    found = [read(path) for path in sorted(folder.glob("*.json"))]
    fits = [
        r for r in found if all(r.config.get(k) == config.get(k) for k in ("game", "algorithm"))
    ]
    return min(fits, key=lambda r: len(differences(r, config)), default=None)


def differences(reference: Reference, config: Mapping[str, Any]) -> list[str]:
    """Settings in which a run differs from its reference."""
    return [k for k, v in reference.config.items() if config.get(k) != v]


# -- judging ---------------------------------------------------------------------------------------


def track(log: Log, reference: Reference) -> Finding:
    """One finding: on track, or off it, and by which metrics."""
    off, seen = [], 0
    for name, band in reference.bands.items():
        curve = log.get(name)
        if curve is None or not _both(curve, band).any():
            continue
        seen += 1
        side = _outside(curve, band)
        if side:
            off.append((name, *side))
    others = differences(reference, log.config)
    changed = (
        f"; {len(others)} settings differ from the reference's "
        f"({', '.join(others[:3])}{' …' if len(others) > 3 else ''})"
        if others
        else ""
    )
    where = f"{reference.seeds} runs of {reference.recipe}"
    if not off:
        return Finding(
            check="on_track",
            severity="info",
            cause=f"the run goes as {where} went"
            if seen
            else "too early to compare with the reference",
            evidence=f"{seen} metrics lie in their bands{changed}",
            fix="nothing",
            confidence=0.7,
            first_step=0,
            last_step=log.steps,
        )
    told = "; ".join(
        f"{n} {value:.3g}, usual at this step {low:.3g} to {high:.3g}"
        for n, value, low, high, _ in off[:TOLD]
    )
    return Finding(
        check="off_track",
        severity="warning",
        cause=f"the run does not go as {where} went: {', '.join(n for n, *_ in off[:TOLD])}",
        evidence=f"{len(off)} of {seen} metrics outside their band for the last {IN_A_ROW} points "
        f"or more: {told}{changed}",
        fix="`ludus doctor compare` with a run of the recipe as shipped",
        confidence=0.6,
        first_step=int(min(step for *_, step in off)),
        last_step=log.steps,
    )


def _both(curve: Curve, band: Band) -> NDArray[np.bool_]:
    """Which points of the band lie where the curve has begun and not yet ended. Evaluations may
    begin after the last of them."""
    return (band.steps >= curve.steps[0]) & (band.steps <= curve.last_step)


def _outside(curve: Curve, band: Band) -> tuple[float, float, float, float] | None:
    """Value, limits and onset where the newest points all lie outside on the same side."""
    both = _both(curve, band)
    if both.sum() < IN_A_ROW:
        return None
    values = _at(curve, band.steps[both])
    low, high = band.low[both], band.high[both]
    for outside in (values < low, values > high):
        if outside[-IN_A_ROW:].all():
            inside = np.flatnonzero(~outside)
            since = band.steps[both][inside[-1] + 1 if len(inside) else 0]
            return float(values[-1]), float(low[-1]), float(high[-1]), float(since)
    return None
