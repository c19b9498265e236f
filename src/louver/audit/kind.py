"""A kind of published table: what it says about the joint cells, how it is published, and how it is coarsened.

The kinds are in `counts.py` and `shares.py`; `load.KINDS` lists them. The content of a kind is expressed in parts (`louver.tables.pieces`),
which the system of equations, the register and the explanations use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from louver.audit.options import AuditTableOptions
from louver.data.read import open_source
from louver.data.tabulate import read_text
from louver.errors import InputError
from louver.schema.attribute import Attribute
from louver.tables.pieces import Cross, Domain, Piece
from louver.tables.system import IntArray

__all__ = ["CoarserTable", "TableKind", "cell_of_line", "fault", "read_lines"]


@dataclass(frozen=True, slots=True)
class CoarserTable:
    """A coarser form of a table, how to obtain it in words, and its number of cells."""

    piece: Piece
    how: str
    n_cells: int


class TableKind(Protocol):
    """One kind of table.

    Attributes
    ----------
    number : str
        Name of its column of numbers in a release.
    number_type : pyarrow.DataType
    """

    number: str
    number_type: pa.DataType

    def from_records(self, table: AuditTableOptions, cross: Cross, domain: Domain, truth: IntArray) -> Piece:
        """The content of the table, computed from the true counts (n_cells,) of the joint cells."""

    def from_file(
        self, table: AuditTableOptions, cross: Cross, domain: Domain, truth: IntArray | None, folder: str
    ) -> Piece:
        """The content of the table as it was published, checked against the records if they are known."""

    def lines(self, table: AuditTableOptions, piece: Piece, domain: Domain) -> Iterator[tuple[Any, ...]]:
        """The lines of the published table: a label of each attribute, and the number; None if it is hidden."""

    def parameters(self, table: AuditTableOptions, piece: Piece) -> Mapping[str, int]:
        """Entries of the manifest about the table, in addition to its description."""

    def coarser(self, piece: Piece, domain: Domain, truth: IntArray) -> Iterator[Sequence[CoarserTable]]:
        """Coarser forms of the table: chains in which no form discloses more than the one before it."""


# Tables as they were published: one line per cell, labels in the columns of the attributes, a number or a mark in one column. -----------


def read_lines(
    table: AuditTableOptions, cross: Cross, folder: str
) -> tuple[str, list[tuple[str | None, ...]]]:
    """Name of the file, and the labels and number of each line as text."""
    assert table.file is not None
    path = Path(folder) / table.file
    with open_source(path) as source:
        for name in (*cross.by, table.value):
            source.check_column(name)
        return source.name, read_text(source, [*cross.by, table.value])


def cell_of_line(
    table: AuditTableOptions,
    attributes: Sequence[Attribute],
    labels: Sequence[str | None],
    where: str,
    number: int,
) -> tuple[tuple[str, ...], int]:
    """The attributes that a line crosses (the others are totals), and its cell in that cross."""
    by, cell = [], 0
    for attribute, label in zip(attributes, labels, strict=True):
        if label is not None and attribute.has_label(label):
            by.append(attribute.name)
            cell = cell * attribute.size + attribute.code_of(label)
        elif label != table.total or table.kind == "shares":
            raise fault(
                table,
                where,
                number,
                f'has a label that "{attribute.name}" does not have; check its spelling',
                attribute.name,
            )
    return tuple(by), cell


def fault(
    table: AuditTableOptions, where: str, number: int, problem: str, column: str | None = None
) -> InputError:
    """A message about one line of a table's file."""
    return InputError(
        f'table "{table.name}": row {number} of {where} {problem}.', file=where, row=number, column=column
    )
