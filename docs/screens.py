"""Pictures of pages of the explorer, light and dark, and of the report in the README: python docs/screens.py [PAGE|report...].

Needs Chromium and the extra `app`.
"""

from __future__ import annotations

import io
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from app.browser import Explorer, chromium, running, tab
from louver.cli import main as louver
from louver.data.samples import write_samples

FOLDER = Path(__file__).with_name("images")
COLOURS = 256
REPORT: Any = {"width": 1130, "height": 1330}
NOISE = ("groups", "topdown", "releases", "ledger")
SHOWN = ("data", "tables", "protect", "microdata", *NOISE)
"""Pages of which the guide of the explorer has a picture."""


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
        _run(command)
    return [str(people), f"--ledger={ledger}", f"--releases={releases}"]


def prepared_noise(folder: Path) -> list[str]:
    """The same for the pages about noise: crashes, a ledger, releases of both kinds."""
    prepared(folder)
    crashes, ledger, releases = folder / "crashes.csv", folder / "crashes.csv.ledger", folder / "releases"
    _run(["ledger", "init", ledger, "--epsilon=4", "--new-population"])
    units = ["--unit=CASENUM", "--regions=REGION,PSU", f"--domain={folder / 'regions.csv'}", "--max-size=20"]
    for epsilon in ("0.1", "0.5"):
        out = f"--out={releases / f'crashes-{epsilon}'}"
        _run(["groups", crashes, *units, f"--epsilon={epsilon}", f"--ledger={ledger}", out])
    return [str(crashes), f"--ledger={ledger}", f"--releases={releases}"]


def _run(command: list[object]) -> None:
    sys.argv = ["louver", *map(str, command)]
    with suppress(SystemExit):
        louver()


def take(page: Any, name: str, scheme: str) -> None:
    page.wait_for_timeout(1500)
    page.wait_for_function("!document.querySelector('.dim, .run:not(.gone)')")
    save(page, f"explore-{name}-{scheme}.png")


def save(page: Any, name: str) -> None:
    seen = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    seen.quantize(COLOURS, dither=Image.Dither.NONE).save(FOLDER / name, optimize=True)


def take_report() -> None:
    """The first report that `make demo` makes, as it begins."""
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        write_samples(Path(folder) / "data")
        html = Path(folder) / "bounds.html"
        _run(
            [
                "bounds",
                "--spec",
                html.with_name("data") / "survey.toml",
                "--suggest",
                "--seconds=10",
                "--html",
                html,
            ]
        )
        page = browser.new_page(viewport=REPORT, color_scheme="light")
        page.goto(html.as_uri())
        save(page, "report.png")


def ready(page: Any, name: str) -> None:
    """Bring a page to where there is something to see."""
    if name == "tables":
        page.wait_for_selector(".tile b:text-is('150')")
        page.focus(".heatgrid")
        page.keyboard.press("n")
    elif name in ("groups", "topdown"):
        page.click("button:has-text('Try the sample')")
        if name == "groups":  # a file is open
            page.click("dialog[open] button:has-text('Open the sample')")
        page.wait_for_selector("td:visible")  # the forecast follows
    elif name == "releases":
        page.wait_for_selector("[role=treegrid]")
        page.wait_for_selector("td:has-text('in a PSU')")
        page.click("button:has-text('Try made-up outlines')")
        page.wait_for_selector(".regionmap")
    elif name == "protect":
        page.click("button:has-text('Describe a table')")
        page.select_option(".drawer select", "hours")
        for attribute in ("education", "race"):
            page.click(f".drawer .places label:has-text('{attribute}')")
        page.click(".drawer [data-run]")
        page.wait_for_selector(".drawer p:has-text('in the list')")
        page.click(".drawer [data-close]")
        page.select_option("select[aria-label='Search']", "first")
        page.click(".form [data-run]")
        page.wait_for_selector(".verdict:has-text('Every primary cell is protected')")
        page.focus(".heatgrid")
        page.keyboard.press("n")
    elif name == "microdata":
        page.wait_for_selector("[data-run]")
        page.select_option("[aria-label=Time]", "3")
        page.keyboard.press("Control+Enter")
        page.click("button:has-text('Compare other k')")
        page.wait_for_function("document.querySelectorAll('.point').length > 3")


def main() -> None:
    wanted = sys.argv[1:] or [*SHOWN, "report"]
    if "report" in wanted:
        take_report()
        wanted.remove("report")
    for names, prepare in (
        ([name for name in wanted if name not in NOISE], prepared),
        ([name for name in wanted if name in NOISE], prepared_noise),
    ):
        with tempfile.TemporaryDirectory() as folder, chromium() as browser:
            if names:
                with running(*prepare(Path(folder))) as server:
                    take_all(browser, server, names)


def take_all(browser: Any, server: Explorer, names: list[str]) -> None:
    """The pages named, light and dark."""
    for scheme in ("light", "dark"):
        for name in names:
            with tab(browser, server, color_scheme=scheme) as page:
                page.wait_for_selector(".attr table")
                if name == "tables":
                    page.click("button:has-text('Open another')")
                    page.click(".drawer button:has(span:text-is('Survey'))")
                    page.wait_for_selector(".verdict:has-text('Counted data')")
                elif name == "microdata":
                    page.click("button:has-text('Take the suggested roles')")
                    page.wait_for_selector(".verdict.ok")
                page.click(f".rail a[href='#{name}']")
                page.wait_for_selector(f".rail a.on[href='#{name}']")
                ready(page, name)
                take(page, name, scheme)


if __name__ == "__main__":
    main()
