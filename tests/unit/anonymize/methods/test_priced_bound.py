"""Prices of records: no class costs less than its records are worth, by brute force over all classes and all partitions."""

from __future__ import annotations

import json
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import louver as lv
from louver.anonymize.columns import NumericColumn, Sensitive, SetColumn, TreeColumn
from louver.anonymize.methods import auto, exact, priced_bound
from louver.anonymize.methods.priced_bound import lower_bound, priced
from louver.anonymize.problem import AnonymizeProblem
from louver.anonymize.watch import Watch
from louver.errors import InputError
from louver.optim.status import Status

ANCESTORS = [np.arange(5), np.array([0, 0, 1, 1, 1]), np.zeros(5, int)]


def problem_of(rows, k, **more):
    """Numbers with and without missing values, a set and a tree."""
    first, gapped, labels, leaves = (np.array(column) for column in zip(*rows, strict=True))
    columns = [
        NumericColumn(name="number", values=first.astype(float), weight=0.7),
        NumericColumn(name="gapped", values=np.where(gapped < 0, np.nan, gapped)),
        SetColumn(name="set", codes=labels.astype(np.int64), n_labels=4),
        TreeColumn(name="tree", codes=leaves.astype(np.int64), ancestors=ANCESTORS),
    ]
    return AnonymizeProblem.build(columns, k=k, **more)


ROWS = st.lists(
    st.tuples(st.integers(0, 6), st.integers(-1, 3), st.integers(-1, 3), st.integers(-1, 4)),
    min_size=5,
    max_size=9,
)


def one_class(problem):
    return problem.partition(np.zeros(problem.n_records, np.int64), method="one class")


@settings(deadline=None, max_examples=60)
@given(ROWS, st.integers(2, 4), st.integers(1, 6))
def test_no_class_is_worth_more_than_it_loses(rows, k, n_rounds):
    problem = problem_of(rows, k)
    found = priced(problem, one_class(problem), Watch(), max_rounds=n_rounds)
    if found is None:
        assert len(problem.points().codes) == 1
        return
    values = found.values[problem.points().of_record]
    for size in range(k, len(rows) + 1):
        for members in combinations(range(len(rows)), size):
            assert problem.class_loss(members) >= values[list(members)].sum()
    assert found.bound == values.sum()


@settings(deadline=None, max_examples=40)
@given(ROWS, st.integers(2, 3), st.integers(0, 2))
def test_no_partition_loses_less(rows, k, n_out):
    problem = problem_of(rows, k, max_suppressed=n_out)
    optimum = exact.solve(problem)
    assert optimum.status is Status.OPTIMAL
    known = one_class(problem)
    assert lower_bound(problem, known, Watch()) <= optimum.loss


def clustered(n, k, **more):
    random = np.random.default_rng(n)
    columns = [random.geometric(0.08, n), random.integers(0, 7, n), random.geometric(0.3, n)]
    return AnonymizeProblem.build(
        [NumericColumn(name=str(j), values=c.astype(float)) for j, c in enumerate(columns)], k=k, **more
    )


def test_it_is_far_nearer_to_the_result_than_the_nearest_neighbours_are():
    problem = clustered(600, 4)
    found = auto.solve(problem, steps=20)
    bound = lower_bound(problem, found, Watch())
    assert found.lower_bound < 0.75 * found.loss
    assert 0.9 * found.loss < bound <= found.loss


def test_it_is_the_same_in_any_number_of_threads():
    problem = clustered(500, 3)
    found = auto.solve(problem, steps=3)
    alone, together = (priced(problem, found, Watch(), workers=workers, max_rounds=4) for workers in (1, 4))
    assert (alone.values == together.values).all()


def test_neighbours_that_are_not_listed_are_looked_for(monkeypatch):
    problem = clustered(300, 4)
    found = auto.solve(problem, steps=3)
    all_listed = priced(problem, found, Watch(), max_rounds=3)
    monkeypatch.setattr(priced_bound, "LISTED", 5)
    few = priced(problem, found, Watch(), max_rounds=3)
    optimum_at_most = found.loss
    assert 0 < few.bound <= optimum_at_most and 0 < all_listed.bound <= optimum_at_most


def test_l_asks_for_larger_classes_and_so_does_the_bound():
    n = 200
    ill = Sensitive(name="ill", codes=np.random.default_rng(1).integers(0, 6, n), n_values=6, l=5)
    problem = clustered(n, 2, sensitive=[ill])
    found = auto.solve(problem, steps=10)
    plain = clustered(n, 2)
    least = lower_bound(plain, auto.solve(plain, steps=10), Watch())
    assert least < lower_bound(problem, found, Watch()) <= found.loss


def test_nothing_is_proved_without_time_or_for_too_many_records(monkeypatch):
    problem = clustered(300, 4)
    known = one_class(problem)
    over = Watch(seconds=1e-9)
    assert over.is_over
    assert priced(problem, known, over) is None
    assert lower_bound(problem, known, over) == 0
    monkeypatch.setattr(priced_bound, "MAX_POINTS", 10)
    assert priced(problem, known, Watch()) is None


@pytest.mark.parametrize("n", [5, 60])
def test_equal_records_lose_nothing(n):
    problem = problem_of([(1, 1, 1, 1)] * n, 3)
    assert lower_bound(problem, one_class(problem), Watch()) == 0


def people(n):
    random = np.random.default_rng(2)
    return pa.table(
        {
            "age": random.integers(20, 70, n),
            "town": random.choice(["a", "b", "c"], n),
            "home": [str(i // 3) for i in range(n)],
        }
    )


@pytest.mark.parametrize("more", [{"method": "mondrian"}, {"steps": 5}, {"unit": "home", "steps": 1}])
def test_the_verb_proves_it_for_any_method_that_forms_classes(more, tmp_path):
    table = people(120)
    table = table if "unit" in more else table.drop_columns("home")
    asked = {"quasi": ["age", "town"], "k": 3, **more}
    before = lv.anonymize(table, **asked)
    release = lv.anonymize(table, **asked, bound_seconds=60, curve=[3, 5], out=tmp_path / "out")
    assert (before.lower_bound or 0) < release.lower_bound <= release.utility.information_loss
    assert release.utility == before.utility and release.stages["bound"] > 0
    assert release.gap is not None and (before.gap is None or release.gap < before.gap)
    assert lv.verify(tmp_path / "out").passed
    assert "bound_seconds" not in json.loads((tmp_path / "out/manifest.json").read_text())["parameters"]


@pytest.mark.parametrize(
    "more", [{"recoding": "global"}, {"method": "freeform-greedy"}, {"parts": 2, "out": "nowhere"}]
)
def test_a_bound_of_other_classes_is_refused(more):
    with pytest.raises(InputError) as error:
        lv.anonymize(people(40).drop_columns("home"), quasi=["age", "town"], k=3, bound_seconds=1, **more)
    assert error.value.option == "--bound-seconds"
