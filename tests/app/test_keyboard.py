"""The page Tables by keyboard alone, from the start page to a release: nothing is clicked, and nothing is focused by the test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import louver as lv
from app.browser import running, tab

pytestmark = pytest.mark.chromium

FOCUSED = """() => {
  const now = document.activeElement;
  return now.getAttribute("aria-label") ?? now.closest("label")?.innerText ?? now.dataset.chip ?? now.innerText;
}"""
MOST_STOPS = 120


def go_to(page: Any, name: str, key: str = "Tab") -> None:
    """Press a key until what has the focus is called so."""
    for _ in range(MOST_STOPS):
        if page.evaluate(FOCUSED).strip() == name:
            return
        page.keyboard.press(key)
    pytest.fail(f"{name} cannot be reached with {key}")


def press(page: Any, name: str) -> None:
    go_to(page, name)
    page.keyboard.press("Enter")


def leave_out(page: Any, name: str) -> None:
    """From anywhere on the shelves."""
    go_to(page, name, "ArrowRight")
    page.keyboard.press("o")
    page.wait_for_selector(f".shelf.out [data-chip='{name}']")


def test_from_the_sample_to_a_release(browser: Any, tmp_path: Path) -> None:
    with running(f"--releases={tmp_path / 'releases'}") as explorer, tab(browser, explorer) as page:
        page.wait_for_selector("button:has-text('Survey')")
        press(page, "Survey")
        page.wait_for_selector(".verdict:has-text('Counted data')")
        for key in "gt":
            page.keyboard.press(key)
        page.wait_for_selector(".tile b:text-is('17')")
        go_to(page, "age")
        for name in ("employment", "education", "marital", "race", "hours"):
            leave_out(page, name)
        go_to(page, "age", "ArrowRight")
        page.keyboard.press("Enter")
        page.wait_for_selector(".drawer .chip")
        press(page, "<25")
        press(page, "25-54")
        press(page, "Merge")
        page.wait_for_selector(".drawer .chip:text-is('<25 or 25-54')")
        page.keyboard.press("Escape")
        page.wait_for_selector(".drawer", state="detached")
        page.wait_for_function("document.activeElement.dataset.chip === 'age'")
        press(page, "Publish…")
        page.wait_for_selector(".drawer")
        go_to(page, "Name of the release")
        page.keyboard.press("Control+a")
        page.keyboard.type("by-keyboard")
        press(page, "Publish")
        page.wait_for_selector(".drawer .verdict.ok:has-text('Published: by-keyboard.')")
        page.keyboard.press("Escape")
        page.wait_for_selector(".drawer", state="detached")
    assert lv.verify(tmp_path / "releases" / "by-keyboard").passed
