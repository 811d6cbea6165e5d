"""The door for remote envs: a WebSocket server in this process, one per address, that clients come to and leave as they like.

It also serves the JavaScript client and a demo page over HTTP, so that a browser needs nothing else.
"""

from __future__ import annotations

import contextlib
import importlib.util
import queue
import sys
import threading
from pathlib import Path
from typing import Any

from ludus.envs.wire import PROTOCOL, Fault, Hello, read_hello, write
from ludus.errors import LudusError
from ludus.training import devices

HELLO_SECONDS = 10.0
WAIT_SECONDS = 300.0
MOST_BYTES = 32 * 2**20
PAGES = {"/": ("catch.html", "text/html"), "/ludus.js": ("ludus.js", "text/javascript")}


class Client:
    """A connection that said hello. Messages wait in `inbox`; None in it means that the client is gone, for `cause`."""

    def __init__(self, connection: Any, hello: Hello) -> None:
        self.connection, self.hello = connection, hello
        self.inbox: queue.Queue[Any] = queue.Queue()
        self.gone = False
        self.cause = "it disconnected"
        self.memory_mb: float | None = None

    def send(self, message: str) -> None:
        with contextlib.suppress(Exception):  # a connection that is gone is noticed when its answer is awaited
            self.connection.send(message)

    def dismiss(self, cause: str) -> None:
        """Ends the connection, without waiting for the client to agree."""
        if not self.gone:
            self.gone, self.cause = True, cause
            self.send(write("refused", reason=cause))
            threading.Thread(target=self.connection.close, daemon=True).start()


class Gate:
    """Use `Gate.at(address)`: batches of the same run (training, evaluation) share their clients."""

    _open: dict[str, Gate] = {}  # noqa: RUF012 (one per address and process)

    @classmethod
    def at(cls, address: str) -> Gate:
        if address not in cls._open:
            cls._open[address] = cls(address)
        return cls._open[address]

    def __init__(self, address: str) -> None:
        if importlib.util.find_spec("websockets") is None:
            raise LudusError("remote envs need the package websockets: pip install 'ludus[remote]'")
        from websockets.sync.server import serve

        self.address = address
        host, _, port = address.rpartition(":")
        if not port.isdigit() or not 0 <= int(port) < 65536:
            raise LudusError(f"remote:{address} names no port: use a number from 1 to 65535, such as remote:8770")
        self.clients: list[Client] = []
        self.first: Hello | None = None
        self.owner: Any = None  # the batch that plays with the clients now
        self.news: list[str] = []
        self.changed = threading.Condition()
        try:
            self.server = serve(
                self._welcome, host or "127.0.0.1", int(port), max_size=MOST_BYTES, close_timeout=1, compression=None,
                process_request=_page,
            )  # fmt: skip
        except OSError as error:
            raise LudusError(f"remote:{address} cannot listen: {error.strerror}; is another run using the port?") from None
        devices.measured_elsewhere["memory/client_mb"] = self.memory_mb
        self.port = int(self.server.socket.getsockname()[1])
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        for client in self.clients:
            client.dismiss("the run is over")
        self.server.shutdown()
        Gate._open.pop(self.address, None)

    def layout(self) -> Hello:
        """What the first client offers; waits for one."""
        if self.first is None:
            print(
                f"ludus: waiting for an env at ws://localhost:{self.port} (a demo: http://localhost:{self.port}/)",
                file=sys.stderr,
            )
        with self.changed:
            self.changed.wait_for(lambda: self.first is not None, WAIT_SECONDS)
        if self.first is None:
            raise LudusError(
                f"no env came to ws://localhost:{self.port} within {WAIT_SECONDS:.0f} s: start a client (docs/remote.md)"
            )
        return self.first

    def num_envs(self) -> int:
        return sum(client.hello.envs for client in self.clients if not client.gone)

    def memory_mb(self) -> float | None:
        """Of all clients that say."""
        known = [client.memory_mb for client in list(self.clients) if client.memory_mb is not None]
        return sum(known) if known else None

    def wait_for_news(self, seconds: float) -> None:
        """Until a client comes, or so long."""
        with self.changed:
            self.changed.wait(seconds)

    def _welcome(self, connection: Any) -> None:
        """The thread of one client: hears it until it leaves."""
        client: Client | None = None
        try:
            client = self._admit(connection, read_hello(connection.recv(HELLO_SECONDS)))
            for message in connection:
                client.inbox.put(message)
        except Fault as fault:
            self.news.append(f"a client was refused: {fault}")
            with contextlib.suppress(Exception):
                connection.send(write("refused", reason=str(fault)))
        except Exception as error:  # whatever a broken connection throws: it is over
            if client is not None and not client.gone:
                client.cause = f"its connection broke ({type(error).__name__})"
        finally:
            if client is not None:
                client.gone = True
                client.inbox.put(None)
                with self.changed:
                    self.clients.remove(client)

    def _admit(self, connection: Any, hello: Hello) -> Client:
        with self.changed:
            if self.first is not None and hello.layout != self.first.layout:
                raise Fault(f"{hello.game} has other agents, observations or actions than {self.first.game}, which came first")
            self.first = self.first or hello
            client = Client(connection, hello)
            client.send(write("welcome", protocol=PROTOCOL))
            self.clients.append(client)
            self.changed.notify_all()
        return client


def _page(connection: Any, request: Any) -> Any:
    """Plain HTTP: the demo page and the JavaScript client. None: go on as a WebSocket."""
    from websockets.datastructures import Headers
    from websockets.http11 import Response

    if request.headers.get("Upgrade", "").lower() == "websocket":
        return None
    name, kind = PAGES.get(request.path.partition("?")[0], ("", ""))
    if not name:
        return connection.respond(404, "there is / and /ludus.js\n")
    body = (Path(__file__).parent / "static" / name).read_bytes()
    headers = Headers([("Content-Type", f"{kind}; charset=utf-8"), ("Content-Length", str(len(body))), ("Connection", "close")])
    return Response(200, "OK", headers, body)
