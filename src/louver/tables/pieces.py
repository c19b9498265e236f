"""What is published: counts of a cross, row conditionals, statements about a sum.

A piece says which cells it is about (a `Cross`), and after `load` also what it tells about them. Nothing here knows of the
other pieces.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from louver.schema.recode import Recode
from louver.tables.system import IntArray

__all__ = ["Cross", "Margin", "Piece", "Shares"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cross:
    """The cells of some attributes, each perhaps recoded, among the records that a filter lets through.

    Attributes
    ----------
    by : tuple of str
        Attributes; none for a single sum.
    recodes : mapping of str to Recode
        Of attributes of `by` or `where`.
    where : mapping of str to tuple of str
        Labels that are let through, after the recode.
    """

    by: tuple[str, ...]
    recodes: Mapping[str, Recode] = field(default_factory=dict)
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """All attributes that it speaks of."""
        return tuple(dict.fromkeys((*self.by, *self.where)))

    def over(self, by: tuple[str, ...]) -> Cross:
        """The same records, crossed by other attributes."""
        return Cross(by=by, recodes=self.recodes, where=self.where)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Margin:
    """Bounds that a piece gives for every cell of a cross, in mixed-radix order of its labels.

    Attributes
    ----------
    lower, upper : int64 (cells,)
        What the printed number or the mark tells; `UNBOUNDED` where nothing bounds a cell.
    printed : int64 (cells,) or None
        The numbers of a table, `marks.HIDDEN` where a mark stands; None where it is not printed as a table.
    """

    cross: Cross
    lower: IntArray
    upper: IntArray
    printed: IntArray | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shares:
    """Row conditionals of a cross.

    Attributes
    ----------
    cross : Cross
        By the attributes of the rows, then those of the columns.
    n_cols : int
        Cells of one row.
    printed : int64 (rows, n_cols)
        Reduced counts where shares are exact; otherwise shares in units of the last decimal. A row of zeros holds nobody.
    decimals : int or None
        None where shares are exact.
    is_half_even : bool
    is_empty : bool array (rows,)
        Rows published as empty.
    """

    cross: Cross
    n_cols: int
    printed: IntArray
    decimals: int | None
    is_half_even: bool
    is_empty: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Piece:
    """One published thing: its name, and all it tells; `is_file` for records that were published before."""

    name: str
    margins: tuple[Margin, ...] = ()
    shares: tuple[Shares, ...] = ()
    is_file: bool = False

    @property
    def crosses(self) -> tuple[Cross, ...]:
        return (*(margin.cross for margin in self.margins), *(shares.cross for shares in self.shares))
