"""The explorer in a real browser: from a change to the painted summary, what changes leave behind, a large table, cancelling.

    python benchmarks/explorer.py                 latency of 100 changes on cps8
    python benchmarks/explorer.py --memory        memory of server, its processes and the browser after 20 and 120 changes
    python benchmarks/explorer.py --large         a histogram of 10 million cells: scrolling, pointing, the next disclosed cell
    python benchmarks/explorer.py --cancel        from Cancel to the end of a search of anonymize

Peer: the bounds paper (section 4.3) asks for "real-time interactive exploration"; 200 ms is what people take for immediate.
Needs Chromium and the extra `app`.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from app.browser import chromium, running, tab
from louver.data.samples import sample_path

CHANGES = 100
SEARCHES = 5
LARGE_ROWS, LARGE_COLS = (10, 10, 10, 10, 10, 10), 12
PAINTED = """
([name, key]) => new Promise((done) => {
  const chip = [...document.querySelectorAll('.chip')].find((one) => one.dataset.chip === name);
  const tiles = document.querySelector('.tiles'), before = tiles.textContent, start = performance.now();
  const seen = new MutationObserver(() => {
    if (tiles.textContent === before) return;
    seen.disconnect();
    requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - start)));
  });
  seen.observe(tiles, {subtree: true, childList: true, characterData: true});
  chip.focus();
  chip.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
})
"""
SCROLLED = """
(share) => new Promise((done) => {
  const grid = document.querySelector('.heatgrid'), box = grid.querySelector('.scroller'), part = getElement(Number(grid.id.slice(1)));
  const start = performance.now();
  const seen = setInterval(() => {
    const {top, bottom} = part.seen();
    if (part.win.first > top || part.win.first + part.win.lines.length < Math.min(bottom, part.win.n_lines)) return;
    clearInterval(seen);
    requestAnimationFrame(() => done(performance.now() - start));
  }, 5);
  box.scrollTop = share * (box.scrollHeight - box.clientHeight);
})
"""


def change(page: Any, number: int) -> float:
    """Leave an attribute out, or take it back; ms until the summary is painted."""
    return float(page.evaluate(PAINTED, [f"X{1 + number // 2 % 6}", "or"[number % 2]]))


def told(times: list[float]) -> str:
    median, late = np.percentile(times, [50, 95])
    return f"median {median:.0f} ms, 95 % below {late:.0f} ms"


def megabytes(process: psutil.Process, page: Any) -> str:
    """Memory of the server, of its children and of the page's scripts after their garbage was collected."""
    tools = page.context.new_cdp_session(page)
    tools.send("HeapProfiler.collectGarbage")
    heap = page.evaluate("performance.memory.usedJSHeapSize") / 1e6
    nodes = tools.send("Memory.getDOMCounters")["nodes"]
    tools.detach()
    server, *workers = [round(one.memory_info().rss / 1e6) for one in (process, *process.children())]
    return f"server {server}, processes {sorted(workers)}, browser heap {heap:.1f} MB, {nodes:,} nodes"


def with_tables(story: Callable[[Any, psutil.Process], None]) -> None:
    with (
        running(str(sample_path("cps8")), "--weight=count") as server,
        chromium() as browser,
        tab(browser, server, "tables") as page,
    ):
        page.wait_for_selector(".tile b:text-is('150')")
        story(page, psutil.Process(server.process.pid))


def latency(page: Any, process: psutil.Process) -> None:
    for number in range(10):
        change(page, number)
    times = [change(page, number) for number in range(CHANGES)]
    print(f"change to painted summary, {CHANGES} changes on cps8: {told(times)}")


def memory(page: Any, process: psutil.Process) -> None:
    for number in range(20 + CHANGES):
        change(page, number)
        if number + 1 in (20, 20 + CHANGES // 2, 20 + CHANGES):
            print(f"after {number + 1} changes: {megabytes(process, page)}")


def large() -> None:
    """Ten million cells: about a million rows with people, twelve columns."""
    random = np.random.default_rng(1)
    n = 4 * int(np.prod(LARGE_ROWS))
    sizes = {f"a{i}": size for i, size in enumerate(LARGE_ROWS)} | {"answer": LARGE_COLS}
    columns = {
        name: pa.DictionaryArray.from_arrays(
            random.integers(0, size, n).astype(np.int32), [f"{name}-{j}" for j in range(size)]
        )
        for name, size in sizes.items()
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.parquet"
        pq.write_table(pa.table(columns), path)
        with running(str(path)) as server, chromium() as browser, tab(browser, server, "tables") as page:
            page.set_default_timeout(300_000)
            page.wait_for_selector(".tile b:not(:text-is('–'))")
            _arrange_all(page)
            scrolls = [page.evaluate(SCROLLED, share) for share in np.linspace(0, 1, 21).tolist()]
            print(f"{page.inner_text('.gridtop .sub')}; scroll to painted lines: {told(scrolls)}")
            print(f"point to explanation: {told([_pointed(page, x) for x in range(10)])}")
            print(megabytes(psutil.Process(server.process.pid), page))


def _arrange_all(page: Any) -> None:
    """All attributes but the answer to the rows, the answer alone to the columns."""
    started = time.perf_counter()
    for name, key in [("answer", "c"), *((f"a{i}", "r") for i in range(len(LARGE_ROWS)))]:
        page.focus(f"[data-chip={name}]")
        page.keyboard.press(key)
    page.wait_for_timeout(1000)
    page.wait_for_function("!document.querySelector('.dim, .run:not(.gone)')")
    print(f"arranged and audited in {time.perf_counter() - started:.1f} s")


def _pointed(page: Any, number: int) -> float:
    box = page.locator(".heatgrid").bounding_box()
    before = page.locator(".tip .where").all_inner_texts()
    started = time.perf_counter()
    page.mouse.move(box["x"] + 300 + 40 * number, box["y"] + 120 + 24 * (number % 5))
    page.wait_for_function(
        "(old) => document.querySelector('.tip .where')?.textContent !== old", arg="".join(before)
    )
    return 1000 * (time.perf_counter() - started)


def cancelling() -> None:
    with running(str(sample_path("people"))) as server, chromium() as browser, tab(browser, server) as page:
        page.click("button:has-text('Take the suggested roles')")
        page.click(".rail a[href='#microdata']")
        page.wait_for_selector("[data-run]")
        page.select_option("select[aria-label=Time]", "120")
        times = []
        for _ in range(SEARCHES):
            page.click("[data-run]")
            page.wait_for_selector(".falling:not(.gone)")
            started = time.perf_counter()
            page.keyboard.press("Escape")
            page.wait_for_selector(".problem:has-text('ancelled')")
            times.append(1000 * (time.perf_counter() - started))
    print(f"cancel to the end of a search of anonymize: {told(times)}, at most {max(times):.0f} ms")


def main() -> None:
    stories = {
        "--memory": lambda: with_tables(memory),
        "--large": large,
        "--cancel": cancelling,
        "": lambda: with_tables(latency),
    }
    for name in sys.argv[1:] or [""]:
        stories[name]()


if __name__ == "__main__":
    main()
