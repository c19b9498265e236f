"""Recodes and the files they are read from."""

from __future__ import annotations

import pytest

from louver.errors import InputError
from louver.schema.recode import Recode, bin_labels, parse_recodes, read_recodes

FILE = """
[X3]
"Bachelor degree" = ["Bachelor", "Bachelor+"]
"No Bachelor degree" = ["<HS", "HS", "College"]
[age]
bins = [25, 55]
[region]
level = 2
"""


def test_read_recodes(tmp_path):
    path = tmp_path / "recodes.toml"
    path.write_text(FILE)
    assert read_recodes(path) == [
        Recode(
            "X3",
            merge={
                "Bachelor degree": ("Bachelor", "Bachelor+"),
                "No Bachelor degree": ("<HS", "HS", "College"),
            },
        ),
        Recode("age", bins=(25, 55)),
        Recode("region", level=2),
    ]


def test_groups_named_like_a_keyword_are_groups():
    assert parse_recodes({"A": {"bins": ["a", "b"]}}) == [Recode("A", merge={"bins": ("a", "b")})]
    both = {"level": ["a"], "bins": ["b"]}
    assert parse_recodes({"A": both}) == [Recode("A", merge={"level": ("a",), "bins": ("b",)})]


def test_recodes_are_values():
    one = Recode("A", merge={"x": ["a"], "y": ["b"]})
    other = Recode("A", merge={"y": ("b",), "x": ("a",)})
    assert one == other
    assert len({one, other, Recode("A", level=1), Recode("A", bins=(1,))}) == 3


def test_negative_and_fractional_edges():
    assert bin_labels((-5, -4, 10), whole=True) == ("<-5", "-5", "-4-9", "10+")
    assert bin_labels((0.25,), whole=False) == ("<0.25", "0.25+")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Recode("A"), "exactly one"),
        (lambda: Recode("A", bins=(1,), level=1), "exactly one"),
        (lambda: Recode("A", merge={"": ("a",)}), "with no name"),
        (lambda: Recode("A", merge={"g": ()}), "without labels"),
        (lambda: Recode("A", merge={"g": ("a",), "h": ("b", "a")}), 'label 2 of the group "h" twice'),
        (lambda: Recode("A", bins=()), "one or more finite edges"),
        (lambda: Recode("A", bins=(1, float("nan"))), "finite"),
        (lambda: Recode("A", bins=(2, 2)), "increase"),
        (lambda: Recode("A", level=-1), "negative level"),
        (lambda: parse_recodes({"A": 3}), 'key "A" must be a table'),
        (lambda: parse_recodes({"A": {}}), 'key "A" must be a table'),
        (lambda: parse_recodes({"A": {"level": True}}), 'key "A.level" must be a whole number'),
        (lambda: parse_recodes({"A": {"bins": [1, "a"]}}), 'key "A.bins" must be a list of numbers'),
        (lambda: parse_recodes({"A": {"g": ["a"], "h": "b"}}), 'key "A.h"'),
        (lambda: parse_recodes({"A": {"bins": [2, 1]}}, where="r.toml"), "^r.toml: the recode of attribute"),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(InputError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)
