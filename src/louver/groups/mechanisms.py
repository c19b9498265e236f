"""Every mechanism by its name: what it measures and how it turns noisy answers into a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from louver._arrays import Ints
from louver.errors import InputError
from louver.groups.methods.cumulative import (
    solve_chain,
    solve_cumulative,
    solve_cumulative_relaxed,
    solve_joint,
    solve_joint_relaxed,
)
from louver.groups.methods.integer_program import (
    check_size,
    solve_by_tables,
    solve_cumulative_program,
    solve_program,
)
from louver.groups.methods.sizes import solve_dynamic, solve_level_by_level, solve_relaxed
from louver.groups.problem import NoisyAnswers, SizeQuery
from louver.optim.trees import LevelTree
from louver.privacy.neighbours import Relation
from louver.run import Run

__all__ = ["DEFAULT", "MECHANISMS", "Mechanism", "count_violations", "find_mechanism"]


class Solve(Protocol):
    """Post-processing: noisy answers to numbers of groups."""

    def __call__(self, noisy: NoisyAnswers, run: Run | None = None) -> Ints: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanism:
    """A mechanism that releases group sizes.

    Attributes
    ----------
    name : str
        Its name in the paper.
    query : SizeQuery
        The counts to which noise is added if the number of groups is public.
    open_query : SizeQuery or None
        The same if it is not public; None for a mechanism that needs a public total.
    solve : callable
        Post-processing: noisy answers to numbers of groups.
    is_consistent : bool
        Whether conditions 2 to 4 of section 4 always hold.
    is_weighted : bool
        Whether levels are weighted by their noise.
    check_size : callable or None
        Refuses numbers of cells and groups for which `solve` would not finish.
    simulate : callable or None
        A faster way to the same optimum, or close to it, for simulations.
    """

    name: str
    query: SizeQuery
    solve: Solve
    is_consistent: bool = True
    is_weighted: bool = False
    check_size: Callable[[int, int], None] | None = None
    simulate: Solve | None = None
    open_query: SizeQuery | None = None


DEFAULT = "louver"

MECHANISMS = {
    mechanism.name: mechanism
    for mechanism in (
        Mechanism(
            name=DEFAULT,
            query=SizeQuery.PREFIX,
            open_query=SizeQuery.SUFFIX,
            solve=solve_joint,
            simulate=solve_joint_relaxed,
            is_weighted=True,
        ),
        Mechanism(
            name="M_H",
            query=SizeQuery.SIZES,
            solve=solve_program,
            check_size=check_size,
            simulate=solve_dynamic,
        ),
        Mechanism(name="M_H^r", query=SizeQuery.SIZES, solve=solve_relaxed, is_consistent=False),
        Mechanism(
            name="M_dp^OP",
            query=SizeQuery.SIZES,
            solve=solve_by_tables,
            check_size=check_size,
            simulate=solve_dynamic,
        ),
        Mechanism(name="M_H^dp", query=SizeQuery.SIZES, open_query=SizeQuery.SIZES, solve=solve_dynamic),
        Mechanism(
            name="M_c",
            query=SizeQuery.PREFIX,
            solve=solve_cumulative_program,
            check_size=check_size,
            simulate=solve_cumulative_relaxed,
        ),
        Mechanism(name="M_c^r", query=SizeQuery.PREFIX, solve=solve_cumulative_relaxed, is_consistent=False),
        Mechanism(name="M_c^dp", query=SizeQuery.PREFIX, solve=solve_cumulative),
        Mechanism(name="M_c^ch", query=SizeQuery.CHAIN, solve=solve_chain),
        Mechanism(name="TopDown", query=SizeQuery.SIZES, solve=solve_level_by_level),
    )
}


def find_mechanism(name: str | None, neighbours: Relation) -> Mechanism:
    """Return the mechanism of that name; without a name, the one with the least error for the neighbours.

    A whole unit changes one size, but a number of suffix counts equal to its size, so sizes are measured for these neighbours.

    Examples
    --------
    >>> find_mechanism(None, Relation.ADD_REMOVE_RECORD).name, find_mechanism(None, Relation.ADD_REMOVE_UNIT).name
    ('louver', 'M_H^dp')
    """
    if name is None:
        return MECHANISMS["M_H^dp" if neighbours is Relation.ADD_REMOVE_UNIT else DEFAULT]
    if name not in MECHANISMS:
        raise InputError(f"option --mechanism must be one of {', '.join(MECHANISMS)}.", option="mechanism")
    return MECHANISMS[name]


def count_violations(counts: Ints, tree: LevelTree) -> int:
    """Count the regions and sizes where children do not add up to their parent (#CV of Table 7)."""
    parents = int(tree.level_start[-2])
    sums = np.add.reduceat(counts, tree.first_child[:parents], axis=0) if parents else counts[:0]
    return int((sums != counts[:parents]).sum())
