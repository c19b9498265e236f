"""Ready schemas: their sizes, that DHC persons refine PL94, and how a spec adds to them."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

from louver.errors import InputError
from louver.schema.spec import READY, as_spec
from louver.topdown.extension.first import refinement_of
from louver.topdown.extension.options import ExtendOptions
from louver.topdown.extension.problem import read_household
from louver.topdown.load import read_design

REST = {
    "epsilon": 1,
    "geography": {"column": "block", "prefixes": [0, 1], "levels": ["town", "block"], "leaves": "leaves.csv"},
}


def sizes(name):
    return prod(attribute.size for attribute in as_spec({"schema": name}).schema.attributes)


def test_sizes_of_the_paper():
    assert sizes("pl94") == 2016
    assert sizes("dhc-persons") == 63 * 2 * 116 * 43 * 2


def test_dhc_persons_refine_pl94(tmp_path, monkeypatch):
    (tmp_path / "leaves.csv").write_text("block\n1\n2\n")
    monkeypatch.chdir(tmp_path)
    shares = {"levels": {"town": "1/2", "block": "1/2"}, "queries": {"relationship": "1/2", "sex_age": "1/2"}}
    design = read_design(
        {"schema": "dhc-persons", "topdown": {**REST, "extends": "first", "shares": shares}},
        None,
        ExtendOptions,
    )
    first = {a.name: a.labels for a in as_spec({"schema": "pl94"}).schema.attributes}
    refinement = refinement_of(design, first, "dhc")
    held = np.bincount(refinement.class_of, minlength=2016).reshape(63, 2, 2, 8)
    # 15 places in a household, 28 types of quarters; 18 years under age and 98 over; two sexes.
    assert np.array_equal(held[0, 0].sum(axis=0), np.array([15, 6, 3, 1, 5, 1, 2, 10]) * 116 * 2)
    assert np.array_equal(held[0, 0].sum(axis=1), [43 * 18 * 2, 43 * 98 * 2])
    codes = np.unravel_index(np.flatnonzero(~design.is_possible), design.shape)
    relationship, age = design.attributes[3], codes[2]
    assert {relationship.labels[i] for i in np.unique(codes[3])} == {"householder", "spouse", "partner"}
    assert set(np.unique(age)) == set(range(15))
    rules = {rule.name: rule for rule in design.options.rules}
    assert list(rules)[:4] == ["couples", "parents", "parents-in-law", "householders"]
    allowed = {
        code: [int(age) for age in design.attributes[2].labels if age not in rule.cells["age"]]
        for rule in list(rules.values())[4:]
        for code in rule.cells["relationship"]
    }
    assert all(rule.at_most == 0 for rule in list(rules.values())[4:])
    spans = {code: (ages[0], ages[-1]) for code, ages in allowed.items()}
    assert all(len(ages) == ages[-1] - ages[0] + 1 for ages in allowed.values())
    assert spans == {
        **dict.fromkeys(("101", "102", "103", "104", "105"), (15, 115)),
        **dict.fromkeys(("106", "404", "601", "602"), (17, 65)),
        **dict.fromkeys(("201", "202", "203"), (0, 25)),
        **dict.fromkeys(("801", "802"), (16, 115)),
        **dict.fromkeys(("900", "901"), (16, 75)),
        "301": (20, 115), "405": (3, 30), "501": (16, 65),
    }  # fmt: skip
    home = design.options.refines["housing"].merge["household"]
    assert design.options.household.members["relationship"] == home
    household = read_household(design, "dhc")
    assert [(gap.sign, gap.years) for gap in household.gaps] == [(-1, 15), (1, 15), (-1, 30)]
    assert np.array_equal(household.years.reshape(design.shape)[5, 1, :, 7, 0], np.arange(116))
    assert rules["householders"].cells["relationship"] == [one for one in home if one != "householder"]


def test_a_spec_adds_to_a_ready_schema_and_goes_before_it():
    mapping = {
        "schema": "pl94",
        "attributes": {"race": {"labels": ["a", "b"]}, "sex": {"labels": ["f", "m"]}},
        "structural_zeros": [{"sex": ["f"], "housing": ["military"]}],
        "topdown": {"queries": {"voters": ["race"], "sex": ["sex"]}, "epsilon": 1},
    }
    spec = as_spec(mapping)
    assert spec.schema.names == ("race", "hispanic", "voting_age", "housing", "sex")
    assert spec.schema.attribute("race").labels == ("a", "b")
    assert spec.options("topdown") == {
        "queries": {"housing": ["housing"], "voters": ["race"], "sex": ["sex"]},
        "epsilon": 1,
    }
    larger = as_spec(
        {"schema": "dhc-persons", "structural_zeros": [{"sex": ["male"], "relationship": ["301"]}]}
    )
    assert len(larger.schema.structural_zeros) == 2


def test_a_rule_goes_in_place_of_a_ready_one_of_its_name():
    def rules(*own):
        spec = as_spec({"schema": "dhc-persons", "topdown": {"rules": list(own)}})
        return {rule["name"]: rule["at_most"] for rule in spec.options("topdown")["rules"]}

    usual, cells = rules(), {"relationship": ["301"]}
    assert rules({"name": "new", "cells": cells, "at_most": 0}) == {**usual, "new": 0}
    replaced = {
        "name": "ages in nursing homes",
        "cells": cells,
        "at_most": 3,
        "of": {"relationship": ["501"]},
    }
    assert rules(replaced) == {**usual, "ages in nursing homes": 3}


@pytest.mark.parametrize("name", ["pl95", 7, ["pl94"]])
def test_unknown_schemas(name):
    with pytest.raises(InputError, match='key "schema" must be "pl94" or "dhc-persons"') as caught:
        as_spec({"schema": name})
    assert caught.value.option == "schema" and set(READY) == {"pl94", "dhc-persons"}
