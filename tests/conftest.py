"""What tests share. Compiled rules go to a folder of the test session, so every session starts from
a cold cache."""

import functools
import importlib.util
import os

import pytest

# Threads of torch that wait must not burn the core that another test process needs (read when torch
# is first imported).
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


@pytest.fixture(scope="session", autouse=True)
def kernel_cache(tmp_path_factory):
    if "LUDUS_CACHE" not in os.environ:
        base = tmp_path_factory.getbasetemp()
        # the processes of `pytest -n` compile for each other
        shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
        os.environ["LUDUS_CACHE"] = str(shared / "ludus-cache")


@pytest.fixture(scope="session", autouse=True)
def secret(tmp_path_factory):
    """What marks a run as made here is one for the session, not the user's own."""
    os.environ["XDG_CONFIG_HOME"] = str(tmp_path_factory.mktemp("config"))


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items):
    """Tests that compile the same game run in the same process of `pytest -n`, so that it is
    compiled once."""
    for item in items:
        name = item.path.stem.removeprefix("test_")
        if item.path.parent.name in ("conformance", "envs") and hasattr(item, "callspec"):
            name = str(item.callspec.params.get("name", name)).removesuffix("_lidar")
        item.add_marker(pytest.mark.xdist_group(name))


@pytest.fixture
def envs_in_this_process(monkeypatch):
    """Envs of other libraries are never put into worker processes. That goes by how long a step
    takes: on a crowded machine the measurement asks for workers, and every batch that a test makes
    would start programs that import everything anew."""
    monkeypatch.setattr("ludus.external.foreign.choose_workers", lambda seconds, num_envs: 0)


@functools.cache
def has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


@functools.cache
def cuda_compiler() -> bool:
    """numba-cuda with the libraries it compiles with (a GPU is not needed)."""
    if importlib.util.find_spec("numba_cuda") is None or importlib.util.find_spec("cuda") is None:
        return False
    from cuda.pathfinder import load_nvidia_dynamic_lib

    try:
        load_nvidia_dynamic_lib("nvvm")
        load_nvidia_dynamic_lib("nvrtc")
    except Exception:
        return False
    return True
