"""A search that was stopped goes on from what it left in a file."""

from __future__ import annotations

import stat
from pathlib import Path

import numpy as np
import pytest

from louver.errors import Cancelled, InputError
from louver.run import Run
from louver.tables.hiding import hide
from unit.protect.spec import FEW, protect, write


@pytest.mark.parametrize("large", [hide.LARGE, 0])
def test_a_search_begins_with_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: int
) -> None:
    monkeypatch.setattr(hide, "LARGE", large)
    write(tmp_path)
    kept = tmp_path / "state"
    first = protect(tmp_path, state=str(kept), steps=0)
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    with np.load(kept) as file:
        assert file["hidden"].sum() == first.summary.primary + first.summary.secondary
        assert (len(file["numbers"]) > 0) == (large == 0)
    again = protect(tmp_path, state=str(kept), steps=0)
    assert again.is_protected and again.cells == first.cells


def test_what_was_found_before_a_stop_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search is cancelled at its first round; nothing but the file knows the pattern."""
    write(tmp_path)
    kept = tmp_path / "state"
    run = Run()

    def stop(search: object) -> None:
        run.cancel()
        run.check()

    with monkeypatch.context() as patch:
        patch.setattr(hide._Search, "root", stop)
        with pytest.raises(Cancelled):
            protect(tmp_path, state=str(kept), run=run)
    with np.load(kept) as file:
        hidden = file["hidden"]
    seen = []
    with monkeypatch.context() as patch:
        start = hide._Search.start
        patch.setattr(
            hide._Search, "start", lambda self, known=None: (seen.append(known), start(self, known))[1]
        )
        assert protect(tmp_path, state=str(kept)).is_protected
    assert (seen[0] == hidden).all()


def test_changes_that_do_not_hold_are_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hide, "LARGE", 0)
    write(tmp_path)
    kept = tmp_path / "state"
    found = protect(tmp_path, state=str(kept), steps=0)
    with np.load(kept) as file:
        parts = dict(file)
    parts["change"] = parts["change"] + 1
    with open(kept, "wb") as file:
        np.savez(file, **parts)
    again = protect(tmp_path, state=str(kept), steps=0)
    assert again.is_protected and again.summary.primary == found.summary.primary


def test_the_state_of_other_tables_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hide, "LARGE", 0)
    write(tmp_path)
    kept = tmp_path / "state"
    protect(tmp_path, state=str(kept))
    for more in ({"rules": [{**FEW, "minimum": 5}]}, {"attackers": "outsider"}, {"minimise": "value"}):
        with pytest.raises(InputError, match="other tables, rules or attackers"):
            protect(tmp_path, state=str(kept), **more)
    with np.load(kept) as file:
        parts = dict(file)
    for name, wrong in (
        ("hidden", parts["hidden"][1:]),
        ("cells", parts["cells"] + 10_000),
        ("ends", np.ones(5)),
    ):
        with open(kept, "wb") as file:
            np.savez(file, **{**parts, name: wrong})
        with pytest.raises(InputError, match="is not the state of a search"):
            protect(tmp_path, state=str(kept))
    kept.write_text("no state")
    write(tmp_path)
    with pytest.raises(InputError, match="is not the state of a search"):
        protect(tmp_path, state=str(kept))
