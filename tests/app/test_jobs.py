"""Whole jobs in a real browser: by keyboard from Tables to a published release, and a newcomer's way from a file to a verified one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.browser import Explorer, running, tab
from louver.privacy.ledger import Ledger
from louver.release.verify import verify

pytestmark = pytest.mark.chromium

TOWNS = {"A": (12, 30), "B": (40, 26), "C": (10, 40)}
MOST_TABS = 80


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("jobs")
    rows = [
        f"{town},{ill},{n}" for town, counts in TOWNS.items() for ill, n in zip("yn", counts, strict=True)
    ]
    (made / "towns.csv").write_text("\n".join(["town,ill,count", *rows, ""]))
    people = [
        f"{town},{ill}"
        for town, counts in TOWNS.items()
        for ill, n in zip("yn", counts, strict=True)
        for _ in range(n)
    ]
    (made / "people.csv").write_text("\n".join(["town,ill", *people, ""]))
    return made


@pytest.fixture(scope="module")
def explorer(folder: Path) -> Iterator[Explorer]:
    with running(str(folder / "towns.csv"), "--weight=count", f"--releases={folder / 'releases'}") as found:
        yield found


def tab_to(page: Any, selector: str) -> None:
    """Press Tab until an element has the focus."""
    for _ in range(MOST_TABS):
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"no key leads to {selector}")


def test_from_tables_to_a_release_by_keyboard(browser: Any, explorer: Explorer, folder: Path) -> None:
    with tab(browser, explorer) as page:
        page.wait_for_selector(".attr table")
        while "#tables" not in page.url:  # two keys that come too far apart are not a pair
            page.keyboard.press("g")
            page.keyboard.press("t")
        page.wait_for_selector("h1:text-is('Tables')")
        page.wait_for_selector(".centre .verdict")
        page.focus("[data-chip=town]")
        tab_to(page, "[data-publish]")
        page.keyboard.press("Enter")
        page.wait_for_selector(".drawer [data-run]")
        tab_to(page, ".drawer input.inp")
        page.keyboard.press("Control+a")
        page.keyboard.type("towns")
        tab_to(page, ".drawer [data-run]")
        page.keyboard.press("Enter")
        page.wait_for_selector(".drawer .verdict:has-text('Published: towns.')")
        page.keyboard.press("Escape")
        page.wait_for_selector(".drawer", state="detached")
    assert verify(folder / "releases" / "towns").passed


def test_a_newcomer_goes_from_a_file_to_a_verified_release(
    browser: Any, folder: Path, tmp_path: Path
) -> None:
    with running(f"--releases={tmp_path / 'releases'}") as found, tab(browser, found) as page:
        page.wait_for_selector("h1:text-is('Start')")
        page.set_input_files("#file", folder / "people.csv")
        page.wait_for_selector(".attr table")
        page.click("button:has-text('Rows')")
        page.wait_for_selector(".drawer td:text-is('A')")
        page.click(".drawer [data-close]")
        page.click(".rail a[href='#ledger']")
        page.click("button:has-text('Make the ledger')")
        page.wait_for_selector(".foot >> text=epsilon 1 left")
        page.click(".rail a[href='#audit']")
        page.click("button:has-text('Describe a table')")
        page.select_option("select[aria-label='Where town stands']", "by")
        page.click(".drawer button:has-text('Add it')")
        page.wait_for_selector(".form .known")
        page.click(".drawer [data-close]")
        page.click("button.fill:has-text('Audit')")
        page.wait_for_selector(".main .verdict.ok")
        page.click("button:has-text('Publish…')")
        page.click(".drawer button:has-text('Publish')")
        page.wait_for_selector(".drawer .verdict:has-text('Published: ')")
        with page.expect_download() as coming:
            page.click(".drawer button:has-text('Download')")
        coming.value.save_as(tmp_path / "release.zip")
        page.click(".drawer [data-close]")
        page.click(".rail a[href='#start']")
        with page.expect_download() as coming:
            page.click("button:has-text('Save this project')")
        coming.value.save_as(tmp_path / "project.json")
        page.set_input_files("input[aria-label='Zip file of a release']", tmp_path / "release.zip")
        page.wait_for_selector(".verdict.ok:has-text('Every promise holds.')")
    assert verify(tmp_path / "releases" / "tables").passed
    assert json.loads((tmp_path / "project.json").read_text())["audit"]["pieces"][0]["by"] == ["town"]
    assert Ledger(tmp_path / "releases" / "people.ledger").state().remaining == 1
