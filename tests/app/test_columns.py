"""Roles and hierarchies, as the Data page keeps them."""

from __future__ import annotations

import pytest

import louver as lv
from louver.app.columns import Columns, Tree
from louver.errors import InputError
from louver.schema.hierarchy import Hierarchy


def test_merging_level_by_level() -> None:
    tree = Tree({"a": 1, "b": 2, "c": 4, "d": 8})
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
    tree = Tree({"17": 1, "18": 1, "30": 1, "64": 1})
    tree.take_bins("18, 65")
    assert tree.at(1) == {"17": "<18", "18": "18-64", "30": "18-64", "64": "18-64"}
    codes = Tree({"44001": 1, "44003": 1, "45001": 1})
    codes.take_prefixes("2, 4")
    assert codes.at(1)["44001"] == "4400" and codes.at(2)["44001"] == "44"
    path = tmp_path / "codes.csv"
    path.write_text(codes.text())
    assert Hierarchy.from_csv(path).ancestor_of("45001", 2) == "45"
    again = Tree(dict(codes.labels))
    assert again.take_csv(codes.text()) == 0
    assert again.at(2) == codes.at(2)
    assert again.take_csv("44001;x\n44003;x\n") == 1, "one value is not covered"
    assert again.at(1) == {"44001": "x", "44003": "x", "45001": "45001"}


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
    ],
)
def test_what_is_refused(way: str, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        getattr(Tree({"1": 1, "2": 2}), way)(text)


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
    columns = Columns()
    columns.take(lv.profile(people).to_dict())
    assert set(columns.warnings()) == {"id", "code"}
    assert columns.named("") == ["id", "code"], "they wait for a decision"
    columns.take_suggested()
    assert columns.named("") == []
    assert columns.named("identifying") == ["id"]
    assert columns.hierarchies() == {}
    columns.trees["sex"] = Tree({"f": 1, "m": 1})
    columns.trees["sex"].merge(1, ["f", "m"], "any")
    assert columns.hierarchies() == {"sex": "f,any\nm,any\n"}
