"""The handbook docs/doctor/handbook.md, made of the checks' own explanations: python -m ludus.doctor.handbook"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

from ludus.doctor.audit import MECHANISMS
from ludus.doctor.checks import FAMILIES, checks_of
from ludus.doctor.mechanisms.clip import clip_cuts_the_goal
from ludus.doctor.mechanisms.side import shaping_or_proxy_outweighs

INTRODUCTION = """# The doctor's handbook

What each finding means, why it happens and what to do. The explanations are those in the code; this page is made from them
by `python -m ludus.doctor.handbook`.

- `ludus doctor check RECIPE`, or `--rewards FILE`: can this reward lead to the goal? ([the reward audit](rewards.md))
- `ludus doctor run PATH`: is this run healthy? PATH is a run folder of ours, or a log of another library: CSV, JSON lines or
  TensorBoard events. Names of Stable-Baselines3, CleanRL and RLlib are recognised, and so are usual names (reward, loss,
  entropy …). Others are given as `--columns OURS=THEIRS`, for example `--columns return=score goal=win_rate steps=frame`.

A finding has a severity: *critical* (exit status 1) means that the run or reward does not do what it is for; *warning* that
it may not; *info* that something is worth knowing. Curves are judged against their own noise: a rise or fall counts when it
is larger than three standard errors of means, with the resemblance of neighbouring rows taken into account. The finding
`not_seen` lists what the log did not hold, so that silence is not taken for health.
"""


def handbook() -> str:
    lines = [INTRODUCTION, "## Of a reward, before training\n"]
    for mechanism in (clip_cuts_the_goal, *MECHANISMS):
        outweighs = mechanism is shaping_or_proxy_outweighs
        name = "shaping_outweighs_the_goal, proxy_without_goal" if outweighs else mechanism.__name__
        lines += [f"### {name}\n", *_paragraphs(mechanism)]
    lines.append("## Of a run\n")
    for family in FAMILIES:
        title = (importlib.import_module(f"ludus.doctor.checks.{family}").__doc__ or "").strip()
        lines.append(f"## {family.replace('_', ' ').capitalize()}: {title[0].lower()}{title[1:]}\n".replace("## ", "### ", 1))
        for check in checks_of(family):
            sees, why, do = _paragraphs(check)
            lines += [f"**{check.__name__}.** {sees}", f"*Why.* {why}", f"*What to do.* {do}"]
    return "\n".join(lines).rstrip("\n") + "\n"


def _paragraphs(function: Callable[..., Any]) -> list[str]:
    return [" ".join(part.split()) + "\n" for part in inspect.cleandoc(function.__doc__ or "").split("\n\n")]


if __name__ == "__main__":
    print(handbook(), end="")
