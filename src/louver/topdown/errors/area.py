"""Counts of any union of leaves of a release, with standard errors and 90 % intervals, from the release folder alone.

A union is split into whole regions and the rest, in partly covered families (`error_model`); the errors of both are described in
`data/errors.parquet` and `data/regions.parquet`.

The people of every region, which a tree or a map of the regions shows, are read here too.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ValidationError

from louver._arrays import Bools, Floats, Ints
from louver._html import JsonText, Shown
from louver._verdict import rate_error
from louver.errors import InputError, printable
from louver.release.folder import Folder, Malformed, plain_files, without_dictionary
from louver.release.manifest import read_manifest
from louver.release.promises.spine import named_areas
from louver.release.promises.topdown import PublishedPeople, TopDown, count_people, leaf_codes, merged_cells
from louver.run import Run
from louver.topdown.errors.error_model import ErrorModel, Family, Interval, family_of, in_units, union_error
from louver.topdown.problem import DETAILED, Query, SparseLevel

__all__ = [
    "Area",
    "AreaCount",
    "OpenRelease",
    "damaged",
    "open_errors",
    "read_area",
    "read_leaves",
    "region_totals",
]

MOST_ROWS = 100
"""Maximum number of rows of a query that is reported with its zeros; longer queries are reported without them."""

MOST_SHOWN = 40


@dataclass(frozen=True, slots=True)
class AreaCount:
    """People of the area in one row of a query, identified by its labels."""

    query: str
    labels: dict[str, str]
    count: int
    standard_error: float
    lower_90: int
    upper_90: int

    @property
    def rating(self) -> str:
        """The rating of the number, from half the width of its interval."""
        return rate_error((self.upper_90 - self.lower_90) / 2 / max(self.count, 1))

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"rating": self.rating}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Area(JsonText, Shown):
    """The counts of some leaves of a release together.

    Parameters
    ----------
    leaves : int
        Number of leaves.
    total : AreaCount
        All people of the area.
    counts : tuple of AreaCount
        Every row of every query.
    """

    leaves: int
    total: AreaCount
    counts: tuple[AreaCount, ...]

    def to_dict(self) -> dict[str, Any]:
        """The content of the JSON result; its keys are stable."""
        total = {key: value for key, value in self.total.to_dict().items() if key not in ("query", "labels")}
        return {"leaves": self.leaves, "total": total, "counts": [count.to_dict() for count in self.counts]}

    def to_frame(self) -> pa.Table:
        """One row for each count."""
        rows = [count.to_dict() for count in (self.total, *self.counts)]
        for row in rows:
            row["labels"] = ", ".join(f"{name} {label}" for name, label in row["labels"].items())
        return pa.Table.from_pylist(rows)

    def __repr__(self) -> str:
        total = self.total
        lines = [
            f"{self.leaves:,} leaves: {total.count:,} people, standard error {total.standard_error:g}, "
            f"90 % interval {total.lower_90:,} to {total.upper_90:,}; {total.rating}"
        ]
        for count in self.counts[:MOST_SHOWN]:
            name = " ".join([f"{count.query}:", *count.labels.values()])
            words = f"{count.count:,} ({count.lower_90:,} to {count.upper_90:,})"
            lines.append(f"  {name} {words}")
        if len(self.counts) > MOST_SHOWN:
            lines.append(f"  and {len(self.counts) - MOST_SHOWN:,} more; --json has them all")
        return "\n".join(map(printable, lines))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ErrorTree:
    """Regions of a release, its counts, and their errors.

    Parameters
    ----------
    starts : tuple of ndarray
        For each level but the last, where the children of every region begin.
    levels : tuple of SparseLevel
        Histograms, the root first.
    own, final : tuple of ndarray, shape (regions, queries)
    model : ErrorModel
    """

    starts: tuple[Ints, ...]
    levels: tuple[SparseLevel, ...]
    own: tuple[Floats, ...]
    final: tuple[Floats, ...]
    model: ErrorModel

    def union(self, leaves: Ints, query: Query, place: int) -> tuple[Ints, Interval]:
        """Counts (rows,) of some leaves, ascending, and their intervals."""
        whole = self.region_of(leaves)
        if whole is not None:
            level, region = whole
            number = query.answer(self.levels[level].part(region, region + 1))[0]
            units = np.full(len(number), np.sqrt(self.final[level][region, place]))
            return number, self.model.classes[level, place].intervals(number, units)
        last = self.levels[-1]
        parts = [query.answer(last.part(a, b)).sum(axis=0) for a, b in _runs(leaves)]
        count: Ints = np.sum(parts, axis=0)
        variance, bias = union_error(
            self.starts, leaves, self._family(query, place), self._root(query, place)
        )
        classes, deviation = self.model.unions[place], np.sqrt(variance)
        own = classes.place(np.full(1, float(len(leaves))))
        lower = np.rint(count + bias + classes.lower[own] * deviation)
        left = np.where(lower <= 0, classes.within[own], 1.0)
        upper = np.rint(count + bias + left * classes.upper[own] * deviation)
        return count, Interval(
            np.asarray(np.hypot(classes.error[own] * deviation, bias).round(2), np.float64),
            np.minimum(np.maximum(lower, 0), count).astype(np.int64),
            np.maximum(upper, count).astype(np.int64),
        )

    def region_of(self, leaves: Ints) -> tuple[int, int] | None:
        """The region that some leaves make up, if they make up exactly one."""
        first, last = int(leaves[0]), int(leaves[-1]) + 1
        if last - first != len(leaves):
            return None
        for level in range(len(self.levels) - 1, -1, -1):
            if level < len(self.starts):
                parents = [int(np.searchsorted(self.starts[level], x)) for x in (first, last)]
                if any(self.starts[level][i] != x for i, x in zip(parents, (first, last), strict=True)):
                    return None
                first, last = parents
            if last - first == 1:
                return level, first
        return None

    def _family(self, query: Query, place: int) -> Any:
        def family(level: int, parent: int) -> Family:
            first, last = self.starts[level - 1][parent : parent + 2]
            numbers = query.answer(self.levels[level].part(first, last))
            return family_of(
                self.model.classes[level, place],
                numbers,
                self.own[level][first:last, place],
                self.final[level][first:last, place],
            )

        return family

    def _root(self, query: Query, place: int) -> tuple[Floats, Floats]:
        classes, unit = self.model.classes[0, place], np.sqrt(self.final[0][:1, place])
        own = classes.place(in_units(query.answer(self.levels[0])[0], unit))
        return np.square(classes.error[own] * unit), classes.bias[own] * unit


def _runs(leaves: Ints) -> list[tuple[int, int]]:
    """Runs of consecutive leaves."""
    ends = np.flatnonzero(np.diff(leaves, append=leaves[-1] + 2) != 1)
    firsts = np.concatenate([[0], ends[:-1] + 1])
    return [(int(leaves[a]), int(leaves[b]) + 1) for a, b in zip(firsts, ends, strict=True)]


def read_area(release: Path, leaves: str | Path | Sequence[str], run: Run | None = None) -> Area:
    """The counts of the leaves and regions listed in a file or a sequence."""
    opened = OpenRelease.of(release, run)
    name = "leaves"
    if isinstance(leaves, str | Path):
        name = Path(leaves).name
        rows = read_leaves(Path(leaves), opened.promise.regions)
    else:
        rows = [(number, str(leaf)) for number, leaf in enumerate(leaves, start=1)]
    return opened.area(opened.places(rows, name), run)


@dataclass(frozen=True, slots=True, eq=False)
class OpenRelease:
    """A release with intervals, opened to add up its leaves.

    Parameters
    ----------
    promise : TopDown
    folder : Folder
    tree : ErrorTree
    queries : list of (Query, labels of its rows)
    leaves_of : mapping of str to sequence of int
        Leaves of every region, by its code; also those of tabulated regions, if the leaf codes identify them, and of the areas and
        geographic regions that a spine was arranged for.
    named : tuple of str
        Those areas and geographic regions, as "kind: name".
    """

    promise: TopDown
    folder: Folder
    tree: ErrorTree
    queries: list[tuple[Query, list[dict[str, str]]]]
    leaves_of: dict[str, Sequence[int]]
    named: tuple[str, ...] = ()

    @classmethod
    def of(cls, release: Path, run: Run | None = None) -> OpenRelease:
        """Read a release's manifest and errors."""
        promise, folder = _promise(release)
        codes, tree, queries = open_errors(folder, promise, run)
        leaves_of = _leaves_of(codes, tree.starts)
        published = read_manifest(release).parameters.get("published") or {}
        if published.get("tabulation") == TABULATED:
            leaves_of |= _tabulated(codes[-1])
        named: dict[str, Sequence[int]] = {}
        if promise.spine is not None:
            named = _named(folder, promise, codes[-1])
            leaves_of = {name.partition(": ")[2]: own for name, own in named.items()} | leaves_of
        return cls(promise, folder, tree, queries, leaves_of | named, tuple(named))

    def places(self, named: Sequence[tuple[int, str]], name: str) -> Ints:
        """Indices of the leaves named by rows of a file, ascending."""
        return _places(named, self.leaves_of, name, self.promise.levels[-1])

    def area(self, chosen: Ints, run: Run | None = None) -> Area:
        """The counts of some leaves combined."""
        return _area(self, chosen, run)


def _named(folder: Folder, promise: TopDown, leaves: Sequence[str]) -> dict[str, Sequence[int]]:
    """Leaves of the areas and geographic regions of a spine, by kind and name."""
    assert promise.spine is not None
    try:
        return {**named_areas(folder, promise.spine, promise.levels, leaves)}
    except (Malformed, OSError, pa.ArrowException):
        raise damaged(folder.path.name) from None


TABULATED = 16
"""Characters at the end of a block's code that identify it as tabulated: state 2, county 3, tract 6, block group 1, block 4."""


def _tabulated(leaves: Sequence[str]) -> dict[str, Sequence[int]]:
    """Leaves of blocks, block groups, tracts, counties and states as tabulated, by their usual codes."""
    found: dict[str, list[int]] = {}
    for leaf, code in enumerate(leaves):
        own = code[-TABULATED:]
        for name in (own[:2], own[:5], own[:11], own[:12], own[:11] + own[12:]):
            found.setdefault(name, []).append(leaf)
    return dict(found)


def _area(opened: OpenRelease, chosen: Ints, run: Run | None) -> Area:
    """The counts of some leaves."""
    promise, folder, tree, queries = opened.promise, opened.folder, opened.tree, opened.queries
    is_possible, whole = ~_structural_zeros(promise), tree.region_of(chosen)
    counts: list[AreaCount] = []
    total: AreaCount | None = None
    for place, (query, labels) in enumerate(queries):
        if run is not None:
            run.report("adding up the area", place, len(queries))
        count, interval = tree.union(chosen, query, place)
        if whole is not None and query.name in promise.tables:
            interval = _published(folder, promise, query.name, whole, labels, interval)
        rows = np.flatnonzero(count) if query.n_rows > MOST_ROWS else np.unique(query.row_of[is_possible])
        found = _counts(query, labels, rows, count, interval)
        total = found[0] if query.n_rows == 1 and total is None else total
        is_own = query.name in promise.tables or query.name == DETAILED
        counts += found if is_own and query.n_rows > 1 else []
    assert total is not None
    return Area(leaves=len(chosen), total=total, counts=tuple(counts))


def _published(
    folder: Folder,
    promise: TopDown,
    query: str,
    whole: tuple[int, int],
    labels: list[dict[str, str]],
    interval: Interval,
) -> Interval:
    """Intervals of a whole region as in its tables, which also take bounds into account, and of the zeros that tables leave out."""
    assert promise.errors is not None
    level = promise.levels[whole[0]]
    regions = without_dictionary(folder.table(promise.errors.regions))
    code = regions.filter(pc.equal(regions["level"], level))["region"][whole[1]]
    rows = without_dictionary(folder.table(promise.tables[query].file))
    rows = rows.filter(pc.and_(pc.equal(rows["level"], level), pc.equal(rows["region"], code)))
    place = {tuple(own.values()): i for i, own in enumerate(labels)}
    error, lower, upper = interval.standard_error.copy(), interval.lower.copy(), interval.upper.copy()
    for row in rows.to_pylist():
        i = place[tuple(row[name] for name in promise.tables[query].attributes)]
        error[i], lower[i], upper[i] = row["standard_error"], row["lower_90"], row["upper_90"]
    return Interval(error, lower, upper)


def _counts(
    query: Query, labels: list[dict[str, str]], rows: Ints, count: Ints, interval: Interval
) -> list[AreaCount]:
    return [
        AreaCount(
            query.name,
            labels[row],
            int(count[row]),
            float(interval.standard_error[row]),
            int(interval.lower[row]),
            int(interval.upper[row]),
        )
        for row in rows.tolist()
    ]


def _promise(release: Path) -> tuple[TopDown, Folder]:
    """The manifest and promise of a release."""
    manifest = read_manifest(release)
    if manifest.verb != "topdown":
        raise InputError(
            f"{release.name} is not a TopDown release; give the folder of one.",
            option="RELEASE",
            file=release.name,
        )
    try:
        promise = TopDown.model_validate(json.loads(json.dumps(manifest.promises[0])), strict=False)
    except (ValidationError, IndexError):
        raise damaged(release.name) from None
    if promise.errors is None:
        message = f"{release.name} was released without intervals; estimate it again from its measurements, with --intervals 3."
        raise InputError(message, option="RELEASE", file=release.name)
    return promise, Folder(release, plain_files(release)[0])


def damaged(name: str) -> InputError:
    """The error for a release that cannot be read."""
    return InputError(f"{name} is damaged; check it with `louver verify`.", option="RELEASE", file=name)


def open_errors(
    folder: Folder, promise: TopDown, run: Run | None = None
) -> tuple[list[list[str]], ErrorTree, list[tuple[Query, list[dict[str, str]]]]]:
    """Codes of the regions by level, the tree with its counts and errors, and the queries with labels of their rows."""
    assert promise.errors is not None
    names = promise.errors.queries
    try:
        model = ErrorModel.from_table(
            without_dictionary(folder.table(promise.errors.file)), promise.levels, names
        )
        codes, starts, own, final = _regions(folder, promise, len(names))
        people = count_people(folder, promise, pa.array(codes[-1]))
        if isinstance(people, str):
            raise Malformed(people)
    except (OSError, ValueError, KeyError, pa.ArrowException):
        raise damaged(folder.path.name) from None
    if run is not None:
        run.check()
    levels = [_leaf_histograms(people, len(codes[-1]), prod(people.shape))]
    for start in reversed(starts):
        levels.insert(0, levels[0].add_up(start, prod(people.shape)))
    queries = [_query(name, promise) for name in names]
    tree = ErrorTree(starts=tuple(starts), levels=tuple(levels), own=own, final=final, model=model)
    return codes, tree, queries


def _regions(
    folder: Folder, promise: TopDown, n_queries: int
) -> tuple[list[list[str]], list[Ints], tuple[Floats, ...], tuple[Floats, ...]]:
    """Codes, starts of children, and variances, level by level."""
    assert promise.errors is not None
    table = folder.table(promise.errors.regions)
    values = [
        table[name].combine_chunks().flatten().to_numpy(zero_copy_only=False).reshape(len(table), n_queries)
        for name in ("own_variance", "variance")
    ]
    rows = without_dictionary(table.select(["level", "region", "parent"]))
    level = np.array(rows["level"].to_pylist())
    spans = [np.flatnonzero(level == name) for name in promise.levels]
    if any(len(span) == 0 or span[-1] - span[0] + 1 != len(span) for span in spans):
        raise Malformed("the regions of a level are not contiguous")
    codes, parents = rows["region"].to_pylist(), rows["parent"].to_pylist()
    starts = []
    for above, here in pairwise(spans):
        place = {codes[i]: k for k, i in enumerate(above)}
        parent = np.array([place[parents[i]] for i in here])
        if (np.diff(parent) < 0).any() or len(np.unique(parent)) != len(above):
            raise Malformed("the regions are not in the order of their parents")
        starts.append(np.searchsorted(parent, np.arange(len(above) + 1)).astype(np.int64))
    own, final = (tuple(part[span] for span in spans) for part in values)
    return [[codes[i] for i in span] for span in spans], starts, own, final


def _leaf_histograms(people: PublishedPeople, n_leaves: int, n_cells: int) -> SparseLevel:
    start = np.searchsorted(people.leaf, np.arange(n_leaves + 1)).astype(np.int64)
    return SparseLevel(start=start, cell=(people.cell % n_cells).astype(np.int64), count=people.count)


def _every_cell(promise: TopDown) -> PublishedPeople:
    """One person in each cell."""
    n_cells = prod(len(labels) for labels in promise.attributes.values())
    return PublishedPeople(
        leaf=np.zeros(n_cells, np.int64),
        cell=np.arange(n_cells),
        count=np.ones(n_cells, np.int64),
        attributes=promise.attributes,
        region_of=(),
        regions=(),
    )


def _structural_zeros(promise: TopDown) -> Bools:
    """Cells that must be empty."""
    every = _every_cell(promise)
    zero = np.zeros(len(every.cell), np.bool_)
    for cells in promise.structural_zeros:
        zero |= every.inside(cells)
    return zero


def _query(name: str, promise: TopDown) -> tuple[Query, list[dict[str, str]]]:
    """A query of the release, and the labels of its rows."""
    every = _every_cell(promise)
    n_cells = len(every.cell)
    table = promise.tables.get(name)
    attributes: dict[str, list[str]] = {}
    row_of = np.zeros(n_cells, np.int64)
    if table is not None:
        attributes = {attribute: list(merged) for attribute, merged in table.attributes.items()}
        row_of = merged_cells(every, table, [len(labels) for labels in attributes.values()])
    elif name == DETAILED:
        attributes = {attribute: list(labels) for attribute, labels in promise.attributes.items()}
        row_of = np.arange(n_cells)
    shape = [len(labels) for labels in attributes.values()]
    rows = [
        {
            a: labels[i]
            for (a, labels), i in zip(attributes.items(), np.unravel_index(row, shape), strict=True)
        }
        if shape
        else {}
        for row in range(prod(shape))
    ]
    return Query(name=name, row_of=np.asarray(row_of, np.int64), n_rows=prod(shape)), rows


def read_leaves(path: Path, columns: Sequence[str]) -> list[tuple[int, str]]:
    """Rows of a file with their numbers: one leaf or region per line, or the release's geography columns under their names.

    A row that is empty in the last columns names the region above.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        rows = [(i, row) for i, row in enumerate(csv.reader(text.splitlines()), start=1) if any(row)]
    except FileNotFoundError:
        raise InputError(
            f"{path.name} does not exist; correct the name.", file=path.name, option="--leaves"
        ) from None
    except (OSError, ValueError, csv.Error):
        message = f"{path.name} is not a text file with one leaf per line; give one."
        raise InputError(message, file=path.name, option="--leaves") from None
    if rows and set(columns) <= set(rows[0][1]):
        places = [rows[0][1].index(column) for column in columns]
        rows = [(i, [row[k] if k < len(row) else "" for k in places]) for i, row in rows[1:]]
    for number, row in rows:
        if len(row) not in (1, len(columns)):
            message = f'{path.name} has {len(row)} columns on row {number}; give one leaf per line, or a header with "{columns[-1]}".'
            raise InputError(message, file=path.name, row=number)
    return [(number, "/".join(row).rstrip("/")) for number, row in rows]


def _leaves_of(codes: Sequence[Sequence[str]], starts: Sequence[Ints]) -> dict[str, Sequence[int]]:
    """The leaves of every region, by code; a leaf takes precedence over a region of the same code."""
    found: dict[str, Sequence[int]] = {}
    first = np.arange(len(codes[-1]) + 1)
    for level in range(len(codes) - 1, -1, -1):
        first = first if level == len(starts) else first[starts[level]]
        ends = first.tolist()
        for code, span in zip(codes[level], pairwise(ends), strict=True):
            found.setdefault(code, range(*span))
    return found


def _places(
    rows: Sequence[tuple[int, str]], leaves_of: Mapping[str, Sequence[int]], name: str, level: str
) -> Ints:
    """Indices of the named leaves, ascending."""
    found: dict[int, int] = {}
    for number, code in rows:
        if code == "" or code not in leaves_of:
            message = f"{name} has no region of the release (such as a {level}) on row {number}; correct it."
            raise InputError(message, file=name, row=number)
        for leaf in leaves_of[code]:
            if leaf in found:
                message = f"{name} has a leaf on row {number} that row {found[leaf]} has too; list each once."
                raise InputError(message, file=name, row=number)
            found[leaf] = number
    if not found:
        raise InputError(f"{name} lists no leaves; give one per line.", file=name, option="--leaves")
    return np.array(sorted(found), np.int64)


def region_totals(release: str | Path, run: Run | None = None) -> pa.Table:
    """One row for each region, one level after another: level, region, parent, count, standard_error, lower_90, upper_90.

    The last three are null where the release was made without intervals.

    Raises
    ------
    InputError
        If the folder holds no TopDown release that can be read.
    """
    place = Path(release)
    try:
        manifest = read_manifest(place)
        promise = TopDown.model_validate(json.loads(json.dumps(manifest.promises[0])), strict=False)
        folder = Folder(place, plain_files(place)[0])
        return _unsure(folder, promise) if promise.errors is None else _with_errors(folder, promise, run)
    except (ValidationError, IndexError, OSError, Malformed, KeyError, pa.ArrowException):
        raise damaged(place.name) from None


def _with_errors(folder: Folder, promise: TopDown, run: Run | None) -> pa.Table:
    assert promise.errors is not None
    _, tree, queries = open_errors(folder, promise, run)
    number, query = next((i, query) for i, (query, _) in enumerate(queries) if query.n_rows == 1)
    regions = without_dictionary(folder.table(promise.errors.regions).select(["level", "region", "parent"]))
    exact = _exact_levels(promise)
    parts: list[dict[str, Any]] = []
    for level, histogram in enumerate(tree.levels):
        count = query.answer(histogram)[:, 0]
        units = np.sqrt(tree.final[level][:, number]) * (level > exact)
        found = tree.model.classes[level, number].intervals(count, units)
        parts.append(
            {
                "count": count,
                "standard_error": found.standard_error,
                "lower_90": found.lower,
                "upper_90": found.upper,
            }
        )
    columns = {name: pa.array(np.concatenate([part[name] for part in parts])) for name in parts[0]}
    return pa.table({**{name: regions[name] for name in regions.column_names}, **columns})


def _exact_levels(promise: TopDown) -> int:
    """The lowest level whose totals are published exactly, as are all levels above it; -1 if there is none."""
    levels = (level for name, level in promise.exact.items() if not promise.cells[name])
    return max((promise.levels.index(level) for level in levels), default=-1)


def _unsure(folder: Folder, promise: TopDown) -> pa.Table:
    """The same table where nothing is known about errors: the leaves are those that were measured or have people in them."""
    measured = without_dictionary(folder.table(promise.measurements).select(["level", "node"]))
    nodes = measured.filter(pc.equal(measured["level"], promise.levels[-1]))["node"].combine_chunks()
    named = [leaf_codes(batch, promise.regions) for batch in folder.batches(promise.file, promise.regions)]
    leaves = pc.unique(pa.chunked_array([nodes, *(codes.cast(pa.string()) for codes in named)]))
    leaves = leaves.take(pc.sort_indices(leaves))
    people = count_people(folder, promise, leaves)
    if isinstance(people, str):
        raise Malformed(people)
    inside: Ints = np.bincount(people.leaf, people.count, minlength=len(leaves)).astype(np.int64)
    rows: dict[str, list[Any]] = {name: [] for name in ("level", "region", "parent", "count")}
    for level, (codes, own) in enumerate(zip(people.regions, people.region_of, strict=True)):
        first = np.unique(own, return_index=True)[1]
        rows["level"] += [promise.levels[level]] * len(codes)
        rows["region"] += codes.to_pylist()
        above = people.region_of[level - 1][first] if level else None
        rows["parent"] += (
            [None] * len(codes) if above is None else people.regions[level - 1].take(above).to_pylist()
        )
        rows["count"] += np.bincount(own, inside, minlength=len(codes)).astype(np.int64).tolist()
    unknown = pa.nulls(len(rows["level"]), pa.int64())
    errors = {"standard_error": unknown.cast(pa.float64()), "lower_90": unknown, "upper_90": unknown}
    return pa.table(
        {name: pa.array(rows[name]) for name in ("level", "region")}
        | {"parent": pa.array(rows["parent"], pa.string()), "count": pa.array(rows["count"], pa.int64())}
        | errors
    )
