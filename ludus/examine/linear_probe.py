"""A linear probe: how well a linear map of vectors names their class. Fitted on some matches,
measured on others.

Axes: vectors [windows, size]; labels [windows]; matches [windows] says which match a window is
from. Every match counts alike, however many windows it has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ludus.intervals import interval

SHRINK = 1e-3  # weight of the squared map beside the mean loss
SEVERAL = 3  # windows of a match from which on they are asked together


@dataclass(frozen=True)
class Probe:
    """log-probabilities = (vector - mean) / std @ weight + bias."""

    mean: np.ndarray
    std: np.ndarray
    weight: np.ndarray
    bias: np.ndarray

    def log_probabilities(self, vectors: np.ndarray) -> np.ndarray:
        logits = (vectors - self.mean) / self.std @ self.weight + self.bias
        return logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)


def fit(vectors: np.ndarray, labels: np.ndarray, matches: np.ndarray, classes: int) -> Probe:
    """Logistic regression on standardised vectors."""
    mean, std = vectors.mean(0), vectors.std(0)
    std = np.where(std > 1e-6 * max(1e-12, float(std.max())), std, 1.0)
    x = torch.from_numpy((vectors - mean) / std).double()
    y = torch.from_numpy(labels).long()
    _, match, windows = np.unique(matches, return_inverse=True, return_counts=True)
    share = torch.from_numpy(1.0 / windows[match] / len(windows)).double()
    weight = torch.zeros(x.shape[1], classes, dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(classes, dtype=torch.float64, requires_grad=True)
    search = torch.optim.LBFGS([weight, bias], max_iter=300, line_search_fn="strong_wolfe")

    def closure() -> Any:
        search.zero_grad()
        loss = (
            torch.nn.functional.cross_entropy(x @ weight + bias, y, reduction="none") * share
        ).sum()
        loss = loss + SHRINK * weight.square().sum()
        loss.backward()
        return loss

    search.step(closure)
    return Probe(mean, std, weight.detach().numpy(), bias.detach().numpy())


def accuracy(
    probe: Probe, vectors: np.ndarray, labels: np.ndarray, matches: np.ndarray
) -> dict[str, Any]:
    """From one window, and from all windows of a match that has at least three; with intervals over
    matches. `confusion`:
    shares of the windows of a class (rows) that were named each class."""
    told = probe.log_probabilities(vectors)
    named, classes = told.argmax(1), told.shape[1]
    single, several = [], []
    for match in np.unique(matches):
        mine = matches == match
        single.append(float((named[mine] == labels[mine]).mean()))
        if mine.sum() >= SEVERAL:
            several.append(float(told[mine].sum(0).argmax() == labels[mine][0]))
    counts = np.zeros((classes, classes))
    np.add.at(counts, (labels, named), 1)
    confusion = counts / np.maximum(1, counts.sum(1, keepdims=True))
    return {
        "one_window": {
            **interval(np.array(single), share=True),
            "windows": len(labels),
            "matches": len(single),
        },
        "several_windows": {**interval(np.array(several), share=True), "matches": len(several)}
        if several
        else None,
        "confusion": confusion.round(4).tolist(),
    }
