"""What the tests of faults in files share."""

import pytest


@pytest.fixture(scope="session")
def shelf(tmp_path_factory):
    """Undisturbed runs, made when they are first asked for."""
    from tests.faults.points import Shelf

    return Shelf(tmp_path_factory.mktemp("shelf"))
