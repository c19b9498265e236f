"""Rows that tell a status and rows of few people, against enumeration of every table that fits what is published."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from louver.bounds.check import DisclosureRules, audit_table
from louver.bounds.knowledge import KnownCells
from louver.bounds.load import from_conditionals
from louver.bounds.problem import Arrangement, arrange
from louver.bounds.rounded import RoundingRule
from louver.data.histogram import Histogram
from louver.schema.attribute import Attribute
from oracles.knapsack import compositions, rounded, tables_with_conditionals, tables_with_rounded

ROW_BY_COL = Arrangement(rows=("row",), cols=("col",))
SHARES = [Fraction(1), Fraction(95, 100), Fraction(9, 10), Fraction(51, 100)]


def attributes(counts):
    return (
        Attribute(name="row", labels=tuple(f"r{i}" for i in range(len(counts)))),
        Attribute(name="col", labels=tuple(f"c{j}" for j in range(len(counts[0])))),
    )


@st.composite
def people(draw, max_n=9):
    n_cols = draw(st.integers(2, 3))
    row = st.lists(st.integers(0, 4), min_size=n_cols, max_size=n_cols)
    counts = draw(st.lists(row, min_size=1, max_size=2))
    if draw(st.booleans()):
        counts[0] = [draw(st.integers(1, 5)), *[0] * (n_cols - 1)]
    total = sum(map(sum, counts))
    return counts if 0 < total <= max_n else [[3] + [0] * (n_cols - 1), [1] * n_cols]


def figures(summary):
    return (summary.certain_rows, summary.certain_people, summary.small_rows, summary.small_row_people)


def in_truth(counts, certain, small):
    rows = [row for row in counts if any(row)]
    telling = [sum(row) for row in rows if Fraction(max(row), sum(row)) >= certain]
    few = [sum(row) for row in rows if sum(row) < small]
    return len(telling), sum(telling), len(few), sum(few)


def in_every_table(tables, certain, small):
    """Rows that have the share in the same cell in all tables, rows that are small in all, and their least people."""
    telling, few = [], []
    for rows in zip(*tables, strict=True):
        least = min(map(sum, rows))
        if any(all(Fraction(row[j], sum(row)) >= certain for row in rows) for j in range(len(rows[0]))):
            telling.append(least)
        if max(map(sum, rows)) < small:
            few.append(least)
    return len(telling), sum(telling), len(few), sum(few)


@given(
    people(), st.sampled_from(SHARES), st.integers(1, 6), st.sampled_from([None, 0, 1, 2]), st.sampled_from(list(RoundingRule))
)  # fmt: skip
def test_of_ones_own_table_the_truth_is_told(counts, certain, small, decimals, rule):
    table = arrange(Histogram.from_dense(np.array(counts), attributes(counts)), ROW_BY_COL)
    options = DisclosureRules(certain=certain, small=small, decimals=decimals, rounding=rule)
    audit = audit_table(table, ROW_BY_COL, options)
    assert figures(audit.summary) == in_truth(counts, certain, small)
    if decimals is None and certain == 1:
        assert audit.summary.certain_rows == audit.summary.unit_rows
    told = list(audit.telling_rows())
    assert (len(told), sum(row.people for row in told)) == figures(audit.summary)[:2]


def published(counts, decimals, rule, totals=None):
    """The table as somebody else reads it, and the same rows as the oracle takes them."""
    rows = [row for row in counts if any(row)]
    shares = [[Fraction(x, sum(row)) for x in row] for row in rows]
    if decimals is not None:
        shares = [[Fraction(rounded(p, decimals, rule.value), 10**decimals) for p in row] for row in shares]
    cells = [(i, j) for i, j in product(range(len(rows)), range(len(rows[0])))]
    table = from_conditionals(
        attributes(rows),
        np.array(cells),
        [shares[i][j] for i, j in cells],
        ROW_BY_COL,
        sum(map(sum, counts)),
        decimals=decimals,
        where="table.csv",
        totals=None if totals is None else [totals[i] for i, _ in cells],
        rounding=rule,
    )
    return table, shares


@settings(max_examples=150)
@given(
    people(), st.sampled_from(SHARES), st.integers(1, 6), st.sampled_from([None, 1, 2]), st.sampled_from(list(RoundingRule))
)  # fmt: skip
@example([[4, 0], [1, 3]], Fraction(95, 100), 5, 1, RoundingRule.HALF_UP)
@example([[1, 0], [0, 1]], Fraction(1), 2, 1, RoundingRule.HALF_EVEN)
def test_of_somebody_elses_table_only_what_is_certain(counts, certain, small, decimals, rule):
    table, shares = published(counts, decimals, rule)
    n = sum(map(sum, counts))
    if decimals is None:
        tables = tables_with_conditionals(shares, n)
    else:
        units = [[int(p * 10**decimals) for p in row] for row in shares]
        if not all(map(any, units)):
            return
        tables = tables_with_rounded(units, decimals, rule.value, n)
    options = DisclosureRules(certain=certain, small=small, decimals=decimals, rounding=rule)
    audit = audit_table(table, ROW_BY_COL, options, is_counted=False)
    assert figures(audit.summary) == in_every_table(tables, certain, small)
    truth = in_truth(counts, certain, small)
    assert all(a <= b for a, b in zip(figures(audit.summary), truth, strict=True))


@settings(max_examples=60)
@given(people(), st.sampled_from(SHARES), st.sampled_from([None, 1, 2]), st.integers(0, 3))
def test_row_totals_and_knowledge_are_used(counts, certain, decimals, known):
    rows = [row for row in counts if any(row)]
    totals = [sum(row) for row in rows]
    table, shares = published(counts, decimals, RoundingRule.HALF_UP, totals)
    units = [[rounded(p, decimals or 0, "half-up") for p in row] for row in shares]
    if decimals is not None and not all(map(any, units)):
        return
    given_ = (KnownCells(row={"row": "r0"}, col={"col": "c0"}, at_least=min(known, rows[0][0])),)
    options = DisclosureRules(certain=certain, decimals=decimals, given=given_)
    audit = audit_table(table, ROW_BY_COL, options, is_counted=False)
    tables = [
        table
        for table in product(
            *(fitting(row, total, decimals) for row, total in zip(shares, totals, strict=True))
        )
        if table[0][0] >= min(known, rows[0][0])
    ]
    assert figures(audit.summary) == in_every_table(tables, certain, 5)
    for cell in audit.cells():
        i, j = int(cell.row["row"][1:]), int(cell.col["col"][1:])
        values = {table[i][j] for table in tables}
        assert (cell.lower, cell.upper) == (min(values), max(values))


def fitting(shares, total, decimals):
    """Rows of so many people that were published so."""
    for row in compositions(total, len(shares)):
        found = [Fraction(x, total) for x in row]
        if decimals is not None:
            found = [Fraction(rounded(p, decimals, "half-up"), 10**decimals) for p in found]
        if found == list(shares):
            yield row


@pytest.mark.parametrize(("certain", "expected"), [(Fraction(1), 0), (Fraction(999, 1000), 1)])
def test_a_printed_hundred_percent_may_be_less(certain, expected):
    """4,999 of 5,000 are printed 1.000; somebody who has the printed table only cannot rule that out."""
    counts = [[4999, 1], [2500, 2500]]
    table, _ = published(counts, 3, RoundingRule.HALF_UP)
    options = DisclosureRules(certain=certain, decimals=3)
    assert audit_table(table, ROW_BY_COL, options, is_counted=False).summary.certain_rows == expected
    own = arrange(Histogram.from_dense(np.array([[5000, 0], [2500, 2500]]), attributes(counts)), ROW_BY_COL)
    assert audit_table(own, ROW_BY_COL, options).summary.certain_rows == 1
