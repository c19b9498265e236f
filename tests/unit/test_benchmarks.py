"""The benchmarks run: each once at its smallest size, untimed."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from wright_smucker import TABLE_10

pytestmark = pytest.mark.long

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def load_benchmark(name, monkeypatch):
    if not BENCHMARKS.is_dir():
        pytest.skip("the benchmarks are not part of this copy")
    spec = importlib.util.spec_from_file_location(f"{name}_benchmark", BENCHMARKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, f"{name}_benchmark", module)
    monkeypatch.setattr(sys, "path", list(sys.path))
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def bounds_benchmark(monkeypatch):
    return load_benchmark("bounds", monkeypatch)


@pytest.fixture
def anonymize_benchmark(monkeypatch):
    return load_benchmark("anonymize", monkeypatch)


def test_bounds_peers_agree_on_the_smallest_arrangement(bounds_benchmark, capsys):
    smallest = next(line for line in TABLE_10 if line.name == "L")
    line = bounds_benchmark.measure(smallest, rounds=1, classical_seconds=1e6, highs_seconds=1e6)
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
    wrong = bounds_benchmark.row_by_row(solve, [1] * 10, 5, [(0, 2)] * 10, limit=1e6, n_first=3)
    assert not wrong.is_extrapolated and not wrong.is_equal


def test_bounds_large_table_in_small(bounds_benchmark, capsys):
    bounds_benchmark.measure_large(n_rows=20, rounds=1)
    assert "20 distinct reduced row sums" in capsys.readouterr().out


@pytest.fixture
def groups_benchmark(monkeypatch):
    return load_benchmark("groups", monkeypatch)


def test_groups_mechanisms_side_by_side(groups_benchmark, capsys):
    """Seeded, so the same on every machine: the default is closer than M_c^dp on the small census."""
    table = groups_benchmark.census(small=True)
    groups_benchmark.accuracy(table, "small", "0.5", 2, ["louver", "M_c^dp", "TopDown"])
    told = capsys.readouterr().out
    assert told.count("\n  louver minus") == 2 and "WORSE" not in told
    ratio = float(told.split("louver minus M_c^dp")[1].split("EMD ")[1].split(" times")[0])
    assert ratio >= 5


def test_groups_tables_are_as_large_as_said(groups_benchmark):
    table = groups_benchmark.taxi(small=True)
    assert table.regions.tree.level_sizes == (1, 6, 263) and table.n_groups == 1328
    assert (table.counts >= 0).all()


@pytest.mark.parametrize(
    ("part", "told"),
    [
        ("adult", "auto 0.2 s"),
        ("ratios", "split-carry 1.000"),
        ("wide", "15 attributes, 300 records, k = 10"),
        ("fars", "FARS, 200 records, k = 3"),
        ("exact", "equal: True"),
        ("split-carry", "us a record"),
        ("greedy", "same: True"),
        ("million", "2,000 records, 8 attributes, k = 5"),
    ],
)
def test_anonymize_parts_in_small(anonymize_benchmark, capsys, part, told):
    options = argparse.Namespace(
        adult=None, fars=None, seconds=[0.2], milp_seconds=1e6, plain_seconds=1e6, small=True, alone=True
    )
    anonymize_benchmark.PARTS[part](options)
    assert told in capsys.readouterr().out


def test_anonymize_plain_scan_that_runs_out_of_time_is_extrapolated(anonymize_benchmark):
    problem = anonymize_benchmark.problem_of([np.arange(300) % 37, np.arange(300) % 11], 5)
    classes, _, share = anonymize_benchmark.plain_classes(problem, limit=-1.0)
    assert (classes, share) == ([], 0.0)
    classes, _, share = anonymize_benchmark.plain_classes(problem, limit=1e6)
    assert (len(classes), share) == (60, 1.0)


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


def test_audit_case_in_small(monkeypatch, capsys):
    audit_benchmark = load_benchmark("audit", monkeypatch)
    case = audit_benchmark.Case("small", audit_benchmark.named("12", "23", "13"), target=1.0)
    line = audit_benchmark.measure(case, 60.0)
    assert line.certified == line.sides == 2 * 60
    assert not line.misses()
    audit_benchmark.show(line)
    assert "100.00%" in capsys.readouterr().out


def test_intervals_of_groups_in_small(monkeypatch, capsys):
    intervals = load_benchmark("groups_intervals", monkeypatch)
    intervals.coverage("default", *intervals.CASES["default"], 1)
    assert "town" in capsys.readouterr().out


def test_accounting_of_one_query(monkeypatch, capsys):
    accounting = load_benchmark("accounting", monkeypatch)
    accounting.saved(accounting.Fraction(1, 10), [accounting.Fraction(1)])
    assert "%" in capsys.readouterr().out


def test_recoding_beside_a_plain_search(monkeypatch, capsys):
    recoding = load_benchmark("recoding", monkeypatch)
    monkeypatch.setattr(recoding, "LOCAL_SECONDS", 0.1)
    given = argparse.Namespace(seconds=1e6, long=None)
    recoding.compare(recoding.adult(None).slice(0, 500), recoding.FOUR, 0.01, given)
    ours, plain = (part.split() for part in capsys.readouterr().out.split("|")[1:3])
    assert ours[2] == "True" and ours[0] == plain[1]
    recoding.with_exceptions(
        recoding.adult(None).slice(0, 300), argparse.Namespace(seconds=0.2, exceptions=[0.0, 0.1])
    )
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and all(" 0% " in line and " 10% " in line for line in lines)


def test_profile_of_a_small_table(monkeypatch, tmp_path, capsys):
    profiling = load_benchmark("profiling", monkeypatch)
    profiling.pa.csv.write_csv(profiling.made_up(4_000, 8), tmp_path / "people.csv")
    profiling.measure(tmp_path / "people.csv", 4_000, 8)
    assert "planted found: True, others invented: 0" in capsys.readouterr().out


def test_an_extension_of_the_ready_schemas_is_verified(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    done = load_benchmark("topdown_extend", monkeypatch).main(60, 500)
    assert done["passed"]
    assert "tampered first release: refused" in capsys.readouterr().out


def test_protect_in_small(monkeypatch, tmp_path, capsys):
    """The smaller table that comes with louver, with the first pattern."""
    benchmark = load_benchmark("protect", monkeypatch)
    folder = benchmark.prepared(tmp_path, None)
    case = benchmark.cases(False)[1]
    found = benchmark.run(case, folder, attackers="outsider", steps=0)
    benchmark.show(case, "outsider", "number", found, 0.0, 0.0)
    assert found.is_protected and capsys.readouterr().out.startswith("act_cj")


def test_perturbation_in_small(monkeypatch, capsys):
    """The means of the methods are what their definitions say, on a made-up table."""
    benchmark = load_benchmark("perturbation", monkeypatch)
    random = np.random.default_rng(3)
    original, _ = benchmark.read(argparse.Namespace(adult=None, records=120), random)
    assert benchmark.linkage_risk(original, original) > 0.3
    swapped = benchmark.rank_swapped(original, 0.1, random)
    for name in benchmark.QUASI:
        assert (np.sort(swapped[name]) == np.sort(original[name])).all()
    grouped = benchmark.mdav(original, 4)
    rows = np.unique(np.stack(list(grouped.values()), axis=1), axis=0, return_counts=True)[1]
    assert rows.min() >= 4
    assert benchmark.value_error(original, benchmark.prammed(original, 0.0, random)) == 0
    risk, copies = benchmark.generalised(original, 4)
    assert 0 < risk <= 1 / 4 + 1e-9 and len(copies) == benchmark.COPIES
    assert benchmark.two_way_error(original, original) == 0


def test_surveys_and_households_in_small(monkeypatch, tmp_path, capsys):
    surveys = load_benchmark("surveys", monkeypatch)
    random = np.random.default_rng(1)
    table = surveys.pa.table(
        {
            "Age": random.integers(18, 90, 150),
            "Sex": random.choice(["f", "m"], 150),
            "Race": random.choice(["a", "b", "c"], 150),
            "Marital status": random.choice(["x", "y"], 150),
            "Education": random.choice(["1", "2", "3", "4"], 150),
        }
    )
    with surveys.pa.CompressedOutputStream(str(tmp_path / "acs2013_ma_persons.csv.gz"), "gzip") as out:
        surveys.pa.csv.write_csv(table, out)
    given = argparse.Namespace(folder=tmp_path, records=None)
    problem = surveys.read(given, "acs", 3, t=0.4)
    options = argparse.Namespace(seconds=[0.2], bound=0.2)
    surveys.compare("made up", problem, options, [surveys.mondrian])
    assert "150 records" in capsys.readouterr().out
    households = load_benchmark("households", monkeypatch)
    people = surveys.pa.table({"home": np.repeat(np.arange(12), 2), "age": random.integers(0, 9, 24)})
    release = households.lv.anonymize(
        people, quasi=["age"], unit="home", whole_units=True, k=3, method="greedy"
    )
    households.check(release, 3)
    with pytest.raises(AssertionError):
        households.check(release, 13)
