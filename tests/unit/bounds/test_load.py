"""The data of an audit are read once."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from louver.bounds import BoundsOptions, answer
from louver.errors import Cancelled
from louver.run import Run
from louver.schema.request import ask

ROWS = "site,ill,count\n" + "".join(
    f"{site},{ill},{n}\n" for site, ill, n in [("A", "y", 3), ("A", "n", 4), ("B", "y", 50), ("B", "n", 30)]
)


def asked(folder: Path, **more: object):
    (folder / "table.csv").write_text(ROWS)
    given = {"rows": ("site",), "cols": ("ill",), "weight": "count", **more}
    return ask(BoundsOptions, str(folder / "table.csv"), None, given)


def test_audit_and_redesigns_come_from_one_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, module = [], import_module("louver.bounds.load")
    opening = module.open_source

    def open_source(data, **more):
        opened.append(data)
        return opening(data, **more)

    monkeypatch.setattr(module, "open_source", open_source)
    found = answer(asked(tmp_path, suggest=True, seconds=0.5))
    assert found.audit is not None and found.suggestions is not None
    assert len(opened) == 1


@pytest.mark.parametrize(
    "more",
    [{}, {"suggest": True}, {"arrangements": [{"rows": ["site"], "cols": ["ill"]}], "rows": (), "cols": ()}],
)
def test_a_cancelled_run_ends_an_audit(more: dict[str, object], tmp_path: Path) -> None:
    run = Run()
    run.cancel()
    with pytest.raises(Cancelled):
        answer(replace(asked(tmp_path, **more), run=run))
