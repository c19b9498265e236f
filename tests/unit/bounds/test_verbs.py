"""The verbs as a caller sees them: louver.bounds, compare and suggest."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.csv
import pytest

import louver as lv
from louver.bounds import BoundsAudit, KnownCells, compare, suggest
from louver.errors import InputError
from louver.schema.attribute import Attribute
from louver.schema.spec import Schema

COUNTS = [[3, 4], [5, 3], [6, 9], [10, 8]]
LABELS = [(site, ill) for site in "ABCD" for ill in ("no", "yes")]
TABLE = pa.table(
    {
        "site": [site for site, _ in LABELS],
        "ill": [ill for _, ill in LABELS],
        "count": [x for row in COUNTS for x in row],
    }
)
ASKED = {"rows": ["site"], "cols": ["ill"], "weight": "count"}
FRACTIONS = ["3/7", "4/7", "5/8", "3/8", ".4", "0.6", "5/9", "4/9"]


def with_column(values):
    return TABLE.drop_columns(["count"]).append_column("p", pa.array(values))


def ends(audit):
    return [(cell.lower, cell.upper) for cell in audit.cells()]


EXPECTED = [(3, 9), (4, 12), (5, 5), (3, 3), (4, 6), (6, 9), (5, 10), (4, 8)]


def test_what_fail_on_asks_is_a_method_of_the_results() -> None:
    audit = lv.bounds(TABLE, **ASKED)
    assert not audit.discloses("attribute") and audit.discloses("rows") and audit.discloses("any")
    ranked = compare(TABLE, weight="count", arrangements=[{"rows": ["site"], "cols": ["ill"]}])
    assert [ranked.discloses(what) for what in ("small", "rows")] == [
        audit.discloses(what) for what in ("small", "rows")
    ]


def test_suggest_writes_recode_files(tmp_path) -> None:
    found = suggest(TABLE, **ASKED, seconds=5, avoid="small", write_recodes=tmp_path / "recodes")
    assert len(list((tmp_path / "recodes").iterdir())) == len(found.lines)
    with pytest.raises(InputError) as caught:
        suggest(TABLE, **ASKED, write_recodes=tmp_path / "recodes")
    assert caught.value.option == "--write-recodes"


def test_one_name_may_stand_for_a_list():
    audit = lv.bounds(TABLE, rows="site", cols="ill", weight="count")
    assert isinstance(audit, BoundsAudit)
    assert ends(audit) == EXPECTED


def test_records_are_counted():
    records = pa.table(
        {
            "site": [
                site
                for (site, _), n in zip(LABELS, TABLE["count"].to_pylist(), strict=True)
                for _ in range(n)
            ],
            "ill": [
                ill for (_, ill), n in zip(LABELS, TABLE["count"].to_pylist(), strict=True) for _ in range(n)
            ],
        }
    )
    assert ends(lv.bounds(records, rows=["site"], cols=["ill"])) == EXPECTED


def test_exact_conditionals_as_fractions_or_decimals():
    audit = lv.bounds(
        with_column(FRACTIONS), rows=["site"], cols=["ill"], weight="p", conditionals=True, n=48
    )
    assert ends(audit) == EXPECTED
    assert not audit.is_counted


def test_rounded_conditionals_equal_rounded_counts():
    printed = ["0.43", "0.57", "0.63", "0.38", "0.40", "0.60", "0.56", "0.44"]
    asked = {"rows": ["site"], "cols": ["ill"], "decimals": 2}
    told = lv.bounds(with_column(printed), **asked, weight="p", conditionals=True, n=48)
    assert ends(told) == ends(lv.bounds(TABLE, **asked, weight="count"))


def test_given_as_statements_mappings_or_a_file(tmp_path):
    path = tmp_path / "given.toml"
    path.write_text('[[known]]\nrow = {site = "A"}\nat_most = 8\n', encoding="utf-8")
    statement = KnownCells(row={"site": "A"}, at_most=8)
    answers = [
        lv.bounds(TABLE, **ASKED, given=given)
        for given in ([statement], [{"row": {"site": "A"}, "at_most": 8}], path, str(path))
    ]
    assert all(ends(one)[:2] == [(3, 3), (4, 4)] and one.n_known == 1 for one in answers)


def test_a_clash_names_the_file(tmp_path):
    path = tmp_path / "given.toml"
    path.write_text('[[known]]\nrow = {site = "B"}\nexactly = 9\n', encoding="utf-8")
    with pytest.raises(lv.errors.InfeasibleError, match="statement 1 of given.toml contradicts"):
        lv.bounds(TABLE, **ASKED, given=path)


def test_cells_as_a_list_or_a_file(tmp_path):
    path = tmp_path / "cells.csv"
    pyarrow.csv.write_csv(pa.table({"ill": ["yes", "no", "yes"], "site": ["B", "A", "B"]}), path)
    cells = [{"site": "B", "ill": "yes"}, {"site": "A", "ill": "no"}]
    for given in (cells, path):
        audit = lv.bounds(TABLE, **ASKED, cells=given)
        assert [(c.row["site"], c.col["ill"], c.lower, c.upper) for c in audit.cells()] == [
            ("B", "yes", 3, 3),
            ("A", "no", 3, 9),
        ]


def test_cells_that_the_table_does_not_have():
    with pytest.raises(InputError, match='row 2 of cells has no label that column "ill" has') as caught:
        lv.bounds(TABLE, **ASKED, cells=[{"site": "A", "ill": "no"}, {"site": "A", "ill": "perhaps"}])
    assert (caught.value.file, caught.value.column, caught.value.row) == ("cells", "ill", 2)
    with pytest.raises(InputError) as caught:
        lv.bounds(TABLE, **ASKED, cells=[{"ill": "no"}])
    assert (caught.value.column, caught.value.row) == ("site", 1)


@pytest.mark.parametrize("option", ["drop_zero_rows", "merge_zero_rows"])
def test_cells_of_rows_that_were_dropped(option):
    with_zero = pa.concat_tables([TABLE, pa.table({"site": ["E"], "ill": ["no"], "count": [2]})])
    cells = [{"site": "A", "ill": "no"}, {"site": "E", "ill": "no"}]
    with pytest.raises(InputError, match="row 2 of cells is about a table row with a zero cell") as caught:
        lv.bounds(with_zero, **ASKED, cells=cells, **{option: True})
    assert (caught.value.file, caught.value.row) == ("cells", 2)
    assert len(list(lv.bounds(with_zero, **ASKED, cells=cells).cells())) == 2


def test_the_sample_size_of_counts_must_be_theirs():
    assert lv.bounds(TABLE, **ASKED, n=48).summary.n == 48
    with pytest.raises(InputError, match="--n differs") as caught:
        lv.bounds(TABLE, **ASKED, n=47)
    assert caught.value.option == "--n"


@pytest.mark.parametrize("text", [None, "", "x", "1/0", "0/000", "-1/2", "1e-3", "1/2/3", "½"])
def test_what_is_no_conditional(text):
    values = with_column([*FRACTIONS[:3], text, *FRACTIONS[4:]])
    with pytest.raises(InputError, match='column "p" in .* has no conditional on row 4') as caught:
        lv.bounds(values, rows=["site"], cols=["ill"], weight="p", conditionals=True, n=48)
    assert (caught.value.column, caught.value.row) == ("p", 4)


def test_percentages_are_no_conditionals():
    values = with_column(["43", "57", *FRACTIONS[2:]])
    with pytest.raises(InputError, match="above 1 on row 1") as caught:
        lv.bounds(values, rows=["site"], cols=["ill"], weight="p", conditionals=True, n=48)
    assert (caught.value.column, caught.value.row) == ("p", 1)


def test_structural_zeros_of_the_schema_are_used():
    site = Attribute(name="site", labels=("A", "B", "C", "D", "E"))
    ill = Attribute(name="ill", labels=("no", "yes"))
    free = lv.bounds(TABLE, **ASKED, schema=Schema(attributes=(site, ill)))
    assert (free.summary.zero_rows, free.summary.disclosed_zero_cells) == (1, 2)
    schema = Schema(attributes=(site, ill), structural_zeros=({"site": ("E",), "ill": ("yes",)},))
    told = lv.bounds(TABLE, **ASKED, schema=schema)
    assert (told.summary.zero_rows, told.summary.disclosed_zero_cells) == (1, 1)


def test_a_table_of_nobody():
    nobody = TABLE.set_column(2, "count", pa.array([0] * 8))
    for verb in (lv.bounds, suggest):
        with pytest.raises(InputError, match="has no people"):
            verb(nobody, **ASKED)


def test_comparing_needs_arrangements():
    with pytest.raises(InputError) as caught:
        compare(TABLE, weight="count")
    assert caught.value.option == "--arrangements"


def test_comparing_from_a_list_or_a_file(tmp_path):
    path = tmp_path / "designs.toml"
    path.write_text('[[arrangement]]\nrows = ["site"]\ncols = ["ill"]\n', encoding="utf-8")
    entries = [{"rows": ["ill"], "cols": ["site"]}, {"rows": ["site"], "cols": ["ill"]}]
    listed = compare(TABLE, weight="count", arrangements=entries)
    assert {a.label: s for a, s in listed.lines}["site | ill"] == compare(
        TABLE, weight="count", arrangements=path
    ).lines[0][1]


def test_suggesting_from_the_data():
    found = suggest(TABLE, **ASKED, seconds=600)
    assert found.is_proved
    assert all(line.summary.disclosed_small_cells == 0 for line in found.lines)
    merged = [line for line in found.lines if line.arrangement.recodes]
    for line in merged:
        (recode,) = line.arrangement.recodes
        again = lv.bounds(
            TABLE, **ASKED, recode={recode.attribute: {k: list(v) for k, v in recode.merge.items()}}
        )
        assert again.summary == line.summary
