"""A trained policy in an env of another library: it takes that env's own observations and returns
that env's own actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

from ludus.errors import LudusError
from ludus.external.codec import Codec
from ludus.play.agent import NUMBERS, Agent
from ludus.protocols import ActingPolicy


class ExternalAgent(Agent):
    """A trained policy of one role: `action, state = agent.act(observation, state)`, both as the
    env has them."""

    def __init__(
        self, policy: ActingPolicy, layout: Mapping[str, Any], role: str, codec: Codec
    ) -> None:
        super().__init__(policy, layout, role)
        self.codec = codec

    def act(
        self,
        observation: Any,
        state: np.ndarray | None = None,
        *,
        mask: Any = None,
        greedy: bool = False,
    ) -> tuple[Any, np.ndarray]:
        """An action of the env's action space, and the state for the next call (None: a new
        episode).

        The observation is one of the env's or, for many envs at once, one of a vector env's (every
        part has a leading axis of rows); then the action is a vector env's too. `mask` is the env's
        `info["action_mask"]`, needed where training had masks; one inside of a Dict observation is
        found there.
        """
        codec = self.codec
        observation, mask = codec.split(observation, {"action_mask": mask})
        single = self._is_single(observation)
        observed = (
            [observation]
            if single
            else list(iterate(batch_space(codec.observation_space, 1), observation))
        )
        rows = len(observed)
        numbers = np.zeros((rows, self.policy.entries), np.float32)
        pictures = {
            name: np.zeros((rows, seen.height, seen.width), np.uint8)
            for name, seen in codec.seen.items()
        }
        for row, one in enumerate(observed):
            try:
                codec.encode(
                    one, numbers[row], {name: picture[row] for name, picture in pictures.items()}
                )
            except (ValueError, TypeError, KeyError, IndexError) as error:
                raise LudusError(
                    f"the observation of {self.role} does not match {codec.observation_space}: "
                    f"{error}"
                ) from None
        allowed = self._allowed(mask, single, rows) if codec.masked else None
        chosen, state = super().act(
            {NUMBERS: numbers, **pictures}, state, mask=allowed, greedy=greedy
        )
        parts = [
            chosen.get(kind, np.zeros((rows, 0))) for kind in ("continuous", "binary", "choices")
        ]
        actions = [codec.decode(*(part[row] for part in parts)) for row in range(rows)]
        if single:
            return actions[0], state
        empty: Any = create_empty_array(codec.action_space, rows)
        return concatenate(codec.action_space, actions, empty), state

    def _allowed(self, mask: Any, single: bool, rows: int) -> np.ndarray:
        if mask is None:
            raise LudusError(
                f"{self.role} was trained with action masks: hand over mask=info['action_mask']"
            )
        # with rows: one array that has them, or such an array for every choice
        masks = (
            [mask]
            if single
            else list(zip(*mask, strict=True))
            if isinstance(mask, tuple)
            else list(mask)
        )
        if len(masks) != rows:
            raise LudusError(
                f"there are {len(masks)} masks for {rows} observations of {self.role}: give one "
                "for each"
            )
        allowed = np.ones((rows, self.codec.num_masked), bool)
        for row, one in enumerate(masks):
            try:
                something = self.codec.encode_mask(one, allowed[row])
            except ValueError as error:
                raise LudusError(f"{self.role}: {error}") from None
            if not something:
                raise LudusError(
                    f"{self.role}: its action mask allows nothing, so that there is nothing to "
                    "choose"
                )
        return allowed

    def _is_single(self, observation: Any) -> bool:
        """One observation, or a vector env's? Its first part tells; what is wrong with that is said
        where it is read."""
        if not self.codec.leaves:
            return True
        leaf = self.codec.leaves[0]
        try:
            shape = np.shape(leaf.of(observation))
        except (TypeError, KeyError, IndexError):
            return True
        return shape[1:] != leaf.space.shape or shape == leaf.space.shape
