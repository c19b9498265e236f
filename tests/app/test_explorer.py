"""The explorer in a real browser: who is let in, Data, Tables, hostile input, cancelling."""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.browser import Explorer, running, tab
from louver.data.samples import sample_path

pytestmark = pytest.mark.chromium

HOSTILE = [
    "<script>document.title='harm'</script>",
    "<img src=x onerror=\"document.title='harm'\">",
    "=cmd|' /C calc'!A0",
    "$(touch harm); `touch harm` 'x' & | > y",
    "{{ 1 + 1 }}",
]
FOCUSED = "name => document.activeElement.dataset.chip === name"


@pytest.fixture(scope="module")
def explorer() -> Iterator[Explorer]:
    with running(str(sample_path("cps8")), "--weight=count") as found:
        yield found


def answer(explorer: Explorer, path: str, **headers: str) -> tuple[int, dict[str, str]]:
    """Status and headers of a plain request."""
    connection = http.client.HTTPConnection("127.0.0.1", explorer.port, timeout=600)
    connection.putrequest("GET", path, skip_host=True)
    for name, value in {"Host": f"127.0.0.1:{explorer.port}", **headers}.items():
        connection.putheader(name, value)
    connection.endheaders()
    found = connection.getresponse()
    found.read()
    connection.close()
    return found.status, {name.lower(): value for name, value in found.getheaders()}


def test_only_the_owner_is_let_in(explorer: Explorer) -> None:
    token = explorer.address.partition("?")[2]
    status, headers = answer(explorer, f"/?{token}")
    cookie = headers["set-cookie"].partition(";")[0]
    assert (
        status == 200 and "HttpOnly" in headers["set-cookie"] and "SameSite=Strict" in headers["set-cookie"]
    )
    assert answer(explorer, "/")[0] == 403
    assert answer(explorer, "/?token=wrong")[0] == 403
    assert answer(explorer, "/assets/louver.css")[0] == 403
    assert answer(explorer, "/", Cookie=cookie, Host="evil.example")[0] == 403
    assert answer(explorer, "/", Cookie=cookie, Origin="http://evil.example")[0] == 403
    assert answer(explorer, "/upload/x", Cookie=cookie)[0] in (404, 405)
    status, headers = answer(explorer, "/", Cookie=cookie)
    assert status == 200
    assert headers["cache-control"] == "no-store" and headers["referrer-policy"] == "no-referrer"
    assert "access-control-allow-origin" not in headers
    socket = "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "A" * 22 + "==",
    }
    assert answer(explorer, socket, **upgrade, Cookie=cookie, Origin="http://evil.example")[0] == 403
    assert answer(explorer, socket, **upgrade, Origin=explorer.origin)[0] == 403
    polling = "/_nicegui_ws/socket.io/?EIO=4&transport=polling"
    assert answer(explorer, polling, Origin="http://evil.example", Cookie=cookie)[0] == 403
    assert answer(explorer, polling)[0] == 403


def tiles(page: Any) -> list[int]:
    return [int(text.replace(",", "")) for text in page.locator(".tile b").all_inner_texts()]


def wait_for_tiles(page: Any, small: int, certain: int) -> None:
    page.wait_for_function(
        "([s, c]) => { const t = document.querySelectorAll('.tile b'); return t[0]?.textContent === s && t[1]?.textContent === c }",
        arg=[f"{small:,}", f"{certain:,}"],
    )


def test_tables_by_mouse(explorer: Explorer, browser: Any) -> None:
    """Drag an attribute away, merge a category, undo: the lines of the published Table 13."""
    with tab(browser, explorer, "tables") as page:
        wait_for_tiles(page, 17, 36)
        assert tiles(page) == [17, 36, 150, 709, 783, 1185]
        page.wait_for_selector(
            ".verdict:has-text('17 small counts can be worked out exactly, and 36 rows tell')"
        )
        page.drag_and_drop("[data-chip=X1]", ".shelf.out")
        wait_for_tiles(page, 3, 1)
        page.drag_and_drop("[data-chip=X1]", ".shelf.rows")
        wait_for_tiles(page, 17, 36)
        page.click("[data-chip=X7]")
        page.click(".drawer .chip:text-is('40')")
        page.click(".drawer .chip:text-is('>40')")
        page.click(".drawer .btn.pri")
        wait_for_tiles(page, 0, 39)
        assert tiles(page)[5] == 695
        page.wait_for_selector(".drawer .chip:text-is('40 or >40')")
        page.click(".drawer [data-close]")
        page.click("[data-copy]")
        page.wait_for_selector(".drawer pre:has-text('--rows=X2,X3,X4,X5,X6,X1')")
        page.click(".drawer button:has-text('Python')")
        page.wait_for_selector(".drawer pre:has-text('lv.bounds(')")
        page.click(".drawer [data-close]")
        page.click("[data-undo]")
        wait_for_tiles(page, 17, 36)
        page.click(".side .linky:has-text('Merge X7')")
        wait_for_tiles(page, 0, 39)
        page.click(".side th .linky:text-is('C')")
        page.wait_for_selector(".side th[aria-sort=ascending]:has-text('C')")
        page.wait_for_selector(
            ".side tbody tr:first-child td:first-child:text-is('2')"
        )  # one row tells a status


def test_what_outsiders_know(explorer: Explorer, browser: Any) -> None:
    """A statement about a cell: what falls is counted; one that cannot be true is refused where it was made."""
    with tab(browser, explorer, "tables") as page:
        wait_for_tiles(page, 17, 36)
        page.focus(".heatgrid")
        page.keyboard.press("n")
        page.wait_for_selector(".heatgrid .tip")
        page.keyboard.press("Enter")
        page.click("button:has-text('What outsiders know')")
        page.wait_for_selector(".drawer input[type=number]")
        page.select_option(".drawer select[aria-label=Bound]", "at_least")
        page.fill(".drawer input[type=number]", "40000")
        page.click(".drawer button:has-text('Add')")
        page.wait_for_selector(".drawer .problem:has-text('contradicts')")
        page.select_option(".drawer select[aria-label=Bound]", "exactly")
        page.fill(".drawer input[type=number]", "1")
        page.click(".drawer button:has-text('Add')")
        told = page.locator(".verdict:has-text('With 1 thing that outsiders know besides')")
        told.filter(has_text=re.compile(r"[0-9,]+ cells? falls? by the last")).wait_for()


def test_a_file_of_ones_own(explorer: Explorer, browser: Any, tmp_path: Path) -> None:
    """Semicolons and decimal commas: the page asks how it is read, and the answer goes into what is copied."""
    path = tmp_path / "own.csv"
    rows = (f"{20 + i % 50};{1 + i % 3},5;{'ab'[i % 2]}" for i in range(80))
    path.write_text("\n".join(["age;size;group", *rows]) + "\n")
    with tab(browser, explorer) as page:
        page.wait_for_selector(".attr table")
        upload(page, path)
        page.wait_for_selector(".problem:has-text('own.csv')")
        page.select_option("select[aria-label='Decimals are marked by']", ",")
        page.click("button:has-text('Read it like this')")
        make_hierarchy(page, "age")
        page.click(".treebody .seg button:has-text('Bins')")
        page.fill(".treebody input", "30, 50")
        page.click("button:has-text('Use it')")
        page.wait_for_selector(".covered:has-text('50 of 50 values covered, each once; 3 at the top')")
        page.click("[data-copy]")
        page.wait_for_selector(".drawer pre:has-text('--decimal-mark=,')")
        page.click(".drawer [data-close]")
        page.click(".rail a[href='#tables']")
        page.wait_for_selector(".tile b:not(:text-is('–'))")
        page.click("[data-chip=age]")
        page.click(".drawer button:has-text('Level 1: 3 groups')")
        page.wait_for_selector("[data-chip=age].mark")


def test_tables_by_keyboard(explorer: Explorer, browser: Any) -> None:
    """The same with keys alone, to the reason why a cell is known."""
    with tab(browser, explorer) as page:
        page.keyboard.press("g")
        page.keyboard.press("t")
        wait_for_tiles(page, 17, 36)
        page.focus("[data-chip=X1]")
        page.keyboard.press("ArrowRight")
        page.wait_for_function(FOCUSED, arg="X2")
        page.keyboard.press("o")
        wait_for_tiles(page, 1, 3)
        page.wait_for_function(FOCUSED, arg="X2")  # it goes along
        page.keyboard.press("r")
        wait_for_tiles(page, 17, 36)
        page.focus("[data-chip=X7]")
        page.keyboard.press("r")
        wait_for_tiles(page, 0, 581)
        page.keyboard.press("Control+z")
        wait_for_tiles(page, 17, 36)
        page.focus(".heatgrid")
        page.keyboard.press("n")
        page.wait_for_selector(".heatgrid .tip:has-text('Why:')")
        page.keyboard.press("?")
        page.wait_for_selector("dialog.keys[open]")


def test_two_tabs_share_nothing(explorer: Explorer, browser: Any) -> None:
    with tab(browser, explorer, "tables") as one, tab(browser, explorer, "tables") as other:
        for page in (one, other):
            wait_for_tiles(page, 17, 36)
        one.focus("[data-chip=X1]")
        one.keyboard.press("o")
        wait_for_tiles(one, 3, 1)
        assert tiles(other)[0] == 17


def test_cancel(explorer: Explorer, browser: Any) -> None:
    """A search that would go on for long is ended, and what was there stays."""
    with tab(browser, explorer, "tables") as page:
        wait_for_tiles(page, 17, 36)
        page.click("button:has-text('Suggest safer tables')")
        page.wait_for_selector(".run:not(.gone):has-text('Cancel, keep what was found')")
        page.keyboard.press("Escape")
        page.wait_for_selector(".problem:has-text('ancelled')")
        assert tiles(page)[0] == 17


def make_hierarchy(page: Any, name: str) -> None:
    """Choose a column; the button of the column before it is gone once its name stands there."""
    page.click(f".attr .linky:text-is('{name}')")
    page.wait_for_selector(f".side h2:text-is('{name}')")
    page.click(".side button:has-text('Make a hierarchy')")


def hover_until_told(page: Any) -> None:
    """Move over the table; what moves before it is drawn is not heard."""
    for step in range(3000):
        page.mouse.move(700, 520 + step % 2)
        if page.locator(".heatgrid .tip").is_visible():
            return
        page.wait_for_timeout(100)


def upload(page: Any, path: Path) -> None:
    if page.locator("#file").count() == 0:
        page.click("button:has-text('Open another')")
    page.set_input_files("#file", str(path))


def test_hostile_labels(explorer: Explorer, browser: Any, tmp_path: Path) -> None:
    """Labels, column names and a file name that are script, formulas and shell: they are shown as what they are."""
    quoted = ['"' + label.replace('"', '""') + '"' for label in HOSTILE]
    path = tmp_path / "<b onclick=alert(1)>$(harm).csv"
    lines = [f"{quoted[i % 5]},{quoted[i * i % 5]},{i % 2}" for i in range(60)]
    path.write_text("\n".join([f'{quoted[0]},{quoted[1]},"x{{{{ 1 }}}}"', *lines]) + "\n")
    with tab(browser, explorer) as page:
        page.wait_for_selector(".attr table, .verdict")
        upload(page, path)
        page.wait_for_selector(f".file >> text={path.name}")
        page.wait_for_selector(".attr table")
        page.locator(".attr .linky").get_by_text(HOSTILE[0], exact=True).wait_for()
        page.click(".rail a[href='#tables']")
        page.wait_for_selector(".tile b:not(:text-is('–'))")
        assert page.locator(".chip").first.inner_text().startswith(HOSTILE[0][:20])
        hover_until_told(page)
        page.wait_for_selector(".heatgrid .tip")
        assert page.query_selector(".main img, .main script, .heatgrid b[onclick]") is None
        page.click("[data-copy]")
        page.wait_for_selector(".drawer pre")
        assert page.title() == "louver" and "harm" not in page.url


def test_a_malformed_upload_is_a_sentence(explorer: Explorer, browser: Any, tmp_path: Path) -> None:
    bad, other = tmp_path / "bad.csv", tmp_path / "bad.exe"
    bad.write_text("a,b\n1,2,3\n4\n")
    other.write_text("MZ")
    with tab(browser, explorer) as page:
        page.wait_for_selector(".attr table")
        upload(page, other)
        page.wait_for_selector(".problem:has-text('This kind of file is not read')")
        upload(page, bad)
        page.wait_for_selector(".file >> text=bad.csv")
        page.locator(".problem").filter(has_text=re.compile(r"(row|line) \d")).wait_for()


def test_data(explorer: Explorer, browser: Any) -> None:
    """A sample, its risky column, a role, a hierarchy with every value covered."""
    with tab(browser, explorer, "data", color_scheme="dark") as page:
        page.wait_for_selector(".attr table")
        page.click("button:has-text('Open another')")
        page.click(".drawer button:has(span:text-is('People'))")
        page.wait_for_selector(".pill.stop:has-text('people alone')")
        page.wait_for_selector(".verdict:has-text('One column needs a decision')")
        page.select_option("select[aria-label='Role of weight']", "weight")
        page.wait_for_selector(".verdict.ok")
        make_hierarchy(page, "education")
        page.click(".groups .chip:text-is('10th')")
        page.click(".groups .chip:text-is('11th')")
        page.click(".mergebar button:has-text('Merge')")
        page.wait_for_selector(".grouphead:has-text('10th or 11th')")
        page.wait_for_selector(".covered:has-text('16 of 16 values covered, each once; 15 at the top')")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(16, 22, 28)"
