"""What is wrong with a game, said when it is defined: by name, with the fix.

The rules are read as syntax trees. For every phase we find which fields it and the functions it
calls read and write, and at which entries. A lane may write only its own entries of the fields it
declared, and may not read entries that another lane of the same phase writes: otherwise the result
would depend on the order in which lanes run.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from collections.abc import Callable
from dataclasses import dataclass, field

from ludus.errors import RuleError, nearest
from ludus.sim.game import (
    KINDS,
    Binary,
    Choice,
    Continuous,
    Each,
    Field,
    Game,
    Phase,
    Settings,
    evaluate,
)
from ludus.sim.layout import ENGINE_FIELDS, RULE_FIELDS, Layout, accessible
from ludus.sim.program import controllers
from ludus.who import BOT, SELF, bot_names, read


@dataclass
class Accesses:
    """Fields that a phase touches; `others` holds those touched at entries that are not the lane's
    own."""

    written: dict[str, int] = field(default_factory=dict)
    read: dict[str, int] = field(default_factory=dict)
    written_others: dict[str, int] = field(default_factory=dict)
    read_others: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Lane:
    """An index handed to the phase: 0 is the env, 1 the first lane …"""

    position: int


Binding = dict[str, "str | Lane"]  # a local name → the field or the lane index it stands for


def analyse(phase: Phase, fields: dict[str, Field]) -> Accesses:
    """Every access of a phase, those in called functions included."""
    indices = phase.arguments[: 1 + len(phase.lanes)]
    binding: Binding = {name: Lane(i) for i, name in enumerate(indices)}
    binding.update({name: name for name in phase.fields if name in fields})
    accesses = Accesses()
    _Reader(phase.function, binding, fields, phase.lanes, phase.name, accesses).run()
    return accesses


class _Reader(ast.NodeVisitor):
    def __init__(
        self,
        function: Callable,
        binding: Binding,
        fields: dict[str, Field],
        lanes: tuple[str, ...],
        phase: str,
        out: Accesses,
    ) -> None:
        self.function, self.binding, self.fields = function, binding, fields
        self.lanes, self.phase, self.out = lanes, phase, out

    def run(self) -> None:
        try:
            source = textwrap.dedent(inspect.getsource(self.function))
        except (OSError, TypeError):
            raise RuleError(
                f"phase {self.phase}: the source of {self.function.__name__} cannot be read: put "
                "rules in a file"
            ) from None
        tree = ast.parse(source).body[0]
        assert isinstance(tree, ast.FunctionDef)
        for statement in tree.body:
            self.visit(statement)

    def fail(self, node: ast.AST, message: str) -> RuleError:
        line = self.function.__code__.co_firstlineno + getattr(node, "lineno", 1) - 1
        return RuleError(
            f"phase {self.phase}: {message} ({self.function.__code__.co_filename}:{line})"
        )

    def visit_Subscript(self, node: ast.Subscript) -> None:
        name = node.value.id if isinstance(node.value, ast.Name) else None
        target = self.binding.get(name) if name else None
        if not isinstance(target, str):
            self.generic_visit(node)
            return
        indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        declared = self.fields[target]
        expected = len(declared.shape) + (0 if declared.shared else 1)
        if len(indices) != expected:
            axes = ", ".join(
                map(str, declared.shape if declared.shared else ("env", *declared.shape))
            )
            raise self.fail(
                node,
                f"'{target}' has the axes ({axes}) but is indexed with {len(indices)}: use one "
                "index per axis",
            )
        if not declared.shared and not self._is_lane(indices[0], 0):
            raise self.fail(
                node, f"'{target}' must be indexed with env first: an env never looks into another"
            )
        inner = indices if declared.shared else indices[1:]
        own = all(
            any(
                self._is_own(index, axis, lane)
                for index, axis in zip(inner, declared.shape, strict=True)
            )
            for lane in range(1, 1 + len(self.lanes))
        )
        line = node.lineno
        if isinstance(node.ctx, ast.Load):
            self.out.read.setdefault(target, line)
            if not own:
                self.out.read_others.setdefault(target, line)
        else:
            self.out.written.setdefault(target, line)
            if not own:
                self.out.written_others.setdefault(target, line)
        for index in indices:
            self.visit(index)

    def _is_lane(self, index: ast.expr, lane: int) -> bool:
        return isinstance(index, ast.Name) and self.binding.get(index.id) == Lane(lane)

    def _is_own(self, index: ast.expr, axis: str | int, lane: int) -> bool:
        """The lane's index itself; on an axis of another size (observation entries) also the index
        plus a constant."""
        if self._is_lane(index, lane):
            return True
        if axis == self.lanes[lane - 1] or not (
            isinstance(index, ast.BinOp) and isinstance(index.op, ast.Add)
        ):
            return False
        left, right = index.left, index.right
        return (self._is_lane(left, lane) and self._is_constant(right)) or (
            self._is_constant(left) and self._is_lane(right, lane)
        )

    def _is_constant(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Constant):
            return True
        return isinstance(node, ast.Name) and isinstance(
            self.function.__globals__.get(node.id), int
        )

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Subscript):  # x[i] += y reads as well as writes
            load = ast.copy_location(
                ast.Subscript(node.target.value, node.target.slice, ast.Load()), node.target
            )
            self.visit(load)
        self.visit(node.target)
        self.visit(node.value)

    def visit_Name(self, node: ast.Name) -> None:
        target = self.binding.get(node.id)
        if isinstance(target, Lane) and not isinstance(node.ctx, ast.Load):
            raise self.fail(node, f"the index '{node.id}' is assigned to: use another name")
        if isinstance(target, str):
            raise self.fail(
                node,
                f"'{node.id}' is used without an index: read one entry of it, or hand it to a "
                "function whole",
            )

    def visit_Call(self, node: ast.Call) -> None:
        callee = self._resolve(node.func)
        if not any(isinstance(self._bound(a), str) for a in node.args):
            self.generic_visit(node)
            # a called function without field arguments cannot touch any field
            return
        if not isinstance(callee, types.FunctionType):
            raise self.fail(
                node,
                "a field may be handed only to a function of the rules, not to a built-in: use "
                "sizes for lengths",
            )
        names = callee.__code__.co_varnames[: callee.__code__.co_argcount]
        binding: Binding = {}
        for name, argument in zip(names, node.args, strict=False):
            bound = self._bound(argument)
            if bound is None:
                self.visit(argument)
            else:
                binding[name] = bound
        _Reader(callee, binding, self.fields, self.lanes, self.phase, self.out).run()

    def _bound(self, node: ast.expr) -> str | Lane | None:
        return self.binding.get(node.id) if isinstance(node, ast.Name) else None

    def _resolve(self, node: ast.expr) -> object:
        if isinstance(node, ast.Name):
            return self.function.__globals__.get(node.id)
        if isinstance(node, ast.Attribute):
            return getattr(self._resolve(node.value), node.attr, None)
        return None


# -- the game --------------------------------------------------------------------------------------


def check_game(game: Game) -> None:
    """Raises RuleError for the first thing that cannot work."""
    _check_declaration(game)
    fields = accessible(game)
    layout = Layout(
        game, Settings(dict(game.sizes), {n: p.default for n, p in game.params.items()}, {})
    )
    rules = dict.fromkeys([*game.step, *game.reset])
    for phase in rules:
        _check_phase(game, phase, fields, layout.sizes, _writable_by_rules(game))
    for phase in game.setup:
        _check_phase(
            game, phase, fields, layout.sizes, [name for name, f in game.state.items() if f.shared]
        )
    for bots in game.bots.values():
        for bot in bots:
            _check_phase(
                game,
                bot,
                fields,
                layout.sizes,
                [*_own_state(game), *(f"action_{name}" for name in game.action), *_packed(game)],
            )


def _check_declaration(game: Game) -> None:
    here = f"game {game.name}"
    taken = {**ENGINE_FIELDS, **RULE_FIELDS}
    for name in [*game.state, *game.params, *game.sizes]:
        if name in taken or name in ("env", "agents"):
            raise RuleError(f"{here}: '{name}' is the engine's own name: choose another")
    if "max_steps" not in game.params:
        raise RuleError(f"{here}: declare the parameter max_steps: the longest an episode can last")
    if not game.roles:
        raise RuleError(f"{here}: it has no roles: declare at least one Role")
    roles = [r.name for r in game.roles]
    for role in game.roles:
        if isinstance(role.count, str) and role.count not in game.sizes:
            raise RuleError(
                f"{here}: role {role.name} counts '{role.count}', which is no size: "
                f"{nearest(role.count, game.sizes)}"
            )
    for name, field_ in game.state.items():
        for size in field_.shape:
            if isinstance(size, str) and size != "agents" and size not in game.sizes:
                raise RuleError(
                    f"{here}: field '{name}' has the unknown size '{size}': "
                    f"{nearest(size, game.sizes)}"
                )
    for name in game.seen:
        bytes_ = game.state.get(f"seen_{name}")
        if (
            bytes_ is None
            or bytes_.dtype != "uint8"
            or len(bytes_.shape) != 3
            or bytes_.shape[0] != "agents"
        ):
            raise RuleError(
                f"{here}: '{name}' is seen, so declare the state field seen_{name} as "
                'u8("agents", …, …)'
            )
    for name, term in game.rewards.items():
        if term.kind not in KINDS:
            raise RuleError(
                f"{here}: reward term '{name}' has the kind '{term.kind}': use one of "
                f"{', '.join(KINDS)}"
            )
        if term.most is None:
            raise RuleError(
                f"{here}: reward term '{name}' has no bound: say the most it can add up to in an "
                "episode, most=…"
            )
        names = {**game.sizes, **{n: p.default for n, p in game.params.items()}}
        if evaluate(term.most, names) < evaluate(term.least, names):
            raise RuleError(
                f"{here}: reward term '{name}' has most={term.most} below least={term.least}: swap "
                "them"
            )
    meant_for = {n: t.roles for n, t in game.rewards.items()} | {
        n: g.roles for n, g in game.goal_metrics.items()
    }
    for name, meant in meant_for.items():
        for role_name in meant or ():
            if role_name not in roles:
                raise RuleError(
                    f"{here}: '{name}' is for the unknown role '{role_name}': "
                    f"{nearest(role_name, roles)}"
                )
    for name, param in game.params.items():
        if not param.low <= param.default <= param.high:
            raise RuleError(
                f"{here}: parameter {name} has the default {param.default} outside {param.low} to "
                f"{param.high}"
            )
    for role_name in game.bots:
        if role_name not in roles:
            raise RuleError(
                f"{here}: bots for the unknown role '{role_name}': {nearest(role_name, roles)}"
            )
    for preset, values in [
        *game.presets.items(),
        ("held_out", game.held_out),
        ("validation", game.validation),
    ]:
        known = [*game.sizes, *game.params, *(f"reward.{t}" for t in game.rewards)]
        for name in values:
            if name not in known:
                raise RuleError(
                    f"{here}: preset {preset} sets the unknown '{name}': {nearest(name, known)}"
                )
    _check_headline(game)
    for entry in game.observation:
        if (
            isinstance(entry, Each)
            and isinstance(entry.count, str)
            and entry.count not in game.sizes
        ):
            raise RuleError(
                f"{here}: each('{entry.prefix}') counts '{entry.count}', which is no size"
            )
    for name, action in game.action.items():
        if (
            isinstance(action, Choice)
            and isinstance(action.options, tuple)
            and len(action.options) < 2
        ):
            raise RuleError(
                f"{here}: the action '{name}' has {len(action.options)} option: a choice needs at "
                "least 2"
            )


def _check_headline(game: Game) -> None:
    """Its goal must be measured where its opponent plays: the roles it is for against that bot in
    all others."""
    if game.headline is None:
        return
    goal, against = game.headline.goal, game.headline.against
    here = f"game {game.name}: the headline"
    if goal not in game.goal_metrics:
        raise RuleError(
            f"{here} names the unknown goal metric '{goal}': {nearest(goal, game.goal_metrics)}"
        )
    who = read(against, (SELF, BOT), bot_names(controllers(game)), here, RuleError)
    if who.kind == SELF or len(game.roles) == 1:
        return
    measured = [r.name for r in game.roles if game.goal_metrics[goal].concerns(r.name)]
    teams = max(role.teams for role in game.roles) > 1
    plays = {role for role, table in controllers(game).items() if who.name in table}
    if not any(
        all(r.name in plays for r in game.roles if teams or r.name != mine) for mine in measured
    ):
        raise RuleError(
            f"{here} is {goal} against {against}, but that bot does not play all roles that "
            f"{' or '.join(measured)} meets: "
            f"name a bot that does, or self"
        )


def _check_phase(
    game: Game, phase: Phase, fields: dict[str, Field], sizes: dict[str, int], writable: list[str]
) -> None:
    here = f"game {game.name}, phase {phase.name}"
    for lane in phase.lanes:
        if lane not in sizes:
            raise RuleError(f"{here}: lanes '{lane}' is no size: {nearest(lane, sizes)}")
    arguments = phase.arguments
    if not arguments or arguments[0] != "env" or len(arguments) < 1 + len(phase.lanes):
        expected = ", ".join(["env", *("an index for " + lane for lane in phase.lanes)])
        raise RuleError(f"{here}: its first arguments must be ({expected})")
    for name in phase.fields:
        if name not in fields and name not in sizes:
            raise RuleError(f"{here}: unknown field '{name}': {nearest(name, [*fields, *sizes])}")
    for name in phase.writes:
        if name not in writable:
            what = (
                "belongs to the engine" if name in ENGINE_FIELDS else "is not a field it may write"
            )
            raise RuleError(f"{here}: writes '{name}', which {what}: {nearest(name, writable)}")
        if name not in phase.fields:
            raise RuleError(
                f"{here}: declares writes='{name}' but does not take it as an argument: add it or "
                "drop it"
            )

    accesses = analyse(phase, fields)
    for name in accesses.written:
        if name not in phase.writes:
            raise RuleError(
                f"{here}: writes '{name}' without declaring it: add '{name}' to writes="
            )
    for name in phase.writes:
        if name not in accesses.written:
            raise RuleError(
                f"{here}: declares writes='{name}' but never writes it: drop it from writes="
            )
    if phase.lanes:
        lanes = ", ".join(phase.arguments[: 1 + len(phase.lanes)])
        for name in accesses.written_others:
            raise RuleError(
                f"{here}: writes '{name}' at an entry of another lane: write only {name}[{lanes}, "
                "…], "
                f"and let the receiver gather effects from others"
            )
        for name in accesses.read_others:
            if name in phase.writes:
                raise RuleError(
                    f"{here}: reads '{name}' of other lanes while they write it: write to a field "
                    f"'{name}_next' here "
                    f"and copy it in a later phase"
                )


def _own_state(game: Game) -> list[str]:
    return [name for name, f in game.state.items() if not f.shared]


def _packed(game: Game) -> list[str]:
    """The arrays [env, agent, k] that hold all actions of a kind, for bots that write them at
    once."""
    kinds: dict[type, str] = {Continuous: "continuous", Binary: "binary", Choice: "choices"}
    return list(dict.fromkeys(kinds[type(action)] for action in game.action.values()))


def _writable_by_rules(game: Game) -> list[str]:
    named = [f"term_{n}" for n in game.rewards] + [f"goal_{n}" for n in game.goal_metrics]
    masks = [f"mask_{n}" for n, a in game.action.items() if getattr(a, "masked", False)]
    return [*_own_state(game), *RULE_FIELDS, *named, *masks]
