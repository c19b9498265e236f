"""The error of every published number: a standard error and a 90 % interval, simulated from the measurements themselves.

A truth is drawn from the posterior that "bayes" learns from the measurements, whichever estimator made the release: a release is smoother
than the truth behind it, and errors simulated from it are too small. The draw is measured again with noise of the same distributions under
public seeds, and estimated by the release's estimator. Every simulation gives pairs of a true and a resulting number, for all regions
above the leaves and some thousand leaves. The error of a published number is that of equal results in simulations, in units of the
least-squares uncertainty (`error_model`). Where results are too few to be pooled, the least-squares errors are used. The measurements show
whether the truth is still rougher than the draws.

Where the truth is rougher than the draws, simulations understate errors. Each region's own noisy answer y minus the published number is
the error of the published number plus noise: r = (truth - published) + noise. Noise and its part in the published number are the same in
simulations, so E r^2 differs from that of simulations by as much as the squared error does. The ratio of squared errors is therefore 1 +
(mean r^2 - mean simulated r^2) / mean simulated squared error: public, and without any assumption about the truth except that the
estimator reacts to noise there as it does in simulations.

Notes
-----
**Privacy**: a function of the measurements, the released counts, the public plan and public seeds, and of nothing else: post-processing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from louver._arrays import Floats, Ints
from louver.data.regions import RegionTree
from louver.engine.engines import ONE_CORE, Engine
from louver.run import Run
from louver.topdown.errors.error_model import (
    COVERAGE,
    ErrorClasses,
    ErrorModel,
    Interval,
    calibrate_unions,
    in_units,
)
from louver.topdown.errors.simulate import AssumedTruth, Simulated, public_seed
from louver.topdown.estimation.estimators import ESTIMATORS
from louver.topdown.estimation.region_noise import LabelTree
from louver.topdown.estimation.subspaces import Subspaces, tree_variances
from louver.topdown.measuring.noise_plan import QueryPlan
from louver.topdown.measuring.true_counts import batches_of
from louver.topdown.problem import NoisyCounts, Problem, Query, SparseLevel

__all__ = [
    "ENOUGH_VALUES",
    "POOLED",
    "KnownError",
    "Sample",
    "Squares",
    "bias_by_size",
    "fit_classes",
    "hash_of",
    "own_answers",
    "residuals",
    "roughened",
    "roughness",
    "simulate_errors",
]

MOST_LEAVES = 3_000
"""Approximate number of leaves in one simulation."""

MOST_VALUES = 300_000
"""Approximate count of numbers examined for each level and query in a simulation."""

LARGEST = 30
"""Number of the largest leaves that are in every simulation, because too few of their size would be drawn at random."""

POOLED = 80
"""Minimum number of pairs from which an interval is derived."""

ENOUGH_VALUES = 600_000
"""Number of simulated cells after which no more simulations are run."""

MOST_RUNS = 12
"""Number of additional simulations where leaves are so few that the errors of their totals could not be pooled."""

TAIL = (1.0 - COVERAGE) / 2
GROWTH = 1.3  # from one class to the next
N_STEPS = 8  # iterations that find how errors divide among siblings
BOUNDED_AT_ONCE = 50_000  # regions

SIZES = (0, 1, 10, 50, 100, 250, 1_000)
"""Lower limits of the size classes by which bias is reported."""


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Numbers of one query in whole families of one level: the results of a simulation and the true numbers.

    Parameters
    ----------
    regions : ndarray of int64
    starts : ndarray of int64
        Where each family begins.
    number, off : ndarray of int64, shape (regions, rows)
        The result, and the truth minus the result.
    is_fixed : ndarray of bool, shape (regions, rows)
        Whether public knowledge leaves only one possible number.
    seen, simulated : Squares
        Squares of a region's own noisy answers minus the published numbers, and of simulated answers minus the results, where there are
        people.
    """

    regions: Ints
    starts: Ints
    number: Ints
    off: Ints
    is_fixed: NDArray[np.bool_]
    seen: Squares
    simulated: Squares


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KnownError:
    """The findings of the simulations of a release.

    Parameters
    ----------
    problem : Problem or None
        The problem whose bounds cut intervals; None if intervals are not cut.
    queries : tuple of Query
        Those of the design, and the total where none of them is.
    model : ErrorModel
    own, final : tuple of ndarray, shape (regions, queries)
        For each level the variances of least squares: from a region's subtree alone, and from the whole tree.
    simulations : int
    bias : tuple of (level, query, size from, numbers, mean truth less published)
        In people, by size class of the published number.
    """

    problem: Problem | None
    queries: tuple[Query, ...]
    model: ErrorModel
    own: tuple[Floats, ...]
    final: tuple[Floats, ...]
    simulations: int
    bias: tuple[tuple[str, str, int, int, float], ...]

    def typical_error(self, level: int, place: int) -> float:
        """Typical standard error of a number of one query at one level; 0 where all are exact."""
        classes = self.model.classes[level, place]
        unit = float(np.sqrt(np.median(self.final[level][:, place])))
        weight = np.maximum(classes.pairs, 1)
        return float(np.sqrt(np.average(np.square(classes.error), weights=weight))) * unit

    def intervals(self, level: int, query: Query, region: Ints, row: Ints, number: Ints) -> Interval:
        """Intervals of published numbers: rows of a query in regions of a level. Public knowledge cuts them, and may make them exact."""
        place = next(i for i, own in enumerate(self.queries) if own.name == query.name)
        units = np.sqrt(self.final[level][region, place])
        found = self.model.classes[level, place].intervals(number, units)
        least, most = _known_bounds(self.problem, level, query, region, row)
        lower, upper = np.maximum(found.lower, least), np.minimum(found.upper, most)
        error = np.where(least == most, 0.0, found.standard_error)
        return Interval(error, np.minimum(lower, number), np.maximum(upper, number))

    def to_tables(self, spine: RegionTree) -> tuple[pa.Table, pa.Table]:
        """The model, and every region with its parent and its variances, query by query, in the order of the tree."""
        levels: list[str] = []
        codes: list[str] = []
        parents: list[str | None] = []
        for level, own in enumerate(spine.codes):
            levels += [spine.names[level]] * len(own)
            codes += own
            if level == 0:
                parents += [None] * len(own)
                continue
            for parent, n in zip(spine.codes[level - 1], np.diff(spine.starts[level - 1]), strict=True):
                parents += [parent] * int(n)
        regions = {
            "level": pa.array(levels, pa.string()).dictionary_encode(),
            "region": pa.array(codes, pa.string()),
            "parent": pa.array(parents, pa.string()).dictionary_encode(),
        }
        for name, parts in (("own_variance", self.own), ("variance", self.final)):
            values = np.concatenate(parts)
            regions[name] = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])
        return self.model.to_table(), pa.table(regions)


def simulate_errors(
    plan: QueryPlan,
    leaves: SparseLevel,
    noisy: NoisyCounts,
    *,
    engine: Engine = ONE_CORE,
    run: Run | None = None,
) -> KnownError | None:
    """Simulate a release about as often as its design says, from its own measurements; None if the design has no simulations.

    There are more simulations where leaves are few, and fewer where cells are many.
    """
    n_runs, spine = plan.design.options.intervals, plan.design.spine
    if n_runs == 0:
        return None
    n_runs = max(n_runs, min(MOST_RUNS, -(-POOLED // spine.sizes[-1])))
    truth = AssumedTruth.of(plan, leaves)
    queries = plan.design.published_queries
    own, final = least_squares_units(plan, truth.problem, queries)
    digest, most = hash_of(leaves), min(MOST_LEAVES, max(1, MOST_VALUES // plan.design.n_cells))
    samples: dict[tuple[int, int], list[Sample]] = {}
    n_seen = 0
    for i in range(n_runs):
        if n_seen > ENOUGH_VALUES:
            n_runs = i
            break
        among = truth.families(most, largest=LARGEST, turn=i)
        seeds = (public_seed("louver " + what, digest, str(i)) for what in ("truth", "intervals"))
        drawn = truth.drawn(noisy, next(seeds), among=among, engine=engine, run=run)
        found = drawn.simulate(next(seeds), among=among, engine=engine, run=run)
        for level in range(spine.n_levels):
            for place, sample in enumerate(_samples(drawn, found, (truth.levels, noisy), level, queries)):
                samples.setdefault((level, place), []).append(sample)
            n_seen += sample.number.size
    return known_error(plan, truth.problem, queries, (own, final), samples, n_runs)


def known_error(
    plan: QueryPlan,
    problem: Problem | None,
    queries: Sequence[Query],
    units: tuple[tuple[Floats, ...], tuple[Floats, ...]],
    samples: dict[tuple[int, int], list[Sample]],
    n_runs: int,
) -> KnownError:
    """The model fitted to all pairs; `units` are each region's own and final ones."""
    spine, (own, final) = plan.design.spine, units
    model = ErrorModel(
        levels=spine.names,
        queries=tuple(query.name for query in queries),
        classes={
            (level, place): fit_classes(parts, own[level][:, place], final[level][:, place])
            for (level, place), parts in samples.items()
        },
        unions={},
    )
    unions = {}
    for place in range(len(queries)):
        by_level = [samples[level, place] for level in range(spine.n_levels)]
        unions[place] = calibrate_unions(model, spine, place, by_level, own, final, least_pairs=POOLED)
    return KnownError(
        problem=problem,
        queries=tuple(queries),
        model=roughened(replace(model, unions=unions), samples),
        own=own,
        final=final,
        simulations=n_runs,
        bias=bias_by_size(plan, queries, samples),
    )


def roughened(model: ErrorModel, samples: dict[tuple[int, int], list[Sample]]) -> ErrorModel:
    """The model with errors enlarged where the measurements show that the truth varies more than the release."""
    classes = {}
    for key, parts in samples.items():
        n_repeats = (
            1 if key[0] == len(model.levels) - 1 else len(parts)
        )  # above the leaves, all simulations contain the same regions
        error = float(np.concatenate([np.square(s.off[s.number > 0]) for s in parts] or [np.zeros(1)]).mean())
        ratio = roughness(
            _together([s.seen for s in parts], n_repeats), _together([s.simulated for s in parts]), error
        )
        classes[key] = model.classes[key].widened(ratio)
    return replace(model, classes=classes)


def _together(parts: Sequence[Squares], repeats: int = 1) -> Squares:
    """Squares of several samples, each value with its number of occurrences."""
    n = sum(part.n for part in parts)
    if not n:
        return Squares(0.0, 0.0, 0)
    mean = sum(part.n * part.mean for part in parts) / n
    return Squares(mean, repeats * sum((part.n / n) ** 2 * part.variance for part in parts), n)


def hash_of(leaves: SparseLevel) -> str:
    """Hash of the released counts, which ties simulations to them."""
    hasher = hashlib.sha256()
    for part in (leaves.start, leaves.cell, leaves.count):
        hasher.update(np.ascontiguousarray(part, "<i8").tobytes())
    return hasher.hexdigest()


def least_squares_units(
    plan: QueryPlan, problem: Problem, queries: Sequence[Query]
) -> tuple[tuple[Floats, ...], tuple[Floats, ...]]:
    """Least-squares variances (regions, queries) of a row, for each level: own and final.

    Queries that merge labels are not counted as measured here, which errs on the side of caution.
    """
    design = plan.design
    known = max((s.level for s in plan.invariants if not s.labels), default=-1)
    climbs = ESTIMATORS[design.options.estimator].uses_tree
    if plan.by_region:
        exact_levels = [level <= known for level in range(design.spine.n_levels)]
        return LabelTree.of(problem, is_climbing=climbs).variances(problem, queries, exact_levels)
    subspaces = Subspaces(design.shape)
    loads = []
    for load in plan.workloads():
        kept = [i for i, query in enumerate(load.queries) if query.axes is not None]
        loads.append(
            replace(
                load,
                queries=tuple(load.queries[i] for i in kept),
                variances=tuple(load.variances[i] for i in kept),
            )
        )
    everyone = Query(name="all", row_of=np.zeros(design.n_cells, np.int64), n_rows=1, axes=())
    exact = [[everyone] if level <= known else [] for level in range(design.spine.n_levels)]
    up, final = tree_variances(
        design.spine,
        subspaces,
        loads,
        exact=exact,
        is_climbing=climbs,
    )
    spreads = [
        subspaces.spread_of_rows(query) if query.axes is None else subspaces.spread(query)
        for query in queries
    ]
    spread = np.stack(spreads, axis=1)
    return tuple(part @ spread for part in up), tuple(part @ spread for part in final)


def _samples(
    truth: AssumedTruth,
    found: Simulated,
    release: tuple[Sequence[SparseLevel], NoisyCounts],
    level: int,
    queries: Sequence[Query],
) -> Iterator[Sample]:
    """The whole families of a level that are examined, for every query."""
    spine = truth.problem.spine
    regions = found.leaves if level == spine.n_levels - 1 else np.arange(spine.sizes[level])
    starts = np.zeros(1, np.int64)
    if level > 0:
        parent = np.searchsorted(spine.starts[level - 1], regions, side="right") - 1
        starts = np.flatnonzero(np.diff(parent, prepend=-1)).astype(np.int64)
    n_kept = int(np.searchsorted(starts, max(1, MOST_VALUES // truth.plan.design.n_cells)))
    if n_kept < len(starts):
        regions, starts = regions[: starts[n_kept]], starts[:n_kept]
    first, last = int(regions[0]), int(regions[-1]) + 1
    true, published = (levels[level].part(first, last) for levels in (truth.levels, release[0]))
    out = found.levels[level].part(0, len(regions))
    seen, simulated = (own_answers(truth.plan, x, level, queries, regions) for x in (release[1], found.noisy))
    for place, query in enumerate(queries):
        number = query.answer(out)
        region, row = np.indices(number.shape).reshape(2, -1)
        least, most = _known_bounds(truth.problem, level, query, regions[region], row)
        yield Sample(
            regions,
            starts,
            number,
            query.answer(true)[regions - first] - number,
            (least == most).reshape(number.shape),
            residuals(seen[place], query.answer(published)[regions - first]),
            residuals(simulated[place], number),
        )


def residuals(answers: Floats, numbers: Ints) -> Squares:
    """Residuals: noisy answers minus numbers, where the number is positive and something was measured."""
    held = numbers[: len(answers)]
    return Squares.of((answers - held)[(held > 0) & ~np.isnan(answers)])


def fit_classes(samples: Sequence[Sample], own: Floats, final: Floats) -> ErrorClasses:
    """Classes of the numbers of one level and query, from all simulations; where pairs are few, those of least squares.

    Numbers that public knowledge fixes are left out: they are exact, and say nothing about the others. Where the truth cannot be below an
    interval because that would be less than zero, its upper end may leave out the whole tenth.
    """
    unit = np.concatenate(
        [np.repeat(np.sqrt(final[s.regions])[:, None], s.number.shape[1], 1) for s in samples]
    )
    number = np.concatenate([s.number for s in samples])
    off = np.concatenate([s.off for s in samples])
    is_fixed = np.concatenate([s.is_fixed for s in samples])
    is_open = (unit > 0) & ~is_fixed
    unit, number, off = unit[is_open], number[is_open], off[is_open]
    size, error = in_units(number, unit), off / unit
    if len(size) < POOLED:
        linear = ErrorClasses.linear()
        return replace(linear, within=_within(linear, samples, own, final)) if is_fixed.any() else linear
    first = class_starts(size, POOLED)
    place = np.searchsorted(first, size, side="right") - 1
    found_moments = []
    for i in range(len(first)):
        here = place == i
        lower = _tail(error[here], TAIL)
        least = np.maximum(np.rint(number[here] + lower * unit[here]), 0)
        freed = TAIL - float((number[here] + off[here] < least).mean())
        rms = float(np.sqrt(np.square(error[here]).mean()))
        found_moments.append(
            (float(error[here].mean()), rms, lower, -_tail(-error[here], TAIL + max(freed, 0.0)))
        )
    bias, rms, lower, upper = np.array(found_moments).T
    classes = ErrorClasses(
        first=first,
        pairs=np.bincount(place, minlength=len(first)),
        bias=bias,
        error=rms,
        lower=lower,
        upper=upper,
        within=np.ones(len(first)),
    )
    return replace(classes, within=_within(classes, samples, own, final))


def class_starts(size: Floats, least: int) -> Floats:
    """Where classes begin, each a little wider than the one before and of `least` sizes or more; zero is a class of its own if possible."""
    positive = size[size > 0]
    edges = [0.0]
    if len(positive):
        low, high = positive.min() * (1 - 1e-9), positive.max()
        edges += list(low * GROWTH ** np.arange(max(1, int(np.log(high / low) / np.log(GROWTH)) + 1)))
    counts = np.histogram(size, bins=[*edges, np.inf])[0]
    kept, held = [0.0], 0
    for edge, count, left in zip(edges, counts, np.cumsum(counts[::-1])[::-1], strict=True):
        if held >= least and left >= least:
            kept.append(edge)
            held = 0
        held += int(count)
    return np.array(kept)


def _tail(errors: Floats, tail: float) -> float:
    """The quantile below which one more error would lie with at most this frequency."""
    return float(np.sort(errors)[max(int(np.floor(tail * (len(errors) + 1))) - 1, 0)])


def _within(classes: ErrorClasses, samples: Sequence[Sample], own: Floats, final: Floats) -> Floats:
    """For each class, the ratio at which errors not inherited from parents are as large as in the simulations.

    Notes
    -----
    With w = v / s, E (e_c - w_c e_p)^2 = v_c (1 - w_c): solved for the ratios iteratively.
    """
    ratio = np.ones(len(classes.first))
    for _ in range(N_STEPS):
        found, expected = np.zeros(len(ratio)), np.zeros(len(ratio))
        for sample in samples:
            units = np.sqrt(final[sample.regions])[:, None]
            base = np.broadcast_to(own[sample.regions][:, None], sample.number.shape)
            place = classes.place(in_units(sample.number, units))
            lengths = np.diff(np.append(sample.starts, len(sample.regions)))
            v = ratio[place] * base
            summed = np.repeat(np.add.reduceat(v, sample.starts, axis=0), lengths, axis=0)
            above = np.repeat(np.add.reduceat(sample.off, sample.starts, axis=0), lengths, axis=0)
            share = v / np.where(summed > 0, summed, 1.0)
            apart = np.square(sample.off - share * above)
            found += np.bincount(place.ravel(), apart.ravel(), len(ratio))
            expected += np.bincount(place.ravel(), (base * (1.0 - share)).ravel(), len(ratio))
        ratio = np.where(expected > 1e-9, found / np.maximum(expected, 1e-9), ratio)
    return ratio


def _known_bounds(
    problem: Problem | None, level: int, query: Query, region: Ints, row: Ints
) -> tuple[Ints, Ints]:
    """Public bounds on the given rows: none is below zero, and sets of types are within their bounds."""
    least, most = np.zeros(len(region), np.int64), np.full(len(region), np.iinfo(np.int64).max)
    if problem is None or not problem.implied.constrained[level] or not len(region):
        return least, most
    masks = _masks(problem, query)
    for first in range(0, problem.spine.sizes[level], BOUNDED_AT_ONCE):
        last = min(first + BOUNDED_AT_ONCE, problem.spine.sizes[level])
        here = np.flatnonzero((region >= first) & (region < last) & (masks[row] > 0))
        if len(here):
            lower, upper = problem.implied.bounds(level, first, last)
            place = (region[here] - first, masks[row[here]])
            least[here], most[here] = lower[place], upper[place]
    return least, most


def _masks(problem: Problem, query: Query) -> Ints:
    """The set of types that each row of a query equals; 0 where it equals none."""
    masks = np.zeros(query.n_rows, np.int64)
    n_types = problem.implied.n_types
    cells = np.flatnonzero(problem.is_possible)
    held = np.zeros((query.n_rows, n_types), np.int64)
    np.add.at(held, (query.row_of[cells], problem.type_of[cells]), 1)
    whole = np.bincount(problem.type_of[cells], minlength=n_types)
    for row in range(query.n_rows):
        inside = held[row] > 0
        if inside.any() and np.array_equal(held[row][inside], whole[inside]):
            masks[row] = int(np.sum(1 << np.flatnonzero(inside)))
    return masks


def bias_by_size(
    plan: QueryPlan, queries: Sequence[Query], samples: dict[tuple[int, int], list[Sample]]
) -> tuple[tuple[str, str, int, int, float], ...]:
    """Mean of truth minus published number by size class of the true number: the effect of non-negativity and shrinking."""
    lines = []
    for (level, place), parts in samples.items():
        off = np.concatenate([s.off.ravel() for s in parts])
        true = off + np.concatenate([s.number.ravel() for s in parts])
        size = np.searchsorted(SIZES, true, side="right") - 1
        for i in np.unique(size):
            here = off[size == i]
            lines.append(
                (
                    plan.design.spine.names[level],
                    queries[place].name,
                    SIZES[i],
                    len(here),
                    float(-here.mean()),
                )
            )
    return tuple(lines)


USUAL = 0.3
"""Expected deviation of a ratio from 1: a ratio known less precisely than this is shrunk towards 1."""

MOST_READ = 4_000_000
"""Approximate number of noisy values that are read for a level."""

FEWEST = 80  # minimum number of squares for a ratio
LARGEST_FACTOR = 3.0


@dataclass(frozen=True, slots=True)
class Squares:
    """Mean of some squares and its squared standard error."""

    mean: float
    variance: float
    n: int

    @classmethod
    def of(cls, values: Floats) -> Squares:
        """Squares of values."""
        squares, n = np.square(values), len(values)
        return cls(float(squares.mean()), float(squares.var()) / n, n) if n else cls(0.0, 0.0, 0)


def roughness(seen: Squares, simulated: Squares, error: float) -> float:
    """Ratio of squared errors to simulated ones, 1 or more; the less certain, the more it is shrunk towards 1."""
    if min(seen.n, simulated.n) < FEWEST or error <= 0:
        return 1.0
    excess = (seen.mean - simulated.mean) / error
    variance = (seen.variance + simulated.variance) / error**2
    return float(np.clip(1.0 + excess * USUAL**2 / (USUAL**2 + variance), 1.0, LARGEST_FACTOR))


def own_answers(
    plan: QueryPlan, noisy: NoisyCounts, level: int, queries: Sequence[Query], regions: Ints
) -> list[Floats]:
    """Estimates of the rows of queries from a level's own measurements, weighted by precision: arrays (regions, rows).

    Regions that were not measured have NaN.

    Parameters
    ----------
    regions : ndarray of int64
        Ascending. For large levels only the first are examined, and the arrays are correspondingly shorter.
    """
    found: list[list[Floats]] = [[np.zeros((0, query.n_rows))] for query in queries]
    load = plan.workloads()[level]
    for start, stop in batches_of(plan)[level]:
        here = regions[slice(*np.searchsorted(regions, [start, stop]))] - start
        if len(here) and start * load.n_values < MOST_READ:
            answers = noisy.read(level, start, stop)
            weights = [w[here] if len(w) > 1 else w for w in load.precisions(start, stop)]
            unknown = np.zeros(len(here), dtype=np.bool_)
            if load.by_region is not None:
                has_answers = load.by_region.kinds.max(axis=1) > 0
                unknown = ~has_answers[load.by_region.kind_of[start:stop][here]]
            for place, query in enumerate(queries):
                own = _answer(load.queries, weights, query, [part[here] for part in answers])
                own[unknown] = np.nan
                found[place].append(own)
    return [np.concatenate(parts) for parts in found]


def _answer(
    queries: Sequence[Query], weights: Sequence[Floats], query: Query, answers: Sequence[Ints]
) -> Floats:
    """Precision-weighted mean of the estimates from all queries whose rows lie within those of `query`; NaN if there is none."""
    total = np.zeros((len(answers[0]), query.n_rows))
    precision = np.zeros((1, query.n_rows))
    for own, answer, relative in zip(queries, answers, weights, strict=True):
        held = _rows_within(own, query)
        if held is None:
            continue
        order = np.argsort(held, kind="stable")
        starts = np.searchsorted(held[order], np.arange(query.n_rows))
        weight = relative / np.bincount(held, minlength=query.n_rows)
        total += weight * np.add.reduceat(answer[:, order], starts, axis=1)
        precision = precision + weight
    mean: Floats = np.full(total.shape, np.nan)
    np.divide(total, precision, out=mean, where=precision > 0)
    return mean


def _rows_within(inner: Query, outer: Query) -> Ints | None:
    """Row of `outer` that each row of `inner` lies in; None if one lies in several."""
    pairs = np.unique(inner.row_of * outer.n_rows + outer.row_of)
    if len(pairs) != inner.n_rows:
        return None
    return np.asarray(pairs % outer.n_rows)
