"""Faults to plant in the learning code: a place, what stands there, what is put instead."""

from __future__ import annotations

import functools
import importlib
import inspect
import textwrap
from typing import Any, NamedTuple


class Fault(NamedTuple):
    place: str
    """module:function or module:Class.method"""
    old: str
    new: str


def plant(monkeypatch: Any, fault: Fault) -> None:
    """Replaces a piece of a function's source, in its own module's names, wherever other modules have imported it."""
    importers = [
        importlib.import_module(f"ludus.{n}")
        for n in ("learn.ppo", "learn.rainbow", "policies.q_policy", "policies.policy", "training.loop")
    ]
    module_name, _, path = fault.place.partition(":")
    module = importlib.import_module(module_name)
    *owners, name = path.split(".")
    owner = functools.reduce(getattr, owners, module)
    raw = inspect.getattr_static(owner, name)
    function = raw.fget if isinstance(raw, property) else raw.__func__ if isinstance(raw, staticmethod) else raw
    source = textwrap.dedent(inspect.getsource(inspect.unwrap(function)))
    assert source.count(fault.old) >= 1, f"{fault.place} has no '{fault.old}'"
    names: dict[str, Any] = {}
    exec(compile(source.replace(fault.old, fault.new), f"<fault in {fault.place}>", "exec"), vars(module), names)
    monkeypatch.setattr(owner, name, names[name])
    if not owners:
        for importer in importers:
            if getattr(importer, name, None) is raw:
                monkeypatch.setattr(importer, name, names[name])


# The ten that were asked for: name → (fault, checks that are concerned, the part that must be named first)
ASKED: dict[str, tuple[Fault, tuple[str, ...], str]] = {
    "no discounting": (
        Fault("ludus.learn.advantage:generalised_advantages", "worth = reward[t] + gamma * following", "worth = reward[t] + following"),
        ("advantages_of_random_episodes", "advantages_are_discounted_and_cut_at_ends"), "advantages",
    ),
    "advantages not cut at episode ends": (
        Fault("ludus.learn.advantage:generalised_advantages", "running * ~(terminated[t] | truncated[t])", "running"),
        ("advantages_of_random_episodes",), "advantages",
    ),
    "shifted dones": (
        Fault("ludus.learn.ppo:Role.see", 'r.terminated[t] = self.flat("agent_terminated")',
              'r.terminated[t] = False; r.terminated[min(t + 1, len(r.terminated) - 1)] = self.flat("agent_terminated")'),
        ("stores_what_was_seen", "stores_episode_ends_where_they_are"), "episode ends",
    ),
    "log-probability without squash correction": (
        Fault("ludus.policies.heads:Distribution.log_prob", " - squash_correction(actions.raw)", ""),
        ("log_probabilities_and_entropies_of_mixed_actions", "stores_the_log_probability_of_each_action"), "log-probabilities",
    ),
    "one module never updated": (
        Fault("ludus.learn.ppo:Role.__init__", 'critic = [p for n, p in self.policy.named_parameters() if n.startswith(of_critic)]',
              'critic = [p for n, p in self.policy.named_parameters() if n.startswith(of_critic) and "encoder" not in n]'),
        ("every_module_is_updated", "gradients_reach_every_parameter"), "module updates",
    ),
    "stale observations stored": (
        Fault("ludus.learn.ppo:Role.observe", 'self.batch.tensor("observation")[:, self.agents])',
              'getattr(self, "stale", self.batch.tensor("observation")[:, self.agents])); '
              'self.stale = self.batch.tensor("observation")[:, self.agents].clone()'),
        ("stores_what_was_seen",), "observations",
    ),
    "target network never updated": (
        Fault("ludus.learn.rainbow:Rainbow.learn_role", "% self.c.target_every == 0", "% self.c.target_every == -1"),
        ("targets_and_losses_are_right", "the_target_network_follows"), "target network",
    ),
    "hidden state never reset": (
        Fault("ludus.policies.memory:LSTM.forward", "(~starts)", "torch.ones_like(starts)"),
        ("a_start_inside_a_sequence_is_a_fresh_memory", "memory_is_carried_and_reset"), "memory",
    ),
    "priorities ignored": (
        Fault("ludus.learn.replay:Replay.set_priority", "priority = (error.abs() + SMALLEST) ** self.alpha", "priority = torch.ones_like(error)"),
        ("transitions_come_up_by_their_priority", "errors_become_priorities"), "prioritised replay",
    ),
    "normaliser not applied in evaluation": (
        Fault("ludus.policies.player:Player.act", 'observation = self.mine("observation").reshape(1, rows, -1)',
              'observation = self.mine("observation").reshape(1, rows, -1) * self.policy.observation_norm.std[: self.policy.entries] '
              '+ self.policy.observation_norm.mean[: self.policy.entries]'),
        ("a_player_acts_as_the_policy_was_trained",), "evaluation",
    ),
}  # fmt: skip

PPO, RAINBOW, REPLAY, Q, POLICY = (
    "ludus.learn.ppo:", "ludus.learn.rainbow:", "ludus.learn.replay:", "ludus.policies.q_policy:", "ludus.policies.policy:"
)  # fmt: skip
HEADS, PLAYER, NORM = (
    "ludus.policies.heads:Distribution.",
    "ludus.policies.player:Player.",
    "ludus.policies.normalise:RunningNorm.",
)

# Others, of many kinds: the selftest must notice each.
OTHERS: tuple[Fault, ...] = (
    Fault("ludus.learn.advantage:generalised_advantages", "following * ~terminated[t]", "following"),
    Fault("ludus.learn.advantage:generalised_advantages", "following * ~terminated[t]", "following * ~(terminated[t] | truncated[t])"),
    Fault("ludus.learn.advantage:generalised_advantages", "torch.where(idle[t], worth, value[t])", "value[t]"),
    Fault("ludus.learn.advantage:generalised_advantages", "gamma * gae_lambda", "gae_lambda"),
    Fault("ludus.learn.advantage:standardise", "torch.where(mask, (x - mean) / (std + 1e-8), 0.0)", "(x - mean) / (std + 1e-8)"),
    Fault("ludus.learn.advantage:standardise", "(x - mean) / (std", "x / (std"),
    Fault(PPO + "Role.set_schedules", "self.gamma.fill_(parse(c.gamma)(share))", "self.gamma.fill_(1.0)"),
    Fault(PPO + "Role.set_schedules", "parse(c.learning_rate)(share)", "parse(c.learning_rate)(0.0)"),
    Fault(PPO + "Role.set_schedules", "self.clip.fill_(parse(c.clip)(share))", "self.clip.fill_(10.0)"),
    Fault(PPO + "Role.act", "torch.tanh(r.raw[t])", "r.raw[t].clamp(-1, 1)"),
    Fault(PPO + "Role.act", "self.state.copy_(state)", "pass"),
    Fault(PPO + "Role.act", "= log_prob[0], value[0]", "= log_prob[0], self.policy.normal_value(value[0])"),
    Fault(PPO + "Role.act", "self.state, r.starts[t : t + 1], mask, seen", "self.state, r.starts[t : t + 1], None, seen"),
    Fault(PPO + "Role.see", 'self.start.view(self.batch.num_envs, self.num_agents).copy_(self.batch.tensor("resetting").unsqueeze(1))', "self.start.zero_()"),
    Fault(PPO + "Role.see", 'torch.logical_and(self.flat("valid"), self.flat("controller") == 0, out=r.valid[t])', 'r.valid[t] = self.flat("valid")'),
    Fault(PPO + "Role.see", 'torch.logical_and(self.flat("valid"), self.flat("controller") == 0, out=r.valid[t])', "r.valid[t] = True"),
    Fault(PPO + "Role.see", "self.config.reward_scale", "1.0"),
    Fault(PPO + "Role.see", 'torch.mul(self.flat("reward"), self.config.reward_scale, out=r.reward[t])',
          'torch.mul(self.flat("reward").clamp(-1, 1), self.config.reward_scale, out=r.reward[t])'),
    Fault(PPO + "Role.see", 'r.truncated[t] = self.flat("agent_truncated")', "r.truncated[t] = False"),
    Fault(PPO + "Role.look_ahead", "r.value[last] = self.policy.real_value(output.value[0])", "r.value[last] = 0.0"),
    Fault(PPO + "PPO.set_targets", "torch.add(r.advantage, r.value[:-1], out=r.target)", "torch.add(r.advantage, r.value[1:], out=r.target)"),
    Fault(PPO + "PPO.prepare", "role.policy.update_value_norm(r.target, r.valid)", "role.policy.value_norm.update(r.target.reshape(-1, 1), r.valid.reshape(-1))"),
    Fault(PPO + "PPO.finish", "r.valid.flatten()", "torch.ones_like(r.valid).flatten()"),
    Fault(PPO + "PPO.finish", "if role.policy.normalise_observation:", "if False:"),
    Fault(PPO + "PPO.one_pass", "role.optimizer.zero_grad()", "pass"),
    Fault(PPO + "PPO.update", "role.optimizer.step()", "role.optimizer.step() if total > 1e9 else None"),
    Fault(PPO + "PPO.update", 'limit if limit > 0 else float("inf")', 'float("inf")'),
    Fault(PPO + "PPO.loss_terms", "torch.min(ratio * advantage,", "torch.max(ratio * advantage,"),
    Fault(PPO + "PPO.loss_terms", "policy_loss = -mean(", "policy_loss = mean("),
    Fault(PPO + "PPO.loss_terms", "ratio.clamp(1 - clip, 1 + clip)", "ratio"),
    Fault(PPO + "PPO.loss_terms", "- role.entropy * entropy", "+ role.entropy * entropy"),
    Fault(PPO + "PPO.loss_terms", "value_loss = 0.5 * mean(error)", "value_loss = mean(error)"),
    Fault(PPO + "PPO.loss_terms", "(output.value - target).square()", "(output.value.detach() - target).square()"),
    Fault(PPO + "PPO.loss_terms", "weight = valid / total.clamp(min=1.0)", "weight = torch.full(valid.shape, 1.0 / valid.numel())"),
    Fault(PPO + "PPO.loss_terms", 'part["state"][0]', 'torch.zeros_like(part["state"][0])'),
    Fault(PPO + "PPO.loss_terms", "ratio - 1 - log_ratio", "log_ratio"),
    Fault(PPO + "PPO.loss_terms", "old + (output.value - old).clamp", "old + (output.value).clamp"),
    Fault(PPO + "PPO.chunks", 'data["target"] = role.policy.normal_value(data["target"])', "pass"),
    Fault(PPO + "PPO.chunks", 'data["advantage"] = cut(r.standardised)', 'data["advantage"] = cut(r.advantage)'),
    Fault(PPO + "PPO.chunks", ".transpose(0, 1)", ""),
    Fault(PPO + "PPO.chunks", 'data["valid"][: role.config.burn_in] = False', "pass"),
    Fault(PPO + "PPO.shuffled", "torch.randperm(len(useful))", "torch.arange(len(useful))"),
    Fault(PPO + "PPO.shuffled", "yield from (o for o in order.tensor_split(parts) if len(o))", "yield from (o for o in order.tensor_split(parts)[:1] * parts)"),
    Fault(PPO + "PPO.learn_role", "float(role.pass_kl) > c.target_kl", "False"),
    Fault(PPO + "RoleRollout.turn_over", "if part.frames > 1:", "if False:"),
    Fault(PPO + "RoleRollout.stacks", "(age.unsqueeze(-1) >= back)", "(age.unsqueeze(-1) >= -1)"),
    Fault(POLICY + "Policy.forward", "if self.normalise_observation:", "if self.normalise_observation and self.training:"),
    Fault(POLICY + "Policy.forward", "value, new_state = self.value_head(critic_features)", "value, new_state = self.value_head(features)"),
    Fault(POLICY + "Policy.update_value_norm", "self.value_head.weight.mul_(old_std / std)", "pass"),
    Fault(POLICY + "Policy.real_value", "+ self.value_norm.mean", ""),
    Fault(NORM + "update", "* share * (1 - share)", "* share"),
    Fault(NORM + "update", "self.count.copy_(total)", "pass"),
    Fault(NORM + "forward", "(x - mean) / std", "(x - mean)"),
    Fault(HEADS + "entropy", "+ self.log_std + correction", "+ self.log_std"),
    Fault(HEADS + "entropy", "total = total - (log_probs.exp() * log_probs).sum(-1)", "total = total - log_probs.sum(-1)"),
    Fault(HEADS + "log_prob", "each = each * self.key_mask", "pass"),
    Fault(HEADS + "sample", "self.log_std.exp() * torch.randn_like", "torch.randn_like"),
    Fault(HEADS + "sample", "pressed = pressed & self.key_mask", "pass"),
    Fault("ludus.policies.memory:_Recurrence.forward", "cells.append(cell * keep[t])", "cells.append(cell)"),
    Fault(PLAYER + "act", "self.state.copy_(output.state)", "pass"),
    Fault(PLAYER + "act", 'self.batch.tensor("resetting")[self.envs]', 'torch.zeros_like(self.batch.tensor("resetting")[self.envs])'),
    Fault(PLAYER + "_chosen", "if self.greedy else", "if not self.greedy else"),
    Fault("ludus.training.evaluate:play", 'batch.numpy("counted") & (played < rounds)', 'batch.numpy("counted") & (played >= 0)'),
    Fault(RAINBOW + "Role.act", "q.argmax(-1))", "q.argmin(-1))"),
    Fault(RAINBOW + "Role.act", "self.policy.allowed(torch.rand_like(q), mask)", "torch.rand_like(q)"),
    Fault(RAINBOW + "Role.see", "* self.config.reward_scale", ""),
    Fault(RAINBOW + "Role.see", 'self.flat("agent_terminated"), self.flat("agent_truncated")', 'self.flat("agent_terminated") | self.flat("agent_truncated"), self.flat("agent_truncated") & False'),
    Fault(RAINBOW + "Role.updates_due", "if self.warm else 0", ""),
    Fault(RAINBOW + "Rainbow.update", "(each * sample.weight).sum() / total", "each.mean()"),
    Fault(RAINBOW + "Rainbow.update", "role.policy.follow(role.following)", "pass"),
    Fault(RAINBOW + "Rainbow.update", "role.replay.set_priority(sample, td)", "pass"),
    Fault(RAINBOW + "Rainbow.targets", "if self.c.double:", "if False:"),
    Fault(RAINBOW + "Rainbow.targets", "chosen(target.values(features, shares), best)", "chosen(policy.online.values(features, shares), best)"),
    Fault(RAINBOW + "Rainbow.targets", "policy.allowed(q, mask)", "q"),
    Fault(RAINBOW + "Rainbow.targets", "sample.discount.unsqueeze(1) * following", "self.c.gamma * following if not isinstance(self.c.gamma, str) else following"),
    Fault(RAINBOW + "Rainbow.estimates", "sample.action), shares", "sample.action.roll(1)), shares"),
    Fault(RAINBOW + "quantile_huber", "(error_bnm < 0)", "(error_bnm > 0)"),
    Fault(RAINBOW + "huber", "kappa * (size - 0.5 * kappa)", "kappa * size"),
    Fault(RAINBOW + "epsilon_at", "min(1.0, at / c.epsilon_over)", "at / c.epsilon_over"),
    Fault(RAINBOW + "Rainbow.finish", "role.replay.valid[recent].flatten()", "torch.ones_like(role.replay.valid[recent]).flatten()"),
    Fault(RAINBOW + "Rainbow.metrics", "role.count.steps += role.last_steps", "role.count.steps += 1"),
    Fault(REPLAY + "Replay.transitions", "gamma**self.ahead * runs * self.reward", "runs * self.reward"),
    Fault(REPLAY + "Replay.transitions", "(end[:-1] == GOES_ON)", "(end[:-1] >= GOES_ON)"),
    Fault(REPLAY + "Replay.transitions", "discount=gamma**steps * (1 - terminated)", "discount=gamma**steps"),
    Fault(REPLAY + "Replay.transitions", "discount=gamma**steps * (1 - terminated)", "discount=gamma**steps * (1 - ended.float())"),
    Fault(REPLAY + "Replay.transitions", "after = time + steps.long()", "after = time + self.n_step"),
    Fault(REPLAY + "Replay.stacks", "torch.where(step >= b, f, 0)", "f"),
    Fault(REPLAY + "Replay._makes_up", "** -beta", "** 0.0"),
    Fault(REPLAY + "Replay._draw", "leaf = self.tree.draw(count)", "leaf = torch.randint(self.length * self.rows, (count,))"),
    Fault(REPLAY + "Replay.admit", "self.valid.flatten()[entering]", "torch.ones_like(self.valid).flatten()[entering]"),
    Fault(REPLAY + "SumTree.draw", "(until <= rest.unsqueeze(-1))", "(until < rest.unsqueeze(-1) * 0.9)"),
    Fault(Q + "QNetwork.values", "- out.mean(-1, keepdim=True)", ""),
    Fault(Q + "Cosines.forward", "features.unsqueeze(-2) * embedded", "features.unsqueeze(-2) + embedded"),
    Fault(Q + "QPolicy.prepared", "if self.normalise_observation else x", "if self.normalise_observation and self.training else x"),
    Fault(Q + "QPolicy.acting", "self.training or self.averaged is None", "True"),
    Fault(Q + "QPolicy.allowed", "FORBIDDEN)", "0.0)"),
    Fault(Q + "move", "torch._foreach_lerp_(mine, theirs, share)", "torch._foreach_copy_(mine, theirs)"),
    Fault(Q + "NoisyLinear.forward", "if not self.training:", "if False:"),
    Fault(RAINBOW + "Role.set_schedules", "self.beta.fill_(parse(c.beta)(share))", "self.beta.fill_(parse(c.beta)(1.0))"),
    Fault("ludus.training.loop:Trainer.iterate", "self.algorithm.learn(self.share)", "self.algorithm.learn(0.0)"),
    Fault("ludus.training.weights:load_carried", "tensor.copy_(state", "tensor.clone().copy_(state"),
    Fault("ludus.training.checkpoint:load_optimizer", "state.setdefault(int(index), {})[name] = value", "state.setdefault(int(index), {})[name] = torch.zeros_like(value)"),
    Fault("ludus.policies.encoders:Frames.push", "torch.where(starts.view(-1, 1, 1, 1), 0, kept[:, 1:].clone())", "kept[:, 1:].clone()"),
    Fault("ludus.policies.q_policy:_copy_statistics", "a.copy_(b)", "pass"),
    Fault("ludus.policies.q_policy:QNetwork.features", "self.norm.train(learning)", "self.norm.train(True)"),
    Fault(PPO + "Role.carried", '{"state": self.state, "start": self.start}', '{"start": self.start}'),
    Fault("ludus.policies.strategy:StrategyEncoder.recognise", "+ self.positions", "+ 0 * self.embed.weight.detach().sum()"),
)  # fmt: skip

NAMED: dict[str, Fault] = {
    **{name: fault for name, (fault, _, _) in ASKED.items()},
    "dead agents in the loss": Fault(
        PPO + "Role.see",
        'torch.logical_and(self.flat("valid"), self.flat("controller") == 0, out=r.valid[t])',
        'r.valid[t] = ~self.batch.tensor("resetting").repeat_interleave(self.num_agents)',
    ),
}
