"""The page Protect in a browser: describe a table, protect it, decide about a cell, publish."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import louver as lv
from app.browser import running, serious_faults, tab

pytestmark = pytest.mark.chromium

STATES = """() => {
  const canvas = document.querySelector(".heatgrid canvas");
  return canvas !== null && canvas.width > 0;
}"""


TIP_IN_THE_TABLE = """() => {
  const tip = document.querySelector(".heatgrid .tip").getBoundingClientRect();
  const table = document.querySelector(".heatgrid").getBoundingClientRect();
  return innerWidth === 900 && table.left <= tip.left && tip.right <= table.right;
}"""


def test_from_a_table_to_a_release(browser: Any, axe: str, tmp_path: Path) -> None:
    releases = tmp_path / "releases"
    with running(f"--releases={releases}") as explorer, tab(browser, explorer, "protect") as page:
        page.click("button:has-text('Try the sample')")
        page.click("button:has-text('Describe a table')")
        page.select_option(".drawer select", "hours")
        for name in ("education", "race"):
            page.click(f".drawer .places label:has-text('{name}')")
        page.click(".drawer [data-run]")
        page.wait_for_selector(".drawer p:has-text('in the list')")
        page.click(".drawer [data-close]")
        page.select_option("select[aria-label='Search']", "first")
        page.click(".form [data-run]")
        page.wait_for_selector(".verdict.ok:has-text('Every primary cell is protected')")
        page.wait_for_function(STATES)
        page.evaluate(axe)
        assert serious_faults(page) == []
        page.focus(".heatgrid")
        page.keyboard.press("n")
        page.wait_for_selector(".heatgrid .tip:has-text('Primary')")
        wide = page.viewport_size
        page.set_viewport_size({"width": 900, "height": wide["height"]})
        # It moves along, instead of being cut off by the edge of the card.
        page.wait_for_function(TIP_IN_THE_TABLE)
        page.set_viewport_size(wide)
        page.keyboard.press("Enter")
        page.wait_for_selector(".drawer b, .drawer .b")
        page.select_option(".drawer select", "publish")
        page.click(".drawer [data-run]")
        page.wait_for_selector(".drawer .problem:has-text('reason')")
        page.fill(".drawer input", "asked for")
        page.click(".drawer [data-run]")
        page.wait_for_selector(".verdict.plain:has-text('choices have changed')")
        page.wait_for_selector(".card:has-text('never hide; asked for')")
        page.click(".drawer [data-close]")
        page.click(".form [data-run]")
        page.wait_for_selector(".verdict:has-text('Published by decision')")
        page.click("[data-copy]")
        page.wait_for_selector(".drawer pre:has-text('louver protect')")
        page.click(".drawer [data-close]")
        page.click("[data-publish]")
        page.click(".drawer [data-run]")
        page.wait_for_selector(".drawer .verdict.care:has-text('Published')")
    assert lv.verify(releases / "protected").passed
