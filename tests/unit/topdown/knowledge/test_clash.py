"""A smallest set of contradicting statements, against an integer program and every smaller set."""

from __future__ import annotations

import random
from itertools import combinations
from pathlib import Path

import pytest

from louver.topdown import check
from oracles.clash import has_solution

SPEC = """
[source]
file = "people.csv"
[attributes.a]
labels = ["x", "y"]
[attributes.b]
labels = ["u", "v"]
[topdown]
epsilon = 1
neighbours = "change-record"
[topdown.geography]
column = "leaf"
prefixes = [0, 1]
levels = ["all", "leaf"]
leaves = "leaves.csv"
"""
CELLS = {"a x": {"a": "x"}, "b u": {"b": "u"}, "a y": {"a": "y"}, "people": {}}
EXACT = {"all a x": {"a": "x"}, "all b u": {"b": "u"}, "all": {}}


def knowledge(folder: Path, seed: int) -> dict[tuple[str, str], tuple[dict[str, str], list[int], int, int]]:
    """Write a spec of three leaves and four cells; statements by name and region, as cells, leaves, lower and upper."""
    draw = random.Random(seed)
    told, text, columns = {}, SPEC, {"leaf": list("012")}
    for name, cells in CELLS.items():
        lower = [draw.randint(0, 5) if cells else 0 for _ in range(3)]
        upper = [low + draw.randint(0, 3) if cells else draw.randint(4, 9) for low in lower]
        columns |= {f"{name} least": lower, f"{name} most": upper}
        text += f'[[topdown.bounds]]\nname = "{name}"\nfile = "bounds.csv"\nlower = "{name} least"\nupper = "{name} most"\n'
        text += _cells(cells)
        for leaf in range(3):
            told[name, str(leaf)] = (cells, [leaf], lower[leaf], upper[leaf])
    values = {"all a x": sum(columns["a x most"]) - draw.randint(0, 3)}
    values["all b u"] = sum(columns["b u most"]) - draw.randint(0, 2)
    values["all"] = max(values.values()) + draw.randint(-1, 6)
    for name, cells in EXACT.items():
        text += f'[[topdown.invariants]]\nname = "{name}"\nlevel = "all"\n' + _cells(cells)
        told[name, ""] = (cells, [0, 1, 2], values[name], values[name])
    (folder / "spec.toml").write_text(text)
    (folder / "people.csv").write_text("leaf,a,b\n0,x,u\n")
    (folder / "leaves.csv").write_text("leaf\n0\n1\n2\n")
    rows = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    (folder / "bounds.csv").write_text("\n".join(rows) + "\n")
    rows = ["invariant,level,region,value", *(f"{name},all,,{value}" for name, value in values.items())]
    (folder / "values.csv").write_text("\n".join(rows) + "\n")
    return told


def _cells(cells: dict[str, str]) -> str:
    inside = ", ".join(f'{name} = ["{label}"]' for name, label in cells.items())
    return f"cells = {{ {inside} }}\n" if cells else ""


@pytest.mark.parametrize("seed", [1, 3, 4, 5, 6, 11])
def test_crossing_statements_clash_as_an_integer_program_says(tmp_path, seed):
    told = knowledge(tmp_path, seed)
    found = check(tmp_path / "spec.toml", invariants=tmp_path / "values.csv")
    assert found.is_consistent == has_solution(told.values())
    if not found.is_consistent:
        named = [told[part.statement, part.region] for part in found.clash]
        assert not has_solution(named)
        assert all(has_solution(fewer) for fewer in combinations(named, len(named) - 1))


def test_no_smaller_set_below_the_region_clashes(tmp_path):
    told = knowledge(tmp_path, 3)
    found = check(tmp_path / "spec.toml", invariants=tmp_path / "values.csv")
    assert len(found.clash) == 4
    assert all(has_solution(fewer) for fewer in combinations(told.values(), 3))


def test_a_contradiction_in_one_leaf_is_found_there(tmp_path):
    knowledge(tmp_path, 2)
    found = check(tmp_path / "spec.toml", invariants=tmp_path / "values.csv")
    assert {(part.level, part.region) for part in found.clash} == {("leaf", "0")}
