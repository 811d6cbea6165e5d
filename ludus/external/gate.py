"""The door for remote envs: a WebSocket server in this process, one per address, that clients come
to and leave as they like.

Who may join: `ludus.external.access`. It also serves the JavaScript client and a demo page over
HTTP, so that a browser needs nothing else.
"""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import logging
import queue
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any, cast

from ludus import machine
from ludus.errors import LudusError
from ludus.external.access import Access, choose_token
from ludus.external.wire import HELLO_BYTES, MOST_BYTES, PROTOCOL, Fault, Hello, read_hello, write

HANDSHAKE_SECONDS = 5.0
HELLO_SECONDS = 10.0
LISTEN_SECONDS = 0.5
SEND_SECONDS = 5.0  # a client that reads nothing for so long is gone
WAIT_SECONDS = 300.0
MOST_CLIENTS = 64
MOST_CONNECTIONS = 128  # those of clients, and those that have not said hello
REQUEST_BYTES = 2**16  # what a connection may send before its token was seen
# beside the message that is expected: the library's own frames, and what is read to be refused
SPARE_BYTES = 2**20
PAGES = {"/": ("catch.html", "text/html"), "/ludus.js": ("ludus.js", "text/javascript")}
PAGE_HEADERS = [
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Connection", "close"),
]
# between two lines about clients, so that nobody can fill a terminal
REPORT_SECONDS, SAME_REPORT_SECONDS = 5.0, 60.0

# What the WebSocket library logs is about its clients' mistakes, with tracebacks: who wants it
# configures this logger.
log = logging.getLogger(__name__)
log.addHandler(logging.NullHandler())


class MeteredSocket(socket.socket):
    """Reads so many bytes and no more: the library keeps what it reads in memory until somebody
    takes it."""

    left = REQUEST_BYTES

    def recv(self, *arguments: Any) -> bytes:
        data = super().recv(*arguments)
        self.left -= len(data)
        return data if self.left >= 0 else b""  # as if the client had ended the connection


class Client:
    """A connection that said hello. An answer waits in `inbox`; None in it means that the client is
    gone, for `cause`."""

    def __init__(self, connection: Any, hello: Hello) -> None:
        self.connection, self.hello = connection, hello
        self.inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()  # one answer at most: see receive
        self.asked = False
        self.gone = False
        self.cause = "it disconnected"
        self.memory_mb: float | None = None

    def ask(self, message: str) -> None:
        self.asked = True
        self.connection.socket.left = self.hello.result_bytes + SPARE_BYTES
        self.send(message)

    def receive(self, message: Any) -> None:
        """What the client says. Nobody keeps what was not asked for."""
        if self.gone:
            return
        if not self.asked:
            raise Fault(
                "it sent a message that was not asked for: every step is answered by one result"
            )
        self.asked = False
        self.inbox.put(message)

    def send(self, message: str) -> None:
        # a connection that is gone is noticed when its answer is awaited
        with contextlib.suppress(Exception):
            self.connection.send(message)

    def dismiss(self, cause: str) -> None:
        """Ends the connection, without waiting for the client to agree."""
        if not self.gone:
            self.gone, self.cause = True, cause
            threading.Thread(target=end, args=(self.connection, cause), daemon=True).start()


def end(connection: Any, cause: str) -> None:
    """Says why, and closes."""
    with contextlib.suppress(Exception):
        connection.send(write("refused", reason=cause))
        connection.close()


class Gate:
    """Use `Gate.at(address)`: batches of the same run (training, evaluation) share their
    clients."""

    _open: dict[str, Gate] = {}  # noqa: RUF012 (one per address and process)

    @classmethod
    def at(cls, address: str) -> Gate:
        if address not in cls._open:
            cls._open[address] = cls(address)
        return cls._open[address]

    def __init__(self, address: str) -> None:
        if importlib.util.find_spec("websockets") is None:
            raise LudusError("remote envs need the package websockets: pip install 'ludus[remote]'")
        self.address = address
        host, _, port = address.rpartition(":")
        if not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) < 65536):
            raise LudusError(
                f"remote:{address} names no port: use a number from 1 to 65535, such as remote:8770"
            )
        self.access = Access(host or "127.0.0.1", choose_token())
        self.clients: list[Client] = []
        self.first: Hello | None = None
        self.owner: Any = None  # the batch that plays with the clients now
        self.last_refusal = ""
        self._last_report, self._reported_at = "", 0.0
        self._closing = False
        self._serving: list[threading.Thread] = []
        self.changed = threading.Condition()
        self.server = self._listen(int(port))
        machine.measured_elsewhere["memory/client_mb"] = self.memory_mb
        self.port = int(self.server.socket.getsockname()[1])
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def _listen(self, port: int) -> Any:
        from websockets.sync.server import serve

        try:
            return serve(
                self._welcome,
                self.access.host,
                port,
                max_size=MOST_BYTES,
                max_queue=1,
                close_timeout=1,
                compression=None,
                open_timeout=HANDSHAKE_SECONDS,
                process_request=self._request,
                logger=log,
                create_connection=cast(Any, self._connection),
            )
        except (OSError, UnicodeError) as error:
            reason = (
                getattr(error, "strerror", None)
                or "its host is not a name or a number of this machine"
            )
            hint = (
                "; is another run using the port?"
                if getattr(error, "errno", 0) == errno.EADDRINUSE
                else ""
            )
            raise LudusError(f"remote:{self.address} cannot listen: {reason}{hint}") from None

    def close(self) -> None:
        self._closing = True
        for client in list(self.clients):
            client.dismiss("the run is over")
        self.server.shutdown()
        Gate._open.pop(self.address, None)

    def url(self, scheme: str = "ws") -> str:
        """What a client needs to join. Its token is a secret."""
        return f"{scheme}://{self.access.reachable_name()}:{self.port}/?token={self.access.token}"

    def layout(self) -> Hello:
        """What the first client offers; waits for one."""
        if self.first is None:
            print(
                "ludus: waiting for an env at the first address (the second is a browser demo)\n"
                f"  {self.url()}\n  {self.url('http')}",
                file=sys.stderr,
                flush=True,
            )
        with self.changed:
            self.changed.wait_for(lambda: self.first is not None, WAIT_SECONDS)
        if self.first is None:
            last = f"; a client was refused: {self.last_refusal}" if self.last_refusal else ""
            raise LudusError(
                f"no env came to ws://{self.access.reachable_name()}:{self.port} within "
                f"{WAIT_SECONDS:.0f} s: "
                f"start a client (docs/remote.md){last}"
            )
        return self.first

    def num_envs(self) -> int:
        return sum(client.hello.envs for client in list(self.clients) if not client.gone)

    def memory_mb(self) -> float | None:
        """Of all clients that say."""
        known = [client.memory_mb for client in list(self.clients) if client.memory_mb is not None]
        return sum(known) if known else None

    def wait_for_news(self, seconds: float) -> None:
        """Until a client comes, or so long."""
        with self.changed:
            self.changed.wait(seconds)

    # -- the server's threads ----------------------------------------------------------------------

    def _refuse(self, fault: str) -> None:
        self.last_refusal = fault
        self._report(f"a client was refused: {fault}")

    def _report(self, text: str) -> None:
        """Tells the user about a client; not every time."""
        now = time.monotonic()
        pause = SAME_REPORT_SECONDS if text == self._last_report else REPORT_SECONDS
        if self._closing or (self._reported_at and now - self._reported_at < pause):
            return
        self._last_report, self._reported_at = text, now
        print(f"ludus: remote:{self.address}: {text}", file=sys.stderr, flush=True)

    def _connection(self, sock: Any, *arguments: Any, **options: Any) -> Any:
        """For every socket that was accepted, in the thread that serves it; closed at once where
        there are too many."""
        from websockets.sync.server import ServerConnection

        with self.changed:
            self._serving = [thread for thread in self._serving if thread.is_alive()]
            if len(self._serving) >= MOST_CONNECTIONS:
                raise ConnectionRefusedError(f"{MOST_CONNECTIONS} connections are open")
            self._serving.append(threading.current_thread())
        metered = MeteredSocket(fileno=sock.detach())
        metered.settimeout(SEND_SECONDS)
        return ServerConnection(metered, *arguments, **options)

    def _request(self, connection: Any, request: Any) -> Any:
        """Answers plain HTTP: the demo page and the JavaScript client. None: go on as a
        WebSocket."""
        from websockets.datastructures import Headers
        from websockets.http11 import Response

        fault = self.access.fault_of_headers(
            request.headers.get_all("Host"), request.headers.get_all("Origin")
        )
        if fault:
            self._refuse(fault)
            return connection.respond(403, f"{fault}\n")
        if getattr(request, "method", "GET") != "GET":
            return connection.respond(405, "only GET is answered\n")
        if any(value.lower() == "websocket" for value in request.headers.get_all("Upgrade")):
            if not self.access.fault_of_token(request.path):
                connection.socket.left = HELLO_BYTES + SPARE_BYTES
            # who has no token is refused by _welcome: a browser cannot read why a handshake failed
            return None
        name, kind = PAGES.get(request.path.partition("?")[0], ("", ""))
        if not name:
            return connection.respond(404, "there is / and /ludus.js\n")
        body = (Path(__file__).parent / "static" / name).read_bytes()
        kept = [("Content-Type", f"{kind}; charset=utf-8"), ("Content-Length", str(len(body)))]
        return Response(200, "OK", Headers([*kept, *PAGE_HEADERS]), body)

    def _welcome(self, connection: Any) -> None:
        """The thread of one client: hears it until it leaves."""
        client: Client | None = None
        try:
            if fault := self.access.fault_of_token(connection.request.path):
                with contextlib.suppress(Exception):  # let it say hello: then it reads the reason
                    connection.recv(LISTEN_SECONDS)
                raise Fault(fault)
            client = self._admit(connection, self._first_message(connection))
            for message in connection:
                client.receive(message)
        except Fault as fault:
            if client is not None:
                client.gone, client.cause = True, str(fault)
            else:
                self._refuse(str(fault))
            end(connection, str(fault))
        except Exception as error:  # whatever a broken connection throws: it is over
            if client is not None and not client.gone:
                too_much = connection.socket.left < 0
                client.cause = (
                    "it sent more than it was asked for"
                    if too_much
                    else f"its connection broke ({type(error).__name__})"
                )
        finally:
            if client is not None:
                client.gone = True
                client.inbox.put(None)
                with self.changed:
                    self.clients.remove(client)
                self._report(f"lost a client: {client.cause}")

    def _first_message(self, connection: Any) -> Hello:
        try:
            message = connection.recv(HELLO_SECONDS)
        except TimeoutError:
            raise Fault(f"it did not say hello within {HELLO_SECONDS:.0f} s") from None
        return read_hello(message)

    def _admit(self, connection: Any, hello: Hello) -> Client:
        with self.changed:
            if self.first is not None and hello.layout != self.first.layout:
                raise Fault(
                    f"{hello.game} has other agents, observations or actions than "
                    f"{self.first.game}, which came first"
                )
            if len(self.clients) >= MOST_CLIENTS:
                raise Fault(
                    f"{MOST_CLIENTS} clients are connected, more cannot be: offer more envs in "
                    "each of them"
                )
            self.first = self.first or hello
            client = Client(connection, hello)
            client.send(write("welcome", protocol=PROTOCOL))
            self.clients.append(client)
            self.changed.notify_all()
        return client
