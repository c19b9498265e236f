"""What the register keeps of a k-anonymous file: its classes, each by the values that its records may have, and their counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from louver._arrays import Ints
from louver.anonymize.generalise import Sort, number_label
from louver.anonymize.intersection import published_values
from louver.anonymize.load import MISSING
from louver.anonymize.result import AnonymizedRelease
from louver.release import told

__all__ = ["entry_of"]

MOST_COMPARED = 4096
"""Classes up to which the most people of each are worked out; above it they have no upper bound."""

Labels = frozenset[str]


def entry_of(release: AnonymizedRelease, records: pa.Table) -> told.Plain:
    """The content of the register's entry.

    Notes
    -----
    Classes may overlap: the records that fit one are at least those published as it, and at most those of all classes that it
    overlaps, and the ones left out. A class with a missing value is left out: it tells of no label.
    """
    names = [str(name) for name in pc.unique(release.mapping["attribute"]).to_pylist()]
    of_row, labels = [], []
    for name in names:
        rows, lines = published_values(release.table, release.mapping, name)
        given = _texts(records[name])
        of_row.append(rows)
        labels.append([_labels(line, given) for line in lines])
    classes, sizes = np.unique(np.stack(of_row, axis=1), axis=0, return_counts=True)
    most = _most(classes, sizes, labels, release.n_suppressed)
    found = []
    for published, size, upper in zip(classes.tolist(), sizes.tolist(), most, strict=True):
        where = {name: labels[j][published[j]] for j, name in enumerate(names)}
        if all(chosen is None or (chosen and MISSING not in chosen) for chosen in where.values()):
            told_of = {name: sorted(chosen) for name, chosen in where.items() if chosen is not None}
            found.append((told_of, size, upper))
    name = f"{release.guarantee} with k = {release.k}"
    return {"tables": [told.table(name, margins=told.counts_of_classes(found))]}


def _texts(column: pa.ChunkedArray) -> dict[str, float]:
    """The values of a column as text, with the number that each is; NaN where it is none."""
    texts = {}
    for value in pc.unique(column).to_pylist():
        text = number_label(value) if isinstance(value, float) else str(value)
        try:
            texts[text] = float(value)
        except (TypeError, ValueError):
            texts[text] = np.nan
    return texts


def _labels(line: Mapping[str, Any], given: Mapping[str, float]) -> Labels | None:
    """Labels that a published value stands for; None for all, empty where the value is missing."""
    if line["sort"] == Sort.ANYTHING:
        return None
    if line["members"] is not None:
        return frozenset(line["members"])
    if line["sort"] == Sort.MISSING:
        return frozenset()
    return frozenset(text for text, number in given.items() if line["lower"] <= number <= line["upper"])


def _most(
    classes: Ints, sizes: Ints, labels: Sequence[Sequence[Labels | None]], n_suppressed: int
) -> list[int | None]:
    """The most records that fit each class."""
    if len(classes) > MOST_COMPARED:
        return [None] * len(classes)
    is_near = np.ones((len(classes), len(classes)), np.bool_)
    for column, chosen in zip(classes.T, labels, strict=True):
        near = np.array(
            [[a is None or b is None or bool(a & b) or not (a or b) for b in chosen] for a in chosen],
            np.bool_,
        )
        is_near &= near[np.ix_(column, column)]
    most: list[int | None] = (is_near @ sizes + n_suppressed).tolist()
    return most
