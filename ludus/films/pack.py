"""Named arrays in one message, as a browser reads them without copying.

A message is: the length of the header (uint32, little endian), the header (JSON, padded with
spaces), then the arrays one after the other. The header holds whatever was given, and under
"arrays" each one's type, shape and place after the header.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

ALIGNED = 8  # typed arrays of a browser must start at a multiple of their size
TYPES = {
    "float32": "f32",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "uint8": "u8",
    "bool": "u8",
}


def pack(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """One message. Whole numbers of 64 bits are sent as 32."""
    places, parts, at = {}, [], 0
    for name, array in arrays.items():
        array = np.ascontiguousarray(array)
        if array.dtype.name not in TYPES:
            array = array.astype(np.float32 if array.dtype.kind == "f" else np.int32)
        data = array.tobytes()
        places[name] = [TYPES[array.dtype.name], list(array.shape), at]
        padded = -(-len(data) // ALIGNED) * ALIGNED
        parts.append(data.ljust(padded, b"\0"))
        at += padded
    text = json.dumps({**header, "arrays": places}, allow_nan=False).encode()
    room = -(-(4 + len(text)) // ALIGNED) * ALIGNED - 4
    return b"".join([room.to_bytes(4, "little"), text.ljust(room), *parts])


def unpack(message: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The reverse of `pack`, for tests and scripts."""
    room = int.from_bytes(message[:4], "little")
    header = json.loads(message[4 : 4 + room])
    names = {short: np.dtype(name) for name, short in TYPES.items() if name != "bool"}
    arrays = {}
    for name, (kind, shape, at) in header.pop("arrays").items():
        count = int(np.prod(shape))
        arrays[name] = np.frombuffer(message, names[kind], count, 4 + room + at).reshape(shape)
    return header, arrays
