"""What makes a part of an iteration fast on CUDA: fused kernels, and graphs of them.

CUDA graphs: a part of an iteration is captured once and replayed from then on, without the cost of
launching it.

Capturing needs a few warm-up runs, which must leave no trace: everything they could change is put
back, and so is the state of torch's generator, so that a run that captures later (after a resume)
draws the same numbers.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

from ludus.config import Config

WARM_UP = 2

Function = TypeVar("Function", bound=Callable[..., Any])


def can_fuse() -> bool:
    """Torch's compiler needs triton for its kernels, and a C compiler for what launches them."""
    compilers = (os.environ.get("CC"), "cc", "gcc", "clang")
    return find_spec("triton") is not None and any(
        name and shutil.which(name) for name in compilers
    )


def compiled(function: Function, config: Config) -> Function:
    """The function with its many small kernels fused by torch's compiler, where the config asks for
    it."""
    wanted = config.train.compile
    if not (config.device.startswith("cuda") and can_fuse() if wanted is None else wanted):
        return function
    import torch._inductor.config as inductor

    inductor.fallback_random = True  # the numbers an uncompiled run draws
    if hasattr(inductor, "deterministic"):
        inductor.deterministic = (
            True  # kernels are chosen by rule, not by timing: the same in every process
        )
    return cast(Function, torch.compile(function, dynamic=False))


class Graphs:
    """Graphs by name. `tensors()` lists what warm-up must not change."""

    def __init__(self, tensors: Callable[[], list[Tensor]]) -> None:
        self.tensors = tensors
        self.captured: dict[str, torch.cuda.CUDAGraph] = {}
        self.pool: Any = None

    def graph(self, name: str, function: Callable[[], None]) -> Callable[[], None]:
        """What replays the function, which is captured when the name is first asked for."""
        if name not in self.captured:
            self.captured[name] = self._capture(function)
        return self.captured[name].replay

    def _capture(self, function: Callable[[], None]) -> torch.cuda.CUDAGraph:
        generator = torch.cuda.get_rng_state()
        before = {id(t): t.detach().clone() for t in self.tensors()}
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                function()
        torch.cuda.current_stream().wait_stream(stream)
        self._put_back(before)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool):
            function()
        self.pool = self.pool or graph.pool()
        self._put_back(before)
        torch.cuda.set_rng_state(generator)
        torch.cuda.synchronize()
        return graph

    def _put_back(self, before: dict[int, Tensor]) -> None:
        """As it was; what did not exist yet (an optimizer's moments) starts at zero."""
        with torch.no_grad():
            for tensor in self.tensors():
                if id(tensor) in before:
                    tensor.copy_(before[id(tensor)])
                else:
                    tensor.zero_()
