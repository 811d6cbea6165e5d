"""Benchmarks measure in turn."""

import threading

from ludus.bench.turns import Turn


def test_a_second_one_waits_until_the_first_is_over(monkeypatch, tmp_path):
    monkeypatch.setenv("LUDUS_CACHE", str(tmp_path))
    order = []

    def other():
        with Turn() as turn:
            turn.wait()
            order.append("second")

    with Turn() as turn:
        turn.wait()
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(0.2)
        assert thread.is_alive()
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"]
    with Turn():  # one that never measures holds nobody up
        pass


def test_a_cache_that_cannot_be_written_ends_no_benchmark(monkeypatch):
    monkeypatch.setenv("LUDUS_CACHE", "/dev/null")
    with Turn() as turn:
        turn.wait()
