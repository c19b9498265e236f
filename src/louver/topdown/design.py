"""A checked TopDown spec: everything public that measuring and estimating need."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import Any

from louver._arrays import Bools, Ints
from louver.data.regions import RegionTree
from louver.privacy.budget import Loss
from louver.schema.attribute import Attribute
from louver.schema.spec import SourceOptions, Spec
from louver.schema.validate import validated
from louver.topdown.options import TopDownOptions
from louver.topdown.problem import Query

__all__ = ["DETAILED", "Design", "Statement"]

DETAILED = "detailed"
"""The query of all cells."""

FOR_ESTIMATION = {
    "bounds",
    "extended_by",
    "rules",
    "household",
    "acknowledge_invariants",
    "estimator",
    "shrink",
    "intervals",
}  # options that measuring does not look at


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Statement:
    """Something publicly known about the people in a set of cells, for every region of a level.

    Parameters
    ----------
    name : str
    level : int
    cells : ndarray of bool, shape (cells,)
    labels : mapping
        The same set by attributes and labels.
    lower, upper : ndarray of int64, shape (regions,)
        Bounds from a public table. Empty for an invariant, whose values come from `measure`.
    """

    name: str
    level: int
    cells: Bools
    labels: Mapping[str, tuple[str, ...]]
    lower: Ints
    upper: Ints

    @property
    def is_invariant(self) -> bool:
        """Whether its values are published exactly."""
        return len(self.lower) == 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Design:
    """A checked spec: everything public that measuring and estimating need.

    Parameters
    ----------
    spec : Spec
        What it was made from.
    data : path, uri or dataframe
        The records; None where neither the spec nor the call names any.
    is_own_file : bool
        Whether the spec itself names a file of records.
    options : TopDownOptions
    attributes : tuple of Attribute
        Attributes that make the cells, in the order of the spec.
    is_possible : ndarray of bool, shape (cells,)
        False for structural zeros.
    spine : RegionTree
    queries : tuple of Query
        All queries, the detailed one last.
    query_attributes : tuple of tuple of Attribute
        What the rows of each query stand for, the last attribute fastest.
    level_shares : tuple of Fraction
    query_shares : tuple of mapping of str to Fraction
        For each level the share of every query it measures.
    statements : tuple of Statement
    budget : Loss
    notes : tuple of str
        What somebody should read before anything is spent.
    has_chosen_shares : bool
        Whether the spec leaves the shares to louver; `options` has them all the same.
    extends : str
        Hash of the measurements of the release that it extends; empty where it extends none.
    """

    spec: Spec
    data: Any
    is_own_file: bool
    options: TopDownOptions
    attributes: tuple[Attribute, ...]
    is_possible: Bools
    spine: RegionTree
    queries: tuple[Query, ...]
    query_attributes: tuple[tuple[Attribute, ...], ...]
    level_shares: tuple[Fraction, ...]
    query_shares: tuple[Mapping[str, Fraction], ...]
    statements: tuple[Statement, ...]
    budget: Loss
    notes: tuple[str, ...] = ()
    has_chosen_shares: bool = False
    extends: str = ""

    @property
    def shape(self) -> tuple[int, ...]:
        """Labels of each attribute."""
        return tuple(attribute.size for attribute in self.attributes)

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return prod(self.shape)

    @property
    def geography_columns(self) -> tuple[str, ...]:
        """Columns of the data that say where a person is."""
        geography = self.options.geography
        return tuple(geography.columns or (geography.column,))  # type: ignore[arg-type]

    @property
    def shrink(self) -> float | None:
        """The cap on shrinking; None where there is none."""
        return None if isinstance(self.options.shrink, str) else self.options.shrink

    def estimated(self, **how: Any) -> Design:
        """The same with other options of estimation; those that are None stay as they are."""
        given = {name: value for name, value in how.items() if value is not None}
        if not given:
            return self
        return replace(self, options=validated(TopDownOptions, {**self.options.model_dump(), **given}))

    def without_source(self) -> Design:
        """The same for a worker on another machine, which learns neither the records nor where they are."""
        spec = replace(self.spec, path=Path(self.spec.path.name), source=SourceOptions(), verbs={})
        return replace(self, spec=spec, data=None, is_own_file=False)

    def measured_fingerprint(self) -> str:
        """Hash of everything that decides the true answers and their noise, but for the records themselves.

        The records are bound by the ledger's keyed hash; how they are read is part of this one, so that a debit is never
        taken up again with other true answers. Bounds from public tables and the estimator are not.
        """
        return _hash(
            [
                self.options.model_dump_json(exclude=FOR_ESTIMATION).encode(),
                self.spec.source.noted().encode(),
                repr(self.spec.schema).encode(),
                repr(self.attributes).encode(),
                repr((self.spine.names, self.spine.leaves)).encode(),
                *([self.extends.encode()] if self.extends else []),
            ]
        )

    def fingerprint(self) -> str:
        """Hash of everything that decides what is measured and how it is worked on."""
        options = self.options.model_dump_json(exclude={"intervals"})  # no count depends on these
        parts = [self.measured_fingerprint().encode(), options.encode()]
        parts.append(self.is_possible.tobytes())
        for statement in self.statements:
            parts.extend([statement.cells.tobytes(), statement.lower.tobytes(), statement.upper.tobytes()])
        return _hash(parts)


def _hash(parts: Sequence[bytes]) -> str:
    """Hash of several texts, each with its length before it."""
    hasher = hashlib.sha256()
    for part in parts:
        hasher.update(len(part).to_bytes(8, "big"))
        hasher.update(part)
    return hasher.hexdigest()
