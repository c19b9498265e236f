"""Bounds and feasible values against enumeration of every integer table, and what must not change them."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import combinations
from math import gcd, lcm

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from louver.bounds.check import DisclosureRules, audit_table, solve_exact
from louver.bounds.knowledge import BoundStatement, KnownCells
from louver.bounds.load import from_conditionals
from louver.bounds.problem import Arrangement, TwoWayTable, arrange
from louver.bounds.rounded import RoundingRule, _solid_from, published_values, solve_rounded
from louver.data.histogram import Histogram
from louver.errors import InfeasibleError, InputError
from louver.optim.kernels.semigroups.feasible_multiples import FEASIBLE, feasible_multiples
from louver.optim.kernels.semigroups.rounded_conditionals import feasible_totals
from louver.schema.attribute import Attribute
from oracles.knapsack import (
    cell_values,
    expanded,
    feasible_values_3_1,
    fewest_runs,
    highs,
    rounded,
    tables_with_conditionals,
    tables_with_rounded,
)

NO_LIMIT = 2**62
ROW_BY_COL = Arrangement(rows=("row",), cols=("col",))

# --- Problems --------------------------------------------------------------------------------------


def labels(prefix, n):
    return tuple(f"{prefix}{i}" for i in range(n))


def histogram_of(counts):
    counts = np.array(counts, dtype=np.int64)
    row = Attribute(name="row", labels=labels("r", counts.shape[0]))
    col = Attribute(name="col", labels=labels("c", counts.shape[1]))
    return Histogram.from_dense(counts, (row, col))


def table_of(counts):
    return arrange(histogram_of(counts), ROW_BY_COL)


@st.composite
def count_tables(draw, max_rows=4, max_cols=3, max_count=4, max_n=18):
    """Tables with some person: any, with zero rows, equal rows, rows of one cell, divisible rows, N = R."""
    n_rows, n_cols = draw(st.integers(1, max_rows)), draw(st.integers(1, max_cols))
    row = st.lists(st.integers(0, max_count), min_size=n_cols, max_size=n_cols)
    counts = draw(st.lists(row, min_size=n_rows, max_size=n_rows))
    shape = draw(st.sampled_from(["any", "equal", "unit", "divisible", "reduced"]))
    if shape == "equal":
        counts = [counts[0]] * n_rows
    elif shape == "unit":
        counts = [[*([0] * (n_cols - 1)), max(row)] for row in counts]
    elif shape == "divisible":
        counts = [[row[0] if sum(row[1:]) % 2 == row[0] % 2 else row[0] + 1, *row[1:]] for row in counts]
    elif shape == "reduced":
        counts = [[x // max(gcd(*row), 1) for x in row] for row in counts]
    assume(0 < sum(map(sum, counts)) <= max_n)
    return counts


@st.composite
def statements(draw, n_rows, n_cols, max_size=3):
    """Bounds on cells, on sums of cells (nested, crossing or equal) and on row totals."""
    found = []
    for _ in range(draw(st.integers(0, max_size))):
        cols = draw(st.sets(st.integers(0, n_cols - 1), min_size=1))
        lower, room = draw(st.integers(0, 5)), draw(st.integers(0, 4))
        kind = draw(st.sampled_from(["at_least", "at_most", "exactly", "both"]))
        numbers = {
            "at_least": {"at_least": lower},
            "at_most": {"at_most": lower + room},
            "exactly": {"exactly": lower},
            "both": {"at_least": lower, "at_most": lower + room},
        }[kind]
        col = {} if len(cols) == n_cols and draw(st.booleans()) else {"col": [f"c{j}" for j in sorted(cols)]}
        found.append(KnownCells(row={"row": f"r{draw(st.integers(0, n_rows - 1))}"}, col=col, **numbers))
    return tuple(found)


@st.composite
def known_tables(draw, max_size=3, **limits):
    counts = draw(count_tables(**limits))
    return counts, draw(statements(len(counts), len(counts[0]), max_size))


def holds(statement, table):
    """Whether a statement is true of a full table (zero rows included)."""
    cells = table[int(statement.row["row"][1:])]
    chosen = statement.col.get("col", labels("c", len(cells)))
    total = sum(cells[int(label[1:])] for label in chosen)
    if statement.exactly is not None:
        return total == statement.exactly
    return (statement.at_least or 0) <= total and (statement.at_most is None or total <= statement.at_most)


def with_zero_rows(tables, counts):
    """Tables of the nonzero rows as tables of all rows."""
    nothing = (0,) * len(counts[0])
    for table in tables:
        rows = iter(table)
        yield tuple(next(rows) if any(row) else nothing for row in counts)


def exact_tables(counts, n=None):
    nonzero = [row for row in counts if any(row)]
    conditionals = [[Fraction(x, sum(row)) for x in row] for row in nonzero]
    n = sum(map(sum, counts)) if n is None else n
    return list(with_zero_rows(tables_with_conditionals(conditionals, n), counts))


def rounded_tables(counts, decimals, rule):
    nonzero = [row for row in counts if any(row)]
    published = [[rounded(Fraction(x, sum(row)), decimals, rule) for x in row] for row in nonzero]
    tables = tables_with_rounded(published, decimals, rule, sum(map(sum, counts)))
    return list(with_zero_rows(tables, counts))


def check_answer(counts, given_, options, tables):
    """The audit equals the enumerated tables, or names a smallest set of statements that none of them fits."""
    fitting = [table for table in tables if all(holds(one, table) for one in given_)]
    table = table_of(counts)
    if not fitting:
        with pytest.raises(InfeasibleError) as caught:
            audit_table(table, ROW_BY_COL, options)
        check_clash(caught.value.clash, given_, tables)
        return
    audit = audit_table(table, ROW_BY_COL, options)
    for cell in audit.cells():
        expected = cell_values(fitting, int(cell.row["row"][1:]), int(cell.col["col"][1:]))
        assert expanded(cell.values) == expected
        assert (cell.lower, cell.upper, cell.n_values) == (expected[0], expected[-1], len(expected))
        assert len(cell.values) == fewest_runs(expected)


def check_clash(clash, given_, tables):
    assert len(clash) == len(set(clash)) > 0
    named = [given_[number - 1] for number in clash]
    assert not any(all(holds(one, table) for one in named) for table in tables)
    for fewer in combinations(given_, len(clash) - 1):
        assert any(all(holds(one, table) for one in fewer) for table in tables)


# --- Against enumeration ---------------------------------------------------------------------------


@given(known_tables())
@example(([[0, 0]] * 2 + [[3, 4]], ()))
@example(([[2, 4]], ()))
@example(([[1], [2], [3]], ()))
@example(([[3, 4], [3, 4], [6, 8]], ()))
@example(([[1, 0], [0, 3], [2, 4]], ()))
@example(([[1, 2], [2, 1], [4, 3]], ()))
@example(([[2, 2], [4, 4], [3, 9]], ()))
def test_exact_conditionals(problem):
    counts, given_ = problem
    check_answer(counts, given_, DisclosureRules(given=given_), exact_tables(counts))


@settings(max_examples=150)
@given(
    known_tables(max_rows=3, max_n=8),
    st.integers(0, 3),
    st.sampled_from(list(RoundingRule)),
)
def test_rounded_conditionals(problem, decimals, rule):
    counts, given_ = problem
    options = DisclosureRules(given=given_, decimals=decimals, rounding=rule)
    check_answer(counts, given_, options, rounded_tables(counts, decimals, rule.value))


@settings(max_examples=40)
@given(st.data(), st.integers(0, 2), st.sampled_from(list(RoundingRule)))
def test_rounded_conditionals_with_crossing_sums(data, decimals, rule):
    counts = data.draw(count_tables(max_rows=2, max_n=9).filter(lambda counts: len(counts[0]) == 3))
    row = data.draw(st.sampled_from(labels("r", len(counts))))
    given_ = tuple(
        KnownCells(
            row={"row": row},
            col={"col": list(cols)},
            at_least=data.draw(st.integers(0, 3)),
            at_most=data.draw(st.integers(2, 6)),
        )
        for cols in (("c0", "c1"), ("c1", "c2"), ("c0", "c2"))
    )
    options = DisclosureRules(given=given_, decimals=decimals, rounding=rule)
    check_answer(counts, given_, options, rounded_tables(counts, decimals, rule.value))


@given(count_tables(), st.integers(1, 24))
def test_exact_conditionals_with_any_sample_size(counts, n):
    table = table_of(counts)
    other = TwoWayTable(
        row_attributes=table.row_attributes,
        col_attributes=table.col_attributes,
        row_index=table.row_index,
        counts=table.counts,
        n=n,
    )
    tables = exact_tables(counts, n)
    if not tables:
        with pytest.raises(InputError, match="no table has these conditionals"):
            audit_table(other, ROW_BY_COL, DisclosureRules())
        return
    for cell in audit_table(other, ROW_BY_COL, DisclosureRules()).cells():
        row, col = int(cell.row["row"][1:]), int(cell.col["col"][1:])
        assert expanded(cell.values) == cell_values(tables, row, col)


@settings(max_examples=60)
@given(
    st.lists(st.lists(st.integers(0, 10), min_size=2, max_size=3), min_size=1, max_size=2).filter(
        lambda rows: len({len(row) for row in rows}) == 1
    ),
    st.integers(1, 9),
    st.sampled_from(list(RoundingRule)),
)
def test_rounded_conditionals_that_perhaps_no_table_has(published, n, rule):
    tables = tables_with_rounded(published, 1, rule.value, n)
    arguments = (np.array(published), 1, rule, n, (), np.ones(len(published), dtype=bool))
    if not tables:
        with pytest.raises(InputError, match="no table has these rounded conditionals"):
            solve_rounded(*arguments)
        return
    solution = solve_rounded(*arguments)
    for row in range(len(published)):
        for col in range(len(published[0])):
            assert expanded(solution.values(row, col)) == cell_values(tables, row, col)


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=4).filter(any),
    st.integers(0, 2),
    st.sampled_from(list(RoundingRule)),
)
def test_published_values_are_rounded_conditionals(row, decimals, rule):
    values = published_values(np.array([row]), decimals, rule)
    assert values.tolist() == [[rounded(Fraction(x, sum(row)), decimals, rule.value) for x in row]]


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=5).filter(any),
    st.integers(0, 2),
    st.sampled_from(list(RoundingRule)),
)
def test_every_total_is_feasible_from_where_rounding_errors_cancel(row, decimals, rule):
    published = published_values(np.array([row]), decimals, rule)[0]
    solid = _solid_from(published, 10**decimals)
    assume(solid is not None)
    n_cells = len(row)
    parent = np.array([n_cells] * n_cells + [-1])
    allowed = feasible_totals(
        published,
        10**decimals,
        rule is RoundingRule.HALF_EVEN,
        parent,
        np.zeros(n_cells + 1, dtype=np.int64),
        np.full(n_cells + 1, NO_LIMIT),
        solid + 300,
    )
    assert allowed[solid:].all()


# --- Against the published algorithm and HiGHS -----------------------------------------------------


@st.composite
def medium_rows(draw):
    n = draw(st.integers(1, 25))
    row_sums = draw(st.lists(st.integers(1, 90), min_size=n, max_size=n))
    extra = draw(st.lists(st.integers(0, 5), min_size=n, max_size=n))
    room = draw(st.lists(st.one_of(st.none(), st.integers(0, 6)), min_size=n, max_size=n))
    upper = [None if more is None else more + k for more, k in zip(room, extra, strict=True)]
    return row_sums, sum(r * k for r, k in zip(row_sums, extra, strict=True)), upper


def solved(row_sums, gap, upper):
    status, runs, span = feasible_multiples(
        np.array(row_sums),
        np.zeros(len(row_sums), dtype=np.int64),
        np.array([NO_LIMIT if limit is None else limit for limit in upper]),
        gap,
        np.ones(len(row_sums), dtype=bool),
    )
    assert status == FEASIBLE
    return [expanded(runs[start:stop].tolist()) for start, stop in span]


@given(medium_rows())
def test_equals_algorithm_3_1_with_update_3_3(problem):
    row_sums, gap, upper = problem
    assert solved(row_sums, gap, upper) == feasible_values_3_1(row_sums, gap, upper)


@settings(max_examples=15)
@given(medium_rows(), st.randoms())
def test_ends_equal_those_of_highs(problem, random):
    row_sums, gap, upper = problem
    row = random.randrange(len(row_sums))
    values = solved(row_sums, gap, upper)[row]
    limits = [np.inf if limit is None else limit for limit in upper]
    assert (values[0], values[-1]) == highs(row_sums, gap, row, upper=limits)


# --- What must not change the answer ---------------------------------------------------------------


@st.composite
def audits(draw, max_size=3):
    """Counts, true statements about them and options; feasible by construction."""
    counts = draw(count_tables(max_rows=4, max_n=40, max_count=9))
    given_ = draw(statements(len(counts), len(counts[0]), max_size))
    given_ = tuple(one for one in given_ if holds(one, counts))
    decimals = draw(st.sampled_from([None, None, 0, 1, 2]))
    return counts, DisclosureRules(
        given=given_, decimals=decimals, rounding=draw(st.sampled_from(list(RoundingRule)))
    )


def answer(counts, options, **more):
    audit = audit_table(table_of(counts), ROW_BY_COL, options, **more)
    return {(cell.row["row"], cell.col["col"]): cell.values for cell in audit.cells()}


@given(audits())
def test_the_true_counts_are_always_feasible(problem):
    counts, options = problem
    for (row, col), runs in answer(counts, options).items():
        assert counts[int(row[1:])][int(col[1:])] in expanded(runs)


@given(audits(max_size=4))
def test_more_knowledge_never_adds_a_value(problem):
    counts, options = problem
    before = None
    for n_known in range(len(options.given) + 1):
        fewer = DisclosureRules(
            given=options.given[:n_known], decimals=options.decimals, rounding=options.rounding
        )
        after = {cell: set(expanded(runs)) for cell, runs in answer(counts, fewer).items()}
        assert before is None or all(after[cell] <= before[cell] for cell in after)
        before = after


@given(audits(), st.data())
def test_selected_cells_equal_the_full_answer(problem, data):
    counts, options = problem
    cells = [(i, j) for i in range(len(counts)) for j in range(len(counts[0]))]
    selected = data.draw(st.lists(st.sampled_from(cells), unique=True, min_size=1))
    full = answer(counts, options)
    assert answer(counts, options, selected=selected) == {
        (f"r{i}", f"c{j}"): full[f"r{i}", f"c{j}"] for i, j in selected
    }


@given(audits(), st.randoms())
def test_the_order_of_rows_and_columns_does_not_matter(problem, random):
    counts, options = problem
    rows, cols = list(range(len(counts))), list(range(len(counts[0])))
    random.shuffle(rows)
    random.shuffle(cols)
    moved = [[counts[i][j] for j in cols] for i in rows]
    new_row, new_col = (
        {f"{p}{old}": f"{p}{new}" for new, old in enumerate(o)} for p, o in (("r", rows), ("c", cols))
    )
    given_ = tuple(
        one.model_copy(
            update={
                "row": {"row": new_row[one.row["row"]]},
                "col": {name: [new_col[label] for label in some] for name, some in one.col.items()},
            }
        )
        for one in options.given
    )
    options_moved = DisclosureRules(given=given_, decimals=options.decimals, rounding=options.rounding)
    after = answer(moved, options_moved)
    assert answer(counts, options) == {
        (row, col): after[new_row[row], new_col[col]] for row in new_row for col in new_col
    }


@given(audits())
def test_runs_ascend_one_after_the_other_and_are_few(problem):
    for runs in answer(*problem).values():
        values = expanded(runs)
        assert values == sorted(set(values))
        assert all(start <= stop and step >= 1 for start, stop, step in runs)
        assert all(step == 1 for start, stop, step in runs if start == stop)
        assert len(runs) == fewest_runs(values)


@given(audits())
def test_json_round_trip(problem):
    counts, options = problem
    audit = audit_table(table_of(counts), ROW_BY_COL, options)
    read = json.loads(audit.to_json())
    assert read == audit.to_dict()
    cells = {(c["row"]["row"], c["col"]["col"]): [tuple(run) for run in c["values"]] for c in read["cells"]}
    assert cells == answer(counts, options)


@given(audits())
def test_conditionals_alone_say_as_much_as_counts(problem):
    counts, options = problem
    decimals, rule = options.decimals, options.rounding
    nonzero = [i for i, row in enumerate(counts) if any(row)]
    if decimals is not None:
        printed = [
            [rounded(Fraction(x, sum(counts[i])), decimals, rule.value) for x in counts[i]] for i in nonzero
        ]
        assume(all(map(any, printed)))  # a row of printed zeros is read as a zero row
        shown = {i: [Fraction(k, 10**decimals) for k in row] for i, row in zip(nonzero, printed, strict=True)}
    else:
        shown = {i: [Fraction(x, sum(counts[i])) for x in counts[i]] for i in nonzero}
    cells = [(i, j, p) for i, row in shown.items() for j, p in enumerate(row)]
    table = from_conditionals(
        histogram_of(counts).attributes,
        np.array([(i, j) for i, j, _ in cells]),
        [p for _, _, p in cells],
        ROW_BY_COL,
        sum(map(sum, counts)),
        decimals=decimals,
        where="table.csv",
    )
    audit = audit_table(table, ROW_BY_COL, options)
    assert {(c.row["row"], c.col["col"]): c.values for c in audit.cells()} == answer(counts, options)


@given(st.integers(2, 9), st.integers(2, 9), st.integers(1, 10**6))
def test_two_rows_answer_in_closed_form_for_any_sample_size(a, b, k):
    """With rows (a - 1, 1) and (b - 1, 1) the first takes every multiple in one residue class of b / gcd."""
    n = a * (1 + b * k) + b
    table = table_of([[a - 1, 1], [b - 1, 1]])
    table = TwoWayTable(
        row_attributes=table.row_attributes,
        col_attributes=table.col_attributes,
        row_index=table.row_index,
        counts=table.counts,
        n=n,
    )
    solution = solve_exact(table, (), np.ones(2, dtype=bool))
    step = lcm(a, b) // a
    last = 1 + b * k
    first = last - (last - 1) // step * step
    assert solution.values(0, 1) == [(first, last, step if last > first else 1)]


@given(count_tables(), st.integers(0, 6))
def test_a_statement_on_a_zero_row_holds_or_clashes(counts, lower):
    counts = [*counts, [0] * len(counts[0])]
    table = table_of(counts)
    known = [
        BoundStatement(
            number=1, row=-1, cells=np.ones(len(counts[0]), dtype=bool), lower=lower, upper=NO_LIMIT
        )
    ]
    wanted = np.ones(len(table.counts), dtype=bool)
    if lower == 0:
        assert (
            solve_exact(table, known, wanted).lower.tolist() == solve_exact(table, (), wanted).lower.tolist()
        )
    else:
        with pytest.raises(InfeasibleError) as caught:
            solve_exact(table, known, wanted)
        assert caught.value.clash == (1,)
