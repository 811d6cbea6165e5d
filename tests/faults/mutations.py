"""Ways to damage a file of a run folder: by accident (bytes, lines, sizes) and on purpose (values
of another type, huge ones, nesting, headers that lie). Each takes a random generator and the file's
bytes, and returns other bytes."""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

Way = Callable[[random.Random, bytes], bytes]
STRANGE: list[Any] = [
    None,
    True,
    -1,
    0,
    1,
    2**31,
    2**63,
    10**40,
    0.5,
    -1e300,
    float("nan"),
    float("inf"),
    "",
    "x",
    "../../etc/passwd",
    "\ud800",
    "snapshot:x",
    "9" * 500,
    [],
    [1, 2],
    {},
    {"a": 1},
    [[]],
    "nested",
    "digits",
]
"""What a value becomes. `nested` and `digits` stand for what the json module cannot write: brackets
in brackets, and a number of 5,000 digits."""
WRITTEN = {'"nested"': "[" * 100_000 + "]" * 100_000, '"digits"': "9" * 5000}


# -- any file --------------------------------------------------------------------------------------


def flip(rng: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8, 64)) if out else 0):
        out[rng.randrange(len(out))] = rng.randrange(256)
    return bytes(out)


def cut(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data))] if data else b""


def empty(rng: random.Random, data: bytes) -> bytes:
    return b""


def zeros(rng: random.Random, data: bytes) -> bytes:
    """The end is zeros, as some file systems leave it after a power cut."""
    at = rng.randrange(len(data) + 1)
    return data[:at] + b"\0" * (len(data) - at)


def doubled(rng: random.Random, data: bytes) -> bytes:
    return data + data


def no_text(rng: random.Random, data: bytes) -> bytes:
    """Bytes that are no UTF-8."""
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice((b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"\x00")) + data[at:]


# -- lines -----------------------------------------------------------------------------------------


def lines(rng: random.Random, data: bytes) -> bytes:
    """One is dropped, repeated or exchanged with another."""
    rows = data.splitlines(keepends=True)
    if len(rows) < 2:
        return data + data
    i, j = rng.sample(range(len(rows)), 2)
    what = rng.choice(("drop", "repeat", "swap"))
    if what == "drop":
        del rows[i]
    elif what == "repeat":
        rows.insert(j, rows[i])
    else:
        rows[i], rows[j] = rows[j], rows[i]
    return b"".join(rows)


def cells(rng: random.Random, data: bytes) -> bytes:
    """A cell of a table becomes something strange."""
    rows = [row.split(b",") for row in data.splitlines()]
    row = rng.choice(rows) if rows else [b""]
    row[rng.randrange(len(row))] = rng.choice(
        (b"", b"x", b"nan", b"1e999", b"-1", b'"', b"9" * 5000)
    )
    return b"\n".join(b",".join(row) for row in rows) + b"\n"


# -- JSON ------------------------------------------------------------------------------------------


def change_value(rng: random.Random, value: Any) -> Any:
    """Somewhere inside, a value becomes another one or goes."""
    if not isinstance(value, dict | list) or not value or rng.random() < 0.02:
        return rng.choice(STRANGE)
    key = rng.choice(list(value) if isinstance(value, dict) else range(len(value)))
    out = value.copy()
    if rng.random() < 0.15:
        del out[key]
    elif isinstance(value[key], dict | list) and rng.random() < 0.75:
        out[key] = change_value(rng, value[key])
    else:
        out[key] = rng.choice(STRANGE)
    return out


def _as_text(value: Any) -> bytes:
    text = json.dumps(value)
    for name, instead in WRITTEN.items():
        text = text.replace(name, instead)
    return text.encode()


def json_value(rng: random.Random, data: bytes) -> bytes:
    return _as_text(change_value(rng, json.loads(data)))


def json_line(rng: random.Random, data: bytes) -> bytes:
    rows = data.splitlines()
    if rows:
        i = rng.randrange(len(rows))
        rows[i] = _as_text(change_value(rng, json.loads(rows[i])))
    return b"\n".join(rows) + b"\n"


# -- safetensors -----------------------------------------------------------------------------------


def header_length(rng: random.Random, data: bytes) -> bytes:
    """The first eight bytes say how long the header is."""
    return (
        struct.pack("<Q", rng.choice((0, 1, 7, len(data), 10**8 + 1, 2**40, 2**63, 2**64 - 1)))
        + data[8:]
    )


def header(rng: random.Random, data: bytes) -> bytes:
    """A tensor gets another type, shape, place or name, or goes; or anything else in the header
    changes."""
    size = struct.unpack("<Q", data[:8])[0]
    head, body = json.loads(data[8 : 8 + size]), data[8 + size :]
    names = [n for n in head if n != "__metadata__"]
    name, what = rng.choice(names or [""]), rng.randrange(6) if names else 5
    if what == 0:
        head[name]["dtype"] = rng.choice(("F64", "F32", "F16", "I64", "I8", "BOOL", "X"))
    elif what == 1:
        head[name]["shape"] = [
            rng.choice((0, 1, 2, 2**31, 2**62, -1)) for _ in range(rng.randrange(4))
        ]
    elif what == 2:
        start = rng.choice((0, 1, len(body), 2**63))
        head[name]["data_offsets"] = [start, start + rng.choice((0, 4, len(body), -4))]
    elif what == 3:
        head[rng.choice(("x", "__metadata__", name + "/" + name))] = head.pop(name)
    elif what == 4:
        del head[name]
    else:
        head = change_value(rng, head)
    text = _as_text(head)
    return struct.pack("<Q", len(text)) + text + body


# -- which way for which file ----------------------------------------------------------------------

ANY: list[Way] = [flip, cut, empty, zeros, doubled, no_text]
BY_SUFFIX: dict[str, list[Way]] = {
    ".json": [json_value] * 12,
    ".jsonl": [json_line] * 8 + [lines] * 3,
    ".csv": [cells] * 4 + [lines] * 3,
    ".safetensors": [header_length, *[header] * 5],
    ".html": [],
}
INSTEAD = ("folder", "pipe", "gone", "link to itself", "unreadable")


def ways(path: Path) -> list[Way | str]:
    """Everything that can happen to a file of this kind."""
    # nothing is unreadable for root
    with_rights = [what for what in INSTEAD if what != "unreadable" or os.geteuid() != 0]
    return [*ANY, *BY_SUFFIX.get(path.suffix, []), *with_rights]


def damage(rng: random.Random, path: Path) -> str:
    """Damages a file in one way, and says in which."""
    way = rng.choice(ways(path))
    if callable(way):
        path.write_bytes(way(rng, path.read_bytes()))
        return way.__name__
    put_instead(path, way)
    return way


def put_instead(path: Path, what: str) -> None:
    if what == "unreadable":
        path.chmod(0)
        return
    path.unlink()
    if what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "link to itself":
        path.symlink_to(path.name)


def restore(path: Path, data: bytes) -> None:
    """The file as it was."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    path.write_bytes(data)
