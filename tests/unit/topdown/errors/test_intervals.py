"""Known error after a release: columns that hold the number, repeatable, as least squares where nothing binds, and doubted by verify."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow.parquet as pq
import pytest

from louver.errors import InputError
from louver.report.topdown import topdown_report
from louver.topdown import topdown
from louver.topdown.errors.error_model import (
    NORMAL_HALF,
    NORMAL_TENTH,
    ErrorClasses,
    ErrorModel,
    _left,
    family_of,
    union_error,
)
from louver.topdown.errors.intervals import (
    Sample,
    Squares,
    class_starts,
    fit_classes,
    least_squares_units,
    roughness,
    simulate_errors,
)
from louver.topdown.errors.simulate import AssumedTruth
from louver.topdown.estimation.subspaces import Subspaces
from louver.topdown.load import read_design
from louver.topdown.measuring.noise_plan import make_plan
from louver.topdown.problem import SparseLevel
from releases import doubt, edit
from topdown_town import SPEC, write_town

OPEN = SPEC.partition("[[topdown.bounds]]")[0].replace('level = "ward"', 'level = "town"')
LINEAR = OPEN.replace('[[structural_zeros]]\nquarters = ["jail"]\nage = ["child"]\n', "").replace(
    "[topdown.queries]", "[topdown.queries]\nall = []"
)


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    folder = tmp_path_factory.mktemp("intervals")
    return topdown(write_town(folder / "town"), out=folder / "out", seed=4, intervals=3)


def test_every_published_number_has_an_interval_that_holds_it(released):
    assert doubt(released.path, "topdown").passed
    for name in ("quarters", "age_race"):
        table = pq.read_table(released.path / f"data/tables/{name}.parquet").to_pydict()
        for count, error, low, high in zip(
            *(table[x] for x in ("count", "standard_error", "lower_90", "upper_90")), strict=True
        ):
            assert 0 <= low <= count <= high and error >= 0


def test_the_report_tells_errors_and_bias(released):
    page = topdown_report(released)
    assert "How far off the numbers are" in page and "bias, people" in page
    assert "What is promised</dt><dd>Nothing: anyone who guesses the seed" in page
    total = next(i for i, query in enumerate(released.known_error.queries) if query.n_rows == 1)
    error = released.known_error.typical_error(len(released.plan.design.spine.names) - 1, total)
    assert error and f"is uncertain by about {error:.0f} people either way" in page
    assert page.count(f">{error:.1f}<") >= 2  # both tables say the same
    assert "How far off the numbers are" not in topdown_report(replace(released, known_error=None))


def test_what_is_public_has_no_error(tmp_path):
    spec = SPEC.replace("[topdown.queries]", "[topdown.queries]\nall = []").replace(
        'queries = { quarters = "1/4"', 'queries = { all = "1/8", quarters = "1/8"'
    )
    release = topdown(write_town(tmp_path / "town", spec), out=tmp_path / "out", seed=4, intervals=2)
    table = pq.read_table(release.path / "data/tables/all.parquet").to_pylist()
    exact = [row for row in table if row["level"] in ("town", "ward")]
    assert all(row["standard_error"] == 0 and row["lower_90"] == row["upper_90"] for row in exact)
    assert any(row["standard_error"] > 0 for row in table)
    # A block without a prison has nobody in one, and that is known.
    quarters = pq.read_table(release.path / "data/tables/quarters.parquet").to_pylist()
    assert all(row["lower_90"] >= 1 for row in quarters if row["quarters"] == "jail")


def test_every_release_has_a_table_of_totals(tmp_path):
    release = topdown(write_town(tmp_path / "town"), out=tmp_path / "out", seed=4, intervals=2)
    assert all(query.n_rows > 1 for query in release.plan.design.queries)  # the spec asks for none
    table = pq.read_table(release.path / "data/tables/total.parquet").to_pylist()
    people = Counter(pq.read_table(release.path / "data/microdata.parquet")["block"].to_pylist())
    assert {row["region"]: row["count"] for row in table if row["level"] == "block"} == people
    assert all(row["lower_90"] <= row["count"] <= row["upper_90"] for row in table)
    assert doubt(release.path, "topdown").passed
    path = release.path / "data/tables/total.parquet"
    pq.write_table(pq.read_table(path).slice(1), path)
    found = doubt(release.path, "topdown")
    assert not found.passed and 'table "total" does not match the people' in found.found


def test_a_table_of_another_meaning_keeps_its_name(tmp_path):
    spec = SPEC.replace('quarters = ["quarters"]', 'total = ["quarters"]').replace(
        'quarters = "1/4"', 'total = "1/4"'
    )
    release = topdown(write_town(tmp_path / "town", spec), seed=4, intervals=0)
    assert [query.name for query, _ in release.plan.design.published_tables][:2] == ["(total)", "total"]


@pytest.mark.long
def test_the_same_for_any_number_of_workers(tmp_path):
    town = write_town(tmp_path / "town")
    outs = [tmp_path / f"out{n}" for n in (1, 2)]
    for n, out in zip((1, 2), outs, strict=True):
        topdown(town, out=out, seed=1, intervals=2, engine=f"local:{n}")
    files = sorted(path.relative_to(outs[0]) for path in (outs[0] / "data").rglob("*.parquet"))
    assert len(files) == 6
    for name in files:
        assert (outs[0] / name).read_bytes() == (outs[1] / name).read_bytes()


def test_without_simulations_there_are_no_columns(tmp_path):
    release = topdown(write_town(tmp_path / "town"), out=tmp_path / "out", seed=4)
    assert release.known_error is None and not (release.path / "data/errors.parquet").exists()
    assert "standard_error" not in pq.read_schema(release.path / "data/tables/quarters.parquet").names


@pytest.mark.parametrize("value", [-1, 101, "many", 1.5])
def test_numbers_of_simulations_that_cannot_be(tmp_path, value):
    with pytest.raises(InputError, match="intervals"):
        topdown(write_town(tmp_path / "town"), seed=1, intervals=value)


def assumed(folder, estimator, spec=LINEAR):
    plan = make_plan(read_design(write_town(folder, spec)).estimated(estimator=estimator, intervals=20))
    return AssumedTruth.of(plan, SparseLevel.from_dense(np.full((9, 18), 10_000)))


@pytest.mark.long
@pytest.mark.parametrize("estimator", ["least-squares", "plain"])
def test_simulated_errors_are_those_of_least_squares_where_nothing_binds(tmp_path, estimator):
    truth = assumed(tmp_path, estimator)
    released = truth.simulate(7)
    known = simulate_errors(truth.plan, released.levels[-1], released.noisy)
    for (level, place), found in known.model.classes.items():
        if known.final[level][0, place] > 0 and found.pairs[0]:
            pairs = found.pairs / found.pairs.sum()
            assert np.sqrt(pairs @ found.error**2) == pytest.approx(1.0, abs=0.15), (level, place)
            if found.pairs.sum() > 1000 and level:
                assert pairs @ found.within == pytest.approx(1.0, abs=0.3), (level, place)
    assert known.final[0][0, [q.name for q in known.queries].index("all")] == 0


@pytest.mark.parametrize("estimator", ["least-squares", "plain"])
def test_variances_of_unions_are_those_of_the_whole_covariance(tmp_path, estimator):
    """Enumerated: the covariance of all leaves, by least squares on the whole tree or level by level."""
    plan = assumed(tmp_path, estimator).plan
    spine, query = plan.design.spine, plan.design.queries[-1]
    own, final = least_squares_units(plan, plan.problem({}), [query])
    covariance = final[0][:1, :1]
    for level in range(1, spine.n_levels):
        starts, v = spine.starts[level - 1], own[level][:, 0]
        wide = np.zeros((len(v), len(starts) - 1))
        apart = np.zeros((len(v), len(v)))
        for parent, (a, b) in enumerate(pairwise(starts)):
            wide[a:b, parent] = v[a:b] / v[a:b].sum()
            apart[a:b, a:b] = np.diag(v[a:b]) - np.outer(v[a:b], v[a:b]) / v[a:b].sum()
        covariance = apart + wide @ covariance @ wide.T
        assert np.diag(covariance) == pytest.approx(final[level][:, 0])
    linear = ErrorClasses.linear()

    def family(level, parent):
        span = slice(*spine.starts[level - 1][parent : parent + 2])
        return family_of(
            linear, np.ones((span.stop - span.start, 1)), own[level][span, 0], final[level][span, 0]
        )

    for mask in range(1, 1 << 9, 7):
        leaves = np.flatnonzero(mask >> np.arange(9) & 1)
        variance, bias = union_error(spine.starts, leaves, family, (final[0][0, :1], np.zeros(1)))
        assert variance[0] == pytest.approx(covariance[np.ix_(leaves, leaves)].sum()) and bias[0] == 0


def test_rows_of_any_query_spread_as_marginals_do(tmp_path):
    plan = assumed(tmp_path, "plain").plan
    subspaces = Subspaces(plan.design.shape)
    for query in plan.design.queries:
        assert subspaces.spread_of_rows(query) == pytest.approx(subspaces.spread(query))


def test_classes_hold_enough_pairs_and_zero_is_one_of_them():
    sizes = np.concatenate([np.zeros(100), np.arange(1, 400) / 10.0])
    first = class_starts(sizes, 80)
    counts = np.histogram(sizes, [*first, np.inf])[0]
    assert first[0] == 0 and counts[0] == 100 and (counts >= 80).all()
    few = Sample(
        np.arange(2),
        np.zeros(1, int),
        np.ones((2, 1), int),
        np.ones((2, 1), int),
        np.zeros((2, 1), bool),
        *[Squares(0, 0, 0)] * 2,
    )
    assert fit_classes([few], np.ones(2), np.ones(2)).pairs.tolist() == [0]


def sample_of(true, number, is_fixed=None):
    true, number = (np.asarray(x)[:, None] for x in (true, number))
    fixed = np.zeros(number.shape, bool) if is_fixed is None else np.asarray(is_fixed)[:, None]
    nobody = Squares(0, 0, 0)
    return Sample(np.arange(len(true)), np.zeros(1, int), number, true - number, fixed, nobody, nobody)


def test_numbers_that_are_fixed_say_nothing_about_the_others():
    rng = np.random.default_rng(3)
    true = np.full(1000, 50)
    number = true + np.where(np.arange(1000) < 900, 0, rng.integers(-9, 10, 1000))
    ones = np.ones(1000)
    found = fit_classes([sample_of(true, number, np.arange(1000) < 900)], ones, ones)
    assert found.pairs.sum() == 100 and found.lower[0] < -6 and found.upper[0] > 6
    few = fit_classes([sample_of(true, number, np.arange(1000) < 950)], ones, ones)
    assert (
        few.pairs.tolist() == [0] and few.within[0] < 5.0 and few.lower[0] == ErrorClasses.linear().lower[0]
    )


def test_an_upper_end_leaves_out_a_tenth_where_zero_is_the_lower_one():
    rng = np.random.default_rng(3)
    true = np.where(rng.random(4000) < 0.5, 0, rng.integers(0, 60, 4000))
    sample = sample_of(true, np.full(4000, 5))
    ones = np.ones(4000)
    found = fit_classes([sample], ones, ones).intervals(np.array([5]), ones[:1])
    assert found.lower[0] == 0
    assert (true > found.upper[0]).mean() == pytest.approx(0.1, abs=0.02)


def test_unions_that_begin_at_zero_leave_out_a_tenth_above():
    normal, heavy = np.linspace(-3, 1.4, 200), np.linspace(0, 9, 200)
    assert _left(normal, NORMAL_HALF, 80) == pytest.approx(
        NORMAL_TENTH / NORMAL_HALF
    )  # never narrower than a normal one
    assert _left(heavy, 9.0, 80) == pytest.approx(0.9) and _left(heavy, NORMAL_HALF, 80) == 1.0
    assert _left(heavy[:79], 9.0, 80) == 1.0


def test_the_largest_leaves_are_in_every_simulation(tmp_path):
    plan = make_plan(read_design(write_town(tmp_path / "town", OPEN)))
    counts = np.arange(1, 10)[:, None] * np.ones((1, 18), np.int64)
    leaf, cell = np.nonzero(counts)
    table = SparseLevel(start=np.arange(10) * 18, cell=cell, count=counts[leaf, cell])
    truth = AssumedTruth.of(plan, table)
    parents = [first for first, _ in truth.families(1, largest=1)]
    assert truth.problem.spine.sizes[-2] - 1 in parents


def test_a_truth_that_is_rougher_is_seen_as_far_as_noise_allows():
    clear, blurred = (Squares(130.0, x, 10_000) for x in (0.01, 90.0))
    simulated = Squares(110.0, 0.01, 10_000)
    assert roughness(clear, simulated, 100.0) == pytest.approx(1.2, abs=0.001)
    assert 1.0 < roughness(blurred, simulated, 10.0) < 2.0
    assert roughness(simulated, clear, 100.0) == 1.0  # never narrower
    assert roughness(Squares(9.0, 0.0, 5), simulated, 100.0) == 1.0


def test_the_model_is_read_back_as_it_was_written(released):
    model = released.known_error.model
    again = ErrorModel.from_table(model.to_table(), model.levels, model.queries)
    assert again.to_table().equals(model.to_table())


def spoil(table, column, value):
    values = table[column].to_pylist()
    values[0] = value
    return table.set_column(table.column_names.index(column), column, [values])


@pytest.mark.parametrize(
    ("file", "column", "value", "told"),
    [
        ("tables/quarters", "lower_90", 10**6, "does not contain its number"),
        ("tables/quarters", "standard_error", -1.0, "an invalid standard error"),
        ("tables/quarters", "standard_error", 777.0, "does not follow"),
        ("errors", "error", -1.0, "a class of errors"),
        ("errors", "level", "other", "every query and level"),
        ("regions", "region", "other", "does not follow"),
        ("regions", "variance", [1.0, 1.0, 1.0, -1.0], "a variance for every query"),
    ],
)
def test_verify_doubts_errors_too(released, tmp_path, file, column, value, told):
    out = tmp_path / "out"
    shutil.copytree(released.path, out)
    path = out / f"data/{file}.parquet"
    pq.write_table(spoil(pq.read_table(path), column, value), path)
    check = doubt(out, "topdown")
    assert not check.passed and told in check.found


def test_verify_wants_the_manifest_to_know_of_errors(released, tmp_path):
    shutil.copytree(released.path, tmp_path / "out")
    edit(tmp_path / "out", lambda content: content["results"].update(intervals=0))
    assert "are not in the manifest" in doubt(tmp_path / "out", "topdown").found
