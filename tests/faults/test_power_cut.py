"""Whenever the power goes: once a run is there, a good checkpoint is found in it, with every
snapshot that it needs."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from ludus.runs import checkpoint
from ludus.runs.run import Run
from ludus.runs.snapshots import Pool
from tests.faults.points import RUN
from tests.faults.power import Disk, File
from tests.faults.trial import KINDS, differences, in_child, resume


def check_good(path: Path) -> None:
    """The newest checkpoint is whole, its snapshots and its part of every log are there."""
    run = Run(path)
    saved = checkpoint.Checkpoint(run, checkpoint.find(run, None))
    saved.verify()
    league = saved.manifest["league"]
    if league is not None:
        pool = Pool(run, 3)
        pool.restore(league["snapshots"], league["retired"])
        for step in (*pool.hashes, *pool.retired):
            pool.read(step)


class Cuts:
    """The power cuts of one training."""

    def __init__(self, shelf, kind: str) -> None:
        self.shelf, self.kind, self.trace = shelf, kind, shelf.trace(kind)
        self.home = shelf.folder / f"{kind}-whole"
        self.moments = range(1, len(self.trace) + 1)
        path, above = str(self.home / RUN), [str(p) for p in (self.home / RUN).parents]
        self.committed = next(
            i for i, o in enumerate(self.trace, 1) if o.kind == "rename" and o.target == path
        )
        while (
            self.trace[self.committed].kind == "sync" and self.trace[self.committed].path in above
        ):
            self.committed += 1

    def cut(self, moment: int, luck: random.Random | None = None, go_on: bool = False) -> bool:
        """The power goes after so many operations. Was there a run? It must be good, and `go_on` to
        the same end."""
        home = self.shelf.folder / f"{self.kind}-cut"
        shutil.rmtree(home, ignore_errors=True)
        Disk(self.home).replay(self.trace[:moment]).write_to(home, luck)
        path = home / RUN
        if not path.exists():
            assert moment < self.committed, (
                f"the run is gone after operation {moment}, {self.trace[moment - 1][:2]}"
            )
            return False
        try:
            check_good(path)
        except Exception as error:
            raise AssertionError(
                f"after operation {moment}, {self.trace[moment - 1][:2]}: {error}"
            ) from error
        if go_on:
            ended = in_child(lambda: resume(path))
            assert ended.how == "done", (moment, ended)
            assert not differences(path, self.shelf.whole(self.kind), ended.what == "resumed"), (
                moment
            )
        return True


def test_the_disk_holds_what_was_written_when_all_of_it_is_kept(shelf):
    """The model of the disk is right: with everything that was done it has the files that are
    really there."""
    cuts = Cuts(shelf, "league")
    disk = Disk(cuts.home).replay(cuts.trace)
    real = [p for p in cuts.home.rglob("*") if p.is_file() and p.name != "lock"]
    assert len(real) > 20
    for path in real:
        found = disk.find(str(path))
        assert isinstance(found, File) and found.content == path.read_bytes(), path


def test_a_sample_of_power_cuts_of_a_league(shelf):
    cuts, rng = Cuts(shelf, "league"), random.Random(0)
    assert sum(cuts.cut(moment) for moment in cuts.moments[::20]) > 12
    assert sum(cuts.cut(moment, rng) for moment in cuts.moments[::20]) > 12
    assert cuts.cut(cuts.moments[len(cuts.moments) // 2], rng, go_on=True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_moment(shelf, kind):
    """On the strict disk and on five lucky ones; thirty of each go on to the end."""
    cuts, rng = Cuts(shelf, kind), random.Random(kind)
    strict = sum(cuts.cut(moment) for moment in cuts.moments)
    lucky = sum(cuts.cut(moment, rng) for moment in cuts.moments for _ in range(5))
    after = [moment for moment in cuts.moments if moment >= cuts.committed]
    for luck in (None, rng):
        for moment in rng.sample(after, 30):
            cuts.cut(moment, luck, go_on=True)
    print(
        kind,
        len(cuts.moments),
        "moments,",
        strict,
        "with a run on the strict disk,",
        lucky,
        "on lucky ones, 60 went on",
    )
