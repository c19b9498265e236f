"""Tables that are protected together with what was published before about the same people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import louver as lv
from louver.errors import InputError
from louver.release.register import Register
from louver.tables import transport

FIRMS = [
    ("food", "small", 50),
    *(("food", "large", 40 + n) for n in range(4)),
    *(("wood", "small", 30 + n) for n in range(5)),
    *(("wood", "large", 90 + n) for n in range(4)),
    *(("iron", "small", 20 + n) for n in range(6)),
    *(("iron", "large", 70 + n) for n in range(5)),
]
TURNOVER = {"name": "turnover", "by": ["trade", "size"], "value": "turnover"}
PEOPLE = {"name": "people", "by": ["trade"]}
FEW = {"rule": "frequency", "minimum": 3}


def records(firms: list[tuple[str, str, int]] = FIRMS) -> pa.Table:
    columns = {name: [firm[n] for firm in firms] for n, name in enumerate(("trade", "size", "turnover"))}
    return pa.table({"id": [str(n) for n in range(len(firms))], **columns})


def protect(folder: Path, out: str | None = None, **more: Any) -> Any:
    given = {"tables": [TURNOVER], "rules": [FEW], "attackers": "outsider", "registry": folder / "register"}
    data = more.pop("data", records())
    return lv.protect(data, **{**given, **more}, out=None if out is None else folder / out)


def corner(trade: str, size: str, status: str = "publish") -> dict[str, Any]:
    return {"table": "turnover", "cell": {"trade": trade, "size": size}, "set": status, "reason": "asked for"}


def test_what_was_hidden_stays_protected(tmp_path: Path) -> None:
    """A second pattern for the same cells would do by itself; the two together give the primary cell away."""
    first = protect(tmp_path, "first")
    assert first.published and first.question.earlier == 0
    assert "the register is new" not in str(first.verdict.level)
    cells = {tuple(cell.cell.values()): cell.kind for cell in first.cells}
    assert cells["food", "small"] == "primary" and len(cells) == 4
    other = next(trade for trade in ("wood", "iron") if (trade, "small") in cells)
    status = [corner(other, "small")]
    alone = protect(tmp_path, registry=None, status=status)
    assert alone.is_publishable and "Tables published before" in str(alone.verdict)
    together = protect(tmp_path, "second", status=status)
    assert not together.is_protected and together.published is None and not (tmp_path / "second").exists()
    assert together.question.earlier == 1 and "Tables published before" not in str(together.verdict)
    again = protect(tmp_path, "again")
    assert again.published and {tuple(cell.cell.values()) for cell in again.cells} == set(cells)
    assert [entry.number for entry in Register(tmp_path / "register").entries] == [1, 2]
    assert lv.verify(tmp_path / "again").passed


def test_an_earlier_table_that_is_not_shown_again_is_protected_too(tmp_path: Path) -> None:
    """The first release hides a firm; a table by trade and kind of place shows it, where the place determines the size."""
    data = records()
    place = [
        "dock" if row["trade"] == "food" and row["size"] == "small" else "hill" for row in data.to_pylist()
    ]
    data = data.append_column("place", pa.array(place))
    assert protect(tmp_path, "first", data=data).published
    tables = [{"name": "places", "by": ["trade", "size"], "value": "turnover", "depth": {}}]
    shown = protect(
        tmp_path, data=data, tables=tables, status=[{**corner("food", "large"), "table": "places"}]
    )
    assert shown.summary.unprotected == 1
    (still_open,) = {cell.table for cell in shown.unprotected()}
    assert still_open == "places"
    by_trade = protect(
        tmp_path, "second", data=data, tables=[{"name": "all", "by": ["size"], "value": "turnover"}]
    )
    assert by_trade.published and by_trade.summary.primary == by_trade.summary.secondary == 0


def test_counts_are_audited_with_all_that_was_published(tmp_path: Path) -> None:
    data = records(FIRMS[:3] + FIRMS[5:])
    told = [{"name": "both", "by": ["trade", "size"]}]
    options = {"registry": tmp_path / "register", "small": 1, "publish": tmp_path / "audit"}
    assert lv.audit(data, tables=told, **options).published
    rules = [{"rule": "frequency", "minimum": 5}]
    found = protect(tmp_path, "counts", data=data, tables=[PEOPLE], rules=rules)
    assert found.is_protected and not found.is_publishable and found.published is None
    assert found.verdict.level == "stop" and "food" in found.refusal
    alone = protect(tmp_path, registry=None, data=data, tables=[PEOPLE], rules=rules)
    assert alone.is_publishable


@pytest.mark.parametrize("method", ["hide", "round"])
def test_later_audits_know_protected_counts(tmp_path: Path, method: str) -> None:
    (tmp_path / "trade.hrc").write_text("craft\n@food\n@wood\nmetal\n@iron\n")
    codes = {"trade": {"hierarchy": str(tmp_path / "trade.hrc")}}
    rules = [{"rule": "frequency", "minimum": 5, "range": 100}]
    tables = [{"name": "people", "by": ["trade", "size"]}]
    more = {"base": 20} if method == "round" else {}
    first = protect(tmp_path, "first", tables=tables, rules=rules, codes=codes, method=method, **more)
    assert first.published, str(first)
    content = Register(tmp_path / "register").entries[0].content
    assert {tuple(margin["by"]) for margin in content["tables"][0]["margins"]} == {
        (),
        ("trade",),
        ("size",),
        ("trade", "size"),
    }
    audit = {"registry": tmp_path / "register", "small": 5, "publish": tmp_path / "audit"}
    sizes = lv.audit(records(), tables=[{"name": "t", "by": ["trade", "size"]}], **audit)
    assert sizes.earlier == 1 and sizes.published is None


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "where": ({"where": "trade != 'iron'"}, "option --where: with --register all records are read"),
    "person alone": ({"registry": None, "person": "id"}, "option --person needs --register"),
    "other people": (
        {"data": records([(f"x{t}", s, v + 1) for t, s, v in FIRMS]), "out": "x"},
        "have people in common",
    ),
    "rounded": ({"method": "round", "base": 10}, 'which cannot be judged together with method "round"'),
    "weights": (
        {"sampling_weight": "w", "data": records().append_column("w", pa.array([2.0] * len(FIRMS)))},
        "has different numbers from these records",
    ),
    "status": (
        {"status": [corner("wood", "Total", "hide")]},
        "status 1 hides a cell that an earlier release shows",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_judged_together_is_refused(tmp_path: Path, case: str) -> None:
    assert protect(tmp_path, "first").published
    more, says = BAD[case]
    with pytest.raises(InputError) as error:
        protect(tmp_path, **more)
    assert says in str(error.value) and error.value.option


def test_files_of_tables_have_no_people(tmp_path: Path) -> None:
    (tmp_path / "firms.csv").write_text("trade,n,turnover\nfood,1,50\nTotal,1,50\n")
    table = {
        "name": "t",
        "by": ["trade"],
        "file": str(tmp_path / "firms.csv"),
        "value": "turnover",
        "frequency": "n",
    }
    with pytest.raises(InputError, match="option --register needs the records"):
        lv.protect(tables=[table], rules=[FEW], registry=tmp_path / "register")


def test_labels_that_nobody_has_count_nobody(tmp_path: Path) -> None:
    labels = ["craft", "food", "wood", "iron"]
    spec = f"[attributes.trade]\nlabels = {labels}\n".replace("'", '"')
    (tmp_path / "spec.toml").write_text(spec)
    assert protect(tmp_path, "out", tables=[PEOPLE], spec=tmp_path / "spec.toml").published
    margin = Register(tmp_path / "register").entries[0].content["tables"][0]["margins"][1]
    assert margin["labels"] == [labels] and margin["lower"][0] == margin["upper"][0] == 0


def test_other_people_by_word_alone_are_a_doubt(tmp_path: Path) -> None:
    """Five firms have gone: the rest may be the same, and only the steward says that they are not."""
    assert protect(tmp_path, "first").verdict.level == "ok"
    fewer = protect(tmp_path, "second", data=records(FIRMS[:-5]), new_population=True)
    assert fewer.published and fewer.verdict.level == "care"
    assert any(
        "with --new-population they count as other people" in reason for reason in fewer.verdict.reasons
    )


def test_a_file_of_records_that_shows_the_numbers_is_a_doubt(tmp_path: Path) -> None:
    """Turnover stands in the file record by record, so that hiding its sums protects nobody."""
    asked = {"quasi": ["trade", "size"], "k": 4, "identifying": ["id"], "method": "greedy", "suppress": 0.1}
    lv.anonymize(
        records(), **asked, sensitive=["turnover"], registry=tmp_path / "register", out=tmp_path / "file"
    )
    sums = protect(tmp_path)
    assert sums.question.shown_before == ("turnover",) and sums.verdict.level == "care"
    assert any('shows numbers of "turnover" person by person' in reason for reason in sums.verdict.reasons)
    assert protect(tmp_path, tables=[PEOPLE]).question.shown_before == ()


def test_counts_are_asked_about_outsiders_alone(tmp_path: Path) -> None:
    """Who knows to be the only one of a hidden count may subtract it; the verdict says that nobody asked."""
    alone = "contributors who know that they are alone in a cell were not"
    by_both = {"name": "people", "by": ["trade", "size"]}
    asked = {"registry": None, "attackers": "contributors"}
    assert alone in str(protect(tmp_path, tables=[by_both], **asked).verdict)
    assert alone not in str(protect(tmp_path, **asked).verdict)


def test_what_the_classes_of_a_file_confine_together_is_open_where_there_are_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "MOST_PAIRS", 1)
    asked = {
        "quasi": ["trade", "size"],
        "k": 4,
        "identifying": ["id", "turnover"],
        "method": "greedy",
        "suppress": 0.1,
    }
    lv.anonymize(records(), **asked, registry=tmp_path / "register", out=tmp_path / "file")
    refused = protect(tmp_path, "people", tables=[PEOPLE])
    assert refused.published is None and refused.is_acceptable and refused.verdict.level == "stop"
    people = protect(tmp_path, "people", tables=[PEOPLE], accept_unchecked=True)
    assert people.published and people.verdict.level == "care"
    assert any("each class was considered by itself" in reason for reason in people.verdict.reasons)
    assert not protect(tmp_path, "sums").question.files
