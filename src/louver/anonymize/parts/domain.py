"""The whole file column by column: the different values, which parts share, so that codes and losses mean the same in all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from louver._arrays import Floats, Ints
from louver.anonymize.columns import Column, of_rows
from louver.anonymize.load import (
    attribute_of,
    declared_missing,
    public_labels,
    quasi_identifier,
    sensitive_of,
)
from louver.anonymize.options import AnonymizeOptions
from louver.anonymize.problem import Problem
from louver.anonymize.requirements import Sensitive
from louver.data.read import Source, quoted
from louver.data.tabulate import Records, read_values
from louver.run import Run
from louver.schema.attribute import Attribute
from louver.schema.spec import Schema

__all__ = ["Domain", "read_domain"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Domain:
    """Every quasi-identifier, then every sensitive column that something is asked of, by its different values. Confidential.

    Attributes
    ----------
    read : tuple of Attribute
        As the columns are read, every label listed.
    attributes : tuple of Attribute
        The quasi-identifiers as they are generalised, recodes applied.
    columns : tuple of Column
        The quasi-identifiers over their different values, in the place of records.
    sensitive_attributes : tuple of Attribute
    sensitive : tuple of Sensitive
        Over their different values, too.
    counts : tuple of int64 (values,)
        Records that have each value.
    found_by : tuple of arrays
        Number of the value that a code stands for; ascending numbers, for columns of numbers.
    public : mapping of str to frozenset of str
        Labels of a column that are known to exist.
    n_records : int
    missing_code : mapping of str to list of str
        Values of a column that stand for missing.
    """

    read: tuple[Attribute, ...]
    attributes: tuple[Attribute, ...]
    columns: tuple[Column, ...]
    sensitive_attributes: tuple[Attribute, ...]
    sensitive: tuple[Sensitive, ...]
    counts: tuple[Ints, ...]
    found_by: tuple[Ints | Floats, ...]
    public: Mapping[str, frozenset[str]]
    n_records: int
    missing_code: Mapping[str, list[str]]

    @property
    def schema(self) -> Schema:
        """What codes batches of the same file."""
        return Schema(attributes=self.read)

    def values_of(self, coded: Sequence[NDArray[np.int32] | Floats]) -> list[Ints]:
        """Numbers of the values of some records, from their codes or numbers."""
        return [_places(by, given) for by, given in zip(self.found_by, coded, strict=True)]

    def columns_of(self, values: Sequence[Ints]) -> list[Column]:
        """The quasi-identifiers of some records; what is lost is measured by the range of the whole file."""
        return [of_rows(column, chosen) for column, chosen in zip(self.columns, values, strict=False)]

    def problem(self, values: Sequence[Ints], options: AnonymizeOptions, max_suppressed: int) -> Problem:
        """The problem of some records, given by the numbers of their values."""
        chosen = values[len(self.columns) :]
        return Problem.build(
            self.columns_of(values),
            k=options.k,
            sensitive=[replace(s, codes=s.codes[v]) for s, v in zip(self.sensitive, chosen, strict=True)],
            max_suppressed=max_suppressed,
        )


def read_domain(source: Source, options: AnonymizeOptions, schema: Schema | None, run: Run) -> Domain:
    """Read every column once for its different values."""
    limited = options.sensitive if options.l is not None else ()
    names = (*options.quasi, *limited)
    read, values, counts, found_by, public = [], [], [], [], {}
    for number, name in enumerate(names):
        run.report("counting", number, len(names))
        table = pa.Table.from_batches(list(source.batches(f"SELECT DISTINCT {quoted(name)} FROM records")))
        attribute = attribute_of(source, table.column(0), name, options, schema)
        public[name] = public_labels(attribute, schema, options)
        records, count, by = _occurring(*read_values(source, name, Schema(attributes=(attribute,))))
        read.append(records.attributes[0] if records.attributes else attribute)
        values.append(records)
        counts.append(count)
        found_by.append(by)
    recodes = {recode.attribute: recode for recode in options.recodes()}
    m = len(options.quasi)
    quasi = [
        quasi_identifier(name, read, records, None, options, recodes.get(name))
        for name, records in zip(options.quasi, values[:m], strict=True)
    ]
    asked = [
        sensitive_of(records.attributes[0], records.codes[:, 0].astype(np.int64), options)
        for records in values[m:]
    ]
    return Domain(
        read=tuple(read),
        attributes=tuple(attribute for attribute, _ in quasi),
        columns=tuple(column for _, column in quasi),
        sensitive_attributes=tuple(attribute for attribute, _ in asked),
        sensitive=tuple(limits for _, limits in asked),
        counts=tuple(counts),
        found_by=tuple(found_by),
        public=public,
        n_records=int(counts[0].sum()),
        missing_code=declared_missing(source, options),
    )


def _occurring(records: Records, counts: Ints) -> tuple[Records, Ints, Ints | Floats]:
    """One record for each value that occurs, in the order of the codes, how many have it, and what finds it."""
    for numbers in records.numbers.values():
        return records, counts, numbers
    attribute, codes = records.attributes[0], records.codes[:, 0]
    total = np.bincount(codes, counts, minlength=attribute.size).astype(np.int64)
    occurring = np.flatnonzero(total)
    by = np.full(attribute.size, -1, np.int64)
    by[occurring] = np.arange(len(occurring))
    kept = replace(records, codes=occurring.astype(np.int32)[:, None])
    return kept, total[occurring], by


def _places(by: Ints | Floats, given: NDArray[np.int32] | Floats) -> Ints:
    if np.issubdtype(by.dtype, np.floating):
        return np.searchsorted(by, given)
    return np.asarray(by[given.astype(np.int64)], np.int64)
