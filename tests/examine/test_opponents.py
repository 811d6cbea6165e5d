"""The selftest's checks on opponents, and others that a second round of planted faults asked for:
each names the part."""

import pytest

from ludus.examine.selftest import core
from ludus.league.matchmaking import SAMPLERS
from tests.examine.faults import Fault, plant

LEAGUE, PLAYER, EVALUATE = (
    "ludus.league.league:League.",
    "ludus.play.player:Player.",
    "ludus.play.evaluate:",
)

# fault, the check that must see it, the part it must name
FAULTS = {
    "snapshot without its normaliser": (
        Fault(
            LEAGUE + "fill",
            "tensor.copy_(weights[name])",
            "tensor.copy_(weights[name]) if 'norm' not in name else None",
        ),
        "snapshots_are_copies_that_stay_as_they_were",
        "league",
    ),
    "the opponent is the learner itself": (
        Fault(
            LEAGUE + "_player",
            "copy.deepcopy(self.policies[role]).requires_grad_(False)",
            "self.policies[role]",
        ),
        "snapshots_are_copies_that_stay_as_they_were",
        "league",
    ),
    "every snapshot plays everywhere": (
        Fault(
            LEAGUE + "block",
            "slice(slot * self.block_size, (slot + 1) * self.block_size)",
            "slice(0, self.batch.num_envs)",
        ),
        "each_env_meets_one_snapshot",
        "league",
    ),
    "the pool is met only as often inside its envs as it should be over all": (
        Fault(LEAGUE + "set_mix", "pool_share(mix) / in_blocks", "pool_share(mix)"),
        "the_pool_is_met_as_often_as_the_mix_says",
        "league",
    ),
    "no snapshot is taken": (
        Fault(LEAGUE + "after_iteration", ">= every", "< 0"),
        "snapshots_come_in_time_and_slots_change_between_episodes",
        "league",
    ),
    "slots never close": (
        Fault(LEAGUE + "renew", "if self.slots[k].open:", "if not self.slots[k].open:"),
        "snapshots_come_in_time_and_slots_change_between_episodes",
        "league",
    ),
    "opponents change within an episode": (
        Fault(LEAGUE + "renew", "if not in_use[self.block(k)].any():", "if True:"),
        "snapshots_come_in_time_and_slots_change_between_episodes",
        "league",
    ),
    "spreads are not limited": (
        Fault(
            "ludus.networks.heads:Distribution.__init__",
            "log_std.clamp(*LOG_STD_LIMITS) if log_std",
            "log_std if log_std",
        ),
        "a_policy_starts_as_configured",
        "initial policy",
    ),
    "win rates of another role": (
        Fault(LEAGUE + "choose", 'f"{role} {self.name(step)}"', 'f"right {self.name(step)}"'),
        "opponents_are_drawn_as_asked",
        "matchmaking",
    ),
    "the opponent's memory is lost": (
        Fault(PLAYER + "_act_for", "self.state[rows] = output.state", "pass"),
        "opponents_remember_their_own_episode",
        "opponents",
    ),
    "the opponent's memory is never reset": (
        Fault(
            PLAYER + "_act_for",
            "self.state[rows], starts[:, rows]",
            "self.state[rows], torch.zeros_like(starts[:, rows])",
        ),
        "opponents_remember_their_own_episode",
        "opponents",
    ),
    "a bot's rows are replayed": (
        Fault(
            "ludus.algorithms.rainbow.rainbow:Role.record_step",
            'valid = self.flat("valid") & learns',
            'valid = self.flat("valid")',
        ),
        "what_bots_do_is_not_replayed",
        "valid rows",
    ),
    "weights do not decay": (
        Fault(
            "ludus.algorithms.rainbow.rainbow:Role.__init__",
            "weight_decay=c.weight_decay",
            "weight_decay=0.0",
        ),
        "every_weight_is_moved_by_adamw",
        "optimizer",
    ),
    "the target network has no noise": (
        Fault(
            "ludus.algorithms.rainbow.rainbow:Rainbow.update", "role.target.draw_noise()", "pass"
        ),
        "noise_explores_and_is_silent_in_play",
        "noisy weights",
    ),
    "new transitions keep the first priority": (
        Fault(
            "ludus.algorithms.replay_buffer:Replay.set_priority",
            "self.highest.copy_(",
            "self.highest.clone().copy_(",
        ),
        "transitions_come_up_by_their_priority",
        "prioritised replay",
    ),
    "evaluated against itself": (
        Fault(EVALUATE + "seat", "(rivals if controller == FROZEN else policies)", "policies"),
        "evaluation_is_against_the_rivals",
        "evaluation",
    ),
    "rivals count too": (
        Fault(EVALUATE + "_mean", "(values * shown).sum(1) / shown.sum(1)", "values.mean(1)"),
        "evaluation_is_against_the_rivals",
        "evaluation",
    ),
    "evaluated in training mode": (
        Fault(EVALUATE + "measure", "policy.eval()", "policy.train()"),
        "evaluation_is_against_the_rivals",
        "evaluation",
    ),
    "evaluated where it trained": (
        Fault("ludus.training.evaluation:make_evaluation_batch", "held_out=True", "held_out=False"),
        "evaluation_plays_what_is_held_out",
        "evaluation",
    ),
    "the last token is not read": (
        Fault("ludus.networks.encoders:TokenTable.forward", ".any(0).sum())", ".any(0).sum()) - 1"),
        "tokens_add_up",
        "tokens",
    ),
    "histories are not normalised": (
        Fault(
            "ludus.networks.policy:Policy.normalised",
            "self.observation_norm(history[..., :-1], self.history_entries)",
            "history[..., :-1]",
        ),
        "histories_hold_the_same_episode_only",
        "history",
    ),
    "divergences of minibatches are summed": (
        Fault("ludus.algorithms.ppo.ppo:PPO.one_pass", "/ c.minibatches", ""),
        "the_divergence_of_a_pass_is_a_mean",
        "target_kl",
    ),
    "the entropy's weight is that of the start": (
        Fault(
            "ludus.algorithms.ppo.role:PPORole.set_schedules",
            "parse(c.entropy)(progress)",
            "parse(c.entropy)(0.0)",
        ),
        "schedules_are_followed",
        "schedules",
    ),
    "the forget bias is on another gate": (
        Fault(
            "ludus.networks.memory:LSTM.__init__",
            "self.bias[size : 2 * size] = 1.0",
            "self.bias[:size] = 1.0",
        ),
        "a_policy_starts_as_configured",
        "initial policy",
    ),
}


def test_the_shipped_code_passes():
    """Those of formulas.py are tried in test_selftest.py."""
    assert [
        (r.name, r.finding.evidence) for r in core.run(core.all_checks(["opponents"])) if not r.ok
    ] == []


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found_and_its_part_named(name, monkeypatch):
    fault, check, part = FAULTS[name]
    plant(monkeypatch, fault)
    (result,) = core.run(core.chosen([check]))
    assert not result.ok and result.part == part and result.finding.evidence


def test_a_sampler_that_avoids_hard_opponents_is_found(monkeypatch):
    monkeypatch.setitem(SAMPLERS, "hard", lambda win_rates: win_rates**2 + 1e-3)
    (result,) = core.run(core.chosen(["opponents_are_drawn_as_asked"]))
    assert not result.ok and result.part == "matchmaking"
