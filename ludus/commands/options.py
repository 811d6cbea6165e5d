"""The command line of a config: every key as --section.key, role and game keys from the game's own spec."""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import dataclass, field, make_dataclass
from typing import Annotated, Any

import tyro

from ludus.config import (
    SHARED_BY_ROLES,
    CheckpointConfig,
    Config,
    DoctorConfig,
    EvalConfig,
    LeagueConfig,
    LogConfig,
    PolicyConfig,
    PPOConfig,
    RainbowConfig,
    TasksConfig,
    TrainConfig,
    apply_preset,
    origins,
)
from ludus.training.sources import find_game, is_foreign, layout_of


def _help(text: str) -> Any:
    return tyro.conf.arg(help=text)


def _game_section(name: str) -> type:
    """Sizes, parameters and reward weights of a game, all unset."""
    if is_foreign(name):
        return make_dataclass("Game", [], kw_only=True)
    game, preset = find_game(name)
    settings = game.resolve(preset=preset)
    fields: list[tuple[str, Any, Any]] = []
    for size, value in settings.sizes.items():
        fields.append((size, Annotated[int | None, _help(f"Size (default: {value}).")], field(default=None)))
    for param, number in settings.params.items():
        kind = int if game.params[param].integer else float
        text = f"{game.params[param].help.capitalize() or 'Parameter'} (default: {number:g})."
        fields.append((param, Annotated[kind | str | None, _help(text)], field(default=None)))
    rewards = [
        (term, Annotated[float | None, _help(f"Weight of the reward term {term} (default: {weight:g}).")], field(default=None))
        for term, weight in settings.weights.items()
    ]
    reward_section = make_dataclass("Reward", rewards, kw_only=True)
    fields.append(("reward", reward_section, field(default_factory=reward_section)))
    return make_dataclass("Game", fields, kw_only=True)


def _tasks_section(name: str) -> type:
    """curriculum.tasks, with vary.PARAMETER and vary.reward.TERM of the game, all unset."""
    vary: list[tuple[str, Any, Any]] = []
    if not is_foreign(name):
        game, _ = find_game(name)
        text = Annotated[str | None, _help("Values to choose from, '1, 3, 5', or bounds, '0.1 to 0.5'.")]
        vary = [(param, text, field(default=None)) for param in game.params]
        reward = make_dataclass("VaryReward", [(term, text, field(default=None)) for term in game.rewards], kw_only=True)
        vary.append(("reward", reward, field(default_factory=reward)))
    section = make_dataclass("Vary", vary, kw_only=True)
    return make_dataclass("Tasks", [("vary", section, field(default_factory=section))], bases=(TasksConfig,), kw_only=True)


def _tasks_of(section: Any, recipe: TasksConfig) -> TasksConfig:
    """The section as it was given, with what the recipe varies."""
    given = {n: v for n, v in vars(section.vary).items() if v is not None and n != "reward"}
    if hasattr(section.vary, "reward"):
        given |= {f"reward.{n}": v for n, v in vars(section.vary.reward).items() if v is not None}
    plain = {f.name: getattr(section, f.name) for f in dataclasses.fields(TasksConfig) if f.name != "vary"}
    return TasksConfig(**plain, vary={**recipe.vary, **given})


def _roles_section(name: str) -> type:
    """learn.roles.ROLE.KEY, all unset."""
    roles = (
        [s.role for s in layout_of(Config(game=name))[0].seats]
        if is_foreign(name)
        else [r.name for r in find_game(name)[0].roles]
    )
    keys = [
        (
            f.name,
            Annotated[_optional(f.type), _help(f"As learn.{f.name.replace('_', '-')}.")],
            field(default=None),
        )
        for f in dataclasses.fields(PPOConfig)
        if f.name not in SHARED_BY_ROLES
    ]
    one = make_dataclass("Role", keys, kw_only=True)
    return make_dataclass("Roles", [(role, one, field(default_factory=one)) for role in roles], kw_only=True)


def _optional(annotation: Any) -> Any:
    """A field's type, or None for unset."""
    from ludus.curriculum.schedules import Scalar

    known: dict[str, Any] = {"Scalar": Scalar, "float": float, "int": int, "bool": bool}
    return known[str(annotation).removesuffix(" | None")] | None


@dataclass(kw_only=True)
class Common:
    """Options around the config."""

    run: str | None = None
    """Folder of the run (default: runs/RECIPE-DATE)."""
    preset: str | None = None
    """fast or stable: a few settings at once."""
    init_from: str | None = None
    """Start from the weights of another run: RUN, RUN@STEP or RUN@best."""
    init_modules: tuple[str, ...] = ()
    """Only modules whose name contains one of these."""
    quiet: bool = False
    """No dashboard, no lines."""
    json: bool = False
    """Print the result as JSON."""


def parse_config(
    recipe: Config, arguments: list[str], command: str, example: str, summary: str
) -> tuple[Config, dict[str, str], Any]:
    """The recipe with the command line's changes, where each value came from, and the options around it."""
    base = copy.deepcopy(recipe)
    arguments = _spell_flags_out(arguments)
    preset = _preset_of(arguments)
    if preset:
        apply_preset(base, preset)
    game_section, roles_section = _game_section(recipe.game), _roles_section(recipe.game)
    learn = make_dataclass(
        "Learn", [("roles", roles_section, field(default_factory=roles_section))], bases=(PPOConfig,), kw_only=True
    )
    tasks = _tasks_section(recipe.game)
    curriculum = make_dataclass("Curriculum", [("tasks", tasks, field(default_factory=tasks))], kw_only=True)
    options_type = make_dataclass(
        "Options",
        [
            ("envs", Annotated[int, _help("Number of envs.")], field(default=base.envs)),
            ("seed", Annotated[int, _help("Seed of everything.")], field(default=base.seed)),
            ("device", Annotated[str, _help("cpu or cuda.")], field(default=base.device)),
            ("algorithm", Annotated[str, _help("ppo or rainbow.")], field(default=base.algorithm)),
            ("train", TrainConfig, field(default_factory=TrainConfig)),
            ("learn", learn, field(default_factory=learn)),
            ("rainbow", RainbowConfig, field(default_factory=RainbowConfig)),
            ("policy", PolicyConfig, field(default_factory=PolicyConfig)),
            ("game", game_section, field(default_factory=game_section)),
            ("league", LeagueConfig, field(default_factory=LeagueConfig)),
            ("curriculum", curriculum, field(default_factory=curriculum)),
            ("eval", EvalConfig, field(default_factory=EvalConfig)),
            ("checkpoint", CheckpointConfig, field(default_factory=CheckpointConfig)),
            ("log", LogConfig, field(default_factory=LogConfig)),
            ("doctor", DoctorConfig, field(default_factory=DoctorConfig)),
        ],
        bases=(Common,),
        kw_only=True,
    )
    default = options_type(
        train=base.train,
        learn=learn(**{f.name: getattr(base.learn, f.name) for f in dataclasses.fields(PPOConfig) if f.name != "roles"}),
        rainbow=base.rainbow,
        policy=base.policy,
        league=base.league,
        curriculum=curriculum(
            tasks=tasks(
                **{f.name: getattr(base.curriculum.tasks, f.name) for f in dataclasses.fields(TasksConfig) if f.name != "vary"}
            )
        ),
        eval=base.eval,
        checkpoint=base.checkpoint,
        log=base.log,
        doctor=base.doctor,
    )
    options: Any = tyro.cli(
        options_type, args=arguments, default=default, prog=f"ludus {command}", description=f"{summary}\n\nExample: {example}",
        config=(tyro.conf.FlagConversionOff,),
    )  # fmt: skip
    values = {n: v for n, v in vars(options.game).items() if v is not None and n != "reward"}
    if hasattr(options.game, "reward"):
        values |= {f"reward.{n}": v for n, v in vars(options.game.reward).items() if v is not None}
    roles = {
        role: {n: v for n, v in vars(section).items() if v is not None} for role, section in vars(options.learn.roles).items()
    }
    merged_roles = {
        role: {**base.learn.roles.get(role, {}), **values_}
        for role, values_ in roles.items()
        if values_ or role in base.learn.roles
    }
    config = Config(
        game=base.game,
        game_values={**base.game_values, **values},
        envs=options.envs,
        seed=options.seed,
        device=options.device,
        algorithm=options.algorithm,
        rainbow=options.rainbow,
        policy=options.policy,
        learn=PPOConfig(
            **{f.name: getattr(options.learn, f.name) for f in dataclasses.fields(PPOConfig) if f.name != "roles"},
            roles=merged_roles,
        ),
        train=options.train,
        league=options.league,
        curriculum=dataclasses.replace(base.curriculum, tasks=_tasks_of(options.curriculum.tasks, base.curriculum.tasks)),
        eval=options.eval,
        checkpoint=options.checkpoint,
        log=options.log,
        doctor=options.doctor,
    )
    return config, origins(config, recipe, preset), options


def _spell_flags_out(arguments: list[str]) -> list[str]:
    """Keys of the config take True or False; --json and --quiet stay flags."""
    out: list[str] = []
    for i, argument in enumerate(arguments):
        out.append(argument)
        if argument in ("--json", "--quiet") and arguments[i + 1 : i + 2] not in (["True"], ["False"]):
            out.append("True")
    return out


def _preset_of(arguments: list[str]) -> str | None:
    """The value of --preset, needed before the rest is parsed."""
    for i, argument in enumerate(arguments):
        if argument == "--preset" and i + 1 < len(arguments):
            return arguments[i + 1]
        if argument.startswith("--preset="):
            return argument.partition("=")[2]
    return None
