"""From files or records to cells: numbers in whole units, their contributors, and the sums that link cells."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from louver._arrays import Ints
from louver.data.read import Source, open_source
from louver.data.tabulate import read_text
from louver.errors import InputError
from louver.protect.cells import Axis, CellIndex, ColumnCodes, Grid, axis_of, check_size, sums_of
from louver.protect.hierarchy import Tree, read_tree, tree_of_digits
from louver.protect.links import find_links
from louver.protect.options import MAX_DECIMALS, ProtectOptions, TableOptions
from louver.run import Run
from louver.schema.validate import decode_text, read_bytes
from louver.tables.hiding.problem import LARGEST

__all__ = [
    "Cell",
    "Contributor",
    "Earlier",
    "Line",
    "Loaded",
    "LoadedTable",
    "attributes_of",
    "axes_of",
    "load",
]

NOISE = 1e-14
"""Relative error allowed in the text of a decimal: programs that add floating-point numbers print 0.30000000000000004."""

TELLING = 100_000
"""Number of units from which on two crossing cells with one contributor each and equal numbers are assumed to have the same contributor."""

LETTERS = {
    "": None,
    "s": None,
    "safe": None,
    "u": "hide",
    "m": "secondary",
    "x": "secondary",
    "hide": "hide",
    "secondary": "secondary",
    "z": "publish",
    "publish": "publish",
}
"""Status letters as printed by tau-ARGUS and sdcTable, and our own words."""

Row = tuple[str | None, ...]


@dataclass(slots=True, kw_only=True)
class Cell:
    """One number.

    Attributes
    ----------
    value : int
        In units of the last decimal.
    decimals : int
    measured : str
    is_count, is_negative : bool
        Whether it counts contributors, and whether what it measures may be negative.
    is_shown : bool
        Whether some table shows it; the others are sums that follow from those shown.
    frequency : int or None
        Number of contributors; None if it is not stated.
    largest : tuple of Fraction-like floats
        Largest contributions in units, largest first.
    requested : float
        Largest contribution, in units, of those who requested protection.
    place : str
        Location of the cell, for messages.
    is_published_before : bool
        Whether an earlier release shows it, so that it can no longer be hidden.
    """

    value: int
    decimals: int
    measured: str
    is_count: bool = False
    is_negative: bool = False
    is_shown: bool = True
    frequency: int | None = None
    largest: tuple[float, ...] = ()
    requested: float = 0.0
    place: str = ""
    cost: float | None = None
    set_by_file: str | None = None
    is_published_before: bool = False


@dataclass(frozen=True, slots=True)
class Contributor:
    """A contributor whose own share is known: units by cell, and the cells to which nobody else contributes."""

    name: str
    own: Mapping[int, int]
    alone: frozenset[int]


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a published table."""

    labels: tuple[str, ...]
    cell: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedTable:
    """A table as it will be published."""

    options: TableOptions
    grid: Grid
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """All tables.

    Attributes
    ----------
    cells : tuple of Cell
    tables : tuple of LoadedTable
    earlier : tuple of LoadedTable
        Tables of earlier releases with the same numbers.
    sums : csr_array
    contributors : tuple of Contributor
        Contributors whose knowledge matters: those who are alone in a cell, or one of two.
    unknown_pairs : int
        Cells with two contributors whose individual contributions are not stated.
    linked : tuple of (str, str)
        Pairs of attributes of which the first determines the second in the records, so that their tables were linked.
    dependent : tuple of (str, str)
        Other such pairs, whose tables were not linked because a table uses both columns, or another finer column is linked.
    near : tuple of (str, str)
        Pairs of which the first determines the second in nearly all records.
    has_records : bool
    """

    cells: tuple[Cell, ...]
    tables: tuple[LoadedTable, ...]
    earlier: tuple[LoadedTable, ...] = ()
    sums: csr_array
    contributors: tuple[Contributor, ...]
    unknown_pairs: int
    linked: tuple[tuple[str, str], ...] = ()
    dependent: tuple[tuple[str, str], ...]
    near: tuple[tuple[str, str], ...] = ()
    has_records: bool
    index: CellIndex = field(repr=False)


def load(
    options: ProtectOptions,
    data: Any,
    opening: Mapping[str, Any],
    folder: Path,
    run: Run,
    earlier: Sequence[Earlier] = (),
) -> Loaded:
    """Read everything that the options name, and the same numbers in tables published earlier."""
    if all(table.file is not None for table in options.tables):
        return _from_files(options, opening, folder, run)
    if data is None:
        raise InputError(
            f'table "{options.tables[0].name}" has no file, and there are no records to compute it from; give one of them.',
            option="tables",
        )
    return _from_records(options, data, opening, folder, run, earlier)


# Codes ------------------------------------------------------------------------------------------------------------


def attributes_of(
    options: ProtectOptions, seen: Mapping[str, Sequence[str]], folder: Path
) -> dict[str, ColumnCodes]:
    """Every attribute of the tables with its hierarchies; `seen` are the codes that occur, totals left out."""
    used = dict.fromkeys(name for table in options.tables for name in table.by)
    for name, codes in options.codes.items():
        if name not in used and not any(other.of == name for other in options.codes.values()):
            raise InputError(
                f'the codes of "{name}" are described, but no table uses it; check the name.', column=name
            )
        if codes.of is not None and (codes.of not in options.codes or options.codes[codes.of].of is not None):
            raise InputError(
                f'the codes of "{name}" are of "{codes.of}", which has no section under codes of its own.',
                column=name,
            )
    trees = {
        name: _trees(name, options, seen, folder)
        for name in [*used, *(c.of for c in options.codes.values() if c.of)]
    }
    return {name: _attribute(name, options, trees) for name in used}


def _trees(
    name: str, options: ProtectOptions, seen: Mapping[str, Sequence[str]], folder: Path
) -> tuple[Tree, ...]:
    codes = options.codes.get(name)
    total = "Total" if codes is None else codes.total
    if codes is not None and codes.levels:
        return (tree_of_digits(total, seen.get(name, ()), codes.levels),)
    if codes is None or not codes.hierarchy:
        return (Tree.flat(total, seen.get(name, ())),)
    trees = tuple(read_tree(folder / file, total, codes.mark) for file in codes.hierarchy)
    for tree in trees[1:]:
        if tree.leaves[total] != trees[0].leaves[total]:
            raise InputError(
                f'{tree.source} and {trees[0].source} do not have the same leaves; all hierarchies of "{name}" must.',
                file=tree.source,
                column=name,
            )
    return trees


def _attribute(name: str, options: ProtectOptions, trees: Mapping[str, tuple[Tree, ...]]) -> ColumnCodes:
    codes = options.codes.get(name)
    own = trees[name]
    total = own[0].total
    base = None if codes is None else codes.of
    if base is None:
        leaves = {leaf: frozenset((leaf,)) for leaf in own[0].leaves[total]}
        return ColumnCodes(name=name, total=total, trees=own, of=name, stands_for=leaves)
    stands_for: dict[str, frozenset[str]] = {}
    for leaf in sorted(own[0].leaves[total]):
        tree = next((tree for tree in trees[base] if leaf in tree.leaves), None)
        if tree is None:
            raise InputError(f'a code of "{name}" is not a code of "{base}".', column=name)
        stands_for[leaf] = tree.leaves[leaf]
    return ColumnCodes(name=name, total=total, trees=own, of=base, stands_for=stands_for)


def axes_of(table: TableOptions, attributes: Mapping[str, ColumnCodes]) -> tuple[Axis, ...]:
    bases = [attributes[name].of for name in table.by]
    for place, base in enumerate(bases):
        if base in bases[:place]:
            raise InputError(
                f'table "{table.name}" has two attributes, one of which stands for codes of the other; keep the finer one.',
                option="tables",
            )
    axes = tuple(axis_of(attributes[name], table.depth.get(name)) for name in table.by)
    check_size(table.name, axes)
    return axes


# Tables from files ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """A file as text."""

    options: TableOptions
    file: str
    rows: list[Row]
    columns: tuple[str, ...]

    def column(self, name: str) -> list[str | None]:
        place = self.columns.index(name)
        return [row[place] for row in self.rows]

    def at(self, row: int) -> str:
        return f'table "{self.options.name}": row {row + 1} of {self.file}'

    def error(self, row: int, problem: str, column: str | None = None) -> InputError:
        return InputError(f"{self.at(row)} {problem}.", file=self.file, row=row + 1, column=column)


def _from_files(options: ProtectOptions, opening: Mapping[str, Any], folder: Path, run: Run) -> Loaded:
    files = [_read_file(table, opening, folder, run) for table in options.tables]
    seen: dict[str, list[str]] = {}
    for file in files:
        for name in file.options.by:
            listed = seen.setdefault(name, [])
            total = options.codes[name].total if name in options.codes else "Total"
            known = set(listed)
            for row, label in enumerate(file.column(name)):
                if label is None:
                    raise file.error(row, f'has no code of "{name}"; fill it in', name)
                if label not in known and label != total:
                    known.add(label)
                    listed.append(label)
    attributes = attributes_of(options, seen, folder)
    index = CellIndex()
    cells: dict[int, Cell] = {}
    decimals = _decimals(files)
    tables = [_file_table(file, attributes, index, cells, decimals) for file in files]
    _fill(tables, index, cells)
    found = tuple(cells[number] for number in range(len(index)))
    sums = _checked_sums([table.grid for table in tables], found)
    contributors, unknown = _listed_contributors(found, index)
    return Loaded(
        cells=found,
        tables=tuple(tables),
        sums=sums,
        contributors=contributors,
        unknown_pairs=unknown,
        dependent=(),
        has_records=False,
        index=index,
    )


def _read_file(table: TableOptions, opening: Mapping[str, Any], folder: Path, run: Run) -> _Read:
    assert table.file is not None
    extra = (table.value, table.frequency, *table.largest, table.status, table.cost)
    columns = tuple(dict.fromkeys([*table.by, *(name for name in extra if name is not None)]))
    if table.columns:
        return _without_names(table, folder / table.file, columns)
    reading = {**opening, "table": None, "query": None, "where": None, "missing_code": None}
    with open_source(folder / table.file, **reading, run=run) as source:
        rows = read_text(source, columns)
        return _Read(options=table, file=source.name, rows=rows, columns=columns)


def _without_names(table: TableOptions, path: Path, columns: tuple[str, ...]) -> _Read:
    """A file without a header, whose columns are named by the options."""
    assert table.separator is not None
    for name in columns:
        if name not in table.columns:
            raise InputError(
                f'table "{table.name}" has no column "{name}" among its columns.',
                option="tables",
                column=name,
            )
    text = decode_text(read_bytes(path), path.name)
    places = [table.columns.index(name) for name in columns]
    rows: list[Row] = []
    for number, line in enumerate(filter(str.strip, text.splitlines()), start=1):
        parts = [part.strip().strip('"').strip() or None for part in line.split(table.separator)]
        if len(parts) != len(table.columns):
            raise InputError(
                f'table "{table.name}": row {number} of {path.name} has {len(parts)} fields, but columns lists {len(table.columns)}.',
                file=path.name,
                row=number,
            )
        rows.append(tuple(parts[place] for place in places))
    return _Read(options=table, file=path.name, rows=rows, columns=columns)


def _decimals(files: Sequence[_Read]) -> dict[str, int]:
    """Number of decimals of each variable: as specified, or as few as its numbers need."""
    found: dict[str, int] = {}
    for file in files:
        table = file.options
        if table.is_counts:
            found[table.quantity] = 0
            continue
        assert table.value is not None
        own = table.decimals
        if own is None:
            texts = [text for text in file.column(table.value) if text is not None]
            own = max((_decimals_of(text) for text in texts), default=0)
        found[table.quantity] = max(found.get(table.quantity, 0), own)
    return found


def _decimals_of(text: str) -> int:
    """Number of decimals of a number, ignoring the error of adding floating-point numbers; at most `MAX_DECIMALS`."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return 0
    if not number.is_finite() or abs(number) > LARGEST:
        return 0
    slack = NOISE * max(1.0, abs(float(number)))
    return next(
        (d for d in range(MAX_DECIMALS) if abs(float(number - round(number, d))) <= slack), MAX_DECIMALS
    )


def _units(text: str | None, decimals: int) -> int | None:
    """A number in units; None if it is not a number or too large."""
    if text is None:
        return None
    try:
        number = Decimal(text)
        if not number.is_finite() or abs(number) > Decimal(LARGEST).scaleb(-decimals):
            return None
        return int(number.scaleb(decimals).to_integral_value())
    except InvalidOperation:
        return None


def _file_table(
    file: _Read,
    attributes: Mapping[str, ColumnCodes],
    index: CellIndex,
    cells: dict[int, Cell],
    decimals: Mapping[str, int],
) -> LoadedTable:
    table = file.options
    axes = axes_of(table, attributes)
    grid = np.full([len(axis.codes) for axis in axes], -1, dtype=np.int64)
    meanings = [index.meanings(axis) for axis in axes]
    place_of = [axis.place_of for axis in axes]
    lines = []
    for row in range(len(file.rows)):
        labels = tuple(str(label) for label in file.rows[row][: len(axes)])
        places = []
        for axis, known, label in zip(axes, place_of, labels, strict=True):
            if label not in known:
                where_it_is = (
                    "below the depth of the table"
                    if table.depth.get(axis.attribute.name)
                    else "outside its hierarchy"
                )
                raise file.error(
                    row, f'has a code of "{axis.attribute.name}" that is {where_it_is}', axis.attribute.name
                )
            places.append(known[label])
        if grid[tuple(places)] >= 0:
            raise file.error(row, "repeats the cell of an earlier row; list every cell once")
        number = index.number(
            table.quantity, [own[place] for own, place in zip(meanings, places, strict=True)]
        )
        grid[tuple(places)] = number
        lines.append(Line(labels, number))
        _keep(cells, number, _listed_cell(file, row, decimals[table.quantity]))
    return LoadedTable(options=table, grid=Grid(name=table.name, axes=axes, cells=grid), lines=tuple(lines))


def _keep(cells: dict[int, Cell], number: int, cell: Cell) -> None:
    """Enter a cell, or compare it with what is stated about it elsewhere."""
    known = cells.setdefault(number, cell)
    if known is cell:
        return
    if known.value != cell.value:
        raise InputError(
            f"{cell.place} differs in its number from {known.place}, which is the same cell; correct one."
        )
    if known.is_negative != cell.is_negative:
        raise InputError(
            f"{cell.place} may be negative, but {known.place} may not; set negative in both tables."
        )
    if None not in (known.frequency, cell.frequency) and known.frequency != cell.frequency:
        raise InputError(
            f"{cell.place} differs in its frequency from {known.place}, which is the same cell; correct one."
        )
    known.frequency = cell.frequency if known.frequency is None else known.frequency
    known.largest = max(known.largest, cell.largest, key=len)
    known.cost = cell.cost if known.cost is None else known.cost
    known.set_by_file = cell.set_by_file or known.set_by_file


def _listed_cell(file: _Read, row: int, decimals: int) -> Cell:
    table = file.options
    at = dict(zip(file.columns, file.rows[row], strict=True))
    frequency = None
    if table.frequency is not None:
        frequency = _units(at[table.frequency], 0)
        if frequency is None or frequency < 0 or Decimal(str(at[table.frequency])) != frequency:
            raise file.error(
                row, f'needs a whole number of 0 or more in "{table.frequency}"', table.frequency
            )
    if table.value is None:
        assert frequency is not None
        value = frequency
    else:
        read = _units(at[table.value], decimals)
        if read is None:
            raise file.error(row, f'has no number in "{table.value}", or one that is too large', table.value)
        value = read
        if value < 0 and not table.negative:
            raise file.error(
                row,
                f'has a negative number in "{table.value}"; set negative = true if that is allowed',
                table.value,
            )
        if frequency == 0 and value:
            raise file.error(row, "has a number although it has no contributors; check its frequency")
    return Cell(
        value=value,
        decimals=decimals,
        measured=table.quantity,
        is_count=table.is_counts,
        is_negative=table.negative,
        frequency=frequency,
        largest=_largest(file, row, at, decimals, value, frequency),
        place=file.at(row),
        cost=_cost(file, row, at),
        set_by_file=_letter(file, row, at),
    )


def _largest(
    file: _Read, row: int, at: Mapping[str, str | None], decimals: int, value: int, frequency: int | None
) -> tuple[float, ...]:
    found: list[float] = []
    for name in file.options.largest:
        if at[name] is None:  # there are fewer contributors than columns
            break
        units = _units(at[name], decimals)
        if units is None or units < 0:
            raise file.error(row, f'needs a number of 0 or more in "{name}", the largest contributions', name)
        if found and units > found[-1]:
            raise file.error(row, f'has a larger contribution in "{name}" than in the column before', name)
        found.append(float(units))
    slack = len(found)
    if not file.options.negative and sum(found) > value + slack:
        raise file.error(row, "has largest contributions that exceed its number")
    if frequency is not None:
        found = found[:frequency]
    return tuple(found)


def _cost(file: _Read, row: int, at: Mapping[str, str | None]) -> float | None:
    name = file.options.cost
    if name is None:
        return None
    try:
        cost = float(at[name] or "nan")
    except ValueError:
        cost = math.nan
    if not 0 <= cost < 1e15:
        raise file.error(row, f'needs a cost of 0 or more in "{name}"', name)
    return cost


def _letter(file: _Read, row: int, at: Mapping[str, str | None]) -> str | None:
    name = file.options.status
    if name is None:
        return None
    letter = (at[name] or "").strip()
    if letter in file.options.status_codes:
        return file.options.status_codes[letter] or None
    letter = letter.lower()
    if letter not in LETTERS:
        known = ", ".join(f'"{one}"' for one in LETTERS if one)
        raise file.error(row, f'has an unknown status in "{name}"; use {known} or leave it empty', name)
    return LETTERS[letter]


def _fill(tables: Sequence[LoadedTable], index: CellIndex, cells: dict[int, Cell]) -> None:
    """Enter totals that no table shows: their parts still add up to them, and every reader knows that."""
    for table in tables:
        axes, grid = table.grid.axes, table.grid.cells
        meanings = [index.meanings(axis) for axis in axes]
        sample = cells[table.lines[0].cell] if table.lines else None
        for number, axis in enumerate(axes):
            moved = np.moveaxis(grid, number, 0)
            others = [own for place, own in enumerate(meanings) if place != number]
            for total, parts in reversed(axis.parts):
                for column in map(tuple, np.argwhere(moved[total] < 0).tolist()):
                    below = [int(moved[(part, *column)]) for part in parts if moved[(part, *column)] >= 0]
                    if not below or sample is None:
                        continue
                    meaning = [own[place] for own, place in zip(others, column, strict=True)]
                    found = index.number(table.options.quantity, [*meaning, meanings[number][total]])
                    moved[(total, *column)] = found
                    if found not in cells:
                        value = sum(cells[part].value for part in below)
                        cells[found] = Cell(
                            value=value,
                            decimals=sample.decimals,
                            measured=sample.measured,
                            is_count=sample.is_count,
                            is_negative=sample.is_negative,
                            is_shown=False,
                            place=f'table "{table.options.name}": a total that is not listed',
                        )


def _checked_sums(grids: Sequence[Grid], cells: Sequence[Cell]) -> csr_array:
    sums = sums_of(grids, len(cells))
    off = sums.astype(np.int64) @ np.array([cell.value for cell in cells], dtype=np.int64)
    wrong = np.flatnonzero(off)
    if len(wrong):
        row = wrong[np.argmin(np.diff(sums.indptr)[wrong])]  # the shortest sum is the easiest to check
        total = cells[int(sums.indices[sums.indptr[row]])]
        raise InputError(
            f"{total.place} is not the sum of its parts; list every part that is not 0, or give decimals that all numbers have."
        )
    return sums


def _listed_contributors(cells: Sequence[Cell], index: CellIndex) -> tuple[tuple[Contributor, ...], int]:
    """Contributors revealed by a table without names: those who are alone in a cell, and both of two in a cell.

    Two cells, one inside the other, in which one of at most two contributors has the same part have the same contributor. Two cells with
    the same part that only cross each other have the same contributor if the number has `TELLING` units or more. Smaller numbers may be
    equal by chance, so both possibilities are considered: a contributor to one cell only, and a contributor to both. For zeros only the
    first is considered.
    """
    parts: dict[tuple[str, int], dict[int, bool]] = {}
    unknown = 0
    for number, cell in enumerate(cells):
        if cell.is_count or not cell.is_shown:
            continue
        if cell.frequency == 1:
            parts.setdefault((cell.measured, cell.value), {})[number] = True
        elif cell.frequency == 2 and not cell.is_negative:
            if not cell.largest:
                unknown += 1
                continue
            first = round(cell.largest[0])
            for part in (first, cell.value - first):
                parts.setdefault((cell.measured, part), {}).setdefault(number, False)
    found: dict[tuple[int, frozenset[int]], Contributor] = {}
    for (_, part), own in parts.items():
        for number, is_alone in own.items():
            nested = _nested_cells(number, own, index)
            crossing = {c for c in own if index.is_crossing(c, number)} | nested
            kind = "the only contributor" if is_alone else "one of two contributors"
            variants = [nested] if part == 0 else [crossing] if part >= TELLING else [nested, crossing]
            for known in map(frozenset, variants):
                if (part, known) not in found:
                    inside = {o: part for o in range(len(cells)) if any(index.is_inside(c, o) for c in known)}
                    alone = frozenset(c for c in known if own[c])
                    found[part, known] = Contributor(f"{kind} of {cells[number].place}", inside, alone)
    return tuple(found.values()), unknown


def _nested_cells(number: int, own: Mapping[int, bool], index: CellIndex) -> set[int]:
    """Cells of the same contributor: those inside a cell or around it, and so on through cells with a single contributor."""
    found, waiting = {number}, [number]
    while waiting:
        here = waiting.pop()
        near = {c for c in own if index.is_inside(c, here) or index.is_inside(here, c)} - found
        found |= near
        waiting += [c for c in near if own[c]]
    return found


# Tables from records ----------------------------------------------------------------------------------------------


def _from_records(
    options: ProtectOptions,
    data: Any,
    opening: Mapping[str, Any],
    folder: Path,
    run: Run,
    earlier: Sequence[Earlier],
) -> Loaded:
    before = _same_numbers(options, earlier)
    own_names = tuple(dict.fromkeys(name for table in options.tables for name in table.by))
    names = tuple(dict.fromkeys((*own_names, *(name for one in before for name in one.table["by"]))))
    variables = tuple(dict.fromkeys(table.value for table in options.tables if table.value is not None))
    extra = [name for name in (options.holding, options.request, options.sampling_weight) if name is not None]
    with open_source(data, **opening, run=run) as source:
        rows = read_text(source, [*names, *variables, *extra])
        columns = dict(zip([*names, *variables, *extra], zip(*rows, strict=True), strict=True))
        labels = {name: _labels(source, name, columns[name]) for name in names}
        seen = {name: sorted(set(labels[name])) for name in names}
        attributes = attributes_of(options, seen, folder)
        weights = _weights(source, options.sampling_weight, columns, len(rows))
        holdings = _holdings(source, options.holding, columns, len(rows))
        requesting = _requesting(source, options.request, columns, holdings)
        for name in own_names:
            _check_leaves(source, attributes[name], labels[name])
        for one in before:
            for attribute in one.attributes:
                _check_leaves(source, attribute, labels[attribute.name])
        numbers = {name: _numbers(source, name, columns[name], options, weights) for name in variables}
    index = CellIndex()
    cells: dict[int, Cell] = {}
    parts: dict[int, dict[int, tuple[int, float, float]]] = {}
    tables: list[LoadedTable] = []
    published: list[LoadedTable] = []
    listed = [
        *((table, axes_of(table, attributes)) for table in options.tables),
        *((one.options, one.axes) for one in before),
    ]
    every = {own.name: own for one in before for own in one.attributes} | attributes
    links = find_links(every, labels, [table.by for table, _ in listed])
    linked = {name: links.linked(own, every) for name, own in every.items()}

    def count(table: TableOptions, axes: Sequence[Axis]) -> LoadedTable:
        run.check()
        value, own, decimals = (
            numbers[table.value]
            if table.value
            else (np.ones(len(rows), dtype=np.int64), np.ones(len(rows)), 0)
        )
        if table.is_counts and weights is not None:
            value = np.rint(weights).astype(np.int64)
        by = [labels[name] for name in table.by]
        found = _record_table(table, axes, by, value, own, weights, holdings, decimals, index, cells, parts)
        for line in found.lines:
            mine = [abs(part) for holding, (_, part, _) in parts[line.cell].items() if holding in requesting]
            cells[line.cell].requested = max(mine, default=0.0)
        return found

    known = [
        (
            table,
            tuple(
                axis_of(links.linked(axis.attribute, every), table.depth.get(axis.attribute.name))
                for axis in axes
            ),
        )
        for table, axes in listed
    ]
    counted = [count(table, axes) for table, axes in known]
    tables, published = counted[: len(options.tables)], counted[len(options.tables) :]
    for one, shown in zip(before, published, strict=True):
        _mark_published(one, shown, cells, {line.cell for own in tables for line in own.lines})
    n_listed = len(index)
    wider = [(table, links.wider(table.name, axes, linked)) for table, axes in known]
    sums_too = [count(table, axes) for table, axes in wider if axes is not None]
    for number in range(n_listed, len(index)):
        cells[number].is_shown = False
    found = tuple(cells[number] for number in range(len(index)))
    return Loaded(
        cells=found,
        tables=tuple(tables),
        earlier=tuple(published),
        sums=_checked_sums([table.grid for table in (*counted, *sums_too)], found),
        contributors=_known_contributors(found, parts, n_listed),
        unknown_pairs=0,
        linked=links.pairs,
        dependent=links.doubts,
        near=links.near,
        has_records=True,
        index=index,
    )


@dataclass(frozen=True, slots=True)
class Earlier:
    """A protected table of an earlier release, in the form kept by the register (`release.disclosures.protected`), and where it was
    published."""

    table: Mapping[str, Any]
    name: str

    @property
    def options(self) -> TableOptions:
        table = self.table
        measured = str(table["quantity"]).split(" of ", 1)[1]
        return TableOptions(
            name=self.name,
            by=table["by"],
            value=table["value"],
            variable=measured,
            depth=table["depth"],
            negative=table["negative"],
        )

    @property
    def attributes(self) -> list[ColumnCodes]:
        found = []
        for name in self.table["by"]:
            codes = self.table["codes"][name]
            trees = tuple(
                Tree(codes["total"], {code: tuple(parts) for code, parts in tree.items()}, self.name)
                for tree in codes["trees"]
            )
            leaves = trees[0].leaves[codes["total"]]
            listed = codes["stands_for"]
            found.append(
                ColumnCodes(
                    name=name,
                    total=codes["total"],
                    trees=trees,
                    of=codes["of"],
                    stands_for={leaf: frozenset(listed.get(leaf, (leaf,))) for leaf in leaves},
                )
            )
        return found

    @property
    def axes(self) -> tuple[Axis, ...]:
        depth = self.table["depth"]
        return tuple(axis_of(attribute, depth.get(attribute.name)) for attribute in self.attributes)


def _same_numbers(options: ProtectOptions, earlier: Sequence[Earlier]) -> list[Earlier]:
    """Earlier tables of the variables that are measured now; they must have been protected in the same way."""
    quantities = {table.quantity for table in options.tables}
    columns = {table.value for table in options.tables}
    for one in earlier:
        if one.table["value"] in columns and one.table["quantity"] not in quantities:
            raise InputError(
                f'option --register: {one.name} has the same numbers of the records under the name "{one.options.measured}"; give variable '
                "that name.",
                option="--register",
            )
    found = [one for one in earlier if one.table["quantity"] in quantities]
    for one in found:
        if options.method != "hide" or one.table["method"] != "hide":
            raise InputError(
                f"option --register: {one.name} has numbers of the same variable, protected by method "
                f'"{one.table["method"]}", which cannot '
                f'be judged together with method "{options.method}"; publish another variable, or hide cells in both.',
                option="--register",
            )
    return found


def _mark_published(one: Earlier, table: LoadedTable, cells: dict[int, Cell], own: set[int]) -> None:
    """Mark numbers that an earlier release shows, because these can no longer be hidden; those that it hides are unknown to readers."""
    shown = {tuple(cell[:-1]): cell[-1] for cell in one.table["shown"]}
    lines = {line.labels: line.cell for line in table.lines}
    hidden = {tuple(cell) for cell in one.table["hidden"]}
    wrong = lines.keys() != shown.keys() | hidden
    scale = 10 ** max(0, cells[table.lines[0].cell].decimals - one.table["decimals"])
    if wrong or any(cells[lines[labels]].value != number * scale for labels, number in shown.items()):
        raise InputError(
            f"option --register: {one.name} has different numbers from these records; use the records, weights and codes of that "
            "publication.",
            option="--register",
        )
    for labels, number in lines.items():
        if labels in shown:
            cells[number].is_published_before = True
        elif number not in own:
            cells[number].is_shown = cells[number].is_published_before


def _bad_row(source: Source, name: str, position: int, problem: str) -> InputError:
    """The error for a value; `position` counts the records read, from 1, and `problem` has a placeholder for the row's number, {at}."""
    at = source.row_of(position)
    text = f'column "{name}" in {source.name}{problem.format(at=at)}.'
    return InputError(text, file=source.name, column=name, row=at)


def _labels(source: Source, name: str, column: Sequence[str | None]) -> list[str]:
    for row, label in enumerate(column, start=1):
        if label is None:
            problem = " has no value on row {at}; drop the row or give it a code"
            raise _bad_row(source, name, row, problem)
    return [str(label) for label in column]


def _weights(
    source: Source, name: str | None, columns: Mapping[str, Sequence[str | None]], n: int
) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    if name is None:
        return None
    found = np.ones(n)
    for row, text in enumerate(columns[name]):
        try:
            found[row] = float(text or "nan")
        except ValueError:
            found[row] = math.nan
        if not 1 <= found[row] < 1e9:
            raise _bad_row(source, name, row + 1, ": the sampling weight on row {at} must be at least 1")
    return found


def _holdings(source: Source, name: str | None, columns: Mapping[str, Sequence[str | None]], n: int) -> Ints:
    """A number for the holding to which each record belongs; a record without a holding is a holding of its own."""
    if name is None:
        return np.arange(n, dtype=np.int64)
    known: dict[str, int] = {}
    return np.array(
        [
            n + row if text is None else known.setdefault(text, len(known))
            for row, text in enumerate(columns[name])
        ],
        dtype=np.int64,
    )


ASKED = {"1": True, "yes": True, "true": True, "0": False, "no": False, "false": False, "": False}


def _requesting(
    source: Source, name: str | None, columns: Mapping[str, Sequence[str | None]], holdings: Ints
) -> frozenset[int]:
    """Contributors with a record that requests protection."""
    found = set()
    for position, text in enumerate(() if name is None else columns[name], start=1):
        answer = ASKED.get((text or "").strip().lower())
        if answer is None:
            raise _bad_row(source, str(name), position, " is neither yes nor no on row {at}")
        if answer:
            found.add(int(holdings[position - 1]))
    return frozenset(found)


def _check_leaves(source: Source, attribute: ColumnCodes, labels: Sequence[str]) -> None:
    """Refuse labels that are not leaves."""
    leaves = attribute.trees[0].leaves[attribute.total]
    for row, label in enumerate(labels, start=1):
        if label not in leaves:
            known = any(label in tree.leaves for tree in attribute.trees)
            where_it_is = "is a total of its hierarchy" if known else "is outside its hierarchy"
            problem = f": the code on row {{at}} {where_it_is}; records need codes of the last level"
            raise _bad_row(source, attribute.name, row, problem)


def _numbers(
    source: Source,
    name: str,
    column: Sequence[str | None],
    options: ProtectOptions,
    weights: np.ndarray[Any, np.dtype[np.float64]] | None,
) -> tuple[Ints, np.ndarray[Any, np.dtype[np.float64]], int]:
    """Weighted units of each record, its own contribution in units, and the decimals."""
    tables = [table for table in options.tables if table.value == name]
    is_negative = any(table.negative for table in tables)
    where_it_is = [table.decimals for table in tables if table.decimals is not None]
    decimals = (
        max(where_it_is)
        if where_it_is
        else max((_decimals_of(text) for text in column if text is not None), default=0)
    )
    value, own = np.zeros(len(column), dtype=np.int64), np.zeros(len(column))
    for row, text in enumerate(column):
        units = _units(text, decimals)
        problem = None
        if units is None:
            problem = "has no number, or one that is too large"
        elif units < 0 and not is_negative:
            problem = "is negative; set negative = true in its tables if that is allowed"
        if problem is not None:
            raise _bad_row(source, name, row + 1, f": row {{at}} {problem}")
        assert units is not None
        value[row] = units if weights is None else round(units * weights[row])
        own[row] = units
    if np.abs(value).astype(np.float64).sum() > LARGEST:
        raise InputError(
            f'column "{name}" in {source.name} has a total that is too large; give fewer decimals.',
            column=name,
        )
    return value, own, decimals


def _record_table(
    table: TableOptions,
    axes: Sequence[Axis],
    labels: Sequence[Sequence[str]],
    value: Ints,
    own: np.ndarray[Any, np.dtype[np.float64]],
    weights: np.ndarray[Any, np.dtype[np.float64]] | None,
    holdings: Ints,
    decimals: int,
    index: CellIndex,
    cells: dict[int, Cell],
    parts: dict[int, dict[int, tuple[int, float, float]]],
) -> LoadedTable:
    """Add up the records of a table at every combination of codes."""
    grid = np.full([len(axis.codes) for axis in axes], -1, dtype=np.int64)
    meanings = [index.meanings(axis) for axis in axes]
    above = [_above(axis) for axis in axes]
    amounts: dict[tuple[int, ...], dict[int, tuple[int, float, float]]] = {}
    for row in range(len(value)):
        weight = 1.0 if weights is None else float(weights[row])
        for places in product(*(one[label[row]] for one, label in zip(above, labels, strict=True))):
            mine = amounts.setdefault(places, {})
            before = mine.get(int(holdings[row]), (0, 0.0, 0.0))
            mine[int(holdings[row])] = (
                before[0] + int(value[row]),
                before[1] + float(own[row]),
                before[2] + abs(float(own[row])) * weight,
            )
    lines = []
    for places in sorted(amounts):
        number = index.number(
            table.quantity, [own_[place] for own_, place in zip(meanings, places, strict=True)]
        )
        grid[places] = number
        codes = tuple(axis.codes[place] for axis, place in zip(axes, places, strict=True))
        lines.append(Line(codes, number))
        mine = amounts[places]
        parts[number] = mine
        _keep(
            cells,
            number,
            Cell(
                value=sum(amount for amount, _, _ in mine.values()),
                decimals=decimals,
                measured=table.quantity,
                is_count=table.is_counts,
                is_negative=table.negative,
                frequency=len(mine),
                largest=() if table.is_counts else _expanded(mine.values()),
                place=f'table "{table.name}": a cell of the records',
            ),
        )
    return LoadedTable(
        options=table, grid=Grid(name=table.name, axes=tuple(axes), cells=grid), lines=tuple(lines)
    )


def _above(axis: Axis) -> dict[str, list[int]]:
    """Leaf of the attribute -> positions of the codes to which it belongs."""
    found: dict[str, list[int]] = {}
    attribute = axis.attribute
    for leaf, stands_for in attribute.stands_for.items():
        found[leaf] = [place for place, meaning in enumerate(axis.meanings) if stands_for <= meaning]
    return found


KEPT = 10
"""Maximum number of largest contributions that a rule can use."""


def _expanded(parts: Any) -> tuple[float, ...]:
    """The largest contributions, each repeated according to its weight; a fraction of one fills the last place."""
    listed = sorted(((abs(own), weighted) for _, own, weighted in parts), reverse=True)
    found: list[float] = []
    room = 0.0
    for size, weighted in listed:
        count = weighted / size if size else 1.0
        while count > 1e-9 and len(found) <= KEPT:
            taken = min(count, 1.0 - room)
            if room:
                found[-1] += taken * size
            else:
                found.append(taken * size)
            room = (room + taken) % 1.0
            room = 0.0 if room > 1 - 1e-9 or room < 1e-9 else room
            count -= taken
        if len(found) > KEPT:
            break
    return tuple(found[:KEPT])


def _known_contributors(
    cells: Sequence[Cell], parts: Mapping[int, Mapping[int, tuple[int, float, float]]], n_listed: int
) -> tuple[Contributor, ...]:
    """Every contributor who is alone, or one of two, in a cell that tables list, with their own part in every cell."""
    wanted: dict[tuple[str, int], str] = {}
    for number, cell in enumerate(cells[:n_listed]):
        if not cell.is_count and cell.frequency is not None and cell.frequency <= 2:
            for holding in parts[number]:
                wanted.setdefault((cell.measured, holding), cell.place)
    own: dict[tuple[str, int], dict[int, int]] = {key: {} for key in wanted}
    alone: dict[tuple[str, int], set[int]] = {key: set() for key in wanted}
    for number, cell in enumerate(cells):
        for holding, (_, part, _) in parts[number].items():
            key = cell.measured, holding
            if key in wanted and not cell.is_count:
                own[key][number] = math.floor(part)
                if len(parts[number]) == 1:
                    alone[key].add(number)
    return tuple(
        Contributor(f"contributor {place}", own[key], frozenset(alone[key]))
        for place, key in enumerate(wanted, start=1)
    )
