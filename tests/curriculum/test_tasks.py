"""Tasks in a run: they change in reset rows only, every score reaches its own task, and a resume
goes on exactly."""

import json
import random

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import ludus
from ludus.algorithms.ppo import PPOConfig
from ludus.config import (
    CheckpointConfig,
    Config,
    CurriculumConfig,
    EvalConfig,
    LogConfig,
    PolicyConfig,
    Stage,
    TasksConfig,
    TrainConfig,
    flatten,
    unflatten,
)
from ludus.curriculum.tasks import Tasks
from ludus.errors import LudusError
from ludus.play.lineups import Lineup
from ludus.runs import checkpoint
from ludus.sim import Batch, Choice, Game, Goal, Param, Role, Term, phase
from ludus.sim.episode import STILL
from ludus.training.start import prepare


@phase(writes="terminated")
def tick(env, step, max_steps, terminated):
    terminated[env] = step[env] >= max_steps[env]


@phase(lanes="agents", writes=("observation", "term_point", "goal_level", "goal_wasted"))
def look(
    env, agent, level, action_act, resetting, observation, term_point, goal_level, goal_wasted
):
    """The score of an episode is its level: whoever is told another task's score has a wrong
    number."""
    observation[env, agent, 0] = level[env]
    goal_level[env, agent] = level[env]
    if not resetting[env]:
        pressed = action_act[env, agent] == 1
        term_point[env, agent] = 1.0 if pressed else 0.0
        goal_wasted[env, agent] += 0.0 if pressed else 1.0


GAME = Game(
    name="levels",
    summary="the level is the score",
    roles=[Role("left"), Role("right")],
    state={},
    params=dict(max_steps=Param(5, 1, 100), level=Param(0.0, 0.0, 10.0)),
    observation=["level"],
    action=dict(act=Choice(("no", "yes"))),
    rewards=dict(point=Term("goal", 1.0, most="max_steps")),
    goal_metrics=dict(level=Goal(), wasted=Goal(roles="right", higher_is_better=False)),
    step=[tick, look],
    reset=[look],
)
NAME = "tests.curriculum.test_tasks:GAME"


def config(steps=600, envs=12, rollout=7, **tasks):
    settings = {"vary": {"level": "0 to 10", "max_steps": "2, 5, 9"}, "pool": 40, **tasks}
    return Config(
        game=NAME,
        envs=envs,
        policy=PolicyConfig(hidden=(4,)),
        learner=PPOConfig(rollout=rollout, epochs=1, minibatches=1),
        train=TrainConfig(total_agent_steps=steps, threads=1),
        eval=EvalConfig(episodes=2, every_agent_steps=10**6, greedy=False, against=("self",)),
        checkpoint=CheckpointConfig(every_agent_steps=1, every_seconds=None, keep=99),
        log=LogConfig(tensorboard=False, replay_every=0),
        curriculum=CurriculumConfig(tasks=TasksConfig(**settings)),
    )


@pytest.fixture(autouse=True)
def no_compiling(monkeypatch):
    monkeypatch.setenv("LUDUS_JIT", "0")


def play(settings, iterations, watch=None):
    batch = Batch(GAME, settings.envs, overrides={"max_steps": 5}, stagger=True)
    tasks = Tasks(settings, batch, lambda n: Batch(GAME, n))
    tasks.begin(1)
    for i in range(iterations):
        for _ in range(settings.learner.rollout):
            batch.step()
            if watch is not None:
                watch(batch, tasks)
        tasks.after_iteration(100 + i)
    return tasks


@pytest.mark.parametrize(
    "rollout", [3, 40], ids=["episodes longer than a rollout", "several episodes in a rollout"]
)
def test_every_score_reaches_its_own_task_and_tasks_change_in_reset_rows_only(rollout):
    before, changes = {}, []

    def watch(batch, tasks):
        now = {name: batch[name].copy() for name in ("task", "level", "max_steps")}
        for name, values in before.items():
            changed = now[name] != values
            assert not (changed & ~batch["resetting"]).any()
            changes.append(changed.any())
        before.update(now)

    tasks = play(config(rollout=rollout), 300 if rollout == 3 else 60, watch)
    pool = tasks.pool
    assert any(changes) and pool.evicted > 10 and pool.completed > 512
    played = [place for place, count in enumerate(pool.count) if count]
    assert len(played) > 20
    for place in played:  # float32 in the simulator
        assert pool.fast[place] == pytest.approx(pool.tasks[place][0], abs=1e-4)
        assert pool.slow[place] == pytest.approx(pool.tasks[place][0], abs=1e-4)


def test_an_unlearnable_task_is_played_less_than_an_interesting_one():
    """A level is its own score and never moves: what counts is being above the baseline, so high
    levels are kept."""
    settings = config(baseline=5.0)
    levels = np.array([task[0] for task in play(settings, 200).pool.tasks])
    assert (levels > 5).mean() > 0.6 and abs(
        (np.array([t[0] for t in play(settings, 0).pool.tasks]) > 5).mean() - 0.5
    ) < 0.2


def test_the_baseline_is_what_random_play_scores_and_less_is_better_where_the_goal_says_so():
    """Half of the steps of random play are wasted: of 5 steps 2.5, within four deviations of the
    mean of 12 episodes."""
    tasks = play(config(goal="wasted", vary={"level": "0, 1"}), 0)
    assert tasks.roles == ["right"] and tasks.batch["task_scored"].tolist() == [False, True]
    assert tasks.metrics()["curriculum/baseline"] == -tasks.pool.baseline
    assert abs(-tasks.pool.baseline - 2.5) < 4 * np.sqrt(5 / 4 / 12)
    # whose right agent wastes all of them, but is not the policy
    still = Lineup("bot:still", "left", (0, STILL), 1.0)
    assert tasks.score_of_random_play(random.Random(0), [still]) == 0.0
    tasks.roles = ["left", "right"]
    wasted_by_left = tasks.score_of_random_play(random.Random(0), [still])
    assert abs(-wasted_by_left - 2.5) < 4 * np.sqrt(5 / 4 / 12)


def test_first_episodes_are_of_a_task_too_and_what_the_simulator_holds_is_checked():
    batch = Batch(GAME, 6)
    tasks = Tasks(config(), batch, lambda n: Batch(GAME, n))
    tasks.begin(1)
    batch.check_received(tasks.varied())
    assert (batch["level"] > 0).all() and not batch["step"].any()
    with pytest.raises(LudusError, match=r"level is .* instead of 0"):
        batch.check_received()
    batch["float_params"][2, 0] = 0.25
    with pytest.raises(LudusError, match=r"level is 0.25 instead of .* in 1 of 6 envs"):
        batch.check_received(tasks.varied())


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LUDUS_JIT", "0")
        return ludus.train(config(2400), run=tmp_path_factory.mktemp("runs") / "tasks", quiet=True)


def test_a_run_tells_which_tasks_it_plays(run):
    line = run.metrics()[-1]
    assert line["curriculum/completed"] > 150 and 0 < line["curriculum/sampling_entropy"] <= 1
    assert sum(line[f"curriculum/played/max_steps/{n}"] for n in (2, 5, 9)) == pytest.approx(1)
    assert sum(
        v for k, v in line.items() if k.startswith("curriculum/played/level/")
    ) == pytest.approx(1)
    assert run.read_json("game.json")["params"]["max_steps"] == {"low": 2, "high": 9}


def test_a_resumed_run_goes_on_exactly(run):
    steps = checkpoint.steps(run)
    end = checkpoint.folder(run, steps[-1])

    def ending():
        return load_file(end / "policy.safetensors"), json.loads(
            (end / "manifest.json").read_text()
        )["tasks"]

    policy, tasks = ending()
    ludus.resume(f"{run.path}@{steps[len(steps) // 2]}", quiet=True)
    again, tasks_again = ending()
    assert tasks == tasks_again and all(
        torch.equal(tensor, again[name]) for name, tensor in policy.items()
    )


def refusal(**changes):
    values = flatten(config())
    values |= changes
    return unflatten(values)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"curriculum.tasks.vary.lvl": "1, 2"}, "no parameter 'lvl': did you mean 'level'"),
        ({"curriculum.tasks.sampler": "random"}, "curriculum.tasks.sampler=random"),
        ({"curriculum.tasks.pool": 1}, "curriculum.tasks.pool=1 cannot work: use 2 or more"),
        ({"curriculum.tasks.goal": "levl"}, "did you mean 'level'"),
        ({"curriculum.tasks.slow_rate": 0.2}, "slow rate 0.2 and the fast rate 0.1"),
        (
            {"curriculum.tasks.evict_share": 1.0},
            "evict_share=1.0 cannot work: use 0 or more, and less than 1",
        ),
        ({"game.level": "0 -> 3"}, "level follows a schedule"),
        ({"game": "gym:CartPole-v1"}, "CartPole-v1 has no parameters"),
        (
            {"curriculum.stages": [Stage(mix="self 1", game={"level": 1.0})]},
            "stages with game values",
        ),
    ],
)
def test_what_cannot_work_is_refused_before_a_run_exists(changes, words):
    with pytest.raises(LudusError, match=words):
        prepare(refusal(**changes))


def test_settings_without_tasks_are_refused_and_tasks_survive_the_config_file():
    assert unflatten(flatten(config())).curriculum == config().curriculum
    with pytest.raises(LudusError, match="say what varies"):
        prepare(config(vary={}))
