"""What cannot work is refused before the first step, with the value, the limit and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter

from ludus.config.curriculum import TasksConfig
from ludus.config.experiment import Config
from ludus.config.policy import STRATEGY_SIZES
from ludus.config.ppo import PPOConfig
from ludus.config.rainbow import check_rainbow
from ludus.config.running import ON_CRITICAL
from ludus.config.schedules import parse
from ludus.config.values import flatten, set_role_value
from ludus.errors import LudusError, nearest
from ludus.who import POOL, read_mix

LEAST: dict[str, float] = {
    "envs": 1,
    "seed": 0,
    "eval.episodes": 1,
    "eval.seed": 0,
    "checkpoint.keep": 1,
    "log.episodes": 0,
    "log.diagnostics_every": 0,
    "log.replay_every": 0,
    "log.replays": 0,
    "policy.memory_size": 1,
    "train.threads": 1,
    "curriculum.tasks.pool": 2,
    "curriculum.tasks.evict_after": 1,
    "league.pool_size": 3,
    "league.slots": 1,
    "league.renew_every": 1,
    "league.snapshot_every": 0,
    "train.total_agent_steps": 1,
    "eval.every_agent_steps": 1,
    "checkpoint.every_agent_steps": 1,
}
LEAST_OF_LEARN: dict[str, float] = {
    "rollout": 1,
    "epochs": 1,
    "minibatches": 1,
    "accumulate": 1,
    "burn_in": 0,
    "max_grad_norm": 0,
    "value_clip": 0,
    "adam_epsilon": 0,
    "bptt": 1,
    "value_weight": 0,
    "auxiliary": 0,
    "next_keys": 0,
}
ABOVE_ZERO = ("train.total_seconds", "eval.every_seconds", "checkpoint.every_seconds")
LIMITS_OF_LEARN: dict[str, tuple[float, float]] = {
    "gamma": (0, 1),
    "clip": (1e-9, 10),
    "learning_rate": (0, 1),
    "entropy": (0, 100),
    "value_learning_rate": (0, 1),
}
CHOICES: dict[str, tuple[str | None, ...]] = {
    "device": ("cpu", "cuda"),
    "algorithm": ("ppo", "rainbow"),
    "policy.activation": ("tanh", "relu", "silu"),
    "policy.memory": ("none", "lstm"),
    "curriculum.tasks.sampler": ("learning_progress", "uniform"),
    "doctor.on_critical": ON_CRITICAL,
    "train.dtype": ("float32", "bfloat16", None),
}


def check(config: Config, role_rows: Mapping[str, int]) -> None:
    """Refuses what cannot work before anything is written. `role_rows`: agents of each role over
    all envs."""
    _check_each(config)
    if config.algorithm == "rainbow":
        check_rainbow(config.rainbow, config.train.total_agent_steps, config.policy.memory)
    else:
        _check_ppo(config, role_rows)
    _check_strategy(config)
    _check_opponents(config)
    _check_tasks(config)
    budget = config.train.total_agent_steps
    if budget is None and config.train.total_seconds is None:
        raise LudusError("no budget is given: set train.total_agent_steps or train.total_seconds")
    section = "rainbow" if config.algorithm == "rainbow" else "learn"
    rollout = getattr(config, section).rollout * sum(role_rows.values())
    if budget is not None and rollout > budget:
        raise LudusError(
            f"one rollout is {rollout:,} agent-steps but the whole budget is {budget:,}: there "
            "would be no update; "
            f"lower {section}.rollout or envs, or raise train.total_agent_steps"
        )


def _check_ppo(config: Config, role_rows: Mapping[str, int]) -> None:
    learn = config.learn
    for role in learn.roles:
        if role not in role_rows:
            raise LudusError(
                f"learn.roles.{role}: the game has no role '{role}': {nearest(role, role_rows)}"
            )
        for key in learn.roles[role]:
            set_role_value(config, role, key, learn.roles[role][key])
    bptt = learn.bptt or 1
    if learn.rollout % bptt:
        raise LudusError(
            f"a rollout of {learn.rollout} steps does not divide into chunks of {bptt}: make it a "
            "multiple of learn.bptt"
        )
    if bptt > 1 and config.policy.memory == "none":
        raise LudusError(
            f"learn.bptt={bptt} without memory: set policy.memory or leave learn.bptt at 1"
        )
    if learn.burn_in >= bptt > 1 or (learn.burn_in and bptt == 1):
        raise LudusError(
            f"learn.burn_in={learn.burn_in} leaves nothing of chunks of {bptt} steps: use less "
            "than learn.bptt"
        )
    if config.policy.memory == "none" and any(learn.for_role(role).auxiliary for role in role_rows):
        raise LudusError(
            "learn.auxiliary predicts from memory, but policy.memory is none: set policy.memory or "
            "learn.auxiliary=0"
        )
    if config.policy.strategy.size == "none" and any(
        learn.for_role(role).next_keys for role in role_rows
    ):
        raise LudusError(
            "learn.next_keys predicts from the strategy vector, but there is none: set "
            "policy.strategy.size or learn.next_keys=0"
        )
    if not config.policy.separate_value and any(
        learn.for_role(role).value_learning_rate is not None for role in role_rows
    ):
        raise LudusError(
            "learn.value_learning_rate is that of a separate value network: set "
            "policy.separate_value or leave it out"
        )
    _check_minibatches(learn, bptt, role_rows)


def _check_minibatches(learn: PPOConfig, bptt: int, role_rows: Mapping[str, int]) -> None:
    for role, rows in role_rows.items():
        mine = learn.for_role(role)
        chunks = learn.rollout // bptt * rows
        if chunks % mine.minibatches:
            fits = [n for n in range(1, chunks + 1) if chunks % n == 0]
            below = max(n for n in fits if n < mine.minibatches)
            above = min((n for n in fits if n > mine.minibatches), default=below)
            what = f"{chunks} chunks of {bptt} steps" if bptt > 1 else f"a batch of {chunks} rows"
            choice = f"{below} or {above}" if above != below else f"{below}"
            raise LudusError(
                f"role {role}: {what} does not divide into {mine.minibatches} minibatches: use "
                f"{choice}"
            )


def _check_strategy(config: Config) -> None:
    s = config.policy.strategy.filled()
    if s.size not in ("none", *STRATEGY_SIZES):
        raise LudusError(
            f"policy.strategy.size={s.size}: {nearest(s.size, ['none', *STRATEGY_SIZES])}"
        )
    if s.size == "none":
        return
    if config.algorithm != "ppo":
        raise LudusError(
            f"policy.strategy.size={s.size} is learned by ppo, not by {config.algorithm}: set it "
            "to none"
        )
    for name in ("history", *STRATEGY_SIZES["small"]):
        if getattr(s, name) < 1:
            raise LudusError(
                f"policy.strategy.{name}={getattr(s, name)} cannot work: use 1 or more"
            )
    if s.width is not None and s.heads is not None and (s.width % s.heads or s.width % 2):
        raise LudusError(
            f"policy.strategy.width={s.width} must be even and divide among {s.heads} heads: use a "
            f"multiple of {2 * s.heads}"
        )
    if not 0 <= s.dropout < 1:
        raise LudusError(f"policy.strategy.dropout={s.dropout} is outside 0 to 1")
    if s.dropout and config.learn.recompute_activations:
        raise LudusError(
            "learn.recompute_activations would leave other units out than policy.strategy.dropout "
            "did: use one"
        )


def _check_tasks(config: Config) -> None:
    t = config.curriculum.tasks
    if not t.vary and t != TasksConfig():
        raise LudusError(
            "curriculum.tasks has settings but no tasks: say what varies with "
            "curriculum.tasks.vary.PARAMETER"
        )
    if not 0 < t.slow_rate < t.fast_rate <= 1:
        raise LudusError(
            f"curriculum.tasks: the slow rate {t.slow_rate:g} and the fast rate {t.fast_rate:g} "
            "must rise, between 0 and 1"
        )
    if not 0 <= t.evict_share < 1:
        raise LudusError(f"curriculum.tasks.evict_share={t.evict_share:g} is outside 0 to 1")


def _check_opponents(config: Config) -> None:
    mixes = [stage.mix for stage in config.curriculum.stages] or [config.league.mix]
    if config.curriculum.stages and config.league.mix:
        raise LudusError(
            "league.mix and curriculum.stages are both set: a stage brings its own mix; leave "
            "league.mix empty"
        )
    if config.league.opponents and not any(POOL in read_mix(mix) for mix in mixes):
        raise LudusError(
            "league.opponents are put in the pool, but nobody plays it: add pool to the mix"
        )
    if any(POOL in read_mix(mix) for mix in mixes) and config.envs < config.league.slots:
        raise LudusError(
            f"{config.envs} envs are fewer than the {config.league.slots} slots, and each needs "
            "one: use fewer slots"
        )
    if config.eval.seed == config.seed:
        raise LudusError(
            f"eval.seed={config.eval.seed} is the seed that is trained on: use another"
        )


def _check_each(config: Config) -> None:
    """Each value by itself."""
    _check_smallest(config)
    for name, known in CHOICES.items():
        value = attrgetter(name)(config)
        if value not in known:
            raise LudusError(f"{name}={value}: {nearest(str(value), [k for k in known if k])}")
    _check_limits(config.learn, "learn")
    for role in config.learn.roles:
        _check_limits(config.learn.for_role(role), f"learn.roles.{role}")


def _check_smallest(config: Config) -> None:
    values = flatten(config)
    least, above_zero = dict(LEAST), list(ABOVE_ZERO)
    for section in ("learn", *(f"learn.roles.{role}" for role in config.learn.roles)):
        least |= {f"{section}.{key}": value for key, value in LEAST_OF_LEARN.items()}
        above_zero += [f"{section}.target_kl", f"{section}.reward_scale"]
    for name, low in least.items():
        value = values.get(name)
        if value is not None and value < low:
            raise LudusError(f"{name}={value} cannot work: use {low:g} or more")
    for name in above_zero:
        value = values.get(name)
        if value is not None and value <= 0:
            raise LudusError(f"{name}={value} cannot work: use more than 0")
    hidden = config.policy.hidden
    if any(size < 1 for size in hidden):
        raise LudusError(
            f"policy.hidden={list(hidden)} has a layer of {min(hidden)} units: use 1 or more"
        )


def _check_limits(learn: PPOConfig, where: str) -> None:
    for key, (lowest, highest) in LIMITS_OF_LEARN.items():
        scalar = getattr(learn, key)
        if scalar is None:
            continue
        for value in parse(scalar, f"{where}.{key}").values:
            if not lowest <= value <= highest:
                raise LudusError(f"{where}.{key}={scalar} is outside {lowest:g} to {highest:g}")
    if not 0 <= learn.gae_lambda <= 1:
        raise LudusError(f"{where}.gae_lambda={learn.gae_lambda} is outside 0 to 1")
