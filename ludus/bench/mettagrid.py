"""mettagrid, the engine the arena was first written for, on the closest map its current release can
build.

The same: 24 agents, 50×50 cells with a border of 6, as many walls, blocks, mines, generators and
altars, an 11×11 view as tokens of three bytes, lasers nobody can pay for. Different, all in its
favour: its mines, generators and altars only stand there (it no longer has converters), it has 5
actions instead of 19 and no mask, and its episodes never end, so it builds no maps while it is
timed. Its C++ step is called directly, without its Python layers.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ludus.errors import LudusError
from ludus.games import load_game
from ludus.games.arena.world import BORDER, SIGHT

SIMULATIONS = 16
TOKENS = 200


def _config() -> Any:
    try:
        from mettagrid.builder.envs import make_arena
        from mettagrid.config.mettagrid_config import GridObjectConfig
        from mettagrid.config.obs_config import ObsConfig
        from mettagrid.mapgen.mapgen import MapGen
        from mettagrid.mapgen.scenes.random import Random
    except ImportError:
        raise LudusError("--against mettagrid needs it installed: pip install mettagrid") from None
    settings = load_game("arena")[0].resolve()
    agents, rooms = settings.sizes["population"], settings.params["rooms"] ** 2
    side = int(settings.params["rooms"] * settings.params["room"])
    things = {
        "wall": "walls",
        "block": "blocks",
        "mine": "mines",
        "generator": "generators",
        "altar": "altars",
    }
    objects = {name: int(rooms * settings.params[count]) for name, count in things.items()}
    builder = MapGen.Config(
        num_agents=agents,
        width=side,
        height=side,
        border_width=BORDER,
        instance_border_width=0,
        instance=Random.Config(agents=agents, objects=objects),
    )
    config = make_arena(agents, combat=False, map_builder=builder)
    config.game.objects |= {name: GridObjectConfig(name=name) for name in objects if name != "wall"}
    config.game.obs = ObsConfig(width=SIGHT, height=SIGHT, num_tokens=TOKENS)
    config.game.max_steps = 0
    return config


def mettagrid_rate(seconds: float) -> float:
    """Agent-steps per second of one process on one core, with random actions and observations
    written."""
    config = _config()
    from mettagrid.simulator import Simulation

    simulations = [Simulation(config, seed=seed) for seed in range(SIMULATIONS)]
    count = len(simulations[0].action_names)
    actions = (
        np.random.default_rng(0).integers(0, count, (8, simulations[0].num_agents)).astype(np.int32)
    )
    engines = [simulation._c_sim for simulation in simulations]
    steps, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds or not steps:
        for chosen in actions:
            for engine in engines:
                engine.actions()[:] = chosen
                engine.step()
                steps += len(chosen)
    return steps / elapsed
