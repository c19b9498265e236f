"""TopDown: differentially private microdata over a hierarchy of regions, with public invariants kept exactly.

Abowd et al. (2019), Census TopDown, on open solvers: implied constraints are derived, a failsafe is there, and what
follows the measuring never opens the records.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from louver._callable import make_callable
from louver.engine.run import parse_engine
from louver.errors import InputError, one_sentence
from louver.privacy.ledger import Head, Ledger
from louver.privacy.measurements import Measured, Measurements, write_measurements
from louver.privacy.noise import KeyedNoise
from louver.privacy.spend import is_sealed, open_ledger
from louver.release.write import ReleaseWriter, check_out
from louver.run import Run
from louver.topdown.check import Clash, KnowledgeCheck, check_knowledge, read_counts, read_values
from louver.topdown.estimation import estimate as estimate_levels
from louver.topdown.measuring import (
    SealedCounts,
    invariant_values,
    read_invariants,
    true_batches,
    true_levels,
    write_invariants,
)
from louver.topdown.plan import QueryPlan, make_plan
from louver.topdown.problem import SparseLevel
from louver.topdown.result import INVARIANTS_FILE, MEASUREMENTS_FILE, QueryError, TopDownRelease
from louver.topdown.sealing import checkpoints_of, is_finished, measure_into, measurements_path
from louver.topdown.spec import SpecLike, read_design

__all__ = [
    "Clash",
    "KnowledgeCheck",
    "Measured",
    "QueryError",
    "QueryPlan",
    "TopDownRelease",
    "check",
    "estimate",
    "measure",
    "topdown",
]

if TYPE_CHECKING:
    from louver.data.read import ArrowStream

    Data = str | Path | ArrowStream

Report = Callable[[TopDownRelease], str]


@one_sentence()
def topdown(
    spec: SpecLike,
    *,
    data: Data | None = None,
    out: str | Path | None = None,
    ledger: str | Path | None = None,
    engine: str = "local:1",
    resume: bool = False,
    csv: bool = False,
    seed: int | None = None,
    evaluate: bool = False,
    report: Report | None = None,
    run: Run | None = None,
) -> TopDownRelease:
    """Measure, estimate and release.

    Parameters
    ----------
    spec : path, mapping or Spec
        A spec with a `[topdown]` section; file names in a mapping are relative to the working folder.
    data : path, uri or dataframe, optional
        The records, in place of the spec's source; table, query, weight and wide columns are read from there still.
    out : path, optional
        Release directory to make; needed unless `seed` is given.
    ledger : path, optional
        Who pays; by default the ledger beside the source file.
    engine : str
        "local:N" works on N cores. Results do not depend on it.
    resume : bool
        Carry on a run that was interrupted, from its last finished level; its noise was paid for and is not drawn anew.
        Nothing is wrong with it where there is nothing to carry on.
    csv : bool
        Write the microdata as CSV too.
    seed : int, optional
        For tests, demos and evaluation: not private, and no ledger is touched.
    evaluate : bool
        Compare with the truth; needs `seed`, and the result is not for release.
    report : callable, optional
        Makes the HTML page for the release directory.
    run : Run, optional
        Told how far the work is, and asked whether it shall end.

    Returns
    -------
    TopDownRelease

    Notes
    -----
    **Neighbours**: as the spec says, among tables that share the invariants. **Privacy**: the losses of all queries
    measured, levels and queries composed sequentially, all regions of a level measured together;
    `docs/proofs/topdown.md`.
    """
    workers = parse_engine(engine)
    plan = make_plan(read_design(spec, data))
    if seed is not None:
        if out is not None:
            check_out(Path(out))
        return _seeded(plan, seed, evaluate, workers, run, partial(_write, out=out, report=report, csv=csv))
    if evaluate:
        raise InputError("option --seed is missing: --evaluate would reveal the noise.", option="--seed")
    if out is None:
        raise InputError("option --out is missing; noise is drawn once and has to be kept.", option="--out")
    payer = _open_ledger(plan, ledger)
    return _paid(plan, Path(out), payer, workers, resume, run, partial(_write, report=report, csv=csv))


@one_sentence()
def check(
    spec: SpecLike,
    *,
    invariants: Mapping[str, Any] | str | Path | None = None,
    table: tuple[str, str, Any] | None = None,
    run: Run | None = None,
) -> KnowledgeCheck:
    """Check public knowledge before any budget is spent; the records are not opened.

    Parameters
    ----------
    spec : path, mapping or Spec
    invariants : mapping or path, optional
        Values of invariants known already, by name: one for each region of the level, in the order of their codes; or a
        file with the columns invariant, level, region and value.
    table : (level, region, counts), optional
        Counts of all cells of one region, or a file with the attributes and a column count; can they be divided among the
        leaves?
    run : Run, optional
        Asked whether the work shall end.
    """
    plan = make_plan(read_design(spec))
    spine = plan.design.spine
    if isinstance(invariants, str | Path):
        invariants = read_values(plan, Path(invariants))
    given = {name: np.asarray(values, dtype=np.int64) for name, values in (invariants or {}).items()}
    if not set(given) <= {statement.name for statement in plan.invariants}:
        message = "the values given name an invariant that the spec does not have; correct the name."
        raise InputError(message, option="invariants")
    for statement in plan.design.statements:
        if statement.name in given and given[statement.name].shape != (spine.sizes[statement.level],):
            message = f'the values of invariant "{statement.name}" are not one for each region of its level.'
            raise InputError(message, option="invariants")
    placed = None
    if table is not None:
        level = spine.level_of(table[0])
        if table[1] not in spine.codes[level]:
            raise InputError("the table's region is not in the list of leaves or above it.", option="table")
        is_file = isinstance(table[2], str | Path)
        counts = (
            read_counts(plan.design, Path(table[2])) if is_file else np.asarray(table[2], np.int64).ravel()
        )
        if len(counts) != plan.design.n_cells:
            raise InputError(f"the table does not have {plan.design.n_cells} cells.", option="table")
        placed = (level, spine.codes[level].index(table[1]), counts)
    if run is not None:
        run.check()
    return check_knowledge(plan, invariants=given, table=placed)


@one_sentence()
def measure(
    spec: SpecLike,
    *,
    data: Data | None = None,
    out: str | Path,
    ledger: str | Path | None = None,
    resume: bool = False,
    run: Run | None = None,
) -> Measured:
    """Debit the ledger, draw the noise once, and leave measurements and invariants in a folder.

    Parameters
    ----------
    spec, data, run
        As for `topdown`.
    out : path
        Folder to make.
    ledger : path, optional
        Who pays; by default the ledger beside the source file.
    resume : bool
        Carry on in a folder that an interrupted call of the same spec left.

    Returns
    -------
    Measured
        Its `folder` is what `estimate` works from, without the records.
    """
    plan = make_plan(read_design(spec, data))
    folder = Path(out)
    payer = _open_ledger(plan, ledger)
    if not resume:
        check_out(folder)
    began = time.perf_counter()
    head = measure_into(plan, folder, payer, run)
    return Measured(folder=folder, loss=plan.loss, head=head, seconds=time.perf_counter() - began)


@one_sentence()
def estimate(
    spec: SpecLike,
    *,
    measurements: str | Path,
    out: str | Path | None = None,
    engine: str = "local:1",
    csv: bool = False,
    report: Report | None = None,
    run: Run | None = None,
) -> TopDownRelease:
    """Estimate from a folder that `measure` left; never opens the records.

    Parameters
    ----------
    spec : path, mapping or Spec
        The spec that was measured.
    measurements : path
        The folder, or a release directory. Levels that an interrupted call finished are not computed again.
    out : path, optional
        Release directory to make.
    engine, csv, report, run
        As for `topdown`.
    """
    workers = parse_engine(engine)
    plan = make_plan(read_design(spec))
    folder = Path(measurements)
    if out is not None:
        check_out(Path(out))
    release = _estimate_from(plan, folder, workers, run, {})
    return _write(release, folder, out=out, report=report, csv=csv)


def _open_ledger(plan: QueryPlan, ledger: str | Path | None) -> Ledger:
    """The ledger that pays, opened before anything is read."""
    design = plan.design
    if design.is_own_file and not Path(design.data).is_file():
        name = Path(design.data).name
        raise InputError(f"{name} does not exist; correct the source in {design.spec.path.name}.", file=name)
    source = design.spec.source
    return open_ledger(design.data, ledger, plan.loss, table=source.table, query=source.query)


def _seeded(
    plan: QueryPlan,
    seed: int,
    evaluate: bool,
    workers: int,
    run: Run | None,
    write: Callable[[TopDownRelease, Path], TopDownRelease],
) -> TopDownRelease:
    """Run with noise that anyone can repeat, in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="louver-topdown-") as name:
        folder = Path(name)
        began = time.perf_counter()
        levels = true_levels(plan.design)
        tabulated = time.perf_counter()
        values = invariant_values(plan, levels)
        write_invariants(folder / INVARIANTS_FILE, plan, values)
        path = measurements_path(folder)
        noise, design = KeyedNoise.from_seed(seed), plan.design.measured_fingerprint()
        write_measurements(path, true_batches(plan, levels), noise, design=design, run=run)
        seconds = {"tabulate": tabulated - began, "measure": time.perf_counter() - tabulated}
        release = _estimate_from(plan, folder, workers, run, seconds)
        if evaluate:
            release = replace(release, evaluation=_errors(release, levels))
        return write(release, folder)


def _paid(
    plan: QueryPlan,
    out: Path,
    ledger: Ledger,
    workers: int,
    resume: bool,
    run: Run | None,
    write: Callable[..., TopDownRelease],
) -> TopDownRelease:
    """Measure into a folder beside the release, estimate with checkpoints, release, clear the folder."""
    work = out.with_name(f".{out.name}.topdown")
    if not resume and os.path.lexists(work):
        message = f"option --out: a run for {out.name} was interrupted; add --resume to carry it on."
        raise InputError(message, option="--resume")
    is_released = resume and is_finished(plan, out, ledger)
    if not is_released:
        check_out(out)
    if is_released:  # stopped after the move
        # The levels that were finished are still beside the release, unless the folder was cleared too.
        kept = is_sealed([work / MEASUREMENTS_FILE, work / INVARIANTS_FILE], ledger)
        release = replace(_estimate_from(plan, work if kept else out, workers, run, {}), path=out)
    else:
        began = time.perf_counter()
        measure_into(plan, work, ledger, run)
        seconds = {"measure": time.perf_counter() - began}
        release = write(_estimate_from(plan, work, workers, run, seconds), work, out=out)
    shutil.rmtree(work, ignore_errors=True)
    return release


def _estimate_from(
    plan: QueryPlan, folder: Path, workers: int, run: Run | None, seconds: dict[str, float]
) -> TopDownRelease:
    """Estimate from the measurements and invariants of a folder."""
    path = folder / MEASUREMENTS_FILE
    if not path.is_file():
        raise InputError(f"{folder.name} holds no measurements; measure first.", option="--measurements")
    began = time.perf_counter()
    description = Measurements(path).description()
    if description["design"] != plan.design.measured_fingerprint():
        message = f"{path.name} was not measured by this spec; give the measurements that belong to it."
        raise InputError(message, file=path.name, option="--measurements")
    problem = plan.problem(read_invariants(folder / INVARIANTS_FILE, plan))
    result = estimate_levels(
        problem,
        SealedCounts(path, plan),
        kept_margin=plan.kept_margin(),
        workers=workers,
        checkpoints=checkpoints_of(plan, folder),
        run=run,
    )
    entry = description["entry"]
    return TopDownRelease(
        plan=plan,
        estimate=result,
        is_private=not description["not_private"],
        head=None if entry is None else Head(entry, description["entry_hash"]),
        seconds={**seconds, "estimate": time.perf_counter() - began},
    )


def _write(
    release: TopDownRelease, folder: Path, *, out: str | Path | None, report: Report | None, csv: bool
) -> TopDownRelease:
    """Make the release directory, measurements and invariants included, if one is asked for."""
    if out is None:
        return release
    began = time.perf_counter()
    with ReleaseWriter(out) as writer:
        for name in (MEASUREMENTS_FILE, INVARIANTS_FILE):
            shutil.copyfile(folder / name, writer.path(name))
        release = replace(release, path=Path(out))
        parameters = release.plan.design.options.model_dump(mode="json")
        release.write_into(writer, parameters, report(release) if report else None, csv=csv)
    return replace(release, seconds={**release.seconds, "write": time.perf_counter() - began})


def _errors(release: TopDownRelease, truth: tuple[SparseLevel, ...]) -> tuple[QueryError, ...]:
    """Mean absolute errors of every query at every level."""
    design = release.plan.design
    errors = []
    for level, histogram in enumerate(list(release.levels())[::-1]):
        for query in design.queries:
            difference = query.answer(histogram) - query.answer(truth[level])
            errors.append(
                QueryError(
                    level=design.spine.names[level],
                    query=query.name,
                    mean_absolute=float(np.abs(difference).mean()),
                )
            )
    return tuple(errors)


make_callable(__name__, topdown)
