"""Rounded tables against brute force, and what they promise."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from fractions import Fraction
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
from louver.errors import SolverError
from louver.protect import round as rounding
from louver.protect.round import round_cells
from louver.run import Run
from oracles.rounded_attack import RoundedAttack
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


def rounded_firms(seed: int) -> list[tuple[str, str, int]]:
    draw = random.Random(seed)
    return [
        (draw.choice("abc"), draw.choice("xyz"), draw.choice([1, 2, 5, 9, 20, 60]))
        for _ in range(draw.randint(6, 16))
    ]


@pytest.mark.parametrize("is_counts", [False, True])
@pytest.mark.parametrize("base", [3, 6, 15])
@pytest.mark.parametrize("n_seeds", [2, pytest.param(8, marks=pytest.mark.long)])
def test_the_verdict_on_rounded_tables_is_that_of_an_attack_by_integer_programs(
    tmp_path: Path, n_seeds: int, base: int, is_counts: bool
) -> None:
    """Every primary cell, for the outsider and every firm that is alone or one of two somewhere; some are safe and some are not."""
    outcomes = set()
    for seed in range(n_seeds):
        firms = rounded_firms(seed)
        table = pa.table(
            dict(zip(("row", "column", "sum"), map(list, zip(*firms, strict=True)), strict=True))
        )
        wanted = {"name": "t", "by": ["row", "column"], **({} if is_counts else {"value": "sum"})}
        out = tmp_path / str(seed)
        # What is published does not depend on the rules; without them it is published whatever they would say.
        public = lv.protect(table, tables=[wanted], method="round", base=base, out=out)
        rule = {"rule": "frequency", "minimum": 3, **({} if is_counts else {"range": 20})}
        judged = lv.protect(table, tables=[wanted], rules=[rule], method="round", base=base)
        assert public.rounding == judged.rounding and public.rounding is not None
        lines = pq.read_table(out / "data/01-t.parquet").to_pylist()
        published = {(one["row"], one["column"]): list(one.values())[-1] for one in lines}
        reach = base * (1 + public.rounding.beyond) - 1
        attack = RoundedAttack(published, reach, 1 if is_counts else 0)
        members = {
            key: [n for n, (r, c, _) in enumerate(firms) if key[0] in (r, "Total") and key[1] in (c, "Total")]
            for key in published
        }
        primary = {key for key, own in members.items() if 0 < len(own) < 3}
        said = {(cell.cell["row"], cell.cell["column"]): cell.is_protected for cell in judged.cells}
        assert set(said) == primary
        near = {n for own in members.values() if len(own) <= 2 for n in own}
        for key in primary:
            size = len(members[key]) if is_counts else sum(firms[n][2] for n in members[key])
            up, down = (3 - size, 0) if is_counts else (-(-size // 5), -(-size // 5))
            is_safe = True
            for reader in [None] if is_counts else [None, *sorted(near)]:
                if members[key] == [reader]:
                    continue
                part = 0 if reader is None else firms[reader][2]
                own = {one: part for one, inside in members.items() if reader in inside}
                alone = {one: part for one, inside in members.items() if inside == [reader]}
                low, high = attack.bounds(key, own, alone)
                is_safe &= high >= size + up and low <= size - min(down, size - own.get(key, 0))
            assert said[key] == is_safe, (seed, key)
            outcomes.add(is_safe)
    assert outcomes == {True, False} or is_counts


@pytest.mark.parametrize("shape", ["cube", "cross"])
def test_a_search_that_is_out_of_time_gives_the_best_table_so_far(shape: str) -> None:
    sums = SHAPES[shape]
    values = completed([1, 2, 4, 7, 3, 1, 2, 9][: min(total for total, _ in sums)], sums)
    rows = matrix(sums, len(values))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounding._Model, "linear", lambda *_: None)
        found = round_cells(
            np.array(values),
            rows,
            np.full(len(values), 5),
            np.zeros(len(values), dtype=bool),
            Run(),
            seconds=1e-9,
        )
    assert not (rows.astype(np.int64) @ found.numbers).any() and not (found.numbers % 5).any()
    best = nearest(values, sums, 5, found.beyond)
    assert best is not None and found.bound <= best <= found.distance


def test_no_table_in_time_is_an_error() -> None:
    values = np.array([1, 4, 2, 3, 5])
    rows = matrix(SHAPES["linked"], 5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounding._Model, "linear", lambda *_: None)
        patch.setattr(rounding._Model, "annealed", lambda *_: None)
        with pytest.raises(SolverError, match="within --seconds"):
            round_cells(values, rows, np.full(5, 5), np.zeros(5, dtype=bool), Run(), seconds=1e-9)


def test_distances_of_different_variables_count_in_their_bases() -> None:
    values, base = np.array([1, 2, 3, 400, 300, 700]), np.array([5, 5, 5, 1000, 1000, 1000])
    rows = matrix([(2, (0, 1)), (5, (3, 4))], 6)
    found = round_cells(values, rows, base, np.zeros(6, dtype=bool), Run())
    moved = np.abs(found.numbers - values)
    assert Fraction(found.distance, found.scale) == sum(
        Fraction(int(change), int(own)) for change, own in zip(moved, base, strict=True)
    )
    alone = [
        round_cells(values[own], matrix([(2, (0, 1))], 3), base[own], np.zeros(3, dtype=bool), Run())
        for own in (slice(3), slice(3, 6))
    ]
    assert Fraction(found.distance, found.scale) == sum(Fraction(one.distance, one.scale) for one in alone)
    assert found.is_optimal


@pytest.mark.long
def test_the_same_bytes_in_two_runs_and_on_one_and_two_cores(tmp_path: Path) -> None:
    draw = random.Random(5)
    lines = [
        "a,b,c",
        *(f"a{draw.randrange(9)},b{draw.randrange(8)},c{draw.randrange(7)}" for _ in range(2_000)),
    ]
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "spec.toml").write_text(
        '[source]\nfile = "data.csv"\n[[protect.tables]]\nname = "t"\nby = ["a", "b", "c"]\n'
    )
    found = []
    for number, cores in enumerate((1, 1, 2)):
        asked = ["protect", "spec.toml", "--method", "round", "--base", "5", "--out", f"out{number}"]
        usable = sorted(os.sched_getaffinity(0))[:cores]
        threads = {
            name: str(cores) for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        }
        subprocess.run(
            [
                sys.executable,
                "-c",
                f"import os; os.sched_setaffinity(0, {usable}); from louver.cli import main; main()",
                *asked,
            ],
            cwd=tmp_path,
            env={**os.environ, **threads},
            check=True,
            capture_output=True,
        )
        found.append({path.name: path.read_bytes() for path in (tmp_path / f"out{number}/data").iterdir()})
    assert found[0] == found[1] == found[2]
