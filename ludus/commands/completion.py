"""ludus completion"""

from __future__ import annotations

from ludus.commands import COMMANDS
from ludus.errors import LudusError
from ludus.games import REGISTRY
from ludus.recipes import RECIPES

USAGE = """usage: ludus completion bash|zsh

Prints a script that completes commands, recipes, games and run folders.

Example: ludus completion bash > ~/.local/share/bash-completion/completions/ludus
"""

BASH = r"""_ludus() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
    local command="${{COMP_WORDS[1]}}"
    local runs="$(compgen -d runs/ 2>/dev/null)"
    if [ "$COMP_CWORD" -eq 1 ]; then COMPREPLY=($(compgen -W "{first}" -- "$word"))
    elif [ "$before" = bench ]; then COMPREPLY=($(compgen -W "{second}" -- "$word"))
    elif [ "$before" = --device ]; then COMPREPLY=($(compgen -W "cpu cuda" -- "$word"))
    elif [ "$before" = --preset ]; then COMPREPLY=($(compgen -W "fast stable" -- "$word"))
    elif [ "$before" = --game ] || {{ [ "$command" = games ] && [ "$COMP_CWORD" -eq 2 ]; }}; then
        COMPREPLY=($(compgen -W "{games}" -- "$word"))
    elif [ "$before" = --recipe ] || {{ [ "$command" = train ] && [ "$COMP_CWORD" -eq 2 ]; }}; then
        COMPREPLY=($(compgen -W "{recipes}" -- "$word"))
    elif [ "$COMP_CWORD" -eq 2 ]; then COMPREPLY=($(compgen -W "$runs" -- "$word"))
    else COMPREPLY=($(compgen -f -- "$word")); fi
}}
complete -F _ludus ludus
"""


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, end="")
        return 0
    if arguments[0] not in ("bash", "zsh"):
        raise LudusError(f"no completion for '{arguments[0]}': there is bash and zsh")
    first = " ".join(dict.fromkeys(name.split()[0] for name in COMMANDS))
    second = " ".join(name.split()[1] for name in COMMANDS if name.startswith("bench "))
    script = BASH.format(
        first=first, second=second, games=" ".join(REGISTRY), recipes=" ".join(RECIPES)
    )
    if arguments[0] == "zsh":
        script = "autoload -U +X bashcompinit && bashcompinit\n" + script
    print(script, end="")
    return 0
