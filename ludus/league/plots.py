"""Ratings over training, and the payoff matrix as a heat map."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ludus.league.payoff import Table, columns
from ludus.league.ratings import Rating
from ludus.who import SNAPSHOT, named


def figure(ratings: Mapping[str, Rating], tables: Mapping[str, Table]) -> Any:
    """One row of panels: ratings first, then a matrix per role."""
    from matplotlib.figure import Figure

    panels = bool(ratings) + len(tables)
    whole = Figure(figsize=(5.5 * panels, 4.5), layout="constrained")
    axes = np.atleast_1d(whole.subplots(1, panels))
    if ratings:
        _ratings(axes[0], ratings)
    for axis, (role, table) in zip(axes[bool(ratings) :], tables.items(), strict=True):
        _matrix(axis, role, table)
    return whole


def _ratings(axes: Any, ratings: Mapping[str, Rating]) -> None:
    """Snapshots by their step, one line per role; everybody else as a level."""
    lines: dict[str, list[tuple[int, Rating]]] = {}
    for name, rating in ratings.items():
        player = name.removeprefix(rating.role + " ")
        who = named(player)
        if who.kind == SNAPSHOT:
            lines.setdefault(rating.role, []).append((int(who.name), rating))
        else:
            axes.axhline(rating.mean, linewidth=0.8, linestyle=":", color="gray")
            axes.annotate(
                name,
                (0.01, rating.mean),
                xycoords=("axes fraction", "data"),
                fontsize=7,
                va="bottom",
            )
    for role, points in lines.items():
        points.sort(key=lambda point: point[0])
        steps = [step for step, _ in points]
        axes.plot(
            steps, [r.mean for _, r in points], marker=".", linewidth=1.2, label=role or "policy"
        )
        axes.fill_between(
            steps, [r.low for _, r in points], [r.high for _, r in points], alpha=0.15
        )
    axes.set_title("Rating of the snapshot of each step (95%)", fontsize=10, loc="left")
    axes.set_xlabel("agent-steps", fontsize=8)
    if lines:
        axes.legend(fontsize=8, frameon=False)


def _matrix(axes: Any, role: str, table: Table) -> None:
    """Numbers are wins in percent; in the colour a draw counts as half a win."""
    rows, across = list(table), columns(table)
    score = np.full((len(rows), len(across)), np.nan)
    for y, row in enumerate(rows):
        for x, column in enumerate(across):
            if cell := table[row].get(column):
                score[y, x] = cell["win_rate"] + cell["draw_rate"] / 2
                axes.text(
                    x, y, f"{100 * cell['win_rate']:.0f}", ha="center", va="center", fontsize=7
                )
    axes.imshow(score, cmap="RdBu", vmin=0, vmax=1, alpha=0.7)
    axes.set_xticks(range(len(across)), across, rotation=60, ha="right", fontsize=7)
    axes.set_yticks(range(len(rows)), rows, fontsize=7)
    axes.set_title(f"{role}: wins of the row against the column, %", fontsize=10, loc="left")
