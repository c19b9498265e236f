"""Every page is drawn without an error: in this process, without a browser, with nothing opened and with everything."""

from __future__ import annotations

import asyncio
import re
from fractions import Fraction
from pathlib import Path

import pytest
from nicegui import Client, ElementFilter, ui
from nicegui.testing import user_simulation

from louver.app.look import Tag
from louver.app.pages import PAGES
from louver.app.session import Session, Setup
from louver.app.shell import Shell
from louver.app.work import end_spares
from louver.privacy.budget import Measure
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation
from topdown_town import write_town


def drawn(setup: Setup) -> dict[str, list[Tag]]:
    """The elements of each page, once it is complete."""
    found: dict[str, list[Tag]] = {}

    async def look() -> None:
        shells: asyncio.Queue[Shell] = asyncio.Queue()

        @ui.page("/")
        async def page(client: Client) -> None:
            await client.connected()
            shell = Shell(Session(setup), client)
            await shell.start()
            await shells.put(shell)

        async with user_simulation(page) as user:
            user.javascript_rules[re.compile("location.hash")] = lambda _: ""
            await user.open("/")
            shell = await shells.get()
            for name in PAGES:
                shell.show(name)
                assert shell._task is not None
                await shell._task
                with shell._client:
                    found[name] = list(ElementFilter(kind=Tag))
            shell._session.close()
            end_spares()

    asyncio.run(look())
    return found


@pytest.mark.parametrize("has_data", [False, True], ids=["nothing opened", "everything opened"])
def test_every_page_is_drawn(has_data: bool, tmp_path: Path) -> None:
    setup = Setup(folder=tmp_path / "private", releases=tmp_path / "releases")
    setup.folder.mkdir()
    if has_data:
        write_town(tmp_path)
        setup.file, setup.topdown = str(tmp_path / "people.csv"), tmp_path / "town.toml"
        setup.ledger = tmp_path / "people.csv.ledger"
        Ledger.create(setup.ledger, Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(100))
    for name, tags in drawn(setup).items():
        problems = [tag for tag in tags if "problem" in tag.classes]
        assert [[part.text for part in tag.descendants()] for tag in problems] == [], name
        titles = [tag.text for tag in tags if tag.tag == "h1"]
        assert titles == [PAGES[name].title], name
        opened = {tag.text for tag in tags} & {"people.csv", "No data"}
        assert "people.csv" in opened if has_data else opened == {"No data"}
