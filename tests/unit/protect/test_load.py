"""Tables from files and from records; what is wrong with them is one sentence with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import louver as lv
from louver.errors import InputError
from unit.protect.spec import FEW, LINES, TABLE, protect, write


def changed(line: int, text: str) -> list[str]:
    return [text if n == line else old for n, old in enumerate(LINES)]


BAD_LINES: dict[str, tuple[list[str], dict[str, Any], str, int | None]] = {
    "no code": (changed(0, ",small,1,50,50,,,1"), {}, 'row 1 of firms.csv has no code of "trade"', 1),
    "twice": ([*LINES, LINES[1]], {}, "row 13 of firms.csv repeats the cell", 13),
    "no number": (
        changed(1, "food,large,9,x,90,60,,1"),
        {},
        'row 2 of firms.csv has no number in "turnover"',
        2,
    ),
    "infinite": (changed(1, "food,large,9,inf,90,60,,1"), {}, "row 2 of firms.csv has no number", 2),
    "too large": (changed(1, "food,large,9,1e300,90,60,,1"), {}, "row 2 of firms.csv has no number", 2),
    "negative": (changed(1, "food,large,9,-4,,,,1"), {}, "row 2 of firms.csv has a negative number", 2),
    "frequency": (
        changed(1, "food,large,1.5,400,90,60,,1"),
        {},
        "row 2 of firms.csv needs a whole number",
        2,
    ),
    "no frequency": (
        changed(1, "food,large,,400,90,60,,1"),
        {},
        "row 2 of firms.csv needs a whole number",
        2,
    ),
    "nobody": (
        changed(1, "food,large,0,400,90,60,,1"),
        {},
        "row 2 of firms.csv has a number although it has no contributors",
        2,
    ),
    "order": (changed(1, "food,large,9,400,60,90,,1"), {}, 'a larger contribution in "second"', 2),
    "part": (changed(1, "food,large,9,400,-1,,,1"), {}, 'needs a number of 0 or more in "first"', 2),
    "parts": (changed(1, "food,large,9,400,390,60,,1"), {}, "largest contributions that exceed", 2),
    "status": (changed(1, "food,large,9,400,90,60,?,1"), {"status": "status"}, "an unknown status", 2),
    "cost": (
        changed(1, "food,large,9,400,90,60,,-1"),
        {"cost": "cost"},
        'needs a cost of 0 or more in "cost"',
        2,
    ),
    "cost text": (
        changed(1, "food,large,9,400,90,60,,x"),
        {"cost": "cost"},
        'needs a cost of 0 or more in "cost"',
        2,
    ),
    "sum": (
        changed(2, "food,Total,10,451,90,60,,1"),
        {},
        "row 3 of firms.csv is not the sum of its parts",
        None,
    ),
    "column": (LINES, {"value": "sales"}, 'no column "sales"', None),
    "no file": (LINES, {"file": "none.csv"}, "none.csv does not exist", None),
}


@pytest.mark.parametrize("case", BAD_LINES)
def test_a_bad_line_is_named(tmp_path: Path, case: str) -> None:
    lines, table, says, row = BAD_LINES[case]
    write(tmp_path, lines)
    with pytest.raises(InputError) as error:
        protect(tmp_path, table=table)
    assert says in str(error.value) and error.value.row == row


BAD_OPTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "no tables": ({"tables": []}, "no table is listed"),
    "no rules": ({"rules": []}, "no rule says which cells"),
    "names": ({"tables": [TABLE, TABLE]}, 'two tables have the name "firms"'),
    "unknown rule table": ({"rules": [{**FEW, "tables": ["x"]}]}, 'rule 1 refers to table "x"'),
    "no rule applies": ({"rules": [{"rule": "p-percent", "p": 5}], "tables": [{**TABLE, "value": None, "largest": []}]}, "no rule applies"),
    "rule without number": ({"rules": [{"rule": "dominance", "n": 1}]}, "needs n and k"),
    "rule with another's number": ({"rules": [{**FEW, "p": 4.0}]}, "has p, which this rule does not use"),
    "p above q": ({"rules": [{"rule": "p-q", "p": 50.0, "q": 20.0}]}, "needs p below q"),
    "largest": ({"rules": [{"rule": "dominance", "n": 3, "k": 80.0}]}, "needs the 3 largest contributions"),
    "frequency": ({"tables": [{**TABLE, "frequency": None}]}, "needs the number of contributors"),
    "by twice": ({"tables": [{**TABLE, "by": ["size", "size"]}]}, "names an attribute twice"),
    "depth": ({"tables": [{**TABLE, "depth": {"x": 1}}]}, "limits the depth"),
    "counts with largest": ({"tables": [{**TABLE, "value": None}]}, "is a count, which has no largest"),
    "negative counts": ({"tables": [{**TABLE, "value": None, "largest": [], "negative": True}]}, "cannot be negative"),
    "decimals of counts": ({"tables": [{**TABLE, "value": None, "largest": [], "decimals": 1}]}, "no decimals"),
    "nothing to read": ({"tables": [{"name": "t", "by": ["size"], "file": "f.csv"}]}, "needs value"),
    "status of records": ({"tables": [{"name": "t", "by": ["size"], "status": "s"}]}, "has status without file"),
    "two sources": ({"tables": [TABLE, {"name": "t", "by": ["size"]}]}, "some tables have a file"),
    "no source": ({"tables": [{"name": "t", "by": ["size"]}]}, "there are no records"),
    "status table": ({"status": [{"table": "x", "cell": {}, "set": "hide", "reason": "r"}]}, 'status 1 refers to table "x"'),
    "status attribute": ({"status": [{"table": "firms", "cell": {"x": "1"}, "set": "hide", "reason": "r"}]}, "an attribute that its table"),
    "status cell": ({"status": [{"table": "firms", "cell": {"trade": "x"}, "set": "hide", "reason": "r"}]}, "a cell that its table does not have"),
    "status cost": ({"status": [{"table": "firms", "cell": {}, "set": "cost", "reason": "r"}]}, "needs cost if"),
    "status range": ({"status": [{"table": "firms", "cell": {}, "set": "publish", "range": 5.0, "reason": "r"}]}, "has range, which only"),
    "costs": ({"minimise": "cost"}, "needs a table with a column of costs"),
    "holding": ({"holding": "h"}, "option --holding is about records"),
    "weight": ({"sampling_weight": "h"}, "option --sampling-weight is about records"),
    "codes of nothing": ({"codes": {"x": {}}}, 'the codes of "x" are described'),
    "of nothing": ({"codes": {"size": {"of": "x"}}}, 'are of "x", which has no section'),
    "of other codes": ({"codes": {"size": {"of": "trade"}, "trade": {}}}, 'a code of "size" is not a code of "trade"'),
    "request of files": ({"rules": [{"rule": "request", "k": 50.0}], "request": "asked"}, "option --request is about records"),
    "request without a rule": ({"request": "asked"}, "give both or neither"),
    "request without a column": ({"rules": [{"rule": "request", "k": 50.0}]}, "give both or neither"),
    "request without a share": ({"rules": [{"rule": "request"}]}, "needs k"),
    "hidden with no table": ({"tables": [{**TABLE, "hide_with": "x"}]}, "is to be hidden with a table that is not listed"),
    "hidden with its own variable": ({"tables": [TABLE, {**TABLE, "name": "b", "hide_with": "firms"}]}, "whose cells it shares anyway"),
    "rounded with another": ({"tables": [TABLE, {**TABLE, "name": "b", "variable": "b", "hide_with": "firms"}], "method": "round"}, "has hide_with, which is for a search"),
    "zero without a range": ({"rules": [{"rule": "zero"}]}, "needs up"),
    "zero with a percentage": ({"rules": [{"rule": "zero", "up": 5.0, "range": 10.0}]}, "a percentage, which has no effect on 0"),
    "zero without contributors": ({"rules": [{"rule": "zero", "up": 5.0}], "tables": [{**TABLE, "frequency": None}]}, "needs the number of contributors"),
    "state of rounded cells": ({"state": "s", "method": "round"}, "option --state is for a search"),
    "state in no folder": ({"state": "none/s"}, "the folder of none/s does not exist"),
    "a pattern without status": ({"given_pattern": True}, "needs cells whose status says that they are hidden"),
    "a pattern of rounded cells": ({"given_pattern": True, "method": "round"}, "option --given-pattern is for --method hide"),
    "unknown key": ({"rules": [{**FEW, "minimal": 3}]}, "is not a known key"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_OPTIONS)
def test_options_that_contradict_one_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    options, says = BAD_OPTIONS[case]
    monkeypatch.chdir(tmp_path)
    write(tmp_path)
    with pytest.raises(InputError, match=says):
        lv.protect(**{"tables": [TABLE], "rules": [FEW], **options})


def test_codes_outside_a_hierarchy_and_below_the_depth(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "trade.hrc").write_text("food\nwood\n")
    codes = {"trade": {"hierarchy": str(tmp_path / "trade.hrc")}}
    with pytest.raises(InputError, match='row 7 of firms.csv has a code of "trade" that is outside'):
        protect(tmp_path, codes=codes)
    (tmp_path / "trade.hrc").write_text("food\nwood\n@iron\n")
    with pytest.raises(InputError, match='a code of "trade" that is below the depth'):
        protect(tmp_path, codes=codes, table={"depth": {"trade": 1}})


def test_hierarchies_over_other_leaves_or_with_two_meanings(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "a.hrc").write_text("soft\n@food\n@wood\nhard\n@iron\n")
    (tmp_path / "b.hrc").write_text("food\nwood\n")
    (tmp_path / "c.hrc").write_text("soft\n@food\nhard\n@wood\n@iron\n")
    for other, says in (("b", "do not have the same leaves"), ("c", "give the same code different parts")):
        files = [str(tmp_path / f"{name}.hrc") for name in ("a", other)]
        with pytest.raises(InputError, match=says):
            protect(tmp_path, codes={"trade": {"hierarchy": files}})


def test_two_tables_that_disagree(tmp_path: Path) -> None:
    write(tmp_path)
    other = {**TABLE, "name": "trades", "by": ["trade"], "file": str(tmp_path / "trades.csv"), "largest": []}
    tables = [{**TABLE, "file": str(tmp_path / "firms.csv")}, other]
    good = ["food,10,450", "wood,11,630", "iron,11,720", "Total,32,1800"]
    for lines, more, says in (
        (["food,10,449", "wood,11,631", *good[2:]], {}, "row 1 of trades.csv differs in its number from"),
        (["food,9,450", *good[1:]], {}, "row 1 of trades.csv differs in its frequency from"),
        (good, {"negative": True}, "row 1 of trades.csv may be negative, but"),
    ):
        write(tmp_path, lines, "trades.csv", "trade,n,turnover\n")
        with pytest.raises(InputError, match=says):
            lv.protect(tables=[tables[0], {**other, **more}], rules=[FEW])


RECORDS = {"trade": ["a", "a", "b"], "turnover": [1, 2, 3], "group": ["x", "x", None], "w": [1, 1, 2]}
BAD_RECORDS: dict[str, tuple[dict[str, list[Any]], dict[str, Any], str, int]] = {
    "no code": ({"trade": ["a", None, "b"]}, {}, 'column "trade" in the dataframe has no value on row 2', 2),
    "no number": (
        {"turnover": ["1", "x", "3"]},
        {},
        'column "turnover" in the dataframe: row 2 has no number',
        2,
    ),
    "missing": ({"turnover": [1, None, 3]}, {}, "row 2 has no number", 2),
    "negative": ({"turnover": [1, 2, -3]}, {}, "row 3 is negative", 3),
    "weight": (
        {"w": [1.0, 0.5, 2.0]},
        {"sampling_weight": "w"},
        "the sampling weight on row 2 must be at least 1",
        2,
    ),
    "weight text": ({"w": ["1", "x", "2"]}, {"sampling_weight": "w"}, "the sampling weight on row 2", 2),
}


@pytest.mark.parametrize("case", BAD_RECORDS)
def test_a_bad_record_is_named(case: str) -> None:
    columns, options, says, row = BAD_RECORDS[case]
    table = {"name": "t", "by": ["trade"], "value": "turnover"}
    with pytest.raises(InputError) as error:
        lv.protect(pa.table({**RECORDS, **columns}), tables=[table], rules=[FEW], **options)
    assert says in str(error.value) and error.value.row == row


def test_records_need_codes_of_the_last_level(tmp_path: Path) -> None:
    (tmp_path / "trade.hrc").write_text("a\n@a1\nb\n")
    table = {"name": "t", "by": ["trade"], "value": "turnover"}
    for trade, says in ((["a1", "a", "b"], "row 2 is a total"), (["a1", "b", "c"], "row 3 is outside")):
        records = pa.table({"trade": trade, "turnover": [1, 2, 3]})
        with pytest.raises(InputError, match=says):
            lv.protect(
                records,
                tables=[table],
                rules=[FEW],
                codes={"trade": {"hierarchy": str(tmp_path / "trade.hrc")}},
            )


def test_too_much_is_refused(tmp_path: Path) -> None:
    table = {"name": "t", "by": ["trade"], "value": "turnover"}
    large = pa.table({"trade": ["a", "b"], "turnover": [2.0**47, 2.0**48]})
    with pytest.raises(InputError, match="has a total that is too large"):
        lv.protect(large, tables=[table], rules=[FEW])
    many = pa.table({name: [str(n) for n in range(300)] for name in "abc"})
    with pytest.raises(InputError, match="has more than 20,000,000 combinations"):
        lv.protect(many, tables=[{"name": "t", "by": ["a", "b", "c"]}], rules=[FEW])
    twice = pa.table({"a": ["x", "y"], "b": ["x", "y"]})
    with pytest.raises(InputError, match="two attributes, one of which stands for codes of the other"):
        lv.protect(
            twice, tables=[{"name": "t", "by": ["a", "b"]}], rules=[FEW], codes={"a": {}, "b": {"of": "a"}}
        )


def test_the_noise_of_adding_floats_is_no_decimal(tmp_path: Path) -> None:
    """What 0.1 + 0.2 prints as is 0.3: peers call such tables not additive."""
    write(
        tmp_path, ["a,9,0.1,", "b,9,0.2,", "Total,18,0.30000000000000004,"], head="trade,n,turnover,first\n"
    )
    found = protect(tmp_path, table={"by": ["trade"], "largest": []})
    assert found.is_protected and found.summary.cells == 3


def test_a_total_that_is_not_listed_ties_its_parts_all_the_same(tmp_path: Path) -> None:
    """Without rows for sizes, the grand total still gives a single hidden cell away."""
    lines = [line for line in LINES if not line.startswith("Total,") or line.startswith("Total,Total")]
    write(tmp_path, [line for line in lines if ",Total," not in line or line.startswith("Total")])
    found = protect(tmp_path, attackers="outsider")
    assert found.is_protected and found.summary.primary == 1 and found.summary.secondary == 1
