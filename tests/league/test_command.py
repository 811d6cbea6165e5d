"""ludus league: payoff, forgetting and exploitability of a game whose answers are known, and other
runs as opponents."""

import json

import pytest

import ludus
from ludus.algorithms.ppo import PPOConfig
from ludus.cli import main
from ludus.config import Config, EvalConfig, LeagueConfig, LogConfig, PolicyConfig, TrainConfig
from ludus.errors import LudusError
from ludus.examine.exploit import free_folder
from ludus.files import read_lines
from ludus.league.payoff import columns
from ludus.runs import checkpoint
from ludus.runs.run import Run
from ludus.training.start import create, prepare


def cards(mix="self 1, pool 2, bot:middle 1", steps=8000, **league):
    return Config(
        game="tests.league.games:HIGH_CARD",
        envs=8,
        policy=PolicyConfig(hidden=(8,)),
        learner=PPOConfig(rollout=16, epochs=1, minibatches=1, learning_rate=3e-2),
        train=TrainConfig(total_agent_steps=steps, threads=1),
        league=LeagueConfig(
            **{"mix": mix, "slots": 2, "snapshot_every": 1500, "renew_every": 1, **league}
        ),
        eval=EvalConfig(episodes=2, against=("self",), greedy=False),
        log=LogConfig(tensorboard=False, replay_every=0),
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """It learns to show the high card within its first 2,000 steps or so."""
    return ludus.train(cards(), run=tmp_path_factory.mktemp("league") / "cards", quiet=True).path


def call(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        main(["league", *map(str, arguments)])
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


@pytest.fixture(scope="module")
def result(run):
    from ludus.commands.league import League, look

    return look(League(run=str(run), payoff=3, episodes=60, exploit=None, json=True))


def test_ratings_and_win_rates_come_from_the_log(run, result):
    """Whoever shows the high card is above the untrained policy, and that above nobody but the bot
    it draws or loses to."""
    names = list(result["ratings"])
    steps = sorted(int(n.split(":")[1]) for n in names if n.startswith("snapshot:"))
    assert names[-1] == "bot:middle" and names[-2] == "snapshot:0" and len(steps) >= 5
    bot = result["win_rates"][""]["bot:middle"]
    assert bot["win_rate"] > 0.9 and bot["low"] <= bot["win_rate"] <= bot["high"]
    counted = sum(
        line["episodes"]
        for line in read_lines(run / "matches.jsonl")
        if line["opponent"] == "bot:middle"
    )
    assert bot["episodes"] == pytest.approx(counted)


def test_the_payoff_matrix_is_what_the_cards_say(run, result):
    table = result["payoff"]["tables"]["player"]
    for row, cells in table.items():
        assert row not in cells
        for column, cell in cells.items():
            back = table[column][row]
            assert cell["win_rate"] == back["loss_rate"] and cell["draw_rate"] == back["draw_rate"]
            assert cell["win_rate"] + cell["draw_rate"] + cell["loss_rate"] == pytest.approx(1)
            assert cell["low"] <= cell["win_rate"] <= cell["high"]
    assert (
        table["now"]["bot:still"]["win_rate"] == 1 and table["now"]["bot:middle"]["win_rate"] == 1
    ), "high beats low and middle"
    assert table["now"]["bot:random"]["win_rate"] == pytest.approx(2 / 3, abs=0.2)
    old = result["payoff"]["forgetting"]["player"]
    newest = list(old)[-1]
    assert (
        next(iter(old)) == "snapshot:0"
        and old["snapshot:0"]["loss_rate"] == 0
        and old["snapshot:0"]["win_rate"] > 0.4
    )
    assert len(old) == 3 and old[newest]["draw_rate"] == 1, "high against high"
    assert json.loads((run / "payoff.json").read_text()) == result["payoff"]
    assert (run / "league.png").read_bytes().startswith(b"\x89PNG")
    assert "<h2>League</h2>" in (run / "report.html").read_text()


def test_columns_are_in_the_order_of_the_rows():
    cell = {"win_rate": 1.0}
    assert columns({"a": {"b": cell, "x": cell}, "b": {"a": cell}}) == ["a", "b", "x"]


def test_the_text_shows_the_stored_matrix_again(capsys, run, result):
    status, out, _ = call(capsys, run)
    assert status == 0 and "snapshot:0" in out and "Forgetting" in out and "100+0" in out


def test_a_fresh_policy_exploits_random_play_and_not_perfect_play(capsys, run):
    """Against random cards the best answer wins two in three and never loses; against the high card
    the best is a draw."""
    status, out, _ = call(capsys, f"{run}@0", "--exploit", "2.5", "--episodes", "120", "--json")
    found = json.loads(out)["exploit"]
    assert status == 0 and found["frozen"] == f"{run}@0" and found["agent_steps"] > 0
    assert found["metrics"]["win_rate"]["mean"] == pytest.approx(2 / 3, abs=0.17)
    assert found["metrics"]["loss_rate"]["mean"] < 0.05
    met = {line["opponent"] for line in read_lines(run / "exploit/1/matches.jsonl")}
    assert met == {f"{run}@0"}, "it met the frozen policy and nobody else"
    assert [p.stem for p in (run / "exploit/1/snapshots").iterdir()] == ["-00000000001"]
    assert free_folder(run / "exploit").name == "2"


def test_other_runs_stay_in_the_pool_and_in_the_log(run, tmp_path):
    other = f"{run}@0"
    settings = dict(opponents=(other,), pool_size=3, snapshot_every=1000)
    trained = ludus.train(cards(steps=8000, **settings), run=tmp_path / "r", quiet=True)
    newest = checkpoint.read_manifest(trained, checkpoint.find(trained, None))
    steps = [int(step) for step in newest["league"]["snapshots"]]
    assert steps[0] == -1 and steps[1] == 0 and len(steps) == 4, (
        "three of its own and the other run's"
    )
    assert other in {line["opponent"] for line in read_lines(trained.path / "matches.jsonl")}
    half = ludus.train(cards(steps=4000, **settings), run=tmp_path / "half", quiet=True)
    ludus.resume(half.path, quiet=True, total_agent_steps=8000)
    assert (half.path / "matches.jsonl").read_text() == (trained.path / "matches.jsonl").read_text()


def test_opponents_that_cannot_play_are_refused(run, tmp_path):
    with pytest.raises(LudusError, match="nobody plays it: add pool to the mix"):
        prepare(cards(mix="self 1", opponents=(str(run),)))
    larger = cards(opponents=(str(run),))
    larger.policy.hidden = (16,)
    with pytest.raises(LudusError, match="is another network: it differs in"):
        create(tmp_path / "r", *prepare(larger))
    pursuit = cards(mix="self 1, pool 1", opponents=(str(run),))
    pursuit.game = "pursuit"
    with pytest.raises(LudusError, match="differ in their observation"):
        create(tmp_path / "r", *prepare(pursuit))
    assert not list(tmp_path.iterdir())


def test_what_has_no_answer_is_refused(capsys, tmp_path):
    alone = ludus.train(cards(mix="", steps=600), run=tmp_path / "alone", quiet=True).path
    for arguments, words in {
        (alone,): "has no matches: train with opponents",
        (alone, "--payoff", "3"): "has no snapshots",
        (alone, "--payoff", "0"): "is empty: use at least 1",
        (alone, "--exploit", "0"): "0.0 seconds train nothing",
        (tmp_path / "nothing",): "there is no run at",
    }.items():
        status, _, err = call(capsys, *arguments)
        assert status == 2 and words in " ".join(err.split()), err
    assert not (Run(alone).path / "exploit").exists()
