"""Shares of the budget, chosen for what will be asked of the release, as exact fractions.

What is minimised is the weighted sum, over levels and queries, of the standard error of one row relative to what the paper's
algorithm with equal shares would have. It is public: regions, cells and queries decide it, and no data.

Notes
-----
**Implements**: Abowd et al. (2019), section 5.1, asks for workload and noise to be fitted to each other (matrix mechanism); for
unions of marginals least squares has variances in closed form (`ScalarTree`), and these are minimised directly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from scipy.optimize import minimize

from louver._arrays import Bools, Floats
from louver.errors import InputError
from louver.privacy.budget import Measure
from louver.privacy.neighbours import Relation
from louver.topdown.design import DETAILED, Design
from louver.topdown.options import SharesOptions
from louver.topdown.problem import Query
from louver.topdown.scalar_tree import Numbers, ScalarTree
from louver.topdown.subspaces import Subspaces, mask_of

__all__ = ["DEFAULT_PEOPLE", "Aim", "Choice", "choose_shares", "equal_shares", "exact_marginals", "with_shares"]

PARTS = 200
"""Shares are whole numbers of these parts; every level has one at least for its cells."""

DEFAULT_PEOPLE = 50
"""People of a leaf, where nothing is said."""

LOWEST = 3
"""Levels that the workload "below" looks at."""

STEEP = 30.0  # what being worse than equal shares costs, and how sharply a target is kept
Objective = Callable[[Numbers], Numbers]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Aim:
    """What a release is for.

    Parameters
    ----------
    weights : ndarray of float64, shape (levels, queries)
        How much the error of each query matters.
    targets : mapping of (level, query) to float
        Standard errors that are to be reached.
    is_even : bool
        Whether no level and query may be worse than with equal shares.
    """

    weights: Floats
    targets: Mapping[tuple[int, int], float] = field(default_factory=dict)
    is_even: bool = True

    @classmethod
    def named(cls, name: str, n_levels: int, n_queries: int) -> Aim:
        """ "even": all levels and queries count the same, and none shall suffer; "below": the lowest three levels alone."""
        weights = np.ones((n_levels, n_queries))
        if name == "below":
            weights[: max(n_levels - LOWEST, 0)] = 0.0
        return cls(weights=weights, is_even=name == "even")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Choice:
    """Shares, and what they are worth by the closed form.

    Parameters
    ----------
    shares : SharesOptions
    objective : float
        Mean error relative to equal shares.
    budget_factor : float
        Times the budget that the targets need by the closed form; zero without targets.
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
    people: float | None = None,
) -> Choice:
    """Shares that serve an aim best.

    Parameters
    ----------
    design : Design
        Its shares do not matter.
    is_measured : ndarray of bool, shape (levels, queries)
        Which queries may be measured where; others are answered by invariants.
    aim : Aim
    live : ndarray of float64, shape (levels, queries), optional
        Share of rows that are not empty, as a stand-in has it.
    people : float, optional
        Without a stand-in: people in all.

    Raises
    ------
    InputError
        If a query merges labels: then there is no closed form.
    """
    if any(query.axes is None for query in design.queries):
        message = (
            "shares can be chosen only where every query keeps whole attributes; write shares for a spec that merges labels."
        )
        raise InputError(message, option="shares")
    tree = scalar_tree(design, guessed_live(design, people) if live is None else live)
    precision_of = _precision_of(design)
    equal = equal_parts(is_measured)
    usual = tree.variances(precision_of(equal), is_plain=True)
    objective = _objective(tree, precision_of, usual, aim)
    parts = _minimise(objective, is_measured, equal)
    rounded = _rounded(parts, is_measured)
    found = tree.variances(precision_of(rounded))
    return Choice(
        shares=_as_options(design, rounded),
        objective=float(objective(rounded)) / max(float(aim.weights.sum()), 1e-300),
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
    """Every level the same, and every query of a level."""
    n = design.spine.n_levels
    at = {
        name: {query: str(Fraction(1, len(own))) for query in own}
        for name, own in zip(design.spine.names, _names(design, is_measured), strict=True)
    }
    return _grouped({name: str(Fraction(1, n)) for name in design.spine.names}, at)


def equal_parts(is_measured: Bools) -> Floats:
    """The same as numbers (levels, queries)."""
    parts: Floats = is_measured / is_measured.sum(axis=1, keepdims=True) / len(is_measured)
    return parts


def guessed_live(design: Design, people: float | None) -> Floats:
    """Share of rows that are not empty, from people per row alone: odds of 0.15 x people^0.7, as in US census blocks and above."""
    sizes = np.array(design.spine.sizes, dtype=np.float64)
    total = sizes[-1] * DEFAULT_PEOPLE if people is None else people
    odds = 0.15 * (total / sizes[:, None] / [query.n_rows for query in design.queries]) ** 0.7
    return np.clip(odds / (1.0 + odds), 0.02, 1.0)


def scalar_tree(design: Design, live: Floats) -> ScalarTree:
    """The tree that stands for a design's."""
    subspaces = Subspaces(design.shape)
    sets, known = np.arange(subspaces.n_sets), []
    for exact in exact_marginals(design):
        inside = [(sets & ~mask_of(query)) == 0 for query in exact]
        known.append(np.any(inside, axis=0) if inside else np.zeros(len(sets), dtype=np.bool_))
    sizes = np.array(design.spine.sizes, dtype=np.float64)
    return ScalarTree(
        children=sizes[1:] / sizes[:-1],
        gain=np.array([subspaces.precision([query], [1.0]) for query in design.queries]),
        spread=np.stack([subspaces.spread(query) for query in design.queries], axis=1),
        is_known=np.array(known),
        live=live,
    )


def exact_marginals(design: Design) -> list[list[Query]]:
    """Marginals that invariants fix at each level: the total, where it is public there or below."""
    everyone = Query(name="", row_of=np.zeros(design.n_cells, np.int64), n_rows=1, axes=())
    known = [s.level for s in design.statements if s.is_invariant and s.cells.all()]
    return [[everyone] if any(level <= own for own in known) else [] for level in range(design.spine.n_levels)]


def _precision_of(design: Design) -> Callable[[Numbers], Numbers]:
    """Precision of one noisy value from its share of the budget."""
    amount = float(design.budget.amount)
    moved = 2.0 if design.budget.neighbours is Relation.CHANGE_RECORD else 1.0
    if design.budget.measure is Measure.RHO:
        return lambda share: 2.0 * amount / moved * share
    return lambda share: np.cosh(np.minimum(amount / moved, 500.0) * share) - 1.0


def _objective(
    tree: ScalarTree, precision_of: Callable[[Numbers], Numbers], usual: Numbers, aim: Aim
) -> Objective:
    """Weighted sum of standard errors over the usual ones, and what an aim forbids."""
    counted = usual.real > 0.0
    scale = np.where(counted, usual, 1.0)
    wanted = np.zeros_like(aim.weights)
    for place, target in aim.targets.items():
        wanted[place] = 1.0 / target**2

    def objective(parts: Numbers) -> Numbers:
        found = tree.variances(precision_of(parts))
        ratio = np.where(counted, found / scale, 1e-12)
        value = (aim.weights * counted * np.sqrt(ratio)).sum(axis=(-2, -1))
        if aim.is_even:
            value = value + STEEP * (np.where(ratio.real > 1.0, ratio - 1.0, 0.0) ** 2).sum(axis=(-2, -1))
        if aim.targets:
            missed = found * wanted
            value = value + STEEP * np.where(missed.real > 0.95, missed - 0.95, 0.0).sum(axis=(-2, -1))
        return value

    return objective


def _minimise(objective: Objective, is_measured: Bools, equal: Floats) -> Floats:
    """Best parts (levels, queries) from several starts, on logarithms; derivatives by complex steps, exact to rounding."""
    floor = np.zeros(is_measured.shape)
    floor[:, -1] = 1.0 / PARTS
    slots = np.flatnonzero(is_measured)
    n, step = len(slots), 1e-30

    def parts_of(logs: Numbers) -> Numbers:
        free = np.exp(logs - logs.real.max(axis=-1, keepdims=True))
        free = free / free.sum(axis=-1, keepdims=True) * (1.0 - floor.sum())
        parts = np.zeros((*logs.shape[:-1], is_measured.size), dtype=logs.dtype)
        parts[..., slots] = free
        return parts.reshape(*logs.shape[:-1], *is_measured.shape) + floor

    def with_slope(logs: Floats) -> tuple[float, Floats]:
        moved = objective(parts_of(logs + 1j * step * np.eye(n)))
        return float(moved[0].real), moved.imag / step

    best: tuple[float, Floats] = (np.inf, equal)
    for start in _starts(is_measured, equal):
        logs = np.log(np.maximum(start, 1e-4)).ravel()[slots]
        found = minimize(with_slope, logs, jac=True, method="L-BFGS-B", options={"maxiter": 500})
        if found.fun < best[0]:
            best = (float(found.fun), parts_of(found.x))
    return best[1]


def _starts(is_measured: Bools, equal: Floats) -> list[Floats]:
    """Everything alike; cells alone; each other query beside the cells; and the same with one level before the others.

    Noise of pure epsilon falls with the square of a share, so that a plan gains from leaving queries out, and there are several
    local optima.
    """
    cells = np.zeros(is_measured.shape)
    cells[:, -1] = 1.0
    starts = [equal, cells]
    for query in range(is_measured.shape[1] - 1):
        beside = cells.copy()
        beside[:, query] = is_measured[:, query]
        starts.append(beside)
    for level in range(len(is_measured)):
        for base in (equal, cells):
            raised = base.copy()
            raised[level] *= 20.0
            starts.append(raised)
    return [start / start.sum() for start in starts]


def _rounded(parts: Floats, is_measured: Bools) -> Floats:
    """Whole numbers of parts that sum to one, by largest remainders; less than half a part is none, but for the cells."""
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
    return (whole / PARTS).reshape(parts.shape)


def _as_options(design: Design, parts: Floats) -> SharesOptions:
    """Exact fractions, as a spec writes them."""
    whole = np.rint(parts * PARTS).astype(int)
    names = [query.name for query in design.queries]
    levels = {
        name: str(Fraction(int(own.sum()), PARTS))
        for name, own in zip(design.spine.names, whole, strict=True)
    }
    at = {
        name: {
            query: str(Fraction(int(n), int(own.sum()))) for query, n in zip(names, own, strict=True) if n
        }
        for name, own in zip(design.spine.names, whole, strict=True)
    }
    return _grouped(levels, at)


def _grouped(levels: dict[str, str], at: Mapping[str, dict[str, str]]) -> SharesOptions:
    """The split of the last level stands for all that have the same."""
    usual = list(at.values())[-1]
    return SharesOptions(
        levels=dict(levels), queries=dict(usual), at={k: own for k, own in at.items() if own != usual}
    )


def _names(design: Design, is_measured: Bools) -> list[list[str]]:
    return [
        [query.name for query, inside in zip(design.queries, own, strict=True) if inside]
        for own in is_measured
    ]


def _budget_factor(design: Design, found: Numbers, aim: Aim) -> float:
    """Times the budget that targets need: noise falls with epsilon, its square with rho."""
    missed = max((float(found[place].real) / target**2 for place, target in aim.targets.items()), default=0.0)
    return missed if design.budget.measure is Measure.RHO else float(np.sqrt(missed))
