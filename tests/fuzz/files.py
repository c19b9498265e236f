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

from fuzz.drafts import HEADER, Draft, records
from fuzz.hostile import csv_bytes
from fuzz.options import Option, pool_of

__all__ = ["profile"]

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
    chosen: dict[str, Sequence[Option]] = {
        "columns": ("site", "site,age", "nothing", "site,site", "name"),
        "largest": ("1", "4", "0", "5"),
        "alone": ("0.5", "0", "1", "nan", "2"),
        "write-spec": ("start.toml", "data.csv", "no/such.toml"),
        "spec": ("spec.toml",),
    }
    argument, options = draw.choice(starts)
    spec = SPEC.format(file=draw.choice([name for name in written() if name.startswith("data")]))
    files = {**written(), "spec.toml": spec.encode()}
    return Draft(("profile",), argument, files, dict(options), pool_of(["profile"], files, chosen))
