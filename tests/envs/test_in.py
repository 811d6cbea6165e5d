"""Envs of other libraries as a batch: the same semantics in one process and in many, and what goes
wrong is named."""

import gc
import os
import resource
import shutil
import subprocess
import sys
import types

import gymnasium
import numpy as np
import pytest

from ludus.errors import LudusError
from ludus.external import processes
from ludus.external.foreign import ForeignBatch, choose_workers
from ludus.external.guests import make_env
from ludus.external.processes import SharedArrays
from ludus.games import load_game
from ludus.recipes import load_recipe
from ludus.sim.episode import RANDOM

ODD = "env:tests.envs.odd:"


def processes_of(batch):
    return [worker.process for worker in batch.host.workers]


@pytest.mark.parametrize("workers", [0, 2])
def test_an_episode_of_ten_steps(workers):
    """Row by row: reset, ten steps that earn 1 each, the last one terminates and shows its own
    observation, then a reset row."""
    batch = ForeignBatch(ODD + "counter", 3, workers=workers)
    assert (
        batch["resetting"].all() and not batch["valid"].any() and (batch["observation"] == 0).all()
    )
    for step in range(1, 11):
        batch.step()
        assert (
            batch["valid"].all()
            and (batch["reward"] == 1).all()
            and (batch["observation"] == step).all()
        )
        assert (batch["episode_length"] == step).all() and (batch["episode_return"] == step).all()
        assert (
            batch["finished"].all()
            == batch["counted"].all()
            == batch["agent_terminated"].all()
            == (step == 10)
        )
    batch.step()
    assert (
        batch["resetting"].all() and not batch["valid"].any() and (batch["observation"] == 0).all()
    )
    assert batch.read_valid_steps() == 30
    statistics = batch.read_statistics()["agent"]
    assert (
        statistics["episodes"] == 3 and statistics["return"] == 10 and statistics["truncated"] == 0
    )


def test_workers_change_nothing():
    """Random play of random envs, in one process and in three, over several episodes."""
    shown = []
    for workers in (0, 3):
        batch = ForeignBatch(ODD + "Noisy", 4, seed=5, workers=workers)
        batch.set_controller("agent", "random")
        rows = []
        for _ in range(25):
            batch.step()
            rows.append(
                (batch.numpy("observation"), batch.numpy("reward"), batch.numpy("episode_return"))
            )
        shown.append(rows)
    for one, other in zip(*shown, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    # every env has randomness of its own
    assert len({float(x) for x in shown[0][0][0].ravel()}) == 4


def test_truncation_is_not_termination():
    batch = ForeignBatch("gym:ludus.examine.probes:ProbeConstant-v0", 1)
    for _ in range(20):  # ProbeConstant cuts its episodes there
        batch.step()
    assert (
        batch["agent_truncated"][0, 0]
        and not batch["agent_terminated"][0, 0]
        and batch["finished"][0]
    )


def test_an_evaluation_does_not_wait_for_ever():
    """Cut after three of ten steps: truncated, counted as an episode of three, and the next one
    begins."""
    batch = ForeignBatch(ODD + "counter", 1, workers=0, longest=3)
    for _ in range(3):
        batch.step()
    assert batch["agent_truncated"][0, 0] and not batch["agent_terminated"][0, 0]
    assert (
        batch["counted"][0]
        and batch["episode_length"][0, 0] == 3
        and batch["observation"][0, 0, 0] == 3
    )
    batch.step()
    assert batch["resetting"][0] and batch["observation"][0, 0, 0] == 0
    batch.step()
    assert batch["valid"][0, 0] and batch["episode_length"][0, 0] == 1


def test_everything_in_one_container():
    """Hand-worked: one-hot 1 of 3, the flags 1 0, the box in order; pictures by channel; actions
    back in their spaces."""
    batch = ForeignBatch(ODD + "Mixed", 1, workers=0)
    assert np.allclose(batch["observation"][0, 0], [0, 1, 0, 1, 0, 0.1, 0.2, 0.3, 0.4])
    assert [int(batch[f"seen_o_eye{c}"][0, 0, 1, 2]) for c in range(3)] == [10, 20, 30]
    assert batch["seen_o_eye0"].sum() == 10
    assert list(batch.layout.choices.values()) == [
        ["5", "6", "7"],
        ["0", "1"],
        ["0", "1", "2", "3"],
    ]
    batch["continuous"][0, 0] = [-1.0, 0.5]
    batch["binary"][0, 0] = [1, 0, 1]
    batch["choices"][0, 0] = [2, 1, 3]
    batch.step()
    action = batch.host.guests[0].env.action
    assert np.allclose(action["move"], [-2.0, 7.5]) and action["keys"].tolist() == [1, 0, 1]
    assert action["modes"][0] == 7 and action["modes"][1].tolist() == [1, 3]


def test_masks_reach_the_policy_and_the_random_bot():
    batch = ForeignBatch(ODD + "Masked", 2, workers=0)
    assert batch.layout.actions_of("agent").choice_mask_at == [0] and batch["action_mask"][
        0, 0
    ].tolist() == [
        True,
        False,
        False,
        False,
    ]
    batch.set_controller("agent", "random")
    for step in range(1, 10):
        batch.step()  # the env asserts that nothing forbidden was done
        assert batch["action_mask"][1, 0].tolist() == [i == step % 4 for i in range(4)]


def test_agents_of_pettingzoo_have_roles_and_may_die():
    """Hand-worked: runner 0 earns 0 and dies in step 2, runner 1 earns 1 a step, the judge 2, until
    step 4."""
    batch = ForeignBatch(ODD + "Race", 2, workers=0)
    assert [(s.role, s.start, s.count) for s in batch.layout.seats] == [
        ("runner", 0, 2),
        ("judge", 2, 1),
    ]
    valid = []
    for _ in range(4):
        batch.step()
        valid.append(batch["valid"][0].tolist())
    assert valid == [[True] * 3, [True] * 3, [False, True, True], [False, True, True]]
    assert batch["episode_return"][1].tolist() == [0, 4, 8] and batch["episode_length"][
        1
    ].tolist() == [2, 4, 4]
    assert batch["observation"][0, 2].tolist() == [4, 0, 0]  # the judge's observation is padded
    assert batch["agent_terminated"][0].tolist() == [False, True, True] and batch["finished"].all()
    batch.set_controller("runner", "random")
    assert batch["controller"][0].tolist() == [RANDOM, RANDOM, 0]


@pytest.mark.parametrize(
    ("name", "workers", "message"),
    [
        (
            "Raises",
            0,
            r"env 0 of env:tests.envs.odd:Raises raised ZeroDivisionError in step 7: the ball left "
            r"the field",
        ),
        (
            "Raises",
            1,
            r"the ball left the field\n.*odd.py:\d+ in step: .*self.pay\(\).*\n.*odd.py:\d+ in "
            r"pay: raise ZeroDivisionError",
        ),
        ("Raises", 2, r"raised ZeroDivisionError in step 7: the ball left the field"),
        (
            "Exits",
            0,
            r"env 0 of .*Exits raised SystemExit in step 5: sys.exit\(\) would end the whole "
            r"program: .*\n.*odd.py:\d+ in step",
        ),
        (
            "Exits",
            2,
            r"env \d of .*Exits raised SystemExit in step 5: sys.exit\(\) would end the whole "
            r"program",
        ),
        ("ExitsInReset", 0, r"env 0 of .*ExitsInReset raised SystemExit in reset"),
        (
            "exits",
            0,
            r"env:tests.envs.odd:exits cannot be made: SystemExit: sys.exit\(\) would end",
        ),
        ("PaysNan", 0, r"env 0 of .*PaysNan, step 3: the reward is nan"),
        ("ShowsNan", 2, r"env \d of .*ShowsNan, step 4: the observation entry o0 is inf"),
        (
            "Outside",
            0,
            r"env 0 of .*Outside, step 3: the observation entry o0 is 101, but its space says 0 to "
            r"100: widen .*--train.",
        ),
        (
            "Outside",
            2,
            r"env \d of .*Outside, step 3: the observation entry o0 is 101, but its space says 0 "
            r"to 100",
        ),
        (
            "Grows",
            0,
            r"env 0 of .*, step 2: the observation does not match its space .*\(2,\) instead of "
            r"\(1,\)",
        ),
        (
            "Crashes",
            2,
            r"the process of env \d .*\(step 5 of its episode\) ended with status 3 in its step",
        ),
        ("Newcomer", 0, r"env 0 of .*, step 3: its agents changed: runner_0 came in"),
    ],
)
def test_what_goes_wrong_is_named(name, workers, message):
    with pytest.raises(LudusError, match=message):
        batch = ForeignBatch(ODD + name, 2, workers=workers)
        for _ in range(12):
            batch.step()


def test_leaving_the_program_while_closing_is_not_heard():
    batch = ForeignBatch(ODD + "ExitsInTheEnd", 2, workers=0)
    batch.host.close()


def test_a_module_or_a_recipe_that_leaves_the_program_is_named(monkeypatch, tmp_path):
    (tmp_path / "leaves.py").write_text("import sys\nsys.exit()")
    (tmp_path / "leaves_later.py").write_text("import sys\ndef recipe():\n    sys.exit()")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        LudusError, match=r"the module leaves calls sys.exit\(\) when it is imported"
    ):
        load_game("leaves:GAME")
    with pytest.raises(LudusError, match=r"the recipe 'leaves_later:recipe' called sys.exit\(\)"):
        load_recipe("leaves_later:recipe")


def test_shared_memory_without_room_is_replaced_by_a_file(monkeypatch, capsys):
    monkeypatch.setattr(processes, "SHARED_MEMORY", "/proc")  # no file can be made there
    assert SharedArrays({"a": ("float32", (1000,))}).arrays["a"].sum() == 0
    assert "/proc has no room for the 0.0 MB that env processes share" in capsys.readouterr().err
    limit, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, most))  # as a full disk
    try:
        with pytest.raises(
            LudusError, match=r"fit neither into /proc nor into .* --shm-size.*lower --envs"
        ):
            SharedArrays({"a": ("float32", (1000,))})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))


def test_a_container_with_little_shared_memory(tmp_path):
    """Writing into a mapped file beyond the room there is would kill the process."""
    mount = "mount -t tmpfs -o size=64k tmpfs /dev/shm"
    if (
        shutil.which("unshare") is None
        or subprocess.run(["unshare", "-m", "sh", "-c", mount], capture_output=True).returncode
    ):
        pytest.skip("file systems cannot be mounted here")
    code = (
        "from ludus.external.foreign import ForeignBatch\n"
        "batch = ForeignBatch('gym:CartPole-v1', 2000, workers=1)\n"
        "batch.step()\n"
        "print(sum(array.nbytes for array in batch.host.arrays.values()), batch['reward'].sum())"
    )
    command = f"{mount} && exec '{sys.executable}' -c \"{code}\""
    done = subprocess.run(["unshare", "-m", "sh", "-c", command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split()[0]) > 64_000 and float(done.stdout.split()[1]) == 2000
    assert done.stderr.count("\n") == 1 and "/dev/shm has no room" in done.stderr


def test_a_hanging_env_is_given_up():
    batch = ForeignBatch(ODD + "Hangs", 2, workers=1, step_seconds=0.5)
    (process,) = processes_of(batch)
    with pytest.raises(
        LudusError,
        match=r"env 0 of .*Hangs \(step 5 of its episode\) gave no answer for 0 s in its step",
    ):
        for _ in range(12):
            batch.step()
    assert process.poll() is not None


def test_no_process_outlives_its_batch():
    batch = ForeignBatch(ODD + "counter", 2, workers=2)
    started = processes_of(batch)
    del batch
    gc.collect()
    assert [process.poll() for process in started] == [0, 0]


def test_what_cannot_work_is_refused_at_once():
    with pytest.raises(LudusError, match=r"gym:Nothing-v0 cannot be made"):
        ForeignBatch("gym:Nothing-v0", 1)
    with pytest.raises(LudusError, match=r"pettingzoo:nowhere: there is no module nowhere"):
        ForeignBatch("pettingzoo:nowhere", 1)
    with pytest.raises(
        LudusError, match=r"pettingzoo:tests.envs.odd has no parallel_env: its agents take turns"
    ):
        ForeignBatch("pettingzoo:tests.envs.odd", 1)
    with pytest.raises(LudusError, match=r"no module 'nowhere'"):
        ForeignBatch("env:nowhere:make", 1)
    with pytest.raises(
        LudusError,
        match=r"env 3 of .* has the observation space Box.*\(2,\).*, env 0 has Box.*\(1,\)",
    ):
        ForeignBatch(ODD + "unequal", 4, workers=0)
    with pytest.raises(LudusError, match="use --device cpu"):
        ForeignBatch("gym:CartPole-v1", 1, device="cuda")


def test_slow_envs_get_workers_and_fast_ones_do_not(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(4)))
    assert choose_workers(20e-6, 16) == 0  # 0.32 ms alone, 0.38 ms shared
    assert choose_workers(5e-3, 16) == 4  # 80 ms alone, 20.3 ms shared
    assert choose_workers(5e-3, 1) == 0


def test_the_bench_counts_steps_of_foreign_envs(capsys):
    import json

    from ludus.cli import main

    with pytest.raises(SystemExit) as end:
        main(
            ["bench", "env", "--game", ODD + "counter", "--envs", "2", "--seconds", "0.1", "--json"]
        )
    assert end.value.code == 0
    result = json.loads(capsys.readouterr().out)
    assert (
        result["game"] == ODD + "counter"
        and result["agent_steps_per_s"] > 0
        and result["ratio"] == {}
    )
    with pytest.raises(SystemExit) as end:
        main(["bench", "env", "--game", "gym:CartPole-v1", "--against", "nobody"])
    assert end.value.code == 2 and "there is sb3" in capsys.readouterr().err


def test_packages_that_register_their_envs_on_demand(monkeypatch):
    """As minatar does: importing its module is not enough."""
    module = types.ModuleType("late_envs")
    module.register_envs = lambda: gymnasium.register(
        "Late/Pole-v0", "gymnasium.envs.classic_control.cartpole:CartPoleEnv"
    )
    monkeypatch.setitem(sys.modules, "late_envs", module)
    for _ in range(2):  # the second time it is there already
        assert make_env("gym:late_envs:Late/Pole-v0").observation_space.shape == (4,)
    del gymnasium.registry["Late/Pole-v0"]
