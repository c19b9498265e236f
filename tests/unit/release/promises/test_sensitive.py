"""Promises about sensitive columns hold in the file whatever the source made of their values."""

from __future__ import annotations

import datetime
import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

import louver as lv
from louver.errors import InfeasibleError
from louver.release.manifest import read_manifest
from louver.release.promises.requested import weaknesses
from louver.schema.spec import read_spec
from releases import doubt, edit

DAYS = [datetime.date(2020, 1, day) for day in (1, 2, 3)]
COLUMNS: dict[str, pa.Array] = {
    "text": pa.array(["flu", "cold", "None"] * 4),
    "categories": pa.array(["flu", "cold", "ulcer"] * 4).dictionary_encode(),
    "whole": pa.array([1, 2, 30] * 4),
    "real": pa.array([1.0, 2.5, 3e20] * 4),
    "real with gaps": pa.array([1.0, None, 3.0] * 4),
    "not a number": pa.array([1.0, float("nan"), 3.0] * 4, from_pandas=False),
    "truth": pa.array([True, False, None] * 4),
    "day": pa.array(DAYS * 4),
    "time": pa.array([datetime.datetime(2020, 1, 1, hour) for hour in (1, 2, 3)] * 4),
    "money": pa.array([Decimal("1.50"), Decimal("2.00"), Decimal("3.25")] * 4),
    "text with gaps": pa.array(["flu", None, "cold"] * 4),
    "empty text": pa.array(["flu", "", "cold"] * 4),
}
ASKED: dict[str, dict[str, Any]] = {
    "l": {"l": 2},
    "entropy": {"l": 1.5, "l_kind": "entropy"},
    "recursive": {"l": 2, "l_kind": "recursive", "c": 2.5},
    "equal": {"t": 0.6},
    "ordered": {"t": 0.6, "distance": "ordered"},
}


def source(kind: str, column: pa.Array, folder: Path) -> Any:
    table = pa.table({"age": [30, 31, 32, 33, 34, 35, 50, 51, 52, 53, 54, 99], "ill": column})
    if kind == "dataframe":
        return table
    path = folder / f"people.{kind}"
    if kind == "parquet":
        pq.write_table(table, path)
    else:
        text = pa.types.is_dictionary(column.type)
        csv.write_csv(table.set_column(1, "ill", column.cast(pa.string())) if text else table, path)
    return path


KINDS = ["csv", "parquet", "dataframe"]
SOURCES = [
    pytest.param(kind, column, id=f"{name}-{kind}", marks=() if (n + m) % 3 == 0 else pytest.mark.long)
    for n, (name, column) in enumerate(COLUMNS.items())
    for m, kind in enumerate(KINDS)
]
"""Every column from one kind of source with every change, from all of them with all tests."""


@pytest.mark.parametrize(("kind", "column"), SOURCES)
def test_an_honest_release_verifies(kind: str, column: pa.Array, tmp_path: Path) -> None:
    data = source(kind, column, tmp_path)
    for name, asked in ASKED.items():
        for suppress in (0.0, 0.1):
            options = {
                "quasi": ["age"],
                "sensitive": ["ill"],
                "k": 3,
                "method": "greedy",
                "suppress": suppress,
            }
            release = lv.anonymize(data, **options, **asked)
            out = tmp_path / f"{name}-{suppress}"
            release.write(out)
            assert lv.verify(out).passed, str(lv.verify(out))


def test_recursive_diversity_is_counted_in_whole_numbers_and_what_was_asked_must_be_promised(
    tmp_path: Path,
) -> None:
    """Ten records of the commonest illness: 0.4 times the 25 others are just as many, and that is too many."""
    ill = pa.array(["flu"] * 10 + ["cold"] * 9 + ["ulcer"] * 8 + ["gout"] * 8)
    table = pa.table({"age": [1] * 35, "ill": ill})
    options = {"quasi": ["age"], "sensitive": ["ill"], "k": 3, "l_kind": "recursive"}
    with pytest.raises(InfeasibleError):
        lv.anonymize(table, **options, l=2, c=0.4)
    release = lv.anonymize(table, **options, l=2, c=0.41)
    assert [line.l for line in release.reached] == [2.0]
    out = tmp_path / "release"
    release.write(out)
    assert doubt(out, "l-diversity").passed
    assert not doubt(out, "l-diversity", c=0.4).passed
    assert not doubt(out, "l-diversity", l=3).passed
    assert not doubt(out, "l-diversity", c=None).passed
    manifest = read_manifest(out)
    assert not list(weaknesses(manifest))
    manifest.promises[:] = [
        {**entry, "c": 5.0} if entry["promise"] == "l-diversity" else entry for entry in manifest.promises
    ]
    assert '"l-diversity" is not promised with the requested c' in list(weaknesses(manifest))


def test_an_honest_hierarchical_release_verifies(tmp_path: Path) -> None:
    tree = tmp_path / "tree.csv"
    tree.write_text("1;low;*\n2;low;*\n30;high;*\n")
    for number, column in enumerate(
        (COLUMNS["whole"], pa.array([1.0, 2.0, 30.0] * 4), pa.array([1, None, 30] * 4))
    ):
        release = lv.anonymize(
            source("parquet", column, tmp_path),
            quasi=["age"],
            sensitive=["ill"],
            hierarchy={"ill": tree},
            distance="hierarchical",
            t=0.5,
            k=3,
            method="greedy",
        )
        release.write(tmp_path / str(number))
        assert lv.verify(tmp_path / str(number)).passed


def test_values_that_nobody_has_make_no_class_closer(tmp_path: Path) -> None:
    """A hierarchy with whole branches, and an order with many values, that nobody has: distances are those of the values that occur."""
    tree = tmp_path / "tree.csv"
    rare = [f"{i};rare {i % 3};all;*" for i in range(100, 130)]
    tree.write_text("\n".join(["1;low;some;*", "2;low;some;*", "30;high;some;*", *rare]) + "\n")
    table = pa.table({"age": list(range(12)), "ill": [1, 2, 30] * 4})
    release = lv.anonymize(
        table,
        quasi=["age"],
        sensitive=["ill"],
        hierarchy={"ill": tree},
        distance="hierarchical",
        t=0.5,
        k=3,
        method="greedy",
    )
    release.write(tmp_path / "tree")
    promised = next(p for p in read_manifest(tmp_path / "tree").promises if p["promise"] == "t-closeness")
    assert len(promised["values"]) == 3 and [len(set(level)) for level in promised["hierarchy"]] == [2, 1]
    spec = tmp_path / "spec.toml"
    spec.write_text(f'[attributes.ill]\nkind = "ordered"\nlabels = {[str(i) for i in range(200)]}\n')
    table = pa.table({"age": [1, 2, 3, 4, 5, 6], "ill": ["1", "1", "1", "2", "2", "2"]})
    close = lv.anonymize(
        table, schema=read_spec(spec).schema, quasi=["age"], sensitive=["ill"], t=0.1, k=3, method="greedy"
    )
    close.write(tmp_path / "order")
    assert close.n_classes == 1 and lv.verify(tmp_path / "order").passed


def test_values_that_the_schema_merges_are_one_value(tmp_path: Path) -> None:
    """Three spellings of two numbers: the file keeps all of them, the promise speaks of two."""
    spec = tmp_path / "spec.toml"
    spec.write_text('[attributes.ill]\nkind = "number"\nlabels = ["1", "2"]\n')
    table = pa.table({"age": [1, 2, 3, 4, 5, 6], "ill": ["1", "1.0", "2", "1.00", "2", "2.0"]})
    release = lv.anonymize(
        table, schema=read_spec(spec).schema, quasi=["age"], sensitive=["ill"], l=2, k=3, method="greedy"
    )
    release.write(tmp_path / "out")
    assert lv.verify(tmp_path / "out").passed
    promised = read_manifest(tmp_path / "out").promises[-1]["values"]
    assert sorted(map(sorted, promised)) == [["1", "1.0", "1.00"], ["2", "2.0"]]


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED.keys())
def test_a_missing_value_that_only_a_suppressed_record_has_is_not_told(
    asked: dict[str, Any], tmp_path: Path
) -> None:
    told = []
    for number, ill in enumerate(("flu", None)):
        table = pa.table({"age": [30] * 11 + [99], "ill": [*(["flu", "cold"] * 6)[:11], ill]})
        release = lv.anonymize(table, quasi=["age"], sensitive=["ill"], k=3, suppress=0.1, steps=5, **asked)
        if release.n_suppressed != 1:
            assert asked.get("distance") == "ordered"  # nothing is left out where the order would tell
            return
        out = tmp_path / str(number)
        release.write(out)
        assert lv.verify(out).passed
        told.append([entry.get("values") for entry in read_manifest(out).promises])
    assert told[0] == told[1]


def test_run_time_is_not_published(tmp_path: Path) -> None:
    release = lv.anonymize(pa.table({"age": [1, 2, 3, 4]}), quasi=["age"], k=2, method="greedy")
    release.write(tmp_path / "out")
    assert release.seconds > 0 and read_manifest(tmp_path / "out").seconds is None


def forged(source: Path, out: Path, change: Callable[[dict[str, Any]], object]) -> list[str]:
    """Checks that fail once the promise of t-closeness, and the t asked for, are changed."""
    shutil.copytree(source, out)

    def edited(m: dict[str, Any]) -> None:
        entry = next(entry for entry in m["promises"] if entry["promise"] == "t-closeness")
        change(entry)
        m["parameters"]["t"] = entry["t"]

    edit(out, edited)
    return [check.name for check in lv.verify(out).checks if not check.passed]


def test_different_values_are_not_one_value(tmp_path: Path) -> None:
    table = pa.table({"age": [1] * 3 + [50] * 3, "ill": ["flu"] * 3 + ["cold"] * 3})
    asked: dict[str, Any] = {"quasi": ["age"], "sensitive": ["ill"], "k": 3, "method": "greedy"}
    lv.anonymize(table, t=1.0, **asked).write(tmp_path / "honest")
    assert lv.verify(tmp_path / "honest").passed
    united = {"values": [["flu", "cold"]], "t": 0.0}
    found = forged(tmp_path / "honest", tmp_path / "out", lambda e: e.update(united))
    assert found == ["manifest contents", "t-closeness"]


def test_a_missing_value_and_its_label_are_one_value(tmp_path: Path) -> None:
    spec = tmp_path / "spec.toml"
    spec.write_text('[attributes.ill]\nlabels = ["flu", "unknown"]\nmissing = "unknown"\n')
    table = pa.table({"age": [1, 2, 3, 4], "ill": ["flu", "", "flu", "unknown"]})
    release = lv.anonymize(
        table,
        schema=read_spec(spec).schema,
        quasi=["age"],
        sensitive=["ill"],
        l=2,
        k=2,
        method="greedy",
        count_missing=True,
    )
    release.write(tmp_path / "out")
    assert lv.verify(tmp_path / "out").passed
    promised = read_manifest(tmp_path / "out").promises[-1]["values"]
    assert sorted(map(sorted, promised)) == [["", "unknown"], ["flu"]]


def test_repeated_levels_make_no_class_closer(tmp_path: Path) -> None:
    """A tree with the same level several times: the maker leaves the copies out, and `verify` does not count them."""
    tree = tmp_path / "tree.csv"
    tree.write_text("a;low;low;low;*\nb;low;low;low;*\nc;high;high;high;*\n")
    table = pa.table({"age": [1] * 4 + [50] * 4, "ill": ["a", "a", "a", "c", "b", "b", "b", "c"]})
    release = lv.anonymize(
        table,
        quasi=["age"],
        sensitive=["ill"],
        hierarchy={"ill": tree},
        distance="hierarchical",
        t=0.5,
        k=4,
        method="greedy",
    )
    release.write(tmp_path / "honest")
    assert release.n_classes == 2 and lv.verify(tmp_path / "honest").passed
    promised = next(p for p in read_manifest(tmp_path / "honest").promises if p["promise"] == "t-closeness")
    low, root = promised["hierarchy"]
    copies = {"hierarchy": [low] * 100 + [root], "t": 0.05}
    assert forged(tmp_path / "honest", tmp_path / "out", lambda e: e.update(copies)) == ["t-closeness"]
