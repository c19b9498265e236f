"""A profile of a file of each format, and the options about files that every verb has."""

from __future__ import annotations

import io
import random
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import openpyxl
import pandas as pd
import pyreadstat

from fuzz.drafts import HEADER, Draft, Option, records
from fuzz.hostile import csv_bytes

__all__ = ["READING", "profile"]

READING: dict[str, Sequence[Option]] = {
    "decimal-mark": (",", ".", ";"),
    "encoding": ("utf-8", "cp1252", "latin-1", "utf-16", "rot13", "idna"),
    "delimiter": (",", ";", "tab", "|", "a", "''"),
    "keep-codes": (None,),
    "table": ("people", "Sheet1", "t"),
    "where": (
        "age >= 30",
        "site in ('A', 'B') and not ill = 'no'",
        "home is missing or age < count",
        "(" * 60 + "age = 1",
        "age = 1; DROP TABLE records",
        "nothing = 1",
        "site > 5",
        "age in ()",
        "age = 1e999",
    ),
}
SPEC = '[source]\nfile = "{file}"\nencoding = "utf-8"\nwhere = "age >= 20"\n\n[profile]\nlargest = 2\nalone = 0.1\n'


@cache
def written() -> dict[str, bytes]:
    """The same records in every format."""
    rows = records()
    plain = csv_bytes(HEADER, rows)
    files = {
        "data.csv": plain,
        "comma.csv": plain.replace(b",", b";").replace(b"20", b"20,5"),
        "wide.csv": plain.decode().encode("utf-16"),
        "latin.csv": plain.decode().replace("mild", "m\u00eflde").encode("cp1252"),
    }
    book = openpyxl.Workbook()
    book.active.title = "people"
    for row in [HEADER, *rows]:
        book.active.append([int(value) if value.isdecimal() else value for value in row])
    stream = io.BytesIO()
    book.save(stream)
    files["data.xlsx"] = stream.getvalue()
    frame = pd.DataFrame(rows, columns=HEADER)
    frame["age"], frame["count"] = frame["age"].astype(float), frame["count"].astype(float)
    with tempfile.TemporaryDirectory() as folder:
        for name, write in (
            ("data.sav", pyreadstat.write_sav),
            ("data.dta", pyreadstat.write_dta),
            ("data.xpt", pyreadstat.write_xport),
        ):
            write(frame, Path(folder) / name)
            files[name] = (Path(folder) / name).read_bytes()
    return files


def profile(draw: random.Random) -> Draft:
    """A good call; a spec names one of the files too."""
    starts: list[tuple[str, dict[str, Option]]] = [
        ("data.csv", {"largest": "2"}),
        ("comma.csv", {"decimal-mark": ","}),
        ("wide.csv", {"encoding": "utf-16"}),
        ("latin.csv", {"encoding": "cp1252", "delimiter": ","}),
        ("data.xlsx", {"table": "people"}),
        ("data.sav", {"where": "age >= 30"}),
        ("data.dta", {"keep-codes": None}),
        ("data.xpt", {"columns": "site,age"}),
        ("", {"spec": "spec.toml"}),
    ]
    pool = READING | {
        "columns": ("site", "site,age", "nothing", "site,site", "name"),
        "largest": ("1", "4", "0", "5"),
        "alone": ("0.5", "0", "1", "nan", "2"),
        "html": ("page.html", "no/such/page.html", "."),
        "write-spec": ("start.toml", "data.csv", "no/such.toml"),
        "spec": ("spec.toml",),
        "json": (None,),
    }
    argument, options = draw.choice(starts)
    spec = SPEC.format(file=draw.choice([name for name in written() if name.startswith("data")]))
    return Draft(("profile",), argument, {**written(), "spec.toml": spec.encode()}, dict(options), pool)
