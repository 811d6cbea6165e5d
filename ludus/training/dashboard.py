"""The live view of a training run in the terminal; plain lines where there is no terminal."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ludus.config import Config
from ludus.runs.measured import in_words
from ludus.training.episodes import episodes_line
from ludus.training.game_values import game_line

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from ludus.training.loop import Trainer

STOPPING = "stopping after this iteration: saving; press Ctrl-C again to stop at once"
PLAIN_EVERY = 5.0  # seconds between plain lines
WIDE = 120  # columns from which findings are shown with their fix, and roles with all numbers
MOST_FINDINGS = 3
GAP = 2  # columns between those of the table of roles
POLICY_NUMBERS = {
    "entropy": "learner/{}/entropy_share",
    "KL": "learner/{}/approx_kl",
    "explained": "learner/{}/explained_variance",
    "Q": "learner/{}/q_mean",
    "TD error": "learner/{}/td_error",
    "epsilon": "learner/{}/epsilon",
}


def duration(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def number(value: Any, form: str = ".2f") -> str:
    """A metric that an iteration did not write, or that is no number, is a dash."""
    return "–" if value is None or value != value else format(value, form)


@dataclass(frozen=True)
class View:
    """What is known after an iteration: all that is drawn until the next one."""

    line: Mapping[str, Any]
    """The iteration's metrics, and the last ones of what is not measured in every iteration."""
    share: float
    agent_steps: int
    iteration: int
    seconds: float
    """Those that `share` was counted with."""
    uncounted: float
    """Seconds of the evaluation since then."""
    roles: tuple[str, ...]
    envs: int
    best: Mapping[str, Any]
    findings: tuple[Any, ...]
    """What the doctor sees now, worst first."""
    track: Any
    """How the run compares with its recipe's usual course, or None."""
    run: str
    at: float
    """When it was taken, on the monotonic clock."""

    @property
    def elapsed(self) -> float:
        return (
            self.seconds
            + self.uncounted
            + (time.monotonic() - self.at if self.share < 1.0 else 0.0)
        )

    @property
    def remaining(self) -> str:
        left = self.seconds * (1 - self.share) / self.share if self.share > 0.01 else None
        return "?" if left is None else duration(max(0.0, left - (self.elapsed - self.seconds)))

    @property
    def stage(self) -> str:
        """Where the run stands in its curriculum; "" where there is none."""
        number, count = (self.line.get(f"curriculum/{name}") for name in ("stage", "stages"))
        if number is None or count is None:
            return ""
        bound, needed = (self.line.get(f"curriculum/{name}") for name in ("bound", "needed"))
        aim = (
            ""
            if bound is None or needed is None
            else f" (its bound is {bound:.2f}, {needed:.2f} is needed)"
        )
        return f"stage {number + 1:.0f} of {count:.0f}{aim}"

    def measured(self, name: str | None) -> str | None:
        """An evaluated metric with its interval; None where it was not evaluated yet."""
        value = self.line.get(name) if name else None
        if name is None or value is None:
            return None
        low, high = self.line.get(f"{name}_low"), self.line.get(f"{name}_high")
        interval = (
            f" [{number(low)}, {number(high)}]" if low is not None and high is not None else ""
        )
        return f"{in_words(name)} {number(value)}{interval}"


class Dashboard:
    """A display; use it as a context, so that the terminal is left as it was."""

    def __init__(self, config: Config, quiet: bool = False) -> None:
        self.config, self.quiet = config, quiet
        self.live: Any = None
        self.view: View | None = None
        self._status = ""
        self._stopping = False
        self._kept: dict[str, Any] = {}
        self._printed = 0.0
        self._told: set[tuple[str, str]] = set()
        self._terminal = contextlib.ExitStack()

    def __enter__(self) -> Dashboard:
        if not self.quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            console = Console(stderr=True)
            self._terminal.enter_context(no_control_echo())
            live = Live(
                get_renderable=lambda: self.draw(console), console=console, refresh_per_second=4
            )
            self.live = self._terminal.enter_context(live)
        return self

    def __exit__(self, *exception: Any) -> None:
        self._status = ""
        with contextlib.suppress(OSError):  # the terminal may have gone away
            self._terminal.close()
        self.live = None

    # -- what it is told ---------------------------------------------------------------------------

    def iteration(self, trainer: Trainer, line: Mapping[str, Any]) -> None:
        self._kept = {
            **{k: v for k, v in self._kept.items() if k.startswith(("eval/", "goal/", "episode/"))},
            **line,
        }
        p, track = trainer.progress, trainer.doctor.watcher.track
        findings = tuple(f for f in trainer.doctor.findings if f.severity != "info")
        self.view = View(
            line=self._kept,
            share=trainer.share,
            agent_steps=p.agent_steps,
            iteration=p.iteration,
            seconds=p.seconds,
            uncounted=trainer.elapsed - p.seconds,
            roles=tuple(trainer.algorithm.policies),
            envs=self.config.envs,
            best=dict(p.best),
            findings=findings,
            track=track,
            run=str(trainer.run.path),
            at=time.monotonic(),
        )
        self._status = ""
        if self.quiet or self.live is not None:
            return
        evaluated = any(k.startswith("eval/") for k in line)
        if evaluated or self.view.share >= 1.0 or self._due():
            self._print(plain(self.view))
        for finding in findings:  # once, and again when it has become worse
            if (finding.check, finding.severity) not in self._told:
                self._told.add((finding.check, finding.severity))
                self._print(f"doctor  {finding.severity}: {finding.cause}; {finding.fix}")

    def status(self, text: str) -> None:
        self._status = text
        if not self.quiet and self.live is None and self._due():
            self._print(text)

    def stopping(self) -> None:
        self._stopping = True
        if self.live is None:  # print may be what was interrupted
            os.write(2, f"\nludus: {STOPPING}\n".encode())

    def _due(self) -> bool:
        return time.monotonic() - self._printed > PLAIN_EVERY

    def _print(self, text: str) -> None:
        self._printed = time.monotonic()
        print(text, file=sys.stderr, flush=True)

    # -- what it shows -----------------------------------------------------------------------------

    def draw(self, console: Console) -> RenderableType:
        """The panel as it is now; a sentence in its place if it cannot be drawn."""
        from rich.text import Text

        try:
            return self.panel(console.width)
        except Exception as error:
            return Text(
                "ludus: the dashboard cannot be drawn and training goes on "
                f"({type(error).__name__}: {error})"
            )

    def panel(self, width: int) -> RenderableType:
        from rich.console import Group
        from rich.panel import Panel
        from rich.text import Text

        view = self.view
        rows: list[RenderableType] = (
            list(self._rows(view, width))
            if view
            else [Text("waiting for the first iteration", style="dim")]
        )
        for status in (STOPPING if self._stopping else "", self._status):
            if status:
                rows.append(Text(status, style="bold cyan", no_wrap=True, overflow="ellipsis"))
        title = Text(self.config.game, style="bold")
        folder = Text(view.run, overflow="ellipsis", no_wrap=True) if view else None
        return Panel(
            Group(*rows),
            title=title,
            subtitle=folder,
            title_align="left",
            subtitle_align="left",
            border_style="blue",
        )

    def _rows(self, view: View, width: int) -> Iterator[RenderableType]:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        def row(*parts: str, style: str = "") -> Text:
            return Text(
                "   ".join(filter(None, parts)), style=style, no_wrap=True, overflow="ellipsis"
            )

        bar = Table.grid(padding=(0, 1), expand=True)
        bar.add_column(ratio=1)
        bar.add_column(justify="right", no_wrap=True)
        bar.add_row(ProgressBar(total=1.0, completed=view.share), f"{view.share:.0%}")
        yield bar
        speed = number(view.line.get("speed/agent_steps_per_s"), ",.0f")
        yield row(
            f"{view.agent_steps:,} agent-steps",
            f"{speed} per second",
            f"iteration {view.iteration:,}",
            style="bold",
        )
        yield row(f"{duration(view.elapsed)} elapsed", f"{view.remaining} remaining")
        yield Text("")
        yield self._roles(view, width)
        yield Text("")
        if view.stage or game_line(view.line):
            yield row(view.stage, f"game: {game_line(view.line)}" if game_line(view.line) else "")
        name = self.config.checkpoint.best_metric
        headline = view.measured(name) or (f"{in_words(name)}: not evaluated yet" if name else "")
        best = (
            f"best {number(view.best['value'])} at step {view.best['step']:,}" if view.best else ""
        )
        yield row(headline, best, style="bold")
        if width >= WIDE and view.track is not None:
            yield row(f"{view.track.check.replace('_', ' ')}: {view.track.cause}")
        shares = sorted(
            (
                (k.rsplit("/", 1)[-1], v)
                for k, v in view.line.items()
                if k.startswith("speed/share/")
            ),
            key=_less,
        )
        yield row(
            "time: " + ", ".join(f"{name} {share:.0%}" for name, share in shares if share >= 0.01),
            style="dim",
        )
        for finding in view.findings[:MOST_FINDINGS]:
            colour = "red" if finding.severity == "critical" else "yellow"
            text = f"{finding.severity}: {finding.cause}" + (
                f" → {finding.fix}" if width >= WIDE else ""
            )
            yield row(text, style=colour)
        if len(view.findings) > MOST_FINDINGS:
            yield row(f"and {len(view.findings) - MOST_FINDINGS} more findings", style="yellow")

    def _roles(self, view: View, width: int) -> RenderableType:
        """A line per role: its return in training, how its policy learns, and as many of its goals
        as fit."""
        from rich.table import Table

        known = [
            title
            for title, key in POLICY_NUMBERS.items()
            if any(key.format(r) in view.line for r in view.roles)
        ]
        shown = known if width >= WIDE else known[:1]
        cells = [["in training", "return", *shown]]
        for role in view.roles:
            numbers = [
                number(view.line.get(POLICY_NUMBERS[title].format(role)), ".3g") for title in shown
            ]
            cells.append([role, episodes_line(view.line, role, view.envs)[0] or "–", *numbers])
        table = Table.grid(padding=(0, GAP, 0, 0))
        for k in range(len(cells[0])):
            table.add_column(justify="right" if k else "left", no_wrap=True)
        table.add_column(no_wrap=True)
        left = width - 4 - sum(max(map(len, column)) + GAP for column in zip(*cells, strict=True))
        table.add_row(*cells[0], "goals", style="dim")
        for role, row in zip(view.roles, cells[1:], strict=True):
            table.add_row(*row, fitting(episodes_line(view.line, role, view.envs)[1], left))
        return table


def fitting(parts: Sequence[str], width: int) -> str:
    """As many whole parts as there is room for."""
    for count in range(len(parts), -1, -1):
        text = "  ".join([*parts[:count], *(["…"] if count < len(parts) else [])])
        if len(text) <= width:
            return text
    return ""


def plain(view: View) -> str:
    """An iteration as one line."""
    speed = number(view.line.get("speed/agent_steps_per_s"), ",.0f")
    parts = [
        f"{view.share:4.0%}  {view.agent_steps:>11,} agent-steps  {speed:>9}/s  "
        f"{duration(view.elapsed)} elapsed, {view.remaining} remaining"
    ]
    for role in view.roles:
        mean, goals = episodes_line(view.line, role, view.envs)
        parts.append(", ".join([f"{role} return {mean}" if mean else role, *goals]))
    parts += filter(None, [view.stage, game_line(view.line)])
    if view.track is not None:
        parts.append(view.track.check.replace("_", " "))
    return "  |  ".join(parts)


def _less(item: tuple[str, float]) -> float:
    return -item[1]


@contextlib.contextmanager
def no_control_echo() -> Iterator[None]:
    """The terminal does not write ^C into the panel, which would move all its lines."""
    import termios

    # no terminal, or another program has it
    if not os.isatty(0) or os.tcgetpgrp(0) != os.getpgrp():
        yield
        return
    settings = termios.tcgetattr(0)
    changed = [*settings]
    changed[3] &= ~termios.ECHOCTL
    termios.tcsetattr(0, termios.TCSADRAIN, changed)
    # moved to the background, it may still put this right
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        yield
    finally:
        with contextlib.suppress(termios.error):  # the terminal may have gone away
            termios.tcsetattr(0, termios.TCSADRAIN, settings)
        signal.signal(signal.SIGTTOU, before)
