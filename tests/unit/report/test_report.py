"""The report: one file that fetches nothing, runs nothing and says what it was given."""

from __future__ import annotations

import re
import shutil
import warnings
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import louver as lv
from louver.bounds.disclosure import BoundsSummary
from louver.bounds.problem import Arrangement
from louver.bounds.result import Comparison
from louver.bounds.search import Suggestions
from louver.data.samples import sample_path
from louver.errors import InputError
from louver.report.bounds import MAX_LISTED, bounds_report
from louver.report.page import answers, facts, page, picture, sentence, table, tiles, write_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SCRIPT = "<script>alert(1)</script>"
HOSTILE = [SCRIPT, "--> <img src=x onerror=alert(1)>", "$a_{ $", "</svg></style>", "東京 \x1b[31m", "a" * 200]


def audited(counts: dict[tuple[str, str], int], **options: object):
    """Audit of a small table of sites by illness."""
    sites, ills = zip(*counts, strict=True)
    people = pa.table({"site": sites, "ill": ills, "count": list(counts.values())})
    return lv.bounds(people, rows=["site"], cols=["ill"], weight="count", **options)


DETERMINED = {("A", "no"): 4, ("A", "yes"): 3, ("B", "no"): 3, ("B", "yes"): 5}
SAFE = {("A", "no"): 10, ("A", "yes"): 10, ("B", "no"): 20, ("B", "yes"): 20}


@pytest.fixture(scope="module")
def whole() -> str:
    """The report of a real table with every section in it."""
    table = {"data": sample_path("cps8"), "weight": "count"}
    arranged = {"rows": ["X1", "X2", "X3", "X4", "X5", "X6"], "cols": ["X7", "X8"]}
    return bounds_report(
        source="cps8.csv.gz",
        audit=lv.bounds(**table, **arranged),
        comparison=lv.bounds.compare(**table, arrangements=[arranged, {"rows": ["X1"], "cols": ["X8"]}]),
        suggestions=lv.bounds.suggest(**table, **arranged, seconds=1, avoid="small"),
    )


@pytest.fixture(scope="module")
def hostile() -> str:
    """The report of a table whose names and labels try to get out."""
    names = [f"{text} {number}" for number, text in enumerate(HOSTILE)]
    columns = {name: [text, text, "other", "other"] for name, text in zip(names, HOSTILE, strict=True)}
    people = pa.table({**columns, "<b>ill</b>": [SCRIPT, "$x$"] * 2, "count": [4, 3, 3, 5]})
    arranged = {"rows": names, "cols": ["<b>ill</b>"]}
    table = {"data": people, "weight": "count"}
    return bounds_report(
        source=f"{SCRIPT}.csv",
        audit=lv.bounds(**table, **arranged),
        comparison=lv.bounds.compare(**table, arrangements=[{"name": SCRIPT, **arranged}]),
        suggestions=lv.bounds.suggest(**table, **arranged, seconds=0.5),
    )


class Elements(HTMLParser):
    """Every element of a page with its attributes, and all the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("which", ["whole", "hostile"])
def test_nothing_is_fetched_or_run(which: str, request: pytest.FixtureRequest) -> None:
    html = request.getfixturevalue(which)
    assert "://" not in html
    elements = Elements(html).found
    tags = {tag for tag, _ in elements}
    assert tags.isdisjoint(
        {"script", "link", "img", "iframe", "object", "embed", "image", "form", "base", "b>ill"}
    )
    for _, attributes in elements:
        assert not any(name.startswith("on") for name in attributes)
        assert "src" not in attributes
        for name in ("href", "xlink:href"):
            assert (attributes.get(name) or "#").startswith("#")
    assert "@import" not in html
    assert not re.search(r"url\((?!#)", html)


def test_labels_are_shown_as_they_are(hostile: str) -> None:
    text = Elements(hostile).text
    assert SCRIPT in text
    assert "--> <img src=x onerror=alert(1)>" in text
    assert "$a_{ $" in text
    assert f"Audit of {SCRIPT}.csv." in text


def test_drawings_share_no_name(whole: str) -> None:
    """Names in a drawing are kept only where the drawing refers to them."""
    ids = re.findall(r' id="([^"]*)"', whole)
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', whole))
    assert ids
    assert set(ids) == used


def test_sections(whole: str) -> None:
    headings = re.findall(r"<h2>(.*?)</h2>", whole)
    assert headings == [
        "Arrangements, least disclosive first",
        "Redesigns without a disclosed small cell",
        "Rows that reveal a person's status",
        "Disclosed small cells",
        "How tight the bounds are",
        "Appendix",
    ]
    assert whole.count("<svg ") == whole.count('role="img" aria-label=') == 3
    assert "not for release" in whole


def test_verdicts() -> None:
    def verdict(audit) -> str:
        found = re.search(r'<p class="verdict[^"]*">(.*?)</p>', bounds_report(source="t.csv", audit=audit))
        assert found is not None
        return found[1]

    assert verdict(audited(DETERMINED)).startswith("3 small counts can be derived, but no row reveals")
    assert "Do not publish it as it is." in verdict(audited(DETERMINED, small=4))
    one = audited({("A", "no"): 1, ("A", "yes"): 8})
    assert verdict(one).startswith("1 small count can be derived, but no row")
    full = verdict(audited(DETERMINED, small=1))
    assert full.startswith("No small count can be derived, 2 rows in full, and no row reveals a person")
    assert "Publish it only if this may become known." in full
    assert verdict(audited(SAFE)).startswith("Counts cannot be derived, and no row reveals a person")
    assert "On its own it may be published." in verdict(audited(SAFE))
    status = verdict(audited({**SAFE, ("C", "no"): 1, ("C", "yes"): 0}))
    assert status.startswith("Counts cannot be derived, but 1 row reveals a person&#x27;s status (1 person).")
    assert "1 row holds fewer than 5 people. Do not publish it as it is." in status


def test_every_picture_has_its_numbers(whole: str) -> None:
    after = whole.split("</figure>")[1:]
    assert len(after) == 3 and all(text.lstrip().startswith('<div class="scroll"><table>') for text in after)


def test_facts_of_an_audit() -> None:
    known = [{"row": {"site": "A"}, "at_most": 30}]
    audit = audited(SAFE, decimals=1, rounding="half-even", given=known, cells=[{"site": "A", "ill": "no"}])
    text = Elements(bounds_report(source="t.csv", audit=audit)).text
    assert "proportions rounded to 1 decimal (half-even)" in text
    assert "1 statement" in text
    assert "1 selected cell only" in text
    assert "Reduced total" not in text
    assert "reduced sum" not in text
    assert "Reduced total R4; N − R = 56" in Elements(bounds_report(source="t.csv", audit=audited(SAFE))).text


def test_long_list_is_cut() -> None:
    counts = {(f"S{i:03}", ill): n for i in range(MAX_LISTED) for ill, n in (("no", 1), ("yes", i + 2))}
    audit = audited(counts)
    assert audit.summary.disclosed_small_cells > MAX_LISTED
    html = bounds_report(source="t.csv", audit=audit)
    assert f"Only the first {MAX_LISTED} are listed" in html
    listed = html.partition("Disclosed small cells</h2>")[2].partition("<h2>")[0]
    assert len(re.findall(r"<tr><td>S\d", listed)) == MAX_LISTED


SUMMARY = BoundsSummary(
    rows=2,
    cols=2,
    n=15,
    reduced_total=None,
    zero_rows=0,
    unit_rows=None,
    disclosed_rows=1,
    disclosed_zero_cells=2,
    disclosed_small_cells=3,
    certain_rows=0,
    certain_people=0,
    small_rows=0,
    small_row_people=0,
)


def test_comparison_alone() -> None:
    comparison = Comparison(lines=((Arrangement(rows=("site",), cols=("ill",)), SUMMARY),))
    html = bounds_report(source="t.csv", comparison=comparison)
    assert "<td>site | ill</td><td>2 x 2</td>" in html
    assert "<td>-</td>" in html, "a number that rounding hides"
    assert "Disclosed small cells</h2>" not in html


@pytest.mark.parametrize(
    ("is_proved", "told"),
    [(True, "No redesign is without a disclosed small cell (7 examined)."), (False, "Give more --seconds")],
)
def test_no_redesign(is_proved: bool, told: str) -> None:
    nothing = Suggestions(lines=(), is_proved=is_proved, examined=7, bits=1.0)
    html = bounds_report(source="t.csv", suggestions=nothing)
    assert told in html
    assert "<svg" not in html


def test_picture_is_the_same_every_time_and_quiet() -> None:
    """Equal reports are equal files, and a letter that Matplotlib cannot draw is no reason to quote it."""
    audit = audited({("東", "no"): 4, ("東", "yes"): 3})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, second = (picture(audit.plot(), "A picture of <things>") for _ in range(2))
    assert first == second
    assert 'aria-label="A picture of &lt;things&gt;"' in first
    assert "東" in first


def test_parts_are_escaped() -> None:
    assert "<i>" not in page("<i>", "<i>", [], "<i>")
    assert "<i>" not in tiles([(1, "<i>", True), ("<i>", "two", False)])
    assert "<i>" not in table(["<i>"], [["<i>"]])
    assert "<i>" not in facts([("<i>", "<i>")])
    told = answers(released="<i>", promised="try --against", accuracy="<i>", check="<i>")
    assert "<i>" not in told and "<code>--against</code>" in told and told.count("<dt>What ") == 4


def test_parts() -> None:
    assert tiles([(None, "unknown", False)]) == '<div class="tiles"></div>'
    assert '<div class="tile risk"><b>1,234</b>' in tiles([(1234, "people", True)])
    html = table(["name", "count"], [["a", 1234], ["b", 5]])
    assert '<th>name</th><th class="number">count</th>' in html
    assert '<td>a</td><td class="number">1,234</td>' in html


def test_a_long_narrow_table_stands_in_columns() -> None:
    lines = [[f"r{i}", i] for i in range(45)]
    assert table(["row", "n"], lines).count("<thead>") == 3 and 'class="many"' in table(["row", "n"], lines)
    assert table(["row", "n"], lines[:40]).count("<thead>") == 1
    assert table(["row" * 20, "n"], lines).count("<thead>") == 1


def test_no_line_breaks_inside_an_option() -> None:
    assert sentence("a < b: try --against, not x--y") == "a &lt; b: try <code>--against</code>, not x--y"


def test_written_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    write_page("é", target)
    assert target.read_bytes() == "é".encode()
    assert list(tmp_path.iterdir()) == [target]
    with pytest.raises(InputError, match="cannot be written"):
        write_page("é", tmp_path / "absent" / "report.html")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        pytest.skip("Chromium is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as player:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        browser = player.chromium.launch(executable_path=program, args=arguments)
        yield browser
        browser.close()


@pytest.mark.chromium
@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize("which", ["whole", "hostile"])
def test_in_a_browser(
    browser: Browser, tmp_path: Path, request: pytest.FixtureRequest, which: str, width: int
) -> None:
    """No message, no request but for the file, nothing beyond the edge, pictures that can be read."""
    target = tmp_path / "report.html"
    write_page(request.getfixturevalue(which), target)
    sheet = browser.new_page(viewport={"width": width, "height": 900})
    messages: list[str] = []
    requests: list[str] = []
    sheet.on("console", lambda message: messages.append(message.text))
    sheet.on("pageerror", lambda error: messages.append(str(error)))
    sheet.on("dialog", lambda dialog: messages.append(dialog.message))
    sheet.on("request", lambda request: requests.append(request.url))
    sheet.goto(target.as_uri())
    assert messages == []
    assert requests == [target.as_uri()]
    assert sheet.evaluate("document.documentElement.scrollWidth") <= width
    assert sheet.evaluate("document.body.scrollWidth") <= width
    letters = "[...document.querySelectorAll('svg text')].map(text => text.getBoundingClientRect().height)"
    assert min(sheet.evaluate(letters)) > 5
    sheet.close()


def test_pages_that_stay_inside_are_for_their_owner(tmp_path: Path) -> None:
    write_page("<p>inside</p>", tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_mode & 0o777 == 0o600
