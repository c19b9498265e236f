"""The page Protect: tables, rules and decisions become what the verb takes, and what the verb finds is shown."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import louver as lv
from cli.command import child_environment
from louver.app.columns import ColumnChoices, MergeTree
from louver.app.jobs.protect import columns_for_tables, protected, published_protected
from louver.app.pages.protect import next_hidden, repeated, window_of
from louver.app.pages.protect_state import (
    Protects,
    hierarchy_text,
    rule_of,
    rule_text,
    table_of,
    table_text,
)
from louver.app.session import Opened
from louver.errors import InputError
from louver.protect.hierarchy import read_tree
from louver.run import Run
from louver.schema.source import SourceOptions

FIRMS = [
    *(("food", "small", turnover) for turnover in (50,)),
    *(("food", "large", turnover) for turnover in (90, 60, 80, 170)),
    *(("wood", "small", turnover) for turnover in (30, 20, 50, 30)),
    *(("wood", "large", turnover) for turnover in (200, 150, 70, 80)),
    *(("iron", "small", turnover) for turnover in (40, 30, 50)),
    *(("iron", "large", turnover) for turnover in (250, 150, 100, 100)),
]


@pytest.fixture
def firms(tmp_path: Path) -> Path:
    path = tmp_path / "firms.csv"
    path.write_text("trade,size,turnover\n" + "".join(f"{a},{b},{n}\n" for a, b, n in FIRMS))
    return path


def described(**changes: Any) -> Protects:
    state = Protects(with_register=False, **changes)
    state.tables = [table_of("firms", ["trade", "size"], "turnover")]
    return state


def found_by(path: Path, state: Protects) -> dict[str, Any]:
    return protected(str(path), SourceOptions(), state.options({}, "register"), Run())


def test_columns_for_tables(firms: Path) -> None:
    found = columns_for_tables(str(firms), SourceOptions(), Run())
    assert [one["name"] for one in found["attributes"]][:2] == ["trade", "size"]
    assert found["numbers"] == ("turnover",)


def test_the_page_shows_what_the_verb_finds(firms: Path) -> None:
    state = described()
    found = found_by(firms, state)
    same = lv.protect(firms, tables=state.tables, rules=state.rules)
    assert found["verdict"] == same.verdict.to_dict()
    assert found["summary"]["secondary"] == same.summary.secondary == 3
    [grid] = found["grids"]
    assert [row for row, _ in grid["lines"]] == [("Total",), ("food",), ("iron",), ("wood",)]
    hidden = {
        (*row, column)
        for row, line in grid["lines"]
        for column, cell in zip(grid["columns"], line, strict=True)
        if cell["published"] is None
    }
    assert hidden == {tuple(cell.cell.values()) for cell in same.cells}


def test_cells_that_are_never_or_rather_hidden(firms: Path) -> None:
    state = described()
    state.take(found_by(firms, state))
    [first] = [
        cell
        for cell in lv.protect(firms, tables=state.tables, rules=state.rules).cells
        if cell.kind == "primary"
    ]
    assert first.cell == {"trade": "food", "size": "small"}
    state.pin("firms", {"trade": "iron", "size": "small"}, "publish", "asked for by the ministry")
    assert state.is_stale and state.pinned("firms", {"trade": "iron", "size": "small"})["set"] == "publish"
    assert state.pinned("firms", {"trade": "wood", "size": "small"}) is None
    cells = dict(_cells(found_by(firms, state)))
    assert cells["iron", "small"]["published"] == "120" and cells["wood", "small"]["published"] is None
    state.pin("firms", {"trade": "iron", "size": "small"}, "", "")
    assert not state.pins
    for cell in ({"trade": "iron", "size": "small"}, {"trade": "iron", "size": "large"}):
        state.pin("firms", cell, "cost", "old numbers")
    cells = dict(_cells(found_by(firms, state)))
    assert cells["iron", "small"]["published"] is None and cells["wood", "small"]["published"] == "130"
    with pytest.raises(InputError, match="reason"):
        state.pin("firms", {"trade": "iron", "size": "small"}, "hide", "")


def _cells(found: dict[str, Any]) -> list[tuple[tuple[str, ...], dict[str, Any]]]:
    [grid] = found["grids"]
    return [
        ((*row, column), cell)
        for row, line in grid["lines"]
        for column, cell in zip(grid["columns"], line, strict=True)
    ]


def test_a_table_that_goes_takes_its_decisions_along() -> None:
    state = described()
    state.pin("firms", {"trade": "food"}, "hide", "why not")
    state.remove_table(0)
    assert not state.tables and not state.pins and not state.has_work


def test_a_table_that_hides_the_same_cells_as_another() -> None:
    state = described()
    state.tables.append(table_of("workers", ["trade", "size"], "", "firms"))
    assert table_text(state.tables[1]).endswith("by trade, size; hides the same cells as firms")
    assert state.options({}, "register")["tables"][1]["hide_with"] == "firms"
    state.remove_table(0)
    assert "hide_with" not in state.tables[0]
    state.tables.append(table_of("again", ["trade"], "", "gone"))
    with pytest.raises(InputError, match="not listed"):
        state.options({}, "register")


@pytest.mark.parametrize(
    "changes",
    [
        {"tables": []},
        {"method": "round", "base": "few"},
        {"known_percent": "x"},
        {"rules": []},
        {"pins": [{"table": "other", "cell": {}, "set": "hide", "reason": "x"}]},
    ],
    ids=str,
)
def test_what_the_verb_does_not_take_is_said(changes: dict[str, Any]) -> None:
    state = described()
    for name, value in changes.items():
        setattr(state, name, value)
    with pytest.raises(InputError):
        state.options({}, "register")


def test_rules_and_tables_in_words() -> None:
    assert rule_of("frequency", {"minimum": "4"}) == {"rule": "frequency", "minimum": 4}
    dominance = rule_of("dominance", {"n": "1", "k": "85", "range": "10"})
    assert rule_text(dominance) == "the largest has more than 85 %; range 10 %"
    assert rule_text(rule_of("p-q", {"p": "5", "q": "20"})) == "known to 20 %, estimated to within 5 %"
    assert rule_text(rule_of("p-percent", {"p": "10"})) == "a contributor can be estimated to within 10 %"
    assert table_text(table_of("a", ["b", "c"], "")) == "contributors by b, c"
    for kind, typed in (
        ("frequency", {}),
        ("frequency", {"minimum": "1"}),
        ("dominance", {"n": "1", "k": "x"}),
    ):
        with pytest.raises(InputError):
            rule_of(kind, typed)
    with pytest.raises(InputError):
        table_of("a", [], "")


def test_a_hierarchy_of_the_page_data_is_one_of_the_verb(tmp_path: Path) -> None:
    tree = MergeTree({"food": 5, "wood": 8, "iron": 7})
    tree.merge(1, ["wood", "iron"], "hard")
    (tmp_path / "hierarchy-1.csv").write_text(hierarchy_text(tree))
    parts = read_tree(tmp_path / "hierarchy-1.csv", "Total").parts
    assert parts == {"Total": ("food", "hard"), "hard": ("wood", "iron")}
    columns = ColumnChoices(trees={"trade": tree, "size": MergeTree({"small": 1, "large": 2})})
    assert described().named_codes(columns) == {"trade": "hierarchy-1.csv"}


@pytest.mark.long
def test_what_is_copied_repeats_it(firms: Path, tmp_path: Path) -> None:
    tree = MergeTree({"food": 5, "wood": 8, "iron": 7})
    tree.merge(1, ["wood", "iron"], "hard")
    state = described(time="first")
    files = state.named_codes(ColumnChoices(trees={"trade": tree}))
    opened = Opened(path=str(firms), name="firms.csv", copied=str(firms), source=SourceOptions())
    call = repeated(
        state.options(files, "register"), opened, {file: hierarchy_text(tree) for file in files.values()}
    )
    python = call.texts()["Python"]
    done = subprocess.run(
        [sys.executable, "-c", python], cwd=tmp_path, capture_output=True, text=True, env=child_environment()
    )
    assert "1 table, 15 cells, 1 primary" in done.stdout, done.stderr
    assert "louver protect louver-explore.toml" in call.texts()["Command"]
    assert "time limit" in repeated(described(time="60").options({}, ""), opened, {}).note


def test_published_only_where_all_is_protected(firms: Path, tmp_path: Path) -> None:
    state = described()
    state.with_register = True
    options = state.options({}, str(tmp_path / "register"))
    found = published_protected(str(firms), SourceOptions(), options, str(tmp_path / "out"), Run())
    assert found["refused"] is None and lv.verify(tmp_path / "out").passed
    state = described()
    for trade in ("food", "wood", "iron", "Total"):
        state.pin("firms", {"trade": trade, "size": "large"}, "publish", "needed")
    state.pin("firms", {"trade": "food"}, "publish", "needed")
    found = published_protected(
        str(firms), SourceOptions(), state.options({}, ""), str(tmp_path / "not"), Run()
    )
    assert "Do not publish" in found["refused"] and not (tmp_path / "not").exists()


def test_a_window_of_the_grid(firms: Path) -> None:
    [grid] = found_by(firms, described())["grids"]
    pinned = [{"trade": "food", "size": "large"}]
    window = window_of(grid, (1, 3), (1, 9), "published", pinned)
    assert (window["n_lines"], window["n_cols"], window["first"], window["left"]) == (4, 3, 1, 1)
    assert [line["label"] for line in window["lines"]] == ["food", "iron"]
    columns = [label for label, _ in window["heads"][0]["labels"]]
    texts = dict(zip(columns, window["lines"][0]["texts"], strict=True))
    assert texts["small"] == "×" and texts["large"].endswith("•")
    assert window["row_names"] == ["trade"]
    at = next_hidden(grid, -1, 0)
    seen = []
    while at not in seen:
        seen.append(at)
        at = next_hidden(grid, *at)
    assert len(seen) == 4 and at == seen[0]
    assert next_hidden({**grid, "lines": []}, 0, 0) is None


def test_a_table_by_one_attribute_is_one_line(firms: Path) -> None:
    state = described()
    state.tables = [table_of("firms", ["trade"], "")]
    [grid] = found_by(firms, state)["grids"]
    window = window_of(grid, (0, 9), (0, 9), "value", [])
    assert [line["label"] for line in window["lines"]] == ["All"] and window["lines"][0]["texts"][0] == "20"
