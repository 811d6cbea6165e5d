"""Viewer tests run the rules as plain Python: nothing is compiled for one small env."""

import pytest

from tests.viewer.shelf import make_runs


@pytest.fixture(scope="package", autouse=True)
def plain_rules():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LUDUS_JIT", "0")
        yield


@pytest.fixture(scope="package")
def root(tmp_path_factory, plain_rules):
    return make_runs(tmp_path_factory.mktemp("viewer") / "runs")
