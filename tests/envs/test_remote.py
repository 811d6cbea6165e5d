"""Remote envs: a client that does everything wrong now and then, and what may come over the
wire."""

import json
import random
import shutil
import subprocess
import threading
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip(
    "websockets", reason="remote envs (pip install 'ludus[remote]') are not installed"
)

from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from ludus.errors import LudusError
from ludus.external.foreign import ForeignBatch
from ludus.external.gate import Gate
from ludus.external.remote import RemoteHost
from ludus.external.wire import Fault, read_hello, read_result

LENGTH = 10
CLIENTS: list = []
HELLO = {
    "type": "hello",
    "protocol": 1,
    "game": "counter",
    "envs": 2,
    "observation": ["time", "seed"],
    "action": {"choices": {"move": ["left", "right"]}},
}


class Counters(threading.Thread):
    """A client with envs that pay 1 a step and end after ten. `trouble()` may name a fault to
    commit."""

    def __init__(self, gate, hello=HELLO, trouble=lambda: "", lives=1_000_000):
        super().__init__(daemon=True)
        self.url, self.hello, self.trouble, self.lives = gate.url(), hello, trouble, lives
        self.committed, self.refusals = [], []
        self.stop = False
        CLIENTS.append(self)
        self.start()

    def run(self):
        while not self.stop and self.lives > 0:
            self.lives -= 1
            try:
                with connect(self.url, close_timeout=0.1) as self.connection:
                    self.play()
            except (OSError, WebSocketException, EOFError):
                time.sleep(0.001)

    def play(self):
        self.connection.send(json.dumps(self.hello))
        times = [0] * self.hello["envs"]
        for text in self.connection:
            message = json.loads(text)
            if message["type"] == "refused":
                self.refusals.append(message["reason"])
            if message["type"] != "step":
                continue
            times = [
                0 if reset else t + 1 for t, reset in zip(times, message["reset"], strict=True)
            ]
            result = {
                "type": "result",
                "step": message["step"],
                "memory_mb": 12.5,
                "observation": [
                    [[t, seed % 100]] for t, seed in zip(times, message["seed"], strict=True)
                ],
                "reward": [[float(t > 0)] for t in times],
                "terminated": [[t >= LENGTH] for t in times],
                "truncated": [[False] for _ in times],
            }
            fault = self.trouble()
            if fault:
                self.committed.append(fault)
            if fault == "disconnect":
                return
            if fault == "delay":
                time.sleep(0.2)
            elif fault == "garbage":
                self.connection.send("{'no': json")
                continue
            elif fault == "bytes":
                self.connection.send(b"\x00\xff")
                continue
            elif fault == "nan":
                result["reward"][0][0] = float("nan")
            elif fault == "shape":
                result["observation"] = result["observation"][:-1]
            elif fault == "stale":
                result["step"] -= 1
            elif fault == "error":
                result = {"type": "error", "message": "out of canvas"}
            self.connection.send(json.dumps(result))


@pytest.fixture
def gate():
    made = Gate.at("0")  # any port that is free
    yield made
    while CLIENTS:
        CLIENTS.pop().stop = True
    made.close()


def test_ten_thousand_steps_with_a_client_that_fails_in_every_way(gate):
    """Training would go on, and no cut episode is ever counted: each that is has ten steps and a
    return of ten."""
    dice = random.Random(3)
    kinds = ["delay", "disconnect", "garbage", "bytes", "nan", "shape", "stale", "error"]
    client = Counters(
        gate, {**HELLO, "envs": 8}, lambda: dice.choice(kinds) if dice.random() < 0.03 else ""
    )
    batch = ForeignBatch("remote:0", 8, answer_seconds=0.1)
    begin, valid, lost = time.monotonic(), 0, 0
    lengths, returns = [], []
    while valid < 10_000:
        batch.step()
        valid += batch.read_valid_steps()
        lost += int(batch["lost"].sum())
        over = batch["counted"]
        lengths += batch["episode_length"][over, 0].tolist()
        returns += batch["episode_return"][over, 0].tolist()
        assert time.monotonic() - begin < 60
    assert set(client.committed) == set(kinds)
    assert lost >= len(client.committed) and len(lengths) > 500
    assert set(lengths) == {LENGTH} and set(returns) == {float(LENGTH)}
    assert np.isfinite(batch["observation"]).all() and np.isfinite(batch["reward"]).all()
    assert any("no JSON" in reason for reason in client.refusals)


def test_a_client_that_leaves_for_good_stops_the_run_with_the_cause(gate):
    Counters(gate, trouble=lambda: "nan", lives=1)
    batch = ForeignBatch("remote:0", 2, answer_seconds=0.5, absent_seconds=0.3)
    with pytest.raises(
        LudusError,
        match=r"has 0 of the 2 envs that are needed.*'reward' of its env 0 is not a number",
    ):
        for _ in range(5):
            batch.step()


def test_a_client_that_never_does_right_is_given_up(gate):
    Counters(gate, trouble=lambda: "garbage")
    batch = ForeignBatch("remote:0", 2, answer_seconds=0.5)
    with pytest.raises(
        LudusError, match=r"51 faults one after the other; the last: this is no JSON"
    ):
        for _ in range(200):
            batch.step()


def test_the_others_play_on_while_one_is_away(gate):
    steady = Counters(gate)
    leaving = Counters(
        gate,
        trouble=lambda: "disconnect" if len(leaving.committed) == 0 and turn > 3 else "",
        lives=1,
    )
    turn = 0
    while gate.num_envs() < 4:
        time.sleep(0.01)
    batch = ForeignBatch("remote:0", 4, absent_seconds=30)
    for turn in range(1, 9):  # noqa: B007 (the client looks at it)
        batch.step()
    assert steady.is_alive() and leaving.committed == ["disconnect"]
    assert batch["valid"].sum() == 2 and batch["resetting"].sum() == 2


def test_rows_start_anew_when_another_batch_played_between(gate):
    Counters(gate)
    training = ForeignBatch("remote:0", 2)
    training.step()
    evaluation = ForeignBatch("remote:0", 2)
    evaluation.step()
    assert evaluation["valid"].all() and evaluation["observation"][0, 0, 0] == 1
    training.step()
    assert (
        training["lost"].all() and training["agent_truncated"].all() and not training["valid"].any()
    )
    training.step()
    assert training["resetting"].all() and (training["observation"][:, 0, 0] == 0).all()


def test_clients_must_offer_the_same_game(gate):
    Counters(gate)
    ForeignBatch("remote:0", 2)
    other = Counters(gate, {**HELLO, "observation": ["time", "speed"]}, lives=1)
    other.join(5)
    assert "other agents, observations or actions than counter" in other.refusals[0]


def test_training_reports_the_memory_of_its_clients(gate, tmp_path):
    from ludus.api import train

    Counters(gate, {**HELLO, "envs": 4})
    run = train(
        "remote:0",
        run=tmp_path / "run",
        quiet=True,
        envs=4,
        total_agent_steps=600,
        **{
            "ppo.rollout": 32,
            "eval.episodes": 4,
            "policy.hidden": (8,),
            "log.tensorboard": False,
        },
    )
    last = run.metrics()[-1]
    assert last["memory/client_mb"] == 12.5 and last["eval/self/return"] == LENGTH
    assert 0 < last["speed/share/wait_env"] < 1


def test_the_page_and_the_client_are_served(gate):
    page = urllib.request.urlopen(f"http://127.0.0.1:{gate.port}/?envs=2").read().decode()
    assert "new LudusClient" in page
    assert (
        b"class LudusClient"
        in urllib.request.urlopen(f"http://127.0.0.1:{gate.port}/ludus.js").read()
    )
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"http://127.0.0.1:{gate.port}/etc/passwd")


@pytest.mark.skipif(
    shutil.which("node") is None,
    reason="node is not installed: the JavaScript client is not tested here",
)
def test_the_javascript_client_plays(gate, tmp_path):
    """Two agents in two envs, in node: actions arrive by name, results go back, memory is
    reported."""
    client = Path(__file__).parents[2] / "ludus" / "external" / "static" / "ludus.js"
    script = tmp_path / "play.js"
    script.write_text(f"""
        const {{ LudusClient }} = require({json.dumps(str(client))});
        class Env {{
          reset(seed) {{ this.time = 0; return [[0], [seed % 7]]; }}
          step(actions) {{
            if (actions.length !== 2 || !["left", "right"].includes(actions[1].choices.move)) throw new Error("bad action");
            this.time += 1;
            return {{ observation: [[this.time], [actions[0].binary[0]]], reward: [1, 2], terminated: [false, false],
                     truncated: [this.time >= 3, this.time >= 3] }};
          }}
        }}
        new LudusClient({{ url: "{gate.url()}", game: "pair", envs: 2, agents: ["a_0", "b_0"], observation: ["x"],
          action: {{ binary: ["key"], choices: {{ move: ["left", "right"] }} }}, make: () => new Env() }}).start();
    """)
    process = subprocess.Popen(
        ["node", "--experimental-websocket", str(script)], stderr=subprocess.DEVNULL
    )
    try:
        batch = ForeignBatch("remote:0", 2)
        batch["binary"][:, 0] = 1
        for step in (1, 2, 3):
            batch.step()
            assert batch["observation"][0, :, 0].tolist() == [step, 1] and batch["reward"][
                1
            ].tolist() == [1, 2]
        assert batch["agent_truncated"].all() and [s.role for s in batch.layout.seats] == ["a", "b"]
        assert gate.memory_mb() > 1
    finally:
        process.kill()
        process.wait()


# -- the wire --------------------------------------------------------------------------------------

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*HELLO, "choices", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from([*HELLO, "agents", "masks"]), anything, max_size=6))
def test_any_change_of_a_hello_is_understood_or_a_fault(changes):
    try:
        hello = read_hello(json.dumps({**HELLO, **changes}))
    except Fault as fault:
        assert str(fault)
    else:
        assert hello.envs >= 1 and hello.observation and hello.agents


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["observation", "reward", "terminated", "truncated", "step", "type"]),
        anything,
        min_size=1,
    )
)
def test_any_change_of_a_result_is_sound_or_a_fault(changes):
    hello = read_hello(json.dumps(HELLO))
    result = {
        "type": "result",
        "step": 4,
        "observation": [[[1, 2]], [[3, 4]]],
        "reward": [[0], [1]],
        "terminated": [[False], [True]],
        "truncated": [[False], [False]],
    }
    try:
        arrays = read_result(json.dumps({**result, **changes}), hello, 4).arrays
    except Fault as fault:
        assert str(fault)
    else:
        assert all(np.isfinite(array).all() for array in arrays.values()) and arrays[
            "observation"
        ].shape == (2, 1, 2)


def test_masks_that_allow_nothing():
    """At an end, and for who waits while others act; an env in which nobody can act is a fault."""
    hello = read_hello(
        json.dumps({**HELLO, "envs": 1, "agents": ["player_0", "player_1"], "masks": True})
    )
    arrays = {"alive": np.ones((1, 2), bool), "resetting": np.zeros(1, bool)}
    host = RemoteHost(None, 1, arrays)

    def filled(masks, over=(0, 0)):
        ends = np.array([over], float)
        result = {
            "mask": np.array([masks], float),
            "reward": ends,
            "terminated": ends,
            "truncated": 0 * ends,
        }
        host._fill_masks(result, hello, {0: 0})
        return result["mask"][0].tolist(), result["idle"][0].tolist()

    assert filled([[0, 1], [0, 0]]) == ([[0, 1], [1, 1]], [False, True])
    assert filled([[0, 0], [0, 0]], over=(1, 1)) == ([[1, 1], [1, 1]], [False, False])
    for masks, over in (([[0, 0], [0, 0]], (0, 0)), ([[0, 0], [1, 1]], (0, 1))):
        with pytest.raises(
            Fault, match=r"the mask of player_0.* allows nothing, and the episode goes on"
        ):
            filled(masks, over)
