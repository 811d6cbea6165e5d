"""ludus train"""

from __future__ import annotations

from ludus.commands.options import parse_config
from ludus.commands.summary import report
from ludus.errors import LudusError
from ludus.recipes import RECIPES, load_recipe

SUMMARY = (
    "Trains a recipe: a name or NAME:PRESET; a module:function of your own that returns a Config "
    "or an env; an env of another library "
    "(gym:ID, pettingzoo:MODULE); or one in a browser or an engine (remote:PORT)."
)
EXAMPLE = "ludus train pursuit --train.total-agent-steps 3000000 --game.speed 0.12 --seed 3"


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0].startswith("-"):
        if arguments and arguments[0] in ("-h", "--help"):
            arguments = ["pursuit", *arguments]
            print(
                f"usage: ludus train RECIPE [options]   recipes: {', '.join(RECIPES)}\nThe options "
                "below are those of pursuit.\n"
            )
        else:
            raise LudusError(
                f"'ludus train' needs a recipe first: one of {', '.join(RECIPES)}, gym:ID or "
                "module:function"
            )
    recipe = load_recipe(arguments[0])
    config, origins, options = parse_config(
        recipe, arguments[1:], f"train {arguments[0]}", EXAMPLE, SUMMARY
    )
    options.believe(*config.league.opponents)
    from ludus.training import start

    run = start.train(
        config,
        origins,
        options.run,
        name=arguments[0],
        quiet=options.quiet or options.json,
        init_from=options.init_from,
        init_modules=options.init_modules,
    )
    return report(run, options.json, options.full)
