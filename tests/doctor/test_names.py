"""Names that other libraries give to their columns, as their sources and logs have them."""

import pytest

from ludus.doctor.finding import verdict
from ludus.doctor.log import read_log
from ludus.doctor.names import is_bookkeeping, ours_for
from ludus.doctor.watch import examine


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("charts/avg_episodic_return", "episode/agent/return"),  # CleanRL with EnvPool
        ("losses/qf1_loss", "learner/agent/value_loss"),  # CleanRL's DDPG, TD3, SAC
        ("learners/default_policy/vf_loss", "learner/agent/value_loss"),
        ("learners/red/vf_loss", "learner/red/value_loss"),
        ("rewards/step", "episode/agent/return"),  # rl_games: by step, not steps
        ("episode_lengths/step", "episode/agent/length"),
        ("Train/mean_episode_length", "episode/agent/length"),  # RSL-RL
        ("Policy/mean_noise_std", "learner/agent/std"),
        ("Environment/Cumulative Reward", "episode/agent/return"),  # ML-Agents
        ("Reward / Total reward (mean)", "episode/agent/return"),  # skrl
        ("Episode / Total timesteps (mean)", "episode/agent/length"),
        ("Train/AverageReturns", "episode/agent/return"),  # Dopamine
        ("AverageEpRet", "episode/agent/return"),  # Spinning Up
        ("AverageVVals", "learner/agent/value_mean"),
        ("train/ent_coef", "learner/agent/temperature"),  # of SB3's SAC: PPO does not log its own
        ("losses/alpha", "learner/agent/temperature"),
        (
            "info/learner/default_policy/learner_stats/entropy_coeff",
            "learner/agent/entropy_coefficient",
        ),
        ("learners/red/curr_entropy_coeff", "learner/red/entropy_coefficient"),
    ],
)
def test_a_name_is_recognised(theirs, ours):
    assert ours_for(theirs) == (ours, 1.0)


def test_what_is_minus_the_entropy_is_negated():
    assert (
        ours_for("train/entropy_loss")
        == ours_for("Loss / Entropy loss")
        == ("learner/agent/entropy", -1.0)
    )


@pytest.mark.parametrize(
    "name", ["MaxEpRet", "rewards/iter", "train/n_updates", "losses/alpha_loss"]
)
def test_what_means_something_else_is_left_alone(name):
    assert ours_for(name) is None


@pytest.mark.parametrize(
    ("name", "kept_for_itself"),
    [
        ("time/iterations", True),
        ("my run - train/n_updates", True),
        ("timers/learn_time_ms", True),
        ("env_runners/num_env_steps_sampled", True),
        ("episodes_this_iter", True),
        ("losses/old_approx_kl", True),
        ("num_wins", False),
        ("time_to_goal", False),
        ("losses/alpha_loss", False),
    ],
)
def test_what_libraries_keep_for_themselves(name, kept_for_itself):
    assert is_bookkeeping(name) == kept_for_itself


def test_all_modules_together_are_no_role():
    assert "__all_modules__" not in ours_for("learners/__all_modules__/total_loss")[0]


@pytest.mark.parametrize(("rows", "few"), [(7, True), (12, False)])
def test_a_log_of_a_few_rows_says_that_it_is_too_short_to_judge(tmp_path, rows, few):
    (tmp_path / "progress.csv").write_text(
        "steps,return\n" + "".join(f"{i},{i}\n" for i in range(rows))
    )
    log = read_log(tmp_path)
    assert log.rows == rows and (verdict(examine(log)) == "too_little_data") == few
