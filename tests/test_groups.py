"""Tests are dealt to the processes of `pytest -n` in groups. Where they are not, nothing fails, but
every process compiles every game."""

import pytest


def test_xdist_knows_the_group_of_a_test(request):
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("tests are not dealt in groups (pytest -n 2 --dist loadgroup)")
    assert request.node.nodeid.endswith("@groups")
