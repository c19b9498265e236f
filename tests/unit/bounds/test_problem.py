"""Arranging a multi-way table, and tables known only by their conditionals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from louver.bounds import problem
from louver.bounds.check import DisclosureRules, audit_table
from louver.bounds.load import from_conditionals
from louver.bounds.problem import Arrangement, ZeroRows, arrange
from louver.data.histogram import Histogram
from louver.errors import InputError
from louver.schema.attribute import Attribute, Kind
from louver.schema.recode import Recode

SEX = Attribute(name="sex", labels=("f", "m"))
AGE = Attribute(name="age", kind=Kind.ORDERED, labels=("young", "middle", "old"))
WARD = Attribute(name="ward", labels=("birth", "bones"))
# sex x age x ward; nobody is male and in the birth ward, no old woman either.
COUNTS = np.array([[[4, 6], [2, 2], [0, 5]], [[0, 3], [0, 0], [0, 9]]])
PEOPLE = Histogram.from_dense(COUNTS, (SEX, AGE, WARD))
BY_WARD = Arrangement(rows=("sex", "age"), cols=("ward",))
NO_MEN_IN_BIRTH = ({"sex": ("m",), "ward": ("birth",)},)


def test_rows_columns_and_reduced_counts():
    table = arrange(PEOPLE, BY_WARD)
    assert (table.n_rows, table.n_cols, table.n, table.n_zero_rows) == (6, 2, 31, 1)
    assert table.row_index.tolist() == [0, 1, 2, 3, 5]
    assert table.counts.tolist() == [[4, 6], [2, 2], [0, 5], [0, 3], [0, 9]]
    assert table.reduced().tolist() == [[2, 3], [1, 1], [0, 1], [0, 1], [0, 1]]
    assert table.row_labels(5) == {"sex": "m", "age": "old"}
    assert table.col_labels(1) == {"ward": "bones"}


def test_attributes_left_out_are_summed_over_and_columns_may_be_several():
    table = arrange(PEOPLE, Arrangement(rows=("ward",), cols=("age", "sex")))
    assert table.counts.tolist() == [[4, 0, 2, 0, 0, 0], [6, 3, 2, 0, 5, 9]]
    assert table.col_labels(3) == {"age": "middle", "sex": "m"}


def test_recodes_apply_only_to_attributes_that_are_shown():
    merge = Recode("age", merge={"not old": ("young", "middle")})
    table = arrange(PEOPLE, Arrangement(rows=("age",), cols=("ward",), recodes=(merge,)))
    assert table.counts.tolist() == [[6, 11], [0, 14]]
    table = arrange(PEOPLE, Arrangement(rows=("sex",), cols=("ward",), recodes=(merge,)))
    assert table.counts.tolist() == [[6, 13], [0, 12]]


def test_label_of_an_arrangement():
    merge = Recode("age", merge={"all": ("young", "middle", "old")})
    arrangement = Arrangement(rows=("sex", "age"), cols=("ward",), recodes=(merge,))
    assert arrangement.label == "sex, age* | ward"
    assert Arrangement(rows=("sex",), cols=("ward",), name="by sex").label == "by sex"


@pytest.mark.parametrize(
    ("rows", "cols", "option", "column"),
    [
        ((), ("ward",), "--rows", None),
        (("sex",), (), "--cols", None),
        (("sex", "sex"), ("ward",), "--rows", "sex"),
        (("sex",), ("ward", "ward"), "--cols", "ward"),
        (("sex", "ward"), ("ward",), "--cols", "ward"),
    ],
)
def test_arrangements_that_make_no_sense(rows, cols, option, column):
    with pytest.raises(InputError) as caught:
        Arrangement(rows=rows, cols=cols)
    assert (caught.value.option, caught.value.column) == (option, column)


def test_a_table_too_large_to_lay_out(monkeypatch):
    monkeypatch.setattr(problem, "MAX_CELLS", 11)
    with pytest.raises(InputError, match="6 x 2 cells") as caught:
        arrange(PEOPLE, BY_WARD)
    assert caught.value.option == "--rows"
    monkeypatch.setattr(problem, "MAX_CELLS", 3)
    with pytest.raises(InputError, match="2 x 2 cells"):
        conditionals({("f", "birth"): "1", ("m", "bones"): "1"})


# --- Zero rows -------------------------------------------------------------------------------------


def test_rows_with_a_zero_cell_can_be_dropped():
    table = arrange(PEOPLE, BY_WARD, zero_rows=ZeroRows.DROP)
    assert table.counts.tolist() == [[4, 6], [2, 2]]
    assert (table.n_rows, table.n_zero_rows, table.n, table.dropped_rows) == (2, 0, 14, 4)
    cells = list(audit_table(table, BY_WARD, DisclosureRules()).cells())
    assert [cell.row["age"] for cell in cells] == ["young", "young", "middle", "middle"]


def test_rows_with_a_zero_cell_can_be_merged():
    table = arrange(PEOPLE, BY_WARD, zero_rows=ZeroRows.MERGE)
    assert table.counts.tolist() == [[4, 6], [2, 2], [0, 17]]
    assert (table.n_rows, table.n_zero_rows, table.n) == (3, 0, 31)
    assert table.row_labels(-1) == {"sex": "Other", "age": "Other"}
    cells = list(audit_table(table, BY_WARD, DisclosureRules()).cells())
    assert [cell.row for cell in cells[4:]] == [{"sex": "Other", "age": "Other"}] * 2


def test_nothing_is_merged_where_no_row_has_a_zero_cell():
    full = Histogram.from_dense([[1, 2], [3, 4]], (SEX, WARD))
    table = arrange(full, Arrangement(rows=("sex",), cols=("ward",)), zero_rows=ZeroRows.MERGE)
    assert (table.n_rows, table.dropped_rows, table.row_index.tolist()) == (2, 0, [0, 1])


def test_no_row_left():
    men = Histogram.from_dense([[0, 0], [0, 4]], (SEX, WARD))
    with pytest.raises(InputError, match="every row has a zero cell") as caught:
        arrange(men, Arrangement(rows=("sex",), cols=("ward",)), zero_rows=ZeroRows.DROP)
    assert caught.value.option == "--drop-zero-rows"


# --- Structural zeros ------------------------------------------------------------------------------


def summary(arrangement, zeros, **more):
    table = arrange(PEOPLE, arrangement, structural_zeros=zeros, **more)
    return audit_table(table, arrangement, DisclosureRules()).summary


def test_impossible_cells_are_neither_zero_cells_nor_shown():
    zeros = NO_MEN_IN_BIRTH
    table = arrange(PEOPLE, BY_WARD, structural_zeros=zeros)
    audit = audit_table(table, BY_WARD, DisclosureRules())
    assert summary(BY_WARD, ()).disclosed_zero_cells == 5
    # Left are the old women in the birth ward and the middle-aged men in the other, a zero row.
    assert audit.summary.disclosed_zero_cells == 2
    assert (audit.summary.rows, audit.summary.zero_rows) == (6, 1)
    men_in_birth = [c for c in audit.cells() if c.row["sex"] == "m" and c.col["ward"] == "birth"]
    assert men_in_birth == []
    assert len(list(audit.cells())) == 12 - 3


def test_impossible_rows_do_not_count():
    zeros = ({"sex": ("m",), "age": ("middle",)},)
    s = summary(BY_WARD, zeros)
    assert (s.rows, s.zero_rows, s.disclosed_zero_cells) == (5, 0, 3)


def test_a_zero_about_an_attribute_summed_over_says_nothing():
    by_age = Arrangement(rows=("age",), cols=("ward",))
    assert arrange(PEOPLE, by_age, structural_zeros=NO_MEN_IN_BIRTH).possible.all()


def test_a_merged_label_is_impossible_only_if_all_its_labels_are():
    merge = Recode("age", merge={"not old": ("young", "middle")})
    arrangement = Arrangement(rows=("sex", "age"), cols=("ward",), recodes=(merge,))
    one = ({"sex": ("m",), "age": ("middle",), "ward": ("birth",)},)
    assert arrange(PEOPLE, arrangement, structural_zeros=one).possible.all()
    both = ({"sex": ("m",), "age": ("middle", "young"), "ward": ("birth",)},)
    possible = arrange(PEOPLE, arrangement, structural_zeros=both).possible
    assert possible.tolist() == [[True, True], [True, True], [False, True], [True, True]]


def test_an_impossible_cell_does_not_make_a_row_one_with_a_zero_cell():
    table = arrange(PEOPLE, BY_WARD, structural_zeros=NO_MEN_IN_BIRTH, zero_rows=ZeroRows.DROP)
    assert table.counts.tolist() == [[4, 6], [2, 2], [0, 3], [0, 9]]
    assert (table.n_rows, table.n_zero_rows, table.dropped_rows) == (4, 0, 2)
    assert summary(BY_WARD, NO_MEN_IN_BIRTH, zero_rows=ZeroRows.DROP).disclosed_zero_cells == 0


def test_merged_rows_hold_what_any_of_them_can():
    zeros = NO_MEN_IN_BIRTH
    table = arrange(PEOPLE, BY_WARD, structural_zeros=zeros, zero_rows=ZeroRows.MERGE)
    assert table.counts.tolist() == [[4, 6], [2, 2], [0, 3], [0, 9], [0, 5]]
    assert table.possible[-1].tolist() == [True, True]
    s = summary(BY_WARD, zeros, zero_rows=ZeroRows.MERGE)
    assert (s.rows, s.zero_rows, s.disclosed_zero_cells) == (5, 0, 1)
    audit = audit_table(table, BY_WARD, DisclosureRules())
    assert len(list(audit.cells())) == 10 - 2


def test_a_printed_zero_hides_nobody_in_an_impossible_cell():
    # One row, printed 1 and 0 without decimals: 2 or 3 of 3 people, unless the other cell is impossible.
    people = Histogram.from_dense([[3, 0]], (Attribute(name="all", labels=("all",)), WARD))
    arrangement = Arrangement(rows=("all",), cols=("ward",))
    options = DisclosureRules(decimals=0)
    free = audit_table(arrange(people, arrangement), arrangement, options)
    assert [(cell.lower, cell.upper) for cell in free.cells()] == [(2, 3), (0, 1)]
    zeros = ({"ward": ("bones",)},)
    known = audit_table(arrange(people, arrangement, structural_zeros=zeros), arrangement, options)
    assert [(cell.lower, cell.upper) for cell in known.cells()] == [(3, 3)]
    assert known.summary.disclosed_rows == 1


# --- Conditionals ----------------------------------------------------------------------------------


def conditionals(cells, *, n=20, decimals=None):
    """A table from {(sex, ward): "fraction"}."""
    return from_conditionals(
        (SEX, WARD),
        np.array([(SEX.code_of(sex), WARD.code_of(ward)) for sex, ward in cells]).reshape(-1, 2),
        [Fraction(text) for text in cells.values()],
        Arrangement(rows=("sex",), cols=("ward",)),
        n,
        decimals=decimals,
        where="table.csv",
    )


def test_fractions_become_reduced_counts():
    table = conditionals({("m", "bones"): "3/4", ("m", "birth"): "1/4", ("f", "birth"): "1"})
    assert table.counts.tolist() == [[1, 0], [1, 3]]
    assert (table.row_index.tolist(), table.n, table.published) == ([0, 1], 20, None)


def test_a_row_of_zeros_is_a_zero_row():
    table = conditionals({("m", "bones"): "0", ("m", "birth"): "0", ("f", "birth"): "1"})
    assert (table.row_index.tolist(), table.n_rows, table.n_zero_rows) == ([0], 2, 1)


def test_rounded_values_stay_in_units_of_the_last_decimal():
    table = conditionals({("m", "bones"): "0.67", ("m", "birth"): "0.34", ("f", "birth"): "1"}, decimals=2)
    assert table.published.tolist() == [[100, 0], [34, 67]]


@pytest.mark.parametrize(
    ("cells", "decimals", "match", "row", "option"),
    [
        ({("f", "birth"): "1", ("m", "birth"): "1/2", ("m", "bones"): "1/3"}, None, "exactly 1", 2, None),
        (
            {("f", "birth"): "1", ("m", "birth"): "0.123", ("m", "bones"): "0.9"},
            2,
            "decimals",
            2,
            "--decimals",
        ),
        (
            {("f", "birth"): f"1/{2**41}", ("f", "bones"): f"{2**41 - 1}/{2**41}"},
            None,
            "denominator",
            1,
            None,
        ),
    ],
)
def test_rows_that_are_no_conditionals(cells, decimals, match, row, option):
    with pytest.raises(InputError, match=match) as caught:
        conditionals(cells, decimals=decimals)
    assert (caught.value.file, caught.value.row, caught.value.option) == ("table.csv", row, option)


def test_a_cell_given_twice():
    with pytest.raises(InputError, match="row 3 of table.csv repeats the cell of row 1") as caught:
        from_conditionals(
            (SEX, WARD),
            np.array([[0, 0], [0, 1], [0, 0]]),
            [Fraction(1, 2)] * 3,
            Arrangement(rows=("sex",), cols=("ward",)),
            5,
            decimals=None,
            where="table.csv",
        )
    assert (caught.value.file, caught.value.row) == ("table.csv", 3)


def test_more_combinations_of_row_labels_than_a_number_holds():
    """Rows whose numbers differ by 2**64 were taken for one."""
    many = [Attribute(name=f"a{i}", labels=tuple("abcdefgh")) for i in range(24)]
    codes = np.zeros((2, 25), dtype=np.int64)
    codes[1, 0] = 1
    with pytest.raises(InputError, match="too many combinations") as caught:
        from_conditionals(
            (*many, WARD),
            codes,
            [Fraction(1)] * 2,
            Arrangement(rows=tuple(a.name for a in many), cols=("ward",)),
            5,
            decimals=None,
            where="table.csv",
        )
    assert caught.value.option == "--rows"
