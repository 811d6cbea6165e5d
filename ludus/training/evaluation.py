"""Evaluations while a run trains: when, against whom, which replays are stored, and which was the
best."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ludus.batches import make_batch
from ludus.config import Config
from ludus.external.recorder import ForeignRecorder
from ludus.intervals import GREEDY, HIGH, LOW
from ludus.play.evaluate import Abandoned, Keep, intervals
from ludus.play.opponents import Rival, measure_each, sample, spelled_out
from ludus.play.replay import Recorder
from ludus.protocols import Batch
from ludus.runs.measured import as_good, lower_is_better
from ludus.who import SNAPSHOTS, Who

if TYPE_CHECKING:
    from ludus.training.loop import Trainer

DRAWING_SHARE = 0.05  # of the time: more than that is not spent on pictures of foreign envs


def make_evaluation_batch(config: Config, num_envs: int, filmed: bool = False) -> Batch:
    """Envs in worlds that are not trained on."""
    return make_batch(
        config, num_envs, config.eval.seed, held_out=True, validation=True, filmed=filmed
    )


class Evaluations:
    """Those of one run."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer, self.config = trainer, trainer.config
        self.drawing_seconds = 0.0

    def due(self) -> bool:
        e, p = self.config.eval, self.trainer.progress
        by_steps = (
            e.every_agent_steps is not None
            and p.agent_steps - p.evaluated_at_steps >= e.every_agent_steps
        )
        by_seconds = (
            e.every_seconds is not None and p.seconds - p.evaluated_at_seconds >= e.every_seconds
        )
        return by_steps or by_seconds

    def evaluate(self) -> dict[str, float]:
        """Plays against every opponent. Abandoned where someone asks to stop: then it is due as if
        it had not begun."""
        e, batch, p = self.config.eval, self.trainer.batch, self.trainer.progress
        every = self.config.log.replay_every
        store = every and (p.evaluations + 1) % every == 0
        record: dict[str, float] = {}
        for who in spelled_out(e.against, batch.layout, batch.controllers):
            for greedy in (False, True) if e.greedy else (False,):
                shown = store and not greedy and who.kind != SNAPSHOTS
                keep = self.replay_keeper(who) if shown else None
                for name, value in self.against(who, greedy, keep).items():
                    if greedy:
                        record[f"eval/{who}/{name}{GREEDY}"] = value["mean"]
                    else:
                        record[f"eval/{who}/{name}"] = value["mean"]
                        record[f"eval/{who}/{name}{LOW}"] = value["low"]
                        record[f"eval/{who}/{name}{HIGH}"] = value["high"]
        steps = e.every_agent_steps
        p.evaluated_at_steps = p.agent_steps // steps * steps if steps else p.agent_steps
        p.evaluated_at_seconds = self.trainer.elapsed  # it does not bring the next one nearer
        p.evaluations += 1
        return record

    def against(
        self, who: Who, greedy: bool = False, keep: Keep | None = None
    ) -> dict[str, dict[str, float]]:
        """METRIC → mean, low, high. Against all snapshots together as many episodes as against one
        bot."""
        e, trainer = self.config.eval, self.trainer
        rivals = self.rivals(who)
        values = measure_each(
            partial(make_evaluation_batch, self.config, filmed=keep is not None and self.may_film),
            trainer.algorithm.policies,
            rivals,
            -(-e.episodes // len(rivals)),
            e.seed,
            greedy,
            keep,
            partial(self.after_step, who),
        )
        own = {n.removeprefix(f"{who}/"): v for n, v in values.items() if n.startswith(f"{who}/")}
        return intervals(own, trainer.batch.game.goal_metrics)

    def rivals(self, who: Who) -> list[Rival]:
        league = self.trainer.league
        if who.kind == SNAPSHOTS and league is not None:
            return sample(league.pool.own, league.policies_of)
        return [Rival(str(who))]

    def after_step(self, who: Who, done: int) -> None:
        if self.trainer.stop_requested:
            raise Abandoned
        self.trainer.display.status(
            f"evaluating against {who}, {done} of {self.config.eval.episodes} episodes"
        )

    # -- replays -----------------------------------------------------------------------------------

    @property
    def may_film(self) -> bool:
        """Envs of other libraries draw slowly: now and then, and at the end."""
        most = DRAWING_SHARE * self.trainer.progress.seconds
        return self.drawing_seconds <= most or self.trainer.share >= 1.0

    def replay_keeper(self, who: Who) -> Keep:
        """Stores the best, the worst and a random episode of the role that is measured; drops the
        oldest replays."""
        folder: Path = self.trainer.run.path / "replays"
        all_seats, step = self.trainer.batch.layout.seats, self.trainer.progress.agent_steps

        def keep(recorder: Recorder | ForeignRecorder, role: str) -> None:
            self.drawing_seconds += recorder.drawing_seconds
            seats = next((s for s in all_seats if s.role == role), all_seats[0])
            for label, env in recorder.chosen(seats.start).items():
                against = str(who).replace(":", "_")
                name = f"{step:012d}-{against}-{seats.role}-{label}.safetensors"
                header = {
                    "source": self.config.game,
                    "step": step,
                    "against": str(who),
                    "role": seats.role,
                    "label": label,
                }
                recorder.save(folder / name, env, header)
            for old in sorted(folder.glob("*.safetensors"))[: -self.config.log.replays or None]:
                old.unlink()

        return keep

    # -- the best ----------------------------------------------------------------------------------

    def note_best(self, record: Mapping[str, Any]) -> bool:
        """Is this the best evaluation so far (or as good)? Then its checkpoint is kept."""
        p, name = self.trainer.progress, self.config.checkpoint.best_metric
        if name is None or name not in record:
            return False
        lower = lower_is_better(name, self.trainer.batch.layout.describe())
        if p.best.get("metric") == name and not as_good(record[name], p.best["value"], lower):
            return False
        p.best = {"metric": name, "value": record[name], "step": p.agent_steps}
        return True
