"""Slower evidence about a run for diagnostics.jsonl: gradients, dead units, rank, inputs that
matter, first NaN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ludus.algorithms.algorithm import Algorithm, Evidence
from ludus.algorithms.replay_buffer import TERMINATED, TRUNCATED
from ludus.protocols import ActingPolicy, Layout

OUT_OF_RANGE = 10.0
"""What a normalised observation is cut to; observations that are not normalised should be of the
size of 1."""
FROM_THE_END = ("advantage",)
REPLAYED = 2048
"""Rows of the replay that are looked at."""


class Diagnostics:
    """Looks at an algorithm's roles around one update."""

    def __init__(self, algorithm: Algorithm, layout: Layout) -> None:
        self.algorithm, self.layout = algorithm, layout
        self._weights: dict[str, dict[str, Tensor]] = {}

    def before(self) -> None:
        """Remembers the weights, to see how far the update moves them."""
        for name, policy in self.algorithm.policies.items():
            self._weights[name] = {n: p.detach().clone() for n, p in policy.named_parameters()}

    @torch.no_grad()
    def after(self) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for name, policy in self.algorithm.policies.items():
            evidence = self.algorithm.evidence(name)
            modules = self._modules(name, policy) if evidence.decided else {}
            parts = {
                **modules,
                **self._units(policy, evidence),
                **self._inputs(name, policy, evidence),
            }
            parts |= {**self._masks(name, evidence), **self._replay(name, evidence)}
            for key, value in parts.items():
                out[f"{key.split('/')[0]}/{name}/{key.partition('/')[2]}"] = value
        return out

    def _modules(self, name: str, policy: ActingPolicy) -> dict[str, float]:
        """Per module: gradient norm of the last update, weight norm, movement relative to the
        weights."""
        groups: dict[str, list[tuple[Tensor, Tensor, Tensor]]] = {}
        for n, p in policy.named_parameters():
            if not p.requires_grad:  # an average of weights is not trained
                continue
            gradient = p.grad if p.grad is not None else torch.zeros_like(p)
            groups.setdefault(n.rsplit(".", 1)[0], []).append(
                (gradient, p, p - self._weights[name][n])
            )
        out: dict[str, float] = {}
        for module, triples in groups.items():
            gradient, weight, moved = (
                float(sum(t[i].square().sum() for t in triples)) ** 0.5 for i in range(3)
            )
            out |= {
                f"module/{module}/gradient": gradient,
                f"module/{module}/weight": weight,
                f"module/{module}/update_ratio": moved / (weight + 1e-12),
            }
        return out

    def _units(self, policy: ActingPolicy, evidence: Evidence) -> dict[str, float]:
        """Units that say the same for every row, and how many directions the last hidden layer
        uses."""
        out: dict[str, float] = {}
        if _all_alike(evidence):
            return out
        outputs: dict[str, Tensor] = {}
        hooks = [
            m.register_forward_hook(lambda _m, _i, o, n=n: outputs.__setitem__(n, o))
            for n, m in policy.named_modules()
            if isinstance(m, nn.Tanh | nn.ReLU | nn.SiLU)
        ]
        features = policy(*evidence.inputs).features[0]
        for hook in hooks:
            hook.remove()
        for n, o in outputs.items():
            flat = o.reshape(-1, o.shape[-1])
            out[f"units/{n}/dead_share"] = float((flat.std(0) < 1e-4).float().mean())
        values = torch.linalg.svdvals(features.float() - features.float().mean(0))
        share = values / values.sum().clamp(min=1e-12)
        out["units/effective_rank"] = float(torch.exp(-(share * (share + 1e-12).log()).sum()))
        return out

    def _inputs(self, role: str, policy: ActingPolicy, evidence: Evidence) -> dict[str, Any]:
        """Observation entries that never change or leave their scale; how much the policy depends
        on what it is given."""
        names = self.layout.observation_of(role)
        rows = evidence.observation[:, : len(names)]
        low, high = rows.amin(0), rows.amax(0)
        finite = torch.isfinite(rows).all(0)
        out: dict[str, Any] = {
            "observation/constant": _named(names, low == high),
            "observation/not_finite": _named(names, ~finite),
            "observation/largest": float(rows.abs().max()),
        }
        out |= self._normaliser(policy, names, rows)
        if _all_alike(evidence):
            return out
        observation, state, starts, mask, seen = evidence.inputs
        base = policy(*evidence.inputs).distribution
        order = torch.randperm(observation.shape[1], device=observation.device)
        shuffled = {"observation": (observation[:, order], state, starts, mask, seen)}
        # where an episode starts there is no memory yet
        if policy.state_size and not bool(starts.all()):
            shuffled["memory"] = (observation, state[order], starts, mask, seen)
        messages = [i for i, name in enumerate(names) if "message" in name]
        if messages:
            shuffled["messages"] = (
                _shuffled(observation, messages, order),
                state,
                starts,
                mask,
                seen,
            )
        for name, part in seen.items():
            shuffled[f"seen_{name}"] = (
                observation,
                state,
                starts,
                mask,
                {**seen, name: part[:, order]},
            )
        for name, inputs in shuffled.items():
            out[f"sensitivity/{name}"] = self.distance(base, policy(*inputs).distribution)
        return out

    def _normaliser(
        self, policy: ActingPolicy, names: Sequence[str], rows: Tensor
    ) -> dict[str, list[Any]]:
        """Entries so large that they are cut, and what observations are normalised by, entry for
        entry."""
        if policy is None or not policy.normalise_observation:
            return {"observation/out_of_range": _named(names, rows.abs().amax(0) > OUT_OF_RANGE)}
        norm = policy.observation_norm
        mean, std = norm.mean[: len(names)], norm.std[: len(names)]
        return {
            "observation/out_of_range": _named(
                names, ((rows - mean) / std).abs().amax(0) > norm.limit
            ),
            "observation/normaliser_mean": [float(f"{x:.4g}") for x in mean.tolist()],
            "observation/normaliser_std": [float(f"{x:.4g}") for x in std.tolist()],
        }

    def _replay(self, role: str, evidence: Evidence) -> dict[str, float]:
        """What the replay holds, from some of its valid rows, evenly over the ring: how they ended,
        what was done, what is there more than once."""
        replay = evidence.replay
        if replay is None:
            return {}
        stored = min(int(replay.head), replay.length) * replay.rows
        some = (
            torch.arange(min(REPLAYED, stored), device=replay.action.device)
            * stored
            // max(1, min(REPLAYED, stored))
        )
        some = some[replay.valid.flatten()[some]]
        if not len(some):
            return {}
        action, reward, end = (
            t.flatten()[some] for t in (replay.action, replay.reward, replay.end)
        )
        (options,) = self.layout.actions_of(role).choices.values()
        shares = torch.bincount(action.long(), minlength=len(options)) / len(some)
        alike = torch.cat([replay.observation.flatten(0, 1)[some], action.float().unsqueeze(1)], 1)
        return {
            "replay/terminated": float((end == TERMINATED).float().mean()),
            "replay/truncated": float((end == TRUNCATED).float().mean()),
            "replay/rewarded": float((reward > 0).float().mean()),
            "replay/punished": float((reward < 0).float().mean()),
            "replay/duplicates": 1 - len(torch.unique(alike, dim=0)) / len(some),
            **{
                f"replay/action/{option}": float(share)
                for option, share in zip(options, shares.tolist(), strict=True)
            },
        }

    def _masks(self, role: str, evidence: Evidence) -> dict[str, list[str]]:
        """Options that the mask allowed in none of the rows looked at: that they are not tried is
        no fault of the policy."""
        mask, layout = evidence.inputs[3], self.layout.actions_of(role)
        if mask is None:
            return {}
        allowed = mask.reshape(-1, mask.shape[-1]).any(0).tolist()
        never = [
            f"{name}/{option}"
            for (name, options), at in zip(
                layout.choices.items(), layout.choice_mask_at, strict=True
            )
            for k, option in enumerate(options)
            if at >= 0 and not allowed[at + k]
        ]
        return {"mask/never_allowed": never}

    @staticmethod
    def distance(a: Any, b: Any) -> float:
        """Mean absolute change of what the heads say."""
        parts = [
            (a.mean - b.mean).abs().flatten(),
            (torch.sigmoid(a.key_logits) - torch.sigmoid(b.key_logits)).abs().flatten(),
        ]
        parts += [
            (x.exp() - y.exp()).abs().flatten()
            for x, y in zip(a.choice_log_probs, b.choice_log_probs, strict=True)
        ]
        return float(torch.cat(parts).mean())

    def broken_observations(self) -> dict[str, list[str]]:
        """Observation entries of the last rollout that held a NaN or an infinity, by role, as
        diagnostics name them."""
        out = {}
        for name in self.algorithm.policies:
            observation = self.algorithm.evidence(name).suspects["observation"]
            bad = (~torch.isfinite(observation)).flatten(0, -2).any(0).nonzero().flatten().tolist()
            if bad:
                out[f"observation/{name}/not_finite"] = [
                    self.layout.observation[entry] for entry in bad
                ]
        return out

    def overflowed(self) -> str | None:
        """What is finite and yet too large to be normalised: from then on it would be seen as
        nothing at all."""
        for name, policy in self.algorithm.policies.items():
            norms = [getattr(policy, part, None) for part in ("observation_norm", "value_norm")]
            sound = [norm is None or bool(torch.isfinite(norm.var.sum())) for norm in norms]
            if all(sound):
                continue
            suspects = self.algorithm.evidence(name).suspects
            if not all(
                bool(torch.isfinite(suspects[part]).all()) for part in ("observation", "reward")
            ):
                return None  # the cause
            if not sound[0]:
                largest = suspects["observation"].abs().flatten(0, -2).amax(0)
                entry = int(largest.argmax())
                return (
                    f"the observation entry '{self.layout.observation[entry]}' (role {name}) is as "
                    f"large as {largest[entry]:.3g}, too "
                    f"large to be normalised: scale or clip it in the env"
                )
            return (
                f"rewards of the role {name} are as large as "
                f"{float(suspects['reward'].abs().max()):.3g}, and returns too large to be "
                f"normalised: scale them (the setting reward_scale of the algorithm)"
            )
        return None

    def first_not_finite(self) -> str:
        """The first tensor that holds a NaN or an infinity: the earliest in the rollout, and in one
        step in the order of computation."""
        for name, policy in self.algorithm.policies.items():
            found: tuple[int, str, Tensor] | None = None
            for what, tensor in self.algorithm.evidence(name).suspects.items():
                bad = (~torch.isfinite(tensor)).nonzero()
                if len(bad):
                    # what is computed back from the end comes after the whole rollout
                    step = len(tensor) if what in FROM_THE_END else int(bad[0, 0])
                    found = (step, what, bad[0]) if found is None or step < found[0] else found
            if found is not None:
                return self._named_suspect(name, found[1], found[2])
            for n, p in policy.named_parameters():
                if bool((~torch.isfinite(p)).any()):
                    return (
                        f"the weights {n} of the role {name} are not finite: lower the learning "
                        "rate or the gradient limit"
                    )
        return "a loss is not finite: lower the learning rate"

    def _named_suspect(self, role: str, what: str, at: Tensor) -> str:
        """In words. `at`: its first place, [step, row, …]."""
        if what == "observation":
            t, row, entry = (int(i) for i in at)
            env = row // next(s.count * s.teams for s in self.layout.seats if s.role == role)
            return (
                f"the observation entry '{self.layout.observation[entry]}' of env {env} (role "
                f"{role}, step {t} of the rollout) is not finite"
            )
        if what == "reward":
            return f"a reward of the role {role} is not finite"
        return (
            f"{what} of the role {role} is not finite while the observations are: lower the "
            "learning rate, or see what the network computes"
        )


def _named(names: Sequence[str], so: Tensor) -> list[str]:
    return [name for name, yes in zip(names, so.tolist(), strict=True) if yes]


def _shuffled(observation: Tensor, entries: list[int], order: Tensor) -> Tensor:
    """Other rows' values in these entries."""
    out = observation.clone()
    out[..., entries] = observation[:, order][..., entries]
    return out


def _all_alike(evidence: Evidence) -> bool:
    """Every row sees the same, as when short episodes all began at once: then nothing can be told
    from how rows differ."""
    observation, _, _, _, seen = evidence.inputs
    return all(bool((part == part[:, :1]).all()) for part in (observation, *seen.values()))
