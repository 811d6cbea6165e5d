"""What must hold of opponents in every step of real training, on any device."""

from collections import Counter

import numpy as np
import torch

from ludus.sim.episode import FROZEN
from ludus.training.loop import Trainer


def watch_opponents(trainer: Trainer, iterations: int) -> Counter[str]:
    """Trains, and asserts in every step that no opponent changes inside an episode and that the
    memory of frozen ones starts fresh with it. Returns how often there was something to see."""
    league, batch, seen = trainer.league, trainer.batch, Counter[str]()
    step, last = batch.step, batch.numpy("controller")
    snapshots = [dict(slot.snapshots) for slot in league.slots]

    def frozen(k: int, agents=slice(None)) -> np.ndarray:
        return batch.numpy("controller")[league.block(k), agents] == FROZEN

    def watched() -> None:
        nonlocal last
        # an env whose last row was a reset row: the players' memory was zeroed before they acted on
        # it
        for (k, _), player in league.players.items():
            rows = (
                batch.numpy("resetting")[league.block(k)].repeat(player.count)
                & frozen(k, player.agents).ravel()
            )
            if not rows.any():
                continue
            seen["fresh"] += 1
            device = player.state.device
            observed = torch.from_numpy(
                batch.numpy("observation")[league.block(k), player.agents].reshape(1, len(rows), -1)
            )
            fresh, no_reset = (
                torch.zeros_like(player.state),
                torch.zeros(1, len(rows), dtype=torch.bool, device=device),
            )
            again, mine = (
                player.policy(observed.to(device), fresh, no_reset),
                torch.from_numpy(rows).to(device),
            )
            assert torch.allclose(again.state[mine], player.state[mine], atol=1e-6)
        step()
        going_on = ~batch.numpy("resetting")
        assert np.array_equal(batch.numpy("controller")[going_on], last[going_on])
        last = batch.numpy("controller")

    batch.step = watched
    for _ in range(iterations):
        trainer.iterate()
        for k, slot in enumerate(league.slots):
            if slot.snapshots != snapshots[k]:
                seen["swapped"] += 1
                assert not frozen(k).any()
            snapshots[k] = dict(slot.snapshots)
        if len({tuple(slot.snapshots.items()) for slot in league.slots}) > 1:
            seen["several at once"] += 1  # not one opponent for all envs
    return seen
