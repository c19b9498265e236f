"""Measuring: one pass over the records, noise drawn once, and the exact values that are public by policy.

The functions that take a `Design` and return true counts work on confidential data; only a file of measurements and the
invariants may leave them.

The true histograms of a level are confidential and kept on disk: those of a whole country do not fit into memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from louver._arrays import Ints
from louver.data.people import fingerprint
from louver.data.read import open_source
from louver.data.regions import RegionTree
from louver.data.scratch import PairFile, Scratch, SortedCounts
from louver.data.tabulate import tabulate_in_parts
from louver.data.write import replacing
from louver.errors import InputError
from louver.privacy.ledger import KeyedHash, People
from louver.privacy.measurements import TrueBatch
from louver.privacy.noise import Nonce
from louver.run import Run
from louver.schema.attribute import Attribute
from louver.topdown.knowledge.implied import UNBOUNDED
from louver.topdown.measuring.noise_plan import QueryPlan
from louver.topdown.problem import Design, Histograms, Query, SparseLevel, region_range, split_batches

__all__ = [
    "LevelOnDisk",
    "SealedCounts",
    "batches_of",
    "invariant_values",
    "read_invariants",
    "source_hash",
    "source_people",
    "store_levels",
    "true_batches",
    "true_leaves",
    "true_levels",
    "write_invariants",
]

REGIONS = 1 << 16
"""Number of regions whose exact values are computed together."""


def source_hash(design: Design, run: Run | None = None) -> KeyedHash:
    """Keyed hash of the source, which ties it to its ledger."""
    return fingerprint(_source(design), **design.spec.source.opening(), run=run)


def source_people(design: Design, run: Run | None = None) -> People:
    """The people in the source, by which its ledger recognises them."""
    source = design.spec.source
    return People(_source(design), weight=source.weight, run=run, **source.opening())


def _source(design: Design) -> Any:
    if design.data is None:
        name = design.spec.path.name
        raise InputError(
            f"{name} has no source; name a file or uri under [source].", file=name, option="source"
        )
    return design.data


def true_levels(design: Design, folder: Path, run: Run | None = None) -> tuple[LevelOnDisk, ...]:
    """Count the records of every region, level by level, in unnamed files in a private folder. Confidential.

    Raises
    ------
    InputError
        On a record outside the public domain (a value or a region that is not listed), or if there are too many people.

    Notes
    -----
    **Cost**: one pass over the source; memory for one batch and 8 bytes a region; disk for 16 bytes of each cell that is occupied
    in a region, and as many again for the leaves and the level above while they are sorted.
    """
    run = run or Run()
    return store_levels(design.spine, _true_counts(design, folder, run), design.n_cells, folder, run)


def true_leaves(design: Design) -> SparseLevel:
    """The histograms of the leaves, in memory, for records that represent several people."""
    with Scratch() as scratch:
        return true_levels(design, scratch.path)[-1].whole()


def _true_counts(design: Design, folder: Path, run: Run) -> SortedCounts:
    """Counts by leaf and cell, by one pass over the source."""
    spec, columns = design.spec, design.geography_columns
    names = [*columns, *(attribute.name for attribute in design.attributes)]
    regions = _region_attributes(design)
    others = [a for a in spec.schema.attributes if a.name not in columns]
    schema = replace(spec.schema, attributes=(*regions, *others))
    leaf_of = _leaf_finder(design, regions)
    counts, n_people = SortedCounts(folder, run), 0
    with open_source(_source(design), **spec.source.opening(), run=run) as source:
        parts = tabulate_in_parts(
            source, names, weight=spec.source.weight, wide=spec.source.wide, schema=schema
        )
        for part in parts:
            leaf = leaf_of(part.codes[:, : len(columns)])
            if (leaf < 0).any():
                message = f"{source.name} has a record in a region that the list of leaves does not have; add it or drop the rows."
                raise InputError(message, file=source.name, column=columns[-1])
            cell = np.ravel_multi_index(tuple(part.codes[:, len(columns) :].T), design.shape)
            n_people += part.total
            if n_people >= UNBOUNDED:
                message = f"the source has {UNBOUNDED:,} people or more; release smaller parts."
                raise InputError(message, option="source")
            counts.add(leaf * design.n_cells + cell, part.counts)
    return counts


def _region_attributes(design: Design) -> tuple[Attribute, ...]:
    """Region columns with the labels of the public list, so that no other label is accepted."""
    columns = design.geography_columns
    if len(columns) == 1:
        return (Attribute(name=columns[0], labels=design.spine.leaves),)
    paths = design.spine.leaf_labels
    labels = [dict.fromkeys(path[axis] for path in paths) for axis in range(len(columns))]
    return tuple(
        Attribute(name=column, labels=tuple(own)) for column, own in zip(columns, labels, strict=True)
    )


def _leaf_finder(design: Design, regions: tuple[Attribute, ...]) -> Callable[[Ints], Ints]:
    """A function from codes of region columns (rows, columns) to the leaf of each row; -1 if the combination of labels is no leaf."""
    if not regions:
        return lambda codes: np.zeros(len(codes), dtype=np.int64)
    if len(regions) == 1:
        return lambda codes: codes[:, 0]
    place = {labels: leaf for leaf, labels in enumerate(design.spine.leaf_labels)}

    def found(codes: Ints) -> Ints:
        combinations, inverse = np.unique(codes, axis=0, return_inverse=True)
        paths = (tuple(r.labels[code] for r, code in zip(regions, row, strict=True)) for row in combinations)
        return np.array([place.get(path, -1) for path in paths], dtype=np.int64)[inverse.ravel()]

    return found


def invariant_values(plan: QueryPlan, levels: Sequence[Histograms]) -> dict[str, Ints]:
    """Exact counts of every invariant, one for each region of its level."""
    values = {}
    for statement in plan.design.statements:
        if statement.is_invariant:
            inside = Query(name=statement.name, row_of=statement.cells.astype(np.int64), n_rows=2)
            level = levels[statement.level]
            ends = [*range(0, level.n_regions, REGIONS), level.n_regions]
            answers = (inside.answer(level.part(*span))[:, 1] for span in pairwise(ends))
            values[statement.name] = np.concatenate([*answers])
    return values


def write_invariants(path: Path, plan: QueryPlan, values: Mapping[str, Ints]) -> None:
    """Write the exact values: one row per invariant and region."""
    spine = plan.design.spine
    names: list[str] = []
    levels: list[str] = []
    regions: list[str] = []
    counts = [np.zeros(0, np.int64)]
    for statement in plan.design.statements:
        if statement.is_invariant:
            codes = spine.codes[statement.level]
            names += [statement.name] * len(codes)
            levels += [spine.names[statement.level]] * len(codes)
            regions += codes
            counts.append(values[statement.name])
    table = pa.table(
        {
            "invariant": pa.array(names, pa.string()),
            "level": pa.array(levels, pa.string()),
            "region": pa.array(regions, pa.string()),
            "value": pa.array(np.concatenate(counts)),
        }
    )
    with replacing(path) as sink:
        pq.write_table(table, sink, compression="zstd")


def read_invariants(path: Path, plan: QueryPlan) -> dict[str, Ints]:
    """Read the exact values back.

    Raises
    ------
    InputError
        If the file does not hold exactly the invariants of the plan.
    """
    try:
        table = pq.read_table(path)
        if table.schema.field("value").type != pa.int64() or table["value"].null_count:
            raise TypeError
        rows = table.to_pydict()
        keys = zip(rows["invariant"], rows["level"], rows["region"], strict=True)
        found = dict(zip(keys, rows["value"], strict=True))
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError):
        found = {}
    spine = plan.design.spine
    values = {}
    n_expected = 0
    for statement in plan.design.statements:
        if statement.is_invariant:
            level, codes = spine.names[statement.level], spine.codes[statement.level]
            n_expected += len(codes)
            own = [found.get((statement.name, level, code), -1) for code in codes]
            values[statement.name] = np.array(own, dtype=np.int64)
    if len(found) != n_expected or any((own < 0).any() for own in values.values()):
        message = f"{path.name} does not hold the invariants of this spec; measure again."
        raise InputError(message, file=path.name)
    return values


def true_batches(plan: QueryPlan, levels: Sequence[Histograms]) -> Iterator[TrueBatch]:
    """Yield the exact answers of all queries, batch by batch in a fixed order. Confidential."""
    spine = plan.design.spine
    for level, batches in enumerate(batches_of(plan)):
        for number, (start, stop) in enumerate(batches):
            part = levels[level].part(start, stop)
            for place, measured in enumerate(plan.measured[level]):
                yield TrueBatch(
                    level=spine.names[level],
                    query=measured.query.name,
                    nonce=Nonce(level, place, number),
                    nodes=spine.codes[level][start:stop],
                    true_counts=measured.query.answer(part),
                    distribution=measured.distribution,
                )


def batches_of(plan: QueryPlan) -> list[list[tuple[int, int]]]:
    """Ranges of regions measured together, for each level."""
    spine = plan.design.spine
    ranges = []
    for level, workload in enumerate(plan.workloads()):
        batches = split_batches(spine, level, workload.n_values)
        ranges.append([region_range(spine, level, batch) for batch in batches])
    return ranges


class SealedCounts:
    """Noisy answers from a file of measurements.

    Parameters
    ----------
    path : Path
    plan : QueryPlan
        The plan they were measured by; a file measured by another plan is refused when it is read.
    """

    def __init__(self, path: Path, plan: QueryPlan) -> None:
        self.path = path.absolute()  # workers have different working folders
        self._spine, self._measured = plan.design.spine, plan.measured
        self._is_even, self._n_cells = not plan.by_region, plan.design.n_cells
        self._group: dict[tuple[int, int], int] = {}
        group = 0
        for level, batches in enumerate(batches_of(plan)):
            for start, _ in batches:
                self._group[level, start] = group
                group += len(plan.measured[level])

    def read(self, level: int, start: int, stop: int) -> tuple[Ints, ...]:
        """Answers of the level's queries for one batch of regions; zeros where there are none."""
        if not self._measured[level]:
            return (np.zeros((stop - start, self._n_cells), np.int64),)
        first = self._group[level, start]
        try:
            footer = _footer(self.path, self.path.stat().st_mtime_ns)
            with pq.ParquetFile(self.path, metadata=footer) as file:
                tables = [file.read_row_group(first + place) for place in range(len(self._measured[level]))]
        except (OSError, pa.ArrowException, IndexError):
            tables = []
        if not tables or not self._belongs(tables, level, start, stop):
            message = (
                f"{self.path.name} was not measured by this spec; give the measurements that belong to it."
            )
            raise InputError(message, file=self.path.name)
        values = [table["values"].combine_chunks().flatten().to_numpy() for table in tables]
        if self._is_even:
            return tuple(own.reshape(stop - start, -1) for own in values)
        found = []
        for table, own, measured in zip(tables, values, self._measured[level], strict=True):
            answers = np.zeros((stop - start, measured.query.n_rows), np.int64)
            is_there = table["values"].is_valid().to_numpy()
            answers[is_there] = own.reshape(-1, measured.query.n_rows)
            found.append(answers)
        return tuple(found)

    def _belongs(self, tables: list[pa.Table], level: int, start: int, stop: int) -> bool:
        """Whether tables hold the answers of the level's queries, with the planned noise, for these regions."""
        codes = list(self._spine.codes[level][start:stop])
        name = self._spine.names[level]
        for table, measured in zip(tables, self._measured[level], strict=True):
            expected: dict[str, list[str | float]] = {"level": [name], "query": [measured.query.name]}
            if self._is_even:
                expected["variance"] = [measured.distribution.variance]
            facts = {column: table[column].unique().to_pylist() for column in expected}
            n_values = len(table["values"].combine_chunks().flatten())
            n_answers = len(codes) - (0 if self._is_even else table["values"].null_count)
            if facts != expected or table["node"].to_pylist() != codes:
                return False
            if n_values != n_answers * measured.query.n_rows:
                return False
        return True


@lru_cache(maxsize=2)
def _footer(path: Path, changed: int) -> pq.FileMetaData:
    """A file's row-group metadata, read once: the measurements of a nation have a hundred thousand row groups."""
    return pq.read_metadata(path)


class LevelOnDisk:
    """Histograms of all regions of a level, zeros left out, read some regions at a time.

    Parameters
    ----------
    folder : Path
        Private. The file in it has no name and disappears with the process.
    n_regions : int
    """

    def __init__(self, folder: Path, n_regions: int) -> None:
        self.n_regions = n_regions
        self._pairs = PairFile(folder)
        self._start = np.zeros(
            n_regions + 1, dtype=np.int64
        )  # lengths, shifted by one position, until everything is written

    def append(self, region: Ints, cell: Ints, count: Ints) -> None:
        """Append counts, in the order of regions and cells."""
        if len(region):
            length = np.bincount(region - region[0])
            self._start[region[0] + 1 : region[-1] + 2] += length
            self._pairs.append(cell, count)

    def finish(self) -> None:
        """Mark the data as complete."""
        np.cumsum(self._start, out=self._start)

    def part(self, first: int, last: int) -> SparseLevel:
        """The regions first to last."""
        start = self._start[first : last + 1]
        cell, count = self._pairs.read(int(start[0]), int(start[-1]))
        return SparseLevel(start=start - start[0], cell=cell, count=count)

    def whole(self) -> SparseLevel:
        """All regions, in memory."""
        return self.part(0, self.n_regions)


def store_levels(
    spine: RegionTree, counts: SortedCounts, n_cells: int, folder: Path, run: Run
) -> tuple[LevelOnDisk, ...]:
    """Histograms of every level, the root first, from counts by leaf * n_cells + cell, which are used up."""
    levels: list[LevelOnDisk] = []
    for level in range(spine.n_levels - 1, -1, -1):
        own, above = LevelOnDisk(folder, spine.sizes[level]), SortedCounts(folder, run)
        for key, count in counts.merged():
            region, cell = np.divmod(key, n_cells)
            own.append(region, cell, count)
            if level > 0:
                parent = np.searchsorted(spine.starts[level - 1], region, side="right") - 1
                above.add(parent * n_cells + cell, count)
        own.finish()
        levels.insert(0, own)
        counts = above
    return tuple(levels)
