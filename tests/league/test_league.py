"""The league in real training: opponents change between episodes only, snapshots stay what they
were, resume goes on."""

import hashlib
import json
import shutil
from collections import Counter

import numpy as np
import pytest
import torch

import ludus
from ludus.algorithms.ppo import PPOConfig
from ludus.config import (
    Config,
    CurriculumConfig,
    EvalConfig,
    LeagueConfig,
    PolicyConfig,
    TrainConfig,
)
from ludus.errors import LudusError
from ludus.play.together import Together
from ludus.runs import checkpoint
from ludus.training.loop import Trainer
from ludus.training.start import create, prepare
from ludus.who import Who
from tests.league.watching import watch_opponents


def config(steps=40_000, mix="self 1, pool 2, bot:flee 1", stages=(), **league):
    return Config(
        game="pursuit",
        envs=16,
        game_values={"max_steps": 20.0},
        policy=PolicyConfig(hidden=(16,), memory="lstm", memory_size=8),
        learner=PPOConfig(rollout=16, bptt=16, minibatches=2, epochs=1, learning_rate=1e-3),
        league=LeagueConfig(
            **{"mix": mix, "slots": 4, "snapshot_every": 4_000, "renew_every": 2, **league}
        ),
        curriculum=CurriculumConfig(stages=stages),
        train=TrainConfig(total_agent_steps=steps, threads=1),
        eval=EvalConfig(episodes=4, against=("self",), every_agent_steps=10**9),
    )


def made(tmp_path, **values) -> Trainer:
    return create(tmp_path / "run", *prepare(config(**values)))


def test_real_training_keeps_opponents_within_episodes_and_starts_their_memory_fresh(tmp_path):
    seen = watch_opponents(made(tmp_path), iterations=30)
    assert seen["swapped"] >= 5 and seen["fresh"] >= 20 and seen["several at once"] >= 5


def test_the_same_holds_where_snapshots_act_together_as_on_a_gpu(tmp_path):
    trainer = made(tmp_path)
    league = trainer.league
    trainer.algorithm.opponents = [
        Together([league.players[k, role] for k in range(4)]) for role in league.policies
    ]
    seen = watch_opponents(trainer, iterations=30)
    assert seen["swapped"] >= 5 and seen["fresh"] >= 20 and seen["several at once"] >= 5


def test_the_pool_is_met_in_its_blocks_alone_and_as_often_as_the_mix_says(tmp_path):
    """A quarter of 16 envs in two blocks: two envs each, always against the pool; the other twelve
    share out the rest, 1 to 2."""
    trainer = made(tmp_path, mix="self 1, pool 1, bot:flee 2", slots=2, renew_every=10**6)
    league, batch, met = trainer.league, trainer.batch, Counter()
    assert [league.block(k) for k in range(2)] == [slice(0, 2), slice(2, 4)]
    step = batch.step

    def watched() -> None:
        step()
        for env in np.flatnonzero(batch["resetting"]):
            met[league.lineups[batch["lineup"][env]].opponent, bool(env < 4)] += 1

    batch.step = watched
    for _ in range(60):
        trainer.iterate()
    assert {place for (opponent, place) in met if opponent == "pool"} == {True} and set(met) == {
        ("pool", True),
        ("self", False),
        ("bot:flee", False),
    }
    outside = met["self", False] + met["bot:flee", False]
    assert (
        outside > 400 and abs(met["self", False] / outside - 1 / 3) < 4 * (2 / 9 / outside) ** 0.5
    )
    assert 0.15 < met["pool", True] / (met["pool", True] + outside) < 0.35


def test_memories_of_another_number_of_envs_are_refused(tmp_path):
    league = made(tmp_path).league
    league.begin()
    larger = {name: tensor.repeat(2, 1) for name, tensor in league.tensors().items()}
    with pytest.raises(LudusError, match=r"older version.*--init-from"):
        league.load_state(league.state(), larger)


def test_snapshots_are_copies_that_never_change(tmp_path):
    trainer = made(tmp_path)
    hashes = {}
    for _ in range(20):
        trainer.iterate()
        for step in trainer.league.pool.steps:
            path = trainer.league.pool.path(step)
            now = hashlib.sha256(path.read_bytes()).hexdigest()
            assert hashes.setdefault(step, now) == now
    assert len(hashes) >= 3
    weights = [
        trainer.league.pool.read(step)["chaser/action_head.weight"]
        for step in trainer.league.pool.steps
    ]
    assert not torch.equal(weights[0], weights[-1])
    trainer.league.pool.path(0).write_bytes(b"something else")
    with pytest.raises(LudusError, match="is not the file that was written"):
        trainer.league.pool.read(0)


def test_a_trainer_measures_itself_against_a_few_of_its_snapshots(tmp_path):
    trainer = made(tmp_path)
    for _ in range(20):
        trainer.iterate()
    before = {n: t.clone() for n, t in trainer.league.policies["chaser"].state_dict().items()}
    trainer.config.eval.episodes = 10
    found = trainer.evaluations.against(Who("snapshots"))
    assert set(found) >= {"catch_rate", "survival", "chaser/win_rate", "runner/draw_rate"}
    assert found == trainer.evaluations.against(Who("snapshots"))
    assert all(
        torch.equal(before[n], t) for n, t in trainer.league.policies["chaser"].state_dict().items()
    )


def test_evaluations_in_training_play_snapshots_where_asked(tmp_path):
    asked = config(steps=6000)
    asked.eval.against, asked.eval.greedy = ("snapshots",), False
    last = ludus.train(asked, run=tmp_path / "run", quiet=True).metrics()[-1]
    assert last["eval/snapshots/chaser/win_rate_low"] <= last["eval/snapshots/chaser/win_rate"]
    asked.league.mix = "self 1"
    with pytest.raises(LudusError, match="none are taken: add pool"):
        prepare(asked)


def test_opponents_rows_are_not_learned_from(tmp_path):
    trainer = made(tmp_path, mix="bot:flee 1")
    for _ in range(4):
        trainer.iterate()
    assert not trainer.algorithm.roles["runner"].rollout.valid.any()
    assert trainer.algorithm.roles["chaser"].rollout.valid.any()


def weights_and_logs(run):
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    kept = [
        {
            k: v
            for k, v in line.items()
            if not k.startswith(("speed/", "memory/", "progress/seconds"))
        }
        for line in lines
    ]
    newest = max((run / "checkpoints").iterdir())
    snapshots = {
        p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in (run / "snapshots").iterdir()
    }
    return (
        kept,
        (newest / "policy.safetensors").read_bytes(),
        (run / "matches.jsonl").read_text(),
        snapshots,
    )


def test_resume_goes_on_exactly_with_slots_snapshots_and_results(tmp_path):
    whole = ludus.train(config(), run=tmp_path / "whole", quiet=True)
    half = ludus.train(
        config(steps=20_000, snapshot_every=4_000), run=tmp_path / "half", quiet=True
    )
    ludus.resume(half.path, quiet=True, total_agent_steps=40_000)
    a, b = weights_and_logs(whole.path), weights_and_logs(half.path)
    assert a[1] == b[1] and a[3] == b[3] and a[2] == b[2]
    assert len(a[0]) == len(b[0]) and a[0][-1].keys() == b[0][-1].keys()
    assert a[0][-1] == b[0][-1]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"slots": 17}, "16 envs are fewer than the 17 slots"),
        ({"sampler": "newest"}, "league.sampler=newest is unknown"),
        ({"mix": "self 0"}, "sums to 0"),
        ({"mix": "pool 1"}, "every lineup has a frozen opponent"),
    ],
)
def test_a_league_that_cannot_work_is_refused(tmp_path, values, words):
    with pytest.raises(LudusError, match=words):
        made(tmp_path, **values)
    assert not list(tmp_path.iterdir())


def test_every_kept_checkpoint_of_a_full_pool_can_be_resumed(tmp_path):
    """A pool of 3 drops snapshots all the time: those that a kept checkpoint refers to stay on
    disk, all others go."""
    settings = config(steps=24_000, mix="self 1, pool 1", pool_size=3, snapshot_every=1500, slots=2)
    settings.checkpoint.every_agent_steps, settings.checkpoint.every_seconds = 5_000, None
    run = ludus.train(settings, run=tmp_path / "run", quiet=True)
    kept = checkpoint.steps(run)
    leagues = [checkpoint.read_manifest(run, step)["league"] for step in kept]
    referenced = {int(s) for league in leagues for s in (*league["snapshots"], *league["retired"])}
    assert len(kept) >= 4 and len(referenced) > 3  # more than the pool holds
    assert {int(path.stem) for path in (run.path / "snapshots").iterdir()} == referenced
    for step in kept[1:-1]:
        shutil.copytree(run.path, tmp_path / str(step))
        again = ludus.resume(
            f"{tmp_path / str(step)}@{step}", quiet=True, total_agent_steps=step + 1500
        )
        assert checkpoint.steps(again)[-1] > step


def contents(folder):
    return {
        p.relative_to(folder): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and p.name != "lock"
    }


def test_a_resume_that_fails_changes_nothing(tmp_path):
    """A snapshot of an older checkpoint is gone: newer checkpoints, logs and all other snapshots
    stay as they were."""
    settings = config(steps=12_000, mix="self 1, pool 1", snapshot_every=1500, slots=2)
    settings.checkpoint.every_agent_steps, settings.checkpoint.every_seconds = 4_000, None
    run = ludus.train(settings, run=tmp_path / "run", quiet=True)
    middle = checkpoint.steps(run)[1]
    league = checkpoint.read_manifest(run, middle)["league"]
    lost = league["slots"][0]["snapshots"]["chaser"]
    (run.path / "snapshots" / f"{lost:012d}.safetensors").unlink()
    before = contents(run.path)
    with pytest.raises(LudusError, match="cannot be read"):
        ludus.resume(f"{run.path}@{middle}", quiet=True, total_agent_steps=20_000)
    assert contents(run.path) == before


def test_a_member_of_the_pool_that_nobody_plays_now_is_missed_at_once(tmp_path):
    settings = config(steps=12_000, mix="self 1, pool 1", snapshot_every=1500, slots=1)
    settings.checkpoint.every_agent_steps, settings.checkpoint.every_seconds = 4_000, None
    run = ludus.train(settings, run=tmp_path / "run", quiet=True)
    league = checkpoint.read_manifest(run, checkpoint.steps(run)[-1])["league"]
    playing = {step for slot in league["slots"] for step in slot["snapshots"].values()}
    unused = next(int(step) for step in league["snapshots"] if int(step) not in playing)
    path = run.path / "snapshots" / f"{unused:012d}.safetensors"
    *all_but_last, last = path.read_bytes()
    path.write_bytes(bytes([*all_but_last, last ^ 1]))
    before = contents(run.path)
    with pytest.raises(LudusError, match=r"not the file that was written.*older checkpoint"):
        ludus.resume(run.path, quiet=True, total_agent_steps=20_000)
    assert contents(run.path) == before
