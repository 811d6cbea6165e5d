"""What a trained team of mechs does in a match: how far it stands from the zone, who is alive, and
which class does the damage.

python benchmarks/mechs_watch.py RUN [--matches 64] [--bot objective]

Sampled actions on held-out maps, from the low corner. Prints one line for some seconds of the
match, over the matches that still last, and at the end the damage that each class did.
"""

import argparse
from dataclasses import dataclass, replace

import numpy as np
import torch

from ludus.batches import make_batch
from ludus.games.mechs.classes import CLASS_NAMES
from ludus.play.player import Player
from ludus.runs.load import load_policies
from ludus.runs.run import Run, split_reference
from ludus.sim import Batch

SHOWN = (4, 8, 10, 12, 16, 20, 25, 30)  # seconds
DECISIONS = 4  # a second
SEED = 123


@dataclass
class Watched:
    """[envs, agents] of one decision: distance to the middle of the zone, whether alive; [agents]
    damage done to foes in it."""

    distance: np.ndarray
    alive: np.ndarray
    damage: np.ndarray


def watch(batch: Batch, playing: np.ndarray, per_team: int) -> Watched:
    middle = batch.numpy("bank_zone")[batch.numpy("chart"), :2]
    team = np.arange(2 * per_team) // per_team
    harm = np.where(team[:, None] == team, 0.0, batch.numpy("harm"))  # [env, victim, shooter]
    return Watched(
        distance=np.linalg.norm(batch.numpy("position")[..., [0, 2]] - middle[:, None], axis=-1),
        alive=~batch.numpy("wreck").astype(bool) & playing[:, None],
        damage=harm[playing].sum((0, 1)),
    )


def told(seconds: int, now: Watched, playing: int, teams: tuple[slice, slice]) -> str:
    parts = [
        f"{now.alive[:, team].sum() / playing:.1f} alive, "
        f"{now.distance[:, team][now.alive[:, team]].mean():.1f} m from the middle"
        for team in teams
    ]
    return f"{seconds:>3} s, {playing:>3} matches: learned {parts[0]}; bot {parts[1]}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run")
    parser.add_argument("--matches", type=int, default=64)
    parser.add_argument("--bot", default="objective")
    own = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    config = replace(Run(split_reference(own.run)[0]).config(), device="cpu")
    policy = load_policies(own.run)[0]["mech"]
    batch = make_batch(config, own.matches, SEED, held_out=True)
    per_team = batch.settings.sizes["per_team"]
    teams = slice(0, per_team), slice(per_team, 2 * per_team)
    for team, who in enumerate(("policy", own.bot)):
        batch.set_controller("mech", who, team=team)
    batch.reset()
    player = Player(policy, batch, teams[0])
    over, won, damage = np.zeros(own.matches, bool), 0, np.zeros(2 * per_team)
    decision = 0
    while not over.all():
        player.act()
        batch.step()
        decision += 1
        now = watch(batch, ~over, per_team)
        damage += now.damage
        if decision in [DECISIONS * s for s in SHOWN]:
            print(told(decision // DECISIONS, now, int((~over).sum()), teams))
        ended = batch.numpy("counted").astype(bool) & ~over
        won += int((batch.numpy("outcome")[ended, 0] > 0).sum())
        over |= ended
    kind = batch.numpy("kind").reshape(-1)
    for who, team in zip(("learned", "bot"), teams, strict=True):
        done = {
            name: damage[team][kind[team] == i].sum() / own.matches
            for i, name in enumerate(CLASS_NAMES)
        }
        print(
            f"damage a match, {who}: "
            f"{', '.join(f'{name} {value:.0f}' for name, value in done.items())}"
        )
    print(f"won {won} of {own.matches}")


if __name__ == "__main__":
    main()
