"""TopDown: differentially private microdata over a hierarchy of regions, with public invariants kept exactly.

Abowd et al. (2019), Census TopDown, on open solvers: implied constraints are derived, a failsafe is there, and what
follows the measuring never opens the records.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from louver._callable import make_callable
from louver.engine.run import parse_engine
from louver.errors import InputError
from louver.privacy.ledger import Head, Ledger, ledger_beside, request_digest
from louver.privacy.measurements import Measurements, write_measurements
from louver.privacy.measurements import measure as measure_and_seal
from louver.privacy.noise import KeyedNoise
from louver.release.manifest import ReleaseWriter, check_out, file_entry, read_manifest
from louver.topdown.check import Clash, KnowledgeCheck, check_knowledge
from louver.topdown.estimation import estimate as estimate_levels
from louver.topdown.measuring import (
    SealedCounts,
    invariant_values,
    read_invariants,
    source_hash,
    true_batches,
    true_levels,
    write_invariants,
)
from louver.topdown.plan import Plan, make_plan
from louver.topdown.problem import SparseLevel
from louver.topdown.result import INVARIANTS_FILE, MEASUREMENTS_FILE, QueryError, TopDownRelease
from louver.topdown.spec import read_design

__all__ = [
    "Clash",
    "KnowledgeCheck",
    "Plan",
    "QueryError",
    "TopDownRelease",
    "check",
    "estimate",
    "measure",
    "topdown",
]

REQUEST_FILE = "request.json"
CHECKPOINTS = "checkpoints"

Report = Callable[[TopDownRelease], str]
Progress = Callable[[str, int, int], None]


def topdown(
    spec: str | Path,
    *,
    out: str | Path | None = None,
    ledger: str | Path | None = None,
    engine: str = "local:1",
    seed: int | None = None,
    evaluate: bool = False,
    report: Report | None = None,
    progress: Progress | None = None,
) -> TopDownRelease:
    """Measure, estimate and release; a run that was interrupted is carried on by calling it again.

    Parameters
    ----------
    spec : path
        The spec file, with a `[topdown]` section.
    out : path, optional
        Release directory to make; needed unless `seed` is given.
    ledger : path, optional
        Who pays; by default the ledger beside the source file.
    engine : str
        "local:N" works on N cores. Results do not depend on it.
    seed : int, optional
        For tests, demos and evaluation: not private, and no ledger is touched.
    evaluate : bool
        Compare with the truth; needs `seed`, and the result is not for release.
    report : callable, optional
        Makes the HTML page for the release directory.
    progress : callable, optional
        Called with a level's name, batches done and batches in all.

    Returns
    -------
    TopDownRelease

    Notes
    -----
    **Neighbours**: as the spec says, among tables that share the invariants. **Privacy**: the losses of all queries
    measured, levels and queries composed sequentially, regions of a level in parallel.
    """
    workers = parse_engine(engine)
    plan = make_plan(read_design(spec))
    if seed is not None:
        return _seeded(plan, seed, out, evaluate, workers, report, progress)
    if evaluate:
        raise InputError("option --seed is missing: --evaluate would reveal the noise.", option="--seed")
    if out is None:
        raise InputError("option --out is missing; noise is drawn once and has to be kept.", option="--out")
    return _paid(plan, Path(out), _open_ledger(plan, ledger), workers, report, progress)


def check(
    spec: str | Path,
    *,
    invariants: Mapping[str, Any] | None = None,
    table: tuple[str, str, Any] | None = None,
) -> KnowledgeCheck:
    """Check public knowledge before any budget is spent; the records are not opened.

    Parameters
    ----------
    spec : path
    invariants : mapping, optional
        Values of invariants known already, by name: one for each region of the level, in the order of their codes.
    table : (level, region, counts), optional
        Counts of all cells of one region; can it be extended to the leaves?
    """
    plan = make_plan(read_design(spec))
    spine = plan.design.spine
    given = {name: np.asarray(values, dtype=np.int64) for name, values in (invariants or {}).items()}
    for statement in plan.design.statements:
        if statement.name in given and given[statement.name].shape != (spine.sizes[statement.level],):
            message = f'the values of invariant "{statement.name}" are not one for each region of its level.'
            raise InputError(message, option="invariants")
    placed = None
    if table is not None:
        level = spine.level_of(table[0])
        if table[1] not in spine.codes[level]:
            raise InputError("the table's region is not in the list of leaves or above it.", option="table")
        counts = np.asarray(table[2], dtype=np.int64).ravel()
        if len(counts) != plan.design.n_cells:
            raise InputError(f"the table does not have {plan.design.n_cells} cells.", option="table")
        placed = (level, spine.codes[level].index(table[1]), counts)
    return check_knowledge(plan, invariants=given, table=placed)


def measure(spec: str | Path, *, out: str | Path, ledger: str | Path | None = None) -> Path:
    """Debit the ledger, draw the noise once, and leave measurements and invariants in a folder.

    Parameters
    ----------
    spec : path
    out : path
        Folder to make, or one that an interrupted call of the same spec left.
    ledger : path, optional
        Who pays; by default the ledger beside the source file.

    Returns
    -------
    Path
        The folder; `estimate` works from it without the records.
    """
    plan = make_plan(read_design(spec))
    folder = Path(out)
    _measure_into(plan, folder, _open_ledger(plan, ledger))
    return folder


def estimate(
    spec: str | Path,
    *,
    measurements: str | Path,
    out: str | Path | None = None,
    engine: str = "local:1",
    report: Report | None = None,
    progress: Progress | None = None,
) -> TopDownRelease:
    """Estimate from a folder that `measure` left; never opens the records.

    Parameters
    ----------
    spec : path
        The spec that was measured.
    measurements : path
        The folder.
    out : path, optional
        Release directory to make.
    engine, report, progress
        As for `topdown`.
    """
    workers = parse_engine(engine)
    plan = make_plan(read_design(spec))
    folder = Path(measurements)
    if out is not None:
        check_out(Path(out))
    release = _estimate_from(plan, folder, workers, progress, {})
    if out is not None:
        release = _write(release, folder, Path(out), report)
    return release


def _open_ledger(plan: Plan, ledger: str | Path | None) -> Ledger:
    """The ledger that pays, opened before anything is read."""
    if ledger is not None:
        return Ledger(Path(ledger))
    data = plan.design.spec.data
    if data is not None and Path(data).is_file():
        return Ledger(ledger_beside(Path(data)))
    raise InputError("option --ledger is missing; only a file has a ledger beside it.", option="--ledger")


def _seeded(
    plan: Plan,
    seed: int,
    out: str | Path | None,
    evaluate: bool,
    workers: int,
    report: Report | None,
    progress: Progress | None,
) -> TopDownRelease:
    """Run with noise that anyone can repeat, in a temporary folder."""
    if out is not None:
        check_out(Path(out))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="louver-topdown-")))
        began = time.perf_counter()
        levels = true_levels(plan.design)
        tabulated = time.perf_counter()
        values = invariant_values(plan, levels)
        write_invariants(folder / INVARIANTS_FILE, plan, values)
        path = _measurements_path(folder)
        write_measurements(path, true_batches(plan, levels), KeyedNoise.from_seed(seed))
        seconds = {"tabulate": tabulated - began, "measure": time.perf_counter() - tabulated}
        release = _estimate_from(plan, folder, workers, progress, seconds)
        release = replace(release, is_private=False)
        if evaluate:
            release = replace(release, evaluation=_errors(release, levels))
        return release if out is None else _write(release, folder, Path(out), report)


def _paid(
    plan: Plan,
    out: Path,
    ledger: Ledger,
    workers: int,
    report: Report | None,
    progress: Progress | None,
) -> TopDownRelease:
    """Measure into a folder beside the release, estimate with checkpoints, release, clear the folder."""
    work = out.with_name(f".{out.name}.topdown")
    if os.path.lexists(out) and not _is_finished(out, work):
        check_out(out)
    if not os.path.lexists(out):
        check_out(out)
        began = time.perf_counter()
        _measure_into(plan, work, ledger)
        seconds = {"measure": time.perf_counter() - began}
        release = _write(_estimate_from(plan, work, workers, progress, seconds), work, out, report)
    else:  # stopped between the move and the clearing up
        release = replace(_estimate_from(plan, out, workers, progress, {}), path=out)
    shutil.rmtree(work, ignore_errors=True)
    return release


def _is_finished(out: Path, work: Path) -> bool:
    """Whether `out` is the release that a killed run had begun in `work`."""
    if not (work / MEASUREMENTS_FILE).is_file() or not (out / MEASUREMENTS_FILE).is_file():
        return False
    return file_entry(work / MEASUREMENTS_FILE) == read_manifest(out).files[MEASUREMENTS_FILE]


def _measurements_path(folder: Path) -> Path:
    path = folder / MEASUREMENTS_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _measure_into(plan: Plan, folder: Path, ledger: Ledger) -> None:
    """Measurements and invariants in `folder`, paid for once; nothing to do where they are there already."""
    request = request_digest(plan.request())
    noted = folder / REQUEST_FILE
    if folder.exists():
        found = json.loads(noted.read_text()) if noted.is_file() else None
        if found is not None and found != request:
            message = f"{folder.name} holds the measurements of another spec; choose another place."
            raise InputError(message, option="--out")
        if found is None and any(folder.iterdir()):
            raise InputError(f"{folder.name} exists already; name a new folder.", option="--out")
    path = folder / MEASUREMENTS_FILE
    if path.is_file() and _is_sealed(path, ledger):
        return
    levels = true_levels(plan.design)
    values = invariant_values(plan, levels)
    plan.problem(values)  # contradictions end here, before anything is spent
    folder.mkdir(parents=True, exist_ok=True)
    noted.write_text(json.dumps(request))
    write_invariants(folder / INVARIANTS_FILE, plan, values)
    known = ledger.state().disclosures
    for name in values:
        what = f'topdown {request[:16]}: the counts of invariant "{name}"'
        if what not in known:
            ledger.disclose(what)
    measure_and_seal(
        _measurements_path(folder),
        true_batches(plan, levels),
        ledger=ledger,
        loss=plan.loss,
        request=request,
        purpose="TopDown measurements",
        dataset=source_hash(plan.design),
    )


def _is_sealed(path: Path, ledger: Ledger) -> bool:
    """Whether the ledger has sealed exactly this file."""
    entry = Measurements(path).description()["entry"]
    sealed = ledger.state().sealed.get(entry, {})
    return sealed.get(path.name) == file_entry(path).sha256


def _estimate_from(
    plan: Plan, folder: Path, workers: int, progress: Progress | None, seconds: dict[str, float]
) -> TopDownRelease:
    """Estimate from the measurements and invariants of a folder."""
    path = folder / MEASUREMENTS_FILE
    if not path.is_file():
        raise InputError(f"{folder.name} holds no measurements; measure first.", option="--measurements")
    began = time.perf_counter()
    description = Measurements(path).description()
    problem = plan.problem(read_invariants(folder / INVARIANTS_FILE, plan))
    result = estimate_levels(
        problem,
        SealedCounts(path, plan),
        kept_margin=plan.kept_margin(),
        workers=workers,
        checkpoints=folder / CHECKPOINTS if (folder / REQUEST_FILE).is_file() else None,
        progress=progress,
    )
    entry = description["entry"]
    return TopDownRelease(
        plan=plan,
        estimate=result,
        is_private=not description["not_private"],
        head=None if entry is None else Head(entry, description["entry_hash"]),
        seconds={**seconds, "estimate": time.perf_counter() - began},
    )


def _write(release: TopDownRelease, folder: Path, out: Path, report: Report | None) -> TopDownRelease:
    """Make the release directory, measurements and invariants included."""
    began = time.perf_counter()
    with ReleaseWriter(out) as writer:
        for name in (MEASUREMENTS_FILE, INVARIANTS_FILE):
            shutil.copyfile(folder / name, writer.path(name))
        release = replace(release, path=out)
        parameters = release.plan.design.options.model_dump(mode="json")
        release.write_into(writer, parameters, report(release) if report else None)
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
