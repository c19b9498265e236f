"""From a checked call to a release: read, pay, measure, estimate, write. Noise crosses the wall once, in `GroupSizes.measure`."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from louver._arrays import Ints
from louver.data.scratch import Scratch
from louver.errors import InputError
from louver.groups.load import GroupsCall
from louver.groups.methods.cumulative import solve_agreeing
from louver.groups.plan import SizePlan, noisy_answers, true_batches
from louver.groups.problem import GroupTable, Total
from louver.groups.result import DATA_FILE, INVARIANTS_FILE, MEASUREMENTS_FILE, GroupRelease
from louver.groups.simulate import errors
from louver.groups.uncertainty import simulate_release, widened
from louver.privacy.ledger import Debit
from louver.privacy.measurements import Measurements, TrueBatch, write_measurements
from louver.privacy.noise import KeyedNoise, Noise
from louver.privacy.spend import Account, Payment, release_into
from louver.release.manifest import read_manifest
from louver.release.promises.shapes import check_parameters
from louver.release.verify import is_unchanged
from louver.release.write import ReleaseWriter, check_out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from louver.data.read import ArrowStream

    Data = str | Path | ArrowStream
    Report = Callable[[GroupRelease], str]

__all__ = ["GroupSizes", "estimate_from", "release_paid", "release_seeded", "write_from"]


@dataclass(slots=True)
class GroupSizes:
    """The group sizes of a call, in the form that `privacy.spend` measures and releases.

    Attributes
    ----------
    call : GroupsCall
    report : callable or None
        Makes the page of the release.
    plan : SizePlan or None
        None until the data are read, if regions are taken from them.
    """

    call: GroupsCall
    report: Report | None
    plan: SizePlan | None
    _table: GroupTable | None = field(init=False, default=None)

    @classmethod
    def of(cls, call: GroupsCall, report: Report | None = None) -> GroupSizes:
        return cls(call, report, None if call.regions is None else call.plan(call.regions))

    @property
    def payment(self) -> Payment:
        """The payment; without a plan, the minimum loss for a request that is not yet known."""
        assert self.plan is None or self.plan.is_private
        return self.call.payment(self.plan)

    @property
    def subject(self) -> str:
        return "group sizes"

    @property
    def design(self) -> str:
        return self.call.design(self.known_plan)

    @property
    def files(self) -> Sequence[str]:
        is_public = self.known_plan.total is Total.PUBLIC
        return (MEASUREMENTS_FILE, INVARIANTS_FILE) if is_public else (MEASUREMENTS_FILE,)

    @property
    def notes(self) -> Sequence[str]:
        return ()

    @property
    def known_plan(self) -> SizePlan:
        assert self.plan is not None
        return self.plan

    @property
    def table(self) -> GroupTable:
        """The true table. Confidential."""
        assert self._table is not None
        return self._table

    def check_out(self, out: Path) -> None:
        check_out(out)

    def read(self) -> None:
        """Read the confidential table, and make the plan if the regions are taken from it."""
        table = self.call.read()
        plan = self.plan or self.call.plan(table.regions)
        if plan.mechanism.check_size is not None:
            plan.mechanism.check_size(table.counts.size, table.n_groups)
        self._table, self.plan = table, plan

    def batches(self) -> Iterator[TrueBatch]:
        return true_batches(self.table, self.known_plan)

    def write_exact(self, folder: Path) -> None:
        """Write the number of groups, if it is public."""
        if self.known_plan.total is Total.PUBLIC:
            exact = pa.table({"invariant": ["groups"], "value": [self.table.n_groups]})
            pq.write_table(exact, folder / INVARIANTS_FILE)

    def measure(self, folder: Path, noise: Noise, debit: Debit | None) -> None:
        """Draw the noise once; public exact values go into the same folder."""
        path = folder / MEASUREMENTS_FILE
        path.parent.mkdir(exist_ok=True)
        write_measurements(path, self.batches, noise, debit, run=self.call.run)
        self.write_exact(folder)

    def publish(self, out: Path, noise: Noise, debit: Debit) -> GroupRelease:
        with ReleaseWriter(out, self.call.run) as writer:
            folder = writer.path(MEASUREMENTS_FILE).parents[1]
            self.measure(folder, noise, debit)
            release = estimate_from(self.call, self.known_plan, folder)
            _write(release, writer, self.call, self.report)
        return release

    def is_published(self, out: Path, debit: Debit) -> bool:
        return read_manifest(out).ledger_head == str(debit.head)

    def reopen(self, out: Path) -> GroupRelease:
        """Resume a release that is in place but not sealed; refuse it if its files are not those that were written."""
        if not is_unchanged(out):
            raise InputError(
                f"option --out: {out.name} was changed before its debit was sealed; move it elsewhere and run again.",
                option="--out",
            )
        plan = self.known_plan
        counts = pq.read_table(out / DATA_FILE)["groups"].to_numpy().reshape(-1, plan.n_sizes)
        return _finished(self.call, plan, counts, Measurements(out / MEASUREMENTS_FILE))

    def published_files(self, out: Path) -> dict[str, str]:
        return {name: entry.sha256 for name, entry in read_manifest(out).files.items()}


def release_seeded(
    call: GroupsCall, seed: int, out: str | Path | None, report: Report | None
) -> GroupRelease:
    """Run with reproducible noise."""
    if out is not None:
        check_out(Path(out))
    sizes = GroupSizes.of(call, report)
    sizes.read()
    with Scratch() as scratch:
        folder = scratch.path
        sizes.measure(folder, KeyedNoise.from_seed(seed), None)
        release = estimate_from(call, sizes.known_plan, folder)
        if call.options.evaluate:
            found = errors(release.counts, sizes.table.counts, sizes.known_plan.regions.tree)
            release = replace(release, evaluation=found)
        if out is not None:
            write_from(folder, release, out, call, report)
    return release


def release_paid(call: GroupsCall, account: Account, out: Path, report: Report | None) -> GroupRelease:
    """Read, pay, measure, estimate and publish; an interrupted run is continued."""
    sizes = GroupSizes.of(call, report)
    check_parameters("groups", call.parameters)
    return release_into(out, sizes, account=account, run=call.run)


def estimate_from(call: GroupsCall, plan: SizePlan, folder: Path) -> GroupRelease:
    """Post-process measurements; nothing of the true table is used except the total, if it is public."""
    total = None
    if plan.total is Total.PUBLIC:
        total = pq.read_table(folder / INVARIANTS_FILE)["value"][0].as_py()
    measured = Measurements(folder / MEASUREMENTS_FILE)
    if call.agreement is None:
        counts = plan.mechanism.solve(noisy_answers(measured.batches(), plan, total), call.run)
    else:
        noisy = noisy_answers(measured.batches(), plan, None)
        counts = solve_agreeing(noisy, call.agreement.known, call.run)
    return _finished(call, plan, counts, measured)


def _finished(call: GroupsCall, plan: SizePlan, counts: Ints, measured: Measurements) -> GroupRelease:
    """Assemble a result, with errors simulated from the release itself."""
    released = GroupTable(plan.regions, counts, plan.first_size)
    simulated = simulate_release(released, plan, call.run)
    if call.agreement is not None:
        alone = plan.mechanism.solve(noisy_answers(measured.batches(), plan, None), call.run)
        simulated = widened(simulated, released, alone)
    return GroupRelease(
        plan=plan,
        counts=counts,
        simulated=simulated,
        agreement=call.agreement,
        is_private=measured.is_private,
        is_domain_from_data=call.regions is None,
        head=measured.head,
        debited=measured.debited,
    )


def write_from(
    folder: Path, release: GroupRelease, out: str | Path, call: GroupsCall, report: Report | None
) -> None:
    """Make the release directory, measurements and exact values included."""
    with ReleaseWriter(out, call.run) as writer:
        for name in (MEASUREMENTS_FILE, INVARIANTS_FILE):
            if (folder / name).is_file():
                shutil.copyfile(folder / name, writer.path(name))
        _write(release, writer, call, report)


def _write(release: GroupRelease, writer: ReleaseWriter, call: GroupsCall, report: Report | None) -> None:
    page = None if report is None else call.run.attend(report, release)
    release.write_into(writer, call.parameters, page)
