"""What agents went through, kept to be learned from again and again: a ring of steps, sampled as
n-step transitions.

A row of time t: observation_t, action_t → reward_t, end_t, valid_t → observation_{t+1}, which is
simply the next row of the ring. So an observation is stored once, whatever it is needed for, and so
is a picture: stacks of frames are put together when they are sampled. Times count from the start of
the run; time t lies at t modulo the length of the ring.

A finished env shows its true final observation and then spends one row on starting anew, which is
not valid. Hence the row after an end holds what a truncated transition bootstraps from, and no sum
of rewards ever runs past an end.

Idle rows (alive, without a decision) belong to the decision before them: their rewards are added to
its row, discounted, and `span` says how many rows on the next decision, or the final observation,
is. So an n-step sum runs over n decisions, whatever lies between them, and never bootstraps from a
row in which nothing is decided.

Axes: L times of the ring, R rows (env × agent of the role), B transitions of a sample, n steps of
reward. Nothing is read back to the host, so that on CUDA writing and sampling can be parts of a
graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from ludus.networks.encoders import shaped
from ludus.sim.layout import Seen

GOES_ON, TRUNCATED, TERMINATED = 0, 1, 2  # how a row ends
BRANCHES = 64
SMALLEST = 1e-6  # priority of a transition without any error: it may still come up


class SumTree:
    """Draws leaves in proportion to their priority. Every node is the sum of its 64 children, so a
    million leaves have four levels, and a whole batch goes down them in a dozen vectorised
    operations. Sums are computed anew, never adjusted: no drift.
    """

    def __init__(self, leaves: int, device: str) -> None:
        sizes = [leaves]
        while sizes[-1] > 1:
            sizes.append(-(-sizes[-1] // BRANCHES))
        # padded, so that the last node has all its children; leaves first
        self.levels = [
            torch.zeros(-(-size // BRANCHES) * BRANCHES, device=device) for size in sizes
        ]
        self.leaves = leaves

    @property
    def priority(self) -> Tensor:
        return self.levels[0][: self.leaves]

    @property
    def total(self) -> Tensor:
        return self.levels[-1][0]

    def set(self, leaf: Tensor, priority: Tensor) -> None:
        """Where a leaf is named several times, the highest priority counts."""
        self.levels[0].scatter_reduce_(0, leaf, priority, "amax", include_self=False)
        for below, above in zip(self.levels, self.levels[1:], strict=False):
            leaf = leaf // BRANCHES
            above.index_copy_(0, leaf, below.view(-1, BRANCHES)[leaf].sum(-1))

    def draw(self, count: int) -> Tensor:
        """Leaves, one from each of `count` equal parts of the whole sum."""
        device = self.total.device
        rest = (
            (torch.arange(count, device=device) + torch.rand(count, device=device))
            / count
            * self.total
        )
        node = torch.zeros(count, dtype=torch.long, device=device)
        for level in reversed(self.levels[:-1]):
            children = level.view(-1, BRANCHES)[node]
            until = children.cumsum(-1)
            # rounding may leave a rest beyond the last child that has any priority: the last such
            # child it is
            rest = torch.minimum(rest, until[:, -1] * (1 - 1e-6))
            child = (until <= rest.unsqueeze(-1)).sum(-1)
            before = (
                until.gather(1, child.unsqueeze(1)) - children.gather(1, child.unsqueeze(1))
            ).squeeze(1)
            rest = (rest - before).clamp(min=0)
            node = node * BRANCHES + child
        return node


class Sample(NamedTuple):
    """B transitions. Those of weight 0 are none, and teach nothing."""

    observation: Tensor  # [1, B, entries]
    seen: dict[str, Tensor]
    action: Tensor  # [B]
    earned: Tensor  # [B] discounted reward of up to n steps
    discount: Tensor  # [B] of the value of what follows; 0 after a terminal row
    following: Tensor  # [1, B, entries] what the value is asked of
    following_seen: dict[str, Tensor]
    following_mask: Tensor | None  # [1, B, actions]
    usable: Tensor  # [B]
    waiting: Tensor  # [B] not usable yet: the agent is still idle
    weight: Tensor  # [B] makes up for prioritised sampling; 0 where not usable
    leaf: Tensor  # [B] for new priorities
    age: Tensor  # [B] steps since it happened


class Replay:
    """The ring of one role, on the device that learns. `alpha` None: all transitions are drawn
    equally often."""

    def __init__(
        self,
        capacity: int,
        rows: int,
        entries: int,
        mask: int,
        parts: Mapping[str, Seen],
        *,
        n_step: int,
        alpha: float | None = None,
        device: str = "cpu",
    ) -> None:
        self.length, self.rows, self.n_step, self.alpha, self.parts = (
            capacity // rows,
            rows,
            n_step,
            alpha,
            parts,
        )

        def zeros(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
            return torch.zeros(self.length, rows, *shape, dtype=dtype, device=device)

        self.observation = zeros(entries)
        self.mask = zeros(mask, dtype=torch.bool)
        self.action = zeros(dtype=torch.int16)
        self.reward = zeros()
        self.end = zeros(dtype=torch.uint8)
        self.valid = zeros(dtype=torch.bool)
        self.span = torch.ones_like(self.reward, dtype=torch.int32)  # rows to the next decision
        # time of the last decision; -1: none yet
        self.decided_at = torch.full((rows,), -1, dtype=torch.long, device=device)
        self.step = zeros(dtype=torch.int32)  # of the episode
        self.seen = {
            name: zeros(part.height, part.width, dtype=torch.uint8) for name, part in parts.items()
        }
        # the time that is written next
        self.head = torch.zeros((), dtype=torch.long, device=device)
        self.every_row = torch.arange(rows, device=device)
        self.look_back = max((part.frames for part in parts.values()), default=1) - 1
        self.tree = SumTree(self.length * rows, device) if alpha is not None else None
        self.highest = torch.ones((), device=device)  # priority of what was never replayed

    def tensors(self) -> dict[str, Tensor]:
        """Everything, by name."""
        kept = {n: t for n, t in vars(self).items() if isinstance(t, Tensor) and n != "every_row"}
        kept |= {f"seen/{n}": t for n, t in self.seen.items()}
        return kept | (
            {f"tree/{i}": t for i, t in enumerate(self.tree.levels)}
            if self.tree is not None
            else {}
        )

    @property
    def nbytes(self) -> int:
        return sum(t.numel() * t.element_size() for t in self.tensors().values())

    # -- writing -----------------------------------------------------------------------------------

    def _write(self, into: Tensor, values: Tensor) -> None:
        into.index_copy_(0, (self.head % self.length).view(1), values.to(into.dtype).unsqueeze(0))

    def observe(
        self, observation: Tensor, mask: Tensor | None, seen: Mapping[str, Tensor], start: Tensor
    ) -> dict[str, Tensor]:
        """What is seen now. Returns the pictures as stacks [1, rows, …]. `start`: the first
        observation of an episode."""
        self._write(self.observation, observation)
        if mask is not None:
            self._write(self.mask, mask)
        for name, picture in seen.items():
            self._write(self.seen[name], picture)
        if not seen:
            return {}
        before = self.step.index_select(0, ((self.head - 1) % self.length).view(1))[0]
        self._write(self.step, torch.where(start, 0, before + 1))
        return self.stacks(self.head.expand(self.rows), self.every_row)

    def add(
        self,
        action: Tensor,
        reward: Tensor,
        valid: Tensor,
        idle: Tensor,
        terminated: Tensor,
        truncated: Tensor,
        gamma: Tensor,
    ) -> None:
        """What came of it. Only now the row counts. `gamma` discounts the rewards of idle rows."""
        end = terminated * TERMINATED + truncated * TRUNCATED
        self._write(self.action, action)
        self._write(self.reward, reward)
        self._write(self.valid, valid)
        self._write(self.end, end)
        self._write(self.span, torch.ones_like(reward))
        self._add_to_decision(reward, idle, end, gamma)
        # resets, the dead and bots end what was decided before
        since = torch.where(idle, self.decided_at, -1)
        self.decided_at.copy_(torch.where(valid, self.head, since))
        self.head += 1

    def _add_to_decision(self, reward: Tensor, idle: Tensor, end: Tensor, gamma: Tensor) -> None:
        """The newest rows where they are idle, to the rows of the decisions before them that are
        still in the ring."""
        gap = self.head - self.decided_at
        adds = idle & (self.decided_at >= 0) & (gap < self.length)
        leaf = self._leaf(self.decided_at.clamp(min=0), self.every_row)
        for into, value in (
            (self.reward, torch.where(adds, gamma**gap * reward, 0.0)),
            (self.span, torch.where(adds, 1, 0)),
            (self.end, torch.where(adds, end, 0)),
        ):
            flat = into.view(-1)
            flat.index_copy_(0, leaf, flat[leaf] + value.to(into.dtype))

    def cut(self) -> None:
        """The last decisions are truncated, where they did not end anyway: the next row must show
        what they led to."""
        last = (self.head - 1).expand(self.rows)
        there = (self.decided_at >= 0) & (self.decided_at > self.head - self.length)
        decided = torch.where(there, self.decided_at, last)
        for time in (last, decided):
            leaf, end = self._leaf(time, self.every_row), self.end.view(-1)
            end.index_copy_(
                0, leaf, torch.where(end[leaf] == GOES_ON, TRUNCATED, end[leaf]).to(end.dtype)
            )
        self.decided_at.fill_(-1)

    def admit(self, steps: int) -> None:
        """After `steps` rows were added: transitions that became whole may be drawn, those that are
        overwritten no more."""
        if self.tree is None:
            return
        newest = self.head - 1 - torch.arange(steps, device=self.head.device)
        entering = self._leaf((newest - self.n_step).unsqueeze(1), self.every_row)
        leaving = self._leaf((newest - self.length + self.look_back).unsqueeze(1), self.every_row)
        priority = torch.where(self.valid.flatten()[entering], self.highest, 0.0)
        leaf = torch.cat([entering.flatten(), leaving.flatten()])
        self.tree.set(leaf, torch.cat([priority.flatten(), torch.zeros_like(priority).flatten()]))

    # -- sampling ----------------------------------------------------------------------------------

    def _leaf(self, time: Tensor, row: Tensor) -> Tensor:
        return time % self.length * self.rows + row

    def stacks(self, time: Tensor, row: Tensor) -> dict[str, Tensor]:
        """What was seen at `time` by `row` (both [B]), with the frames before it in the same
        episode: [1, B, …]."""
        out = {}
        for name, part in self.parts.items():
            kept = self.seen[name].flatten(0, 1)
            back = [part.frames - 1 - k for k in range(part.frames)]
            frames = [kept[self._leaf(time - b, row)] for b in back]
            if part.frames > 1:
                step = self.step.flatten()[self._leaf(time, row)].view(-1, 1, 1)
                frames = [torch.where(step >= b, f, 0) for b, f in zip(back, frames, strict=True)]
            out[name] = shaped(torch.stack(frames, 1).unsqueeze(0), part)
        return out

    def recent(self, steps: int) -> Tensor:
        """Where the last `steps` times lie in the ring, oldest first."""
        return (self.head - torch.arange(steps, 0, -1, device=self.head.device)) % self.length

    def _draw(self, count: int) -> tuple[Tensor, Tensor]:
        """Times and rows whose n steps, and frames before them, are all in the ring."""
        oldest = (self.head - self.length + self.look_back).clamp(min=0)
        if self.tree is not None:
            leaf = self.tree.draw(count)
            position = leaf // self.rows
            return oldest + (position - oldest) % self.length, leaf % self.rows
        device = self.head.device
        whole = self.head - self.n_step - oldest
        time = (torch.rand(count, device=device) * whole).long().clamp(max=whole - 1)
        return oldest + time, torch.randint(self.rows, (count,), device=device)

    def sample(self, count: int, gamma: Tensor, beta: Tensor | None = None) -> Sample:
        time, row = self._draw(count)
        return self.transitions(time, row, gamma, beta)

    def transitions(
        self, time: Tensor, row: Tensor, gamma: Tensor, beta: Tensor | None = None
    ) -> Sample:
        """The transitions that start at `time` for `row`.

        Rewards add up over n decisions or to the episode's end, whichever comes first; what follows
        is the observation after that.
        """
        here = self._leaf(time, row)
        span, ends = self.span.flatten(), self.end.flatten()
        times = [time]  # of the decisions; past an end they mean nothing, and count for nothing
        for _ in range(self.n_step):
            times.append(times[-1] + span[self._leaf(times[-1], row)])
        path = self._leaf(torch.stack(times[:-1]), row)  # [n, B]
        elapsed = torch.stack(times) - time  # [n + 1, B]
        end = ends[path]
        runs = torch.ones_like(path, dtype=torch.float32)
        runs[1:] = (end[:-1] == GOES_ON).float().cumprod(0)
        earned = (gamma ** elapsed[:-1] * runs * self.reward.flatten()[path]).sum(0)
        terminated = (runs * (end == TERMINATED)).sum(0)
        ended = (runs * (end != GOES_ON)).sum(0) > 0
        steps = elapsed.gather(0, runs.sum(0).long().unsqueeze(0))[0]
        after = time + steps
        then = self._leaf(after, row)
        valid = self.valid.flatten()
        waiting = valid[here] & (after >= self.head)
        usable = valid[here] & (ended | valid[then]) & ~waiting
        return Sample(
            observation=self.observation.flatten(0, 1)[here].unsqueeze(0),
            seen=self.stacks(time, row),
            action=self.action.flatten()[here].long(),
            earned=earned,
            discount=gamma**steps * (1 - terminated),
            following=self.observation.flatten(0, 1)[then].unsqueeze(0),
            following_seen=self.stacks(after, row),
            following_mask=self.mask.flatten(0, 1)[then].unsqueeze(0)
            if self.mask.shape[-1]
            else None,
            usable=usable,
            waiting=waiting,
            weight=usable * self._makes_up(here, beta),
            leaf=here,
            age=self.head - time,
        )

    def _makes_up(self, leaf: Tensor, beta: Tensor | None) -> Tensor:
        """(count · probability)^−β, at most 1 in a batch."""
        if self.tree is None or beta is None:
            return torch.ones(leaf.shape, device=leaf.device)
        weight = self.tree.priority[leaf].clamp(min=SMALLEST) ** -beta
        return weight / weight.amax()

    def set_priority(self, sample: Sample, error: Tensor) -> None:
        """Transitions are replayed in proportion to |error|^alpha. Those that proved unusable are
        not drawn again, unless they only wait for an idle agent's next decision."""
        if self.tree is None or self.alpha is None:
            return
        priority = (error.abs() + SMALLEST) ** self.alpha
        self.highest.copy_(torch.maximum(self.highest, (priority * sample.usable).amax()))
        unusable = torch.where(sample.waiting, self.tree.priority[sample.leaf], 0.0)
        self.tree.set(sample.leaf, torch.where(sample.usable, priority, unusable))
