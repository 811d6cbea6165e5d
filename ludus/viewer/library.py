"""The run folders the viewer shows: found under one root or named one by one. Pages name runs and
files; they are looked up among what was found, so no name becomes a path."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ludus.batches import is_foreign
from ludus.doctor.finding import as_json
from ludus.doctor.log import read_log
from ludus.doctor.watch import examine
from ludus.errors import LudusError
from ludus.files import GrowingLog, inside_of, read_lines, regular, understood
from ludus.league.ratings import rate, win_rates
from ludus.runs.measured import newest
from ludus.runs.run import Run

POINTS = 400  # of a curve: more than a screen shows


class Library:
    def __init__(self, root: Path | None, runs: Sequence[Path] = ()) -> None:
        self.root, self.named = root.resolve() if root else None, [path.resolve() for path in runs]
        self._lock = threading.Lock()
        self._metrics: dict[str, GrowingLog] = {}
        self._findings: dict[str, tuple[int, dict[str, Any]]] = {}

    def runs(self) -> dict[str, Path]:
        """Name → folder, the newest first. A link that leads out of the root is not followed."""
        found = list(self.named)
        if self.root and self.root.is_dir():
            inside = [
                p.parent
                for pattern in ("*/config.json", "*/*/config.json")
                for p in self.root.glob(pattern)
            ]
            found += [p for p in inside if inside_of(p, self.root)]
        found.sort(key=lambda p: -_changed(p))
        out: dict[str, Path] = {}
        for path in found:
            known = (
                self.root
                and path.resolve().is_relative_to(self.root)
                and path.resolve() != self.root
            )
            name = str(path.resolve().relative_to(self.root)) if known and self.root else path.name
            out.setdefault(name, path)
        return out

    def run(self, name: str) -> Run:
        path = self.runs().get(name)
        if path is None:
            raise LudusError(f"there is no run '{name[:80]}' here")
        return Run(path)

    def replays(self, run: Run) -> dict[str, Path]:
        folder = (run.path / "replays").resolve()
        found = sorted(folder.glob("*.safetensors"), reverse=True)
        return {p.name: p for p in found if inside_of(p, run.path.resolve())}

    def replay(self, name: str, file: str) -> Path:
        path = self.replays(self.run(name)).get(file)
        if path is None:
            raise LudusError(
                f"there is no replay '{file[:80]}' in {name[:80]}: it may have made way for newer "
                "ones"
            )
        return path

    def pictures(self, run: Run) -> dict[str, Path]:
        """What `ludus eval RUN --analyse` drew, the newest first."""
        found = sorted((run.path / "analysis").resolve().glob("*.png"), reverse=True)
        return {p.name: p for p in found if inside_of(p, run.path.resolve())}

    def picture(self, name: str, file: str) -> bytes:
        path = self.pictures(self.run(name)).get(file)
        if path is None:
            raise LudusError(f"there is no picture '{file[:80]}' in {name[:80]}")
        return regular(path).read_bytes()

    # -- what a page shows -------------------------------------------------------------------------

    def listing(self) -> list[dict[str, Any]]:
        return [self.summary(name, path) for name, path in self.runs().items()]

    def summary(self, name: str, path: Path) -> dict[str, Any]:
        """One line of the list. A folder that cannot be read says why instead of vanishing."""
        try:
            run = Run(path)
            config = _mapping(run.read_json("config.json").get("values"))
            lines = self.metrics(run)
            last = lines[-1] if lines else {}
            curve = headline(lines, config)
            state, reason = run.state()
            return {
                "name": name,
                "game": str(config.get("game", "?")),
                "algorithm": str(config.get("algorithm", "")),
                "foreign": is_foreign(str(config.get("game", ""))),
                "state": state,
                "reason": reason,
                "verdict": self.findings(run)["verdict"],
                "agent_steps": last.get("progress/agent_steps", 0),
                "seconds": last.get("progress/seconds", 0),
                "replays": len(self.replays(run)),
                "curve": curve,
            }
        except (
            LudusError,
            OSError,
            ValueError,
            LookupError,
            AttributeError,
            TypeError,
            ArithmeticError,
        ) as error:
            return {"name": name, "error": str(error)}

    def whole(self, name: str) -> dict[str, Any]:
        """Everything the run page shows."""
        with understood(name):
            return self._whole(name)

    def _whole(self, name: str) -> dict[str, Any]:
        run = self.run(name)
        config = run.read_json("config.json")
        lines = self.metrics(run)
        values = _mapping(config.get("values"))
        game = run.read_json("game.json") if (run.path / "game.json").exists() else {}
        return {
            **self.summary(name, run.path),
            "headline": newest(lines, _headline_name(values)),
            "metrics": columns(lines),
            **self.findings(run),
            "config": {
                n: [v, _mapping(config.get("origins")).get(n, "default")] for n, v in values.items()
            },
            "versions": config.get("versions"),
            "effective": {
                k: game.get(k)
                for k in ("game", "preset", "sizes", "params", "rewards", "fingerprint")
            },
            "replay_list": [replay_name(file) for file in self.replays(run)],
            "league": league(run, game),
            "pictures": list(self.pictures(run)),
        }

    def metrics(self, run: Run) -> list[dict[str, Any]]:
        path = run.path / "metrics.jsonl"
        with self._lock:
            log = self._metrics.setdefault(str(path), GrowingLog(path))
            lines = log.read()
        return [line for line in lines if _number(line.get("progress/agent_steps"))]

    def findings(self, run: Run) -> dict[str, Any]:
        """The doctor's, of the log as it is now."""
        path = run.path / "metrics.jsonl"
        size = path.stat().st_size if path.exists() else 0
        with self._lock:
            known = self._findings.get(str(path))
        if known is None or known[0] != size:
            try:
                found = as_json(examine(read_log(str(run.path))))
            except (
                LudusError,
                OSError,
                ValueError,
                LookupError,
                TypeError,
                AttributeError,
                ArithmeticError,
            ) as error:
                found = {
                    "verdict": "unknown",
                    "findings": [],
                    "doctor": f"the doctor could not read this run: {error}",
                }
            known = (size, json.loads(json.dumps(found, default=str)))
            with self._lock:
                self._findings[str(path)] = known
        return known[1]


def columns(lines: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    """Name → values in the order of the lines, at most POINTS of them; evaluations are never
    thinned out."""
    kept = thinned(lines)
    names = sorted({n for line in kept for n, v in line.items() if _number(v)})
    return {n: [line.get(n) if _number(line.get(n)) else None for line in kept] for n in names}


def thinned(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    every = max(1, math.ceil(len(lines) / POINTS))
    last = len(lines) - 1
    return [
        line
        for i, line in enumerate(lines)
        if i % every == 0 or i == last or any(n.startswith("eval/") for n in line)
    ]


def headline(lines: Sequence[dict[str, Any]], config: Mapping[str, Any]) -> dict[str, Any]:
    """The one curve of the list: the run's headline, or a return while that was not evaluated."""
    name = _headline_name(config)
    if name is None or not any(_number(line.get(name)) for line in lines):
        names = dict.fromkeys(n for line in lines[-50:] for n in line if n.endswith("/return"))
        name = next(iter(names), "")
    values = [line[name] for line in lines if _number(line.get(name))]
    every = max(1, math.ceil(len(values) / 80))
    return {
        "metric": name,
        "values": values[::every] + (values[-1:] if (len(values) - 1) % every else []),
    }


def _headline_name(config: Mapping[str, Any]) -> str | None:
    name = config.get("checkpoint.best_metric")
    return name if isinstance(name, str) and name.count("/") >= 2 else None


def replay_name(file: str) -> dict[str, str]:
    """What a file's name tells: STEP-AGAINST-ROLE-LABEL."""
    parts = file.removesuffix(".safetensors").split("-")
    if len(parts) == 4 and parts[0].isdecimal():
        return {
            "file": file,
            "step": str(int(parts[0])),
            "against": parts[1],
            "role": parts[2],
            "label": parts[3],
        }
    return {"file": file, "step": "", "against": "", "role": "", "label": file}


def league(run: Run, game: dict[str, Any]) -> dict[str, Any]:
    lines = read_lines(run.path / "matches.jsonl")
    payoff = run.path / "payoff.json"
    if not lines and not payoff.exists():
        return {}
    try:
        roles = list(game["layout"]["roles"])
        ratings = {name: asdict(rating) for name, rating in rate(lines[-5000:], roles).items()}
        rates = win_rates(lines, roles)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return {"error": f"matches.jsonl cannot be read: {error}"}
    return {
        "ratings": ratings,
        "win_rates": rates,
        "payoff": run.read_json("payoff.json") if payoff.exists() else None,
    }


def _changed(path: Path) -> float:
    log = path / "metrics.jsonl"
    try:
        return (log if log.exists() else path).stat().st_mtime
    except OSError:
        return 0.0


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
