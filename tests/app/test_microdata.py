"""Microdata in a real browser: Adult is anonymized and taken away; a search is watched, kept and cancelled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from app.browser import Explorer, running, tab, take_release
from louver.release.verify import verify

pytestmark = pytest.mark.chromium

ADULT = Path(__file__).parents[1] / "data" / "adult.csv.gz"
PEOPLE = 30_162
SORTED = "select[aria-label=Time]:not(:has(option[value=r10]))"
"""The form is drawn again for a method that has no rounds."""


@pytest.fixture(scope="module")
def explorer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explorer]:
    releases = tmp_path_factory.mktemp("microdata") / "releases"
    with running(str(ADULT), f"--releases={releases}") as found:
        yield found


def to_microdata(page: Any) -> None:
    page.wait_for_selector(".attr table")
    page.wait_for_selector(".verdict.ok")
    page.click(".rail a[href='#microdata']")
    page.wait_for_selector("[data-run]")


def test_adult_is_anonymized_and_taken_away(explorer: Explorer, browser: Any, tmp_path: Path) -> None:
    with tab(browser, explorer) as page:
        to_microdata(page)
        page.select_option("select[aria-label=Method]", "sorted")
        page.wait_for_selector(SORTED, state="attached")
        quasi = page.locator(".slide span:first-child").all_inner_texts()
        page.select_option("select[aria-label=Time]", "3")
        page.click("[data-run]")
        page.wait_for_selector(".tiles.four")
        release = take_release(page, tmp_path)
    assert verify(release).passed
    made = pq.read_table(release / "data" / "anonymized.parquet")
    classes = made.group_by(quasi).aggregate([([], "count_all")])["count_all"].to_pylist()
    assert made.num_rows == PEOPLE and min(classes) >= 5


def test_a_search_is_watched_kept_and_cancelled(explorer: Explorer, browser: Any) -> None:
    """The loss so far is told; what was found can be kept; Cancel ends a search, and the result before it stays."""
    with tab(browser, explorer) as page:
        to_microdata(page)
        page.select_option("select[aria-label=Time]", "120")
        page.click("[data-run]")
        page.wait_for_selector(".falling:not(.gone) .fall", state="attached")
        assert page.inner_text(".figures").startswith("Lost ")
        page.click("[data-keep]")
        page.wait_for_selector(".tiles.four")
        lost = page.inner_text(".tiles.four")
        page.click("[data-run]")
        page.wait_for_selector(".run:not(.gone)")
        page.keyboard.press("Escape")
        page.wait_for_selector(".problem:has-text('ancelled')")
        assert page.inner_text(".tiles.four") == lost
