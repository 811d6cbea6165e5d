"""A game in a program of its own, trained over WebSocket: `ludus train remote:8770` prints an
address, and then

    python examples/remote_client.py 'ws://localhost:8770/?token=…'

plays at that address: a target is somewhere on a line, and the agent moves left or right until it
stands on it.
"""

from __future__ import annotations

import json
import random
import sys
from typing import Any

from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

ENVS = 8
CELLS, MOST_STEPS = 11, 20


class Line:
    def reset(self, seed: int) -> list[float]:
        dice = random.Random(seed)
        self.agent, self.target = dice.randrange(CELLS), dice.randrange(CELLS)
        self.steps = 0
        return self.look()

    def step(self, move: int) -> dict[str, Any]:
        self.agent = max(0, min(CELLS - 1, self.agent + (-1, 0, 1)[move]))
        self.steps += 1
        found = self.agent == self.target
        return {
            "observation": self.look(),
            "reward": 1.0 if found else -0.05,
            "terminated": found,
            "truncated": self.steps == MOST_STEPS and not found,
        }

    def look(self) -> list[float]:
        return [2 * self.agent / (CELLS - 1) - 1, 2 * self.target / (CELLS - 1) - 1]


HELLO = {
    "type": "hello",
    "protocol": 1,
    "game": "line",
    "envs": ENVS,
    "observation": ["agent", "target"],
    "action": {"choices": {"move": ["left", "stay", "right"]}},
}


def answer(message: dict[str, Any], envs: list[Line]) -> dict[str, Any]:
    """The result of a step, as lists [env][agent]; each env has one agent."""
    results = []
    for i, env in enumerate(envs):
        if message["reset"][i]:
            first = env.reset(message["seed"][i])
            results.append(
                {"observation": first, "reward": 0.0, "terminated": False, "truncated": False}
            )
        else:
            results.append(env.step(message["choices"][i][0][0]))
    columns = {name: [[result[name]] for result in results] for name in results[0]}
    return {"type": "result", "step": message["step"], **columns}


def main(address: str) -> str:
    """Plays until the trainer has had enough, and returns why it ended."""
    envs = [Line() for _ in range(ENVS)]
    try:
        with connect(address, max_size=None) as socket:
            socket.send(json.dumps(HELLO))
            for text in socket:
                message = json.loads(text)
                if message["type"] == "step":
                    socket.send(json.dumps(answer(message, envs)))
                elif message["type"] == "refused":
                    return f"refused: {message['reason']}"
    except (OSError, WebSocketException) as error:
        return f"the connection ended: {error}"
    return "the connection ended"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(
            "usage: python examples/remote_client.py 'ws://localhost:8770/?token=…'   (as ludus "
            "train printed it)"
        )
    print(main(sys.argv[1]))
