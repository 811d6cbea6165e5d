"""The handbook docs/doctor/handbook.md, made of the checks' own explanations: python -m
ludus.doctor.handbook"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

from ludus.doctor.audit import MECHANISMS
from ludus.doctor.before import budget, earnings, flow, overfit, spaces
from ludus.doctor.checks import FAMILIES, checks_of
from ludus.doctor.mechanisms.clip import clip_cuts_the_goal
from ludus.doctor.mechanisms.side import shaping_or_proxy_outweighs

INTRODUCTION = """# The doctor's handbook

What each finding means, why it happens and what to do. The explanations are those in the code; this
page is made from them by `python -m ludus.doctor.handbook`.

- `ludus doctor check RECIPE`: can this recipe work? Its reward on paper, then everything that can
  be tried out in seconds ([before and while training](before-and-while-training.md)). `--rewards
  FILE`: a described reward ([the reward audit](rewards.md)).
- `ludus train` watches by itself: findings are in the dashboard, in `findings.jsonl`, in
  `report.html` and in the verdict.
- `ludus doctor run PATH`: is this run healthy? PATH is a run folder of ours, or a log of another
  library: CSV, JSON lines or TensorBoard events. Names of Stable-Baselines3, CleanRL and RLlib are
  recognised, and so are usual names (reward, loss, entropy …). Others are given as `--columns
  OURS=THEIRS`, for example `--columns return=score goal=win_rate steps=frame`.

A finding has a severity: *critical* (exit status 1) means that the run or reward does not do what
it is for; *warning* that it may not; *info* that something is worth knowing. The verdict
(`"verdict"` with `--json`) is that of the worst finding, or `ok`; where nothing worse than *info*
was found in fewer than a dozen rows it is `too_little_data`: a run that died early is not healthy
because nothing was seen. Its exit status is 0, as that of `ok`. A file that is not a log is refused
(status 2). Curves are judged against their own noise: a rise or fall counts when it is larger than
three standard errors of means, with the resemblance of neighbouring rows taken into account. The
finding `not_seen` lists what the log did not hold, so that silence is not taken for health.
"""


def handbook() -> str:
    lines = [INTRODUCTION, "## Of a reward, before training\n"]
    for mechanism in (clip_cuts_the_goal, *MECHANISMS):
        outweighs = mechanism is shaping_or_proxy_outweighs
        name = "shaping_outweighs_the_goal, proxy_without_goal" if outweighs else mechanism.__name__
        lines += [f"### {name}\n", *_paragraphs(mechanism)]
    lines.append("## Of a recipe that is tried out, before training\n")
    for module in (earnings, spaces, budget, flow, overfit):
        title = (module.__doc__ or "").strip()
        lines.append(f"### {title}\n")
        lines += [line for check in module.CHECKS for line in _entry(check)]
    lines.append("## Of a run\n")
    for family in FAMILIES:
        title = (importlib.import_module(f"ludus.doctor.checks.{family}").__doc__ or "").strip()
        lines.append(
            f"## {family.replace('_', ' ').capitalize()}: {title[0].lower()}{title[1:]}\n".replace(
                "## ", "### ", 1
            )
        )
        for check in checks_of(family):
            lines += _entry(check)
    return "\n".join(lines).rstrip("\n") + "\n"


def _entry(check: Callable[..., Any]) -> list[str]:
    sees, why, do = _paragraphs(check)
    return [f"**{check.__name__}.** {sees}", f"*Why.* {why}", f"*What to do.* {do}"]


def _paragraphs(function: Callable[..., Any]) -> list[str]:
    return [
        " ".join(part.split()) + "\n"
        for part in inspect.cleandoc(function.__doc__ or "").split("\n\n")
    ]


if __name__ == "__main__":
    print(handbook(), end="")
