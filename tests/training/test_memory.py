"""What does not fit a GPU is refused before anything is allocated, with the number that would fit."""

import re

import pytest
import torch

from ludus.config import resolve
from ludus.errors import LudusError
from ludus.learn.ppo import PPO
from ludus.recipes import load_recipe
from ludus.training.memory import SPARE, bytes_per_env, check_memory, parts_per_env, replay_bytes
from ludus.training.sources import make_batch


def recipe(name, **changes):
    config = load_recipe(name)
    for key, value in changes.items():
        setattr(config, key, value)
    return resolve(config)


def free(monkeypatch, size):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (size, size))


def named(error):
    return int(re.search(r"at most ([\d,]+)", str(error.value))[1].replace(",", ""))


def test_bytes_are_those_of_the_simulator_and_the_rollout():
    config = recipe("pursuit", envs=8)
    batch = make_batch(config, 8, 0)
    ppo = PPO(batch, config)
    # on a GPU observations are kept in half precision: the rest is as on the CPU
    half = sum(role.rollout.observation.numel() * 2 for role in ppo.roles.values())
    assert 8 * bytes_per_env(config) == 8 * batch.layout.bytes_per_env() + ppo.buffer_bytes() - half


def test_the_number_of_envs_that_fits_is_named(monkeypatch):
    config = recipe("pursuit", envs=1_000_000)
    free(monkeypatch, 1_000_000_000)
    with pytest.raises(LudusError, match=r"1,000,000 envs of pursuit need .* GB") as error:
        check_memory(config)
    config.envs = named(error)
    assert config.envs * bytes_per_env(config) <= SPARE * 1_000_000_000
    check_memory(config)
    config.envs += 1
    with pytest.raises(LudusError):
        check_memory(config)


def test_a_million_camera_transitions_fit_into_5_gb_and_a_replay_that_does_not_is_refused(monkeypatch):
    config = recipe("racing")
    assert config.rainbow.replay == 1_000_000 and 4e9 < replay_bytes(config) < 5e9
    free(monkeypatch, 2_000_000_000)
    with pytest.raises(LudusError, match=r"a replay of 1,000,000 transitions needs 4\.2 GB") as error:
        check_memory(config)
    config.rainbow.replay = named(error)
    assert config.rainbow.replay > 300_000
    check_memory(config)
    config.rainbow.replay += config.envs
    with pytest.raises(LudusError):
        check_memory(config)


def test_what_recurrent_policies_remember_counts_for_learners_and_past_opponents():
    parts = parts_per_env(recipe("mechs_2v2"))
    hidden_and_cell = 2 * 128 * 4
    assert parts["memory"] == 2 * 4 * hidden_and_cell  # four mechs, played by the policy or by a snapshot
    alone = recipe("mechs_2v2")
    alone.league.mix = "self 100"
    assert parts_per_env(alone)["memory"] == 4 * hidden_and_cell


def test_4096_envs_of_ten_against_ten_fit_a_gpu_of_8_gb(monkeypatch):
    config = recipe("mechs", envs=4096)
    free(monkeypatch, 8_000_000_000)
    check_memory(config)
    config.envs = 16_384
    with pytest.raises(LudusError, match=r"16,384 envs of mechs need 10\.7 GB"):
        check_memory(config)
