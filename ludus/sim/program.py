"""One step of a game as a list of calls, the same for every backend: compiled CPU loops, CUDA
kernels, plain Python."""

from __future__ import annotations

from dataclasses import dataclass

from ludus.imports import is_path
from ludus.sim import episode
from ludus.sim.game import Game, Phase


@dataclass(frozen=True)
class Call:
    """A phase and the envs it runs for: every env, those in a normal step, or those in their reset
    row."""

    phase: Phase
    when: str  # "always", "step" or "reset"
    controller: int | None = None
    """For a bot: the value of `controller` of the agents it acts for."""


@dataclass(frozen=True)
class Program:
    game: str
    calls: tuple[Call, ...]

    @property
    def phases(self) -> list[Phase]:
        return list(dict.fromkeys(call.phase for call in self.calls))

    @property
    def arguments(self) -> list[str]:
        """Every field and size that a call needs, and those the drivers look at themselves."""
        names = {name for call in self.calls for name in call.phase.fields}
        return sorted(
            names
            | {
                "resetting",
                "controller",
                "alive",
                *(lane for c in self.calls for lane in c.phase.lanes),
            }
        )


def controllers(game: Game) -> dict[str, dict[str, int]]:
    """role → bot name → the value of `controller` that hands an agent of that role to the bot."""
    table = {r.name: {"still": episode.STILL, "random": episode.RANDOM} for r in game.roles}
    numbers: dict[Phase, int] = {}
    # the game's first: bots of the user's own do not change their numbers, which replays hold
    for own in (False, True):
        for role in table:
            for bot in game.bots.get(role, ()):
                if is_path(bot.name) is own:
                    number = numbers.setdefault(bot, episode.FIRST_BOT + len(numbers))
                    table[role][bot.name] = number
    return table


def assemble_setup(game: Game) -> Program:
    """What fills the shared fields."""
    return Program(f"{game.name}-setup", tuple(Call(p, "always") for p in game.setup))


def assemble(game: Game) -> Program:
    """The engine's own phases around the rules. What step and reset end with in common runs once,
    for every env."""
    step, reset = list(game.step), list(game.reset)
    common: list[Phase] = []
    while step and reset and step[-1] is reset[-1]:
        common.insert(0, step.pop())
        reset.pop()

    bots: dict[Phase, int] = {episode.still: episode.STILL, episode.random_bot: episode.RANDOM}
    for role, numbers in controllers(game).items():
        bots.update({bot: numbers[bot.name] for bot in game.bots.get(role, ())})

    calls = [
        Call(episode.begin_env, "always"),
        Call(episode.draw_lineup, "reset"),
        Call(episode.begin_agent, "always"),
    ]
    calls += [Call(bot, "step", number) for bot, number in bots.items()]
    calls += [Call(p, "step") for p in step]
    calls += [Call(p, "reset") for p in reset]
    calls += [Call(p, "always") for p in common]
    calls += [Call(p, "always") for p in (episode.end_env, episode.end_agent)]
    counting = (episode.count_agent, episode.count_lineup, episode.count_task, episode.count_env)
    calls += [Call(p, "always") for p in counting]
    return Program(game.name, tuple(calls))
