"""The training loop: iterations, evaluations, checkpoints, logs. All randomness is a function of
(seed, iteration)."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
import torch

from ludus import machine
from ludus.algorithms.algorithm import make_algorithm
from ludus.batches import make_batch, of_game, scheduled
from ludus.config import Config, mixes
from ludus.curriculum.stages import Stages
from ludus.curriculum.tasks import Tasks
from ludus.errors import LudusError
from ludus.evidence.diagnostics import Diagnostics
from ludus.league.league import League
from ludus.play.evaluate import Abandoned
from ludus.runs import checkpoint
from ludus.runs.budget import Anchor, schedule_share, spent
from ludus.runs.checkpoint import Checkpoint
from ludus.runs.run import Run
from ludus.runs.weights import load_tensors, tensors_of
from ludus.sim import Batch as GameBatch
from ludus.training import saving
from ludus.training.callbacks import Callbacks
from ludus.training.clock import Window, device_clock
from ludus.training.display import Display, Guarded, Silent
from ludus.training.episodes import allowance, episode_metrics, sample_episodes
from ludus.training.evaluation import Evaluations
from ludus.training.game_values import evaluated_values, game_metrics
from ludus.training.progress import Progress, stream_seed
from ludus.training.watching import RunDoctor


class Trainer:
    """Trains a run from where it stands to the end of its budget."""

    def __init__(
        self,
        run: Run,
        config: Config,
        *,
        display: Display | None = None,
        callbacks: Callbacks | None = None,
    ) -> None:
        self.run, self.config = run, config
        self.display = Guarded(display or Silent())
        self.callbacks = callbacks or Callbacks()
        machine.set_threads(config.train.threads or 1)
        machine.keep_memory()
        torch.manual_seed(stream_seed(config.seed, 0, "weights"))
        begin = time.perf_counter()
        self.batch = make_batch(
            config,
            config.envs,
            config.seed,
            stagger=config.train.stagger,
            threads=config.train.threads or 1,
        )
        self.batch.check_received()
        self.compile_seconds: float | None = time.perf_counter() - begin
        self.game_fingerprint = self.batch.fingerprint()
        self.algorithm = make_algorithm(self.batch, config)
        self.league: League | None = None
        self.stages: Stages | None = None
        self.tasks: Tasks | None = None
        if any(mixes(config)):
            self.league = League(run, of_game(self.batch), self.algorithm.policies, config)
            self.algorithm.opponents = self.league.acting()
        stages = config.curriculum.stages
        if stages:
            self.stages = Stages(stages, self.league, of_game(self.batch), self.resize)
        if config.curriculum.tasks.vary:
            self.tasks = Tasks(config, of_game(self.batch), self.make_like)
        self.evaluated_values = evaluated_values(config)
        self.progress = Progress()
        self.clock, self.window, self.cpu = device_clock(config.device), Window(), Window()
        self.diagnostics = Diagnostics(self.algorithm, self.batch.layout)
        self.doctor = RunDoctor(run, config, self.batch.layout)
        self.stop_requested = False
        self._saved_at: tuple[int, float] = (0, 0.0)
        self._cpu_seconds = 0.0
        self._counted_at = time.perf_counter()
        self.evaluations = Evaluations(self)

    def begin(self, schedules_at: float = 0.0) -> None:
        """What a new run does before its checkpoint 0. `schedules_at`: where its schedules start,
        for a run that continues another."""
        self.progress.anchor = Anchor(schedules_at)
        if self.league is not None:
            self.league.begin()
        changed = scheduled(self.config, schedules_at) if schedules_at else {}
        if changed:
            of_game(self.batch).set_params(changed)
        if self.stages is not None:
            self.stages.enter(self.config.curriculum.first_stage - 1)
        if self.league is not None or self.stages is not None or changed:
            # the first episodes are played against these opponents and with these values, too
            of_game(self.batch).restart()
        if self.tasks is not None:
            lineups = self.league.lineups if self.league is not None else ()
            self.tasks.begin(stream_seed(self.config.seed, 0, "tasks"), lineups)
            self.batch.check_received(self.tasks.varied())
        else:
            self.batch.check_received(
                {**changed, **(self.stages.params() if self.stages is not None else {})}
            )

    def resize(self, sizes: Mapping[str, float]) -> GameBatch:
        """Goes on with a batch of other sizes: policies, optimizers and opponents carry over,
        episodes start."""
        kept, config = tensors_of(self.algorithm), self.config
        resized = replace(config, game_values={**config.game_values, **sizes})
        self.batch = make_batch(
            resized, config.envs, config.seed, threads=config.train.threads or 1
        )
        self.algorithm = make_algorithm(self.batch, config)
        load_tensors(self.algorithm, kept)
        if self.league is not None:
            self.league.move(of_game(self.batch), self.algorithm.policies)
            self.algorithm.opponents = self.league.acting()
        self.diagnostics = Diagnostics(self.algorithm, self.batch.layout)
        return of_game(self.batch)

    # -- the loop ----------------------------------------------------------------------------------

    @property
    def share(self) -> float:
        """How much of the budget is spent."""
        return spent(self.config.train, self.progress.agent_steps, self.progress.seconds)

    @property
    def schedule_share(self) -> float:
        """Where schedules stand, from 0 to 1."""
        p = self.progress
        return schedule_share(self.config.train, p.agent_steps, p.seconds, p.anchor)

    @property
    def elapsed(self) -> float:
        """Seconds of training until now; those since the last iteration count in progress.seconds
        only with the next one."""
        return self.progress.seconds + time.perf_counter() - self._counted_at

    def train(self) -> None:
        """Iterates until the budget is spent, which ends with an evaluation, or someone asks to
        stop; then saves a checkpoint, and raises the error of a callback if one failed."""
        with stopping_on_signals(self):
            self._counted_at = time.perf_counter()
            while self.share < 1.0 and not (self.stop_requested or self.callbacks.over):
                record = self.iterate()
                now = time.perf_counter()
                self.progress.seconds += now - self._counted_at
                # at the same moment: evaluations count with the next iteration
                self._cpu_seconds = time.process_time()
                self._counted_at = now
                self.finish_iteration(record)
            if self._saved_at[0] != self.progress.agent_steps:
                self.save()
        self.callbacks.raise_failure()

    def iterate(self) -> dict[str, Any]:
        """One rollout and its update."""
        p, clock, cpu = self.progress, self.clock, time.process_time()
        torch.manual_seed(stream_seed(self.config.seed, p.iteration, "play"))
        of_stage = self.stages.params() if self.stages is not None else {}
        changed = {
            n: v
            for n, v in scheduled(self.config, self.schedule_share).items()
            if n not in of_stage
        }
        if changed:
            of_game(self.batch).set_params(changed)
        diagnose = (
            self.config.log.diagnostics_every
            and p.iteration % self.config.log.diagnostics_every == 0
        )
        self.algorithm.collect(clock)
        with clock("learn"):
            if diagnose:
                self.diagnostics.before()
            metrics = self.algorithm.learn(self.schedule_share)
        with clock("log"):
            p.agent_steps += self.algorithm.learned_steps()
            p.env_steps += self.config.envs * self.algorithm.rollout_steps
            p.updates += self.algorithm.updates()
            p.iteration += 1
            episodes, count = episode_metrics(self.batch)
            p.episodes += count
            allowed = allowance(self.config.log.episodes, self.share, p.sampled_episodes)
            p.sampled_episodes += sample_episodes(self.run, self.batch, p.agent_steps, allowed)
            played = game_metrics(self.batch, self.evaluated_values)
            others = {**self.opponent_metrics(), **self.task_metrics()}
            record = {**metrics, **played, **episodes, **self.algorithm.action_metrics(), **others}
            self.refuse_nan(record)
            # last: with another stage, opponents and even the batch become others
            entered = (
                self.stages.after_iteration(record, p.agent_steps)
                if self.stages is not None
                else {}
            )
            if diagnose:
                seen = {"progress/agent_steps": p.agent_steps, **self.diagnostics.after()}
                self.run.append_json("diagnostics.jsonl", seen)
                self.doctor.watcher.add(seen, diagnostics=True)
        return record | entered | self.spent(time.process_time() - cpu)

    def spent(self, cpu: float) -> dict[str, float]:
        """CPU time of an iteration, with that of worker processes. Envs of other libraries say what
        their resets took, and envs elsewhere how long they were waited for; compiled games reset
        within a step."""
        resets, waits, elsewhere = self.batch.read_spent()
        for phase, seconds in (("reset", resets), ("wait_env", waits)):
            if seconds:
                seconds = min(seconds, self.clock.seconds["simulate"])
                self.clock.seconds["simulate"] -= seconds
                self.clock.seconds[phase] += seconds
        return {"speed/cpu_seconds": cpu + elsewhere}

    def opponent_metrics(self) -> dict[str, float]:
        """New snapshots, new opponents; and how the policy fares against each."""
        if self.league is None:
            return {}
        random = np.random.default_rng(
            stream_seed(self.config.seed, self.progress.iteration, "league")
        )
        return self.league.after_iteration(
            self.progress.iteration, self.progress.agent_steps, random
        )

    def task_metrics(self) -> dict[str, float]:
        """What finished episodes say about their tasks, and which ones come next."""
        if self.tasks is None:
            return {}
        return self.tasks.after_iteration(
            stream_seed(self.config.seed, self.progress.iteration, "tasks")
        )

    def finish_iteration(self, record: dict[str, Any]) -> None:
        """Evaluates and saves where due, then writes the iteration's line."""
        p = self.progress
        improved, evaluated = False, {}
        if (self.evaluations.due() or self.share >= 1.0) and not self.stop_requested:
            with self.clock("evaluate"), suppress(Abandoned):
                evaluated = self.evaluations.evaluate()
                record |= evaluated
                if self.stages is not None:
                    self.stages.after_evaluation(record)
                improved = self.evaluations.note_best(record)
        with self.clock("log"):
            line = self.line(record)
            self.run.append_json("metrics.jsonl", line)
            if self.config.log.tensorboard:
                self.run.tensorboard(line, p.agent_steps)
        with self.clock("doctor"):
            if self.doctor.after_iteration(line, self.share):
                self.stop_requested = True
        with self.clock("log"):
            self.display.iteration(self, line)
        if self.callbacks:
            with self.clock("callbacks"):
                self.callbacks.after_iteration(line, evaluated)
        if improved or self.share >= 1.0 or self.stop_requested or self.checkpoint_due():
            with self.clock("save"):
                self.save()

    def line(self, record: Mapping[str, Any]) -> dict[str, Any]:
        p = self.progress
        progress = {
            k: getattr(p, k)
            for k in ("iteration", "agent_steps", "env_steps", "updates", "seconds", "episodes")
        }
        phases = self.clock.take()
        total = sum(phases.values()) or 1.0
        compiled, self.compile_seconds = self.compile_seconds, None
        return {
            **{f"progress/{k}": v for k, v in progress.items()},
            **({} if compiled is None else {"speed/compile_seconds": compiled}),
            "speed/agent_steps_per_s": self.window.rate(p.agent_steps, p.seconds),
            "speed/cpu_per_s": self.cpu.rate(self._cpu_seconds, p.seconds),
            **{
                f"speed/share/{phase}": seconds / total for phase, seconds in sorted(phases.items())
            },
            **machine.memory(self.config.device),
            "memory/buffer_mb": self.algorithm.buffer_bytes() / 1e6,
            **record,
        }

    # -- what happened -----------------------------------------------------------------------------

    def refuse_nan(self, record: Mapping[str, Any]) -> None:
        """Stops at the first tensor that is not finite, and names the last good checkpoint."""
        finite = all(
            math.isfinite(v)
            for n, v in record.items()
            if n.startswith("learner/") and isinstance(v, float)
        )
        culprit = self.diagnostics.overflowed() or (
            None if finite else self.diagnostics.first_not_finite()
        )
        if culprit is not None:
            self.stop_not_finite(culprit)

    def stop_not_finite(self, culprit: str) -> NoReturn:
        broken = self.diagnostics.broken_observations()
        if broken:  # `ludus doctor run` says so too
            self.run.append_json(
                "diagnostics.jsonl", {"progress/agent_steps": self.progress.agent_steps, **broken}
            )
        self.doctor.not_finite(culprit, self.progress.agent_steps)
        good = checkpoint.steps(self.run)
        raise LudusError(
            f"training stopped in iteration {self.progress.iteration}: {culprit}; the last good "
            f"checkpoint is {self.run.path}@{good[-1]}"
        )

    def make_like(self, num_envs: int) -> GameBatch:
        """A batch of the game as it is trained on."""
        threads = self.config.train.threads or 1
        return of_game(make_batch(self.config, num_envs, self.config.seed, threads=threads))

    # -- checkpoints -------------------------------------------------------------------------------

    def checkpoint_due(self) -> bool:
        c, p = self.config.checkpoint, self.progress
        by_steps = (
            c.every_agent_steps is not None
            and p.agent_steps - self._saved_at[0] >= c.every_agent_steps
        )
        by_seconds = (
            c.every_seconds is not None and p.seconds - self._saved_at[1] >= c.every_seconds
        )
        return by_steps or by_seconds

    def save(self) -> None:
        saving.save(self)
        self._saved_at = (self.progress.agent_steps, self.progress.seconds)
        self.callbacks.saved(self.progress.agent_steps)

    def restore(self, saved: Checkpoint) -> None:
        """Goes on from a checkpoint of this run, bit for bit: everything must fit. Changes nothing
        on disk: `cut_back` does."""
        saving.restore(self, saved)
        self._saved_at = (saved.step, self.progress.seconds)

    def cut_back(self, saved: Checkpoint) -> None:
        """The run folder as it was at the checkpoint that was restored: what came after makes
        way."""
        self.run.cut_back(saved.manifest["logs"], saved.step, self.config.log.tensorboard)
        saving.write_best(self.run, self.progress.best)
        self.doctor.load_state(saved.manifest["doctor"])


STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class stopping_on_signals:
    """Ctrl-C, SIGTERM or a terminal that goes away ends the run after the current iteration, with a
    checkpoint; a second one at once, without."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self.before: dict[int, Any] = {}

    def __enter__(self) -> None:
        def stop(number: int, frame: Any) -> None:
            if self.trainer.stop_requested:
                raise KeyboardInterrupt(number)
            self.trainer.stop_requested = True
            self.trainer.display.stopping()

        try:
            # what the user had ignored (nohup) stays so
            self.before = {
                s: signal.signal(s, stop) for s in STOPPING if signal.getsignal(s) != signal.SIG_IGN
            }
        except ValueError:  # not in the main thread: whoever started us handles signals
            self.before = {}

    def __exit__(self, *_: Any) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)
