"""Tasks of a run: every env plays one from reset to reset, and its score tells the pool what to
play next.

The simulator holds the number of each env's task and of the one that follows (`task`, `task_next`),
takes the next one with its parameters in the reset row, and sums scores by task; all of it is read
once per iteration. An env that started an episode in between is then given another task to follow.
So where episodes are shorter than a rollout, an env repeats its task until the rollout ends.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ludus.batches import GameInfo, find_game, scheduled, values_at
from ludus.config import Config, TasksConfig
from ludus.curriculum.buckets import Bucket, make_buckets
from ludus.curriculum.learning_progress import TaskPool
from ludus.errors import LudusError, nearest
from ludus.play.evaluate import play
from ludus.play.lineups import Lineup
from ludus.sim import Batch
from ludus.sim.episode import RANDOM

BASELINE_ENVS = (
    64  # episodes of random play that the baseline is measured over, each of another task
)


class Tasks:
    """Made with the trainer; `begin` or `load_state` before the first iteration, `after_iteration`
    after each."""

    def __init__(self, config: Config, batch: Batch, make: Callable[[int], Any]) -> None:
        self.config: TasksConfig = config.curriculum.tasks
        self.batch, self.make, self.seed = batch, make, config.seed
        self.buckets = buckets_of(config)
        self.goal = self.config.goal or next(iter(batch.game.goal_metrics))
        goal = batch.game.goal_metrics[self.goal]
        self.sign = 1.0 if goal.higher_is_better else -1.0
        self.roles = [s.role for s in batch.layout.seats if goal.concerns(s.role)]
        batch.score_tasks(self.goal, self.roles)
        self.pool: TaskPool
        self.playing = np.zeros(batch.num_envs, np.int32)  # numbers of tasks
        self.following = np.zeros(batch.num_envs, np.int32)
        self.episode = np.zeros(batch.num_envs, np.int32)
        self.values = np.zeros((batch.num_envs, len(self.buckets)))  # of the tasks that follow
        self.entropy, self.looked = 1.0, -1

    def begin(self, seed: int, lineups: Sequence[Lineup] = ()) -> None:
        """The pool, and a first task for every env: its first episode begins again with it.
        `lineups`: who plays at the start."""
        source = random.Random(seed)
        baseline = self.config.baseline
        self.pool = TaskPool(self.config, self.buckets, 0.0, source)
        self.pool.baseline = (
            self.sign * baseline
            if baseline is not None
            else self.score_of_random_play(source, lineups)
        )
        everyone = range(self.batch.num_envs)
        self.give(everyone, source)
        self.batch.reset()
        self.give(everyone, source)
        self.look()

    def score_of_random_play(self, source: random.Random, lineups: Sequence[Lineup]) -> float:
        """The mean score where the policy and its snapshots act at random, over tasks that are
        drawn evenly. Bots play."""
        count = min(BASELINE_ENVS, self.batch.num_envs)
        batch = self.make(count)
        batch.set_params(self.by_name(np.array([self.pool.new_task(source) for _ in range(count)])))
        seated = np.array(
            [lineup.controllers for lineup in lineups] or [(0,) * batch.layout.num_agents]
        )
        weights = np.array([lineup.weight for lineup in lineups] or [1.0])
        batch.set_lineups(np.where(seated <= 0, RANDOM, seated), weights)
        batch.reset()
        scored = (seated == 0)[batch.numpy("lineup")]
        for seats in batch.layout.seats:
            scored[:, seats.agents] &= seats.role in self.roles
        goals = play(batch, [], count, self.seed)[self.goal]
        return self.sign * float(goals[scored].mean()) if scored.any() else 0.0

    # -- after each iteration ----------------------------------------------------------------------

    def after_iteration(self, seed: int) -> dict[str, float]:
        """Scores go to their tasks, the pool is reviewed, and envs that began an episode get the
        task of their next one."""
        source = random.Random(seed)
        results = self.batch.read_task_results()
        for env, row in np.argwhere(results[..., 0] > 0).tolist():
            episodes, total = results[env, row].tolist()
            task = (self.playing, self.following)[row][env]
            self.pool.complete(int(task), self.sign * total / episodes, int(episodes))
        self.pool.review(source)
        self.give(np.flatnonzero(self.batch.numpy("episode") != self.episode).tolist(), source)
        self.look()
        return self.metrics()

    def give(self, envs: Sequence[int], source: random.Random) -> None:
        """Draws the task that follows for these envs."""
        for env in envs:
            place = self.pool.draw(source)
            self.following[env] = self.pool.number[place]
            self.values[env] = self.pool.tasks[place]
        if len(envs):
            self.batch.set_tasks(self.following, self.by_name(self.values))

    def look(self) -> None:
        self.playing, self.episode = self.batch.numpy("task"), self.batch.numpy("episode")

    def by_name(self, values: np.ndarray) -> dict[str, np.ndarray]:
        """[envs, parameters] → parameter → [envs]."""
        return {
            bucket.name: np.ascontiguousarray(values[:, i]) for i, bucket in enumerate(self.buckets)
        }

    def varied(self) -> dict[str, np.ndarray]:
        """What each env should hold now, by the pool: right before anything is evicted."""
        return self.by_name(
            np.array([self.pool.tasks[self.pool.place[number]] for number in self.playing.tolist()])
        )

    def metrics(self) -> dict[str, float]:
        pool = self.pool
        # the whole pool is looked at no oftener than it is reviewed
        if pool.reviewed != self.looked:
            self.entropy, self.looked = pool.entropy(), pool.reviewed
        mean, deviation = pool.standard()
        out = {
            "curriculum/completed": float(pool.completed),
            "curriculum/evicted": float(pool.evicted),
            "curriculum/new_tasks": float(len(pool.new)),
            "curriculum/progress_mean": mean,
            "curriculum/progress_std": deviation,
            "curriculum/sampling_entropy": self.entropy,
            "curriculum/baseline": self.sign * pool.baseline,
        }
        for bucket in self.buckets:
            played = self.batch.held(bucket.name)
            out |= {
                f"curriculum/played/{bucket.name}/{value}": share
                for value, share in bucket.shares(played).items()
            }
        return out

    # -- checkpoints -------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """For the manifest; the simulator's state has the rest."""
        return {
            **self.pool.state(),
            "following": self.values.tolist(),
            "entropy": self.entropy,
            "looked": self.looked,
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.pool = TaskPool(self.config, self.buckets, 0.0, random.Random(0))
        self.pool.load_state(state)
        self.values = np.array(state["following"])
        self.following = self.batch.numpy("task_next")
        self.entropy, self.looked = float(state["entropy"]), int(state["looked"])
        self.look()


def buckets_of(config: Config) -> list[Bucket]:
    game, preset = find_game(config.game)
    return make_buckets(config.curriculum.tasks.vary, game, values_at(config, 0.0), preset)


def check_tasks(config: Config, info: GameInfo) -> None:
    """Refuses tasks that cannot be played."""
    tasks, game = config.curriculum.tasks, info.game
    if not tasks.vary:
        return
    if game is None:
        raise LudusError(
            f"curriculum.tasks.vary: {config.game} has no parameters that could vary; use a game "
            "of Ludus"
        )
    for name in tasks.vary:
        if name in scheduled(config, 0.0):
            raise LudusError(
                f"{name} follows a schedule in game.{name} and varies in curriculum.tasks: use one "
                "of them"
            )
    if tasks.goal is not None and tasks.goal not in game.goal_metrics:
        raise LudusError(
            f"curriculum.tasks.goal={tasks.goal}: {nearest(tasks.goal, game.goal_metrics)}"
        )
    if not game.goal_metrics:
        raise LudusError(
            f"curriculum.tasks.vary: {game.name} has no goal metric that could be a task's score"
        )
    TaskPool(tasks, buckets_of(config), 0.0, random.Random(0)).weights()  # tries the sampler
