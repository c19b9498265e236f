"""The open data: columns and their values, rows, and a file counted once by every column that can be used in a table."""

from __future__ import annotations

import os
from dataclasses import asdict
from functools import lru_cache
from typing import Any

import numpy as np

from louver.app.words import natural_order
from louver.data.coded import read_coded
from louver.data.coding import text_sql
from louver.data.histogram import Histogram
from louver.data.kinds import ColumnKind, guess_kind
from louver.data.read import open_source, quoted
from louver.data.tabulate import tabulate
from louver.errors import InputError
from louver.profile import profile
from louver.profile.result import DistributionOfValues
from louver.run import Run
from louver.schema.attribute import Attribute
from louver.schema.source import SourceOptions

__all__ = [
    "MOST_LABELS",
    "Stamp",
    "counted",
    "first_rows",
    "histogram_of",
    "labelled",
    "profiled",
    "stamp_of",
]

MOST_CATEGORIES = 200
Stamp = tuple[int, int] | None


def counted(path: str, source: SourceOptions, run: Run) -> dict[str, Any]:
    """Columns that can be used in a table, with their labels, and the reasons why others cannot."""
    run.report("counting", 0, 0)
    names, left, missing = _usable(path, source.model_dump_json(), stamp_of(path))
    if len(names) < 2:
        raise InputError("a table needs two columns of categories, and the file has fewer.")
    histogram = histogram_of(path, source, names)
    sizes = [{"name": a.name, "labels": list(a.labels)} for a in histogram.attributes]
    return {"attributes": sizes, "left": left, "missing": missing, "n": histogram.total}


@lru_cache(maxsize=1)
def _usable(path: str, source: str, stamp: Stamp) -> tuple[tuple[str, ...], dict[str, str], list[str]]:
    """Columns usable in a table, why the others are not, and which of those merely have missing values."""
    about = SourceOptions.model_validate_json(source)
    with open_source(path, **about.opening()) as opened:
        columns = read_coded(opened, [name for name in opened.columns if name != about.weight], Run())
    names: list[str] = []
    left: dict[str, str] = {}
    missing: list[str] = []
    for column in columns:
        why = ""
        if guess_kind(column)[0] in (ColumnKind.EMPTY, ColumnKind.TEXT):
            why = "free text or empty"
        elif column.n_values > MOST_CATEGORIES:
            why = f"{column.n_values:,} different values: too many for a table"
        elif column.n_missing:
            why = f"{column.n_missing:,} values are missing"
            missing.append(column.name)
        if why:
            left[column.name] = why
        else:
            names.append(column.name)
    return tuple(names), left, missing


def histogram_of(path: str, source: SourceOptions, names: tuple[str, ...]) -> Histogram:
    """The file tabulated by these columns; the result is cached."""
    return _histogram(path, source.model_dump_json(), names, stamp_of(path))


def stamp_of(path: str) -> Stamp:
    """A stamp that changes when the file does, which invalidates earlier counts."""
    try:
        about = os.stat(path)
    except OSError:  # a URI, or a file that no longer exists
        return None
    return about.st_mtime_ns, about.st_size


@lru_cache(maxsize=1)
def _histogram(path: str, source: str, names: tuple[str, ...], stamp: Stamp) -> Histogram:
    """The file counted by all these columns, labels such as <25, 25-54, 55+ in their natural order."""
    about = SourceOptions.model_validate_json(source)
    with open_source(path, **about.opening()) as opened:
        histogram = tabulate(opened, names, weight=about.weight)
    if not histogram.total:
        raise InputError("the file has no people; at least one count must be above 0.")
    codes = histogram.codes.copy()
    attributes = []
    for position, attribute in enumerate(histogram.attributes):
        order = natural_order(attribute.labels)
        codes[:, position] = np.argsort(order)[codes[:, position]]
        attributes.append(
            Attribute(
                name=attribute.name, kind=attribute.kind, labels=tuple(attribute.labels[i] for i in order)
            )
        )
    return Histogram.from_codes(attributes, codes, histogram.counts)


MOST_LABELS = 5000
MOST_BARS = 12
PREVIEW = 25


def profiled(path: str, source: SourceOptions, run: Run) -> dict[str, Any]:
    """The `profile` result as JSON; only the columns for counted data, whose lines are not records."""
    if source.weight is None:
        return profile(path, **source.keywords(), run=run).to_dict()
    found = counted(path, source, run)
    histogram = histogram_of(path, source, tuple(a["name"] for a in found["attributes"]))
    columns = []
    for attribute in histogram.attributes:
        marginal = histogram.marginalise((attribute.name,))
        people = np.zeros(attribute.size, dtype=np.int64)
        people[marginal.codes[:, 0]] = marginal.counts
        columns.append(_counted_column(attribute.name, attribute.labels, people.tolist()))
    left = [_left_column(name, why) for name, why in found["left"].items()]
    return {
        "n_rows": histogram.total,
        "columns": [*columns, *left],
        "sets": [],
        "dependencies": [],
        "share": 1.0,
    }


def _counted_column(name: str, labels: tuple[str, ...], people: list[int]) -> dict[str, Any]:
    spread = DistributionOfValues(labels=labels[:MOST_BARS], counts=tuple(people[:MOST_BARS]))
    return {
        **_left_column(name, ""),
        "kind": ColumnKind.CATEGORY,
        "distinct": len(labels),
        "distribution": asdict(spread),
    }


def _left_column(name: str, why: str) -> dict[str, Any]:
    plain = {"kind": "", "kind_reason": why, "distinct": 0, "missing": 0, "alone": 0, "share_alone": 0.0}
    return {"name": name, **plain, "role": "keep", "reason": why, "distribution": None}


def labelled(path: str, source: SourceOptions, column: str, run: Run) -> dict[str, int]:
    """The values of a column with the records of each, in their natural order."""
    with open_source(path, **source.opening(), run=run) as opened:
        [found] = read_coded(opened, [column], run)
    if found.n_values > MOST_LABELS:
        raise InputError(
            f'column "{column}" has {found.n_values:,} values, more than a page can merge; anonymize it on the command line with a '
            "hierarchy file."
        )
    labels, counts = (
        sorted(found.values.to_pylist()),
        dict(zip(found.values.to_pylist(), found.counts.tolist(), strict=True)),
    )
    return {labels[place]: counts[labels[place]] for place in natural_order(labels)}


def first_rows(path: str, source: SourceOptions, run: Run) -> dict[str, Any]:
    """The first rows as they are read, every value as text; missing values and codes for missing are None."""
    with open_source(path, **source.opening(), run=run) as opened:
        columns = list(opened.columns)
        texts = ", ".join(f"{text_sql(opened, name)} AS {quoted(name)}" for name in columns)
        batches = list(opened.batches(f"SELECT {texts} FROM records LIMIT {PREVIEW}"))
    rows = [list(row.values()) for batch in batches for row in batch.to_pylist()]
    return {"columns": columns, "rows": rows}
