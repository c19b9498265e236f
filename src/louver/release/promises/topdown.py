"""A TopDown release: microdata inside their domain, invariants and bounds kept, every table the sum of its people.

Microdata are counted by leaf and cell while they are read; nothing is as large as leaves times cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Annotated, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv
from pydantic import BaseModel, ConfigDict, Field

from louver._arrays import Bools, Ints
from louver.data.write import spreadsheet_safe
from louver.release.folder import BATCH_ROWS, Folder, Malformed, without_dictionary
from louver.release.promises.base import Context, Outcome, Places, Promise, count_distinct, places_in
from louver.release.promises.measurements import publisher_of
from louver.release.promises.spine import SpineFile, regions_of_leaves, spine_problems
from louver.release.promises.topdown_errors import ERROR_COLUMNS, PublishedErrors

__all__ = ["Rows", "TopDown", "check_topdown", "leaf_codes"]

Labels = tuple[str, ...]
Small = NDArray[np.int32]
Cells = dict[str, Labels]
Names = Annotated[Labels, Field(min_length=1)]

EVERYBODY = "all"  # the level and the region of a release without geography
MOST_KEYS = 2**62
"""Largest product of leaves and cells that a 64-bit number can index."""

AT_ONCE = 1 << 20
"""Approximate number of combinations of leaf and cell that are added up together."""

MOST_SHARED = 1 << 16
"""Maximum number of combinations at the end of one part of the people that may recur in the next part."""

NEAR = 1e-6
"""Tolerated relative difference between a stated variance and that of the discrete distribution with the same parameter."""


class Table(BaseModel):
    """A published table: its file, and for every label of its attributes the labels of the microdata for which it stands."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    file: Annotated[str, Field(pattern=r"^data/tables/[^/\\]+\.parquet$")]
    attributes: dict[str, dict[str, Labels]]


class ErrorFiles(BaseModel):
    """Files that describe errors, by size class and by region, and the queries whose errors they describe."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    file: Literal["data/errors.parquet"]
    regions: Literal["data/regions.parquet"]
    queries: Names


class TopDown(Promise):
    """Domains, structural zeros, invariants, bounds, and that every table is the sum of the people in it.

    Attributes
    ----------
    regions : tuple of str
        Geography columns of the microdata; none if there is one region, "all".
    prefixes : tuple of int or None
        Length of the leaf code prefix that names the region of each level; None if a leaf is a path with `/`, or a spine gives its
        position.
    exact : mapping
        Level of each invariant.
    cells : mapping
        For every invariant and bound the labels that it counts, by attribute.
    spine : SpineFile or None
        The positions of leaves, if regions were arranged for areas.
    """

    promise: Literal["topdown"]
    file: Literal["data/microdata.parquet"]
    csv: Literal["data/microdata.csv"] | None
    regions: Labels
    prefixes: tuple[Annotated[int, Field(ge=0)], ...] | None
    levels: Names
    attributes: dict[str, Names]
    structural_zeros: tuple[Cells, ...]
    measurements: Literal["measurements/topdown.parquet"]
    statements: Literal["public/statements.parquet"]
    invariants: Literal["invariants.parquet"]
    exact: dict[str, str]
    cells: dict[str, Cells]
    tables: dict[str, Table]
    errors: ErrorFiles | None = None
    spine: SpineFile | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedPeople:
    """People counted by leaf and cell, and the regions above every leaf.

    Attributes
    ----------
    leaf, cell, count : whole numbers (combinations,)
        Ascending by leaf, then cell.
    shape : tuple of int
        Numbers of labels of the attributes; a cell combines one position of each.
    region_of : tuple of whole numbers (leaves,)
        For each level the region of every leaf.
    regions : tuple of pyarrow.Array
        For each level the codes of its regions.
    """

    leaf: Ints | Small
    cell: Ints | Small
    count: Ints
    attributes: Mapping[str, Labels]
    region_of: tuple[Small, ...]
    regions: tuple[pa.Array, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(labels) for labels in self.attributes.values())

    def codes_of_cells(self) -> dict[str, Ints]:
        """Position of each cell's label, by attribute."""
        places = np.indices(self.shape, np.int32).reshape(len(self.shape), -1)
        return dict(zip(self.attributes, places, strict=True))

    def inside(self, cells: Mapping[str, Sequence[str]]) -> Bools:
        """Combinations that have one of the labels in every attribute named."""
        is_inside = np.ones(prod(self.shape), dtype=np.bool_)
        codes = self.codes_of_cells()
        for name, labels in cells.items():
            is_inside &= np.isin(codes[name], [self.attributes[name].index(label) for label in labels])
        return is_inside[self.cell]

    def by_region(self, level: int, cells: Mapping[str, Sequence[str]]) -> Ints:
        """People in a set of cells, for every region of a level."""
        kept = self.inside(cells)
        of_region = self.region_of[level][self.leaf[kept]]
        return np.bincount(of_region, self.count[kept], minlength=len(self.regions[level])).astype(np.int64)


def check_topdown(context: Context, promise: TopDown) -> Outcome:
    """Count the people once, then check every claim made about them."""
    _check_form(promise)
    leaves = _leaves(context.folder, promise)
    counted = count_people(context.folder, promise, leaves)
    if isinstance(counted, str):
        return Outcome(False, counted)
    for problem in _problems(context, promise, counted):
        return Outcome(False, problem)
    n_people = int(counted.count.sum())
    detail = (
        f"{n_people} people in {len(leaves)} leaves; {len(promise.exact)} invariants, {len(promise.structural_zeros)} structural "
        f"zeros, {len(promise.tables)} tables and all bounds hold"
    )
    return Outcome(True, detail)


def _check_form(promise: TopDown) -> None:
    """Refuse parts that do not refer to the same attributes and levels."""
    n_levels = len(promise.levels)
    if not promise.regions and promise.levels != (EVERYBODY,):
        raise Malformed("there are levels but no columns of regions")
    is_prefix = promise.prefixes is not None
    if is_prefix and (len(promise.prefixes or ()) != n_levels or len(promise.regions) != 1):
        raise Malformed("the prefixes are not one for each level")
    if is_prefix and any(a >= b for a, b in pairwise(promise.prefixes or ())):
        raise Malformed("the prefixes do not grow from level to level")
    if not set(promise.exact.values()) <= set(promise.levels) or not set(promise.exact) <= set(promise.cells):
        raise Malformed("an invariant refers to no level or no cells")
    for cells in (*promise.structural_zeros, *promise.cells.values()):
        if any(not set(labels) <= set(promise.attributes.get(name, ())) for name, labels in cells.items()):
            raise Malformed("a set of cells has unknown labels")
    for table in promise.tables.values():
        for name, merged in table.attributes.items():
            if sorted(label for labels in merged.values() for label in labels) != sorted(
                promise.attributes.get(name, ())
            ):
                raise Malformed("a table does not use every label of an attribute exactly once")


def _leaves(folder: Folder, promise: TopDown) -> pa.Array:
    """Codes of the leaves: the nodes of the last level that were measured."""
    nodes = count_distinct(folder, promise.measurements, ["level", "node"])
    return nodes.filter(pc.equal(nodes["0"], promise.levels[-1]))["1"].cast(pa.string()).combine_chunks()


def count_people(folder: Folder, promise: TopDown, leaves: pa.Array) -> PublishedPeople | str:
    """Count the microdata by leaf and cell; returns a sentence if someone is outside the domain."""
    names = [*promise.regions, *promise.attributes]
    if folder.schema(promise.file).names != names:
        raise Malformed("the microdata have other columns")
    shape = [len(labels) for labels in promise.attributes.values()]
    n_cells = prod(shape)
    if len(leaves) * n_cells > MOST_KEYS:
        raise Malformed("there are more cells than can be numbered")
    runs = _Runs()
    places = Places(leaves)
    for batch in folder.batches(promise.file, names):
        leaf = places.of(leaf_codes(batch, promise.regions))
        if (leaf < 0).any():
            return "a person is in a region that is not in the list of leaves"
        codes = [places_in(batch[name], pa.array(labels)) for name, labels in promise.attributes.items()]
        if any((code < 0).any() for code in codes):
            return "a person has a label that is not in the domain"
        cell = np.ravel_multi_index(codes, shape) if shape else np.zeros(batch.num_rows, np.int64)
        runs.add(*np.unique(leaf * n_cells + cell, return_counts=True))
    del places
    own_leaf, own_cell, counts = runs.divided(n_cells)
    region_of, regions = [], []
    for codes in _codes_by_level(folder, leaves, promise):
        encoded = codes.dictionary_encode()
        region_of.append(encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32))
        regions.append(encoded.dictionary)
    return PublishedPeople(
        leaf=own_leaf,
        cell=own_cell,
        count=counts,
        attributes=promise.attributes,
        region_of=tuple(region_of),
        regions=tuple(regions),
    )


class _Runs:
    """Counts by ascending key, from parts that mostly come in the order of their keys, as louver writes people.

    A part that begins where the last one ended is kept unchanged, and only the keys at the boundary are merged. Other parts are added up
    together.
    """

    def __init__(self) -> None:
        self._runs: list[tuple[Ints, Ints]] = []
        self._loose: list[tuple[Ints, Ints]] = []

    def add(self, keys: Ints, counts: Ints) -> None:
        """Add a part with ascending keys."""
        if not len(keys):
            return
        if not self._runs:
            self._runs.append((keys, counts))
            return
        last, held = self._runs[-1]
        kept = int(np.searchsorted(last, keys[0]))
        if kept == 0 or len(last) - kept > MOST_SHARED:
            self._loose.append((keys, counts))
            if sum(len(own) for own, _ in self._loose) > 4 * BATCH_ROWS + 2 * len(self._loose[0][0]):
                self._loose = [_added(self._loose)]
            return
        if kept < len(last):
            self._runs[-1] = (last[:kept].copy(), held[:kept].copy())
            keys, counts = _added([(last[kept:], held[kept:]), (keys, counts)])
        self._runs.append((keys, counts))

    def divided(self, n_cells: int) -> tuple[Small, Small, Ints]:
        """Leaf, cell and count of everything that was added."""
        if self._loose:
            self._runs, self._loose = [_added([*self._runs, *self._loose])], []
        size = sum(len(keys) for keys, _ in self._runs)
        leaf, cell = np.empty(size, np.int32), np.empty(size, np.int32)
        count = np.empty(size, np.int64)
        place = 0
        for keys, counts in self._runs:
            here = slice(place, place + len(keys))
            leaf[here], cell[here] = np.divmod(keys, n_cells)
            count[here] = counts
            place += len(keys)
        return leaf, cell, count


def _added(found: list[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    """Counts of equal keys added up."""
    if not found:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    keys, place = np.unique(np.concatenate([keys for keys, _ in found]), return_inverse=True)
    counts = np.bincount(place, np.concatenate([counts for _, counts in found]), minlength=len(keys))
    return keys, counts.astype(np.int64)


def leaf_codes(batch: pa.Table, regions: Sequence[str]) -> pa.Array:
    """Code of each person's leaf: the column itself, or the path over several."""
    if not regions:
        return pa.repeat(pa.scalar(EVERYBODY, pa.string()), batch.num_rows)
    if len(regions) == 1:
        return batch[regions[0]].combine_chunks()
    paths = batch.select(list(regions)).append_column("row", pa.array(np.arange(batch.num_rows)))
    columns = [paths[name].cast(pa.string()) for name in regions]
    return pc.binary_join_element_wise(*columns, "/").combine_chunks()


def _codes_by_level(folder: Folder, leaves: pa.Array, promise: TopDown) -> Iterator[pa.Array]:
    """For every level the region of each leaf."""
    if promise.spine is not None:
        yield from regions_of_leaves(folder, promise.spine, promise.levels, leaves)
    else:
        yield from (_level_codes(leaves, promise, level) for level in range(len(promise.levels)))


def _level_codes(leaves: pa.Array, promise: TopDown, level: int) -> pa.Array:
    """The region of a level in which each leaf lies."""
    if promise.prefixes is not None:
        return pc.utf8_slice_codeunits(leaves, 0, promise.prefixes[level])
    return pc.binary_join(pc.list_slice(pc.split_pattern(leaves, "/"), 0, level + 1), "/")


def _problems(context: Context, promise: TopDown, people: PublishedPeople) -> Iterator[str]:
    """The claims that do not hold, if any."""
    folder = context.folder
    yield from _variance_problems(context, promise)
    if promise.spine is not None:
        yield from spine_problems(folder, promise.spine, promise.levels, promise.measurements)
    for zero in promise.structural_zeros:
        if people.inside(zero).any():
            yield "there are people in a structural zero"
    yield from _invariant_problems(folder, promise, people)
    yield from _bound_problems(folder, promise, people)
    if promise.csv is not None and not _is_same(folder, promise):
        yield "the microdata as CSV differ from those as Parquet"
    errors, about = None, promise.errors
    if about is not None:
        errors = PublishedErrors.read(folder, about.file, about.regions, about.queries, promise.levels)
    if errors is not None and context.manifest.results.get("intervals", 0) < 1:
        yield "errors are described that are not in the manifest"
    for name, table in promise.tables.items():
        if not _is_sum(folder, promise, people, table):
            yield f'table "{name}" does not match the people'
        elif errors is not None and (problem := errors.problem(folder, name, table.file)):
            yield f'table "{name}" {problem}'


def _variance_problems(context: Context, promise: TopDown) -> Iterator[str]:
    """Differences between the measurements and the queries and variances in the manifest."""
    facts = count_distinct(context.folder, promise.measurements, ["level", "query", "variance"])
    found = set(zip(*(facts[key].to_pylist() for key in ("0", "1", "2")), strict=True))
    stated = {
        (level["name"], query["name"], query["variance"])
        for level in context.manifest.results["levels"]
        for query in level["queries"]
    }
    measured = {level for level, _, _ in found}
    if (
        publisher_of(context.manifest) is not None
    ):  # regions may differ in noise, and whole levels may lack answers
        known = [(level, query, variance) for level, query, variance in found if variance is not None]
        near = {
            one
            for one in stated
            if any(one[:2] == k[:2] and abs(one[2] - k[2]) <= NEAR * k[2] for k in known)
        }
        if near != stated or {one[:2] for one in known} != {one[:2] for one in stated}:
            yield "the measurements are not of the queries and variances that the manifest lists"
        if not measured <= set(promise.levels) or promise.levels[-1] not in measured:
            yield "the measurements are not of the levels that were promised"
        return
    if found != stated:
        yield "the measurements are not of the queries and variances that the manifest lists"
    if measured != set(promise.levels):
        yield "the measurements are not of the levels that were promised"


def _invariant_problems(folder: Folder, promise: TopDown, people: PublishedPeople) -> Iterator[str]:
    """Invariants that are missing or not kept exactly."""
    place = {name: i for i, name in enumerate(promise.levels)}
    n_wanted = sum(len(people.regions[place[level]]) for level in promise.exact.values())
    exact = without_dictionary(folder.table(promise.invariants, most_rows=n_wanted))
    stated = set(zip(exact["invariant"].to_pylist(), exact["level"].to_pylist(), strict=True))
    if exact.num_rows != n_wanted or stated != set(promise.exact.items()):
        yield "the invariants do not have one value for each region of their level"
    for name, level in promise.exact.items():
        rows = exact.filter(pc.equal(exact["invariant"], name))
        region = places_in(rows["region"], people.regions[place[level]])
        if len(np.unique(region)) != len(people.regions[place[level]]) or (region < 0).any():
            yield "the invariants do not have one value for each region of their level"
        held = people.by_region(place[level], promise.cells[name])[region]
        broken = np.flatnonzero(held != _int64(rows["value"]))
        if len(broken):
            yield f'invariant "{name}" is not kept in {level} {rows["region"][broken[0].item()].as_py()}'


def _bound_problems(folder: Folder, promise: TopDown, people: PublishedPeople) -> Iterator[str]:
    """Bounds that are not respected."""
    last = len(promise.levels) - 1
    folder.check_rows(promise.statements, len(people.regions[last]) * max(1, len(promise.cells)))
    places = Places(people.regions[last])
    held: dict[str, Ints] = {}
    for batch in folder.batches(promise.statements, ["statement", "region", "lower", "upper"]):
        for name in pc.unique(batch["statement"]).to_pylist():
            if name not in held:
                held[name] = people.by_region(last, promise.cells[name])
            rows = batch.filter(pc.equal(batch["statement"].cast(pa.string()), name))
            region = places.of(rows["region"])
            if (region < 0).any():
                yield "a bound is about a region that is not a leaf"
            here = held[name][region]
            upper = _int64(pc.fill_null(rows["upper"], MOST_KEYS))
            broken = np.flatnonzero((here < _int64(rows["lower"])) | (here > upper))
            if len(broken):
                where = rows["region"][broken[0].item()].as_py()
                yield f'bound "{name}" does not hold in {promise.levels[last]} {where}'


def _int64(column: pa.ChunkedArray) -> Ints:
    """A column of whole numbers without gaps."""
    if not pa.types.is_integer(column.type) or column.null_count:
        raise Malformed("a count is missing or not whole")
    answer: Ints = column.to_numpy().astype(np.int64)
    return answer


def _is_sum(folder: Folder, promise: TopDown, people: PublishedPeople, table: Table) -> bool:
    """Whether a table contains, for every level and region, exactly the sums of the microdata."""
    folder.check_rows(table.file, len(promise.levels) * max(1, len(people.count)))
    detail = [] if promise.errors is None else list(ERROR_COLUMNS)
    names = ["level", "region", *table.attributes, "count"]
    if folder.schema(table.file).names != [*names, *detail]:
        return False
    shape = [len(merged) for merged in table.attributes.values()]
    if max(map(len, people.regions)) * prod(shape) > MOST_KEYS:
        raise Malformed("there are more cells than can be numbered")
    row_of = merged_cells(people, table, shape)
    levels = [_WantedCounts.of(people, level, row_of, prod(shape)) for level in range(len(promise.levels))]
    for batch in folder.batches(table.file, names):
        level_of = places_in(batch["level"], pa.array(promise.levels))
        for level in np.unique(level_of):
            rows = batch.filter(pa.array(level_of == level))
            if level < 0 or not levels[level].takes(rows, table, shape):
                return False
    return all(level.is_met.all() for level in levels)


@dataclass(frozen=True, slots=True)
class _WantedCounts:
    """The required content of a table for one level, and how much of it has been found."""

    places: Places
    keys: Ints
    counts: Ints
    is_met: Bools

    @classmethod
    def of(cls, people: PublishedPeople, level: int, row_of: Ints, n_rows: int) -> _WantedCounts:
        """Count by region and row, some whole regions at a time if people are sorted by region."""
        region_of, n = people.region_of[level], len(people.leaf)
        parts: list[tuple[Ints, Ints]] = []
        first = 0
        while first < n:
            last = min(first + AT_ONCE, n)
            # Up to the end of the last one's region, if the region's leaves are contiguous.
            end = int(np.searchsorted(region_of, region_of[people.leaf[last - 1]], side="right"))
            last = max(last, int(np.searchsorted(people.leaf, end)))
            own = slice(first, last)
            keys = region_of[people.leaf[own]].astype(np.int64) * n_rows + row_of[people.cell[own]]
            parts.append(_added([(keys, people.count[own])]))
            first = last
        keys, counts = (
            np.concatenate([np.zeros(0, np.int64), *own])
            for own in ([k for k, _ in parts], [c for _, c in parts])
        )
        if not (np.diff(keys) > 0).all():
            keys, counts = _added([(keys, counts)])
        return cls(Places(people.regions[level]), keys, counts, np.zeros(len(keys), np.bool_))

    def takes(self, rows: pa.Table, table: Table, shape: Sequence[int]) -> bool:
        """Whether these rows of the table are expected, with these counts, and have not occurred before."""
        region = self.places.of(rows["region"])
        codes = [places_in(rows[name], pa.array(list(merged))) for name, merged in table.attributes.items()]
        if any((code < 0).any() for code in (region, *codes)) or not len(self.keys):
            return False
        cell = np.ravel_multi_index(codes, shape) if shape else np.zeros(rows.num_rows, np.int64)
        key = region * prod(shape) + cell
        at = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
        is_new = not self.is_met[at].any() and len(np.unique(at)) == len(at)
        self.is_met[at] = True
        is_same = np.array_equal(self.keys[at], key) and np.array_equal(
            self.counts[at], _int64(rows["count"])
        )
        return is_new and is_same


def merged_cells(people: PublishedPeople, table: Table, shape: Sequence[int]) -> Ints:
    """Row of a table in which each cell of the microdata is counted."""
    if not shape:
        return np.zeros(prod(people.shape), np.int64)
    codes, merged_codes = people.codes_of_cells(), []
    for name, merged in table.attributes.items():
        new = {old: place for place, olds in enumerate(merged.values()) for old in olds}
        merged_codes.append(
            np.array([new[label] for label in people.attributes[name]], np.int64)[codes[name]]
        )
    answer: Ints = np.ravel_multi_index(merged_codes, shape)
    return answer


def _is_same(folder: Folder, promise: TopDown) -> bool:
    """Whether a CSV file has the rows of the microdata, in their order."""
    names = [*promise.regions, *promise.attributes]
    safe_names = [str(spreadsheet_safe(pa.array([name]))[0]) for name in names]
    options = csv.ConvertOptions(
        column_types=dict.fromkeys(safe_names, pa.string()), strings_can_be_null=False
    )
    with csv.open_csv(folder.file(str(promise.csv)), convert_options=options) as reader:
        if reader.schema.names != safe_names:
            return False
        written = Rows(pa.Table.from_batches([batch]) for batch in reader)
        for batch in folder.batches(promise.file, names):
            text = written.next(batch.num_rows)
            plain = [spreadsheet_safe(column.cast(pa.string())) for column in batch.columns]
            if text is None or not all(a.equals(b) for a, b in zip(text.columns, plain, strict=True)):
                return False
        return written.next(1) is None


class Rows:
    """Rows of a stream of tables, returned in the numbers requested."""

    def __init__(self, tables: Iterator[pa.Table]) -> None:
        self._tables, self._left = tables, None

    def next(self, n_rows: int) -> pa.Table | None:
        """The next rows; None if fewer are left."""
        parts: list[pa.Table] = []
        left: pa.Table | None = self._left
        while (have := sum(part.num_rows for part in parts)) < n_rows:
            left = left if left is not None and left.num_rows else next(self._tables, None)
            if left is None:
                return None
            parts.append(left.slice(0, n_rows - have))
            left = left.slice(n_rows - have)
        self._left = left
        return pa.concat_tables(parts)
