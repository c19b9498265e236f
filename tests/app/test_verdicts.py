"""What pages conclude is what was checked, no more."""

from __future__ import annotations

from html import unescape
from pathlib import Path
from typing import Any

import pytest
from nicegui import Client, ui

import louver as lv
from louver.app.jobs.tables import ArrangedTable, TableView, audited, audited_together
from louver.app.look import verdict_of
from louver.app.pages.releases import verdict_on
from louver.bounds.options import BoundsOptions
from louver.report.audit import audit_report
from louver.report.bounds import bounds_report
from louver.run import Run
from louver.schema.source import SourceOptions

FINE, BROKEN = {"passed": True, "checks": []}, {"passed": False, "checks": []}


def shown(releases: dict[str, Any], outcomes: dict[str, Any]) -> tuple[str, str]:
    """Kind and text of the verdict."""
    client = Client(ui.page("/"))
    try:
        with client.content, ui.element() as page:
            verdict_on(releases, outcomes)
        [banner] = [one for one in page.descendants() if "verdict" in one.classes]
        texts = [str(getattr(one, "text", "")) for one in banner.descendants()]
        return next(kind for kind in ("stop", "care", "ok", "plain") if kind in banner.classes), " ".join(
            texts
        )
    finally:
        client.delete()


@pytest.mark.parametrize(
    ("outcomes", "kind", "words"),
    [
        ({}, "plain", "No promise was checked yet."),
        ({"a": FINE}, "plain", "Not all promises were checked yet."),
        ({"a": FINE, "b": BROKEN}, "stop", "1 release does not keep what was promised."),
        ({"a": BROKEN, "b": BROKEN}, "stop", "2 releases do not keep what was promised."),
        ({"a": FINE, "b": FINE}, "care", "Every promise was recomputed and holds."),
    ],
)
def test_releases_are_said_to_keep_only_what_was_recomputed(
    outcomes: dict[str, Any], kind: str, words: str
) -> None:
    """A fixed banner said that each keeps its own promises, before any check and beside two broken ones."""
    releases = {"a": {"problem": None}, "b": {"problem": None}}
    found = shown(releases, outcomes)
    assert found[0] == kind and words in found[1] and "together" in found[1]


def test_a_release_that_cannot_be_read_keeps_nothing() -> None:
    assert shown({"a": {"problem": "no manifest"}}, {})[0] == "stop"
    assert shown({"a": {"problem": None}}, {"a": FINE}) == (
        "ok",
        "  Every promise was recomputed and holds. ",
    )


TABLES = {
    "ok": [("A", "no", 40), ("A", "yes", 60), ("B", "no", 30), ("B", "yes", 90)],
    "care": [("A", "no", 41), ("A", "yes", 60), ("B", "no", 29), ("B", "yes", 90)],
    "stop": [("A", "no", 1), ("A", "yes", 60), ("B", "no", 2), ("B", "yes", 90)],
}


@pytest.mark.parametrize("level", TABLES)
def test_one_verdict_on_all_four_faces(level: str, tmp_path: Path) -> None:
    """Level and sentence of `bounds` and `audit` in Python and JSON, text, report and explorer."""
    path, about = tmp_path / "people.csv", SourceOptions(weight="n")
    lines = ["site,ill,n", *(",".join(map(str, line)) for line in TABLES[level])]
    path.write_text("\n".join(lines) + "\n")
    options = BoundsOptions(rows=("site",), cols=("ill",))
    arranged = ArrangedTable(
        path=str(path), source=about, names=("site", "ill"), options=options, base=options
    )
    alone = lv.bounds(path, rows="site", cols="ill", weight="n")
    tables = [{"name": "all", "by": ["site", "ill"]}]
    together = lv.audit(path, tables=tables, weight="n")
    for found, shown, report in (
        (alone, audited(arranged, TableView(), Run()), bounds_report(source="t", audit=alone)),
        (
            together,
            audited_together(str(path), about, {"tables": tables}, Run()),
            audit_report(together, "t"),
        ),
    ):
        said = found.verdict
        assert found is together or said.level == level
        assert said.to_dict() == found.to_dict()["verdict"] == shown["verdict"]
        assert said.sentence in repr(found) and said.sentence in unescape(report)
        client = Client(ui.page("/"))
        try:
            with client.content:
                banner = verdict_of(shown["verdict"])
            texts = " ".join(str(getattr(one, "text", "")) for one in banner.descendants())
            assert str(said.level) in banner.classes and said.sentence in texts
        finally:
            client.delete()
