"""The promises of a TopDown release, recomputed from its microdata, its tables and the public files beside them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import csv

from louver._arrays import Bools, Ints
from louver.privacy.ledger import Head
from louver.privacy.measurements import Measurements
from louver.release.manifest import read_manifest

__all__ = ["check_topdown"]

Promise = Mapping[str, Any]
Outcome = tuple[bool, str]


class _Microdata:
    """People counted by leaf and cell.

    `leaf` and `codes` number the labels of regions and attributes, `count` holds the people of each combination.
    """

    def __init__(self, folder: Path, promise: Promise) -> None:
        regions, self.labels = promise["regions"], promise["attributes"]
        table = pq.read_table(folder / promise["file"])
        if table.column_names != [*regions, *self.labels]:
            raise ValueError("columns")
        counted = table.group_by(table.column_names).aggregate([([], "count_all")])
        self.count = counted["count_all"].to_numpy().astype(np.int64)
        paths = [counted[name].cast(pa.string()).to_pylist() for name in regions]
        self.leaf = ["/".join(path) for path in zip(*paths, strict=True)]
        self.codes = {name: _codes(counted[name], labels) for name, labels in self.labels.items()}

    def regions(self, promise: Promise, level: int) -> list[str]:
        """The region of a level that each combination lies in."""
        return _regions(promise, level, self.leaf)

    def inside(self, cells: Mapping[str, Sequence[str]]) -> Bools:
        """Combinations that have one of the labels in every attribute named."""
        answer = np.ones(len(self.count), dtype=np.bool_)
        for name, labels in cells.items():
            answer &= np.isin(self.codes[name], [self.labels[name].index(label) for label in labels])
        return answer


def _regions(promise: Promise, level: int, leaves: Iterable[str]) -> list[str]:
    """The region of a level that each leaf lies in."""
    if promise["prefixes"] is not None:
        return [leaf[: promise["prefixes"][level]] for leaf in leaves]
    return ["/".join(leaf.split("/")[: level + 1]) for leaf in leaves]


def check_topdown(folder: Path, promise: Promise) -> Outcome:
    """Domains, structural zeros, invariants, bounds, and that every table is the sum of the people in it."""
    people = _Microdata(folder, promise)
    for problem in _problems(folder, promise, people):
        return False, problem
    return True, f"{int(people.count.sum())} people; invariants, bounds, zeros and tables hold"


def _problems(folder: Path, promise: Promise, people: _Microdata) -> Iterator[str]:
    """What does not hold, if anything."""
    measured = pq.read_table(folder / promise["measurements"], columns=["level", "node", "query", "variance"])
    yield from _measurement_problems(folder, promise, measured)
    nodes = measured.filter(pc.equal(measured["level"], promise["levels"][-1]))["node"]
    leaves = set(nodes.unique().to_pylist())
    if not leaves.issuperset(people.leaf):
        yield "a person is in a region that is not in the list of leaves"
    if any((codes < 0).any() for codes in people.codes.values()):
        yield "a person has a label that is not in the domain"
    for zero in promise["structural_zeros"]:
        if people.inside(zero).any():
            yield "there are people in a structural zero"
    yield from _statement_problems(folder, promise, people, leaves)
    if promise["csv"] is not None and not _is_same(folder / promise["csv"], folder / promise["file"]):
        yield "the microdata as CSV are not those as Parquet"
    for name, table in promise["tables"].items():
        if not _is_sum(folder, promise, people, table):
            yield f'table "{name}" is not what the people add up to'


def _measurement_problems(folder: Path, promise: Promise, measured: pa.Table) -> Iterator[str]:
    """Where the measurements are not those that the manifest speaks of."""
    manifest = read_manifest(folder)
    description = Measurements(folder / promise["measurements"]).description()
    entry = description["entry"]
    head = None if entry is None else str(Head(entry, description["entry_hash"]))
    if description["not_private"] != manifest.not_private or head != manifest.ledger_head:
        yield "the measurements are not those that the manifest's ledger entry paid for"
    facts = (
        measured.select(["level", "query", "variance"]).group_by(["level", "query", "variance"]).aggregate([])
    )
    found = {tuple(row.values()) for row in facts.to_pylist()}
    stated = {
        (level["name"], query["name"], query["variance"])
        for level in manifest.results["levels"]
        for query in level["queries"]
    }
    if found != stated:
        yield "the measurements are not of the queries and variances that the manifest lists"


def _is_same(text: Path, parquet: Path) -> bool:
    """Whether a CSV file has the rows of a Parquet file, in its order."""
    people = pq.read_table(parquet)
    options = csv.ConvertOptions(
        column_types=dict.fromkeys(people.column_names, pa.string()), strings_can_be_null=False
    )
    table = csv.read_csv(text, convert_options=options)
    return table.column_names == people.column_names and all(
        table[name].equals(people[name].cast(pa.string())) for name in people.column_names
    )


def _statement_problems(
    folder: Path, promise: Promise, people: _Microdata, leaves: Collection[str]
) -> Iterator[str]:
    """Invariants that are not there or not kept exactly, bounds that are not respected."""
    exact = pq.read_table(folder / promise["invariants"]).to_pydict()
    levels = {name: i for i, name in enumerate(promise["levels"])}
    held: dict[tuple[str, int], dict[str, int]] = {}

    def count(statement: str, level: int, region: str) -> int:
        if (statement, level) not in held:
            held[statement, level] = _by_region(people, promise, level, promise["cells"][statement])
        return held[statement, level].get(region, 0)

    wanted = {
        (name, level, region)
        for name, level in promise["exact"].items()
        for region in _regions(promise, levels[level], leaves)
    }
    if wanted != set(zip(exact["invariant"], exact["level"], exact["region"], strict=True)):
        yield "the invariants do not have one value for each region of their level"
    for name, level, region, value in zip(*exact.values(), strict=True):
        if count(name, levels[level], region) != value:
            yield f'invariant "{name}" is not kept in {level} {region}'
    bounds = pq.read_table(folder / promise["statements"]).to_pydict()
    last = len(levels) - 1
    for name, region, lower, upper in zip(*bounds.values(), strict=True):
        people_there = count(name, last, region)
        if people_there < lower or (upper is not None and people_there > upper):
            yield f'bound "{name}" does not hold in {promise["levels"][last]} {region}'


def _by_region(
    people: _Microdata, promise: Promise, level: int, cells: Mapping[str, Sequence[str]]
) -> dict[str, int]:
    """People in a set of cells, for every region of a level that has any."""
    inside = people.inside(cells)
    sums: dict[str, int] = {}
    for region, count, is_inside in zip(people.regions(promise, level), people.count, inside, strict=True):
        if is_inside:
            sums[region] = sums.get(region, 0) + int(count)
    return sums


def _is_sum(folder: Path, promise: Promise, people: _Microdata, table: Promise) -> bool:
    """Whether a table holds, for every level and region, exactly what the microdata add up to."""
    rows = pq.read_table(folder / table["file"])
    merged = table["attributes"]
    names = list(merged)
    if rows.column_names != ["level", "region", *names, "count"] or not pa.types.is_integer(
        rows.schema.field("count").type
    ):
        return False
    new_labels = {name: _renamed(people, name, groups) for name, groups in merged.items()}
    expected: dict[tuple[str, ...], int] = {}
    for level, level_name in enumerate(promise["levels"]):
        keys = zip(people.regions(promise, level), *(new_labels[name] for name in names), strict=True)
        for key, count in zip(keys, people.count, strict=True):
            full = (level_name, *key)
            expected[full] = expected.get(full, 0) + int(count)
    columns = [rows[name].cast(pa.string()).to_pylist() for name in rows.column_names[:-1]]
    found = dict(zip(zip(*columns, strict=True), rows["count"].to_pylist(), strict=True))
    return len(found) == rows.num_rows and found == expected


def _renamed(people: _Microdata, name: str, groups: Mapping[str, Sequence[str]]) -> list[str]:
    """The merged label of an attribute for each combination."""
    new = {old: label for label, olds in groups.items() for old in olds}
    return [new[people.labels[name][code]] for code in people.codes[name]]


def _codes(column: pa.ChunkedArray, labels: Sequence[str]) -> Ints:
    """Codes of a column's labels, -1 for one that is not listed."""
    place = {label: i for i, label in enumerate(labels)}
    return np.array([place.get(label, -1) for label in column.cast(pa.string()).to_pylist()], dtype=np.int64)
