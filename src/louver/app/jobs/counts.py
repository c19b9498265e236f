"""The opened file, counted once by every column that a table can be made of."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any

import numpy as np

from louver.app.words import natural_order
from louver.data.coded import read_coded
from louver.data.histogram import Histogram
from louver.data.kinds import ColumnKind, guess_kind
from louver.data.read import open_source
from louver.data.tabulate import tabulate
from louver.errors import InputError
from louver.run import Run
from louver.schema.attribute import Attribute
from louver.schema.source import SourceOptions

__all__ = ["Stamp", "counted", "histogram_of", "stamp_of"]

MOST_LABELS = 200
Stamp = tuple[int, int] | None


def counted(path: str, source: SourceOptions, run: Run) -> dict[str, Any]:
    """Columns that a table can be made of, with their labels, and why others cannot."""
    run.report("counting", 0, 0)
    names, left, missing = _usable(path, source.model_dump_json(), stamp_of(path))
    if len(names) < 2:
        raise InputError(
            "the file has fewer than two columns that a table can be made of; it needs categories."
        )
    histogram = histogram_of(path, source, names)
    sizes = [{"name": a.name, "labels": list(a.labels)} for a in histogram.attributes]
    return {"attributes": sizes, "left": left, "missing": missing, "n": histogram.total}


@lru_cache(maxsize=1)
def _usable(path: str, source: str, stamp: Stamp) -> tuple[tuple[str, ...], dict[str, str], list[str]]:
    """Columns of a table, why others are none, and those of them that only lack values."""
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
        elif column.n_values > MOST_LABELS:
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
    """The file counted by these columns; counted once."""
    return _histogram(path, source.model_dump_json(), names, stamp_of(path))


def stamp_of(path: str) -> Stamp:
    """What changes when the file does: what was counted before then counts no longer."""
    try:
        about = os.stat(path)
    except OSError:  # an address, or a file that has gone
        return None
    return about.st_mtime_ns, about.st_size


@lru_cache(maxsize=1)
def _histogram(path: str, source: str, names: tuple[str, ...], stamp: Stamp) -> Histogram:
    """The file counted by all these columns, labels such as <25, 25-54, 55+ in their natural order."""
    about = SourceOptions.model_validate_json(source)
    with open_source(path, **about.opening()) as opened:
        histogram = tabulate(opened, names, weight=about.weight)
    if not histogram.total:
        raise InputError("the file counts no people; give at least one count above 0.")
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
