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
    "protect": "h3:text-is('A cell is primary where')",
    "releases": ".empty:has-text('Nothing has been released yet')",
    "ledger": "text=None next to the data",
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


REACHED = """() => [...document.querySelectorAll('.main .btn, .main select, .rail a')].filter((one) => one.offsetParent !== null).filter((one) => {
  one.scrollIntoView({block: 'center', inline: 'center'});
  const area = one.getBoundingClientRect();
  return !one.contains(document.elementFromPoint(area.x + area.width / 2, area.y + area.height / 2));
}).map((one) => one.textContent)"""
"""Controls that something else lies over."""


def test_every_control_can_be_reached_on_a_small_window(explorer: Explorer, browser: Any) -> None:
    """Two panes down to 900 pixels, one column below; at 390 actions lay under cards."""
    with tab(browser, explorer) as page:
        for name in ("data", "tables", "groups"):
            page.set_viewport_size({"width": 900, "height": 800})
            page.click(f".rail a[href='#{name}']")
            page.wait_for_selector(f".rail a.on[href='#{name}']")
            page.wait_for_selector(DRAWN[name])
            page.wait_for_function(SETTLED)
            if name != "groups":
                centre, side = (page.locator(one).bounding_box() for one in (".centre", ".side"))
                assert centre["x"] + centre["width"] <= side["x"] and side["width"] >= 200
            for width in (900, 390):
                page.set_viewport_size({"width": width, "height": 800})
                page.wait_for_function("width => document.documentElement.scrollWidth <= width", arg=width)
                assert page.evaluate(REACHED) == []
