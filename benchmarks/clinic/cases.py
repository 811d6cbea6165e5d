"""The failures: what is sick, what its healthy twin is, and which findings would name it."""

from __future__ import annotations

from dataclasses import dataclass

CART, PURSUIT, ENVS = "gym:CartPole-v1", "pursuit", "gym:benchmarks.clinic.envs:"


@dataclass(frozen=True, kw_only=True)
class Case:
    """`by`: run (train, then `doctor run`), check (`doctor check`), start (a refusal before the
    first step), compare (`games diff`) or selftest (a fault in the learning code)."""

    seed: str
    family: str
    tells: str
    by: str = "run"
    sick: tuple[str, ...]
    healthy: tuple[str, ...] = ()
    expected: tuple[str, ...]
    """Findings of which one, at least as a warning, names the failure."""


def steps(count: int) -> tuple[str, ...]:
    return ("--train.total-agent-steps", str(count))


def cart(count: int, *options: str, env: str = "gym:CartPole-v1") -> tuple[str, ...]:
    """Eight envs: a row of the log every 512 steps."""
    return (env, "--envs", "8", *steps(count), *options)


def slow(env: str) -> tuple[str, ...]:
    """Hardly any evaluation: its episodes would pass through the same slow env, and count for what
    grows."""
    return cart(14_000, "--eval.episodes", "2", env=env)


def pursuit(count: int, *options: str) -> tuple[str, ...]:
    return (PURSUIT, "--envs", "32", *steps(count), *options)


CASES: dict[str, Case] = {
    # -- 000: hide-and-seek ------------------------------------------------------------------------
    "watching_pays": Case(
        seed="000",
        family="reward",
        by="check",
        tells="watching a hider for an episode earns more than catching it",
        sick=("hide_and_seek:watching_pays", "--paper"),
        healthy=("hide_and_seek", "--paper"),
        expected=("shaping_outweighs_the_goal",),
    ),
    "entropy_outweighs": Case(
        seed="000",
        family="entropy",
        tells="one entropy coefficient for everyone, and too large: actions stay random",
        sick=cart(14_000, "--ppo.entropy", "3"),
        healthy=cart(14_000),
        expected=("entropy_stuck", "entropy_rising"),
    ),
    "episodes_of_1800_steps": Case(
        seed="000",
        family="environment",
        by="check",
        tells="episodes seven times as long as the goal takes",
        sick=("hide_and_seek", "--game.max-steps", "1800"),
        healthy=("hide_and_seek", "--game.max-steps", "240"),
        expected=("episodes_too_long",),
    ),
    "leak_slows_down": Case(
        seed="000",
        family="throughput",
        tells="a list that grows and is searched: slower and slower",
        sick=slow(ENVS + "SearchedHistory-v0"),
        healthy=cart(14_000),
        expected=("slowing_down",),
    ),
    "unbounded_history": Case(
        seed="000",
        family="throughput",
        tells="everything is kept for ever: memory grows",
        sick=cart(14_000, env=ENVS + "UnboundedHistory-v0"),
        healthy=cart(14_000),
        expected=("memory_grows",),
    ),
    "terrain_rebuilt": Case(
        seed="000",
        family="throughput",
        tells="every reset builds the same world anew",
        sick=slow(ENVS + "RebuiltTerrain-v0"),
        healthy=slow(ENVS + "KeptTerrain-v0"),
        expected=("resets_dominate",),
    ),
    # -- 001: the arena ----------------------------------------------------------------------------
    "silent_default_change": Case(
        seed="001",
        family="compare",
        by="compare",
        tells="a rewrite changed the game's defaults without anyone noticing",
        sick=("arena:easy_shaped", "arena:default_after_rewrite"),
        healthy=("arena:easy_shaped", "arena:easy_shaped"),
        expected=("difference",),
    ),
    "rewards_lost": Case(
        seed="001",
        family="environment",
        tells="shaped rewards were overwritten on the way into the simulator: nothing is paid",
        sick=pursuit(
            120_000,
            "--game.reward.catch",
            "0",
            "--game.reward.caught",
            "0",
            "--game.reward.near",
            "0",
        ),
        healthy=pursuit(120_000),
        expected=("reward_never_met",),
    ),
    "cut_before_reward": Case(
        seed="001",
        family="environment",
        tells="episodes are cut off before any reward can be earned",
        sick=cart(14_000, env=ENVS + "CutTooEarly-v0"),
        healthy=cart(14_000, env=ENVS + "CutInTime-v0"),
        expected=("reward_never_met",),
    ),
    "python_every_step": Case(
        seed="001",
        family="throughput",
        tells="a slow path in every step, growing",
        sick=slow(ENVS + "PythonEveryStep-v0"),
        healthy=cart(14_000),
        expected=("slowing_down",),
    ),
    "pool_scanned": Case(
        seed="001",
        family="throughput",
        tells="a curriculum whose cost grows with its pool of tasks",
        sick=slow(ENVS + "PoolScanned-v0"),
        healthy=slow(ENVS + "PoolBounded-v0"),
        expected=("slowing_down", "resets_dominate"),
    ),
    "checkpoint_units": Case(
        seed="001",
        family="throughput",
        by="check",
        tells="an interval in steps where seconds were meant: a checkpoint every iteration",
        sick=(CART, "--checkpoint.every-agent-steps", "1"),
        healthy=(CART, "--checkpoint.every-agent-steps", "50000"),
        expected=("checkpoint_rate",),
    ),
    # -- 002: brawl --------------------------------------------------------------------------------
    "sparse_reward": Case(
        seed="002",
        family="exploration",
        tells="a goal that random play never meets",
        sick=cart(30_000, env=ENVS + "Sparse-v0"),
        healthy=cart(20_000, env=ENVS + "NotSparse-v0"),
        expected=("reward_never_met",),
    ),
    "safe_camping": Case(
        seed="002",
        family="reward hacking",
        tells="being near pays more than catching: catches cease, the return does not",
        sick=pursuit(300_000, "--game.reward.near", "1", "--game.reward.catch", "0.1"),
        healthy=pursuit(300_000),
        expected=("return_without_goal",),
    ),
    "forgets": Case(
        seed="002",
        family="self-play",
        tells="late in training what beat the bots is unlearned",
        sick=pursuit(120_000, "--ppo.learning-rate", "0:1e-3, 0.6:1e-3, 0.65:0.3, 1:0.3"),
        healthy=pursuit(120_000),
        expected=("forgetting", "updates_too_large"),
    ),
    "unstable": Case(
        seed="002",
        family="updates",
        tells="learning rate, clip and passes too large for the batch",
        sick=cart(14_000, "--ppo.learning-rate", "0.03", "--ppo.clip", "2.0", "--ppo.epochs", "20"),
        healthy=cart(14_000),
        expected=("updates_too_large", "return_swings", "return_falls", "entropy_collapsed"),
    ),
    "clip_under_the_win": Case(
        seed="002",
        family="reward",
        by="check",
        tells="rewards are clipped to 1 while winning pays 100",
        sick=("--rewards", "benchmarks/clinic/clipped_win.toml"),
        healthy=("--rewards", "benchmarks/clinic/scaled_win.toml"),
        expected=("clip_cuts_the_goal",),
    ),
    "memory_too_small": Case(
        seed="000",
        family="budget",
        by="check",
        tells="buffers larger than the memory there is",
        sick=(CART, "--algorithm", "rainbow", "--rainbow.replay", "3000000000"),
        healthy=(CART, "--algorithm", "rainbow", "--rainbow.replay", "100000"),
        expected=("memory_short", "refused"),
    ),
    "zero_updates": Case(
        seed="002",
        family="budget",
        by="start",
        tells="a rollout longer than the whole budget",
        sick=pursuit(2_000, "--ppo.rollout", "64"),
        healthy=pursuit(20_000, "--ppo.rollout", "64"),
        expected=("no update",),
    ),
    # -- 003: racing -------------------------------------------------------------------------------
    "value_collapse": Case(
        seed="003",
        family="value",
        tells="high learning rate, targets that move with every update: values diverge",
        sick=(
            CART,
            "--algorithm",
            "rainbow",
            *steps(12_000),
            "--rainbow.learning-rate",
            "0.02",
            "--rainbow.target-every",
            "1",
            "--rainbow.double",
            "False",
            "--rainbow.gamma",
            "1.0",
            "--rainbow.max-grad-norm",
            "0",
            "--rainbow.n-step",
            "1",
        ),
        healthy=(CART, "--algorithm", "rainbow", *steps(24_000)),
        expected=("value_impossible", "value_loss_grows"),
    ),
    "epsilon_by_episodes": Case(
        seed="003",
        family="exploration",
        tells="exploration counted in episodes, which are short: over before anything is found",
        sick=(
            CART,
            "--algorithm",
            "rainbow",
            *steps(24_000),
            "--rainbow.epsilon-unit",
            "episodes",
            "--rainbow.epsilon-over",
            "2",
            "--rainbow.epsilon-to",
            "0.0",
            "--rainbow.warm-up",
            "200",
            "--rainbow.learning-rate",
            "1e-5",
        ),
        healthy=(CART, "--algorithm", "rainbow", *steps(24_000)),
        expected=("exploration_spent",),
    ),
    "epsilon_budget": Case(
        seed="003",
        family="exploration",
        by="check",
        tells="the same, seen before the first step",
        sick=(CART, "--algorithm", "rainbow", "--rainbow.epsilon-over", "2000"),
        healthy=(CART, "--algorithm", "rainbow"),
        expected=("exploration_budget",),
    ),
    # -- 004: mechs --------------------------------------------------------------------------------
    "unnormalised_values": Case(
        seed="004",
        family="value",
        tells="rewards in the tens of thousands and nothing normalised: the value loss drowns the "
        "rest",
        sick=cart(
            14_000,
            "--ppo.normalise-values",
            "False",
            "--policy.separate-value",
            "False",
            env=ENVS + "LargeRewards-v0",
        ),
        healthy=cart(14_000, env=ENVS + "LargeRewards-v0"),
        expected=(
            "values_explain_nothing",
            "value_impossible",
            "value_loss_grows",
            "return_flat",
            "gradient_explodes",
        ),
    ),
    "hidden_state_carried": Case(
        seed="004",
        family="learning code",
        by="selftest",
        tells="the memory of one episode is carried into the next",
        sick=("hidden state never reset",),
        expected=("memory",),
    ),
    "squash_bias": Case(
        seed="004",
        family="learning code",
        by="selftest",
        tells="log-probabilities without the slope of the squash",
        sick=("log-probability without squash correction",),
        expected=("log-probabilities",),
    ),
    "dead_agents_in_the_loss": Case(
        seed="004",
        family="learning code",
        by="selftest",
        tells="rows of the dead are learned from",
        sick=("dead agents in the loss",),
        expected=("valid rows",),
    ),
}

NOT_RUN = {
    "shared memory too small (000)": "needs a container with a small /dev/shm; memory_too_small "
    "stands in for it",
    "duplicate transfers (004)": "needs a GPU; inside Ludus rollouts never leave the device",
    "one opponent for the whole vector (004)": "Ludus draws opponents per env, so there is no "
    "setting that makes it sick",
    "strategy vector unused (002)": "takes longer to show than the clinic's minute on a CPU",
}
"""Failures of the seeds without a pair, and why."""
