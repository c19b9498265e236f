"""Columns that determine others are known to everybody: a part lies in one land."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import louver as lv
from louver._verdict import Level
from louver.data.dependencies import is_function, near_function

LANDS = {"N1": "N", "N2": "N", "N3": "N", "S1": "S", "S2": "S", "S3": "S"}
COUNTS = {"N1": (28, 40), "N2": (23, 31), "N3": (3, 33), "S1": (19, 44), "S2": (21, 27), "S3": (4, 30)}
TABLES = [
    {"name": "lands", "by": ["land", "status"], "below": 8},
    {"name": "parts", "by": ["part", "status"], "below": 8},
]


def people(lands=LANDS, counts=COUNTS):
    rows = [
        (lands[part], part, status, n)
        for part, both in counts.items()
        for status, n in zip("ab", both, strict=True)
    ]
    land, part, status, n = zip(*rows, strict=True)
    return pa.table({"land": land, "part": part, "status": status, "n": n})


def given_away(found):
    return {tuple(sorted(cell.cell.items())) for cell in found.disclosed()}


@pytest.mark.parametrize("decide", [False, True])
def test_a_hidden_cell_that_a_region_and_its_other_districts_leave_is_given_away(decide):
    """54 - 28 - 23 = 3."""
    found = lv.audit(people(), weight="n", tables=TABLES, decide=decide)
    assert found.verdict.level is Level.STOP and found.summary.small_exact == 2
    assert (("part", "N3"), ("status", "a")) in given_away(found)
    assert found.question.dependencies == (("part", "land"),)
    assert 'which "land" belongs to each "part"' in repr(found)


def test_it_is_what_structural_zeros_of_the_spec_say():
    zeros = [
        {"land": ["N"], "part": ["S1", "S2", "S3"]},
        {"land": ["S"], "part": ["N1", "N2", "N3"]},
    ]
    labels = {"land": {"labels": ["N", "S"]}, "part": {"labels": list(LANDS)}}
    spec = {"attributes": labels, "structural_zeros": zeros}
    plain, told = (lv.audit(people(), weight="n", tables=TABLES, spec=s) for s in (None, spec))
    assert [(c.cell, c.lower, c.upper) for c in plain.cells] == [
        (c.cell, c.lower, c.upper) for c in told.cells
    ]


def test_few_records_elsewhere_do_not_protect_from_readers_who_assume_the_rule(tmp_path):
    """Whoever takes the region minus its shown districts is right wherever no exception is."""
    mixed = pa.concat_tables([people(), pa.table({"land": ["S"], "part": ["N1"], "status": ["a"], "n": [9]})])
    found = lv.audit(mixed, weight="n", tables=TABLES, fail_on="small")
    assert found.question.dependencies == () and not given_away(found)
    assert found.verdict.level is Level.CARE and not found.passed and found.question.near_small == 2
    assert '"part" nearly determines "land" (97' in repr(found) and "2 small counts" in found.refusal
    asked = {"weight": "n", "registry": tmp_path / "register", "publish": tmp_path / "out"}
    assert lv.audit(mixed, tables=TABLES, **asked).published is None


def test_few_records_elsewhere_are_no_matter_where_the_rule_gives_nothing_away():
    mixed = pa.concat_tables([people(), pa.table({"land": ["S"], "part": ["N1"], "status": ["a"], "n": [9]})])
    both = [{"name": "both", "by": ["land", "part"]}]
    found = lv.audit(mixed, weight="n", tables=both)
    assert found.verdict.level is Level.OK and found.question.near_small == 0
    shares = {"name": "shares", "rows": ["land", "part"], "cols": ["status"], "decimals": 0}
    assert lv.audit(mixed, weight="n", tables=[shares]).question.near_small in (0, None)
    apart = [{**shares, "rows": ["land"]}, {"name": "parts", "by": ["part"]}]
    found = lv.audit(mixed, weight="n", tables=apart)
    assert found.question.near_small is None and "not known" in repr(found)


def test_a_hierarchy_tells_of_labels_that_no_record_has(tmp_path):
    """Two parts, one without people: both are known to lie in the north, and all in the north are in one."""
    tree = tmp_path / "parts.csv"
    tree.write_text("N1,N\nN2,N\nS1,S\n")
    records = people(counts={"N1": (28, 4), "S1": (19, 44)})
    spec = {
        "attributes": {
            "part": {"labels": ["N1", "N2", "S1"], "hierarchy": str(tree)},
            "land": {"labels": ["N", "S"]},
        },
    }
    tables = [
        {"name": "lands", "by": ["land", "status"]},
        {"name": "all but two", "by": ["status"], "where": {"part": ["N1", "S1"]}},
    ]
    found = lv.audit(records, weight="n", tables=tables, spec=spec)
    assert ("part", "land") in found.question.dependencies
    cell = next(c for c in found.cells if c.cell == {"land": "N", "status": "b", "part": "N1 or S1"})
    assert (cell.lower, cell.upper) == (4, 4)


def test_near_functions_lead_to_coarser_columns_in_nearly_all_records():
    fine, coarse = np.array([0, 1, 1, 2, 3]), np.array([0, 0, 1, 1, 1])
    assert near_function(fine, coarse, np.array([50, 50, 1, 50, 50])) == ({0: 0, 1: 0, 2: 1, 3: 1}, 200 / 201)
    assert near_function(fine, coarse, np.array([50, 50, 40, 50, 50])) is None
    assert near_function(fine[[0, 1, 3]], coarse[[0, 1, 3]], np.array([50, 50, 50])) is None
    two = np.array([0, 0, 1])
    assert near_function(two, np.array([0, 1, 1]), np.array([500, 1, 500])) is None


def test_what_chance_explains_is_no_dependency():
    few = [np.array(x) for x in ([0, 1, 2], [0, 1, 1], [2, 3, 1])]
    assert not is_function(*few) and is_function(few[0], few[1], 20 * few[2])
    assert not is_function(np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([500, 1, 500]))
    assert not is_function(np.array([0, 1]), np.array([0, 0]), np.array([500, 500]))
    nobody = np.zeros(0, dtype=np.int64)
    assert not is_function(nobody, nobody, nobody)


def test_districts_of_a_small_file_lie_in_their_regions_too():
    """12 of land N, 11 of them in its part N1: a difference tells of the one in N2. The file has 26 people."""
    counts = {"N1": (11, 0), "N2": (1, 0), "S1": (4, 4), "S2": (0, 3), "S3": (3, 0)}
    tables = [
        {"name": "north", "by": ["status"], "where": {"land": ["N"]}},
        {"name": "parts", "by": ["part"], "below": 3},
    ]
    found = lv.audit(people(counts=counts), weight="n", tables=tables, small=3)
    assert found.verdict.level is Level.STOP
    assert (("part", "N2"),) in given_away(found)
