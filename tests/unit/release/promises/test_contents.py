"""Nothing lies in a release that no promise speaks of: no file, no column, no note, no page that is more than a report."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import louver as lv
from louver.release.manifest import Manifest, file_entry
from louver.release.promises.contents import FILES
from louver.release.promises.page import page_problem
from louver.release.verify import verify
from louver.release.write import ReleaseWriter
from louver.report.anonymize import anonymize_report
from louver.report.tables import tables_report
from releases import edit, made

DATA = "data/anonymized.parquet"
RAW = "name,age,ill\nAda,34,flu\nBo,35,cold\n"


def put(out: Path, name: str, content: str | bytes) -> None:
    """Put a file into a release, listed with its hash."""
    path = out / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    found = file_entry(path)
    edit(out, lambda m: m["files"].update({name: {"bytes": found.bytes, "sha256": found.sha256}}))


def parquet(out: Path, name: str, table: pa.Table) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    put(out, name, sink.getvalue().to_pybytes())


def failed(out: Path) -> dict[str, str]:
    return {check.name: check.found for check in verify(out).checks if not check.passed}


def with_column(out: Path) -> None:
    table = pq.read_table(out / DATA)
    parquet(out, DATA, table.append_column("name", pa.array(["Ada"] * table.num_rows)))


def with_note(out: Path) -> None:
    table = pq.read_table(out / DATA)
    parquet(out, DATA, table.replace_schema_metadata({"note": RAW}))


def with_note_on_a_column(out: Path) -> None:
    table = pq.read_table(out / DATA)
    field = table.schema.field(1).with_metadata({"note": RAW})
    parquet(out, DATA, table.cast(table.schema.set(1, field)))


def with_bytes_between(out: Path) -> None:
    """Records between the columns and the footer, which says where columns begin: nothing looks elsewhere."""
    content = (out / DATA).read_bytes()
    footer = int.from_bytes(content[-8:-4], "little") + 8
    put(out, DATA, content[:-footer] + (RAW * 100).encode() + content[-footer:])


RECORDS = "<table><thead><tr><th>name</th><th>ill</th></tr></thead><tbody><tr><td>Ada</td><td>flu</td></tr></tbody></table>"

EXTRA: dict[str, Callable[[Path], None]] = {
    "the source": lambda out: put(out, "data/source.csv", RAW),
    "the source as Parquet": lambda out: parquet(out, "data/source.parquet", pa.table({"name": ["Ada"]})),
    "a CSV file without its promise": lambda out: put(out, "data/anonymized.csv", RAW),
    "a list of classes without its promise": lambda out: parquet(
        out, "data/classes.parquet", pa.table({"name": ["Ada"]})
    ),
    "a dictionary without its promise": lambda out: parquet(
        out, "data/columns.parquet", pa.table({"name": ["Ada"]})
    ),
    "a file of another verb": lambda out: parquet(out, "invariants.parquet", pa.table({"value": [1]})),
    "another page": lambda out: put(out, "other.html", "<p>report</p>"),
    "a column without a role": with_column,
    "a note in the metadata": with_note,
    "a note on a column": with_note_on_a_column,
    "bytes between columns": with_bytes_between,
    "records as a table": lambda out: put(out, "report.html", RECORDS),
    "records in lines of nothing": lambda out: put(
        out, "report.html", RECORDS.replace("<thead>", "<tbody>").replace("th>", "td>") * 100
    ),
    "records as text": lambda out: put(out, "report.html", f"<p>{RAW * 200}</p>"),
    "records as they are": lambda out: put(out, "report.html", f"<pre>{RAW}</pre>"),
    "records in a comment": lambda out: put(out, "report.html", f"<p>report</p><!-- {RAW} -->"),
    "records in a script": lambda out: put(out, "report.html", f"<script>var a = '{RAW}'</script>"),
    "records in an attribute": lambda out: put(out, "report.html", f'<p data-records="{RAW}">report</p>'),
    "records in a long attribute": lambda out: put(out, "report.html", f'<p class="{RAW * 200}">report</p>'),
    "a hidden paragraph": lambda out: put(out, "report.html", "<style>p { display: none }</style><p>Ada</p>"),
    "text in a style": lambda out: put(out, "report.html", '<style>p:after { content: "Ada" }</style>'),
    "a picture from elsewhere": lambda out: put(out, "report.html", '<img src="https://example.org/a.png">'),
    "a style from elsewhere": lambda out: put(
        out, "report.html", "<style>p { background: url(https://example.org) }</style>"
    ),
    "a drawing from elsewhere": lambda out: put(
        out, "report.html", '<svg><use xlink:href="https://example.org/a"/></svg>'
    ),
    "an instruction": lambda out: put(out, "report.html", f"<?{RAW}?><p>report</p>"),
    "a declaration": lambda out: put(out, "report.html", f"<!DOCTYPE {RAW.strip()}><p>report</p>"),
    "a section": lambda out: put(out, "report.html", "<![if gte mso 9]><p>report</p>"),
    "a page that is not closed": lambda out: put(out, "report.html", "<p>report</div>"),
    "rows outside of a table": lambda out: put(out, "report.html", "<tr><td>Ada</td></tr>"),
    "cells outside of a row": lambda out: put(out, "report.html", "<table><td>Ada</td></table>"),
    "text outside of a cell": lambda out: put(out, "report.html", "<table>Ada<tr><td>a</td></tr></table>"),
    "records in a comment of a style": lambda out: put(out, "report.html", f"<style>/* {RAW} */</style>"),
    "records in many paragraphs": lambda out: put(out, "report.html", f"<p>{RAW * 20}</p>" * 100),
    "many tables": lambda out: put(
        out, "report.html", "<table><tbody><tr><td>a</td><td>b</td></tr></tbody></table>" * 500
    ),
    "a line of another length": lambda out: put(
        out, "report.html", "<table><tbody><tr><td>Ada</td><td>34</td><td>flu</td></tr></tbody></table>"
    ),
}


@pytest.mark.parametrize("attack", EXTRA.values(), ids=EXTRA.keys())
def test_what_no_promise_speaks_of(tmp_path: Path, attack: Callable[[Path], None]) -> None:
    out = made(tmp_path / "release")
    assert verify(out).passed
    attack(out)
    assert set(failed(out)) == {"contents"}


def test_a_page_larger_than_any(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("louver.release.folder.MOST_TEXT", 5)
    assert "larger than any" in failed(made_anyway(tmp_path))["contents"]


def made_anyway(tmp_path: Path) -> Path:
    out = tmp_path / "release"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("louver.release.write._check_kept", lambda *_: None)
        return made(out)


def test_a_csv_file_that_is_not_its_parquet_file(tmp_path: Path) -> None:
    """With its promise, a CSV file holds the same records; a label "NA" is a label."""
    table = pa.table({"age": [30, 31, 32, 33, 34, 35], "ill": ["NA", "null", "=1", "a", "b", "@c"]})
    release = lv.anonymize(table, quasi=["age"], keep=["ill"], k=3, method="greedy", csv=True)
    release.write(tmp_path / "out", anonymize_report(release))
    assert verify(tmp_path / "out").passed
    put(tmp_path / "out", "data/anonymized.csv", RAW)
    assert set(failed(tmp_path / "out")) == {"csv"}
    edit(tmp_path / "out", lambda m: m.update(promises=[p for p in m["promises"] if p["promise"] != "csv"]))
    assert set(failed(tmp_path / "out")) == {"contents"}


def published(out: Path, **changes: Any) -> Path:
    """A release of one table of counts, with its page."""
    told = {
        "file": "data/01-a.parquet",
        "by": ["a", "b"],
        "base": None,
        "total": "Total",
        "n_rows_by": None,
        "decimals": None,
    }
    rows = pa.table(
        {
            "a": ["x", "x", "x", "=y", "=y", "=y", "Total", "Total", "Total"],
            "b": ["p", "@q", "Total"] * 3,
            "count": changes.pop("count", [10, 20, 30, 40, 50, 90, 50, 70, 120]),
        }
    )
    manifest = Manifest(
        verb="audit",
        method="tables",
        parameters={"small": 5, "within": None, "tables": [{"name": "a", **told, "where": {}, "recode": {}}]},
        promises=[{"promise": "tables", "tables": [told]}],
    )
    with ReleaseWriter(out) as writer:
        pq.write_table(rows, writer.path("data/01-a.parquet"))
        from louver.data.write import write_csv

        write_csv(rows, writer.path("data/01-a.csv"))
        writer.path("report.html").write_text(tables_report(manifest, [rows]))
        writer.seal(manifest)
    return out


def test_a_csv_file_beside_a_table(tmp_path: Path) -> None:
    out = published(tmp_path / "out")
    assert verify(out).passed
    put(out, "data/01-a.csv", RAW)
    assert "data/01-a.csv has other columns" in failed(out)["tables"]


def test_other_numbers_in_a_csv_file(tmp_path: Path) -> None:
    out = published(tmp_path / "out")
    put(out, "data/01-a.csv", (out / "data/01-a.csv").read_text().replace("120", "121"))
    assert 'other values of "count"' in failed(out)["tables"]


def test_a_page_shows_published_lines_only(tmp_path: Path) -> None:
    out = published(tmp_path / "out")
    put(out, "report.html", (out / "report.html").read_text().replace(">120<", ">121<"))
    assert "not in the published tables" in failed(out)["contents"]


def test_a_table_of_several_attributes_is_safe_in_a_spreadsheet(tmp_path: Path) -> None:
    """What `louver audit --publish` writes, read as a spreadsheet does."""
    data = tmp_path / "people.csv"
    rows = [("=cmd()", "@sum"), ("+1+1", "b"), ("plain", "@sum"), ("plain", "b")] * 10
    data.write_text("a,b\n" + "\n".join(f"{a},{b}" for a, b in rows) + "\n")
    lv.audit(
        data,
        tables=[{"name": "t", "by": ["a", "b"]}],
        registry=tmp_path / "register",
        publish=tmp_path / "out",
    )
    (path,) = (tmp_path / "out/data").glob("*.csv")
    with path.open() as stream:
        cells = [cell for line in csv.reader(stream) for cell in line]
    assert "'=cmd()" in cells and "'@sum" in cells and not any(cell[:1] in "=@+" for cell in cells if cell)
    assert verify(tmp_path / "out").passed


def test_every_verb_has_its_list_of_files() -> None:
    from louver.release.promises import REQUIRED

    assert set(FILES) == set(REQUIRED)


def test_reports_as_they_are_made_are_reports(tmp_path: Path) -> None:
    """A page of real records: every table of it is known."""
    table = pa.table({"age": list(range(40)), "sex": ["f", "m"] * 20, "ill": ["a", "b", "c", "d"] * 10})
    release = lv.anonymize(table, quasi=["age", "sex"], sensitive=["ill"], k=3, l=2, method="greedy")
    path = tmp_path / "report.html"
    path.write_text(anonymize_report(release))
    columns = frozenset({"age", "sex", "ill"})
    keys = {"column": columns, "quasi-identifier": columns, "records in a class": None, "measure": None}
    assert page_problem(path, keys) is None
    assert page_problem(path, keys | {"column": frozenset({"age"})}) is not None
    assert page_problem(path, {"level": None}) is not None
