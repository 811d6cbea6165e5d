"""ludus games"""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass
from typing import Annotated, Any

import tyro

from ludus.commands.parsing import parse
from ludus.errors import RuleError
from ludus.games import REGISTRY, load_game
from ludus.sim.conformance import CHECKS, check_cuda
from ludus.sim.game import Game
from ludus.sim.layout import Layout


@dataclass(kw_only=True)
class Games:
    """Lists the games, or describes one: roles, sizes, parameters, spaces, rewards, bots,
    presets."""

    game: Annotated[str | None, tyro.conf.Positional] = None
    """A game, game:preset, or your own as package.module:GAME."""
    check: bool = False
    """Run the conformance checks on the game; status 1 if one fails."""
    json: bool = False
    """Print JSON instead of text."""


def main(arguments: list[str]) -> int:
    options = parse(Games, arguments, "games", "ludus games pursuit")
    if options.game is None:
        table = {name: load_game(name)[0] for name in REGISTRY}
        if options.json:
            print(
                json.dumps(
                    {
                        "games": {
                            n: {"summary": g.summary, "presets": list(g.presets)}
                            for n, g in table.items()
                        }
                    }
                )
            )
        else:
            width = max(map(len, table))
            for name, game in table.items():
                presets = f"  [presets: {', '.join(game.presets)}]" if game.presets else ""
                print(f"{name:<{width}}  {game.summary}{presets}")
        return 0
    game, preset = load_game(options.game)
    if options.check:
        return check(game)
    description = describe(game, preset)
    print(json.dumps(description) if options.json else text(description))
    return 0


def check(game: Game) -> int:
    """Runs every conformance check and says which fails and why. That CUDA agrees is checked where
    there is a GPU."""
    failed = 0
    for one in CHECKS:
        name, meaning = one.__name__.removeprefix("check_"), (one.__doc__ or "").strip()
        if one is check_cuda and not _has_cuda():
            print(f"skipped {name}: {meaning} Needs a CUDA GPU and the package numba-cuda.")
            continue
        try:
            one(game, "cuda" if one is check_cuda else "cpu")
        except (AssertionError, IndexError, RuleError) as error:
            failed += 1
            print(f"FAILED  {name}: {error}\n        {meaning}")
        else:
            print(f"ok      {name}: {meaning}")
    return 1 if failed else 0


def _has_cuda() -> bool:
    import torch

    return torch.cuda.is_available() and importlib.util.find_spec("numba_cuda") is not None


def describe(game: Game, preset: str | None) -> dict[str, Any]:
    settings = game.resolve(preset=preset)
    layout = Layout(game, settings)
    return {
        "game": game.name,
        "summary": game.summary,
        "sizes": settings.sizes,
        "params": {
            n: {
                "value": v,
                "low": game.params[n].low,
                "high": game.params[n].high,
                "help": game.params[n].help,
            }
            for n, v in settings.params.items()
        },
        **layout.describe(),
        "rewards": {
            n: {
                "kind": t.kind,
                "weight": settings.weights[n],
                "least": t.least,
                "most": t.most,
                "roles": t.roles,
                "help": t.help,
            }
            for n, t in game.rewards.items()
        },
        "headline": {"goal": game.headline.goal, "against": game.headline.against}
        if game.headline
        else None,
        "bots": {
            r.name: ["still", "random", *(b.name for b in game.bots.get(r.name, ()))]
            for r in game.roles
        },
        "presets": {n: dict(p) for n, p in game.presets.items()},
        "bytes_per_env": layout.bytes_per_env(),
    }


def text(d: dict[str, Any]) -> str:
    lines = [f"{d['game']}: {d['summary']}", ""]
    lines.append(
        "roles         "
        + ", ".join(f"{v['count'] * v['teams']} {n}" for n, v in d["roles"].items())
    )
    lines.append(
        "sizes         " + (", ".join(f"{n}={v}" for n, v in d["sizes"].items()) or "none")
    )
    lines.append(
        f"observation   {len(d['observation'])} entries: " + ", ".join(d["observation"][:8]) + " …"
    )
    action = d["action"]
    parts = [f"{n} in [-1, 1]" for n in action["continuous"]] + [
        f"{n} on/off" for n in action["binary"]
    ]
    parts += [f"{n} one of {len(o)}" for n, o in action["choices"].items()]
    lines += ["action        " + ", ".join(parts), "", "parameters"]
    lines += [
        f"  {n:<20} {p['value']:<10} {p['low']} to {p['high']}  {p['help']}"
        for n, p in d["params"].items()
    ]
    lines += ["", "reward terms"]
    lines += [
        f"  {n:<20} {t['weight']:<10} {t['kind']}, {t['roles'] or 'everyone'}: {t['help']}"
        for n, t in d["rewards"].items()
    ]
    lines += [
        "",
        "goal metrics  "
        + ", ".join(f"{n} ({g['roles'] or 'everyone'})" for n, g in d["goal_metrics"].items()),
    ]
    headline = d["headline"]
    lines += [f"headline      {headline['goal']} against {headline['against']}"] if headline else []
    lines += [f"bots          {role}: " + ", ".join(bots) for role, bots in d["bots"].items()]
    lines += [
        f"preset        {n}: " + ", ".join(f"{k}={v}" for k, v in p.items())
        for n, p in d["presets"].items()
    ]
    return "\n".join([*lines, f"memory        {d['bytes_per_env']} bytes per env"])
