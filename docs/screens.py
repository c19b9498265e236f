"""Pictures of every page of the explorer, light and dark: python docs/screens.py [PAGE...]. Needs Chromium and the extra `app`."""

from __future__ import annotations

import io
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from app.browser import chromium, running, tab
from louver.app.pages import PAGES
from louver.cli import main as louver
from louver.data.samples import write_samples

FOLDER = Path(__file__).with_name("images")
COLOURS = 256


def prepared(folder: Path) -> list[str]:
    """Arguments of an explorer that has something to show: people, a ledger, a release."""
    write_samples(folder)
    people, ledger, releases = folder / "people.csv", folder / "people.csv.ledger", folder / "releases"
    releases.mkdir()
    for command in (
        ["ledger", "init", ledger, "--epsilon=2"],
        [
            "anonymize",
            people,
            "--quasi=age,education,race,sex",
            "--sensitive=income",
            "--identifying=weight",
            "-k5",
            "--steps=20",
            f"--out={releases / 'people-k5'}",
        ],
    ):
        sys.argv = ["louver", *map(str, command)]
        with suppress(SystemExit):
            louver()
    return [str(people), f"--ledger={ledger}", f"--releases={releases}"]


def take(page: Any, name: str, scheme: str) -> None:
    page.wait_for_timeout(1500)
    page.wait_for_function("!document.querySelector('.dim, .run:not(.gone)')")
    picture = (
        Image.open(io.BytesIO(page.screenshot())).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    )
    picture.save(FOLDER / f"explore-{name}-{scheme}.png", optimize=True)


def ready(page: Any, name: str) -> None:
    """Bring a page to where there is something to see."""
    if name == "tables":
        page.wait_for_selector(".tile b:text-is('150')")
        page.focus(".heatgrid")
        page.keyboard.press("n")
    elif name in ("groups", "topdown"):
        page.click("button:has-text('Try the sample')")
        page.wait_for_timeout(4000)  # the forecast follows
    elif name == "microdata":
        page.wait_for_selector("[data-run]")
        page.keyboard.press("Control+Enter")
        page.click("button:has-text('Compare other k')")
        page.wait_for_function("document.querySelectorAll('.point').length > 3")


def main() -> None:
    wanted = sys.argv[1:] or list(PAGES)
    with (
        tempfile.TemporaryDirectory() as folder,
        chromium() as browser,
        running(*prepared(Path(folder))) as server,
    ):
        for scheme in ("light", "dark"):
            for name in wanted:
                with tab(browser, server, color_scheme=scheme) as page:
                    page.wait_for_selector(".attr table")
                    if name == "tables":
                        page.click("button:has-text('Open another')")
                        page.click(".drawer button:has(span:text-is('Survey'))")
                        page.wait_for_selector(".verdict:has-text('Counted data')")
                    elif name != "data":
                        page.click("button:has-text('Take the suggested roles')")
                        page.wait_for_selector(".verdict.ok")
                    page.click(f".rail a[href='#{name}']")
                    page.wait_for_selector(f".rail a.on[href='#{name}']")
                    ready(page, name)
                    take(page, name, scheme)


if __name__ == "__main__":
    main()
