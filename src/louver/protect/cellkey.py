"""Cell keys: counts with noise that belongs to the set of counted records, so that the same cell always has the same noise.

Every record has a key, a hash of its person under the register's secret (`data.keyed_counts`). The sum of the keys of a cell, hashed again
under the secret, is a number below 2^20, and the perturbation table states which noise this number selects for a count of this size. A cell
without records remains 0. Every cell is changed independently, so totals are not the sums of their parts.

This is not differential privacy: noise is bounded, there is no budget, and readers can average it away if many published numbers depend on
one count. `average` does what such readers do (Asghar & Kaafar 2019): each sum of parts and each difference from a total is another
estimate of a count, whose noise is independent unless the cells are the same. It forecasts how often the rounded weighted mean of all of
them is correct, and compares with how often it is.

Notes
-----
**Implements**: Fraser & Wooton (2005); Thompson, Broadfoot & Elazar (2013), "Methodology for the automatic confidentialisation of
statistical outputs from remote servers at the Australian Bureau of Statistics". The claim, what is not claimed and pseudocode: decision
0095. **Departs**: the sum of keys is hashed before it chooses the noise, so that the noise of a cell and the noise of its parts are not
      linked by a sum. **Cost**: a hash for every record and every distinct cell; memory for all combinations of codes of a table.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

from louver._arrays import Bools, Floats, Ints
from louver.data.coding import find_row, text_sql
from louver.data.keyed_counts import KeyedCounts, keyed_counts
from louver.data.read import Source, open_source
from louver.errors import InputError
from louver.protect.cells import Axis, ColumnCodes
from louver.protect.load import Earlier, attributes_of, axes_of
from louver.protect.noise_table import KEY_VALUES, NoiseTable, build_noise_table, check_safe, read_noise_table
from louver.protect.options import ProtectOptions, TableOptions
from louver.run import Run
from louver.schema.request import Request

__all__ = ["SURE", "Averaging", "KeyedTable", "average", "count_with_keys", "noise_table_of", "smallest_safe"]

Keys = NDArray[np.uint64]

VARIANCE, MOST = 2.0, 5
SMALL = 5
"""Counts below this are small unless a rule sets another limit."""

SURE = 0.95
"""Share of correct answers above which averaging is considered to reveal a count."""

RECORDS, CELLS = b"keys of records", b"keys of cells"
"""Purposes of the two secrets derived from the register's secret."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeyedTable:
    """A table of counts: an array of every number by the codes of its axes.

    Attributes
    ----------
    counts, noisy : int64 arrays
    keys : uint64 array
        Sums of record keys.
    """

    options: TableOptions
    axes: tuple[Axis, ...]
    counts: Ints
    noisy: Ints
    keys: Keys


def smallest_safe(options: ProtectOptions) -> int:
    """Counts below this are small."""
    return max((rule.minimum for rule in options.rules if rule.minimum is not None), default=SMALL)


def noise_table_of(options: ProtectOptions, folder: Path) -> NoiseTable:
    """The noise table that the options name or describe, which must be safe."""
    if options.noise_table is not None:
        table, option = read_noise_table(folder / options.noise_table), "--noise-table"
    else:
        table, option = (
            build_noise_table(options.variance or VARIANCE, options.max_noise or MOST),
            "--max-noise",
        )
    check_safe(table, smallest_safe(options), option)
    return table


def count_with_keys(
    request: Request[ProtectOptions],
    folder: Path,
    secret: bytes,
    noise: NoiseTable,
    earlier: Sequence[Earlier] = (),
) -> tuple[list[KeyedTable], list[KeyedTable]]:
    """Count the records of every table and add noise.

    Parameters
    ----------
    earlier : sequence of Earlier
        Tables with cell keys that were published before; they are counted again and have the same noise.

    Returns
    -------
    tables, before : lists of KeyedTable
    """
    options, run = request.options, request.run
    assert options.person is not None
    records, cells = (hmac.digest(secret, purpose, "sha256") for purpose in (RECORDS, CELLS))
    by_table = [*(table.by for table in options.tables), *(tuple(one.table["by"]) for one in earlier)]
    with open_source(request.data, **request.source.opening(), run=run) as source:
        found = list(keyed_counts(source, by_table, options.person, records.hex()))
        seen: dict[str, set[str]] = {}
        for names, counted in zip(by_table, found, strict=True):
            for name, labels in zip(names, counted.labels, strict=True):
                seen.setdefault(name, set()).update(labels)
        attributes = attributes_of(options, {name: sorted(labels) for name, labels in seen.items()}, folder)
        for attribute in (*attributes.values(), *(own for one in earlier for own in one.attributes)):
            _check_leaves(source, attribute, seen[attribute.name])
    listed = [(table, axes_of(table, attributes)) for table in options.tables]
    listed += [(one.options, one.axes) for one in earlier]
    tables: list[KeyedTable] = []
    for (table, axes), counted in zip(listed, found, strict=True):
        run.report("adding noise", len(tables), len(listed))
        counts, keys = _all_codes(axes, counted)
        drawn = noise.noise(counts.ravel(), _key_values(keys.ravel(), cells, run)).reshape(counts.shape)
        tables.append(KeyedTable(options=table, axes=axes, counts=counts, noisy=counts + drawn, keys=keys))
    return tables[: len(options.tables)], tables[len(options.tables) :]


def _check_leaves(source: Source, attribute: ColumnCodes, labels: Collection[str]) -> None:
    """Refuse records with codes above the last level."""
    strange = next((label for label in sorted(labels) if label not in attribute.stands_for), None)
    if strange is not None:
        name = attribute.name
        row = find_row(source, f"{text_sql(source, name)} = $code", code=strange)
        raise InputError(
            f'column "{name}" in {source.name}: the code on row {row} is a total of its hierarchy or outside it; records need codes of the '
            "last level.",
            file=source.name,
            column=name,
            row=row,
        )


def _all_codes(axes: Sequence[Axis], counted: KeyedCounts) -> tuple[Ints, Keys]:
    """Counts and sums of keys at every combination of codes, from those of the finest combinations that occur."""
    members = [_members(axis) for axis in axes]
    places = tuple(
        np.array([leaves[label] for label in labels], dtype=np.int64)
        for (leaves, _), labels in zip(members, counted.labels, strict=True)
    )
    shape = [len(leaves) for leaves, _ in members]
    counts, keys = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.uint64)
    counts[places], keys[places] = counted.counts, counted.keys
    for number, (_, below) in enumerate(members):
        counts, keys = (
            np.stack([np.moveaxis(array, number, 0)[rows].sum(axis=0, dtype=array.dtype) for rows in below])
            for array in (counts, keys)
        )
        counts, keys = np.moveaxis(counts, 0, number), np.moveaxis(keys, 0, number)
    return np.ascontiguousarray(counts), np.ascontiguousarray(keys)


def _members(axis: Axis) -> tuple[dict[str, int], list[Ints]]:
    """A place for each leaf of the column, and the places of the leaves below each code."""
    stands_for = axis.attribute.stands_for
    leaves = {leaf: place for place, leaf in enumerate(sorted(stands_for))}
    below = [
        np.array([leaves[leaf] for leaf in leaves if stands_for[leaf] <= meaning], dtype=np.int64)
        for meaning in axis.meanings
    ]
    return leaves, below


def _key_values(keys: Keys, secret: bytes, run: Run) -> Ints:
    """A number below `KEY_VALUES` for each sum of keys."""
    different, inverse = np.unique(keys, return_inverse=True)
    values = np.empty(len(different), dtype=np.int64)
    for place, key in enumerate(different.tolist()):
        if not place % 65_536:
            run.check()
        digest = hashlib.sha256(secret + key.to_bytes(8, "big")).digest()
        values[place] = int.from_bytes(digest[:8], "big") % KEY_VALUES
    return values[inverse]


# Averaging by readers -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Averaging:
    """What the mean of all estimates reveals about every distinct cell.

    Attributes
    ----------
    keys : uint64 (cells,)
    counts : int64 (cells,)
        True counts.
    noisy : int64 (cells,)
        Published counts.
    estimate : float (cells,)
    precision : float (cells,)
        Precision of the mean, relative to that of a single number.
    sureness : float (cells,)
        Forecast probability that the rounded mean is the true count.
    """

    keys: Keys
    counts: Ints
    noisy: Ints
    estimate: Floats
    precision: Floats
    sureness: Floats

    def is_right(self) -> Bools:
        """Whether the rounded mean actually is the true count."""
        found: Bools = np.maximum(1, np.rint(self.estimate)).astype(np.int64) == self.counts
        return found


def average(tables: Sequence[KeyedTable], noise: NoiseTable) -> Averaging:
    """Average all estimates of each cell, as readers of all tables can.

    Notes
    -----
    An estimate of n numbers with independent noise has n times the variance of one; estimates are weighted by their precision. They are the
    number itself, the sums of its parts along one or two attributes, and totals minus other parts. Readers who solve all sums at once do a
    little better.

    The forecast uses the least variance of all rows of the table and normal noise; for a cell with one number it uses the exact
    probabilities. A mean below 1 counts as 1, because the cell has records; so every mean below 1.5 gives a count of 1.
    """
    cell, sign, estimate, n = (
        np.concatenate(column) for column in zip(*(v for t in tables for v in _views(t)), strict=True)
    )
    # The same numbers may be in several tables; they count as one estimate.
    order = np.lexsort((sign, cell))
    is_new = np.ones(len(order), dtype=bool)
    is_new[1:] = (cell[order][1:] != cell[order][:-1]) | (sign[order][1:] != sign[order][:-1])
    kept = order[is_new]
    keys, inverse = np.unique(cell[kept], return_inverse=True)
    weight = 1.0 / n[kept]
    precision: Floats = np.bincount(inverse, weight).astype(np.float64)
    mean = np.bincount(inverse, weight * estimate[kept]) / precision
    known = np.concatenate([table.keys.ravel() for table in tables])
    counts = np.concatenate([table.counts.ravel() for table in tables])
    noisy = np.concatenate([table.noisy.ravel() for table in tables])
    different, first = np.unique(known[counts > 0], return_index=True)
    place = first[np.searchsorted(different, keys)]
    true = counts[counts > 0][place]
    within = erf(0.5 * np.sqrt(precision / (2 * noise.least_variance)))
    sureness: Floats = np.where(true == 1, (1 + within) / 2, within)
    is_single = np.bincount(inverse) == 1
    for count in np.unique(np.minimum(true[is_single], len(noise.rows))).tolist():
        chosen = is_single & (np.minimum(true, len(noise.rows)) == count)
        sureness[chosen] = noise.unchanged(count)
        sureness[chosen & (true == 1)] = noise.unchanged(1, or_less=True)
    return Averaging(
        keys=keys,
        counts=true,
        noisy=noisy[counts > 0][place],
        estimate=mean,
        precision=precision,
        sureness=sureness,
    )


View = tuple[Keys, Keys, Floats, Floats]


def _views(table: KeyedTable) -> Iterator[View]:
    """Estimates of the cells that are not empty: the cell's key, the numbers used, the estimate, and how many numbers have noise."""
    is_full = table.counts > 0
    # Unlike sums of keys, sums of squares over the parts of a cell do not follow from the cell.
    mixed = np.where(is_full, table.keys * table.keys, np.uint64(0))
    noisy, full = table.noisy.astype(np.float64), is_full.astype(np.float64)
    yield _chosen(is_full, table.keys, mixed, noisy, full)
    for number, axis in enumerate(table.axes):
        keys, marks, values, filled = (
            np.moveaxis(array, number, 0).reshape(len(axis.codes), -1)
            for array in (table.keys, mixed, noisy, full)
        )
        for total, parts in axis.parts:
            below = list(parts)
            marked, summed, counted = (array[below].sum(axis=0) for array in (marks, values, filled))
            yield _chosen(counted > 1, keys[total], marked, summed, counted)
            for part in below:
                # The total minus the other parts: its own mark has the opposite sign.
                others = counted - filled[part]
                has_others = (filled[part] > 0) & (others > 0)
                sign = marks[total] - (marked - marks[part])
                yield _chosen(
                    has_others, keys[part], sign, values[total] - (summed - values[part]), others + 1
                )
    for one, other in combinations(range(len(table.axes)), 2):
        yield from _by_two(table, one, other, mixed, noisy, full)


def _by_two(
    table: KeyedTable, one: int, other: int, mixed: Keys, noisy: Floats, full: Floats
) -> Iterator[View]:
    """Totals of two attributes as the sum over both."""
    first, second = table.axes[one].parts, table.axes[other].parts
    keys, marks, values, filled = (
        np.moveaxis(array, (one, other), (0, 1)) for array in (table.keys, mixed, noisy, full)
    )
    for total, parts in first:
        for also, more in second:
            chosen = np.ix_(list(parts), list(more))
            marked, summed, counted = (array[chosen].sum(axis=(0, 1)) for array in (marks, values, filled))
            yield _chosen(counted > 1, keys[total, also], marked, summed, counted)


def _chosen(where: Bools, keys: Keys, sign: Keys, estimate: Floats, n: Floats) -> View:
    where = np.asarray(where)
    return np.asarray(keys)[where], np.asarray(sign)[where], np.asarray(estimate)[where], np.asarray(n)[where]
