"""How many generalised values can be worked out from the columns that are published unchanged.

Whoever knows how a column goes together with a quasi-identifier (a survey weight with its region, the density of a place with its
code) reads the one from the other. The source itself is the attacker's knowledge here, but for the record that is attacked: a value
that no other record has tells nothing. What is computed describes the confidential values and stays inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from louver._arrays import Bools, Floats, Ints
from louver.anonymize.columns import Column, given_values
from louver.anonymize.generalise import Meaning, Published, Sort
from louver.run import Run

__all__ = ["NEARLY", "WorkedOut", "count_alike", "count_alone", "worked_out"]

NEARLY = 0.95
"""Share of the records with one unchanged value that share the quasi-identifier's commonest value among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkedOut:
    """What columns that are published unchanged give back of one quasi-identifier.

    Attributes
    ----------
    name : str
    generalised : int
        Published records whose value is generalised.
    exactly, nearly : int
        Of these, how many follow from one unchanged column, or from all of them together, without exception; and by the commonest
        value, where at least 95 % have it.
    column : str
        The unchanged column that gives most back.
    """

    name: str
    generalised: int
    exactly: int
    nearly: int
    column: str

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.exactly:,} of {self.generalised:,} generalised values can be worked out exactly from unchanged "
            f"columns, {self.nearly:,} at {NEARLY:.0%} (most from {self.column})"
        )


def worked_out(
    records: pa.Table,
    unchanged: Sequence[str],
    columns: Sequence[Column],
    published: Sequence[Published],
    group_of: Ints,
    run: Run,
) -> tuple[WorkedOut, ...]:
    """For every quasi-identifier, how many of its generalised values the unchanged columns give back.

    Parameters
    ----------
    group_of : int64 (rows,)
        The group that each row of the source is published as; -1 is suppressed.

    Notes
    -----
    **Cost**: a sort of the records for each pair of an unchanged column and a quasi-identifier.
    """
    known = [(name, _coded(records[name])) for name in unchanged]
    if len(known) > 1:
        known.append(("all of them together", _joined([codes for _, codes in known])))
    rows = np.arange(records.num_rows)
    return tuple(
        _of_one(column.name, given_values(column, rows), _is_generalised(p, group_of), known, run)
        for column, p in zip(columns, published, strict=True)
    )


def count_alone(table: pa.Table) -> int:
    """Published records that no other equals in every column: who knows all of it of a person finds the record."""
    if not table.num_columns:
        return 0
    _, counts = np.unique(_joined([_coded(column) for column in table.columns]), return_counts=True)
    return int((counts == 1).sum())


def count_alike(values: pa.ChunkedArray, classes: Ints) -> int:
    """Published records in classes whose members all have one value of a sensitive column, a missing one included.

    Parameters
    ----------
    classes : int64 (n,)
        The class of each value.
    """
    if not len(classes):
        return 0
    codes = _coded(values) + 1
    first = np.zeros(int(classes.max()) + 1, np.int64)
    first[classes] = codes
    is_mixed = np.zeros(len(first), np.bool_)
    is_mixed[classes[codes != first[classes]]] = True
    return int((~is_mixed[classes]).sum())


def _of_one(
    name: str, values: Floats, is_generalised: Bools, known: Sequence[tuple[str, Ints]], run: Run
) -> WorkedOut:
    _, codes = np.unique(values, return_inverse=True)
    exactly = nearly = np.zeros(len(codes), np.bool_)
    most, best = 0, ""
    for other, of_record in known:
        run.check()
        is_exact, is_near = _tells(of_record, codes)
        found = int((is_near & is_generalised).sum())
        if found > most:
            most, best = found, other
        exactly, nearly = exactly | is_exact, nearly | is_near
    return WorkedOut(
        name=name,
        generalised=int(is_generalised.sum()),
        exactly=int((exactly & is_generalised).sum()),
        nearly=int((nearly & is_generalised).sum()),
        column=best,
    )


def _tells(known: Ints, codes: Ints) -> tuple[Bools, Bools]:
    """Whether each record's code follows from what is known of it, without exception, and by majority."""
    n_codes = int(codes.max(initial=0)) + 1
    pairs, of_record, counts = np.unique(known * n_codes + codes, return_inverse=True, return_counts=True)
    groups = pairs // n_codes
    starts = np.flatnonzero(np.concatenate([[True], groups[1:] != groups[:-1]]))
    place = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(pairs))))
    sizes = np.add.reduceat(counts, starts)[place]
    is_shared = (sizes > 1) & (groups >= 0)
    is_near = is_shared & (counts >= NEARLY * sizes)
    return (is_near & (counts == sizes))[of_record], is_near[of_record]


def _coded(column: pa.ChunkedArray) -> Ints:
    """A number for each value; -1 where it is missing."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    indices = column.combine_chunks().dictionary_encode().indices.fill_null(-1)
    return np.asarray(np.from_dlpack(indices), np.int64)


def _joined(parts: Sequence[Ints]) -> Ints:
    """A number for each combination."""
    number = np.zeros(len(parts[0]), np.int64)
    for part in parts:
        _, number = np.unique(number * (int(part.max(initial=0)) + 2) + part + 1, return_inverse=True)
    return number


def _is_generalised(published: Published, group_of: Ints) -> Bools:
    is_wide = np.array([_is_wide(meaning) for meaning in published.meanings], np.bool_)
    flags: Bools = np.zeros(len(group_of), np.bool_)
    is_kept = group_of >= 0
    flags[is_kept] = is_wide[published.of_group][group_of[is_kept]]
    return flags


def _is_wide(meaning: Meaning) -> bool:
    if meaning.members is not None:
        return len(meaning.members) > 1
    return meaning.sort is Sort.ANYTHING or meaning.lower != meaning.upper
