"""Names, units and meanings of what a run writes: docs/metrics.md is made from this."""

from __future__ import annotations

# pattern → (unit, meaning). ROLE, TERM, GOAL, PHASE, ENTRY, AGAINST, PARAM and VALUE stand for
# names.
TABLE: dict[str, tuple[str, str]] = {
    "progress/iteration": ("", "rollouts and updates so far"),
    "progress/agent_steps": ("agent-steps", "valid decisions of learning agents so far"),
    "progress/env_steps": ("steps", "steps of all envs so far"),
    "progress/updates": ("", "optimizer steps so far"),
    "progress/seconds": ("s", "wall-clock time of training so far, over all resumes"),
    "progress/episodes": ("", "finished episodes so far"),
    "speed/agent_steps_per_s": (
        "1/s",
        "valid agent-steps per second over a window of recent iterations",
    ),
    "speed/share/PHASE": (
        "share",
        "share of the iteration's time: simulate, reset (foreign envs), wait_env (remote envs), "
        "act (on a GPU together: rollout), learn, evaluate, save, log, doctor, callbacks",
    ),
    "speed/cpu_per_s": (
        "s",
        "CPU time this process got per second, over the same window: little where others use the "
        "machine",
    ),
    "speed/cpu_seconds": (
        "s",
        "CPU time of the iteration's rollout and update, with that of env workers: other programs "
        "do not change it",
    ),
    "speed/compile_seconds": ("s", "compiling and first touch, in the first iteration only"),
    "memory/resident_mb": ("MB", "resident memory of the process"),
    "memory/workers_mb": ("MB", "resident memory of the processes that step foreign envs"),
    "memory/client_mb": ("MB", "memory of remote envs, as they report it"),
    "memory/buffer_mb": ("MB", "rollout buffers"),
    "memory/gpu_allocated_mb": ("MB", "GPU memory in use"),
    "memory/gpu_reserved_mb": ("MB", "GPU memory held"),
    "episode/ROLE/return": ("reward", "mean return of finished episodes; also _std, _min, _max"),
    "episode/ROLE/length": ("steps", "mean length"),
    "episode/ROLE/episodes": ("", "episodes finished in this iteration (agents counted singly)"),
    "episode/ROLE/term/TERM": (
        "raw",
        "mean sum of a reward term over an episode, before its weight",
    ),
    "episode/ROLE/won": ("share", "outcomes: won, lost, drawn, truncated"),
    "goal/ROLE/GOAL": ("", "goal metric of finished training episodes"),
    "game/PARAM": (
        "",
        "game value that changes while the run trains, by a schedule or from stage to stage: what "
        "envs play now, mean over them",
    ),
    "game/PARAM_evaluated": (
        "",
        "what evaluations play instead: where its schedule ends, whatever stages set",
    ),
    "learner/ROLE/policy_loss": (
        "",
        "loss of the policy; PPO: the clipped surrogate. Every algorithm writes what it has",
    ),
    "learner/ROLE/value_loss": (
        "",
        "loss of values, mean over updates: PPO half the squared error of normalised values, "
        "Rainbow the quantile Huber loss of replayed transitions (Huber loss without quantiles)",
    ),
    "learner/ROLE/entropy": ("nats", "entropy of the action distribution, squash included"),
    "learner/ROLE/entropy_share": ("share", "entropy over that of uniformly random actions"),
    "learner/ROLE/approx_kl": (
        "nats",
        "how far the policy moved from the one that acted, mean over updates",
    ),
    "learner/ROLE/clip_fraction": ("share", "rows whose probability ratio left the clip range"),
    "learner/ROLE/explained_variance": (
        "share",
        "1: values predict returns; 0: no better than their mean",
    ),
    "learner/ROLE/grad_norm": ("", "gradient norm before clipping, mean over updates"),
    "learner/ROLE/clipped_updates": ("share", "updates whose gradient was scaled down"),
    "learner/ROLE/advantage_std": ("reward", "deviation of advantages"),
    "learner/ROLE/value_mean": ("reward", "mean value of valid rows"),
    "learner/ROLE/return_mean": ("reward", "mean value target"),
    "learner/ROLE/lr": ("", "learning rate"),
    "learner/ROLE/epochs_run": ("", "passes over the rollout before target_kl stopped them"),
    "learner/ROLE/invalid_share": (
        "share",
        "rows of the rollout that taught no action: reset rows, the dead, the idle, bots",
    ),
    "learner/ROLE/auxiliary_loss": ("", "error of the predicted next observation"),
    "learner/ROLE/next_keys_loss": (
        "nats",
        "cross-entropy of the opponent's predicted keys, mean over keys; 0.69: a guess",
    ),
    "strategy/ROLE/vector_mean": ("", "mean of the strategy vectors of some rows of the rollout"),
    "strategy/ROLE/vector_std": (
        "",
        "their spread over rows, mean over the vector: near 0 every opponent looks alike",
    ),
    "strategy/ROLE/attention_entropy": (
        "share",
        "how evenly the steps of the history count: 1 all alike, 0 one alone",
    ),
    "strategy/ROLE/drift": (
        "share",
        "how far the update moved the vectors of the same windows, over their spread",
    ),
    "learner/ROLE/q_mean": (
        "reward",
        "value of the actions that were replayed; also q_max and q_min of the iteration",
    ),
    "learner/ROLE/q_feasible_low": (
        "reward",
        "lowest possible value by the declared rewards; q_feasible_high: the highest",
    ),
    "learner/ROLE/td_error": ("reward", "mean distance between values and their targets"),
    "learner/ROLE/epsilon": ("share", "actions that are meant to be random"),
    "learner/ROLE/random_action_share": ("share", "actions that were random"),
    "learner/ROLE/noise_scale": ("", "mean size of the noise on the weights; only with noisy"),
    "learner/ROLE/target_distance": (
        "share",
        "how far the target network is from the learning one, relative to its weights",
    ),
    "learner/ROLE/replay_size": ("transitions", "rows in the replay"),
    "learner/ROLE/replay_age": ("steps", "mean age of replayed transitions, in steps of an env"),
    "learner/ROLE/unusable_share": (
        "share",
        "drawn rows that are no transition of the policy: reset rows, the dead, bots",
    ),
    "learner/ROLE/priority_spread": (
        "share",
        "deviation of priorities over their mean; only with prioritised",
    ),
    "learner/ROLE/beta": (
        "",
        "how far the loss makes up for prioritised sampling; only with prioritised",
    ),
    "action/ROLE/ENTRY/mean": ("", "mean of a continuous action entry"),
    "action/ROLE/ENTRY/std": ("", "its deviation"),
    "action/ROLE/ENTRY/saturated": ("share", "rows beyond ±0.99"),
    "action/ROLE/ENTRY/pressed": ("share", "rows in which a key is down"),
    "action/ROLE/ENTRY/OPTION": ("share", "rows in which a choice takes this option"),
    "eval/AGAINST/GOAL": (
        "",
        "goal metric on held-out seeds, sampled actions; also _low, _high (95%) and _greedy",
    ),
    "eval/AGAINST/ROLE/return": (
        "reward",
        "return on held-out seeds; also _low, _high and _greedy",
    ),
    "eval/AGAINST/ROLE/win_rate": (
        "share",
        "episodes won on held-out seeds; a draw is no win; ROLE only where there are several",
    ),
    "eval/AGAINST/ROLE/draw_rate": ("share", "episodes that neither side won"),
    "eval/AGAINST/ROLE/loss_rate": ("share", "episodes lost"),
    "league/pool_size": ("", "snapshots in the pool"),
    "league/open_slots": (
        "",
        "slots whose snapshot may be drawn; the others wait for their last episodes to end",
    ),
    "league/OPPONENT/win_rate": (
        "share",
        "won of the recent training episodes against pool or bot:NAME (ROLE/… in games of roles); "
        "also _low, _high",
    ),
    "league/rating": (
        "",
        "strength on openskill's scale (a newcomer has 25), from matches.jsonl; league/ROLE/rating "
        "in games of roles",
    ),
    "league/pool_rating": ("", "mean rating of the snapshots that were met: they stay as they are"),
    "curriculum/stage": ("", "stage of the curriculum, from 0"),
    "curriculum/stages": ("", "number of stages"),
    "curriculum/stage_agent_steps": ("agent-steps", "agent-steps of the current stage so far"),
    "curriculum/bound": (
        "",
        "bound of the win rate, or of the metric, that decides about the next stage",
    ),
    "curriculum/needed": ("", "what it must reach"),
    "curriculum/completed": ("", "finished episodes that were scored for their task so far"),
    "curriculum/evicted": ("", "tasks replaced by new ones so far"),
    "curriculum/new_tasks": ("", "tasks of the pool that were completed fewer than twice"),
    "curriculum/progress_mean": (
        "score",
        "learning progress of tasks that have a score, mean over the pool; also progress_std",
    ),
    "curriculum/sampling_entropy": (
        "share",
        "of the draw of tasks, over that of a uniform one; as of the last look at the pool",
    ),
    "curriculum/baseline": ("score", "score of random play"),
    "curriculum/played/PARAM/VALUE": (
        "share",
        "envs that play a task with this value now; bounds are told in four parts",
    ),
}


# of diagnostics.jsonl, every `log.diagnostics_every` iterations; OF stands for a name
DIAGNOSTICS: dict[str, tuple[str, str]] = {
    "progress/agent_steps": ("agent-steps", "as in metrics.jsonl"),
    "module/ROLE/OF/gradient": ("", "gradient norm of a module in the last update"),
    "module/ROLE/OF/weight": ("", "norm of its weights"),
    "module/ROLE/OF/update_ratio": (
        "share",
        "how far the update moved them, relative to that norm",
    ),
    "units/ROLE/OF/dead_share": ("share", "units of an activation that say the same for every row"),
    "units/ROLE/effective_rank": ("", "directions that the last hidden layer uses"),
    "observation/ROLE/constant": ("names", "entries that never changed in the rollout"),
    "observation/ROLE/not_finite": ("names", "entries that held a NaN or an infinity"),
    "observation/ROLE/out_of_range": (
        "names",
        "entries beyond 10 deviations, where they are cut; not normalised: beyond 10",
    ),
    "observation/ROLE/largest": ("raw", "largest entry"),
    "observation/ROLE/normaliser_mean": (
        "raw",
        "what is taken off, entry by entry; normaliser_std: what it is divided by",
    ),
    "mask/ROLE/never_allowed": (
        "names",
        "options that the mask allowed in none of the rows looked at",
    ),
    "sensitivity/ROLE/OF": (
        "",
        "change of the output with another row's observation, memory, messages, seen_NAME",
    ),
    "replay/ROLE/OF": (
        "share",
        "rows of the replay that were terminated, truncated, rewarded, punished, duplicates (same "
        "observation and action)",
    ),
    "replay/ROLE/action/OPTION": ("share", "rows of the replay in which this was done"),
}


def table_markdown() -> str:
    """The page docs/metrics.md."""
    lines = [
        "# Metrics",
        "",
        "What `metrics.jsonl` holds: one line per iteration, evaluations in the line of the "
        "iteration they follow.",
        "This page is made from the table in `ludus/training/metrics.py`.",
        "",
        "| name | unit | meaning |",
        "| --- | --- | --- |",
    ]
    lines += [f"| `{name}` | {unit} | {meaning} |" for name, (unit, meaning) in TABLE.items()]
    lines += [
        "",
        "What `diagnostics.jsonl` holds, every `log.diagnostics_every` iterations: slower evidence "
        "for the doctor. How often each",
        "action is taken is in `metrics.jsonl`.",
        "",
        "| name | unit | meaning |",
        "| --- | --- | --- |",
    ]
    lines += [f"| `{name}` | {unit} | {meaning} |" for name, (unit, meaning) in DIAGNOSTICS.items()]
    return "\n".join(lines) + "\n"
