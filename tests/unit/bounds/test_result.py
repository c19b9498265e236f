"""Results: cells, summaries, and how they are written."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.figure import Figure

import louver as lv
from louver.bounds.check import DisclosureRules, audit_table, solve_exact
from louver.bounds.check import compare as compare_arrangements
from louver.bounds.disclosure import BoundsSummary
from louver.bounds.problem import Arrangement, arrange
from louver.bounds.result import BoundedCell, Comparison
from louver.bounds.search import UTILITY
from louver.bounds.search import search_redesigns as search
from louver.data.histogram import Histogram
from louver.run import Run
from louver.schema.attribute import Attribute

compare = partial(compare_arrangements, run=Run())
search_redesigns = partial(search, run=Run())

SITE = Attribute(name="site", labels=("A", "B", "C", "D", "<E>"))
ILL = Attribute(name="ill", labels=("no", "yes"))
BY_ILL = Arrangement(rows=("site",), cols=("ill",))
PEOPLE = Histogram.from_dense([[3, 4], [5, 3], [6, 9], [10, 8], [0, 0]], (SITE, ILL))
AUDIT = audit_table(arrange(PEOPLE, BY_ILL), BY_ILL, DisclosureRules())


def summary(**changes):
    plain = {
        "rows": 2,
        "cols": 2,
        "n": 9,
        "reduced_total": 5,
        "zero_rows": 0,
        "unit_rows": 0,
        "disclosed_rows": 0,
        "disclosed_zero_cells": 0,
        "disclosed_small_cells": 0,
        "certain_rows": 0,
        "certain_people": 0,
        "small_rows": 0,
        "small_row_people": 0,
    }
    return BoundsSummary(**{**plain, **changes})


def test_cells_stand_in_row_order_and_zero_rows_are_zero():
    cells = list(AUDIT.cells())
    assert [tuple(cell.row.values()) + tuple(cell.col.values()) for cell in cells] == [
        (site, ill) for site in SITE.labels for ill in ILL.labels
    ]
    assert cells[0] == BoundedCell(row={"site": "A"}, col={"ill": "no"}, lower=3, upper=9, values=[(3, 9, 6)])
    assert (cells[0].n_values, cells[0].is_determined) == (2, False)
    assert (cells[2].n_values, cells[2].is_determined) == (1, True)
    assert [(cell.lower, cell.upper, cell.values) for cell in cells[8:]] == [(0, 0, [(0, 0, 1)])] * 2


def test_summary_counts_what_is_disclosed():
    assert asdict(AUDIT.summary) == {
        "rows": 5,
        "cols": 2,
        "n": 48,
        "reduced_total": 29,
        "zero_rows": 1,
        "unit_rows": 0,
        "disclosed_rows": 1,
        "disclosed_zero_cells": 2,
        "disclosed_small_cells": 1,
        "certain_rows": 0,
        "certain_people": 0,
        "small_rows": 0,
        "small_row_people": 0,
    }


@pytest.mark.parametrize(("small", "expected"), [(1, []), (3, []), (4, [3]), (5, [3]), (6, [5, 3])])
def test_disclosed_cells_are_determined_and_below_small(small, expected):
    audit = audit_table(arrange(PEOPLE, BY_ILL), BY_ILL, DisclosureRules(small=small))
    assert [cell.lower for cell in audit.disclosed_cells()] == expected
    assert audit.summary.disclosed_small_cells == len(expected)


def test_selected_cells_alone_are_counted():
    selected = [(1, 1), (0, 0), (4, 1)]
    audit = audit_table(arrange(PEOPLE, BY_ILL), BY_ILL, DisclosureRules(), selected=selected)
    assert [(c.row["site"], c.col["ill"]) for c in audit.cells()] == [
        ("B", "yes"),
        ("A", "no"),
        ("<E>", "yes"),
    ]
    s = audit.summary
    assert (s.rows, s.disclosed_rows, s.disclosed_zero_cells, s.disclosed_small_cells) == (5, 1, 1, 1)
    only = audit_table(arrange(PEOPLE, BY_ILL), BY_ILL, DisclosureRules(), selected=[(0, 0)])
    assert (only.summary.disclosed_rows, only.summary.disclosed_zero_cells) == (0, 0)


@pytest.mark.parametrize("decimals", [None, 1])
def test_a_cell_of_a_zero_row_alone(decimals):
    options = DisclosureRules(decimals=decimals)
    audit = audit_table(arrange(PEOPLE, BY_ILL), BY_ILL, options, selected=[(4, 0)])
    assert [(cell.lower, cell.upper) for cell in audit.cells()] == [(0, 0)]
    assert audit.summary.disclosed_zero_cells == 1


def test_impossible_cells_that_are_selected_are_no_zero_cells():
    table = arrange(PEOPLE, BY_ILL, structural_zeros=({"site": ("<E>",), "ill": ("yes",)},))
    audit = audit_table(table, BY_ILL, DisclosureRules(), selected=[(4, 0), (4, 1)])
    assert audit.summary.disclosed_zero_cells == 1


def test_rounding_hides_the_reduced_sums():
    audit = audit_table(arrange(PEOPLE, BY_ILL), BY_ILL, DisclosureRules(decimals=1))
    assert (audit.summary.reduced_total, audit.summary.unit_rows) == (None, None)
    assert json.loads(audit.to_json())["summary"]["reduced_total"] is None
    assert "rounded to 1 decimal," in repr(audit)


def test_json_has_the_stable_keys_and_reads_back():
    read = json.loads(AUDIT.to_json())
    assert read == AUDIT.to_dict()
    assert list(read) == ["summary", "verdict", "cells"]
    assert read["summary"] == asdict(AUDIT.summary)
    assert read["cells"][0] == {
        "row": {"site": "A"},
        "col": {"ill": "no"},
        "lower": 3,
        "upper": 9,
        "values": [[3, 9, 6]],
    }
    assert read["cells"][-1]["values"] == [[0, 0, 1]]


def test_frame_has_one_line_per_cell():
    frame = AUDIT.to_frame()
    assert frame.column_names == ["site", "ill", "lower", "upper", "n_values"]
    assert frame.num_rows == 10
    assert frame.to_pylist()[0] == {"site": "A", "ill": "no", "lower": 3, "upper": 9, "n_values": 2}


def test_values_are_those_of_their_own_row():
    table = arrange(PEOPLE, BY_ILL)
    wanted = np.array([False, True, False, True])
    part = solve_exact(table, (), wanted)
    full = solve_exact(table, (), np.ones(4, dtype=bool))
    for row in (1, 3):
        assert part.values(row, 0) == full.values(row, 0)
        assert (part.lower[row] == full.lower[row]).all()
        assert (part.upper[row] == full.upper[row]).all()
    assert part.values(0, 0) == []


def test_arrangements_are_sorted_by_risk():
    """Small cells first, then rows that reveal a status, determined rows, zero cells; equals stay as given."""
    order = [
        summary(disclosed_small_cells=0, disclosed_rows=0, disclosed_zero_cells=7),
        summary(disclosed_small_cells=0, disclosed_rows=3, disclosed_zero_cells=1),
        summary(disclosed_small_cells=0, disclosed_rows=3, disclosed_zero_cells=2),
        summary(certain_rows=1),
        summary(disclosed_small_cells=1, disclosed_rows=0, disclosed_zero_cells=0),
    ]
    shuffled = [order[2], order[4], order[0], order[3], order[1]]
    assert sorted(shuffled, key=lambda one: one.risk) == order


def test_comparison_of_arrangements():
    age = Attribute(name="age", labels=("young", "old"))
    counts = np.array([[[3, 4], [1, 0]], [[5, 3], [7, 2]], [[6, 9], [2, 8]]])
    people = Histogram.from_dense(counts, (Attribute(name="site", labels=("A", "B", "C")), age, ILL))
    arrangements = [
        Arrangement(rows=("age",), cols=("site", "ill"), name="by age"),
        Arrangement(rows=("site", "age"), cols=("ill",)),
        Arrangement(rows=("ill",), cols=("age",)),
    ]
    comparison = compare(people, arrangements, DisclosureRules())
    risks = [s.risk for _, s in comparison.lines]
    assert risks == sorted(risks)
    assert len(set(risks)) > 1
    assert {a.label for a, _ in comparison.lines} == {"by age", "site, age | ill", "ill | age"}
    for arrangement, s in comparison.lines:
        assert s == audit_table(arrange(people, arrangement), arrangement, DisclosureRules()).summary
    read = json.loads(comparison.to_json())
    assert [entry["summary"] for entry in read["arrangements"]] == [asdict(s) for _, s in comparison.lines]
    assert comparison.to_frame().column_names[:2] == ["arrangement", "rows"]
    assert isinstance(comparison, Comparison)
    assert repr(comparison).count("\n") <= 9


def test_suggestions_are_written_with_their_measure():
    found = search_redesigns(PEOPLE, BY_ILL, DisclosureRules(), seconds=600)
    read = json.loads(found.to_json())
    assert read == found.to_dict()
    assert (read["proved"], read["utility"], len(read["suggestions"])) == (True, UTILITY, len(found.lines))
    assert found.lines
    for line, entry in zip(found.lines, read["suggestions"], strict=True):
        assert entry["summary"] == asdict(line.summary)
        merges = {recode.attribute: recode.merge for recode in line.arrangement.recodes}
        assert entry["recodes"] == {
            name: {new: list(old) for new, old in merge.items()} for name, merge in merges.items()
        }
    assert found.to_frame().num_rows == len(found.lines)
    assert repr(found).startswith(
        f"{len(found.lines)} redesigns without a disclosed small cell or a row that reveals a status (nothing keeps more"
    )


def results():
    return [
        AUDIT,
        compare(PEOPLE, [BY_ILL], DisclosureRules()),
        search_redesigns(PEOPLE, BY_ILL, DisclosureRules(), seconds=600),
    ]


@pytest.mark.parametrize("result", results(), ids=lambda result: type(result).__name__)
def test_results_show_themselves(result):
    assert len(repr(result).splitlines()) <= 10
    assert result._repr_html_().startswith("<pre>") and "<table>" in result._repr_html_()
    assert "<E>" not in result._repr_html_()
    assert isinstance(result.plot(), Figure)


def test_results_are_frozen_and_equal_by_content():
    with pytest.raises(AttributeError):
        AUDIT.small = 3
    assert compare(PEOPLE, [BY_ILL], DisclosureRules()) == compare(PEOPLE, [BY_ILL], DisclosureRules())


def test_a_sampling_weight_is_not_taken_for_a_count_in_silence() -> None:
    people = pa.table({"site": ["A", "A", "B", "B"], "ill": ["y", "n"] * 2, "pwgtp": [300, 200, 100, 400]})
    audit = lv.bounds(people, rows=["site"], cols=["ill"], weight="pwgtp", weight_is_count=True)
    assert audit.verdict.is_risky and 'Column "pwgtp" is named like a sampling weight' in audit.words()
    assert not lv.bounds(
        people.rename_columns(["site", "ill", "n"]), rows=["site"], cols=["ill"], weight="n"
    ).survey_weight
