"""Compiled functions are loaded only as they were written: whatever is wrong with a file, it is
said and they are compiled again."""

import errno
import os
import resource
import shutil
import subprocess
import sys
import threading
import types
from pathlib import Path

import pytest

from ludus.sim import compile, driver_cache
from ludus.sim.driver_cache import KernelFile, load_driver
from ludus.sim.program import Program
from tests.conftest import cuda_compiler

SOURCE = """
from numba import njit

@njit
def run(a, b):
    return a + b
"""


@pytest.fixture
def start(monkeypatch, tmp_path, capsys):
    """Loads a small driver as a new process does. Returns what it printed, and the file."""
    monkeypatch.setenv("LUDUS_CACHE", str(tmp_path))

    def start() -> tuple[str, Path]:
        driver_cache._say_not_kept.cache_clear()
        module, path = load_driver("tiny", [], SOURCE, {})
        try:
            with compile._kept(Program("tiny", ()), "cpu", module, path, ["run"]):
                module.run.compile((compile.numba.types.int64,) * 2)
            assert module.run(20, 22) == 42
        finally:
            driver_cache.forget(module)
        return capsys.readouterr().err, path

    return start


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "inside").write_text("")


def replace_by_another(path: Path) -> None:
    other = KernelFile(path.with_name("other-1"))
    other.functions = KernelFile(path).functions
    other.write()
    other.path.replace(path)


DAMAGE = {
    "one bit": flip,
    "cut": lambda path: os.truncate(path, path.stat().st_size // 2),
    "shorter than a checksum": lambda path: os.truncate(path, 5),
    "empty": lambda path: os.truncate(path, 0),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"more"),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "another driver's": replace_by_another,
    "a folder": folder,
    "a pipe": lambda path: (path.unlink(), os.mkfifo(path)),
    "a loop of links": lambda path: (path.unlink(), path.symlink_to(path)),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_what_is_damaged_is_compiled_again(start, kind):
    first, path = start()
    assert "compiling tiny for cpu (the first time" in first
    assert start()[0] == ""
    DAMAGE[kind](path)
    announced, _ = start()
    assert f"compiling tiny for cpu (again: {path} " in announced and announced.count("\n") == 2
    assert start()[0] == ""
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_what_is_missing_is_compiled(start):
    _, path = start()
    shutil.rmtree(path.parent)
    assert "the first time" in start()[0] and start()[0] == ""


def test_a_file_that_may_not_be_read_is_replaced(start, monkeypatch):
    start()

    def refuse(self):
        raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", refuse)  # permissions do not hold for root
        assert "cannot be read (Permission denied)" in start()[0]
    assert start()[0] == ""


def test_a_read_only_cache_is_used(start, monkeypatch):
    def refuse(*arguments, **options):
        raise OSError(errno.EROFS, "Read-only file system")

    start()
    monkeypatch.setattr(os, "utime", refuse)
    monkeypatch.setattr(Path, "mkdir", refuse)
    monkeypatch.setattr(Path, "write_bytes", refuse)
    assert start()[0] == ""
    monkeypatch.setenv("LUDUS_CACHE", "/another")  # without compiled rules
    assert (
        "are not kept: cannot write /another/kernels (Read-only file system): set LUDUS_CACHE"
        in start()[0]
    )


def test_a_disk_that_fills_while_writing(start, tmp_path):
    limit, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, most))
    try:
        announced, path = start()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))
    assert "compiled rules are not kept: cannot write" in announced
    assert list(path.parent.iterdir()) == []
    assert "the first time" in start()[0] and start()[0] == ""


def test_others_that_write_are_never_seen_half_done(tmp_path):
    path = tmp_path / "tiny-1"
    stop = threading.Event()

    def write(content: bytes) -> None:
        file = KernelFile(path)
        file.functions = {"run": content}
        while not stop.is_set():
            file.write()

    writers = [threading.Thread(target=write, args=(bytes([k]) * 100_000,)) for k in range(3)]
    for writer in writers:
        writer.start()
    try:
        while not path.exists():
            pass
        for _ in range(300):
            file = KernelFile(path)
            assert not file.damage and len(file.functions["run"]) == 100_000
    finally:
        stop.set()
        for writer in writers:
            writer.join()


def test_the_oldest_files_are_dropped(tmp_path, monkeypatch):
    monkeypatch.setattr(driver_cache, "KEEP_FILES", 2)
    folder = tmp_path / "older-layout"
    folder.mkdir()
    (folder / "driver.py").write_text("")
    os.utime(folder, (1, 1))
    for age in (4, 3, 2):
        file = KernelFile(tmp_path / f"game-{age}")
        file.functions = {"run": b""}
        file.write()
        os.utime(file.path, (100 - age, 100 - age))
    KernelFile(tmp_path / "game-3")  # being read counts as use
    file.path = tmp_path / "game-1"
    file.write()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["game-1", "game-3"]


def test_a_driver_is_executed_from_memory(start, tmp_path):
    """A file with its name beside the compiled functions is never run."""
    _, path = start()
    path.unlink()
    path.mkdir()
    (path / "driver.py").write_text("raise SystemExit('executed')")
    start()


def test_no_home_folder_is_said():
    code = (
        "import pathlib, ludus.sim.driver_cache as c\ntry: c.cache_root()\nexcept c.LudusError "
        "as e: print(e)"
    )
    patch = (
        "import os, pwd; os.environ.pop('HOME'); pwd.getpwuid = lambda n: (_ for _ in "
        "()).throw(KeyError(n))\n"
    )
    env = {k: v for k, v in os.environ.items() if k not in ("LUDUS_CACHE", "XDG_CACHE_HOME")}
    done = subprocess.run(
        [sys.executable, "-c", patch + code], env=env, capture_output=True, text=True
    )
    assert "set LUDUS_CACHE to a folder" in done.stdout, done.stderr


@pytest.mark.skipif(
    not cuda_compiler(),
    reason="the CUDA compiler (pip install 'ludus[cuda-compiler]') is not installed",
)
def test_kernels_for_a_gpu_come_back_as_they_were(monkeypatch, tmp_path, capsys):
    """As on a machine with a GPU, which is needed only to run them."""
    monkeypatch.setenv("LUDUS_CACHE", str(tmp_path))
    compile._import_cuda()
    from numba.cuda import codegen, dispatcher

    chip = (9, 0)
    monkeypatch.setattr(
        dispatcher, "get_current_device", lambda: types.SimpleNamespace(compute_capability=chip)
    )
    monkeypatch.setattr(dispatcher._Kernel, "bind", lambda self: None)
    monkeypatch.setattr(codegen.JITCUDACodegen, "magic_tuple", lambda self: chip)
    monkeypatch.setattr(codegen.CUDACodeLibrary, "_ensure_cc", lambda self, cc: chip)
    source = """
from numba import cuda

@cuda.jit
def kernel_0(values):
    values[cuda.grid(1)] += 1
"""
    texts = []
    for announced in (2, 0):
        module, path = load_driver("tiny", [], source, {})
        with compile._kept(Program("tiny", ()), "cuda", module, path, ["kernel_0"]):
            kernel = module.kernel_0.compile((compile.numba.types.float32[::1],))
        driver_cache.forget(module)
        texts.append(kernel._codelibrary.get_asm_str(cc=chip))
        assert capsys.readouterr().err.count("\n") == announced
    assert texts[0] == texts[1] and ".entry" in texts[0]
