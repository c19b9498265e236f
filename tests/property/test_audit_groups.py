"""The claim of a joint audit against brute force: every group that sets of labels describe, every table that looks the same."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from few_or_many import few_or_many
from louver._verdict import Level
from louver.audit import audit
from oracles.descriptions import all_groups, determined, shown_counts, shown_shares

SHAPES = [(2, 2), (3, 2), (2, 2, 2), (4, 2), (3, 3), (5,), (2, 3, 2)]
SMALL = 3
SETTINGS = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)


def label(axis, code):
    return f"{'abc'[axis]}{code}"


@st.composite
def truths(draw):
    shape = draw(st.sampled_from(SHAPES))
    size = int(np.prod(shape))
    total = draw(st.integers(3, 8 if size <= 6 else 6 if size <= 9 else 4))
    cells = draw(st.lists(st.integers(0, size - 1), min_size=total, max_size=total))
    return np.bincount(cells, minlength=size).reshape(shape)


@st.composite
def recodings(draw, size):
    """New codes of the labels, numbered as they first appear; each label by itself half of the time."""
    if size < 3 or draw(st.booleans()):
        return list(range(size))
    codes = draw(st.lists(st.integers(0, size - 2), min_size=size, max_size=size))
    first = {}
    return [first.setdefault(code, len(first)) for code in codes]


@st.composite
def count_tables(draw, shape, name):
    """A table with filters and recodes, as options, as the oracle has it, and what its labels stand for."""
    axes = draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, unique=True))
    filtered = draw(st.lists(st.integers(0, len(shape) - 1), max_size=2, unique=True))
    where = {
        axis: sorted(draw(st.lists(st.integers(0, shape[axis] - 1), min_size=1, unique=True)))
        for axis in filtered
    }
    by = {
        axis: draw(recodings(shape[axis])) if axis not in where else list(range(shape[axis])) for axis in axes
    }
    recode, meaning = {}, {}
    for axis, codes in by.items():
        if len(set(codes)) < shape[axis]:
            groups = {
                f"g{new}": [label(axis, c) for c in range(shape[axis]) if codes[c] == new]
                for new in set(codes)
            }
            recode["abc"[axis]] = groups
            meaning |= {("abc"[axis], new): old for new, old in groups.items()}
    kind = draw(st.sampled_from(["plain", "plain", "below", "base"]))
    below = draw(st.integers(2, 3)) if kind == "below" else None
    base = draw(st.integers(2, 3)) if kind == "base" else None
    options = {
        "name": name,
        "by": ["abc"[axis] for axis in axes],
        "where": {"abc"[axis]: [label(axis, c) for c in codes] for axis, codes in where.items()},
        "recode": recode,
        "below": below,
        "base": base,
    }
    totals = draw(st.booleans())
    subsets = [axes] if not totals else [c for n in range(len(axes) + 1) for c in combinations(axes, n)]
    shown = [
        shown_counts(shape, {axis: by[axis] for axis in subset}, where, below=below, base=base)
        for subset in subsets
    ]
    return {**options, "totals": totals}, shown, meaning


@st.composite
def share_tables(draw, shape, name):
    order = draw(st.permutations(range(len(shape))))
    cut = draw(st.integers(1, len(shape) - 1))
    rows, cols = order[:cut], order[cut:]
    decimals = draw(st.sampled_from([None, 0, 1]))
    options = {
        "name": name,
        "rows": ["abc"[axis] for axis in rows],
        "cols": ["abc"[axis] for axis in cols],
        "decimals": decimals,
    }
    return options, [shown_shares(shape, rows, cols, decimals)], {}


@st.composite
def publications(draw, shape, n_tables):
    """So many tables; some of shares."""
    kinds = [count_tables, count_tables, share_tables] if len(shape) > 1 else [count_tables]
    return [draw(draw(st.sampled_from(kinds))(shape, f"t{n}")) for n in range(n_tables)]


def frame_of(truth):
    cells = list(np.ndindex(truth.shape))
    columns = {"abc"[axis]: [label(axis, cell[axis]) for cell in cells] for axis in range(truth.ndim)}
    return pa.table({**columns, "count": [int(truth[cell]) for cell in cells]})


def asked(truth, tables, **more):
    everyone = [{"where": {"a": [label(0, c) for c in range(truth.shape[0])]}, "exactly": int(truth.sum())}]
    return audit(
        frame_of(truth),
        weight="count",
        tables=tables,
        known=everyone,
        small=SMALL,
        no_advice=True,
        seconds=600,
        **more,
    )


def mask_of(cell, shape, made):
    """Cells of the table of all labels that a cell of the result stands for."""
    options, meaning = next(
        ((options, meaning) for options, _, meaning in made if options["name"] == cell.table), ({}, {})
    )
    mask = np.ones(shape, dtype=bool)
    labels = {name: meaning.get((name, text)) or text.split(" or ") for name, text in cell.cell.items()}
    for given_labels in (labels, options.get("where", {})):
        for name, chosen in given_labels.items():
            axis = "abc".index(name)
            inside = [label(axis, code) in chosen for code in range(shape[axis])]
            mask &= np.array(inside).reshape([-1 if other == axis else 1 for other in range(len(shape))])
    return mask.ravel()


@few_or_many(12, 60, given(truth=truths(), data=st.data(), decide=st.booleans()), SETTINGS)
def test_no_small_group_that_can_be_described_is_missed(truth, data, decide):
    made = data.draw(publications(truth.shape, data.draw(st.integers(1, 3))))
    found = asked(truth, [options for options, _, _ in made], decide=decide)
    groups = all_groups(truth.shape)
    is_known, is_small = determined(truth, [one for _, shown, _ in made for one in shown], groups, SMALL)
    masks = [mask_of(cell, truth.shape, made) for cell in found.disclosed()]
    for mask in masks:
        (at,) = np.flatnonzero((groups == mask).all(axis=1))
        assert is_known[at] and is_small[at]
    # A group is the same whether cells that everybody knows to be empty are in it or not.
    is_empty = groups[is_known & (groups.sum(axis=1) == 1) & ~(groups @ truth.ravel() > 0)].any(axis=0)
    for group in groups[is_known & is_small]:
        assert any(not (mask & ~group & ~is_empty).any() for mask in masks)
    assert found.verdict.level is (Level.STOP if (is_known & is_small).any() else Level.OK)
    assert not list(found.undecided())


@few_or_many(5, 25, given(truth=truths(), data=st.data()), SETTINGS)
def test_a_further_table_never_makes_the_verdict_safer(truth, data):
    tables = [options for options, _, _ in data.draw(publications(truth.shape, data.draw(st.integers(2, 3))))]
    fewer, more = (asked(truth, some, decide=True).verdict.level for some in (tables[:-1], tables))
    assert fewer is Level.OK or more is Level.STOP
