"""ludus league"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import tyro

from ludus.commands import parse
from ludus.errors import LudusError


@dataclass(kw_only=True)
class League:
    """Who is how strong in a run: ratings and win rates from its matches; on request a payoff matrix, and how exploitable it is."""

    run: Annotated[str, tyro.conf.Positional]
    """RUN, RUN@STEP or RUN@best."""
    payoff: int | None = None
    """Play so many snapshots, evenly over the pool, the policy of the checkpoint (now) and the bots against each other."""
    episodes: int = 64
    """Episodes of each pair, and to measure the exploiter."""
    exploit: float | None = None
    """Train a fresh policy against the frozen one for so many seconds and measure how often it wins."""
    json: bool = False
    """Print JSON instead of text."""


def main(arguments: list[str]) -> int:
    options = parse(League, arguments, "league", "ludus league runs/brawl-1 --payoff 6 --episodes 100 --exploit 60")
    result = look(options)
    if options.json:
        print(json.dumps(result))
    else:
        show(result)
    return 0


def look(options: League) -> dict[str, Any]:
    """The JSON of the command. A payoff matrix is kept in the run's folder and shown again next time."""
    from ludus.league.plots import draw
    from ludus.league.ratings import rate, win_rates
    from ludus.training.devices import set_threads
    from ludus.training.run import Run, read_lines, split_reference, write_atomically

    set_threads(1)
    run = Run(split_reference(options.run)[0])
    stored = run.path / "payoff.json"
    lines = read_lines(run.path / "matches.jsonl")
    if not lines and options.payoff is None and options.exploit is None and not stored.exists():
        raise LudusError(
            f'{run.path} has no matches: train with opponents (--league.mix "self 80, pool 20"), or measure with --exploit SECONDS'
        )
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
    if options.exploit is not None:
        from ludus.league.exploit import exploit

        result["exploit"] = exploit(options.run, options.exploit, options.episodes)
    if ratings or result["payoff"]:
        draw(run.path / "league.png", ratings, result["payoff"]["tables"] if result["payoff"] else {})
        result["plot"] = str(run.path / "league.png")
    return result


def show(result: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    for role, ratings in by_role(result["ratings"]).items():
        title = f"Ratings{' of ' * bool(role) + role}, from matches.jsonl"
        table = Table("player", "rating", "95%", "games", title=title, title_justify="left")
        for name, r in ratings.items():
            table.add_row(name, f"{r['mean']:.1f}", f"{r['low']:.1f} to {r['high']:.1f}", f"{r['games']:,}")
        console.print(table)
    for side, opponents in result["win_rates"].items():
        title = f"{side or 'The learner'} against its opponents, whole training"
        table = Table("opponent", "won", "95%", "drawn", "episodes", title=title, title_justify="left")
        for name, w in opponents.items():
            bounds = f"{w['low']:.3f} to {w['high']:.3f}"
            table.add_row(name, f"{w['win_rate']:.3f}", bounds, f"{w['draw_rate']:.3f}", f"{w['episodes']:,.0f}")
        console.print(table)
    if result["payoff"]:
        show_payoff(result["payoff"], console)
    if "exploit" in result:
        found = result["exploit"]
        print(
            f"A fresh policy after {found['seconds']:g} s ({found['agent_steps']:,} agent-steps) against {found['frozen']}, "
            f"{found['episodes']} episodes:"
        )
        for name, value in found["metrics"].items():
            print(f"  {name:<28} {value['mean']:>9.3f}   [{value['low']:.3f}, {value['high']:.3f}]")
    if "plot" in result:
        print(f"plot: {result['plot']}")


def by_role(ratings: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Role → its players, the best first; "" in games of teams."""
    out: dict[str, dict[str, Any]] = {}
    for name, rating in ratings.items():
        role, _, player = name.rpartition(" ")
        out.setdefault(role, {})[player] = rating
    return dict(sorted(out.items()))


def show_payoff(payoff: dict[str, Any], console: Any) -> None:
    from rich.table import Column, Table

    from ludus.league.payoff import columns

    for role, rows in payoff["tables"].items():
        numbers = {name: str(number) for number, name in enumerate(rows, 1)}
        across = columns(rows)
        drawn = any(cell["draw_rate"] for row in rows.values() for cell in row.values())
        title = f"{role}: row against column, won{'+drawn' * drawn} in %, {payoff['episodes']} episodes; now: {payoff['step']:,}"
        headings = [numbers.get(column, column.removeprefix("bot:")) for column in across]
        table = Table("", Column("", no_wrap=True), *headings, title=title, title_justify="left")
        for name, row in rows.items():
            cells = [
                f"{100 * c['win_rate']:.0f}+{100 * c['draw_rate']:.0f}" if (c := row.get(column)) else "" for column in across
            ]
            table.add_row(numbers[name], name, *cells)
        console.print(table)
        table = Table("opponent", "won", "95%", title=f"Forgetting: {role} now against its old selves", title_justify="left")
        for name, c in payoff["forgetting"][role].items():
            table.add_row(name, f"{c['win_rate']:.3f}", f"{c['low']:.3f} to {c['high']:.3f}")
        console.print(table)


def percent(cell: dict[str, float] | None, drawn: bool) -> str:
    if cell is None:
        return ""
    return f"{100 * cell['win_rate']:.0f}" + (f"+{100 * cell['draw_rate']:.0f}" if drawn else "")
