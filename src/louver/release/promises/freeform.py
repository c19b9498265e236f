"""Freeform generalisation: weaker than k-anonymity, but its consequences can be checked by counting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from louver._arrays import Bools, Ints
from louver.release.folder import Malformed
from louver.release.promises.base import Context, Outcome, Promise, count_distinct
from louver.release.promises.mapping import (
    Line,
    attributes_of,
    lines_of,
    published_columns,
    read_mapping,
    value_of,
)

__all__ = ["Freeform", "check_freeform"]

BLOCK_CELLS = 1 << 24
"""Number of pairs of published records examined at once."""


class Freeform(Promise):
    """The values of every published record overlap those of k published records, including itself.

    This follows from the guarantee of freeform generalisation: a published record covers k original ones, and each of these is also covered
    by its own published record.

    Attributes
    ----------
    open : tuple of str
        Columns in which a missing value matches anything, so that it may be the value that two entries share.
    """

    promise: Literal["freeform"]
    file: Literal["data/anonymized.parquet"]
    quasi: Annotated[tuple[str, ...], Field(min_length=1)]
    k: Annotated[int, Field(ge=1)]
    mapping: Literal["data/mapping.parquet"]
    open: tuple[str, ...]


def check_freeform(context: Context, promise: Freeform) -> Outcome:
    """For every distinct published record, count the records that it overlaps."""
    groups, sizes, meets = _groups(context, promise)
    fewest = int(sizes.sum())
    step = max(1, BLOCK_CELLS // max(1, len(groups)))
    for start in range(0, len(groups), step):
        block = groups[start : start + step]
        is_met = np.ones((len(block), len(groups)), np.bool_)
        for j, meet in enumerate(meets):
            is_met &= meet[block[:, j]][:, groups[:, j]]
        fewest = min(fewest, int((is_met @ sizes).min()))
    detail = f"every record overlaps at least {fewest}, as follows from the promise of {promise.k}, which is weaker than k-anonymity"
    return Outcome(fewest >= promise.k or not len(groups), detail)


def _groups(context: Context, promise: Freeform) -> tuple[Ints, Ints, list[Bools]]:
    """Distinct published records as positions in the mapping, their counts, and for each column which values overlap."""
    mapping = read_mapping(context.folder)
    names = attributes_of(mapping)
    columns = [published_columns(context.folder, name) for name in names]
    flat = [column for pair in columns for column in pair]
    counted = count_distinct(context.folder, promise.file, flat).to_pydict()
    *values, counts = counted.values()
    places, meets, start = [], [], 0
    for name, pair in zip(names, columns, strict=True):
        lines = lines_of(mapping, name)
        place_of = {value_of(line, pair): place for place, line in enumerate(lines)}
        published = zip(*values[start : start + len(pair)], strict=True)
        try:
            places.append(np.array([place_of[value] for value in published], np.int64))
        except KeyError:
            raise Malformed(f'the mapping of "{name}" does not list every value') from None
        meets.append(np.ones((len(lines), len(lines)), np.bool_) if name in promise.open else _meets(lines))
        start += len(pair)
    return np.stack(places, axis=1), np.array(counts, np.int64), meets


def _meets(lines: Sequence[Line]) -> Bools:
    """Whether two published values of an attribute share an original value that both may stand for."""
    is_open = np.array([line["sort"] in ("anything", "missing") for line in lines])
    meet: Bools = is_open[:, None] | is_open[None, :]
    if any(line["members"] for line in lines):
        place = {label: i for i, label in enumerate({m: 0 for line in lines for m in line["members"] or ()})}
        covers = np.zeros((len(lines), len(place)), np.float32)
        for i, line in enumerate(lines):
            covers[i, [place[member] for member in line["members"] or ()]] = 1
        return meet | (covers @ covers.T > 0)
    low = np.array([np.nan if line["lower"] is None else line["lower"] for line in lines])
    high = np.array([np.nan if line["upper"] is None else line["upper"] for line in lines])
    return meet | ((low[:, None] <= high[None, :]) & (low[None, :] <= high[:, None]))
