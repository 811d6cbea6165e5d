"""The live view of a training run in the terminal; plain lines where there is no terminal."""

from __future__ import annotations

import sys
import time
from typing import Any

from ludus.config import Config
from ludus.training.episodes import episodes_line
from ludus.training.game_values import game_line


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def _serious(trainer: Any) -> list[Any]:
    """What the doctor sees now, worst first."""
    return [f for f in trainer.doctor.findings if f.severity != "info"]


class Dashboard:
    """Call it with the trainer and each iteration's line; use it as a context."""

    def __init__(self, config: Config, quiet: bool = False) -> None:
        self.config, self.quiet = config, quiet
        self.live: Any = None
        self._printed = 0.0
        self._last: dict[str, Any] = {}
        self._told: set[tuple[str, str]] = set()

    def __enter__(self) -> Dashboard:
        if not self.quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            self.live = Live(console=Console(stderr=True), refresh_per_second=4, transient=False)
            self.live.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        if self.live is not None:
            self.live.__exit__(*exception)

    def __call__(self, trainer: Any, line: dict[str, Any]) -> None:
        evaluated = {k: v for k, v in line.items() if k.startswith("eval/")}
        self._last = {**{k: v for k, v in self._last.items() if k.startswith(("eval/", "goal/", "episode/"))}, **line}
        if self.quiet:
            return
        if self.live is not None:
            self.live.update(self._panel(trainer))
        elif evaluated or time.monotonic() - self._printed > 5.0 or trainer.share >= 1.0:
            self._printed = time.monotonic()
            track = trainer.doctor.watcher.track
            text = self._text(trainer) + (f"  |  {track.check.replace('_', ' ')}" if track is not None else "")
            print(text, file=sys.stderr, flush=True)
        if self.live is None:
            self._tell(trainer)

    def _tell(self, trainer: Any) -> None:
        """A line for each finding that is new or has become worse."""
        for finding in _serious(trainer):
            if (finding.check, finding.severity) not in self._told:
                self._told.add((finding.check, finding.severity))
                print(f"doctor  {finding.severity}: {finding.cause}; {finding.fix}", file=sys.stderr, flush=True)

    def _left(self, trainer: Any) -> str:
        share = trainer.share
        return _duration(trainer.progress.seconds * (1 - share) / share) if share > 0.01 else "?"

    def _text(self, trainer: Any) -> str:
        line, p = self._last, trainer.progress
        parts = [
            f"{trainer.share:4.0%}  {p.agent_steps:>11,} agent-steps  {line['speed/agent_steps_per_s']:>9,.0f}/s  "
            f"{_duration(p.seconds)} gone, {self._left(trainer)} left"
        ]
        for role in trainer.algorithm.policies:
            mean, goals = episodes_line(line, role, self.config.envs)
            parts.append(f"{role} return {mean}  {goals}" if mean else f"{role} {goals}")
        game = game_line(line)
        return "  |  ".join([*parts, game] if game else parts)

    def _panel(self, trainer: Any) -> Any:
        from rich.console import Group
        from rich.panel import Panel
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        line, p = self._last, trainer.progress
        head = Table.grid(padding=(0, 3))
        head.add_row(
            f"[bold]{p.agent_steps:,}[/] agent-steps", f"[bold]{line['speed/agent_steps_per_s']:,.0f}[/] per second",
            f"{_duration(p.seconds)} gone", f"{self._left(trainer)} left", f"iteration {p.iteration:,}", f"{p.episodes:,} episodes",
        )  # fmt: skip
        roles = Table(box=None, pad_edge=False)
        of_policy = {"entropy": "entropy_share", "KL": "approx_kl", "explained": "explained_variance"}
        shown = {title: key for title, key in of_policy.items() if any(k.startswith("ppo/") for k in line)}
        for column in ("role", "return", "goals", *shown):
            roles.add_column(column, justify="left" if column in ("role", "goals") else "right")
        for role in trainer.algorithm.policies:
            mean, goals = episodes_line(line, role, self.config.envs)
            numbers = [f"{line[f'ppo/{role}/{key}']:.3g}" for key in shown.values()]
            roles.add_row(role, mean, goals, *numbers)
        shares = sorted(((k.rsplit("/", 1)[-1], v) for k, v in line.items() if k.startswith("speed/share/")), key=lambda s: -s[1])
        phases = "time  " + "  ".join(f"{name} {share:.0%}" for name, share in shares if share >= 0.005)
        evaluated = [
            f"{k.removeprefix('eval/')} {v:.2f}" for k, v in line.items()
            if k.startswith("eval/") and not k.endswith(("_low", "_high", "_greedy", "length"))
        ]  # fmt: skip
        rows: list[Any] = [ProgressBar(total=1.0, completed=trainer.share), head, roles, phases]
        if game := game_line(line):
            rows.append(f"game  {game}")
        if evaluated:
            rows.append("evaluated  " + "   ".join(evaluated[:8]))
        if (track := trainer.doctor.watcher.track) is not None:
            rows.append(f"{track.check.replace('_', ' ')}  {track.cause}")
        for finding in _serious(trainer)[:4]:
            colour = "red" if finding.severity == "critical" else "yellow"
            rows.append(Text(f"{finding.severity}: {finding.cause} → {finding.fix}", style=colour))
        return Panel(Group(*rows), title=f"{self.config.game} → {trainer.run.path}", border_style="blue")
