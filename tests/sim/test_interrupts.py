"""Ctrl-C while rules are compiled: LLVM calls back into Python, and what such a callback raises is
dropped."""

import ctypes
import signal
from contextlib import contextmanager

import pytest

from ludus.sim import Batch, compile
from ludus.sim.interrupts import interruptible
from tests.sim.games import COUNTER


def press_in_callback():
    """As if Ctrl-C were pressed while a library calls back into Python."""
    ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGINT))()


def test_compiling_is_interrupted_though_a_callback_drops_it(monkeypatch, capsys):
    @contextmanager
    def dropped(*_):
        press_in_callback()
        raise RuntimeError("no compiled object yet")
        yield

    monkeypatch.setattr(compile, "_kept", dropped)
    with pytest.raises(KeyboardInterrupt):
        Batch(COUNTER, 2)
    assert (
        "gnored" not in capsys.readouterr().err
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )


def test_what_fails_because_of_it_is_no_error_of_its_own():
    with pytest.raises(KeyboardInterrupt), interruptible():
        press_in_callback()
        raise RuntimeError("no compiled object yet")
    with pytest.raises(RuntimeError, match="another"), interruptible():
        raise RuntimeError("another")


def test_a_handler_that_is_there_already_keeps_its_signals():
    pressed = []
    before = signal.signal(signal.SIGINT, lambda *_: pressed.append(1))
    try:
        with interruptible():
            press_in_callback()
    finally:
        signal.signal(signal.SIGINT, before)
    assert pressed == [1]
