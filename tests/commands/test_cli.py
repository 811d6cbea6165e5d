"""The command line: answers, JSON shapes, exit statuses."""

import json

import pytest

from ludus.cli import main
from ludus.commands import COMMANDS
from tests.conftest import has_gpu


def call(capsys, *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    out = capsys.readouterr()
    return int(stop.value.code or 0), out.out, out.err


def test_help_names_every_command(capsys):
    status, out, _ = call(capsys, "--help")
    assert status == 0 and all(name in out for name in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(capsys, command):
    status, out, _ = call(capsys, *command.split(), "--help")
    assert status == 0 and "Example: ludus " + command.split()[0] in " ".join(out.split())


def test_games(capsys):
    assert "pursuit" in call(capsys, "games")[1]
    _, out, _ = call(capsys, "games", "pursuit:easy", "--json")
    game = json.loads(out)
    assert game["params"]["speed"]["value"] == 0.1 and len(game["observation"]) == 11
    assert "chaser: still, random, greedy" in call(capsys, "games", "pursuit")[1]


def test_games_check(capsys):
    status, out, _ = call(capsys, "games", "tests.sim.games:COUNTER", "--check")
    assert status == 0 and out.count("ok ") >= 10
    # what was not looked at is not called good
    assert f"{'ok     ' if has_gpu() else 'skipped'} cuda" in out


def test_bench_env_json(capsys):
    status, out, _ = call(
        capsys,
        "bench",
        "env",
        "--game",
        "pursuit",
        "--envs",
        "64",
        "--threads",
        "1",
        "--seconds",
        "0.1",
        "--json",
    )
    result = json.loads(out)
    assert status == 0 and result["agent_steps_per_s"] > 0 and result["num_agents"] == 4
    assert set(result) >= {
        "game",
        "device",
        "threads",
        "num_envs",
        "num_agents",
        "agent_steps_per_s",
        "per_core",
        "peers",
        "ratio",
    }


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["gmaes"], "did you mean 'games'"),
        (["bench"], "needs one of: train, env"),
        (["games", "pursiut"], "did you mean 'pursuit'"),
        (["games", "pursuit:esay"], "no preset 'esay': did you mean 'easy'"),
        (["games", "no.such.module:GAME"], "no module 'no'"),
        (["games", "ludus.games.pursuit.spec:NOPE"], "no 'NOPE'"),
        (["bench", "env", "--game", "pursuit", "--envs", "0"], "0 envs"),
        (["bench", "env", "--game", "pursuit", "--seconds", "0"], "more than 0"),
        (["bench", "env", "--game", "pursuit", "--device", "tpu"], "use cpu or cuda"),
        (["bench", "env", "--game", "pursuit", "--envs", "many"], "many"),
    ],
    ids=" ".join,
)
def test_impossible_requests_get_one_sentence_and_status_2(capsys, arguments, words):
    status, _, err = call(capsys, *arguments)
    assert status == 2 and words in err and "Traceback" not in err
