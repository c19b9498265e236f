"""Tables and bounds of a TopDown release are doubted row by row, a batch at a time."""

from __future__ import annotations

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import louver as lv
from louver.report.topdown import topdown_report
from louver.topdown import topdown
from releases import doubt, edit
from topdown_town import SPEC, write_town


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    folder = tmp_path_factory.mktemp("town")
    return lv.topdown(write_town(folder), seed=1, estimator="plain", out=folder / "release").path


def first_again(rows):
    return pa.concat_tables([rows, rows.slice(0, 1)])


def with_value(column, value):
    def change(rows):
        place = rows.column_names.index(column)
        return rows.set_column(place, column, pa.array([value, *rows[column].to_pylist()[1:]]))

    return change


TABLE, BOUNDS = "data/tables/quarters.parquet", "public/statements.parquet"


@pytest.mark.parametrize(
    ("file", "change", "told"),
    [
        (TABLE, first_again, "does not match the people"),
        (TABLE, lambda rows: rows.slice(1), "does not match the people"),
        (TABLE, lambda rows: rows.slice(0, 0), "does not match the people"),
        (TABLE, with_value("count", 10**6), "does not match the people"),
        (TABLE, with_value("level", "other"), "does not match the people"),
        (TABLE, with_value("region", "other"), "does not match the people"),
        (TABLE, with_value("region", None), "does not match the people"),
        (TABLE, lambda rows: pa.concat_tables([rows] * 99), "larger than the promise"),
        (BOUNDS, with_value("upper", -1), "does not hold in block"),
        (BOUNDS, with_value("region", "other"), "not a leaf"),
        (BOUNDS, with_value("lower", None), "missing or not whole"),
        (BOUNDS, lambda rows: pa.concat_tables([rows] * 9), "larger than the promise"),
    ],
)
@pytest.mark.parametrize("rows", [1 << 18, 4])
def test_a_row_that_is_not_as_the_people_are_is_found(
    released, tmp_path, monkeypatch, file, change, told, rows
):
    monkeypatch.setattr("louver.release.folder.BATCH_ROWS", rows)
    assert doubt(released, "topdown").passed
    out = tmp_path / "out"
    shutil.copytree(released, out)
    pq.write_table(change(pq.read_table(out / file)), out / file)
    check = doubt(out, "topdown")
    assert not check.passed and told in check.found


def test_levels_without_columns_of_regions_are_refused(released, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(released, out)
    manifest = json.loads((out / "manifest.json").read_text())
    manifest["promises"][0] |= {"regions": [], "prefixes": None}
    (out / "manifest.json").write_text(json.dumps(manifest))
    check = doubt(out, "topdown")
    assert not check.passed and "no columns of regions" in check.found


def test_numbers_that_are_taken_as_public_are_named_by_every_face(tmp_path):
    """The guarantee is only as good as the steward's word that they were not counted from the records."""
    given = '[[topdown.covariates]]\ncolumn = "units"\n'
    spec = write_town(tmp_path, SPEC.replace("[topdown.queries]", given + "[topdown.queries]"))
    leaves = (tmp_path / "leaves.csv").read_text().split()
    lines = ["block,units", *(f"{block},{number}" for number, block in enumerate(leaves[1:]))]
    (tmp_path / "leaves.csv").write_text("\n".join(lines))
    found = topdown(spec, seed=1, out=tmp_path / "release", report=topdown_report)
    told = 'Taken as public: the numbers of every leaf in "units".'
    assert found.verdict.reasons[-1].startswith(told)
    out = found.path
    manifest = json.loads((out / "manifest.json").read_text())
    assert any(one.startswith(told) for one in manifest["warnings"])
    assert "taken as public" in (out / "report.html").read_text()
    assert {check.name for check in lv.verify(out).checks if not check.passed} == {"private noise"}
    edit(out, lambda content: content["warnings"].pop())
    assert "manifest contents" in {check.name for check in lv.verify(out).checks if not check.passed}
