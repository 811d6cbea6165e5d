"""Broken and hostile messages: what a bad client may write into a socket. The same seed makes the
same messages.

`mutate` changes one JSON message, `frames` wraps it as a WebSocket client should, or should not,
`mutate_request` changes an HTTP request. `Raw` is a client that sends whatever it is given:
libraries refuse to.
"""

from __future__ import annotations

import base64
import copy
import json
import os
import random
import socket
import struct
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
DEEP = 100_000
STRANGE: list[Any] = [
    None,
    True,
    False,
    -1,
    0,
    1,
    2,
    2**31,
    2**63,
    2**64,
    10**400,
    -(10**400),
    0.5,
    1e300,
    -1e38,
    1e9,
    float("nan"),
    float("inf"),
    float("-inf"),
    "",
    " ",
    "x",
    "1",
    "nan",
    "../../etc/passwd",
    "a/b",
    "class",
    "__init__",
    "\x1b[2J\x1b]0;x\x07",
    "\ud800",
    "\u202eabc",
    "\x00",
    "é" * 65,
    "🂡",
    "9" * 500,
    "w" * 100_000,
    [],
    {},
    [[]],
    [1, 2],
    ["a", "a"],
    [None],
    [["x"]],
    {"a": 1},
    {"": []},
    [[[[[]]]]],
    list(range(5000)),
]


def mutate(rng: random.Random, message: Mapping[str, Any]) -> bytes:
    """The message as the bytes of a frame, changed in one to three ways."""
    data = copy.deepcopy(dict(message))
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        rng.choice((_drop, _retype, _retype, _retype, _add))(rng, data)
    body = json.dumps(data, ensure_ascii=rng.random() < 0.8).encode(errors="surrogatepass")
    if rng.random() < 0.35:
        body = rng.choice((_flip, _cut, _duplicate, _long_number, _nest, _repeat, _empty))(
            rng, body
        )
    return body


def _place(rng: random.Random, data: Any) -> tuple[Any, Any]:
    """A container inside of the message, and one of its keys."""
    where, key = data, rng.choice(list(data))
    for _ in range(4):
        inner = where[key]
        keys = (
            list(inner)
            if isinstance(inner, dict)
            else list(range(len(inner)))
            if isinstance(inner, list)
            else []
        )
        if not keys or rng.random() < 0.4:
            break
        where, key = inner, rng.choice(keys)
    return where, key


def _drop(rng: random.Random, data: dict[str, Any]) -> None:
    if data:
        where, key = _place(rng, data)
        del where[key]


def _retype(rng: random.Random, data: dict[str, Any]) -> None:
    if data:
        where, key = _place(rng, data)
        where[key] = copy.deepcopy(rng.choice(STRANGE))


def _add(rng: random.Random, data: dict[str, Any]) -> None:
    name = rng.choice(
        ("type", "x", "", "masks", "agents", "choices", "memory_mb", "take", "speed", "\ud800")
    )
    data[name] = copy.deepcopy(rng.choice(STRANGE))


def _flip(rng: random.Random, body: bytes) -> bytes:
    out = bytearray(body or b"x")
    for _ in range(rng.choice((1, 1, 2, 8))):
        out[rng.randrange(len(out))] = rng.randrange(256)
    return bytes(out)


def _cut(rng: random.Random, body: bytes) -> bytes:
    return body[: rng.randrange(len(body) + 1)] + rng.randbytes(rng.choice((0, 0, 20)))


def _duplicate(rng: random.Random, body: bytes) -> bytes:
    """A name twice in one object."""
    return body[:-1] + b', "type": "hello", "step": 3, "step": [1]}'


def _long_number(rng: random.Random, body: bytes) -> bytes:
    digits = b"9" * rng.choice((401, 4301, 20_000))
    number = rng.choice(
        (digits, b"-" + digits, b"1e" + digits, b"0." + digits, b"1e999", b"-0.0", b"NaN")
    )
    at = [i for i, c in enumerate(body) if chr(c).isdigit()]
    i = rng.choice(at) if at else 0
    return body[:i] + number + body[i + 1 :]


def _nest(rng: random.Random, body: bytes) -> bytes:
    many = rng.choice((40, 900, DEEP))
    inner = rng.choice(
        (b"[" * many + b"]" * many, b'{"a":' * many + b"1" + b"}" * many, b"[" * many)
    )
    return rng.choice(
        (
            inner,
            body[:-1] + b', "observation": ' + inner + b"}",
            body[:-1] + b', "message": ' + inner + b"}",
        )
    )


def _repeat(rng: random.Random, body: bytes) -> bytes:
    """Much that costs little to send: a list of it takes many times its bytes in memory."""
    return b"[" + b"[]," * rng.choice((1000, 700_000)) + b"[]]"


def _empty(rng: random.Random, body: bytes) -> bytes:
    return rng.choice((b"", b" ", b"null", b"[]", b"{}", b'"x"', b"\xff\xfe", b"\xed\xa0\x80"))


def frame(
    payload: bytes,
    opcode: int = TEXT,
    *,
    final: bool = True,
    reserved: int = 0,
    masked: bool = True,
    claimed: int | None = None,
) -> bytes:
    """One WebSocket frame. `claimed`: the length that it says it has."""
    size = len(payload) if claimed is None else claimed
    head = bytes([(0x80 if final else 0) | reserved << 4 | opcode])
    bit = 0x80 if masked else 0
    if size < 126:
        head += bytes([bit | size])
    elif size < 2**16:
        head += bytes([bit | 126]) + struct.pack(">H", size)
    else:
        head += bytes([bit | 127]) + struct.pack(">Q", size)
    if not masked:
        return head + payload
    return head + b"\0\0\0\0" + payload  # a mask of zeros changes nothing


def frames(rng: random.Random, payload: bytes) -> bytes:
    """Mostly one proper frame; sometimes another kind, a broken one, a part, or far too many."""
    proper = frame(payload)
    kind = rng.randrange(32)
    if kind == 0:
        return frame(payload, BINARY)
    if kind == 1:
        return frame(payload, rng.choice((3, 7, 11, 15, 0)))
    if kind == 2:
        return frame(payload, masked=False)
    if kind == 3:
        return frame(payload, reserved=rng.randrange(1, 8))
    if kind == 4:
        return frame(payload, claimed=rng.choice((2**20, 2**24, 2**31, 2**62, 2**63 - 1)))
    if kind == 5:  # in many parts, perhaps without an end
        parts = [payload[i : i + 7] for i in range(0, len(payload), 7)][:5000] or [b""]
        out = [frame(part, TEXT if i == 0 else 0, final=False) for i, part in enumerate(parts)]
        return b"".join(out) + (frame(b"", 0) if rng.random() < 0.5 else b"")
    if kind == 6:
        return frame(b"x" * 125, PING) * rng.choice((1, 5000))
    if kind == 7:
        return frame(
            rng.choice(
                (
                    b"",
                    b"\x00",
                    struct.pack(">H", rng.randrange(6000)) + b"\xff",
                    b"\x03\xe8" + b"x" * 200,
                )
            ),
            CLOSE,
        )
    if kind == 8:
        return frame(rng.randbytes(40), PONG) + proper
    if kind == 9:
        return proper * rng.choice((2, 3, 300))
    if kind == 10:
        return frame(b"[" * rng.choice((2**20, 2**24, 2**25)))
    if kind == 11:
        return proper[: rng.randrange(len(proper))]
    if kind == 12:
        return rng.randbytes(200)
    if kind == 13:
        return frame(b"") * rng.choice((1, 20_000))
    return proper


def mutate_request(rng: random.Random, lines: list[bytes]) -> bytes:
    """An HTTP request (its line and headers) with something wrong."""
    lines = list(lines)
    kind = rng.randrange(14)
    at = rng.randrange(len(lines))
    if kind == 0:
        lines[at] = _flip(rng, lines[at])
    elif kind == 1:
        del lines[at]
    elif kind == 2:
        lines.insert(at, lines[at])
    elif kind == 3:
        lines[0] = (
            rng.choice((b"POST", b"PUT", b"CONNECT", b"", b"G\x00T", b"OPTIONS")) + lines[0][3:]
        )
    elif kind == 4:
        lines.append(b"X: " + b"x" * rng.choice((9000, 2_000_000)))
    elif kind == 5:
        lines += [b"X-%d: 1" % i for i in range(5000)]
    elif kind == 6:
        lines.append(
            rng.choice(
                (
                    b"Content-Length: -1",
                    b"Content-Length: 99999999999999999999",
                    b"Transfer-Encoding: chunked",
                    b"Content-Length: 10",
                )
            )
        )
    elif kind == 7:
        paths = (
            b"//[",
            b"/?token=%ff%00",
            b"/?" + b"a=1&" * 500,
            b"*",
            b"http://evil/",
            b"/" + b"%" * 50,
            b"/\xff",
            b"/" + b"a" * 9000,
            b"/../..",
            b"",
        )
        lines[0] = b"GET " + rng.choice(paths) + b" HTTP/1.1"
    elif kind == 8:
        hosts = (
            b"evil.example",
            b"",
            b"localhost@evil",
            b"[::1",
            b"localhost:99999999999999999999",
            b"\xff\xfe",
            b"127.0.0.1.evil",
        )
        lines = [
            b"Host: " + rng.choice(hosts) if line.lower().startswith(b"host:") else line
            for line in lines
        ]
    elif kind == 9:
        lines.append(
            b"Origin: "
            + rng.choice(
                (
                    b"http://evil.example",
                    b"null",
                    b"http://[",
                    b"",
                    b"http://localhost@evil",
                    b"\x80",
                )
            )
        )
    elif kind == 10:
        lines = [line for line in lines if b"Sec-WebSocket" not in line] + [
            b"Upgrade: websocket",
            b"Connection: Upgrade",
        ]
    elif kind == 11:
        lines[0] = lines[0].replace(
            b"HTTP/1.1", rng.choice((b"HTTP/9.9", b"HTTP/1.0", b"", b"HTTP/2.0"))
        )
    elif kind == 12:
        return rng.randbytes(rng.choice((1, 100, 70_000)))
    text = b"\r\n".join(lines) + b"\r\n\r\n"
    return text if kind != 13 else text[: rng.randrange(len(text))]


class Raw:
    """A client without manners. Reads go through `read`, which gives up after `seconds`."""

    def __init__(self, url: str, origin: str | None = None, seconds: float = 3.0) -> None:
        self.parts = urlsplit(url)
        self.origin = origin
        self.socket = socket.create_connection(
            (self.parts.hostname or "", self.parts.port or 80), timeout=seconds
        )
        self._read = b""

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *exception: object) -> None:
        self.socket.close()

    def request(self) -> list[bytes]:
        """The lines of a proper WebSocket handshake."""
        path = f"{self.parts.path or '/'}?{self.parts.query}"
        lines = [
            f"GET {path} HTTP/1.1",
            f"Host: {self.parts.netloc}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Version: 13",
        ]
        lines.append(f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}")
        lines += [f"Origin: {self.origin}"] if self.origin else []
        return [line.encode() for line in lines]

    def handshake(self) -> None:
        self.send(b"\r\n".join(self.request()) + b"\r\n\r\n")
        while b"\r\n\r\n" not in self._read:
            self._more()
        head, self._read = self._read.split(b"\r\n\r\n", 1)
        if b" 101 " not in head:
            raise ConnectionError(head.decode(errors="replace"))

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def say(self, message: Mapping[str, Any]) -> None:
        self.send(frame(json.dumps(message).encode()))

    def read(self) -> bytes:
        """The next text or binary message; EOFError at the end of the connection."""
        while True:
            self._need(2)
            opcode, size, at = self._read[0] & 15, self._read[1] & 127, 2
            if size >= 126:
                at = 4 if size == 126 else 10
                self._need(at)
                size = int.from_bytes(self._read[2:at], "big")
            self._need(at + size)
            payload, self._read = self._read[at : at + size], self._read[at + size :]
            if opcode in (TEXT, BINARY):
                return payload
            if opcode == CLOSE:
                raise EOFError

    def read_rest(self, most: int = 10_000_000) -> bytes:
        """Everything until the other side closes, or is silent for too long."""
        while len(self._read) < most:
            try:
                self._more()
            except (EOFError, OSError):
                break
        return self._read

    def _need(self, size: int) -> None:
        while len(self._read) < size:
            self._more()

    def _more(self) -> None:
        data = self.socket.recv(65536)
        if not data:
            raise EOFError
        self._read += data
