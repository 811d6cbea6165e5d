"""The whole configuration as dataclasses. A field's docstring is its help text; None means: derived, see `resolve`.

An experiment (a recipe) is a function that returns a Config. Any `Scalar` may be a schedule (`ludus.curriculum.schedules`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ludus.curriculum.schedules import Scalar, parse
from ludus.errors import LudusError, nearest
from ludus.learn.rainbow_config import RainbowConfig, check_rainbow


@dataclass(kw_only=True)
class StrategyConfig:
    """A transformer over what was seen of the opponent, whose output joins the observation in the first hidden layer."""

    size: str = "none"
    """none, small (for CPUs) or full (for a GPU): what is not given below comes from it."""
    entries: str = "opponent_"
    """The observation entries that make up the history, by the beginning of their name."""
    history: int = 65
    """Steps that it looks back to, the newest included."""
    stride: int | None = None
    """Every so many of them is looked at, counted from the newest (default: small 5, full 1)."""
    layers: int | None = None
    """Attention layers (default: small 2, full 6)."""
    heads: int | None = None
    """Attention heads of a layer (default: small 4, full 8)."""
    width: int | None = None
    """Units of a layer (default: small 64, full 256)."""
    vector: int | None = None
    """Size of the strategy vector (default: small 64, full 256)."""
    dropout: float = 0.0
    """Share of units left out while learning. The policy that acted had none, so ratios of probabilities get noisier."""

    def filled(self) -> StrategyConfig:
        """With what its size says where nothing was given."""
        missing: dict[str, Any] = {n: v for n, v in STRATEGY_SIZES.get(self.size, {}).items() if getattr(self, n) is None}
        return dataclasses.replace(self, **missing)


STRATEGY_SIZES: dict[str, dict[str, int]] = {
    "small": {"stride": 5, "layers": 2, "heads": 4, "width": 64, "vector": 64},
    "full": {"stride": 1, "layers": 6, "heads": 8, "width": 256, "vector": 256},
}


@dataclass(kw_only=True)
class PolicyConfig:
    """The network of each role."""

    hidden: tuple[int, ...] = (128, 128)
    """Sizes of the hidden layers."""
    activation: str = "tanh"
    """tanh, relu or silu."""
    memory: str = "none"
    """none or lstm."""
    memory_size: int = 128
    """Units of the LSTM."""
    strategy: StrategyConfig = field(default_factory=StrategyConfig)
    separate_value: bool = True
    """A value network of its own, instead of a head on the actor's."""
    normalise_observation: bool = True
    """Running mean and deviation of every observation entry."""
    state_dependent_std: bool = False
    """The spread of continuous actions is an output of the network, instead of one parameter per entry."""
    initial_log_std: float = -0.5
    """Log of the spread of continuous actions at the start."""
    initial_log_std_of: dict[str, float] = field(default_factory=dict)
    """The same for single action entries, such as turn -1.5."""
    initial_mean_of: dict[str, float] = field(default_factory=dict)
    """Mean of single continuous actions at the start, before they are squashed to -1 .. 1 (default: 0): forward 1 walks ahead."""
    initial_key_logit: float = 0.0
    """Logit of pressing a key at the start: -1 presses it 27% of the time."""
    quiet_inputs: tuple[str, ...] = ()
    """Observation entries, by the beginning of their name, that the network does not hear at the start (zero weights): many
    entries of little meaning, such as rays, drown the few that matter until the network has learned to tell them apart."""


@dataclass(kw_only=True)
class PPOConfig:
    """Proximal policy optimisation."""

    gamma: Scalar = 0.99
    """Discount per step."""
    gae_lambda: float = 0.95
    """How far advantages look along the rollout (0: one step, 1: to its end)."""
    learning_rate: Scalar = "3e-4 -> 0"
    """Step size of Adam."""
    value_learning_rate: Scalar | None = None
    """Step size of a separate value network (default: as learning_rate)."""
    entropy: Scalar = 0.01
    """Weight of the entropy bonus."""
    clip: Scalar = 0.2
    """How far the probability ratio may move before its gradient is cut."""
    value_clip: float = 0.0
    """Clip on how far the (normalised) value may move; 0: none."""
    value_weight: float = 0.5
    """Weight of the value loss."""
    rollout: int = 32
    """Steps of every env between two updates."""
    epochs: int = 4
    """Passes over each rollout."""
    minibatches: int = 4
    """Updates per pass."""
    bptt: int | None = None
    """Steps of a chunk that gradients flow through (default: 16 with memory, else 1)."""
    burn_in: int = 0
    """First steps of a chunk that only warm the memory up and learn nothing."""
    target_kl: float | None = None
    """Stop the passes over a rollout once the policy has moved this far."""
    max_grad_norm: float = 0.5
    """Gradients are scaled down to this norm."""
    reward_scale: float = 1.0
    """Rewards are multiplied by this before learning; never clipped."""
    normalise_values: bool = True
    """Value targets are normalised by their running mean and deviation; advantages stay in units of reward."""
    recompute_advantages: bool = False
    """Compute values and advantages anew before every pass."""
    auxiliary: float = 0.0
    """Weight of predicting the next observation from the memory's output (needs memory)."""
    next_keys: float = 0.0
    """Weight of predicting which keys the opponent presses next from the strategy vector (needs policy.strategy)."""
    adam_epsilon: float = 1e-5
    """Epsilon of Adam."""
    accumulate: int = 1
    """Gradient accumulation: each update is computed in this many parts, to fit in memory."""
    recompute_activations: bool = False
    """Keep nothing of the forward pass and compute it again for the backward pass: less memory, more time."""
    roles: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Different values for a role, as learn.roles.ROLE.KEY."""

    def for_role(self, role: str) -> PPOConfig:
        return dataclasses.replace(self, **self.roles.get(role, {}), roles={})


OF_ACTIONS = ("initial_log_std_of", "initial_mean_of")  # of PolicyConfig: by the name of an action entry
VARY = "curriculum.tasks.vary."  # followed by the name of a game parameter
SHARED_BY_ROLES = ("rollout", "roles", "bptt")  # of PPOConfig: cannot differ between roles


@dataclass(kw_only=True)
class TrainConfig:
    """The budget: training ends when one of them is spent."""

    total_agent_steps: int | None = None
    """Agent-steps (valid decisions of learning agents)."""
    total_seconds: float | None = None
    """Seconds of wall-clock time."""
    stagger: bool = True
    """Cut each env's first episode at a random length, so that envs are out of step."""
    threads: int | None = None
    """CPU threads of simulator and network (default: measured)."""
    dtype: str | None = None
    """float32 or bfloat16 (default: float32 on the CPU, bfloat16 on CUDA)."""
    compile: bool = False
    """Fuse the small kernels of acting and learning (torch.compile): faster on CUDA, after a minute of compiling."""


@dataclass(kw_only=True)
class EvalConfig:
    """Evaluation during training, on seeds that are not trained on."""

    every_agent_steps: int | None = None
    """Agent-steps between evaluations (default: a tenth of the budget)."""
    every_seconds: float | None = None
    """Seconds between evaluations."""
    episodes: int = 64
    """Episodes per opponent."""
    against: tuple[str, ...] = ("self", "bots")
    """Opponents: self, bots (all of them), bot:NAME, snapshots (a few, evenly over the pool)."""
    seed: int = 1_000_003
    """Seed of the evaluation envs."""
    greedy: bool = True
    """Evaluate the most likely action too, beside sampled ones."""


@dataclass(kw_only=True)
class LeagueConfig:
    """Opponents in training."""

    mix: str = ""
    """Relative weights of who plays on the other side, such as "self 60, pool 20, bot:random 20" (default: everyone learns).
    self: the policy as it is now; pool: a snapshot of an earlier one; bot:NAME."""
    sampler: str = "uniform"
    """Which snapshots: uniform, recent, latest, hard (those that win) or even (those of equal strength)."""
    snapshot_every: int | None = None
    """Agent-steps between snapshots; 0: none are taken (default: a fiftieth of the budget, or of 100 million)."""
    opponents: tuple[str, ...] = ()
    """Runs (RUN, RUN@STEP, RUN@best) of the same game and network whose policies are in the pool from the start, for good."""
    pool_size: int = 200
    """Most snapshots to keep; thinned so that old ones stay."""
    slots: int = 8
    """Snapshots that are in play at the same time, each in a block of envs."""
    renew_every: int = 10
    """Iterations between replacing the snapshot of one slot by another."""


@dataclass(kw_only=True)
class Stage:
    """A part of a curriculum: it ends when the win rate against an opponent is surely high enough."""

    mix: str
    """Opponents of this stage, as in league.mix."""
    opponent: str = ""
    """Whose defeat ends the stage, such as bot:constant; empty in the last stage."""
    win_rate: float = 0.9
    """The lower confidence bound of the win rate that must be reached."""
    least_episodes: int = 200
    """Episodes it is measured over, at least."""
    game: dict[str, float] = field(default_factory=dict)
    """Game parameters and reward.TERM weights of this stage."""


@dataclass(kw_only=True)
class TasksConfig:
    """Every env plays a task of its own: other values of some game parameters, drawn anew in its reset rows."""

    vary: dict[str, str] = field(default_factory=dict)
    """Values of a parameter or reward.TERM to choose from, "1, 3, 5", or their bounds, "0.1 to 0.5" (default: no tasks)."""
    sampler: str = "learning_progress"
    """learning_progress (tasks whose score moves, or is above that of random play) or uniform."""
    pool: int = 1000
    """Tasks to draw from; all of them where fewer are possible."""
    goal: str | None = None
    """Goal metric that is a task's score (default: the game's first)."""
    baseline: float | None = None
    """Score of random play (default: measured at the start)."""
    fast_rate: float = 0.1
    """How far the fast average of a task's scores moves per completed episode."""
    slow_rate: float = 0.02
    """The same of the slow average."""
    evict_share: float = 0.4
    """Share of the tasks, those of least progress, that make room for new ones."""
    evict_after: int = 5
    """Completed episodes before a task may be evicted."""


@dataclass(kw_only=True)
class CurriculumConfig:
    """What changes while the agent learns. Game parameters may also be schedules: --game.trees "0 -> 20"."""

    stages: tuple[Stage, ...] = ()
    """Stages, one after the other (set in recipes)."""
    tasks: TasksConfig = field(default_factory=TasksConfig)


@dataclass(kw_only=True)
class CheckpointConfig:
    """What is kept, and when."""

    every_agent_steps: int | None = None
    """Agent-steps between checkpoints."""
    every_seconds: float | None = 60.0
    """Seconds between checkpoints."""
    keep: int = 3
    """Newest checkpoints to keep; the first, the best and the last stay anyway."""
    best_metric: str | None = None
    """Metric that decides which checkpoint is best, such as eval/self/catch_rate (default: the first goal metric)."""


@dataclass(kw_only=True)
class LogConfig:
    """What a run writes."""

    tensorboard: bool = True
    """TensorBoard events beside metrics.jsonl."""
    wandb: str | None = None
    """Project at Weights & Biases to log to as well."""
    diagnostics_every: int = 20
    """Iterations between lines of diagnostics.jsonl; 0: never."""
    episodes: int = 2000
    """At most this many episodes are sampled into episodes.csv."""
    replay_every: int = 1
    """Evaluations between stored replays (best, worst and a random episode per opponent); 0: never."""
    replays: int = 30
    """Newest replays to keep."""


ON_CRITICAL = ("warn", "stop", "rollback")


@dataclass(kw_only=True)
class DoctorConfig:
    """The doctor watches every run; what it sees is in findings.jsonl, in the dashboard and in the report."""

    on_critical: str = "warn"
    """What a critical finding does: warn; stop, with a checkpoint; or rollback, which goes on in a new run from the last
    healthy checkpoint with the suggested change (never for a finding that depends on the clock)."""


@dataclass(kw_only=True)
class Config:
    """One experiment."""

    game: str
    """A game, game:preset, package.module:GAME, gym:ID, pettingzoo:MODULE, or a function that returns an env."""
    game_values: dict[str, Scalar] = field(default_factory=dict)
    """Sizes, parameters and reward.TERM weights that differ from the game's own; game.KEY on the command line."""
    envs: int = 1024
    """Number of envs."""
    seed: int = 0
    """Seed of everything."""
    device: str = "cpu"
    """cpu or cuda."""
    algorithm: str = "ppo"
    """ppo (settings in learn) or rainbow (settings in rainbow)."""
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    learn: PPOConfig = field(default_factory=PPOConfig)
    rainbow: RainbowConfig = field(default_factory=RainbowConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    league: LeagueConfig = field(default_factory=LeagueConfig)
    curriculum: CurriculumConfig = field(default_factory=CurriculumConfig)
    eval: EvalConfig = field(default_factory=EvalConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    log: LogConfig = field(default_factory=LogConfig)
    doctor: DoctorConfig = field(default_factory=DoctorConfig)

    def __post_init__(self) -> None:
        if callable(self.game):
            from ludus.envs.guests import source_of

            self.game = source_of(self.game)


PRESETS: dict[str, dict[str, Any]] = {
    "fast": {"learn.epochs": 2, "eval.greedy": False, "log.tensorboard": False},
    "stable": {"learn.epochs": 4, "learn.clip": 0.1, "learn.target_kl": 0.02, "learn.max_grad_norm": 0.5},
}


def apply_preset(config: Config, name: str) -> None:
    """Presets change a recipe where it trades speed against stability."""
    if name not in PRESETS:
        raise LudusError(f"unknown preset '{name}': {nearest(name, PRESETS)}")
    for key, value in PRESETS[name].items():
        section, _, attribute = key.partition(".")
        setattr(getattr(config, section), attribute, value)


# -- to and from plain data --------------------------------------------------------------------------------------------


def flatten(config: Any, prefix: str = "") -> dict[str, Any]:
    """Every value under its dotted name."""
    out: dict[str, Any] = {}
    for f in dataclasses.fields(config):
        value, name = getattr(config, f.name), prefix + f.name
        if dataclasses.is_dataclass(value):
            out |= flatten(value, name + ".")
        elif f.name == "game_values":
            out |= {f"game.{k}": v for k, v in value.items()}
        elif f.name in (*OF_ACTIONS, "vary"):
            out |= {f"{name}.{entry}": v for entry, v in value.items()}
        elif f.name == "roles":
            out |= {f"{name}.{role}.{k}": v for role, values in value.items() for k, v in values.items()}
        elif f.name == "stages":
            out[name] = [dataclasses.asdict(stage) for stage in value]
        else:
            out[name] = list(value) if isinstance(value, tuple) else value
    return out


def unflatten(values: Mapping[str, Any]) -> Config:
    """The Config that `flatten` described; refuses keys that do not exist."""
    config = Config(game=str(values["game"]))
    for name, value in values.items():
        set_value(config, name, value)
    return config


def set_value(config: Config, name: str, value: Any) -> None:
    """Sets one value by its dotted name."""
    if name.startswith("game."):
        config.game_values[name.removeprefix("game.")] = value
        return
    if name.startswith(VARY):
        config.curriculum.tasks.vary[name.removeprefix(VARY)] = str(value)
        return
    target: Any = config
    *sections, key = name.split(".")
    if len(sections) == 2 and sections[0] == "policy" and sections[1] in OF_ACTIONS:
        getattr(config.policy, sections[1])[key] = value
        return
    if sections[:2] == ["learn", "roles"] and len(sections) == 3:
        _role_value(config, sections[2], key, value)
        return
    if name == "curriculum.stages":
        config.curriculum.stages = tuple(Stage(**stage) if isinstance(stage, dict) else stage for stage in value)
        return
    for section in sections:
        target = getattr(target, section, None)
    if target is None or key not in {f.name for f in dataclasses.fields(target)}:
        raise LudusError(f"unknown key '{name}': {nearest(name, flatten(config))}")
    setattr(target, key, tuple(value) if isinstance(value, list) else value)


def _role_value(config: Config, role: str, key: str, value: Any) -> None:
    allowed = [f.name for f in dataclasses.fields(config.learn) if f.name not in SHARED_BY_ROLES]
    if key not in allowed:
        reason = "is the same for all roles" if key in SHARED_BY_ROLES else nearest(key, allowed)
        raise LudusError(f"learn.roles.{role}.{key} cannot be set: {reason}")
    config.learn.roles.setdefault(role, {})[key] = value


def origins(final: Config, recipe: Config, preset: str | None = None) -> dict[str, str]:
    """Where each value came from: default, recipe, preset or command line."""
    default = flatten(Config(game=recipe.game))
    of_recipe, of_final = flatten(recipe), flatten(final)
    chosen = PRESETS[preset] if preset else {}
    out = {}
    for name, value in of_final.items():
        if name in chosen and chosen[name] == value and of_recipe.get(name) != value:
            out[name] = f"preset {preset}"
        elif name not in of_recipe or of_recipe[name] != value:
            out[name] = "command line"
        elif name not in default or default[name] != value:
            out[name] = "recipe"
        else:
            out[name] = "default"
    return out


# -- derived values and what cannot work -------------------------------------------------------------------------------


def resolve(config: Config) -> Config:
    """A copy with derived values filled in."""
    config = unflatten(flatten(config))
    if config.learn.bptt is None:
        config.learn.bptt = min(16, config.learn.rollout) if config.policy.memory != "none" else 1
    config.policy.strategy = config.policy.strategy.filled()
    if config.train.dtype is None:
        config.train.dtype = "bfloat16" if config.device == "cuda" else "float32"
    budget = config.train.total_agent_steps
    if config.rainbow.epsilon_over is None:
        config.rainbow.epsilon_over = max(1, budget * 3 // 10) if budget is not None else 300_000
    if config.league.snapshot_every is None:
        config.league.snapshot_every = max(1, (budget or 100_000_000) // 50)
    if config.eval.every_agent_steps is None and config.eval.every_seconds is None:
        if budget is not None:
            config.eval.every_agent_steps = max(1, budget // 10)
        elif config.train.total_seconds is not None:
            config.eval.every_seconds = config.train.total_seconds / 10
    return config


def check(config: Config, role_rows: Mapping[str, int]) -> None:
    """Refuses what cannot work before anything is written. `role_rows`: agents of each role over all envs."""
    _check_counts(config)
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
            f"one rollout is {rollout:,} agent-steps but the whole budget is {budget:,}: there would be no update; "
            f"lower {section}.rollout or envs, or raise train.total_agent_steps"
        )


def _check_ppo(config: Config, role_rows: Mapping[str, int]) -> None:
    learn = config.learn
    for role in learn.roles:
        if role not in role_rows:
            raise LudusError(f"learn.roles.{role}: the game has no role '{role}': {nearest(role, role_rows)}")
        for key in learn.roles[role]:
            _role_value(config, role, key, learn.roles[role][key])
    bptt = learn.bptt or 1
    if learn.rollout % bptt:
        raise LudusError(
            f"a rollout of {learn.rollout} steps does not divide into chunks of {bptt}: make it a multiple of learn.bptt"
        )
    if bptt > 1 and config.policy.memory == "none":
        raise LudusError(f"learn.bptt={bptt} without memory: set policy.memory or leave learn.bptt at 1")
    if learn.burn_in >= bptt > 1 or (learn.burn_in and bptt == 1):
        raise LudusError(f"learn.burn_in={learn.burn_in} leaves nothing of chunks of {bptt} steps: use less than learn.bptt")
    if config.policy.memory == "none" and any(learn.for_role(role).auxiliary for role in role_rows):
        raise LudusError(
            "learn.auxiliary predicts from memory, but policy.memory is none: set policy.memory or learn.auxiliary=0"
        )
    if config.policy.strategy.size == "none" and any(learn.for_role(role).next_keys for role in role_rows):
        raise LudusError(
            "learn.next_keys predicts from the strategy vector, but there is none: set policy.strategy.size or learn.next_keys=0"
        )
    if not config.policy.separate_value and any(learn.for_role(role).value_learning_rate is not None for role in role_rows):
        raise LudusError(
            "learn.value_learning_rate is that of a separate value network: set policy.separate_value or leave it out"
        )
    for role, rows in role_rows.items():
        mine = learn.for_role(role)
        chunks = learn.rollout // bptt * rows
        if chunks % mine.minibatches:
            fits = [n for n in range(1, chunks + 1) if chunks % n == 0]
            below = max(n for n in fits if n < mine.minibatches)
            above = min((n for n in fits if n > mine.minibatches), default=below)
            what = f"{chunks} chunks of {bptt} steps" if bptt > 1 else f"a batch of {chunks} rows"
            choice = f"{below} or {above}" if above != below else f"{below}"
            raise LudusError(f"role {role}: {what} does not divide into {mine.minibatches} minibatches: use {choice}")


def _check_strategy(config: Config) -> None:
    s = config.policy.strategy.filled()
    if s.size not in ("none", *STRATEGY_SIZES):
        raise LudusError(f"policy.strategy.size={s.size}: {nearest(s.size, ['none', *STRATEGY_SIZES])}")
    if s.size == "none":
        return
    if config.algorithm != "ppo":
        raise LudusError(f"policy.strategy.size={s.size} is learned by ppo, not by {config.algorithm}: set it to none")
    for name in ("history", *STRATEGY_SIZES["small"]):
        if getattr(s, name) < 1:
            raise LudusError(f"policy.strategy.{name}={getattr(s, name)} cannot work: use 1 or more")
    if s.width is not None and s.heads is not None and (s.width % s.heads or s.width % 2):
        raise LudusError(
            f"policy.strategy.width={s.width} must be even and divide among {s.heads} heads: use a multiple of {2 * s.heads}"
        )
    if not 0 <= s.dropout < 1:
        raise LudusError(f"policy.strategy.dropout={s.dropout} is outside 0 to 1")
    if s.dropout and config.learn.recompute_activations:
        raise LudusError("learn.recompute_activations would leave other units out than policy.strategy.dropout did: use one")


def _check_tasks(config: Config) -> None:
    t = config.curriculum.tasks
    if not t.vary and t != TasksConfig():
        raise LudusError("curriculum.tasks has settings but no tasks: say what varies with curriculum.tasks.vary.PARAMETER")
    if not 0 < t.slow_rate < t.fast_rate <= 1:
        raise LudusError(
            f"curriculum.tasks: the slow rate {t.slow_rate:g} and the fast rate {t.fast_rate:g} must rise, between 0 and 1"
        )
    if not 0 <= t.evict_share < 1:
        raise LudusError(f"curriculum.tasks.evict_share={t.evict_share:g} is outside 0 to 1")


def _check_opponents(config: Config) -> None:
    mixes = [stage.mix for stage in config.curriculum.stages] or [config.league.mix]
    if config.curriculum.stages and config.league.mix:
        raise LudusError("league.mix and curriculum.stages are both set: a stage brings its own mix; leave league.mix empty")
    if config.league.opponents and not any("pool" in mix for mix in mixes):
        raise LudusError("league.opponents are put in the pool, but nobody plays it: add pool to the mix")
    if any("pool" in mix for mix in mixes) and config.envs % config.league.slots:
        raise LudusError(f"{config.envs} envs do not divide into the blocks of {config.league.slots} slots: use a multiple")
    if config.eval.seed == config.seed:
        raise LudusError(f"eval.seed={config.eval.seed} is the seed that is trained on: use another")


def _check_counts(config: Config) -> None:
    values = flatten(config)
    least: dict[str, float] = {
        "envs": 1, "seed": 0, "eval.episodes": 1, "eval.seed": 0, "checkpoint.keep": 1, "log.episodes": 0,
        "log.diagnostics_every": 0, "log.replay_every": 0, "log.replays": 0, "policy.memory_size": 1, "train.threads": 1,
        "curriculum.tasks.pool": 2, "curriculum.tasks.evict_after": 1, "league.pool_size": 3, "league.slots": 1, "league.renew_every": 1, "league.snapshot_every": 0,
        "train.total_agent_steps": 1, "eval.every_agent_steps": 1, "checkpoint.every_agent_steps": 1,
    }  # fmt: skip
    of_learn: dict[str, float] = {
        "rollout": 1, "epochs": 1, "minibatches": 1, "accumulate": 1, "burn_in": 0, "max_grad_norm": 0, "value_clip": 0,
        "adam_epsilon": 0, "bptt": 1, "value_weight": 0, "auxiliary": 0, "next_keys": 0,
    }  # fmt: skip
    above_zero = ["train.total_seconds", "eval.every_seconds", "checkpoint.every_seconds"]
    for prefix in ("learn", *(f"learn.roles.{role}" for role in config.learn.roles)):
        least |= {f"{prefix}.{key}": value for key, value in of_learn.items()}
        above_zero += [f"{prefix}.target_kl", f"{prefix}.reward_scale"]
    for name, low in least.items():
        value = values.get(name)
        if value is not None and value < low:
            raise LudusError(f"{name}={value} cannot work: use {low:g} or more")
    for name in above_zero:
        value = values.get(name)
        if value is not None and value <= 0:
            raise LudusError(f"{name}={value} cannot work: use more than 0")
    if any(size < 1 for size in config.policy.hidden):
        raise LudusError(
            f"policy.hidden={list(config.policy.hidden)} has a layer of {min(config.policy.hidden)} units: use 1 or more"
        )
    for name, value, known in (
        ("device", config.device, ("cpu", "cuda")),
        ("algorithm", config.algorithm, ("ppo", "rainbow")),
        ("policy.activation", config.policy.activation, ("tanh", "relu", "silu")),
        ("policy.memory", config.policy.memory, ("none", "lstm")),
        ("curriculum.tasks.sampler", config.curriculum.tasks.sampler, ("learning_progress", "uniform")),
        ("doctor.on_critical", config.doctor.on_critical, ON_CRITICAL),
        ("train.dtype", config.train.dtype, ("float32", "bfloat16", None)),
    ):
        if value not in known:
            raise LudusError(f"{name}={value}: {nearest(str(value), [k for k in known if k])}")
    limits = {"gamma": (0, 1), "clip": (1e-9, 10), "learning_rate": (0, 1), "entropy": (0, 100), "value_learning_rate": (0, 1)}
    for role in [None, *config.learn.roles]:
        learn = config.learn.for_role(role) if role else config.learn
        where = f"learn.roles.{role}" if role else "learn"
        for key, (lowest, highest) in limits.items():
            scalar = getattr(learn, key)
            if scalar is None:
                continue
            for value in parse(scalar, f"{where}.{key}").values:
                if not lowest <= value <= highest:
                    raise LudusError(f"{where}.{key}={scalar} is outside {lowest:g} to {highest:g}")
        if not 0 <= learn.gae_lambda <= 1:
            raise LudusError(f"{where}.gae_lambda={learn.gae_lambda} is outside 0 to 1")
