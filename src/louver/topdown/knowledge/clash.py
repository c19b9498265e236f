"""Finds which statements contradict each other: a smallest set of them, below the first region where a contradiction appears.

If all consequences for the regions above can be derived, a set of statements is tested by deriving them. Where statements cross and the
tree is small, an integer program over the leaves decides instead: it is exact, and takes a millisecond where elimination takes a second.

Notes
-----
**Implements**: a divide-and-conquer search for an irreducible set (Junker 2004, QuickXplain); among few candidates a smallest one by
hitting sets (Liffiton, Previti, Malik & Marques-Silva 2016): every set that clashes shares a statement with each set whose removal
resolves the clash, so only candidates that do are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.sparse import csr_array

from louver._arrays import Ints
from louver.data.regions import RegionTree
from louver.errors import InfeasibleError
from louver.optim.highs import solve_linear
from louver.optim.status import Status
from louver.topdown.knowledge.elimination import MAX_SUMS
from louver.topdown.knowledge.implied import UNBOUNDED, DerivedKind, LevelStatements, classify, derive
from louver.topdown.measuring.noise_plan import QueryPlan

__all__ = ["Clash", "find_clash"]

MAX_TRIALS = 500  # sets tried while a clash is narrowed down
FEW = 16  # largest number of candidates for which the smallest clash is searched for by size


@dataclass(frozen=True, slots=True, kw_only=True)
class Clash:
    """One statement about one region that takes part in a contradiction."""

    statement: str
    level: str
    region: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _BoundedTypes:
    """One statement about one region, as a bound on a set of types."""

    statement: str
    level: int
    region: int
    mask: int
    lower: int
    upper: int


def find_clash(plan: QueryPlan, invariants: Mapping[str, Ints]) -> tuple[Clash, ...]:
    """Statements that contradict each other, as few as can be found; the full set must be contradictory.

    Notes
    -----
    **Cost**: for crossing statements an integer program of regions times types unknowns for each region and each set that is tried.
    """
    level, region = _first_contradiction(plan, invariants)
    spine, offsets = _subtree(plan.design.spine, level, region)
    parts = _parts(plan, invariants, level, offsets, spine)
    clashes = _judge(spine, plan.n_types, parts)
    trials = 0

    def counted(chosen: Sequence[_BoundedTypes]) -> bool:
        nonlocal trials
        trials += 1
        return clashes(chosen)

    found = _quick_explain(counted, [], parts, lambda: trials < MAX_TRIALS)
    if len(parts) <= FEW:
        found = _smallest(clashes, parts, found)
    return tuple(
        Clash(
            statement=part.statement,
            level=plan.design.spine.names[level + part.level],
            region=plan.design.spine.codes[level + part.level][offsets[part.level] + part.region],
        )
        for part in found
    )


def _first_contradiction(plan: QueryPlan, invariants: Mapping[str, Ints]) -> tuple[int, int]:
    """Level and number of the topmost region where a contradiction appears."""
    spine = plan.design.spine
    statements = list(plan.statements(invariants))
    if _is_small(spine) and classify(plan.n_types, statements) is DerivedKind.CROSSING:
        return _first_without_solution(plan, invariants)
    for level in range(spine.n_levels - 1, 0, -1):
        above = [LevelStatements.nothing(n) for n in spine.sizes[:level]]
        try:
            derive(spine, plan.n_types, [*above, *statements[level:]])
        except InfeasibleError as error:
            return level, error.clash[0]
    return 0, 0


def _first_without_solution(plan: QueryPlan, invariants: Mapping[str, Ints]) -> tuple[int, int]:
    """The same by an integer program for each region of a small tree."""
    for level in range(plan.design.spine.n_levels - 1, 0, -1):
        for region in range(plan.design.spine.sizes[level]):
            spine, offsets = _subtree(plan.design.spine, level, region)
            if _has_no_solution(spine, plan.n_types, _parts(plan, invariants, level, offsets, spine)):
                return level, region
    return 0, 0


def _is_small(spine: RegionTree) -> bool:
    return sum(spine.sizes[1:]) <= MAX_SUMS


def _judge(
    spine: RegionTree, n_types: int, parts: Sequence[_BoundedTypes]
) -> Callable[[Sequence[_BoundedTypes]], bool]:
    """The test of whether some of these parts clash."""

    def derived(chosen: Sequence[_BoundedTypes]) -> bool:
        try:
            derive(spine, n_types, _statements(spine, chosen))
        except InfeasibleError:
            return True
        return False

    if _is_small(spine) and classify(n_types, _statements(spine, parts)) is DerivedKind.CROSSING:
        return lambda chosen: _has_no_solution(spine, n_types, chosen)
    return derived


def _has_no_solution(spine: RegionTree, n_types: int, parts: Sequence[_BoundedTypes]) -> bool:
    """Whether no whole-number counts of the leaves by type satisfy these parts."""
    if not parts:
        return False
    rows, columns = [], []
    for number, part in enumerate(parts):
        first, last = spine.leaf_range(part.level, part.region, part.region + 1)
        inside = [t for t in range(n_types) if part.mask >> t & 1]
        places = (np.arange(first, last)[:, None] * n_types + inside).ravel()
        rows.append(np.full(len(places), number))
        columns.append(places)
    row, column = np.concatenate(rows), np.concatenate(columns)
    n = spine.sizes[-1] * n_types
    upper = np.array([np.inf if part.upper >= UNBOUNDED else part.upper for part in parts])
    status, _ = solve_linear(
        np.zeros(n),
        csr_array((np.ones(len(row)), (row, column)), shape=(len(parts), n)),
        np.array([float(part.lower) for part in parts]),
        upper,
        np.zeros(n),
        np.full(n, np.inf),
        is_integer=True,
    )
    return status is Status.INFEASIBLE


def _smallest(
    clashes: Callable[[Sequence[_BoundedTypes]], bool],
    parts: Sequence[_BoundedTypes],
    found: list[_BoundedTypes],
) -> list[_BoundedTypes]:
    """A smallest set of parts that clash, given an irreducible one; among equally small ones, the first in order."""
    everything = frozenset(range(len(parts)))
    resolving: list[frozenset[int]] = []  # sets without which the others do not clash
    for chosen in _by_size(len(parts), len(found) - 1):
        if any(chosen.isdisjoint(one) for one in resolving):
            continue
        if clashes([parts[i] for i in sorted(chosen)]):
            return [parts[i] for i in sorted(chosen)]
        grown = chosen
        for i in sorted(everything - chosen):
            if not clashes([parts[j] for j in sorted(grown | {i})]):
                grown = grown | {i}
        resolving.append(everything - grown)
    return found


def _by_size(n: int, largest: int) -> Iterator[frozenset[int]]:
    """Sets of numbers below n, small ones first."""
    for size in range(1, largest + 1):
        yield from map(frozenset, combinations(range(n), size))


def _subtree(spine: RegionTree, level: int, region: int) -> tuple[RegionTree, list[int]]:
    """The spine below a region, and the number of the first region of each of its levels."""
    start, stop = region, region + 1
    codes, starts, offsets = [], [], []
    for depth in range(level, spine.n_levels):
        codes.append(spine.codes[depth][start:stop])
        offsets.append(start)
        if depth + 1 < spine.n_levels:
            below = spine.starts[depth][start : stop + 1]
            starts.append(below - below[0])
            start, stop = int(below[0]), int(below[-1])
    names = spine.names[level:]
    labels = spine.leaf_labels[start:stop]
    return RegionTree(names=names, codes=tuple(codes), leaf_labels=labels, starts=tuple(starts)), offsets


def _parts(
    plan: QueryPlan, invariants: Mapping[str, Ints], level: int, offsets: Sequence[int], spine: RegionTree
) -> list[_BoundedTypes]:
    """All statements about regions of a subtree that bind, those with the largest numbers first."""
    parts = []
    for statement in plan.design.statements:
        depth = statement.level - level
        if depth < 0 or (statement.is_invariant and statement.name not in invariants):
            continue
        span = slice(offsets[depth], offsets[depth] + spine.sizes[depth])
        exact = invariants.get(statement.name, np.zeros(0, np.int64))
        lower = exact[span] if statement.is_invariant else statement.lower[span]
        upper = exact[span] if statement.is_invariant else statement.upper[span]
        for region in np.flatnonzero((lower > 0) | (upper < UNBOUNDED)).tolist():
            parts.append(
                _BoundedTypes(
                    statement=statement.name,
                    level=depth,
                    region=region,
                    mask=plan.mask_of(statement),
                    lower=int(lower[region]),
                    upper=int(upper[region]),
                )
            )
    return sorted(parts, key=lambda part: -part.lower)


def _statements(spine: RegionTree, parts: Sequence[_BoundedTypes]) -> list[LevelStatements]:
    """Chosen parts as statements of every level."""
    levels = []
    for level, n_regions in enumerate(spine.sizes):
        own = [part for part in parts if part.level == level]
        masks = tuple(sorted({part.mask for part in own}))
        lower = np.zeros((n_regions, len(masks)), dtype=np.int64)
        upper = np.full((n_regions, len(masks)), UNBOUNDED)
        for part in own:
            column = masks.index(part.mask)
            lower[part.region, column] = max(lower[part.region, column], part.lower)
            upper[part.region, column] = min(upper[part.region, column], part.upper)
        levels.append(LevelStatements(masks=masks, lower=lower, upper=upper))
    return levels


def _quick_explain(
    clashes: Callable[[Sequence[_BoundedTypes]], bool],
    background: list[_BoundedTypes],
    candidates: list[_BoundedTypes],
    may_go_on: Callable[[], bool],
) -> list[_BoundedTypes]:
    """Candidates that clash with the background and are all needed for the clash."""
    if len(candidates) <= 1 or not may_go_on():
        return candidates
    half = len(candidates) // 2
    first, second = candidates[:half], candidates[half:]
    if clashes([*background, *first]):
        return _quick_explain(clashes, background, first, may_go_on)
    if clashes([*background, *second]):
        return _quick_explain(clashes, background, second, may_go_on)
    needed = _quick_explain(clashes, [*background, *first], second, may_go_on)
    others = _quick_explain(clashes, [*background, *needed], first, may_go_on)
    return [*others, *needed]
