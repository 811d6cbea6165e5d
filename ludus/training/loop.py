"""The training loop: iterations, evaluations, checkpoints, logs. All randomness is a function of (seed, iteration)."""

from __future__ import annotations

import hashlib
import json
import math
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch

from ludus.config import Config
from ludus.curriculum.stages import Stages
from ludus.errors import LudusError
from ludus.examine.evidence import Diagnostics
from ludus.league.league import League, mixes
from ludus.learn.ppo import PPO
from ludus.training import checkpoint, devices
from ludus.training.evaluate import against_list, evaluate
from ludus.training.metrics import Clock, Window
from ludus.training.replay import Recorder
from ludus.training.run import Run, versions, write_atomically
from ludus.training.sources import make_batch, scheduled


@dataclass
class Progress:
    """Where a run stands; part of every checkpoint."""

    iteration: int = 0
    agent_steps: int = 0
    env_steps: int = 0
    updates: int = 0
    episodes: int = 0
    seconds: float = 0.0
    evaluated_at_steps: int = 0
    evaluated_at_seconds: float = 0.0
    sampled_episodes: int = 0
    evaluations: int = 0
    best: dict[str, Any] = field(default_factory=dict)


def stream_seed(seed: int, iteration: int, stream: str) -> int:
    """A seed for one use in one iteration."""
    digest = hashlib.sha256(f"{seed}/{iteration}/{stream}".encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


class Trainer:
    """Trains a run from where it stands to the end of its budget."""

    def __init__(self, run: Run, config: Config, *, watch: Callable[[Trainer, dict[str, Any]], None] | None = None) -> None:
        self.run, self.config = run, config
        self.watch = watch
        devices.set_threads(config.train.threads or 1)
        torch.manual_seed(stream_seed(config.seed, 0, "weights"))
        begin = time.perf_counter()
        self.batch = make_batch(config, config.envs, config.seed, stagger=config.train.stagger, threads=config.train.threads or 1)
        self.batch.check_received()
        self.compile_seconds: float | None = time.perf_counter() - begin
        self.game_fingerprint = self.batch.fingerprint()
        self.algorithm = PPO(self.batch, config)
        policies = {name: role.policy for name, role in self.algorithm.roles.items()}
        self.league = League(run, self.batch, policies, config) if any(mixes(config)) else None
        self.stages: Stages | None = None
        if self.league is not None:
            self.algorithm.opponents = list(self.league.players.values())
            if config.curriculum.stages:
                self.stages = Stages(config.curriculum.stages, self.league, self.batch)
        self.progress = Progress()
        self.clock, self.window = Clock(), Window()
        self.diagnostics = Diagnostics(self.algorithm)
        self.stop_requested = False
        self._saved_at: tuple[int, float] = (0, 0.0)

    def begin(self) -> None:
        """What a new run does before its checkpoint 0."""
        if self.league is not None:
            self.league.begin()
        if self.stages is not None:
            self.stages.enter(0)

    # -- the loop ------------------------------------------------------------------------------------------------------

    @property
    def share(self) -> float:
        """How much of the budget is spent."""
        shares = [0.0]
        if self.config.train.total_agent_steps is not None:
            shares.append(self.progress.agent_steps / self.config.train.total_agent_steps)
        if self.config.train.total_seconds is not None:
            shares.append(self.progress.seconds / self.config.train.total_seconds)
        return min(1.0, max(shares))

    def train(self) -> None:
        """Iterates until the budget is spent or someone asks to stop; ends with an evaluation and a checkpoint."""
        with stopping_on_signals(self):
            last = time.perf_counter()
            while self.share < 1.0 and not self.stop_requested:
                record = self.iterate()
                now = time.perf_counter()
                self.progress.seconds += now - last
                last = now
                self.finish_iteration(record)
            if self._saved_at[0] != self.progress.agent_steps:
                self.save()

    def iterate(self) -> dict[str, Any]:
        """One rollout and its update."""
        p, clock = self.progress, self.clock
        torch.manual_seed(stream_seed(self.config.seed, p.iteration, "play"))
        changed = scheduled(self.config, self.share)
        if changed:
            self.batch.set_params(changed)
        diagnose = self.config.log.diagnostics_every and p.iteration % self.config.log.diagnostics_every == 0
        self.algorithm.collect(clock)
        with clock("learn"):
            if diagnose:
                self.diagnostics.before()
            metrics = self.algorithm.learn(self.share)
        with clock("log"):
            p.agent_steps += self.learned_steps()
            p.env_steps += self.config.envs * self.config.learn.rollout
            p.updates += sum(
                int(metrics[f"ppo/{role.name}/epochs_run"]) * role.config.minibatches for role in self.algorithm.roles.values()
            )
            p.iteration += 1
            record = {**metrics, **self.episode_metrics(), **self.action_metrics(), **self.opponent_metrics()}
            self.refuse_nan(record)
            if diagnose:
                self.run.append_json("diagnostics.jsonl", {"progress/agent_steps": p.agent_steps, **self.diagnostics.after()})
        return record

    def opponent_metrics(self) -> dict[str, float]:
        """New snapshots, new opponents, the next stage; and how the policy fares against each."""
        if self.league is None:
            return {}
        random = np.random.default_rng(stream_seed(self.config.seed, self.progress.iteration, "league"))
        metrics = self.league.after_iteration(self.progress.iteration, self.progress.agent_steps, random)
        return metrics | (self.stages.after_iteration() if self.stages is not None else {})

    def learned_steps(self) -> int:
        """Valid rows of the rollout that belong to learning agents."""
        return int(sum(int(role.rollout.valid.sum()) for role in self.algorithm.roles.values()))

    def finish_iteration(self, record: dict[str, Any]) -> None:
        """Evaluates and saves where due, then writes the iteration's line."""
        p = self.progress
        over = self.share >= 1.0 or self.stop_requested
        improved = False
        if self.evaluation_due() or over:
            with self.clock("evaluate"):
                record |= self.evaluate()
                improved = self.note_best(record)
        with self.clock("log"):
            line = self.line(record)
            self.run.append_json("metrics.jsonl", line)
            if self.config.log.tensorboard:
                self.run.tensorboard(line, p.agent_steps)
            if self.watch is not None:
                self.watch(self, line)
        if improved or over or self.checkpoint_due():
            with self.clock("save"):
                self.save()

    def line(self, record: Mapping[str, Any]) -> dict[str, Any]:
        p = self.progress
        progress = {k: getattr(p, k) for k in ("iteration", "agent_steps", "env_steps", "updates", "seconds", "episodes")}
        phases = self.clock.take()
        total = sum(phases.values()) or 1.0
        buffers = sum(role.rollout.nbytes for role in self.algorithm.roles.values())
        compiled, self.compile_seconds = self.compile_seconds, None
        return {
            **{f"progress/{k}": v for k, v in progress.items()},
            **({} if compiled is None else {"speed/compile_seconds": compiled}),
            "speed/agent_steps_per_s": self.window.rate(p.agent_steps, p.seconds),
            **{f"speed/share/{phase}": seconds / total for phase, seconds in sorted(phases.items())},
            **devices.memory(self.config.device),
            "memory/buffer_mb": buffers / 1e6,
            **record,
        }

    # -- what happened -------------------------------------------------------------------------------------------------

    def episode_metrics(self) -> dict[str, float]:
        out: dict[str, float] = {}
        statistics = self.batch.read_statistics()
        self.progress.episodes += int(max(s["episodes"] / self.algorithm.roles[r].num_agents for r, s in statistics.items()))
        goals = self.batch.game.goal_metrics
        terms = self.batch.layout.describe()["rewards"]
        for role, values in statistics.items():
            for name, value in values.items():
                if name.startswith("goal/"):
                    if _meant_for(goals[name.removeprefix("goal/")].roles, role):
                        out[f"goal/{role}/{name.removeprefix('goal/')}"] = value
                elif not name.startswith("term/") or _meant_for(terms[name.removeprefix("term/")]["roles"], role):
                    out[f"episode/{role}/{name}"] = float(value)
        self.sample_episodes()
        return out

    def sample_episodes(self) -> None:
        """Episodes that ended in the rollout's last row, at most log.episodes over the run."""
        allowed = math.ceil(self.config.log.episodes * max(self.share, 0.001)) - self.progress.sampled_episodes
        if allowed <= 0:
            return
        batch, layout = self.batch, self.batch.layout
        envs = np.flatnonzero(batch.numpy("counted"))[:allowed]
        path = self.run.path / "episodes.csv"
        if not path.exists() or path.stat().st_size == 0:
            names = [
                "agent_steps",
                "env",
                "role",
                "agent",
                "return",
                "length",
                "outcome",
                "opponent",
                *layout.terms,
                *layout.goals,
            ]
            self.run.append("episodes.csv", ",".join(names) + "\n")
        if not len(envs):
            return
        data = {
            n: batch.numpy(n)[envs] for n in ("episode_return", "episode_length", "outcome", "term_totals", "goals", "controller")
        }
        for i, env in enumerate(envs):
            for seats in layout.seats:
                for agent in range(seats.start, seats.stop):
                    row = [
                        self.progress.agent_steps, env, seats.role, agent, data["episode_return"][i, agent],
                        data["episode_length"][i, agent], data["outcome"][i, agent],
                        "self" if data["controller"][i, agent] == 0 else f"bot{data['controller'][i, agent]}",
                        *data["term_totals"][i, agent], *data["goals"][i, agent],
                    ]  # fmt: skip
                    self.run.append(
                        "episodes.csv", ",".join(f"{v:.6g}" if isinstance(v, np.floating) else str(v) for v in row) + "\n"
                    )
        self.progress.sampled_episodes += len(envs)

    def action_metrics(self) -> dict[str, float]:
        """What the agents did, over valid rows: gathered as tensors, read once per role."""
        out: dict[str, float] = {}
        layout = self.batch.layout
        for role in self.algorithm.roles.values():
            r = role.rollout
            weight = r.valid.float()
            weight = weight / weight.sum().clamp(min=1.0)
            names: list[str] = []
            parts: list[torch.Tensor] = []
            if layout.continuous:
                action = torch.tanh(r.raw)
                mean = (action * weight.unsqueeze(-1)).sum((0, 1))
                square = (action.square() * weight.unsqueeze(-1)).sum((0, 1))
                saturated = ((action.abs() > 0.99) * weight.unsqueeze(-1)).sum((0, 1))
                parts += [mean, (square - mean.square()).clamp(min=0).sqrt(), saturated]
                names += [f"{n}/{kind}" for kind in ("mean", "std", "saturated") for n in layout.continuous]
            if layout.binary:
                parts.append((r.binary * weight.unsqueeze(-1)).sum((0, 1)))
                names += [f"{n}/pressed" for n in layout.binary]
            for i, (name, options) in enumerate(layout.choices.items()):
                flat = r.choices[..., i].flatten().long()
                parts.append(torch.zeros(len(options), device=weight.device).scatter_add_(0, flat, weight.flatten()))
                names += [f"{name}/{option}" for option in options]
            out |= {f"action/{role.name}/{n}": v for n, v in zip(names, torch.cat(parts).tolist(), strict=True)}
        return out

    def refuse_nan(self, record: Mapping[str, Any]) -> None:
        """Stops at the first tensor that is not finite, and names the last good checkpoint."""
        if all(math.isfinite(v) for n, v in record.items() if n.startswith("ppo/") and isinstance(v, float)):
            return
        culprit = self.diagnostics.first_not_finite()
        good = checkpoint.steps(self.run)
        raise LudusError(
            f"training stopped in iteration {self.progress.iteration}: {culprit}; the last good checkpoint is {self.run.path}@{good[-1]}"
        )

    # -- evaluation ----------------------------------------------------------------------------------------------------

    def evaluation_due(self) -> bool:
        e, p = self.config.eval, self.progress
        by_steps = e.every_agent_steps is not None and p.agent_steps - p.evaluated_at_steps >= e.every_agent_steps
        by_seconds = e.every_seconds is not None and p.seconds - p.evaluated_at_seconds >= e.every_seconds
        return by_steps or by_seconds

    def evaluate(self) -> dict[str, float]:
        e, p = self.config.eval, self.progress
        every = e.every_agent_steps
        p.evaluated_at_steps = p.agent_steps // every * every if every else p.agent_steps
        p.evaluated_at_seconds = p.seconds
        policies = {name: role.policy for name, role in self.algorithm.roles.items()}
        single = len(self.batch.layout.seats) == 1 and self.batch.layout.seats[0].teams == 1
        record: dict[str, float] = {}
        p.evaluations += 1
        store = self.config.log.replay_every and p.evaluations % self.config.log.replay_every == 0
        for against in against_list(self.batch.controllers, e.against, single):
            for greedy in (False, True) if e.greedy else (False,):
                keep = self.replay_keeper(against) if store and not greedy else None
                metrics = evaluate(self.make_evaluation_batch, policies, against, e.episodes, e.seed, greedy, keep)
                for name, value in metrics.items():
                    if greedy:
                        record[f"eval/{against}/{name}_greedy"] = value["mean"]
                    else:
                        record[f"eval/{against}/{name}"] = value["mean"]
                        record[f"eval/{against}/{name}_low"] = value["low"]
                        record[f"eval/{against}/{name}_high"] = value["high"]
        return record

    def replay_keeper(self, against: str) -> Callable[[Recorder, str], None]:
        """Stores the best, the worst and a random episode of the role that is measured; drops the oldest replays."""
        folder, step = self.run.path / "replays", self.progress.agent_steps

        def keep(recorder: Recorder, role: str) -> None:
            seats = next((s for s in self.batch.layout.seats if s.role == role), self.batch.layout.seats[0])
            for label, env in recorder.chosen(seats.start).items():
                name = f"{step:012d}-{against.replace(':', '_')}-{seats.role}-{label}.safetensors"
                header = {"source": self.config.game, "step": step, "against": against, "role": seats.role, "label": label}
                recorder.save(folder / name, env, header)
            for old in sorted(folder.glob("*.safetensors"))[: -self.config.log.replays or None]:
                old.unlink()

        return keep

    def make_evaluation_batch(self, num_envs: int) -> Any:
        return make_batch(self.config, num_envs, self.config.eval.seed, held_out=True)

    def note_best(self, record: Mapping[str, Any]) -> bool:
        """Is this the best evaluation so far (or as good)? Then its checkpoint is kept."""
        name, value = self.score(record)
        if name is None or (self.progress.best and value < self.progress.best["value"]):
            return False
        self.progress.best = {"metric": name, "value": value, "step": self.progress.agent_steps}
        return True

    def score(self, record: Mapping[str, Any]) -> tuple[str | None, float]:
        """What decides about the best checkpoint: the chosen metric, or the mean of all goal metrics against strong bots."""
        chosen = self.config.checkpoint.best_metric
        names = [chosen] if chosen else self.default_metrics(record)
        if not names:
            return None, 0.0
        if names[0] not in record:
            raise LudusError(
                f"checkpoint.best_metric={chosen} is not evaluated: there is {', '.join(n for n in record if n.startswith('eval/'))}"
            )
        goals = self.batch.game.goal_metrics
        worse = {n for n in names if n.rsplit("/", 1)[-1] in goals and not goals[n.rsplit("/", 1)[-1]].higher_is_better}
        value = sum(-record[n] if n in worse else record[n] for n in names) / len(names)
        return (names[0] if len(names) == 1 else f"mean of {', '.join(names)}"), value

    def default_metrics(self, record: Mapping[str, Any]) -> list[str]:
        """Goal metrics against bots that are no mere random or still ones; else against those; else the first number."""
        evaluated = [n for n in record if n.startswith("eval/") and not n.endswith(("_low", "_high", "_greedy"))]
        goals = [n for n in evaluated if n.rsplit("/", 1)[-1] in self.batch.game.goal_metrics and not n.startswith("eval/self")]
        strong = [n for n in goals if not n.startswith(("eval/bot:random", "eval/bot:still"))]
        return strong or goals or evaluated[:1]

    # -- checkpoints ---------------------------------------------------------------------------------------------------

    def checkpoint_due(self) -> bool:
        c, p = self.config.checkpoint, self.progress
        by_steps = c.every_agent_steps is not None and p.agent_steps - self._saved_at[0] >= c.every_agent_steps
        by_seconds = c.every_seconds is not None and p.seconds - self._saved_at[1] >= c.every_seconds
        return by_steps or by_seconds

    def save(self) -> None:
        p = self.progress
        policy: dict[str, torch.Tensor] = {}
        optimizer: dict[str, torch.Tensor] = {}
        state = {f"sim/{n}": t for n, t in checkpoint.as_tensors(self.batch.state()).items()}
        for name, role in self.algorithm.roles.items():
            policy |= {f"{name}/{n}": t for n, t in role.policy.state_dict().items()}
            if role.predictor is not None:
                policy |= {f"{name}/predictor.{n}": t for n, t in role.predictor.state_dict().items()}
            optimizer |= {f"{name}/{n}": t for n, t in checkpoint.optimizer_tensors(role.optimizer).items()}
            state |= {f"role/{name}/{n}": t for n, t in role.carried().items()}
        if self.league is not None:
            state |= {f"league/{n}": t for n, t in self.league.tensors().items()}
        manifest = {
            "progress": asdict(p),
            "layout": self.batch.layout.describe(),
            "game_fingerprint": self.game_fingerprint,
            "versions": versions(),
            "threads": self.config.train.threads,
            "league": self.league.state() if self.league is not None else None,
            "curriculum": self.stages.state() if self.stages is not None else None,
            "replays": sorted(path.name for path in self.run.path.glob("replays/*.safetensors")),
        }
        checkpoint.save(self.run, p.agent_steps, {"policy": policy, "optimizer": optimizer, "state": state}, manifest)
        self._saved_at = (p.agent_steps, p.seconds)
        if p.best:
            write_atomically(self.run.path / "best.json", json.dumps(p.best))
        checkpoint.prune(self.run, self.config.checkpoint.keep, {p.best["step"]} if p.best else set())

    def restore(self, source: Run, step: int) -> None:
        """Goes on from a checkpoint of this run, bit for bit: everything must fit."""
        manifest = checkpoint.read_manifest(source, step)
        where = f"{source.path}@{step}"
        if manifest["layout"] != json.loads(json.dumps(self.batch.layout.describe())):
            raise LudusError(
                f"the game's layout changed since {where} was saved: `ludus fork {source.path}` starts a new run from it"
            )
        if manifest["game_fingerprint"] != self.game_fingerprint:
            raise LudusError(
                f"the game's rules changed since {where} was saved: `ludus fork {source.path}` starts a new run from it"
            )
        self.load_weights(source, step)
        state = checkpoint.read(source, step, manifest, "state.safetensors")
        saved, current = checkpoint.split(state, "sim"), self.batch.state()
        self.batch.load_state(checkpoint.as_arrays(saved, current))
        for name, role in self.algorithm.roles.items():
            if saved:
                for n, t in role.carried().items():
                    t.copy_(state[f"role/{name}/{n}"])
        if self.league is not None:
            self.league.load_state(manifest["league"], checkpoint.split(state, "league"))
        if self.stages is not None:
            self.stages.load_state(manifest["curriculum"])
        self.progress = Progress(**manifest["progress"])
        self._saved_at = (step, self.progress.seconds)
        self.run.cut_back(manifest["logs"], step, self.config.log.tensorboard)

    def load_weights(self, source: Run, step: int) -> None:
        """Policies with their normalisers, and the optimizers' state where the layout is the same."""
        manifest = checkpoint.read_manifest(source, step)
        where = f"{source.path}@{step}"
        self.load_policies(checkpoint.read(source, step, manifest, "policy.safetensors"), manifest, where)
        if manifest["layout"] == json.loads(json.dumps(self.batch.layout.describe())):
            optimizer = checkpoint.read(source, step, manifest, "optimizer.safetensors")
            for name, role in self.algorithm.roles.items():
                checkpoint.load_optimizer(role.optimizer, checkpoint.split(optimizer, name))

    def load_policies(
        self, tensors: Mapping[str, torch.Tensor], manifest: Mapping[str, Any], where: str, modules: tuple[str, ...] = ()
    ) -> None:
        """Weights into the policies; `modules` limits it to parts whose name contains one."""
        for name, role in self.algorithm.roles.items():
            mine = checkpoint.split(tensors, name)
            if not mine:
                raise LudusError(
                    f"{where} has no policy for the role {name}: it has {', '.join(sorted({n.split('/')[0] for n in tensors}))}"
                )
            mine = checkpoint.fit_layout(mine, manifest["layout"], self.batch.layout.describe(), where)
            predictor = {n.removeprefix("predictor."): t for n, t in mine.items() if n.startswith("predictor.")}
            mine = {n: t for n, t in mine.items() if not n.startswith("predictor.")}
            wanted = role.policy.state_dict()
            if modules:
                mine = {n: t for n, t in mine.items() if any(m in n for m in modules)}
                if not mine:
                    raise LudusError(
                        f"no module of {where} matches {', '.join(modules)}: there is {', '.join(sorted({n.rsplit('.', 1)[0] for n in wanted}))}"
                    )
            elif mine.keys() != wanted.keys():
                raise LudusError(f"{where} is another network: it differs in {sorted(mine.keys() ^ wanted.keys())[:3]}")
            for n, t in mine.items():
                if n not in wanted or wanted[n].shape != t.shape:
                    has = list(wanted[n].shape) if n in wanted else "nothing"
                    raise LudusError(
                        f"{where}: {name}/{n} is {list(t.shape)} but this policy has {has}: use the same policy settings"
                    )
            role.policy.load_state_dict({**wanted, **mine})
            if role.predictor is not None and predictor:
                role.predictor.load_state_dict(predictor)


def _meant_for(roles: Any, role: str) -> bool:
    return roles is None or role == roles or (not isinstance(roles, str) and role in roles)


class stopping_on_signals:
    """Ctrl-C or SIGTERM ends the run after the current iteration, with a checkpoint; a second one at once."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self.before: dict[int, Any] = {}

    def __enter__(self) -> None:
        def stop(number: int, frame: Any) -> None:
            if self.trainer.stop_requested:
                raise KeyboardInterrupt
            self.trainer.stop_requested = True

        try:
            self.before = {s: signal.signal(s, stop) for s in (signal.SIGINT, signal.SIGTERM)}
        except ValueError:  # not in the main thread: whoever started us handles signals
            self.before = {}

    def __exit__(self, *_: Any) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)
