"""Hierarchies from columns, files and code prefixes."""

from __future__ import annotations

import gzip

import pytest

from louver.errors import InputError
from louver.schema.hierarchy import Hierarchy

TREE = Hierarchy.from_levels([["1", "2", "3"], ["1-2", "1-2", "3"], ["*", "*", "*"]])


@pytest.mark.parametrize(
    "text",
    [
        "1;1-2;*\n2;1-2;*\n3;3;*\n",
        "level0,level1,level2\n1,1-2,*\n2,1-2,*\n3,3,*\n",
        "\ufeffLevel_0;Level_1;Level_2\r\n1;1-2;*\r\n\r\n2;1-2;*\r\n3;3;*",
        '"1","1-2"\n"2","1-2"\n"3","3"\n',
    ],
)
def test_files_in_the_layout_of_arx(tmp_path, text):
    path = tmp_path / "age.csv"
    path.write_bytes(text.encode())
    assert Hierarchy.from_csv(path) == TREE
    compressed = tmp_path / "age.csv.gz"
    compressed.write_bytes(gzip.compress(text.encode()))
    assert Hierarchy.from_csv(compressed) == TREE


def test_levels_and_maps():
    assert TREE.n_levels == 3
    assert TREE.leaves == TREE.labels_at(0) == ("1", "2", "3")
    assert TREE.labels_at(1) == ("1-2", "3")
    assert TREE.parents(0).tolist() == [0, 0, 1]
    assert TREE.parents(1).tolist() == [0, 0]
    assert TREE.ancestor_of("2", 1) == "1-2"
    assert TREE.above(1) == Hierarchy.from_levels([["1-2", "3"]])


def test_census_codes():
    blocks = ["440010301001", "440010301002", "440030201001", "250010101001"]
    tree = Hierarchy.from_prefixes(blocks, (2, 5, 11, 12))
    assert tree.levels == (
        tuple(blocks),
        ("44001030100", "44003020100", "25001010100"),
        ("44001", "44003", "25001"),
        ("44", "25"),
        ("*",),
    )


def test_codes_longer_than_the_longest_prefix_keep_their_own_level():
    assert Hierarchy.from_prefixes(["44x", "44y"], (2,)).levels == (("44x", "44y"), ("44",))


def test_a_further_leaf_hangs_from_the_root():
    assert TREE.with_leaf("?").levels == (("1", "2", "3", "?"), ("1-2", "3", "?"), ("*",))
    single = Hierarchy.from_levels([["a1", "a2"], ["a", "a"]])
    assert single.with_leaf("?").levels == (("a1", "a2", "?"), ("a", "?"), ("*",))


@pytest.mark.parametrize(
    "columns", [[["level0"], ["level1"]], [["a,b"]], [['"']], [["a;b", "c"], ["x,y", "z,"]]]
)
def test_awkward_labels_survive_a_file(tmp_path, columns):
    tree = Hierarchy.from_levels(columns)
    tree.write_csv(tmp_path / "tree.csv")
    assert Hierarchy.from_csv(tmp_path / "tree.csv") == tree


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Hierarchy.from_levels([]), "no leaves"),
        (lambda: Hierarchy.from_levels([[]]), "no leaves"),
        (lambda: Hierarchy.from_levels([["a", "b"], ["x"]]), "level 1 does not have as many"),
        (lambda: Hierarchy.from_levels([["a", "b"], ["x", ""]]), "row 2 has no label at level 1"),
        (lambda: Hierarchy.from_levels([["a", "b", "a"]]), "row 3 repeats the leaf"),
        (
            lambda: Hierarchy.from_levels([["a", "b", "c"], ["x", "x", "x"], ["p", "p", "q"]]),
            "row 3 puts its label of level 1 under a different label of level 2",
        ),
        (lambda: Hierarchy.from_prefixes(["ab"], ()), "positive and increasing"),
        (lambda: Hierarchy.from_prefixes(["ab"], (0, 1)), "positive and increasing"),
        (lambda: Hierarchy.from_prefixes(["ab"], (2, 1)), "positive and increasing"),
        (lambda: Hierarchy.from_prefixes(["abc", "a"], (1, 2)), "code 2 is shorter"),
        (lambda: TREE.labels_at(3), "levels 0 to 2"),
        (lambda: TREE.parents(2), "levels 0 to 2"),
        (lambda: TREE.ancestor_of("4", 1), "no such leaf"),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(InputError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_days_stand_under_months_quarters_years_and_decades():
    tree = Hierarchy.from_dates(["1989-12-31", "1990-01-01", "1990-04-01"])
    assert tree.levels[1:] == (
        ("1989-12", "1990-01", "1990-04"),
        ("1989-Q4", "1990-Q1", "1990-Q2"),
        ("1989", "1990"),
        ("1980-1989", "1990-1999"),
        ("*",),
    )
    assert Hierarchy.from_dates(["1990-01-01", "1990-04-01"]).levels[-1] == ("1990",)
    for label in ("1990-02-30", "1990", "19900101"):
        with pytest.raises(InputError, match="label 2 is not a day") as caught:
            Hierarchy.from_dates(["1990-01-01", label])
        assert caught.value.row == 2
