"""What a class must meet beside its size: l-diversity, t-closeness, and matches in a population."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import log

import numpy as np
from numpy.typing import NDArray

from louver.anonymize.columns import Ints
from louver.optim.kernels.diversity import EQUAL, ORDERED, TREE_DISTANCE, Requirements

__all__ = ["Distance", "LKind", "Sensitive", "build_requirements"]


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
        Value of each record, 0 to n_values - 1; for the ordered distance in order.
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
) -> Requirements:
    """Requirements for the kernels; `order` lists the source rows of the records."""
    n = len(order)
    sizes = [s.n_values for s in sensitive]
    shares = [np.bincount(s.codes[order], minlength=s.n_values) / max(1, n) for s in sensitive]
    nodes = [
        np.concatenate([np.asarray(a, np.int64) for a in s.ancestors] or [np.zeros(0, np.int64)])
        for s in sensitive
    ]
    is_entropy = [s.l is not None and s.l_kind is LKind.ENTROPY for s in sensitive]
    return Requirements(
        sensitive=np.ascontiguousarray(
            np.stack([s.codes[order] for s in sensitive], axis=1).astype(np.int32)
            if sensitive
            else np.zeros((n, 0), np.int32)
        ),
        start=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        least_distinct=np.array(
            [
                int(np.ceil(s.l)) if s.l is not None and not e else 0
                for s, e in zip(sensitive, is_entropy, strict=True)
            ],
            np.int64,
        ),
        least_entropy=np.array(
            [log(s.l) if s.l is not None and e else -1.0 for s, e in zip(sensitive, is_entropy, strict=True)],
            np.float64,
        ),
        farthest=np.array([-1.0 if s.t is None else s.t for s in sensitive], np.float64),
        distance=np.array([KERNEL_DISTANCE[s.distance] for s in sensitive], np.int64),
        reference=np.concatenate([*shares, np.zeros(0)]),
        tree_start=np.concatenate([[0], np.cumsum([a.size for a in nodes])]).astype(np.int64)[: len(nodes)],
        tree_levels=np.array([len(s.ancestors) for s in sensitive], np.int64),
        node=np.concatenate([*nodes, np.zeros(0, np.int64)]).astype(np.int64),
        population=population,
        multiplicity=multiplicity,
        matches=np.int64(matches),
    )
