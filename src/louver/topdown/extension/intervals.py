"""The errors of the numbers of an extension: both releases are simulated, one after the other.

The numbers of an extension have the error of the first release, whose people it keeps, and their own. So a truth is drawn in two steps:
first of the first release, given its measurements (`errors.simulate`), then of the larger schema, given the extension's measurements of
those people. Both releases are then measured again, with noise of the same distributions under public seeds, and estimated one after the
other. Pairs of true and resulting numbers are used as for a first release (`errors.intervals`), in units of the average error of a level's
numbers. The extension's own noisy answers show whether the truth is rougher than the draws, in the same way.

Notes
-----
**Privacy**: a function of the measurements of both releases, of their published data and of public seeds: post-processing.
**Departs**: simulated people are not edited. Edits change few people and no number of the first release.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from louver._arrays import Bools, Floats, Ints
from louver.engine.engines import Engine
from louver.run import Run
from louver.topdown.errors.intervals import (
    ENOUGH_VALUES,
    KnownError,
    Sample,
    hash_of,
    known_error,
    own_answers,
    residuals,
)
from louver.topdown.errors.simulate import AssumedTruth, SimulatedCounts, public_seed
from louver.topdown.estimation.draws import Draws
from louver.topdown.extension.estimation import estimate_classes
from louver.topdown.extension.first import plan_of_first
from louver.topdown.extension.problem import Extension
from louver.topdown.measuring.noise_plan import QueryPlan
from louver.topdown.measuring.true_counts import SealedCounts
from louver.topdown.problem import DETAILED, Design, NoisyCounts, Query, SparseLevel, add_levels
from louver.topdown.result import MEASUREMENTS_FILE

__all__ = ["simulate_extension"]

MOST_NUMBERS = 1 << 21
"""Approximate count of numbers of one query that are examined in the leaves of a simulation."""

FEWEST_RUNS = 2
"""Minimum number of simulations, because the root contributes one number of each kind to each."""

FEWEST_PAIRS = 10  # number of pairs below which the noise of one answer may be used as the error
LEAST_SQUARE = 0.01  # mean square error of numbers that were right in all simulations

Levels = tuple[SparseLevel, ...]


def simulate_extension(
    extension: Extension,
    leaves: SparseLevel,
    noisy: NoisyCounts,
    *,
    engine: Engine,
    run: Run | None = None,
) -> KnownError | None:
    """Simulate both releases about as often as the extension's spec says; None if it asks for no simulations, or the first release was not
    measured by louver.

    Parameters
    ----------
    extension : Extension
    leaves : SparseLevel
        As released.
    noisy : NoisyCounts
        The measurements of the extension.
    """
    n_runs, first_plan = extension.options.intervals, None
    if n_runs > 0:
        first_plan = plan_of_first(extension.first, extension.design, _has_room(extension))
    if first_plan is None:
        return None
    design, digest = extension.design, hash_of(leaves)
    first_truth = AssumedTruth.of(first_plan, extension.first.leaves)
    first_noisy = SealedCounts(extension.first.path / MEASUREMENTS_FILE, first_plan)
    queries = _queries(design)
    published = add_levels(design.spine, leaves, design.n_cells)
    samples: dict[tuple[int, int], list[Sample]] = {}
    n_seen = done = 0
    while done < n_runs and (done < FEWEST_RUNS or n_seen < ENOUGH_VALUES):
        seeds = [
            public_seed("louver " + what, digest, str(done))
            for what in ("truth", "intervals", "extension", "people")
        ]
        drawn = first_truth.drawn(first_noisy, seeds[0], engine=engine, run=run)
        true = _extended(extension, drawn.levels[-1], noisy, engine, run, Draws(seeds[3] % 2**64))
        again = drawn.simulate(seeds[1], engine=engine, run=run).levels[-1]
        answers = SimulatedCounts(extension.plan, true, seeds[2])
        found = _extended(extension, again, answers, engine, run)
        for level in range(len(found)):
            parts = _samples(extension.plan, level, queries, (true, found, published), (noisy, answers))
            for place, sample in enumerate(parts):
                samples.setdefault((level, place), []).append(sample)
                n_seen += sample.number.size
        done += 1
    exact = max((s.level for s in first_plan.invariants if not s.labels), default=-1)
    units = _units(extension.plan, queries, samples, exact)
    return known_error(extension.plan, None, queries, (units, units), samples, done)


def _has_room(extension: Extension) -> Bools:
    """Cells of the first release that are possible in the larger schema."""
    room = np.zeros(extension.first.n_cells, dtype=np.bool_)
    room[extension.refinement.class_of[extension.design.is_possible]] = True
    return room


def _extended(
    extension: Extension,
    first_leaves: SparseLevel,
    noisy: NoisyCounts,
    engine: Engine,
    run: Run | None,
    draws: Draws | None = None,
) -> Levels:
    """Every level of the larger schema, if the first release had these leaves: estimated, or drawn."""
    assumed = replace(extension, first=replace(extension.first, leaves=first_leaves))
    leaves = estimate_classes(assumed, noisy, engine=engine, draws=draws, run=run).leaves
    return add_levels(extension.design.spine, leaves, extension.design.n_cells)


def _queries(design: Design) -> tuple[Query, ...]:
    """The queries with a table."""
    return tuple(query for query in design.published_queries if query.name != DETAILED)


def _units(
    plan: QueryPlan, queries: Sequence[Query], samples: dict[tuple[int, int], list[Sample]], exact: int
) -> tuple[Floats, ...]:
    """For each level the mean square error of a row of every query (regions, queries); zero where the first release is exact."""
    found = []
    for level, size in enumerate(plan.design.spine.sizes):
        squares = []
        for place, query in enumerate(queries):
            off = np.concatenate([sample.off.ravel() for sample in samples[level, place]])
            square = float(np.square(off).mean())
            if len(off) < FEWEST_PAIRS:
                square = max(square, _row_variance(plan, level, query))
            squares.append(0.0 if query.n_rows == 1 and level <= exact else max(square, LEAST_SQUARE))
        found.append(np.tile(squares, (size, 1)))
    return tuple(found)


def _row_variance(plan: QueryPlan, level: int, query: Query) -> float:
    """Variance of one row by the level's answers that add up to it; that of one answer where none do."""
    precision = 0.0
    for one in plan.measured[level]:
        pairs = np.unique(one.query.row_of * query.n_rows + query.row_of)
        if len(pairs) == one.query.n_rows:
            precision += query.n_rows / (one.query.n_rows * one.distribution.variance)
    if precision:
        return 1.0 / precision
    answers = [one.distribution.variance for own in plan.measured for one in own if own]
    return float(min(answers))


def _samples(
    plan: QueryPlan,
    level: int,
    queries: Sequence[Query],
    counts: tuple[Levels, Levels, Levels],
    noisy: tuple[NoisyCounts, NoisyCounts],
) -> Iterator[Sample]:
    """Numbers of every query in whole families of a level: true, resulting and published numbers."""
    true, found, published = (levels[level] for levels in counts)
    spine = plan.design.spine
    regions = np.arange(spine.sizes[level])
    if level == spine.n_levels - 1 and level:
        regions = _chosen(spine.starts[level - 1], max(query.n_rows for query in queries))
    starts = np.zeros(1, np.int64)
    if level:
        parent = np.searchsorted(spine.starts[level - 1], regions, side="right") - 1
        starts = np.flatnonzero(np.diff(parent, prepend=-1)).astype(np.int64)
    seen, simulated = (own_answers(plan, own, level, queries, regions) for own in noisy)
    for place, query in enumerate(queries):
        number = query.answer(found.take(regions))
        yield Sample(
            regions,
            starts,
            number,
            query.answer(true.take(regions)) - number,
            np.zeros(number.shape, np.bool_),
            residuals(seen[place], query.answer(published.take(regions))),
            residuals(simulated[place], number),
        )


def _chosen(starts: Ints, n_rows: int) -> Ints:
    """Leaves that are examined: all, or those of every n-th family."""
    every = max(1, -(-int(starts[-1]) * n_rows // MOST_NUMBERS))
    families = [np.arange(starts[i], starts[i + 1]) for i in range(0, len(starts) - 1, every)]
    return np.concatenate(families).astype(np.int64)
