"""The page Releases: findings are filled in, and nothing that can be clicked is drawn again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from nicegui import Client, ElementFilter, ui
from nicegui.testing import user_simulation

import louver as lv
from louver.app.look import Tag
from louver.app.pages.releases import _ReleasesPage
from louver.app.session import Session, Setup
from louver.app.work import end_spares


@pytest.mark.long
def test_a_finding_leaves_the_buttons(tmp_path: Path) -> None:
    """A check or comparison that ends while somebody clicks must not replace the button: the click would be lost."""
    data = tmp_path / "people.csv"
    data.write_text("age,town\n" + "\n".join(f"{20 + i % 4},{'AB'[i % 2]}" for i in range(24)) + "\n")
    folder = tmp_path / "releases"
    folder.mkdir()
    lv.anonymize(data, quasi=["age", "town"], k=2, out=folder / "people")
    setup = Setup(folder=tmp_path / "private", releases=folder)
    setup.folder.mkdir()
    found: dict[str, list[Tag]] = {}

    async def use(page: _ReleasesPage) -> None:
        await page.start(Tag("div"))
        found["buttons"] = list(ElementFilter(kind=Tag, content="Check its promises"))
        assert await page._check("people")
        found["verified"] = list(ElementFilter(kind=Tag, content="verified"))
        found["lost"] = [tag for tag in found["buttons"] if tag.is_deleted]

    async def look() -> None:
        is_over = asyncio.Event()

        @ui.page("/")
        async def page(client: Client) -> None:
            await client.connected()
            session = Session(setup)
            try:
                await use(_ReleasesPage(session, str(folder)))
            finally:
                session.close()
                end_spares()
                is_over.set()

        async with user_simulation(page) as user:
            await user.open("/")
            await is_over.wait()

    asyncio.run(look())
    assert len(found["buttons"]) == 1
    assert found["verified"] != []
    assert found["lost"] == []
