"""Estimation: from noisy answers to integer histograms of every region, level by level.

It never opens the records. The result depends on the problem and the noisy answers alone: not on the
number of workers, on where it was interrupted, or on the machine's load.

On the first run the solver is compiled by a child process while the rounding is compiled here.

Notes
-----
**Implements**: Abowd et al. (2019), Algorithm 1, TopDownPostprocess.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louver._arrays import Ints
from louver.engine.checkpoint import Checkpoints
from louver.engine.engines import ONE_CORE, Engine, Shared
from louver.errors import InfeasibleError
from louver.optim.aside import Call, compile_calls, compiled_aside
from louver.optim.kernels.families.batches import Batch, round_batch_inplace, solve_batch_inplace
from louver.optim.status import Status
from louver.run import Run
from louver.topdown.estimation.batches import Known, LevelSource, Span
from louver.topdown.estimation.bayes import LevelPrior
from louver.topdown.estimation.draws import Draws
from louver.topdown.estimation.estimators import ESTIMATORS, PLAIN, Estimator
from louver.topdown.estimation.evidence import TreeEvidence
from louver.topdown.estimation.least_squares import encode, solve
from louver.topdown.estimation.rounding import Rescue, rescue, round_counts
from louver.topdown.problem import (
    Families,
    NoisyCounts,
    Problem,
    SparseLevel,
    split_batches,
)

__all__ = ["Estimate", "LevelReport", "RescuedRegion", "estimate", "estimate_by_level", "solver", "warm_up"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RescuedRegion:
    """A parent whose children were estimated by the failsafe."""

    level: str
    region: str
    distance: float
    moved: int
    kept_margin: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelReport:
    """How the regions of one level were estimated.

    Parameters
    ----------
    name : str
    regions : int
    largest_residual : float
        Largest violation of a constraint by the real-valued counts, in persons.
    suboptimal : tuple of str
        Parents whose least squares were accepted without proof of optimality.
    rescued : tuple of RescuedRegion
        Parents that needed the failsafe.
    seconds : float
        Not compared.
    """

    name: str
    regions: int
    largest_residual: float
    suboptimal: tuple[str, ...]
    rescued: tuple[RescuedRegion, ...]
    seconds: float = field(compare=False, default=0.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimate:
    """Integer histograms of the leaves; regions above them are their sums.

    Parameters
    ----------
    leaves : SparseLevel
    levels : tuple of LevelReport
        The root first.
    """

    leaves: SparseLevel
    levels: tuple[LevelReport, ...]

    @classmethod
    def of(cls, steps: Iterable[tuple[SparseLevel, LevelReport]]) -> Estimate:
        """The last of the levels estimated one after another, and the report on each of them."""
        levels, reports = zip(*steps, strict=True)
        return cls(leaves=levels[-1], levels=reports)

    @property
    def rescued(self) -> tuple[RescuedRegion, ...]:
        """All uses of the failsafe."""
        return tuple(region for level in self.levels for region in level.rescued)

    @property
    def suboptimal(self) -> tuple[str, ...]:
        """Parents whose least squares were accepted without proof, all levels."""
        return tuple(region for level in self.levels for region in level.suboptimal)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Piece:
    """Children of one batch of parents, and details to report."""

    children: SparseLevel
    largest_residual: float
    suboptimal: tuple[str, ...]
    rescued: tuple[RescuedRegion, ...]


def estimate(
    problem: Problem,
    noisy: NoisyCounts,
    *,
    estimator: str = PLAIN.name,
    shrink: float | None = None,
    kept_margin: Ints | None = None,
    engine: Engine = ONE_CORE,
    checkpoints: Path | None = None,
    run: Run | None = None,
) -> Estimate:
    """Estimate the histograms of all leaves.

    Parameters
    ----------
    problem : Problem
    noisy : NoisyCounts
        Answers of the workloads.
    estimator : str
        A name in `ESTIMATORS`.
    shrink : float, optional
        For "bayes": the maximum number of standard deviations by which a cell with a small share may be moved below its evidence.
    kept_margin : ndarray of int64, shape (cells,), optional
        Position of each cell in the margin that the failsafe keeps, the one over the attributes that types do not involve. By default only
        the total is kept.
    engine : Engine
        Where batches are processed.
    checkpoints : Path, optional
        Folder for completed levels; a later call with the same problem reuses them.
    run : Run, optional
        Notified of every batch, and checked for cancellation.

    Raises
    ------
    InfeasibleError
        If the root has no solution.
    """
    steps = estimate_by_level(
        problem,
        noisy,
        estimator=estimator,
        shrink=shrink,
        kept_margin=kept_margin,
        engine=engine,
        checkpoints=checkpoints,
        run=run,
    )
    return Estimate.of(steps)


def estimate_by_level(
    problem: Problem,
    noisy: NoisyCounts,
    *,
    estimator: str,
    shrink: float | None,
    kept_margin: Ints | None = None,
    engine: Engine = ONE_CORE,
    checkpoints: Path | None = None,
    among: Sequence[Span] | None = None,
    draws: Draws | None = None,
    doing: str = "estimating",
    run: Run | None = None,
) -> Iterator[tuple[SparseLevel, LevelReport]]:
    """The same level by level, the root first; for the leaves, only those of the parents `among`, if given.

    With `draws`, the posterior of "bayes" is sampled rather than averaged: the levels are a draw of the truth given the answers. Progress
    is reported as `doing` the level.
    """
    margin = np.zeros(problem.n_cells, dtype=np.int64) if kept_margin is None else kept_margin
    store = None if checkpoints is None else Checkpoints(checkpoints)
    method = ESTIMATORS[estimator]
    if problem.implied.is_integral:
        warm_up(problem, method, run)
    current: SparseLevel | None = None
    tree: TreeEvidence | None = None
    known: Shared[Known] | None = None
    for level in range(problem.spine.n_levels):
        saved = None if store is None else store.load(f"level-{level}")
        if saved is not None:
            current, report = _restore(*saved)
        else:
            if known is None:
                tree = method.gather_evidence(problem, noisy, engine=engine, run=run)
                known = engine.share(Known(problem, noisy, tree))
            batches = among if level == problem.spine.n_levels - 1 else None
            current, report = _estimate_level(
                _Level(problem, tree, level, engine.share(LevelSource(known, level, current)), engine, run),
                batches or split_batches(problem.spine, level, problem.workloads[level].n_values),
                method,
                shrink,
                margin,
                doing,
                draws,
            )
            if store is not None:
                store.save(f"level-{level}", *_to_save(current, report))
        yield current, report


@dataclass(frozen=True, slots=True)
class _Level:
    """A level to be estimated, and where the estimation runs."""

    problem: Problem
    tree: TreeEvidence | None
    level: int
    source: Shared[LevelSource]
    engine: Engine
    run: Run | None


def _estimate_level(
    own: _Level,
    batches: Sequence[Span],
    method: Estimator,
    shrink: float | None,
    margin: Ints,
    doing: str,
    draws: Draws | None,
) -> tuple[SparseLevel, LevelReport]:
    """All regions of one level, batch by batch; where the estimator learns a prior, that comes first."""
    began = time.perf_counter()
    problem, level, engine, run = own.problem, own.level, own.engine, own.run
    prior = method.learn(problem, own.tree, level, own.source, batches, shrink=shrink, engine=engine, run=run)
    if prior is not None and draws is not None:
        prior = replace(prior, draws=draws.at(level))
    work = partial(_estimate_batch, own.source, engine.share(prior), engine.share(margin))
    pieces: list[_Piece] = []
    for piece in engine.map(work, batches, run):
        pieces.append(piece)
        if run is not None:
            run.report(f"{doing} {problem.spine.names[level]}", len(pieces), len(batches))
    report = LevelReport(
        name=problem.spine.names[level],
        regions=problem.spine.sizes[level],
        largest_residual=max(piece.largest_residual for piece in pieces),
        suboptimal=tuple(region for piece in pieces for region in piece.suboptimal),
        rescued=tuple(region for piece in pieces for region in piece.rescued),
        seconds=time.perf_counter() - began,
    )
    return SparseLevel.concatenate([piece.children for piece in pieces]), report


def _estimate_batch(
    source: Shared[LevelSource], prior: Shared[LevelPrior | None], margin: Shared[Ints], span: Span, run: Run
) -> _Piece:
    """One batch of parents, with posterior means for evidence where there is a prior."""
    families, problem = source.value.gather(span, run), source.value.known.value.problem
    if prior.value is not None:
        families = prior.value.improve(problem, families, run)
    return _solve_batch(problem, families, margin.value)


def _solve_batch(problem: Problem, families: Families, margin: Ints) -> _Piece:
    """Least squares, rounding and, where they fail, the failsafe, for one batch of parents."""
    batch = encode(problem, families)
    real = solve(problem, families, batch)
    counts, status = round_counts(problem, families, batch, real)
    suboptimal, rescued = [], []
    blocks: list[tuple[Ints, Ints]] = []
    for family in range(families.n_families):
        cells = families.cells_of(family, problem.is_possible)[0]
        n_children = int(families.child_start[family + 1] - families.child_start[family])
        block = counts[real.offsets[family] : real.offsets[family + 1]].reshape(len(cells), n_children)
        if status[family] is Status.INFEASIBLE:
            if families.parents is None:
                raise InfeasibleError("no histogram of the root agrees with the public knowledge about it.")
            found = rescue(problem, families, family, margin)
            cells, block = found.cells, found.counts
            rescued.append(_rescued(found))
        elif real.status[family] is Status.FEASIBLE:
            suboptimal.append(_parent_code(problem, families, family))
        blocks.append((cells, block))
    return _Piece(
        children=_children(blocks),
        largest_residual=float(np.max(real.residual, initial=0.0)),
        suboptimal=tuple(suboptimal),
        rescued=tuple(rescued),
    )


def _parent_code(problem: Problem, families: Families, family: int) -> str:
    if families.parents is None:
        return problem.spine.codes[0][0]
    return problem.spine.codes[families.level - 1][families.first_parent + family]


def _rescued(found: Rescue) -> RescuedRegion:
    return RescuedRegion(
        level=found.level,
        region=found.region,
        distance=found.distance,
        moved=found.moved,
        kept_margin=found.kept_margin,
    )


def _children(blocks: Sequence[tuple[Ints, Ints]]) -> SparseLevel:
    """Histograms of the children of several families, from blocks (cells, children)."""
    lengths, cells, counts = [], [], []
    for cell, block in blocks:
        by_child = block.T
        child, place = np.nonzero(by_child)
        lengths.append(np.bincount(child, minlength=len(by_child)))
        cells.append(cell[place])
        counts.append(by_child[child, place])
    start = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int64)
    return SparseLevel(
        start=start,
        cell=np.concatenate(cells).astype(np.int64),
        count=np.concatenate(counts).astype(np.int64),
    )


def _to_save(level: SparseLevel, report: LevelReport) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    arrays = {"start": level.start, "cell": level.cell, "count": level.count}
    facts = {
        "name": report.name,
        "regions": report.regions,
        "largest_residual": report.largest_residual,
        "suboptimal": list(report.suboptimal),
        "rescued": [
            {name: getattr(region, name) for name in RescuedRegion.__slots__} for region in report.rescued
        ],
        "seconds": report.seconds,
    }
    return arrays, facts


def _restore(arrays: dict[str, NDArray[Any]], facts: dict[str, Any]) -> tuple[SparseLevel, LevelReport]:
    report = LevelReport(
        name=facts["name"],
        regions=facts["regions"],
        largest_residual=facts["largest_residual"],
        suboptimal=tuple(facts["suboptimal"]),
        rescued=tuple(RescuedRegion(**region) for region in facts["rescued"]),
        seconds=facts["seconds"],
    )
    return SparseLevel(**arrays), report


def warm_up(problem: Problem, method: Estimator, run: Run | None) -> None:
    """Compile the kernels of all levels, unless that has been done already: the solver, the largest, beside all others."""
    whole, real = np.zeros(0, np.int64), np.zeros(0)
    watched = run or Run()
    with compiled_aside(watched, solver()):
        rounding = round_batch_inplace, (nobody(), real, 0, whole, whole)
        compile_calls(watched, [rounding, *method.kernels(problem)])


def solver() -> Call:
    """The kernel that takes longest to compile, with arguments of the types that it is called with."""
    whole, real = np.zeros(0, np.int64), np.zeros(0)
    return solve_batch_inplace, (nobody(), 1e-8, real, whole, whole, real)


def nobody() -> Batch:
    """A batch without parents, in arrays of the kinds that all batches have."""
    whole, real = np.zeros(1, np.int64), np.zeros(1)
    table, counts = np.zeros((1, 1), np.int64), np.zeros((1, 1))
    return Batch(
        has_parent=True,
        cell_start=whole,
        cell=whole,
        parent=real,
        child_start=whole,
        a=counts,
        detail=counts,
        v=real,
        grouped=counts,
        group_of=whole,
        link_row=table,
        weight=counts,
        noisy=counts,
        n_types=1,
        is_bounded=False,
        lower=table,
        upper=table,
    )
