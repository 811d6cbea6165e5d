"""What every game must satisfy on every backend. Each check raises AssertionError with what it
found.

`ludus games NAME --check` runs them on one game; the test suite runs them on all.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ludus.errors import RuleError
from ludus.sim.batch import Batch
from ludus.sim.game import Game, Phase, evaluate
from ludus.sim.interpret import REVERSED, SHUFFLED

OBSERVATION_LIMIT = (
    10.0  # entries should be near [-1, 1]; beyond this a network's first layer saturates
)
FLOAT_TOLERANCE = 1e-4


def make(game: Game, num_envs: int = 16, **options: Any) -> Batch:
    """A batch in which every agent plays at random."""
    batch = Batch(game, num_envs, **{"seed": 7, **options})
    for role in game.roles:
        batch.set_controller(role.name, "random")
    batch.reset()
    return batch


def run(batch: Batch, steps: int) -> None:
    for _ in range(steps):
        batch.step()


def assert_same(a: Batch, b: Batch, what: str) -> None:
    left, right = a.state(), b.state()
    different = [
        name
        for name in left
        if not np.array_equal(left[name], right[name], equal_nan=left[name].dtype.kind == "f")
    ]
    assert not different, f"{what}: these fields differ: {', '.join(different)}"


def try_rules(
    game: Game,
    overrides: Mapping[str, float] | None = None,
    preset: str | None = None,
    *,
    steps: int = 300,
    seconds: float = 1.0,
) -> None:
    """A short random game, and one with every bot that is not of Ludus, uncompiled: a rule that
    leaves an array or stores a fraction in a whole number is an error that names it, with the line.
    Compiled, it would write into other memory and train on in silence."""
    batch = None
    for role, bot in [("", None), *bots_elsewhere(game)]:
        until = time.monotonic() + seconds
        try:
            if batch is None:
                batch = make(game, 2, overrides=overrides, preset=preset, jit=False, checked=True)
            if bot is not None:
                for other in game.roles:
                    batch.set_controller(other.name, bot.name if other.name == role else "random")
                batch.reset()
            for _ in range(steps):
                if time.monotonic() > until:
                    break
                step_checked(batch, bot)
        except (NameError, TypeError, AttributeError, LookupError) as error:
            # such as a local name that was not set on this way: compiled, it has any value
            rule = traceback.extract_tb(error.__traceback__)[-1]
            fix = "; set it on every way" if isinstance(error, NameError) else ""
            raise RuleError(
                f"{game.name}: {rule.name} stops ({rule.filename}:{rule.lineno}): {error}{fix}"
            ) from None
        except (ArithmeticError, ValueError):
            # such as the root of -1: compiled rules go on with NaN or what is left, which other
            # checks are for
            continue


def bots_elsewhere(game: Game) -> list[tuple[str, Phase]]:
    """The bots that are not of Ludus, each with a role that it plays. Those of Ludus have tests."""
    return [
        (role, bot)
        for role, bots in game.bots.items()
        for bot in bots
        if not bot.function.__module__.startswith("ludus.")
    ]


def step_checked(batch: Batch, bot: Phase | None) -> None:
    """A step in which a bot must stay inside the action space. Rules trust their actions, so what
    a rule does with a wrong one is the bot's mistake."""
    try:
        batch.step()
    except RuleError:
        if bot is None or not wrong_action(batch):
            raise
    if bot is not None and (fault := wrong_action(batch)):
        code = bot.function.__code__
        raise RuleError(
            f"{batch.game.name}: the bot {bot.name} {fault} ({code.co_filename}:"
            f"{code.co_firstlineno})"
        )


def wrong_action(batch: Batch) -> str:
    """What is wrong with the actions in a batch; "": nothing."""
    layout = batch.layout
    inside = np.abs(batch.numpy("continuous")) <= 1.0 + 1e-6  # not of NaN
    for k in np.flatnonzero(~inside.all((0, 1))):
        return f"acts outside [-1, 1] in {layout.continuous[k]}"
    pressed = np.isin(batch.numpy("binary"), (0, 1))
    for k in np.flatnonzero(~pressed.all((0, 1))):
        return f"presses {layout.binary[k]} to neither 0 nor 1"
    choices = batch.numpy("choices")
    for i, (name, options) in enumerate(layout.choices.items()):
        wrong = choices[..., i][(choices[..., i] < 0) | (choices[..., i] >= len(options))]
        if wrong.size:
            return f"chooses option {wrong[0]} of {name}, which has 0 to {len(options) - 1}"
    return ""


# -- the checks: (game, device) --------------------------------------------------------------------


def check_shapes(game: Game, device: str) -> None:
    """Arrays have the declared shapes and types; the simulator holds the parameters it was
    given."""
    batch = make(game, 5, device=device)
    batch.check_received()
    for name, field in batch.layout.arrays.items():
        array = batch.numpy(name)
        assert array.shape == batch.layout.shape(name, 5), f"{name} has the shape {array.shape}"
        assert array.dtype == np.dtype(field.dtype), f"{name} has the type {array.dtype}"
    assert len(set(batch.layout.observation)) == len(batch.layout.observation), (
        "observation names repeat"
    )


def check_determinism(game: Game, device: str) -> None:
    """The same seed gives the same game; another seed another."""
    a, b, other = (
        make(game, device=device),
        make(game, device=device),
        make(game, device=device, seed=8),
    )
    differs = False
    for _ in range(60):
        for batch in (a, b, other):
            batch.step()
        differs |= not np.array_equal(a.numpy("observation"), other.numpy("observation"))
    assert_same(a, b, "two runs with one seed")
    assert differs, "two seeds gave the same observations"


def check_split(game: Game, device: str) -> None:
    """A batch and its two halves play the same games."""
    whole = make(game, 8, device=device)
    parts = [make(game, 3, device=device), make(game, 5, device=device, first_env=3)]
    for batch in (whole, *parts):
        run(batch, 60)
    for name, field in whole.layout.arrays.items():
        if not field.shared:
            joined = np.concatenate([p.numpy(name) for p in parts])
            assert np.array_equal(whole.numpy(name), joined, equal_nan=joined.dtype.kind == "f"), (
                f"{name} depends on the split"
            )


def check_threads(game: Game, device: str) -> None:
    """The number of CPU threads does not matter."""
    if device != "cpu":
        return
    one, two = make(game), make(game, threads=2)
    run(one, 60)
    run(two, 60)
    assert_same(one, two, "1 and 2 threads")


def check_lane_order(game: Game, device: str) -> None:
    """Lanes forward, reversed and shuffled give identical results; no index leaves its array
    (checked build)."""
    if device != "cpu":
        return
    orders = [make(game, checked=True, lane_order=order) for order in (REVERSED, SHUFFLED)]
    for batch in orders:
        run(batch, 100)
    forward = make(game)
    run(forward, 100)
    for batch in orders:
        assert_same(forward, batch, "lanes in another order")


def check_episodes(game: Game, device: str) -> None:
    """Reset rows, valid, terminated, truncated and dead mean what they should, in every row of
    several episodes."""
    batch = make(game, 32, device=device, stagger=True)
    names = (
        "finished",
        "alive",
        "idle",
        "step",
        "episode",
        "episode_return",
        "resetting",
        "valid",
        "reward",
        "agent_terminated",
        "agent_truncated",
    )
    before = {n: batch.numpy(n) for n in names}
    resets = 0
    for _ in range(int(batch.settings.params["max_steps"]) + 60):
        batch.step()
        now = {n: batch.numpy(n) for n in names}
        resetting, ended = now["resetting"], now["agent_terminated"] | now["agent_truncated"]
        resets += int(resetting.sum())
        assert np.array_equal(resetting, before["finished"]), (
            "a reset row must follow a finished row, and only it"
        )
        assert not now["valid"][resetting].any(), "a reset row must be invalid"
        assert not now["reward"][resetting].any() and not ended[resetting].any(), (
            "a reset row must carry no reward and no end"
        )
        assert (now["step"][resetting] == 0).all(), "step must be 0 in a reset row"
        assert (now["step"][~resetting] == before["step"][~resetting] + 1).all(), (
            "step must count up"
        )
        assert np.array_equal(now["episode"], before["episode"] + resetting), (
            "episode must count reset rows"
        )
        expected = before["alive"] & ~before["idle"] & ~resetting[:, None]
        assert np.array_equal(now["valid"], expected), (
            "valid must be: alive and not idle before the step, outside reset rows"
        )
        was_alive = before["alive"] & ~resetting[:, None]
        assert not now["reward"][~was_alive].any(), "the dead must earn nothing"
        assert not (now["alive"] & ~before["alive"])[~resetting].any(), (
            "the dead must stay dead until the reset"
        )
        assert not (now["agent_terminated"] & now["agent_truncated"]).any(), (
            "terminated and truncated exclude each other"
        )
        assert np.array_equal(ended, was_alive & (now["finished"][:, None] | ~now["alive"])), (
            "each living agent ends exactly once"
        )
        grown = np.where(resetting[:, None], 0.0, before["episode_return"] + now["reward"])
        assert np.allclose(now["episode_return"], grown, rtol=1e-4, atol=1e-4), (
            "episode_return must sum the rewards"
        )
        before = now
    assert resets >= 32, (
        f"only {resets} resets in {batch.settings.params['max_steps'] + 60} steps: does the game "
        "end at max_steps?"
    )


def check_parameters(game: Game, device: str) -> None:
    """New parameters take effect in an env's reset row and nowhere else."""
    batch = make(game, 16, device=device, stagger=True)
    for name, param in game.params.items():
        if name == "max_steps" or param.low == param.high:
            continue
        old = batch.numpy(name)
        new = param.low if old[0] != np.float32(param.low) else param.high
        try:
            game.resolve({name: new})
        except Exception:
            continue  # a combination the game itself refuses
        batch.set_params({name: new})
        before = batch.numpy("finished")
        assert np.array_equal(batch.numpy(name), old), f"{name} changed at once"
        batch.step()
        changed = batch.numpy(name) == np.float32(new)
        assert np.array_equal(changed, before), f"{name} must change in reset rows only"
        batch.set_params({name: old[0].item()})
        batch.reset()


def check_state(game: Game, device: str) -> None:
    """Saved and loaded, the simulator continues exactly; in another batch too, and without what
    setup filled in one of the same seed."""
    batch = make(game, device=device, stagger=True)
    run(batch, 30)
    saved, short = batch.state(), batch.state(setup=False)
    run(batch, 80)
    for other, state in (
        (Batch(game, 16, device=device, seed=99), saved),
        (make(game, device=device), short),
    ):
        other.load_state(state)
        run(other, 80)
        assert_same(batch, other, "continued from a saved state")


def check_long_run(game: Game, device: str) -> None:
    """10,000 random steps: everything stays finite, observations stay in scale, reward terms stay
    within their bounds."""
    batch = make(game, 8, device=device)
    names: dict[str, float] = {**batch.layout.sizes, **batch.settings.params}
    bounds = [
        (evaluate(t.least, names), evaluate(t.most or 0, names)) for t in game.rewards.values()
    ]
    low, high = np.array([b[0] for b in bounds]), np.array([b[1] for b in bounds])
    for i in range(10_000):
        batch.step()
        if i % 50 == 0 or i < 300:
            check_values(batch, low, high)


def check_values(batch: Batch, low: np.ndarray, high: np.ndarray) -> None:
    for name in batch.arrays:
        array = batch.numpy(name)
        if array.dtype.kind == "f":
            assert np.isfinite(array).all(), f"{name} is not finite"
    largest = np.abs(batch.numpy("observation")).max((0, 1))
    for name, value in zip(batch.layout.observation, largest, strict=True):
        assert value <= OBSERVATION_LIMIT, (
            f"observation entry {name} reached {value:.1f}: scale it to about [-1, 1]"
        )
    totals = batch.numpy("term_totals")
    for i, name in enumerate(batch.layout.terms):
        slack = 1e-3 * (1 + max(abs(low[i]), abs(high[i])))
        lowest, highest = totals[..., i].min(), totals[..., i].max()
        assert low[i] - slack <= lowest and highest <= high[i] + slack, (
            f"reward term {name} adds up to {lowest:.3f} … {highest:.3f} in an episode; declared "
            f"are {low[i]} to {high[i]}"
        )
    assert np.isin(batch.numpy("outcome"), (-1, 0, 1)).all(), "outcome must be -1, 0 or 1"
    for i, (name, goal) in enumerate(batch.game.goal_metrics.items()):
        lowest, highest = batch.numpy("goals")[..., i].min(), batch.numpy("goals")[..., i].max()
        assert not goal.share or -1e-3 < lowest <= highest < 1 + 1e-3, (
            f"goal metric {name} is {lowest:.3f} … {highest:.3f}: no share"
        )


def check_bots(game: Game, device: str) -> None:
    """Every bot of every role plays without leaving the action space or breaking a bound."""
    for role in game.roles:
        for bot in ("still", "random", *(b.name for b in game.bots.get(role.name, ()))):
            batch = make(game, 8, device=device)
            batch.set_controller(role.name, bot)
            batch.reset()
            run(batch, 150)
            assert np.isfinite(batch.numpy("observation")).all(), (
                f"bot {bot} leads to observations that are not finite"
            )
            fault = wrong_action(batch)
            assert not fault, f"bot {bot} {fault}"


def check_interpreted(game: Game, device: str) -> None:
    """Compiled and plain Python agree, step by step from a shared state."""
    if device == "cpu":
        compare(make(game, 6, stagger=True), make(game, 6, stagger=True, jit=False), 40)


def check_cuda(game: Game, device: str) -> None:
    """CUDA and CPU agree, step by step from a shared state."""
    if device == "cuda":
        compare(make(game, 64, stagger=True), make(game, 64, stagger=True, device="cuda"), 100)


def compare(reference: Batch, other: Batch, steps: int) -> None:
    """Floats within a tolerance, everything else equal, except in the few envs where rounding
    decides a threshold."""
    for name, field in reference.layout.arrays.items():
        if field.shared:  # what setup filled; load_state would overwrite it
            same = np.isclose(
                reference.numpy(name), other.numpy(name), rtol=FLOAT_TOLERANCE, atol=FLOAT_TOLERANCE
            )
            assert same.size == 0 or same.mean() >= 0.995, (
                f"the shared field '{name}' was set up differently"
            )
    rows = off = 0
    worst = ""
    for _ in range(steps):
        state = reference.state()
        other.load_state(state)
        reference.step()
        other.step()
        a, b = reference.state(), other.state()
        wrong = np.zeros(reference.num_envs, bool)
        for name in a:
            if reference.layout.arrays[name].shared:
                continue
            if a[name].dtype.kind == "f":
                same = np.isclose(
                    a[name], b[name], rtol=FLOAT_TOLERANCE, atol=FLOAT_TOLERANCE, equal_nan=True
                )
            else:
                same = a[name] == b[name]
            bad = ~same.reshape(reference.num_envs, -1).all(1)
            if bad.any() and not wrong.any():
                worst = name
            wrong |= bad
        rows, off = rows + reference.num_envs, off + int(wrong.sum())
    assert off <= 0.005 * rows, f"{off} of {rows} env-steps differ, the last in the field '{worst}'"


CHECKS: list[Callable[[Game, str], None]] = [
    check_lane_order,  # first: what leaves its array may break anything
    check_shapes,
    check_determinism,
    check_split,
    check_threads,
    check_episodes,
    check_parameters,
    check_state,
    check_long_run,
    check_bots,
    check_interpreted,
    check_cuda,
]
