"""Bounds of a larger schema on the smaller one: against every table, and from spec to release."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from louver.errors import InputError
from louver.optim import elimination
from louver.topdown import check, extend, topdown
from louver.topdown.extension import project
from louver.topdown.load import read_design, read_first_design
from topdown_larger import LARGER, write_larger
from topdown_town import SPEC

PLAIN = SPEC[: SPEC.index("[[topdown.bounds]]")].replace(
    "epsilon = 2", 'epsilon = 2\nextended_by = "larger.toml"'
)


def can_have(people, allowed, bounded, ruled, lower, upper):
    """Whether people by group can get kinds that keep all bounds and rules, by trying everything."""
    ways = []
    for n, own in zip(people, allowed, strict=True):
        kinds = np.flatnonzero(own)
        ways.append(
            [
                np.bincount(np.repeat(kinds, split), minlength=len(own))
                for split in product(range(n + 1), repeat=len(kinds))
                if sum(split) == n
            ]
        )
    for chosen in product(*ways):
        held = bounded @ sum(chosen)
        if (held >= lower).all() and (held <= upper).all() and (ruled @ sum(chosen) >= 0).all():
            return True
    return False


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_rows_hold_where_people_can_keep_the_bounds(seed):
    rng = np.random.default_rng(seed)
    allowed = rng.random((2, 3)) < 0.7
    allowed[np.arange(2), rng.integers(0, 3, 2)] = True
    bounded = np.unique(rng.random((2, 3)) < 0.5, axis=0)
    ruled = rng.integers(-1, 3, (int(rng.integers(0, 2)), 3))
    kinds = project._Kinds(group_of=np.arange(2), allowed=allowed, bounded=bounded, ruled=ruled)
    bounds = tuple(range(len(bounded)))
    rows, is_exact = project._Part(
        kinds=kinds, groups=(0, 1), bounds=bounds, rules=tuple(range(len(ruled)))
    )._eliminated()
    for _ in range(12):
        people, lower = rng.integers(0, 3, 2), rng.integers(0, 2, len(bounded))
        upper = lower + rng.integers(0, 3, len(bounded))
        point = [*people.tolist(), *lower.tolist(), *upper.tolist()]
        holds = all(row.holds(point) for row in rows)
        possible = can_have(people, allowed, bounded, ruled, lower, upper)
        assert holds if possible else (not holds or not is_exact)


def test_later_bounds_reach_the_first_release(tmp_path):
    """One convent in block 2B1: somebody there is in a dormitory, in every first release."""
    first, larger = write_larger(tmp_path, PLAIN)
    found = check(first)
    assert found.is_consistent and found.crossing == () and found.constrained["block"] == 1
    (own,) = read_first_design(first).statements[1:]
    assert own.name == "larger.toml: convents (1)" and own.labels == {"quarters": ("dorm",)}
    assert own.lower.tolist() == [0] * 7 + [1, 0]
    for seed in (1, 2):
        topdown(first, out=tmp_path / f"first{seed}", seed=seed)
        larger.write_text(LARGER.replace('"first"', f'"first{seed}"'))
        release = extend(larger, seed=seed)
        assert release.edits.broken_after["convents"] == 0


def test_structural_zeros_reach_the_first_release(tmp_path):
    first, _ = write_larger(
        tmp_path,
        PLAIN,
        LARGER.replace('place = ["convent"]\nsex = ["m"]', 'place = ["cell"]\nsex = ["f", "m"]'),
    )
    own, before = read_first_design(first).is_possible, read_design(first).is_possible
    jail = own.reshape(3, 2, 3)[2]
    assert not jail.any() and before.reshape(3, 2, 3)[2].any()


def test_what_is_no_set_of_cells_is_told(tmp_path, monkeypatch):
    """Everybody but people of one race in dormitories: no product of labels."""
    zeros = '\n[[structural_zeros]]\nplace = ["convent", "hall"]\nrace = ["a"]\n'
    bound = '\n[[topdown.bounds]]\nname = "women"\nfile = "convents.csv"\ncells = { sex = ["f"], place = ["hall", "other"] }\nlower = 1\n'
    larger = LARGER.replace("[topdown]\n", zeros + "\n[topdown]\n", 1) + bound
    first, _ = write_larger(tmp_path, PLAIN, larger)
    (words,) = check(first).crossing
    assert "cannot be fully expressed as bounds on sets of its cells" in words and "convents, women" in words
    monkeypatch.setattr(elimination, "MAX_ROWS", 1)
    assert len(check(first).crossing) == 1 and len(read_first_design(first).statements) == 1


def test_another_geography_is_refused(tmp_path):
    first, _ = write_larger(tmp_path, PLAIN, LARGER.replace("area", "district"))
    with pytest.raises(InputError, match=r"larger.toml \[topdown\]: the geography is not that of town.toml"):
        check(first)


def test_bounds_of_a_larger_schema_are_not_the_records(tmp_path):
    """Not even where only the first spec says what the records are."""
    hidden = LARGER.replace('[source]\nfile = "people.csv"\n', "").replace("convents.csv", "people.csv")
    first, _ = write_larger(tmp_path, PLAIN, hidden)
    with pytest.raises(InputError, match=r"larger.toml .* names the confidential source"):
        check(first)
