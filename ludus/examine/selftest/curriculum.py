"""What a run does with its results: stages that end, tasks that are drawn, win rates that fade, the
checkpoint that is called best."""

from __future__ import annotations

import math
import random
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from ludus.config import Stage, TasksConfig
from ludus.curriculum.buckets import Bucket
from ludus.curriculum.learning_progress import TaskPool
from ludus.curriculum.stages import Stages
from ludus.examine.selftest.core import close, holds, part, same
from ludus.examine.selftest.scene import Session
from ludus.examine.selftest.using import train_for
from ludus.league.tally import RECENT, Tally
from ludus.runs.measured import as_good, lower_is_better

DRAWS = 4000


@part("stages", "ludus/curriculum/stages.py")
def a_stage_ends_when_its_opponent_is_surely_beaten(s: Session) -> None:
    """It takes enough episodes and a lower bound of the win rate; then the next stage has its own
    opponents and parameters, and counts anew."""
    stages = (
        Stage(mix="bot:a 1", opponent="bot:a", win_rate=0.6, least_episodes=20),
        Stage(
            mix="bot:b 1", opponent="bot:b", win_rate=0.6, least_episodes=20, game={"speed": 2.0}
        ),
        Stage(mix="self 1"),
    )
    # 65 of 100: surely 0.55
    for episodes, won, moves in ((100, 80, True), (100, 65, False), (10, 10, False)):
        entered: list[Any] = []
        tally = Tally()
        tally.add("bot:a", np.array([episodes, won, 0.0, episodes - won]))
        tally.add("bot:b", np.array([50.0, 50.0, 0.0, 0.0]))
        league: Any = SimpleNamespace(tally=tally, set_mix=entered.append)
        settings = SimpleNamespace(sizes={}, params={"speed": 1.0}, weights={})
        game = SimpleNamespace(sizes={}, goal_metrics={})
        batch: Any = SimpleNamespace(
            set_params=entered.append, set_stage=entered.append, settings=settings, game=game
        )
        course = Stages(stages, league, batch)
        course.after_iteration({}, 100)
        holds(
            f"the stage after {won} of {episodes} won is number {course.current + 1}",
            course.current == int(moves),
        )
        if moves:
            holds(f"the next stage plays {entered}", entered == ["bot:b 1", {"speed": 2.0}, 1])
            course.after_iteration({}, 200)
            holds("wins from before a stage count for it", course.current == 1)
            tally.add("bot:b", np.array([50.0, 50.0, 0.0, 0.0]))
            course.after_iteration({}, 300)
            holds(
                f"game values of a stage stay: {entered[-2]}",
                course.current == 2 and entered[-2] == {"speed": 1.0},
            )


@part("win rates", "ludus/league/tally.py")
def old_results_fade(s: Session) -> None:
    """Who won all of many episodes and then lost as many has a win rate of a half of what is
    remembered, not of all there was."""
    tally = Tally()
    for won in (4 * RECENT, 0):
        tally.add(
            "them", np.array([4.0 * RECENT if won else RECENT, won, 0.0, 0.0 if won else RECENT])
        )
    close("the win rate", tally.win_rate("them"), 0.5)


@part("tasks", "ludus/curriculum/learning_progress.py")
def tasks_are_drawn_by_their_progress(s: Session) -> None:
    """Progress is how far a fast and a slow average of a task's scores are apart, and a tenth of
    what it is above random play. A task is drawn by the sigmoid of its progress in deviations from
    the mean."""
    config = TasksConfig(pool=10, fast_rate=0.5, slow_rate=0.1)
    pool = TaskPool(config, [Bucket("speed", (1.0, 2.0, 3.0))], 0.2, random.Random(0))
    # stays below random play, rises, falls
    scores = {0: (0.1, 0.1, 0.1), 1: (0.0, 1.0, 1.0), 2: (0.9, 0.9, 0.1)}
    expected = []
    for task, seen in scores.items():
        fast = slow = seen[0]
        for score in seen:
            pool.complete(task, score)
        for score in seen[1:]:
            fast, slow = fast + 0.5 * (score - fast), slow + 0.1 * (score - slow)
        expected.append(abs(fast - slow) + 0.1 * max(fast - 0.2, 0.0))
    close("progress", pool.progress, expected)
    z = (np.array(expected) - np.mean(expected)) / np.std(expected)
    weights = 1 / (1 + np.exp(-z))
    source = random.Random(1)
    drawn = np.bincount([pool.draw(source) for _ in range(DRAWS)], minlength=3) / DRAWS
    close(
        "how often each task is drawn", drawn, weights / weights.sum(), 4 * math.sqrt(0.25 / DRAWS)
    )


@part("best checkpoint", "ludus/runs/measured.py")
def an_evaluation_is_scored_by_what_should_rise_or_fall(s: Session) -> None:
    """A goal that is better low is best where it is lowest; an evaluation as good as the best so
    far takes its place."""
    layout = {
        "goal_metrics": {"caught": {"higher_is_better": True}, "time": {"higher_is_better": False}}
    }
    found = [
        lower_is_better(f"eval/self/{name}", layout)
        for name in ("caught", "time", "time_greedy", "loss_rate", "return")
    ]
    same("which metrics are better low", found, [False, True, True, True, False])
    kept = [
        as_good(1.0, best, lower)
        for best, lower in ((0.5, False), (1.0, False), (2.0, False), (2.0, True), (0.5, True))
    ]
    same("which evaluations are as good as the best", kept, [True, True, False, True, False])


@part("best checkpoint", "ludus/training/loop.py")
def a_run_says_where_its_best_checkpoint_is(s: Session) -> None:
    """The best of all evaluations; the last of them where several are as good."""
    if s.device != "cpu":
        return
    run = s.once(("run", "ppo"), partial(train_for, s, "ppo"))
    best = run.read_json("best.json")
    lines = [line for line in run.metrics() if best["metric"] in line]
    holds("all evaluations of a run are alike", len({line[best["metric"]] for line in lines}) > 1)
    close(
        "the value of the best evaluation",
        best["value"],
        max(line[best["metric"]] for line in lines),
    )
    at = next(line for line in reversed(lines) if line[best["metric"]] == best["value"])
    close("its step", best["step"], at["progress/agent_steps"])


CHECKS = (
    a_stage_ends_when_its_opponent_is_surely_beaten,
    old_results_fade,
    tasks_are_drawn_by_their_progress,
    an_evaluation_is_scored_by_what_should_rise_or_fall,
    a_run_says_where_its_best_checkpoint_is,
)
