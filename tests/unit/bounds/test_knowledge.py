"""A-priori knowledge: reading it, binding it to a table, bounds on multiples, and clashes."""

from __future__ import annotations

import numpy as np
import pytest

from louver.bounds import knowledge
from louver.bounds.check import DisclosureRules, audit_table
from louver.bounds.knowledge import (
    NO_LIMIT,
    BoundStatement,
    KnownCells,
    bind,
    clash_error,
    parse_given,
    read_given,
    row_bounds,
    smallest_clash,
)
from louver.bounds.problem import Arrangement, ZeroRows, arrange
from louver.data.histogram import Histogram
from louver.errors import InfeasibleError, InputError
from louver.schema.attribute import Attribute

SITE = Attribute(name="site", labels=("A", "B", "C", "D", "E"))
ILL = Attribute(name="ill", labels=("no", "yes"))
DEAD = Attribute(name="dead", labels=("no", "yes"))
BY_ILL = Arrangement(rows=("site",), cols=("ill",))
# Table 1(a) of Wright & Smucker (2014), and a zero row E.
PEOPLE = Histogram.from_dense([[3, 4], [5, 3], [6, 9], [10, 8], [0, 0]], (SITE, ILL))
TABLE = arrange(PEOPLE, BY_ILL)
CUBE = arrange(
    Histogram.from_dense(np.arange(1, 21).reshape(5, 2, 2), (SITE, ILL, DEAD)),
    Arrangement(rows=("site",), cols=("ill", "dead")),
)


def known(number, lower, upper=NO_LIMIT, row=0, cells=(True, True)):
    return BoundStatement(number=number, row=row, cells=np.array(cells), lower=lower, upper=upper)


def ends(*given):
    audit = audit_table(TABLE, BY_ILL, DisclosureRules(given=given))
    return [(cell.lower, cell.upper) for cell in audit.cells()]


def test_one_bound_reveals_the_table_of_the_introduction():
    free = ends()
    assert free[:2] == [(3, 9), (4, 12)]
    told = ends(KnownCells(row={"site": "A"}, col={"ill": "no"}, at_most=8))
    assert told == [(3, 3), (4, 4), (5, 5), (3, 3), (6, 6), (9, 9), (10, 10), (8, 8), (0, 0), (0, 0)]
    assert ends(KnownCells(row={"site": "A"}, at_least=8))[:2] == [(9, 9), (12, 12)]
    assert ends(KnownCells(row={"site": "D"}, exactly=18))[:2] == [(3, 3), (4, 4)]


def test_reading_a_file(tmp_path):
    path = tmp_path / "given.toml"
    path.write_text(
        '[[known]]\nrow = {site = "A"}\ncol = {ill = ["no", "yes"]}\nat_most = 8\n', encoding="utf-8"
    )
    assert read_given(path) == [KnownCells(row={"site": "A"}, col={"ill": ["no", "yes"]}, at_most=8)]


def test_lists_may_hold_statements_and_mappings():
    statement = KnownCells(row={"site": "A"}, exactly=3)
    assert parse_given([statement, {"row": {"site": "B"}, "at_least": 1}]) == [
        statement,
        KnownCells(row={"site": "B"}, at_least=1),
    ]


@pytest.mark.parametrize(
    ("entry", "option"),
    [
        ({"row": {"site": "A"}, "at_least": -1}, "known[1].at_least"),
        ({"row": {"site": "A"}, "at_least": 1.5}, "known[1].at_least"),
        ({"row": {"site": "A"}, "at_lest": 1}, "known[1].at_lest"),
        ({"at_least": 1}, "known[1].row"),
        ({"row": "A", "at_least": 1}, "known[1].row"),
        ({"row": {"site": "A"}, "col": {"ill": [1]}, "at_least": 1}, "known[1].col.ill"),
    ],
)
def test_entries_of_the_wrong_form(entry, option):
    with pytest.raises(InputError) as caught:
        parse_given([entry])
    assert (caught.value.file, caught.value.option) == ("given", option)


def test_binding_finds_rows_and_cells():
    found = bind(
        [
            KnownCells(row={"site": "B"}, col={"ill": "yes"}, at_least=2),
            KnownCells(row={"site": "E"}, at_most=7),
            KnownCells(row={"site": "A"}, exactly=9),
        ],
        TABLE,
    )
    assert [(one.number, one.row, one.cells.tolist(), one.lower, one.upper) for one in found] == [
        (1, 1, [False, True], 2, NO_LIMIT),
        (2, -1, [True, True], 0, 7),
        (3, 0, [True, True], 9, 9),
    ]


@pytest.mark.parametrize(
    ("col", "cells"),
    [
        ({}, [True, True, True, True]),
        ({"dead": "yes"}, [False, True, False, True]),
        ({"ill": ["yes"], "dead": "no"}, [False, False, True, False]),
        ({"ill": ["no", "yes"], "dead": []}, [False, False, False, False]),
    ],
)
def test_cells_of_several_column_attributes(col, cells):
    (one,) = bind([KnownCells(row={"site": "A"}, col=col, at_least=0)], CUBE)
    assert one.cells.tolist() == cells


@pytest.mark.parametrize(
    ("statement", "column"),
    [
        (KnownCells(row={"site": "A"}), None),
        (KnownCells(row={"site": "A"}, exactly=1, at_least=1), None),
        (KnownCells(row={"site": "A"}, exactly=1, at_most=1), None),
        (KnownCells(row={}, at_least=1), None),
        (KnownCells(row={"site": "A", "ill": "no"}, at_least=1), None),
        (KnownCells(row={"site": "Z"}, at_least=1), "site"),
        (KnownCells(row={"site": "A"}, col={"ill": "perhaps"}, at_least=1), "ill"),
        (KnownCells(row={"site": "A"}, col={"site": "A"}, at_least=1), "site"),
    ],
)
def test_statements_that_do_not_fit_the_table(statement, column):
    with pytest.raises(InputError, match="statement 2 of the known bounds") as caught:
        bind([KnownCells(row={"site": "A"}, at_least=1), statement], TABLE)
    assert (caught.value.option, caught.value.column) == ("--given", column)


@pytest.mark.parametrize("zero_rows", [ZeroRows.DROP, ZeroRows.MERGE])
def test_statements_about_rows_that_were_dropped(zero_rows):
    people = Histogram.from_dense([[3, 4], [5, 3], [6, 9], [0, 8], [0, 0]], (SITE, ILL))
    table = arrange(people, BY_ILL, zero_rows=zero_rows)
    assert len(bind([KnownCells(row={"site": "A"}, at_least=1)], table)) == 1
    with pytest.raises(InputError, match="row with a zero cell") as caught:
        bind([KnownCells(row={"site": "D"}, at_least=1)], table)
    assert caught.value.option == "--given"


def test_bounds_on_multiples_round_inwards():
    reduced = np.array([[2, 3], [1, 0]])
    lower, upper = row_bounds([known(1, 6, 14), known(2, 0, 7, cells=(False, True))], reduced)
    # 6 <= 5 (nu + 1) <= 14 and 3 (nu + 1) <= 7: ceil(6/5) - 1 (ERRATA B1), min(14 // 5, 7 // 3) - 1.
    assert (lower.tolist(), upper.tolist()) == ([1, 0], [1, NO_LIMIT])


def test_a_positive_bound_on_zero_cells_leaves_no_multiple():
    lower, upper = row_bounds([known(1, 1, row=1, cells=(False, True))], np.array([[2, 3], [1, 0]]))
    assert lower[1] > upper[1]
    lower, upper = row_bounds([known(1, 0, 5, row=1, cells=(False, True))], np.array([[2, 3], [1, 0]]))
    assert (lower[1], upper[1]) == (0, NO_LIMIT)


def test_huge_bounds_do_not_overflow():
    assert ends(KnownCells(row={"site": "A"}, at_most=10**30)) == ends()
    with pytest.raises(InfeasibleError):
        ends(KnownCells(row={"site": "A"}, at_least=10**30))


# --- Clashes ---------------------------------------------------------------------------------------


def limits_agree(some):
    return max((one.lower for one in some), default=0) <= min((one.upper for one in some), default=9)


def test_the_smallest_clash_is_named():
    given = [known(1, 0), known(2, 3), known(3, 0, 4), known(4, 6), known(5, 0, 5), known(6, 12, 20)]
    assert smallest_clash(given, limits_agree) == (3, 4)
    assert smallest_clash([*given, known(7, 5, 2)], limits_agree) == (7,)


def test_beyond_the_checks_a_clash_is_at_least_irreducible(monkeypatch):
    monkeypatch.setattr(knowledge, "EXHAUSTIVE_CHECKS", 3)
    given = [known(1, 0), known(2, 3), known(3, 0, 4), known(4, 6), known(5, 0, 5)]
    clash = smallest_clash(given, limits_agree)
    named = [one for one in given if one.number in clash]
    assert not limits_agree(named)
    assert all(limits_agree([one for one in named if one is not out]) for out in named)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([known(1, 5, 2)], "statement 1 of bounds.toml contradicts the"),
        ([known(1, 5), known(2, 0, 4)], "statements 1 and 2 of bounds.toml together contradict the"),
    ],
)
def test_the_error_names_the_statements(given, told):
    error = clash_error(given, limits_agree, "bounds.toml")
    assert str(error).startswith(told)
    assert error.clash == tuple(one.number for one in given)


@pytest.mark.parametrize("decimals", [None, 2])
@pytest.mark.parametrize(
    "selected", [None, [(0, 0)], [(4, 1)]], ids=["all", "a cell", "a cell of a zero row"]
)
def test_a_clash_shows_whatever_is_selected(selected, decimals):
    given = (
        KnownCells(row={"site": "B"}, at_most=100),
        KnownCells(row={"site": "A"}, at_least=8),
        KnownCells(row={"site": "D"}, at_least=10),
        KnownCells(row={"site": "C"}, at_least=20),
    )
    options = DisclosureRules(given=given, decimals=decimals, given_from="bounds.toml")
    with pytest.raises(InfeasibleError, match="bounds.toml") as caught:
        audit_table(TABLE, BY_ILL, options, selected=selected)
    if decimals is None:
        assert caught.value.clash == (4,)


@pytest.mark.parametrize("decimals", [None, 1])
def test_people_in_a_zero_row_clash(decimals):
    given = (
        KnownCells(row={"site": "A"}, at_least=1),
        KnownCells(row={"site": "E"}, col={"ill": "no"}, at_least=1),
    )
    with pytest.raises(InfeasibleError, match="statement 2 of given contradicts") as caught:
        audit_table(TABLE, BY_ILL, DisclosureRules(given=given, decimals=decimals))
    assert caught.value.clash == (2,)


@pytest.mark.parametrize("decimals", [None, 1])
def test_a_bound_on_no_cells_at_all(decimals):
    nothing = {"ill": []}
    for bound in ({"at_most": 0}, {"at_least": 0}):
        given = (KnownCells(row={"site": "A"}, col=nothing, **bound),)
        told = audit_table(TABLE, BY_ILL, DisclosureRules(given=given, decimals=decimals))
        free = audit_table(TABLE, BY_ILL, DisclosureRules(decimals=decimals))
        assert told.to_dict()["cells"] == free.to_dict()["cells"]
    with pytest.raises(InfeasibleError):
        given = (KnownCells(row={"site": "A"}, col=nothing, at_least=1),)
        audit_table(TABLE, BY_ILL, DisclosureRules(given=given, decimals=decimals))
