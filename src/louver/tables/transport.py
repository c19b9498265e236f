"""A published file of records as a transport: which of its records may be which people.

Records that look alike are one *kind*. For each kind and each cell of the file's columns that it allows there is an unknown: how many
records of the kind are people of the cell. Those of a kind add up to its records, those of a cell to its people, up to records that
were left out. Where somebody must have a label, because a set lists it or an interval ends there, the unknowns with it add up to at
least 1. Nothing else follows from the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from louver.optim.kernels.audit.propagate import UNBOUNDED
from louver.run import Run
from louver.tables.pieces import Domain
from louver.tables.solvers import feasible_point
from louver.tables.system import IntArray, System

__all__ = ["MOST_PAIRS", "FileRecords", "Listed", "Transport"]

MOST_PAIRS = 20_000
"""Kinds times cells they allow, beyond which a file is not asked about as a whole."""

START_EFFORT = 10.0
"""Deterministic seconds spent looking for people that the records may be."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Listed:
    """Labels of a column that somebody among some kinds has: all that a set lists, or both ends of an interval."""

    kinds: IntArray
    column: str
    codes: IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FileRecords:
    """The records of a file, by kind.

    Attributes
    ----------
    may_be : mapping of str to bool (kinds, labels)
        Labels that records of each kind may have, for each column; for a column that is not published, those of the people that the
        file is about.
    counts : int64 (kinds,)
    n_left_out : int
        People whom the file is about and who are not in it.
    about : mapping of str to bool (labels,)
        Labels of the people that the file is about, for columns by which they were chosen.
    listed : tuple of Listed
    is_in_margins : bool
        Whether the margins of the file say as much.
    """

    may_be: Mapping[str, NDArray[np.bool_]]
    counts: IntArray
    n_left_out: int
    about: Mapping[str, NDArray[np.bool_]]
    listed: tuple[Listed, ...]
    is_in_margins: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Transport:
    """Records over the cells of a domain.

    Attributes
    ----------
    assign : int64 (n_cells,)
        Cell of the file's columns for each joint cell; -1 for people whom the file is not about.
    kind, cell : int64 (pairs,)
        The unknowns: a kind and a cell that it allows.
    n_cells : int
        Cells of the file's columns.
    n_left_out : int
    matrix, lower, upper
        Rows over the unknowns: the records of each kind, and the labels that somebody must have.
    start : int64 (pairs,) or None
        People that the records may be, if the true counts are as they are.
    """

    assign: IntArray
    kind: IntArray
    cell: IntArray
    n_cells: int
    n_left_out: int
    matrix: csr_array
    lower: IntArray
    upper: IntArray
    start: IntArray | None = None

    @classmethod
    def of(cls, domain: Domain, records: FileRecords) -> Transport | None:
        """The transport over a domain; None where it has too many unknowns."""
        names = [attribute.name for attribute in domain.attributes]
        axes = [names.index(name) for name in records.may_be]
        allowed = [
            _by_class(may_be, domain.classes[axis], domain.shape[axis])
            for axis, may_be in zip(axes, records.may_be.values(), strict=True)
        ]
        n_pairs = np.ones(len(records.counts), dtype=np.float64)
        for one in allowed:
            n_pairs *= one.sum(axis=1)
        if n_pairs.sum() > MOST_PAIRS:
            return None
        shape = tuple(domain.shape[axis] for axis in axes)
        cells = [
            np.ravel_multi_index(np.ix_(*(np.flatnonzero(one[kind]) for one in allowed)), shape).ravel()
            for kind in range(len(records.counts))
        ]
        kind = np.repeat(np.arange(len(cells)), [len(found) for found in cells])
        cell = np.concatenate([np.zeros(0, dtype=np.int64), *cells])
        codes = np.unravel_index(cell, shape)
        class_of = dict(zip(records.may_be, codes, strict=True))
        rows = [_rows(kind, len(records.counts))]
        lower, upper = [records.counts], [records.counts]
        for pairs, least in _occurrences(domain, records, kind, class_of):
            rows.append(csr_array(pairs.astype(np.int64)[None, :]))
            lower.append(np.array([least]))
            upper.append(np.array([UNBOUNDED]))
        return cls(
            assign=_assigned(domain, axes, records),
            kind=kind,
            cell=cell,
            n_cells=int(np.prod(shape)),
            n_left_out=records.n_left_out,
            matrix=csr_array(vstack(rows, format="csr")),
            lower=np.concatenate(lower).astype(np.int64),
            upper=np.concatenate(upper).astype(np.int64),
        )

    @property
    def by_cell(self) -> csr_array:
        """Sums of the unknowns of each cell."""
        return _rows(self.cell, self.n_cells)

    def started(self, truth: IntArray, run: Run) -> Transport | None:
        """With people that the records may be; None if none are found."""
        inside = self.assign >= 0
        people = np.zeros(self.n_cells, dtype=np.int64)
        np.add.at(people, self.assign[inside], truth[inside])
        n_pairs = len(self.kind)
        system = System(
            matrix=csr_array(vstack([self.by_cell, self.matrix], format="csr")),
            row_lower=np.concatenate([np.maximum(0, people - self.n_left_out), self.lower]),
            row_upper=np.concatenate([people, self.upper]),
            lower=np.zeros(n_pairs, dtype=np.int64),
            upper=np.minimum(people[self.cell], self.upper[self.kind]),
        )
        found = feasible_point(system, START_EFFORT, run)
        if found.point is None or not system.holds(found.point):
            return None
        return replace(self, start=found.point)


def _by_class(may_be: NDArray[np.bool_], classes: IntArray, n_classes: int) -> NDArray[np.bool_]:
    found = np.zeros((len(may_be), n_classes), dtype=np.bool_)
    for code, number in enumerate(classes.tolist()):
        found[:, number] |= may_be[:, code]
    return found


def _rows(number: IntArray, n_rows: int) -> csr_array:
    """A row of ones for each number."""
    n_pairs = len(number)
    ones = np.ones(n_pairs, dtype=np.int64)
    return csr_array((ones, (number, np.arange(n_pairs))), shape=(n_rows, n_pairs))


def _occurrences(
    domain: Domain, records: FileRecords, kind: IntArray, class_of: Mapping[str, IntArray]
) -> Iterator[tuple[NDArray[np.bool_], int]]:
    """Unknowns with labels that somebody has, and how many different ones these are."""
    names = [attribute.name for attribute in domain.attributes]
    for listed in records.listed:
        is_kind = np.zeros(len(records.counts), dtype=np.bool_)
        is_kind[listed.kinds] = True
        classes = domain.classes[names.index(listed.column)]
        for number, n_labels in zip(*np.unique(classes[listed.codes], return_counts=True), strict=True):
            yield is_kind[kind] & (class_of[listed.column] == number), int(n_labels)


def _assigned(domain: Domain, axes: list[int], records: FileRecords) -> IntArray:
    total = np.zeros(domain.shape, dtype=np.int64)
    for axis in axes:
        total = total * domain.shape[axis] + _along(domain, axis, np.arange(domain.shape[axis]))
    is_inside = np.ones(domain.shape, dtype=np.bool_)
    names = [attribute.name for attribute in domain.attributes]
    for name, labels in records.about.items():
        axis = names.index(name)
        wanted = _by_class(labels[None, :], domain.classes[axis], domain.shape[axis])[0]
        is_inside &= _along(domain, axis, wanted)
    return np.where(is_inside, total, -1).ravel()


def _along(domain: Domain, axis: int, values: NDArray[Any]) -> NDArray[Any]:
    shape = [1] * len(domain.shape)
    shape[axis] = domain.shape[axis]
    return values.reshape(shape)
