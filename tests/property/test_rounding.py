"""Rounded tables against brute force, and what they promise."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import louver as lv
from louver.protect import round as rounding
from louver.protect.round import round_cells
from louver.run import Run
from oracles.rounding import Sum, nearest

SHAPES: dict[str, list[Sum]] = {
    "row": [(3, (0, 1, 2))],
    "tree": [(4, (0, 1)), (5, (2, 3)), (6, (4, 5))],
    "cross": [(4, (0, 1)), (5, (2, 3)), (6, (0, 2)), (7, (1, 3)), (8, (4, 5)), (8, (6, 7))],
    "linked": [(4, (0, 1)), (4, (2, 3))],
    "cube": [
        *((8 + n, (2 * n, 2 * n + 1)) for n in range(4)),
        *((12 + n, (a, a + 2)) for n, a in enumerate((0, 1, 4, 5))),
        *((16 + n, (n, n + 4)) for n in range(4)),
    ],
}


def matrix(sums: list[Sum], n: int) -> csr_array:
    found = np.zeros((len(sums), n), dtype=np.int8)
    for row, (total, parts) in enumerate(sums):
        found[row, total] = 1
        found[row, list(parts)] = -1
    return csr_array(found)


def completed(finest: list[int], sums: list[Sum]) -> list[int]:
    values = dict(enumerate(finest))
    for total, parts in sums:
        values.setdefault(total, sum(values[part] for part in parts))
    return [values[n] for n in range(len(values))]


@settings(max_examples=150, deadline=None)
@given(
    shape=st.sampled_from(sorted(SHAPES)),
    finest=st.lists(st.integers(0, 12), min_size=8, max_size=8),
    base=st.sampled_from([2, 3, 5]),
    is_small=st.booleans(),
)
def test_rounded_numbers_are_the_nearest_that_add_up(shape, finest, base, is_small) -> None:
    sums = SHAPES[shape]
    n_finest = min(total for total, _ in sums)
    finest = finest[:n_finest]
    if shape == "linked":
        finest[3] = max(0, finest[0] + finest[1] - finest[2])
        finest[2] = finest[0] + finest[1] - finest[3]
    values = completed(finest, sums)
    rows = matrix(sums, len(values))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounding, "SMALL", 2_000 if is_small else 0)
        patch.setattr(rounding, "PASSES", 40)
        found = round_cells(
            np.array(values), rows, np.full(len(values), base), np.zeros(len(values), dtype=bool), Run()
        )
    assert not (rows.astype(np.int64) @ found.numbers).any()
    assert not (found.numbers % base).any() and (found.numbers >= 0).all()
    assert found.distance == np.abs(found.numbers - values).sum()
    assert (np.abs(found.numbers - values) < base * (found.beyond + 1)).all()
    best = nearest(values, sums, base, found.beyond)
    assert best is not None and found.bound <= best <= found.distance
    if found.is_optimal:
        assert found.distance == best
        assert not found.beyond or nearest(values, sums, base, found.beyond - 1) is None
    if is_small:
        assert found.is_optimal


@pytest.mark.parametrize("seed", range(3))
def test_what_is_published_adds_up_and_readers_learn_no_more_than_is_said(tmp_path: Path, seed: int) -> None:
    records = [(f"r{(n * 7 + seed) % 3}", f"c{(n * n + seed) % 4}") for n in range(40)]
    table = pa.table({"row": [r for r, _ in records], "column": [c for _, c in records]})
    tables = [{"name": "cross", "by": ["row", "column"]}, {"name": "rows", "by": ["row"]}]
    out = tmp_path / "out"
    found = lv.protect(
        table, tables=tables, rules=[{"rule": "frequency", "minimum": 3}], method="round", base=5, out=out
    )
    assert found.is_protected and lv.verify(out).passed
    lines = pq.read_table(out / "data/01-cross.parquet").to_pylist()
    shown = {(line["row"], line["column"]): line["count"] for line in lines}
    rows, columns = ({key[axis] for key in shown} - {"Total"} for axis in (0, 1))
    for row, column in product((*rows, "Total"), (*columns, "Total")):
        true = sum((row in (r, "Total")) and (column in (c, "Total")) for r, c in records)
        assert abs(shown.get((row, column), 0) - true) < 5 and shown.get((row, column), 0) % 5 == 0
    for row in (*rows, "Total"):
        assert sum(shown.get((row, column), 0) for column in columns) == shown[row, "Total"]
    again = lv.protect(
        table, tables=tables, rules=[{"rule": "frequency", "minimum": 3}], method="round", base=5
    )
    assert again.summary == found.summary and again.rounding == found.rounding


def test_a_base_that_hides_too_little_is_not_published(tmp_path: Path) -> None:
    """Numbers rounded to 2 leave a count of 1 at most 2: nobody can hold it for 5."""
    table = pa.table({"row": ["a"] + ["b"] * 9})
    found = lv.protect(
        table,
        tables=[{"name": "t", "by": ["row"]}],
        rules=[{"rule": "frequency", "minimum": 5}],
        method="round",
        base=2,
        out=tmp_path / "out",
    )
    assert found.verdict.level == "stop" and not (tmp_path / "out").exists()
    assert [cell.kind for cell in found.cells] == ["primary"] and found.summary.unprotected == 1
