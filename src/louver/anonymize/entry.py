"""What the register keeps of a k-anonymous file: everything that a reader can count in it.

That is the published classes, each by the values that its records may have, crossed with every column that is published as it is.
"""

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

MOST_NUMBERS = 1 << 21
"""Numbers and labels of an entry; columns with most labels are left out beyond."""


def entry_of(
    release: AnonymizedRelease, records: pa.Table, where: Mapping[str, Sequence[str]] | None = None
) -> told.Plain:
    """The content of the register's entry.

    Parameters
    ----------
    records : Table
        As they were anonymized.
    where : mapping, optional
        Labels of the records that the file is about.
    """
    quasi = [str(name) for name in pc.unique(release.mapping["attribute"]).to_pylist()]
    shown, values = [], []
    for name in quasi:
        of_row, lines = published_values(release.table, release.mapping, name)
        given = _texts(records[name])
        is_open = release.parameters.get("missing") == "match" and records[name].null_count > 0
        shown.append(of_row)
        values.append([None if is_open else _labels(line, given) for line in lines])
    labels, codes = {}, {}
    for name in release.unchanged:
        if name not in release.coded:
            labels[name], codes[name] = _coded(release.table[name])
    too_large = [name for name in release.unchanged if name in release.coded]
    while True:
        rows, counts = np.unique(np.stack([*shown, *codes.values()], axis=1), axis=0, return_counts=True)
        if not codes or rows.size + sum(map(len, labels.values())) <= MOST_NUMBERS:
            break
        largest = max(labels, key=lambda name: len(labels[name]))
        too_large.append(largest)
        del labels[largest], codes[largest]
    file = told.file(
        f"{release.guarantee} with k = {release.k}",
        quasi=quasi,
        values=values,
        columns=labels,
        rows=rows.tolist(),
        counts=counts.tolist(),
        n_left_out=release.n_suppressed,
        where=where or {},
        too_large=too_large,
    )
    return {"tables": [], "files": [file]}


def _texts(column: pa.ChunkedArray) -> dict[str, float]:
    """The values of a column as text, with the number that each is; NaN where it is none."""
    texts = {}
    for value in pc.unique(column).to_pylist():
        try:
            texts[_text(value)] = float(value)
        except (TypeError, ValueError):
            texts[_text(value)] = np.nan
    return texts


def _text(value: object) -> str:
    """A value as tables write it."""
    if isinstance(value, bool):
        return str(value).lower()
    return number_label(value) if isinstance(value, float) else str(value)


def _labels(line: Mapping[str, Any], given: Mapping[str, float]) -> list[str] | None:
    """Labels that a published value stands for; None for all, empty where a value is missing, for which tables have another label."""
    if line["sort"] == Sort.ANYTHING:
        return None
    if line["members"] is not None:
        return [] if MISSING in line["members"] else list(line["members"])
    if line["sort"] == Sort.MISSING:
        return []
    return [text for text, number in given.items() if line["lower"] <= number <= line["upper"]]


def _coded(column: pa.ChunkedArray) -> tuple[list[str | None], Ints]:
    """Labels of a column that is published as it is, and that of each row."""
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    found: dict[str | None, int] = {}
    of_value = [
        found.setdefault(None if _is_missing(value) else _text(value), len(found))
        for value in encoded.dictionary.to_pylist()
    ]
    return list(found), np.array(of_value, np.int64)[np.asarray(np.from_dlpack(encoded.indices))]


def _is_missing(value: object) -> bool:
    return value is None or value == "" or value != value
