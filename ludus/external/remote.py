"""Envs that run elsewhere, in a browser or an engine, as a batch: "remote:PORT", or
"remote:HOST:PORT" to listen beyond this machine.

A row of the batch borrows an env of some client. Where a client leaves, answers too late or sends
what cannot be, the episodes of its envs are cut (not counted, not learned from in that step),
training goes on with the others, and the rows wait for another env. Nothing waits for ever: a row
without an env for ABSENT_SECONDS stops the run with the cause.
"""

from __future__ import annotations

import queue
import time
from typing import Any, NamedTuple

import numpy as np

from ludus.errors import LudusError
from ludus.external.codec import fill_empty
from ludus.external.gate import Client, Gate
from ludus.external.wire import Fault, Hello, read_result, write
from ludus.sim.episode import RANDOM

ANSWER_SECONDS = 10.0
ABSENT_SECONDS = 60.0
MOST_FAULTS = 50  # one after the other, without a good step between them


class Loan(NamedTuple):
    """An env of a client, as a row has it."""

    client: Client
    env: int


class RemoteHost:
    """Steps the rows of a batch through a gate. Stands in for `Guests`."""

    def __init__(
        self,
        gate: Gate,
        num_envs: int,
        arrays: dict[str, np.ndarray],
        *,
        seed: int = 0,
        answer_seconds: float = ANSWER_SECONDS,
        absent_seconds: float = ABSENT_SECONDS,
    ) -> None:
        self.gate, self.arrays, self.seed = gate, arrays, seed
        self.answer_seconds, self.absent_seconds = answer_seconds, absent_seconds
        self.loans: list[Loan | None] = [None] * num_envs
        self.missed_since = [time.monotonic()] * num_envs
        self.random = np.random.default_rng(0)
        self.number = 0  # of the step, for answers to name
        self.waited = 0.0  # seconds that went into waiting for clients, since it was last read
        self.faults_in_a_row = 0
        self.last_cause = "none has come yet"

    def step(self) -> None:
        self._borrow()
        asked: dict[Client, dict[int, int]] = {}  # client → its env → our row
        for row, loan in enumerate(self.loans):
            if loan is not None:
                asked.setdefault(loan.client, {})[loan.env] = row
        self.number += 1
        for client, rows in asked.items():
            client.ask(self._message(client.hello, rows))
        begin = time.monotonic()
        good = [
            self._hear(client, rows, begin + self.answer_seconds) for client, rows in asked.items()
        ]
        self.waited += time.monotonic() - begin
        self.faults_in_a_row = 0 if any(good) else self.faults_in_a_row + len(good)
        if self.faults_in_a_row > MOST_FAULTS:
            raise LudusError(
                f"remote:{self.gate.address}: {self.faults_in_a_row} faults one after the other; "
                f"the last: {self.last_cause}"
            )

    # -- who has which env -------------------------------------------------------------------------

    def _borrow(self) -> None:
        """An env for every row that starts an episode and has none, as far as they go; waits while
        nobody has one."""
        if self.gate.owner is not self:  # another batch has played with them since
            self.gate.owner = self
            for row in range(len(self.loans)):
                self._lose(row, "another batch of the run played")
        self._lend()
        while self.arrays["resetting"].all() and not any(self.loans):
            self._refuse_absence()
            begin = time.monotonic()
            self.gate.wait_for_news(0.2)
            self.waited += time.monotonic() - begin
            self._lend()
        self._refuse_absence()

    def _lend(self) -> None:
        for row, loan in enumerate(self.loans):
            if loan is not None and loan.client.gone:
                self._lose(row, loan.client.cause)
        waiting = [
            row
            for row, loan in enumerate(self.loans)
            if loan is None and self.arrays["resetting"][row]
        ]
        if not waiting:
            return
        taken = {(loan.client, loan.env) for loan in self.loans if loan is not None}
        clients = [client for client in list(self.gate.clients) if not client.gone]
        free = (Loan(c, e) for c in clients for e in range(c.hello.envs) if (c, e) not in taken)
        for row, loan in zip(waiting, free, strict=False):
            self.loans[row] = loan

    def _lose(self, row: int, cause: str) -> None:
        """The row's episode, if it is in one, ends here: cut, and no decision of the policy."""
        if self.loans[row] is not None:
            self.loans[row] = None
            self.missed_since[row] = time.monotonic()
            self.last_cause = cause
        if not self.arrays["resetting"][row]:
            self.arrays["lost"][row] = True
            self.arrays["truncated"][row] = self.arrays["alive"][row]
        self.arrays["alive"][row] = False

    def _refuse_absence(self) -> None:
        missing = [row for row, loan in enumerate(self.loans) if loan is None]
        late = [
            row
            for row in missing
            if time.monotonic() - self.missed_since[row] > self.absent_seconds
        ]
        if late:
            have = len(self.loans) - len(missing)
            news = (
                f"; a client was refused: {self.gate.last_refusal}"
                if self.gate.last_refusal
                else ""
            )
            raise LudusError(
                f"remote:{self.gate.address} has {have} of the {len(self.loans)} envs that are "
                f"needed, for {self.absent_seconds:.0f} s: "
                f"connect more or use --envs {max(1, have)} (the last one left because "
                f"{self.last_cause}{news})"
            )

    # -- messages ----------------------------------------------------------------------------------

    def _message(self, hello: Hello, rows: dict[int, int]) -> str:
        """What each env of a client has to do. Envs that nobody borrowed reset, and are ignored."""
        a = self.arrays
        reset, seed = [True] * hello.envs, [0] * hello.envs
        actions: dict[str, list[Any]] = {
            name: np.zeros((hello.envs, *a[name].shape[1:]), a[name].dtype).tolist()
            for name in ("continuous", "binary", "choices")
            if a[name].shape[-1]
        }
        for env, row in rows.items():
            for agent in np.flatnonzero(a["controller"][row] == RANDOM):
                self._act_at_random(row, int(agent), hello)
            reset[env] = bool(a["resetting"][row])
            seed[env] = (
                max(0, int(a["seeds"][row]))
                or (self.seed * 1_000_003 + self.number * 7_919 + row) % 2**31
            )
            for name, values in actions.items():
                values[env] = a[name][row].tolist()
        return write("step", step=self.number, reset=reset, seed=seed, **actions)

    def _act_at_random(self, row: int, agent: int, hello: Hello) -> None:
        a, random = self.arrays, self.random
        allowed = (
            a["action_mask"][row, agent]
            if hello.masked
            else np.ones(len(hello.binary) + sum(len(o) for _, o in hello.options))
        )
        a["continuous"][row, agent] = random.uniform(-1, 1, len(hello.continuous))
        a["binary"][row, agent] = (random.random(len(hello.binary)) < 0.5) * allowed[
            : len(hello.binary)
        ]
        at = len(hello.binary)
        for i, (_, options) in enumerate(hello.options):
            a["choices"][row, agent, i] = random.choice(
                np.flatnonzero(allowed[at : at + len(options)])
            )
            at += len(options)

    def _hear(self, client: Client, rows: dict[int, int], until: float) -> bool:
        """Writes a client's answer into its rows; or dismisses it. Was it good?"""
        try:
            try:
                message = client.inbox.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                raise Fault(f"it gave no answer for {self.answer_seconds:.0f} s") from None
            if message is None:
                raise Fault(client.cause)
            result, client.memory_mb = read_result(message, client.hello, self.number)
            self._fill_masks(result, client.hello, rows)
        except Fault as fault:
            client.dismiss(str(fault))
            for row in rows.values():
                self._lose(row, str(fault))
            return False
        for env, row in rows.items():
            self._write(row, {name: values[env] for name, values in result.items()})
        return True

    def _fill_masks(
        self, result: dict[str, np.ndarray], hello: Hello, rows: dict[int, int]
    ) -> None:
        """Where a mask allows nothing, everything is shown as allowed: who plays on is idle then,
        and somebody else must not be."""
        result["idle"] = np.zeros(result["reward"].shape, bool)
        if not (hello.masked and hello.options):
            return
        sizes = [len(options) for _, options in hello.options]
        for env, row in rows.items():
            over = (result["terminated"][env] != 0) | (result["truncated"][env] != 0)
            plays = (self.arrays["alive"][row] & ~over) | self.arrays["resetting"][row]
            for agent, mask in enumerate(result["mask"][env]):
                empty = fill_empty(mask, len(hello.binary), sizes)
                if plays[agent] and 0 < empty < len(sizes):
                    raise Fault(
                        f"the mask of {hello.agents[agent]} allows nothing in one of its choices, "
                        "but something in others"
                    )
                result["idle"][env, agent] = empty and plays[agent]
            if plays.any() and result["idle"][env][plays].all():
                who = ", ".join(np.array(hello.agents)[plays])
                raise Fault(f"the mask of {who} allows nothing, and the episode goes on")

    def _write(self, row: int, result: dict[str, np.ndarray]) -> None:
        a = self.arrays
        a["observation"][row], a["idle"][row] = result["observation"], result["idle"]
        if "mask" in result:
            a["action_mask"][row] = result["mask"] != 0
        if a["resetting"][row]:
            a["alive"][row] = True
            return
        was = a["alive"][row].copy()
        a["reward"][row] = result["reward"] * was
        a["terminated"][row], a["truncated"][row] = (
            result["terminated"] != 0,
            result["truncated"] != 0,
        )
        a["alive"][row] = was & ~(a["terminated"][row] | a["truncated"][row])

    def close(self) -> None:
        """Clients stay for the next batch of the run."""
        if self.gate.owner is self:
            self.gate.owner = None
