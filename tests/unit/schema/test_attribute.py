"""Attributes and their recodes."""

from __future__ import annotations

import pickle

import pytest

from louver.errors import InputError
from louver.schema.attribute import Attribute, Kind
from louver.schema.hierarchy import Hierarchy
from louver.schema.recode import Recode

EDUCATION = Attribute(name="X3", kind=Kind.ORDERED, labels=("<HS", "HS", "College", "Bachelor", "Bachelor+"))
RACE = Attribute(name="race", labels=("white", "black", "asian", "other"))
AGE = Attribute(name="age", kind=Kind.INTEGER, labels=("24", "25", "54", "55", "none"), missing="none")


def test_merge_numbers_new_labels_by_first_old_label():
    coarse, codes = RACE.recoded(Recode("race", merge={"rest": ("other", "black")}))
    assert coarse.labels == ("white", "rest", "asian")
    assert codes.tolist() == [0, 1, 2, 1]
    assert coarse.kind is Kind.CATEGORY
    assert not codes.flags.writeable


def test_merge_of_ordered_labels_keeps_the_order():
    merge = {"degree": ("Bachelor", "Bachelor+"), "none": ("<HS", "HS", "College")}
    coarse, codes = EDUCATION.recoded(Recode("X3", merge=merge))
    assert coarse.labels == ("none", "degree")
    assert codes.tolist() == [0, 0, 0, 1, 1]
    assert coarse.kind is Kind.ORDERED


def test_a_group_may_keep_the_name_of_a_member():
    coarse, _ = RACE.recoded(Recode("race", merge={"white": ("white", "asian")}))
    assert coarse.labels == ("white", "black", "other")


def test_empty_merge_changes_nothing():
    coarse, codes = RACE.recoded(Recode("race", merge={}))
    assert coarse == RACE
    assert codes.tolist() == [0, 1, 2, 3]


def test_bins_of_whole_numbers_keep_the_missing_label_apart():
    coarse, codes = AGE.recoded(Recode("age", bins=(25, 55)))
    assert coarse.labels == ("<25", "25-54", "55+", "none")
    assert codes.tolist() == [0, 1, 1, 2, 3]
    assert coarse.kind is Kind.ORDERED
    assert coarse.missing == "none"


def test_bins_of_numbers():
    dose = Attribute(name="dose", kind=Kind.NUMBER, labels=("0.1", "0.5", "2"))
    coarse, codes = dose.recoded(Recode("dose", bins=(0.5, 2)))
    assert coarse.labels == ("<0.5", "0.5-<2", "2+")
    assert codes.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("kind", "labels"), [("integer", ("9", "25", "60")), ("number", ("9.5", "25", "60"))]
)
def test_bins_of_a_category_need_no_kind_where_its_labels_are_numbers(kind, labels):
    cut = Recode("age", bins=(25, 55))
    coarse, codes = Attribute(name="age", labels=labels[::-1]).recoded(cut)
    assert codes.tolist() == [2, 1, 0]
    assert coarse == Attribute(name="age", kind=kind, labels=labels).recoded(cut)[0]


def test_bins_before_any_label_is_known():
    coarse, codes = Attribute(name="age", kind=Kind.INTEGER).recoded(Recode("age", bins=(18,)))
    assert coarse.labels == ("<18", "18+")
    assert codes.shape == (0,)


def test_merged_integers_become_ordered_labels():
    coarse, _ = AGE.recoded(Recode("age", merge={"young": ("24", "25")}))
    assert coarse.kind is Kind.ORDERED
    unchanged, _ = AGE.recoded(Recode("age", merge={}))
    assert unchanged.kind is Kind.INTEGER


def test_a_merged_missing_label_moves_along():
    ward = Attribute(name="ward", labels=("a", "b", "?"), missing="?")
    assert ward.recoded(Recode("ward", merge={"b or ?": ("b", "?")}))[0].missing == "b or ?"


def test_level_recode_keeps_the_tree_above():
    tree = Hierarchy.from_levels([["a1", "a2", "b1", "unused"], ["a", "a", "b", "b"]])
    region = Attribute(name="region", labels=("b1", "a1", "a2"), hierarchy=tree)
    coarse, codes = region.recoded(Recode("region", level=1))
    assert coarse.labels == ("b", "a")
    assert codes.tolist() == [0, 1, 1]
    assert coarse.hierarchy is not None
    assert coarse.hierarchy.levels == (("a", "b"), ("*",))


def test_a_recode_without_a_name_fits_any_attribute():
    assert RACE.recoded(Recode("", merge={"all": RACE.labels}))[0].size == 1


def test_attributes_are_values():
    copy = pickle.loads(pickle.dumps(AGE))
    assert copy == AGE
    assert hash(copy) == hash(AGE)
    assert copy.code_of("54") == 2
    assert AGE.has_label("24") and not AGE.has_label("23")


TREE = Hierarchy.from_levels([["a", "b"], ["x", "x"]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Attribute(name=""), "needs a name"),
        (lambda: Attribute(name="A", kind=Kind.ORDERED), "is ordered and needs its labels"),
        (lambda: Attribute(name="A", labels=("a", "a")), "twice"),
        (lambda: Attribute(name="A", labels=("a", "")), "empty label"),
        (lambda: Attribute(name="A", missing=""), "empty label"),
        (lambda: Attribute(name="A", labels=("a",), missing="b"), "not listed"),
        (lambda: Attribute(name="A", kind=Kind.INTEGER, labels=("1", "x")), "label 2 is not"),
        (lambda: Attribute(name="A", kind=Kind.INTEGER, labels=("1", "02")), "label 2 is not"),
        (lambda: Attribute(name="A", kind=Kind.NUMBER, labels=("1", "inf")), "label 2 is not"),
        (lambda: Attribute(name="A", kind=Kind.NUMBER, labels=("1", "1.0")), "increasing"),
        (lambda: Attribute(name="A", kind=Kind.INTEGER, labels=("10", "9")), "increasing"),
        (lambda: Attribute(name="A", labels=("a", "c"), hierarchy=TREE), "label 2, which is no leaf"),
        (lambda: RACE.code_of("red"), "no such label"),
        (lambda: RACE.recoded(Recode("sex", merge={})), "does not fit the recode"),
        (lambda: RACE.recoded(Recode("race", bins=(1,))), "cannot be cut into bins"),
        (lambda: AGE.recoded(Recode("age", bins=(1.5,))), "bins must be whole numbers"),
        (lambda: RACE.recoded(Recode("race", level=1)), "has no hierarchy"),
        (lambda: RACE.recoded(Recode("race", merge={"g": ("white", "red")})), 'label 2 of the group "g"'),
        (lambda: RACE.recoded(Recode("race", merge={"other": ("white",)})), "add it to that group"),
        (lambda: EDUCATION.recoded(Recode("X3", merge={"g": ("<HS", "College")})), "next to each other"),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(InputError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "labels", [("1990-02-01", "1990-01-01"), ("1990-01-01", "spring"), ("1990-01-01", "1990-02-30")]
)
def test_labels_of_dates_are_days_in_their_order(labels):
    with pytest.raises(InputError, match="kind date and needs days"):
        Attribute(name="born", kind=Kind.DATE, labels=labels)


def test_days_are_merged_and_lifted_but_not_binned():
    days = ("1990-01-01", "1990-02-01", "1991-01-01")
    born = Attribute(name="born", kind=Kind.DATE, labels=days, hierarchy=Hierarchy.from_dates(days))
    by_year, codes = born.recoded(Recode("born", level=3))
    assert by_year.labels == ("1990", "1991") and by_year.kind is Kind.ORDERED and codes.tolist() == [0, 0, 1]
    with pytest.raises(InputError, match="cannot be cut into bins"):
        born.recoded(Recode("born", bins=(1.0,)))
