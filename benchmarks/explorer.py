"""The explorer on cps8: from a change to the painted summary, in a real browser; and what a hundred changes leave behind.

Peer: the bounds paper (section 4.3) asks for "real-time interactive exploration"; 200 ms is what people take for immediate.
Needs Chromium and the extra `app`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from app.browser import chromium, running, tab
from louver.data.samples import sample_path

CHANGES = 100
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


def megabytes(process: psutil.Process) -> list[int]:
    """Memory of the server and of its children."""
    return [round(one.memory_info().rss / 1e6) for one in (process, *process.children())]


def main() -> None:
    with running(str(sample_path("cps8")), "--weight=count") as server, chromium() as browser:
        process = psutil.Process(server.process.pid)
        with tab(browser, server, "tables") as page:
            page.wait_for_selector(".tile b:text-is('150')")
            times = [page.evaluate(PAINTED, ["X1", key]) for _ in range(5) for key in "or"]
            before = megabytes(process)
            heap = page.evaluate("performance.memory.usedJSHeapSize")
            times = [page.evaluate(PAINTED, [f"X{1 + i // 2 % 6}", "or"[i % 2]]) for i in range(CHANGES)]
            after = megabytes(process)
            grown = page.evaluate("performance.memory.usedJSHeapSize") - heap
    median, late = np.percentile(times, [50, 95])
    print(
        f"change to painted summary, {CHANGES} changes on cps8: median {median:.0f} ms, 95 % below {late:.0f} ms"
    )
    print(
        f"memory of server and its processes, MB: {before} before, {after} after; browser {grown / 1e6:+.1f} MB"
    )


if __name__ == "__main__":
    main()
