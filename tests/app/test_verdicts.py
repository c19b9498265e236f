"""What pages conclude is what was checked, no more."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from fractions import Fraction
from html import unescape
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from nicegui import Client, ui

import louver as lv
from louver._verdict import Level
from louver.app.jobs.data import profiled
from louver.app.jobs.ledgers import ledger_read
from louver.app.jobs.microdata import anonymized
from louver.app.jobs.protect import protected
from louver.app.jobs.regions import area_of
from louver.app.jobs.releases import checked
from louver.app.jobs.tables import ArrangedTable, TableView, audited, audited_together, suggested
from louver.app.look import verdict_of
from louver.app.pages.releases import verdict_on
from louver.app.words import without_flags
from louver.bounds.options import BoundsOptions
from louver.privacy.budget import Measure
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation
from louver.report.anonymize import inside_report
from louver.report.audit import audit_report
from louver.report.bounds import bounds_report
from louver.report.groups import groups_report
from louver.report.profile import profile_report
from louver.report.protect import protect_report
from louver.report.topdown import topdown_report
from louver.run import Run
from louver.schema.source import SourceOptions
from topdown_larger import write_larger
from unit.protect.spec import LINES, protect
from unit.protect.spec import write as write_firms
from unit.topdown.published.test_import import branched
from unit.topdown.published.test_read import write as write_published

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
        ({}, "plain", "No promise has been checked yet."),
        ({"a": FINE}, "plain", "Not all promises have been checked yet."),
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


Faces = tuple[Any, str | None, dict[str, Any]]
"""A result, its report where it has one, and what a page of the explorer gets."""


def of_bounds(folder: Path, level: str = "care") -> Faces:
    path, about = _table(folder, level)
    options = BoundsOptions(rows=("site",), cols=("ill",))
    arranged = ArrangedTable(
        path=str(path), source=about, names=("site", "ill"), options=options, base=options
    )
    found = lv.bounds(path, rows="site", cols="ill", weight="n")
    return found, bounds_report(source="t", audit=found), audited(arranged, TableView(), Run())


def of_audit(folder: Path) -> Faces:
    path, about = _table(folder)
    tables = [{"name": "all", "by": ["site", "ill"]}]
    found = lv.audit(path, tables=tables, weight="n")
    return found, audit_report(found, "t"), audited_together(str(path), about, {"tables": tables}, Run())


def of_profile(folder: Path) -> Faces:
    path = folder / "homes.csv"
    path.write_text("id,town\n" + "".join(f"p{n},{'ABC'[n % 3]}\n" for n in range(60)))
    found = lv.profile(path)
    return found, profile_report(found), profiled(str(path), SourceOptions(), Run())


def of_protect(folder: Path) -> Faces:
    write_firms(folder)
    found = protect(folder, attackers="outsider")
    return found, protect_report(found, "t"), found.to_dict()


def of_given_pattern(folder: Path) -> Faces:
    """A pattern that hides nothing but the primary cell, which is a plain difference."""
    lines = [line.replace(",,1", ",u,1") if line.startswith("food,small") else line for line in LINES]
    write_firms(folder, lines)
    found = protect(folder, table={"status": "status"}, attackers="outsider", given_pattern=True)
    return found, protect_report(found, "t"), found.to_dict()


def of_protected_records(folder: Path) -> Faces:
    """Magnitudes of records, where one contributor is nearly all of a cell."""
    path = folder / "firms.csv"
    lines = [f"{trade},{size},{n}\n" for trade in "AB" for size in "sl" for n in (10, 20, 30, 40)]
    path.write_text("trade,size,turnover\n" + "".join(lines) + "A,s,5000\n")
    how: dict[str, Any] = {
        "tables": [{"name": "firms", "by": ["trade", "size"], "value": "turnover"}],
        "rules": [{"rule": "dominance", "n": 1, "k": 80}],
    }
    found = lv.protect(path, **how)
    return found, protect_report(found, "t"), protected(str(path), SourceOptions(), how, Run())


def of_anonymize(folder: Path) -> Faces:
    path = folder / "people.csv"
    path.write_text("age,hours\n" + "".join(f"{30 + n},{n}\n" for n in range(8)))
    how: dict[str, Any] = {"quasi": ["age"], "keep": ["hours"], "k": 2, "method": "exact"}
    found = lv.anonymize(path, **how)
    return found, inside_report(found), anonymized(str(path), SourceOptions(), how, Run())


def of_groups(folder: Path) -> Faces:
    homes = pa.table({"town": list("AABB"), "size": [1, 2, 1, 3], "n": [40, 20, 30, 9]})
    how: dict[str, Any] = {"size": "size", "groups": "n", "regions": ["town"], "max_size": 3, "epsilon": 1}
    found = lv.groups(homes, **how, domain_from_data=True, seed=1, out=folder / "out", report=groups_report)
    return found, (folder / "out" / "report.html").read_text(), found.to_dict()


def of_topdown(folder: Path) -> Faces:
    spec, _ = write_larger(folder)
    found = lv.topdown.topdown(spec, seed=3, out=folder / "out", report=topdown_report)
    return found, (folder / "out" / "report.html").read_text(), found.to_dict()


def of_extend(folder: Path) -> Faces:
    spec, larger = write_larger(folder)
    lv.topdown.topdown(spec, seed=3, out=folder / "first")
    found = lv.topdown.extend(larger, seed=4, out=folder / "out", report=topdown_report)
    return found, (folder / "out" / "report.html").read_text(), found.to_dict()


def of_imported(folder: Path) -> Faces:
    lv.topdown.import_nmf(write_published(folder / "US_Unit_PL", branched()), out=folder / "measured")
    found = lv.topdown.estimate(
        folder / "measured/topdown.toml",
        measurements=folder / "measured",
        out=folder / "out",
        report=topdown_report,
    )
    return found, (folder / "out" / "report.html").read_text(), found.to_dict()


def of_verify(folder: Path) -> Faces:
    of_groups(folder)
    return lv.verify(folder / "out"), None, checked(str(folder), "out", False, 0, Run())


def of_ledger(folder: Path) -> Faces:
    ledger = Ledger.create(folder / "a.ledger", Measure.EPSILON, Relation.ADD_REMOVE_RECORD, Fraction(1))
    return ledger.verify(), None, ledger_read(str(ledger.path), None, Run())["check"]


def of_broken_ledger(folder: Path) -> Faces:
    of_ledger(folder)
    with sqlite3.connect(folder / "a.ledger") as db:
        db.execute("""UPDATE entries SET body = replace(body, '"1"', '"9"')""")
    found = Ledger(folder / "a.ledger").verify()
    return found, None, found.to_dict()


def _table(folder: Path, level: str = "care") -> tuple[Path, SourceOptions]:
    lines = ["site,ill,n", *(",".join(map(str, line)) for line in TABLES[level])]
    (folder / "people.csv").write_text("\n".join(lines) + "\n")
    return folder / "people.csv", SourceOptions(weight="n")


@pytest.mark.parametrize(
    ("made", "level"),
    [
        (of_audit, "ok"),
        (of_profile, "stop"),
        (of_protect, "ok"),
        (of_protected_records, "ok"),
        (of_given_pattern, "stop"),
        (of_anonymize, "care"),
        (of_groups, "stop"),
        (of_topdown, "stop"),
        (of_extend, "stop"),
        (of_imported, "care"),
        (of_verify, "stop"),
        (of_ledger, "ok"),
        (of_broken_ledger, "stop"),
    ],
)
def test_one_verdict_of_every_verb_on_every_face(
    made: Callable[[Path], Faces], level: str, tmp_path: Path
) -> None:
    """Level and sentence in Python and JSON, text, report and explorer."""
    check_faces(*made(tmp_path), level)


def check_faces(found: Any, report: str | None, shown: dict[str, Any], level: str) -> None:
    said = found.verdict
    assert said.level == level
    assert said.to_dict() == found.to_dict()["verdict"] == shown["verdict"]
    assert said.sentence.rstrip(".").lower() in f"{found!r}\n{found}".lower()
    if report is not None:
        kind = {"ok": "", "care": " care", "stop": " risk"}[level]
        lines = re.findall(rf'<p class="verdict{kind}">(.*?)</p>', re.sub("</?code>", "", report))
        assert any(said.sentence in unescape(line) for line in lines)
    client = Client(ui.page("/"))
    try:
        with client.content:
            banner = verdict_of(shown["verdict"])
        texts = " ".join(str(getattr(one, "text", "")) for one in banner.descendants())
        assert level in banner.classes and without_flags(said.sentence) in texts
    finally:
        client.delete()


@pytest.mark.parametrize("level", TABLES)
def test_every_level_of_bounds_on_every_face(level: str, tmp_path: Path) -> None:
    check_faces(*of_bounds(tmp_path, level), level)


def test_every_redesign_has_the_verdict_of_its_table_on_every_face(tmp_path: Path) -> None:
    path, about = tmp_path / "people.csv", SourceOptions(weight="n")
    lines = [
        (site, ill, n)
        for site, counts in zip("ABC", ((3, 9, 40), (2, 11, 50), (30, 41, 70)), strict=True)
        for ill, n in zip("xyz", counts, strict=True)
    ]
    path.write_text("site,ill,n\n" + "".join(f"{site},{ill},{n}\n" for site, ill, n in lines))
    options = BoundsOptions(rows=("site",), cols=("ill",))
    arranged = ArrangedTable(
        path=str(path), source=about, names=("site", "ill"), options=options, base=options
    )
    found = lv.bounds.suggest(path, rows="site", cols="ill", weight="n", seconds=60)
    assert found.lines
    shown = suggested(arranged, 60, found.avoid, Run())["lines"]
    for line, content, seen in zip(found.lines, found.to_dict()["suggestions"], shown, strict=True):
        assert line.verdict.to_dict() == content["verdict"] == seen["verdict"]
        assert line.verdict.level is not Level.STOP


def test_how_good_the_number_of_an_area_is_is_one_word_on_every_face(tmp_path: Path) -> None:
    spec, _ = write_larger(tmp_path)
    spec.write_text(spec.read_text().replace("intervals = 0", "intervals = 1"))
    lv.topdown.topdown(spec, seed=3, out=tmp_path / "out")
    found = lv.topdown.area(tmp_path / "out", leaves=["1A1", "2B1"])
    total = found.total
    half = Fraction(total.upper_90 - total.lower_90, 2)
    ends = {
        "very good": (0, 0.01),
        "usable": (0.01, 0.05),
        "rough": (0.05, 0.2),
        "too noisy alone": (0.2, 1e9),
    }
    low, high = ends[total.rating]
    assert low * total.count <= half <= high * total.count
    shown = area_of(str(tmp_path), "out", ["1A1", "2B1"], Run())
    assert total.rating == found.to_dict()["total"]["rating"] == shown["total"]["rating"]
    assert repr(found).splitlines()[0].endswith(f"; {total.rating}")
