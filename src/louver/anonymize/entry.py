"""The register entry of a k-anonymous file: everything that a reader can count in it.

These are the published classes, each described by the values that its records may have, crossed with every column that is published
unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from louver._arrays import Ints
from louver.anonymize.coding import MISSING
from louver.anonymize.generalise import Sort, number_label
from louver.anonymize.intersection import published_values
from louver.anonymize.options import AnonymizeOptions
from louver.anonymize.result import RecordsOnDisk
from louver.release import disclosures

__all__ = ["entry_of"]

MOST_NUMBERS = 1 << 21
"""Limit on the numbers and labels in an entry; beyond it, the columns with the most labels are left out."""


def entry_of(
    table: pa.Table | RecordsOnDisk,
    mapping: pa.Table,
    dictionary: pa.Table,
    promise: str,
    n_left_out: int,
    given: Mapping[str, pa.ChunkedArray],
    options: AnonymizeOptions,
    where: Mapping[str, Sequence[str]],
) -> disclosures.Plain:
    """The content of the register's entry.

    Parameters
    ----------
    table : Table or StoredRecords
        The published records.
    promise : str
        The guarantee in words.
    n_left_out : int
        Records of the source that are not published.
    given : mapping of str to ChunkedArray
        The distinct values of each quasi-identifier in the source.
    where : mapping
        Labels that define the records in the file.
    """
    quasi = [str(name) for name in pc.unique(mapping["attribute"]).to_pylist()]
    values, occurs = [], []
    for name in quasi:
        texts = _texts(given[name])
        is_open = options.missing == "match" and given[name].null_count > 0
        lines = mapping.filter(pc.equal(mapping["attribute"], name)).to_pylist()
        values.append([None if is_open else _labels(line, texts) for line in lines])
        occurs.append([_occurring(line, texts) for line in lines])
    carried = {
        line["name"]: line["done"] for line in dictionary.to_pylist() if line["role"] in ("sensitive", "keep")
    }
    codes_of: dict[str, dict[str | None, int]] = {
        name: {} for name, done in carried.items() if done == "unchanged"
    }
    too_large = [name for name, done in carried.items() if done != "unchanged"]
    counted: _Counted | None = None
    for batch in _batches(table):
        found = np.stack(
            [
                *(published_values(batch, mapping, name)[0] for name in quasi),
                *(_coded(batch[name], codes) for name, codes in codes_of.items()),
            ],
            axis=1,
        )
        counted = _added(counted, found, np.ones(len(found), np.int64))
        while codes_of and counted[0].size + sum(map(len, codes_of.values())) > MOST_NUMBERS:
            largest = max(codes_of, key=lambda name: len(codes_of[name]))
            place = len(quasi) + list(codes_of).index(largest)
            too_large.append(largest)
            del codes_of[largest]
            counted = _added(None, np.delete(counted[0], place, axis=1), counted[1])
    assert counted is not None
    file = disclosures.file(
        promise,
        quasi=quasi,
        values=values,
        columns={name: list(codes) for name, codes in codes_of.items()},
        rows=counted[0].tolist(),
        counts=counted[1].tolist(),
        n_left_out=n_left_out,
        where=where,
        too_large=too_large,
        is_one_recoding=options.recoding == "global" and not options.exceptions,
        occurs=occurs,
        listed_in=_listed_in(options, mapping),
    )
    return {"tables": [], "files": [file]}


_Counted = tuple[Ints, Ints]
"""Distinct rows of codes, and how many records have each."""


def _batches(table: pa.Table | RecordsOnDisk) -> Iterator[pa.Table]:
    return table.batches() if isinstance(table, RecordsOnDisk) else iter([table])


def _added(counted: _Counted | None, rows: Ints, counts: Ints) -> _Counted:
    """Add further rows to those already counted, merging equal ones."""
    if counted is not None:
        rows, counts = np.concatenate([counted[0], rows]), np.concatenate([counted[1], counts])
    different, place = np.unique(rows, axis=0, return_inverse=True)
    return different, np.bincount(place.reshape(-1), counts, minlength=len(different)).astype(np.int64)


def _texts(column: pa.ChunkedArray) -> dict[str, float]:
    """The values of a column as text, each with its number; NaN where it is not a number."""
    texts = {}
    for value in pc.unique(column).to_pylist():
        try:
            texts[_text(value)] = float(value)
        except (TypeError, ValueError):
            texts[_text(value)] = np.nan
    return texts


def _text(value: object) -> str:
    """A value as it is written in tables."""
    if isinstance(value, bool):
        return str(value).lower()
    return number_label(value) if isinstance(value, float) else str(value)


def _labels(line: Mapping[str, Any], given: Mapping[str, float]) -> list[str] | None:
    """Labels that a published value stands for: None means all labels, and empty means a missing value, which has another label in
    tables."""
    if line["sort"] == Sort.ANYTHING:
        return None
    if line["members"] is not None:
        return [] if MISSING in line["members"] else list(line["members"])
    if line["sort"] == Sort.MISSING:
        return []
    return [text for text, number in given.items() if line["lower"] <= number <= line["upper"]]


def _occurring(line: Mapping[str, Any], given: Mapping[str, float]) -> list[str]:
    """Labels that somebody has: all of a set, both ends of an interval; a node of a hierarchy shows none."""
    members = line["members"]
    if line["sort"] == Sort.SET:
        return [label for label in members if label != MISSING]
    if line["sort"] != Sort.INTERVAL:
        return []
    if members is not None:
        return list(dict.fromkeys([members[0], members[-1]]))
    ends = [[text for text, number in given.items() if number == line[end]] for end in ("lower", "upper")]
    # Numbers that are written in several ways are several labels: which of them occurs is not shown.
    return list(dict.fromkeys(texts[0] for texts in ends if len(texts) == 1))


def _listed_in(options: AnonymizeOptions, mapping: pa.Table) -> str | None:
    """Among which records with a value somebody has each label that it lists; None if more than that is shown."""
    if options.exceptions or options.whole_units:
        return None
    if options.recoding == "global":
        return "column"
    nodes = mapping.filter(pc.equal(mapping["sort"], Sort.NODE))
    if pc.any(pc.greater(pc.list_value_length(nodes["members"]), 1)).as_py():
        return None  # the lowest node above a class: somebody is below each of at least two of its branches
    return None if options.class_id else "class"  # numbered classes are more than what their records show


def _coded(column: pa.ChunkedArray, codes: dict[str | None, int]) -> Ints:
    """The label of each row of a column that is published unchanged, as a number; new labels are added to `codes`."""
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    of_value = [
        codes.setdefault(None if _is_missing(value) else _text(value), len(codes))
        for value in encoded.dictionary.to_pylist()
    ]
    return np.array(of_value, np.int64)[np.asarray(np.from_dlpack(encoded.indices))]


def _is_missing(value: object) -> bool:
    return value is None or value == "" or value != value
