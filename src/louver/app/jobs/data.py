"""What the Data page asks for."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from louver.app.jobs.counts import counted, histogram_of
from louver.app.words import natural_order
from louver.data.coded import read_coded
from louver.data.coding import text_sql
from louver.data.kinds import ColumnKind
from louver.data.read import open_source, quoted
from louver.errors import InputError
from louver.profile import profile
from louver.profile.result import Distribution
from louver.run import Run
from louver.schema.source import SourceOptions

__all__ = ["MOST_LABELS", "first_rows", "labelled", "profiled"]

MOST_LABELS = 5000
MOST_BARS = 12
PREVIEW = 25


def profiled(path: str, source: SourceOptions, run: Run) -> dict[str, Any]:
    """What `profile` finds, as JSON has it; of counted data, whose lines are no records, the columns alone."""
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
    spread = Distribution(labels=labels[:MOST_BARS], counts=tuple(people[:MOST_BARS]))
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
            "file of its hierarchy."
        )
    labels, counts = (
        sorted(found.values.to_pylist()),
        dict(zip(found.values.to_pylist(), found.counts.tolist(), strict=True)),
    )
    return {labels[place]: counts[labels[place]] for place in natural_order(labels)}


def first_rows(path: str, source: SourceOptions, run: Run) -> dict[str, Any]:
    """The first rows as they are read, every value as text; what is missing, or stands for it, is None."""
    with open_source(path, **source.opening(), run=run) as opened:
        columns = list(opened.columns)
        texts = ", ".join(f"{text_sql(opened, name)} AS {quoted(name)}" for name in columns)
        batches = list(opened.batches(f"SELECT {texts} FROM records LIMIT {PREVIEW}"))
    rows = [list(row.values()) for batch in batches for row in batch.to_pylist()]
    return {"columns": columns, "rows": rows}
