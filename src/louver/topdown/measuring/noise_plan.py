"""What is measured, with which noise, and the resulting estimation problem. All of this is public.

Notes
-----
**Neighbours**: one record changes its value (the default), or one is added or removed.
**Sensitivity**: at one level every person is in one region and one row of a query. A changed record leaves a row
and enters another, in any region: L1 sensitivity 2, squared L2 sensitivity 2 (ERRATA T7); an added or removed one
changes a single row: 1 and 1.
**Privacy**: these sensitivities are over all regions of a level together; queries and levels compose sequentially.
The proof is `docs/proofs/topdown.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from louver._arrays import Bools, Ints
from louver.errors import InputError
from louver.privacy.budget import Loss, Measure, compose_sequential, epsilon_at, fraction_of, split
from louver.privacy.composition import Changes, largest_rho
from louver.privacy.distributions import DiscreteGaussian, Distribution, noise_for
from louver.privacy.neighbours import Relation
from louver.privacy.spend import request_of
from louver.topdown.knowledge.implied import MAX_TYPES, UNBOUNDED, Implied, LevelStatements, derive
from louver.topdown.problem import Design, Problem, Query, RegionNoise, Statement, Workload

__all__ = ["MeasuredQuery", "QueryPlan", "make_plan", "measurable", "sensitivity"]

NOT_IN_REQUEST = {
    "topdown.bounds": "they are public and constrain the estimate; no true answer and no noise depends on them",
    "topdown.covariates": "they are public and enter the estimate's prior; no true answer and no noise depends on them",
    "topdown.extended_by": "it adds bounds, which are public",
    "topdown.spine": "it determines the regions, which are part of the request",
    "topdown.published": "such measurements are only used for estimation and never made here",
    "topdown.acknowledge_invariants": "it permits measuring a spec in addition to others, and changes no measurement",
    "topdown.estimator": "it applies to measurements already made",
    "topdown.shrink": "likewise",
    "topdown.intervals": "likewise",
    "source.file": "where the records lie; the ledger's keyed hash binds the records themselves",
    "source.uri": "likewise",
}
"""Options that can change neither the true answers nor their noise, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredQuery:
    """One query at one level: its privacy loss and its noise."""

    level: int
    query: Query
    loss: Loss
    distribution: Distribution
    stated: float | None = None
    """The variance that a third party states for noise that louver did not draw."""

    @property
    def variance(self) -> float:
        """Variance of each noisy value."""
        return self.distribution.variance if self.stated is None else self.stated

    def departing(self, precision: float) -> Distribution:
        """The noise of regions whose inverse variance is larger by the given factor."""
        return _noise(replace(self.loss, amount=self.loss.amount * Fraction(precision)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QueryPlan:
    """The measurements of a design, and its statements in terms of types.

    Parameters
    ----------
    design : Design
    measured : tuple of tuple of MeasuredQuery
        For each level. Queries that public knowledge answers exactly are left out, and their share is unspent.
    type_of : ndarray of int64, shape (cells,)
    n_types : int
    by_region : tuple of RegionNoise
        For each level, how its regions deviate from the planned noise if a third party measured them; empty if none does.
    """

    design: Design
    measured: tuple[tuple[MeasuredQuery, ...], ...]
    type_of: Ints
    n_types: int
    by_region: tuple[RegionNoise, ...] = ()

    @property
    def loss(self) -> Loss:
        """The privacy loss of measuring: the budget minus the shares of queries that need no noise."""
        return compose_sequential([query.loss for level in self.measured for query in level])

    @property
    def epsilon_delta(self) -> tuple[Fraction, Fraction] | None:
        """A loss in rho converted to epsilon at the spec's delta, rounded up; None for a loss in pure epsilon."""
        if self.loss.measure is Measure.EPSILON or self.design.options.delta is None:
            return None
        delta = fraction_of(self.design.options.delta, "delta")
        return epsilon_at(self.loss.amount, delta), delta

    @property
    def promise(self) -> tuple[Fraction, Fraction] | None:
        """Epsilon and delta of this release alone, if its noise was chosen by composing all queries."""
        return self.design.options.promise("topdown")

    @property
    def invariants(self) -> tuple[Statement, ...]:
        """Statements whose values are published exactly."""
        return tuple(statement for statement in self.design.statements if statement.is_invariant)

    @property
    def not_protected(self) -> tuple[str, ...]:
        """What the invariants disclose, in words: everything on which neighbours agree."""
        disclosed = []
        is_changed = self.loss.neighbours is Relation.CHANGE_RECORD
        for statement in self.invariants:
            level = self.design.spine.names[statement.level]
            who = " and ".join(f"{name} {' or '.join(labels)}" for name, labels in statement.labels.items())
            if not is_changed:
                what = f"whether a person with {who} is there at all"
            elif who and self.design.spine.sizes[statement.level] > 1:
                what = f"whether a person of a {level} has {who}, and which {level} such a person lives in"
            elif who:
                what = f"whether a person has {who}"
            elif self.design.spine.sizes[statement.level] > 1:
                what = f"which {level} a person lives in"
            else:
                what = "how many people there are"
            disclosed.append(f'{what} (invariant "{statement.name}")')
        return tuple(disclosed)

    def request(self) -> str:
        """A digest of what is measured, for the ledger: the design, and the noise of every query."""
        design = self.design
        return request_of(
            "topdown",
            {"topdown": design.options, "source": design.spec.source},
            NOT_IN_REQUEST,
            (
                (design.spine.names[query.level], query.query.name, query.distribution)
                for level in self.measured
                for query in level
            ),
            schema=repr(design.spec.schema),
            attributes=repr(design.attributes),
            regions=[design.spine.names, design.spine.leaves],
            **({"first": design.extends} if design.extends else {}),
            **({} if design.arrangement is None else {"arranged": design.arranged_regions()}),
        )

    def workloads(self) -> tuple[Workload, ...]:
        """Queries and variances of every level; a level that was not measured has an unanswered query of all cells."""
        detailed = self.design.queries[-1]
        return tuple(
            Workload(
                queries=tuple(query.query for query in measured) or (detailed,),
                variances=tuple(query.variance for query in measured) or (1.0,),
                noise=measured[0].distribution.name if measured else DiscreteGaussian.name,
                by_region=self.by_region[level] if self.by_region else None,
            )
            for level, measured in enumerate(self.measured)
        )

    def problem(self, invariants: Mapping[str, Ints], *, above_leaves: bool = True) -> Problem:
        """The estimation problem, given the exact values (regions,) of every invariant."""
        return Problem(
            spine=self.design.spine,
            n_cells=self.design.n_cells,
            is_possible=self.design.is_possible,
            type_of=self.type_of,
            implied=self.implied(invariants, above_leaves=above_leaves),
            workloads=self.workloads(),
            shape=self.design.shape,
            covariates=self.design.covariates,
        )

    def implied(self, invariants: Mapping[str, Ints], *, above_leaves: bool = True) -> Implied:
        """The implied constraints of all levels; an invariant without values binds nothing."""
        levels = self.statements(invariants)
        return derive(self.design.spine, self.n_types, levels, above_leaves=above_leaves)

    def statements(self, invariants: Mapping[str, Ints]) -> tuple[LevelStatements, ...]:
        """All statements as bounds on sets of types, level by level."""
        return tuple(self._level_statements(level, invariants) for level in range(self.design.spine.n_levels))

    def mask_of(self, statement: Statement) -> int:
        """The set of types that a statement covers."""
        return sum(1 << int(t) for t in np.unique(self.type_of[statement.cells]))

    def _level_statements(self, level: int, invariants: Mapping[str, Ints]) -> LevelStatements:
        """All statements about one level, one column for each set of types."""
        n_regions = self.design.spine.sizes[level]
        bounds: dict[int, tuple[Ints, Ints]] = {}
        for statement in self.design.statements:
            if statement.level == level:
                low, high = statement.lower, statement.upper
                if statement.is_invariant:
                    low = invariants.get(statement.name, np.zeros(n_regions, np.int64))
                    high = invariants.get(statement.name, np.full(n_regions, UNBOUNDED))
                _tighten(bounds, self.mask_of(statement), low, high)
        if level == self.design.spine.n_levels - 1:
            for t in range(self.n_types):
                if not self.design.is_possible[self.type_of == t].any():
                    _tighten(bounds, 1 << t, np.zeros(n_regions, np.int64), np.zeros(n_regions, np.int64))
        if not bounds:
            return LevelStatements.nothing(n_regions)
        masks = tuple(sorted(bounds))
        return LevelStatements(
            masks=masks,
            lower=np.column_stack([bounds[mask][0] for mask in masks]),
            upper=np.column_stack([bounds[mask][1] for mask in masks]),
        )

    def kept_margin(self) -> Ints:
        """Positions of all cells in the margin over the attributes that types do not involve."""
        shape = self.design.shape
        types = self.type_of.reshape(shape)
        place = np.zeros(shape, dtype=np.int64)
        for axis in range(len(shape)):
            is_involved = (types != np.take(types, [0], axis=axis)).any()
            if not is_involved:
                index = np.arange(shape[axis]).reshape([-1 if a == axis else 1 for a in range(len(shape))])
                place = place * shape[axis] + index
        return place.ravel()


def _tighten(bounds: dict[int, tuple[Ints, Ints]], mask: int, lower: Ints, upper: Ints) -> None:
    """Add a statement; several statements about one set all apply."""
    if mask in bounds:
        lower, upper = np.maximum(bounds[mask][0], lower), np.minimum(bounds[mask][1], upper)
    bounds[mask] = (lower, np.minimum(upper, UNBOUNDED))


def make_plan(design: Design) -> QueryPlan:
    """Choose the noise of every query, and the types.

    Raises
    ------
    InputError
        If the statements need more types than can be handled, or the invariants leave nobody to protect.
    """
    if not _has_neighbours(design):
        relation = design.budget.neighbours
        message = f"the invariants fix so much that no two tables are neighbours ({relation}); nothing would be protected."
        raise InputError(message, option="invariants")
    type_of, n_types = _choose_types(design)
    design = _composed(design)
    by_name = {query.name: query for query in design.queries}
    measured = []
    is_paid = (
        design.options.published is None
    )  # the shares of published measurements need not add up to a budget
    losses: tuple[Loss, ...] = ()
    if is_paid:
        losses = split(design.budget, design.level_shares)
    for level, (held, shares) in enumerate(zip(design.level_shares, design.query_shares, strict=True)):
        if is_paid:
            parts = split(losses[level], list(shares.values()))
        else:
            amounts = [design.budget.amount * held * share for share in shares.values()]
            parts = tuple(replace(design.budget, amount=amount) for amount in amounts)
        measured.append(
            tuple(
                MeasuredQuery(
                    level=level,
                    query=by_name[name],
                    loss=part,
                    distribution=_noise(part),
                    stated=_stated_variance(design, level, name),
                )
                for name, part in zip(shares, parts, strict=True)
                if not _is_known(design, level, by_name[name])
            )
        )
    return QueryPlan(design=design, measured=tuple(measured), type_of=type_of, n_types=n_types)


def _stated_variance(design: Design, level: int, query: str) -> float | None:
    """The usual variance of published measurements."""
    published = design.options.published
    return None if published is None else published.variance(design.spine.names[level], query)


def _composed(design: Design) -> Design:
    """The design with the total rho that its measured queries may spend, if it promises an epsilon and a delta."""
    promise = design.options.promise("topdown")
    shares = [
        level_share * design.query_shares[level][query.name]
        for level, level_share in enumerate(design.level_shares)
        for query in design.queries
        if query.name in design.query_shares[level] and not _is_known(design, level, query)
    ]
    if promise is None or not shares:
        return design
    changed: Changes = (
        (1, sensitivity(design.budget.neighbours)[1]),
    )  # the number of rows of a query that change, by one each
    rho = largest_rho(*promise, shares, [[changed] * len(shares)])
    return replace(design, budget=replace(design.budget, amount=rho))


def _has_neighbours(design: Design) -> bool:
    """Whether two tables can differ in one record and agree on every invariant; not checked for published measurements."""
    if design.options.published is not None:
        return True
    invariants = [statement for statement in design.statements if statement.is_invariant]
    deepest = np.full(design.n_cells, -1)  # level of the finest invariant that counts a cell
    kept = np.zeros(
        design.n_cells, dtype=np.int64
    )  # cells with equal numbers are counted by the same invariants
    for statement in invariants:
        deepest = np.where(statement.cells, np.maximum(deepest, statement.level), deepest)
        kept = np.unique(kept * 2 + statement.cells, return_inverse=True)[1]
    deepest, kept = deepest[design.is_possible], kept[design.is_possible]
    if design.budget.neighbours is Relation.ADD_REMOVE_RECORD:
        return bool((deepest < 0).any())
    # A record may change to another such cell, or move to another leaf of the same region of its invariants.
    n_leaves = design.spine.sizes[-1]
    regions = np.array([1, *design.spine.sizes])[deepest + 1]
    return len(np.unique(kept)) < len(kept) or bool((regions < n_leaves).any())


def sensitivity(neighbours: Relation) -> tuple[int, int]:
    """L1 and squared L2 sensitivity of one query over all regions of a level."""
    return (2, 2) if neighbours is Relation.CHANGE_RECORD else (1, 1)


def _noise(loss: Loss) -> Distribution:
    l1, l2_squared = sensitivity(loss.neighbours)
    return noise_for(loss, l1=l1, l2_squared=l2_squared)


def measurable(design: Design) -> Bools:
    """Which queries need noise at which level (levels, queries): those that invariants do not answer."""
    known = [
        [_is_known(design, level, query) for query in design.queries]
        for level in range(design.spine.n_levels)
    ]
    return ~np.array(known, dtype=np.bool_)


def _is_known(design: Design, level: int, query: Query) -> bool:
    """Whether invariants of this level or below give every row of a query exactly; published measurements are kept in any case."""
    if design.options.published is not None:
        return False
    exact = [s.cells for s in design.statements if s.is_invariant and s.level >= level]
    rows = (query.row_of == row for row in range(query.n_rows))
    return bool(exact) and all(any(np.array_equal(row, cells) for cells in exact) for row in rows)


def _choose_types(design: Design) -> tuple[Ints, int]:
    """Divide the cells so that every statement covers whole types.

    If a query measured at every level divides them at least as finely into few parts, its rows become the types, because measured type
    counts need no extra work.
    """
    signature = np.zeros(design.n_cells, dtype=np.int64)
    for statement in design.statements:
        _, signature = np.unique(signature * 2 + statement.cells, return_inverse=True)
    always = set.intersection(*(set(shares) for shares in design.query_shares))
    for query in sorted(design.queries, key=lambda query: query.n_rows):
        if query.name in always and query.n_rows <= MAX_TYPES and _refines(query, signature):
            return query.row_of, query.n_rows
    n_types = int(signature.max()) + 1
    if n_types > MAX_TYPES:
        message = f"the invariants and bounds divide the cells into {n_types} types; at most {MAX_TYPES} are possible."
        raise InputError(message, option="bounds")
    return signature.astype(np.int64), n_types


def _refines(query: Query, signature: Ints) -> bool:
    """Whether all cells of each row have one signature."""
    pairs = np.unique(query.row_of * (int(signature.max()) + 1) + signature)
    return len(pairs) == len(np.unique(query.row_of)) == query.n_rows
