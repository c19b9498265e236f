"""What somebody who uses the explorer for the first time could not do, or could misread."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.browser import running, tab

pytestmark = pytest.mark.chromium

OFFERED = (
    "(label) => [...document.querySelector(`select[aria-label='${label}']`).options].map(one => one.value)"
)


@pytest.fixture
def farms(tmp_path: Path) -> Path:
    """Farms of owners who have several: too many owners for a table."""
    path = tmp_path / "farms.csv"
    lines = [f"F{n},O{n * 7 % 400},{'xyz'[n % 3]},{'pq'[n % 2]},{n % 90 + 1}" for n in range(600)]
    path.write_text("\n".join(["farm,owner,crop,district,turnover", *lines, ""]))
    return path


def test_numbers_columns_and_ledgers_of_the_open_data(browser: Any, farms: Path, tmp_path: Path) -> None:
    releases = tmp_path / "releases"
    with running(str(farms), f"--releases={releases}") as explorer, tab(browser, explorer, "tables") as page:
        page.wait_for_selector(".tile b:not(:text-is('–'))")
        for name in ("crop", "district", "turnover"):
            page.focus(f"[data-chip='{name}']")
            page.keyboard.press("o")
            page.wait_for_selector(f".shelf.out [data-chip='{name}']")
        # The six counts and the table were those of the arrangement before.
        page.wait_for_selector(".verdict:has-text('This is not a table yet.')")
        page.wait_for_selector(".tiles", state="hidden")
        page.wait_for_selector(".heatgrid", state="hidden")
        for name, key in (("crop", "r"), ("district", "c")):
            page.focus(f"[data-chip='{name}']")
            page.keyboard.press(key)
        page.wait_for_selector(".tiles")
        page.wait_for_selector(".heatgrid")

        # The column of owners groups contributors, and that of farms is their key, although no table can have them.
        page.click(".rail a[href='#protect']")
        page.wait_for_selector("[data-run]:has-text('Protect')")
        assert {"farm", "owner"} <= set(page.evaluate(OFFERED, "Column that groups contributors"))
        assert {"farm", "owner"} <= set(page.evaluate(OFFERED, "Person key"))

        # A second ledger could not be made in the browser.
        page.click(".rail a[href='#ledger']")
        page.click("button:has-text('Make the ledger')")
        page.wait_for_selector(".verdict.ok")
        page.click("button:has-text('Another ledger…')")
        page.wait_for_selector(".verdict:has-text('The ledger in use stays as it is.')")
        page.wait_for_selector("td:has-text('farms.csv.ledger')")
