"""Opponents: frozen copies in envs of their own, with a memory of their own, drawn as asked; and
evaluation against them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from ludus.config import LeagueConfig, PolicyConfig
from ludus.examine.selftest import reference
from ludus.examine.selftest.core import close, holds, part, same
from ludus.examine.selftest.games import DIARY, DUEL, WEIGHT
from ludus.examine.selftest.scene import ENVS, Session, disturb, nothing
from ludus.examine.selftest.truth import length
from ludus.examine.selftest.using import EVALUATE, MEMORY, PLAYER, diary_policy, fresh_batch, greedy
from ludus.league.league import League
from ludus.league.matchmaking import draw
from ludus.play.evaluate import measure
from ludus.play.player import Player
from ludus.sim.episode import FROZEN
from ludus.training.evaluation import make_evaluation_batch

LEAGUE, MATCHMAKING = "ludus/league/league.py", "ludus/league/matchmaking.py"
SLOTS, LATER = 2, 100
DRAWS = 500


def league_of(s: Session, mix: str = "self 10, pool 90") -> Any:
    """A league of two slots: the policies as they start, and as they were at step 100."""
    config = s.ppo_config(dict(MEMORY), dict(bptt=4))
    config.league = LeagueConfig(mix=mix, slots=SLOTS, snapshot_every=LATER, sampler="hard")
    ppo = s.make_ppo(config)
    run: Any = SimpleNamespace(path=s.folder())  # all that a pool asks of a run
    league = League(run, ppo.batch, ppo.policies, config)
    league.begin()
    return league


def weights(policies: Any) -> dict[str, torch.Tensor]:
    return {
        f"{role}/{n}": t.clone()
        for role, policy in policies.items()
        for n, t in policy.state_dict().items()
    }


def in_slot(league: Any, k: int) -> dict[str, torch.Tensor]:
    return weights({role: league.players[k, role].policy for role in league.policies})


@part("league", LEAGUE)
def snapshots_are_copies_that_stay_as_they_were(s: Session) -> None:
    """A slot holds all weights and statistics of the policies as they were; the learner goes on
    without moving them, or being moved by them."""
    league = league_of(s)
    first = weights(league.policies)
    for policy in league.policies.values():
        disturb(policy)
    later = weights(league.policies)
    league.pool.add(LATER, league.policies)
    league.fill(1, dict.fromkeys(league.policies, LATER))
    for policy in league.policies.values():
        disturb(policy)
    now = weights(league.policies)
    league.fill(0, dict.fromkeys(league.policies, 0))
    for what, found, expected in (
        ("the first snapshot", in_slot(league, 0), first),
        ("the later snapshot", in_slot(league, 1), later),
        ("the learner after a slot was filled", weights(league.policies), now),
    ):
        for name, tensor in expected.items():
            same(f"{name} of {what}", found[name], tensor)


@part("league", LEAGUE)
def each_env_meets_one_snapshot(s: Session) -> None:
    """The slots share the envs: every env belongs to one of them, and its opponents to that slot
    alone."""
    league = league_of(s)
    for role in league.policies:
        met = np.zeros(ENVS, int)
        for k in range(SLOTS):
            met[league.players[k, role].envs] += 1
        same(f"snapshots of {role} in each env", met, np.ones(ENVS))


@part("league", LEAGUE)
def the_pool_is_met_as_often_as_the_mix_says(s: Session) -> None:
    """Over all envs: those of the slots, where they are open, and the others, where nobody frozen
    plays."""
    league = league_of(s, "self 2, pool 1")
    until = np.asarray(league.batch.numpy("lineup_until"))
    # row 0 without frozen opponents, row 1 with them
    shares = np.diff(until[:, : len(league.lineups)], axis=1, prepend=0.0)
    is_open = np.asarray(league.batch.numpy("slot_open"))
    pool = np.array([lineup.opponent == "pool" for lineup in league.lineups])
    same("the envs that belong to a slot", is_open, np.arange(ENVS) < league.block(SLOTS - 1).stop)
    met = is_open.mean() * shares[1, pool].sum() + (1 - is_open.mean()) * shares[0, pool].sum()
    close("the share of games against the pool", met, 1 / 3, 1e-6)


@part("league", LEAGUE)
def snapshots_come_in_time_and_slots_change_between_episodes(s: Session) -> None:
    """A snapshot is taken when it is due. A slot whose turn it is closes, stays as it is while an
    env still plays against it, and is filled and opened anew afterwards."""
    league, random = league_of(s), np.random.default_rng(0)
    league.config.league.renew_every = 2
    for steps, expected in ((LATER - 1, [0]), (LATER, [0, LATER])):
        league.after_iteration(1, steps, random)
        holds(
            f"at {steps} agent-steps there are snapshots of {league.pool.steps}",
            league.pool.steps == expected,
        )
    controller, block = league.batch.arrays["controller"], league.block(1)
    controller[...] = 0
    controller[block.start, 0] = FROZEN
    told = []
    for iteration in (2, 3):  # its turn; then not
        league.renew(iteration, random)
        told.append(league.slots[1].open)
    holds(
        "a slot is not closed in its turn, or changed while an env plays against it",
        told == [False, False],
    )
    controller[...] = 0
    league.renew(5, random)
    is_open = np.asarray(league.batch.numpy("slot_open"))[block].all()
    holds(
        "a slot is not opened anew once nobody plays against it", league.slots[1].open and is_open
    )


@part("matchmaking", MATCHMAKING)
def opponents_are_drawn_as_asked(s: Session) -> None:
    """`hard` draws those that win, `even` those of equal strength, `latest` the last, `uniform` all
    alike."""
    rates = {10: 1.0, 20: 0.5, 30: 0.0}  # the learner's: it always beats 10 and never 30
    wanted = {
        "hard": (0.0, 0.2, 0.8),
        "even": (0.0, 1.0, 0.0),
        "latest": (0.0, 0.0, 1.0),
        "uniform": (1 / 3, 1 / 3, 1 / 3),
    }
    for sampler, shares in wanted.items():
        random = np.random.default_rng(0)
        drawn = [draw(sampler, list(rates), rates, random) for _ in range(DRAWS)]
        close(
            f"how often {sampler} draws each",
            [drawn.count(step) / DRAWS for step in rates],
            shares,
            0.08,
        )
    league = league_of(s)
    league.pool.add(LATER, league.policies)
    league.tally.add("left snapshot:0", np.array([50.0, 50.0, 0.0, 0.0]))
    league.tally.add(f"left snapshot:{LATER}", np.array([50.0, 0.0, 0.0, 50.0]))
    random = np.random.default_rng(0)
    chosen = [league.choose("left", random) for _ in range(100)]
    holds(
        f"the league chose the snapshot that wins {chosen.count(LATER)} times of 100",
        chosen.count(LATER) > 90,
    )


@part("opponents", PLAYER)
def opponents_remember_their_own_episode(s: Session) -> None:
    """An opponent that plays in some envs only carries its memory through an episode there, and
    starts the next one afresh."""
    batch = fresh_batch(s, DIARY)
    policy = diary_policy(s, batch.layout, **MEMORY).eval()
    p, rows = reference.doubles(policy), slice(1, 3)
    player = Player(policy, batch, rows, greedy=True, frozen=True)
    batch.arrays["controller_next"][:2, rows] = FROZEN
    state = torch.zeros(2 * ENVS, policy.state_size, dtype=torch.float64)
    compared = 0
    for t in range(20):
        seen = batch.tensor("observation")[:, rows].flatten(0, 1).cpu().double().unsqueeze(0)
        mask = batch.tensor("action_mask")[:, rows].flatten(0, 1).cpu()
        first = torch.from_numpy(batch.numpy("resetting")).repeat_interleave(2).unsqueeze(0)
        theirs = torch.from_numpy(batch.numpy("controller")[:, rows] == FROZEN).flatten()
        out = reference.policy(p, PolicyConfig(**MEMORY), seen, state, first, 5)
        state = out.state
        player.act()
        push, _, pick = greedy(policy.space, out.head[0], mask)
        close(
            f"what the opponent does in step {t}",
            batch.tensor("continuous")[:, rows].flatten().cpu()[theirs],
            push[theirs],
            1e-3,
        )
        same(
            f"what the opponent picks in step {t}",
            batch.tensor("choices")[:, rows].flatten().cpu()[theirs],
            pick[theirs],
        )
        compared += int(theirs.sum())
        batch.step()
    holds("the opponent never played", compared > 20)


@part("valid rows", "ludus/algorithms/rainbow/rainbow.py")
def what_bots_do_is_not_replayed(s: Session) -> None:
    """Rainbow keeps the rows of a bot, but as invalid ones: it learns from what its own policy
    did."""
    algorithm = s.make_rainbow()
    # from the next reset row on: within 8 steps
    algorithm.batch.set_controller("agent", "still", slice(ENVS - 1, ENVS))
    for _ in range(2):
        algorithm.collect(nothing)
    replay = algorithm.roles["agent"].replay
    valid = replay.valid[replay.recent(8)].view(8, ENVS, 2)
    holds("nothing of its own is valid", valid[:, :-1].any())
    holds("rows of a bot are learned from", not valid[:, -1].any())


@part("evaluation", EVALUATE)
def evaluation_is_against_the_rivals(s: Session) -> None:
    """Evaluated against others, a policy meets them and not itself, only its own agents count, and
    nothing is left in training mode. Here it answers a key that only the rival presses: once in
    every step but the first."""
    layout = fresh_batch(s, DUEL, 1).layout
    answers, rival = (
        diary_policy(s, layout, hidden=(8,), activation="relu", normalise_observation=False)
        for _ in range(2)
    )
    with torch.no_grad():
        for policy, down in ((answers, -50.0), (rival, 50.0)):
            policy.actor.network.encoder[0].weight.copy_(torch.eye(8))
            policy.actor.network.encoder[0].bias.zero_()
            policy.action_head.weight.zero_()
            policy.action_head.bias[:2] = torch.tensor([-50.0, down])
        answers.action_head.weight[0, 1] = 100.0  # up, where the other has just pressed down
    for policy in (answers, rival):
        policy.train()
    found = measure(
        lambda _: fresh_batch(s, DUEL),
        {"player": answers},
        "pool",
        ENVS,
        5,
        rivals={"player": rival},
    )
    expected = sorted(WEIGHT * (length(env) - 1) for env in range(ENVS))
    close("returns against a rival that presses down", sorted(found["return"]), expected)
    holds("a policy is evaluated in training mode", not answers.training and not rival.training)


@part("evaluation", "ludus/training/evaluation.py")
def evaluation_plays_what_is_held_out(s: Session) -> None:
    """A trainer evaluates in the worlds that the game holds out, with the evaluation's own seed."""
    config = s.ppo_config(dict(hidden=(8,)), {})
    config.game = "ludus.examine.selftest.games:DUEL"
    batch = make_evaluation_batch(config, 2)
    same("max_steps of an evaluation", batch.numpy("max_steps"), [DUEL.held_out["max_steps"]] * 2)


CHECKS = (
    opponents_are_drawn_as_asked,
    snapshots_are_copies_that_stay_as_they_were,
    each_env_meets_one_snapshot,
    the_pool_is_met_as_often_as_the_mix_says,
    snapshots_come_in_time_and_slots_change_between_episodes,
    opponents_remember_their_own_episode,
    what_bots_do_is_not_replayed,
    evaluation_is_against_the_rivals,
    evaluation_plays_what_is_held_out,
)
