"""Further cells to hide: every small cell protected from readers who know what a mark means, and no cell too many."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import LinearConstraint, milp

import louver as lv
from louver.audit.cells import AuditCells, Small
from louver.audit.hide import hide
from louver.audit.load import load
from louver.audit.options import AuditOptions
from louver.data.histogram import Histogram
from louver.run import Run
from louver.schema.attribute import Attribute
from louver.schema.validate import validated
from oracles.hiding import Hiding, exact_small

NOTHING_ELSE = Small(cells=AuditCells(assigns=(), cells=()), floor=np.zeros(0, int), ceiling=np.zeros(0, int))


def attributes_of(shape):
    return tuple(
        Attribute(name="abc"[axis], labels=tuple(f"{'abc'[axis]}{code}" for code in range(size)))
        for axis, size in enumerate(shape)
    )


def patterns(truth, tables, within=0.0, seconds=600.0, ask=lambda pieces, left: (NOTHING_ELSE, True)):
    """The patterns of tables, where nothing but their own small cells is asked about unless `ask` does."""
    attributes = attributes_of(truth.shape)
    options = validated(AuditOptions, {"tables": tables}, "test")
    loaded = load(options, attributes, Histogram.from_dense(truth, attributes))
    deadline = time.monotonic() + seconds
    return hide(loaded, options.tables, within, ask, Run(), deadline)


def crossed(by, below=3, **more):
    return {"name": by, "by": list(by), "totals": True, "below": below, **more}


def records(truth):
    cells = list(np.ndindex(truth.shape))
    columns = {"abc"[axis]: [f"{'abc'[axis]}{cell[axis]}" for cell in cells] for axis in range(truth.ndim)}
    return pa.table({**columns, "count": [int(truth[cell]) for cell in cells]})


def fewest_by_force(truth, below):
    """Fewest further numbers of a two-way table over all patterns, zeros shown, for the readers that a pattern can keep out."""
    table = Hiding((0, 1), below)
    true = table.sums(truth.shape) @ truth.ravel()
    is_small = (true > 0) & (true < below)
    others = np.flatnonzero(true >= below)
    hidden_all = [(table, true > 0)]
    by_mark = exact_small(truth, hidden_all, is_knowing=True)
    lost = exact_small(truth, hidden_all, is_knowing=False)
    for size in range(len(others) + 1):
        for extra in itertools.combinations(others, size):
            hidden = is_small.copy()
            hidden[list(extra)] = True
            published = [(table, hidden)]
            if exact_small(truth, published, is_knowing=True) <= by_mark and (
                exact_small(truth, published, is_knowing=False) <= lost
            ):
                return size, len(by_mark - lost)
    raise AssertionError("hiding everything does")


@pytest.mark.parametrize(
    "truth",
    [
        [[1, 4], [3, 3]],
        [[2, 4], [3, 0]],
        [[1, 3, 0], [2, 3, 0]],
        [[2, 0, 3], [3, 3, 0]],
        [[1, 1, 4], [3, 0, 3]],
        [[1, 1], [3, 4]],
    ],
    ids=str,
)
def test_as_few_as_brute_force_finds(truth):
    truth = np.array(truth)
    found = patterns(truth, [crossed("ab")])[0]
    assert found.is_safe and found.is_least and found.is_possible
    assert (found.n_added, found.by_mark) == fewest_by_force(truth, 3)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape", [(4, 5), (3, 3, 3)], ids=str)
def test_every_small_cell_is_protected_as_asked(shape, seed, monkeypatch):
    monkeypatch.setattr("louver.audit.hide.ALL_EFFORT", 0.2)
    truth = np.random.default_rng(seed).negative_binomial(1, 0.06, size=shape)
    for within in (0.0, 30.0):
        assert patterns(truth, [crossed("abc"[: len(shape)], 5)], within)[0].is_safe


def test_row_totals_that_force_ones_are_not_published():
    """Two hidden cells whose sum is 2 are 1 and 1 for everybody who knows that empty cells are shown."""
    truth = np.array([[1, 1, 20], [1, 1, 20], [20, 20, 20]])
    asked = {"weight": "count", "no_advice": True}
    found = lv.audit(records(truth), tables=[crossed("ab", 5)], hide=True, **asked)
    assert found.summary.small_exact and {cell.lower for cell in found.disclosed()} == {1}
    [plan] = found.hide
    assert plan.is_safe and plan.cells
    again = lv.audit(records(truth), tables=[crossed("ab", 5, hide=list(plan.cells))], hide=True, **asked)
    assert not again.summary.small_exact and not list(again.undecided())
    assert again.hide[0].cells == () and again.hide[0].is_safe


def test_small_cells_that_only_their_mark_protects_are_counted():
    """A small total of four small cells: each is 1 for a reader who can tell that the total is small."""
    truth = np.array([[1, 1, 1, 1], [9, 8, 7, 9]])
    [found] = patterns(truth, [crossed("ab", 5)]).values()
    assert found.is_safe and found.by_mark == 5


@pytest.mark.parametrize("seed", [0, 2])
def test_three_linked_tables_get_the_fewest_cells(seed):
    """Each shows totals of the other two, so that none can be protected alone."""
    truth = np.random.default_rng(seed).negative_binomial(1, 0.15, size=(4, 3, 3))
    tables = [crossed(by, 5) for by in ("ab", "bc", "ac")]
    found = lv.audit(records(truth), weight="count", tables=tables, hide=True, no_advice=True, seconds=600)
    assert all(plan.is_safe and plan.is_least for plan in found.hide)
    hidden = [{**table, "hide": list(plan.cells)} for table, plan in zip(tables, found.hide, strict=True)]
    again = lv.audit(records(truth), weight="count", tables=hidden, no_advice=True, seconds=600)
    assert not list(again.disclosed()) and not list(again.undecided())


INDUSTRIES = np.array([[18, 1, 3], [12, 14, 18], [29, 30, 55], [2, 0, 22], [31, 20, 13], [5, 9, 7]])
SECTORS = {"a0": "S", "a1": "S", "a2": "T", "a3": "T", "a4": "U", "a5": "U"}


@pytest.mark.parametrize("is_column", [False, True], ids=["recode", "column"])
def test_a_table_and_its_coarsening_are_protected_together(is_column):
    """Industry x race and sector x race, where the sector is a recode or a column of its own."""
    data = records(INDUSTRIES)
    data = data.append_column("sector", [[SECTORS[label] for label in data["a"].to_pylist()]])
    merged = {sector: [a for a, one in SECTORS.items() if one == sector] for sector in "STU"}
    coarse = (
        {**crossed("ab", 5), "name": "coarse", "by": ["sector", "b"]}
        if is_column
        else {**crossed("ab", 5, recode={"a": merged}), "name": "coarse"}
    )
    found = lv.audit(
        data, weight="count", tables=[crossed("ab", 5), coarse], hide=True, no_advice=True, seconds=600
    )
    assert all(plan.is_safe and plan.is_least for plan in found.hide)
    tables = [Hiding((0, 1), 5), Hiding((0, 1), 5, {0: (0, 0, 1, 1, 2, 2)})]
    names = {"a": 0, "sector": 0, "b": 1}
    published = []
    for table, plan in zip(tables, found.hide, strict=True):
        true = table.sums(INDUSTRIES.shape) @ INDUSTRIES.ravel()
        hidden, labels = (true > 0) & (true < 5), list(table.labels(INDUSTRIES.shape))
        for cell in plan.cells:
            codes = {
                names[name]: "STU".find(label) if label in "STU" else int(label[1:])
                for name, label in cell.items()
            }
            hidden[labels.index(codes)] = True
        published.append((table, hidden))
    for is_knowing in (False, True):
        assert not exact_small(INDUSTRIES, published, is_knowing=is_knowing, more=2)


def test_a_table_beside_it_can_make_hiding_pointless():
    truth = np.array([[1, 4], [3, 3]])
    beside = {"name": "same", "by": ["a", "b"]}
    found = patterns(truth, [crossed("ab"), beside])
    assert list(found) == [0] and not found[0].is_safe and not found[0].is_possible
    told = lv.audit(records(truth), weight="count", tables=[crossed("ab"), beside], hide=True).hide[0].words
    assert told == "no choice of cells protects all small ones, given the other tables"


def test_without_time_no_pattern_is_safe():
    found = patterns(np.array([[1, 4], [3, 3]]), [crossed("ab")], seconds=-1)
    assert not found[0].is_safe and found[0].is_possible


def test_a_pattern_that_the_audit_was_not_asked_about_is_not_safe(monkeypatch):
    """Time ends with the first question, which names a further count: what it would have said of the next pattern is open."""
    clock = iter([0.0] * 10_000)

    def ask(pieces, left):
        monkeypatch.setattr(time, "monotonic", lambda: 1e9)
        everybody = AuditCells(assigns=(np.zeros(4, dtype=np.int64),), cells=(np.array([0]),))
        return Small(cells=everybody, floor=np.array([11]), ceiling=np.array([11])), True

    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    found = patterns(np.array([[1, 4], [3, 3]]), [crossed("ab")], ask=ask)[0]
    assert not found.is_safe and found.is_possible


def test_a_question_that_was_not_asked_to_its_end_leaves_no_pattern_safe():
    found = patterns(
        np.array([[1, 4], [3, 3]]), [crossed("ab")], ask=lambda pieces, left: (NOTHING_ELSE, False)
    )
    assert not found[0].is_safe and found[0].is_possible


def test_further_counts_that_the_audit_finds_are_protected_too():
    """Two hidden cells whose sum the row total tells are a group of 3 people."""
    truth = np.array([[1, 2, 20], [20, 20, 20], [20, 20, 20]])
    pair = np.where(np.arange(9) < 2, 0, -1)
    wanted = Small(
        cells=AuditCells(assigns=(pair,), cells=(np.array([0]),)), floor=np.array([3]), ceiling=np.array([3])
    )
    answers = iter([wanted, NOTHING_ELSE])
    alone = patterns(truth, [crossed("ab", 5)])[0]
    both = patterns(truth, [crossed("ab", 5)], ask=lambda pieces, left: (next(answers), True))[0]
    assert alone.is_safe and both.is_safe and both.n_added > alone.n_added
    assert np.concatenate(both.hidden)[[2, 9]].any()


def test_nothing_small_needs_no_hiding():
    found = patterns(np.array([[9, 8], [7, 9]]), [crossed("ab")])[0]
    assert found.n_primary == found.n_added == 0 and found.is_safe


def test_cells_that_the_table_hides_already_are_kept_and_not_proposed():
    truth = np.array([[1, 4, 9], [5, 6, 9], [9, 9, 9]])
    mine = [{"a": "a0", "b": "b1"}, {"a": "a1", "b": "b0"}, {"a": "a1", "b": "b1"}]
    found = patterns(truth, [crossed("ab", hide=mine)])[0]
    assert found.is_safe and found.n_added == 0
    assert sum(int(cells.sum()) for cells in found.hidden) == 4


def test_a_mark_range_says_which_cells_may_be_hidden():
    """A mark that stands for at most 4 people cannot hide 5 and more."""
    truth = np.array([[1, 4, 9], [5, 6, 9], [9, 9, 9]])
    found = patterns(truth, [crossed("ab", mark_range=[1, 4])])[0]
    assert not found.is_safe and not found.is_possible


def test_rounded_tables_are_taken_as_they_are_printed():
    """Numbers to base 5 leave a single small cell open; exact ones would not."""
    truth = np.array([[1, 40], [30, 30]])
    assert patterns(truth, [crossed("ab", base=5)])[0].n_added == 0
    assert patterns(truth, [crossed("ab")])[0].n_added == 3


def test_a_coarser_column_of_another_table_is_taken_for_a_rule():
    """Industry by race and sector by race: 60 people are too few to prove that industries lie in sectors, but everybody knows it."""
    people = [[1, 0, 0], [0, 1, 3], [6, 5, 9], [8, 14, 13]]
    data = pa.table(
        {
            "industry": [f"i{i}" for i, row in enumerate(people) for n in row for _ in range(n)],
            "sector": [f"s{i // 2}" for i, row in enumerate(people) for n in row for _ in range(n)],
            "race": [f"r{r}" for row in people for r, n in enumerate(row) for _ in range(n)],
        }
    )
    tables = [{"name": by, "by": [by, "race"], "totals": True, "below": 4} for by in ("industry", "sector")]
    found = lv.audit(data, tables=tables, hide=True)
    plans = {plan.table: [dict(cell) for cell in plan.cells] for plan in found.hide}
    people = np.array(people)
    rows, lower, upper, small = [], [], [], []
    for table, sizes in (("industry", 1), ("sector", 2)):
        for block, race in itertools.product([None, *range(4 // sizes)], [None, *range(3)]):
            inside = np.zeros((4, 3), dtype=bool)
            inside[
                slice(None) if block is None else slice(block * sizes, (block + 1) * sizes),
                slice(None) if race is None else race,
            ] = True
            cell = {} if block is None else {table: f"{table[0]}{block}"}
            cell |= {} if race is None else {"race": f"r{race}"}
            count = int(people[inside].sum())
            is_small = 0 < count < 4
            hidden = is_small or cell in plans[table]
            rows.append(inside.ravel().astype(float))
            lower.append(1 if is_small else 4 if hidden else count)
            upper.append(3 if is_small else np.inf if hidden else count)
            if is_small:
                small.append(rows[-1])
    limits = LinearConstraint(np.array(rows), lower, upper)
    for cell in small:
        low, high = (
            milp(sign * cell, constraints=limits, integrality=np.ones(12)).fun * sign for sign in (1, -1)
        )
        assert low < high or not all(plan.is_safe for plan in found.hide)
    assert all(plan.is_safe or plan.by_mark for plan in found.hide)
