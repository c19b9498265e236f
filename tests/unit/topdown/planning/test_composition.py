"""Invariants of several specs together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from few_or_many import few_or_many
from louver.errors import InputError
from louver.privacy.neighbours import Relation
from louver.topdown.load import read_design
from louver.topdown.planning.composition import (
    Protection,
    check_extension,
    check_together,
    invariant_records,
    judge,
    space_of,
)
from louver.topdown.problem import Design
from oracles.composition import every_spec_has_neighbours
from topdown_town import SPEC, write_town

SIZES = {"sex": 2, "age": 2, "race": 3}
LEAVES = ("11", "12", "21")


def _space(*names: str, zeros: tuple[dict[str, list[int]], ...] = ()) -> dict[str, Any]:
    return {
        "leaves": "same",
        "attributes": {name: [SIZES[name], name] for name in names},
        "zeros": list(zeros),
    }


def _record(space: dict[str, Any], region: tuple[str, int], codes: dict[str, list[int]]) -> dict[str, Any]:
    return {"verb": "topdown", "name": "x", "region": list(region), "codes": codes, **space}


@st.composite
def _published(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[dict[str, Any]], tuple[str, ...]]:
    """Invariants of up to three specs, their spaces with the newest first, and leaves."""
    leaves = draw(st.sampled_from([("1",), ("11", "12"), LEAVES, ("1/a", "1/b", "2/a")]))
    kind = "depth" if "/" in leaves[0] else "prefix"
    spaces, invariants = [], []
    for _ in range(draw(st.integers(1, 3))):
        names = draw(st.sets(st.sampled_from(["sex", "age"]), min_size=1))
        space = _space(*sorted(names))
        if draw(st.booleans()):
            space["zeros"] = [{name: [draw(st.integers(0, SIZES[name] - 1))] for name in sorted(names)}]
        spaces.append(space)
        for _ in range(draw(st.integers(0, 3))):
            codes = {
                name: sorted(draw(st.sets(st.integers(0, SIZES[name] - 1), min_size=1)))
                for name in sorted(names)
                if draw(st.booleans())
            }
            invariants.append(_record(space, (kind, draw(st.integers(0, 2))), codes))
    return invariants, spaces, leaves


@few_or_many(
    25, 150, given(_published(), st.sampled_from([Relation.CHANGE_RECORD, Relation.ADD_REMOVE_RECORD]))
)
def test_the_verdict_is_that_of_enumeration(
    published: tuple[list[dict[str, Any]], list[dict[str, Any]], tuple[str, ...]], relation: Relation
) -> None:
    invariants, spaces, leaves = published
    told = [spaces[0], *({k: one[k] for k in ("attributes", "zeros")} for one in invariants)]
    expected = every_spec_has_neighbours(
        invariants, told, leaves, is_changed=relation is Relation.CHANGE_RECORD
    )
    verdict = judge(invariants, spaces[0], leaves, relation)
    assert verdict is (Protection.PROTECTED if expected else Protection.EXPOSED)


def test_a_table_published_in_two_parts_is_exposed() -> None:
    race = _space("race")
    first = [_record(race, ("prefix", 2), {"race": [0]})]
    rest = [_record(race, ("prefix", 2), {"race": [code]}) for code in (1, 2)]
    for part in (first, rest):
        assert judge(part, race, LEAVES, Relation.CHANGE_RECORD) is Protection.PROTECTED
    assert judge([*first, *rest], race, LEAVES, Relation.CHANGE_RECORD) is Protection.EXPOSED


def test_a_finer_spec_may_expose_an_earlier_one() -> None:
    """Men by block, then women by block from a spec that knows ages: the table of the first is exact."""
    sex, both = _space("sex"), _space("sex", "age")
    first = _record(sex, ("prefix", 2), {"sex": [0]})
    second = [_record(both, ("prefix", 2), {"sex": [1], "age": [code]}) for code in (0, 1)]
    assert judge(second, both, LEAVES, Relation.CHANGE_RECORD) is Protection.PROTECTED
    assert judge([first, *second], both, LEAVES, Relation.CHANGE_RECORD) is Protection.EXPOSED


@pytest.mark.parametrize(
    "other",
    [
        {"words": "topdown 00: the counts of an invariant"},
        {"verb": "groups", "kind": "total"},
        _record(_space("sex"), ("prefix", 1), {}) | {"leaves": "others"},
        _record(_space("sex"), ("prefix", 1), {}) | {"attributes": {"sex": [2, "recoded"]}},
        _record(_space("sex"), ("prefix", 1), {}) | {"attributes": {"income": [1 << 20, "wide"]}},
    ],
)
def test_what_cannot_be_compared_is_undecided(other: dict[str, Any]) -> None:
    assert judge([other], _space("sex"), LEAVES, Relation.CHANGE_RECORD) is Protection.UNDECIDED


def _design(folder: Path, invariants: str, **more: str) -> Design:
    folder.mkdir()
    spec = SPEC.replace('[[topdown.invariants]]\nname = "ward total"\nlevel = "ward"\n', invariants)
    for old, new in more.items():
        spec = spec.replace(old, new)
    return read_design(write_town(folder, spec))


def _by(level: str, **cells: str) -> str:
    labels = ", ".join(f'{name} = ["{label}"]' for name, label in cells.items())
    return f'[[topdown.invariants]]\nname = "{level} {labels.replace(chr(34), "")}"\nlevel = "{level}"\ncells = {{ {labels} }}\n'


def test_records_of_a_spec_say_level_leaves_and_cells(tmp_path: Path) -> None:
    design = _design(tmp_path / "a", _by("ward", race="b"))
    (record,) = invariant_records(design)
    assert (record["level"], record["region"], record["cells"]) == ("ward", ["prefix", 1], {"race": ["b"]})
    assert record["codes"] == {"race": [1]}
    assert record["zeros"] == [{"quarters": [2], "age": [1]}]
    assert {name: size for name, (size, _) in record["attributes"].items()} == {
        "quarters": 3,
        "age": 2,
        "race": 3,
    }
    assert record["leaves"] == space_of(design)["leaves"]


def test_specs_are_refused_where_they_complete_a_table(tmp_path: Path) -> None:
    cells = [(q, a, r) for q in ("home", "dorm", "jail") for a in ("adult", "child") for r in "abc"]
    cells = [cell for cell in cells if cell[:2] != ("jail", "child")]
    parts = [
        "".join(_by("block", quarters=q, age=a, race=r) for q, a, r in part)
        for part in (cells[:7], cells[7:])
    ]
    first, second = (_design(tmp_path / str(number), part) for number, part in enumerate(parts))
    check_together(first, [])
    check_together(second, [])
    with pytest.raises(InputError, match="fix a whole table exactly") as caught:
        check_together(second, invariant_records(first))
    assert caught.value.option == "invariants"


def test_specs_that_cannot_be_compared_are_refused_unless_acknowledged(tmp_path: Path) -> None:
    first = _design(tmp_path / "a", _by("ward"))
    (tmp_path / "b").mkdir()
    recoded = SPEC.replace('labels = ["adult", "child"]', 'labels = ["child", "adult"]')
    second = read_design(write_town(tmp_path / "b", recoded))
    with pytest.raises(InputError, match="acknowledge_invariants = true") as caught:
        check_together(second, invariant_records(first))
    assert caught.value.option == "acknowledge_invariants"
    (tmp_path / "c").mkdir()
    told = recoded.replace("epsilon = 2", "epsilon = 2\nacknowledge_invariants = true")
    third = read_design(write_town(tmp_path / "c", told))
    check_together(third, invariant_records(first))
    assert third.measured_fingerprint() == second.measured_fingerprint()
    assert third.fingerprint() != second.fingerprint()


def test_invariants_of_other_rows_decide_nothing() -> None:
    space = _space("sex", "age")
    record = _record(space, ("prefix", 1), {"sex": [0]})
    relation = Relation.CHANGE_RECORD
    assert judge([record], space, LEAVES, relation) is Protection.PROTECTED
    assert judge([record], space | {"where": "age = 1"}, LEAVES, relation) is Protection.UNDECIDED
    assert judge([record | {"where": "age = 1"}], space, LEAVES, relation) is Protection.UNDECIDED


def test_an_extension_needs_neighbours_given_all_that_is_exact(tmp_path: Path) -> None:
    """Of two classes by age, or of one for every cell; what is exact: ward totals, one race, or all cells of all blocks."""
    design = _design(tmp_path / "larger", "")
    cells = np.arange(design.n_cells)
    by_age, alone = cells // 3 % 2, cells
    totals, race = (
        invariant_records(_design(tmp_path / name, exact))
        for name, exact in (("a", _by("ward")), ("b", _by("block", race="b")))
    )
    unseen = [{**one, "attributes": {}} for one in totals]
    removed = replace(design, budget=replace(design.budget, neighbours=Relation.ADD_REMOVE_RECORD))
    check_extension(design, by_age, [])
    check_extension(design, by_age, unseen)
    check_extension(design, alone, totals)  # one who stays in a ward may move to another block
    check_extension(removed, alone, race)
    with pytest.raises(InputError, match="nothing would be protected"):
        check_extension(removed, by_age, totals)
    exact = "".join(
        _by("block", quarters=q, age=a, race=r) for q in ("home", "dorm", "jail") for a in ("adult", "child") for r in "abc"
        if (q, a) != ("jail", "child")
    )  # fmt: skip
    with pytest.raises(InputError, match="nothing would be protected"):
        check_extension(design, alone, invariant_records(_design(tmp_path / "c", exact)))
    with pytest.raises(InputError, match="acknowledge_invariants = true"):
        check_extension(removed, by_age, [{"words": "the total number of groups by town"}])
