"""Described rewards kept apart from the shipped ones. What each round scored at its first try is
kept as it was.

Each round was written, with the verdict it should get, before the audit ran on it. Then rules that
were wrong in general were mended, and the next round was written. The shipped examples (`first`,
`kept_aside`) have none of these.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.rewards.judge import judge, summary

FOLDER = Path(__file__).parents[2] / "tests" / "doctor" / "rewards_held_out"

# round → what it is, and its score at the first try: sick found critical, right mechanism among
# them, sound called critical, warned
ROUNDS: dict[str, tuple[str, tuple[int, int, int, int]]] = {
    "round_1": ("known environments and published cases", (24, 24, 0, 0)),
    "round_2": ("the same, after mending", (20, 20, 0, 0)),
    "round_3": ("environments with their real numbers; sick ones in few words", (15, 15, 1, 2)),
    "round_4": ("both, after mending", (10, 10, 2, 0)),
    "round_5": (
        "by another author, the first half of them before reading the rules",
        (15, 15, 2, 0),
    ),
    "round_6": ("by the same, after mending", (9, 9, 0, 0)),
    "round_7": ("by a third author, before reading the rules", (18, 17, 1, 0)),
    "round_8": ("by the same, aimed at what the seventh had missed", (8, 8, 2, 1)),
}

TEXT = """## Held out

Rewards that were written after all of the above, with the verdict that an expert should give, before the audit saw them
(`tests/doctor/rewards_held_out`). They are no part of the shipped examples or of their figures. What a round got at its first
try stays in the table; then the rules were mended in general ways, and the last columns say what it gets now.

| round | sick | found blind | mechanism blind | sound | false critical, warnings blind | found now | mechanism now | false critical, warnings now |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""

LEARNT = """
What the misses taught, and what was done:
- `key_chain` (missed): each of three steps has chance 0.01 and requires the one before. A chance at or above that of what a term
  requires is now read as the chance once that was met, so the chain has one in a million.
- `hand_hides_object` (right, but also called *dying early pays*): dying is a way out only where living costs.
- `ale_pong_27000` (warned): a goal that comes ten or more times an episode is not called late because the time limit is generous.
- `ale_seaquest` (warned): goals whose amounts overlap keep much of their order under a clip.
- `lunar_lander_raw` (critical): mistakes are counted over the steps a succeeding agent lives, not over the time limit.
- `ms_pacman_clipped` (critical, now a warning): a small penalty beside many goals is not what a clip distorts. The warning stays:
  under a clip a ghost is worth a pellet, and agents trained so leave ghosts alone (van Hasselt et al. 2016). Here the expectation
  was too mild.
- `tag_runner` (still critical, and wrong): what it is punished for is the reverse of its goal, and keeping still does not avoid it.
  The file has no key that says so.
- `pistonball` (critical): a difference of potentials that says how often it is paid is worth that many times its value; without
  `max_times` the value is still that of the whole way.
- `unity_soccer` (still critical): told in physics steps, of which every fifth is a decision, so that the discount seems to see a
  fifth as far as it does. `max_steps` means decisions.
- `tsp50`, `cooling` (critical), `chip_placement_late` (called punished, not late): a cost that nobody can bring to zero is no slip of the sign
  where the file says that random play lies between worst and best, and that there is no way out.
- `puddle_world` (critical): a cost of some places counts as a mistake while time presses, not as effort.
- `pedestrian_penalty` (missed): mistakes count for the whole episode where next to nobody reaches the goal that would end them.
- `nle_staircase` (warned): who fails by chance alone, once in thousands of steps, has lived until then.
- `liquidation_close` (missed): a score that every episode gets at its end comes at its end, also when the file says that it ends there.
- `loss_ten` (expected a warning, still ok): a loss of 10 beside a win of 1. How dear a loss may be is a matter of taste.

The rules that the last two rounds changed were fitted to their misses: what they get now is no evidence, what they got blind is.
The first four rounds have one author, who read the rules after the first.
"""


def rows(name: str) -> list[dict[str, Any]]:
    return [judge(path) for path in sorted((FOLDER / name).glob("*.toml"))]


def section() -> str:
    """The part of docs/doctor/rewards.md on these rounds."""
    lines = []
    for name, (what, (found, named, critical, warned)) in ROUNDS.items():
        s = summary(rows(name))
        lines.append(
            f"| {name}: {what} | {s['sick']} | {found} | {named} | {s['sound']} | {critical}, "
            f"{warned} "
            f"| {s['critical']} | {s['named']} | {s['false_critical']}, {s['false_warning']} |"
        )
    return TEXT + "\n".join(lines) + "\n" + LEARNT
