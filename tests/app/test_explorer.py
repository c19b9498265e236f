"""The explorer in a real browser: who is let in, Data, Tables, hostile input, cancelling."""

from __future__ import annotations

import http.client
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from app.browser import Explorer, enter, running, tab
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
    token = explorer.address.partition("#token=")[2]
    prefix = enter(explorer, "X-Louver-Key", explorer.key)["prefix"]
    assert enter(explorer, "X-Louver-Token", token) is None, "the token has been used"
    assert enter(explorer, "X-Louver-Key", token) is None
    status, headers = answer(explorer, "/")
    assert status == 200 and "set-cookie" not in headers, "the door, for everybody"
    for path in ("/assets/louver.css", "/upload/x", "/enter", "/_nicegui_ws/socket.io/", "/favicon.ico"):
        assert answer(explorer, path)[0] == 403
    assert answer(explorer, f"{prefix}/", Host="evil.example")[0] == 403
    assert answer(explorer, f"{prefix}/", Origin="http://evil.example")[0] == 403
    assert answer(explorer, f"{prefix}/upload/x")[0] in (404, 405)
    status, headers = answer(explorer, f"{prefix}/")
    assert status == 200 and "set-cookie" not in headers
    assert headers["cache-control"] == "no-store" and headers["referrer-policy"] == "no-referrer"
    assert "access-control-allow-origin" not in headers
    socket = "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "A" * 22 + "==",
    }
    assert answer(explorer, prefix + socket, **upgrade, Origin="http://evil.example")[0] == 403
    assert answer(explorer, prefix + socket, **upgrade)[0] == 403
    assert answer(explorer, socket, **upgrade, Origin=explorer.origin)[0] == 403
    polling = "/_nicegui_ws/socket.io/?EIO=4&transport=polling"
    assert answer(explorer, prefix + polling, Origin="http://evil.example")[0] == 403
    assert answer(explorer, polling)[0] == 403


def test_the_printed_address_opens_it_once(browser: Any) -> None:
    """In the browser: reloading goes on, another browser is kept out, and no address or history shows a secret."""
    with running() as found:
        one, other = browser.new_context(), browser.new_context()
        page, late = one.new_page(), other.new_page()
        page.goto(found.address)
        page.wait_for_selector(".rail a")
        assert page.url == f"{found.origin}/#start"
        page.reload()
        page.wait_for_selector(".rail a")
        second = one.new_page()
        second.goto(f"{found.origin}/#ledger")
        second.wait_for_selector(".rail a.on[href='#ledger']")
        late.goto(found.address)
        late.get_by_text("This browser has no key").wait_for()
        assert late.url == f"{found.origin}/"
        assert one.cookies() == other.cookies() == []
        one.close(), other.close()


class Listener(BaseHTTPRequestHandler):
    """Another user's server on the same machine: it keeps what it is sent, and its page tries what a page can."""

    heard: ClassVar[list[str]] = []
    page = ""

    def do_GET(self) -> None:
        self.heard.append(f"{self.path}\n{self.headers}")
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(self.page.encode())

    def log_message(self, *args: object) -> None:
        """Nothing."""


ATTACK = """<!doctype html><img src="{origin}/favicon.ico"><img src="{origin}/assets/louver.svg"><script>
const tried = async (call) => {{ try {{ return await call(); }} catch {{ return "refused"; }} }};
const opened = new Promise((yes) => {{
  const socket = new WebSocket("{socket}/_nicegui_ws/socket.io/?EIO=4&transport=websocket");
  socket.onopen = () => yes("open"); socket.onerror = () => yes("refused");
}});
window.found = Promise.all([
  tried(async () => (await fetch("{origin}/", {{ credentials: "include" }})).text()),
  tried(async () => (await fetch("{origin}/enter", {{ method: "POST", credentials: "include" }})).text()),
  tried(async () => (await fetch("{origin}/enter", {{ method: "POST", headers: {{ "X-Louver-Key": "x" }} }})).text()),
  tried(async () => (await import("{origin}/assets/louver.js"), "open")),
  opened,
]);
</script>"""


def test_another_server_on_this_machine_learns_nothing(explorer: Explorer, browser: Any) -> None:
    """Cookies go to every port: whatever a second listener receives opens nothing, and its page reaches nothing."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Listener)
    Listener.page = ATTACK.format(origin=explorer.origin, socket=explorer.origin.replace("http", "ws"))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with tab(browser, explorer, "tables") as page:
            wait_for_tiles(page, 17, 36)
            prefix, client = page.evaluate("[window.path_prefix, window.clientId]")
            other = page.context.new_page()
            other.goto(f"http://127.0.0.1:{server.server_port}/")
            assert other.evaluate("window.found") == ["refused"] * 5
            assert other.evaluate("localStorage.length + document.cookie.length") == 0
            assert page.context.cookies() == []
    finally:
        server.shutdown()
    heard = "".join(Listener.heard)
    assert "User-Agent" in heard and "cookie" not in heard.lower()
    for secret in (explorer.key, explorer.address.partition("=")[2], prefix.strip("/"), client):
        assert len(secret) > 30 and secret not in heard


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
        page.wait_for_selector(".verdict:has-text('17 small counts can be derived, and 36 rows reveal')")
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
        told = page.locator(".verdict:has-text('With 1 fact that outsiders know in addition')")
        told.filter(has_text=re.compile(r"[0-9,]+ cells? newly disclosed by the last fact")).wait_for()


def test_a_file_of_ones_own(explorer: Explorer, browser: Any, tmp_path: Path) -> None:
    """Semicolons and decimal commas: the page asks how it is read, and the answer goes into what is copied."""
    path = tmp_path / "own.csv"
    rows = (f"{20 + i % 50};{1 + i % 3},5;{'ab'[i % 2]}" for i in range(80))
    path.write_text("\n".join(["age;size;group", *rows]) + "\n")
    with tab(browser, explorer) as page:
        page.wait_for_selector(".attr table")
        upload(page, path)
        page.wait_for_selector(".problem:has-text('own.csv')")
        page.select_option("select[aria-label='Decimal mark']", ",")
        page.click("button:has-text('Read it this way')")
        make_hierarchy(page, "age")
        page.click(".treebody .seg button:has-text('Bands')")
        page.fill(".treebody input[aria-label='Bands']", "30, 50")
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
        while "#tables" not in page.url:  # two keys that come too far apart are not a pair
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
        area = page.locator(".heatgrid").bounding_box()
        page.mouse.move(area["x"] + 0.6 * area["width"], area["y"] + 82 + step % 2)
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


def test_a_button_that_moves_while_it_is_pressed_is_clicked(explorer: Explorer, browser: Any) -> None:
    """An answer may move the page between press and release; moving the mouse away still takes a press back."""
    with tab(browser, explorer, "data") as page:
        button = page.locator("[data-copy]").first
        button.wait_for()
        is_moved = "document.querySelector('.main').style.paddingTop = '0px'"

        def press() -> tuple[float, float]:
            page.evaluate(is_moved)
            box = button.bounding_box()
            x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
            page.mouse.move(x, y)
            page.mouse.down()
            page.evaluate(is_moved.replace("0px", "150px"))
            assert button.bounding_box()["y"] > y
            return x, y

        x, y = press()
        page.mouse.move(x - 200, y)
        page.mouse.up()
        page.evaluate("() => new Promise(done => setTimeout(done))")
        assert page.locator(".drawer").count() == 0
        press()
        page.mouse.up()
        page.wait_for_selector(".drawer pre")
        page.click(".drawer [data-close]")


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
