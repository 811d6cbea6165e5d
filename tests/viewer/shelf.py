"""Runs and replays to look at, made in a few seconds: small games played by bots, and one that was
really trained."""

import json
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import uvicorn

import ludus
from ludus.config import PolicyConfig
from ludus.external.foreign import ForeignBatch
from ludus.external.recorder import ForeignRecorder
from ludus.games import load_game
from ludus.play.replay import Recorder
from ludus.sim import Batch
from ludus.viewer.app import MOST_MESSAGE, Viewer, listen
from tests.training.test_runs import TINY, config

SMALL = {
    "pursuit": dict(max_steps=40),
    "hide_and_seek": dict(
        world=14,
        terrains=1,
        trees=8,
        boulders=0,
        walls=6,
        max_steps=40,
        hide_steps=4,
        place_budget=3,
    ),
    "arena": dict(
        population=3,
        rooms=1,
        room=9,
        side=21,
        converters=9,
        mines=3,
        generators=3,
        altars=3,
        blocks=4,
        walls=4,
        max_steps=60,
        stagger_least=60,
    ),
    "brawl": dict(max_steps=60),
    "racing": dict(tracks=1, camera=8, max_steps=60),
    "racing_lidar": dict(tracks=1, max_steps=60),
    "mechs": dict(per_team=2, world=32, maps=1, max_steps=40),
}
EVIL = "<img src=x onerror=alert(1)>"


def record(game, path, label="bots"):
    """A replay of one episode between the game's own bots. Returns the batch it was played in."""
    batch = Batch(load_game(game)[0], 1, overrides=SMALL[game], seed=3)
    for seats in batch.layout.seats:
        own = [name for name in batch.controllers[seats.role] if name not in ("still", "random")]
        batch.set_controller(seats.role, "aggressive" if "aggressive" in own else own[0])
    batch.reset()
    recorder = Recorder(batch, 1)
    while recorder.open:
        recorder.before()
        batch.step()
        recorder.after()
    recorder.save(
        path,
        0,
        {
            "source": game,
            "step": 7,
            "against": "bots",
            "role": batch.layout.seats[0].role,
            "label": label,
        },
    )
    return batch


def record_foreign(source, path, label):
    """A recording of one episode of a foreign env at random."""
    batch = ForeignBatch(source, 1, seed=4, workers=0, filmed=1)
    batch.set_controller("agent", "random")
    batch.arrays["finished"][...] = True
    batch.step()
    recorder = ForeignRecorder(batch, 1)
    while recorder.open:
        recorder.before()
        batch.step()
        recorder.after()
    recorder.save(
        path, 0, {"source": source, "step": 7, "against": "self", "role": "agent", "label": label}
    )


def fake_run(folder, game, **values):
    """The least a run folder needs to be listed."""
    folder.mkdir(parents=True)
    data = {
        "values": {"game": game, **values},
        "origins": dict.fromkeys(values, "command line"),
        "versions": {},
    }
    (folder / "config.json").write_text(json.dumps(data))
    return folder


def make_runs(root: Path) -> Path:
    """root/learned was trained; root/shelf has a replay of every game, root/foreign recordings of
    an env that draws itself and of one that does not; one run's name and values are hostile."""
    trained = config(
        game_values={"max_steps": 40},
        policy=PolicyConfig(hidden=(16,), network="strategy", network_settings=TINY),
    )
    trained.learner.reward_scale = 0.1
    trained.train.total_agent_steps = 1500
    trained.eval.against = ("self",)
    ludus.train(trained, run=root / "learned", quiet=True)
    shelf = fake_run(root / "shelf", "pursuit")
    for game in SMALL:
        record(game, shelf / "replays" / f"000000000007-bots-{game}-best.safetensors")
    foreign = fake_run(root / "foreign", "gym:CartPole-v1")
    record_foreign(
        "gym:CartPole-v1", foreign / "replays" / "000000000007-self-agent-best.safetensors", "best"
    )
    record_foreign(
        "env:tests.envs.odd:counter",
        foreign / "replays" / "000000000007-self-agent-worst.safetensors",
        "worst",
    )
    evil = fake_run(
        root / EVIL.replace("/", ""), "pursuit", note="<script>window.hacked = 1</script>"
    )
    line = {
        "progress/agent_steps": 5,
        "progress/seconds": 1,
        "goal/<b>x</b>/win": 0.5,
        "episode/<i>/return": 1.0,
    }
    (evil / "metrics.jsonl").write_text(json.dumps(line) + "\n")
    return root


@contextmanager
def serving(root, **options):
    """A viewer in a thread of this process; gives its address."""
    viewer = Viewer(root, **options)
    listener = listen(0)
    port = listener.getsockname()[1]
    server = uvicorn.Server(
        uvicorn.Config(
            viewer.app(port), log_level="error", ws_max_size=MOST_MESSAGE, lifespan="off"
        )
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield viewer, port
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()
