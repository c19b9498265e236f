"""Options of the verb: what is refused, and what they become."""

from __future__ import annotations

import pytest

from louver.bounds.options import BoundsOptions, parse_arrangements, read_arrangements
from louver.bounds.problem import ZeroRows
from louver.bounds.rounded import RoundingRule
from louver.errors import InputError
from louver.schema.request import ask
from louver.schema.spec import validated

CLASHES = [
    ("drop_zero_rows", "merge_zero_rows"),
    ("conditionals", "drop_zero_rows"),
    ("conditionals", "merge_zero_rows"),
    ("conditionals", "recode"),
    ("conditionals", "suggest"),
    ("conditionals", "arrangements"),
    ("arrangements", "suggest"),
    ("arrangements", "cells"),
    ("arrangements", "given"),
    ("arrangements", "recode"),
    ("arrangements", "n"),
    ("suggest", "given"),
    ("suggest", "cells"),
    ("arrangements", "registry"),
    ("registry", "cells"),
    ("registry", "given"),
    ("registry", "drop_zero_rows"),
    ("registry", "merge_zero_rows"),
    ("conditionals", "registry"),
]
VALUES = {
    "n": 9,
    "recode": {"a": {"bins": [1]}},
    "arrangements": "a.toml",
    "cells": "c.csv",
    "given": "g.toml",
    "registry": "r",
}


def options(**values):
    return validated(BoundsOptions, {"rows": ["a"], "cols": ["b"], **values}, "options")


def check(**values):
    """The options and the weight of the source, checked as a call would."""
    ask(BoundsOptions, "table.csv", None, {"rows": ["a"], "cols": ["b"], **values})


def as_option(name):
    return "--register" if name == "registry" else "--" + name.replace("_", "-")


@pytest.mark.parametrize(("first", "second"), CLASHES)
def test_options_that_cannot_be_used_together(first, second):
    values = {name: VALUES.get(name, True) for name in (first, second)}
    more = {"weight": "p", "n": 9} if "conditionals" in values else {}
    for one in (first, second):
        needed = more if one == "conditionals" else {}
        check(**{one: values[one]}, **needed)
    with pytest.raises(
        InputError, match=f"options {as_option(first)} and {as_option(second)} cannot"
    ) as caught:
        check(**values, **more)
    assert caught.value.option == as_option(second)


@pytest.mark.parametrize(
    ("values", "option"),
    [
        ({"conditionals": True, "n": 5}, "--weight"),
        ({"conditionals": True, "weight": "p"}, "--n"),
        ({"rounding": "half-even"}, "--rounding"),
        ({"percent": True}, "--percent"),
        ({"row_n": "n"}, "--row-n"),
        ({"publish": "out"}, "--publish"),
        ({"registry": "r", "accept": True}, "--accept"),
        ({"certain": 99.1234567}, "--certain"),
        ({"fix": ["c"]}, "--fix"),
        ({"apart": {"c": ["x", "y"]}}, "--apart"),
        ({"conditionals": True, "weight": "p", "row_n": "p"}, "--row-n"),
    ],
)
def test_options_that_need_another(values, option):
    with pytest.raises(InputError) as caught:
        check(**values)
    assert caught.value.option == option


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n", 0),
        ("n", 2**53 + 1),
        ("n", "many"),
        ("decimals", -1),
        ("decimals", 10),
        ("decimals", 1.5),
        ("rounding", "half-down"),
        ("small", 0),
        ("seconds", 0),
        ("fail_on", "all"),
        ("drop_zero_rows", "yes"),
        ("rows", "a"),
        ("colour", "red"),
        ("certain", 50),
        ("certain", 101.0),
        ("avoid", "rows"),
        ("apart", ["x"]),
        ("apart", {"a": ["x"]}),
        ("apart", {"a": []}),
        ("apart", {"a": [["x", "y"], ["z"]]}),
        ("apart", {"a": [["x", 1]]}),
    ],
)
def test_values_out_of_range(name, value):
    with pytest.raises(InputError) as caught:
        options(**{name: value})
    assert (caught.value.file, caught.value.option) == ("options", name)
    assert "many" not in str(caught.value)


def test_zero_rows_and_rounding():
    assert options().zero_rows is ZeroRows.KEEP
    assert options(drop_zero_rows=True).zero_rows is ZeroRows.DROP
    assert options(merge_zero_rows=True).zero_rows is ZeroRows.MERGE
    assert options(decimals=2, rounding="half-even").rounding_rule is RoundingRule.HALF_EVEN
    options(decimals=2, rounding="half-even").check()


def test_the_arrangement_takes_recodes_from_a_table_or_a_file(tmp_path):
    path = tmp_path / "recode.toml"
    path.write_text('[a]\n"x or y" = ["x", "y"]\n', encoding="utf-8")
    inline = options(recode={"a": {"x or y": ["x", "y"]}}).arrangement()
    assert inline == options(recode=str(path)).arrangement()
    assert inline.recodes[0].merge == {"x or y": ("x", "y")}
    assert (inline.rows, inline.cols) == (("a",), ("b",))


def test_a_recode_of_an_attribute_that_is_not_shown():
    with pytest.raises(InputError, match="neither in --rows nor in --cols") as caught:
        options(recode={"c": {"bins": [1]}}).arrangement()
    assert (caught.value.option, caught.value.column) == ("--recode", "c")


def test_a_list_of_arrangements_from_a_file_or_inline(tmp_path):
    path = tmp_path / "designs.toml"
    path.write_text(
        '[[arrangement]]\nname = "first"\nrows = ["a"]\ncols = ["b", "c"]\n'
        '[[arrangement]]\nrows = ["b"]\ncols = ["c"]\n[arrangement.recode.b]\nboth = ["x", "y"]\n',
        encoding="utf-8",
    )
    read = read_arrangements(path)
    assert read == parse_arrangements(
        [
            {"name": "first", "rows": ["a"], "cols": ["b", "c"]},
            {"rows": ["b"], "cols": ["c"], "recode": {"b": {"both": ["x", "y"]}}},
        ]
    )
    assert [arrangement.label for arrangement in read] == ["first", "b* | c"]


@pytest.mark.parametrize(
    ("entries", "option"),
    [
        ([], "arrangement"),
        ([{"rows": ["a"]}], "arrangement[1].cols"),
        ([{"rows": ["a"], "cols": ["b"], "colour": 1}], "arrangement[1].colour"),
        ([{"rows": "a", "cols": ["b"]}], "arrangement[1].rows"),
    ],
)
def test_arrangements_of_the_wrong_form(entries, option):
    with pytest.raises(InputError) as caught:
        parse_arrangements(entries)
    assert (caught.value.file, caught.value.option) == ("arrangements", option)


def test_an_arrangement_of_the_list_that_makes_no_sense():
    entries = [{"rows": ["a"], "cols": ["b"]}, {"rows": ["a", "a"], "cols": ["b"]}]
    with pytest.raises(InputError, match="arrangement 2 of arrangements: option --rows names") as caught:
        parse_arrangements(entries)
    assert (caught.value.file, caught.value.option, caught.value.column) == ("arrangements", "--rows", "a")
