"""Generalised microdata: the mapping that says what each published value stands for, and the promises about it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from louver._arrays import Bools, Ints

__all__ = [
    "check_freeform",
    "check_k_map",
    "check_losses",
    "check_mapping",
    "published_losses",
    "published_values",
]

Promise = Mapping[str, Any]
Outcome = tuple[bool, str]

TOLERANCE = 1e-9

BLOCK_CELLS = 1 << 24
"""Pairs of published records looked at at once."""


def published_values(table: pa.Table, mapping: pa.Table, name: str) -> tuple[Ints, list[dict[str, Any]]]:
    """Which line of the mapping each row publishes of an attribute, and these lines.

    Raises
    ------
    KeyError
        For a value that the mapping does not list.
    """
    lines = mapping.filter(pc.equal(mapping["attribute"], name)).to_pylist()
    if name in table.column_names:
        place_of: dict[object, int] = {line["published"]: place for place, line in enumerate(lines)}
        column = table[name].combine_chunks().dictionary_encode(null_encoding="encode")
        places = [place_of[value] for value in column.dictionary.to_pylist()]
        return np.array(places, np.int64)[np.asarray(np.from_dlpack(column.indices))], lines
    place_of = {_ends(line): place for place, line in enumerate(lines)}
    ends = [table[f"{name}_{end}"].to_pylist() for end in ("lower", "upper")]
    return np.array([place_of[pair] for pair in zip(*ends, strict=True)], np.int64), lines


def _ends(line: Mapping[str, Any]) -> tuple[object, object]:
    return (line["members"][0], line["members"][-1]) if line["members"] else (line["lower"], line["upper"])


def published_losses(mapping: pa.Table) -> list[tuple[str, float]]:
    """Mean share of each attribute that published records lose, measured by what is published of it and nothing else.

    Intervals lose their width over the width of all intervals together, sets and nodes (labels - 1) over all labels that
    occur in the mapping. The source is not asked: its range may be that of a record which was left out.
    """
    losses = []
    for name in _attributes(mapping):
        lines = mapping.filter(pc.equal(mapping["attribute"], name)).to_pylist()
        records = sum(line["records"] for line in lines)
        lost = sum(line["records"] * share for line, share in zip(lines, _shares(lines), strict=True))
        losses.append((name, lost / max(1, records)))
    return losses


def _shares(lines: list[dict[str, Any]]) -> list[float]:
    """Share of an attribute that each published value loses."""
    labels = {member for line in lines for member in line["members"] or ()}
    known = [line for line in lines if line["lower"] is not None]
    span = max((line["upper"] for line in known), default=0) - min(
        (line["lower"] for line in known), default=0
    )
    shares = []
    for line in lines:
        if line["sort"] == "anything":
            shares.append(1.0)
        elif line["members"] is not None:
            steps = len(labels) - 1 if line["sort"] == "interval" else len(labels)
            shares.append((len(line["members"]) - 1) / max(1, steps))
        else:
            shares.append(
                (line["upper"] - line["lower"]) / span if line["lower"] is not None and span else 0.0
            )
    return shares


def check_losses(folder: Path, promise: Promise) -> Outcome:
    """The losses that the manifest states follow from the mapping."""
    found = published_losses(pq.read_table(folder / promise["mapping"]))
    said = [(name, share) for name, share in promise["by_column"]]
    is_same = [name for name, _ in found] == [name for name, _ in said] and all(
        abs(a - b) <= TOLERANCE for (_, a), (_, b) in zip(found, said, strict=True)
    )
    return (
        is_same,
        f"{len(found)} quasi-identifiers" if is_same else "the losses do not follow from the mapping",
    )


def check_mapping(folder: Path, promise: Promise) -> Outcome:
    """Every published value is in the mapping, which has no other, with as many records as it says."""
    table, mapping = _tables(folder, promise)
    n_values = 0
    for name in _attributes(mapping):
        of_row, lines = published_values(table, mapping, name)
        found = np.bincount(of_row, minlength=len(lines)).tolist()
        if name not in table.column_names:  # a missing value and everything are both two empty ends
            found = _merged(found, lines)
            said = _merged([line["records"] for line in lines], lines)
        else:
            said = [line["records"] for line in lines]
        if found != said:
            return False, f'the mapping of "{name}" does not fit the records'
        n_values += len(lines)
    return True, f"{n_values} published values"


def _merged(counts: list[int], lines: list[dict[str, Any]]) -> list[int]:
    totals: dict[object, int] = {}
    for count, line in zip(counts, lines, strict=True):
        totals[_ends(line)] = totals.get(_ends(line), 0) + count
    return list(totals.values())


def check_k_map(folder: Path, promise: Promise) -> Outcome:
    """Every class is listed with the people of the population that it matches, k of them or more."""
    quasi = list(promise["quasi"])
    listed = pq.read_table(folder / promise["classes"])
    people = {tuple(line[name] for name in quasi): line["people"] for line in listed.to_pylist()}
    published = pq.read_table(folder / promise["file"], columns=quasi).group_by(quasi).aggregate([])
    matches = [people.get(tuple(line[name] for name in quasi), 0) for line in published.to_pylist()]
    fewest = min(matches, default=0)
    told = f"a class matches at least {fewest} people, as its maker counted them, promised {promise['k']}"
    return fewest >= promise["k"], told


def check_freeform(folder: Path, promise: Promise) -> Outcome:
    """The values of every published record meet those of k published records, its own among them.

    Follows from what freeform generalisation promises: a published record covers k original ones, and each of these
    is covered by its own published record too.
    """
    table, mapping = _tables(folder, promise)
    of_rows, meets = [], []
    for name in _attributes(mapping):
        of_row, lines = published_values(table, mapping, name)
        of_rows.append(of_row)
        # A missing value that matches anything may be what two values have in common.
        is_open = name in promise["open"]
        meets.append(np.ones((len(lines), len(lines)), np.bool_) if is_open else _meets(lines))
    groups, sizes = np.unique(np.stack(of_rows, axis=1), axis=0, return_counts=True)
    fewest = table.num_rows
    step = max(1, BLOCK_CELLS // max(1, len(groups)))
    for start in range(0, len(groups), step):
        block = groups[start : start + step]
        is_met = np.ones((len(block), len(groups)), np.bool_)
        for j, meet in enumerate(meets):
            is_met &= meet[block[:, j]][:, groups[:, j]]
        fewest = min(fewest, int((is_met @ sizes).min()))
    told = (
        f"every record meets at least {fewest}, which follows from the promise; it is weaker than k-anonymity"
    )
    return fewest >= promise["k"], told


def _meets(lines: list[dict[str, Any]]) -> Bools:
    """Whether two published values of an attribute stand for a common original value."""
    is_open = np.array([line["sort"] in ("anything", "missing") for line in lines])
    meet: Bools = is_open[:, None] | is_open[None, :]
    if any(line["members"] for line in lines):
        place = {label: i for i, label in enumerate({m: 0 for line in lines for m in line["members"] or ()})}
        covers = np.zeros((len(lines), len(place)), np.float32)
        for i, line in enumerate(lines):
            covers[i, [place[member] for member in line["members"] or ()]] = 1
        return meet | (covers @ covers.T > 0)
    low = np.array([np.nan if line["lower"] is None else line["lower"] for line in lines])
    high = np.array([np.nan if line["upper"] is None else line["upper"] for line in lines])
    return meet | ((low[:, None] <= high[None, :]) & (low[None, :] <= high[:, None]))


def _tables(folder: Path, promise: Promise) -> tuple[pa.Table, pa.Table]:
    return pq.read_table(folder / promise["file"]), pq.read_table(folder / promise["mapping"])


def _attributes(mapping: pa.Table) -> list[str]:
    return list(dict.fromkeys(mapping["attribute"].to_pylist()))
