"""Rainbow with implicit quantiles: Q-learning from replayed transitions, every component a switch.

From top to bottom: the losses, `Role` holds what one role learns with, `Rainbow.collect` plays,
`Rainbow.learn` updates. The parts and their papers: n-step targets, double and dueling networks,
prioritised replay, noisy weights (Hessel et al. 2018 put them together), implicit quantiles (Dabney
et al. 2018). Where this differs: many envs act between updates; actions are chosen by evenly spaced
quantiles instead of random ones, so that playing is a function of the observation, and the random
ones of an update are spread evenly, which leaves less noise in the small differences between
actions; one draw of weight noise serves all envs for a step; a running average of the weights plays
outside training, because the greedy policy of the newest weights swings from one update to the
next.

Axes: R rows (env × agent of the role), B transitions, N and M quantiles of the learning and of the
target network. Nothing here reads a tensor back to the host inside a rollout or an update: on CUDA
both are graphs, captured once.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from ludus.algorithms.actions import action_metrics
from ludus.algorithms.algorithm import Evidence, Learner, Memory, Timed, make_policy
from ludus.algorithms.rainbow.config import RainbowConfig
from ludus.algorithms.rainbow.feasible import feasible_values
from ludus.algorithms.rainbow.q_policy import NoisyLinear, QPolicy, move
from ludus.algorithms.replay_buffer import Replay, Sample
from ludus.config import Config
from ludus.config.schedules import parse
from ludus.errors import LudusError
from ludus.networks.heads import action_space
from ludus.networks.policy import network_class
from ludus.protocols import Batch, Layout
from ludus.sim import Batch as GameBatch

SAMPLE = 512  # rows for diagnostics
SAVED_BYTES = 256_000_000  # a larger replay is no part of checkpoints
SUMS = (
    "value_loss",
    "td_error",
    "q_mean",
    "grad_norm",
    "clipped_updates",
    "replay_age",
    "unusable_share",
)


def huber(error: Tensor, kappa: float) -> Tensor:
    """Half the square up to kappa, a line beyond."""
    size = error.abs()
    return torch.where(size <= kappa, 0.5 * error.square(), kappa * (size - 0.5 * kappa))


def quantile_huber(error_bnm: Tensor, shares_bn: Tensor, kappa: float) -> Tensor:
    """[B]: errors (target − estimate) above a quantile weigh its share, those below the rest;
    summed over N, mean over M."""
    weight = (shares_bn.unsqueeze(-1) - (error_bnm < 0).float()).abs()
    return (weight * huber(error_bnm, kappa) / kappa).mean(-1).sum(-1)


def random_shares(rows: int, count: int, device: torch.device) -> Tensor:
    """[rows, count] quantiles, one from each of `count` equal parts: each is uniform, and their
    mean is less noisy."""
    return (torch.arange(count, device=device) + torch.rand(rows, count, device=device)) / count


def average_at(most: float, updates: int) -> float:
    """The share of the averaged weights that stays: at first it looks back over a tenth of the
    updates, so that it is never stuck with untrained weights."""
    return min(most, (1 + updates) / (10 + updates))


class Count(nn.Module):
    """How far a role has come. Saved with the weights, so that a resumed or forked run explores as
    little as the old one did."""

    iterations: Tensor
    steps: Tensor
    episodes: Tensor
    updates: Tensor

    def __init__(self) -> None:
        super().__init__()
        for name in ("iterations", "steps", "episodes", "updates"):
            self.register_buffer(name, torch.zeros((), dtype=torch.long))


class Role:
    """A role's networks, optimizer and replay."""

    def __init__(self, name: str, agents: slice, batch: Batch, config: Config) -> None:
        self.name, self.agents, self.batch = name, agents, batch
        assert isinstance(config.learner, RainbowConfig)
        self.config = config.learner
        c, device = self.config, config.device
        self.num_agents = agents.stop - agents.start
        self.rows = batch.num_envs * self.num_agents
        policy = make_policy(batch.layout, config, name).to(device)
        assert isinstance(policy, QPolicy)
        self.policy = policy
        self.target = copy.deepcopy(self.policy.online).requires_grad_(False)
        self.parameters = list(self.policy.online.parameters())
        on_gpu = device == "cuda"
        # in a graph the learning rate must live on the device
        rate = torch.tensor(1e-3, device=device) if on_gpu else 1e-3
        self.optimizer = torch.optim.AdamW(
            self.parameters,
            lr=rate,
            weight_decay=c.weight_decay,
            fused=True,
            capturable=on_gpu,
        )
        masked = batch.layout.sizes["num_masked"] if self.policy.space.masked else 0
        self.replay = Replay(
            c.replay,
            self.rows,
            self.policy.entries,
            masked,
            self.policy.seen,
            n_step=c.n_step,
            alpha=c.alpha if c.prioritised else None,
            device=device,
        )
        self.start = torch.ones(self.rows, dtype=torch.bool, device=device)
        self.count = Count()
        self.warm = False
        self.last_updates = self.last_steps = 0
        self.updates_per_iteration = c.rollout * self.rows * c.replay_ratio / c.batch
        self.epsilon, self.gamma, self.beta, self.following = (
            torch.zeros((), device=device) for _ in range(4)
        )
        self.gamma.fill_(parse(c.gamma)(0.0))
        self.random_actions, self.ended_episodes = (
            torch.zeros((), device=device) for _ in range(2)
        )
        self.sums = torch.zeros(len(SUMS), device=device)
        self.q_extremes = torch.zeros(2, device=device)
        self.noisy = [
            layer for layer in self.policy.online.modules() if isinstance(layer, NoisyLinear)
        ]

    def tensors(self) -> list[Tensor]:
        """Everything that an iteration changes and the next one needs."""
        optimizer = [t for values in self.optimizer.state.values() for t in values.values()]
        modules = [t for m in (self.policy, self.target) for t in (*m.parameters(), *m.buffers())]
        sums = [self.sums, self.q_extremes, self.random_actions, self.ended_episodes]
        return [*modules, *optimizer, self.start, *sums, *self.replay.tensors().values()]

    def carried(self) -> dict[str, Tensor]:
        """The replay, if it is small enough to be saved again and again; after a resume a larger
        one is filled anew."""
        kept = self.replay.tensors() if self.replay.nbytes <= SAVED_BYTES else {}
        return {
            "start": self.start,
            "gamma": self.gamma,
            **{f"replay/{n}": t for n, t in kept.items()},
        }

    def flat(self, name: str) -> Tensor:
        """A batch array of this role's agents as [rows, …], env after env."""
        return self.batch.tensor(name)[:, self.agents].flatten(0, 1)

    # -- playing -----------------------------------------------------------------------------------

    def act(self) -> Tensor:
        """Observes, chooses (at random with probability epsilon), and writes the action into the
        batch."""
        mask = self.flat("action_mask") if self.policy.space.masked else None
        observation = self.flat("observation")
        pictures = {name: self.flat(f"seen_{name}") for name in self.policy.seen}
        seen = self.replay.observe(observation, mask, pictures, self.start)
        self.policy.online.draw_noise()
        allowed = mask.unsqueeze(0) if mask is not None else None
        q = self.policy.q_values(observation.unsqueeze(0), allowed, seen)[0]
        anything = self.policy.allowed(torch.rand_like(q), mask).argmax(-1)
        at_random = torch.rand(self.rows, device=q.device) < self.epsilon
        action = torch.where(at_random, anything, q.argmax(-1))
        self.random_actions += at_random.float().mean() / self.config.rollout
        self.batch.tensor("choices")[:, self.agents, :1] = action.view(
            self.batch.num_envs, self.num_agents, 1
        ).int()
        return action

    def record_step(self, action: Tensor) -> None:
        """What the step brought. Rows of bots and opponents are not this policy's: they are not
        valid here."""
        learns = self.flat("controller") == 0
        valid = self.flat("valid") & learns
        idle = self.flat("was_alive") & ~self.flat("valid") & learns
        reward = self.flat("reward") * self.config.reward_scale
        ends = self.flat("agent_terminated"), self.flat("agent_truncated")
        self.replay.add(action, reward, valid, idle, *ends, self.gamma)
        self.ended_episodes += ((ends[0] | ends[1]) & learns).sum()
        self.start.view(self.batch.num_envs, self.num_agents).copy_(
            self.batch.tensor("resetting").unsqueeze(1)
        )

    # -- learning ----------------------------------------------------------------------------------

    def set_schedules(self, progress: float) -> float:
        """Scheduled values for this point of the budget, as tensors that a graph can read. Returns
        the learning rate."""
        c = self.config
        self.gamma.fill_(parse(c.gamma)(progress))
        self.beta.fill_(parse(c.beta)(progress))
        rate = parse(c.learning_rate)(progress)
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate
        return rate

    def updates_due(self) -> int:
        """Whole updates of this iteration: none before the warm-up is over; fractions wait for a
        later one."""
        done = int(self.count.iterations)
        self.count.iterations += 1
        if not self.warm:
            need = max(self.config.warm_up, self.config.batch, (self.config.n_step + 1) * self.rows)
            self.warm = min(int(self.replay.head), self.replay.length) * self.rows >= need
        return (
            int((done + 1) * self.updates_per_iteration) - int(done * self.updates_per_iteration)
            if self.warm
            else 0
        )


class Rainbow(Learner):
    """Plays with the batch and learns from what it replays, one iteration at a time."""

    settings = RainbowConfig
    memory_setting = "replay"
    role_class = Role
    roles: dict[str, Role]

    def __init__(self, batch: Batch, config: Config) -> None:
        super().__init__(batch, config)
        assert isinstance(config.learner, RainbowConfig)
        self.c = config.learner
        longest = max(parse(self.c.gamma).values)
        self.feasible = (
            {
                name: feasible_values(batch.game, batch.settings, name, longest)
                for name in self.roles
            }
            if isinstance(batch, GameBatch)  # envs of other libraries declare no rewards
            else {}
        )
        self.rollout_steps = self.c.rollout

    @staticmethod
    def make_policy(layout: Layout, config: Config, role: str) -> QPolicy:
        assert isinstance(config.learner, RainbowConfig)
        space = action_space(layout.actions_of(role), config.policy.state_dependent_std)
        return QPolicy(layout.observation, space, config.policy, config.learner, layout.seen)

    @classmethod
    def check_network(cls, config: Config, layout: Layout) -> None:
        """Refuses a network that looks back: single transitions are replayed."""
        super().check_network(config, layout)
        policy = config.policy
        if network_class(policy.network).history(layout.observation, policy) is not None:
            raise LudusError(
                f"rainbow replays single transitions, but policy.network {policy.network} looks "
                "back at a history: use algorithm ppo, or policy.network standard"
            )

    @classmethod
    def memory(cls, config: Config, layout: Layout, players: int) -> Memory:
        """The replays of all roles: as large as they will be, however many envs fill them."""
        assert isinstance(config.learner, RainbowConfig)
        c, total = config.learner, 0
        for seats in layout.seats:
            rows = seats.count * seats.teams * config.envs
            total += Replay(
                c.replay,
                rows,
                len(layout.observation),
                layout.sizes["num_masked"],
                layout.seen,
                n_step=c.n_step,
                device="meta",
            ).nbytes
        return Memory({}, total)

    # -- what the trainer asks for -----------------------------------------------------------------

    def learned_steps(self) -> int:
        return sum(role.last_steps for role in self.roles.values())

    def updates(self) -> int:
        return sum(role.last_updates for role in self.roles.values())

    def action_metrics(self) -> dict[str, float]:
        out: dict[str, float] = {}
        for name, role in self.roles.items():
            recent = role.replay.recent(self.c.rollout)
            choices, valid = role.replay.action[recent].unsqueeze(-1), role.replay.valid[recent]
            nothing = torch.zeros(*valid.shape, 0, device=valid.device)
            out |= action_metrics(
                self.batch.layout.actions_of(name), name, nothing, nothing, choices, valid
            )
        return out

    def buffer_bytes(self) -> int:
        return sum(role.replay.nbytes for role in self.roles.values())

    def modules(self) -> dict[str, nn.Module]:
        parts = {"target": lambda role: role.target, "count": lambda role: role.count}
        return {
            f"{name}/{part}": of(role)
            for name, role in self.roles.items()
            for part, of in parts.items()
        }

    def cut_episodes(self) -> None:
        for role in self.roles.values():
            role.replay.cut()

    def evidence(self, name: str) -> Evidence:
        """Some rows of the last step, and the observations and rewards of the last rollout."""
        role = self.roles[name]
        r, count = role.replay, min(SAMPLE, role.rows)
        recent = r.recent(self.c.rollout)
        observed, valid = r.observation[recent], r.valid[recent]
        mask = r.mask[recent[-1:], :count] if role.policy.space.masked else None
        rows = r.every_row[:count]
        return Evidence(
            inputs=(
                observed[-1:, :count],
                role.policy.initial_state(count),
                role.start[:count].unsqueeze(0),
                mask,
                r.stacks((r.head - 1).expand(count), rows),
            ),
            observation=observed[valid] if bool(valid.any()) else observed.flatten(0, 1),
            suspects={"observation": observed, "reward": r.reward[recent]},
            replay=r,
        )

    # -- playing -----------------------------------------------------------------------------------

    @torch.no_grad()
    def collect(self, timed: Timed) -> None:
        """One rollout. `timed(phase)` is a context that measures."""
        # of all roles together: a role with few agents would otherwise act at random until the end
        steps, episodes = (
            sum(int(getattr(role.count, n)) for role in self.roles.values())
            for n in ("steps", "episodes")
        )
        for role in self.roles.values():
            role.policy.train()
            role.epsilon.fill_(self.c.random_actions(steps, episodes))
        self.play_rollout(self.play, timed)

    def play(self, timed: Timed) -> None:
        for role in self.roles.values():
            role.random_actions.zero_()
            role.ended_episodes.zero_()
        for _ in range(self.c.rollout):
            with timed("act"), self.precision():
                actions = {name: role.act() for name, role in self.roles.items()}
                for opponent in self.opponents:
                    opponent.act()
            with timed("simulate"):
                self.batch.step()
            with timed("act"):
                for name, role in self.roles.items():
                    role.record_step(actions[name])
        with timed("act"):
            for role in self.roles.values():
                role.replay.admit(self.c.rollout)

    # -- learning ----------------------------------------------------------------------------------

    def learn_role(self, role: Role, progress: float) -> dict[str, float]:
        rate = role.set_schedules(progress)
        role.policy.train()
        role.sums.zero_()
        role.q_extremes[0].fill_(float("inf"))
        role.q_extremes[1].fill_(-float("inf"))
        role.last_updates = role.updates_due()
        for _ in range(role.last_updates):
            role.following.fill_(1 - average_at(self.c.average, int(role.count.updates)))
            self.part(f"update {role.name}", self.update, role)()
            role.count.updates += 1
            if int(role.count.updates) % self.c.target_every == 0:
                target = f"target {role.name}"
                self.part(target, move, role.target, role.policy.online, self.c.target_tau)()
        self.part(f"finish {role.name}", self.finish, role)()
        return {**self.metrics(role), "lr": rate}

    def update(self, role: Role) -> None:
        """One update from one sample of the replay."""
        c = self.c
        with torch.no_grad():
            sample = role.replay.sample(c.batch, role.gamma, role.beta)
            role.policy.online.draw_noise()
            role.target.draw_noise()
            with self.precision():
                target = self.targets(role, sample)
        role.optimizer.zero_grad()
        with self.precision():
            estimate, shares = self.estimates(role, sample)
        error = target.unsqueeze(1) - estimate.unsqueeze(2)  # [B, N, M]
        each = (
            quantile_huber(error, shares, c.kappa)
            if shares is not None
            else huber(error, c.kappa).flatten(1).sum(1)
        )
        usable = sample.usable.float()
        total = usable.sum().clamp(min=1.0)
        loss = (each * sample.weight).sum() / total
        loss.backward()
        limit = c.max_grad_norm
        norm = nn.utils.clip_grad_norm_(
            role.parameters, limit if limit > 0 else float("inf"), foreach=True
        )
        role.optimizer.step()
        role.policy.follow(role.following)
        with torch.no_grad():
            td = error.abs().mean((1, 2))
            role.replay.set_priority(sample, td)
            self.note(role, sample, loss, td, estimate.mean(1), norm)

    def targets(self, role: Role, sample: Sample) -> Tensor:
        """[B, M]: the reward of n steps, and the value of the action that would be taken then."""
        policy, target = role.policy, role.target
        x = policy.prepared(sample.following)
        features = target.features(x, sample.following_seen)[0]
        if self.c.double:
            q = policy.online.expectation(policy.online.features(x, sample.following_seen)[0])
        else:
            q = target.expectation(features)
        mask = sample.following_mask[0] if sample.following_mask is not None else None
        best = policy.allowed(q, mask).argmax(-1)
        shares = random_shares(len(best), self.c.target_quantiles, q.device) if self.c.iqn else None
        following = chosen(target.values(features, shares), best)
        return sample.earned.unsqueeze(1) + sample.discount.unsqueeze(1) * following

    def estimates(self, role: Role, sample: Sample) -> tuple[Tensor, Tensor | None]:
        """[B, N] values of the actions that were taken, at random shares [B, N]; one value and no
        shares without quantiles."""
        online = role.policy.online
        features = online.features(
            role.policy.prepared(sample.observation), sample.seen, learning=True
        )[0]
        shares = (
            random_shares(len(sample.action), self.c.quantiles, features.device)
            if self.c.iqn
            else None
        )
        return chosen(online.values(features, shares), sample.action), shares

    def note(
        self, role: Role, sample: Sample, loss: Tensor, td: Tensor, q: Tensor, norm: Tensor
    ) -> None:
        """Adds an update to the metrics of its iteration; values and errors in units of reward."""
        usable = sample.usable.float()
        share, limit = usable / usable.sum().clamp(min=1.0), self.c.max_grad_norm
        q = q / self.c.reward_scale
        clipped = (norm > limit).float() if limit > 0 else torch.zeros_like(norm)
        values = {
            "value_loss": loss,
            "td_error": (td * share).sum() / self.c.reward_scale,
            "q_mean": (q * share).sum(),
            "grad_norm": norm,
            "clipped_updates": clipped,
            "replay_age": (sample.age * share).sum(),
            "unusable_share": 1 - usable.mean(),
        }
        role.sums += torch.stack([values[name] for name in SUMS])
        low = torch.where(sample.usable, q, float("inf")).amin()
        high = torch.where(sample.usable, q, -float("inf")).amax()
        role.q_extremes.copy_(
            torch.stack(
                [torch.minimum(role.q_extremes[0], low), torch.maximum(role.q_extremes[1], high)]
            )
        )

    @torch.no_grad()
    def finish(self, role: Role) -> None:
        """Observation statistics move only now: the same ones were used in all updates of the
        iteration."""
        if role.policy.normalise_observation:
            recent = role.replay.recent(self.c.rollout)
            x = nn.functional.pad(
                role.replay.observation[recent], (0, role.policy.inputs - role.policy.entries)
            )
            role.policy.observation_norm.update(
                x.flatten(0, 1), role.replay.valid[recent].flatten()
            )

    @torch.no_grad()
    def metrics(self, role: Role) -> dict[str, float]:
        """Reads everything at once; counts what was collected."""
        r, updates = role.replay, role.last_updates
        recent = r.recent(self.c.rollout)
        valid = r.valid[recent]
        distance = [
            (a - b).square().sum()
            for a, b in zip(role.parameters, role.target.parameters(), strict=True)
        ]
        size = [p.square().sum() for p in role.parameters]
        values = {
            "steps": valid.sum(),
            "episodes": role.ended_episodes,
            "random_action_share": role.random_actions,
            "replay_size": r.head.clamp(max=r.length) * role.rows,
            "target_distance": (torch.stack(distance).sum() / torch.stack(size).sum()).sqrt(),
            "q_min": role.q_extremes[0],
            "q_max": role.q_extremes[1],
            **dict(zip(SUMS, role.sums, strict=True)),
        }
        if role.noisy:
            values["noise_scale"] = torch.stack(
                [layer.weight_noise.abs().mean() for layer in role.noisy]
            ).mean()
        if r.tree is not None:
            there = (r.tree.priority > 0).float()
            mean = r.tree.total / there.sum().clamp(min=1.0)
            spread = ((r.tree.priority - mean).square() * there).sum() / there.sum().clamp(min=1.0)
            values |= {"priority_spread": spread.sqrt() / mean.clamp(min=1e-9), "beta": role.beta}
        out = dict(
            zip(values, torch.stack([v.double() for v in values.values()]).tolist(), strict=True)
        )
        role.last_steps = int(out.pop("steps"))
        role.count.steps += role.last_steps
        role.count.episodes += int(out.pop("episodes"))
        for name in (*SUMS, "q_min", "q_max"):
            if not updates:
                del out[name]  # nothing was learned: there is no loss, rather than one of 0
            elif name in SUMS:
                out[name] /= updates
        feasible = self.feasible.get(role.name)
        if feasible is not None:
            out |= {"q_feasible_low": feasible[0], "q_feasible_high": feasible[1]}
        return {**out, "epsilon": float(role.epsilon)}


def chosen(values_bna: Tensor, action_b: Tensor) -> Tensor:
    """[B, N]: the values of one action each."""
    index = action_b.view(-1, 1, 1).expand(-1, values_bna.shape[1], 1)
    return values_bna.gather(2, index).squeeze(2)
