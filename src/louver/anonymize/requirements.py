"""What a release guarantees, and what a class must meet besides its size: l-diversity, t-closeness, and matches in a population."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil, log

import numpy as np
from numpy.typing import NDArray

from louver._arrays import Floats, Ints
from louver.optim.kernels.classes.diversity import (
    DISTANCE,
    EQUAL,
    FARTHEST,
    LEAST_DISTINCT,
    LEAST_ENTROPY,
    LEVELS,
    N_LIMITS,
    ORDERED,
    START,
    STOP,
    TABLES,
    TREE_DISTANCE,
    Requirements,
)

__all__ = ["Distance", "Guarantee", "LKind", "Sensitive", "build_requirements"]


class LKind(StrEnum):
    """Sorts of l-diversity (Machanavajjhala et al. 2007)."""

    DISTINCT = "distinct"
    ENTROPY = "entropy"


class Distance(StrEnum):
    """Distances between the values of a sensitive column, for t-closeness (Li, Li & Venkatasubramanian 2007)."""

    EQUAL = "equal"
    ORDERED = "ordered"
    HIERARCHICAL = "hierarchical"


KERNEL_DISTANCE = {
    Distance.EQUAL: EQUAL,
    Distance.ORDERED: ORDERED,
    Distance.HIERARCHICAL: TREE_DISTANCE,
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sensitive:
    """A sensitive column and what is asked of every class.

    Parameters
    ----------
    name : str
    codes : int64 (n,)
        Value of each record, 0 to n_values - 1; for the ordered distance in order. -1 is missing, and no value.
    n_values : int
    l : float, optional
        Distinct values, or the exponential of the entropy, that every class needs.
    l_kind : LKind
    t : float, optional
        Largest distance between a class and the whole table.
    distance : Distance
    ancestors : sequence of int64 (n_values,)
        Hierarchical distance: the node above each value, from the first level above the values to the root.
    """

    name: str
    codes: Ints
    n_values: int
    l: float | None = None  # noqa: E741 - the field's own name
    l_kind: LKind = LKind.DISTINCT
    t: float | None = None
    distance: Distance = Distance.EQUAL
    ancestors: Sequence[Ints] = ()


def build_requirements(
    sensitive: Sequence[Sensitive],
    order: Ints,
    population: NDArray[np.int32],
    multiplicity: Ints,
    matches: int,
    key: int = -1,
) -> Requirements:
    """Requirements for the kernels; `order` lists the source rows of the records, `key` a column as they say."""
    n = len(order)
    coded = [s.codes[order].astype(np.int32) for s in sensitive]
    return Requirements(
        sensitive=np.ascontiguousarray(np.stack(coded, axis=1)) if coded else np.zeros((n, 0), np.int32),
        limits=_limits(sensitive, coded),
        population=population,
        multiplicity=multiplicity,
        matches=np.int64(matches),
        key=np.int64(key),
    )


def _limits(sensitive: Sequence[Sensitive], coded: Sequence[NDArray[np.int32]]) -> Floats:
    """The array of limits that `louver.optim.kernels.classes.diversity` describes."""
    fields = np.zeros((len(sensitive), N_LIMITS))
    tables: list[Floats] = []
    start, table = 0, 1 + fields.size
    for line, s, codes in zip(fields, sensitive, coded, strict=True):
        is_entropy = s.l_kind is LKind.ENTROPY
        known = codes[codes >= 0]
        shares = np.bincount(known, minlength=s.n_values) / max(1, len(known))
        line[START - 1], line[STOP - 1] = start, start + s.n_values
        line[LEAST_DISTINCT - 1] = ceil(s.l) if s.l is not None and not is_entropy else 0
        line[LEAST_ENTROPY - 1] = log(s.l) if s.l is not None and is_entropy else -1.0
        line[FARTHEST - 1] = -1.0 if s.t is None else s.t
        line[DISTANCE - 1] = KERNEL_DISTANCE[s.distance]
        line[TABLES - 1] = table
        line[LEVELS - 1] = len(s.ancestors)
        tables += [shares, *(np.asarray(level, np.float64) for level in s.ancestors)]
        start += s.n_values
        table += s.n_values * (1 + len(s.ancestors))
    return np.concatenate([[len(sensitive)], fields.ravel(), *tables])


class Guarantee(StrEnum):
    """What a release promises."""

    K_ANONYMITY = "k-anonymity"
    K_MAP = "k-map"
    K_UNITS = "k-units"
    FREEFORM = "freeform"
