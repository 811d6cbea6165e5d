"""Somebody's run folder executes nothing: only what was made here, or what the user trusts, may
choose code."""

import json
import os
import re
import shutil
import socket
import sys

import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import ludus
from ludus import LudusError, api, cli
from ludus.config import Config, LogConfig, TrainConfig
from ludus.imports import section_name
from ludus.play.replay import Replay
from ludus.runs import checkpoint, trust
from ludus.runs.run import Run
from tests.training.test_runs import config

PAYLOAD = "open('executed', 'w').write('x')\n"
GAMES = (
    "payload:GAME",
    "env:payload:make",
    "env:os:abort",
    "gym:payload:Env-v0",
    "gym:CartPole-v1",
    "pettingzoo:payload",
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A run of a Ludus game, as somebody may send it."""
    short = config(
        train=TrainConfig(total_agent_steps=1500, threads=1),
        log=LogConfig(tensorboard=False, diagnostics_every=0),
    )
    return ludus.train(short, run=tmp_path_factory.mktemp("shared") / "run", quiet=True)


@pytest.fixture
def received(shared, tmp_path, monkeypatch):
    """The run in a folder of its own, beside a module that tells when it is imported; this process
    has not made it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(trust, "_trusted", set())
    (tmp_path / "payload.py").write_text(PAYLOAD)
    shutil.copytree(shared.path, tmp_path / "run")
    yield Run(tmp_path / "run")
    sys.modules.pop("payload", None)


def renamed(values):
    """With the settings of the algorithm in the section of its name."""
    section = section_name(values["algorithm"])
    return {re.sub("^ppo[.]", f"{section}.", name): value for name, value in values.items()}


def forge(run, **values):
    """Another configuration, and manifests that fit it: whoever sends a run can write all of it."""
    data = run.read_json("config.json")
    values = data["values"] = renamed(data["values"] | values)
    (run.path / "config.json").write_text(json.dumps(data))
    for step in checkpoint.steps(run):
        path = checkpoint.folder(run, step) / "manifest.json"
        manifest = json.loads(path.read_text())
        del manifest["sha256"]
        manifest["config"] = values
        path.write_text(json.dumps(checkpoint.sealed(manifest)))


def refused(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        cli.main(list(arguments))
    told = capsys.readouterr()
    assert ended.value.code == 2 and "Traceback" not in told.err
    return told.err.splitlines()[-1]


COMMANDS = {
    "eval": ["eval", "run", "--episodes", "2"],
    "eval against": ["eval", "mine", "--against", "run", "--episodes", "2"],
    "resume": ["resume", "run", "--train.total-agent-steps", "3000"],
    "fork": ["fork", "run"],
    "export": ["export", "run"],
    "export html": ["export", "run", "--format", "html"],
    "league": ["league", "run", "--payoff", "2"],
    "exploit": ["league", "run", "--exploit", "1"],
    "opponent": [
        "train",
        "pursuit",
        "--run",
        "new",
        "--league.opponents",
        "run",
        "--league.mix",
        "self 1, pool 1",
    ],
    "examine": ["doctor", "run", "run", "--examine"],
    "bisect from": ["doctor", "bisect", "run", "mine", "--metric", "eval/self/return"],
    "bisect": ["doctor", "bisect", "mine", "run", "--metric", "eval/self/return"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_loads_the_game_of_somebodys_run(received, shared, capsys, command):
    shutil.copytree(shared.path, "mine")
    forge(received, game="payload:GAME")
    error = refused(capsys, *COMMANDS[command])
    assert "payload:GAME" in error and "--trust" in error
    assert not os.path.exists("executed") and not os.path.exists("new")


NAMING = {
    "algorithm": "payload:X",
    "policy.network": "payload:X",
    "callbacks": ["payload:X"],
    "log.sinks": ["payload:X"],
    "doctor.checks": ["payload:X"],
    "league.sampler": "payload:X",
    "curriculum.tasks.sampler": "payload:X",
    "league.mix": "self 1, bot:payload:X 1",
    "eval.against": ["bot:payload:X"],
    "checkpoint.best_metric": "eval/bot:payload:X/return",
}
RUNNING = ("resume", "fork", "eval", "export", "league", "exploit", "opponent", "examine")


@pytest.mark.parametrize("setting", NAMING)
def test_no_setting_brings_code(received, shared, capsys, setting):
    """Whatever it names, nothing is imported, and the message says what would be."""
    shutil.copytree(shared.path, "mine")
    forge(received, **{setting: NAMING[setting]})
    for command in RUNNING:
        error = refused(capsys, *COMMANDS[command])
        assert "payload:X" in error and "--trust" in error, command
    assert not os.path.exists("executed") and not os.path.exists("new")
    assert received.settings().game == "pursuit"  # it is listed and shown all the same


@pytest.mark.parametrize("setting", ["algorithm", "policy.network"])
def test_what_a_policy_is_made_of_is_not_loaded_either(received, capsys, setting):
    forge(received, **{setting: "payload:X"})
    with pytest.raises(LudusError, match=r"payload:X.*trust=True"):
        ludus.load("run")
    if setting == "policy.network":  # weights are data, but they are another network's
        hidden = ("--policy.hidden", "16", "--run", "new", "--init-from", "run")
        error = refused(capsys, "train", "pursuit", *hidden)
        assert "policy.network payload:X, and this run has standard" in error
    capsys.readouterr()
    with pytest.raises(SystemExit):
        cli.main(["doctor", "run", "run"])
    assert not os.path.exists("executed")


@pytest.mark.parametrize("setting", ["algorithm", "policy.network", "callbacks"])
def test_with_trust_it_is_loaded(received, capsys, setting):
    forge(received, **{setting: NAMING[setting]})
    error = refused(capsys, *COMMANDS["resume"], "--trust")
    assert os.path.exists("executed") and "has no 'X'" in error


@pytest.mark.parametrize("game", GAMES)
def test_no_kind_of_game_is_loaded(received, capsys, game):
    forge(received, game=game)
    assert game in refused(capsys, *COMMANDS["eval"]) and game in refused(
        capsys, *COMMANDS["resume"]
    )
    with pytest.raises(LudusError, match="trust=True"):
        ludus.evaluate("run", episodes=2)
    assert not os.path.exists("executed")


def test_somebodys_run_opens_no_port(received, capsys):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    forge(received, game=f"remote:0.0.0.0:{port}")
    assert "remote:0.0.0.0" in refused(capsys, *COMMANDS["resume"])
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_loading_the_policy_of_a_run_in_an_env_loads_no_env(received):
    """It needs only the spaces, which game.json has; here it has none."""
    forge(received, game="env:payload:make")
    with pytest.raises(LudusError, match="does not say what is seen and done"):
        ludus.load("run")
    assert not os.path.exists("executed")


def test_a_replay_loads_no_game(received):
    path = min((received.path / "replays").glob("*.safetensors"))
    with safe_open(path, "numpy") as file:
        header = json.loads(file.metadata()["replay"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    save_file(tensors, path, {"replay": json.dumps({**header, "source": "payload:GAME"})})
    with pytest.raises(LudusError, match="payload:GAME"):
        next(Replay(path).play())
    assert not os.path.exists("executed")


def test_somebodys_run_of_a_ludus_game_is_used_as_ones_own(received, capsys):
    assert ludus.evaluate("run", episodes=2)["episodes"] == 2
    assert ludus.load("run") is not None


def test_trusting_a_run_executes_its_code(received, capsys):
    forge(received, game="payload:GAME")
    error = refused(capsys, *COMMANDS["eval"], "--trust")
    assert os.path.exists("executed") and "has no 'GAME'" in error


def test_the_flag_may_be_written_out(received, capsys):
    forge(received, game="payload:GAME")
    assert "--trust" in refused(capsys, "fork", "run", "--trust", "False")
    assert not os.path.exists("executed")


def test_opponents_can_be_trusted_in_python(received, shared):
    forge(received, game="payload:GAME")
    league = {"league.opponents": ("run",), "league.mix": "self 1, pool 1", "envs": 8}
    with pytest.raises(LudusError, match="trust=True"):
        ludus.train("pursuit", run="new", quiet=True, total_agent_steps=20_000, **league)
    assert not os.path.exists("executed")
    with pytest.raises(LudusError):  # its game is no game of this kind: but it was loaded
        ludus.train(
            "pursuit", run="new", quiet=True, trust=True, total_agent_steps=20_000, **league
        )
    assert os.path.exists("executed")


def test_a_run_made_here_is_trusted_by_other_processes_too(tmp_path, monkeypatch):
    monkeypatch.setattr(trust, "_trusted", set())
    mine, other = (Config(game=name) for name in ("tests.league.games:DUEL", "payload:GAME"))
    trust.require(tmp_path, mine, trust.mark(mine))
    for mark in (None, 3, "", trust.mark(other)):
        with pytest.raises(LudusError, match="was not made here"):
            trust.require(tmp_path, mine, mark)
    assert trust.secret_file().stat().st_mode & 0o777 == 0o600
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "elsewhere"))
    with pytest.raises(LudusError, match="was not made here"):
        trust.require(tmp_path, mine, trust.mark(other))


def test_a_copied_mark_brings_no_code(received, capsys, tmp_path, monkeypatch):
    """Of a run that was given away: the same game, and another module of its name."""
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "payload.py").write_text("")
    forge(received, game="env:payload:make")
    monkeypatch.chdir(mine)
    theirs = Config(game="env:payload:make")
    mark = trust.mark(theirs)
    assert mark is not None
    trust.require(received.path, theirs, mark)
    monkeypatch.chdir(tmp_path)
    data = received.read_json("config.json")
    (received.path / "config.json").write_text(json.dumps({**data, "made_here": mark}))
    for command in ("eval", "resume"):
        assert "its code is elsewhere" in refused(capsys, *COMMANDS[command])
    assert not os.path.exists("executed")


def test_where_no_secret_can_be_kept_the_process_that_made_a_run_still_trusts_it(
    tmp_path, monkeypatch
):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
    theirs = Config(game="payload:GAME")
    assert trust.mark(theirs) is None
    monkeypatch.setattr(trust, "_trusted", set())
    trust.believe(tmp_path)
    trust.require(tmp_path, theirs, None)


@pytest.mark.parametrize(
    "name",
    [
        "checkpoints",
        "metrics.jsonl",
        "lock",
        "replays",
        "checkpoints/000000000000/policy.safetensors",
    ],
)
def test_links_out_of_somebodys_run_are_not_followed(received, tmp_path, capsys, name):
    """Going on would delete folders in it, or write at its end."""
    aim = tmp_path / "aim"
    (aim / "precious").mkdir(parents=True)
    place = received.path / name
    if place.is_dir():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    if not name.endswith(("s", "replays")):
        aim = aim / "text"
        aim.write_text("precious")
    place.symlink_to(aim)
    error = refused(capsys, *COMMANDS["resume"])
    assert "is a link to" in error and (tmp_path / "aim" / "precious").is_dir()
    assert aim.is_dir() or aim.read_text() == "precious"


def test_ratings_are_not_drawn_through_a_link(received, tmp_path, capsys):
    (tmp_path / "precious").write_text("precious")
    (received.path / "league.png").symlink_to(tmp_path / "precious")
    (received.path / "payoff.json").write_text('{"tables": {}}')
    assert "is a link to" in refused(capsys, "league", "run")
    assert (tmp_path / "precious").read_text() == "precious"


def test_a_link_in_a_circle_is_refused(received, capsys):
    """It leads nowhere: there is nothing to read, and nothing to write to."""
    (received.path / "ended.json").unlink()
    (received.path / "ended.json").symlink_to("ended.json")
    for command in ("eval", "resume"):
        assert "is a link to ended.json" in refused(capsys, *COMMANDS[command])


def test_a_changed_setting_is_refused_by_name(received, capsys):
    data = received.read_json("config.json")
    data["values"]["policy.activation"] = "relu"
    (received.path / "config.json").write_text(json.dumps(data))
    for command in ("eval", "resume", "export"):
        error = refused(capsys, *COMMANDS[command])
        assert "policy.activation is relu there" in error and "made with tanh" in error
    before = sorted(p.name for p in received.path.iterdir())
    with pytest.raises(LudusError, match=r"policy\.activation"):
        api.resume("run", total_agent_steps=3000)
    assert sorted(p.name for p in received.path.iterdir()) == before
