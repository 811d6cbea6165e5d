"""`ludus eval RUN --analyse`: the analysis of a run's strategy encoder, written into its folder as
numbers and a picture."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ludus.batches import make_batch, of_game, try_bots
from ludus.examine.strategy import Seen, analyse, history_of, opponents_of
from ludus.files import write_atomically
from ludus.machine import set_threads
from ludus.networks.policy import Policy
from ludus.runs.load import load_policies
from ludus.runs.run import Run, split_reference
from ludus.who import own_bots

FOLDER = "analysis"


def analyse_run(
    reference: str, against: Sequence[str], matches: int, seed: int | None = None
) -> dict[str, Any]:
    """The JSON of `ludus eval RUN --analyse`. On the device the run was trained on, where there is
    one."""
    import torch

    set_threads(1)
    folder, _ = split_reference(reference)
    run = Run(folder)
    policies, layout = load_policies(reference)
    policy = next(iter(policies.values()))
    history_of(policy)
    assert isinstance(policy, Policy)
    config = run.config()
    config = replace(config, device=config.device if torch.cuda.is_available() else "cpu")
    # neither that which chose the best checkpoint nor that of eval
    chosen = config.eval.seed + 2 if seed is None else seed
    bots = own_bots(against) or None
    try_bots(config, bots or ())
    opponents = opponents_of(of_game(make_batch(config, 1, chosen, bots=bots)), against)
    found, seen = analyse(
        lambda n: make_batch(config, n, chosen, held_out=True, bots=bots),
        policy.to(config.device),
        opponents,
        matches,
        chosen,
    )
    path = run.path / FOLDER
    path.mkdir(exist_ok=True)
    name = f"strategy-{layout['step']}"
    files = [f"{FOLDER}/{name}.json", f"{FOLDER}/{name}.png"]
    report = {
        "run": str(folder),
        "step": layout["step"],
        "metrics": metrics(found),
        **found,
        "files": files,
    }
    partial = path / f".{name}.partial.png"
    figure(report, seen).savefig(partial, dpi=110)
    partial.rename(path / f"{name}.png")
    write_atomically(path / f"{name}.json", json.dumps(report, indent=1))
    return report


def metrics(found: dict[str, Any]) -> dict[str, dict[str, float]]:
    """The numbers that matter, as `ludus eval` has them: name → mean, low, high."""
    wins, probe, switcher = found["shuffled"]["all"], found["probe"], found["switcher"]
    out = {
        "named_from_one_window": probe["one_window"],
        "named_from_several_windows": probe["several_windows"],
        "win_rate": wins["true"],
        "win_rate_shuffled": wins["shuffled"],
        "gain": wins["gain"],
        "switch_ratio": switcher["ratio"] if switcher is not None else None,
    }
    return {
        name: {key: value[key] for key in ("mean", "low", "high")}
        for name, value in out.items()
        if value is not None
    }


def lines(report: dict[str, Any]) -> list[str]:
    """The report in words."""

    def share(value: dict[str, float]) -> str:
        return f"{100 * value['mean']:.1f}%   [{100 * value['low']:.1f}, {100 * value['high']:.1f}]"

    probe, wins, switcher = report["probe"], report["shuffled"], report["switcher"]
    several = probe["several_windows"]
    out = [
        f"{report['run']}@{report['step']}: strategy vectors against {len(report['opponents'])} "
        f"bots, {report['matches']} matches each",
        f"  opponent named from one window       {share(probe['one_window'])}   (chance "
        f"{100 * probe['chance']:.1f}%)",
        "  from three or more of a match        "
        f"{share(several) if several else 'no match lasted long enough'}",
        f"  won with true vectors                {share(wins['all']['true'])}",
        f"  won with another match's vectors     {share(wins['all']['shuffled'])}",
        f"  what the vector gains                {share(wins['all']['gain'])}",
    ]
    if switcher is not None:
        ratio = switcher["ratio"]
        out.append(
            f"  moves across a change of style       {ratio['mean']:.2f} times as far as within "
            f"one   [{ratio['low']:.2f}, {ratio['high']:.2f}]"
        )
    focus = int(np.argmax(report["attention"]["all"]))
    steps, most = report["attention"]["steps_back"][focus], report["attention"]["all"][focus]
    out.append(
        f"  attends most to                      {steps} steps back ({100 * most:.1f}% of the "
        "vector)"
    )
    return [
        *out,
        f"written: {', '.join(str(Path(report['run']) / name) for name in report['files'])}",
    ]


# -- the picture -----------------------------------------------------------------------------------


def figure(report: dict[str, Any], seen: Seen) -> Any:
    """Vectors by opponent in their two main directions; the probe's confusion; attention over the
    history."""
    from matplotlib.figure import Figure

    whole = Figure(figsize=(16, 5), layout="constrained")
    left, middle, right = whole.subplots(1, 3)
    _embedding(left, report["opponents"], seen)
    _confusion(middle, report["probe"])
    _attention(right, report["attention"])
    return whole


def principal(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[W, 2] along the two directions of greatest variance, and the shares of variance they
    hold."""
    centred = vectors - vectors.mean(0)
    _, sizes, directions = np.linalg.svd(centred, full_matrices=False)
    return centred @ directions[:2].T, (sizes**2 / max(float((sizes**2).sum()), 1e-12))[:2]


def _embedding(axes: Any, opponents: Sequence[str], seen: Seen) -> None:
    from matplotlib import colormaps

    points, shares = principal(seen.vector)
    colours = colormaps["tab20"]
    for i, name in enumerate(opponents):
        mine = points[seen.opponent[seen.row] == i]
        axes.scatter(
            mine[:, 0], mine[:, 1], s=7, alpha=0.6, color=colours(i % 20), label=name, linewidths=0
        )
    axes.set_title("Strategy vectors by opponent", fontsize=10, loc="left")
    axes.set_xlabel(f"first direction ({100 * shares[0]:.0f}% of the variance)", fontsize=8)
    axes.set_ylabel(
        f"second direction ({100 * shares[1]:.0f}%)" if len(shares) > 1 else "", fontsize=8
    )
    axes.legend(fontsize=7, markerscale=2, frameon=False)


def _confusion(axes: Any, probe: dict[str, Any]) -> None:
    table, names = np.array(probe["confusion"]), probe["types"]
    axes.imshow(table, cmap="Blues", vmin=0, vmax=1)
    for y, x in np.argwhere(table >= 0.05):
        axes.text(
            x,
            y,
            f"{100 * table[y, x]:.0f}",
            ha="center",
            va="center",
            fontsize=7,
            color="white" if table[y, x] > 0.5 else "black",
        )
    axes.set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=7)
    axes.set_yticks(range(len(names)), names, fontsize=7)
    axes.set_title(
        "Windows against the row that a linear probe names the column, %", fontsize=10, loc="left"
    )


def _attention(axes: Any, attention: dict[str, Any]) -> None:
    for name, values in attention["against"].items():
        axes.plot(attention["steps_back"], values, linewidth=0.8, alpha=0.6, label=name)
    axes.plot(attention["steps_back"], attention["all"], color="black", linewidth=2, label="all")
    axes.invert_xaxis()
    axes.set_ylim(0, None)
    axes.set_title("Share of each step of the history in the vector", fontsize=10, loc="left")
    axes.set_xlabel("steps back", fontsize=8)
    axes.legend(fontsize=7, frameon=False)
