"""Small valid problems for the property tests."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from louver.data.regions import RegionTree
from louver.topdown.knowledge.implied import UNBOUNDED, LevelStatements


@st.composite
def spines(draw, max_depth=3, max_children=3, max_leaves=6):
    """Trees with one to three levels below the root."""
    paths = [("r",)]
    for depth in range(draw(st.integers(1, max_depth))):
        longer = []
        for path in paths:
            n = draw(st.integers(1, max_children))
            longer.extend((*path, f"{depth}{i}") for i in range(n))
        if len(longer) > max_leaves:
            break
        paths = longer
    names = [f"level{i}" for i in range(len(paths[0]))]
    return RegionTree.from_columns(paths, names)


@st.composite
def laminar_masks(draw, n_types):
    """Nested or disjoint sets of types, the set of all among them."""
    masks = {(1 << n_types) - 1}
    for _ in range(draw(st.integers(0, 3))):
        mask = draw(st.integers(1, (1 << n_types) - 1))
        if all(mask & other in (0, mask, other) for other in masks):
            masks.add(mask)
    masks.update(1 << t for t in range(n_types) if draw(st.booleans()))
    return tuple(sorted(masks))


@st.composite
def bounds_around(draw, masks, vectors):
    """Statements that hold for given type counts (regions, types): exact, one-sided, two-sided or none."""
    lower = np.zeros((len(vectors), len(masks)), dtype=np.int64)
    upper = np.full((len(vectors), len(masks)), UNBOUNDED)
    for row, x in enumerate(vectors):
        for column, mask in enumerate(masks):
            held = sum(int(x[t]) for t in range(len(x)) if mask >> t & 1)
            sort = draw(st.sampled_from(["exact", "lower", "upper", "both", "none"]))
            if sort in ("exact", "lower", "both"):
                lower[row, column] = held if sort == "exact" else max(0, held - draw(st.integers(0, 2)))
            if sort in ("exact", "upper", "both"):
                upper[row, column] = held if sort == "exact" else held + draw(st.integers(0, 2))
    return LevelStatements(masks=masks, lower=lower, upper=upper)


@st.composite
def stated_trees(draw, max_types=3, max_count=3):
    """A spine, types, type counts of its leaves, and statements about every level that hold for them."""
    spine = draw(spines())
    n_types = draw(st.integers(1, max_types))
    rows = [[draw(st.integers(0, max_count)) for _ in range(n_types)] for _ in spine.leaves]
    truth = [np.array(rows, dtype=np.int64)]
    for level in range(spine.n_levels - 2, -1, -1):
        truth.insert(0, spine.add_up(level, truth[0]))
    statements = []
    for level in range(spine.n_levels):
        if level == spine.n_levels - 1:
            masks = draw(laminar_masks(n_types))
        else:
            simple = [*(1 << t for t in range(n_types)), (1 << n_types) - 1]
            masks = tuple(sorted({mask for mask in simple if draw(st.integers(0, 3)) == 0}))
        statements.append(draw(bounds_around(masks, truth[level])))
    return spine, n_types, truth, statements
