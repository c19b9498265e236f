"""The same records through every format: the same values, the same types, the same kinds."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pyreadstat
from hypothesis import given
from hypothesis import strategies as st

from few_or_many import few_or_many
from louver.data.read import open_source
from louver.data.tabulate import read_text
from louver.profile import profile

NUMERIC = ("BIGINT", "DOUBLE")
COLUMNS = ("whole", "real", "word", "day", "code")
LABELS = {1: "yes", 2: "no", 3: "perhaps, later"}

words = st.text(
    st.characters(codec="cp1252", categories=("L", "Nd"), include_characters=" .,;-'"), max_size=12
)
records = st.fixed_dictionaries(
    {
        "whole": st.none() | st.integers(-(2**31), 2**31),
        "real": st.none() | st.floats(-1e6, 1e6, width=32).map(lambda x: round(x, 3) + 0.0),
        "word": st.none() | words.map(lambda text: text.strip()),
        "day": st.none()
        | st.dates(min_value=pd.Timestamp(1905, 1, 1).date(), max_value=pd.Timestamp(2100, 1, 1).date()),
        "code": st.none() | st.sampled_from(sorted(LABELS)),
    }
)


def frame_of(rows: list[dict[str, Any]]) -> pd.DataFrame:
    frame = pd.DataFrame({name: pd.Series([row[name] for row in rows], dtype=object) for name in COLUMNS})
    for name in ("whole", "real", "code"):
        frame[name] = frame[name].astype("float64")
    return frame


def write_all(folder: Path, rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Files by name, with the options they are read with."""
    labelled = [row | {"code": LABELS.get(row["code"])} for row in rows]
    types = [pa.int64(), pa.float64(), pa.string(), pa.date32(), pa.string()]
    schema = pa.schema(list(zip(COLUMNS, types, strict=True)))
    table = pa.Table.from_pylist(labelled, schema)
    pq.write_table(table, folder / "p.parquet")
    pyarrow.csv.write_csv(table, folder / "p.csv")
    (folder / "w.csv").write_bytes((folder / "p.csv").read_bytes().decode().encode("utf-16"))
    book = openpyxl.Workbook()
    book.active.append(list(COLUMNS))
    for row in labelled:
        book.active.append([row[name] for name in COLUMNS])
    book.save(folder / "p.xlsx")
    frame = frame_of(rows)
    pyreadstat.write_sav(frame, folder / "p.sav", variable_value_labels={"code": LABELS})
    pyreadstat.write_dta(frame.fillna({"word": ""}), folder / "p.dta", variable_value_labels={"code": LABELS})
    plain: dict[str, dict[str, Any]] = {
        name: {} for name in ("p.parquet", "p.csv", "p.xlsx", "p.sav", "p.dta")
    }
    return plain | {"w.csv": {"encoding": "utf-16"}}


def expected(rows: list[dict[str, Any]]) -> list[tuple[str | None, ...]]:
    return [
        tuple(None if row[name] in (None, "") else _text(name, row[name]) for name in COLUMNS) for row in rows
    ]


def _text(name: str, value: Any) -> str:
    if name == "code":
        return LABELS[value]
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


@few_or_many(
    2,
    8,
    given(
        st.lists(records, min_size=1, max_size=8).filter(lambda rows: any(any(row.values()) for row in rows))
    ),
)
def test_types_survive_every_format(rows: list[dict[str, Any]]) -> None:
    rows = [
        row for row in rows if any(value not in (None, "") for value in row.values())
    ]  # blank lines are no rows
    if not rows:
        return
    kinds = {}
    with tempfile.TemporaryDirectory() as name:
        for file, reading in write_all(Path(name), rows).items():
            reading = {"decimal_mark": ".", **reading}
            with open_source(Path(name) / file, **reading) as source:
                assert _numbers(read_text(source, COLUMNS)) == _numbers(expected(rows)), file
                if not file.endswith(".csv"):
                    known = [c for c in ("whole", "real") if any(row[c] is not None for row in rows)]
                    assert all(source.types[c] in NUMERIC for c in known), file
                    assert all(source.types[c] not in NUMERIC for c in ("word", "day")), file
            found = profile(Path(name) / file, **reading)
            kinds[file] = [column.kind for column in found.columns]
    assert len(set(map(tuple, kinds.values()))) == 1, kinds


def _numbers(rows: list[tuple[str | None, ...]]) -> list[tuple[Any, ...]]:
    """Real numbers by value: they are written in more than one way."""
    return [(row[0], None if row[1] is None else float(row[1]), *row[2:]) for row in rows]
