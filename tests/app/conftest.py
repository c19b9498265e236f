"""One server and one browser for the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.browser import chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="session")
def axe() -> str:
    """axe-core, to be evaluated in a page."""
    found = pytest.importorskip("axe_core_python", reason="axe-core is not installed")
    return Path(found.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
