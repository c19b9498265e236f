"""Starting the explorer: without serving."""

from __future__ import annotations

from pathlib import Path

import pytest

from louver.app import server
from louver.app.guard import Keys
from louver.errors import InputError


def test_the_browser_is_opened_through_a_private_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other users see the arguments of programs; the token is not among them."""
    opened: list[str] = []
    monkeypatch.setattr(server.webbrowser, "open", opened.append)
    keys = Keys(8000)
    server._open_browser(keys, tmp_path)
    [page] = tmp_path.iterdir()
    assert opened == [page.as_uri()] and keys.token not in opened[0]
    assert page.stat().st_mode & 0o077 == 0
    assert keys.address in page.read_text()


def test_a_database_is_no_path(tmp_path: Path) -> None:
    assert server._checked_file("postgresql://host/people") == "postgresql://host/people"
    assert server._checked_file(None) is None


def test_what_pages_rely_on_is_there_before_they_are_shown(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="none.ledger does not exist; make one"):
        server._there(str(tmp_path / "none.ledger"), "--ledger", "make one")
    with pytest.raises(InputError, match="file is not a folder"):
        server._made(str(tmp_path / "file"))
    made = server._made(str(tmp_path / "releases"))
    assert made is not None and made.is_dir()
