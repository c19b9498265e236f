"""The joint audit against brute force: every table of whole numbers that looks the same."""

from __future__ import annotations

from itertools import combinations
from unittest.mock import patch

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from few_or_many import few_or_many
from louver.audit import audit
from louver.audit.cells import AuditCells
from louver.audit.explain import explain
from louver.audit.load import load
from louver.audit.options import AuditOptions
from louver.bounds import bounds
from louver.data.histogram import Histogram
from louver.optim.kernels.audit.propagate import UNBOUNDED
from louver.run import Run
from louver.schema.attribute import Attribute
from louver.schema.validate import validated
from louver.tables.problem import build, forms_of
from louver.tables.solve import decide, solve
from oracles.audit import counts_piece, known_piece, matching, shares_piece, tables

SHAPES = [(2, 2), (2, 3), (3, 2), (2, 2, 2), (4,), (3, 3)]
CAP = 7
"""Largest cell that is tried where no piece tells the total."""


def attributes_of(shape):
    return tuple(
        Attribute(name="abc"[axis], labels=tuple(f"{'abc'[axis]}{code}" for code in range(size)))
        for axis, size in enumerate(shape)
    )


def label(axis, code):
    return f"{'abc'[axis]}{code}"


@st.composite
def truths(draw, most=7):
    shape = draw(st.sampled_from(SHAPES))
    total = draw(st.integers(1, most if np.prod(shape) <= 6 else 5))
    cells = draw(st.lists(st.integers(0, int(np.prod(shape)) - 1), min_size=total, max_size=total))
    flat = np.bincount(cells, minlength=int(np.prod(shape)))
    return flat.reshape(shape)


@st.composite
def filters(draw, shape, axes):
    axis = draw(st.sampled_from(axes))
    codes = draw(st.lists(st.integers(0, shape[axis] - 1), min_size=1, unique=True))
    return {axis: sorted(codes)}


@st.composite
def count_tables(draw, shape, name):
    axes = draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, unique=True))
    where = draw(filters(shape, list(range(len(shape))))) if draw(st.booleans()) else {}
    wide = [axis for axis in axes if shape[axis] > 2 and axis not in where]
    groups, recode = {}, {}
    if wide and draw(st.booleans()):
        axis = draw(st.sampled_from(wide))
        cut = draw(st.integers(1, shape[axis] - 1))
        groups = {axis: [int(code >= cut) for code in range(shape[axis])]}
        recode = {
            "abc"[axis]: {
                "low": [label(axis, c) for c in range(cut)],
                "high": [label(axis, c) for c in range(cut, shape[axis])],
            }
        }
    totals = draw(st.booleans())
    kind = draw(st.sampled_from(["plain", "below", "base", "hide"]))
    below = draw(st.integers(2, 4)) if kind == "below" else None
    base = draw(st.integers(2, 5)) if kind == "base" else None
    hide = []
    if kind == "hide" and not groups:
        hide = draw(
            st.lists(st.tuples(*(st.integers(0, shape[axis] - 1) for axis in axes)), max_size=3, unique=True)
        )
    options = {
        "name": name,
        "by": ["abc"[axis] for axis in axes],
        "where": {"abc"[axis]: [label(axis, c) for c in codes] for axis, codes in where.items()},
        "recode": recode,
        "totals": totals,
        "below": below,
        "base": base,
        "hide": [{"abc"[axis]: label(axis, c) for axis, c in zip(axes, cell, strict=True)} for cell in hide],
    }
    oracle = counts_piece(
        name, axes, groups=groups, where=where, totals=totals, below=below, base=base, hide=hide
    )
    return options, oracle


@st.composite
def share_tables(draw, shape, name):
    order = draw(st.permutations(range(len(shape))))
    cut = draw(st.integers(1, len(shape) - 1))
    rows, cols = order[:cut], order[cut : cut + draw(st.integers(1, len(shape) - cut))]
    decimals = draw(st.sampled_from([None, 0, 1, 2]))
    half_even = decimals is not None and draw(st.booleans())
    told = draw(st.sampled_from(["none", "total", "rows"]))
    options = {
        "name": name,
        "rows": ["abc"[axis] for axis in rows],
        "cols": ["abc"[axis] for axis in cols],
        "decimals": decimals,
        "rounding": None if decimals is None else "half-even" if half_even else "half-up",
        "counts": told,
    }
    return options, shares_piece(name, rows, cols, decimals=decimals, half_even=half_even, told=told)


@st.composite
def statements(draw, truth, name):
    where = draw(filters(truth.shape, list(range(truth.ndim))))
    axis, codes = next(iter(where.items()))
    true = int(np.take(truth, codes, axis=axis).sum())
    low = max(0, true - draw(st.integers(0, 2)))
    high = true + draw(st.integers(0, 2))
    options = {
        "name": name,
        "where": {"abc"[axis]: [label(axis, c) for c in codes]},
        "at_least": low,
        "at_most": high,
    }
    return options, known_piece(name, where, low, high)


@st.composite
def systems(draw, kinds=("counts", "shares")):
    """Truth, options, oracle pieces, and whether the total is known."""
    truth = draw(truths())
    shape = truth.shape
    table, known, oracle = [], [], []
    for number in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(kinds)) if len(shape) > 1 else "counts"
        make = count_tables if kind == "counts" else share_tables
        options, piece = draw(make(shape, f"t{number}"))
        table.append(options)
        oracle.append(piece)
    if draw(st.booleans()):
        options, piece = draw(statements(truth, "k"))
        known.append(options)
        oracle.append(piece)
    is_known = truth.size > 4 or truth.max() > 3 or draw(st.booleans())
    if is_known:
        everyone = {"a": [label(0, c) for c in range(shape[0])]}
        total = int(truth.sum())
        known.append({"name": "n", "where": everyone, "exactly": total})
        oracle.append(known_piece("n", {0: list(range(shape[0]))}, total, total))
    return truth, {"tables": table, "known": known}, oracle, is_known


def problem_of(truth, options, *, with_truth=True):
    attributes = attributes_of(truth.shape)
    histogram = Histogram.from_dense(truth, attributes)
    every = [{"name": "cells", "by": [a.name for a in attributes]}]
    checked = validated(AuditOptions, {**options, "targets": every}, "spec")
    loaded = load(checked, attributes, histogram)
    return loaded, build(loaded.domain, loaded.pieces, loaded.truth if with_truth else None)


def bounds_of(truth, options, masks, *, with_truth=True):
    """Answer for sums of cells, each given as a mask over the cells."""
    loaded, problem = problem_of(truth, options, with_truth=with_truth)
    assert loaded.domain.n_cells == truth.size
    answers = []
    for mask in masks:
        assign = np.where(mask.ravel(), 0, -1)
        answers.append(solve(problem, forms_of(problem, assign, np.array([0])), Run()))
    return answers


def candidates_of(truth, is_total_known):
    total = int(truth.sum())
    return list(tables(truth.shape, total if is_total_known else CAP, total if is_total_known else None))


def masks_of(truth, draw):
    cells = []
    for flat in range(truth.size):
        mask = np.zeros(truth.size, dtype=bool)
        mask[flat] = True
        cells.append(mask.reshape(truth.shape))
    sums = draw(st.lists(st.lists(st.booleans(), min_size=truth.size, max_size=truth.size), max_size=2))
    return cells + [np.array(mask).reshape(truth.shape) for mask in sums]


SETTINGS = settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)


@few_or_many(5, 20, given(system=systems(), data=st.data()), SETTINGS)
def test_bounds_are_those_of_all_tables_that_look_the_same(system, data):
    truth, options, oracle, is_total_known = system
    masks = masks_of(truth, data.draw)
    same = matching(truth, oracle, candidates_of(truth, is_total_known))
    for mask, answer in zip(masks, bounds_of(truth, options, masks), strict=True):
        values = [int(table[mask].sum()) for table in same]
        assert answer.lower[0] == min(values)
        assert answer.is_lower_tight[0]
        if answer.upper[0] >= UNBOUNDED:
            assert not is_total_known
            assert max(values) > max(v for table, v in zip(same, values, strict=True) if table.max() <= 3)
        elif is_total_known or answer.upper[0] <= CAP:
            assert answer.upper[0] == max(values)
            assert answer.is_upper_tight[0]


def frame_of(truth):
    """The table as records with a count."""
    import pyarrow as pa

    cells = list(np.ndindex(truth.shape))
    columns = {"abc"[axis]: [label(axis, cell[axis]) for cell in cells] for axis in range(truth.ndim)}
    return pa.table({**columns, "count": [int(truth[cell]) for cell in cells]})


@few_or_many(5, 20, given(system=systems(), data=st.data()), SETTINGS)
def test_a_decision_is_that_of_all_tables_that_look_the_same(system, data):
    truth, options, oracle, is_total_known = system
    masks = masks_of(truth, data.draw)
    same = matching(truth, oracle, candidates_of(truth, is_total_known))
    slack = data.draw(st.integers(0, 1))
    _, problem = problem_of(truth, options)
    for mask in masks:
        true = int(truth[mask].sum())
        floor, ceiling = np.array([true - slack]), np.array([true + slack])
        forms = forms_of(problem, np.where(mask.ravel(), 0, -1), np.array([0]))
        verdict = decide(problem, forms, floor, ceiling, Run())[0]
        values = [int(table[mask].sum()) for table in same]
        if is_total_known:
            assert verdict == int(min(values) >= floor[0] and max(values) <= ceiling[0])
        elif verdict == 1:
            assert min(values) >= floor[0] and max(values) <= ceiling[0]


DECOMPOSABLE = ["a", "ab", "a b", "ab bc", "ab b bc", "ac ab", "ab c", "a b c", "abc bc"]
NOT_DECOMPOSABLE = ["ab bc ac"]


@SETTINGS
@given(truth=truths(), data=st.data(), has_totals=st.booleans())
def test_decomposable_sets_are_bounded_in_closed_form(truth, data, has_totals):
    """No program, no search: the bounds of every cell are those of all tables with these margins."""
    names = "abc"[: truth.ndim]
    fitting = [text for text in DECOMPOSABLE + NOT_DECOMPOSABLE if set(text) - {" "} <= set(names)]
    chosen = data.draw(st.sampled_from(fitting)).split()
    options = {"tables": [{"name": by, "by": list(by), "totals": has_totals} for by in chosen], "known": []}
    oracle = [counts_piece(by, [names.index(x) for x in by], totals=has_totals) for by in chosen]
    _, problem = problem_of(truth, options)
    every = np.arange(truth.size)
    answer = solve(problem, forms_of(problem, every, every), Run())
    same = np.array([t.ravel() for t in matching(truth, oracle, candidates_of(truth, True))])
    assert np.array_equal(answer.lower, same.min(axis=0)) and np.array_equal(answer.upper, same.max(axis=0))
    assert answer.certified.all()
    is_closed = " ".join(chosen) in DECOMPOSABLE
    assert problem.is_tight.all() == is_closed and (not is_closed or answer.programs + answer.repairs == 0)


@few_or_many(2, 10, given(system=systems(kinds=("counts",))), SETTINGS)
def test_reasons_are_smallest_sets(system):
    truth, options, oracle, _ = system
    if len(oracle) <= 4:
        check_reasons(truth, options, oracle, int(truth.sum()) + 2)


@few_or_many(5, 20, given(truth=truths(most=3), data=st.data()), SETTINGS)
def test_reasons_that_hold_conditionals_are_smallest_sets(truth, data):
    """Twice the truth has the same shares: tables up to that size tell what a set without totals leaves open."""
    if truth.ndim < 2 or truth.size > 6:
        return
    made = [data.draw(share_tables(truth.shape, "t0"))]
    made += [data.draw(count_tables(truth.shape, f"t{n}")) for n in range(1, data.draw(st.integers(1, 3)))]
    options = {"tables": [table for table, _ in made], "known": []}
    check_reasons(truth, options, [piece for _, piece in made], 2 * int(truth.sum()))


def check_reasons(truth, options, oracle, largest):
    """Every exact positive cell is explained by pieces that determine it, and no fewer do."""
    n = int(truth.sum())
    total = {"name": "people", "where": {"a": [label(0, c) for c in range(truth.shape[0])]}, "exactly": n}
    loaded, _ = problem_of(truth, {**options, "known": [*options["known"], total]})
    oracle = [*oracle, known_piece("people", {0: list(range(truth.shape[0]))}, n, n)]
    true, everything = truth.ravel(), np.arange(truth.size)
    same = np.array([t.ravel() for t in matching(truth, oracle, candidates_of(truth, True))])
    chosen = np.flatnonzero((same == true).all(axis=0) & (true > 0))
    cells = AuditCells(assigns=(everything,), cells=(everything,))
    reasons = explain(loaded, cells.pick(chosen), true[chosen], true[chosen], Run())
    # The total being unknown to a smaller set, larger tables count, too.
    others = [table for size in range(largest + 1) for table in tables(truth.shape, size, size)]
    looks_same = np.array([[piece.looks_same(table, truth) for table in others] for piece in oracle])
    differs = np.array([table.ravel() for table in others]) != true

    def determine(pieces, cell):
        return not (differs[:, cell] & looks_same[list(pieces)].all(axis=0)).any()

    for cell, reason in zip(chosen, reasons, strict=True):
        assert reason is not None and reason.is_smallest
        assert determine(reason.pieces, cell)
        for fewer in combinations(range(len(oracle)), len(reason.pieces) - 1):
            assert not determine(fewer, cell)


@SETTINGS
@given(system=systems())
def test_an_outsider_finds_the_same_bounds(system):
    truth, options, oracle, is_total_known = system
    if not is_total_known:
        return
    mask = np.zeros(truth.size, dtype=bool)
    mask[0] = True
    answer = bounds_of(truth, options, [mask.reshape(truth.shape)], with_truth=False)[0]
    values = [int(t.ravel()[0]) for t in matching(truth, oracle, candidates_of(truth, True))]
    assert (answer.lower[0], answer.upper[0]) == (min(values), max(values))
    assert answer.certified[0]


@few_or_many(5, 20, given(truth=truths(), decimals=st.sampled_from([None, 1, 2])), SETTINGS)
def test_the_verb_for_one_table_gives_the_same_bounds(truth, decimals):
    if truth.ndim < 2:
        return
    rows, cols = ["a"], ["abc"[axis] for axis in range(1, truth.ndim)]
    single = bounds(frame_of(truth), rows=rows, cols=cols, weight="count", decimals=decimals)
    table = {"name": "t", "rows": rows, "cols": cols, "decimals": decimals, "counts": "total"}
    joint = audit(
        frame_of(truth), weight="count", tables=[table], targets=[{"by": [*rows, *cols]}], no_advice=True
    )
    expected = {tuple({**cell.row, **cell.col}.items()): (cell.lower, cell.upper) for cell in single.cells()}
    for cell in joint.cells:
        assert (cell.lower, cell.upper) == expected[tuple(cell.cell.items())]
        assert cell.certified


def decide_early(*given, is_patient=False, **named):
    """Decisions before anything is bounded; none afterwards."""
    return np.full(len(given[2]), -1, dtype=np.int8) if is_patient else decide(*given, **named)


def bound_nothing(problem, forms, run, seconds, witnesses):
    """Bounds as far as intervals tell."""
    return solve(problem, forms, run, 0.0, witnesses)


@few_or_many(5, 20, given(system=systems()), SETTINGS)
def test_small_counts_of_large_systems_are_decided_before_all_is_bounded(system):
    truth, options, oracle, is_total_known = system
    if not is_total_known:
        return
    by = ["abc"[axis] for axis in range(truth.ndim)]
    early = {"LARGE": 0, "decide": decide_early, "solve": bound_nothing}
    with patch.multiple("louver.audit.targets", **early):
        asked = {"targets": [{"by": by}], "small": 4, "no_advice": True}
        found = audit(frame_of(truth), weight="count", **options, **asked)
    same = matching(truth, oracle, candidates_of(truth, True))
    cells = {tuple(cell.cell.values()): cell for cell in found.cells}
    for place in zip(*np.nonzero((truth > 0) & (truth < 4)), strict=True):
        cell = cells[tuple(label(axis, code) for axis, code in enumerate(place))]
        assert cell.is_exact == (len({int(table[place]) for table in same}) == 1)
        assert not cell.is_undecided


@few_or_many(5, 20, given(system=systems(kinds=("counts",))), SETTINGS)
def test_advice_leaves_no_small_cell_exact(system):
    truth, options, oracle, is_total_known = system
    if not is_total_known:
        return
    by = ["abc"[axis] for axis in range(truth.ndim)]
    found = audit(frame_of(truth), weight="count", **options, targets=[{"by": by}], small=3)
    advice = found.advice
    if advice is None:
        return
    changed = {name for name, _ in advice.coarsen} | set(advice.leave_out)
    kept = [piece for piece in oracle if piece.name not in changed]
    assert advice.is_safe
    same = matching(truth, kept, candidates_of(truth, True))
    for flat, true in enumerate(truth.ravel()):
        if 0 < true < 3:
            assert len({int(table.ravel()[flat]) for table in same}) > 1
