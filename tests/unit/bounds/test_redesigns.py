"""Which categories may be merged, how far apart they are, and what a merged one is called."""

from __future__ import annotations

import pytest

from louver.bounds.redesigns import Merging, order_of, recoded_order
from louver.errors import InputError
from louver.schema.attribute import Attribute, Kind
from louver.schema.hierarchy import Hierarchy


def labelled(*labels, **more):
    return Attribute(name="a", labels=labels, **more)


@pytest.mark.parametrize(
    ("labels", "order"),
    [
        (("8", "9", "10"), (0, 1, 2)),
        (("-1.5", "0", "2e3"), None),
        (("25-54", "55+", "<25"), (2, 0, 1)),
        (("10 to 19", "0 to 9", "20+"), (1, 0, 2)),
        (("40", "<40", ">40"), (1, 0, 2)),
        (("0.5-<2", "2+", "<0.5"), (2, 0, 1)),
        (("2020-01", "2020-02"), None),
        (("north", "south"), None),
        (("1", "other"), None),
    ],
)
def test_numbers_and_their_classes_are_in_order(labels, order):
    assert order_of(labelled(*labels)) == order
    assert order_of(labelled(*labels), {"a"}) is None
    assert order_of(labelled(*labels, kind=Kind.ORDERED)) == tuple(range(len(labels)))


def test_missing_values_come_last():
    assert order_of(labelled("none", "2", "1", missing="none")) == (2, 1, 0)


def test_a_recode_keeps_the_order_where_it_merges_neighbours():
    age = labelled("0", "1", "2", "3")
    assert recoded_order((0, 1, 2, 3), [1, 1, 0, 0], labelled("high", "low")) == (1, 0)
    assert recoded_order((0, 1, 2, 3), [0, 1, 1, 0], labelled("ends", "middle")) is None
    assert recoded_order(None, [0, 1, 2, 3], age) is None
    assert recoded_order(None, [0, 0], labelled("x", "y", kind=Kind.ORDERED)) == (0, 1)


def merged(merging, partition=None):
    finest = merging.finest() if partition is None else partition
    return list(merging.coarser(finest))


def test_neighbours_alone_are_merged_where_there_is_an_order():
    age = Merging(attribute=labelled("25-54", "55+", "<25"), order=(2, 0, 1))
    assert merged(age) == [((0, 2), (1,)), ((0, 1), (2,))]
    assert [age.label(group) for group in ((0, 2), (0, 1), (1,))] == ["<25 to 25-54", "25-54 to 55+", "55+"]
    assert merged(Merging(attribute=labelled("x", "y", "z"))) == [
        ((0, 1), (2,)),
        ((0, 2), (1,)),
        ((0,), (1, 2)),
    ]
    assert merged(age, ((0, 2), (1,))) == []


def test_what_must_stay_apart_is_never_merged():
    apart = Merging(attribute=labelled("x", "y", "z"), apart=(("x", "y"), ("y", "z")))
    assert merged(apart) == [((0, 2), (1,))]
    assert merged(Merging(attribute=labelled("x", "y", "z"), is_fixed=True)) == []
    with pytest.raises(InputError, match='label 2 for column "a"') as caught:
        Merging(attribute=labelled("x", "y"), apart=(("x", "Zyx77"),))
    assert caught.value.option == "--apart" and "Zyx77" not in str(caught.value)


TREE = Hierarchy.from_levels([("a", "b", "c", "d"), ("u", "u", "v", "w"), ("p", "p", "p", "q")])


def test_a_level_that_merges_what_must_stay_apart_is_left_out():
    tree = Merging(attribute=labelled("a", "b", "c", "d", hierarchy=TREE), apart=(("a", "c"),))
    assert merged(tree) == [((0, 1), (2,), (3,))]
    assert merged(tree, ((0, 1), (2,), (3,))) == []


def test_far_apart_means_more_than_half_of_the_order_or_of_the_levels():
    five = Merging(attribute=labelled("1", "2", "3", "4", "5"), order=(0, 1, 2, 3, 4))
    assert not five.is_far(((0, 1, 2), (3, 4)))
    assert five.is_far(((0, 1, 2, 3), (4,)))
    tree = Merging(attribute=labelled("a", "b", "c", "d", hierarchy=TREE))
    assert not tree.is_far(((0, 1), (2,), (3,)))
    assert tree.is_far(((0, 1, 2), (3,)))
    assert not Merging(attribute=labelled("x", "y", "z")).is_far(((0, 2), (1,)))


def test_people_without_a_value_are_far_from_all_others():
    """Children have no economic status: they were merged with the retired."""
    status = Merging(attribute=labelled("1", "2", "3", "none", missing="none"), order=(0, 1, 2, 3))
    assert status.is_far(((0,), (1,), (2, 3))) and not status.is_far(((0, 1), (2,), (3,)))
    assert status.label((2, 3)) == "3 | none"


def test_many_numbers_are_offered_in_bands_first():
    """Every band is what merging pair after pair would reach, and missing values stay by themselves."""
    ages = labelled(*map(str, range(24)), "none", missing="none")
    merging = Merging(attribute=ages, order=order_of(ages))
    steps = merged(merging)
    assert [len(step) for step in steps[:4]] == [13, 6, 4, 3]
    assert all((24,) in step for step in steps[:4])
    assert [merging.label(group) for group in steps[1]] == [
        "0 to 4",
        "5 to 9",
        "10 to 14",
        "15 to 19",
        "20 to 23",
        "none",
    ]
    assert len(merged(Merging(attribute=labelled(*map(str, range(11))), order=tuple(range(11))))) == 10
