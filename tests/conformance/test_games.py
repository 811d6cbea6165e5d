"""Every game on every backend."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ludus.games import REGISTRY, load_game
from ludus.sim import Batch, conformance
from tests.conftest import cuda_compiler, has_gpu

DEVICES = [
    "cpu",
    pytest.param(
        "cuda", marks=[pytest.mark.cuda, pytest.mark.skipif(not has_gpu(), reason="no CUDA GPU")]
    ),
]


@pytest.mark.parametrize("name", REGISTRY)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("check", conformance.CHECKS, ids=lambda c: c.__name__)
def test_conformance(name, device, check):
    check(load_game(name)[0], device)


@pytest.mark.parametrize("name", REGISTRY)
def test_any_sequence_of_actions(name):
    """Hypothesis looks for actions, extremes included, that break a bound, with every index
    checked."""
    game = load_game(name)[0]
    batch = Batch(game, 4, seed=3, checked=True)
    start = batch.state()
    layout = batch.layout
    steps = st.lists(
        st.tuples(
            st.lists(
                st.floats(-1, 1, width=32),
                min_size=len(layout.continuous),
                max_size=len(layout.continuous),
            ),
            st.lists(st.integers(0, 1), min_size=len(layout.binary), max_size=len(layout.binary)),
            st.tuples(*(st.integers(0, len(o) - 1) for o in layout.choices.values())),
            st.integers(1, 12),
        ),
        min_size=1,
        max_size=12,
    )

    @settings(max_examples=40, deadline=None, derandomize=True)
    @given(steps)
    def play(sequence):
        batch.load_state(start)
        for continuous, binary, choices, repeat in sequence:
            batch["continuous"][...] = np.array(continuous, np.float32)
            batch["binary"][...] = np.array(binary, np.int8)
            batch["choices"][...] = np.array(choices, np.int32)
            conformance.run(batch, repeat)
        for array in batch.arrays.values():
            assert array.dtype.kind != "f" or np.isfinite(array).all()
        assert np.abs(batch["observation"]).max() <= conformance.OBSERVATION_LIMIT

    play()


@pytest.mark.parametrize("name", REGISTRY)
@pytest.mark.skipif(
    not cuda_compiler(),
    reason="the CUDA compiler (pip install 'ludus[cuda-compiler]') is not installed",
)
def test_cuda_kernels_compile_without_a_gpu(name):
    from ludus.sim.compile import compile_ptx

    batch = Batch(load_game(name)[0], 4)
    values = {**batch.layout.sizes, **batch.arrays, **batch._views}
    kernels = compile_ptx(batch._program, batch.layout.sizes, values)
    assert len(kernels) > 5
    assert all(".entry" in ptx and ".target sm_90" in ptx for ptx in kernels.values())
