"""`ludus doctor check RECIPE`: the reward on paper, then everything that can be tried out before
training."""

from __future__ import annotations

import dataclasses

import numpy as np

from ludus import machine
from ludus.batches import is_foreign, make_batch, values_at
from ludus.config import Config, option_of, resolve
from ludus.config.schedules import parse
from ludus.doctor.before import budget, earnings, flow, spaces
from ludus.doctor.before.budget import Budget
from ludus.doctor.before.overfit import judge as judge_overfit
from ludus.doctor.finding import Finding, worst_first
from ludus.errors import LudusError
from ludus.examine.audit_game import audit_config
from ludus.examine.budget import examine_budget
from ludus.examine.gradients import examine_flow, small
from ludus.examine.overfit import examine_overfit
from ludus.examine.rollouts import ENVS, Seen, play_all
from ludus.examine.spaces import examine_spaces
from ludus.games import load_game
from ludus.sim import Batch
from ludus.training.start import prepare

SECONDS = 20.0
"""In all, compilation aside: half for playing, a third for actions, the rest for an update."""


def check_config(
    config: Config, *, seconds: float = SECONDS, overfit: float | None = None
) -> list[Finding]:
    """Everything the doctor can say about a recipe before its first step. `overfit`: seconds to
    train on one fixed seed."""
    found = audit_config(config)
    refused = _refused(config)
    if refused:
        found += budget.judge(Budget(refused=refused))
    try:
        config = resolve(dataclasses.replace(config, device="cpu"))
        if not config.game.startswith("remote:"):  # their envs are few, and somebody else's
            found += _tried(config, seconds)
        if overfit is not None:
            found += [f for tried in examine_overfit(config, overfit) for f in judge_overfit(tried)]
    except LudusError as error:
        if not refused:
            raise
        found += budget.judge(Budget(refused=str(error))) if str(error) != refused else []
    return worst_first(_once(found))


def _once(found: list[Finding]) -> list[Finding]:
    """The same check of the same role by paper and by trial is one finding: the first."""
    kept: dict[tuple[str, str], Finding] = {}
    for finding in found:
        kept.setdefault((finding.check, finding.cause), finding)
    return list(kept.values())


def _refused(config: Config) -> str:
    """Why `ludus train` would not start."""
    try:
        prepare(
            dataclasses.replace(
                config, train=dataclasses.replace(config.train, threads=config.train.threads or 1)
            )
        )
    except LudusError as error:
        return str(error)
    return ""


def _tried(config: Config, seconds: float) -> list[Finding]:
    machine.set_threads(1)
    found: list[Finding] = []
    length, longest = 1.0, None
    if not is_foreign(config.game):
        played, length, longest = _play(config, seconds)
        found += played
    little = small(config)
    flows, algorithm = examine_flow(little, config.seed)
    found += [f for one in flows for f in flow.judge(one)]
    sums = examine_budget(
        config,
        small=little,
        small_bytes=algorithm.buffer_bytes(),
        episode_length=length,
        max_steps=longest,
    )
    return found + budget.judge(sums)


def _play(config: Config, seconds: float) -> tuple[list[Finding], float, int]:
    """Findings from playing; the mean length of random episodes; the longest there can be."""
    game, preset = load_game(config.game)
    batch = Batch(game, ENVS, seed=config.seed, overrides=values_at(config, 1.0), preset=preset)
    found = received(batch)
    first_lengths = np.zeros(0)
    if config.train.stagger:
        first_lengths = (
            make_batch(config, ENVS, config.seed, stagger=True).numpy("first_length").astype(float)
        )
    seen, lengths, earned = Seen(), [], list[earnings.Earnings]()
    for seats in batch.layout.seats:
        gamma, share = (
            max(parse(config.learner.for_role(seats.role).gamma, "gamma").values),
            seconds / 2 / len(batch.layout.seats),
        )
        option = option_of(config, seats.role, "gamma")
        earned.append(play_all(batch, seats.role, gamma, share, seen, first_lengths, option))
        lengths += [p.lengths for p in earned[-1].plays if p.player == "random"]
    found += earnings.judge(*earned)
    for one in examine_spaces(batch, seen, config.policy.normalise_observation, seconds / 3):
        found += spaces.judge(one)
    mean = float(np.concatenate(lengths).mean()) if lengths and sum(map(len, lengths)) else 1.0
    return found, mean, int(batch.settings.params["max_steps"])


def received(batch: Batch) -> list[Finding]:
    """Parameters and weights read back from the simulator are those that were asked for."""
    try:
        batch.check_received()
    except LudusError as error:
        return [
            Finding(
                check="game_not_as_asked",
                severity="critical",
                cause="the simulator plays another game than was asked for",
                evidence=str(error),
                fix="see where values are overwritten on their way into the simulator",
                confidence=0.99,
            )
        ]
    return []
