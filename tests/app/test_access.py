"""No page keeps people out: axe-core finds no serious fault on any, light or dark, with data and without."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from app.browser import Explorer, running, serious_faults, tab
from louver.app.pages import PAGES
from louver.data.samples import sample_path

pytestmark = pytest.mark.chromium

SETTLED = "!document.querySelector('.dim, .run:not(.gone)') && [...document.querySelectorAll('.tile b')].every(b => b.textContent !== '–')"
DRAWN = {
    "start": "button:has-text('Choose a zip file')",
    "audit": "button:has-text('Describe a table')",
    "data": ".attr table",
    "tables": ".verdict:has-text('publish'), .verdict:has-text('No small count')",
    "microdata": ".main .verdict",
    "groups": "h2:text-is('Forecast')",
    "topdown": ".empty:has-text('no spec')",
    "releases": ".empty:has-text('Nothing was released yet')",
    "ledger": "text=None beside the data",
}
"""What only the finished page has."""


@pytest.fixture(scope="module")
def explorer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explorer]:
    """Ended as a system ends it; what was private is gone then."""
    folder = tmp_path_factory.mktemp("private")
    releases = tmp_path_factory.mktemp("access") / "releases"
    given = [str(sample_path("people")), f"--releases={releases}"]
    with running(*given, end=signal.SIGTERM, TMPDIR=str(folder)) as found:
        [private] = folder.glob("louver-*")
        assert private.stat().st_mode & 0o077 == 0
        yield found
    assert not private.exists()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page(explorer: Explorer, browser: Any, axe: str, scheme: str) -> None:
    faults = {}
    with tab(browser, explorer, color_scheme=scheme) as page:
        page.wait_for_selector(".attr table")
        page.evaluate(axe)
        for name in PAGES:
            page.click(f".rail a[href='#{name}']")
            page.wait_for_selector(f".rail a.on[href='#{name}']")
            page.wait_for_selector(DRAWN[name])
            page.wait_for_function(SETTLED)
            if found := serious_faults(page):
                faults[name] = found
    assert not faults
