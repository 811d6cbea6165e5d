"""The league of a run: which opponents are in play, what becomes a snapshot, who beats whom.

As many envs as the mix gives to the pool are dealt into blocks, one for each slot. The snapshot in
a slot plays in its block, where nearly all games are against it, and in no other env: so its
networks act only where they are needed. An env draws its lineup in its own reset row
(`sim/episode.py`), so an opponent never changes inside an episode. To bring in another snapshot a
slot is closed (its envs draw other lineups), and refilled between two iterations once no env of its
block plays against it.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch

from ludus.config import Config, mixes
from ludus.errors import LudusError
from ludus.files import read_lines
from ludus.league.matchmaking import draw
from ludus.league.ratings import Ratings
from ludus.league.tally import Matches, Tally
from ludus.play.lineups import Lineup, make_lineups, pool_share
from ludus.play.player import Player
from ludus.play.together import Together
from ludus.protocols import ActingPolicy
from ludus.runs.checkpoint import split
from ludus.runs.load import check_same_layout, load_policies
from ludus.runs.run import Run
from ludus.runs.snapshots import Pool
from ludus.sim import Batch
from ludus.sim.episode import FROZEN
from ludus.who import POOL, SELF, SNAPSHOT, read_mix

WRITE_EVERY = 20  # iterations between lines in matches.jsonl


@dataclass
class Slot:
    """A snapshot of every role that can be an opponent (role → step), and whether envs may still
    draw it."""

    snapshots: dict[str, int] = field(default_factory=dict)
    open: bool = True


class League:
    """Made with the trainer; `begin` or `load_state` before the first iteration, `after_iteration`
    after each."""

    def __init__(
        self, run: Run, batch: Batch, policies: Mapping[str, ActingPolicy], config: Config
    ) -> None:
        self.run, self.config = run, config
        self.batch, self.policies = batch, policies
        self.lineups: list[Lineup] = []
        self.pool = Pool(run, config.league.pool_size)
        self.slots: list[Slot] = []
        self.block_size = 0  # envs of a slot
        self.players: dict[tuple[int, str], Player] = {}
        self.renewed = 0  # the slot that was closed last
        self.tally, self.matches = Tally(), Matches()
        self._ratings: Ratings | None = None
        most = max(pool_share(mix) for mix in mixes(config))
        if most:
            self.slots = [Slot() for _ in range(config.league.slots)]
            self.block_size = min(
                math.ceil(batch.num_envs * most / len(self.slots)),
                batch.num_envs // len(self.slots),
            )
            self.players = self._players()

    def move(self, batch: Batch, policies: Mapping[str, ActingPolicy]) -> None:
        """To a batch of other sizes, with equal policies: the same snapshots are in the slots."""
        self.batch, self.policies = batch, policies
        self.players = self._players() if self.slots else {}
        for k, slot in enumerate(self.slots):
            if slot.snapshots:
                self.fill(k, slot.snapshots)

    def _players(self) -> dict[tuple[int, str], Player]:
        return {
            (k, role): self._player(k, role)
            for k in range(len(self.slots))
            for role in self.policies
        }

    def _player(self, slot: int, role: str) -> Player:
        frozen = copy.deepcopy(self.policies[role]).requires_grad_(False).eval()
        agents = next(s.agents for s in self.batch.layout.seats if s.role == role)
        return Player(frozen, self.batch, agents, frozen=True, envs=self.block(slot))

    def acting(self) -> list[Player]:
        """Who is to be asked for the actions of snapshots. On a GPU those of all slots together."""
        if self.config.device == "cpu" or not self.slots:
            return list(self.players.values())
        return [
            Together([self.players[k, role] for k in range(len(self.slots))])
            for role in self.policies
        ]

    def block(self, slot: int) -> slice:
        return slice(slot * self.block_size, (slot + 1) * self.block_size)

    # -- who plays ---------------------------------------------------------------------------------

    def make_lineups(self, mix: str) -> list[Lineup]:
        return make_lineups(self.batch.layout, self.batch.controllers, read_mix(mix))

    def set_mix(self, mix: str) -> None:
        """From each env's next reset row on."""
        self.lineups = self.make_lineups(mix)
        table = np.array([lineup.controllers for lineup in self.lineups], np.int16).reshape(
            -1, self.batch.layout.num_agents
        )
        in_blocks = self.block_size * len(self.slots) / self.batch.num_envs
        share = min(1.0, pool_share(mix) / in_blocks) if self.slots else 0.0
        self.batch.set_lineups(table, np.array([lineup.weight for lineup in self.lineups]), share)

    def begin(self, agent_steps: int = 0) -> None:
        """The first snapshots, dealt to the slots: other runs' policies where there are any, and
        the policy as it starts."""
        self.set_mix(mixes(self.config)[0])
        if not self.slots:
            return
        for i, reference in enumerate(self.config.league.opponents):
            self.pool.add(
                -1 - i, load_opponent(reference, self.batch.layout.describe(), self.policies)
            )
        if self.config.league.snapshot_every or not self.config.league.opponents:
            self.pool.add(agent_steps, self.policies)
        for k in range(len(self.slots)):
            self.fill(k, dict.fromkeys(self.policies, self.pool.steps[k % len(self.pool.steps)]))

    def name(self, step: int) -> str:
        """What a member of the pool is called in the log."""
        return f"{SNAPSHOT}:{step}" if step >= 0 else self.config.league.opponents[-1 - step]

    def fill(self, k: int, snapshots: Mapping[str, int]) -> None:
        """Puts snapshots into a slot and opens it. Weights are copied in place: a CUDA graph has
        their addresses."""
        read = {step: self.pool.read(step) for step in set(snapshots.values())}
        for role, step in snapshots.items():
            weights = split(read[step], role)
            with torch.no_grad():
                for name, tensor in self.players[k, role].policy.state_dict().items():
                    tensor.copy_(weights[name])
        self.slots[k] = Slot(dict(snapshots), open=True)
        self.batch.arrays["slot_open"][self.block(k)] = True

    def in_slots(self) -> set[int]:
        """The snapshots that are in play; the pool may have dropped some of them since."""
        return {step for slot in self.slots for step in slot.snapshots.values()}

    def renew(self, iteration: int, random: np.random.Generator) -> None:
        """Refills closed slots that nobody plays any more, then closes the next one where it is
        time."""
        closed = [k for k, slot in enumerate(self.slots) if not slot.open]
        if closed:
            in_use = (self.batch.numpy("controller") == FROZEN).any(1)
            for k in closed:
                if not in_use[self.block(k)].any():
                    self.fill(k, {role: self.choose(role, random) for role in self.policies})
        # of a pool of one it would be refilled with itself
        if iteration % self.config.league.renew_every == 0 and len(self.pool.steps) > 1:
            k = (self.renewed + 1) % len(self.slots)
            if self.slots[k].open:
                self.slots[k].open = False
                self.batch.arrays["slot_open"][self.block(k)] = False
                self.renewed = k

    def choose(self, role: str, random: np.random.Generator) -> int:
        known = {step: self.tally.score(f"{role} {self.name(step)}") for step in self.pool.steps}
        return draw(self.config.league.sampler, self.pool.steps, known, random)

    # -- after each iteration ----------------------------------------------------------------------

    def after_iteration(
        self, iteration: int, agent_steps: int, random: np.random.Generator
    ) -> dict[str, float]:
        self.count()
        if self.slots:
            every = self.config.league.snapshot_every
            if every and agent_steps - self.pool.own[-1] >= every:
                self.pool.add(agent_steps, self.policies)
            self.renew(iteration, random)
        if iteration % WRITE_EVERY == 0:
            for line in self.matches.take(agent_steps, max(self.pool.own, default=0)):
                self.ratings.add(line)
                self.run.append_json("matches.jsonl", line)
        return self.metrics()

    @property
    def ratings(self) -> Ratings:
        """Of all matches so far; after a resume from the log."""
        if self._ratings is None:
            self._ratings = Ratings(list(self.policies))
            for line in read_lines(self.run.path / "matches.jsonl"):
                self._ratings.add(line)
        return self._ratings

    def count(self) -> None:
        """Takes the results of finished episodes from the batch."""
        *in_slots, everywhere = self.batch.read_lineup_results(
            [*map(self.block, range(len(self.slots))), slice(None)]
        )
        for i, lineup in enumerate(self.lineups):
            if lineup.opponent == SELF:
                continue
            if lineup.opponent != POOL:
                self._count(lineup, lineup.opponent, everywhere[i])
                continue
            for k, slot in enumerate(self.slots):
                role = self.opposing_role(lineup)
                self._count(lineup, self.name(slot.snapshots[role]), in_slots[k][i], role)

    def _count(self, lineup: Lineup, opponent: str, result: np.ndarray, role: str = "") -> None:
        if result[0] == 0:
            return
        self.matches.add(lineup.side, opponent, result)
        self.tally.add(lineup.key, result)
        if role:
            self.tally.add(f"{role} {opponent}", result)

    def opposing_role(self, lineup: Lineup) -> str:
        """The role of the first frozen agent: whose snapshot this lineup meets."""
        agent = lineup.controllers.index(FROZEN)
        return next(s.role for s in self.batch.layout.seats if s.start <= agent < s.stop)

    def metrics(self) -> dict[str, float]:
        out = {
            "league/pool_size": float(len(self.pool.steps)),
            "league/open_slots": float(sum(s.open for s in self.slots)),
        }
        for key in dict.fromkeys(lineup.key for lineup in self.lineups if lineup.opponent != SELF):
            if key in self.tally.counts:
                low, high = self.tally.interval(key)
                out |= {
                    f"league/{key}/win_rate": self.tally.win_rate(key),
                    f"league/{key}/win_rate_low": low,
                }
                out |= {f"league/{key}/win_rate_high": high}
        return out | self.ratings.metrics()

    def policies_of(self, step: int) -> dict[str, ActingPolicy]:
        """The policies of a snapshot."""
        found = {role: copy.deepcopy(policy) for role, policy in self.policies.items()}
        tensors = self.pool.read(step)
        for role, policy in found.items():
            policy.load_state_dict(split(tensors, role))
        return found

    # -- checkpoints -------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """For the manifest: with the snapshots' files and the players' memories it is
        everything."""
        return {
            "snapshots": {str(step): text for step, text in self.pool.hashes.items()},
            "retired": {
                str(step): text
                for step, text in self.pool.retired.items()
                if step in self.in_slots()
            },
            "slots": [asdict(slot) for slot in self.slots],
            "renewed": self.renewed,
            "tally": self.tally.state(),
            "matches": self.matches.state(),
        }

    def tensors(self) -> dict[str, torch.Tensor]:
        """What the players remember of the episodes they are in."""
        memories = {f"{k}/{role}": player.state for (k, role), player in self.players.items()}
        seen = {
            f"{k}/{role}/{n}": t
            for (k, role), player in self.players.items()
            for n, t in player.frames.kept.items()
        }
        return memories | seen

    def load_state(self, state: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]) -> None:
        self.pool.restore(state["snapshots"], state["retired"])
        if not self.config.curriculum.stages:
            self.lineups = self.make_lineups(self.config.league.mix)
        self.renewed = int(state["renewed"])
        self._ratings = None
        self.tally.load_state(state["tally"])
        self.matches.load_state(state["matches"])
        is_open = self.batch.numpy("slot_open").copy()
        for k, saved in enumerate(state["slots"]):
            self.fill(k, saved["snapshots"])
            self.slots[k].open = saved["open"]
        self.batch.arrays["slot_open"][...] = (
            torch.from_numpy(is_open) if self.config.device == "cuda" else is_open
        )
        for name, tensor in self.tensors().items():
            if tensor.shape != tensors[name].shape:
                raise LudusError(
                    f"{self.run.path} was saved by an older version, which put the pool in all "
                    "envs: start a new run from its weights "
                    f"(--init-from {self.run.path})"
                )
            tensor.copy_(tensors[name])


def load_opponent(
    reference: str, layout: Mapping[str, Any], policies: Mapping[str, ActingPolicy]
) -> dict[str, ActingPolicy]:
    """The policies of another run, which must have the layout and the networks of this one: slots
    hold copies of weights."""
    others, their_layout = load_policies(reference)
    check_same_layout(their_layout, layout, f"{reference} and this run")
    for role, policy in policies.items():
        ours, theirs = (describe(p) for p in (policy, others[role]))
        if ours != theirs:
            different = sorted(dict(ours.items() ^ theirs.items()))
            raise LudusError(
                f"{reference} is another network: it differs in {different[:3]}; use the same "
                "policy settings"
            )
    return others


def describe(policy: ActingPolicy) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in policy.state_dict().items()}
