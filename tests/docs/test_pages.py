"""Every example of README.md and docs/ works: Python runs, commands are understood, and what is
meant to learn does.

A block whose first line names a file ("# mine.py") is that file. "python from PATH" is an excerpt,
and has to be in that file. Every other Python block runs, after those above it on its page;
trainings and evaluations get tiny budgets here.
"""

import importlib
import sys
from pathlib import Path

import pytest
import tyro

import ludus
from ludus import cli
from ludus.batches import FOREIGN
from ludus.commands import COMMANDS
from ludus.commands import options as of_config
from ludus.commands.options import given_value
from ludus.config import Config
from ludus.games import load_game
from ludus.recipes import load_recipe
from ludus.registry import ALGORITHMS
from tests.docs.pages import PAGES, ROOT, Example, commands, python_blocks

TINY = {
    "envs": 8,
    "total_agent_steps": 1500,
    "game.max_steps": 20,
    "eval.episodes": 2,
    "eval.greedy": False,
    "train.threads": 1,
    "log.tensorboard": False,
    "log.diagnostics_every": 0,
    "quiet": True,
}
PARSE = tyro.cli
GAME_KEYS = ("--game.", "--ppo.roles.", "--curriculum.tasks.vary.")
NAMES = {*COMMANDS, *(name.split()[0] for name in COMMANDS)}
with_python = [page for page in PAGES if python_blocks(page)]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def file_of(block: Example) -> str:
    """The file that a block is, or ""."""
    first = block.text.split("\n", 1)[0]
    return first.removeprefix("# ") if first.startswith("# ") and first.endswith(".py") else ""


def write_files(folder: Path, pages=PAGES) -> list[str]:
    """The files that pages show; returns the names of their modules."""
    files = {
        name: block for page in pages for block in python_blocks(page) if (name := file_of(block))
    }
    for name, block in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(block.text)
    return [name.removesuffix(".py").replace("/", ".") for name in files]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where a reader works: an empty folder, from which modules are imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    monkeypatch.syspath_prepend(str(ROOT))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


# -- Python ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", with_python, ids=name_of)
def test_python_runs(page, folder, monkeypatch):
    train, evaluate = ludus.train, ludus.evaluate

    def briefly(recipe, **given):
        # envs of other libraries have no game values
        ours = isinstance(recipe, str) and not recipe.startswith(FOREIGN)
        return train(
            recipe,
            **{
                **given,
                **{
                    name: value
                    for name, value in TINY.items()
                    if ours or not name.startswith("game.")
                },
            },
        )

    monkeypatch.setattr(ludus, "train", briefly, raising=False)
    monkeypatch.setattr(
        ludus,
        "evaluate",
        lambda run, *a, **given: evaluate(run, *a, **{**given, "episodes": 2}),
        raising=False,
    )
    # games that only this page would compile
    monkeypatch.setenv("LUDUS_JIT", "0" if "other-libraries" in page.name else "1")
    for module in write_files(folder, [page]):
        importlib.import_module(module)
    names: dict[str, object] = {}
    for block in python_blocks(page):
        if block.info.startswith("python from "):
            source = (ROOT / block.info.removeprefix("python from ")).read_text()
            assert all(part.strip() in source for part in block.text.split("\n\n\n")), (
                f"{block}: not what is in the file"
            )
        elif not file_of(block):
            exec(compile("\n" * block.line + block.text, str(page), "exec"), names)


# -- commands --------------------------------------------------------------------------------------


class Understood(Exception):
    """A command's own parser has taken it. `recipe` and `arguments`: what is left to be parsed as
    settings."""

    def __init__(self, recipe=None, arguments=()):
        self.recipe, self.arguments = recipe, list(arguments)


@pytest.fixture
def stop_when_understood(folder, monkeypatch):
    parse = tyro.cli

    def parsed(kind, **given):
        found = parse(kind, **given)
        if kind.__name__ == "Check":
            return found
        for name in [
            v
            for v in (getattr(found, n, None) for n in ("game", "a", "b"))
            if isinstance(v, str) and "runs/" not in v
        ]:
            if not name.startswith(("gym:", "pettingzoo:", "env:")):
                load_game(name)
        raise Understood

    def settings(recipe, arguments, *_):
        raise Understood(recipe, arguments)

    def understood(*_, **__):
        raise Understood

    monkeypatch.setattr(tyro, "cli", parsed)
    for module in {name for name, _ in COMMANDS.values()}:
        command = importlib.import_module(module)
        if hasattr(command, "parse_config"):
            monkeypatch.setattr(command, "parse_config", settings)
    monkeypatch.setattr("ludus.training.start.forkable", lambda run: load_recipe("pursuit"))
    for name in (
        "ludus.examine.check.check_config",
        "ludus.examine.audit_game.audit_config",
        "ludus.commands.doctor_check.read_reward",
    ):
        monkeypatch.setattr(name, understood)
    write_files(folder)
    (folder / "my_module.py").write_text(
        "import gymnasium\n\n\ndef make_env():\n    return gymnasium.make('CartPole-v1')\n"
    )


def test_commands_are_understood(stop_when_understood, capsys, monkeypatch):
    """By the parser of each. Settings are parsed together, those of the same game and algorithm at
    a time: a parser takes a while to make."""
    settings: dict[tuple, tuple[Config, list[tuple[Example, list[str]]]]] = {}
    wrong, count = [], 0
    for example, words in (found for page in PAGES for found in commands(page)):
        count += 1
        if example.text.removeprefix("ludus ") in NAMES:
            continue  # a sentence about the command
        try:
            command, rest = cli.find(words)
            assert not command(rest)
        except Understood as rest:
            if rest.arguments and "--help" not in rest.arguments:
                recipe = (
                    rest.recipe
                    if any(a.startswith(GAME_KEYS) for a in rest.arguments)
                    else load_recipe("pursuit")
                )
                given = [
                    given_value(rest.arguments, name)
                    for name in ("--algorithm", "--policy.network")
                ]
                by_section = [n for n in ALGORITHMS if f"--{n}." in " ".join(rest.arguments)]
                recipe.choose_algorithm(given[0] or next(iter(by_section), rest.recipe.algorithm))
                recipe.policy.choose_network(given[1] or rest.recipe.policy.network)
                alike = (recipe.game, recipe.algorithm, recipe.policy.network)
                settings.setdefault(alike, (recipe, []))[1].append((example, rest.arguments))
        except (Exception, SystemExit) as error:
            wrong.append(
                f"{example}: {example.text}\n  {words}\n  {error!r}\n{capsys.readouterr().err}"
            )
    monkeypatch.setattr(tyro, "cli", PARSE)
    for recipe, examples in settings.values():
        try:
            of_config.parse_config(
                recipe, [a for _, arguments in examples for a in arguments], "train", "", ""
            )
        except (Exception, SystemExit) as error:
            told = "\n  ".join(f"{example}: {example.text}" for example, _ in examples)
            wrong.append(f"one of these:\n  {told}\n{error!r}\n{capsys.readouterr().err}")
    assert not wrong, "\n".join(wrong)
    assert count > 100


# -- learning --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "against", "metric", "at_random", "least"),
    [
        ("train_apples:first", "self", "apples", 1.0, 6.0),
        ("mine:quick", "bot:flee", "catch_rate", 0.03, 0.2),
    ],
)
def test_what_is_meant_to_learn_learns(recipe, against, metric, at_random, least, folder):
    """Three seeds, each surely better than `least`; untrained they are surely worse than
    `at_random`."""
    write_files(folder)
    for seed in range(3):
        run = ludus.train(
            recipe, run=folder / str(seed), seed=seed, quiet=True, **{"train.threads": 1}
        )
        before, after = (
            ludus.evaluate(f"{run.path}{at}", against=against, episodes=256)["metrics"][metric]
            for at in ("@0", "")
        )
        assert before["high"] < at_random and after["low"] > least
