"""From a plan to a release: measure, estimate with checkpoints, write; and handle the remains of an interrupted run."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from louver.data.scratch import Scratch
from louver.engine.engines import Engine
from louver.errors import InputError
from louver.privacy.ledger import Ledger
from louver.privacy.measurements import Measurements, write_measurements
from louver.privacy.noise import KeyedNoise
from louver.privacy.spend import Account, open_ledger
from louver.release.write import ReleaseWriter, check_out
from louver.run import Run
from louver.topdown.errors.intervals import simulate_errors
from louver.topdown.estimation.levels import estimate as estimate_levels
from louver.topdown.measuring.noise_plan import QueryPlan
from louver.topdown.measuring.sealing import checkpoints_of, is_finished, measure_into, measurements_path
from louver.topdown.measuring.true_counts import (
    SealedCounts,
    invariant_values,
    read_invariants,
    source_hash,
    true_batches,
    true_levels,
    write_invariants,
)
from louver.topdown.problem import Design, Histograms
from louver.topdown.published.measured import with_published_noise
from louver.topdown.result import (
    INVARIANTS_FILE,
    MEASUREMENTS_FILE,
    QueryError,
    TopDownRelease,
    mean_errors,
)

__all__ = [
    "Estimation",
    "Report",
    "check_measurable",
    "estimate_from",
    "folder_next_to",
    "open_payer",
    "release_paid",
    "release_seeded",
    "work_of",
    "write_release",
]

MOST_COMPARED = 1 << 25
"""Maximum number of counts of one query at one level that are compared with the truth; larger queries are skipped."""

Report = Callable[[TopDownRelease], str]
Estimation = Callable[[QueryPlan, Path, Engine, Run | None, dict[str, float]], TopDownRelease]
"""From the measurements of a folder to a release."""


def open_payer(plan: QueryPlan, ledger: str | Path | None, run: Run | None) -> Ledger:
    """The ledger that pays, opened before anything is read."""
    design = plan.design
    check_measurable(design)
    if design.is_own_file and not Path(design.data).is_file():
        name = Path(design.data).name
        raise InputError(f"{name} does not exist; correct the source in {design.spec.path.name}.", file=name)
    source = design.spec.source
    return open_ledger(design.data, ledger, plan.loss, table=source.table, query=source.query, run=run)


def check_measurable(design: Design) -> None:
    """Whether a spec requests measurements rather than describing published ones."""
    if design.options.published is not None:
        name = design.spec.path.name
        message = (
            f"{name} describes measurements that {design.options.published.by} published; estimate from them."
        )
        raise InputError(message, file=name, option="published")


def release_seeded(
    plan: QueryPlan,
    seed: int,
    evaluate: bool,
    engine: Engine,
    run: Run | None,
    write: Callable[[TopDownRelease, Path], TopDownRelease],
    estimate: Estimation | None = None,
) -> TopDownRelease:
    """Run with noise that anyone can reproduce, in a temporary folder."""
    check_measurable(plan.design)
    with Scratch(engine.folder, ".louver-topdown-") as shared, Scratch() as scratch:
        folder = shared.path
        began = time.perf_counter()
        levels = true_levels(plan.design, scratch.path, run)
        tabulated = time.perf_counter()
        values = invariant_values(plan, levels)
        write_invariants(folder / INVARIANTS_FILE, plan, values)
        path = measurements_path(folder)
        noise, design = KeyedNoise.from_seed(seed), plan.design.measured_fingerprint()
        write_measurements(path, partial(true_batches, plan, levels), noise, design=design, run=run)
        seconds = {"tabulate": tabulated - began, "measure": time.perf_counter() - tabulated}
        release = (estimate or estimate_from)(plan, folder, engine, run, seconds)
        if evaluate:
            release = replace(release, evaluation=_errors(release, levels))
        return write(release, folder)


def folder_next_to(out: str | Path | None) -> Path:
    """A folder for the measurements of a release while it is made, or of a release that is not written."""
    return Path(tempfile.gettempdir()) if out is None else Path(out).absolute().parent


def work_of(out: Path) -> Path:
    """The folder of the measurements of a release while it is made."""
    place = out.absolute()
    if not place.name:
        check_out(out)
    return place.with_name(f".{place.name}.topdown")


def release_paid(
    plan: QueryPlan,
    out: Path,
    ledger: Ledger,
    engine: Engine,
    resume: bool,
    run: Run | None,
    write: Callable[..., TopDownRelease],
    measure: Callable[[QueryPlan, Path, Ledger, Run | None], object] = measure_into,
    estimate: Estimation | None = None,
) -> TopDownRelease:
    """Measure into a folder next to the release, estimate with checkpoints, write the release, and clear the folder."""
    estimated = estimate or estimate_from
    work = work_of(out)
    if not resume and os.path.lexists(work):
        message = f"option --out: a run for {out.name} was interrupted; add --resume to continue it."
        raise InputError(message, option="--resume")
    account = Account(ledger, source_hash(plan.design, run))
    is_released = resume and is_finished(plan, out, account)
    if not is_released:
        check_out(out)
    if is_released:  # the run was stopped after the move
        # The finished levels are still next to the release, unless the folder was cleared too.
        kept = account.has_sealed([work / MEASUREMENTS_FILE, work / INVARIANTS_FILE])
        release = replace(estimated(plan, work if kept else out, engine, run, {}), path=out)
    else:
        began = time.perf_counter()
        measure(plan, work, ledger, run)
        seconds = {"measure": time.perf_counter() - began}
        release = write(estimated(plan, work, engine, run, seconds), work, out=out)
    shutil.rmtree(work, ignore_errors=True)
    return release


def estimate_from(
    plan: QueryPlan, folder: Path, engine: Engine, run: Run | None, seconds: dict[str, float]
) -> TopDownRelease:
    """Estimate from the measurements and invariants of a folder."""
    path = folder / MEASUREMENTS_FILE
    began = time.perf_counter()
    measured = Measurements.of_design(path, plan.design.measured_fingerprint())
    plan = with_published_noise(plan, folder)
    problem = (run or Run()).attend(plan.problem, read_invariants(folder / INVARIANTS_FILE, plan))
    noisy = SealedCounts(path, plan)
    result = estimate_levels(
        problem,
        noisy,
        estimator=plan.design.options.estimator,
        shrink=plan.design.shrink,
        kept_margin=plan.kept_margin(),
        engine=engine,
        checkpoints=checkpoints_of(plan, folder),
        run=run,
    )
    estimated = time.perf_counter()
    known_error = simulate_errors(plan, result.leaves, noisy, engine=engine, run=run)
    if known_error is not None:
        seconds = {**seconds, "intervals": time.perf_counter() - estimated}
    return TopDownRelease(
        plan=plan,
        estimate=result,
        known_error=known_error,
        is_private=measured.is_private,
        head=measured.head,
        debited=measured.debited,
        seconds={**seconds, "estimate": estimated - began},
    )


def write_release(
    release: TopDownRelease,
    folder: Path,
    *,
    out: str | Path | None,
    report: Report | None,
    csv: bool,
    run: Run | None = None,
) -> TopDownRelease:
    """Make the release directory, including measurements and invariants, if one is requested."""
    if out is None:
        return release
    began = time.perf_counter()
    with ReleaseWriter(out, run) as writer:
        for name in (MEASUREMENTS_FILE, INVARIANTS_FILE):
            (run or Run()).attend(shutil.copyfile, folder / name, writer.path(name))
        release = replace(release, path=Path(out))
        parameters = release.plan.design.stated_options()
        page = (run or Run()).attend(report, release) if report else None
        release.write_into(writer, parameters, page, csv=csv)
    return replace(release, seconds={**release.seconds, "write": time.perf_counter() - began})


def _errors(release: TopDownRelease, truth: Sequence[Histograms]) -> tuple[QueryError, ...]:
    """Mean absolute errors of every query at every level."""
    design = release.plan.design
    errors = []
    for level, histogram in enumerate(list(release.levels())[::-1]):
        for query in design.queries:
            if query.n_rows * histogram.n_regions > MOST_COMPARED:
                continue
            absolute = float(mean_errors(query, histogram, truth[level])[0])
            errors.append(
                QueryError(level=design.spine.names[level], query=query.name, mean_absolute=absolute)
            )
    return tuple(errors)
