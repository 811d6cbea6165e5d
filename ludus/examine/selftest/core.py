"""How the selftest runs: checks one after the other, each naming the part it is about; what is
wrong becomes a finding."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ludus.doctor.finding import Finding
from ludus.errors import LudusError
from ludus.examine.selftest.scene import Session

# Causes before symptoms: single formulas, then what is stored while playing, then updates, then
# use, then whole learning.
FAMILIES = (
    "formulas",
    "playing",
    "ppo_update",
    "next_keys",
    "replay",
    "rainbow_update",
    "using",
    "outcomes",
    "opponents",
    "curriculum",
    "learning",
)


class Wrong(Exception):
    """A part does not do what it should; the text says what was expected and what came."""


Check = Callable[[Session], None]


def part(name: str, where: str) -> Callable[[Check], Check]:
    """Says which part of the learning code a check is about, and in which file it lives."""

    def mark(check: Check) -> Check:
        check.part, check.where = name, where  # type: ignore[attr-defined]
        return check

    return mark


@dataclass(frozen=True)
class Result:
    name: str
    part: str
    ok: bool
    seconds: float
    finding: Finding | None


def all_checks(families: Iterable[str] = FAMILIES) -> list[Check]:
    return [
        c for f in families for c in importlib.import_module(f"ludus.examine.selftest.{f}").CHECKS
    ]


def chosen(names: Iterable[str]) -> list[Check]:
    """Checks by their names."""
    known = {name_of(c): c for c in all_checks()}
    return [known[name] for name in names]


def name_of(check: Check) -> str:
    return check.__name__


def run(
    checks: Iterable[Check], device: str = "cpu", told: Callable[[Result], None] | None = None
) -> list[Result]:
    """Every check, whatever the others say. One thread: the checks are tiny."""
    threads, state = torch.get_num_threads(), torch.random.get_rng_state()
    torch.set_num_threads(1)
    results = []
    try:
        with Session(device) as session:
            for check in checks:
                results.append(_run_one(check, session))
                if told is not None:
                    told(results[-1])
    finally:
        torch.set_num_threads(threads)
        torch.random.set_rng_state(state)
    return results


def _run_one(check: Check, session: Session) -> Result:
    begin, finding = time.perf_counter(), None
    torch.manual_seed(0)
    try:
        check(session)
    except Wrong as wrong:
        finding = _finding(check, str(wrong), 0.95)
    except LudusError as error:
        finding = _finding(check, f"it refuses to work: {error}", 0.8)
    except Exception as error:  # a fault may break anything: that too is an answer
        finding = _finding(check, f"it stops with {type(error).__name__}: {error}", 0.8)
    subject: Any = check
    return Result(
        name_of(check), subject.part, finding is None, time.perf_counter() - begin, finding
    )


def _finding(check: Any, evidence: str, confidence: float) -> Finding:
    says = " ".join((check.__doc__ or "").split())
    return Finding(
        check=name_of(check),
        severity="critical",
        cause=f"a fault in the learning code, in the part '{check.part}' ({check.where}). It "
        f"should be so: {says}",
        evidence=evidence,
        confidence=confidence,
        fix=f"mend {check.where}; `git diff` of it, or installing Ludus again, shows what was "
        "changed",
    )


# -- comparing -------------------------------------------------------------------------------------


def close(what: str, got: Any, expected: Any, tolerance: float = 1e-4) -> None:
    """Refuses numbers that differ by more than `tolerance`, relative where they are large."""
    a, b = (
        torch.as_tensor(got).detach().cpu().double(),
        torch.as_tensor(expected).detach().cpu().double(),
    )
    if a.shape != b.shape:
        raise Wrong(f"{what}: shape {list(a.shape)} instead of {list(b.shape)}")
    if not a.numel():
        return
    apart = (a - b).abs() / b.abs().clamp(min=1.0)
    apart = torch.where(torch.isfinite(apart), apart, torch.full_like(apart, float("inf")))
    apart = torch.where(a == b, torch.zeros_like(apart), apart)
    if float(apart.max()) > tolerance:
        at = int(apart.argmax())
        place = f" at {_place(at, a)}" if a.ndim else ""
        raise Wrong(
            f"{what}: {float(a.flatten()[at]):.6g} instead of {float(b.flatten()[at]):.6g}{place}, "
            f"{float((apart > tolerance).double().mean()):.0%} of {a.numel()} numbers differ"
        )


def same(what: str, got: Any, expected: Any) -> None:
    """Refuses anything but the very same numbers."""
    close(what, got, expected, 0.0)


def holds(what: str, so: Any) -> None:
    if not bool(so):
        raise Wrong(what)


def _place(index: int, like: Tensor) -> str:
    place = []
    for size in reversed(like.shape):
        place.append(index % size)
        index //= size
    return str(list(reversed(place)))
