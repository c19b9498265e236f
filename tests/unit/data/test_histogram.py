"""Histogram: examples by hand and what is refused; the property tests compare with an oracle."""

from __future__ import annotations

import numpy as np
import pytest

from louver.data.histogram import Histogram
from louver.errors import InputError
from louver.schema.attribute import Attribute, Kind
from louver.schema.recode import Recode

SEX = Attribute(name="sex", labels=("female", "male"))
AGE = Attribute(name="age", kind=Kind.ORDERED, labels=("young", "middle", "old"))
TABLE = Histogram.from_dense([[1, 0, 2], [3, 4, 0]], (SEX, AGE))


def test_names_shape_total():
    assert TABLE.names == ("sex", "age")
    assert TABLE.shape == (2, 3)
    assert TABLE.total == 10
    assert TABLE.attribute("age") is AGE


def test_several_recodes_at_once():
    coarse = TABLE.recode(
        Recode("age", merge={"not old": ("young", "middle")}),
        Recode("sex", merge={"any": ("female", "male")}),
        Recode("age", merge={"all": ("not old", "old")}),
    )
    assert coarse.shape == (1, 1)
    assert coarse.counts.tolist() == [10]


def test_the_margin_over_nothing_is_the_total():
    total = TABLE.marginalise([])
    assert total.codes.shape == (1, 0)
    assert total.counts.tolist() == [10]
    assert total.to_dense() == 10
    assert TABLE.slice("sex", "male").slice("age", "old").total == 0


def test_an_empty_table():
    empty = Histogram.from_codes((SEX, AGE), np.empty((0, 2)), [])
    assert empty.total == 0
    assert empty.marginalise(["age"]).codes.shape == (0, 1)
    assert empty.recode(Recode("sex", merge={})) == empty


def test_to_frame():
    frame = TABLE.to_frame()
    assert frame.column_names == ["sex", "age", "count"]
    assert frame.to_pylist()[1] == {"sex": "female", "age": "old", "count": 2}
    assert str(frame.schema.field("sex").type).startswith("dictionary")


def test_equality():
    assert Histogram.from_codes((SEX, AGE), TABLE.codes[::-1], TABLE.counts[::-1]) == TABLE
    assert TABLE.marginalise(["age", "sex"]) != TABLE
    assert Histogram.from_dense([[1, 0, 2], [3, 4, 1]], (SEX, AGE)) != TABLE
    assert TABLE != "a table"


def test_repr_holds_no_count():
    assert repr(TABLE) == "Histogram of sex (2) x age (3); confidential"
    assert repr(TABLE.marginalise([])) == "Histogram of the total; confidential"


def test_arrays_cannot_be_written_to():
    with pytest.raises(ValueError, match="read-only"):
        TABLE.counts[0] = 7


def test_the_given_arrays_stay_writable():
    codes, counts = np.array([[0, 0]]), np.array([1])
    Histogram.from_codes((SEX, AGE), codes, counts)
    counts[0] = 2
    codes[0, 0] = 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Histogram.from_codes((SEX, SEX), [[0, 0]], [1]), "one attribute twice"),
        (lambda: Histogram.from_codes((SEX,), [[0.5]], [1]), "codes that are 64-bit integers"),
        (lambda: Histogram.from_codes((SEX,), [[0]], [1.0]), "counts that are 64-bit integers"),
        (lambda: Histogram.from_codes((SEX,), [[0]], np.array([2**63], np.uint64)), "counts that are 64-bit"),
        (lambda: Histogram.from_codes((SEX,), [[0, 1]], [1]), "one column per attribute"),
        (lambda: Histogram.from_codes((SEX,), [[0]], [1, 2]), "one row of codes per count"),
        (lambda: Histogram.from_codes((SEX,), [[0]], [[1]]), "one row of codes per count"),
        (lambda: Histogram.from_codes((SEX,), [[2]], [1]), "not among its attribute's labels"),
        (lambda: Histogram.from_codes((SEX,), [[-1]], [1]), "not among its attribute's labels"),
        (lambda: Histogram.from_codes((SEX,), [[0]], [-1]), "negative count"),
        (lambda: Histogram.from_codes((SEX,), [[0], [1]], [2**62, 2**62]), "64 bits"),
        (lambda: Histogram.from_dense([1, 2, 3], (SEX,)), "one axis per attribute"),
        (lambda: TABLE.marginalise(["sex", "sex"]), "one attribute twice"),
        (lambda: TABLE.marginalise(["race"]), 'no attribute "race"'),
        (lambda: TABLE.slice("sex", "other"), "no such label"),
        (lambda: TABLE.recode(Recode("race", merge={})), 'no attribute "race"'),
        (lambda: TABLE.recode(Recode("age", merge={"g": ("young", "old")})), "next to each other"),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_a_table_too_large_to_be_dense_is_refused():
    labels = tuple(str(number) for number in range(2000))
    axes = tuple(Attribute(name=name, labels=labels) for name in "ABC")
    with pytest.raises(InputError, match="too many cells"):
        Histogram.from_codes(axes, [[0, 0, 0]], [1]).to_dense()


def test_more_attributes_than_an_array_has_axes():
    attributes = [Attribute(name=f"a{i}", labels=("x",)) for i in range(69)]
    wide = Histogram.from_codes((*attributes, SEX), [[0] * 69 + [1], [0] * 70, [0] * 69 + [1]], [1, 2, 4])
    assert wide.codes[:, -1].tolist() == [0, 1] and wide.counts.tolist() == [2, 5]
    assert wide.marginalise(()).counts.tolist() == [7]
