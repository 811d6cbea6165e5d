"""Tasks on CUDA: every score reaches its own task, parameters change in reset rows only, a resumed
run goes on exactly."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import ludus
from ludus.curriculum.tasks import Tasks
from ludus.runs import checkpoint
from ludus.sim import Batch
from tests.conftest import has_gpu
from tests.curriculum.test_tasks import GAME, config

pytestmark = [pytest.mark.cuda, pytest.mark.skipif(not has_gpu(), reason="no CUDA GPU")]


def test_every_score_reaches_its_own_task_in_reset_rows_only():
    settings = config(envs=64)
    batch = Batch(GAME, 64, device="cuda", stagger=True)
    tasks = Tasks(settings, batch, lambda n: Batch(GAME, n, device="cuda"))
    tasks.begin(1)
    batch.check_received(tasks.varied())
    before = batch.numpy("task")
    for i in range(60):
        for _ in range(7):
            batch.step()
            now = batch.numpy("task")
            assert not ((now != before) & ~batch.numpy("resetting")).any()
            before = now
        tasks.after_iteration(i)
    pool = tasks.pool
    played = [place for place, count in enumerate(pool.count) if count]
    assert pool.evicted > 10 and len(played) > 20
    assert np.allclose(
        [pool.fast[p] for p in played], [pool.tasks[p][0] for p in played], atol=1e-4
    )


def test_a_resumed_run_goes_on_exactly(tmp_path):
    settings = config(4000, envs=16, rollout=8)
    settings.device = "cuda"
    run = ludus.train(settings, run=tmp_path / "run", quiet=True)
    steps = checkpoint.steps(run)
    end = checkpoint.folder(run, steps[-1])

    def ending():
        return load_file(end / "policy.safetensors"), json.loads(
            (end / "manifest.json").read_text()
        )["tasks"]

    policy, tasks = ending()
    ludus.resume(f"{run.path}@{steps[len(steps) // 2]}", quiet=True)
    again, tasks_again = ending()
    assert tasks == tasks_again and all(
        torch.equal(tensor, again[name]) for name, tensor in policy.items()
    )
