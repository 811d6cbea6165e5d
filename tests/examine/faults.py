"""Faults to plant in the learning code."""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import sys
import textwrap
from types import ModuleType
from typing import Any, NamedTuple

import torch

from ludus.networks.heads import squash_correction
from ludus.sim.game import Phase


class Fault(NamedTuple):
    place: str
    """module:function or module:Class.method"""
    old: str
    new: str


def owner_of(place: str) -> tuple[Any, Any, str]:
    """The module, what holds the function, and the function's name."""
    module_name, _, path = place.partition(":")
    module = importlib.import_module(module_name)
    *owners, name = path.split(".")
    return module, functools.reduce(getattr, owners, module), name


def modules() -> list[ModuleType]:
    """All modules of Ludus that training and the selftest use."""
    for name in ("ludus.api", "ludus.examine.selftest"):
        importlib.import_module(name)
    return [module for name, module in sys.modules.items() if name.startswith("ludus.")]


def put(monkeypatch: Any, place: str, function: Any) -> None:
    """Instead of what is there, wherever other modules have imported it."""
    importers = modules()
    module, owner, name = owner_of(place)
    before = inspect.getattr_static(owner, name)
    monkeypatch.setattr(owner, name, function)
    for importer in importers if owner is module else ():
        if getattr(importer, name, None) is before:
            monkeypatch.setattr(importer, name, function)


def wrap(monkeypatch: Any, place: str, wrapper: Any) -> None:
    _, owner, name = owner_of(place)
    put(monkeypatch, place, wrapper(getattr(owner, name)))


def plant(monkeypatch: Any, fault: Fault) -> None:
    """Replaces a piece of a function's source, in its own module's names."""
    modules()
    module, owner, name = owner_of(fault.place)
    raw = inspect.getattr_static(owner, name)
    function = (
        raw.fget
        if isinstance(raw, property)
        else raw.__func__
        if isinstance(raw, staticmethod)
        else raw
    )
    function = function.function if isinstance(function, Phase) else function
    source = textwrap.dedent(inspect.getsource(inspect.unwrap(function)))
    spoiled, count = re.subn(_any_layout(fault.old), lambda _: fault.new, source)
    assert count, f"{fault.place} has no '{fault.old}'"
    names: dict[str, Any] = {}
    exec(compile(spoiled, f"<fault in {fault.place}>", "exec"), vars(module), names)
    put(monkeypatch, fault.place, names[name])


def _any_layout(code: str) -> str:
    """A pattern that finds this code however it is broken into lines."""
    marks = [re.escape(mark) for mark in "".join(code.split())]
    return r"\s*".join(rf"(?:,\s*)?{mark}" if mark in (r"\)", r"\]") else mark for mark in marks)


# -- the ten that every hand-written learner has had: as wrappers, which outlive a change of the code they spoil --


def no_discounting(original):
    return lambda reward, value, ended, cut, idle, gamma, *rest: original(
        reward, value, ended, cut, idle, 1.0, *rest
    )


def not_cut_at_ends(original):
    def advantages(reward, value, ended, cut, *rest):
        never = torch.zeros_like(ended)
        return original(reward, value, never, never, *rest)

    return advantages


def shifted_dones(original):
    def record_step(self, t):
        original(self, t)
        now = self.rollout.terminated[t].clone()
        self.rollout.terminated[t] = getattr(self, "before", torch.zeros_like(now))
        self.before = now

    return record_step


def stale_observations(original):
    def observe(self, t):
        seen = original(self, t)
        now = self.rollout.observation[t].clone()
        self.rollout.observation[t] = getattr(self, "before", now)
        self.before = now
        return seen

    return observe


def module_left_out(original):
    def make(self, *arguments):
        original(self, *arguments)
        left_out = {id(p) for p in self.policy.actor.network.encoder.parameters()}
        for group in self.optimizer.param_groups:
            group["params"] = [p for p in group["params"] if id(p) not in left_out]

    return make


def without_normaliser(original):
    def act(self):
        self.policy.normalise_observation, before = False, self.policy.normalise_observation
        original(self)
        self.policy.normalise_observation = before

    return act


def dead_in_the_loss(original):
    def record_step(self, t):
        original(self, t)
        self.rollout.valid[t] = ~self.batch.tensor("resetting").repeat_interleave(self.num_agents)

    return record_step


ADVANTAGES, ROLE = (
    "ludus.algorithms.advantage:generalised_advantages",
    "ludus.algorithms.on_policy:Role.",
)

# name → (place, wrapper, checks that are concerned, the part that must be named first)
ASKED: dict[str, tuple[str, Any, tuple[str, ...], str]] = {
    "no discounting": (
        ADVANTAGES,
        no_discounting,
        ("advantages_of_random_episodes", "advantages_are_discounted_and_cut_at_ends"),
        "advantages",
    ),
    "advantages not cut at episode ends": (
        ADVANTAGES,
        not_cut_at_ends,
        ("advantages_of_random_episodes",),
        "advantages",
    ),
    "shifted dones": (
        ROLE + "record_step",
        shifted_dones,
        ("stores_what_was_seen", "stores_episode_ends_where_they_are"),
        "episode ends",
    ),
    "log-probability without squash correction": (
        "ludus.networks.heads:Distribution.log_prob",
        lambda original: (
            lambda self, actions: original(self, actions) + squash_correction(actions.raw).sum(-1)
        ),
        (
            "log_probabilities_and_entropies_of_mixed_actions",
            "stores_the_log_probability_of_each_action",
        ),
        "log-probabilities",
    ),
    "one module never updated": (
        ROLE + "__init__",
        module_left_out,
        ("every_module_is_updated", "gradients_reach_every_parameter"),
        "module updates",
    ),
    "stale observations stored": (
        ROLE + "observe",
        stale_observations,
        ("stores_what_was_seen",),
        "observations",
    ),
    "target network never updated": (
        "ludus.algorithms.rainbow.q_policy:move",
        lambda original: lambda *arguments: None,
        ("targets_and_losses_are_right", "the_target_network_follows"),
        "target network",
    ),
    "hidden state never reset": (
        "ludus.networks.memory:LSTM.forward",
        lambda original: (
            lambda self, x, state, starts: original(self, x, state, torch.zeros_like(starts))
        ),
        ("a_start_inside_a_sequence_is_a_fresh_memory", "memory_is_carried_and_reset"),
        "memory",
    ),
    "priorities ignored": (
        "ludus.algorithms.replay_buffer:Replay.set_priority",
        lambda original: lambda self, sample, error: original(self, sample, torch.ones_like(error)),
        ("transitions_come_up_by_their_priority", "errors_become_priorities"),
        "prioritised replay",
    ),
    "normaliser not applied in evaluation": (
        "ludus.play.player:Player.act",
        without_normaliser,
        ("a_player_acts_as_the_policy_was_trained",),
        "evaluation",
    ),
}

NAMED: dict[str, tuple[str, Any]] = {
    **{name: (place, wrapper) for name, (place, wrapper, _, _) in ASKED.items()},
    "dead agents in the loss": (ROLE + "record_step", dead_in_the_loss),
}


# -- others, of many kinds: a line of the source is replaced ---------------------------------------

ON_POLICY = "ludus.algorithms.on_policy:"
PPO, RAINBOW, REPLAY, Q, POLICY = (
    "ludus.algorithms.ppo.ppo:",
    "ludus.algorithms.rainbow.rainbow:",
    "ludus.algorithms.replay_buffer:",
    "ludus.algorithms.rainbow.q_policy:",
    "ludus.networks.policy:",
)
HEADS, PLAYER, NORM = (
    "ludus.networks.heads:Distribution.",
    "ludus.play.player:Player.",
    "ludus.networks.normalise:RunningNorm.",
)

# Others, of many kinds: the selftest must notice each.
OTHERS: tuple[Fault, ...] = (
    Fault(ADVANTAGES, "(~terminated).to", "(terminated == terminated).to"),
    Fault(ADVANTAGES, "gamma * (~terminated)", "gamma * (~(terminated | truncated))"),
    Fault(ADVANTAGES, "torch.where(idle[t], worth, value[t])", "value[t]"),
    Fault(ADVANTAGES, "gae_lambda * goes_on", "goes_on"),
    Fault(
        "ludus.algorithms.advantage:standardise",
        "torch.where(mask, (x - mean) / (std + 1e-8), 0.0)",
        "(x - mean) / (std + 1e-8)",
    ),
    Fault("ludus.algorithms.advantage:standardise", "(x - mean) / (std", "x / (std"),
    Fault(
        ROLE + "set_schedules",
        "self.gamma.fill_(parse(self.config.gamma)(progress))",
        "self.gamma.fill_(1.0)",
    ),
    Fault(
        ROLE + "set_schedules",
        "parse(self.config.learning_rate)(progress)",
        "parse(self.config.learning_rate)(0.0)",
    ),
    Fault(
        "ludus.algorithms.ppo.role:PPORole.set_schedules",
        "self.clip.fill_(parse(c.clip)(progress))",
        "self.clip.fill_(10.0)",
    ),
    Fault(ROLE + "act", "torch.tanh(r.raw[t])", "r.raw[t].clamp(-1, 1)"),
    Fault(ROLE + "act", "self.state.copy_(state)", "pass"),
    Fault(
        ROLE + "act", "= log_prob[0], value[0]", "= log_prob[0], self.policy.normal_value(value[0])"
    ),
    Fault(
        ROLE + "act",
        "self.state, r.starts[t : t + 1], mask, seen",
        "self.state, r.starts[t : t + 1], None, seen",
    ),
    Fault(
        ROLE + "record_step",
        'self.batch.tensor("resetting").unsqueeze(1)',
        "torch.zeros(())",
    ),
    Fault(
        ROLE + "record_step",
        'torch.logical_and(self.flat("valid"), learns, out=r.valid[t])',
        'r.valid[t] = self.flat("valid")',
    ),
    Fault(
        ROLE + "record_step",
        'torch.logical_and(self.flat("valid"), learns, out=r.valid[t])',
        "r.valid[t] = True",
    ),
    Fault(
        ROLE + "record_step",
        'torch.logical_and(self.flat("was_alive"), learns, out=r.valued[t])',
        "r.valued[t] = r.valid[t]",
    ),
    Fault(
        ROLE + "record_step",
        'torch.logical_and(self.flat("was_alive"), learns, out=r.valued[t])',
        'r.valued[t] = self.flat("was_alive")',
    ),
    Fault(ROLE + "record_step", "self.config.reward_scale", "1.0"),
    Fault(
        ROLE + "record_step",
        'torch.mul(self.flat("reward"), self.config.reward_scale, out=r.reward[t])',
        'torch.mul(self.flat("reward").clamp(-1, 1), self.config.reward_scale, out=r.reward[t])',
    ),
    Fault(
        ROLE + "record_step",
        'r.truncated[t] = self.flat("agent_truncated")',
        "r.truncated[t] = False",
    ),
    Fault(
        ROLE + "bootstrap_value",
        "r.value[last] = self.policy.real_value(output.value[0])",
        "r.value[last] = 0.0",
    ),
    Fault(
        ADVANTAGES,
        "torch.add(running, following, out=target[t])",
        "torch.add(running, value[t + 1], out=target[t])",
    ),
    Fault(
        ADVANTAGES,
        "torch.add(running, following, out=target[t])",
        "torch.add(running, value[t], out=target[t])",
    ),
    Fault(
        PPO + "PPO.prepare",
        "role.policy.update_value_norm(r.target, r.valued)",
        "role.policy.value_norm.update(r.target.reshape(-1, 1), r.valued.reshape(-1))",
    ),
    Fault(
        ON_POLICY + "OnPolicy.end_update",
        "r.valued.flatten()",
        "torch.ones_like(r.valid).flatten()",
    ),
    Fault(
        ON_POLICY + "OnPolicy.end_update",
        "if role.policy.normalise_observation:",
        "if False:",
    ),
    Fault(PPO + "PPO.one_pass", "role.optimizer.zero_grad()", "pass"),
    Fault(
        PPO + "PPO.update",
        "role.optimizer.step()",
        "role.optimizer.step() if total > 1e9 else None",
    ),
    Fault(PPO + "PPO.update", 'limit if limit > 0 else float("inf")', 'float("inf")'),
    Fault(PPO + "PPO.loss_terms", "torch.min(ratio * advantage,", "torch.max(ratio * advantage,"),
    Fault(PPO + "PPO.loss_terms", "policy_loss = -mean(", "policy_loss = mean("),
    Fault(PPO + "PPO.loss_terms", "ratio.clamp(1 - clip, 1 + clip)", "ratio"),
    Fault(PPO + "PPO.loss_terms", "- role.entropy * entropy", "+ role.entropy * entropy"),
    Fault(PPO + "PPO.loss_terms", "value_loss = 0.5 * (error", "value_loss = (error"),
    Fault(PPO + "PPO.loss_terms", 'part["valued"] / total_valued.clamp(min=1.0)', "weight"),
    Fault(
        PPO + "PPO.loss_terms",
        "(output.value - target).square()",
        "(output.value.detach() - target).square()",
    ),
    Fault(
        PPO + "PPO.loss_terms",
        "weight = valid / total.clamp(min=1.0)",
        "weight = torch.full(valid.shape, 1.0 / valid.numel())",
    ),
    Fault(PPO + "PPO.loss_terms", 'part["state"][0]', 'torch.zeros_like(part["state"][0])'),
    Fault(PPO + "PPO.loss_terms", "ratio - 1 - log_ratio", "log_ratio"),
    Fault(PPO + "PPO.loss_terms", "old + (output.value - old).clamp", "old + (output.value).clamp"),
    Fault(PPO + "PPO.chunks", 'data["target"] = role.policy.normal_value(data["target"])', "pass"),
    Fault(
        PPO + "PPO.chunks",
        'data["advantage"] = cut(r.standardised)',
        'data["advantage"] = cut(r.advantage)',
    ),
    Fault(PPO + "PPO.chunks", ".transpose(0, 1)", ""),
    Fault(PPO + "PPO.chunks", "data[name][: role.config.burn_in] = False", "pass"),
    Fault(PPO + "PPO.shuffled", "torch.randperm(len(kept))", "torch.arange(len(kept))"),
    Fault(
        PPO + "PPO.shuffled",
        "yield from (o for o in order.tensor_split(parts) if len(o))",
        "yield from (o for o in order.tensor_split(parts)[:1] * parts)",
    ),
    Fault(PPO + "PPO.learn_role", "float(role.pass_kl) > c.target_kl", "False"),
    Fault("ludus.algorithms.rollout:RoleRollout.start_rollout", "if part.frames > 1:", "if False:"),
    Fault(
        "ludus.algorithms.rollout:RoleRollout.stacks",
        "(age.unsqueeze(-1) >= back)",
        "(age.unsqueeze(-1) >= -1)",
    ),
    Fault(
        POLICY + "Policy.prepared",
        "if self.normalise_observation:",
        "if self.normalise_observation and self.training:",
    ),
    Fault(
        POLICY + "Policy.forward",
        "self.value_head(critic_features),",
        "self.value_head(features),",
    ),
    Fault(
        POLICY + "Policy.update_value_norm", "self.value_head.weight.mul_(old_std / std)", "pass"
    ),
    Fault(POLICY + "Policy.real_value", "+ self.value_norm.mean", ""),
    Fault(NORM + "update", "* share * (1 - share)", "* share"),
    Fault(NORM + "update", "self.count.copy_(total)", "pass"),
    Fault(NORM + "forward", "(x - mean) / std", "(x - mean)"),
    Fault(HEADS + "entropy", "+ self.log_std + correction", "+ self.log_std"),
    Fault(
        HEADS + "entropy",
        "total = total - (log_probs.exp() * log_probs).sum(-1)",
        "total = total - log_probs.sum(-1)",
    ),
    Fault(HEADS + "log_prob", "each = each * self.key_mask", "pass"),
    Fault(HEADS + "sample", "self.log_std.exp() * torch.randn_like", "torch.randn_like"),
    Fault(HEADS + "sample", "pressed = pressed & self.key_mask", "pass"),
    Fault("ludus.networks.memory:all_steps", "cells.append(cell * keep[t])", "cells.append(cell)"),
    Fault(PLAYER + "act", "self.state.copy_(state)", "pass"),
    Fault(
        PLAYER + "act",
        'self.batch.tensor("resetting")[self.envs]',
        'torch.zeros_like(self.batch.tensor("resetting")[self.envs])',
    ),
    Fault(PLAYER + "_chosen", "if self.greedy else", "if not self.greedy else"),
    Fault(
        "ludus.play.evaluate:play",
        'batch.numpy("counted") & (played < rounds)',
        'batch.numpy("counted") & (played >= 0)',
    ),
    Fault(RAINBOW + "Role.act", "q.argmax(-1))", "q.argmin(-1))"),
    Fault(
        RAINBOW + "Role.act", "self.policy.allowed(torch.rand_like(q), mask)", "torch.rand_like(q)"
    ),
    Fault(RAINBOW + "Role.record_step", "* self.config.reward_scale", ""),
    Fault(
        RAINBOW + "Role.record_step",
        'self.flat("agent_terminated"), self.flat("agent_truncated")',
        'self.flat("agent_terminated") | self.flat("agent_truncated"), '
        'self.flat("agent_truncated") & False',
    ),
    Fault(RAINBOW + "Role.updates_due", "if self.warm else 0", ""),
    Fault(RAINBOW + "Rainbow.update", "(each * sample.weight).sum() / total", "each.mean()"),
    Fault(RAINBOW + "Rainbow.update", "role.policy.follow(role.following)", "pass"),
    Fault(RAINBOW + "Rainbow.update", "role.replay.set_priority(sample, td)", "pass"),
    Fault(RAINBOW + "Rainbow.targets", "if self.c.double:", "if False:"),
    Fault(
        RAINBOW + "Rainbow.targets",
        "chosen(target.values(features, shares), best)",
        "chosen(policy.online.values(features, shares), best)",
    ),
    Fault(RAINBOW + "Rainbow.targets", "policy.allowed(q, mask)", "q"),
    Fault(
        RAINBOW + "Rainbow.targets",
        "sample.discount.unsqueeze(1) * following",
        "self.c.gamma * following if not isinstance(self.c.gamma, str) else following",
    ),
    Fault(
        RAINBOW + "Rainbow.estimates", "sample.action), shares", "sample.action.roll(1)), shares"
    ),
    Fault(RAINBOW + "quantile_huber", "(error_bnm < 0)", "(error_bnm > 0)"),
    Fault(RAINBOW + "huber", "kappa * (size - 0.5 * kappa)", "kappa * size"),
    Fault(
        "ludus.algorithms.rainbow.config:RainbowConfig.random_actions",
        "min(1.0, at / self.epsilon_over)",
        "at / self.epsilon_over",
    ),
    Fault(
        RAINBOW + "Rainbow.finish",
        "role.replay.valid[recent].flatten()",
        "torch.ones_like(role.replay.valid[recent]).flatten()",
    ),
    Fault(
        RAINBOW + "Rainbow.metrics", "role.count.steps += role.last_steps", "role.count.steps += 1"
    ),
    Fault(
        REPLAY + "Replay.transitions",
        "gamma ** elapsed[:-1] * runs * self.reward",
        "runs * self.reward",
    ),
    Fault(
        REPLAY + "Replay.transitions",
        "times[-1] + span[self._leaf(times[-1], row)]",
        "times[-1] + 1",
    ),
    Fault(
        REPLAY + "Replay.transitions",
        "waiting = valid[here] & (after >= self.head)",
        "waiting = valid[here] & (after < 0)",
    ),
    Fault(REPLAY + "Replay._add_to_decision", "gamma**gap * reward", "reward"),
    Fault(REPLAY + "Replay._add_to_decision", "(self.end, torch.where(adds, end, 0)),", ""),
    Fault(
        REPLAY + "Replay.add",
        "torch.where(valid, self.head, since)",
        "torch.where(valid, self.head - 1, since)",
    ),
    Fault(
        REPLAY + "Replay.set_priority",
        "torch.where(sample.waiting, self.tree.priority[sample.leaf], 0.0)",
        "0.0",
    ),
    Fault(REPLAY + "Replay.transitions", "(end[:-1] == GOES_ON)", "(end[:-1] >= GOES_ON)"),
    Fault(
        REPLAY + "Replay.transitions",
        "discount=gamma**steps * (1 - terminated)",
        "discount=gamma**steps",
    ),
    Fault(
        REPLAY + "Replay.transitions",
        "discount=gamma**steps * (1 - terminated)",
        "discount=gamma**steps * (1 - ended.float())",
    ),
    Fault(REPLAY + "Replay.transitions", "after = time + steps", "after = time + self.n_step"),
    Fault(REPLAY + "Replay.stacks", "torch.where(step >= b, f, 0)", "f"),
    Fault(REPLAY + "Replay._makes_up", "** -beta", "** 0.0"),
    Fault(
        REPLAY + "Replay._draw",
        "leaf = self.tree.draw(count)",
        "leaf = torch.randint(self.length * self.rows, (count,))",
    ),
    Fault(
        REPLAY + "Replay.admit",
        "self.valid.flatten()[entering]",
        "torch.ones_like(self.valid).flatten()[entering]",
    ),
    Fault(
        REPLAY + "SumTree.draw",
        "(until <= rest.unsqueeze(-1))",
        "(until < rest.unsqueeze(-1) * 0.9)",
    ),
    Fault(Q + "QNetwork.values", "- out.mean(-1, keepdim=True)", ""),
    Fault(
        Q + "Cosines.forward",
        "features.unsqueeze(-2) * embedded",
        "features.unsqueeze(-2) + embedded",
    ),
    Fault(
        Q + "QPolicy.prepared",
        "if self.normalise_observation else x",
        "if self.normalise_observation and self.training else x",
    ),
    Fault(Q + "QPolicy.acting", "self.training or self.averaged is None", "True"),
    Fault(Q + "QPolicy.allowed", "FORBIDDEN)", "0.0)"),
    Fault(
        Q + "move",
        "torch._foreach_lerp_(mine, theirs, share)",
        "torch._foreach_copy_(mine, theirs)",
    ),
    Fault(Q + "NoisyLinear.forward", "if not self.training:", "if False:"),
    Fault(
        RAINBOW + "Role.set_schedules",
        "self.beta.fill_(parse(c.beta)(progress))",
        "self.beta.fill_(parse(c.beta)(1.0))",
    ),
    Fault(
        "ludus.training.loop:Trainer.iterate",
        "self.algorithm.learn(self.schedule_share)",
        "self.algorithm.learn(0.0)",
    ),
    Fault("ludus.runs.weights:load_carried", "tensor.copy_(state", "tensor.clone().copy_(state"),
    Fault(
        "ludus.runs.checkpoint:load_optimizer",
        "state.setdefault(int(index), {})[name] = value",
        "state.setdefault(int(index), {})[name] = torch.zeros_like(value)",
    ),
    Fault(
        "ludus.networks.encoders:Frames.push",
        "torch.where(starts.view(-1, 1, 1, 1), 0, kept[:, 1:].clone())",
        "kept[:, 1:].clone()",
    ),
    Fault("ludus.algorithms.rainbow.q_policy:_copy_statistics", "a.copy_(b)", "pass"),
    Fault(
        "ludus.algorithms.rainbow.q_policy:QNetwork.features",
        "self.norm.train(learning)",
        "self.norm.train(True)",
    ),
    Fault(ROLE + "carried", '{"state": self.state, "start": self.start}', '{"start": self.start}'),
    Fault(
        "ludus.networks.strategy:StrategyEncoder.recognise",
        "+ self.positions",
        "+ 0 * self.embed.weight.detach().sum()",
    ),
)
