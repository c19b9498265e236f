"""Hierarchies: trees of labels over the leaves of an attribute.

Level 0 contains the leaves, the last level the root. Hierarchies come from level columns, from a CSV file in the layout of ARX, or from the
prefixes of structured codes such as census GEOIDs.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import pairwise
from pathlib import Path

import numpy as np

from louver._arrays import Ints
from louver.errors import InputError
from louver.schema.validate import decode_text, read_bytes

__all__ = ["Hierarchy", "is_day"]

ROOT = "*"
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
HEADER = re.compile(r"level[ _]?\d+", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy:
    """A tree of labels; build one with `from_levels`, `from_csv` or `from_prefixes`.

    Parameters
    ----------
    columns : tuple of tuple of str
        For each level, from the leaves to the most general, the label above each leaf. A root `*` is added if the last level has more than
        one label.
    source : str
        Name of this hierarchy in messages: its file name if it has one.

    Examples
    --------
    >>> tree = Hierarchy.from_levels([["a1", "a2", "b1"], ["a", "a", "b"]])
    >>> tree.levels
    (('a1', 'a2', 'b1'), ('a', 'b'), ('*',))
    >>> tree.parents(0).tolist()
    [0, 0, 1]
    """

    columns: tuple[tuple[str, ...], ...]
    source: str = field(default="the hierarchy", compare=False)
    levels: tuple[tuple[str, ...], ...] = field(init=False, repr=False, compare=False)
    _ancestors: tuple[Ints, ...] = field(init=False, repr=False, compare=False)
    _parents: tuple[Ints, ...] = field(init=False, repr=False, compare=False)
    _leaf_codes: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._check_shape()
        if len(set(self.columns[-1])) > 1:
            root = (ROOT,) * len(self.columns[0])
            object.__setattr__(self, "columns", (*self.columns, root))
        numbered = [_number(column) for column in self.columns]
        object.__setattr__(self, "levels", tuple(labels for labels, _ in numbered))
        object.__setattr__(self, "_ancestors", tuple(codes for _, codes in numbered))
        self._check_leaves()
        parents = tuple(self._link(level) for level in range(len(self.columns) - 1))
        object.__setattr__(self, "_parents", parents)
        leaf_codes = {label: code for code, label in enumerate(self.leaves)}
        object.__setattr__(self, "_leaf_codes", leaf_codes)

    @classmethod
    def from_levels(cls, columns: Sequence[Sequence[str]], *, source: str = "the hierarchy") -> Hierarchy:
        """Build from one column per level, most specific first, one entry per leaf."""
        return cls(columns=tuple(tuple(column) for column in columns), source=source)

    @classmethod
    def from_csv(cls, path: str | Path) -> Hierarchy:
        """Read the ARX layout: one line per leaf, its labels from most specific to most general.

        Separator of fields `;` or `,`; a first line such as `level0,level1` is a header; the file may
        be compressed (`.gz`).
        """
        name = Path(path).name
        rows = _read_rows(path)
        if rows and all(HEADER.fullmatch(label) for label in rows[0]):
            rows = rows[1:]
        if not rows:
            raise InputError(f"{name} has no rows; write one line per leaf.", file=name)
        for number, row in enumerate(rows, start=1):
            if len(row) != len(rows[0]):
                message = f"{name}: row {number} does not have as many levels as row 1; every leaf needs all levels."
                raise InputError(message, file=name, row=number)
        return cls.from_levels(list(zip(*rows, strict=True)), source=name)

    @classmethod
    def from_prefixes(
        cls, codes: Sequence[str], lengths: Sequence[int], *, source: str = "the hierarchy"
    ) -> Hierarchy:
        """Build from codes whose leading characters name the regions above them.

        Parameters
        ----------
        codes : sequence of str
            The leaves.
        lengths : sequence of int
            Increasing prefix lengths, for instance (2, 5, 11, 12) for state, county, tract, block group.

        Examples
        --------
        >>> Hierarchy.from_prefixes(["44001", "44003"], (2, 5)).levels
        (('44001', '44003'), ('44',))
        """
        if not lengths or lengths[0] < 1 or any(a >= b for a, b in pairwise(lengths)):
            raise InputError(f"{source} needs prefix lengths that are positive and increasing.")
        for number, code in enumerate(codes, start=1):
            if len(code) < lengths[-1]:
                message = f"{source}: code {number} is shorter than the longest prefix; check the lengths."
                raise InputError(message, row=number)
        columns = [tuple(codes)]
        for length in reversed(lengths):
            column = tuple(code[:length] for code in codes)
            if column != columns[0]:
                columns.append(column)
        return cls.from_levels(columns, source=source)

    @classmethod
    def from_dates(cls, days: Sequence[str], *, source: str = "the hierarchy") -> Hierarchy:
        """Build from ISO days: months, quarters, years and decades above them, up to the first level with a single label.

        Examples
        --------
        >>> Hierarchy.from_dates(["2019-12-31", "2020-02-29", "2020-03-01"]).levels[1:]
        (('2019-12', '2020-02', '2020-03'), ('2019-Q4', '2020-Q1'), ('2019', '2020'), ('2010-2019', '2020-2029'), ('*',))
        """
        for number, day in enumerate(days, start=1):
            if not is_day(day):
                message = f"{source}: label {number} is not a day such as 2020-02-29; correct it."
                raise InputError(message, row=number)
        columns = [tuple(days)]
        for above in (_month, _quarter, _year, _decade):
            if len(set(columns[-1])) > 1:
                columns.append(tuple(map(above, days)))
        return cls.from_levels(columns, source=source)

    @property
    def n_levels(self) -> int:
        """Number of levels, including leaves and root."""
        return len(self.levels)

    @property
    def leaves(self) -> tuple[str, ...]:
        """Labels of level 0."""
        return self.levels[0]

    def labels_at(self, level: int) -> tuple[str, ...]:
        """Labels of a level, in the order of the leaves below them."""
        return self.levels[self._checked(level)]

    def parents(self, level: int) -> Ints:
        """Code at `level` -> code at `level + 1`; read-only."""
        self._checked(level + 1)
        return self._parents[self._checked(level)]

    def ancestors(self, level: int) -> Ints:
        """Leaf code -> code at `level`; read-only."""
        return self._ancestors[self._checked(level)]

    def leaf_codes(self, labels: Sequence[str]) -> Ints:
        """Codes of labels that must all be leaves."""
        return np.array([self._leaf_codes[label] for label in labels], np.int64)

    def has_leaf(self, label: str) -> bool:
        """Whether the tree has this leaf."""
        return label in self._leaf_codes

    def ancestor_of(self, leaf: str, level: int) -> str:
        """Label at `level` above a leaf."""
        if not self.has_leaf(leaf):
            raise InputError(f"{self.source} has no such leaf.", file=self.source)
        return self.columns[self._checked(level)][self._leaf_codes[leaf]]

    def above(self, level: int) -> Hierarchy:
        """The part of the tree from `level` up, whose leaves are the labels of that level."""
        first = np.unique(self.ancestors(level), return_index=True)[1]
        columns = [tuple(column[leaf] for leaf in first) for column in self.columns[level:]]
        return Hierarchy.from_levels(columns, source=self.source)

    def with_leaf(self, label: str) -> Hierarchy:
        """The tree with one more leaf, whose only ancestor is the root."""
        columns = [(*column, label) for column in self.columns]
        if self.columns[-1][0] == ROOT:
            columns[-1] = (*self.columns[-1], ROOT)
        return Hierarchy.from_levels(columns, source=self.source)

    def write_csv(self, path: str | Path) -> None:
        """Write the ARX layout, fields in quotes and separated by `;`.

        There is no header line, as in ARX, unless the first leaf would be mistaken for one.
        """
        rows = list(zip(*self.columns, strict=True))
        if all(HEADER.fullmatch(label) for label in rows[0]):
            rows.insert(0, tuple(f"level{level}" for level in range(self.n_levels)))
        with Path(path).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, delimiter=";", quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)

    def _check_shape(self) -> None:
        if not self.columns or not self.columns[0]:
            raise InputError(f"{self.source} has no leaves; it needs at least one.")
        for level, column in enumerate(self.columns):
            if len(column) != len(self.columns[0]):
                raise InputError(f"{self.source}: level {level} does not have as many entries as level 0.")
            if "" in column:
                row = column.index("") + 1
                message = (
                    f"{self.source}: row {row} has no label at level {level}; every leaf needs all levels."
                )
                raise InputError(message, file=self.source, row=row)

    def _check_leaves(self) -> None:
        """Refuse a leaf that appears on two rows."""
        # Codes count first appearances, so up to the first repeat they equal the positions.
        repeats = np.flatnonzero(self._ancestors[0] != np.arange(len(self.columns[0])))
        if repeats.size:
            row = int(repeats[0]) + 1
            message = f"{self.source}: row {row} repeats the leaf of an earlier row; list every leaf once."
            raise InputError(message, file=self.source, row=row)

    def _link(self, level: int) -> Ints:
        """Parent of each label of `level`, which must be the same for all leaves below it."""
        child, above = self._ancestors[level], self._ancestors[level + 1]
        parents = np.empty(len(self.levels[level]), dtype=np.int64)
        parents[child[::-1]] = above[::-1]  # written in reverse, so that the first leaf of a label wins
        wrong = np.flatnonzero(parents[child] != above)
        if wrong.size:
            row = int(wrong[0]) + 1
            message = (
                f"{self.source}: row {row} puts its label of level {level} under a different label of level {level + 1} than an earlier "
                "row; a label has one parent."
            )
            raise InputError(message, file=self.source, row=row)
        parents.flags.writeable = False
        return parents

    def _checked(self, level: int) -> int:
        if not 0 <= level < self.n_levels:
            raise InputError(f"{self.source} has levels 0 to {self.n_levels - 1}; choose one of them.")
        return level


def is_day(text: str) -> bool:
    """Whether a text is a valid calendar date in ISO format."""
    try:
        return DAY.fullmatch(text) is not None and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _month(day: str) -> str:
    return day[:7]


def _quarter(day: str) -> str:
    return f"{day[:4]}-Q{(int(day[5:7]) + 2) // 3}"


def _year(day: str) -> str:
    return day[:4]


def _decade(day: str) -> str:
    return f"{day[:3]}0-{day[:3]}9"


def _number(column: Sequence[str]) -> tuple[tuple[str, ...], Ints]:
    """Distinct labels by first appearance, and the code of each entry."""
    order: dict[str, int] = {}
    codes = np.array([order.setdefault(label, len(order)) for label in column], dtype=np.int64)
    codes.flags.writeable = False
    return tuple(order), codes


def _read_rows(path: str | Path) -> list[list[str]]:
    """Fields of every non-blank line; the separator is the one that splits the first line into most fields."""
    name = Path(path).name
    data = read_bytes(path)
    if name.endswith(".gz"):
        data = _decompress(data, name)
    text = decode_text(data, name)
    try:
        readings = [
            [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if row]
            for separator in ";,\t"
        ]
    except csv.Error:
        readings = []
    if not readings:
        raise InputError(f"{name} cannot be read as separated text; check its quotes.", file=name)
    return max(readings, key=lambda rows: len(rows[0]) if rows else 0)


def _decompress(data: bytes, name: str) -> bytes:
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error):
        pass
    raise InputError(f"{name} is not a gzip file or ends early; check how it was made.", file=name)
