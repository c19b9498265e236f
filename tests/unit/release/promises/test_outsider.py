"""What the numbers of a table disclose, compared with all tables that have these numbers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import louver as lv
from louver.release.manifest import file_entry
from louver.release.promises.mapping import prints_what_it_means
from louver.release.promises.outsider import ShownCells, small_count_disclosed
from louver.release.verify import verify
from releases import edit

Cells = dict[tuple[str, ...], int | None]
FOLLOWS = "a hidden count above 0 and below 5 follows from the numbers that are shown"


def with_totals(rows: list[list[int]]) -> Cells:
    """A table with its margins."""
    full = [[*row, sum(row)] for row in rows]
    full.append([sum(column) for column in zip(*full, strict=True)])
    names = [*map(str, range(len(rows))), "Total"], [*map(str, range(len(rows[0]))), "Total"]
    return {(a, b): full[i][j] for i, a in enumerate(names[0]) for j, b in enumerate(names[1])}


def without(cells: Cells, *hidden: tuple[str, str]) -> Cells:
    return {key: None if key in hidden else count for key, count in cells.items()}


def table(cells: Cells, **changes: Any) -> ShownCells:
    return ShownCells(
        **{"by": ("a", "b"), "cells": cells, "base": None, "total": "Total", "about": "all", **changes}
    )


def test_one_hidden_cell_of_a_row() -> None:
    cells = with_totals([[3, 20], [30, 40]])
    assert small_count_disclosed([table(without(cells, ("0", "0")))], 5) == FOLLOWS
    assert small_count_disclosed([table(without(cells, ("0", "0")))], 3) is None
    assert small_count_disclosed([table(cells)], 5) == "a count above 0 and below 5 is shown"
    square = without(cells, ("0", "0"), ("0", "1"), ("1", "0"), ("1", "1"))
    assert small_count_disclosed([table(square)], 5) is None


def test_tables_of_the_same_people_are_taken_together() -> None:
    """A second table has the margin that the first one hides; about other people it says nothing."""
    first = without(with_totals([[3, 20], [30, 40]]), ("0", "0"), ("0", "Total"), ("1", "0"), ("1", "Total"))
    first = without(first, ("0", "0"), ("Total", "0"), ("0", "Total"))
    margin = table({("0",): 23, ("1",): 70}, by=("a",), total=None)
    assert small_count_disclosed([table(first)], 5) is None
    assert small_count_disclosed([table(first), margin], 5) == FOLLOWS
    other = table({("0",): 23, ("1",): 70}, by=("a",), total=None, about="men")
    assert small_count_disclosed([table(first), other], 5) is None
    relabelled = table({("x",): 23, ("y",): 70}, by=("a",), total=None)
    assert small_count_disclosed([table(first), relabelled], 5) is None


def test_rounded_numbers_leave_room() -> None:
    cells = without(with_totals([[3, 20], [30, 40]]), ("0", "0"))
    rounded = {key: None if count is None else 5 * round(count / 5) for key, count in cells.items()}
    assert small_count_disclosed([table(rounded, base=5)], 5) is None
    assert small_count_disclosed([table({("a", "b"): 1}, base=2, total=None)], 5) is None


def test_what_is_too_large_is_left_to_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = without(with_totals([[3, 20], [30, 40]]), ("0", "0"))
    monkeypatch.setattr("louver.release.promises.outsider.MOST_WORK", 1)
    assert small_count_disclosed([table(cells)], 5) is None


def matching(cells: Cells, most: int) -> Iterator[dict[tuple[str, str], int]]:
    """Every 2 x 2 table whose numbers are those shown, margins included, at most `most` people in a cell."""
    for a, b, c, d in product(range(most + 1), repeat=4):
        full = with_totals([[a, b], [c, d]])
        if all(count is None or full[key] == count for key, count in cells.items()):
            yield full  # type: ignore[misc]


@pytest.mark.parametrize("seed", range(10))
def test_all_tables_of_the_same_numbers(seed: int) -> None:
    """2 x 2 with margins: a hidden number is disclosed exactly where it is the same, and small, in all tables."""
    draw = random.Random(seed)
    truth = with_totals([[draw.randint(0, 3) for _ in range(2)] for _ in range(2)])
    hidden = {key for key, count in truth.items() if (count or 0) in range(1, 7) or draw.random() < 0.3}
    cells = without(truth, *hidden)  # type: ignore[arg-type]
    found = list(matching(cells, 8))
    is_large = max(max(one.values()) for one in found) > 7
    small = 7
    known = {key for key in hidden if len({one[key] for one in found}) == 1}  # type: ignore[index]
    expected = any(0 < (truth[key] or 0) < small for key in known)
    if not (is_large and expected):
        assert (small_count_disclosed([table(cells)], small) is not None) == expected


def people(folder: Path) -> Path:
    rows = [("x", "p")] * 12 + [("x", "q")] * 20 + [("y", "p")] * 30 + [("y", "q")] * 3
    path = folder / "people.csv"
    path.write_text("a,b\n" + "\n".join(map(",".join, rows)) + "\n")
    return path


def test_verify_looks_again(tmp_path: Path) -> None:
    """A published table with hidden cells, then with one of the numbers put back that hid another."""
    lv.audit(
        people(tmp_path),
        tables=[
            {
                "name": "t",
                "by": ["a", "b"],
                "totals": True,
                "below": 5,
                "hide": [{"a": "x", "b": "p"}, {"a": "x", "b": "q"}, {"a": "y", "b": "p"}],
            }
        ],
        registry=tmp_path / "register",
        publish=tmp_path / "out",
    )
    out = tmp_path / "out"
    assert verify(out).passed
    (file,) = (out / "data").glob("*.parquet")
    rows = pq.read_table(file).to_pylist()
    for row in rows:
        if (row["a"], row["b"]) == ("y", "p"):
            row["count"] = 30
    pq.write_table(pa.Table.from_pylist(rows, pq.read_schema(file)), file)
    file.with_suffix(".csv").unlink()
    name, found = f"data/{file.name}", file_entry(file)

    def change(m: dict[str, Any]) -> None:
        m["files"] = {name: {"bytes": found.bytes, "sha256": found.sha256}}

    edit(out, change)
    assert {check.name: check.found for check in verify(out).checks if not check.passed} == {
        "tables": FOLLOWS
    }
    edit(out, lambda m: m["parameters"].pop("small"))
    assert "does not say which" in str(verify(out))


LINE = {"published": None, "sort": "interval", "lower": None, "upper": None, "members": None}
PRINTED: dict[str, tuple[dict[str, Any], bool]] = {
    "an interval": ({"published": "[20, 29]", "lower": 20.0, "upper": 29.0}, True),
    "one number": ({"published": "-0.5", "lower": -0.5, "upper": -0.5}, True),
    "a tiny number": ({"published": "[1e-07, 2]", "lower": 1e-7, "upper": 2.0}, True),
    "as printed before": ({"published": "20-29", "lower": 20.0, "upper": 29.0}, True),
    "an interval made wider": ({"published": "[20, 29]", "lower": 0.0, "upper": 99.0}, False),
    "an interval made narrower": ({"published": "[20, 29]", "lower": 20.0, "upper": 21.0}, False),
    "one number made wider": ({"published": "20", "lower": 0.0, "upper": 99.0}, False),
    "an interval the wrong way": ({"published": "[29, 20]", "lower": 29.0, "upper": 20.0}, False),
    "an interval without ends": ({"published": "[20, 29]"}, False),
    "no interval": ({"published": "young", "lower": 20.0, "upper": 29.0}, False),
    "labels": ({"published": "[low, high]", "members": ["low", "middle", "high"]}, True),
    "one label": ({"published": "low", "members": ["low"]}, True),
    "labels in quotes": ({"published": '["a, b", c]', "members": ["a, b", "c"]}, True),
    "other labels": ({"published": "[low, middle]", "members": ["low", "middle", "high"]}, False),
    "no labels": ({"published": "[low, middle]", "members": []}, False),
    "a set": ({"published": "a | b", "sort": "set", "members": ["a", "b"]}, True),
    "a larger set": ({"published": "a | b", "sort": "set", "members": ["a", "b", "c"]}, False),
    "a node": ({"published": "north", "sort": "node", "members": ["a", "b"]}, True),
    "anything": ({"published": "*", "sort": "anything"}, True),
    "anything under another name": ({"published": "[20, 29]", "sort": "anything"}, False),
    "missing": ({"published": None, "sort": "missing"}, True),
    "missing under a name": ({"published": "20", "sort": "missing"}, False),
}


@pytest.mark.parametrize(("line", "expected"), PRINTED.values(), ids=PRINTED.keys())
def test_the_mapping_means_what_is_printed(line: dict[str, Any], expected: bool) -> None:
    schema = pa.schema(
        [
            ("published", pa.string()),
            ("sort", pa.string()),
            ("lower", pa.float64()),
            ("upper", pa.float64()),
            ("members", pa.list_(pa.string())),
        ]
    )
    assert prints_what_it_means(pa.Table.from_pylist([{**LINE, **line}], schema)) is expected


def test_persons_are_those_of_the_groups(tmp_path: Path) -> None:
    data, towns = tmp_path / "people.csv", tmp_path / "towns.csv"
    data.write_text("home,town\n" + "".join(f"{i // 3},{'ab'[i // 30]}\n" for i in range(60)))
    towns.write_text("town\na\nb\n")
    lv.groups(
        data,
        unit="home",
        regions=["town"],
        domain=str(towns),
        max_size=4,
        epsilon=1,
        seed=1,
        out=tmp_path / "out",
    )
    out, name = tmp_path / "out", "data/persons.parquet"
    assert "group-table" not in str({check.name for check in verify(out).checks if not check.passed})
    rows = pq.read_table(out / name)
    place = rows.column_names.index("persons")
    more = pa.array([value + 1 for value in rows["persons"].to_pylist()])
    for changed in (rows.set_column(place, "persons", more), pa.concat_tables([rows, rows]), rows.slice(1)):
        pq.write_table(changed, out / name)
        found = file_entry(out / name)
        entry = {"bytes": found.bytes, "sha256": found.sha256}
        edit(out, lambda m, entry=entry: m["files"].update({name: entry}))
        told = {check.name: check.found for check in verify(out).checks if not check.passed}
        assert "group-table" in told
