"""The benchmarks run: each once at its smallest size, untimed."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

import pytest

from wright_smucker import TABLE_10

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def bounds_benchmark(monkeypatch):
    if not BENCHMARKS.is_dir():
        pytest.skip("the benchmarks are not part of this copy")
    spec = importlib.util.spec_from_file_location("bounds_benchmark", BENCHMARKS / "bounds.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "bounds_benchmark", module)
    monkeypatch.setattr(sys, "path", list(sys.path))
    spec.loader.exec_module(module)
    return module


def test_bounds_peers_agree_on_the_smallest_arrangement(bounds_benchmark, capsys):
    smallest = next(line for line in TABLE_10 if line.name == "L")
    line = bounds_benchmark.measure(smallest, rounds=1, classical_seconds=60.0, highs_seconds=60.0)
    assert (line.rows, line.n) == (32, 1841)
    assert all(peer.is_equal for peer in (line.published, line.classical, line.highs))
    assert not line.classical.is_extrapolated
    bounds_benchmark.show(line)
    assert capsys.readouterr().out.strip().endswith("equal")


def test_bounds_peers_that_run_out_of_time_are_extrapolated(bounds_benchmark):
    answer = [(0, 1)] * 10
    solve = lambda row_sums, gap, row: (0, 1)  # noqa: E731
    cut = bounds_benchmark.row_by_row(solve, [1] * 10, 5, answer, limit=0.0, n_first=3)
    assert cut.is_extrapolated and cut.is_equal and str(cut).endswith("*")
    wrong = bounds_benchmark.row_by_row(solve, [1] * 10, 5, [(0, 2)] * 10, limit=60.0, n_first=3)
    assert not wrong.is_extrapolated and not wrong.is_equal


def test_bounds_large_table_in_small(bounds_benchmark, capsys):
    bounds_benchmark.measure_large(n_rows=20, rounds=1)
    assert "20 distinct reduced row sums" in capsys.readouterr().out


@pytest.fixture
def solvers_benchmark(monkeypatch):
    if not BENCHMARKS.is_dir():
        pytest.skip("the benchmarks are not part of this copy")
    monkeypatch.syspath_prepend(BENCHMARKS)
    module = importlib.import_module("topdown_solvers")
    monkeypatch.setattr(module, "HIGHS_VARIABLES", 0)  # it would start a process of its own
    yield module
    for name in ("topdown_solvers", "topdown_specs", "synthetic_state"):
        sys.modules.pop(name, None)


def test_topdown_peers_agree_on_a_small_state(solvers_benchmark, tmp_path, capsys):
    state = solvers_benchmark.synthetic_state(tracts=(3, 2), block_groups=8, blocks=60, people=3_000)
    place = solvers_benchmark._place(solvers_benchmark.write_synthetic(tmp_path, state), tmp_path)
    bundle = [place.families(4, 0, 3), place.families(3, 0, 2)]
    worst = solvers_benchmark._compare_least_squares("some", place.problem, bundle)
    assert set(worst) == {"PIQP", "Clarabel"} and max(map(abs, worst.values())) < 1e-6
    assert solvers_benchmark._compare_rounding("some", place.problem, bundle) >= {"HiGHS same"}
    assert "PIQP" in capsys.readouterr().out
