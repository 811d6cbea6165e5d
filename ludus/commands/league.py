"""ludus league"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import tyro

from ludus.commands.parsing import ReadsRuns, parse
from ludus.errors import LudusError
from ludus.files import read_lines, understood, write_atomically
from ludus.league.ratings import rate, win_rates
from ludus.machine import set_threads
from ludus.runs.run import Run, split_reference
from ludus.runs.trust import refuse_links
from ludus.who import named

WIDE = 300  # columns where there is no terminal: nothing is cut off in a file or a pipe


@dataclass(kw_only=True)
class League(ReadsRuns):
    """Who is how strong in a run: ratings and win rates from its matches; on request a payoff
    matrix, and how exploitable it is."""

    run: Annotated[str, tyro.conf.Positional]
    """RUN, RUN@STEP or RUN@best."""
    payoff: int | None = None
    """Play so many snapshots, evenly over the pool, the policy of the checkpoint (now) and the bots
    against each other."""
    episodes: int = 64
    """Episodes of each pair, and to measure the exploiter."""
    exploit: float | None = None
    """Train a fresh policy against the frozen one for so many seconds and measure how often it
    wins."""
    json: bool = False
    """Print JSON instead of text."""


def main(arguments: list[str]) -> int:
    options = parse(
        League,
        arguments,
        "league",
        "ludus league runs/brawl-1 --payoff 6 --episodes 100 --exploit 60",
    )
    options.believe(options.run)
    result = look(options)
    with understood(result["run"]):
        print(json.dumps(result)) if options.json else show(result)
    return 0


def look(options: League) -> dict[str, Any]:
    """The JSON of the command. A payoff matrix is kept in the run's folder and shown again next
    time."""
    from ludus.league.plots import figure
    from ludus.training.report import write_report

    set_threads(1)
    run = Run(split_reference(options.run)[0])
    refuse_links(run.path)  # it writes into the run's folder
    stored = run.path / "payoff.json"
    lines = read_lines(run.path / "matches.jsonl")
    if not lines and options.payoff is None and options.exploit is None and not stored.exists():
        raise LudusError(
            f'{run.path} has no matches: train with opponents (--league.mix "self 80, pool 20"), '
            "or measure with --exploit SECONDS"
        )
    with understood(run.path):
        roles = list(run.read_json("game.json")["layout"]["roles"])
        ratings = rate(lines, roles)
        result: dict[str, Any] = {
            "run": str(run.path),
            "ratings": {name: asdict(rating) for name, rating in ratings.items()},
            "win_rates": win_rates(lines, roles),
            "payoff": run.read_json("payoff.json") if stored.exists() else None,
        }
    if options.payoff is not None:
        from ludus.league.payoff import payoff

        result["payoff"] = payoff(options.run, options.payoff, options.episodes)
        write_atomically(stored, json.dumps(result["payoff"], indent=1))
        write_report(run)
    if options.exploit is not None:
        from ludus.examine.exploit import exploit

        result["exploit"] = exploit(options.run, options.exploit, options.episodes)
    if ratings or result["payoff"]:
        with understood(run.path):
            tables = result["payoff"]["tables"] if result["payoff"] else {}
            figure(ratings, tables).savefig(run.path / "league.png", dpi=120)
        result["plot"] = str(run.path / "league.png")
    return result


def show(result: dict[str, Any]) -> None:
    for role, ratings in by_role(result["ratings"]).items():
        rows = [
            [n, f"{r['mean']:.1f}", f"{r['low']:.1f} to {r['high']:.1f}", f"{r['games']:,}"]
            for n, r in ratings.items()
        ]
        print_table(
            f"Ratings{' of ' * bool(role) + role}, from matches.jsonl",
            ["player", "rating", "95%", "games"],
            rows,
        )
    for side, opponents in result["win_rates"].items():
        rows = [
            [n, *won(w), f"{w['draw_rate']:.3f}", f"{w['episodes']:,.0f}"]
            for n, w in opponents.items()
        ]
        title = f"{side or 'The learner'} against its opponents, whole training"
        print_table(title, ["opponent", "won", "95%", "drawn", "episodes"], rows)
    if result["payoff"]:
        show_payoff(result["payoff"])
    if "exploit" in result:
        found = result["exploit"]
        steps, frozen, episodes = found["agent_steps"], found["frozen"], found["episodes"]
        print(
            f"A fresh policy after {found['seconds']:g} s ({steps:,} agent-steps) against "
            f"{frozen}, {episodes} episodes:"
        )
        for name, value in found["metrics"].items():
            print(f"  {name:<28} {value['mean']:>9.3f}   [{value['low']:.3f}, {value['high']:.3f}]")
    if "plot" in result:
        print(f"plot: {result['plot']}")


def by_role(ratings: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Role → its players, the best first; "" in games of teams."""
    out: dict[str, dict[str, Any]] = {}
    for name, rating in ratings.items():
        out.setdefault(rating["role"], {})[name.removeprefix(rating["role"] + " ")] = rating
    return dict(sorted(out.items()))


def show_payoff(payoff: dict[str, Any]) -> None:
    from ludus.league.payoff import columns

    for role, table in payoff["tables"].items():
        numbers = {name: str(number) for number, name in enumerate(table, 1)}
        across = columns(table)
        drawn = any(cell["draw_rate"] for row in table.values() for cell in row.values())
        title = (
            f"{role}: row against column, won{'+drawn' * drawn} in %, {payoff['episodes']} "
            f"episodes; now: {payoff['step']:,}"
        )
        headings = [
            "",
            "",
            *(numbers.get(column, named(column).name or column) for column in across),
        ]
        print_table(
            title,
            headings,
            [
                [numbers[n], n, *(percent(row.get(c), drawn) for c in across)]
                for n, row in table.items()
            ],
        )
        old = [[n, *won(c), f"{c['draw_rate']:.3f}"] for n, c in payoff["forgetting"][role].items()]
        print_table(
            f"Forgetting: {role} now against its old selves",
            ["opponent", "won", "95%", "drawn"],
            old,
        )


def won(cell: dict[str, float]) -> list[str]:
    return [f"{cell['win_rate']:.3f}", f"{cell['low']:.3f} to {cell['high']:.3f}"]


def percent(cell: dict[str, float] | None, drawn: bool) -> str:
    if cell is None:
        return ""
    return f"{100 * cell['win_rate']:.0f}" + (f"+{100 * cell['draw_rate']:.0f}" if drawn else "")


def print_table(title: str, headings: list[str], rows: list[list[str]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Column, Table

    table = Table(
        *(Column(heading, no_wrap=True) for heading in headings),
        title=title,
        title_justify="left",
        box=box.SIMPLE_HEAD,
    )
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else WIDE).print(table)
