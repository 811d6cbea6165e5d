"""What does not fit a GPU is refused before anything is allocated, with the number that would
fit."""

import re
import resource
import subprocess
import sys

import pytest
import torch

from ludus import machine
from ludus.algorithms import algorithm
from ludus.algorithms.ppo.ppo import PPO
from ludus.batches import game_info, make_batch
from ludus.cli import main
from ludus.config import resolve
from ludus.errors import LudusError
from ludus.external.foreign import ForeignBatch
from ludus.games import load_game
from ludus.recipes import load_recipe
from ludus.sim import Batch
from ludus.training.memory import SPARE, check_memory, of_algorithm, parts_per_env


def recipe(name, **changes):
    config = load_recipe(name)
    config.device = "cuda"  # where it is not said otherwise
    for key, value in changes.items():
        setattr(config, key, value)
    return resolve(config)


def free(monkeypatch, size):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (size, size))


def bytes_of(config):
    return sum(parts_per_env(config, game_info(config)).values())


def named(error):
    return int(re.search(r"at most ([\d,]+)", str(error.value))[1].replace(",", ""))


def test_bytes_are_those_of_the_simulator_and_the_rollout():
    config = recipe("pursuit", envs=8, device="cpu")
    batch = make_batch(config, 8, 0)
    ppo = PPO(batch, config)
    assert 8 * bytes_of(config) == 8 * batch.layout.bytes_per_env() + ppo.buffer_bytes()
    config.device = "cuda"
    # observations are kept in half precision
    half = sum(role.rollout.observation.numel() * 2 for role in ppo.roles.values())
    assert 8 * bytes_of(config) == 8 * batch.layout.bytes_per_env() + ppo.buffer_bytes() - half


def test_the_number_of_envs_that_fits_is_named(monkeypatch):
    config = recipe("pursuit", envs=1_000_000)
    free(monkeypatch, 1_000_000_000)
    with pytest.raises(LudusError, match=r"1,000,000 envs of pursuit need .* GB") as error:
        check_memory(config, game_info(config))
    config.envs = named(error)
    assert config.envs * bytes_of(config) <= SPARE * 1_000_000_000
    check_memory(config, game_info(config))
    config.envs += 1
    with pytest.raises(LudusError):
        check_memory(config, game_info(config))


def test_a_million_camera_transitions_fit_into_5_gb_and_a_replay_that_does_not_is_refused(
    monkeypatch,
):
    config = recipe("racing")
    assert (
        config.learner.replay == 1_000_000
        and 4e9 < of_algorithm(config, game_info(config)).kept < 5e9
    )
    free(monkeypatch, 2_000_000_000)
    with pytest.raises(LudusError, match=r"rainbow\.replay=1,000,000 needs 4\.2 GB") as error:
        check_memory(config, game_info(config))
    config.learner.replay = named(error)
    assert config.learner.replay > 300_000
    check_memory(config, game_info(config))
    config.learner.replay += config.envs
    with pytest.raises(LudusError):
        check_memory(config, game_info(config))


def test_what_recurrent_policies_remember_counts_for_learners_and_past_opponents():
    parts = parts_per_env(recipe("mechs_2v2"), game_info(recipe("mechs_2v2")))
    hidden_and_cell = 2 * 128 * 4
    # four mechs, played by the policy or by a snapshot
    assert parts["memory"] == 2 * 4 * hidden_and_cell
    alone = recipe("mechs_2v2")
    alone.league.mix = "self 100"
    assert parts_per_env(alone, game_info(alone))["memory"] == 4 * hidden_and_cell


def test_4096_envs_of_ten_against_ten_fit_a_gpu_of_8_gb(monkeypatch):
    config = recipe("mechs", envs=4096)
    free(monkeypatch, 8_000_000_000)
    check_memory(config, game_info(config))
    config.envs = 16_384
    with pytest.raises(LudusError, match=r"16,384 envs of mechs need 10\.7 GB"):
        check_memory(config, game_info(config))


# -- the CPU's memory: Linux gives out more than there is, and kills the process that uses it ------


def test_what_a_batch_needs_is_refused_at_once(monkeypatch):
    monkeypatch.setattr("ludus.sim.batch.free_memory", lambda: 50_000_000)
    with pytest.raises(
        LudusError, match=r"1,000,000 envs of pursuit need .* GB but 0\.1 GB are free: set --envs"
    ) as error:
        Batch(load_game("pursuit")[0], 1_000_000)
    assert 0 < named(error) < 100_000


def test_what_is_kept_of_steps_counts_on_the_cpu_too(monkeypatch):
    config = recipe("pursuit", envs=100_000, device="cpu")
    monkeypatch.setattr("ludus.training.memory.free_memory", lambda: 1_000_000_000)
    with pytest.raises(
        LudusError, match=r"100,000 envs of pursuit need .* GB of memory are free: set --envs"
    ) as error:
        check_memory(config, game_info(config))
    config.envs = named(error)
    check_memory(config, game_info(config))
    # the system does not say
    monkeypatch.setattr("ludus.training.memory.free_memory", lambda: None)
    config.envs = 10_000_000
    check_memory(config, game_info(config))


def test_a_replay_counts_on_the_cpu_where_the_run_fills_it(monkeypatch):
    config = recipe("racing", device="cpu")
    monkeypatch.setattr("ludus.training.memory.free_memory", lambda: 2_000_000_000)
    config.train.total_agent_steps = 10_000
    check_memory(config, game_info(config))
    config.train.total_agent_steps = 10_000_000
    with pytest.raises(
        LudusError,
        match=r"rainbow\.replay=1,000,000 needs 4\.2 GB, and 2\.0 GB of memory are free",
    ):
        check_memory(config, game_info(config))


def test_memory_that_cannot_be_had_is_one_sentence(monkeypatch):
    """More than any address space holds."""
    monkeypatch.setattr("ludus.sim.batch.free_memory", lambda: None)
    with pytest.raises(LudusError, match=r"do not fit into memory.*use fewer \(--envs\)"):
        Batch(load_game("pursuit")[0], 10**13, jit=False)
    with pytest.raises(LudusError, match=r"do not fit into memory.*use fewer \(--envs\)"):
        ForeignBatch("gym:CartPole-v1", 10**14, workers=0)
    config = recipe("pursuit", envs=8, device="cpu")
    batch = make_batch(config, 8, 0)
    config.learner.rollout = 10**14
    with pytest.raises(
        LudusError,
        match=r"what ppo keeps of 8 envs of pursuit do not fit .*lower --envs or ppo.rollout",
    ):
        algorithm.make_algorithm(batch, config)


def test_running_out_of_memory_anywhere_ends_with_one_sentence(monkeypatch, capsys):
    def full(arguments):
        return bytearray(1 << 62)

    def torch_full(arguments):
        return torch.empty(1 << 60)

    for end in (full, torch_full):
        monkeypatch.setattr("ludus.commands.games.main", end)
        with pytest.raises(SystemExit) as status:
            main(["games"])
        said = capsys.readouterr().err
        assert (
            status.value.code == 2
            and said.startswith("ludus: out of memory")
            and said.count("\n") == 1
            and "--envs" in said
        )


def test_limits_of_the_process_and_of_the_container_count(monkeypatch, tmp_path):
    code = "from ludus.machine import free_memory; print(free_memory())"
    limit = 2_000_000_000
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert 0 < int(done.stdout) < limit, done.stderr
    for name, text in (
        ("memory.max", "1000000"),
        ("memory.current", "700000"),
        ("memory.stat", "anon 1\ninactive_file 200000\n"),
    ):
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(machine, "CGROUP", tmp_path)
    assert machine.free_memory() == 500_000
    (tmp_path / "memory.max").write_text("max")
    assert machine.free_memory() > 1_000_000
