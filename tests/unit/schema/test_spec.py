"""The spec file."""

from __future__ import annotations

import re

import numpy as np
import pytest

from louver.errors import InputError
from louver.schema.attribute import Attribute, Kind
from louver.schema.hierarchy import Hierarchy
from louver.schema.recode import Recode
from louver.schema.spec import HierarchyRule, Schema, read_spec
from louver.schema.validate import Options, validated

SPEC = """
[source]
file = "data/patients.csv"
weight = "count"

[attributes.age]
kind = "integer"
missing = "unknown"
bins = [25, 55]

[attributes.region]
labels = ["44001", "44003"]
missing = "abroad"
hierarchy = { prefixes = [2, 5] }

[attributes.job]
hierarchy = "job.csv"
level = 1

[attributes.tract]
hierarchy = { columns = ["county", "tract"] }

[attributes.sex]
merge = { any = ["f", "m"] }

[[structural_zeros]]
age = ["<25"]
region = ["44003", "44001"]

[bounds]
small = 5
rows = ["age"]
"""


def write_spec(folder, text=SPEC):
    (folder / "job.csv").write_text("nurse;health\ndoctor;health\nbaker;trade\n")
    path = folder / "audit.toml"
    path.write_text(text)
    return path


def test_read_spec(tmp_path):
    spec = read_spec(write_spec(tmp_path))
    schema = spec.schema
    assert spec.data == str(tmp_path / "data/patients.csv")
    assert spec.source.weight == "count"
    assert spec.options("bounds") == {"small": 5, "rows": ["age"]}
    assert spec.options("groups") == {}
    assert schema.names == ("age", "region", "job", "tract", "sex")
    assert schema.attribute("age") == Attribute(name="age", kind=Kind.INTEGER, missing="unknown")
    assert schema.recode_of("age") == Recode("age", bins=(25, 55))
    assert schema.recode_of("region") is None
    age, region, job, tract, sex = schema.coded
    assert age.labels == ("<25", "25-54", "55+", "unknown")
    assert region.labels == ("44001", "44003", "abroad")
    assert region.hierarchy is not None
    assert region.hierarchy.levels[1] == ("44", "abroad")
    assert job.labels == ("health", "trade")
    assert schema.hierarchy_rules == {"tract": HierarchyRule(columns=("county", "tract"))}
    assert tract.labels == sex.labels == ()
    assert schema.recode_of("sex") == Recode("sex", merge={"any": ("f", "m")})


def test_options_are_a_copy(tmp_path):
    spec = read_spec(write_spec(tmp_path))
    spec.options("bounds")["rows"].append("sex")
    assert spec.options("bounds")["rows"] == ["age"]


def test_prefixes_without_labels_wait_for_the_data(tmp_path):
    text = "[source]\nuri = 'postgresql://x'\n[attributes.block]\nhierarchy = { prefixes = [2, 5] }"
    spec = read_spec(write_spec(tmp_path, text))
    assert spec.schema.hierarchy_rules == {"block": HierarchyRule(prefixes=(2, 5))}
    assert spec.data == "postgresql://x"


def test_an_empty_spec_is_a_spec(tmp_path):
    spec = read_spec(write_spec(tmp_path, ""))
    assert spec.data is None
    assert spec.schema.attributes == ()


def test_structural_zeros(tmp_path):
    schema = read_spec(write_spec(tmp_path)).schema
    age, region = schema.coded[:2]
    cells = np.array([[0, 0], [0, 1], [0, 2], [1, 0]])
    assert schema.is_structural_zero(cells, (age, region)).tolist() == [True, True, False, False]
    swapped = schema.is_structural_zero(cells[:, ::-1], (region, age))
    assert swapped.tolist() == [True, True, False, False]
    assert schema.is_structural_zero(cells[:, :1], (age,)).tolist() == [False] * 4


def test_a_cell_in_any_structural_zero_is_one():
    schema = Schema(attributes=(A,), structural_zeros=({"A": ("a",)}, {"A": ("b",)}))
    assert schema.is_structural_zero(np.array([[0], [1]])).tolist() == [True, True]


def test_a_structural_zero_on_labels_that_do_not_occur_matches_nothing():
    schema = Schema(attributes=(Attribute(name="A"),), structural_zeros=({"A": ("x",)},))
    seen = Attribute(name="A", labels=("y",))
    assert schema.is_structural_zero(np.array([[0]]), (seen,)).tolist() == [False]


A = Attribute(name="A", labels=("a", "b"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Schema(attributes=(A, A)), "an attribute twice"),
        (
            lambda: Schema(attributes=(A,), recodes=(Recode("A", merge={}), Recode("A", merge={}))),
            "two recodes",
        ),
        (lambda: Schema(attributes=(A,), recodes=(Recode("B", merge={}),)), 'no attribute "B"'),
        (lambda: Schema(attributes=(A,), hierarchy_rules={"B": HierarchyRule()}), 'no attribute "B"'),
        (lambda: Schema(attributes=(A,), structural_zeros=({},)), "names no attribute"),
        (lambda: Schema(attributes=(A,), structural_zeros=({"B": ("a",)},)), 'no attribute "B"'),
        (lambda: Schema(attributes=(A,), structural_zeros=({"A": ("a", "c")},)), "lists label 2"),
    ],
)
def test_a_schema_that_contradicts_itself_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[bounds]", "[bound]", 'audit.toml: key "bound" is not a known key; check its spelling.'),
        ('weight = "count"', "weight = 3", 'audit.toml: key "source.weight" must be text in quotes.'),
        (
            'weight = "count"',
            'uri = "postgresql://x"',
            'audit.toml: key "source" names both a file and a uri; give one of them.',
        ),
        (
            'weight = "count"',
            'table = "t"\nquery = "q"',
            'audit.toml: key "source" names both a table and a query; give one of them.',
        ),
        (
            'weight = "count"',
            'weight = "count"\nwide = { a = { sex = "f" } }',
            'audit.toml: key "source" has both a weight column and wide columns; give one of them.',
        ),
        (
            'weight = "count"',
            "wide = { a = { sex = 1 } }",
            'audit.toml: key "source.wide.a.sex" must be text in quotes.',
        ),
        (
            '"integer"',
            '"number of years"',
            "audit.toml: key \"attributes.age.kind\" must be 'category', 'ordered', 'integer', 'number' or 'date'.",
        ),
        ("[25, 55]", '[25, "55"]', 'audit.toml: key "attributes.age.bins", item 2 must be a number.'),
        ("[25, 55]", "[25, inf]", 'audit.toml: key "attributes.age.bins", item 2 must be a finite number.'),
        ("[25, 55]", "[]", 'audit.toml: key "attributes.age.bins" must not be empty.'),
        (
            "[25, 55]",
            "[55, 25]",
            'audit.toml: key "attributes.age": the recode of attribute "age" needs bins whose edges '
            "increase.",
        ),
        (
            "bins = [25, 55]",
            "bins = [25]\nlevel = 1",
            'audit.toml: key "attributes.age" has more than one of bins, merge and level; keep one.',
        ),
        ('"unknown"', '""', 'audit.toml: key "attributes.age.missing" must not be empty.'),
        ("level = 1", "level = -1", 'audit.toml: key "attributes.job.level" must be at least 0.'),
        ("level = 1", "level = 1.5", 'audit.toml: key "attributes.job.level" must be a whole number.'),
        (
            "level = 1",
            "level = 9",
            'audit.toml: key "attributes": job.csv has levels 0 to 2; choose one of them.',
        ),
        (
            '"job.csv"',
            '"jobs.csv"',
            'audit.toml: key "attributes.job": jobs.csv does not exist; check the path.',
        ),
        (
            '"job.csv"',
            "7",
            'audit.toml: key "attributes.job.hierarchy" must be a file name in quotes or a table.',
        ),
        (
            "{ prefixes = [2, 5] }",
            "{ prefixes = [2], columns = ['a'] }",
            'audit.toml: key "attributes.region.hierarchy" needs exactly one of file, prefixes and columns.',
        ),
        ('["44001", "44003"]', '"44001"', 'audit.toml: key "attributes.region.labels" must be a list.'),
        ('["f", "m"]', '"f"', 'audit.toml: key "attributes.sex.merge.any" must be a list.'),
        (
            '"44001"]\n\n[bounds]',
            '"99"]\n\n[bounds]',
            'audit.toml: key "structural_zeros": a structural zero lists label 2 for "region", '
            "which does not have it.",
        ),
        ("[[structural_zeros]]", "[structural_zeros]", 'audit.toml: key "structural_zeros" must be a list.'),
        (
            "small = 5",
            "small = ",
            "audit.toml is not valid TOML at line 31, column 9; correct the syntax there.",
        ),
        ("[source]", "[[source]]", 'audit.toml: key "source" must be a table.'),
    ],
)
def test_messages_name_file_key_and_expectation(tmp_path, old, new, message):
    assert old in SPEC
    with pytest.raises(InputError, match=f"^{re.escape(message)}$") as caught:
        read_spec(write_spec(tmp_path, SPEC.replace(old, new, 1)))
    assert caught.value.file == "audit.toml"


class Nested(Options):
    ratio: float = 0.5
    flags: tuple[bool, ...] = ()


class Audit(Options):
    small: int
    part: Nested = Nested()
    parts: tuple[Nested, ...] = ()
    shape: tuple[int, int] = (1, 1)
    key: bytes = b""


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({}, 'x.toml [audit]: key "small" is required.'),
        ({"small": True}, 'x.toml [audit]: key "small" must be a whole number.'),
        ({"small": 1, "part": {"ratio": "s3cr3t"}}, 'x.toml [audit]: key "part.ratio" must be a number.'),
        (
            {"small": 1, "parts": ({}, {"flags": (True, "s3cr3t")})},
            'x.toml [audit]: key "parts[2].flags", item 2 must be true or false.',
        ),
        ({"small": 1, "shape": (1, "s3cr3t")}, 'x.toml [audit]: key "shape", item 2 must be a whole number.'),
        ({"small": 1, "key": "s3cr3t"}, 'x.toml [audit]: key "key" has a value of the wrong form.'),
    ],
)
def test_validated_names_the_place_and_never_the_value(mapping, message):
    with pytest.raises(InputError, match=f"^{re.escape(message)}$") as caught:
        validated(Audit, mapping, "x.toml [audit]")
    assert caught.value.__context__ is None
    assert caught.value.option is not None


def test_validated_returns_the_model():
    assert validated(Audit, {"small": 3, "part": {"ratio": 1}}, "x").part.ratio == 1.0


def test_a_hierarchy_file_lists_the_labels(tmp_path):
    (tmp_path / "t.csv").write_text("a;x\nb;x\n")
    (tmp_path / "s.toml").write_text('[attributes.A]\nkind = "ordered"\nhierarchy = "t.csv"\nmissing = "b"\n')
    attribute = read_spec(tmp_path / "s.toml").schema.attribute("A")
    assert attribute == Attribute(
        name="A",
        kind=Kind.ORDERED,
        labels=("a", "b"),
        hierarchy=Hierarchy.from_levels([["a", "b"], ["x", "x"]]),
        missing="b",
    )
