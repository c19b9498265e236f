"""How many records, people or units share the published quasi-identifiers: k-anonymity, k-map, whole households, and freeform
generalisation, which is weaker but can be checked by counting.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from louver._arrays import Bools, Ints
from louver.release.folder import Malformed, without_dictionary
from louver.release.promises.base import Context, Outcome, Promise, count_codes, count_distinct
from louver.release.promises.mapping import (
    Line,
    attributes_of,
    lines_of,
    published_columns,
    read_mapping,
    value_of,
)

__all__ = [
    "Freeform",
    "KAnonymity",
    "KMap",
    "KUnits",
    "WholeUnits",
    "check_freeform",
    "check_k_anonymity",
    "check_k_map",
    "check_k_units",
    "check_whole_units",
]

Columns = Annotated[tuple[str, ...], Field(min_length=1)]


class KAnonymity(Promise):
    """Every combination of published quasi-identifiers occurs k times or never."""

    promise: Literal["k-anonymity"]
    file: Literal["data/anonymized.parquet"]
    quasi: Columns
    k: Annotated[int, Field(ge=1)]


class KMap(Promise):
    """Every published combination is listed with the number of people of the population that it matches, at least k."""

    promise: Literal["k-map"]
    file: Literal["data/anonymized.parquet"]
    quasi: Columns
    k: Annotated[int, Field(ge=1)]
    classes: Literal["data/classes.parquet"]


class KUnits(Promise):
    """Every published combination is listed with the number of its distinct units (households), at least k, and has at least as many
    records."""

    promise: Literal["k-units"]
    file: Literal["data/anonymized.parquet"]
    quasi: Columns
    k: Annotated[int, Field(ge=1)]
    classes: Literal["data/classes.parquet"]


def check_k_anonymity(context: Context, promise: KAnonymity) -> Outcome:
    """Count the records of every class."""
    classes, _ = count_codes(context.folder, promise.file, promise.quasi)
    if not classes.num_rows:
        return Outcome(True, "no records")
    smallest = int(pc.min(classes["n"]).as_py())
    detail = f"smallest of {classes.num_rows} classes has {smallest} records, promised {promise.k}"
    return Outcome(smallest >= promise.k, detail)


def check_k_map(context: Context, promise: KMap) -> Outcome:
    """Look every class up in the list."""
    found = _listed(context, promise, "people")
    if isinstance(found, Outcome):
        return found
    fewest = int(pc.min(found["people_max"]).as_py() or 0)
    detail = f"a class matches at least {fewest} people, as its maker counted them, promised {promise.k}"
    return Outcome(fewest >= promise.k, detail)


def check_k_units(context: Context, promise: KUnits) -> Outcome:
    """Look every class up in the list; no class can have more units than records."""
    found = _listed(context, promise, "units")
    if isinstance(found, Outcome):
        return found
    if pc.any(pc.greater(found["units_max"], found["n_sum"])).as_py():
        return Outcome(False, "a class is listed with more units than it has records")
    fewest = int(pc.min(found["units_max"]).as_py() or 0)
    detail = f"a class has at least {fewest} different units, as its maker counted them, promised {promise.k}"
    return Outcome(fewest >= promise.k, detail)


def _listed(context: Context, promise: KMap | KUnits, counted: str) -> pa.Table | Outcome:
    """Every class with its records and the listed number, or what is wrong with the list."""
    published = count_distinct(context.folder, promise.file, promise.quasi)
    keys = published.column_names[:-1]
    if not published.num_rows:
        return Outcome(True, "no records")
    listed = context.folder.table(promise.classes, most_rows=context.folder.rows(promise.file))
    listed = without_dictionary(listed.select([*promise.quasi, counted]).rename_columns([*keys, counted]))
    if not pa.types.is_integer(listed.schema.field(counted).type):
        raise Malformed(f"numbers of {counted} are not whole")
    zeros = pa.array([0] * published.num_rows, pa.int64())
    both = pa.concat_tables(
        [
            published.append_column(counted, zeros),
            listed.append_column("n", pa.array([0] * listed.num_rows, pa.int64())).select(
                [*keys, "n", counted]
            ),
        ],
        promote_options="permissive",
    )
    found = both.group_by(keys).aggregate([("n", "sum"), (counted, "max")])
    if found.num_rows != published.num_rows or listed.num_rows != published.num_rows:
        return Outcome(False, "the classes listed are not those of the file")
    return found


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
