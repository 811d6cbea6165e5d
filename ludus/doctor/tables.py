"""Rows out of files that hold tables: CSV with any separator, JSON lines, a JSON list of rows or of
columns; and numbers out of what people write into them."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ludus.errors import LudusError
from ludus.files import parse_json, regular

Rows = list[dict[str, Any]]

_GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")  # 1,234,567.8
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")  # 0,25
_UNIT = re.compile(r"\s*[(\[]\s*([^)\]]*?)\s*[)\]]\s*$")
_POINT = re.compile(r"[+-]?[\d,]*\d\.\d+")
UNITS = {
    "k": 1e3,
    "thousand": 1e3,
    "thousands": 1e3,
    "tsd": 1e3,
    "m": 1e6,
    "mio": 1e6,
    "million": 1e6,
    "millions": 1e6,
    "%": 0.01,
    "s": 1.0,
}


def json_rows(path: Path) -> tuple[Rows, str]:
    """The rows, flat, and what was left out."""
    text = regular(path).read_text(encoding="utf-8", errors="replace")
    whole = _whole(text)
    if whole is not None:
        return [flat(row) for row in whole], ""
    rows, broken = [], 0
    for line in text.splitlines():
        if not line.strip():
            continue
        try:
            row = parse_json(line)
        except ValueError:
            broken += 1
            continue
        if isinstance(row, dict):
            rows.append(flat(row))
    return rows, f"{path.name}: {broken} line(s) cut off or damaged, left out" if broken else ""


def _whole(text: str) -> Rows | None:
    """A file that is one JSON value: a list of rows, or columns by name. None for JSON lines."""
    start = text.lstrip()[:1]
    if start not in ("[", "{") or (start == "{" and "\n{" in text):
        return None
    try:
        found = parse_json(text)
    except ValueError:
        return None
    if isinstance(found, list):
        return [row for row in found if isinstance(row, dict)]
    columns = {name: values for name, values in flat(found).items() if isinstance(values, list)}
    count = max((len(values) for values in columns.values()), default=0)
    long = {name: values for name, values in columns.items() if len(values) == count}
    return (
        [{name: values[i] for name, values in long.items()} for i in range(count)]
        if count > 1
        else None
    )


def flat(row: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, Mapping):
            out |= flat(value, f"{prefix}{name}/")
        else:
            out[f"{prefix}{name}"] = value
    return out


def csv_names(path: Path) -> list[str]:
    """The columns of a table, with rows or without."""
    _, _, table = _csv(path)
    return [n.strip() for n in table[0]] if table else []


def _csv(path: Path) -> tuple[str, str, list[list[str]]]:
    """Text, delimiter and cells."""
    data = regular(path).read_bytes()
    if b"\0" in data:
        raise LudusError(
            f"{path} is no text: give a CSV or JSON-lines file, a folder with TensorBoard events, "
            "or a run folder"
        )
    text = data.decode("utf-8-sig", errors="replace")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    delimiter = max(",;\t", key=lines[0].count) if lines else ","
    return text, delimiter, list(csv.reader(lines, delimiter=delimiter))


def csv_rows(path: Path) -> tuple[Rows, str]:
    """The rows and what was left out. Where commas do not separate columns they may be those of
    decimals."""
    text, delimiter, table = _csv(path)
    if not table:
        return [], f"{path.name} is empty"
    names = [n.strip() for n in table[0]]
    whole = [row for row in table[1:] if len(row) == len(names)]
    note = (
        f"{path.name}: {len(table) - 1 - len(whole)} row(s) cut off, left out"
        if len(whole) < len(table) - 1
        else ""
    )
    if whole and not text.endswith("\n") and whole[-1] is table[-1]:
        whole, note = (
            whole[:-1],
            f"{path.name} is still being written: its last row, perhaps cut off, was left out",
        )
    if delimiter != "," and not any(_POINT.search(cell) for row in whole for cell in row):
        whole = [
            [c.replace(",", ".") if _DECIMAL_COMMA.fullmatch(c.strip()) else c for c in row]
            for row in whole
        ]
    return [dict(zip(names, row, strict=True)) for row in whole], note


def number(value: Any) -> float | None:
    """A number, NaN for what is written as one (null, nan, inf), None for what is simply not there.
    12% is 0.12."""
    if value is None:
        return math.nan
    if isinstance(value, bool | int | float):
        return float(value)
    if not isinstance(value, str):
        return None
    text = value.strip()
    share = text.endswith("%")
    text = text.removesuffix("%").strip()
    if _GROUPED.fullmatch(text):
        text = text.replace(",", "")
    try:
        return float(text) / (100 if share else 1)
    except ValueError:
        return None


def without_unit(name: str) -> tuple[str, float]:
    """'Steps (M)' is 'Steps', in millions."""
    found = _UNIT.search(name)
    unit = found[1].rstrip(".").lower() if found is not None else ""
    return (
        (name[: found.start()], UNITS[unit]) if found is not None and unit in UNITS else (name, 1.0)
    )
