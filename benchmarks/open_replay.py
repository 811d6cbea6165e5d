"""How long a page takes to show a replay of 240 steps of ten against ten mechs: from its address to
the first picture.

python benchmarks/open_replay.py [--times 3]     (needs Chromium and ludus[pictures]; rules are
compiled beforehand)

Each time with a viewer and a browser started anew, which have shown nothing yet.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ludus.export.pictures import browser
from ludus.games import load_game
from ludus.play.replay import Recorder
from ludus.sim import Batch

FILE = "000000000007-bots-mech-best.safetensors"
READY = "Boolean(window.ludusPlayer?.film && ludusPlayer.drawn > 0)"


def record(run: Path) -> int:
    """A match between teams that move at random. Returns its steps."""
    run.mkdir(parents=True)
    (run / "config.json").write_text(
        json.dumps({"values": {"game": "mechs"}, "origins": {}, "versions": {}})
    )
    batch = Batch(load_game("mechs")[0], 1, seed=3)
    batch.set_controller("mech", "random")
    batch.reset()
    recorder, steps = Recorder(batch, 1), 0
    while recorder.open:
        recorder.before()
        batch.step()
        recorder.after()
        steps += 1
    recorder.save(
        run / "replays" / FILE,
        0,
        {"source": "mechs", "step": 7, "against": "bots", "role": "mech", "label": "best"},
    )
    return steps


def once(root: Path, port: int) -> float:
    command = [
        sys.executable,
        "-m",
        "ludus",
        "view",
        "--root",
        str(root),
        "--port",
        str(port),
        "--headless",
    ]
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        time.sleep(5.0)  # until it listens
        with browser() as chromium:
            page = chromium.new_page()
            start = time.perf_counter()
            page.goto(f"http://127.0.0.1:{port}/#/replay/match/{FILE}")
            while not page.evaluate(READY):
                page.wait_for_timeout(10)
            return time.perf_counter() - start
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--port", type=int, default=8655)
    own = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        steps = record(Path(folder) / "match")
        print(
            json.dumps(
                {
                    "steps": steps,
                    "seconds": [once(Path(folder), own.port) for _ in range(own.times)],
                }
            )
        )


if __name__ == "__main__":
    main()
