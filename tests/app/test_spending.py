"""The pages that release, in a real browser: a slider changes the forecast, a confirmed measurement debits once, a file is taken away."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from app.browser import Explorer, running, tab, take_release
from louver.app.jobs.ledgers import ledger_read
from louver.data.samples import sample_path, write_samples
from louver.privacy.budget import Measure
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation
from louver.release.verify import verify
from louver.run import Run

pytestmark = pytest.mark.chromium

CHANGED = "before => ![undefined, before].includes(document.querySelectorAll('.lane')[2]?.innerHTML)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("spending")
    write_samples(made)
    Ledger.create(made / "crashes.ledger", Measure.EPSILON, Relation.ADD_REMOVE_RECORD, Fraction(2))
    (made / "releases").mkdir()
    return made


@pytest.fixture(scope="module")
def explorer(folder: Path) -> Iterator[Explorer]:
    given = [f"--ledger={folder / 'crashes.ledger'}", f"--releases={folder / 'releases'}"]
    with running(str(folder / "crashes.csv"), *given) as found:
        yield found


def test_a_measurement_is_confirmed_and_debits_once(browser: Any, explorer: Explorer, folder: Path) -> None:
    with tab(browser, explorer, "groups") as page:
        page.set_input_files("#domain", str(folder / "regions.csv"))
        page.wait_for_selector(".lane")
        page.get_by_label("identifies a person's unit").fill("CASENUM")
        before = page.locator(".lane").nth(2).inner_html()
        page.locator("input[type=range]").first.evaluate(
            "slider => { slider.value = -5; slider.dispatchEvent(new Event('input')) }"
        )
        page.wait_for_function(CHANGED, arg=before)
        name = page.get_by_label("Name of the release")
        name.fill("crashes")
        name.press("Tab")
        page.click("button:has-text('Publish…')")
        assert Ledger(folder / "crashes.ledger").state().spent == 0
        page.click("dialog[open] >> button:has-text('Measure')")
        page.wait_for_selector(".verdict:has-text('Released:')")
        page.wait_for_selector(".foot >> text=1.68 left")
    state = Ledger(folder / "crashes.ledger").state()
    assert state.spent == Fraction("0.32") and len(state.sealed) == 1
    assert verify(folder / "releases" / "crashes").passed


def test_a_sample_never_spends_from_a_ledger_of_others(
    browser: Any, explorer: Explorer, folder: Path
) -> None:
    """It would replace the file, so that the page asks; then it has a ledger of its own, which the check of the other one finds."""
    book = Ledger(folder / "crashes.ledger")
    before, sources = book.state().spent, dict(book.state().sources)
    with tab(browser, explorer, "groups") as page:
        page.click("button:has-text('Try the sample')")
        page.click("dialog[open]:has-text('Close crashes.csv?') >> button:has-text('Keep as it is')")
        page.wait_for_selector("dialog[open]", state="hidden")
        assert page.inner_text(".file").startswith("crashes.csv")
        page.click("button:has-text('Try the sample')")
        page.click("dialog[open] >> button:has-text('Open the sample')")
        page.wait_for_selector('.card:has-text("The sample\'s own ledger has epsilon 10 and keeps 9.")')
        name = page.get_by_label("Name of the release")
        name.fill("tried")
        name.press("Tab")
        page.click("[data-run]:not([disabled])")
        page.click("dialog[open] >> button.pri")
        page.wait_for_selector(".verdict:has-text('The ledger had 10 before and has 9 now.')")
    assert verify(folder / "releases" / "tried").passed
    assert book.state().spent == before and book.state().sources == sources
    assert ledger_read(str(folder / "crashes.ledger"), str(folder / "releases"), Run())["check"]["sound"]


def test_a_file_that_is_dropped_does_not_replace_an_open_one_unasked(
    browser: Any, explorer: Explorer, folder: Path
) -> None:
    with tab(browser, explorer, "groups") as page:
        page.wait_for_selector("text=Forecast")
        drop = "louver.upload(new File(['a,b\\n1,2\\n'], 'other.csv'))"
        page.evaluate(drop)
        page.click("dialog[open]:has-text('Close crashes.csv?') >> button:has-text('Keep as it is')")
        assert page.inner_text(".file").startswith("crashes.csv")
        page.evaluate(drop)
        page.click("dialog[open] >> button:has-text('Open other.csv')")
        page.wait_for_selector(".file:has-text('other.csv')")


def test_microdata_are_made_and_taken_away(browser: Any, tmp_path: Path) -> None:
    given = [str(sample_path("people")), f"--releases={tmp_path / 'releases'}"]
    with running(*given) as explorer, tab(browser, explorer, "microdata") as page:
        page.click("button:has-text('Decide on the page Data')")
        page.click("button:has-text('Take the suggested roles')")
        page.click(".rail a:has-text('Microdata')")
        page.locator("[aria-label=Method]").select_option("sorted")
        page.click("button:has-text('Run')")
        page.wait_for_selector("text=detail lost")
        release = take_release(page, tmp_path)
    assert verify(release).passed
