"""Classes of k different units: against brute force, by what is published, and what verify counts."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import louver as lv
from louver.anonymize.columns import NumericColumn, SetColumn
from louver.anonymize.methods import units as method
from louver.anonymize.problem import AnonymizeProblem, RecordUnits
from louver.anonymize.watch import Watch
from louver.errors import InfeasibleError, InputError
from louver.report.anonymize import anonymize_report
from oracles.partitions import interval_loss, least_unit_loss, set_loss
from releases import doubt
from small_people import written


@st.composite
def cases(draw):
    """Up to seven records in up to five units; an age of each person, a region and a size of each unit."""
    n = draw(st.integers(2, 7))
    units = draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    units = np.unique(units, return_inverse=True)[1].tolist()
    ages = draw(st.lists(st.integers(0, 9), min_size=n, max_size=n))
    regions = draw(st.lists(st.integers(0, 2), min_size=5, max_size=5))
    sizes = draw(st.lists(st.integers(0, 6), min_size=5, max_size=5))
    return units, ages, [regions[u] for u in units], [sizes[u] for u in units], draw(st.integers(1, 3))


@settings(max_examples=40)
@given(cases(), st.sampled_from(["age", "region", "both", "all"]))
def test_classes_are_allowed_and_no_better_than_brute_force(case, asked):
    units, ages, regions, sizes, k = case
    if len(set(units)) < k:
        return
    age = NumericColumn(name="age", values=np.array(ages, float))
    region = SetColumn(name="region", codes=np.array(regions), n_labels=3, weight=0.5)
    size = NumericColumn(name="size", values=np.array(sizes, float))
    columns = {"age": [age], "region": [region], "both": [age, region], "all": [size, age, region]}[asked]
    shared = tuple(j for j, column in enumerate(columns) if column is not age)
    losses = {"age": interval_loss(ages), "region": set_loss(regions, 3), "size": interval_loss(sizes)}
    own = [(c.weight, losses[c.name]) for c in columns if c is age]
    alike = [(c.weight, losses[c.name]) for c in columns if c is not age]
    expected = least_unit_loss(units, k, own, alike)
    problem = AnonymizeProblem.build(columns, k=k)
    problem = method.replace(
        problem, units=RecordUnits(codes=np.array(units), n=len(set(units)), shared=shared)
    )
    for is_auto in (False, True):
        found = method.solve(problem, is_auto=is_auto, steps=2)
        assert found.lower_bound is not None and found.lower_bound * problem.unit <= expected + 1e-6
        of_record = np.array(units)[problem.rows]
        assert all(len(set(of_record[members].tolist())) >= k for members in found.classes())
        assert all(len(set(found.cells[of_record == unit].tolist())) == 1 for unit in set(units))
        assert all(len(set(found.cells[members].tolist())) == 1 for members in found.classes())
        assert found.loss * problem.unit == pytest.approx(problem.information_loss(found), abs=1e-5)
        assert problem.information_loss(found) >= expected - 1e-6
        if is_auto and asked == "age":
            assert problem.information_loss(found) == pytest.approx(expected, abs=1e-6)


def households(n: int = 60) -> pa.Table:
    random = np.random.default_rng(4)
    home = np.sort(random.integers(0, n, 3 * n))
    region = random.integers(0, 4, n)[home]
    return pa.table(
        {
            "home": [f"h{h}" for h in home],
            "region": [f"R{r}" for r in region],
            "rooms": random.integers(1, 9, n)[home],
            "age": random.integers(0, 90, 3 * n),
            "ill": random.choice(["flu", "cold", "ulcer"], 3 * n),
        }
    )


ASKED = {
    "quasi": ["region", "rooms", "age"],
    "unit": "home",
    "sensitive": ["ill"],
    "k": 4,
    "keep_order": True,
}


@pytest.mark.parametrize("name", ["greedy", "auto"])
def test_every_class_has_k_different_homes(name: str, tmp_path: Path) -> None:
    table = households()
    release = lv.anonymize(table, **ASKED, method=name, l=2, seconds=1)
    assert release.guarantee == "k-units" and release.method == name
    assert "home" not in release.table.column_names
    homes: dict[tuple[str, ...], set[str]] = {}
    alike: dict[str, set[tuple[str, ...]]] = {}
    for row, home in zip(release.table.to_pylist(), table["home"].to_pylist(), strict=True):
        homes.setdefault((row["region"], row["rooms"], row["age"]), set()).add(home)
        alike.setdefault(home, set()).add((row["region"], row["rooms"]))
    assert min(map(len, homes.values())) >= 4 and all(len(seen) == 1 for seen in alike.values())
    out = written(release, tmp_path / "release")
    listed = pq.read_table(out / "data/classes.parquet").to_pylist()
    assert {(c["region"], c["rooms"], c["age"]): c["units"] for c in listed} == {
        c: len(h) for c, h in homes.items()
    }
    assert lv.verify(out).passed and doubt(out, "k-units").passed
    assert not doubt(out, "k-units", k=max(c["units"] for c in listed) + 1).passed
    assert {line["name"]: line["role"] for line in release.dictionary.to_pylist()}["home"] == "unit"


@pytest.mark.parametrize("spoil", ["more units than records", "a class less", "half a unit"])
def test_verify_doubts_the_list_of_units(spoil: str, tmp_path: Path) -> None:
    release = lv.anonymize(households(20), **ASKED, method="greedy")
    out = written(release, tmp_path / "release")
    listed = release.classes
    units = listed["units"].to_numpy()
    made = {
        "more units than records": listed.set_column(3, "units", pa.array(units + 1000)),
        "a class less": listed.slice(1),
        "half a unit": listed.set_column(3, "units", pa.array(units + 0.5)),
    }
    pq.write_table(made[spoil], out / "data/classes.parquet")
    assert not doubt(out, "k-units").passed


def test_without_unit_level_columns_and_with_nothing_else() -> None:
    table = households(12).drop_columns(["ill"])
    person = lv.anonymize(table, quasi=["age"], identifying=["region", "rooms"], unit="home", k=3, steps=2)
    home = lv.anonymize(table, quasi=["region"], identifying=["rooms", "age"], unit="home", k=3, steps=2)
    assert person.guarantee == home.guarantee == "k-units" and person.n_classes > 1


def test_requirements_that_no_classes_meet_are_told() -> None:
    with pytest.raises(InfeasibleError, match="requirement"):
        lv.anonymize(households(20), **ASKED, l=9, method="greedy")


def test_units_that_are_missing_or_too_few_are_refused() -> None:
    table = households(20)
    with pytest.raises(InputError, match='"home" has fewer than k = 50 different units'):
        lv.anonymize(table, **{**ASKED, "k": 50}, method="greedy")
    gap = table.set_column(0, "home", pa.array([None, *table["home"].to_pylist()[1:]]))
    with pytest.raises(InputError, match='column "home".*row 1: the number of the unit is missing'):
        lv.anonymize(gap, **ASKED, method="greedy")


def most_apart(records):
    """Most values that can be given to units, each a value of its own and none twice, by trying everything."""
    units = sorted({unit for unit, _ in records})

    def best(place, taken):
        if place == len(units):
            return len(taken)
        values = {value for unit, value in records if unit == units[place]} - taken
        return max([best(place + 1, taken), *(best(place + 1, taken | {value}) for value in values)])

    return best(0, frozenset())


@settings(max_examples=80)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(-1, 4)), min_size=1, max_size=12))
def test_values_of_different_units_are_counted_as_by_brute_force(records):
    labels, units, values = (np.array(column) for column in zip(*records, strict=True))
    expected = [most_apart([(u, v) for c, u, v in records if c == label and v >= 0]) for label in range(3)]
    assert method.values_apart(labels, 3, units, values).tolist() == expected


def relatives():
    """At 30 a household with nine illnesses and six others with the flu; at 60 nine households with three illnesses."""
    rows = [("big", 30, f"ill{i}") for i in range(9)] + [(f"h{i}", 30, "flu") for i in range(6)]
    rows += [(f"k{i}", 60, f"ill{i % 3}") for i in range(9)]
    home, age, illness = zip(*rows, strict=True)
    return pa.table({"home": home, "age": age, "illness": illness})


@pytest.mark.parametrize("kind", [{"l": 3}, {"l": 2.5, "l_kind": "entropy"}])
@pytest.mark.parametrize("how", ["greedy", "auto"])
def test_l_values_come_from_l_different_units(kind, how, tmp_path):
    """Before, a household of nine relatives made a class diverse whose other households all had the flu."""
    people = relatives()
    asked = {"quasi": ["age"], "sensitive": ["illness"], "unit": "home", "k": 3, "keep_order": True}
    release = lv.anonymize(people, **asked, **kind, method=how, steps=5, out=tmp_path / "out")
    classes = {}
    for row, home in zip(release.to_frame().to_pylist(), people["home"].to_pylist(), strict=True):
        classes.setdefault(row["age"], []).append((home, row["illness"]))
    for members in classes.values():
        assert len({home for home, _ in members}) >= 3
        apart = combinations(sorted(set(members)), 3)
        assert any(len({home for home, _ in some}) == len({ill for _, ill in some}) == 3 for some in apart)
    assert lv.verify(tmp_path / "out").passed
    page = anonymize_report(release)
    assert "to as many different units" in page and "Closeness" not in page


def test_values_of_too_few_units_are_refused():
    people = pa.table({"home": ["a"] * 4 + ["b", "c"], "age": list(range(6)), "illness": [*"wxyz", "w", "w"]})
    with pytest.raises(InfeasibleError, match="from as many different units"):
        lv.anonymize(people, quasi=["age"], sensitive=["illness"], unit="home", k=2, l=3, method="greedy")


def test_closeness_says_that_it_counts_records():
    release = lv.anonymize(
        relatives(), quasi=["age"], sensitive=["illness"], unit="home", k=3, t=0.9, method="greedy"
    )
    assert any("over records, not over units" in reason for reason in release.verdict.reasons)
    assert "Closeness of sensitive values counts records" in anonymize_report(release)


@settings(max_examples=25)
@given(cases(), st.booleans())
def test_a_search_without_time_has_an_allowed_answer_and_says_so(case, is_over):
    """The leaves of the tree are an answer; wider cells are tried only while there is time."""
    units, ages, regions, sizes, k = case
    if len(set(units)) < k:
        return
    age = NumericColumn(name="age", values=np.array(ages, float))
    region = SetColumn(name="region", codes=np.array(regions), n_labels=3)
    size = NumericColumn(name="size", values=np.array(sizes, float))
    problem = AnonymizeProblem.build(
        [size, age, region],
        k=k,
        units=RecordUnits(codes=np.array(units), n=len(set(units)), shared=(0, 2)),
    )
    watch = Watch()
    watch.stop[0] = is_over
    found = method.solve(problem, watch, is_auto=True, steps=1)
    of_record = np.array(units)[problem.rows]
    assert all(len(set(of_record[members].tolist())) >= k for members in found.classes())
    assert all(len(set(found.cells[of_record == unit].tolist())) == 1 for unit in set(units))
    assert found.loss * problem.unit == pytest.approx(problem.information_loss(found), abs=1e-5)
    one_cell = method.UnitSearch(problem, problem.units, Watch())._formed(
        np.arange(problem.units.n), method.UnitSearch(problem, problem.units, Watch())._greedy
    )
    assert is_over or found.loss <= one_cell.loss


def test_units_with_equal_values_are_one_cell_where_that_pays() -> None:
    """Two kinds of homes: within each, records of any homes may share a class, and no unit-level detail is lost."""
    home = np.repeat(np.arange(40), 2)
    kind = (np.arange(40) % 2)[home]
    age = np.tile(np.arange(20), 4)
    columns = [
        NumericColumn(name="kind", values=kind.astype(float)),
        NumericColumn(name="age", values=age.astype(float)),
    ]
    problem = AnonymizeProblem.build(columns, k=2, units=RecordUnits(codes=home, n=40, shared=(0,)))
    found = method.solve(problem, is_auto=False)
    assert len(set(found.cells.tolist())) == 2 and problem.lost_shares(found)[0] == 0


def test_a_cell_whose_time_is_over_does_not_end_the_search() -> None:
    home, age = np.repeat(np.arange(60), 2), np.arange(120) * 37 % 101
    problem = AnonymizeProblem.build(
        [NumericColumn(name="age", values=age.astype(float))],
        k=2,
        units=RecordUnits(codes=home, n=60, shared=()),
    )
    watch = Watch(seconds=600)
    search = method.UnitSearch(problem, problem.units, watch)
    assert search._cell(np.arange(60), search._by_auto(1e-9, None)) is not None
    assert not watch.stop[0] and watch.stopped is not None
