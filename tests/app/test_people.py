"""Who the people are, in a real browser: a person key, records of then, households; the page and the register know them again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import louver as lv
from app.browser import Explorer, running, tab
from louver.release.register import Register

pytestmark = pytest.mark.chromium

HOMES = 60


def records(older: int) -> str:
    """Four people in each home; a year later everybody is a year older."""
    rows = [
        f"p{i},{i // 4},{20 + i * 7 % 50 + older},{'fm'[i % 2]},{'AB'[i // 4 % 2]},{'yn'[i // 2 % 2]}"
        for i in range(4 * HOMES)
    ]
    return "\n".join(["person_id,household_id,age,sex,town,ill", *rows]) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("people")
    (made / "releases").mkdir()
    for name, older in (("then.csv", 0), ("now.csv", 1)):
        (made / name).write_text(records(older))
    lv.anonymize(
        made / "then.csv",
        quasi=["age", "sex"],
        sensitive=["ill"],
        keep=["town"],
        identifying=["person_id"],
        unit="household_id",
        k=3,
        steps=5,
        out=made / "releases" / "then",
    )
    return made


@pytest.fixture(scope="module")
def explorer(folder: Path) -> Iterator[Explorer]:
    with running(str(folder / "now.csv"), f"--releases={folder / 'releases'}") as found:
        yield found


def test_people_whose_values_have_changed_are_looked_up_by_those_of_then(
    explorer: Explorer, browser: Any, folder: Path
) -> None:
    with tab(browser, explorer) as page:
        page.get_by_role("button", name="Take the suggested roles").click()
        page.wait_for_selector(".verdict.ok")
        page.click(".rail a[href='#microdata']")
        page.get_by_role("button", name="More protection…").click()
        page.get_by_label("then", exact=True).check()
        page.get_by_label("Records of then").set_input_files(str(folder / "then.csv"))
        page.wait_for_selector(".drawer :text('Its records: then.csv')")
        page.get_by_label("Person key in both files").select_option("person_id")
        page.get_by_role("button", name="Use them", exact=True).click()
        page.wait_for_selector(".drawer :text('They apply to the next run.')")
        page.click(".drawer [data-close]")
        page.click("[data-copy]")
        page.wait_for_selector(".drawer pre:has-text('--earlier=then.csv --link=person_id')")
        page.click(".drawer [data-close]")
        page.select_option("select[aria-label=Time]", "r10")
        page.get_by_role("button", name="Run", exact=True).click()
        page.locator(".verdict").filter(has_text="Together with then").wait_for()
        assert "present values" not in page.inner_text(".verdict"), "which is said where there is no key"


def test_a_table_of_households_is_published_where_somebody_says_that_people_are_counted(
    explorer: Explorer, browser: Any, folder: Path
) -> None:
    with tab(browser, explorer, "tables") as page:
        page.wait_for_selector(".tile b:not(:text-is('–'))")
        for name in ("age", "household_id", "person_id"):
            if page.locator(f".shelf:not(.out) [data-chip={name}]").count():
                page.focus(f"[data-chip={name}]")
                page.keyboard.press("o")
        page.wait_for_selector(".shelf.out [data-chip=age]")
        page.get_by_role("button", name="Publish…").click()
        page.get_by_label("Name of the release").fill("town")
        page.get_by_label("Person key").select_option("person_id")
        publish = page.get_by_role("button", name="Publish", exact=True)
        publish.click()
        page.locator(".drawer .verdict.stop").filter(has_text="few households").wait_for()
        page.get_by_label("Count people, not households").check()
        publish.click()
        page.wait_for_selector(".drawer .verdict.ok:has-text('Published: town.')")
        assert "--" not in page.inner_text(".drawer")
    register = Register(folder / "releases" / "register")
    (entry,) = register.entries
    persons = register.sketch(entry.records).persons
    assert persons is not None and persons.column == "person_id" and persons.number == 4 * HOMES
