"""Roles and hierarchies, as the Data page keeps them."""

from __future__ import annotations

import pytest

import louver as lv
from louver.app.columns import ColumnChoices, MergeTree
from louver.errors import InputError
from louver.schema.hierarchy import Hierarchy


def test_merging_level_by_level() -> None:
    tree = MergeTree({"a": 1, "b": 2, "c": 4, "d": 8})
    tree.merge(1, ["a", "b"], "ab")
    tree.merge(2, ["ab", "c"], "abc")
    assert tree.groups(1) == {"ab": (["a", "b"], 3), "c": (["c"], 4), "d": (["d"], 8)}
    assert tree.groups(2) == {"abc": (["ab", "c"], 7), "d": (["d"], 8)}
    assert tree.text() == "a,ab,abc\nb,ab,abc\nc,c,abc\nd,d,d\n"
    tree.merge(1, ["c", "d"], "ab")
    assert list(tree.groups(1)) == ["ab", "ab (merged)"]
    tree.split(1, ["a", "b"])
    assert list(tree.groups(1)) == ["a", "b", "ab (merged)"]
    tree.split(1, ["c", "d"])
    assert tree.steps == [], "a level that merges nothing is none"


def test_other_ways(tmp_path) -> None:
    tree = MergeTree({"17": 1, "18": 1, "30": 1, "64": 1})
    tree.take_bins("18, 65")
    assert tree.at(1) == {"17": "<18", "18": "18-64", "30": "18-64", "64": "18-64"}
    codes = MergeTree({"44001": 1, "44003": 1, "45001": 1})
    codes.take_prefixes("2, 4")
    assert codes.at(1)["44001"] == "4400" and codes.at(2)["44001"] == "44"
    path = tmp_path / "codes.csv"
    path.write_text(codes.text())
    assert Hierarchy.from_csv(path).ancestor_of("45001", 2) == "45"
    again = MergeTree(dict(codes.labels))
    assert again.take_csv(codes.text()) == 0
    assert again.at(2) == codes.at(2)
    assert again.take_csv("44001;x\n44003;x\n") == 1, "one value is not covered"
    assert again.at(1) == {"44001": "x", "44003": "x", "45001": "45001"}


def test_dates_are_merged_by_month_quarter_year_and_decade() -> None:
    tree = MergeTree({"2013-01-31": 1, "2013-05-01 10:00": 1, "2014-12-24": 1})
    tree.take_dates("")
    assert [tree.at(level)["2013-05-01 10:00"] for level in range(5)] == [
        "2013-05-01 10:00",
        "2013-05",
        "2013-Q2",
        "2013",
        "2010-2019",
    ]
    tree.take_dates("Year; quarter")
    assert tree.at(1)["2014-12-24"] == "2014-Q4" and tree.at(2)["2014-12-24"] == "2014"


def test_a_label_is_renamed_as_a_group_of_one() -> None:
    tree = MergeTree({"1": 3, "2": 4})
    tree.merge(1, ["1"], "men")
    assert tree.at(1) == {"1": "men", "2": "2"}


def test_kinds_and_orders_are_told_as_the_verb_takes_them() -> None:
    columns = ColumnChoices(trees={"town": MergeTree({"A": 1, "B": 1})})
    columns.trees["town"].merge(1, ["A", "B"], "AB")
    columns.orders["pain"] = ["low", "high"]
    for name, kind in (("pain", "ordered"), ("code", "category"), ("town", "ordered"), ("age", "ordered")):
        columns.set_kind(name, kind)
    names = ["pain", "code", "town"]
    assert columns.described(names) == {"ordered": {"pain": ["low", "high"]}, "categorical": ["code"]}
    assert columns.set_order("pain", ["high", "low", ""]) == "This order is now used."
    assert columns.described(["pain"])["ordered"] == {"pain": ["high", "low"]}
    assert "not changed" in columns.set_order("pain", ["high"]) and columns.orders["pain"] == ["high", "low"]
    columns.set_kind("pain", "")
    assert columns.described(["pain"])["ordered"] == {}


@pytest.mark.parametrize(
    ("way", "text", "message"),
    [
        ("take_csv", "a,b\nc\n", "same number of levels"),
        ("take_csv", "", "one line per value"),
        ("take_csv", "a,b\na,c\n", "hierarchy"),
        ("take_csv", "a" * 200_000, "CSV"),
        ("take_bins", "x", "bins need numbers"),
        ("take_bins", "", "at least one edge"),
        ("take_prefixes", "9", "shorter"),
        ("take_prefixes", "", "prefix lengths"),
        ("take_dates", "", "year, month and day"),
    ],
)
def test_what_is_refused(way: str, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        getattr(MergeTree({"1": 1, "2": 2}), way)(text)


def test_roles() -> None:
    import pyarrow as pa

    n = 200
    people = pa.table(
        {
            "id": [f"x{i * 37 % n}" for i in range(n)],
            "sex": ["f", "m"] * (n // 2),
            "code": [1, 2] * (n // 2),
            "age": [20 + i * i % 47 for i in range(n)],
        }
    )
    columns = ColumnChoices()
    columns.take(lv.profile(people).to_dict())
    assert set(columns.warnings()) == {"id", "code"}
    assert columns.with_role("") == ["id", "code"], "they wait for a decision"
    columns.take_suggested()
    assert columns.with_role("") == []
    assert columns.with_role("identifying") == ["id"]
    assert columns.hierarchies() == {}
    columns.trees["sex"] = MergeTree({"f": 1, "m": 1})
    columns.trees["sex"].merge(1, ["f", "m"], "any")
    assert columns.hierarchies() == {"sex": "f,any\nm,any\n"}


def test_levels_of_dates_have_names() -> None:
    with pytest.raises(InputError, match="month, quarter, year and decade"):
        MergeTree({"2013-01-31": 1}).take_dates("week")


def test_what_somebody_decided_stays() -> None:
    import pyarrow as pa

    people = pa.table(
        {"number": [f"x{i}" for i in range(40)], "sex": ["f", "m"] * 20, "ward": ["A", "B", "C", "D"] * 10}
    )
    columns = ColumnChoices()
    columns.take(lv.profile(people).to_dict())
    columns.roles["ward"], columns.selected = "sensitive", "ward"
    columns.take_suggested()
    assert columns.roles["ward"] == "sensitive" and columns.roles["number"] == "identifying"
    columns.take(lv.profile(people).to_dict())
    assert columns.selected == "ward", "the file was read again, and the same column is shown"
    assert columns.counts() == "number"
    columns.has_people = True
    assert columns.counts() is None
