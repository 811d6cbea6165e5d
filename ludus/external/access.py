"""Who may join a training as a remote env: who knows its token, at an address of this machine, from
a page of this machine.

A web page of anybody can open a WebSocket to localhost, but it cannot choose its Host and Origin,
and does not know the token.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import secrets
import socket
from collections.abc import Sequence
from urllib.parse import parse_qs, urlsplit

from ludus.errors import LudusError

TOKEN_VARIABLE = "LUDUS_TOKEN"
TOKEN_FORM = re.compile(r"[A-Za-z0-9_-]{16,128}")
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
EVERYWHERE = ("0.0.0.0", "::")


def choose_token() -> str:
    """A new one for every start, or the one that the user sets for all."""
    given = os.environ.get(TOKEN_VARIABLE, "")
    if not given:
        return secrets.token_urlsafe(16)
    if not TOKEN_FORM.fullmatch(given):
        raise LudusError(
            f"{TOKEN_VARIABLE} has {len(given)} characters: use 16 to 128 letters, digits, - and "
            "_, or leave it out for a new one"
        )
    return given


class Access:
    """The rules of one server. `host` is what it listens on."""

    def __init__(self, host: str, token: str) -> None:
        self.host, self.token = host, token

    @property
    def beyond_this_machine(self) -> bool:
        return self.host not in LOOPBACK

    def reachable_name(self) -> str:
        """A name or number by which clients reach the server."""
        if self.host in EVERYWHERE:
            return _own_address()
        return self.host if self.beyond_this_machine else "localhost"

    def fault_of_headers(self, hosts: Sequence[str], origins: Sequence[str]) -> str | None:
        """Why a request may not be answered, by its Host and Origin headers. Ports are not
        compared: tunnels change them."""
        name = _name_of(f"//{hosts[0]}") if len(hosts) == 1 else None
        if name is None or not self._is_own(name):
            return (
                "the Host that it asked for is not this machine: use the address that `ludus "
                "train` printed"
            )
        if any(_name_of(origin) not in (LOOPBACK | {name}) for origin in origins):
            return (
                "pages of other sites may not connect: open the game from this machine, such as "
                "http://localhost:8000/"
            )
        return None

    def fault_of_token(self, path: str) -> str | None:
        """Why a client may not join, by the address that it asked for."""
        try:
            given = parse_qs(path.partition("?")[2], max_num_fields=16).get("token", [])
        except ValueError:
            given = []
        if len(given) != 1:
            return (
                "the token is missing: use the address that `ludus train` printed, with "
                "?token=… at its end"
            )
        if not secrets.compare_digest(given[0].encode(errors="replace"), self.token.encode()):
            every = f"new at each start, unless {TOKEN_VARIABLE} is set"
            return f"the token is wrong: use the address that `ludus train` printed ({every})"
        return None

    def _is_own(self, name: str) -> bool:
        """Can only this machine be meant? A site that points its own name here (DNS rebinding)
        still says its own name."""
        if name in LOOPBACK:
            return True
        if not self.beyond_this_machine:
            return False
        own = socket.gethostname().lower()
        if name in (self.host.lower(), own, own.partition(".")[0], f"{own}.local"):
            return True
        with contextlib.suppress(ValueError):
            return bool(ipaddress.ip_address(name))
        return False


def _name_of(address: str) -> str | None:
    """The host of //HOST:PORT or http://HOST:PORT; None where that is not what it is ("null",
    say)."""
    try:
        parts = urlsplit(address)
        plain = (
            parts.scheme in ("", "http", "https")
            and "@" not in parts.netloc
            and not (parts.path or parts.query)
        )
        return parts.hostname if plain else None
    except ValueError:
        return None


def _own_address() -> str:
    """This machine's address in its network; nothing is sent to find out."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # an address that nobody has
        return str(probe.getsockname()[0])
    return socket.gethostname()
