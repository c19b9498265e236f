"""Shares of the budget, chosen for the questions the release must answer, as exact fractions.

The objective is the error of one row, over levels and queries, relative to that of the paper's algorithm with equal shares. The error is
that of the spec's estimator: for `bayes` from `bayes_errors`, for the others that of least squares. It is public: regions, cells and
queries determine it, not the data.

Notes
-----
**Implements**: Abowd et al. (2019), section 5.1, asks for workload and noise to be fitted to each other (matrix mechanism); for
unions of marginals least squares has variances in closed form (`ScalarTree`), and these are minimised directly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.optimize import minimize

from louver._arrays import Bools, Floats
from louver.errors import InputError
from louver.privacy.budget import Measure
from louver.privacy.neighbours import Relation
from louver.topdown.estimation.estimators import BAYES, ESTIMATORS, LEAST_SQUARES
from louver.topdown.estimation.subspaces import Subspaces, mask_of
from louver.topdown.options import SharesOptions
from louver.topdown.planning.bayes_errors import (
    BayesErrors,
    Departures,
    Numbers,
    ScalarTree,
    made_up_departures,
)
from louver.topdown.problem import Design, Query

__all__ = [
    "DEFAULT_PEOPLE",
    "Aim",
    "Choice",
    "choose_shares",
    "equal_shares",
    "exact_marginals",
    "guessed_live",
    "has_bayes_errors",
    "plain_words",
    "precision_of",
    "scalar_tree",
    "total_query",
    "with_shares",
]

PARTS = 200
"""Shares are whole multiples of one over this number; every level has at least one for its cells."""

DEFAULT_PEOPLE = 50
"""Number of people in a leaf, unless stated."""

LOWEST = 3
"""Number of levels that the workload "below" covers."""

ROUNDS, TINY = 60, 1e-30  # steps from each start; imaginary step, whose result is an exact derivative
FAINT = (
    5  # a level fitted alone gets too little if its share is this many times smaller than with equal levels
)
STEEP = 30.0  # how sharply a target is enforced
TOTALS = (
    8.0  # weight of a total relative to another query in the workload "even", because all tables have a total
)
MANY = 3_000.0  # number of regions from which a level has full weight
FINEST = 32  # maximum number of cells for which errors of `bayes` are forecast: many empty cells leave more noise in sums than the ideal
LEAVES = 1.1  # extra weight of the leaves
CAP, ROOT_CAP = (
    0.885,
    2.0,
)  # ratio to the errors of the paper's algorithm above which errors count more: for all levels, and for the root
Objective = Callable[[Numbers], Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Aim:
    """The purpose of a release.

    Parameters
    ----------
    weights : ndarray of float64, shape (levels, wanted)
        How much the error of each query matters, including the total (`Design.published_queries`).
    targets : mapping of (level, wanted) to float
        Target standard errors.
    power : float
        Exponent of the relative error: the larger it is, the fewer queries are neglected.
    levels : ndarray of float64, shape (levels,), optional
        Weights of the levels, if their errors are multiplied instead of added up, and no level should be worse than with
        the paper's algorithm.
    """

    weights: Floats
    targets: Mapping[tuple[int, int], float] = field(default_factory=dict)
    power: float = 1.0
    levels: Floats | None = None

    @classmethod
    def for_workload(cls, name: str, design: Design) -> Aim:
        """ "even": all levels and queries count, and none is neglected; "below": only the lowest three levels."""
        weights = np.ones((design.spine.n_levels, len(design.published_queries)))
        if name == "below":
            weights[: max(len(weights) - LOWEST, 0)] = 0.0
            return cls(weights=weights)
        if not has_bayes_errors(design):
            return cls(weights=weights, power=4.0)
        weights[:, [query.n_rows == 1 for query in design.published_queries]] = TOTALS
        levels = np.minimum(np.log1p(np.array(design.spine.sizes, np.float64)) / np.log1p(MANY), 1.0)
        levels[-1] *= LEAVES
        return cls(weights=weights, power=4.0, levels=levels)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Choice:
    """Shares, and their quality according to the closed form.

    Parameters
    ----------
    shares : SharesOptions
    objective : float
        The minimised objective.
    budget_factor : float
        Multiple of the budget that the targets need according to the closed form; zero without targets.
    """

    shares: SharesOptions
    objective: float
    budget_factor: float


def choose_shares(
    design: Design,
    is_measured: Bools,
    aim: Aim,
    *,
    live: Floats | None = None,
    departures: Sequence[Departures] | None = None,
    people: float | None = None,
) -> Choice:
    """The shares that best serve an aim.

    Parameters
    ----------
    design : Design
        Its shares do not matter.
    is_measured : ndarray of bool, shape (levels, queries)
        Which queries may be measured where; others are answered by invariants.
    aim : Aim
    live : ndarray of float64, shape (levels, queries), optional
        Share of rows that are not empty in a stand-in.
    departures : sequence of Departures, optional
        How regions of each level depart from their parents in a stand-in.
    people : float, optional
        Total number of people, if there is no stand-in.

    Raises
    ------
    InputError
        If a query merges labels: then there is no closed form.
    """
    if any(query.axes is None for query in design.queries):
        message = "shares can be chosen only where every query keeps whole attributes; write shares for a spec that merges labels."
        raise InputError(message, option="shares")
    tree = scalar_tree(design, guessed_live(design, people) if live is None else live)
    precision = precision_of(design)
    equal = equal_parts(is_measured)
    squares = _squares(design, tree, departures, people)
    usual = squares.plain(precision(usual_parts(design, is_measured) if has_bayes_errors(design) else equal))
    objective = _objective(tree, precision, squares.own, usual, aim)
    parts = _minimise(objective, is_measured, equal)
    rounded = _rounded(parts, is_measured)
    found = tree.variances(precision(rounded))
    return Choice(
        shares=_as_options(design, rounded),
        objective=float(objective(rounded)),
        budget_factor=_budget_factor(design, found, aim),
    )


def with_shares(design: Design, shares: SharesOptions) -> Design:
    """The same design as if its spec had these shares."""
    levels = tuple(Fraction(shares.levels[name]) for name in design.spine.names)
    queries = tuple(
        {query: Fraction(share) for query, share in shares.at.get(name, shares.queries).items()}
        for name in design.spine.names
    )
    options = design.options.model_copy(update={"shares": shares})
    return replace(design, options=options, level_shares=levels, query_shares=queries)


def equal_shares(design: Design, is_measured: Bools) -> SharesOptions:
    """Equal shares for all levels, and for all queries of a level."""
    n = design.spine.n_levels
    at = {
        name: {query: str(Fraction(1, len(own))) for query in own}
        for name, own in zip(design.spine.names, _names(design, is_measured), strict=True)
    }
    return _grouped({name: str(Fraction(1, n)) for name in design.spine.names}, at)


def equal_parts(is_measured: Bools) -> Floats:
    """Equal shares as numbers (levels, queries)."""
    parts: Floats = is_measured / is_measured.sum(axis=1, keepdims=True) / len(is_measured)
    return parts


def usual_parts(design: Design, is_measured: Bools) -> Floats:
    """Shares of a plan as a person would write it: equal levels, queries 1 : 2 : 3 ... from fewest rows to most."""
    rank = (
        np.argsort(np.argsort([query.n_rows for query in design.queries], kind="stable"), kind="stable") + 1.0
    )
    parts = rank * is_measured
    return np.asarray(parts / parts.sum(axis=1, keepdims=True) / len(parts))


def guessed_live(design: Design, people: float | None) -> Floats:
    """Share of rows that are not empty, from people per row alone: odds of 0.15 x people^0.7, as in US census blocks and above."""
    sizes = np.array(design.spine.sizes, dtype=np.float64)
    total = sizes[-1] * DEFAULT_PEOPLE if people is None else people
    odds = 0.15 * (total / sizes[:, None] / [query.n_rows for query in design.queries]) ** 0.7
    return np.clip(odds / (1.0 + odds), 0.02, 1.0)


def scalar_tree(design: Design, live: Floats) -> ScalarTree:
    """The simplified tree that represents a design's tree."""
    subspaces = Subspaces(design.shape)
    sets, known = np.arange(subspaces.n_sets), []
    for exact in exact_marginals(design):
        inside = [(sets & ~mask_of(query)) == 0 for query in exact]
        known.append(np.any(inside, axis=0) if inside else np.zeros(len(sets), dtype=np.bool_))
    sizes = np.array(design.spine.sizes, dtype=np.float64)
    return ScalarTree(
        children=sizes[1:] / sizes[:-1],
        gain=np.array([subspaces.precision([query], [1.0]) for query in design.queries]),
        spread=np.stack([subspaces.spread(query) for query in design.published_queries], axis=1),
        is_known=np.array(known),
        live=live,
    )


def exact_marginals(design: Design) -> list[list[Query]]:
    """Marginals that invariants fix at each level: the total, if it is public at that level or below."""
    everyone = Query(name="", row_of=np.zeros(design.n_cells, np.int64), n_rows=1, axes=())
    known = [s.level for s in design.statements if s.is_invariant and s.cells.all()]
    return [
        [everyone] if any(level <= own for own in known) else [] for level in range(design.spine.n_levels)
    ]


def total_query(design: Design) -> Query:
    """The query that counts everybody; if the spec has none, the one that is published alongside its queries."""
    return next(query for query in design.published_queries if query.n_rows == 1)


def precision_of(design: Design) -> Callable[[Numbers], Numbers]:
    """Precision of one noisy value from its share of the budget."""
    amount = float(design.budget.amount)
    moved = 2.0 if design.budget.neighbours is Relation.CHANGE_RECORD else 1.0
    if design.budget.measure is Measure.RHO:
        return lambda share: 2.0 * amount / moved * share
    return lambda share: np.cosh(np.minimum(amount / moved, 500.0) * share) - 1.0


def plain_words(design: Design) -> tuple[str, ...]:
    """Warning for `plain` if a level's share relies on measurements above and below it, which `plain` does not use."""
    estimator = ESTIMATORS[design.options.estimator]
    if estimator.uses_tree:
        return ()
    least = min(zip(design.level_shares, design.spine.names, strict=True))
    if least[0] * len(design.level_shares) * FAINT >= 1:
        return ()
    words = (
        f'The estimator "{estimator.name}" fits every level to its own answers alone, and level {least[1]} has {float(least[0]):.2%} of '
        "the budget: "
        f'its counts will be mostly noise. Use "{BAYES.name}" or "{LEAST_SQUARES.name}", or write shares for all levels.'
    )
    return (words,)


def has_bayes_errors(design: Design) -> bool:
    """Whether shares are chosen for errors of `bayes`: not for other estimators or fine tables, whose sums these underestimate."""
    return ESTIMATORS[design.options.estimator].learns_prior and design.n_cells <= FINEST


@dataclass(frozen=True, slots=True)
class _Squares:
    """Mean square errors (..., levels, wanted) of the estimator and of the paper's algorithm, from precisions (..., levels, queries)."""

    own: Objective
    plain: Objective


def _squares(
    design: Design, tree: ScalarTree, departures: Sequence[Departures] | None, people: float | None
) -> _Squares:
    """The errors that a design's estimator makes from its measurements."""
    if not has_bayes_errors(design):
        return _Squares(tree.variances, lambda precision: tree.variances(precision, is_plain=True))
    if departures is None:
        departures = made_up_departures(design, people or DEFAULT_PEOPLE * design.spine.sizes[-1])
    sizes, wanted = design.spine.sizes, design.published_queries
    has_prior = [ESTIMATORS[design.options.estimator].has_prior(sizes, level) for level in range(len(sizes))]
    is_free = not any(s.is_invariant and s.level == len(sizes) - 1 for s in design.statements)
    errors = BayesErrors.of(
        replace(tree, live=np.ones_like(tree.live)),
        departures,
        design.queries,
        wanted,
        has_prior=has_prior,
        has_leaf_prior=has_prior[-1] and is_free,
    )
    return _Squares(errors.squares, errors.plain_squares)


def _objective(
    tree: ScalarTree, precision: Callable[[Numbers], Numbers], squares: Objective, usual: Numbers, aim: Aim
) -> Objective:
    """Weighted errors relative to the usual ones, plus penalties for what an aim forbids."""
    counted = usual.real > 0.0
    scale, weights = np.where(counted, usual, 1.0), aim.weights * counted
    wanted = np.zeros_like(aim.weights)
    for place, target in aim.targets.items():
        wanted[place] = 1.0 / target**2
    caps = np.full((len(weights), 1), CAP)
    caps[0] = ROOT_CAP
    sums = weights.sum(axis=1)

    def objective(parts: Numbers) -> Any:
        own = precision(parts)
        ratio = np.where(counted, squares(own) / scale, 1e-12)
        value = (weights * ratio ** (aim.power / 2)).sum(axis=-1)
        if aim.levels is not None:
            mean = np.where(sums > 0.0, value / np.where(sums > 0.0, sums, 1.0), 1.0)
            above = counted * (ratio**0.5 - caps)
            value = aim.levels * np.log(mean) / aim.power + np.where(above.real > 0.0, above, 0.0).sum(
                axis=-1
            )
        value = value.sum(axis=-1)
        if aim.targets:
            missed = tree.variances(own) * wanted
            value = value + STEEP * np.where(missed.real > 0.95, missed - 0.95, 0.0).sum(axis=(-2, -1))
        return value

    return objective


def _minimise(objective: Objective, is_measured: Bools, equal: Floats) -> Floats:
    """The best parts (levels, queries), on logarithms: from many starts, then from the best plan's neighbours, then to convergence."""
    floor = np.zeros(is_measured.shape)
    floor[:, -1] = 1.0 / PARTS
    slots = np.flatnonzero(is_measured)

    def parts_of(logs: Numbers) -> Numbers:
        free = np.exp(logs - logs.real.max(axis=-1, keepdims=True))
        free = free / free.sum(axis=-1, keepdims=True) * (1.0 - floor.sum())
        parts = np.zeros((*logs.shape[:-1], is_measured.size), dtype=logs.dtype)
        parts[..., slots] = free
        return parts.reshape(*logs.shape[:-1], *is_measured.shape) + floor

    def with_slope(logs: Floats) -> tuple[Any, Any]:
        moved = objective(parts_of(logs[..., None, :] + 1j * TINY * np.eye(len(slots))))
        return moved[..., 0].real, moved.imag / TINY

    def descend(starts: list[Floats]) -> tuple[float, Floats]:
        flat = np.array([start.ravel()[slots] for start in starts])
        logs = _descend_together(lambda logs: with_slope(logs)[1], np.log(np.maximum(flat, 1e-4)))
        values = with_slope(logs)[0]
        return float(values.min()), logs[int(values.argmin())]

    value, logs = descend(_starts(is_measured, equal))
    for _ in range(len(slots)):
        lower, moved = descend(_neighbours(parts_of(logs).real, is_measured))
        if lower > value - 1e-3 * abs(value):
            break
        value, logs = lower, moved
    found = minimize(with_slope, logs, jac=True, method="L-BFGS-B", options={"maxiter": 300})
    return parts_of(found.x).real


def _descend_together(slope_of: Callable[[Floats], Floats], logs: Floats) -> Floats:
    """Move all points (starts, slots) downhill at once; steps grow while a slope keeps its sign (resilient propagation)."""
    step, before = np.full(logs.shape, 0.3), np.zeros(logs.shape)
    for _ in range(ROUNDS):
        slope = slope_of(logs)
        turned = slope * before
        step = np.clip(step * np.where(turned > 0, 1.2, np.where(turned < 0, 0.5, 1.0)), 1e-3, 1.0)
        logs = np.clip(logs - np.sign(slope) * step, -12.0, 12.0)
        before = np.where(turned < 0, 0.0, slope)
    return logs


def _starts(is_measured: Bools, equal: Floats) -> list[Floats]:
    """Starting points: all equal, cells alone, and cells with each other query in turn."""
    cells = np.zeros(is_measured.shape)
    cells[:, -1] = 1.0
    starts = [equal, cells]
    for query in range(is_measured.shape[1] - 1):
        extended = cells.copy()
        extended[:, query] = is_measured[:, query]
        starts.append(extended)
    return [start / start.sum() for start in starts]


def _neighbours(parts: Floats, is_measured: Bools) -> list[Floats]:
    """The same parts with one query of one level raised or left out.

    Noise of pure epsilon falls with the square of a share, so that a plan gains from leaving queries out, and there are many
    local optima.
    """
    moved = []
    for level, query in np.argwhere(is_measured).tolist():
        other = parts.copy()
        other[level, query] = 1e-4 if parts[level, query] > 0.05 else 0.2
        moved.append(other / other.sum())
    return moved


def _rounded(parts: Floats, is_measured: Bools) -> Floats:
    """Shares in whole parts that sum to one, by largest remainders; less than half a part becomes zero, except for the cells."""
    flat = parts.ravel() * PARTS
    is_cells = np.zeros(parts.shape, dtype=np.bool_)
    is_cells[:, -1] = True
    flat = np.where((flat >= 0.5) & is_measured.ravel(), flat, 0.0)
    flat = np.where(is_cells.ravel(), np.maximum(flat, 1.0), flat)
    least = is_cells.ravel().astype(np.float64)
    flat = least + (flat - least) * ((PARTS - least.sum()) / (flat - least).sum())
    whole = np.floor(flat)
    order = np.argsort(whole - flat, kind="stable")
    whole[order[: round(PARTS - whole.sum())]] += 1.0
    rounded: Floats = (whole / PARTS).reshape(parts.shape)
    return rounded


def _as_options(design: Design, parts: Floats) -> SharesOptions:
    """Exact fractions, as a spec writes them."""
    whole = np.rint(parts * PARTS).astype(int)
    names = [query.name for query in design.queries]
    levels = {
        name: str(Fraction(int(own.sum()), PARTS))
        for name, own in zip(design.spine.names, whole, strict=True)
    }
    at = {
        name: {query: str(Fraction(int(n), int(own.sum()))) for query, n in zip(names, own, strict=True) if n}
        for name, own in zip(design.spine.names, whole, strict=True)
    }
    return _grouped(levels, at)


def _grouped(levels: dict[str, str], at: Mapping[str, dict[str, str]]) -> SharesOptions:
    """The split of the last level stands for all levels with an equal split."""
    usual = list(at.values())[-1]
    return SharesOptions(
        levels=dict(levels), queries=dict(usual), at={k: dict(own) for k, own in at.items() if own != usual}
    )


def _names(design: Design, is_measured: Bools) -> list[list[str]]:
    return [
        [query.name for query, inside in zip(design.queries, own, strict=True) if inside]
        for own in is_measured
    ]


def _budget_factor(design: Design, found: Numbers, aim: Aim) -> float:
    """Multiple of the budget that targets need: noise falls with epsilon, its square with rho."""
    missed = max((float(found[place].real) / target**2 for place, target in aim.targets.items()), default=0.0)
    return missed if design.budget.measure is Measure.RHO else float(np.sqrt(missed))
