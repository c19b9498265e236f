"""The numbers of the Tables page: Table 13 of the paper, and a state for every cell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import louver as lv
from golden.test_bounds_paper import TABLE_13, Line13
from louver.app.jobs.tables import (
    ArrangedTable,
    TableView,
    audited,
    counted,
    explained,
    find_disclosed,
    measured,
    suggested,
    window,
)
from louver.app.pages.tables_state import Tables
from louver.bounds import suggest
from louver.bounds.disclosure import CELL_STATES
from louver.bounds.options import BoundsOptions
from louver.data.samples import sample_path
from louver.errors import InputError
from louver.run import Run
from louver.schema.source import SourceOptions

CPS8, ABOUT = str(sample_path("cps8")), SourceOptions(weight="count")
NAMES = tuple(f"X{i}" for i in range(1, 9))


def asked(**options: object) -> ArrangedTable:
    base = BoundsOptions(rows=NAMES[:6], cols=NAMES[6:])
    return ArrangedTable(path=CPS8, source=ABOUT, names=NAMES, options=BoundsOptions(**options), base=base)


STOP = {"level": "stop", "sentence": "Do not publish it as it is."}
FIRST = asked(rows=NAMES[:6], cols=NAMES[6:])


@pytest.mark.parametrize(
    "line", TABLE_13, ids=lambda line: f"{line.rows}|{line.cols}" + "*" * len(line.recodes)
)
def test_table_13(line: Line13) -> None:
    recode = {recode.attribute: recode.to_table() for recode in line.recodes}
    found = audited(
        asked(rows=line.arrangement.rows, cols=line.arrangement.cols, recode=recode), TableView(), Run()
    )
    summary, tiles = found["summary"], found["tiles"]
    keys = (
        "rows",
        "cols",
        "zero_rows",
        "unit_rows",
        "disclosed_rows",
        "disclosed_zero_cells",
        "disclosed_small_cells",
    )
    assert tuple(summary[key] for key in keys) == line.numbers
    assert tiles["small"] == line.numbers[6] and tiles["zero"] == line.numbers[5]
    assert sum(tiles.values()) == summary["rows"] * summary["cols"], "every cell has one state"


def test_a_file_is_counted_once() -> None:
    found = counted(CPS8, ABOUT, Run())
    assert found["n"] == 48_842 and found["left"] == {}
    assert found["attributes"][0] == {"name": "X1", "labels": ["<25", "25-54", "55+"]}, (
        "in their natural order"
    )
    state = Tables()
    state.open(found)
    assert (tuple(state.rows), tuple(state.cols), state.out) == (NAMES[:6], NAMES[6:], [])


def test_columns_that_make_no_table(tmp_path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("id,gone,sex\n" + "".join(f"{i},{'' if i else 'x'},{'fm'[i % 2]}\n" for i in range(300)))
    with pytest.raises(InputError, match="needs two columns"):
        counted(str(path), SourceOptions(), Run())
    path.write_text("sex,n\nf,0\nm,0\n")
    with pytest.raises(InputError, match="has no people|needs two columns"):
        counted(str(path), SourceOptions(weight="n"), Run())
    path.write_text("sex,ill,n\nf,y,0\nm,n,0\n")
    with pytest.raises(InputError, match="has no people"):
        counted(str(path), SourceOptions(weight="n"), Run())


def test_what_cells_say() -> None:
    """Ranges and dots are those of the verb; states follow from them."""
    audit = lv.bounds(CPS8, rows=list(NAMES[:6]), cols=list(NAMES[6:]), weight="count")
    cells = {tuple({**cell.row, **cell.col}.items()): cell for cell in audit.cells()}
    for row in range(0, 428, 61):
        for col in range(6):
            told = explained(FIRST, row, col, Run())
            cell = cells[tuple({**told["labels"][0], **told["labels"][1]}.items())]
            assert told["n_values"] == cell.n_values
            if cell.is_determined:
                expected = "zero" if cell.lower == 0 else "small" if cell.lower < 5 else "exact"
                assert told["state"] in (expected, "certain")
            assert told["why"].endswith(".")


def test_windows_filters_and_folds() -> None:
    whole = window(FIRST, TableView(lines=(0, 10_000)), Run())
    rows = [line for line in whole["lines"] if "row" in line]
    groups = [line["group"] for line in whole["lines"] if "group" in line]
    assert len(rows) == 428 and len(groups) == len(set(groups))
    part = window(FIRST, TableView(lines=(100, 120), cols=(2, 4)), Run())
    assert (part["first"], part["left"], len(part["lines"])) == (100, 2, 20)
    assert all(len(line["texts"]) == 2 for line in part["lines"] if "row" in line)
    small = window(FIRST, TableView(lines=(0, 10_000), only="small"), Run())
    assert (
        sum(line["states"].count(CELL_STATES.index("small")) for line in small["lines"] if "row" in line)
        == 17
    )
    folded = window(FIRST, TableView(lines=(0, 10_000), folded=frozenset(groups)), Run())
    assert [line["group"] for line in folded["lines"]] == groups
    at = find_disclosed(FIRST, TableView(), 0, -1, Run())
    assert at is not None and whole["lines"][at[0]]["states"][at[1]] in (1, 2)
    counts = window(FIRST, TableView(lines=(0, 10_000), says="count"), Run())
    total = sum(
        int(text.replace(",", "")) for line in counts["lines"] if "row" in line for text in line["texts"]
    )
    assert total == 48_842
    shares = window(FIRST, TableView(lines=(0, 10_000), says="share"), Run())
    assert {text for line in shares["lines"] if "row" in line for text in line["texts"]} >= {"0 %", "100 %"}


def test_rounding_does_not_prove_a_zero(tmp_path) -> None:
    """A printed 0 may hide people; a row at 100 % stays one."""
    path = tmp_path / "people.csv"
    path.write_text("site,ill,n\nA,no,999\nA,yes,1\nB,no,50\nB,yes,0\nC,no,40\nC,yes,60\n")
    options = BoundsOptions(rows=["site"], cols=["ill"], decimals=2)
    one = ArrangedTable(
        path=str(path),
        source=SourceOptions(weight="n"),
        names=("site", "ill"),
        options=options,
        base=BoundsOptions(rows=["site"], cols=["ill"]),
    )
    found = audited(one, TableView(says="share"), Run())
    lines = {line["label"]: line for line in found["window"]["lines"]}
    assert lines["A"]["texts"] == ["100 %", "0 %"] and CELL_STATES[lines["A"]["states"][1]] != "zero"
    assert CELL_STATES[lines["B"]["states"][0]] == "certain"


def test_suggestions_are_kept_with_what_was_tried() -> None:
    state = Tables()
    state.open(counted(CPS8, ABOUT, Run()))
    state.remember("As opened", state.options(), audited(FIRST, TableView(), Run()))
    found = suggested(FIRST, 1.0, "small", Run())
    state.take_suggestions(found)
    assert len(state.tries) > 1 and all(one.small == 0 for one in state.tries[1:])
    assert "best so far" in state.best() or "Nothing safe" in state.best() or state.proof


def test_the_way_back() -> None:
    state = Tables()
    state.open(counted(CPS8, ABOUT, Run()))
    found = {"summary": {"disclosed_small_cells": 1, "certain_rows": 0}, "kept": 0.5, "verdict": STOP}
    state.remember("As opened", state.options(), found)
    assert state.move("X1", "out", 0) == "Leave out X1"
    state.remember("Leave out X1", state.options(), found)
    assert state.merge("X7", ["40", ">40"], "<40") == "Merge X7: <40 (merged)", "a name that is taken is not"
    state.remember("Merge", state.options(), found)
    assert [one.number for one in state.tries] == [1, 2, 3] and state.current == 3
    number = state.before()
    assert number == 2
    state.restore(number)
    assert state.out == ["X1"] and not state.merged.get("X7")
    state.move("X1", "rows", 5)
    state.remember("again", state.options(), found)
    assert state.current == 1, "the same table in another order"
    assert state.move("X1", "nowhere", 0) == "" and state.move("X9", "rows", 0) == ""
    assert state.split("X7", ()) == "Split X7"
    assert np.isclose(audited(FIRST, TableView(), Run())["kept"], 1)


def test_what_falls_with_knowledge_is_marked() -> None:
    row = dict(zip(NAMES[:6], ("<25", "Private", "HS", "Married", "White", "Male"), strict=True))
    told = asked(rows=NAMES[:6], cols=NAMES[6:], given=[{"row": row, "at_most": 200}])
    found = audited(told, TableView(lines=(0, 2000), before=FIRST), Run())
    before, now = (audited(one, TableView(), Run())["tiles"] for one in (FIRST, told))
    marked = sum(len(line["fallen"]) for line in found["window"]["lines"])
    assert found["fallen"] == marked > 0 and now != before
    assert audited(told, TableView(before=told), Run())["fallen"] == 0


def test_what_was_tried_is_sorted() -> None:
    state = Tables()
    for number, (small, kept) in enumerate([(3, 0.9), (0, 0.5), (0, 0.7)], start=1):
        found = {
            "summary": {"disclosed_small_cells": small, "certain_rows": number},
            "kept": kept,
            "verdict": STOP,
        }
        state.remember("", BoundsOptions(rows=["a"], cols=["b"], small=number + 1), found)
    assert [one.number for one in state.sorted()] == [2, 3, 1]
    state.sort("kept")
    assert [one.number for one in state.sorted()] == [1, 3, 2]
    state.sort("kept")
    assert [one.number for one in state.sorted()] == [2, 3, 1], "the other way round"


def test_the_levels_of_a_hierarchy_are_categories_too() -> None:
    state = Tables()
    state.open(counted(CPS8, ABOUT, Run()))
    assert state.regroup("X1", {"25-54": "25+", "55+": "25+"}, 1) == "Level 1 of X1"
    assert state.groups("X1") == {"<25": ("<25",), "25+": ("25-54", "55+")}


def test_suggestions_stay_with_the_rounding_they_were_made_for() -> None:
    state = Tables()
    state.open(counted(CPS8, ABOUT, Run()))
    state.decimals = 2
    line = {
        "rows": ["X1"],
        "cols": ["X8"],
        "recodes": {},
        "words": "",
        "kept": 0.5,
        "verdict": {"level": "ok", "sentence": "On its own it may be published."},
    }
    summary = {"disclosed_small_cells": 0, "certain_rows": 0}
    state.take_suggestions(
        {"lines": [line | {"summary": summary}], "is_proved": True, "examined": 1, "asked": FIRST.options}
    )
    assert state.tries[-1].options.decimals is None


@pytest.mark.long
def test_what_suggestions_keep_is_what_the_verb_says() -> None:
    """Also where other columns were put on the table than as opened: 0.0 % was shown for 97.0 %."""
    moved = asked(rows=["X2", "X4"], cols=["X3"])
    moved = replace(moved, base=moved.options)
    state = Tables()
    state.open(counted(CPS8, ABOUT, Run()))
    state.base = FIRST.base
    assert state.base_of(moved.options) == moved.options, "another question has its own base"
    assert state.base_of(asked(rows=["X7", "X8"], cols=["X3"]).options) != FIRST.base
    assert state.base_of(asked(rows=["X1"], cols=["X8"]).options) == FIRST.base
    state.remember("As opened", FIRST.options, audited(FIRST, TableView(), Run()))
    state.rebase(moved.base, measured(moved, [one.options for one in state.tries], Run()))
    assert [one.kept_text for one in state.tries] == ["–"]
    state.remember("Moved", moved.options, audited(moved, TableView(), Run()))
    assert np.isclose(state.tries[1].kept, 1)
    found = suggested(moved, 600.0, "attribute", Run())
    state.take_suggestions(found)
    lines = suggest(
        CPS8, weight="count", rows=["X2", "X4"], cols=["X3"], avoid="attribute", seconds=600
    ).lines
    assert len(lines) > 1 and [one.kept for one in state.tries[2:]] == [line.share for line in lines]
    again = measured(moved, [one.options for one in state.tries[2:]], Run())
    assert np.allclose(again, [line.share for line in lines]), "the page counts as the verb does"
    assert "(proved)" in state.best()
    state.remember("Back", FIRST.options, audited(FIRST, TableView(), Run()))
    state.rebase(FIRST.base, measured(FIRST, [one.options for one in state.tries], Run()))
    assert "(proved)" not in state.best(), "the proof is about another question"


@pytest.mark.parametrize("n", [(41, 60, 29, 90), (40, 60, 30, 90), (1, 60, 2, 90)])
def test_the_page_shows_the_verdict_of_the_verb(n: tuple[int, ...], tmp_path: Path) -> None:
    """A table with every cell exact was green."""
    path = tmp_path / "t.csv"
    cells = [("A", "no"), ("A", "yes"), ("B", "no"), ("B", "yes")]
    path.write_text("site,ill,n\n" + "".join(f"{a},{b},{x}\n" for (a, b), x in zip(cells, n, strict=True)))
    options = BoundsOptions(rows=["site"], cols=["ill"])
    source = SourceOptions(weight="n")
    told = ArrangedTable(path=str(path), source=source, names=("site", "ill"), options=options, base=options)
    said = lv.bounds(path, rows=["site"], cols=["ill"], weight="n").verdict
    assert audited(told, TableView(), Run())["verdict"] == said.to_dict()


def test_a_sampling_weight_is_not_taken_for_a_count_in_silence(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("site,ill,pwgtp\nA,y,300\nA,n,200\nB,y,100\nB,n,400\n")
    options = BoundsOptions(rows=["site"], cols=["ill"])
    source = SourceOptions(weight="pwgtp", weight_is_count=True)
    told = ArrangedTable(path=str(path), source=source, names=("site", "ill"), options=options, base=options)
    found = audited(told, TableView(), Run())["verdict"]
    said = lv.bounds(path, rows=["site"], cols=["ill"], weight="pwgtp", weight_is_count=True).verdict
    assert found == said.to_dict()


def test_codes_are_in_numeric_order(tmp_path: Path) -> None:
    path = tmp_path / "codes.csv"
    labels = ["10", "N", "9", "2", "<2", "10"]
    path.write_text("code,sex\n" + "".join(f"{label},{'fm'[i % 2]}\n" for i, label in enumerate(labels)))
    found = counted(str(path), SourceOptions(), Run())
    assert found["attributes"][0]["labels"] == ["<2", "2", "9", "10", "N"]
