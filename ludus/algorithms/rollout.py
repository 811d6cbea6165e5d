"""What the agents of one role saw and did, kept for the update that follows."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from ludus.networks.encoders import shaped, steps_back, stored_as
from ludus.networks.policy import Policy


class RoleRollout:
    """What the agents of one role saw and did, over T steps. The last observation and value are the
    bootstrap's.

    The memory is kept where chunks start. Pictures and histories are kept once, not once per frame
    of a stack: `seen` has frames − 1 of them from before the rollout, and `age` tells how many
    belong to the episode. On CUDA observations are kept in half precision, and acted on as they are
    kept.
    """

    def __init__(
        self,
        steps: int,
        chunk: int,
        rows: int,
        policy: Policy,
        mask: int,
        device: str,
        recorded: Mapping[str, Tensor],
    ) -> None:
        """`chunk`: steps between two places where the memory is kept. `recorded`: what auxiliary
        losses want to know of every step, as examples [rows, …]."""
        entries, space, state_size = policy.inputs, policy.space, policy.state_size
        half = device != "cpu"

        def zeros(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
            return torch.zeros(*shape, dtype=dtype, device=device)

        self.observation = zeros(
            steps + 1, rows, entries, dtype=torch.float16 if half else torch.float32
        )
        self.mask = zeros(steps + 1, rows, mask, dtype=torch.bool)
        self.raw = zeros(steps, rows, space.continuous)
        self.binary = zeros(steps, rows, space.binary, dtype=torch.int8)
        self.choices = zeros(steps, rows, len(space.choices), dtype=torch.int32)
        self.recorded = {
            name: zeros(steps, *x.shape, dtype=x.dtype) for name, x in recorded.items()
        }
        self.prepared: dict[str, Tensor] = {}  # [steps, rows, …] for auxiliary losses
        self.log_prob = zeros(steps, rows)
        self.value = zeros(steps + 1, rows)
        self.reward = zeros(steps, rows)
        self.advantage = zeros(steps, rows)
        self.standardised = zeros(steps, rows)
        self.target = zeros(steps, rows)
        self.valid = zeros(steps, rows, dtype=torch.bool)
        # rows whose value is learned: valid ones and idle ones
        self.valued = zeros(steps, rows, dtype=torch.bool)
        self.idle = zeros(steps, rows, dtype=torch.bool)
        self.terminated = zeros(steps, rows, dtype=torch.bool)
        self.truncated = zeros(steps, rows, dtype=torch.bool)
        self.starts = zeros(steps + 1, rows, dtype=torch.bool)
        self.state = zeros(steps // chunk, rows, state_size)
        self.age = zeros(steps + 1, rows, dtype=torch.int32)
        self.parts = policy.seen
        self.seen = {
            name: zeros(
                steps + part.frames, rows, part.height, part.width, dtype=stored_as(part, device)
            )
            for name, part in self.parts.items()
        }

    def start_rollout(self) -> None:
        """Before a new rollout: the frames that its first steps look back to."""
        for name, part in self.parts.items():
            if part.frames > 1:
                self.seen[name][: part.frames - 1] = self.seen[name][-part.frames : -1].clone()

    def everything(self) -> tuple[Tensor, Tensor]:
        """Times and rows of the whole rollout, for `stacks`."""
        shape = self.value.shape
        times = torch.arange(shape[0], device=self.value.device).unsqueeze(1).expand(shape)
        return times, torch.arange(shape[1], device=self.value.device).expand(shape)

    def stacks(self, times: Tensor, rows: Tensor) -> dict[str, Tensor]:
        """What was seen at `times` by `rows` (both [L, C]), with the frames before it in the same
        episode."""
        out = {}
        count = self.reward.shape[1]
        age = self.age.flatten()[times * count + rows]
        for name, part in self.parts.items():
            ago = steps_back(part)
            back = torch.arange(ago.start, ago.stop, ago.step, device=times.device)
            newest = times.unsqueeze(-1) + part.frames - 1
            stack = self.seen[name].flatten(0, 1)[(newest - back) * count + rows.unsqueeze(-1)]
            if part.frames > 1:
                stack = torch.where((age.unsqueeze(-1) >= back)[..., None, None], stack, 0)
            out[name] = shaped(stack, part)
        return out

    @property
    def nbytes(self) -> int:
        tensors = [t for t in vars(self).values() if isinstance(t, Tensor)] + list(
            self.seen.values()
        )
        tensors += [*self.recorded.values(), *self.prepared.values()]
        return sum(t.numel() * t.element_size() for t in tensors)
