"""Reading is tested with the database that it opens."""

from __future__ import annotations

import pytest


@pytest.fixture
def shares_database() -> None:
    """Every source has a database of its own here."""
