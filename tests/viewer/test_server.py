"""The server answers this machine's browser and nobody else, serves what it lists and nothing else,
and survives bad input."""

import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from ludus import LudusError
from ludus.commands.view import View, sort_out
from ludus.films.pack import unpack
from ludus.viewer.app import MOST_MESSAGE, listen
from tests.viewer.shelf import EVIL, serving


@pytest.fixture(scope="module")
def port(root):
    with serving(root) as (_, port):
        yield port


def get(port, path, method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.putrequest(method, path, skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    return answer.status, answer.read(), answer.headers


def talk(port, query="game=pursuit", origin=None, **options):
    where = f"ws://127.0.0.1:{port}/ws/stage?{query}"
    return connect(
        where,
        origin=origin or f"http://127.0.0.1:{port}",
        max_size=2**24,
        close_timeout=2,
        **options,
    )


# -- who may ask -----------------------------------------------------------------------------------


def test_its_own_page_is_served_with_a_strict_policy(port):
    status, body, headers = get(port, "/")
    assert status == 200 and b"importmap" in body
    policy = headers["content-security-policy"]
    assert (
        "default-src 'none'" in policy
        and "unsafe-inline" not in policy
        and "unsafe-eval" not in policy
    )
    assert headers["x-frame-options"] == "DENY" and headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:80", "127.0.0.1:1", "127.0.0.1.evil.example", "localhost", ""],
)
def test_another_host_is_refused(port, host):
    """A page elsewhere whose name was made to point here (DNS rebinding) keeps its own name in
    Host."""
    assert get(port, "/api/runs", Host=host)[0] == 403


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1", "file://", "http://127.0.0.1:1"]
)
def test_another_origin_is_refused(port, origin):
    assert get(port, "/api/runs", Origin=origin)[0] == 403
    with pytest.raises(InvalidStatus) as refused, talk(port, origin=origin):
        pass
    assert refused.value.response.status_code == 403


def test_a_socket_without_origin_is_refused(port):
    with (
        pytest.raises(InvalidStatus),
        connect(f"ws://127.0.0.1:{port}/ws/stage?game=pursuit", close_timeout=1),
    ):
        pass


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_can_be_changed(port, method):
    assert get(port, "/api/runs", method)[0] == 405


def test_it_listens_on_this_machine_only():
    listener = listen(0)
    try:
        assert listener.getsockname()[0] == "127.0.0.1"
        with pytest.raises(LudusError, match=r"port \d+ cannot be used .*--port"):
            listen(listener.getsockname()[1])
    finally:
        listener.close()


# -- what is served --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static//etc/passwd",
        "//etc/passwd",
        "/static/index.html",
        "/etc/passwd",
        "/api/run/..",
        "/api/run/%2e%2e%2f%2e%2e",
        "/api/run/%2fetc",
        "/api/run/shelf/replay/..%2f..%2fconfig.json",
        "/view/../spec.py",
        "/api/run/shelf/replay/%2e%2e%2fconfig.json",
        "/api/run/shelf%00/x",
        "/api/run/shelf/replay/x",
        "/api/run/shelf/replay/x/seen/0",
        "/api/run/shelf/replay/000000000007-bots-pursuit-best.safetensors/seen/99",
        "/nothing",
    ],
)
def test_paths_that_lead_elsewhere_find_nothing(port, path):
    status, body, _ = get(port, path)
    assert status == 404
    assert b"root:" not in body and b"import" not in body and len(body) < 400


def test_links_out_of_the_root_are_not_followed(root, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "config.json").write_text("{}")
    inside = tmp_path / "runs"
    inside.mkdir()
    os.symlink(outside, inside / "link")
    (inside / "real").mkdir()
    (inside / "real" / "config.json").write_text('{"values": {"game": "pursuit"}}')
    (inside / "real" / "replays").mkdir()
    os.symlink(outside / "config.json", inside / "real" / "replays" / "x.safetensors")
    with serving(inside) as (viewer, port):
        assert list(viewer.library.runs()) == ["real"]
        assert get(port, "/api/run/link")[0] == 404
        assert json.loads(get(port, "/api/run/real")[1])["replay_list"] == []


def test_pictures_of_an_analysis_are_served_and_nothing_beside_them(tmp_path):
    folder = tmp_path / "runs" / "real" / "analysis"
    folder.mkdir(parents=True)
    (folder.parent / "config.json").write_text('{"values": {"game": "pursuit"}}')
    (folder / "strategy-7.png").write_bytes(b"a picture")
    (folder / "strategy-7.json").write_text("{}")
    (tmp_path / "secret.png").write_bytes(b"a secret")
    os.symlink(tmp_path / "secret.png", folder / "link.png")
    with serving(tmp_path / "runs") as (_, port):
        assert json.loads(get(port, "/api/run/real")[1])["pictures"] == ["strategy-7.png"]
        assert get(port, "/api/run/real/analysis/strategy-7.png")[:2] == (200, b"a picture")
        for name in ("link.png", "strategy-7.json", "..%2fconfig.json"):
            assert get(port, f"/api/run/real/analysis/{name}")[0] == 404


def test_hostile_names_stay_data(port):
    _, body, headers = get(port, "/api/runs")
    names = [run["name"] for run in json.loads(body)["runs"]]
    assert EVIL in names and headers["content-type"] == "application/json"
    status, body, headers = get(
        port, f"/api/run/{EVIL.replace(' ', '%20').replace('<', '%3C').replace('>', '%3E')}"
    )
    assert status == 200 and json.loads(body)["config"]["note"][0].startswith("<script>")
    assert headers["content-type"] == "application/json"


def test_a_run_page_has_everything(port):
    run = json.loads(get(port, "/api/run/learned")[1])
    assert run["state"] == "finished" and run["verdict"] == "too_little_data"  # 4 rows
    assert (
        run["headline"]["metric"]
        == run["curve"]["metric"]
        == run["config"]["checkpoint.best_metric"][0]
    )
    assert run["effective"]["game"] == "pursuit" and run["effective"]["params"]["max_steps"] == 40
    assert run["config"]["envs"][0] == 8
    lengths = {len(values) for values in run["metrics"].values()}
    assert (
        len(lengths) == 1
        and "episode/chaser/return" in run["metrics"]
        and "speed/share/learn" in run["metrics"]
    )
    assert {r["label"] for r in run["replay_list"]} == {"best", "worst", "random"}


def test_a_damaged_folder_is_listed_with_what_is_wrong(tmp_path):
    damaged = {
        "a": b"{",
        "b": b"[]",
        "c": b'{"values": 3}',
        "d": b'{"values": {"game": ["x"]}}',
        "e": b"\xff\xfe{}",
    }
    for name, content in damaged.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_bytes(content)
        (tmp_path / name / "metrics.jsonl").write_text(
            '{"progress/agent_steps": "x"}\n[1]\n{"progress/agent_steps": NaN}\n{"progr'
        )
    with serving(tmp_path) as (_, port):
        status, body, _ = get(port, "/api/runs")
        runs = {run["name"]: run for run in json.loads(body)["runs"]}
        assert (
            status == 200 and set(runs) == set("abcde") and "cannot be read" in runs["a"]["error"]
        )
        assert all(get(port, f"/api/run/{name}")[0] < 500 for name in "cd")


def test_no_runs_is_no_error(tmp_path):
    with serving(tmp_path / "nowhere") as (_, port):
        assert json.loads(get(port, "/api/runs")[1])["runs"] == []


# -- sessions --------------------------------------------------------------------------------------


def test_bots_play_in_real_time(port):
    with talk(
        port, "game=pursuit&agents=chaser=bot:greedy&agents=bot:flee&value=max_steps=50"
    ) as socket:
        header, arrays = unpack(socket.recv(20))
        assert header["kind"] == "episode" and header["players"] == [
            "bot:greedy",
            *["bot:flee"] * 3,
        ]
        assert header["params"]["max_steps"] == 50
        socket.send('{"speed": 16}')
        counts = [unpack(socket.recv(20))[0]["count"] for _ in range(5)]
        assert counts == [1, 2, 3, 4, 5] and arrays["step/position"].shape == (4, 2)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("game=nothing", "unknown game"),
        ("game=os:path", "allow it with"),
        ("run=nowhere", "there is no run"),
        ("", "nothing to show"),
        ("game=pursuit&agents=bot:x", "unknown opponent 'bot:x'"),
        ("game=pursuit&value=runners=1000", "at most 64"),
        ("game=pursuit&value=x", "no NAME=NUMBER"),
        ("game=pursuit&take=9", "makes no sense"),
        ("game=pursuit&seed=-1", "whole number"),
        ("game=pursuit&seed=%C2%B2", "whole number"),
        ("game=pursuit&take=%C2%B2", "makes no sense"),
        ("run=shelf&replay=000000000007-bots-pursuit-best.safetensors&at=999", "no step 999"),
    ],
)
def test_what_cannot_be_shown_is_one_sentence(port, query, words):
    with talk(port, query) as socket:
        message = socket.recv(20)
        assert isinstance(message, str) and words in json.loads(message)["error"]


@pytest.mark.parametrize(
    "message",
    [
        "x" * (MOST_MESSAGE + 1),
        b"\x00" * 64,
        '{"take": 99}',
        "{",
        '{"keys": ["' + "k" * 9000 + '"]}',
    ],
)
def test_oversized_and_senseless_messages_end_the_connection(port, message):
    with talk(port) as socket:
        socket.recv(20)
        socket.send(message)
        with pytest.raises(ConnectionClosed):
            for _ in range(50):
                socket.recv(20)
    assert get(port, "/api/runs")[0] == 200  # the others go on


# -- the command -----------------------------------------------------------------------------------


def ludus(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "ludus", *arguments], capture_output=True, text=True, timeout=100
    )
    return done.returncode, done.stderr


def test_what_was_named_is_sorted_out(root):
    assert sort_out(View(what=("pursuit",))) == ("pursuit", [])
    assert sort_out(View(what=(str(root / "learned"),))) == (None, [root / "learned"])
    for what in (
        ("pursuit", "brawl"),
        ("nothing",),
        (str(root / "missing"),),
        ("pursuit", str(root / "learned")),
    ):
        with pytest.raises(LudusError):
            sort_out(View(what=what))
    with pytest.raises(LudusError, match="name the game"):
        sort_out(View(agents=("bot:flee",)))


def test_a_port_in_use_is_told_in_the_terminal(port):
    status, text = ludus("view", "--port", str(port), "--headless")
    assert status == 2 and re.fullmatch(rf"ludus: port {port} cannot be used .*\n", text)


SLOW = """
import sys, time
from ludus import cli
from ludus.viewer.library import Library
Library.listing = lambda self: print("asked", flush=True) or time.sleep(3) or []
cli.main(["view", "--root", sys.argv[1], "--port", sys.argv[2], "--headless"])
"""


def test_who_ends_the_viewer_while_it_answers_sees_no_traceback(tmp_path):
    with listen(0) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-c", SLOW, str(tmp_path), str(port)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as viewer:
        assert "Ctrl-C ends" in viewer.stderr.readline()
        asking = http.client.HTTPConnection("127.0.0.1", port)
        for _ in range(100):
            with contextlib.suppress(ConnectionRefusedError):
                asking.request("GET", "/api/runs")
                break
            time.sleep(0.1)
        assert viewer.stdout.readline() == "asked\n"
        viewer.send_signal(signal.SIGINT)
        assert viewer.communicate()[1].strip() == "ludus: interrupted" and viewer.returncode == 130
