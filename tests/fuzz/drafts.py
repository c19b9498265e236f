"""A good call of each verb, and the ways in which it is spoilt."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from pyarrow import csv

from fuzz.hostile import (
    MARKER,
    NO_PLACE,
    csv_bytes,
    damaged,
    odd_csv,
    odd_parquet,
    odd_text,
    odd_toml,
    parquet_bytes,
)
from fuzz.options import LIMITED, Option, pool_of

__all__ = ["DRAFTS", "HEADER", "Draft", "records", "spoil", "write"]


@dataclass
class Draft:
    """A command that works, file by file and option by option."""

    command: tuple[str, ...]
    argument: str
    files: dict[str, bytes]
    options: dict[str, Option]
    pool: Mapping[str, Sequence[Option]]
    told: list[str] = field(default_factory=list)
    links: list[Callable[[Path], object]] = field(default_factory=list)


SITES, ILLS, SEXES = ("A", "B", "C"), ("no", "mild", "severe"), ("f", "m")
COUNTS = (12, 3, 1, 0, 7, 9, 40, 2, 5, 1, 1, 30, 4, 6, 8, 11, 0, 3)
HEADER = ["site", "ill", "sex", "age", "home", "count", "name"]


def records() -> list[list[str]]:
    """Eighteen rows: the cells of a small table, or as many people."""
    cells = [(site, ill, sex) for site in SITES for ill in ILLS for sex in SEXES]
    return [
        [*cell, str(20 + 7 * (i % 9)), f"h{i // 2}", str(count), MARKER]
        for i, (cell, count) in enumerate(zip(cells, COUNTS, strict=True))
    ]


RECODE = '[ill]\nsome = ["mild", "severe"]\n\n[site]\nnorth = ["A", "B"]\n'
GIVEN = '[[known]]\nrow = { site = "A" }\ncol = { ill = "no" }\nat_least = 1\nat_most = 900\n\n[[known]]\nrow = { site = "B" }\nexactly = 79\n'
ARRANGEMENTS = '[[arrangement]]\nname = "first"\nrows = ["site"]\ncols = ["ill"]\n\n[[arrangement]]\nrows = ["sex"]\ncols = ["ill"]\nrecode = { ill = { some = ["mild", "severe"] } }\n'
HIERARCHY = "A;north;*\nB;north;*\nC;south;*\n"
BOUNDS_SPEC = """[source]
file = "data.csv"
weight = "count"

[attributes.site]
labels = ["A", "B", "C"]
hierarchy = "site.csv"

[attributes.age]
kind = "integer"
bins = [25, 55]

[attributes.ill]
labels = ["no", "mild", "severe"]

[attributes.sex]
labels = ["f", "m"]

[[structural_zeros]]
site = ["C"]
ill = ["severe"]
sex = ["f"]

[bounds]
rows = ["site", "sex"]
cols = ["ill"]
small = 5
"""
CELLS = "site,ill\nA,no\nB,severe\n"
CONDITIONALS = [["A", "no", "1/2"], ["A", "mild", "1/2"], ["B", "no", "2/3"], ["B", "mild", "1/3"]]
PERCENT = [
    ["A", "no", "50 %", "4"],
    ["A", "mild", "50%", ""],
    ["B", "no", "25", "8"],
    ["B", "mild", "75", "8"],
]


SHORT: dict[str, Option] = {"seconds": "0.05"}


def bounds(draw: random.Random) -> Draft:
    files = {
        "data.csv": csv_bytes(HEADER, records()),
        "recode.toml": RECODE.encode(),
        "given.toml": GIVEN.encode(),
        "cells.csv": CELLS.encode(),
        "arrangements.toml": ARRANGEMENTS.encode(),
        "site.csv": HIERARCHY.encode(),
        "spec.toml": BOUNDS_SPEC.encode(),
        "conditionals.csv": csv_bytes(["site", "ill", "share"], CONDITIONALS),
        "percent.csv": csv_bytes(["site", "ill", "share", "people"], PERCENT),
    }
    table: dict[str, Option] = {"rows": "site", "cols": "ill", "weight": "count"}
    starts: list[tuple[str, dict[str, Option]]] = [
        ("data.csv", table),
        ("data.csv", {**table, "recode": "recode.toml", "rows": "site,sex"}),
        ("data.csv", {**table, "given": "given.toml"}),
        ("data.csv", {**table, "cells": "cells.csv"}),
        ("data.csv", {"weight": "count", "arrangements": "arrangements.toml"}),
        ("", {"spec": "spec.toml"}),
        (
            "conditionals.csv",
            {"rows": "site", "cols": "ill", "weight": "share", "conditionals": None, "n": "12"},
        ),
        ("data.csv", {**table, "suggest": None, "fix": "ill", "write-recodes": "recodes"}),
        (
            "percent.csv",
            {
                "rows": "site",
                "cols": "ill",
                "weight": "share",
                "conditionals": None,
                "percent": None,
                "row-n": "people",
            },
        ),
        ("data.csv", {**table, "register": "register", "publish": "published", "accept": None}),
        ("data.csv", {**table, "decimals": "3", "fail-on": "small"}),
        ("data.csv", {"rows": "site,sex", "cols": "ill", "html": "page.html"}),
    ]
    weights = (4, 4, 4, 4, 4, 6, 6, 1, 4, 1, 4, 1)
    argument, options = draw.choices(starts, weights)[0]
    chosen: dict[str, Sequence[Option]] = {
        "rows": ("site", "site,sex", "ill,age,home", "count", "name", "nothing"),
        "cols": ("ill", "sex", "ill,sex", "site"),
        "n": ("12", "0", "1", "99999999999999999999"),
        "recode": ("recode.toml", "given.toml", "data.csv"),
        "given": ("given.toml", "recode.toml"),
        "cells": ("cells.csv", "data.csv"),
        "arrangements": ("arrangements.toml",),
        "decimals": ("0", "1", "9", "10"),
        "certain": ("95", "50", "100", "nan", "99.9999999"),
        "row-n": ("people", "count", "site", "nothing"),
        "fix": ("site", "ill", "nothing"),
        "apart": ("site=A,B", "site=A", "ill=no,mild", "=", "nothing=a,b"),
        "write-recodes": ("recodes", "no/such", "."),
        "register": ("register", "data.csv"),
        "person": ("name", "site", "nothing"),
        "publish": ("published", "."),
        "spec": ("spec.toml",),
    }
    pool = pool_of(["bounds"], files, chosen)
    return Draft(("bounds",), argument, files, {**options, **SHORT}, pool)


def anonymize(draw: random.Random) -> Draft:
    files = {
        "data.csv": csv_bytes(HEADER, records()),
        "site.csv": HIERARCHY.encode(),
        "population.csv": csv_bytes(HEADER, records() * 3),
        "recode.toml": RECODE[RECODE.index("[site]") :].encode(),
        "spec.toml": b'[source]\nfile = "data.csv"\n\n[anonymize]\nquasi = ["site", "age"]\nk = 3\nidentifying = ["name"]\nkeep = ["home", "count"]\nmethod = "sorted"\nhierarchy = { site = "site.csv" }\nweights = { age = 2.5 }\n',
    }
    method = draw.choice(("sorted", "greedy", "mondrian", "k-member", "freeform-greedy", "mondrian-relaxed"))
    base: dict[str, Option] = {
        "quasi": "site,age",
        "k": "3",
        "identifying": "name",
        "keep": "home,count",
        "method": method,
        **SHORT,
        "out": "out",
    }
    harmonised: dict[str, Option] = {"recoding": "global", "method": "auto"}
    extra: list[dict[str, Option]] = [
        {},
        {},
        {"hierarchy": "site=site.csv"},
        {"sensitive": "ill", "l": "2"},
        {"sensitive": "ill", "t": "0.5"},
        {"suppress": "0.2"},
        {"weights": "site=2,age=.5"},
        {"population": "population.csv", "k-map": None},
        {"ordered": "site"},
        {"ordered": "site=A,B,C"},
        {"format": "bounds", "class-id": None},
        {"recode": "recode.toml"},
        {**harmonised, "suppress": "0.2"},
        {**harmonised, "recode": "recode.toml"},
        {**harmonised, "exceptions": "0.3", "hierarchy": "site=site.csv"},
        {"sensitive": "ill", "l": "2", "l-kind": "recursive", "c": "3"},
        {**harmonised, "hierarchy": "site=site.csv"},
        {"top-code": "count=9", "bottom-code": "count=1", "round-to": "count=3"},
        {"unit": "home", "keep": "count", "method": "auto"},
        {"unit": "home", "whole-units": None, "method": "auto", "suppress": "0.9"},
        {"missing-code": "age=20,27"},
        {"categorical": "age", "missing-code": "site=C"},
    ]
    chosen: dict[str, Sequence[Option]] = {
        "quasi": ("site", "site,age,sex", "count", "home,name", "nothing"),
        "k": ("1", "2", "18", "19", "0", "99999999999999999999"),
        "method": ("sorted", "greedy", "mondrian", "auto", "exact", "nothing"),
        "keep": ("count", "home,count,sex", "site", "nothing"),
        "categorical": ("age", "site", "ill"),
        "missing-code": ("age=20", "age", "ill=", "site=A,B", "age=20,27,34,41,48,55,62,69,76", "count=0"),
        "recoding": ("global", "local", "nothing"),
        "exceptions": ("0.3", "1", "1.5", "-1", "nan"),
        "c": ("1", "0", "-2", "1e308", "1e-300", "inf", "nothing"),
        "recode": ("recode.toml", "site.csv", "spec.toml"),
        "top-code": (
            "count=9",
            "count=-1",
            "count=nan",
            "age=30",
            "site=3",
            "name=1",
            "nothing=1",
            "count",
            "count=1e308",
        ),
        "bottom-code": ("count=1", "count=50", "count=inf", "home=0"),
        "round-to": ("count=3", "count=0", "count=-2", "count=1e-300", "count=1e308", "count=0.1,age=5"),
        "unit": ("home", "site", "name"),
        "ordered": (
            "site",
            "age",
            "site=A,B,C",
            "site=A",
            "age=20,27",
            "site=A,A,B",
            "ill=severe,mild,no",
            "=",
            "site=,",
        ),
        "hierarchy": ("site=site.csv", "site=data.csv", "age=site.csv", "site=", "=site.csv"),
        "weights": ("site=1", "site=0,age=0", "site=-1", "site=nan", "site=1e308,age=1e308"),
        "l": ("1", "2", "1e308", "3.5", "inf"),
        "t": ("0", "0.5", "1", "1e-300"),
        "distance": ("equal", "ordered", "hierarchical"),
        "suppress": ("0", "1", "0.5"),
        "steps": ("0", "1"),
        "population": ("population.csv", "site.csv"),
        "against": ("nowhere", ".", "data.csv"),
        "curve": ("2,3", "0", "1000"),
        "spec": ("spec.toml",),
    }
    pool = pool_of(["anonymize"], files, chosen)
    if draw.random() < 0.15:
        return Draft(("anonymize",), "", files, {"spec": "spec.toml", **SHORT, "out": "out"}, pool)
    return Draft(("anonymize",), "data.csv", files, {**base, **draw.choice(extra)}, pool)


AMOUNTS = (
    "1",
    "0",
    "-1",
    "1e-9",
    "1e99999999",
    "1e-99999999",
    "1/3",
    "1/0",
    "nan",
    "inf",
    "0x1",
    "1_0",
    "9" * 5000,
)


def groups(draw: random.Random) -> Draft:
    rows = [row for row in records() for _ in range(2)]
    domain = [[site, ill] for site in SITES for ill in ILLS]
    counted = [[site, ill, str(size), str(3 - size)] for site, ill in domain for size in (1, 2)]
    files = {
        "data.csv": csv_bytes(HEADER, rows),
        "domain.csv": csv_bytes(["site", "ill"], domain),
        "counted.csv": csv_bytes(["site", "ill", "size", "groups"], counted),
        "spec.toml": b'[source]\nfile = "data.csv"\n\n[groups]\nunit = "home"\nregions = ["site", "ill"]\ndomain = "domain.csv"\nmax_size = 5\nepsilon = "1/2"\nacross = "split"\ntotal = "noisy"\n',
    }
    base: dict[str, Option] = {
        "regions": "site,ill",
        "domain": "domain.csv",
        "max-size": "5",
        "epsilon": "1",
        "seed": "3",
        "out": "out",
    }
    by_unit: dict[str, Option] = {**base, "unit": "home", "across": "split"}
    starts: list[tuple[str, dict[str, Option]]] = [
        ("data.csv", by_unit),
        ("data.csv", {**by_unit, "total": "public"}),
        ("data.csv", {**by_unit, "quantity": "age", "max-quantity": "90"}),
        ("counted.csv", {**base, "size": "size", "groups": "groups"}),
        ("data.csv", {**{k: v for k, v in by_unit.items() if k != "out"}, "forecast": "100", "json": None}),
        ("", {"spec": "spec.toml", "seed": "1", "out": "out"}),
    ]
    chosen: dict[str, Sequence[Option]] = {
        "unit": ("home", "name", "nothing"),
        "regions": ("site", "ill,site", "site,site", "home", "name"),
        "max-size": ("1", "0", "1000001", "50"),
        "epsilon": AMOUNTS,
        "rho": AMOUNTS,
        "delta": ("1e-6", "1", "1e-400"),
        "shares": ("equal", "chosen", "1/2,1/4,1/4", "1,1", "1/2,1/2,0"),
        "mechanism": ("louver", "M_H^dp", "M_c^dp", "M_H^r", "M_c^r", "M_c^ch", "M_H"),
        "noise": ("louver", "other"),
        "neighbours": ("add-remove-record", "change-record", "add-remove-unit"),
        "max-quantity": ("1", "90", "99999999999999999999"),
        "forecast": ("1", "0", "-1", "1000000"),
        "spec": ("spec.toml",),
    }
    pool = pool_of(["groups"], files, chosen)
    argument, options = draw.choice(starts)
    return Draft(("groups",), argument, files, dict(options), pool)


AUDIT_SPEC = """[source]
file = "data.csv"
weight = "count"

[attributes.age]
kind = "integer"
bins = [25, 55]

[[audit.tables]]
name = "everyone"
by = ["site", "ill"]
totals = true
below = 3

[[audit.tables]]
name = "women"
by = ["ill"]
where = { sex = "f" }
base = 5

[[audit.tables]]
name = "shares"
rows = ["site"]
cols = ["ill", "sex"]
decimals = 1
counts = "total"

[[audit.known]]
name = "sites"
where = { site = ["A", "B"] }
at_least = 100
at_most = 200

[[audit.targets]]
name = "old"
by = ["site"]
where = { sex = "m" }

[audit]
small = 4
"""
PUBLISHED_SPEC = """[attributes.site]
labels = ["A", "B", "C"]

[attributes.ill]
labels = ["no", "mild", "severe"]

[[audit.tables]]
name = "printed"
by = ["site", "ill"]
file = "printed.csv"
mark = ["*"]
mark_range = [1, 4]

[[audit.tables]]
name = "sites"
by = ["site"]
file = "sites.csv"
"""
PRINTED = [[site, ill, "*" if (site, ill) == ("B", "mild") else "7"] for site in SITES for ill in ILLS]


def audit(draw: random.Random) -> Draft:
    files = {
        "data.csv": csv_bytes(HEADER, records()),
        "audit.toml": AUDIT_SPEC.encode(),
        "published.toml": PUBLISHED_SPEC.encode(),
        "printed.csv": csv_bytes(["site", "ill", "count"], PRINTED),
        "sites.csv": csv_bytes(["site", "count"], [["A", "21"], ["B", "17"], ["C", "21"]]),
    }
    starts: list[dict[str, Option]] = [
        SHORT,
        {**SHORT, "decide": None},
        {**SHORT, "no-advice": None, "fail-on": "small"},
        {**SHORT, "hide": None, "no-advice": None},
        {**SHORT, "register": "register", "publish": "out"},
    ]
    chosen: dict[str, Sequence[Option]] = {
        "spec": ("audit.toml", "published.toml", "data.csv"),
        "register": ("register", ".", "data.csv", "no/such"),
        "person": ("name", "site", "nothing"),
        "publish": ("out", ".", "data.csv", "no/such"),
    }
    argument = draw.choice(("audit.toml", "audit.toml", "published.toml"))
    pool = pool_of(["audit"], files, chosen)
    return Draft(("audit",), argument, files, dict(draw.choice(starts)), pool)


PROTECT_SPEC = """[source]
file = "data.csv"

[protect]
steps = 3

[protect.codes.site]
hierarchy = "site.hrc"

[[protect.tables]]
name = "sums"
by = ["site", "ill"]
value = "count"

[[protect.tables]]
name = "people"
by = ["site", "sex"]

[[protect.rules]]
rule = "frequency"
minimum = 3

[[protect.rules]]
rule = "p-percent"
p = 10
tables = ["sums"]

[[protect.status]]
table = "people"
cell = { site = "A" }
set = "publish"
reason = "known"
"""
READY_SPEC = """[protect.codes.site]
hierarchy = "levels.csv"

[[protect.tables]]
name = "ready"
by = ["site"]
file = "ready.csv"
value = "turnover"
frequency = "n"
largest = ["first"]
status = "status"

[[protect.rules]]
rule = "dominance"
n = 1
k = 70
range = 15
"""
READY = [
    ["A", "3", "30", "25", ""],
    ["B", "9", "40", "6", ""],
    ["C", "9", "20", "5", "u"],
    ["Total", "21", "90", "25", ""],
]


def protect(draw: random.Random) -> Draft:
    files = {
        "data.csv": csv_bytes(HEADER, records()),
        "protect.toml": PROTECT_SPEC.encode(),
        "together.toml": PROTECT_SPEC.replace(
            'by = ["site", "sex"]', 'by = ["site", "ill"]\nhide_with = "sums"'
        ).encode(),
        "ready.toml": READY_SPEC.encode(),
        "ready.csv": csv_bytes(["site", "n", "turnover", "first", "status"], READY),
        "site.hrc": b"north\n@A\n@B\nC\n",
        "levels.csv": b"region,site\nnorth,A\nnorth,B\nC,C\n",
    }
    starts: list[dict[str, Option]] = [
        {"steps": "2"},
        {"out": "out"},
        {"attackers": "outsider", "minimise": "value"},
        {**SHORT, "known-percent": "80"},
        {"method": "round", "base": "4"},
        {**SHORT, "method": "round", "base": "40", "out": "out"},
    ]
    chosen: dict[str, Sequence[Option]] = {
        "spec": ("protect.toml", "together.toml", "ready.toml", "data.csv"),
        "out": ("out", ".", "data.csv", "no/such"),
        "holding": ("home", "site", "nothing"),
        "sampling-weight": ("age", "count", "nothing"),
    }
    argument = draw.choice(("protect.toml", "protect.toml", "together.toml", "ready.toml"))
    pool = pool_of(["protect"], files, chosen)
    return Draft(("protect",), argument, files, dict(draw.choice(starts)), pool)


DRAFTS: dict[str, Callable[[random.Random], Draft]] = {
    "bounds": bounds,
    "audit": audit,
    "protect": protect,
    "anonymize": anonymize,
    "groups": groups,
}


def spoil(draw: random.Random, draft: Draft, n_times: int | None = None) -> Draft:
    """Change a draft in a few places."""
    for _ in range(draw.choice((0, 1, 1, 1, 2, 2, 3)) if n_times is None else n_times):
        draw.choice((_change_option, _add_option, _drop_option, _spoil_file, _spoil_file, _spoil_file))(
            draw, draft
        )
    return draft


def _change_option(draw: random.Random, draft: Draft) -> None:
    name = draw.choice(list(draft.options))
    _set(draw, draft, name)


def _add_option(draw: random.Random, draft: Draft) -> None:
    _set(draw, draft, draw.choice(list(draft.pool)))


def _set(draw: random.Random, draft: Draft, name: str) -> None:
    known = draft.pool.get(name, ("1",))
    value = draw.choice(list(known))
    if value is not None and name not in LIMITED and draw.random() < 0.4:
        value = typed(odd_text(draw))
    draft.options[name] = value
    draft.told.append(f"--{name}={value!r:.40}")


def _drop_option(draw: random.Random, draft: Draft) -> None:
    name = draw.choice(list(draft.options))
    if len(draft.options) > 1 and name not in LIMITED:
        del draft.options[name]
        draft.told.append(f"no --{name}")


def _spoil_file(draw: random.Random, draft: Draft) -> None:
    used = [
        name
        for name in draft.files
        if name == draft.argument or any(name in (v or "") for v in draft.options.values())
    ]
    name = draw.choice(used or list(draft.files))
    content = draft.files[name]
    way = draw.random()
    if way < 0.06:
        del draft.files[name]
        draft.told.append(f"no {name}")
    elif way < 0.1:
        del draft.files[name]
        draft.links.append(lambda folder: (folder / name).mkdir(exist_ok=True))
        draft.told.append(f"{name} is a folder")
    elif way < 0.25 or not content or not _is_plain(name, content):
        draft.files[name] = damaged(draw, content)
        draft.told.append(f"{name} is damaged")
    elif name.endswith(".toml"):
        draft.files[name] = odd_toml(draw, content.decode("utf-8", "replace"))
        draft.told.append(f"{name} is odd")
    elif name == draft.argument and way < 0.45 and name.endswith(".csv"):
        _to_parquet(draw, draft)
    elif name.endswith(".csv"):
        header, *rows = [line.split(",") for line in content.decode("utf-8", "replace").split("\n") if line]
        draft.files[name] = odd_csv(draw, header, rows)
        draft.told.append(f"{name} is odd")


def _is_plain(name: str, content: bytes) -> bool:
    """Whether a file can be taken apart as text with commas: of the others only bytes are changed."""
    if name.endswith(".toml"):
        return True
    lines = content.decode("utf-8", "replace").split("\n")
    return name.endswith(".csv") and len({line.count(",") for line in lines if line}) == 1


def _to_parquet(draw: random.Random, draft: Draft) -> None:
    """The data as Parquet, mostly odd."""
    try:
        table = csv.read_csv(pa.py_buffer(draft.files[draft.argument]))
    except (pa.ArrowException, ValueError):
        return
    if not table.column_names or not len(table):
        return
    del draft.files[draft.argument]
    draft.argument = "data.parquet"
    try:
        draft.files["data.parquet"] = (
            odd_parquet(draw, table) if draw.random() < 0.8 else parquet_bytes(table)
        )
    except (pa.ArrowException, ValueError, KeyError):
        draft.files["data.parquet"] = parquet_bytes(table)
    draft.told.append("the data are odd Parquet")


def typed(text: str) -> str:
    """A text as an operating system hands it over: no zero byte, no lone surrogate but those of stray bytes.

    It may name a place to write to, so it never is one that is there outside the case's folder.
    """
    text = text.replace("\0", "").replace("\ud800", "\udcff")
    return text if text == NO_PLACE else text.lstrip("/")


def write(draft: Draft, folder: Path) -> tuple[str, ...]:
    """Write the files of a draft, and give its arguments."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in draft.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    for link in draft.links:
        link(folder)
    flags = [
        f"-{n}{v}" if n == "k" else f"--{n}" if v is None else f"--{n}={v}" for n, v in draft.options.items()
    ]
    return (*draft.command, *([draft.argument] if draft.argument else []), *flags)
