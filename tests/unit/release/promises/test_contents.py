"""Nothing lies in a release that no promise speaks of: no file, no column, no note."""

from __future__ import annotations

import base64
import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import louver as lv
from louver.release.manifest import Manifest, file_entry
from louver.release.pages import in_memory, page_of
from louver.release.promises.contents import FILES
from louver.release.sentences import TABLES
from louver.release.verify import verify
from louver.release.write import ReleaseWriter
from louver.report.anonymize import anonymize_report
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


def with_own_note(out: Path) -> None:
    parquet(out, DATA, pq.read_table(out / DATA).replace_schema_metadata({"louver": RAW}))


def with_note_on_a_column(out: Path) -> None:
    table = pq.read_table(out / DATA)
    field = table.schema.field(1).with_metadata({"note": RAW})
    parquet(out, DATA, table.cast(table.schema.set(1, field)))


def with_bytes_between(out: Path) -> None:
    """Records between the columns and the footer, which says where columns begin: nothing looks elsewhere."""
    content = (out / DATA).read_bytes()
    footer = int.from_bytes(content[-8:-4], "little") + 8
    put(out, DATA, content[:-footer] + (RAW * 100).encode() + content[-footer:])


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
    "a note under our own key": with_own_note,
    "a note on a column": with_note_on_a_column,
    "bytes between columns": with_bytes_between,
}


@pytest.mark.parametrize("attack", EXTRA.values(), ids=EXTRA.keys())
def test_what_no_promise_speaks_of(tmp_path: Path, attack: Callable[[Path], None]) -> None:
    out = made(tmp_path / "release")
    assert verify(out).passed
    attack(out)
    assert set(failed(out)) - {"manifest contents"} == {"contents"}


def with_unused_values(table: pa.Table) -> pa.Table:
    """A dictionary with records that no row points to."""
    ages = table["age"].combine_chunks().dictionary_encode()
    listed = pa.concat_arrays([ages.dictionary, pa.array(RAW.splitlines())])
    return table.set_column(
        table.schema.get_field_index("age"), "age", pa.DictionaryArray.from_arrays(ages.indices, listed)
    )


def in_footer(out: Path) -> None:
    """A footer that is longer than what it says."""
    content = (out / DATA).read_bytes()
    footer = int.from_bytes(content[-8:-4], "little")
    longer = content[:-8] + RAW.encode() + (footer + len(RAW)).to_bytes(4, "little") + b"PAR1"
    put(out, DATA, longer)


def with_long_schema(out: Path) -> None:
    """The stored schema, which readers decode, with records behind it."""
    table = pq.read_table(out / DATA)
    stored = pq.read_metadata(out / DATA).metadata[b"ARROW:schema"]
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(
            {"ARROW:schema": base64.b64encode(base64.b64decode(stored) + RAW.encode() * 9)}
        )
    put(out, DATA, sink.getvalue().to_pybytes())


def with_pages_of_their_own(out: Path) -> None:
    """Text stored value by value where a dictionary would do: a sign of room that rows do not need."""
    table = pq.read_table(out / DATA)
    table = pa.concat_tables([table] * 200)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, use_dictionary=False, compression="none")
    put(out, DATA, sink.getvalue().to_pybytes())


def with_other_statistics(out: Path) -> None:
    """The smallest and the largest label in the footer exchanged for others of the same length."""
    content = (out / DATA).read_bytes()
    footer = len(content) - int.from_bytes(content[-8:-4], "little") - 8
    lowest = min(filter(None, pq.read_table(out / DATA)["age"].to_pylist())).encode()
    assert lowest in content[footer:]
    put(out, DATA, content[:footer] + content[footer:].replace(lowest, b"!" * len(lowest)))


HIDDEN: dict[str, tuple[Callable[[Path], None], str]] = {
    "values of a dictionary": (
        lambda out: parquet(out, DATA, with_unused_values(pq.read_table(out / DATA))),
        "dictionary that no row has",
    ),
    "behind the footer": (in_footer, "bytes that belong to no column"),
    "behind the schema": (with_long_schema, "footer with more"),
    "in pages": (with_pages_of_their_own, "bytes that do not follow"),
    "in statistics": (with_other_statistics, "statistics or bytes"),
}


@pytest.mark.parametrize("attack", HIDDEN)
def test_bytes_of_a_parquet_file_that_no_row_shows(tmp_path: Path, attack: str) -> None:
    out = made(tmp_path / "release")
    hide, words = HIDDEN[attack]
    hide(out)
    assert any(words in found for found in failed(out).values())


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
        disclosures=(TABLES,),
    )
    with ReleaseWriter(out) as writer:
        pq.write_table(rows, writer.path("data/01-a.parquet"))
        from louver.data.write import write_csv

        write_csv(rows, writer.path("data/01-a.csv"))
        writer.path("report.html").write_text(page_of(manifest, in_memory({"data/01-a.parquet": rows})))
        writer.seal(manifest)
    return out


def test_a_csv_file_beside_a_table(tmp_path: Path) -> None:
    out = published(tmp_path / "out")
    assert verify(out).passed
    put(out, "data/01-a.csv", RAW)
    assert "data/01-a.csv has different columns" in failed(out)["tables"]


def test_other_numbers_in_a_csv_file(tmp_path: Path) -> None:
    out = published(tmp_path / "out")
    put(out, "data/01-a.csv", (out / "data/01-a.csv").read_text().replace("120", "121"))
    assert 'different values of "count"' in failed(out)["tables"]


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
