"""What an agent-step of mechs costs from 1v1 to 20v20, as a plot.

taskset -c 0 python benchmarks/mechs_scaling.py [--output docs/images/mechs_scaling.png] [--repeats
2]

One thread, a world of 100, full observations, about as many mechs in the batch whatever the size of
teams. A point is one whole match of everybody: 240 decisions from the start. Mechs act at random
(teams stay apart) or are objective bots, which fight over the zone; the bots' own thinking is
included. Only valid agent-steps count: wrecks decide nothing. Times are the processor's, not the
clock's, and the best of several, so that a busy machine disturbs them little.
"""

import argparse
import time

import matplotlib

from ludus.games.mechs.spec import GAME
from ludus.sim import Batch

PER_TEAM = (1, 2, 3, 5, 10, 15, 20)
MECHS = 5120  # of a batch
BOTS = {"random": "random actions", "objective": "objective bots, their thinking included"}


def cost(per_team: int, bot: str, repeats: int) -> float:
    """Microseconds per valid agent-step."""
    batch = Batch(GAME, MECHS // (2 * per_team), overrides=dict(per_team=per_team))
    batch.set_controller("mech", bot)
    times = []
    for _ in range(repeats):
        batch.reset()
        batch.read_valid_steps()
        start = time.process_time()
        for _ in range(int(batch.settings.params["max_steps"])):
            batch.step()
        times.append((time.process_time() - start) / batch.read_valid_steps())
    return 1e6 * min(times)


def reset_cost(repeats: int) -> float:
    """Milliseconds that an env of ten against ten takes for a reset: a map is picked, not built."""
    batch, times = Batch(GAME, 512), []
    for _ in range(repeats):
        start = time.process_time()
        for _ in range(10):
            batch.reset()
        times.append((time.process_time() - start) / (10 * batch.num_envs))
    return 1e3 * min(times)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", default="docs/images/mechs_scaling.png")
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 3.6), dpi=90)
    print(f"{'mechs':>7} {'acting':>10} {'µs per agent-step':>18} {'agent-steps/s':>14}")
    for bot, label in BOTS.items():
        line = [cost(per_team, bot, options.repeats) for per_team in PER_TEAM]
        for per_team, microseconds in zip(PER_TEAM, line, strict=True):
            print(
                f"{f'{per_team}v{per_team}':>7} {bot:>10} {microseconds:>18.2f} "
                f"{1e6 / microseconds:>14,.0f}",
                flush=True,
            )
        axes.plot(PER_TEAM, line, marker="o", label=label)
    print(f"a reset of an env of 10v10 takes {reset_cost(options.repeats):.3f} ms")
    axes.axhline(1e6 / 150_000, color="grey", linestyle=":", label="150,000 agent-steps/s")
    axes.set(ylim=(0, None), xlabel="mechs a team", ylabel="µs per agent-step (one core)")
    axes.set_xticks(PER_TEAM)
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(options.output)


if __name__ == "__main__":
    main()
