"""Hierarchies: round trip through a file, and agreement of all ways to climb."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from louver.schema.attribute import Attribute
from louver.schema.hierarchy import Hierarchy
from louver.schema.recode import Recode

labels = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]) | st.sampled_from(";,\n\"' \t"), min_size=1
)


@st.composite
def hierarchies(draw):
    """A tree grown from the leaves: each level groups the one below at random."""
    columns = [draw(st.lists(labels, min_size=1, max_size=8, unique=True))]
    for _ in range(draw(st.integers(0, 3))):
        below = list(dict.fromkeys(columns[-1]))
        above = {label: draw(st.sampled_from(["level1", "x", "y;z", 'q"q', "*"])) for label in below}
        columns.append([above[label] for label in columns[-1]])
    return Hierarchy.from_levels(columns)


@given(hierarchies())
def test_csv_round_trip(tmp_path_factory, tree):
    path = tmp_path_factory.mktemp("tree") / "tree.csv"
    tree.write_csv(path)
    assert Hierarchy.from_csv(path) == tree


@given(hierarchies())
def test_parents_compose_to_ancestors(tree):
    climbed = np.arange(len(tree.leaves))
    for level in range(tree.n_levels):
        assert np.array_equal(climbed, tree.ancestors(level))
        if level + 1 < tree.n_levels:
            climbed = tree.parents(level)[climbed]
    assert len(tree.levels[-1]) == 1


@given(hierarchies(), st.data())
def test_level_recode_equals_merge(tree, data):
    level = data.draw(st.integers(0, tree.n_levels - 1))
    attribute = Attribute(name="A", labels=tree.leaves, hierarchy=tree)
    lifted, codes = attribute.recoded(Recode("A", level=level))
    below: dict[str, tuple[str, ...]] = {}
    for leaf in tree.leaves:
        above = tree.ancestor_of(leaf, level)
        below[above] = (*below.get(above, ()), leaf)
    merged, merged_codes = attribute.recoded(Recode("A", merge=below))
    assert lifted.labels == merged.labels == tree.labels_at(level)
    assert np.array_equal(codes, merged_codes)
    assert lifted.hierarchy is not None
    assert lifted.hierarchy.levels == tree.levels[level:]
