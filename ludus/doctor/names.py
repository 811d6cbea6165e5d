"""What other libraries call things. Foreign columns become ours: steps, seconds, or FAMILY/ROLE/KEY
as in docs/metrics.md."""

from __future__ import annotations

import re

from ludus.doctor.tables import without_unit

AGENT = "agent"
"""The role of a log that knows only one."""

# our short key → our family of names
FAMILY = {
    "return": "episode",
    "return_std": "episode",
    "length": "episode",
    "goal": "goal",
    "entropy": "learner",
    "approx_kl": "learner",
    "clip_fraction": "learner",
    "explained_variance": "learner",
    "value_loss": "learner",
    "policy_loss": "learner",
    "grad_norm": "learner",
    "lr": "learner",
    "value_mean": "learner",
    "std": "learner",
    "advantage_std": "learner",
    "entropy_coefficient": "learner",
    "loss": "learner",
    "q_mean": "learner",
    "q_max": "learner",
    "q_min": "learner",
    "td_error": "learner",
    "epsilon": "learner",
    "temperature": "learner",
}
PLAIN = {
    "steps": "progress/agent_steps",
    "seconds": "progress/seconds",
    "episodes": "progress/episodes",
    "speed": "speed/agent_steps_per_s",
    "memory": "memory/resident_mb",
    "eval_return": "eval/self/agent/return",
    "speed_average": "speed/average",
    "ram_percent": "memory/ram_percent",
}

LEARNERS = ("loss", "value_loss", "policy_loss", "q_mean", "entropy")
"""Of a role: what only updates write."""
OF_VALUES = ("q_mean", "q_max", "q_min", "epsilon", "temperature")
"""Of a role that learns by the values of its actions: it has no entropy and no KL to log."""
OUR_FAMILIES = (
    *FAMILY.values(),
    "progress",
    "speed",
    "memory",
    "action",
    "league",
    "curriculum",
    "strategy",
    "eval",
)

# Stable-Baselines3, CleanRL, RLlib (old and new API stack; POLICY is captured as the role). A minus
# sign: theirs is negated.
KNOWN: list[tuple[str, str]] = [
    # Stable-Baselines3
    (r"time/total_timesteps", "steps"),
    (r"time/total timesteps", "steps"),
    (r"time/time_elapsed", "seconds"),
    (r"time/fps", "speed_average"),
    (r"time/episodes", "episodes"),
    (r"rollout/ep_rew_mean", "return"),
    (r"rollout/ep_len_mean", "length"),
    (r"rollout/success_rate", "goal"),
    (r"rollout/exploration_rate", "epsilon"),
    (r"eval/mean_reward", "eval_return"),
    (r"train/entropy_loss", "-entropy"),
    (r"train/approx_kl", "approx_kl"),
    (r"train/kl_divergence_loss", "approx_kl"),
    (r"train/clip_fraction", "clip_fraction"),
    (r"train/explained_variance", "explained_variance"),
    (r"train/value_loss", "value_loss"),
    (r"train/critic_loss", "value_loss"),
    (r"train/policy_gradient_loss", "policy_loss"),
    (r"train/policy_loss", "policy_loss"),
    (r"train/actor_loss", "policy_loss"),
    (r"train/loss", "loss"),
    (r"train/learning_rate", "lr"),
    (r"train/std", "std"),
    (r"train/ent_coef", "temperature"),
    # CleanRL
    (r"global_step", "steps"),
    (r"charts/episodic_return", "return"),
    (r"charts/episodic_length", "length"),
    (r"charts/learning_rate", "lr"),
    (r"charts/epsilon", "epsilon"),
    (r"losses/value_loss", "value_loss"),
    (r"losses/policy_loss", "policy_loss"),
    (r"losses/entropy", "entropy"),
    (r"losses/approx_kl", "approx_kl"),
    (r"losses/clipfrac", "clip_fraction"),
    (r"losses/explained_variance", "explained_variance"),
    (r"losses/td_loss", "value_loss"),
    (r"losses/qf_loss", "value_loss"),
    (r"losses/loss", "loss"),
    (r"losses/q_values", "q_mean"),
    (r"losses/qf1_values", "q_mean"),
    (r"charts/SPS", "speed_average"),
    (r"losses/actor_loss", "policy_loss"),
    (r"losses/grad_norm", "grad_norm"),
    (r"losses/qf1_loss", "value_loss"),
    (r"losses/alpha", "temperature"),
    # RLlib
    (r"num_env_steps_sampled_lifetime", "steps"),
    (r"timesteps_total", "steps"),
    (r"num_env_steps_sampled", "steps"),
    (r"env_runners/num_env_steps_sampled_lifetime", "steps"),
    (r"time_total_s", "seconds"),
    (r"episodes_total", "episodes"),
    (r"(?:env_runners/|sampler_results/)?episode_(?:return|reward)_mean", "return"),
    (r"(?:env_runners/|sampler_results/)?episode_len_mean", "length"),
    (
        r"(?:env_runners/)?"
        r"(?:policy_reward_mean|agent_episode_returns_mean|module_episode_returns_mean)/"
        r"(?P<role>[^/]+)",
        "return",
    ),
    (r"evaluation/(?:env_runners/|sampler_results/)?episode_(?:return|reward)_mean", "eval_return"),
    (r"perf/ram_util_percent", "ram_percent"),
    # others whose names would mislead the words below: rl_games, RSL-RL, skrl, Tianshou
    (r"rewards/step", "return"),
    (r"episode_lengths/step", "length"),
    (r"losses/a_loss", "policy_loss"),
    (r"losses/c_loss", "value_loss"),
    (r"Loss/value_function", "value_loss"),
    (r"Loss/surrogate", "policy_loss"),
    (r"Loss / Entropy loss", "-entropy"),
    (r"Episode / Total timesteps \(mean\)", "length"),
    (r"train/returns_stat/mean", "return"),
    (r"train/lens_stat/mean", "length"),
] + [
    (
        r"(?:info/learner/(?P<role>[^/]+)/(?:learner_stats/)?|learners/(?P<role2>(?!__)[^/]+)/)"
        rf"{theirs}",
        ours,
    )
    for theirs, ours in (
        ("policy_loss", "policy_loss"),
        ("vf_loss", "value_loss"),
        ("entropy", "entropy"),
        ("(?:mean_)?kl(?:_loss)?", "approx_kl"),
        ("vf_explained_var", "explained_variance"),
        ("cur_lr", "lr"),
        ("default_optimizer_learning_rate", "lr"),
        ("grad_gnorm", "grad_norm"),
        ("gradients_default_optimizer_global_norm", "grad_norm"),
        ("(?:mean_q|qf_mean)", "q_mean"),
        ("(?:max_q|qf_max)", "q_max"),
        ("(?:min_q|qf_min)", "q_min"),
        ("(?:mean_td_error|td_error_mean)", "td_error"),
        ("qf_loss", "value_loss"),
        ("total_loss", "loss"),
        ("(?:curr_)?entropy_coeff", "entropy_coefficient"),
        ("alpha_value", "temperature"),
    )
]

# What libraries write along: counts, clocks, settings; in the last line second estimates of what is
# read already.
BOOKKEEPING = (
    r"config/.+",
    r"perf/.+",
    r"fault_tolerance/.+",
    r"(.*/)?timers/.+",
    r".*_timer",
    r"time/iterations",
    r"train/(n_updates|clip_range(_vf)?)",
    r"pid|done|timestamp|trial_id|training_iteration",
    r"\w+_(this_iter(_s)?|since_restore)",
    r"(.*/)?num_(\w+_)?(steps?|episodes|updates|workers|restarts|parameters)(_\w+)?",
    r"(.*/)?(allreduce_latency|weights_seq_no|module_train_batch_size_mean|last_target_update_ts)",
    r"env_runners/(sample|episode_duration_sec_mean)",
    r"losses/(old_approx_kl|qf2_values|qf2_loss)",
    r"(.*/)?vf_loss_unclipped",
)

# What people call things in logs of their own: the last part of a name, without separators.
COMMON = {
    "steps": (
        "step",
        "steps",
        "totalsteps",
        "timestep",
        "timesteps",
        "totaltimesteps",
        "envsteps",
        "agentsteps",
        "frames",
        "frame",
        "globalstep",
        "totalenvinteracts",
        "numsteps",
        "envstep",
        "actorsteps",
    ),
    "seconds": ("seconds", "timeelapsed", "elapsed", "walltime", "t", "timetotals", "time"),
    "episodes": ("episode", "episodes"),
    "return": (
        "return",
        "returns",
        "reward",
        "rewards",
        "meanreward",
        "meanreturn",
        "rewardmean",
        "returnmean",
        "episodereward",
        "episodereturn",
        "episodicreturn",
        "avgreward",
        "avgreturn",
        "averagereward",
        "eprewmean",
        "epreturn",
        "epret",
        "score",
        "r",
        "episoderewardmean",
        "episodereturnmean",
        "averageepret",
        "totalreward",
        "totreward",
        "cumulativereward",
    ),
    "return_std": ("returnstd", "rewardstd", "stdepret", "stdreward"),
    "length": (
        "length",
        "episodelength",
        "eplen",
        "eplenmean",
        "episodelenmean",
        "episodiclength",
        "l",
        "meanlength",
        "len",
    ),
    "goal": (
        "goal",
        "success",
        "successrate",
        "winrate",
        "catchrate",
        "finishrate",
        "completionrate",
        "issuccess",
        "won",
        "wins",
        "win",
    ),
    "entropy": ("entropy", "policyentropy", "meanentropy"),
    "approx_kl": ("approxkl", "kl", "meankl", "kldivergence"),
    "clip_fraction": ("clipfraction", "clipfrac", "clippedfraction"),
    "explained_variance": ("explainedvariance", "ev", "vfexplainedvar", "explainedvar"),
    "value_loss": (
        "valueloss",
        "vfloss",
        "criticloss",
        "lossv",
        "vloss",
        "tdloss",
        "qloss",
        "lossq",
    ),
    "policy_loss": ("policyloss", "actorloss", "pgloss", "losspi", "piloss"),
    "value_mean": ("vvals", "values", "valuemean"),
    "loss": ("loss", "totalloss"),
    "grad_norm": ("gradnorm", "gradientnorm", "gradgnorm"),
    "lr": ("lr", "learningrate", "lastlr"),
    "q_mean": (
        "q",
        "qmean",
        "meanq",
        "qvalues",
        "qvalue",
        "avgq",
        "qvals",
        "averageqvals",
        "averageq1vals",
        "q1vals",
    ),
    "q_max": ("qmax", "maxq"),
    "q_min": ("qmin", "minq"),
    "epsilon": ("epsilon", "eps", "explorationrate"),
    "std": ("std", "policystd", "actionstd", "noisestd", "standarddeviation"),
    "speed": ("stepspersecond", "agentstepspers", "stepspers", "totalfps", "stepfps"),
    "speed_average": ("fps", "sps"),
    "memory": ("residentmb", "rssmb", "memorymb", "rss"),
    "eval_return": ("evalreturn", "evalreward", "testreturn"),
}
_OF_COMMON = {word: ours for ours, words in COMMON.items() for word in words}
_MEAN = re.compile(r"^(?:avg|average|mean)|(?:avg|average|mean)$")


def ours_for(theirs: str) -> tuple[str, float] | None:
    """Our full name for a foreign column and what it has to be multiplied with: a sign, a unit.
    None if it is not known."""
    name, scale = without_unit(_of_run(theirs))
    if name.startswith("config/"):  # RLlib repeats all settings in every line
        return None
    for pattern, key in KNOWN:
        match = re.fullmatch(pattern, name)
        if match:
            groups = match.groupdict()
            role = groups.get("role") or groups.get("role2") or AGENT
            role = AGENT if role in ("default_policy", "default_agent") else role
            return full_name(key.removeprefix("-"), role), -scale if key.startswith("-") else scale
    word = re.sub(r"[^a-z0-9]", "", name.split("/")[-1].lower())
    known = _OF_COMMON.get(word) or _OF_COMMON.get(_MEAN.sub("", word))
    return (full_name(known, AGENT), scale) if known else None


def is_bookkeeping(theirs: str) -> bool:
    return any(re.fullmatch(pattern, _of_run(theirs)) for pattern in BOOKKEEPING)


def _of_run(theirs: str) -> str:
    """Weights & Biases exports "run - name"."""
    return theirs.split(" - ")[-1].strip()


def full_name(key: str, role: str = AGENT) -> str:
    """return → episode/agent/return; names that are full already stay as they are."""
    if key in PLAIN:
        return PLAIN[key]
    if key in FAMILY:
        return f"{FAMILY[key]}/{role}/{'rate' if key == 'goal' else key}"
    return key


def is_ours(name: str) -> bool:
    return name.partition("/")[0] in OUR_FAMILIES and "/" in name
