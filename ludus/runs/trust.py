"""Whose run may choose code.

A run folder names its game, and may name an algorithm, a network, callbacks and more of the user's
own: loading them executes them. What Ludus has itself is safe to load, whoever trained with it.
Anything else (a module, an env of another library, an env elsewhere) is loaded if the run was made
by this user on this machine, or if the user says so: --trust. A mark in config.json proves the
former: nobody else can make it, and it holds for the code where it was then. Whoever copies the
mark of a run that was given away cannot bring code of his own.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
import sys
from collections.abc import Mapping
from importlib.machinery import PathFinder
from pathlib import Path
from typing import NoReturn

from ludus.config import Config, own_code
from ludus.errors import LudusError
from ludus.files import inside_of
from ludus.games import is_ours

_trusted: set[Path] = set()  # folders, in this process


def believe(folder: str | Path) -> None:
    """The user trusts this run; or this process has made it."""
    _trusted.add(Path(folder).resolve())


def is_trusted(folder: Path) -> bool:
    """Does the user trust what is in this folder?"""
    return folder.resolve() in _trusted


def named_code(config: Config, plays: bool = True) -> dict[str, str]:
    """What a run would import that is not of Ludus: its name → what it is. `plays`: with the game
    and all that training and evaluation need; else only what a policy is made of."""
    if not plays:
        needed = (config.algorithm, config.policy.network)
        return {name: kind for name, kind in own_code(config).items() if name in needed}
    game = {} if is_ours(config.game) else {config.game: "game"}
    return {**game, **own_code(config)}


def require(folder: Path, config: Config, mark: object, plays: bool = True) -> None:
    """Refuses a run that names somebody else's code, of which so much is needed now."""
    needed = named_code(config, plays)
    if not needed or is_trusted(folder) or _made_here(config, mark):
        return
    for name, kind in needed.items():
        if kind != "game" and not _code_of(name):
            raise LudusError(
                f"{folder} uses the {kind} '{name[:80]}', and there is no module "
                f"'{name.partition(':')[0][:80]}' in this folder ({os.getcwd()}) or installed: run "
                "this where it is"
            )
    refuse(folder, needed)


def _made_here(config: Config, mark: object) -> bool:
    ours = _mark(named_code(config), create=False)
    return (
        ours is not None
        and isinstance(mark, str)
        and hmac.compare_digest(ours.encode(), mark.encode())
    )


def refuse(folder: Path, named: Mapping[str, str]) -> NoReturn:
    listed = ", ".join(f"the {kind} '{name[:80]}'" for name, kind in named.items())
    raise LudusError(
        f"{folder} uses {listed}, which Ludus does not have itself: loading that executes its "
        "code, and this run was not made here, or its code is elsewhere now; if you know where "
        "both are from, add --trust (in Python: trust=True)"
    )


def refuse_links(folder: Path) -> None:
    """Work on a run writes and deletes files in its folder: a link in somebody's folder would aim
    that elsewhere."""
    root = folder.resolve()
    if root in _trusted:
        return
    for above, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(above, name)
            if path.is_symlink() and not inside_of(path, root):
                raise LudusError(
                    f"{folder / path.relative_to(root)} is a link to {os.readlink(path)}, outside "
                    "of the run, and would be written to: remove it, or add --trust if it is your "
                    "own"
                )


def mark(config: Config) -> str | None:
    """What config.json of a run made here says; None where no secret can be kept."""
    return _mark(named_code(config), create=True)


def _mark(named: Mapping[str, str], create: bool) -> str | None:
    secret = _secret(create)
    signed = "\n".join(f"{name}\n{_code_of(name)}" for name in sorted(named)).encode()
    return hmac.new(secret, signed, hashlib.sha256).hexdigest() if secret else None


def _code_of(name: str) -> str:
    """The file that the module of a name would be loaded from; nothing is executed."""
    kind, _, rest = name.partition(":")
    path = rest if kind in ("env", "gym", "pettingzoo") else name
    module = path.split(":")[0].split(".")[0]
    if not module.isidentifier():
        return ""
    # as ludus.imports looks for it
    here = [os.getcwd()] if os.getcwd() not in sys.path and "" not in sys.path else []
    try:
        found = PathFinder.find_spec(module, [*here, *sys.path])
    except (ImportError, ValueError, OSError):
        return ""
    if found is None:
        return ""
    places = [found.origin] if found.origin else list(found.submodule_search_locations or ())
    return "\n".join(os.path.realpath(place) for place in places)


def secret_file() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "ludus" / "secret"


def _secret(create: bool) -> bytes | None:
    """This user's on this machine."""
    path = secret_file()
    with contextlib.suppress(OSError, RuntimeError):
        if create and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_name(f"secret.{os.getpid()}.tmp")
            with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(secrets.token_bytes(32))
            with contextlib.suppress(FileExistsError):
                os.link(partial, path)  # two processes that begin at once have one secret
            partial.unlink()
        found = path.read_bytes()
        return found if len(found) == 32 else None
    return None
