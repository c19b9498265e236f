"""A multi-way table arranged as rows of conditionals, and the reduced counts of its rows.

Wright & Smucker (2014), sections 2 and 4.2-4.3: some attributes form the rows, some the columns, and the others are summed over; each row
is published as its conditional frequencies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import prod

import numpy as np

from louver._arrays import Bools, Ints
from louver.data.histogram import Histogram
from louver.errors import InputError
from louver.optim.kernels.semigroups.reduced_rows import reduced_rows
from louver.schema.attribute import Attribute
from louver.schema.recode import Recode

__all__ = [
    "Arrangement",
    "Runs",
    "TwoWayTable",
    "ZeroRows",
    "arrange",
    "check_size",
    "mixed_radix",
    "values_in_runs",
]

MAX_CELLS = 20_000_000
"""Largest rows x columns of a table; a larger audit would not fit in memory."""


Runs = list[tuple[int, int, int]]
"""Values of a cell as runs: first value, last value and step of each."""


def values_in_runs(runs: Ints, span: Ints) -> Ints:
    """Number of values in the runs from span[..., 0] to span[..., 1]; (k, 3) runs of first, last and step."""
    sizes = (runs[:, 1] - runs[:, 0]) // runs[:, 2].clip(1) + 1
    ends = np.concatenate([[0], np.cumsum(sizes)])
    n_values: Ints = ends[span[..., 1]] - ends[span[..., 0]]
    return n_values


OTHER = "Other"
"""Label of the row that holds all rows with a zero cell."""


class ZeroRows(StrEnum):
    """What to do with rows that have a zero cell (section 4.2)."""

    KEEP = "keep"
    DROP = "drop"
    MERGE = "merge"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrangement:
    """Which attributes are rows and which are columns, after which recodes; the rest are summed over."""

    rows: tuple[str, ...]
    cols: tuple[str, ...]
    recodes: tuple[Recode, ...] = ()
    name: str = ""

    def __post_init__(self) -> None:
        for option, names in (("--rows", self.rows), ("--cols", self.cols)):
            if not names:
                raise InputError(f"option {option} is empty; name at least one column.", option=option)
            for name in names:
                if names.count(name) > 1:
                    raise InputError(
                        f'option {option} names column "{name}" twice.', option=option, column=name
                    )
        for name in self.rows:
            if name in self.cols:
                raise InputError(
                    f'column "{name}" is in both --rows and --cols; keep it in one of them.',
                    option="--cols",
                    column=name,
                )

    @property
    def label(self) -> str:
        """The name, or "rows | columns" with a star after recoded attributes."""
        recoded = {recode.attribute for recode in self.recodes}
        starred = [
            ", ".join(name + "*" if name in recoded else name for name in names)
            for names in (self.rows, self.cols)
        ]
        return self.name or " | ".join(starred)


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoWayTable:
    """The nonzero rows of an arrangement.

    Attributes
    ----------
    row_index : int64 (n,)
        Mixed-radix index of each nonzero row among all label combinations, ascending. The row "Other" of
        `ZeroRows.MERGE`, when there is one, is the last and has index -1.
    counts : int64 (n, J)
        Observed counts, or any counts with the published conditionals.
    n : int
        The publicly known sample size.
    possible : bool (I, J) or None
        False where a structural zero makes a cell impossible; None if there are no structural zeros. A row
        "Other" has one more line here, the last.
    dropped_rows : int
        Rows with a zero cell that were dropped or merged.
    published : int64 (n, J) or None
        Rounded conditionals as read, in units of the last decimal, if no counts are known.
    row_totals : int64 (n,) or None
        Totals published with the conditionals.
    printed_decimals : int or None
        Largest number of decimals with which a conditional assumed to be exact was printed; None if there were none.
    """

    row_attributes: tuple[Attribute, ...]
    col_attributes: tuple[Attribute, ...]
    row_index: Ints
    counts: Ints
    n: int
    possible: Bools | None = None
    dropped_rows: int = 0
    published: Ints | None = None
    row_totals: Ints | None = None
    printed_decimals: int | None = None

    @property
    def n_label_rows(self) -> int:
        """Label combinations of the row attributes, impossible and dropped ones included."""
        return prod(attribute.size for attribute in self.row_attributes)

    @property
    def n_cols(self) -> int:
        return int(self.counts.shape[1])

    @property
    def n_rows(self) -> int:
        """Rows of the published table: zero rows count, impossible and dropped rows do not."""
        other = int(bool(self.row_index.size) and self.row_index[-1] < 0)
        return self.n_label_rows - self.n_impossible_rows - self.dropped_rows + other

    @property
    def n_impossible_rows(self) -> int:
        return 0 if self.possible is None else int((~self.possible.any(axis=1)).sum())

    @property
    def n_zero_rows(self) -> int:
        return self.n_rows - len(self.counts)

    def reduced(self) -> Ints:
        """Reduced counts r_ij = o_ij / gcd of the row (section 2)."""
        reduced: Ints = reduced_rows(self.counts)[0]
        return reduced

    def row_labels(self, index: int) -> dict[str, str]:
        """The labels of the row with this mixed-radix index."""
        return _labels(self.row_attributes, index) if index >= 0 else dict.fromkeys(self._row_names, OTHER)

    def col_labels(self, index: int) -> dict[str, str]:
        return _labels(self.col_attributes, index)

    @property
    def _row_names(self) -> list[str]:
        return [attribute.name for attribute in self.row_attributes]


def arrange(
    histogram: Histogram,
    arrangement: Arrangement,
    *,
    structural_zeros: Sequence[Mapping[str, Sequence[str]]] = (),
    zero_rows: ZeroRows = ZeroRows.KEEP,
) -> TwoWayTable:
    """Arrange a histogram as a two-way table.

    Parameters
    ----------
    histogram : Histogram
    arrangement : Arrangement
    structural_zeros : sequence of mappings
        Attribute -> labels that cannot occur together; such cells count neither as zero cells nor as zero rows.
    zero_rows : {"keep", "drop", "merge"}
        Whether rows with a zero cell are kept, dropped with their people (as in tables H-J of section 4.2), or merged into one last row
        "Other".

    Notes
    -----
    Implements: Wright & Smucker (2014), sections 2 and 4.2.
    """
    names = (*arrangement.rows, *arrangement.cols)
    kept = histogram.marginalise(names).recode(*_relevant(arrangement.recodes, names))
    n_row_names = len(arrangement.rows)
    row_attributes, col_attributes = kept.attributes[:n_row_names], kept.attributes[n_row_names:]
    n_rows, n_cols = (prod(a.size for a in part) for part in (row_attributes, col_attributes))
    check_size(n_rows, n_cols)
    row_of = mixed_radix(kept.codes[:, :n_row_names], row_attributes)
    col_of = mixed_radix(kept.codes[:, n_row_names:], col_attributes)
    row_index, position = np.unique(row_of, return_inverse=True)
    counts = np.zeros((row_index.size, n_cols), dtype=np.int64)
    counts[position, col_of] = kept.counts
    table = TwoWayTable(
        row_attributes=row_attributes,
        col_attributes=col_attributes,
        row_index=row_index,
        counts=counts,
        n=int(counts.sum()),
        possible=_possible_cells(structural_zeros, histogram, arrangement, row_attributes, col_attributes),
    )
    return table if zero_rows == ZeroRows.KEEP else _without_zero_rows(table, zero_rows)


def check_size(n_rows: int, n_cols: int) -> None:
    """Refuse a table that would not fit in memory."""
    if n_rows * n_cols > MAX_CELLS:
        raise InputError(
            f"the arrangement has {n_rows} x {n_cols} cells, more than {MAX_CELLS}; use fewer attributes or merge "
            "categories.",
            option="--rows",
        )


def _relevant(recodes: Sequence[Recode], names: Sequence[str]) -> list[Recode]:
    return [recode for recode in recodes if recode.attribute in names]


def mixed_radix(codes: Ints, attributes: Sequence[Attribute]) -> Ints:
    """One number for each combination of labels, the last attribute's varying fastest."""
    if prod(attribute.size for attribute in attributes) >= 1 << 63:
        raise InputError(
            "the attributes have too many combinations of labels to be numbered; use fewer, or merge categories.",
            option="--rows",
        )
    index = np.zeros(codes.shape[0], dtype=np.int64)
    for column, attribute in enumerate(attributes):
        index *= attribute.size
        index += codes[:, column]
    return index


def _labels(attributes: Sequence[Attribute], index: int) -> dict[str, str]:
    labels: dict[str, str] = {}
    for attribute in reversed(attributes):
        index, code = divmod(index, attribute.size)
        labels[attribute.name] = attribute.labels[code]
    return dict(reversed(labels.items()))


def _without_zero_rows(table: TwoWayTable, zero_rows: ZeroRows) -> TwoWayTable:
    """Drop rows with a zero cell, or merge them into one row; all-zero rows contain no people and are always dropped.

    A cell that cannot occur does not count as a zero cell.
    """
    possible = table.possible
    shown = np.ones(table.counts.shape, dtype=bool) if possible is None else possible[table.row_index]
    full = ((table.counts > 0) | ~shown).all(axis=1)
    counts, row_index = table.counts[full], table.row_index[full]
    if zero_rows == ZeroRows.MERGE and not full.all():
        counts = np.vstack([counts, table.counts[~full].sum(axis=0, keepdims=True)])
        row_index = np.append(row_index, -1)
        if possible is not None:
            merged = np.delete(possible, table.row_index[full], axis=0)
            possible = np.vstack([possible, merged.any(axis=0, keepdims=True)])
    if not counts.size:
        raise InputError(
            "every row has a zero cell, so --drop-zero-rows leaves no table.", option="--drop-zero-rows"
        )
    return TwoWayTable(
        row_attributes=table.row_attributes,
        col_attributes=table.col_attributes,
        row_index=row_index,
        counts=counts,
        n=int(counts.sum()),
        possible=possible,
        dropped_rows=table.n_label_rows - table.n_impossible_rows - int(full.sum()),
    )


def _possible_cells(
    structural_zeros: Sequence[Mapping[str, Sequence[str]]],
    histogram: Histogram,
    arrangement: Arrangement,
    row_attributes: Sequence[Attribute],
    col_attributes: Sequence[Attribute],
) -> Bools | None:
    """Cells that structural zeros leave possible.

    A recoded label is impossible only if every label merged into it is; a zero that involves an attribute
    summed over has no effect here.
    """
    if not structural_zeros:
        return None
    shown = {attribute.name: attribute for attribute in (*row_attributes, *col_attributes)}
    before = [histogram.attribute(name) for name in shown]
    impossible = np.zeros(tuple(attribute.size for attribute in before), dtype=bool)
    for zero in structural_zeros:
        if set(zero) <= set(shown):
            chosen = [
                [a.code_of(label) for label in zero[a.name]] if a.name in zero else range(a.size)
                for a in before
            ]
            impossible[np.ix_(*chosen)] = True
    recodes = {recode.attribute: recode for recode in arrangement.recodes}
    for axis, attribute in enumerate(before):
        if attribute.name in recodes:
            new_codes = attribute.recoded(recodes[attribute.name])[1]
            merged = [
                impossible.compress(new_codes == code, axis=axis).all(axis=axis)
                for code in range(shown[attribute.name].size)
            ]
            impossible = np.stack(merged, axis=axis)
    return ~impossible.reshape(prod(attribute.size for attribute in row_attributes), -1)
