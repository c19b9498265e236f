"""Tests of reports draw their pictures."""

from __future__ import annotations

import pytest


@pytest.fixture
def draws_no_pictures() -> None:
    """Leave it out."""
