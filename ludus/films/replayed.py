"""Films of a run's replays, with what its policies think in them."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ludus.errors import LudusError
from ludus.external.recording import Recording, is_recording
from ludus.films.film import Film
from ludus.films.recorded import RecordedFilm
from ludus.films.resimulate import Script, make_batch
from ludus.films.shows import Show, Shows
from ludus.play.replay import Replay
from ludus.protocols import Layout
from ludus.runs import checkpoint
from ludus.runs.load import check_same_layout, load_policies
from ludus.runs.run import Run
from ludus.sim import Batch

KEPT = 4  # batches in memory


class FilmMaker:
    """Makes films; batches of the games that were played last are kept."""

    def __init__(self, shows: Shows) -> None:
        self.shows = shows
        self._batches: OrderedDict[str, Batch] = OrderedDict()

    def make(self, run: Run, path: Path) -> Film | RecordedFilm:
        """A game is played again, an env of another library was recorded."""
        if is_recording(path):
            return RecordedFilm(Recording(path))
        script = Script(Replay(path), self.shows, self._batch)
        policies, note = self.policies_near(run, script)
        return script.film(policies, note)

    def _batch(self, show: Show, overrides: Mapping[str, float]) -> Batch:
        """Replays of the same game and settings share one batch: making it takes longer than
        playing them."""
        key = json.dumps([show.source, overrides], sort_keys=True)
        if key not in self._batches:
            self._batches[key] = make_batch(show, overrides)
            while len(self._batches) > KEPT:
                self._batches.popitem(last=False)
        return self._batches[key]

    def policies_near(self, run: Run, script: Script) -> tuple[dict[str, Any] | None, str]:
        """The policies of the checkpoint nearest to when a replay was recorded; a run without any
        has none."""
        steps = checkpoint.steps(run)
        if not steps or script.step is None:
            return None, "no checkpoint is left: nothing to say about what it thinks"
        step = min(steps, key=lambda s: abs(s - (script.step or 0)))
        try:
            policies = self.load(run, step, script.batch.layout)
        except LudusError as error:
            return None, str(error)
        exact = step == script.step
        return policies, f"the policy of step {step:,}" + (
            "" if exact else f"; the one that played (step {script.step:,}) is gone"
        )

    def load(self, run: Run, step: int, layout: Layout) -> dict[str, Any]:
        """The policies of a checkpoint, which must fit the layout that they are to play in."""
        self.shows.find(run.settings().game)  # refuses a game that may not be imported
        reference = f"{run.path}@{step}"
        theirs = checkpoint.find_checkpoint(reference).manifest["layout"]
        ours = json.loads(json.dumps(layout.describe()))  # as a manifest has it
        check_same_layout(theirs, ours, f"the replay and {reference}")
        policies, _ = load_policies(reference, layout)
        return policies
