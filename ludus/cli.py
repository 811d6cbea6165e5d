"""The command line: finds the command, turns errors into one sentence. Commands are imported only
when they run."""

from __future__ import annotations

import contextlib
import importlib
import signal
import sys
from collections.abc import Callable, Iterator, Sequence

from ludus import __version__
from ludus.commands import COMMANDS
from ludus.errors import LudusError, disk_in_one_sentence, nearest
from ludus.machine import free_text, is_out_of_memory

HELP = """usage: ludus COMMAND …    (ludus COMMAND --help: options and an example)

Ludus trains agents to play games against each other, fast, and says why when they do not learn.

"""


def main(argv: list[str] | None = None) -> None:
    """Exits with 0; 1: it ran and the answer is no; 2: impossible, with one sentence about why; 3:
    a training was asked to stop and can be resumed; 128 + N: ended at once by signal N (130:
    Ctrl-C, 143: SIGTERM)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        with ending_on_signals(), disk_in_one_sentence():
            command, rest = find(arguments)
            status = int(command(rest) or 0)
    except LudusError as error:
        status = _say(str(error), 2)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        status = _say(
            f"out of memory{free_text()}: lower --envs, or the algorithm's setting of how much is "
            "kept (rollout, replay)",
            2,
        )
    except KeyboardInterrupt as ended:
        number = ended.args[0] if ended.args else signal.SIGINT
        status = _say("interrupted", 128 + int(number))
    except BrokenPipeError:  # the reader of a pipe went away
        sys.stderr.close()
        status = 0
    sys.exit(status)


def _say(text: str, status: int) -> int:
    with contextlib.suppress(OSError):  # the terminal may have gone away
        print(f"ludus: {text}", file=sys.stderr, flush=True)
    return status


@contextlib.contextmanager
def ending_on_signals() -> Iterator[None]:
    """SIGTERM and a terminal that goes away end a command as Ctrl-C does, so that it can clean up.
    What is ignored stays so."""

    def end(number: int, frame: object) -> None:
        raise KeyboardInterrupt(number)

    numbers = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) == signal.SIG_DFL]
    try:
        for number in numbers:
            signal.signal(number, end)
    except ValueError:  # not in the main thread: whoever started us handles signals
        numbers = []
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def find(arguments: Sequence[str]) -> tuple[Callable[[list[str]], int | None], list[str]]:
    """The function of the command that is named, and the arguments that are left for it."""
    if not arguments or arguments[0] in ("-h", "--help"):
        return print_help, []
    if arguments[0] == "--version":
        return print_version, []
    for words in (2, 1):
        name = " ".join(arguments[:words])
        if name in COMMANDS:
            module = importlib.import_module(COMMANDS[name][0])
            return module.main, list(arguments[words:])
    pair = [name for name in COMMANDS if name.split()[0] == arguments[0]]
    if pair:
        raise LudusError(
            f"'ludus {arguments[0]}' needs one of: {', '.join(name.split()[1] for name in pair)}"
        )
    raise LudusError(f"unknown command '{arguments[0]}': {nearest(arguments[0], COMMANDS)}")


def print_help(_: list[str]) -> None:
    width = max(map(len, COMMANDS))
    print(HELP + "\n".join(f"  {name:<{width}}  {text}" for name, (_, text) in COMMANDS.items()))


def print_version(_: list[str]) -> None:
    print(f"ludus {__version__}")
