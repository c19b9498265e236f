"""Households that are alike as a whole, in files that show which records belong together."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from louver.release.folder import Malformed
from louver.release.promises.base import Context, Outcome, Promise

__all__ = ["UNIT_NUMBER", "WholeUnits", "check_whole_units"]

UNIT_NUMBER = "unit_id"


class WholeUnits(Promise):
    """At least k households, itself included, have the same published quasi-identifiers as each household, member by member."""

    promise: Literal["whole-units"]
    file: Literal["data/anonymized.parquet"]
    quasi: Annotated[tuple[str, ...], Field(min_length=1)]
    unit: Literal["unit_id"]
    k: Annotated[int, Field(ge=1)]


def check_whole_units(context: Context, promise: WholeUnits) -> Outcome:
    """Put the members of every household in order, and count the households that are equal."""
    table = context.folder.table(promise.file)
    numbers = table[promise.unit].combine_chunks()
    if not pa.types.is_integer(numbers.type) or numbers.null_count:
        raise Malformed("numbers of households are not whole")
    if not len(numbers):
        return Outcome(True, "no records")
    unit = np.unique(numbers.to_numpy(zero_copy_only=False), return_inverse=True)[1]
    member = np.zeros(len(unit), np.int64)
    for name in promise.quasi:
        value = pc.dictionary_encode(table[name].combine_chunks(), null_encoding="encode")
        codes = (value.indices if isinstance(value, pa.DictionaryArray) else value).to_numpy(
            zero_copy_only=False
        )
        _, member = np.unique(np.stack([member, codes], axis=1), axis=0, return_inverse=True)
        member = member.reshape(-1)
    order = np.lexsort([member, unit])
    size = np.bincount(unit)
    fewest = None
    for s in np.unique(size).tolist():
        of_size = member[order][size[unit[order]] == s].reshape(-1, s)
        _, households = np.unique(of_size, axis=0, return_counts=True)
        fewest = int(households.min()) if fewest is None else min(fewest, int(households.min()))
    assert fewest is not None
    detail = f"at least {fewest} of {len(size)} households are alike member by member, promised {promise.k}"
    return Outcome(fewest >= promise.k, detail)
