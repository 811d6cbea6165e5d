"""Reads the numbers out of TensorBoard event files: just enough of TFRecord and protocol buffers,
no package needed.

A file is a row of records: length (8 bytes), its checksum (4), an Event message, its checksum (4).
A message is a row of fields: a key (number * 8 + wire type) and a value.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from ludus.files import regular

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
EVENT_WALL, EVENT_STEP, EVENT_SUMMARY = 1, 2, 5
SUMMARY_VALUE = 1
VALUE_TAG, VALUE_SIMPLE, VALUE_TENSOR = 1, 2, 8
TENSOR_DTYPE, TENSOR_CONTENT, TENSOR_FLOAT, TENSOR_DOUBLE = 1, 4, 5, 6
DT_DOUBLE = 2


def read_scalars(path: Path) -> Iterator[tuple[str, int, float, float]]:
    """(tag, step, value, wall-clock time) in the order written. A record cut off in the middle ends
    the file."""
    data = regular(path).read_bytes()
    at = 0
    while at + 12 <= len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        start = at + 12
        if start + length + 4 > len(data):
            return
        try:
            yield from _event(data[start : start + length])
        except (IndexError, ValueError, struct.error):
            return  # what follows a damaged record cannot be trusted
        at = start + length + 4


def _event(message: bytes) -> Iterator[tuple[str, int, float, float]]:
    step, wall = 0, 0.0
    summaries = []
    for number, value in _fields(message):
        if number == EVENT_WALL and isinstance(value, bytes) and len(value) == 8:
            (wall,) = struct.unpack("<d", value)
        elif number == EVENT_STEP and isinstance(value, int):
            step = value
        elif number == EVENT_SUMMARY and isinstance(value, bytes):
            summaries.append(value)
    for summary in summaries:
        for number, value in _fields(summary):
            if number == SUMMARY_VALUE and isinstance(value, bytes):
                tag, amount = _value(value)
                if amount is not None:
                    yield tag, step, amount, wall


def _value(message: bytes) -> tuple[str, float | None]:
    tag, amount = "", None
    for number, value in _fields(message):
        if not isinstance(value, bytes):
            continue
        if number == VALUE_TAG:
            tag = value.decode("utf-8", "replace")
        elif number == VALUE_SIMPLE and len(value) == 4:
            (amount,) = struct.unpack("<f", value)
        elif number == VALUE_TENSOR:
            amount = _tensor(value)
    return tag, amount


def _tensor(message: bytes) -> float | None:
    """The number in a tensor of one element; None for anything larger."""
    dtype, content, found = 0, b"", None
    for number, value in _fields(message):
        if number == TENSOR_DTYPE and isinstance(value, int):
            dtype = value
        elif number == TENSOR_CONTENT and isinstance(value, bytes):
            content = value
        elif number == TENSOR_FLOAT and isinstance(value, bytes) and len(value) == 4:
            (found,) = struct.unpack("<f", value)
        elif number == TENSOR_DOUBLE and isinstance(value, bytes) and len(value) == 8:
            (found,) = struct.unpack("<d", value)
    if content and len(content) == (8 if dtype == DT_DOUBLE else 4):
        (found,) = struct.unpack("<d" if dtype == DT_DOUBLE else "<f", content)
    return found


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Field numbers and values; numbers of fixed size as their bytes."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value, at = _varint(message, at)
            yield number, value
            continue
        if kind == BYTES:
            size, at = _varint(message, at)
        elif kind in (FIXED32, FIXED64):
            size = 4 if kind == FIXED32 else 8
        else:
            raise ValueError(f"wire type {kind}")
        yield number, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at
