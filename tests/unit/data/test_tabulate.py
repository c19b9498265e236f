"""Tabulating: counts from records, weights and wide columns, under a schema and without one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from louver.data import read as read_module
from louver.data.histogram import Histogram
from louver.data.read import open_source
from louver.data.samples import sample_path
from louver.data.tabulate import coded_batches, read_codes, read_values, tabulate, tabulate_in_parts
from louver.errors import InputError
from louver.schema.attribute import Attribute, Kind
from louver.schema.recode import Recode
from louver.schema.spec import HierarchyRule, Schema
from oracles import tables

PEOPLE = pa.table(
    {
        "sex": ["f", "m", "f", "m", "f"],
        "age": ["24", "25", "54", "55", "100"],
        "block": ["44001", "44001", "44003", "25001", "25001"],
        "state": ["44", "44", "44", "25", "25"],
        "n": [1, 0, 2, 3, 4],
    }
)


def counted(data, names, **options):
    with open_source(data) as source:
        return tabulate(source, names, **options)


def read(data, names, schema=None):
    with open_source(data) as source:
        return read_codes(source, names, schema)


def test_records_weights_and_their_order():
    assert tables.table_of(counted(PEOPLE, ["state", "sex"])) == {
        ("25", "f"): 1,
        ("25", "m"): 1,
        ("44", "f"): 2,
        ("44", "m"): 1,
    }
    weighted = counted(PEOPLE, ["sex"], weight="n")
    assert tables.table_of(weighted) == {("f",): 7, ("m",): 3}
    assert counted(PEOPLE, [], weight="n").counts.tolist() == [10]


def test_labels_of_cells_without_a_count_stay_in_the_domain():
    histogram = counted(pa.table({"a": ["x", "y"], "n": [0, 1]}), ["a"], weight="n")
    assert histogram.attributes[0].labels == ("x", "y")
    assert histogram.codes.tolist() == [[1]]


def test_natural_order_of_labels():
    assert counted(PEOPLE, ["age"]).attributes[0].labels == ("24", "25", "54", "55", "100")
    mixed = pa.table({"a": ["10", "9", "x"]})
    assert counted(mixed, ["a"]).attributes[0].labels == ("10", "9", "x")
    same_number = pa.table({"a": ["1", "01", "-1", "1e1", "2.5"]})
    assert counted(same_number, ["a"]).attributes[0].labels == ("-1", "01", "1", "2.5", "1e1")


def test_columns_may_have_any_name():
    names = ["key_0", "select", 'a"b', "it's", "records", "row", "is_hit", "1", "a b", "ü"]
    frame = pa.table({name: [name, "other"] for name in names})
    histogram = counted(frame, names)
    assert histogram.names == tuple(names)
    assert tables.table_of(histogram) == {tuple(names): 1, ("other",) * len(names): 1}
    for name in names:
        frame = pa.table({**{other: ["x", "y"] for other in names}, name: ["z", None]})
        with pytest.raises(InputError, match="has no value on row 2"):
            counted(frame, names)


def test_types_other_than_text():
    frame = pa.table(
        {
            "flag": [True, False],
            "time": pa.array([0, 3600], pa.timestamp("s", tz="Asia/Tokyo")),
            "day": pa.array([0, 1], pa.date32()),
            "price": pa.array(["1.50", "2.00"]).cast(pa.decimal128(5, 2)),
            "nothing": pa.array([1, 1], pa.int8()),
        }
    )
    assert counted(frame, ["flag"]).attributes[0].labels == ("false", "true")
    assert counted(frame, ["time"]).attributes[0].labels == (
        "1970-01-01 00:00:00+00",
        "1970-01-01 01:00:00+00",
    )
    assert counted(frame, ["day"]).attributes[0].labels == ("1970-01-01", "1970-01-02")
    assert counted(frame, ["price"]).attributes[0].labels == ("1.50", "2.00")
    assert counted(frame, ["flag"], weight="nothing").total == 2


def test_weights_of_other_types():
    exact = pa.table({"a": ["x", "y"], "n": pa.array(["3.00", "4"]).cast(pa.decimal128(5, 2))})
    assert counted(exact, ["a"], weight="n").total == 7
    text = pa.table({"a": ["x", "y"], "n": [" 3", "+4.0"]})
    assert counted(text, ["a"], weight="n").total == 7
    floats = pa.table({"a": ["x", "y"], "n": [3.0, 4.0]})
    assert counted(floats, ["a"], weight="n").total == 7
    large = pa.table({"a": ["x", "y"], "n": [str(2**62), str(2**62 - 1)]})
    assert counted(large, ["a"], weight="n").total == 2**63 - 1


WIDE = {
    "f_young": {"sex": "f", "age": "young"},
    "m_young": {"sex": "m", "age": "young"},
    "m_old": {"sex": "m", "age": "old"},
}
WIDE_FRAME = pa.table(
    {"county": ["A", "B", "A"], "f_young": [1, 2, 3], "m_young": [9, 0, 0], "m_old": [5, 6, 7]}
)


def test_wide_columns():
    histogram = counted(WIDE_FRAME, ["age", "county", "sex"], wide=WIDE)
    assert histogram.attributes[0].labels == ("young", "old")
    assert tables.table_of(histogram) == {
        ("young", "A", "f"): 4,
        ("young", "B", "f"): 2,
        ("young", "A", "m"): 9,
        ("old", "A", "m"): 12,
        ("old", "B", "m"): 6,
    }
    assert tables.table_of(counted(WIDE_FRAME, ["sex"], wide=WIDE)) == {("f",): 6, ("m",): 27}


def test_wide_columns_under_a_schema():
    schema = Schema(
        attributes=(
            Attribute(name="sex", labels=("m", "f", "x")),
            Attribute(name="age", kind=Kind.INTEGER),
        ),
        recodes=(Recode("sex", merge={"not x": ("m", "f")}), Recode("age", bins=(18,))),
    )
    wide = {"f_young": {"sex": "f", "age": "<18"}, "m_old": {"sex": "m", "age": "18+"}}
    histogram = counted(WIDE_FRAME, ["sex", "age"], wide=wide, schema=schema)
    assert histogram.attributes[0].labels == ("not x", "x")
    assert tables.table_of(histogram) == {("not x", "<18"): 6, ("not x", "18+"): 18}


SCHEMA = Schema(
    attributes=(
        Attribute(name="sex", labels=("m", "f", "x")),
        Attribute(name="age", kind=Kind.INTEGER),
        Attribute(name="block"),
    ),
    recodes=(Recode("age", bins=(25, 55)), Recode("block", level=1)),
    hierarchy_rules={"block": HierarchyRule(prefixes=(2,))},
)


def test_a_schema_sets_the_domain_the_bins_and_the_hierarchy():
    histogram = counted(PEOPLE, ["age", "sex", "block"], schema=SCHEMA)
    assert [a.labels for a in histogram.attributes] == [
        ("<25", "25-54", "55+"),
        ("m", "f", "x"),
        ("25", "44"),
    ]
    assert tables.table_of(histogram) == {
        ("<25", "f", "44"): 1,
        ("25-54", "m", "44"): 1,
        ("25-54", "f", "44"): 1,
        ("55+", "m", "25"): 1,
        ("55+", "f", "25"): 1,
    }


def test_columns_outside_the_schema_take_their_labels_from_the_data():
    assert counted(PEOPLE, ["state"], schema=SCHEMA).attributes[0].labels == ("25", "44")


@pytest.mark.parametrize("columns", [("state", "block"), ("state",)])
def test_a_hierarchy_from_columns(columns):
    schema = Schema(
        attributes=(Attribute(name="block", missing="?"),),
        hierarchy_rules={"block": HierarchyRule(columns=columns)},
    )
    rows = PEOPLE.select(["block", "state"])
    rows = pa.concat_tables([rows, pa.table({"block": [None], "state": ["44"]}, schema=rows.schema)])
    block = counted(rows, ["block"], schema=schema).attributes[0]
    assert block.labels == ("25001", "44001", "44003", "?")
    assert block.hierarchy is not None
    assert block.hierarchy.levels == (("25001", "44001", "44003", "?"), ("25", "44", "?"), ("*",))


def test_columns_of_a_hierarchy_go_from_general_to_specific():
    rule = HierarchyRule(columns=("nation", "state", "block"))
    schema = Schema(attributes=(Attribute(name="block"),), hierarchy_rules={"block": rule})
    frame = pa.table({"block": ["b1", "b2"], "nation": ["n", "n"], "state": ["s1", "s2"]})
    tree = counted(frame, ["block"], schema=schema).attributes[0].hierarchy
    assert tree is not None
    assert tree.levels == (("b1", "b2"), ("s1", "s2"), ("n",))


def test_missing_values_are_counted_where_there_is_a_label_for_them():
    frame = pa.table({"a": ["x", None, "", "y"], "n": [1.5, float("nan"), None, 7.0]})
    listed = Schema(
        attributes=(
            Attribute(name="a", labels=("?", "x", "y"), missing="?"),
            Attribute(name="n", kind=Kind.NUMBER, missing="none"),
        ),
        recodes=(Recode("n", bins=(2,)),),
    )
    histogram = counted(frame, ["a", "n"], schema=listed)
    assert tables.table_of(histogram) == {("?", "none"): 2, ("x", "<2"): 1, ("y", "2+"): 1}
    learnt = Schema(attributes=(Attribute(name="a", missing="absent"),))
    assert counted(frame, ["a"], schema=learnt).attributes[0].labels == ("x", "y", "absent")


def test_a_label_for_missing_values_that_none_needs_is_no_label():
    schema = Schema(attributes=(Attribute(name="sex", missing="?"),))
    assert counted(PEOPLE, ["sex"], schema=schema).attributes[0] == Attribute(name="sex", labels=("f", "m"))


def test_numbers_are_written_in_one_way():
    frame = pa.table({"i": ["07", "7", "-1", "7.0"], "x": ["1.50", "1.5", ".5", "1e0"]})
    schema = Schema(
        attributes=(Attribute(name="i", kind=Kind.INTEGER), Attribute(name="x", kind=Kind.NUMBER))
    )
    assert tables.table_of(counted(frame, ["i"], schema=schema)) == {("-1",): 1, ("7",): 3}
    assert tables.table_of(counted(frame, ["x"], schema=schema)) == {("0.5",): 1, ("1",): 1, ("1.5",): 2}


def test_bins_at_their_edges():
    frame = pa.table({"x": ["-3", "0.5", "0.4999", "2", "1.999", "1e9"]})
    schema = Schema(
        attributes=(Attribute(name="x", kind=Kind.NUMBER),), recodes=(Recode("x", bins=(-3, 0.5, 2)),)
    )
    assert tables.table_of(counted(frame, ["x"], schema=schema)) == {
        ("-3-<0.5",): 2,
        ("0.5-<2",): 2,
        ("2+",): 2,
    }


def test_the_sample_and_the_test_data():
    names = [f"X{number}" for number in range(1, 9)]
    cps = counted(sample_path("cps8"), names, weight="count")
    assert (cps.total, len(cps.counts), cps.shape) == (48_842, 1_695, (3, 4, 5, 2, 2, 2, 3, 2))
    assert [int((cps.counts == k).sum()) for k in (1, 2)] == [361, 186]
    folder = Path(__file__).parents[2] / "data"
    nltcs = counted(folder / "nltcs.csv.gz", [f"y{number}" for number in range(1, 17)], weight="count")
    assert (nltcs.total, len(nltcs.counts)) == (21_574, 3_152)
    assert (nltcs.counts[0], nltcs.counts[-1]) == (3_853, 660)
    czech = ["smoke", "mental", "phys", "systol", "protein", "family"]
    assert counted(folder / "czech_autoworkers.csv.gz", czech, weight="count").total == 1_841


def test_read_codes():
    schema = Schema(
        attributes=(
            Attribute(name="sex", labels=("m", "f")),
            Attribute(name="age", kind=Kind.INTEGER),
            Attribute(name="n", kind=Kind.INTEGER),
            Attribute(name="block"),
        ),
        recodes=(Recode("n", bins=(2,)), Recode("block", merge={"RI": ("44001", "44003")})),
    )
    records = read(PEOPLE, ["age", "block", "sex", "n"], schema)
    assert [a.name for a in records.attributes] == ["block", "sex", "n"]
    assert [a.labels for a in records.attributes] == [("25001", "RI"), ("m", "f"), ("<2", "2+")]
    assert records.codes.tolist() == [[1, 1, 0], [1, 0, 0], [1, 1, 1], [0, 0, 1], [0, 1, 1]]
    assert records.codes.dtype == np.int32
    assert records.codes.flags.f_contiguous
    assert not records.codes.flags.writeable
    assert records.numbers["age"].tolist() == [24, 25, 54, 55, 100]
    assert records.n_rows == 5


def test_read_codes_with_missing_numbers():
    schema = Schema(attributes=(Attribute(name="x", kind=Kind.NUMBER, missing="none"),))
    records = read(pa.table({"x": ["1.5", None, "3"]}), ["x"], schema)
    assert records.n_rows == 3
    assert records.codes.shape == (3, 0)
    assert np.array_equal(records.numbers["x"], [1.5, np.nan, 3], equal_nan=True)


def test_records_of_several_batches_keep_their_order():
    numbers = np.arange(300_000)
    frame = pa.table({"a": (numbers % 7).astype(str), "x": numbers})
    schema = Schema(attributes=(Attribute(name="x", kind=Kind.INTEGER),))
    records = read(frame, ["a", "x"], schema)
    assert np.array_equal(records.codes[:, 0], numbers % 7)
    assert np.array_equal(records.numbers["x"], numbers)


def schema_of(attribute, **options):
    return Schema(attributes=(attribute,), **options)


A_LISTED = schema_of(Attribute(name="a", labels=("x", "y")))
A_INTEGER = schema_of(Attribute(name="a", kind=Kind.INTEGER))
A_NUMBER = schema_of(Attribute(name="a", kind=Kind.NUMBER, labels=("1", "2")))
A_BINNED = schema_of(Attribute(name="a", kind=Kind.INTEGER), recodes=(Recode("a", bins=(5,)),))


@pytest.mark.parametrize(
    ("values", "schema", "message"),
    [
        (["x", "y", None, "x", None], None, 'column "a" in the dataframe has no value on row 3; '),
        (["x", *(f"z{number}" for number in range(200))], A_LISTED, "has a value on row "),
        (["x", "z", "y", "w"], A_LISTED, "has a value on row 2 that is not among the attribute's labels"),
        (["1", "2.5", "x"], A_INTEGER, "has a value on row 2 that is not a number of the kind"),
        (["1", "9" * 30], A_INTEGER, "row 2 that is not a number of the kind"),
        (["1", "3"], A_NUMBER, "row 2 that is not a number among the labels"),
        (["1", "nan"], A_NUMBER, "row 2 that is not a number among the labels"),
        (["1", "7", "x"], A_BINNED, "row 3 that is not a number of the kind"),
        (["1", "7", "7.5"], A_BINNED, "row 3 that is not a number of the kind"),
        (["1", "7", "inf"], A_BINNED, "row 3 that is not a number of the kind"),
        (["1", None, "x"], A_BINNED, "no value on row 2"),
    ],
)
@pytest.mark.parametrize("function", [counted, read])
def test_a_value_that_does_not_fit_is_located(function, values, schema, message):
    if function is read and schema is A_INTEGER:
        message = 'column "a" in the dataframe has no whole number on row 2'
    arguments = {"schema": schema}
    with pytest.raises(InputError, match=message) as caught:
        function(pa.table({"a": values}), ["a"], **arguments)
    assert caught.value.column == "a"
    assert f"row {caught.value.row} " in str(caught.value) or f"row {caught.value.row};" in str(caught.value)


def test_a_row_is_numbered_in_the_whole_file(tmp_path):
    path = tmp_path / "r.csv"
    rows = [f'"a\n{number}",{number % 5}' for number in range(500_000)]
    rows[456_788] = '"x",'
    rows[456_790] = '"x",'
    path.write_text("a,b\n" + "\n".join(rows))
    with pytest.raises(InputError) as caught:
        counted(path, ["b"])
    assert caught.value.row == 456_789
    rows[456_788] = '"x",-1'
    rows[456_790] = '"x",1.5'
    path.write_text("a,b\n" + "\n".join(rows))
    with pytest.raises(InputError, match="is negative on row 456789"):
        counted(path, [], weight="b")


def test_a_missing_number_without_leave_is_located():
    schema = schema_of(Attribute(name="x", kind=Kind.NUMBER))
    with pytest.raises(InputError, match="has no number on row 2"):
        read(pa.table({"x": [1.0, None]}), ["x"], schema)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        (["1", None], "has no value on row 2; every row needs a count"),
        (["1", "many"], "is not a number on row 2"),
        (["1", "nan"], "is not a number on row 2"),
        (["1", "-1"], "is negative on row 2"),
        (["1", "1.5", "-1"], "has a fraction on row 2"),
        (["1", str(2**63)], "too large for a count on row 2"),
        (["1", "inf"], "too large for a count on row 2"),
        ([str(2**62), str(2**62)], "add up to more than 64 bits"),
    ],
)
@pytest.mark.parametrize("form", ["weight", "wide"])
def test_a_count_that_is_none_is_located(form, counts, message):
    frame = pa.table({"a": ["x", "x"] + ["y"] * (len(counts) - 2), "n": counts})
    options = {"weight": "n"} if form == "weight" else {"wide": {"n": {"b": "all"}}}
    with pytest.raises(InputError, match=message) as caught:
        counted(frame, ["a"], **options)
    assert caught.value.column in ("n", None)


ZEROS = Schema(
    attributes=(Attribute(name="sex", labels=("f", "m")), Attribute(name="state", labels=("25", "44"))),
    structural_zeros=({"sex": ("m",), "state": ("25",)},),
)


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        (["sex", "sex"], {}, "named twice"),
        (["race"], {}, 'the dataframe has no column "race"'),
        (["Sex"], {}, 'has no column "Sex"'),
        (["sex"], {"weight": "weight"}, 'has no column "weight"'),
        (["sex", "n"], {"weight": "n"}, "both weight and attribute"),
        (["sex"], {"weight": "n", "wide": {"n": {"a": "x"}}}, "either a weight column or wide"),
        (["a"], {"wide": {"n": {"a": "x"}, "age": {"b": "y"}}}, 'wide column "age" must have the same'),
        (["a"], {"wide": {"n": {}}}, 'wide column "n" must have the same'),
        (["a"], {"wide": {"n": {"a": "x"}, "age": {"a": "x"}}}, "count the same cell"),
        (["a"], {"wide": {"n": {"a": "z"}}, "schema": A_LISTED}, '"n" names a label that "a" does not have'),
        (["a"], {"wide": {"none": {"a": "x"}}}, 'has no column "none"'),
        (["sex", "state"], {"schema": ZEROS}, "has records in a structural zero"),
    ],
)
def test_what_cannot_be_tabulated_is_refused(names, options, message):
    with pytest.raises(InputError, match=message):
        counted(PEOPLE, names, **options)


def test_a_structural_zero_without_records_is_fine():
    assert counted(PEOPLE.slice(0, 3), ["sex", "state"], schema=ZEROS).total == 3


def test_nested_columns_are_refused():
    with pytest.raises(InputError, match='column "a" in the dataframe has a nested or binary type'):
        counted(pa.table({"a": [["x"], ["y"]]}), ["a"])
    with pytest.raises(InputError, match="nested or binary"):
        counted(pa.table({"a": [b"x", b"y"]}), ["a"])


def test_a_region_without_its_parent_is_located():
    schema = schema_of(Attribute(name="block"), hierarchy_rules={"block": HierarchyRule(columns=("state",))})
    frame = pa.table({"block": ["b1", "b2"], "state": ["s", None]})
    with pytest.raises(InputError, match='column "state" in the dataframe has no value on row 2'):
        counted(frame, ["block"], schema=schema)


def test_a_region_in_two_parents_is_refused():
    schema = schema_of(Attribute(name="block"), hierarchy_rules={"block": HierarchyRule(columns=("state",))})
    frame = pa.table({"block": ["b1", "b1"], "state": ["s", "t"]})
    with pytest.raises(InputError, match='the hierarchy of "block": row 2 repeats the leaf'):
        counted(frame, ["block"], schema=schema)


def test_values_with_their_counts_and_records_a_batch_at_a_time(tmp_path):
    """What is read column by column codes the records as reading them whole does."""
    (tmp_path / "a.csv").write_text("x,y,z\n2,b,u\n,a,v\n1,b,w\n2,,u\n")
    attributes = (Attribute(name="x", kind=Kind.NUMBER, missing="?"), Attribute(name="y", missing="?"))
    with open_source(tmp_path / "a.csv") as source:
        source.hold()
        whole = read_codes(source, ["x", "y"], Schema(attributes=attributes))
        (x, n_x), (y, n_y) = (read_values(source, a.name, Schema(attributes=(a,))) for a in attributes)
        assert str(x.numbers["x"].tolist()) == "[1.0, 2.0, nan]" and n_x.tolist() == [1, 2, 1]
        assert y.attributes[0].labels == ("a", "b", "?") and sorted(n_y.tolist()) == [1, 1, 2]
        listed = Schema(attributes=(attributes[0], y.attributes[0]))
        ((codes, others),) = coded_batches(source, listed, {"z": '"z"'})
    assert str(codes[0].tolist()) == str(whole.numbers["x"].tolist())
    assert codes[1].tolist() == whole.codes[:, 0].tolist() == [1, 0, 1, 2]
    assert others.to_pydict() == {"z": ["u", "v", "w", "u"]}


LISTED = Schema(
    attributes=(
        Attribute(name="county", labels=("A", "B")),
        Attribute(name="sex", labels=("m", "f", "x")),
        Attribute(name="age", labels=("young", "old")),
    ),
    recodes=(Recode("sex", merge={"not x": ("m", "f")}),),
)
COUNTED = pa.table({"county": ["A", "B", "A", "A"], "sex": ["m", "f", "m", "m"], "n": [1, 0, 4, 2]})


@pytest.mark.parametrize(
    ("data", "names", "options"),
    [
        (COUNTED, ["sex", "county"], {}),
        (COUNTED, ["county", "sex"], {"weight": "n"}),
        (WIDE_FRAME, ["age", "county", "sex"], {"wide": WIDE}),
    ],
    ids=["records", "weight", "wide"],
)
def test_parts_add_up_to_the_whole(data, names, options, monkeypatch):
    whole = counted(data, names, schema=LISTED, **options)
    monkeypatch.setattr(read_module, "BATCH_ROWS", 1)
    with open_source(data) as source:
        parts = list(tabulate_in_parts(source, names, schema=LISTED, **options))
    codes, counts = (np.concatenate([getattr(p, name) for p in parts]) for name in ("codes", "counts"))
    assert Histogram.from_codes(parts[0].attributes, codes, counts) == whole


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("county", "C", 'column "county" .* on row 3 that is not among'),
        ("county", None, 'column "county" .* has no value on row 3'),
        ("n", "-1", 'column "n" .* is negative on row 3'),
    ],
)
def test_a_fault_in_a_part_is_located(column, value, message):
    values = COUNTED[column].cast(pa.string()).to_pylist()
    values[2] = value
    data = COUNTED.set_column(COUNTED.column_names.index(column), column, pa.array(values))
    with open_source(data) as source, pytest.raises(InputError, match=message):
        list(tabulate_in_parts(source, ["county"], weight="n", schema=LISTED))
