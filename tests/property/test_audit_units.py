"""Where units are known, no group of few units that can be described is missed, however many people it has."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import louver.tables.descriptions as descriptions
from few_or_many import few_or_many
from louver._verdict import Level
from louver.audit import audit
from oracles.descriptions import all_groups, determined
from oracles.units import truth_of, units_in_groups
from property.test_audit_groups import SETTINGS, SHAPES, SMALL, label, mask_of, publications


@st.composite
def households(draw):
    """Records as (cell, unit): few units of several people, who share cells more often than not."""
    shape = draw(st.sampled_from(SHAPES))
    size = int(np.prod(shape))
    n_people = draw(st.integers(3, 8 if size <= 6 else 6 if size <= 9 else 4))
    n_units = draw(st.integers(1, n_people))
    cells = draw(st.lists(st.integers(0, size - 1), min_size=n_people, max_size=n_people))
    units = draw(st.lists(st.integers(0, n_units - 1), min_size=n_people, max_size=n_people))
    return shape, list(zip(cells, units, strict=True))


def frame_of(shape, records):
    codes = [np.unravel_index(cell, shape) for cell, _ in records]
    columns = {"abc"[axis]: [label(axis, code[axis]) for code in codes] for axis in range(len(shape))}
    return pa.table({**columns, "home": [f"h{unit}" for _, unit in records]})


def schema_of(shape):
    """Labels that nobody has are known, too."""
    return {
        "abc"[axis]: {"labels": [label(axis, code) for code in range(shape[axis])]}
        for axis in range(len(shape))
    }


def asked(shape, records, tables, **more):
    everyone = [{"where": {"a": [label(0, c) for c in range(shape[0])]}, "exactly": len(records)}]
    spec = {"attributes": schema_of(shape), "audit": {"tables": tables, "known": everyone}}
    return audit(
        frame_of(shape, records), spec=spec, unit="home", small=SMALL, no_advice=True, seconds=600, **more
    )


def check(shape, records, made, found):
    """The claim, from all groups and all tables that look the same."""
    truth, groups = truth_of(records, shape), all_groups(shape)
    is_known, _ = determined(truth, [one for _, shown, _ in made for one in shown], groups, SMALL)
    n_units = units_in_groups(records, groups)
    is_few = (n_units > 0) & (n_units < SMALL)
    masks = [mask_of(cell, shape, made) for cell in found.disclosed()]
    for cell, mask in zip(found.disclosed(), masks, strict=True):
        (at,) = np.flatnonzero((groups == mask).all(axis=1))
        assert is_known[at] and is_few[at] and cell.units == n_units[at]
    is_empty = groups[is_known & (groups.sum(axis=1) == 1) & ~(groups @ truth.ravel() > 0)].any(axis=0)
    for group in groups[is_known & is_few]:
        assert any(not (mask & ~group & ~is_empty).any() for mask in masks)
    assert found.verdict.level is (Level.STOP if (is_known & is_few).any() else Level.OK)
    assert not list(found.undecided())


@few_or_many(12, 60, given(made_of=households(), data=st.data(), decide=st.booleans()), SETTINGS)
def test_no_group_of_few_units_is_missed(made_of, data, decide):
    shape, records = made_of
    made = data.draw(publications(shape, data.draw(st.integers(1, 3))))
    check(shape, records, made, asked(shape, records, [options for options, _, _ in made], decide=decide))


@few_or_many(5, 25, given(made_of=households(), data=st.data()), SETTINGS)
def test_nor_where_not_every_set_of_labels_can_be_asked_for(made_of, data):
    """Attributes of some sets only: what is left of a set without its known labels is asked for, too."""
    shape, records = made_of
    made = data.draw(publications(shape, data.draw(st.integers(1, 3))))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(descriptions, "EVERY_SET", (1,))
        found = asked(shape, records, [options for options, _, _ in made])
    truth, groups = truth_of(records, shape), all_groups(shape)
    is_known, _ = determined(truth, [one for _, shown, _ in made for one in shown], groups, SMALL)
    n_units = units_in_groups(records, groups)
    is_few = (n_units > 0) & (n_units < SMALL)
    single = np.array([(group.reshape(shape).sum() == 1) for group in groups])
    if (is_known & is_few & single).any():
        assert found.verdict.level is Level.STOP
    for cell in found.disclosed():
        (at,) = np.flatnonzero((groups == mask_of(cell, shape, made)).all(axis=1))
        assert is_known[at] and is_few[at]
