"""Specs, lists of leaves and public tables that cannot be used: one sentence each, naming where and never what."""

from __future__ import annotations

import re

import numpy as np
import pytest

from louver.errors import InputError
from louver.topdown.load import read_design
from louver.topdown.measuring.noise_plan import make_plan
from topdown_town import SPEC, write_town

SECRET = "s3cr3t"

BAD_SPECS = {
    "no attribute but regions": (SPEC[SPEC.index("[attributes.quarters]"):SPEC.index("[topdown]")], "", "besides the regions"),
    "too many cells": (
        'labels = ["a", "b", "c"]', f"labels = {[str(i) for i in range(1 << 18)]}", "more than 1,048,576 cells"),
    "query named as a path": ("age_race = [", '"../age_race" = [', "letters, digits"),
    "query without a name": ("age_race = [", '"" = [', "letters, digits"),
    "queries that differ in case": ("age_race = [", 'Quarters = ["age"]\nage_race = [', "case"),
    "attribute named as a column of tables": (
        "[topdown.queries]", '[topdown.queries]\nof_levels = ["level"]', "of_levels"),
    "region with a recode": (
        "[attributes.race]", '[attributes.block]\nlabels = ["1A1", "1A2"]\nmerge = { zz = ["1A1", "1A2"] }\n[attributes.race]',
        "is a region"),
    "leaves from the records": ('leaves = "leaves.csv"', 'leaves = "./people.csv"', "geography.leaves"),
    "bounds from the records": (
        'name = "prisons"\nfile = "facilities.csv"', 'name = "prisons"\nfile = "people.csv"', "bounds[2]"),
    "misspelt section": ("[topdown]", "[top_down]", "top_down"),
    "no section": (SPEC[SPEC.index("[topdown]") :], "", "budget"),
    "unknown key": ("epsilon = 2", "epsilon = 2\nepsilno = 3", "epsilno"),
    "no budget": ("epsilon = 2", "", "budget"),
    "two budgets": ("epsilon = 2", "epsilon = 2\nrho = 1\ndelta = 1e-9", "budget"),
    "negative budget": ("epsilon = 2", "epsilon = -2", "epsilon"),
    "budget that is text": ("epsilon = 2", f'epsilon = "{SECRET}"', "epsilon"),
    "rho without delta": ("epsilon = 2", "rho = 2", "delta"),
    "delta alone": ("epsilon = 2", "delta = 1e-9", "budget"),
    "epsilon with a delta above one": ("epsilon = 2", "epsilon = 2\ndelta = 2", "delta"),
    "epsilon with a delta of one": ("epsilon = 2", "epsilon = 2\ndelta = 1", "delta"),
    "epsilon with a delta of zero": ("epsilon = 2", "epsilon = 2\ndelta = 0", "delta"),
    "epsilon with a delta below any": ("epsilon = 2", 'epsilon = 2\ndelta = "1e-200"', "delta"),
    "a delta that is no number": ("epsilon = 2", 'epsilon = 2\ndelta = "Xyzzy"', "delta"),
    "a delta that is a list": ("epsilon = 2", "epsilon = 2\ndelta = [1]", "delta"),
    "too large an epsilon with a delta": ("epsilon = 2", "epsilon = 20000\ndelta = 1e-9", "epsilon"),
    "too small an epsilon with a delta": ("epsilon = 2", "epsilon = 1e-7\ndelta = 1e-9", "epsilon"),
    "delta above one": ("epsilon = 2", "rho = 2\ndelta = 2", "delta"),
    "unknown neighbours": ("epsilon = 2", f'epsilon = 2\nneighbours = "{SECRET}"', "neighbours"),
    "level shares above one": ('town = "1/4"', 'town = "1/2"', "sums to 5/4"),
    "level shares below one": ('town = "1/4"', 'town = "1/5"', "not to 1"),
    "a level without share": ('town = "1/4", ', "", "every level"),
    "share of no level": ('town = "1/4"', f'{SECRET} = "1/4"', "every level"),
    "query shares above one": ('detailed = "1/2"', 'detailed = "3/4"', "shares.queries"),
    "no detailed share": ('detailed = "1/2"', 'x = "1/2"', "shares.queries.x"),
    "detailed left out": ('{ quarters = "1/4", age_race = "1/4", detailed = "1/2" }',
                          '{ quarters = "1/2", age_race = "1/2" }', "detailed"),
    "share of zero": ('quarters = "1/4", age_race = "1/4"', 'quarters = 0, age_race = "1/2"', "quarters"),
    "shares at no level": ("[topdown.shares]", "[topdown.shares]\nat = { nowhere = { detailed = 1 } }", "nowhere"),
    "shares at a level that do not sum": ("[topdown.shares]",
                                          '[topdown.shares]\nat = { ward = { detailed = "1/2" } }', "shares.at.ward"),
    "query of an unknown attribute": ('age_race = ["age", "race"]', f'age_race = ["{SECRET}"]', "age_race"),
    "query with an attribute twice": ('age_race = ["age", "race"]', 'age_race = ["age", "age"]', "twice"),
    "query named detailed": ('age_race = ["age", "race"]', 'detailed = ["age"]', "detailed"),
    "merge of an attribute not listed": (
        'age_race = ["age", "race"]',
        'age_race = { attributes = ["age"], merge = { race = { x = ["a", "b"] } } }', "merges"),
    "merge of an unknown label": (
        'age_race = ["age", "race"]',
        'age_race = { attributes = ["race"], merge = { race = { x = ["' + SECRET + '"] } } }', "label"),
    "no geography": ("[topdown.geography]", "[topdown.geographie]", "geographie"),
    "column and columns": ('column = "block"', 'column = "block"\ncolumns = ["block"]', "geography"),
    "column without prefixes": ("prefixes = [0, 1, 2, 3]", "", "geography"),
    "prefixes that do not increase": ("prefixes = [0, 1, 2, 3]", "prefixes = [0, 2, 2, 3]", "prefix"),
    "one prefix too few": ("prefixes = [0, 1, 2, 3]", "prefixes = [0, 1, 3]", "prefix"),
    "more than one root": ("prefixes = [0, 1, 2, 3]", "prefixes = [1, 2, 3, 3]", "prefix"),
    "several regions on top": (
        'levels = ["town", "ward", "area", "block"]\nprefixes = [0, 1, 2, 3]',
        'levels = ["ward", "area", "block"]\nprefixes = [1, 2, 3]', "more than one region"),
    "two levels of one name": ('levels = ["town", "ward",', 'levels = ["town", "town",', "distinct names"),
    "codes of another length": ("prefixes = [0, 1, 2, 3]", "prefixes = [0, 1, 2, 4]", "leaf code 1"),
    "no list of leaves": ('leaves = "leaves.csv"', f'leaves = "{SECRET}.csv"', "does not exist"),
    "leaves without the column": ('column = "block"', f'column = "{SECRET}"', "column"),
    "invariant at no level": ('level = "ward"', f'level = "{SECRET}"', "invariants[1]"),
    "invariant of an unknown attribute": (
        'level = "ward"', f'level = "ward"\ncells = {{ {SECRET} = ["a"] }}', "invariants[1]"),
    "invariant of an unknown label": (
        'level = "ward"', f'level = "ward"\ncells = {{ race = ["{SECRET}"] }}', "label 1"),
    "two statements of one name": ('name = "prisons"', 'name = "dormitories"', "same name"),
    "bounds without a bound": ('facilities = "jail"', "", "bounds[2]"),
    "facilities and lower": ('facilities = "jail"', 'facilities = "jail"\nlower = 1', "bounds[2]"),
    "bounds from no file": ('file = "facilities.csv"\ncells = { quarters = ["jail"] }',
                            f'file = "{SECRET}.csv"\ncells = {{ quarters = ["jail"] }}', "does not exist"),
    "bounds from no column": ('facilities = "jail"', f'facilities = "{SECRET}"', "column"),
    "lower above upper": ('facilities = "jail"', "lower = 9\nupper = 3", "row 1"),
    "covariate from the records": (
        "[topdown.queries]", '[[topdown.covariates]]\ncolumn = "block"\nfile = "people.csv"\n[topdown.queries]', "covariates[1]"),
    "covariate that is text": (
        "[topdown.queries]", '[[topdown.covariates]]\ncolumn = "block"\n[topdown.queries]', "not a number of zero or more on row 1"),
    "covariate about an unknown label": (
        "[topdown.queries]", f'[[topdown.covariates]]\ncolumn = "block"\ncells = {{ race = ["{SECRET}"] }}\n[topdown.queries]',
        "covariates[1]"),
    "an attribute without labels": ('[attributes.race]\nlabels = ["a", "b", "c"]', "[attributes.race]", "labels"),
    "everything is a structural zero": (
        'quarters = ["jail"]\nage = ["child"]', 'quarters = ["home", "dorm", "jail"]', "structural zeros"),
}  # fmt: skip


# Names of files, columns and keys that the spec itself gives are told; everything else is not.
TOLD = ("no list of leaves", "leaves without the column", "bounds from no file", "bounds from no column")


@pytest.mark.parametrize("name", BAD_SPECS)
def test_a_bad_spec_is_one_sentence(tmp_path, name):
    old, new, expected = BAD_SPECS[name]
    assert SPEC.count(old) >= 1
    path = write_town(tmp_path, SPEC.replace(old, new, 1))
    with pytest.raises(InputError) as error:
        make_plan(read_design(path))
    sentence = str(error.value)
    assert re.search(re.escape(expected), sentence), sentence
    assert "\n" not in sentence and sentence.endswith(".")
    assert (SECRET in sentence) == (name in TOLD)


BAD_TABLES = {
    "a leaf twice": ("leaves.csv", "1A2\n", "1A2\n1A2\n", "occurs twice"),
    "no leaves": ("leaves.csv", None, "block\n", "no rows|empty"),
    "a leaf without code": ("leaves.csv", "1A2\n", '""\n', "row 2"),
    "a region that is no leaf": ("facilities.csv", "1A2,", "9Z9,", "row 2"),
    "a leaf with two rows": ("facilities.csv", "1A2,", "1A1,", "row 2"),
    "a leaf without row": ("facilities.csv", "2B2,0,0,36\n", "", "no row"),
    "a number that is text": ("facilities.csv", "1A2,1,", f"1A2,{SECRET},", "row 2"),
    "a negative number": ("facilities.csv", "1A2,1,", "1A2,-1,", "row 2"),
    "a fraction": ("facilities.csv", "1A2,1,", "1A2,1.5,", "row 2"),
    "a number that is missing": ("facilities.csv", "1A2,1,", "1A2,,", "row 2"),
    "a number beyond all bounds": ("facilities.csv", "1A2,1,", "1A2,99999999999999,", "row 2"),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_a_bad_public_table_is_one_sentence(tmp_path, name):
    file, old, new, expected = BAD_TABLES[name]
    path = write_town(tmp_path)
    text = (tmp_path / file).read_text()
    assert old is None or old in text.replace("\r\n", "\n")
    text = new if old is None else text.replace("\r\n", "\n").replace(old, new, 1)
    (tmp_path / file).write_text(text)
    with pytest.raises(InputError) as error:
        read_design(path)
    sentence = str(error.value)
    assert re.search(expected, sentence), sentence
    assert file in sentence and SECRET not in sentence and "\n" not in sentence


def test_covariates_are_numbers_of_the_leaves(tmp_path):
    given = '[[topdown.covariates]]\ncolumn = "units"\n[[topdown.covariates]]\ncolumn = "dorm"\nfile = "facilities.csv"\n'
    path = write_town(tmp_path, SPEC.replace("[topdown.queries]", given + "[topdown.queries]"))
    leaves = (tmp_path / "leaves.csv").read_text().split()
    (tmp_path / "leaves.csv").write_text(
        "\n".join(["block,units", *(f"{b},{i}.5" for i, b in enumerate(leaves[1:]))])
    )
    design = read_design(path)
    assert [one.values.tolist() for one in design.covariates] == [
        [i + 0.5 for i in range(len(leaves) - 1)], [0, 1, 0, 0, 0, 0, 0, 2, 0]
    ]  # fmt: skip
    assert design.measured_fingerprint() == read_design(write_town(tmp_path / "other")).measured_fingerprint()
    for number in ("-1", "1e9", "nan", SECRET):
        (tmp_path / "leaves.csv").write_text(
            "\n".join(["block,units", *(f"{block},{number}" for block in leaves[1:])])
        )
        with pytest.raises(
            InputError, match='column "units" in leaves.csv is not a number .* on row 1'
        ) as error:
            read_design(path)
        assert SECRET not in str(error.value)
    alone = re.sub(r"(?s)\[topdown.geography\].*?(?=\[topdown.queries\])", given, SPEC)
    alone = re.sub(r"(?s)\[topdown.shares\].*", "", alone)
    with pytest.raises(InputError, match="needs a geography"):
        read_design(write_town(tmp_path / "alone", alone))


def test_columns_that_do_not_nest_are_two_regions(tmp_path):
    """Equal labels under two parents are different regions, so nothing can fail to nest."""
    spec = SPEC.replace(
        'column = "block"\nlevels = ["town", "ward", "area", "block"]\nprefixes = [0, 1, 2, 3]',
        'columns = ["ward", "block"]\nlevels = ["ward", "block"]',
    ).replace(
        '{ town = "1/4", ward = "1/4", area = "1/4", block = "1/4" }', '{ ward = "1/2", block = "1/2" }'
    )
    path = write_town(tmp_path, spec)
    (tmp_path / "leaves.csv").write_text("ward,block\n1,x\n1,y\n")
    (tmp_path / "facilities.csv").write_text("ward,block,dorm,jail\n1,x,0,0\n1,y,1,0\n")
    assert read_design(path).spine.leaves == ("1/x", "1/y")
    (tmp_path / "leaves.csv").write_text("ward,block\n1,x/2\n")
    with pytest.raises(InputError, match="slash"):
        read_design(path)
    (tmp_path / "leaves.csv").write_text("ward,block\n1,x\n2,x\n")
    with pytest.raises(InputError, match="more than one region"):
        read_design(path)


def test_too_many_types_are_refused(tmp_path):
    labels = ", ".join(f'"r{i}"' for i in range(12))
    spec = SPEC.replace('labels = ["a", "b", "c"]', f"labels = [{labels}]")
    for i in range(11):
        spec += (
            f'\n[[topdown.invariants]]\nname = "race {i}"\nlevel = "ward"\ncells = {{ race = ["r{i}"] }}\n'
        )
    with pytest.raises(InputError, match="at most 10"):
        make_plan(read_design(write_town(tmp_path, spec)))


def test_a_coarser_query_counts_merged_labels(tmp_path):
    spec = SPEC.replace(
        'age_race = ["age", "race"]',
        'age_race = { attributes = ["age", "race"], merge = { race = { bc = ["b", "c"] } } }',
    )
    design = read_design(write_town(tmp_path, spec))
    query = next(query for query in design.queries if query.name == "age_race")
    assert query.n_rows == 4
    # Cells run over quarters, age, race, the last fastest.
    assert query.row_of[:6].tolist() == [0, 1, 1, 2, 3, 3]
    meaning = design.query_attributes[1]
    assert [attribute.labels for attribute in meaning] == [("adult", "child"), ("a", "bc")]


def test_types_are_the_rows_of_a_measured_query(tmp_path):
    plan = make_plan(read_design(write_town(tmp_path)))
    assert plan.n_types == 3
    assert np.array_equal(plan.type_of, np.repeat([0, 1, 2], 6))
    # Age and race are what the failsafe keeps.
    assert np.array_equal(plan.kept_margin(), np.tile(np.arange(6), 3))


def test_the_fingerprint_tells_designs_apart(tmp_path):
    prints = set()
    for number, (old, new) in enumerate(
        [
            ("x", "x"),
            ("epsilon = 2", "epsilon = 3"),
            ('["a", "b", "c"]', '["a", "b", "d"]'),
            ('jail"\n', 'dorm"\n'),
        ]
    ):
        path = write_town(tmp_path / str(number), SPEC.replace(old, new))
        prints.add(read_design(path).fingerprint())
    assert len(prints) == 4


@pytest.mark.parametrize("way", ["hard link", "uri"])
def test_the_records_are_no_public_table_under_any_name(tmp_path, way):
    """A bound read from the records would publish exact counts of every leaf as if they were known."""
    town = write_town(tmp_path / "town")
    people = town.parent / "people.csv"
    text = town.read_text()
    if way == "uri":
        text = text.replace('file = "people.csv"', f'uri = "{people}"').replace("leaves.csv", "people.csv")
    else:
        (town.parent / "linked.csv").hardlink_to(people)
        text = text.replace("leaves.csv", "linked.csv")
    town.write_text(text)
    with pytest.raises(InputError, match="confidential source"):
        read_design(town)
