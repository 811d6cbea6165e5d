"""Who may join a training as a remote env, and what a client may send and make the trainer keep."""

import json
import socket
import threading
import time

import pytest

pytest.importorskip(
    "websockets", reason="remote envs (pip install 'ludus[remote]') are not installed"
)

from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from ludus.errors import LudusError
from ludus.external import gate as gates
from ludus.external.access import Access, choose_token
from ludus.external.foreign import ForeignBatch
from ludus.external.gate import Gate, MeteredSocket
from ludus.external.wire import MOST_BYTES, Fault, read_hello, read_result
from tests.envs.test_remote import CLIENTS, HELLO, Counters
from tests.faults.messages import Raw

TOKEN = "a-token-of-this-test"
RESULT = {
    "type": "result",
    "step": 4,
    "observation": [[[1, 2]], [[3, 4]]],
    "reward": [[0], [1]],
    "terminated": [[0], [1]],
    "truncated": [[0], [0]],
}


@pytest.fixture
def gate():
    made = Gate.at("0")
    yield made
    while CLIENTS:
        CLIENTS.pop().stop = True
    made.close()


def refusal(url, **options):
    """What the trainer says to a client that says hello."""
    with connect(url, close_timeout=1, **options) as connection:
        connection.send(json.dumps(HELLO))
        message = json.loads(connection.recv(5))
    return message.get("reason", message["type"])


# -- who may join ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("listens", "host", "origin", "allowed"),
    [
        ("127.0.0.1", "localhost:8770", None, True),
        # a tunnel; a game served from this machine
        ("127.0.0.1", "127.0.0.1:9999", "http://localhost:3000", True),
        ("127.0.0.1", "[::1]:8770", "https://localhost", True),
        ("127.0.0.1", "localhost:8770", "http://evil.example", False),
        ("127.0.0.1", "localhost:8770", "null", False),
        ("127.0.0.1", "localhost:8770", "file://", False),
        ("127.0.0.1", "localhost:8770", "http://localhost@evil.example", False),
        ("127.0.0.1", "localhost:8770", "http://localhost.evil.example", False),
        ("127.0.0.1", "evil.example:8770", None, False),  # a name that was made to point here
        ("127.0.0.1", "192.168.0.7:8770", None, False),
        ("127.0.0.1", "", None, False),
        ("127.0.0.1", "[::1", None, False),
        ("0.0.0.0", "192.168.0.7:8770", "http://192.168.0.7:8770", True),
        ("0.0.0.0", "192.168.0.7:8770", "http://192.168.0.8", False),
        ("0.0.0.0", "evil.example:8770", "http://evil.example:8770", False),
        ("0.0.0.0", f"{socket.gethostname()}:8770", None, True),
        ("trainer.lan", "trainer.lan:8770", "http://trainer.lan:3000", True),
    ],
)
def test_host_and_origin_must_be_of_this_machine(listens, host, origin, allowed):
    fault = Access(listens, TOKEN).fault_of_headers([host], [] if origin is None else [origin])
    assert (fault is None) == allowed


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (f"/?token={TOKEN}", None),
        (f"/?envs=3&token={TOKEN}", None),
        ("/", "missing"),
        ("/?token=", "missing"),
        ("/?token=x", "wrong"),
        (f"/?token={TOKEN}&token={TOKEN}", "missing"),
        (f"/?token={TOKEN}%00", "wrong"),
        ("/?token=%ff%fe", "wrong"),
        ("//[?" + "a=1&" * 99, "missing"),
    ],
)
def test_a_client_shows_the_token(path, words):
    fault = Access("127.0.0.1", TOKEN).fault_of_token(path)
    assert fault is None if words is None else f"the token is {words}" in fault


def test_every_start_has_a_new_token_unless_the_user_sets_one(monkeypatch):
    monkeypatch.delenv("LUDUS_TOKEN", raising=False)
    assert choose_token() != choose_token()
    monkeypatch.setenv("LUDUS_TOKEN", TOKEN)
    assert choose_token() == TOKEN
    monkeypatch.setenv("LUDUS_TOKEN", "short")
    with pytest.raises(LudusError, match="LUDUS_TOKEN has 5 characters: use 16 to 128 letters"):
        choose_token()


def test_a_page_of_another_site_cannot_join(gate):
    for origin in ("http://evil.example", "null"):
        with pytest.raises(InvalidStatus) as refused, connect(gate.url(), origin=origin):
            pass
        assert (
            refused.value.response.status_code == 403
            and b"pages of other sites may not connect" in refused.value.response.body
        )
    assert refusal(gate.url(), origin=f"http://localhost:{gate.port}") == "welcome"


def test_a_wrong_token_is_reported_on_both_sides(gate, capfd):
    for url, words in (
        (gate.url()[:-1], "the token is wrong"),
        (gate.url().partition("?")[0], "the token is missing"),
    ):
        assert words in refusal(url)
    told = capfd.readouterr().err
    # the second comes too soon to be told
    assert "a client was refused: the token is wrong" in told and told.count("\n") == 1
    assert gate.first is None and not gate.clients


def test_the_addresses_are_printed_when_the_trainer_waits(gate, capfd, monkeypatch):
    monkeypatch.setattr(gates, "WAIT_SECONDS", 0.01)
    with pytest.raises(LudusError, match=r"no env came to ws://localhost:\d+ within"):
        gate.layout()
    told = capfd.readouterr().err
    assert (
        f"  ws://localhost:{gate.port}/?token={gate.access.token}\n" in told
        and f"  {gate.url('http')}\n" in told
    )
    assert max(map(len, told.splitlines())) < 80


@pytest.mark.parametrize(
    "address", ["x", "", "²", "65536", "9" * 5000, "..:8770", "a" * 300 + ":8770", "localhost:0x1"]
)
def test_an_address_that_cannot_be_listened_at_is_one_sentence(address):
    with pytest.raises(LudusError, match=r"names no port|cannot listen"):
        Gate.at(address)


# -- what a client may make the trainer keep and wait for ------------------------------------------


def test_who_talks_out_of_turn_is_dismissed(gate):
    with connect(gate.url(), close_timeout=1) as connection:
        connection.send(json.dumps(HELLO))
        assert json.loads(connection.recv(5))["type"] == "welcome"
        connection.send(json.dumps({**RESULT, "step": 1}))
        assert (
            "it sent a message that was not asked for" in json.loads(connection.recv(5))["reason"]
        )
    assert gate.num_envs() == 0


def test_a_flood_is_not_read():
    ours, theirs = socket.socketpair()
    metered = MeteredSocket(fileno=ours.detach())
    metered.left = 1000
    theirs.sendall(b"x" * 5000)
    assert [len(metered.recv(600)) for _ in range(3)] == [600, 0, 0]
    metered.close()
    theirs.close()


def test_connections_are_counted_and_slow_ones_closed(monkeypatch):
    monkeypatch.setattr(gates, "MOST_CONNECTIONS", 3)
    monkeypatch.setattr(gates, "HANDSHAKE_SECONDS", 1.0)
    gate = Gate.at("0")
    try:
        slow = [Raw(gate.url()) for _ in range(3)]
        slow[0].send(b"GET / HT")
        while len(gate._serving) < 3:
            time.sleep(0.01)
        with Raw(gate.url()) as late:
            assert late.read_rest() == b""  # closed at once
        assert [raw.read_rest() for raw in slow] == [b""] * 3  # after their second
        for raw in slow:
            raw.socket.close()
        while any(thread.is_alive() for thread in gate._serving):
            time.sleep(0.01)
        monkeypatch.setattr(gates, "HANDSHAKE_SECONDS", 30.0)
        assert refusal(gate.url()) == "welcome"
    finally:
        gate.close()


def test_clients_are_counted(gate, monkeypatch):
    monkeypatch.setattr(gates, "MOST_CLIENTS", 1)
    Counters(gate)
    while not gate.clients:
        time.sleep(0.01)
    assert "1 clients are connected, more cannot be" in refusal(gate.url())


def test_a_client_that_does_not_read_cannot_stop_the_others(gate, monkeypatch):
    """What it is told does not fit into the buffers between: sending must end, too."""
    monkeypatch.setattr(gates, "SEND_SECONDS", 0.2)
    hello = {**HELLO, "envs": 1300, "action": {"continuous": [f"joint_{i}" for i in range(400)]}}
    with Raw(gate.url()) as deaf:
        deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.handshake()
        deaf.say(hello)
        while not gate.clients:
            time.sleep(0.01)
        gate.clients[0].connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        batch = None

        def play():
            nonlocal batch
            batch = ForeignBatch("remote:0", 2, answer_seconds=0.2)

        playing = threading.Thread(target=play, daemon=True)
        playing.start()
        while gate.num_envs():  # until it is lost
            time.sleep(0.01)
        Counters(gate, {**hello, "envs": 2})
        playing.join(30)
        assert not playing.is_alive() and batch is not None


# -- what messages may say -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"agents": ["a/b"]}, "cannot name a role"),
        ({"agents": ["../../x"]}, "cannot name a role"),
        ({"agents": ["class_0"]}, "cannot name a role"),
        ({"agents": ["0"]}, "cannot name a role"),
        ({"agents": ["\ud800"]}, "a name has 1 to 64 printable"),
        ({"agents": ["a\x1b[2J"]}, "printable"),
        ({"agents": ["a", "a"]}, "'a' twice"),
        ({"agents": ["a" * 65]}, "a name has 1 to 64"),
        ({"agents": {"a": 1}}, "must be a list"),
        (
            {"agents": [f"agent_{i}" for i in range(65)]},
            "'agents' has 65: it must be a list of 1 to 64",
        ),
        ({"agents": [None]}, "a name has 1 to 64"),
        ({"game": ["catch"]}, "'game' has \\['catch'\\]"),
        ({"game": "x\n"}, "'game' has"),
        ({"protocol": True}, "speaks protocol True"),
        ({"envs": 10**400}, "whole number from 1 to 4,096"),
        ({"envs": 2.0}, "whole number"),
        ({"envs": True}, "whole number"),
        ({"masks": "no"}, "true or false"),
        (
            {"envs": 4096, "observation": [f"o{i}" for i in range(1000)]},
            "a step of 4,096 envs has 4,108,288 numbers.*offer 522 envs",
        ),
        (
            {
                "agents": [f"a_{i}" for i in range(64)],
                "observation": [f"o{i}" for i in range(4000)],
            },
            "the 64 agents of an env have 256,128",
        ),
        (
            {"action": {"choices": {f"c{i}": ["a", "b", "c"] for i in range(2000)}}},
            "an agent has 6,000 actions",
        ),
        ({"action": {"choices": {"\x00": ["a"]}}}, "'action.choices' has"),
        ({"action": {"binary": ["k"] * 2}}, "'k' twice"),
    ],
)
def test_what_a_hello_cannot_say(changes, words):
    with pytest.raises(Fault, match=words) as fault:
        read_hello(json.dumps({**HELLO, **changes}))
    assert str(fault.value).isprintable() and len(str(fault.value)) < 300


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"memory_mb": 10**400}, "'memory_mb' is"),
        ({"memory_mb": "1"}, "'memory_mb' is '1'"),
        ({"memory_mb": -1}, "'memory_mb' is -1"),
        ({"memory_mb": True}, "'memory_mb' is True"),
        ({"reward": [[10**400], [0]]}, "'reward' is not an array"),
        ({"reward": [["1"], [0]]}, "'reward' is not an array"),
        ({"reward": [[1e300], [0]]}, r"'reward' of its env 0 is 1e\+300: numbers from -1e\+09"),
        ({"reward": [[0], [None]]}, "'reward' of its env 1 is not a number"),
        ({"terminated": [[0], [2]]}, "'terminated' of its env 1 is 2: it must be true or false"),
        ({"step": True}, "the result of step True"),
        ({"step": 4.0}, "the result of step 4.0"),
        ({"observation": {"a": 1}}, "'observation' is not an array"),
        ({"extra": "x" * 5000}, "at most 4,416 are possible"),
    ],
)
def test_what_a_result_cannot_say(changes, words):
    with pytest.raises(Fault, match=words):
        read_result(json.dumps({**RESULT, **changes}), read_hello(json.dumps(HELLO)), 4)


@pytest.mark.parametrize(
    "text",
    [
        "9" * 5000,
        "[" * 2000,
        '{"type": ' + "9" * 4400 + "}",
        '{"a":' * 900,
        "\x1b]0;x\x07",
        "{}",
        "[]",
        "\ud800",
    ],
)
def test_text_that_is_no_message(text):
    with pytest.raises(Fault) as fault:
        read_hello(text)
    assert str(fault.value).isprintable() and len(str(fault.value)) < 200


def test_an_honest_result_always_fits():
    """The longest numbers there are, with Python's spaces, for the largest and the smallest
    client."""
    for envs, entries in ((1, 1), (100, 1000)):
        hello = read_hello(
            json.dumps({**HELLO, "envs": envs, "observation": [f"o{i}" for i in range(entries)]})
        )
        long = -1.2345678901234567e-300
        result = {
            "type": "result",
            "step": 10**9,
            "memory_mb": 12345.678901234567,
            "observation": [[[long] * entries]] * envs,
            "reward": [[long]] * envs,
            "terminated": [[False]] * envs,
            "truncated": [[False]] * envs,
        }
        text = json.dumps(result)
        assert len(text) <= hello.result_bytes <= MOST_BYTES
        assert read_result(text, hello, 10**9).memory_mb == pytest.approx(12345.7, abs=0.1)


def test_a_connection_that_ends_without_hello_is_no_fault(gate, capfd):
    with connect(gate.url(), close_timeout=1):
        pass
    with pytest.raises(ConnectionClosed), connect(gate.url(), close_timeout=1) as connection:
        connection.close()
        connection.recv(1)
    assert capfd.readouterr().err == ""
