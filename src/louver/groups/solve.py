"""From a checked call to a release: read, pay, measure, estimate, write. Noise crosses the wall once, in `_measure`."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from louver._arrays import Ints
from louver.data.scratch import Scratch
from louver.errors import InputError
from louver.groups.load import Asked
from louver.groups.plan import SizePlan, noisy_answers, true_batches
from louver.groups.problem import GroupTable, Total
from louver.groups.result import DATA_FILE, INVARIANTS_FILE, MEASUREMENTS_FILE, GroupRelease
from louver.groups.simulate import errors
from louver.groups.uncertainty import simulate_release
from louver.privacy.ledger import Debit
from louver.privacy.measurements import Measurements, TrueBatch, write_measurements
from louver.privacy.noise import KeyedNoise, Noise
from louver.privacy.spend import Account, noise_of
from louver.release.manifest import read_manifest
from louver.release.promises.stated import check_parameters
from louver.release.verify import is_unchanged
from louver.release.write import ReleaseWriter, check_out
from louver.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from louver.data.read import ArrowStream

    Data = str | Path | ArrowStream
    Report = Callable[[GroupRelease], str]

__all__ = ["estimate_from", "load_answers", "release_paid", "release_seeded", "write_from"]


def _read(asked: Asked, plan: SizePlan | None) -> tuple[SizePlan, GroupTable]:
    """Read the confidential table, and plan for its regions where they are taken from it."""
    true_table = asked.read()
    plan = plan or asked.plan(true_table.regions)
    if plan.mechanism.check_size is not None:
        plan.mechanism.check_size(true_table.counts.size, true_table.n_groups)
    return plan, true_table


def load_answers(
    asked: Asked, plan: SizePlan, folder: Path
) -> tuple[Callable[[], Iterator[TrueBatch]], Callable[[], None]]:
    """True answers, and what writes the exact values beside the measurements."""
    true_table = _read(asked, plan)[1]
    return partial(true_batches, true_table, plan), partial(_write_exact, plan, true_table, folder)


def release_seeded(
    asked: Asked, seed: int, out: str | Path | None, report: Report | None, run: Run | None
) -> GroupRelease:
    """Run with noise that anyone can repeat."""
    if out is not None:
        check_out(Path(out))
    plan, true_table = _read(asked, None if asked.regions is None else asked.plan(asked.regions))
    with Scratch() as scratch:
        folder = scratch.path
        _measure(plan, true_table, folder, KeyedNoise.from_seed(seed), None, run)
        release = estimate_from(asked, plan, folder, run)
        if asked.options.evaluate:
            found = errors(release.counts, true_table.counts, plan.regions.tree)
            release = replace(release, evaluation=found)
        if out is not None:
            write_from(folder, release, out, asked, report)
    return release


def release_paid(
    asked: Asked, account: Account, out: Path, report: Report | None, run: Run | None
) -> GroupRelease:
    """Check, read, reserve, measure, estimate, move into place, seal. A run that was interrupted is carried on."""
    plan = None if asked.regions is None else asked.plan(asked.regions)
    payment = asked.payment(plan)
    if plan is not None and not account.is_pending(payment):
        check_out(out)  # before anything is read
    check_parameters("groups", asked.parameters)
    account.begin(payment)
    with account.touching("group sizes"):
        plan, true_table = _read(asked, plan)
    assert plan.is_private
    payment = asked.payment(plan)
    if not account.is_pending(payment):
        check_out(out)  # before anything is spent
    if run is not None:
        run.check()
    debit = account.reserve(payment)
    if out.exists() and read_manifest(out).ledger_head == str(debit.head):  # stopped between move and seal
        release = _moved(asked, plan, out)
    else:
        noise = noise_of(payment, debit)
        with ReleaseWriter(out, run) as writer:
            folder = writer.path(MEASUREMENTS_FILE).parents[1]
            _measure(plan, true_table, folder, noise, debit, run)
            release = estimate_from(asked, plan, folder, run)
            _write(release, writer, asked, report)
    files = {name: entry.sha256 for name, entry in read_manifest(out).files.items()}
    account.seal(debit, files, out.name)
    return release


def _measure(
    plan: SizePlan,
    true_table: GroupTable,
    folder: Path,
    noise: Noise,
    debit: Debit | None,
    run: Run | None,
) -> None:
    """Draw the noise once; what is exact and public goes beside it."""
    path = folder / MEASUREMENTS_FILE
    path.parent.mkdir(exist_ok=True)
    write_measurements(path, partial(true_batches, true_table, plan), noise, debit, run=run)
    _write_exact(plan, true_table, folder)


def _write_exact(plan: SizePlan, true_table: GroupTable, folder: Path) -> None:
    """Write what is published exactly: the number of groups, where it is public."""
    if plan.total is Total.PUBLIC:
        exact = pa.table({"invariant": ["groups"], "value": [true_table.n_groups]})
        pq.write_table(exact, folder / INVARIANTS_FILE)


def estimate_from(asked: Asked, plan: SizePlan, folder: Path, run: Run | None) -> GroupRelease:
    """Post-process measurements; of the true table nothing is used but the total, where it is public."""
    total = None
    if plan.total is Total.PUBLIC:
        total = pq.read_table(folder / INVARIANTS_FILE)["value"][0].as_py()
    measured = Measurements(folder / MEASUREMENTS_FILE)
    counts = plan.mechanism.solve(noisy_answers(measured.batches(), plan, total), run)
    return _finished(asked, plan, counts, measured, run)


def _moved(asked: Asked, plan: SizePlan, out: Path) -> GroupRelease:
    """Take up a release that is in place but not sealed; refuse it where its files are not those that were written."""
    if not is_unchanged(out):
        raise InputError(
            f"option --out: {out.name} was changed before its debit was sealed; move it away and run again.",
            option="--out",
        )
    counts = pq.read_table(out / DATA_FILE)["groups"].to_numpy().reshape(-1, plan.n_sizes)
    return _finished(asked, plan, counts, Measurements(out / MEASUREMENTS_FILE), None)


def _finished(
    asked: Asked, plan: SizePlan, counts: Ints, measured: Measurements, run: Run | None
) -> GroupRelease:
    """Put a result together, with errors simulated from the release itself."""
    released = GroupTable(plan.regions, counts, plan.first_size)
    return GroupRelease(
        plan=plan,
        counts=counts,
        simulated=simulate_release(released, plan, run),
        is_private=measured.is_private,
        is_domain_from_data=asked.regions is None,
        head=measured.head,
        debited=measured.debited,
    )


def write_from(
    folder: Path, release: GroupRelease, out: str | Path, asked: Asked, report: Report | None
) -> None:
    """Make the release directory, measurements and exact values included."""
    with ReleaseWriter(out, asked.run) as writer:
        for name in (MEASUREMENTS_FILE, INVARIANTS_FILE):
            if (folder / name).is_file():
                shutil.copyfile(folder / name, writer.path(name))
        _write(release, writer, asked, report)


def _write(release: GroupRelease, writer: ReleaseWriter, asked: Asked, report: Report | None) -> None:
    page = None if report is None else asked.run.attend(report, release)
    release.write_into(writer, asked.parameters, page)
