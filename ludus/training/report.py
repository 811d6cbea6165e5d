"""report.html: one self-contained page with curves, reward breakdown and the config, from the run
folder alone."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ludus.config import Config
from ludus.doctor.checks import curves_of, declared
from ludus.doctor.finding import verdict, verdict_in_words
from ludus.doctor.live import Record
from ludus.doctor.log import enough_episodes
from ludus.errors import LudusError, disk_in_one_sentence
from ludus.files import understood, write_atomically
from ludus.league.plots import figure
from ludus.league.ratings import of_run
from ludus.runs.measured import in_words, lower_is_better, measurements, newest
from ludus.runs.run import Run
from ludus.training.watching import read_findings

MOST_CURVES = 16
HEADLINE, EVALUATION = "Headline (held-out seeds)", "Evaluation (held-out seeds, sampled actions)"


def write_report(run: Run) -> None:
    """Draws what metrics.jsonl holds."""
    with understood(run.path):
        page = _page(run)
    with disk_in_one_sentence(run.path / "report.html"):
        write_atomically(run.path / "report.html", page)


def _page(run: Run) -> str:
    lines, records = run.metrics(), read_findings(run)
    sections = [
        ("The doctor's findings", [_findings_table(records)]),
        ("Training", _figures(lines, records, run.settings())),
        *_league(run),
        ("Configuration", [_config_table(run)]),
    ]
    body = "".join(f"<h2>{title}</h2>{''.join(parts)}" for title, parts in sections)
    name = html.escape(run.path.name)
    last = lines[-1] if lines else {}
    state, reason = run.state()
    how = f"{state} ({html.escape(reason)})" if reason else state
    summary = (
        f"{how}: {last.get('progress/agent_steps', 0):,} agent-steps in "
        f"{last.get('progress/seconds', 0):,.0f} s, {len(lines):,} iterations"
    )
    return f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>{name}</title>
<style>body{{font:15px/1.5 system-ui,sans-serif;max-width:1100px;margin:2rem auto;padding:0 1rem;
color:#1b1f24}}img{{max-width:100%;margin:.4rem 0}}table{{border-collapse:collapse}}
td,th{{padding:.1rem .8rem .1rem 0;text-align:left}}td:last-child{{color:#667}}
@media(prefers-color-scheme:dark){{body{{background:#16181c;color:#dde}}
img{{filter:invert(.88) hue-rotate(180deg)}}}}
</style><h1>{name}</h1><p>{summary}</p>{_headline(run, lines)}{body}</html>"""


def _headline(run: Run, lines: Sequence[Mapping[str, Any]]) -> str:
    """The one number first: its newest value, and the best."""
    name = run.settings().checkpoint.best_metric
    now = newest(lines, name)
    if name is None or now is None:
        return f"<p>{html.escape(in_words(name))}: not evaluated yet</p>" if name else ""
    lower = (
        ", lower is better" if lower_is_better(name, run.read_json("game.json")["layout"]) else ""
    )
    interval = "" if now["low"] is None else f" [{now['low']:.3f}, {now['high']:.3f}]"
    best = run.read_json("best.json") if (run.path / "best.json").exists() else None
    also = f"; best {best['value']:.3f} at step {best['step']:,}" if best else ""
    return (
        f"<p><b>{html.escape(in_words(name))}: {now['value']:.3f}{interval}</b> at step "
        f"{now['step']:,}{also}{lower}</p>"
    )


def _figures(
    lines: Sequence[Mapping[str, Any]], records: Sequence[Record], config: Config
) -> list[str]:
    headline, envs = config.checkpoint.best_metric, config.envs
    evaluated = set(measurements({k: None for line in lines for k in line}, lines))
    groups = {
        HEADLINE: lambda k: k == headline,
        EVALUATION: lambda k: k in evaluated,
        "Goal metrics while training": lambda k: k.startswith("goal/"),
        "Game values that change": lambda k: k.startswith("game/"),
        "Return": lambda k: k.startswith("episode/") and k.endswith("/return"),
        "Reward terms (sum per episode, before weights)": lambda k: "/term/" in k,
        "Entropy share": lambda k: k.endswith("/entropy_share"),
        "KL": lambda k: k.endswith("/approx_kl"),
        "Explained variance": lambda k: k.endswith("/explained_variance"),
        "Loss of values": lambda k: k.endswith("/value_loss"),
        "Values, in units of reward": lambda k: k.endswith(("/value_mean", "/q_mean")),
        "Gradient norm": lambda k: k.endswith("/grad_norm"),
        "Agent-steps per second": lambda k: k == "speed/agent_steps_per_s",
        "Share of time": lambda k: k.startswith("speed/share/"),
        "Resident memory (MB)": lambda k: k == "memory/resident_mb",
    }
    out: list[str] = []
    written, drawn = {k for line in lines for k in line}, set[str]()
    later = [line for line in lines if enough_episodes(line.get("progress/episodes", envs), envs)]
    for title, chosen in groups.items():
        names = sorted({k for line in lines for k in line if chosen(k)})
        shown = later if all(k.startswith(("goal/", "episode/")) for k in names) else lines
        if names and not shown:
            finished = lines[-1]["progress/episodes"]
            out.append(
                f"<p>{title}: too few episodes ({finished:,} have finished in {envs:,} envs)</p>"
            )
        elif names:
            drawn |= set(names)
            marked = [r for r in records if _shown_by(r, written) & set(names)]
            out.append(_figure(title, names, shown, marked))
    for record in records:  # what no other figure shows
        names = sorted(_shown_by(record, written))
        if names and not drawn.intersection(names):
            drawn |= set(names)
            out.append(_figure(record.finding.check, names, lines, [record]))
    return out or ["<p>No iteration was finished.</p>"]


def _figure(
    title: str, names: Sequence[str], lines: Sequence[Mapping[str, Any]], records: Sequence[Record]
) -> str:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 2.8))
    axes = figure.add_axes((0.07, 0.17, 0.6, 0.7))
    for name in names[:MOST_CURVES]:
        points = [
            (line["progress/agent_steps"], line[name])
            for line in lines
            if line.get(name) is not None
        ]
        if not points:
            continue
        x, y = zip(*points, strict=True)
        label = (
            name.removeprefix("eval/")
            .removeprefix("episode/")
            .removeprefix("learner/")
            .removeprefix("speed/share/")
        )
        axes.plot(x, y, label=label, linewidth=1.2, marker="." if len(points) < 30 else None)
        low = [
            (line["progress/agent_steps"], line[f"{name}_low"], line[f"{name}_high"])
            for line in lines
            if line.get(f"{name}_low") is not None
        ]
        if low and name.startswith("eval/"):
            steps, lows, highs = zip(*low, strict=True)
            axes.fill_between(steps, lows, highs, alpha=0.15)
    _mark(axes, records)
    axes.set_title(title, fontsize=10, loc="left")
    axes.set_xlabel("agent-steps", fontsize=8)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    if len(names) > 1:
        axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    if len(names) > MOST_CURVES:
        axes.set_title(
            f"and {len(names) - MOST_CURVES} more in metrics.jsonl", fontsize=8, loc="right"
        )
    return _image(figure, title)


COLOUR_OF = {"critical": "#c0392b", "warning": "#e09b1a", "info": "#7a8794"}


def _shown_by(record: Record, written: Collection[str]) -> set[str]:
    """The metrics that show what a check saw, as it declares; else the return."""
    if record.finding.severity == "info":
        return set()
    found = declared().get(record.finding.check)
    shown = curves_of(found, written) if found is not None else []
    returns = {k for k in written if k.startswith("episode/") and k.endswith("/return")}
    return set(shown) or returns


def _mark(axes: Any, records: Sequence[Record]) -> None:
    """Where a finding begins, how long it lasted, and its name."""
    for i, record in enumerate(records):
        finding = record.finding
        first, last = (
            finding.first_step or 0,
            record.gone or finding.last_step or axes.get_xlim()[1],
        )
        colour = COLOUR_OF[finding.severity]
        axes.axvspan(
            first, last, color=colour, alpha=0.08 if record.gone is None else 0.03, linewidth=0
        )
        axes.axvline(
            first, color=colour, linewidth=1, linestyle="-" if record.gone is None else ":"
        )
        place = (first, 0.97 - 0.09 * i)
        axes.annotate(
            finding.check,
            place,
            xycoords=("data", "axes fraction"),
            color=colour,
            fontsize=7,
            va="top",
        )


def _findings_table(records: Sequence[Record]) -> str:
    told = (
        "<p>Verdict: "
        f"{verdict_in_words(verdict(r.finding for r in records if r.gone is None))}.</p>"
    )
    if not records:
        return told
    rows = "".join(
        f'<tr><td style="color:{COLOUR_OF[r.finding.severity]}">{r.finding.severity}</td>'
        f"<td>{html.escape(r.finding.check)}</td>"
        f"<td>{html.escape(r.finding.cause)}<br>"
        f"<small>{html.escape(r.finding.evidence)}</small></td>"
        f"<td>{html.escape(r.finding.fix)}</td><td>{_when(r)}</td></tr>"
        for r in records
    )
    return (
        f"{told}<table><tr><th></th><th>check</th><th>cause and "
        f"evidence</th><th>fix</th><th>steps</th></tr>{rows}</table>"
    )


def _when(record: Record) -> str:
    since = [f"from {record.finding.first_step:,}"] if record.finding.first_step is not None else []
    return ", ".join(
        [*since, *([f"no longer seen at {record.gone:,}"] if record.gone is not None else [])]
    )


def _image(figure: Any, title: str) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg")
    image = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="{html.escape(title)}" src="data:image/svg+xml;base64,{image}">'


def _league(run: Run) -> list[tuple[str, list[str]]]:
    """Ratings from the matches; the payoff matrix where `ludus league RUN --payoff N` has played
    it."""
    ratings = of_run(run)
    tables: dict[str, Any] = {}
    notes: list[str] = []
    if (run.path / "payoff.json").exists():
        try:
            with understood(run.path / "payoff.json"):
                tables = run.read_json("payoff.json")["tables"]
        except LudusError as error:
            notes = [f"<p>{html.escape(str(error))}</p>"]
    if not (ratings or tables or notes):
        return []
    figures = [_image(figure(ratings, tables), "ratings and payoff")] if ratings or tables else []
    return [("League", [*notes, *figures])]


def _config_table(run: Run) -> str:
    data = run.read_json("config.json")
    rows = "".join(
        f"<tr><td>{html.escape(name)}</td><td>{html.escape(str(value))}</td>"
        f"<td>{html.escape(str(data['origins'].get(name, '')))}</td></tr>"
        for name, value in data["values"].items()
    )
    return f"<table>{rows}</table>"
