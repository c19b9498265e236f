"""TopDown: differentially private microdata over a hierarchy of regions, with public invariants kept exactly.

Abowd et al. (2019), Census TopDown, on open solvers: implied constraints are derived, there is a failsafe, and no step
after the measurement opens the records.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from louver._callable import make_callable
from louver.engine.engines import open_engine
from louver.errors import InputError, one_sentence
from louver.privacy.measurements import Measured
from louver.release.write import check_out
from louver.run import Run
from louver.schema.request import documented
from louver.schema.spec import as_spec
from louver.schema.validate import validated
from louver.topdown.errors.area import Area, read_area
from louver.topdown.knowledge.check import Clash, KnowledgeCheck, check_knowledge, read_counts, read_values
from louver.topdown.load import SpecLike, read_first_design
from louver.topdown.measuring.noise_plan import QueryPlan, make_plan
from louver.topdown.measuring.sealing import measure_into, noted_shares
from louver.topdown.options import (
    AreaOptions,
    AreasOptions,
    EstimatorName,
    ImportOptions,
    PlanOptions,
    RunOptions,
)
from louver.topdown.planning.forecast import ForecastLine, PlanForecast, plan_for
from louver.topdown.planning.shares import plain_words
from louver.topdown.result import QueryError, TopDownRelease
from louver.topdown.solve import (
    Estimation,
    Report,
    check_measurable,
    estimate_from,
    folder_next_to,
    open_payer,
    release_paid,
    release_seeded,
    work_of,
    write_release,
)

__all__ = [
    "Area",
    "Clash",
    "ForecastLine",
    "KnowledgeCheck",
    "Measured",
    "PlanForecast",
    "QueryError",
    "QueryPlan",
    "TopDownRelease",
    "area",
    "areas",
    "check",
    "estimate",
    "export_nmf",
    "extend",
    "import_nmf",
    "measure",
    "plan",
    "topdown",
]

if TYPE_CHECKING:
    from louver.data.read import ArrowStream
    from louver.topdown.errors.areas import AreaTable
    from louver.topdown.extension.problem import Extension
    from louver.topdown.published.measured import ImportedMeasurements

    Data = str | Path | ArrowStream


@documented(RunOptions)
@one_sentence()
def topdown(
    spec: SpecLike,
    *,
    data: Data | None = None,
    out: str | Path | None = None,
    ledger: str | Path | None = None,
    engine: str = "local:1",
    resume: bool = False,
    estimator: EstimatorName | None = None,
    shrink: float | str | None = None,
    intervals: int | None = None,
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
        The records, in place of the spec's source; table, query, weight and wide columns are still taken from the spec.
    out : path, optional
        Release directory to make; needed unless `seed` is given.

    Returns
    -------
    TopDownRelease

    Notes
    -----
    **Neighbours**: as the spec says, among tables that share the invariants. **Privacy**: the losses of all queries
    measured, levels and queries composed sequentially, all regions of a level measured together;
    `docs/proofs/topdown.md`.
    """
    folders = (work_of(Path(out)), Path(out)) if resume and out is not None else ()
    with open_engine(engine, folder_next_to(out), run) as workers:
        plan = _plan(spec, data, run, folders, estimator=estimator, shrink=shrink, intervals=intervals)
        if seed is not None:
            if out is not None:
                check_out(Path(out))
            write = partial(write_release, out=out, report=report, csv=csv, run=run)
            return release_seeded(plan, seed, evaluate, workers, run, write)
        folder = _paid_folder(out, evaluate=evaluate)
        payer = open_payer(plan, ledger, run)
        write = partial(write_release, report=report, csv=csv, run=run)
        return release_paid(plan, folder, payer, workers, resume, run, write)


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
        Known values of invariants, by name: one value for each region of the level, in the order of the regions' codes; or a file with the
        columns invariant, level, region and value.
    table : (level, region, counts), optional
        Counts of all cells of one region, or a file with the attributes and a column count. The check is whether they can be divided among
        the leaves.
    run : Run, optional
        Checked for cancellation.
    """
    plan = _plan(spec, None, run)
    spine = plan.design.spine
    if isinstance(invariants, str | Path):
        invariants = read_values(plan, Path(invariants))
    given = {name: np.asarray(values, dtype=np.int64) for name, values in (invariants or {}).items()}
    if not set(given) <= {statement.name for statement in plan.invariants}:
        message = "the values given name an invariant that the spec does not have; correct the name."
        raise InputError(message, option="invariants")
    for statement in plan.design.statements:
        if statement.name in given and given[statement.name].shape != (spine.sizes[statement.level],):
            message = f'the values of invariant "{statement.name}" must be one for each region of its level.'
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
    return (run or Run()).attend(check_knowledge, plan, invariants=given, table=placed)


@documented(PlanOptions)
@one_sentence()
def plan(
    spec: SpecLike,
    *,
    stand_in: Data | None = None,
    people: int | None = None,
    composition: str | Path | None = None,
    simulations: int = 3,
    workload: str = "even",
    weight: Mapping[str, float] | None = None,
    target: Mapping[str, float] | None = None,
    engine: str = "local:1",
    write: str | Path | None = None,
    run: Run | None = None,
) -> PlanForecast:
    """Forecast the error of every query at every level, before anything is spent, and choose shares for a workload.

    Parameters
    ----------
    spec : path, mapping or Spec
        Its records are not opened.

    Returns
    -------
    PlanForecast
        The spec's plan, the plan chosen for the workload, and the plan with equal shares, side by side.

    Notes
    -----
    Everything is public: regions, domain, queries, noise and the stand-in. Where counts are large and no prior is learnt, errors
    are least-squares variances in closed form; elsewhere the stand-in is released with noise from public seeds.
    """
    given = {
        "stand_in": str(stand_in) if isinstance(stand_in, Path) else stand_in,
        "people": people,
        "composition": None if composition is None else str(composition),
        "simulations": simulations,
        "workload": workload,
        "weight": dict(weight or {}),
        "target": dict(target or {}),
        "engine": engine,
        "write": None if write is None else str(write),
    }
    options = validated(PlanOptions, given)
    with open_engine(options.engine, run=run) as workers:
        design = read_first_design(spec, run=run)
        check_measurable(design)
        return plan_for(design, options, workers, run=run)


@documented(RunOptions)
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
    """Debit the ledger, draw the noise once, and write measurements and invariants to a folder.

    Parameters
    ----------
    spec, data
        As for `topdown`, or for `extend`.
    out : path
        Folder to make.

    Returns
    -------
    Measured
        `estimate` works from its `folder`, without the records.
    """
    folder = Path(out)
    extension = _extension(spec, data, run)
    plan = _plan(spec, data, run, (folder,) if resume else ()) if extension is None else extension.plan
    payer = open_payer(plan, ledger, run)
    measure_paid = measure_into
    if extension is not None:
        from louver.topdown.extension.repair import check_extendable
        from louver.topdown.extension.result import check_payer, measure_extension

        check_extendable(extension, run)
        check_payer(extension, payer)
        measure_paid = partial(measure_extension, extension)
    if not resume:
        check_out(folder)
    began = time.perf_counter()
    measured = measure_paid(plan, folder, payer, run)
    return Measured.of(measured, folder, plan.loss, seconds=time.perf_counter() - began)


@documented(RunOptions)
@one_sentence()
def estimate(
    spec: SpecLike,
    *,
    measurements: str | Path,
    out: str | Path | None = None,
    engine: str = "local:1",
    estimator: EstimatorName | None = None,
    shrink: float | str | None = None,
    intervals: int | None = None,
    csv: bool = False,
    report: Report | None = None,
    run: Run | None = None,
) -> TopDownRelease:
    """Estimate from a folder written by `measure`; never opens the records.

    Parameters
    ----------
    spec : path, mapping or Spec
        The spec that was measured; an extension has only one estimator.
    measurements : path
        The folder, or a release directory. Levels finished by an interrupted call are not computed again.
    out : path, optional
        Release directory to make.
    """
    folder = Path(measurements)
    how: dict[str, Any] = {"estimator": estimator, "shrink": shrink, "intervals": intervals}
    extension = _extension(spec, None, run, **how)
    with open_engine(engine, folder_next_to(folder), run) as workers:
        plan = _plan(spec, None, run, (folder,), **how) if extension is None else extension.plan
        if out is not None:
            check_out(Path(out))
        estimated: Estimation = estimate_from
        if extension is not None:
            from louver.topdown.extension.result import estimate_extension

            estimated = partial(estimate_extension, extension)
        release = estimated(plan, folder, workers, run, {})
    return write_release(release, folder, out=out, report=report, csv=csv, run=run)


@documented(RunOptions)
@one_sentence()
def extend(
    spec: SpecLike,
    *,
    data: Data | None = None,
    out: str | Path | None = None,
    ledger: str | Path | None = None,
    engine: str = "local:1",
    resume: bool = False,
    intervals: int | None = None,
    csv: bool = False,
    seed: int | None = None,
    evaluate: bool = False,
    report: Report | None = None,
    run: Run | None = None,
) -> TopDownRelease:
    """Give the people of a release new and finer attributes, paid for from the same ledger.

    Parameters
    ----------
    spec : path, mapping or Spec
        A spec with the key `extends` in its `[topdown]` section.
    data, out
        As for `topdown`.

    Returns
    -------
    TopDownRelease
        Its projection is the first release, row by row; `louver verify` recomputes that.

    Notes
    -----
    **Neighbours**: as the spec says. **Privacy**: the losses of the queries measured here, and those of the first release
    (adaptive composition; Abowd et al. 2019, section 2.2); `docs/proofs/topdown.md`.
    """
    from louver.topdown.extension.problem import read_extension
    from louver.topdown.extension.repair import check_extendable
    from louver.topdown.extension.result import check_payer, estimate_extension, measure_extension

    with open_engine(engine, folder_next_to(out), run) as workers:
        folder = Path() if seed is not None else _paid_folder(out, evaluate=evaluate)
        extension = read_extension(spec, data, seeded=seed is not None, run=run).with_intervals(intervals)
        check_extendable(extension, run)
        estimated = partial(estimate_extension, extension)
        if seed is not None:
            if out is not None:
                check_out(Path(out))
            write = partial(write_release, out=out, report=report, csv=csv, run=run)
            return release_seeded(extension.plan, seed, evaluate, workers, run, write, estimated)
        payer = open_payer(extension.plan, ledger, run)
        check_payer(extension, payer)
        write = partial(write_release, report=report, csv=csv, run=run)
        measured = partial(measure_extension, extension)
        return release_paid(extension.plan, folder, payer, workers, resume, run, write, measured, estimated)


@documented(AreaOptions)
@one_sentence()
def area(release: str | Path, *, leaves: str | Path | Sequence[str], run: Run | None = None) -> Area:
    """Count the people of a set of leaves or regions of a release, with standard errors and 90 % intervals.

    Parameters
    ----------
    release : path
        A TopDown release directory with intervals; nothing else is opened.
    leaves : path or sequence of str
        Leaves, or regions that stand for all their leaves: a text file with one per line, a CSV with the geography columns of the release,
        or a sequence of codes.

    Returns
    -------
    Area
    """
    return read_area(Path(release), leaves, run)


@documented(AreasOptions)
@one_sentence()
def areas(
    release: str | Path,
    *,
    areas: str | Path | Mapping[str, Sequence[str]] | None = None,
    csv: str | Path | None = None,
    run: Run | None = None,
) -> AreaTable:
    """Count the people of several areas of a release, with standard errors and 90 % intervals, in one table.

    Parameters
    ----------
    release : path
        A TopDown release directory with intervals; nothing else is opened.
    areas : path or mapping
        A table with the columns area and leaf, or a mapping from the name of each area to its leaves. By default, the areas that the
        release's spine was arranged for, and the geographic regions that are not in it.
    csv : path, optional
        File to make.

    Returns
    -------
    AreaTable
    """
    from louver.topdown.errors.areas import read_areas

    found = read_areas(Path(release), areas, run)
    if csv is not None:
        found.write_csv(Path(csv))
    return found


@documented(ImportOptions)
@one_sentence()
def import_nmf(
    folder: str | Path,
    *,
    out: str | Path,
    by: str = "U.S. Census Bureau",
    states: Sequence[str] = (),
    totals: str | Path | None = None,
    run: Run | None = None,
) -> ImportedMeasurements:
    """Read published noisy measurement files, check them, and write a folder for `estimate` to work from.

    Parameters
    ----------
    folder : path
        Folder of one product, with a folder such as County.parquet for each level.
    out : path
        Folder to make; `topdown.toml` in it is the spec to estimate with.

    Returns
    -------
    ImportedMeasurements

    Notes
    -----
    **Privacy**: nothing is measured and no ledger is charged. The noise is the publisher's; louver claims no privacy loss for it.
    """
    from louver.topdown.published.measured import import_published

    given = {"by": by, "states": list(states), "totals": None if totals is None else str(totals)}
    options = validated(ImportOptions, given)
    return import_published(
        Path(folder),
        Path(out),
        by=options.by,
        states=options.states,
        totals=None if options.totals is None else Path(options.totals),
        run=run,
    )


@one_sentence()
def export_nmf(spec: SpecLike, *, measurements: str | Path, out: str | Path, run: Run | None = None) -> Path:
    """Write measurements in the layout of noisy measurement files, for programs that read such files.

    Parameters
    ----------
    spec : path, mapping or Spec
        The spec that was measured; its regions are prefixes of codes.
    measurements : path
        The folder written by `measure`, or a release directory.
    out : path
        Folder to make.

    Notes
    -----
    **Privacy**: post-processing of the measurements.
    """
    from louver.topdown.published.write import write_published

    folder = Path(measurements)
    return write_published(_plan(spec, None, run, (folder,)), folder, Path(out), run)


def _paid_folder(out: str | Path | None, *, evaluate: bool) -> Path:
    """Output folder of a paid release."""
    if evaluate:
        raise InputError(
            "option --seed is missing: without it, --evaluate would reveal the noise.", option="--seed"
        )
    if out is None:
        raise InputError(
            "option --out is missing; noise is drawn only once and must be kept.", option="--out"
        )
    return Path(out)


def _extension(
    spec: SpecLike, data: Data | None, run: Run | None, *, intervals: int | None = None, **how: Any
) -> Extension | None:
    """The extension, if the spec describes one."""
    if "extends" not in as_spec(spec).options("topdown"):
        return None
    for name, value in how.items():
        if value is not None:
            message = (
                f"option --{name} does not apply to an extension, which has only one estimator; leave it out."
            )
            raise InputError(message, option=f"--{name}")
    from louver.topdown.extension.problem import read_extension

    return read_extension(spec, data, run=run).with_intervals(intervals)


def _plan(
    spec: SpecLike, data: Data | None, run: Run | None, folders: Sequence[Path] = (), **how: Any
) -> QueryPlan:
    """Read the spec and the public files it names; shares that it leaves open are taken from the record in a folder."""
    design = read_first_design(spec, data, run=run, noted=noted_shares(*folders)).estimated(**how)
    for words in plain_words(design):
        (run or Run()).tell(words)
    return (run or Run()).attend(make_plan, design)


make_callable(__name__, topdown)
