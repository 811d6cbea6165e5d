"""ludus recipes"""

from __future__ import annotations

import json
from dataclasses import dataclass

from ludus.commands.parsing import parse
from ludus.config import flatten
from ludus.recipes import RECIPES, load_recipe


@dataclass(kw_only=True)
class Recipes:
    """Lists the recipes that `ludus train` knows."""

    json: bool = False
    """Print JSON, with every value of every recipe."""


def main(arguments: list[str]) -> int:
    options = parse(Recipes, arguments, "recipes", "ludus recipes")
    made = {name: load_recipe(name) for name in RECIPES}
    if options.json:
        print(json.dumps({"recipes": {name: flatten(config) for name, config in made.items()}}))
        return 0
    width = max(map(len, made))
    for name, config in made.items():
        steps = config.train.total_agent_steps
        budget = f"{steps:,} agent-steps" if steps else f"{config.train.total_seconds:g} s"
        network = "x".join(map(str, config.policy.hidden)) + (
            "" if config.policy.memory == "none" else f" + {config.policy.memory}"
        )
        print(
            f"{name:<{width}}  {config.game}, {config.envs} envs, {network}, {budget}, "
            f"{config.device}"
        )
    print(
        "\nAlso: NAME:PRESET (ludus games), gym:ID, pettingzoo:MODULE, remote:PORT, and "
        "module:function of your own."
    )
    return 0
