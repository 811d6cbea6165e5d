"""Bad clients at the sockets: a training of remote envs and the viewer go on with their honest
ones, and say no traceback.

The quick tests have the server in this process; the slow ones send 1,500 mutations to the commands
as a user starts them.
"""

import http.client
import json
import os
import random
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import pytest

pytest.importorskip(
    "websockets", reason="remote envs (pip install 'ludus[remote]') are not installed"
)

from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from examples.remote_client import HELLO, Line, answer
from ludus.external.foreign import ForeignBatch
from ludus.external.gate import Gate
from tests.faults.messages import BINARY, PING, Raw, frame, frames, mutate, mutate_request
from tests.viewer.shelf import fake_run, record, serving

ONE_ENV = {**HELLO, "envs": 1}
OFFERED = {
    **HELLO,
    "agents": ["agent"],
    "masks": False,
    "action": {"continuous": [], "binary": [], **HELLO["action"]},
}
HONEST_ENVS, FREE_ROWS = 2, 4
REPLAY = "000000000007-bots-pursuit-best.safetensors"


# -- remote envs -----------------------------------------------------------------------------------


class Honest(threading.Thread):
    """A client that does right, and comes back if it must. `answered`: steps."""

    def __init__(self, url):
        super().__init__(daemon=True)
        self.url, self.answered, self.refusals, self.stop = url, 0, [], False
        self.start()

    def run(self):
        envs = [Line() for _ in range(HONEST_ENVS)]
        while not self.stop:
            try:
                with connect(self.url, close_timeout=1) as socket:
                    socket.send(json.dumps({**HELLO, "envs": HONEST_ENVS}))
                    for text in socket:
                        message = json.loads(text)
                        if message["type"] == "step":
                            socket.send(json.dumps(answer(message, envs)))
                            self.answered += 1
                        elif message["type"] == "refused":
                            self.refusals.append(message["reason"])
            except (OSError, WebSocketException):
                time.sleep(0.05)

    def goes_on(self, steps=20, seconds=60):
        target, until = self.answered + steps, time.monotonic() + seconds
        while self.answered < target:
            assert time.monotonic() < until, (
                f"{self.answered} of {target} steps; refused: {self.refusals}"
            )
            time.sleep(0.01)


def attack_gate(url, seed, seconds=2.0):
    """One bad client. Returns how it ended: the trainer's reason in its first words, or what else
    happened."""
    rng = random.Random(seed)
    kind = ("request", "hello", "result", "result", "order")[seed % 5]
    try:
        with Raw(url, seconds=seconds) as raw:
            if kind == "request":
                raw.send(mutate_request(rng, raw.request()))
                raw.read_rest()
                return "request: answered"
            raw.handshake()
            if kind == "order":
                _talk_out_of_turn(rng, raw)
            elif kind == "hello":
                raw.send(frames(rng, mutate(rng, OFFERED)))
            else:
                raw.say(ONE_ENV)
                while (message := json.loads(raw.read()))["type"] != "step":
                    pass
                result = (
                    {**answer(message, [Line()]), "memory_mb": 3.5}
                    if all(message["reset"])
                    else {"type": "result", "step": message["step"]}
                )
                raw.send(frames(rng, mutate(rng, result)))
            while True:
                message = json.loads(raw.read())
                if message["type"] == "refused":
                    reason = message["reason"]
                    if not reason.isprintable() or len(reason) > 300:
                        return f"WRONG: seed {seed}: {reason!r}"
                    return f"{kind}: " + " ".join(re.sub(r"'[^']*'|\d+", "…", reason).split()[:5])
                if message["type"] == "step":
                    return f"{kind}: accepted"
    except TimeoutError:
        return (
            f"{kind}: no answer"  # what it sent is not over yet, or nothing that had to be answered
        )
    except (OSError, EOFError):
        return f"{kind}: closed"


def _talk_out_of_turn(rng, raw):
    result = {
        "type": "result",
        "step": 1,
        "observation": [[[0, 0]]],
        "reward": [[0]],
        "terminated": [[0]],
        "truncated": [[0]],
    }
    chosen = rng.randrange(7)
    if chosen == 0:  # before hello
        raw.say(result)
    elif chosen == 1:  # hello twice
        raw.say(ONE_ENV)
        raw.say(ONE_ENV)
    elif chosen == 2:  # far more than was asked for
        raw.say(ONE_ENV)
        for _ in range(200):
            raw.send(frame(json.dumps(result).encode() + b" " * 50_000))
    elif chosen == 3:  # as if it were the trainer
        raw.say(ONE_ENV)
        raw.say({"type": "step", "step": 1, "reset": [True], "seed": [1]})
    elif chosen == 4:
        raw.say(ONE_ENV)
        raw.send(frame(b"\x00" * 1000, BINARY) + frame(b"", PING) * 1000)
    elif chosen == 5:  # nothing at all
        raw.socket.settimeout(0.3)
    else:  # an answer without an end
        raw.say(ONE_ENV)
        raw.send(frame(b"[" * 1000, final=False) * 3)
        raw.socket.settimeout(0.3)


def attack(one, where, seeds, workers=4):
    """Several bad clients at once; how often each end was met."""
    with ThreadPoolExecutor(workers) as pool:
        ends = Counter(pool.map(lambda seed: one(where, seed), seeds))
    print(json.dumps(dict(ends.most_common()), indent=1))
    assert not (wrong := [end for end in ends if end.startswith("WRONG")]), "\n".join(wrong)
    return ends


def test_a_batch_goes_on_beside_bad_clients(capfd):
    gate = Gate.at("0")
    honest, over = Honest(gate.url()), threading.Event()
    batch = ForeignBatch("remote:0", HONEST_ENVS + FREE_ROWS)
    stepped = []

    def step():
        while not over.is_set():
            batch.step()
            stepped.append(bool(batch["valid"].any()))

    stepping = threading.Thread(target=step)
    stepping.start()
    try:
        ends = attack(partial(attack_gate, seconds=0.3), gate.url(), range(100))
        honest.goes_on()
        assert stepping.is_alive() and any(stepped) and not honest.refusals
        assert sum(count for end, count in ends.items() if "no answer" not in end) > 60, ends
        assert sum(client.inbox.qsize() for client in gate.clients) <= 1 + len(gate.clients)
    finally:
        over.set()
        stepping.join(30)
        honest.stop = True
        gate.close()
    assert "Traceback" not in capfd.readouterr().err


# -- the viewer ------------------------------------------------------------------------------------

SAID = {
    "keys": ["w", "a"],
    "watch": 1,
    "paused": False,
    "speed": 4.0,
    "restart": True,
    "take": None,
}
QUERY = [
    "game=pursuit",
    "agents=chaser=bot:greedy",
    "agents=bot:flee",
    "value=max_steps=50",
    "seed=3",
    "take=0",
    "run=shelf",
    f"replay={REPLAY}",
    "at=2",
]
PATHS = [
    "/",
    "/api/runs",
    "/api/games",
    "/api/run/shelf",
    f"/api/run/shelf/replay/{REPLAY}",
    f"/api/run/shelf/replay/{REPLAY}/seen/0",
    "/api/run/x",
]
STRANGE_TEXT = [
    "",
    "%C2%B2",
    "%D9%A3",
    "9" * 400,
    "-1",
    "nan",
    "inf",
    "1e400",
    "%00",
    "%ff%fe",
    "%ed%a0%80",
    "../..",
    "a" * 1500,
    "runners=1e9",
    "max_steps=nan",
    "pursuit:nope",
    "os:path",
    "[]",
    "'",
    "%F0%9F%82%A1",
    "bot:" + "x" * 300,
]


def origin_of(where):
    return where.replace("ws:", "http:").rstrip("/")


def attack_viewer(where, seed, seconds=2.0):
    rng = random.Random(seed)
    kind = ("request", "query", "message", "message")[seed % 4]
    url = f"{where}ws/stage?game=pursuit"
    if kind == "request" and rng.random() < 0.7:
        path = (
            rng.choice(PATHS)
            .replace("shelf", rng.choice(("shelf", "shelf", *STRANGE_TEXT)))
            .replace("/0", "/" + rng.choice(STRANGE_TEXT))
        )
        url = where.rstrip("/") + path
    elif kind == "query":
        parts = [part for part in QUERY if rng.random() < 0.6]
        for _ in range(rng.choice((1, 2))):
            at = rng.randrange(len(parts) + 1)
            parts.insert(at, rng.choice(QUERY).partition("=")[0] + "=" + rng.choice(STRANGE_TEXT))
        url = f"{where}ws/stage?{'&'.join(parts)}"
    try:
        with Raw(url, origin_of(where), seconds=seconds) as raw:
            if kind == "request":
                lines = (
                    raw.request()
                    if "ws/stage" in url
                    else [line for line in raw.request() if b"pgrade" not in line]
                )
                raw.send(mutate_request(rng, lines))
                answered = raw.read_rest(100_000)
                if b" 500 " in answered[:20]:
                    return f"WRONG: seed {seed}: {url} {answered!r}"
                return f"request: {answered[9:12].decode(errors='replace')}"
            raw.handshake()
            if kind == "message":
                raw.read()
                raw.send(
                    frames(
                        rng,
                        mutate(
                            rng,
                            {name: value for name, value in SAID.items() if rng.random() < 0.7}
                            or SAID,
                        ),
                    )
                )
            for _ in range(6):
                told = raw.read()
                if told.startswith(b"{"):
                    reason = json.loads(told)["error"]
                    if "the viewer failed" in reason or len(reason) > 600:
                        return f"WRONG: seed {seed}: {url} {reason!r}"
                    return f"{kind}: " + " ".join(re.sub(r"'[^']*'|\d+", "…", reason).split()[:4])
            return f"{kind}: accepted"
    except TimeoutError:
        return f"{kind}: no answer"
    except ConnectionError as error:
        return f"{kind}: {str(error)[9:12] or 'closed'}"
    except (OSError, EOFError):
        return f"{kind}: closed"


class Watching(threading.Thread):
    """An honest page that watches a game at sixteen times its speed."""

    def __init__(self, where):
        super().__init__(daemon=True)
        self.where, self.frames, self.stop, self.failed = where, 0, False, ""
        self.start()

    def run(self):
        try:
            with connect(
                f"{self.where}ws/stage?game=pursuit", origin=origin_of(self.where), max_size=2**24
            ) as socket:
                socket.send('{"speed": 16}')
                while not self.stop:
                    socket.recv(30)
                    self.frames += 1
        except Exception as error:
            self.failed = repr(error)

    def goes_on(self, frames=10, seconds=60):
        target, until = self.frames + frames, time.monotonic() + seconds
        while self.frames < target:
            assert time.monotonic() < until and not self.failed, self.failed
            time.sleep(0.01)


def get(where, path):
    connection = http.client.HTTPConnection(where.removeprefix("ws://").rstrip("/"), timeout=30)
    connection.request("GET", path)
    return connection.getresponse().status


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LUDUS_JIT", "0")  # nothing is compiled for one small env
        root = tmp_path_factory.mktemp("faults") / "runs"
        record("pursuit", fake_run(root / "shelf", "pursuit") / "replays" / REPLAY)
        yield root


def test_the_viewer_goes_on_beside_bad_pages(shelf, capfd):
    with serving(shelf) as (_, port):
        where = f"ws://127.0.0.1:{port}/"
        watching = Watching(where)
        watching.goes_on(1)
        ends = attack(partial(attack_viewer, seconds=0.3), where, range(60))
        assert len(ends) > 5, ends
        watching.goes_on()
        assert get(where, "/api/runs") == 200
        watching.stop = True
        watching.join(10)
    assert "Traceback" not in capfd.readouterr().err


# -- the commands, with 1,500 mutations ------------------------------------------------------------


@contextmanager
def command(tmp_path, *arguments):
    """A command of ludus in a process of its own; gives the process and a function that reads its
    stderr."""
    told = tmp_path / "stderr.txt"
    environment = {**os.environ, "LUDUS_JIT": "0", "OMP_NUM_THREADS": "1"}
    with told.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "ludus", *arguments], stdout=file, stderr=file, env=environment
        )
    try:
        yield process, told.read_text
    finally:
        process.kill()
        process.wait()


def address_in(process, read, pattern):
    until = time.monotonic() + 120
    while not (found := re.search(pattern, read())):
        assert process.poll() is None and time.monotonic() < until, read()
        time.sleep(0.1)
    return found[0]


def status(process, name):
    """A number of /proc/PID/status: VmHWM is the most memory so far, in kB."""
    with open(f"/proc/{process.pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(f"{name}:"))


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="memory is read from /proc")
def test_a_training_goes_on_beside_a_thousand_bad_clients(tmp_path):
    run = str(tmp_path / "run")
    values = {
        "--envs": HONEST_ENVS + FREE_ROWS,
        "--ppo.rollout": 32,
        "--ppo.epochs": 1,
        "--train.total-agent-steps": 10**8,
        "--eval.episodes": 2,
        "--eval.every-agent-steps": 10**7,
        "--policy.hidden": 8,
    }
    with command(
        tmp_path,
        "train",
        "remote:0",
        "--run",
        run,
        *(str(x) for item in values.items() for x in item),
    ) as (
        process,
        read,
    ):
        url = address_in(process, read, r"ws://\S+").replace("localhost", "127.0.0.1")
        honest = Honest(url)
        honest.goes_on(200)
        memory, threads = status(process, "VmHWM"), status(process, "Threads")
        attack(attack_gate, url, range(1000))
        honest.goes_on(200)
        assert process.poll() is None and not honest.refusals
        print(f"memory: +{(status(process, 'VmHWM') - memory) / 1024:.0f} MB")
        assert status(process, "VmHWM") - memory < 400 * 1024
        until = time.monotonic() + 30
        while status(process, "Threads") > threads:
            assert time.monotonic() < until, (
                f"{threads} threads before, {status(process, 'Threads')} after"
            )
            time.sleep(0.2)
        honest.stop = True
        process.terminate()
        process.wait(120)
        assert "Traceback" not in read() and max(map(len, read().splitlines())) < 500, read()


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="memory is read from /proc")
def test_the_viewer_goes_on_beside_five_hundred_bad_pages(shelf, tmp_path):
    with command(tmp_path, "view", "--root", str(shelf), "--headless", "--port", "0") as (
        process,
        read,
    ):
        where = address_in(process, read, r"http://[^/]+/").replace("http:", "ws:")
        watching = Watching(where)
        watching.goes_on()
        memory = status(process, "VmHWM")
        attack(attack_viewer, where, range(500))
        watching.goes_on()
        assert get(where, "/api/runs") == 200
        print(f"memory: +{(status(process, 'VmHWM') - memory) / 1024:.0f} MB")
        assert status(process, "VmHWM") - memory < 400 * 1024
        watching.stop = True
        process.terminate()
        process.wait(60)
        assert "Traceback" not in read(), read()
