"""What a mark tells: the audit's reader knows the rule that hides counts, and that empty cells are shown."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import louver as lv
from louver.errors import InputError
from louver.optim.kernels.audit.propagate import UNBOUNDED
from louver.release.register import Register


def people(**counts: int) -> pa.Table:
    """Counts by place, named by letters."""
    return pa.table({"place": list(counts), "count": list(counts.values())})


PLACES = people(A=1, B=2, C=7, D=0, E=9)


def known(table: dict, data: pa.Table = PLACES, **more) -> dict[str, tuple[int, int | None]]:
    """Bounds by place; nothing but one table is published."""
    table = {"name": "t", "by": ["place"], **table}
    found = lv.audit(
        data, weight="count", tables=[table], targets=[{"by": ["place"]}], no_advice=True, **more
    )
    return {cell.cell["place"]: (cell.lower, cell.upper) for cell in found.cells}


def test_counts_hidden_by_the_rule_are_from_1_to_below_it():
    found = known({"below": 5})
    assert found == {"A": (1, 4), "B": (1, 4), "C": (7, 7), "D": (0, 0), "E": (9, 9)}


def test_with_further_cells_under_the_same_mark_a_hidden_count_is_only_not_zero():
    found = known({"below": 5, "hide": [{"place": "C"}]})
    assert found["A"] == found["C"] == (1, None)


def test_hiding_a_small_cell_once_more_changes_nothing():
    assert known({"below": 5, "hide": [{"place": "A"}]})["A"] == (1, 4)


def test_with_an_empty_cell_hidden_a_mark_tells_nothing():
    found = known({"below": 5, "hide": [{"place": "D"}]})
    assert found["A"] == found["D"] == (0, None)


def test_hidden_ones_are_told_by_a_limit_of_two():
    assert known({"below": 2})["A"] == (1, 1)


def test_a_mark_range_says_what_readers_know_of_a_computed_table():
    assert known({"below": 5, "mark_range": [0, 9]})["A"] == (0, 9)
    assert known({"below": 5, "hide": [{"place": "C"}], "mark_range": [1, 8]})["C"] == (1, 8)


def test_a_mark_range_must_hold_for_every_hidden_count():
    with pytest.raises(
        InputError, match='table "t": mark_range does not hold for every hidden count; widen it'
    ):
        known({"below": 5, "hide": [{"place": "C"}], "mark_range": [1, 4]})


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"by": ["place"], "mark_range": [1, 4]}, "has mark_range but hides nothing; add below or hide"),
        (
            {"rows": ["place"], "cols": ["sex"], "mark_range": [1, 4]},
            "has mark_range, which conditionals do not take",
        ),
    ],
)
def test_a_mark_range_without_marks_is_refused(table, told):
    with pytest.raises(InputError, match=told):
        lv.audit(PLACES, weight="count", tables=[{"name": "t", **table}])


def test_shown_numbers_of_a_rounded_table_are_not_small_either():
    """A printed 0 is nobody, and a printed 5 at least 5, where counts from 1 to 4 would be hidden."""
    found = known({"below": 5, "base": 5}, people(A=1, C=6, D=0))
    assert found == {"A": (1, 4), "C": (5, 7), "D": (0, 0)}


def test_marks_in_a_file_are_not_empty_cells_if_the_records_have_none(tmp_path: Path):
    pa.csv.write_csv(PLACES, tmp_path / "people.csv")
    listed = {"place": list("ABCDE"), "count": ["*", "*", "7", "0", "9"]}
    pa.csv.write_csv(pa.table(listed), tmp_path / "t.csv")
    table = {"file": str(tmp_path / "t.csv"), "mark": ["*"]}
    assert known(table)["A"] == (1, None)
    listed["count"][3] = "*"
    pa.csv.write_csv(pa.table(listed), tmp_path / "t.csv")
    assert known(table)["A"] == (0, None)


def test_hidden_numbers_are_missing_in_the_release_and_ranges_in_the_register(tmp_path: Path):
    """Even a mark that tells the count, where nobody minds."""
    pa.csv.write_csv(PLACES, tmp_path / "people.csv")
    tables = [{"name": "ones", "by": ["place"], "below": 2}]
    register = tmp_path / "register"
    kept = {"weight": "count", "registry": register, "small": 1}
    assert lv.audit(tmp_path / "people.csv", tables=tables, publish=tmp_path / "out", **kept).published
    shown = pa.parquet.read_table(tmp_path / "out" / "data" / "01-ones.parquet")
    assert shown["count"].to_pylist() == [None, 2, 7, 0, 9]
    [margin] = Register(register).entries[0].content["tables"][0]["margins"]
    assert (margin["lower"][0], margin["upper"][0]) == (1, 1)


def test_an_entry_that_says_nothing_about_marks_is_read_as_a_reader_would(tmp_path: Path, monkeypatch):
    """Registers of earlier versions keep hidden cells as 0 and up."""
    rows = {"town": list("AABB"), "sex": list("fmfm"), "count": [1, 1, 20, 30]}
    pa.csv.write_csv(pa.table(rows), tmp_path / "people.csv")
    towns = {"name": "cells", "by": ["town", "sex"], "below": 5}
    totals = {"name": "towns", "by": ["town"]}
    kept = {"weight": "count", "registry": tmp_path / "register", "small": 2}
    before = lambda table, hidden: (0, UNBOUNDED)  # noqa: E731
    monkeypatch.setattr(sys.modules["louver.audit.counts"], "bounds_of_mark", before)
    assert lv.audit(tmp_path / "people.csv", tables=[towns], publish=tmp_path / "one", **kept).published
    monkeypatch.undo()
    [margin] = Register(tmp_path / "register").entries[0].content["tables"][0]["margins"]
    assert (margin["lower"][0], margin["upper"][0]) == (0, None)
    found = lv.audit(tmp_path / "people.csv", tables=[totals], **kept)
    assert [(cell.lower, cell.upper) for cell in found.disclosed()][:2] == [(1, 1), (1, 1)]
