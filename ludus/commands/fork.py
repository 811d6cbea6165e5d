"""ludus fork"""

from __future__ import annotations

from ludus.commands.options import given_value, parse_config, spell_flags_out
from ludus.commands.summary import report
from ludus.errors import LudusError
from ludus.runs.run import split_reference
from ludus.runs.trust import believe

SUMMARY = (
    "Starts a new run from another's checkpoint (RUN, RUN@STEP or RUN@best), with any "
    "setting changed."
)
EXAMPLE = "ludus fork runs/pursuit-1@best --ppo.entropy 0.02 --run runs/more-entropy"


def main(arguments: list[str]) -> int:
    from ludus.training.start import fork, forkable

    if arguments and arguments[0] in ("-h", "--help"):
        print(
            f"usage: ludus fork RUN [options]\n\n{SUMMARY}\n\nExample: {EXAMPLE}\n\nOptions: as "
            "`ludus train RECIPE --help`."
        )
        return 0
    if not arguments or arguments[0].startswith("-"):
        raise LudusError("'ludus fork' needs a run first: ludus fork RUN [--section.key value …]")
    # needed before the rest is parsed: which options there are depends on the run's game
    if given_value(spell_flags_out(arguments), "--trust") == "True":
        believe(split_reference(arguments[0])[0])
    base = forkable(arguments[0])
    config, origins, options = parse_config(
        base, arguments[1:], f"fork {arguments[0]}", EXAMPLE, SUMMARY
    )
    if options.init_from:
        raise LudusError(
            f"a fork starts from its own run, not from {options.init_from}: use `ludus train "
            f"RECIPE --init-from {options.init_from}`"
        )
    options.believe(*config.league.opponents)
    run = fork(arguments[0], config, origins, options.run, quiet=options.quiet or options.json)
    return report(run, options.json, options.full)
