"""The command line of a config: every key as --section.key, role and game keys from the game's own
spec."""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import dataclass, field, make_dataclass
from typing import Annotated, Any, get_type_hints

import tyro

from ludus.batches import find_game, game_info, is_foreign
from ludus.commands.parsing import ReadsRuns
from ludus.config import (
    AlgorithmConfig,
    Config,
    PolicyConfig,
    RoleConfig,
    TasksConfig,
    apply_preset,
    origins,
    refuse_unused,
)
from ludus.registry import ALGORITHMS

SINGLE = {
    "envs": (int, "Number of envs."),
    "seed": (int, "Seed of everything."),
    "device": (str, "cpu or cuda."),
    "algorithm": (str, f"{', '.join(ALGORITHMS)} or your own, package.module:Class."),
    "callbacks": (
        tuple[str, ...],
        "Classes of your own that are called while the run trains: package.module:Class.",
    ),
}
SECTIONS = (
    "train",
    "policy",
    "game",
    "league",
    "curriculum",
    "eval",
    "checkpoint",
    "log",
    "doctor",
)
MADE_HERE = ("policy", "game", "curriculum")
"""Sections with keys that the game or the network says."""


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
        fields.append(
            (size, Annotated[int | None, _help(f"Size (default: {value}).")], field(default=None))
        )
    for param, number in settings.params.items():
        kind = int if game.params[param].integer else float
        text = f"{game.params[param].help.capitalize() or 'Parameter'} (default: {number:g})."
        fields.append((param, Annotated[kind | str | None, _help(text)], field(default=None)))
    rewards = [
        (
            term,
            Annotated[
                float | None, _help(f"Weight of the reward term {term} (default: {weight:g}).")
            ],
            field(default=None),
        )
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
        text = Annotated[
            str | None, _help("Values to choose from, '1, 3, 5', or bounds, '0.1 to 0.5'.")
        ]
        vary = [(param, text, field(default=None)) for param in game.params]
        reward = make_dataclass(
            "VaryReward", [(term, text, field(default=None)) for term in game.rewards], kw_only=True
        )
        vary.append(("reward", reward, field(default_factory=reward)))
    section = make_dataclass("Vary", vary, kw_only=True)
    return make_dataclass(
        "Tasks",
        [("vary", section, field(default_factory=section))],
        bases=(TasksConfig,),
        kw_only=True,
    )


def _roles_section(name: str, section: str, kind: type[RoleConfig]) -> type:
    """SECTION.roles.ROLE.KEY, all unset."""
    roles = (
        [s.role for s in game_info(Config(game=name)).layout.seats]
        if is_foreign(name)
        else [r.name for r in find_game(name)[0].roles]
    )
    types = get_type_hints(kind)
    keys = [
        (
            key,
            Annotated[types[key] | None, _help(f"As {section}.{key}.".replace("_", "-"))],
            field(default=None),
        )
        for key in kind.of_roles()
    ]
    one = make_dataclass("Role", keys, kw_only=True)
    return make_dataclass(
        "Roles", [(role, one, field(default_factory=one)) for role in roles], kw_only=True
    )


def _learner_section(base: Config) -> AlgorithmConfig:
    """The settings of the algorithm; those of single roles are unset at first."""
    settings = base.learner
    kind = type(settings)
    if not isinstance(settings, RoleConfig):
        return settings
    roles = _roles_section(base.game, base.section, type(settings))
    made = make_dataclass(
        kind.__name__, [_field("roles", roles, roles())], bases=(kind,), kw_only=True
    )
    section: AlgorithmConfig = made(**_fields_but("roles", kind, settings))
    return section


def _policy_section(policy: PolicyConfig) -> Any:
    """The settings of the policy, with those of its network as policy.NAME.KEY."""
    own = policy.network_settings
    not_shown: Any = tyro.conf.SuppressFixed[tyro.conf.Fixed[Any]]  # type: ignore[misc]
    hidden = _field("network_settings", not_shown, own)
    shown = [_field(policy.section, type(own), own)] if dataclasses.fields(own) else []
    made = make_dataclass("Policy", [hidden, *shown], bases=(PolicyConfig,), kw_only=True)
    return made(**_fields_but("network_settings", PolicyConfig, policy))


@dataclass(kw_only=True)
class Common(ReadsRuns):
    """Options around the config."""

    run: str | None = None
    """Folder of the run (default: runs/RECIPE-DATE)."""
    preset: str | None = None
    """Several settings at once, such as fast or stable of ppo."""
    init_from: str | None = None
    """Start from the weights of another run: RUN, RUN@STEP or RUN@best."""
    init_modules: tuple[str, ...] = ()
    """Only modules whose name contains one of these."""
    quiet: bool = False
    """No dashboard, no lines."""
    json: bool = False
    """Print the result as JSON."""
    full: bool = False
    """At the end print everything that was measured, and the evidence of all findings."""


def parse_config(
    recipe: Config, arguments: list[str], command: str, example: str, summary: str
) -> tuple[Config, dict[str, str], Any]:
    """The recipe with the command line's changes, where each value came from, and the options
    around it."""
    base = copy.deepcopy(recipe)
    arguments = spell_flags_out(arguments)
    # first: they say which settings there are
    base.choose_algorithm(given_value(arguments, "--algorithm") or base.algorithm)
    base.policy.choose_network(given_value(arguments, "--policy.network") or base.policy.network)
    taken = {f.name for f in dataclasses.fields(Common)}
    ALGORITHMS.refuse_taken(base.algorithm, taken, "the option")
    preset = given_value(arguments, "--preset")
    if preset:
        apply_preset(base, preset)
    for argument in arguments:
        if argument.startswith("--"):
            refuse_unused(
                base, argument.removeprefix("--").partition("=")[0].replace("-", "_"), dashes=True
            )
    options_type = _options_type(base)
    options: Any = tyro.cli(
        options_type,
        args=arguments,
        default=options_type(),
        prog=f"ludus {command}",
        description=f"{summary}\n\nExample: {example}",
        config=(tyro.conf.FlagConversionOff,),
    )
    config = _config_of(options, base)
    return config, origins(config, recipe, preset), options


def _options_type(base: Config) -> type:
    """All options as one dataclass whose defaults are the values of `base`."""
    base.callbacks = tuple(base.callbacks)  # a recipe may have written a list
    game_section, tasks = _game_section(base.game), _tasks_section(base.game)
    tasks_of_base = tasks(**_fields_but("vary", TasksConfig, base.curriculum.tasks))
    first_stage = _field(
        "first_stage",
        Annotated[int, _help("The stage to begin with.")],
        base.curriculum.first_stage,
    )
    curriculum = make_dataclass(
        "Curriculum", [_field("tasks", tasks, tasks_of_base), first_stage], kw_only=True
    )
    made_here = {
        "policy": _policy_section(base.policy),
        "game": game_section(),
        "curriculum": curriculum(),
    }
    fields = [
        _field(name, Annotated[kind, _help(text)], getattr(base, name))
        for name, (kind, text) in SINGLE.items()
    ]
    sections = {base.section: _learner_section(base)}
    sections |= {name: made_here.get(name) or getattr(base, name) for name in SECTIONS}
    fields += [_field(name, type(section), section) for name, section in sections.items()]
    return make_dataclass("Options", fields, bases=(Common,), kw_only=True)


def _config_of(options: Any, base: Config) -> Config:
    """`base` with what was given. Values of the game and of roles that were not given stay as they
    are in `base`."""
    vary = {**base.curriculum.tasks.vary, **_given(options.curriculum.tasks.vary)}
    values = {
        name: getattr(options, name) for name in (*SINGLE, *SECTIONS) if name not in MADE_HERE
    }
    values["learner"] = _learner_of(options, base)
    policy = options.policy
    values["policy"] = PolicyConfig(
        **_fields_but("network_settings", PolicyConfig, policy),
        network_settings=getattr(policy, base.policy.section, policy.network_settings),
    )
    values["curriculum"] = dataclasses.replace(
        base.curriculum,
        first_stage=options.curriculum.first_stage,
        tasks=TasksConfig(**_fields_but("vary", TasksConfig, options.curriculum.tasks), vary=vary),
    )
    return Config(
        game=base.game, game_values={**base.game_values, **_given(options.game)}, **values
    )


def _learner_of(options: Any, base: Config) -> AlgorithmConfig:
    """The settings of the algorithm, with what was given for single roles."""
    section, kind = getattr(options, base.section), type(base.learner)
    if not isinstance(base.learner, RoleConfig):
        learner: AlgorithmConfig = section
        return learner
    given = {role: _given(values) for role, values in vars(section.roles).items()}
    roles = {role: {**base.learner.roles.get(role, {}), **own} for role, own in given.items()}
    return type(base.learner)(
        **_fields_but("roles", kind, section),
        roles={role: keys for role, keys in roles.items() if keys},
    )


def _field(name: str, kind: Any, value: Any) -> tuple[str, Any, Any]:
    """A field of a dataclass that is made here, with its default."""
    return name, kind, field(default_factory=lambda: value)


def _fields_but(left_out: str, kind: type, section: Any) -> dict[str, Any]:
    """The values of a section's own fields, all but one."""
    return {
        f.name: getattr(section, f.name) for f in dataclasses.fields(kind) if f.name != left_out
    }


def _given(section: Any) -> dict[str, Any]:
    """What was set of a section whose fields are unset at first; those of a section within it as
    NAME.KEY."""
    out: dict[str, Any] = {}
    for name, value in vars(section).items():
        if dataclasses.is_dataclass(value):
            out |= {f"{name}.{key}": v for key, v in _given(value).items()}
        elif value is not None:
            out[name] = value
    return out


def spell_flags_out(arguments: list[str]) -> list[str]:
    """Keys of the config take True or False; --json, --quiet, --full and --trust stay flags."""
    out: list[str] = []
    for i, argument in enumerate(arguments):
        out.append(argument)
        if argument in ("--json", "--quiet", "--full", "--trust") and arguments[
            i + 1 : i + 2
        ] not in (["True"], ["False"]):
            out.append("True")
    return out


def given_value(arguments: list[str], option: str) -> str | None:
    """The value of an option that is needed before the rest is parsed."""
    for i, argument in enumerate(arguments):
        if argument == option and i + 1 < len(arguments):
            return arguments[i + 1]
        if argument.startswith(f"{option}="):
            return argument.partition("=")[2]
    return None
