"""Stages of a curriculum: what ends them, what counts for them, what they change, and that a
resumed run is in the same one."""

import numpy as np
import pytest

import ludus
from ludus.algorithms.ppo import PPOConfig
from ludus.config import (
    Config,
    CurriculumConfig,
    EvalConfig,
    LeagueConfig,
    LogConfig,
    PolicyConfig,
    Stage,
    TrainConfig,
)
from ludus.curriculum.measure import FEWEST_ITERATIONS, Measured
from ludus.errors import LudusError
from ludus.training.start import create, prepare

GAME = "tests.curriculum.games:DECIDED"
WON, LOST = {"heroes_win": 1}, {"heroes_win": 0}


def config(*stages, steps=200_000, envs=32, mix="", against=("self",), **values):
    return Config(
        game=GAME,
        envs=envs,
        game_values=values,
        policy=PolicyConfig(hidden=(8,)),
        learner=PPOConfig(rollout=8, minibatches=1, epochs=1, learning_rate=1e-3),
        league=LeagueConfig(mix=mix, slots=2),
        curriculum=CurriculumConfig(stages=stages),
        train=TrainConfig(total_agent_steps=steps, threads=1),
        eval=EvalConfig(episodes=4, against=against, every_agent_steps=10**9, greedy=False),
        log=LogConfig(tensorboard=False, replay_every=0, diagnostics_every=0),
    )


def made(tmp_path, *stages, **values):
    return create(tmp_path / "run", *prepare(config(*stages, **values)))


def until_beaten(game, opponent="hero/bot:still", **settings):
    return Stage(mix=f"{opponent.partition('/')[2]} 1", opponent=opponent, game=game, **settings)


def test_stages_move_on_when_the_opponent_is_surely_beaten(tmp_path):
    trainer = made(
        tmp_path,
        until_beaten(WON, win_rate=0.8, least_episodes=60),
        Stage(mix="self 1, bot:still 1"),
    )
    records = [trainer.iterate() for _ in range(16)]
    numbers = [record["curriculum/stage"] for record in records]
    assert numbers[0] == 0 and numbers[-1] == 1 and records[-1]["curriculum/stages"] == 2
    assert records[0]["curriculum/needed"] == 0.8 and "curriculum/needed" not in records[-1]
    assert {lineup.opponent for lineup in trainer.league.lineups} == {"self", "bot:still"}


def test_episodes_of_the_stage_before_count_for_nobody(tmp_path):
    """The heroes win every game of stage 1 and none of stage 2: not one win may be counted there,
    for anybody."""
    second = Stage(mix="bot:random 1, self 1", opponent="hero/bot:random", win_rate=0.9, game=LOST)
    trainer = made(tmp_path, until_beaten(WON, win_rate=0.99), second, Stage(mix="self 1"))
    for _ in range(4):
        record = trainer.iterate()
    assert record["league/hero/bot:still/win_rate"] == 1.0 and record["goal/hero/victory"] == 1.0
    trainer.league.matches.pending = {}
    trainer.stages.enter(1)
    records = [trainer.iterate() for _ in range(4)]
    rates = [
        r["league/hero/bot:random/win_rate"]
        for r in records
        if "league/hero/bot:random/win_rate" in r
    ]
    victories = [r["goal/hero/victory"] for r in records if "goal/hero/victory" in r]
    assert rates and set(rates) == {0.0} and victories and set(victories) == {0.0}
    results = {key: counts.tolist() for key, counts in trainer.league.matches.pending.items()}
    assert {opponent for _, opponent in results} == {"bot:random"}
    assert results["hero", "bot:random"][1] == 0 and results["rival", "bot:random"][3] == 0


def test_game_values_of_a_stage_end_with_it(tmp_path):
    trainer = made(
        tmp_path, until_beaten({"slope": 1.0, "reward.win": 3.0}), Stage(mix="self 1"), slope=0.25
    )
    assert (
        np.unique(trainer.batch.held("slope")) == 1.0
        and np.unique(trainer.batch.held("reward.win")) == 3.0
    )
    trainer.stages.enter(1)
    trainer.batch.reset()
    assert (
        np.unique(trainer.batch.held("slope")) == 0.25
        and np.unique(trainer.batch.held("reward.win")) == 1.0
    )


def test_a_stage_goes_before_a_schedule_as_long_as_it_lasts(tmp_path):
    trainer = made(tmp_path, until_beaten({"slope": 1.0}), Stage(mix="self 1"), slope="0.25 -> 0.5")
    trainer.iterate()
    assert np.unique(trainer.batch.held("slope")) == 1.0
    trainer.stages.enter(1)
    trainer.iterate()
    trainer.batch.reset()
    assert 0.25 <= trainer.batch.held("slope").max() < 0.3


def test_the_first_episodes_follow_the_mix(tmp_path):
    """Against a bot on the other side, a side learns or does not: in the first rollout as in all
    others."""
    trainer = made(tmp_path, mix="bot:random 1, self 0.001")
    batch = trainer.batch
    assert (batch["lineup"] >= 0).all() and (batch["episode"] == 0).all()
    learns = batch["controller"] == 0
    trainer.iterate()
    for role in trainer.algorithm.roles.values():
        assert not role.rollout.valid.view(8, 32, -1)[0][~learns[:, role.agents]].any()


def test_a_run_may_begin_with_a_later_stage(tmp_path):
    settings = config(until_beaten({"slope": 1.0}), Stage(mix="self 1", game={"slope": 2.0}))
    settings.curriculum.first_stage = 2
    trainer = create(tmp_path / "later", settings, {})
    assert (
        trainer.iterate()["curriculum/stage"] == 1 and np.unique(trainer.batch.held("slope")) == 2.0
    )
    assert {lineup.opponent for lineup in trainer.league.lineups} == {"self"}
    settings.curriculum.first_stage = 3
    with pytest.raises(LudusError, match="first_stage is 3, but there are 2 stages"):
        prepare(settings)


def test_a_stage_lasts_at_least_and_at_most_as_long_as_it_says(tmp_path):
    easy = until_beaten(WON, win_rate=0.5, least_episodes=10, least_agent_steps=3000)
    never = until_beaten(LOST, win_rate=0.9, most_agent_steps=2000)
    trainer = made(tmp_path, easy, never, Stage(mix="self 1"))
    records = [trainer.iterate() for _ in range(30)]
    spent = {
        stage: max(
            r["curriculum/stage_agent_steps"] for r in records if r["curriculum/stage"] == stage
        )
        for stage in (0, 1)
    }
    assert (
        3000 <= spent[0] < 3600 and 2000 <= spent[1] < 2600 and records[-1]["curriculum/stage"] == 2
    )


@pytest.mark.parametrize("metric", ["goal/hero/victory", "eval/bot:still/hero/victory"])
def test_a_stage_ends_by_a_metric_without_any_opponent(tmp_path, metric):
    """The heroes always win; the second aim is out of reach."""
    stages = (Stage(metric=metric, threshold=0.3), Stage(metric=metric, threshold=1.1), Stage())
    trainer = made(tmp_path, *stages, against=("bot:still",))
    assert trainer.league is None
    numbers = []
    for i in range(16):
        numbers.append(trainer.iterate()["curriculum/stage"])
        if i == 5 and metric.startswith("eval"):
            trainer.stages.after_evaluation(trainer.evaluations.evaluate())
    assert [numbers[0], numbers[-1]] == [0, 1]
    assert metric.startswith("goal") or numbers.count(0) == 7


def test_the_bound_of_training_episodes_by_hand():
    """Means of 0.2 and 0.4 over 50 episodes each: 0.3 ± 1.96 · 0.1 · √(6 / 5) / √6; with too few
    iterations, nothing."""
    measured = Measured()
    for i in range(6):
        assert (measured.bound(share=False, upper=False) is None) == (i < FEWEST_ITERATIONS)
        measured.trained(
            {"goal/a/x": 0.2 if i % 2 else 0.4, "episode/a/episodes": 50.0}, "goal/a/x"
        )
    half = 1.96 * 0.1 / 5**0.5
    assert measured.bound(share=False, upper=False) == pytest.approx((0.3 - half, 300))
    assert measured.bound(share=False, upper=True) == pytest.approx((0.3 + half, 300))
    measured.evaluated({"goal/a/x_low": 0.1, "goal/a/x_high": 0.7}, "goal/a/x")
    assert measured.bound(share=False, upper=True) == (0.7, None)


def test_other_sizes_carry_the_policy_over_and_resume_is_exact(tmp_path):
    """One hero, then three, then as many as the run's own game has. A resumed run is the run that
    was never stopped."""
    stages = (
        Stage(most_agent_steps=2000),
        Stage(mix="self 1, pool 1", game={"heroes": 3}, most_agent_steps=4000),
        Stage(),
    )

    def new(name, steps):
        settings = config(*stages, steps=steps, envs=16, heroes=2)
        settings.learner.minibatches, settings.checkpoint.every_seconds = 2, None
        settings.league.snapshot_every = 1000
        return ludus.train(settings, run=tmp_path / name, quiet=True)

    whole, cut = new("whole", 9_000), new("cut", 5_000)
    assert cut.metrics()[-1]["curriculum/stage"] == 1
    ludus.resume(cut.path, quiet=True, total_agent_steps=9_000)
    agents = {
        line["curriculum/stage"]: line["episode/hero/episodes"]
        for line in whole.metrics()
        if "episode/hero/length" in line
    }
    assert set(agents) == {0.0, 1.0, 2.0}
    expected, told = whole.metrics()[-1], cut.metrics()[-1]
    named = [
        n
        for n in expected
        if n.startswith(("learner/", "goal/", "episode/", "action/", "curriculum/"))
    ]
    assert len(named) > 20 and {n: told[n] for n in named} == {n: expected[n] for n in named}
    assert ludus.evaluate(whole.path, episodes=2)["metrics"]


@pytest.mark.parametrize(
    ("stages", "words"),
    [
        ((Stage(mix="self 1"), Stage(mix="self 1")), "never ends"),
        ((Stage(mix="self 1", opponent="bot:still"), Stage(mix="self 1")), "never meets it"),
        ((until_beaten({}, win_rate=1.0), Stage(mix="self 1")), "less than 1"),
        ((until_beaten({}, win_rate=0.999), Stage(mix="self 1")), "gives 0.99"),
        ((until_beaten({}),), "nothing follows it"),
        ((Stage(most_agent_steps=100),), "nothing follows it"),
        ((Stage(metric="goal/hero/victor", threshold=0.5), Stage()), "goal/hero/victory"),
        ((Stage(metric="goal/hero/victory"), Stage()), "no threshold"),
        (
            (Stage(metric="eval/bot:still/hero/victory", threshold=0.5), Stage()),
            "will not be evaluated: use eval/self/hero/victory",
        ),
        (
            (Stage(most_agent_steps=100, least_agent_steps=200), Stage()),
            "at most 100 agent-steps but at least 200",
        ),
        ((Stage(most_agent_steps=100, game={"slop": 1.0}), Stage()), "slope"),
        ((Stage(most_agent_steps=100, game={"slope": 100.0}), Stage()), "slope=100.0 is outside"),
    ],
)
def test_stages_that_cannot_work_are_refused(stages, words):
    with pytest.raises(LudusError, match=words):
        prepare(config(*stages))


def test_sizes_that_change_what_agents_observe_are_refused():
    settings = config(Stage(most_agent_steps=100, game={"runners": 5}), Stage())
    settings.game = "pursuit"
    with pytest.raises(
        LudusError,
        match="runners=5, with which agents have another observation: a policy cannot carry over",
    ):
        prepare(settings)


@pytest.mark.parametrize(
    "stage",
    [Stage(metric="eval/self/return", threshold=1.0), Stage(most_agent_steps=9, game={"x": 1.0})],
)
def test_stages_of_envs_that_have_nothing_to_change_are_refused(stage):
    settings = config(stage, Stage())
    settings.game = "gym:CartPole-v1"
    with pytest.raises(LudusError, match="no opponents and no parameters that stages could change"):
        prepare(settings)
