"""Households published with their members together: judged by code of its own, and the least loss of tiny files by trying everything."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import permutations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import louver as lv
from louver.anonymize.columns import NumericColumn, SetColumn
from louver.anonymize.methods import whole_units
from louver.anonymize.problem import SUPPRESSED, AnonymizeProblem, RecordUnits
from louver.anonymize.watch import Watch
from louver.errors import InfeasibleError, InputError
from louver.release.manifest import read_manifest
from louver.release.promises.requested import weaknesses
from oracles.partitions import interval_loss, least_loss
from releases import doubt

ASKED = {"quasi": ["age", "sex", "region"], "unit": "hhid", "whole_units": True, "k": 3, "method": "greedy"}


def survey(n=90, seed=3):
    """Households of one to four; one of nine, which nobody else has."""
    random = np.random.default_rng(seed)
    sizes = np.append(random.integers(1, 5, n - 1), 9)
    home = np.repeat(np.arange(n), sizes)
    return pa.table(
        {
            "hhid": home + 1000,
            "age": random.integers(1, 90, len(home)),
            "sex": np.array(["f", "m"])[random.integers(0, 2, len(home))],
            "region": np.array(["N", "S", "W"])[random.integers(0, 3, n)[home]],
            "ill": np.array(["yes", "no"])[random.integers(0, 2, len(home))],
        }
    )


def look_alikes(table, quasi):
    """For every published household, how many have the same members."""
    homes: dict[int, list[tuple]] = {}
    for row in table.to_pylist():
        homes.setdefault(row["unit_id"], []).append(tuple(row[name] for name in quasi))
    as_whole = {home: tuple(sorted(members)) for home, members in homes.items()}
    counts = Counter(as_whole.values())
    return {home: counts[members] for home, members in as_whole.items()}


@pytest.mark.parametrize("more", [{}, {"method": "auto", "steps": 2}, {"format": "bounds"}, {"k": 5}])
def test_every_household_has_k_that_are_alike_member_by_member(more, tmp_path):
    source = survey()
    release = lv.anonymize(source, **{**ASKED, **more}, keep=["ill"], suppress=0.1, out=tmp_path / "out")
    found = look_alikes(release.table, release.quasi)
    k = more.get("k", 3)
    assert min(found.values()) >= k
    assert sorted(found) == list(range(89))  # fresh numbers; the household of nine is left out
    assert release.n_suppressed == 9 and release.risk.counted == "units"
    assert release.risk.prosecutor_highest <= 1 / k
    assert release.risk.prosecutor_highest >= 1 / min(found.values())
    sizes = Counter(Counter(source["hhid"].to_pylist()).values())
    published = Counter(Counter(release.table["unit_id"].to_pylist()).values())
    assert published == Counter({size: n for size, n in sizes.items() if size != 9})
    report = lv.verify(tmp_path / "out")
    assert report.passed, report


def test_the_values_of_every_household_are_those_of_its_members():
    """The published values of some order of the members hold theirs: nobody is put into another household."""
    source = survey()
    with_number = source.append_column("nr", source["hhid"])
    release = lv.anonymize(with_number, **ASKED, keep=["nr", "ill"], suppress=0.1, format="bounds")
    of_home: dict[int, list[dict]] = {}
    for row in source.to_pylist():
        of_home.setdefault(row["hhid"], []).append(row)
    published: dict[int, list[dict]] = {}
    for row in release.table.to_pylist():
        published.setdefault(row["nr"], []).append(row)
    assert all(len({row["unit_id"] for row in rows}) == 1 for rows in published.values())

    def holds(row, person):
        return (
            row["age_lower"] <= person["age"] <= row["age_upper"]
            and person["sex"] in row["sex"].split(" | ")
            and person["region"] in row["region"].split(" | ")
            and person["ill"] == row["ill"]
        )

    for number, rows in published.items():
        orders = permutations(of_home[number])
        assert any(all(map(holds, rows, order)) for order in orders)


def test_too_many_records_of_rare_sizes_are_not_left_out_in_silence():
    with pytest.raises(
        InfeasibleError, match="9 records belong to households of sizes that fewer than k = 3"
    ):
        lv.anonymize(survey(), **ASKED)


@pytest.mark.parametrize(
    "more",
    [
        {"unit": None},
        {"l": 2, "sensitive": ["ill"]},
        {"t": 0.2, "sensitive": ["ill"]},
        {"keep_order": True},
        {"against": ["earlier"]},
        {"registry": "folder"},
        {"parts": 2},
        {"recoding": "global", "method": "auto"},
        {"method": "mondrian"},
        {"population": "people.csv"},
        {"keep": ["unit_id"]},
    ],
)
def test_what_would_weaken_it_is_refused(more):
    with pytest.raises(InputError):
        lv.anonymize(survey(), **{**ASKED, **more})


def test_tiny_files_are_solved():
    """Six couples, aligned by the one column in which they differ: the least loss over all classes of couples."""
    random = np.random.default_rng(4)
    ages = np.sort(random.integers(20, 60, (6, 2)), axis=1).astype(float)
    age = NumericColumn(name="age", values=ages.ravel())
    units = RecordUnits(codes=np.repeat(np.arange(6), 2), n=6, shared=())
    problem = AnonymizeProblem.build([age], k=2, units=units)
    found = whole_units.solve(problem, Watch(), is_auto=True, steps=3)
    span = interval_loss(ages.ravel().tolist())

    def of_place(place):
        return lambda rows: span([2 * i + place for i in rows])

    best = least_loss(6, 2, [(1.0, of_place(0)), (1.0, of_place(1))])
    assert found.loss * problem.unit == pytest.approx(best, rel=1e-6)
    assert found.loss == problem.total_loss(found.labels)


def test_what_is_constant_in_households_is_published_for_the_class_of_households():
    region = SetColumn(name="region", codes=np.repeat([0, 1, 0, 1], 2), n_labels=2)
    age = NumericColumn(name="age", values=np.array([1.0, 9, 2, 9, 1, 8, 2, 8]))
    units = RecordUnits(codes=np.repeat(np.arange(4), 2), n=4, shared=(0,))
    problem = AnonymizeProblem.build([region, age], k=2, units=units)
    found = whole_units.solve(problem, Watch(), is_auto=False)
    assert found.n_classes == 4 and (found.labels != SUPPRESSED).all()
    records, firsts, of_class = found.covered(0)
    sizes = np.diff(np.append(firsts, len(records)))
    assert sizes.tolist() == [4, 4] and sorted(of_class.tolist()) == [0, 0, 1, 1]


def test_the_promise_counts_households_itself(tmp_path):
    """A file in which one household differs in one member breaks it, however many records share each value."""
    home = np.repeat(np.arange(4), 2)
    source = pa.table({"hhid": home, "age": np.tile([1, 7], 4), "note": np.arange(8)})
    asked = {
        "quasi": ["age"],
        "unit": "hhid",
        "whole_units": True,
        "k": 2,
        "method": "greedy",
        "keep": ["note"],
    }
    lv.anonymize(source, **asked, out=tmp_path / "out")
    assert doubt(tmp_path / "out", "whole-units").passed
    assert not doubt(tmp_path / "out", "whole-units", k=5).passed
    path = tmp_path / "out" / "data" / "anonymized.parquet"
    table = pq.read_table(path)

    def passes(ages, units):
        place = table.column_names.index
        changed = table.set_column(place("age"), "age", pa.array(ages))
        changed = changed.set_column(place("unit_id"), "unit_id", pa.array(units))
        pq.write_table(changed, path)
        return doubt(tmp_path / "out", "whole-units").passed

    alike = ["1", "7"] * 4
    assert passes(alike, home)
    assert passes(alike, home[::-1])
    assert not passes([*alike[:-1], "1"], home)
    assert not passes(alike, [0, 0, 1, 1, 2, 2, 3, 4])
    assert not passes(alike, [0, 0, 0, 0, 2, 2, 3, 3])


def test_a_manifest_that_forgets_the_promise_is_weak(tmp_path):
    lv.anonymize(survey(), **ASKED, suppress=0.1, keep=["ill"], out=tmp_path / "out")
    manifest = read_manifest(tmp_path / "out")
    assert not list(weaknesses(manifest))
    without = [entry for entry in manifest.promises if entry["promise"] != "whole-units"]
    found = list(weaknesses(replace(manifest, promises=tuple(without))))
    assert found == ['"whole-units" is not promised as requested']


def alike_by_hand(table, quasi, name):
    """Records whose value everybody has who is found with them: the same member of a unit that looks the same."""
    homes: dict[int, list[dict]] = {}
    for row in table.to_pylist():
        homes.setdefault(row["unit_id"], []).append(row)
    values: dict[tuple, list] = {}
    for members in homes.values():
        of_member = [tuple(row[one] for one in quasi) for row in members]
        for row, own in zip(members, of_member, strict=True):
            values.setdefault((*sorted(of_member), own), []).append(row[name])
    return sum(len(found) for found in values.values() if len(set(found)) == 1)


@pytest.mark.parametrize("seed", range(4))
def test_values_that_all_units_of_a_class_share_are_counted(seed):
    """Classes of single records mix units that do not look alike, so that fewer of them have one value."""
    table = survey(seed=seed).drop_columns(["age"])
    asked = {**ASKED, "quasi": ["sex", "region"], "k": 2, "suppress": 0.1}
    release = lv.anonymize(table, **asked, sensitive=["ill"])
    by_hand = alike_by_hand(release.table, release.quasi, "ill")
    assert dict(release.alike) == {"ill": by_hand} and by_hand > 0
    assert any("all have the same value" in reason for reason in release.verdict.reasons)
    assert any(
        "sensitive values that occur in every unit of a class" in reason for reason in release.verdict.reasons
    )
