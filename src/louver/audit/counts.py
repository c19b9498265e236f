"""Tables of counts: with totals, with cells hidden by a mark, rounded to a base.

A hidden cell is not an arbitrary number: everyone can see that empty cells are shown, and the rule that hides counts below a limit is not
secret. The audit assumes that readers know this.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from louver.audit.kind import CoarserTable, cell_of_line, fault, read_lines
from louver.audit.options import MAX_COUNT, AuditTableOptions
from louver.errors import InputError
from louver.optim.kernels.audit.propagate import UNBOUNDED
from louver.schema.attribute import Attribute
from louver.schema.recode import Recode
from louver.tables.pieces import Cross, Domain, Margin, Piece, cross_attributes
from louver.tables.system import IntArray

__all__ = ["HIDDEN", "Counts", "bounds_of_mark"]

COUNT = re.compile(r"[0-9]{1,13}(\.0*)?")

HIDDEN = -1
"""Code that represents a mark among the printed numbers of a table."""


class Counts:
    """The kind of tables of counts."""

    number = "count"
    number_type = pa.int64()

    def from_records(self, table: AuditTableOptions, cross: Cross, domain: Domain, truth: IntArray) -> Piece:
        """Counts, hidden where small or listed, or rounded."""
        margins = _margins(table, cross)
        return Piece(name=table.name, margins=_computed(table, margins, domain, truth))

    def from_file(
        self, table: AuditTableOptions, cross: Cross, domain: Domain, truth: IntArray | None, folder: str
    ) -> Piece:
        """Counts and marks as they were printed."""
        margins = _margins(table, cross)
        listed = _read(table, cross, margins, domain, folder)
        return Piece(name=table.name, margins=_checked(table, margins, listed, domain, truth))

    def lines(self, table: AuditTableOptions, piece: Piece, domain: Domain) -> Iterator[tuple[Any, ...]]:
        """One line per cell and total."""
        for margin in piece.margins:
            assert margin.printed is not None
            attributes = cross_attributes(margin.cross, domain.attributes)
            for attribute in attributes:
                if table.totals and table.total in attribute.labels:
                    raise InputError(
                        f'table "{table.name}" calls its totals "{table.total}", which is also a label of attribute "{attribute.name}"; '
                        "choose another name with total.",
                        option="tables",
                        column=attribute.name,
                    )
            sizes = [attribute.size for attribute in attributes]
            for cell in range(int(np.prod(sizes, dtype=np.int64))):
                labels = domain.labels(margin.cross, cell)
                if not all(labels.get(name) in (None, *kept) for name, kept in margin.cross.where.items()):
                    continue  # a label outside the table
                yield (
                    *(labels.get(name, table.total) for name in table.by),
                    None if margin.printed[cell] == HIDDEN else int(margin.printed[cell]),
                )

    def parameters(self, table: AuditTableOptions, piece: Piece) -> Mapping[str, int]:
        """Nothing is stated in addition."""
        return {}

    def coarser(self, piece: Piece, domain: Domain, truth: IntArray) -> Iterator[Sequence[CoarserTable]]:
        """For each attribute: its categories merged step by step, then the table without it; all counts are shown."""
        if not piece.margins:
            return
        cross = piece.margins[0].cross
        for attribute in cross_attributes(cross, domain.attributes):
            name = attribute.name
            crosses: list[tuple[Cross, str]] = []
            if name not in cross.where:
                own = domain.sums(cross.over((name,)), truth)
                crosses = [
                    (_merged(cross, domain, attribute, groups), f"with {name} merged: {_in_words(groups)}")
                    for groups in _groupings(attribute, own)
                ]
            if len(cross.by) > 1:
                fewer = tuple(other for other in cross.by if other != name)
                crosses.append((cross.over(fewer), f"without {name}"))
            yield [_coarser(piece.name, coarse, how, domain, truth) for coarse, how in crosses]


def _margins(table: AuditTableOptions, cross: Cross) -> list[Cross]:
    """The cross itself, and with totals every sum over some of its attributes, finest first."""
    if not table.totals:
        return [cross]
    sizes = range(len(cross.by), -1, -1)
    return [cross.over(by) for size in sizes for by in combinations(cross.by, size)]


def _computed(
    table: AuditTableOptions, crosses: Sequence[Cross], domain: Domain, truth: IntArray
) -> tuple[Margin, ...]:
    """The content of a table computed from the records: counts, hidden if small or listed, or rounded."""
    counts = [domain.sums(cross, truth) for cross in crosses]
    hidden = [_listed_as_hidden(table, cross, domain) for cross in crosses]
    if table.below is not None:
        hidden = [h | ((c > 0) & (c < table.below)) for h, c in zip(hidden, counts, strict=True)]
    mark = bounds_of_mark(table, np.concatenate([c[h] for h, c in zip(hidden, counts, strict=True)]))
    margins = []
    for cross, count, is_hidden in zip(crosses, counts, hidden, strict=True):
        if (is_hidden & ((count < mark[0]) | (count > mark[1]))).any():
            raise InputError(
                f'table "{table.name}": mark_range does not hold for every hidden count; widen it or leave it out.',
                option="mark_range",
            )
        lower = upper = printed = count
        if table.base is not None:
            printed = _nearest(count, table.base)
            lower, upper = _around(printed, table.base, is_random=False)
        if table.below is not None:
            lower, upper = bounds_of_shown(lower, upper, table.below)
        margins.append(_marked(cross, lower, upper, printed, is_hidden, mark))
    return tuple(margins)


def bounds_of_mark(table: AuditTableOptions, hidden: IntArray | None) -> tuple[int, int]:
    """Least and greatest value that a hidden cell of a table may have, for a reader who sees the same mark for all of them.

    Parameters
    ----------
    hidden : int64 or None
        True counts of all hidden cells of the table, totals included; None if the records are not known.

    Notes
    -----
    `mark_range` states it. Without it, a hidden cell is not empty if no empty cell is hidden, and below the limit if only cells below the
    limit are hidden.
    """
    if table.mark_range is not None:
        return table.mark_range
    if hidden is None or not hidden.all():
        return 0, UNBOUNDED
    if table.below is not None and (hidden < table.below).all():
        return 1, table.below - 1
    return 1, UNBOUNDED


def bounds_of_shown(lower: IntArray, upper: IntArray, below: int) -> tuple[IntArray, IntArray]:
    """Bounds of shown cells where counts from 1 to below the limit would be hidden: each is 0 or at least the limit."""
    is_empty = (lower == 0) & (upper < below)
    return np.where((lower > 0) & (lower < below), below, lower), np.where(is_empty, 0, upper)


def _marked(
    cross: Cross,
    lower: IntArray,
    upper: IntArray,
    printed: IntArray,
    is_hidden: NDArray[np.bool_],
    mark: tuple[int, int],
) -> Margin:
    return Margin(
        cross=cross,
        lower=np.where(is_hidden, mark[0], lower),
        upper=np.where(is_hidden, mark[1], upper),
        printed=np.where(is_hidden, HIDDEN, printed),
    )


def _listed_as_hidden(table: AuditTableOptions, cross: Cross, domain: Domain) -> NDArray[np.bool_]:
    """Cells of this margin that `hide` lists; an entry names a label for each attribute of its margin."""
    attributes = cross_attributes(cross, domain.attributes)
    is_hidden = np.zeros(prod(a.size for a in attributes), dtype=bool)
    for number, entry in enumerate(table.hide, start=1):
        place = f'table "{table.name}": entry {number} of hide'
        if not set(entry) <= set(table.by):
            raise InputError(f"{place} names an attribute that the table does not have.", option="hide")
        if set(entry) != set(table.by) and not table.totals:
            raise InputError(f"{place} names a total, but the table shows none; set totals.", option="hide")
        if set(entry) == set(cross.by):
            cell = 0
            for attribute in attributes:
                if not attribute.has_label(entry[attribute.name]):
                    raise InputError(
                        f'{place} names a label that "{attribute.name}" does not have; check its spelling.',
                        column=attribute.name,
                    )
                cell = cell * attribute.size + attribute.code_of(entry[attribute.name])
            is_hidden[cell] = True
    return is_hidden


def _nearest(counts: IntArray, base: int) -> IntArray:
    """Multiples of the base, halves up."""
    return (2 * counts + base) // (2 * base) * base


def _around(printed: IntArray, base: int, *, is_random: bool) -> tuple[IntArray, IntArray]:
    """Counts that may be printed as this number: within half a base, halves up; within less than a base if rounding was random."""
    below, above = (base - 1, base - 1) if is_random else (base // 2, (base - 1) // 2)
    return np.maximum(0, printed - below), printed + above


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _ReadMargin:
    """Numbers of one margin as listed in a file; `row` is 0 for cells that are not listed."""

    file: str
    table: str
    values: IntArray
    is_hidden: NDArray[np.bool_]
    row: IntArray

    def error(self, is_wrong: NDArray[np.bool_], problem: str) -> InputError:
        """An error about the first cell of a mask, located by its row in the file."""
        row = int(self.row[np.flatnonzero(is_wrong)[0]])
        place = f"row {row} of {self.file}" if row else f"a cell that {self.file} does not list"
        return InputError(
            f'table "{self.table}": {place} {problem}; check the file and how it was made.',
            file=self.file,
            row=row or None,
        )


def _read(
    table: AuditTableOptions, cross: Cross, margins: Sequence[Cross], domain: Domain, folder: str
) -> list[_ReadMargin]:
    """Read the cells of a table, and of its totals if it has them, in the order of `margins`."""
    where, rows = read_lines(table, cross, folder)
    attributes = cross_attributes(cross, domain.attributes)
    shape = {margin.by: prod(a.size for a in attributes if a.name in margin.by) for margin in margins}
    values = {by: np.zeros(size, dtype=np.int64) for by, size in shape.items()}
    hidden = {by: np.zeros(size, dtype=bool) for by, size in shape.items()}
    line = {by: np.zeros(size, dtype=np.int64) for by, size in shape.items()}
    for number, (*labels, text) in enumerate(rows, start=1):
        by, cell = cell_of_line(table, attributes, labels, where, number)
        if by not in shape:
            raise fault(table, where, number, "is a total, but totals is not set; set it or remove the row")
        if line[by][cell]:
            raise fault(table, where, number, f"repeats the cell of row {line[by][cell]}; remove one")
        line[by][cell] = number
        if text in table.mark or (text is None and "" in table.mark):
            hidden[by][cell] = True
        else:
            values[by][cell] = _count(table, text, where, number)
    for by in shape:
        _check_unlisted(table, by, line[by], hidden[by], where)
    return [
        _ReadMargin(file=where, table=table.name, values=values[m.by], is_hidden=hidden[m.by], row=line[m.by])
        for m in margins
    ]


def _count(table: AuditTableOptions, text: str | None, where: str, number: int) -> int:
    if text is None or not COUNT.fullmatch(text) or int(text.split(".")[0]) > MAX_COUNT:
        content = "is neither a count nor a mark; list all marks under mark"
        raise fault(table, where, number, f'has a number in "{table.value}" that {content}', table.value)
    return int(text.split(".")[0])


def _check_unlisted(
    table: AuditTableOptions, by: tuple[str, ...], line: IntArray, is_hidden: NDArray[np.bool_], where: str
) -> None:
    """Cells that a file leaves out are zero, hidden, or an error, as the options of the table state."""
    if (line > 0).all():
        return
    if table.unlisted is None:
        content = "some totals" if len(by) < len(table.by) else "some cells"
        raise InputError(
            f'table "{table.name}": {where} does not list {content}; set unlisted to "zero" or "hidden".',
            file=where,
        )
    if table.unlisted == "hidden":
        is_hidden[line == 0] = True


def _checked(
    table: AuditTableOptions,
    crosses: Sequence[Cross],
    listed: Sequence[_ReadMargin],
    domain: Domain,
    truth: IntArray | None,
) -> tuple[Margin, ...]:
    """The content of a file, checked against the records if they are known."""
    counts = None if truth is None else [domain.sums(cross, truth) for cross in crosses]
    hidden = None
    if counts is not None:
        hidden = np.concatenate([c[one.is_hidden] for c, one in zip(counts, listed, strict=True)])
    mark = bounds_of_mark(table, hidden)
    margins = []
    for number, (cross, one) in enumerate(zip(crosses, listed, strict=True)):
        lower = upper = one.values
        if table.base is not None:
            is_odd = ~one.is_hidden & (one.values % table.base != 0)
            if is_odd.any():
                raise one.error(is_odd, f"is not a multiple of the base {table.base}")
            lower, upper = _around(one.values, table.base, is_random=table.rounding == "random")
        margin = _marked(cross, lower, upper, one.values, one.is_hidden, mark)
        if counts is not None:
            is_wrong = (counts[number] < margin.lower) | (counts[number] > margin.upper)
            if is_wrong.any():
                raise one.error(is_wrong, "does not agree with the records")
        margins.append(margin)
    return tuple(margins)


def _groupings(attribute: Attribute, people: IntArray) -> Iterator[list[tuple[str, ...]]]:
    """Labels in groups, one group fewer each time: the group with the fewest people joins its smaller neighbour.

    If the labels have no order, any two are neighbours. A missing value remains separate.
    """
    kept = [code for code, label in enumerate(attribute.labels) if label != attribute.missing]
    groups = [([code], int(people[code])) for code in kept]
    while len(groups) > 2:
        if not attribute.is_ordered:
            groups.sort(key=lambda group: (group[1], group[0]))
        smallest = min(range(len(groups)), key=lambda place: groups[place][1])
        neighbours = [place for place in (smallest - 1, smallest + 1) if 0 <= place < len(groups)]
        other = min(neighbours, key=lambda place: groups[place][1])
        first, second = sorted((smallest, other))
        groups[first : second + 1] = [
            (sorted(groups[first][0] + groups[second][0]), groups[first][1] + groups[second][1])
        ]
        yield [tuple(attribute.labels[code] for code in codes) for codes, _ in groups if len(codes) > 1]


def _in_words(groups: list[tuple[str, ...]]) -> str:
    return "; ".join(" and ".join(group) for group in groups)


def _merged(cross: Cross, domain: Domain, attribute: Attribute, groups: list[tuple[str, ...]]) -> Cross:
    """The cross with labels of an attribute merged, in addition to its existing recode."""
    raw = domain.attribute(attribute.name)
    codes = np.arange(raw.size)
    if attribute.name in cross.recodes:
        codes = raw.recoded(cross.recodes[attribute.name])[1]
    new_label = {label: label for label in attribute.labels}
    new_label |= {label: " and ".join(group) for group in groups for label in group}
    merge: dict[str, list[str]] = {}
    for old, code in zip(raw.labels, codes, strict=True):
        merge.setdefault(new_label[attribute.labels[code]], []).append(old)
    recode = Recode(attribute.name, merge={new: tuple(old) for new, old in merge.items()})
    return Cross(by=cross.by, recodes={**cross.recodes, attribute.name: recode}, where=cross.where)


def _coarser(name: str, cross: Cross, how: str, domain: Domain, truth: IntArray) -> CoarserTable:
    counts = domain.sums(cross, truth)
    margin = Margin(cross=cross, lower=counts, upper=counts)
    return CoarserTable(Piece(name=name, margins=(margin,)), how, len(counts))
