"""Opponents on CUDA: the same that holds on the CPU, in every step of real training."""

import pytest

from ludus.algorithms import graphs
from ludus.training.start import create, prepare
from tests.conftest import has_gpu
from tests.league.test_league import config
from tests.league.together import assert_alike
from tests.league.watching import watch_opponents

pytestmark = [pytest.mark.cuda, pytest.mark.skipif(not has_gpu(), reason="no CUDA GPU")]


def test_real_training_keeps_opponents_within_episodes_and_starts_their_memory_fresh(
    tmp_path, monkeypatch
):
    """Steps are watched one by one, so without graphs (which change nothing: test_training.py)."""
    monkeypatch.setattr(graphs.Graphs, "run", lambda self, name, function: function())
    values = config()
    values.device, values.train.dtype, values.train.compile = "cuda", "float32", False
    seen = watch_opponents(create(tmp_path / "run", *prepare(values)), iterations=30)
    assert seen["swapped"] >= 5 and seen["fresh"] >= 20 and seen["several at once"] >= 5


@pytest.mark.parametrize(
    "recipe", ["brawl", "brawl_strategy", "mechs_2v2", "hide_and_seek", "arena_small"]
)
def test_snapshots_act_in_one_go_as_each_would_alone(recipe, monkeypatch):
    assert_alike(recipe, "cuda", monkeypatch)
