"""Settings of how a run goes: its budget, and what it evaluates, keeps, writes and does when it
falls ill."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from ludus.config.limits import Above, AtLeast, OneOf
from ludus.errors import LudusError

if TYPE_CHECKING:
    from ludus.config.experiment import Config

ON_CRITICAL = ("warn", "stop", "rollback")


@dataclass(kw_only=True)
class TrainConfig:
    """The budget: training ends when one of them is spent."""

    total_agent_steps: Annotated[int | None, AtLeast(1)] = None
    """Agent-steps (valid decisions of learning agents)."""
    total_seconds: Annotated[float | None, Above(0)] = None
    """Seconds of wall-clock time."""
    stagger: bool = True
    """Cut each env's first episode at a random length, so that envs are out of step."""
    threads: Annotated[int | None, AtLeast(1)] = None
    """CPU threads of simulator and network (default: 1 or all cores, whichever is faster, measured
    once per machine). A run is repeated bit for bit with the same seed and the same number of
    threads."""
    check_bounds: bool = True
    """Stop where an env of another library shows an observation outside of its space."""
    dtype: Annotated[str | None, OneOf(("float32", "bfloat16"))] = None
    """float32 or bfloat16 (default: float32 on the CPU, bfloat16 on CUDA)."""
    compile: bool | None = None
    """Fuse the small kernels of acting and learning with torch.compile (default: on CUDA, where
    triton and a C compiler are found: 1.6 to 2.5 times as fast there, after up to half a minute of
    compiling)."""

    def check(self) -> None:
        """Refuses training without an end."""
        if self.total_agent_steps is None and self.total_seconds is None:
            raise LudusError(
                "no budget is given: set train.total_agent_steps or train.total_seconds"
            )


@dataclass(kw_only=True)
class EvalConfig:
    """Evaluation during training, on seeds that are not trained on."""

    every_agent_steps: Annotated[int | None, AtLeast(1)] = None
    """Agent-steps between evaluations (default: a tenth of the budget)."""
    every_seconds: Annotated[float | None, Above(0)] = None
    """Seconds between evaluations."""
    episodes: Annotated[int, AtLeast(1)] = 64
    """Episodes per opponent."""
    against: tuple[str, ...] = ("self", "bots")
    """Opponents: self, bots (all of them), bot:NAME, snapshots (a few, evenly over the pool)."""
    seed: Annotated[int, AtLeast(0)] = 1_000_003
    """Seed of the evaluation envs."""
    greedy: bool = True
    """Evaluate the most likely action too, beside sampled ones."""

    def check(self, config: Config) -> None:
        """Refuses to measure on what is trained on."""
        if self.seed == config.seed:
            raise LudusError(f"eval.seed={self.seed} is the seed that is trained on: use another")


@dataclass(kw_only=True)
class CheckpointConfig:
    """What is kept, and when."""

    every_agent_steps: Annotated[int | None, AtLeast(1)] = None
    """Agent-steps between checkpoints."""
    every_seconds: Annotated[float | None, Above(0)] = 60.0
    """Seconds between checkpoints."""
    keep: Annotated[int, AtLeast(1)] = 3
    """Newest checkpoints to keep; the first, the best and the last stay anyway."""
    best_metric: str | None = None
    """Evaluated metric that decides which checkpoint is best and comes first in lists and reports,
    such as eval/bot:flee/catch_rate (default: the game's headline; envs of other libraries:
    eval/self/return)."""


@dataclass(kw_only=True)
class LogConfig:
    """What a run writes."""

    tensorboard: bool = True
    """TensorBoard events beside metrics.jsonl."""
    wandb: str | None = None
    """Project at Weights & Biases to log to as well."""
    sinks: tuple[str, ...] = ()
    """Classes of your own that get every line of metrics.jsonl too, as package.module:Class."""
    diagnostics_every: Annotated[int, AtLeast(0)] = 20
    """Iterations between lines of diagnostics.jsonl; 0: never."""
    episodes: Annotated[int, AtLeast(0)] = 2000
    """At most this many episodes are sampled into episodes.csv."""
    replay_every: Annotated[int, AtLeast(0)] = 1
    """Evaluations between stored replays (best, worst and a random episode per opponent); 0:
    never."""
    replays: Annotated[int, AtLeast(0)] = 30
    """Newest replays to keep."""


@dataclass(kw_only=True)
class DoctorConfig:
    """The doctor watches every run; what it sees is in findings.jsonl, in the dashboard and in the
    report."""

    on_critical: Annotated[str, OneOf(ON_CRITICAL)] = "warn"
    """What a critical finding does: warn; stop, with a checkpoint; or rollback, which goes on in a
    new run from the last healthy checkpoint with the suggested change (never for a finding that
    depends on the clock)."""
    checks: tuple[str, ...] = ()
    """Checks of your own that watch the run too, as package.module:function."""
