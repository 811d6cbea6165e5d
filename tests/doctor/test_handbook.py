"""The handbook is current, and every check explains itself."""

from pathlib import Path

import pytest

from ludus.doctor.before import budget, earnings, flow, overfit, spaces
from ludus.doctor.checks import FAMILIES, checks_of
from ludus.doctor.handbook import handbook

PAGE = Path(__file__).parents[2] / "docs" / "doctor" / "handbook.md"
BEFORE = [check for module in (budget, earnings, flow, overfit, spaces) for check in module.CHECKS]
CHECKS = [*BEFORE, *(check for family in FAMILIES for check in checks_of(family))]


def test_the_page_is_current():
    assert PAGE.read_text() == handbook(), (
        "run: python -m ludus.doctor.handbook > docs/doctor/handbook.md"
    )


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_every_check_says_what_it_sees_why_and_what_to_do(check):
    assert len((check.__doc__ or "").split("\n\n")) == 3
