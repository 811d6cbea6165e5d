"""Bots of the user's own, by import path: in training, in evaluations, in adapters and in the
viewer; and what is refused."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import ludus
from ludus import cli
from ludus.config import Config, CurriculumConfig, Stage, bots_named, own_code
from ludus.envs.single import LudusEnv
from ludus.errors import LudusError
from ludus.films.resimulate import Script
from ludus.films.shows import Shows
from ludus.games import load_game
from ludus.games.own_bots import with_bots
from ludus.play.replay import Replay
from ludus.runs.run import Run
from ludus.sim.program import controllers
from ludus.who import own_bots

STAY = "bot:my_bots:stay"
BOTS = '''
from pathlib import Path

from ludus.sim import bot, phase

Path("imported").touch()


@bot(roles="runner", writes=("action_turn", "action_go"))
def stay(env, agent, action_turn, action_go):
    action_turn[env, agent] = 0.5
    action_go[env, agent] = 0


@bot(writes=("action_turn", "action_go"))
def greedy(env, agent, action_turn, action_go):
    """Has the name of a bot of the game, and plays every role."""
    action_turn[env, agent] = 0.0
    action_go[env, agent] = 1


@bot(roles="runner", writes="action_turn")
def hasty(env, agent, action_turn):
    action_turn[env, agent] = 2.5


@bot(roles="runner", writes="action_turn")
def outside(env, agent, agents, heading, action_turn):
    action_turn[env, agent] = heading[env, agents] / 10.0


@bot(roles="runner", writes="action_turn")
def unset(env, agent, heading, action_turn):
    if heading[env, agent] > 100.0:
        turn = 1.0
    action_turn[env, agent] = turn


@bot(roles="hider", writes="action_turn")
def elsewhere(env, agent, action_turn):
    action_turn[env, agent] = 0.0


@bot(roles="runner", writes="position")
def cheat(env, agent, position):
    position[env, agent, 0] = 0.0
    position[env, agent + 1, 0] = 0.0


@phase(lanes="agents", writes="action_turn")
def undecorated(env, agent, action_turn):
    action_turn[env, agent] = 0.0


def plain(env, agent, action_turn): ...
'''
SMALL = {
    "envs": 4,
    "game.max_steps": 20,
    "ppo.rollout": 8,
    "policy.hidden": (8,),
    "eval.episodes": 4,
    "eval.greedy": False,
    "eval.against": (STAY,),
    "league.mix": f"self 50, {STAY} 50",
    "log.tensorboard": False,
    "train.threads": 1,
    "checkpoint.best_metric": f"eval/{STAY}/catch_rate",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the user works."""
    path = tmp_path_factory.mktemp("work")
    (path / "my_bots.py").write_text(BOTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        patch.syspath_prepend(str(path))
        yield path
    sys.modules.pop("my_bots", None)


@pytest.fixture(autouse=True)
def working_there(folder):
    """All tests do."""


@pytest.fixture(scope="module")
def run(folder):
    """Trained against `stay`."""
    return ludus.train("pursuit", run=folder / "run", quiet=True, total_agent_steps=3000, **SMALL)


# -- names -----------------------------------------------------------------------------------------


def test_paths_in_names():
    names = ["self", "bot:flee", "bot:a.b:c", "chaser/bot:d:e", "eval/bot:a.b:c/win_rate", "runs/b"]
    assert own_bots(names) == ["a.b:c", "d:e"]


def test_settings_that_name_code():
    config = Config(game="pursuit")
    assert own_code(config) == {}
    config.league.mix = "self 1, bot:a:b 1, bot:a:none 0"
    config.league.sampler = "a:c"
    config.eval.against = ("self", "bot:a:d")
    config.checkpoint.best_metric = "eval/bot:a:e/win_rate"
    config.log.sinks = ("a:f", "a:g")
    config.curriculum.tasks.sampler = "a:h"
    assert sorted(own_code(config)) == [f"a:{name}" for name in "bcdefgh"]
    stages = (Stage(mix="bot:a:i 1", opponent="chaser/bot:a:j"), Stage(metric="eval/bot:a:k/x"))
    config = Config(game="pursuit", curriculum=CurriculumConfig(stages=stages))
    assert bots_named(config) == ["a:i", "a:j", "a:k"]


def test_the_bots_of_the_game_keep_their_numbers():
    game, _ = load_game("pursuit")
    assert with_bots(game, []) is game
    before, after = controllers(game), controllers(with_bots(game, ["my_bots:greedy"]))
    number = max(n for table in before.values() for n in table.values()) + 1
    for role, table in before.items():
        assert after[role] == {**table, "my_bots:greedy": number}


# -- playing ---------------------------------------------------------------------------------------


def test_a_run_trains_against_it_and_measures_itself_by_it(run):
    last = [line for line in run.metrics() if f"eval/{STAY}/catch_rate" in line][-1]
    assert 0 <= last[f"eval/{STAY}/catch_rate"] <= 1
    assert any(f"league/chaser/{STAY}/win_rate" in line for line in run.metrics())
    assert (run.path / "checkpoints").is_dir() and run.state()[0] == "finished"
    assert f'"opponent": "{STAY}"' in (run.path / "matches.jsonl").read_text()
    assert STAY in (run.path / "report.html").read_text()


def test_a_new_process_resumes_and_evaluates(run):
    def ludus_command(*arguments):
        done = subprocess.run(
            [sys.executable, "-m", "ludus", *arguments], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    ludus_command("resume", str(run.path), "--train.total-agent-steps", "4000", "--quiet")
    assert run.metrics()[-1]["progress/agent_steps"] >= 4000
    found = json.loads(
        ludus_command("eval", str(run.path), "--against", STAY, "--episodes", "4", "--json")
    )
    assert found["against"] == STAY and "catch_rate" in found["metrics"]
    ratings = json.loads(ludus_command("league", str(run.path), "--json"))["ratings"]
    assert STAY in json.dumps(ratings)


def test_it_does_what_it_says():
    env = LudusEnv("pursuit", role="chaser", opponent=STAY)
    env.reset(seed=1)
    before = env.batch["position"].copy()
    for _ in range(3):
        env.step(env.action_space.sample())
    assert np.array_equal(before[0, 1:], env.batch["position"][0, 1:])
    with pytest.raises(LudusError, match="my_bots:hasty acts outside"):
        LudusEnv("pursuit", role="chaser", opponent="bot:my_bots:hasty")


def test_replays_show_it_without_its_code(run):
    path = next((run.path / "replays").glob("*bot_my_bots_stay-chaser-best*"))
    script = Script(Replay(path), Shows())
    film = script.film()
    assert film.header["players"] == ["policy", *3 * [STAY]] and film.header["differs"] is None


def test_the_viewer_imports_only_what_its_command_line_names(run, monkeypatch):
    from ludus.viewer.library import Library
    from ludus.viewer.theatre import Theatre

    library = Library(None, [run.path])
    theatre = Theatre(library, Shows())
    with pytest.raises(LudusError, match=r"allow it with `ludus view GAME --agents bot:my_bots"):
        theatre.from_game("pursuit", [f"runner={STAY}"], {})
    allowed = Theatre(library, Shows(bots=["my_bots:stay"]))
    session = allowed.from_game("pursuit", [f"runner={STAY}"], {"max_steps": 20})
    assert session.batch.controllers["runner"]["my_bots:stay"] > 0
    # of a run it needs the policy alone
    monkeypatch.delitem(sys.modules, "my_bots")
    os.remove("imported")
    theatre.from_run("run")
    assert not os.path.exists("imported")
    replay = next((run.path / "replays").glob("*bot_my_bots_stay-chaser-best*"))
    session = theatre.from_replay("run", replay.name, 2)
    session.step()
    assert not os.path.exists("imported")


def test_reading_a_run_imports_nothing(run, monkeypatch):
    monkeypatch.delitem(sys.modules, "my_bots", raising=False)
    if os.path.exists("imported"):
        os.remove("imported")
    assert own_code(Run(run.path).settings()) == {"my_bots:stay": "bot"}
    assert not os.path.exists("imported")


# -- refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("my_bots:hasty", r"the bot my_bots:hasty acts outside \[-1, 1\] in turn .*my_bots.py:\d+"),
        ("my_bots:outside", r"outside reads heading\[0, 4\] .*my_bots.py:\d+\): index 4 is out"),
        ("my_bots:unset", r"unset stops .*my_bots.py:\d+.*set it on every way"),
        ("my_bots:elsewhere", "for the role 'hider', which pursuit does not have"),
        ("my_bots:cheat", "my_bots:cheat: writes 'position' at an entry of another lane"),
        ("my_bots:undecorated", "is a Phase, not a bot: write @bot"),
        ("my_bots:plain", "is a function, not a bot: write @bot"),
        ("my_bots:sta", "the module my_bots has no 'sta': did you mean 'stay'"),
        ("no_module:stay", "there is no module 'no_module'"),
    ],
)
@pytest.mark.parametrize("setting", ["--league.mix", "--eval.against"])
def test_wrong_bots_are_refused_before_anything_is_written(name, told, setting, folder, capsys):
    value = f"self 50, bot:{name} 50" if setting == "--league.mix" else f"bot:{name}"
    with pytest.raises(SystemExit) as ended:
        cli.main(["train", "pursuit", "--run", "runs/no", setting, value, "--quiet"])
    said = capsys.readouterr().err.strip()
    assert ended.value.code == 2 and re.search(told, said) and "\n" not in said, said
    assert not (folder / "runs").exists()


def test_a_bot_that_is_not_evaluated_cannot_choose_the_best_checkpoint():
    config = Config(game="pursuit")
    config.checkpoint.best_metric = f"eval/{STAY}/catch_rate"
    config.eval.against = ("self",)
    config.train.total_agent_steps = 10**6
    with pytest.raises(LudusError, match=r"best_metric=eval/bot:my_bots:stay/catch_rate will not"):
        ludus.train(config, run="runs/no", quiet=True)
    assert not os.path.exists("runs")


def test_evaluation_refuses_them_too(run):
    with pytest.raises(LudusError, match="my_bots:hasty acts outside"):
        ludus.evaluate(run.path, "bot:my_bots:hasty", episodes=2)
    with pytest.raises(LudusError, match=r"your own: bot:package.module:NAME"):
        ludus.evaluate(run.path, "bot:my_bots.stay", episodes=2)
