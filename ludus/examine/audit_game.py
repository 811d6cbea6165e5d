"""A game's declared reward terms as the input of the doctor's audit, role by role."""

from __future__ import annotations

import dataclasses
import math

from ludus.batches import is_foreign, values_at
from ludus.config import Config, TrainConfig
from ludus.config.schedules import parse
from ludus.doctor.audit import audit
from ludus.doctor.finding import Finding, worst_first
from ludus.doctor.rewards import Episode, Reward, Term
from ludus.examine.trial import audit_foreign
from ludus.games import REGISTRY, load_game
from ludus.imports import import_object
from ludus.recipes import RECIPES, load_recipe
from ludus.sim.game import Game, Settings, evaluate
from ludus.sim.game import Term as GameTerm

OF_KIND = {
    "goal": "event",
    "progress": "event",
    "shaping": "shaping",
    "potential": "shaping",
    "cost": "per_step",
}


def config_of(name: str) -> Config:
    """The config of a recipe, or of a game for which there is none."""
    return (
        Config(game=name, train=TrainConfig(total_agent_steps=10_000_000))
        if _is_game(name)
        else load_recipe(name)
    )


def audit_recipe(name: str) -> list[Finding]:
    return audit_config(config_of(name))


def audit_config(config: Config) -> list[Finding]:
    """The declared reward, with the game's preset and values applied; an undeclared one is tried
    out."""
    if is_foreign(config.game):
        return audit_foreign(config)
    game, preset = load_game(config.game)
    # what a schedule ends with is what is learnt for good
    settings = game.resolve(values_at(config, 1.0), preset)
    found: list[Finding] = []
    for role in game.roles:
        gamma = max(parse(config.learner.for_role(role.name).gamma, "gamma").values)
        reward = reward_of(game, settings, role.name, gamma)
        if reward is not None:
            found += [
                dataclasses.replace(f, evidence=f"{role.name}: {f.evidence}") for f in audit(reward)
            ]
    return worst_first(found)


def _is_game(name: str) -> bool:
    """A game without a recipe: one of ours, or package.module:GAME."""
    head, *rest = name.split(":")
    if is_foreign(name):
        return False
    if head in REGISTRY or head in RECIPES or not rest:
        return head in REGISTRY and head not in RECIPES
    return isinstance(import_object(f"{head}:{rest[0]}", "recipe or game"), Game)


def reward_of(game: Game, settings: Settings, role: str, gamma: float) -> Reward | None:
    """What a role is paid, as the audit sees it; None for a role without any reward."""
    names = {**settings.sizes, **settings.params}
    steps = int(names.get("max_steps", 1000))
    terms = [
        made
        for name, term in game.rewards.items()
        if settings.weights[name] != 0 and term.concerns(role)
        for made in [_term(name, term, settings.weights[name], names, steps)]
        if made is not None
    ]
    return Reward(Episode(max_steps=steps, gamma=gamma), tuple(terms)) if terms else None


def _term(
    name: str, term: GameTerm, weight: float, names: dict[str, float], steps: int
) -> Term | None:
    """The engine sums weight times what the rules write, which `least` and `most` bound over an
    episode."""
    most = evaluate(term.most, names) if term.most is not None else float(steps)
    least = evaluate(term.least, names)
    best, worst = max(weight * least, weight * most), min(weight * least, weight * most)
    if term.kind == "potential":
        return Term(name=name, kind="shaping", low=worst, high=best, potential_based=True)
    # what failing costs: avoiding it is the goal
    if term.kind in ("goal", "progress") and best <= 0:
        return Term(name=name, kind="terminal", low=worst, high=worst)
    # the rules may count several a step: both hiders seen
    times = max(1, round(most / math.ceil(most / steps)))
    if worst < 0 < best or term.kind == "cost":
        return Term(
            name=name,
            kind="per_step",
            low=worst / times,
            high=best / times,
            max_times=times,
            goal=_is_goal(term),
        )
    return Term(
        name=name,
        kind=OF_KIND[term.kind],
        low=best / times,
        high=best / times,
        max_times=times,
        goal=_is_goal(term),
    )


def _is_goal(term: GameTerm) -> bool:
    return term.kind in ("goal", "progress")
