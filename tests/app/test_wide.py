"""Files of 200 columns and narrow windows, in a real browser: lists are searched, charts are read, nothing is cut."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

from app.browser import Explorer, running, tab
from louver.privacy.budget import Measure
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation

pytestmark = pytest.mark.chromium

COLUMNS, PEOPLE = 200, 60
WIDTHS = (1440, 1024, 900)
SIZES = "() => [...document.querySelectorAll('.chart text')].map(t => t.getBoundingClientRect().height)"
CUT = """() => [...document.querySelectorAll('.chart *, .tile span, .btn span')].filter(one => {
  const box = one.getBoundingClientRect();
  const around = one.closest('.chart')?.getBoundingClientRect() ?? { left: 0, right: innerWidth };
  return box.width && (box.left < around.left - 1 || box.right > around.right + 1);
}).map(one => one.outerHTML)"""
INSIDE = """() => {
  const box = document.querySelector('.heatgrid .tip').getBoundingClientRect();
  return box.left >= 0 && box.top >= 0 && box.right <= innerWidth && box.bottom <= innerHeight;
}"""


@pytest.fixture(scope="module")
def explorer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explorer]:
    made = tmp_path_factory.mktemp("wide")
    names = [f"q{number:03d}" for number in range(COLUMNS)]
    rows = [
        ",".join(str(10 * ((i + j) % 2 + (i % 11 == j % 11))) for j in range(COLUMNS)) for i in range(PEOPLE)
    ]
    (made / "wide.csv").write_text("\n".join([",".join(names), *rows]) + "\n")
    Ledger.create(made / "some.ledger", Measure.EPSILON, Relation.ADD_REMOVE_RECORD, Fraction(2))
    with running(
        str(made / "wide.csv"), f"--ledger={made / 'some.ledger'}", f"--releases={made / 'out'}"
    ) as found:
        yield found


def shown(page: Any, selector: str) -> list[str]:
    """Names of what is left of a list, once that is one line."""
    page.wait_for_function(
        "s => [...document.querySelectorAll(s)].filter(one => one.offsetParent !== null).length === 1",
        arg=selector,
    )
    return [one.get_attribute("data-name") for one in page.locator(selector).all() if one.is_visible()]


def test_a_column_of_200_is_found_on_every_list(explorer: Explorer, browser: Any) -> None:
    """Its small bars have axes: where they begin and end, and what the highest one counts."""
    with tab(browser, explorer) as page:
        page.wait_for_selector(".attr tbody tr")
        page.get_by_label("Find one of 200 columns").fill("Q137")
        assert shown(page, ".attr tbody tr") == ["q137"]
        bars = page.locator("tr[data-name=q137] .dist")
        count = int(bars.locator("> span").inner_text())
        assert bars.locator(".ends span").all_inner_texts() == ["0", "20"] and PEOPLE / 3 <= count <= PEOPLE
        assert f"the highest has {count} records" in bars.get_attribute("aria-label")
        page.click(".rail a[href='#tables']")
        page.get_by_label("Find one of 200 attributes").fill("q137")
        assert shown(page, ".shelf .chip") == ["q137"]
        page.click(".rail a[href='#audit']")
        page.get_by_role("button", name="Describe a table…").click()
        page.get_by_label("Find one of 200 attributes").fill("q137")
        assert shown(page, ".places .row") == ["q137"]


def test_chart_text_has_one_size_in_every_window(explorer: Explorer, browser: Any) -> None:
    with tab(browser, explorer, "ledger") as page:
        page.wait_for_selector(".chart text")
        found = set()
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 700})
            found |= {round(height, 1) for height in page.evaluate(SIZES)}
            assert page.evaluate(CUT) == []
        assert len(found) == 1


def test_an_explanation_stays_inside_a_narrow_window(explorer: Explorer, browser: Any) -> None:
    with tab(browser, explorer, "start") as page:
        page.set_viewport_size({"width": 900, "height": 600})
        page.get_by_role("button", name="Survey", exact=True).click()
        page.wait_for_selector(".verdict:has-text('Counted data')")
        page.click(".rail a[href='#tables']")
        page.wait_for_selector(".tile b:text-is('17')")
        page.focus(".heatgrid")
        for key in ("n", "End"):
            page.keyboard.press(key)
            page.wait_for_selector(".heatgrid .tip:has-text('Why:')")
            page.wait_for_function(INSIDE)
