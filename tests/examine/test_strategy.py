"""Analysis of strategy encoders: hand-made encoders whose answers are known, and statistics with
known values."""

import json
import math

import numpy as np
import pytest
import torch

import ludus
from ludus.algorithms.ppo import PPOConfig
from ludus.config import CheckpointConfig, Config, EvalConfig, LogConfig, PolicyConfig, TrainConfig
from ludus.errors import LudusError
from ludus.examine.linear_probe import accuracy, fit
from ludus.examine.strategy import Seen, analyse, another_opponent, distances, opponents_of
from ludus.examine.strategy_report import principal
from ludus.intervals import newcombe
from ludus.networks.heads import action_space
from ludus.networks.policy import Policy
from ludus.networks.strategy import Strategy, StrategyEncoder
from ludus.networks.strategy_config import StrategyConfig
from ludus.sim import Batch, Choice, Game, Goal, Param, Role, Term, float32, i32, phase
from tests.commands.test_cli import call

# -- a duel that knowing the opponent wins ---------------------------------------------------------


@phase(writes=("terminated", "outcome"))
def judge(env, step, max_steps, action_card, terminated, outcome):
    """Whoever shows the opponent's card in the last step wins; if both do, or neither, it is a
    draw."""
    terminated[env] = step[env] >= max_steps[env]
    same = action_card[env, 0] == action_card[env, 1]
    if terminated[env]:
        outcome[env, 0] = 1 if same else -1
        outcome[env, 1] = 1 if same else -1


@phase(lanes="agents", writes=("shown", "goal_same"))
def show(env, agent, action_card, outcome, shown, goal_same):
    shown[env, agent] = action_card[env, agent]
    goal_same[env, agent] = float32(outcome[env, agent])


@phase(lanes="agents", writes="shown")
def clear(env, agent, shown):
    shown[env, agent] = 0


@phase(lanes="agents", writes=("observation", "term_none"))
def look(env, agent, agents, shown, observation, term_none):
    observation[env, agent, 0] = float32(shown[env, agents - 1 - agent])
    observation[env, agent, 1] = 1.0
    term_none[env, agent] = 0.0


@phase(lanes="agents", writes="action_card")
def low(env, agent, action_card):
    action_card[env, agent] = 0


@phase(lanes="agents", writes="action_card")
def high(env, agent, action_card):
    action_card[env, agent] = 1


@phase(lanes="agents", writes="action_card")
def switcher(env, agent, step, decision_frames, action_card):
    action_card[env, agent] = step[env] * decision_frames[env] // 450 % 2


GAME = Game(
    name="duel",
    summary="show what the opponent shows",
    roles=[Role("player", teams=2)],
    state=dict(shown=i32("agents")),
    params=dict(max_steps=Param(25, 2, 100), decision_frames=Param(45, 1, 450)),
    observation=["opponent_card", "one"],
    action=dict(card=Choice(("low", "high"))),
    rewards=dict(none=Term("goal", 1.0, most=1)),
    goal_metrics=dict(same=Goal()),
    step=[judge, show, look],
    reset=[clear, look],
    bots=dict(player=[low, high, switcher]),
)
NAME = "tests.examine.test_strategy:GAME"
FRAMES = 4
ATTENTION = (0.1, 0.2, 0.3, 0.4)


class Newest(StrategyEncoder):
    """Its vector is the opponent's card as it was last seen, and a number that means nothing."""

    def recognise(self, history):
        card = history[:, :, -1, 0, :1]
        vector = torch.cat([2 * card - 1, torch.rand(card.shape)], -1)
        return Strategy(vector, torch.tensor(ATTENTION).expand(*card.shape[:2], FRAMES))


def settings(size="small"):
    """`size` none: without a strategy encoder."""
    if size == "none":
        return PolicyConfig(hidden=(2,), normalise_observation=False, separate_value=False)
    strategy = StrategyConfig(
        size=size, history=FRAMES, stride=1, layers=1, heads=1, width=2, vector=2
    )
    return PolicyConfig(
        hidden=(2,),
        normalise_observation=False,
        separate_value=False,
        network="strategy",
        network_settings=strategy,
    )


def listener(listens=True):
    """A policy that shows the card its strategy vector names; a deaf one always shows the low
    card."""
    batch = Batch(GAME, 1, jit=False)
    policy = Policy(batch.layout.observation, action_space(batch.layout, False), settings())
    policy.actor.network.seen["history"].__class__ = Newest
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.zero_()
        policy.actor.network.seen["history"].into.weight[0, 0] = 20.0 if listens else 0.0
        policy.action_head.weight[1, 0] = (
            40.0  # the logit of the high card against that of the low one
        )
        policy.action_head.bias[1] = 0.0 if listens else -40.0
    return policy.eval()


def make(num_envs):
    return Batch(GAME, num_envs, seed=5, jit=False)


def test_a_policy_that_listens_wins_with_true_vectors_and_loses_with_those_of_the_other_opponent():
    report, seen = analyse(make, listener(), ["low", "high"], 6, 1)
    wins = report["shuffled"]["all"]
    assert (wins["true"]["mean"], wins["shuffled"]["mean"], wins["gain"]["mean"]) == (1.0, 0.0, 1.0)
    assert 0.5 < wins["gain"]["low"] < 1.0 and report["matches"] == 6
    assert (
        report["probe"]["one_window"]["mean"] == report["probe"]["several_windows"]["mean"] == 1.0
    )
    assert (
        report["probe"]["confusion"] == [[1.0, 0.0], [0.0, 1.0]]
        and report["probe"]["chance"] == 0.5
    )
    assert report["attention"]["all"] == pytest.approx(ATTENTION) and report["attention"][
        "steps_back"
    ] == [3, 2, 1, 0]
    # windows that share no step, in matches of 25
    assert sorted(set(seen.age.tolist())) == [3, 7, 11, 15, 19, 23]
    assert report["probe"]["one_window"]["windows"] == 6 * 6


def test_a_deaf_policy_gains_nothing_though_the_vector_knows():
    report, _ = analyse(make, listener(listens=False), ["low", "high"], 4, 1)
    wins = report["shuffled"]
    assert (
        wins["all"]["gain"]["mean"] == 0.0
        and wins["all"]["gain"]["low"] < 0 < wins["all"]["gain"]["high"]
    )
    assert (wins["against"]["low"]["true"]["mean"], wins["against"]["high"]["true"]["mean"]) == (
        1.0,
        0.0,
    )
    assert report["probe"]["one_window"]["mean"] == 1.0


def test_the_switcher_is_looked_at_where_its_style_ends_and_begins():
    """450 frames of 45 are 10 steps. Histories of 4 steps inside a style end 3 to 9 steps after its
    start."""
    report, seen = analyse(make, listener(), ["low", "switcher", "high"], 4, 1)
    mine = seen.opponent[seen.row] == 1
    assert set(seen.age[mine].tolist()) >= {3, 5, 9, 13, 15, 19, 23} and set(
        seen.age[~mine].tolist()
    ) == {3, 7, 11, 15, 19, 23}
    found = report["switcher"]
    assert (
        report["probe"]["types"] == ["low", "high"]
        and found["steps_of_a_style"] == 10
        and found["matches"] == 4
    )
    # the card of step 10 is seen one step later: windows that end with 9 and 13 see other cards,
    # those with 5 and 9 the same
    assert (
        found["ratio"]["mean"] > 1.5
        and found["across_a_change"]["low"] > found["within_a_style"]["high"]
    )


def test_distances_by_hand():
    """Two matches whose vector moves by 1 and 3 within a style and by 6 across a change: three
    times as far. Its second entry hardly moves and hardly counts."""
    ages = [5, 9, 13, 15, 19]
    vectors = {0: [0.0, 1.0, 7.0, 7.0, 8.0], 1: [0.0, 3.0, 9.0, 9.0, 12.0]}
    vector = np.array(
        [[v, 1e-6 * (-1) ** i] for match in vectors.values() for i, v in enumerate(match)]
    )
    seen = Seen(
        vector,
        np.ones((10, 4)),
        np.repeat([0, 1], 5),
        np.array(ages * 2),
        np.array([0, 0]),
        np.zeros(2),
    )
    found = distances(seen, 0, 4, 10, 0)
    assert found["within_a_style"]["mean"] == pytest.approx(2) and found["across_a_change"][
        "mean"
    ] == pytest.approx(6)
    assert found["ratio"]["mean"] == pytest.approx(3.0) and found["ratio"]["low"] == pytest.approx(
        2.0
    )
    assert distances(seen, 0, 6, 10, 0) is None  # a style too short for two histories


def test_shuffled_vectors_are_those_of_matches_against_another_opponent():
    opponent = np.repeat([0, 1, 2], 5)
    other = another_opponent(opponent, 3)
    assert sorted(other) == list(range(15)) and (opponent[other] != opponent).all()
    assert (another_opponent(opponent, 4) != other).any()


# -- statistics ------------------------------------------------------------------------------------


def test_a_probe_reaches_what_the_best_rule_can():
    """Two classes a distance of 2 deviations apart: Φ(1) = 84.1% from one window, Φ(2) = 97.7% from
    four."""
    random = np.random.default_rng(0)
    matches = np.repeat(np.arange(2000), 4)
    labels = matches % 2
    vectors = random.normal(size=(8000, 3))
    vectors[:, 1] += 2.0 * labels
    fits = matches < 1000
    found = accuracy(
        fit(vectors[fits], labels[fits], matches[fits], 2),
        vectors[~fits],
        labels[~fits],
        matches[~fits],
    )
    phi = [0.5 * (1 + math.erf(x / math.sqrt(2))) for x in (1, 2)]
    assert found["one_window"]["mean"] == pytest.approx(
        phi[0], abs=4 * math.sqrt(phi[0] * (1 - phi[0]) / 4000)
    )
    assert found["several_windows"]["mean"] == pytest.approx(
        phi[1], abs=4 * math.sqrt(phi[1] * (1 - phi[1]) / 1000)
    )
    assert (
        found["one_window"]["low"] < phi[0] < found["one_window"]["high"]
        and found["several_windows"]["matches"] == 1000
    )


def test_a_probe_of_noise_is_at_chance_on_matches_it_did_not_see():
    random = np.random.default_rng(1)
    matches, vectors = np.arange(600), random.normal(size=(600, 5))
    vectors[:, 2] = 1.0  # an entry that never changes must not blow up
    labels = random.integers(3, size=600)
    found = accuracy(
        fit(vectors[::2], labels[::2], matches[::2], 3), vectors[1::2], labels[1::2], matches[1::2]
    )
    assert (
        found["one_window"]["low"] < 1 / 3 < found["one_window"]["high"]
        and found["several_windows"] is None
    )


def test_every_match_counts_alike():
    """One long match of class 0 and three short ones of class 1 at the same place: the majority of
    matches decides."""
    vectors, labels, matches = (
        np.zeros((13, 1)),
        np.array([0] * 10 + [1] * 3),
        np.array([0] * 10 + [1, 2, 3]),
    )
    probe = fit(vectors, labels, matches, 2)
    assert np.exp(probe.log_probabilities(np.zeros((1, 1)))[0]) == pytest.approx(
        [0.25, 0.75], abs=1e-3
    )


def test_newcombes_published_example():
    """56 of 70 against 48 of 80: 0.0524 to 0.3339 (Newcombe 1998, method 10)."""
    assert newcombe((56, 70), (48, 80)) == pytest.approx((0.0524, 0.3339), abs=5e-5)


def test_main_directions():
    points, shares = principal(np.array([[0.0, 0, 3], [0, 0, -3], [1, 0, 0], [-1, 0, 0]]))
    assert shares == pytest.approx([0.9, 0.1]) and np.abs(points).max(0) == pytest.approx([3, 1])


# -- the command -----------------------------------------------------------------------------------


def train(path, size):
    config = Config(
        game=NAME,
        envs=4,
        policy=settings(size),
        learner=PPOConfig(rollout=4, epochs=1, minibatches=1),
        train=TrainConfig(total_agent_steps=32, threads=1),
        eval=EvalConfig(episodes=1, greedy=False, against=("self",)),
        checkpoint=CheckpointConfig(every_seconds=None),
        log=LogConfig(tensorboard=False, replay_every=0),
    )
    return ludus.train(config, run=path, quiet=True)


def test_the_command_writes_numbers_and_a_picture_into_the_run(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("LUDUS_JIT", "0")
    run = train(tmp_path / "run", "small")
    status, out, _ = call(capsys, "eval", str(run.path), "--analyse", "--episodes", "4", "--json")
    report = json.loads(out)
    assert status == 0 and report["opponents"] == ["random", "low", "high", "switcher"]
    assert json.loads((run.path / report["files"][0]).read_text()) == report
    assert (
        report["metrics"]["gain"] == report["shuffled"]["all"]["gain"]
        and "switch_ratio" in report["metrics"]
    )
    assert (run.path / report["files"][1]).read_bytes()[:4] == b"\x89PNG"
    status, out, _ = call(
        capsys,
        "eval",
        str(run.path),
        "--analyse",
        "--against",
        "bot:low",
        "bot:high",
        "--episodes",
        "4",
    )
    assert (
        status == 0
        and "opponent named from one window" in out
        and "(chance 50.0%)" in out
        and "change of style" not in out
    )
    for arguments, words in (
        (["--episodes", "2"], "2 matches against each opponent are too few"),
        (["--against", "bot:low"], "nothing to tell apart among low"),
        (["--against", "bot:lwo"], "unknown opponent 'bot:lwo': did you mean 'bot:low'?"),
        (["--greedy"], "leave --greedy out"),
    ):
        status, _, err = call(capsys, "eval", str(run.path), "--analyse", *arguments)
        assert status == 2 and words in err and "Traceback" not in err
    plain = train(tmp_path / "plain", "none")
    assert "no strategy encoder to analyse" in call(capsys, "eval", str(plain.path), "--analyse")[2]
    assert not (plain.path / "analysis").exists()


def test_opponents_that_never_last_a_history_are_refused():
    with pytest.raises(LudusError, match="no match against low, high lasts 4 steps"):
        analyse(
            lambda n: Batch(GAME, n, overrides={"max_steps": 3}, jit=False),
            listener(),
            ["low", "high"],
            4,
            1,
        )
    assert opponents_of(make(1), ("bots",)) == ["random", "low", "high", "switcher"]
