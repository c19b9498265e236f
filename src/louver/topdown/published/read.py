"""Reading a folder in the layout of noisy measurement files, with every check that the files allow.

Widths of codes, shapes and variances are read from the files. Any mismatch is refused in one sentence that names the file and the
row; nothing is guessed. Regions without noisy answers are known from their constraints.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from louver._arrays import Bools, Floats, Ints
from louver.errors import InputError
from louver.release.manifest import FileEntry, file_entry
from louver.run import Run
from louver.topdown.published.layout import ANSWERS, COLUMNS, CONSTRAINTS, FORMAT, PRODUCTS, HistogramAxis

__all__ = [
    "Published",
    "PublishedLevel",
    "PublishedPart",
    "PublishedRows",
    "places_of",
    "read_answers",
    "read_published",
]

ENDINGS = {ANSWERS: "_dpq", CONSTRAINTS: "_con"}
SIGNS = ("=", ">=", "<=")
LARGEST = 1 << 53
"""Values must be smaller than this, so that every sum of them is exact."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublishedRows:
    """All rows of one query, or of one constraint, at a level.

    Parameters
    ----------
    name : str
        Without its ending.
    entries : tuple of str
        How each axis is divided.
    shape : tuple of int
    sign : str
        Sign of a constraint; empty for noisy answers.
    region : ndarray of int64, shape (rows,)
        Places in the level's codes, ascending; a region without a row is left out.
    values : ndarray of int64, shape (rows, values)
    variances : ndarray of float64, shape (rows,)
    """

    name: str
    entries: tuple[str, ...]
    shape: tuple[int, ...]
    sign: str
    region: Ints
    values: Ints
    variances: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublishedLevel:
    """Regions of one width, and their published answers."""

    name: str
    width: int
    codes: tuple[str, ...]
    answers: tuple[PublishedRows, ...]
    constraints: tuple[PublishedRows, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Published:
    """A folder that was read: axes, levels from the top, and the files with their hashes."""

    axes: tuple[HistogramAxis, ...]
    levels: tuple[PublishedLevel, ...]
    files: dict[str, FileEntry]


def read_published(
    root: Path, run: Run | None = None, *, states: Sequence[str] = (), keeps_values: bool = True
) -> Published:
    """Read all levels of a folder.

    Parameters
    ----------
    root : Path
    run : Run, optional
    states : sequence of str
        FIPS codes of the states whose partitions are read; all by default. The level above states is then left out.
    keeps_values : bool
        Whether noisy answers are kept; `read_answers` reads them again, some rows at a time.

    Raises
    ------
    InputError
        One sentence that names the file, and the row where there is one.

    Notes
    -----
    **Cost**: a row group at a time; memory for all values that are kept, and for the codes of all regions.
    """
    run = run or Run()
    reading = _Reading(root)
    levels = []
    for folder in _level_folders(root):
        parts: dict[tuple[str, str], list[PublishedPart]] = {}
        for kind in (ANSWERS, CONSTRAINTS):
            for path in _files(folder, kind, states):
                for part in reading.parts(path, kind, run):
                    kept = part if keeps_values or kind == CONSTRAINTS else part.without_values()
                    parts.setdefault((kind, part.name), []).append(kept)
                reading.files[path.relative_to(root).as_posix()] = file_entry(path)
        if parts:
            levels.append(_level(folder.name.removesuffix(".parquet"), parts))
    if not levels:
        raise InputError(f"{root.name} has no rows at any level; fetch the files again.", file=root.name)
    if states:
        levels = [level for level in levels if level.width]
    levels.sort(key=lambda level: level.width)
    _check_tree(levels)
    _check_queries(levels)
    _check_constraints(levels)
    return Published(axes=reading.axes, levels=tuple(levels), files=reading.files)


def read_answers(
    root: Path, level: str, run: Run | None = None, *, states: Sequence[str] = ()
) -> Iterator[PublishedPart]:
    """The noisy answers of one level again, a row group at a time."""
    reading = _Reading(root)
    for path in _files(root / f"{level}.parquet", ANSWERS, states):
        yield from reading.parts(path, ANSWERS, run or Run())


def _files(folder: Path, kind: str, states: Sequence[str]) -> Iterator[Path]:
    """The files of a level, limited to these states if any are named."""
    for path in sorted((folder / kind).rglob("*.parquet")):
        partitions = [one.removeprefix("State=") for one in path.parts if one.startswith("State=")]
        is_wanted = not states or any(partition[-2:] in states for partition in partitions)
        if path.is_file() and is_wanted:
            yield path


def _level_folders(root: Path) -> list[Path]:
    if not root.is_dir():
        raise InputError(f"{root.name} is not a folder; name the folder of one product.", file=root.name)
    folders = [path for path in sorted(root.glob("*.parquet")) if path.is_dir()]
    if not folders:
        message = f"{root.name} has no folders such as County.parquet; name the folder of one product."
        raise InputError(message, file=root.name)
    return folders


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublishedPart:
    """Rows of one query in one row group of a file."""

    file: str
    name: str
    entries: tuple[str, ...]
    shape: tuple[int, ...]
    sign: str
    codes: pa.Array
    values: Ints
    variances: Floats

    def without_values(self) -> PublishedPart:
        """The same part without values."""
        return replace(self, values=self.values[:, :0].copy())


def _wrong(file: str, what: str, row: int | None = None, column: str | None = None) -> InputError:
    place = file if row is None else f"{file}, row {row}"
    return InputError(f"{place}: {what}; fetch the file again.", file=file, row=row, column=column)


@dataclass(slots=True)
class _Reading:
    """The common properties of the files read so far."""

    root: Path
    axes: tuple[HistogramAxis, ...] = ()
    files: dict[str, FileEntry] = field(default_factory=dict)

    def parts(self, path: Path, kind: str, run: Run) -> Iterator[PublishedPart]:
        """The rows of a file, a row group at a time and query by query."""
        file = path.relative_to(self.root).as_posix()
        n_read = 0
        for table in _row_groups(path, file):
            run.check()
            yield from self._parts(_typed(table, file, kind, n_read), path, file, kind, n_read)
            n_read += len(table)

    def _parts(
        self, table: pa.Table, path: Path, file: str, kind: str, n_before: int
    ) -> Iterator[PublishedPart]:
        """The rows of a row group, query by query."""
        axes = _axes_of(table, file)
        if self.axes and axes != self.axes:
            raise _wrong(file, "its axes are not those of the other files")
        self.axes = axes
        _check_codes(table, path.relative_to(self.root), file, n_before)
        rows = np.arange(n_before + 1, n_before + len(table) + 1)
        for name in table["query_name"].unique().to_pylist():
            is_own = pc.equal(table["query_name"], name)
            own = rows[np.asarray(is_own.to_numpy(), dtype=np.bool_)]
            yield _part(table.filter(is_own), own, name, axes, file, kind)


def _row_groups(path: Path, file: str) -> Iterator[pa.Table]:
    """The row groups of a file, which is read as a whole where it has none."""
    try:
        with pq.ParquetFile(path) as source:
            for group in range(source.num_row_groups):
                rows = source.read_row_group(group)
                rows.validate(full=True)  # dictionaries are not examined when they are read
                yield rows
            if not source.num_row_groups:
                yield source.read()
        return
    except (OSError, pa.ArrowException, ValueError):
        pass
    raise _wrong(file, "it cannot be read as Parquet")


def _typed(table: pa.Table, file: str, kind: str, n_before: int) -> pa.Table:
    """The table with the types that louver works on; no value may be missing."""
    needed = ["geocode", "query_name", "query_shape", "value", "variance"]
    needed += ["sign"] if kind == CONSTRAINTS else []
    if len(set(table.column_names)) < len(table.column_names):
        raise _wrong(file, "two columns have one name")
    for name in needed:
        if name not in table.column_names:
            raise _wrong(file, f'column "{name}" is missing', column=name)
    wanted = {
        "query_shape": pa.list_(pa.int64()),
        "value": pa.list_(pa.int64()),
        "variance": pa.float64(),
    }
    columns = {}
    for name in table.column_names:
        if name == "plb" or (name in COLUMNS and name not in needed):
            continue
        column, target = table[name], wanted.get(name, pa.string())
        if not _is_kind(column.type, target):
            raise _wrong(file, f'column "{name}" has another type', column=name)
        try:
            columns[name] = column.cast(target).combine_chunks()
        except pa.ArrowException:
            raise _wrong(file, f'column "{name}" has a number that is too large', column=name) from None
        holes = columns[name].is_null()
        if columns[name].null_count:
            row = n_before + pc.index(holes, True).as_py() + 1
            raise _wrong(file, f'column "{name}" has no value', row, name)
        if pa.types.is_list(target) and columns[name].flatten().null_count:
            raise _wrong(file, f'column "{name}" has a list with a gap', column=name)
    return pa.table(columns).replace_schema_metadata(table.schema.metadata)


def _is_kind(found: pa.DataType, target: pa.DataType) -> bool:
    """Whether a column is of the kind wanted, whatever its width."""
    if pa.types.is_list(target):
        is_list = pa.types.is_list(found) or pa.types.is_large_list(found)
        return is_list and bool(pa.types.is_integer(found.value_type))
    if pa.types.is_floating(target):
        return bool(pa.types.is_floating(found))
    if pa.types.is_dictionary(found):
        found = found.value_type
    return bool(pa.types.is_string(found) or pa.types.is_large_string(found))


def _axes_of(table: pa.Table, file: str) -> tuple[HistogramAxis, ...]:
    """The axes: those that the file lists, where louver wrote it, or those of a known product."""
    names = {name for name in table.column_names if name not in COLUMNS}
    text = (table.schema.metadata or {}).get(b"louver")
    axes: tuple[HistogramAxis, ...] = next((p for p in PRODUCTS if {axis.name for axis in p} == names), ())
    if text is not None:
        axes = _listed_axes(text, file)
    if not axes or {axis.name for axis in axes} != names:
        raise _wrong(file, "its columns are not the axes of a product that louver knows")
    return axes


def _listed_axes(text: bytes, file: str) -> tuple[HistogramAxis, ...]:
    """Axes listed by a file that louver wrote."""
    try:
        content = json.loads(text)
        if content["format"] != FORMAT:
            raise ValueError
        axes = []
        for name, own in content["axes"].items():
            labels, codes = tuple(map(str, own["labels"])), set(range(len(own["labels"])))
            binnings = {
                str(binning): tuple(tuple(map(int, group)) for group in groups)
                for binning, groups in own["binnings"].items()
            }
            counted = [[code for group in groups for code in group] for groups in binnings.values()]
            if any(len(set(one)) < len(one) or not set(one) <= codes for one in counted):
                raise ValueError
            axes.append(HistogramAxis(name=name, labels=labels, binnings=binnings))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise _wrong(file, "its description of the axes cannot be read") from None
    return tuple(axes)


def _check_codes(table: pa.Table, path: Path, file: str, n_before: int) -> None:
    """Codes of one width, of letters and digits, that begin as their partition folders require."""
    codes = table["geocode"]
    tests = [
        (
            pc.match_substring_regex(codes, "^[0-9A-Za-z]*$"),
            "the geocode has characters other than letters and digits",
        )
    ]
    for folder in path.parts[:-1]:
        _, is_partition, prefix = folder.partition("=")
        if is_partition:
            tests.append(
                (pc.starts_with(codes, prefix), "the geocode does not belong to the folder's partition")
            )
    for is_right, what in tests:
        if not (pc.all(is_right).as_py() is not False):
            row = n_before + pc.index(is_right, False).as_py() + 1
            raise _wrong(file, what, row, "geocode")


def _part(
    table: pa.Table, rows: Ints, name: str, axes: Sequence[HistogramAxis], file: str, kind: str
) -> PublishedPart:
    """The rows of one query, checked against each other and against the axes."""
    if not name.endswith(ENDINGS[kind]) or len(name) == len(ENDINGS[kind]):
        raise _wrong(file, f"a query name does not end in {ENDINGS[kind]}", int(rows[0]), "query_name")

    def require(is_right: Bools, what: str, column: str) -> None:
        if not is_right.all():
            raise _wrong(file, what, int(rows[np.flatnonzero(~is_right)[0]]), column)

    entries = []
    for axis in axes:
        found = np.array(table[axis.name].to_pylist(), dtype=object)
        require(found == found[0], "a query is divided differently than in earlier rows", axis.name)
        if axis.groups(found[0]) is None:
            raise _wrong(file, "a query has a binning that louver does not know", int(rows[0]), axis.name)
        entries.append(str(found[0]))
    shape = tuple(len(axis.groups(entry) or ()) for axis, entry in zip(axes, entries, strict=True))
    shapes, values = (table[column].combine_chunks() for column in ("query_shape", "value"))
    require(_lengths(shapes) == len(axes), "the shape does not have a number for each axis", "query_shape")
    stated = shapes.flatten().to_numpy().reshape(-1, len(axes))
    require((stated == shape).all(axis=1), "the shape is not that of the binnings", "query_shape")
    require(_lengths(values) == prod(shape), "the number of values is not that of the shape", "value")
    numbers = values.flatten().to_numpy().reshape(len(table), -1)
    require((np.abs(numbers) < LARGEST).all(axis=1), "a value is too large", "value")
    variances = table["variance"].to_numpy()
    sign = ""
    if kind == ANSWERS:
        is_right = np.isfinite(variances) & (variances > 0)
        require(is_right, "the variance is not a number above 0", "variance")
    else:
        require(variances == 0, "a constraint has a variance other than 0", "variance")
        require((numbers >= 0).all(axis=1), "a constraint has a negative value", "value")
        signs = np.array(table["sign"].to_pylist(), dtype=object)
        require(np.isin(signs, SIGNS), "the sign is none of =, >= and <=", "sign")
        require(signs == signs[0], "a constraint has another sign than in earlier rows", "sign")
        sign = str(signs[0])
    return PublishedPart(
        file=file,
        name=name.removesuffix(ENDINGS[kind]),
        entries=tuple(entries),
        shape=shape,
        sign=sign,
        codes=table["geocode"].combine_chunks(),
        values=numbers,
        variances=variances,
    )


def _lengths(lists: pa.ListArray) -> Ints:
    return np.asarray(lists.value_lengths().to_numpy(), dtype=np.int64)


def _level(name: str, parts: dict[tuple[str, str], list[PublishedPart]]) -> PublishedLevel:
    """A level from the rows of all its files."""
    everything = [part for own in parts.values() for part in own]
    width = len(everything[0].codes[0].as_py())
    for part in everything:
        if pc.unique(pc.utf8_length(part.codes)).to_pylist() != [width]:
            raise _wrong(part.file, "geocodes of one level have several widths", column="geocode")
    codes = pc.unique(pa.chunked_array([part.codes for part in everything])).sort()
    joined: dict[str, list[PublishedRows]] = {ANSWERS: [], CONSTRAINTS: []}
    for (kind, _), own in parts.items():
        joined[kind].append(_joined(own, codes))
    return PublishedLevel(
        name=name,
        width=width,
        codes=tuple(codes.to_pylist()),
        answers=tuple(joined[ANSWERS]),
        constraints=tuple(joined[CONSTRAINTS]),
    )


def _joined(parts: Sequence[PublishedPart], codes: pa.Array) -> PublishedRows:
    """The rows of one query from several files, in the order of regions."""
    first = parts[0]
    for part in parts:
        if (part.entries, part.sign) != (first.entries, first.sign):
            raise _wrong(part.file, "a query is divided differently than in earlier files")
    region = np.concatenate([places_of(part.codes, codes) for part in parts])
    order = np.argsort(region, kind="stable")
    if (np.diff(region[order]) == 0).any():
        raise _wrong(parts[-1].file, "a region answers a query twice", column="geocode")
    return PublishedRows(
        name=first.name,
        entries=first.entries,
        shape=first.shape,
        sign=first.sign,
        region=region[order],
        values=np.concatenate([part.values for part in parts])[order],
        variances=np.concatenate([part.variances for part in parts])[order],
    )


def places_of(codes: pa.Array, listed: pa.Array) -> Ints:
    """Position of each code in a list that has them all."""
    return np.asarray(pc.index_in(codes, value_set=listed).to_numpy(), dtype=np.int64)


def _refused(level: PublishedLevel, what: str, **where: Any) -> InputError:
    return InputError(
        f"{level.name}.parquet: {what}; fetch the files again.", file=f"{level.name}.parquet", **where
    )


def _check_tree(levels: Sequence[PublishedLevel]) -> None:
    """Check that every region has a parent, and every region above the lowest level a child."""
    for above, below in pairwise(levels):
        if above.width == below.width:
            raise _refused(below, f"its geocodes are as wide as those of {above.name}")
        parents = {code[: above.width] for code in below.codes}
        if not parents <= set(above.codes):
            raise _refused(below, f"a region has no parent in {above.name}")
        if len(parents) < len(above.codes):
            raise _refused(above, f"a region has no part in {below.name}")


def _check_queries(levels: Sequence[PublishedLevel]) -> None:
    """Check that each name means the same query everywhere."""
    for kind in ("answers", "constraints"):
        known: dict[str, tuple[tuple[str, ...], str]] = {}
        for level in levels:
            for rows in getattr(level, kind):
                if known.setdefault(rows.name, (rows.entries, rows.sign)) != (rows.entries, rows.sign):
                    raise _refused(level, "a query is divided differently than on the levels above")


def _check_constraints(levels: Sequence[PublishedLevel]) -> None:
    """Check that lower bounds do not exceed upper ones, and that exact values add up wherever a level and the level below have them for
    all regions."""
    for level in levels:
        for lower in level.constraints:
            for upper in level.constraints:
                if upper.sign == "<=" and lower.sign != "<=" and upper.entries == lower.entries:
                    _, low, high = np.intersect1d(lower.region, upper.region, return_indices=True)
                    if (lower.values[low] > upper.values[high]).any():
                        raise _refused(level, "a lower bound or an exact value is above the upper bound")
    for above, below in pairwise(levels):
        exact = {rows.name: rows for rows in below.constraints if rows.sign == "="}
        place = {code: region for region, code in enumerate(above.codes)}
        parent = np.array([place[code[: above.width]] for code in below.codes], dtype=np.int64)
        for rows in above.constraints:
            part = exact.get(rows.name)
            if rows.sign == "=" and part is not None and len(part.region) == len(below.codes):
                sums = np.zeros((len(above.codes), rows.values.shape[1]), dtype=np.int64)
                np.add.at(sums, parent, part.values)
                if (sums[rows.region] != rows.values).any():
                    raise _refused(above, f"an exact value is not the sum of those in {below.name}")
