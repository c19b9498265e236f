"""groups: differentially private group sizes over a hierarchy of regions.

Fioretto, Van Hentenryck & Zhu (2021), with its privacy error repaired (ERRATA G1, G2) and a mechanism of our own as default.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from louver._arrays import Ints
from louver._callable import make_callable
from louver.errors import InputError
from louver.groups.load import Asked
from louver.groups.mechanisms import MECHANISMS, Mechanism
from louver.groups.options import Amount, GroupsOptions
from louver.groups.plan import SizePlan, noisy_answers, true_batches
from louver.groups.preview import Preview
from louver.groups.problem import GroupTable, Total
from louver.groups.result import DATA_FILE, INVARIANTS_FILE, MEASUREMENTS_FILE, GroupRelease
from louver.groups.simulate import errors, forecast, stand_in
from louver.privacy.ledger import Debit, Head
from louver.privacy.measurements import Measured, Measurements, TrueBatch, write_measurements
from louver.privacy.noise import KeyedNoise, Noise
from louver.privacy.spend import Account, measure_into, noise_of
from louver.release.manifest import read_manifest
from louver.release.verify import is_unchanged
from louver.release.write import ReleaseWriter, check_out
from louver.run import Run
from louver.schema.request import SpecLike, door, requested

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from louver.data.read import ArrowStream

    Data = str | Path | ArrowStream
    Report = Callable[[GroupRelease], str]

__all__ = [
    "MECHANISMS",
    "GroupRelease",
    "GroupsOptions",
    "Measured",
    "Mechanism",
    "Preview",
    "estimate",
    "groups",
    "measure",
    "preview",
]

FORECAST_CELLS = 1_000_000
"""Tables with more cells than this are forecast from one simulation, smaller ones from five."""


@door(GroupsOptions)
def groups(
    data: Data | None = None,
    *,
    spec: SpecLike = None,
    table: str | None = None,
    query: str | None = None,
    unit: str | None = None,
    size: str | None = None,
    groups: str | None = None,
    regions: str | Sequence[str] = (),
    domain: str | Path | None = None,
    domain_from_data: bool = False,
    max_size: int | None = None,
    min_size: int = 0,
    epsilon: Amount | None = None,
    rho: Amount | None = None,
    shares: str | Sequence[str] = "chosen",
    mechanism: str | None = None,
    noise: str = "louver",
    quantity: str | None = None,
    max_quantity: int = 1,
    across: str = "error",
    total: str = "noisy",
    neighbours: str = "add-remove-record",
    seed: int | None = None,
    evaluate: bool = False,
    as_published: bool = False,
    out: str | Path | None = None,
    ledger: str | Path | None = None,
    report: Report | None = None,
    run: Run | None = None,
) -> GroupRelease:
    """Release how many groups of each size every region has.

    Parameters
    ----------
    data : path, PostgreSQL uri or dataframe
        Records, one for each member of a unit, or a table counted before.
    spec : path, mapping or Spec, optional
        A spec with the source and a section `[groups]`; what is given here wins.
    table, query : str, optional
        Table of a DuckDB file or PostgreSQL database; query for PostgreSQL.
    unit : str
        Column that says which unit a record belongs to.
    size, groups : str
        For a table counted before: columns of the size and of the number of groups.
    regions : sequence of str
        Columns of the region levels, coarsest first.
    domain, domain_from_data : path, bool
        File that lists the leaf regions, with the same columns; or take them from the data, which discloses them.
    max_size : int
        Largest size told apart; larger units count with it.
    min_size : int
        Smallest size told apart, 0 or 1. With 1 a unit without members counts with size 1: for data where there is none.
    epsilon, rho : number or str
        The budget, one of them.
    shares : "chosen", "equal" or sequence
        Shares of the budget for `total` and every region level.
    mechanism : str
        See `MECHANISMS`; by default "louver", and "M_H^dp" for neighbours that differ in a unit.
    noise : "louver" or "opendp"
        Whose sampler draws. OpenDP's (extra `opendp`) cannot be replayed: a run that stops before its release is in place has
        lost its debit.
    quantity, max_quantity : str, int
        Column of what a record adds to its unit, and the most it may add.
    across : "error" or "split"
        What to do with a unit in several regions.
    total : "noisy" or "public"
        Whether the number of groups is published exactly, which makes the list of units an invariant: whether somebody who is
        alone in a unit is present is then not protected.
    neighbours : str
        "add-remove-record", "change-record" or "add-remove-unit".
    seed : int, optional
        For tests, demos and evaluation: not private, and no ledger is touched.
    evaluate : bool
        Compare with the truth; needs `seed`, and the result is not for release.
    as_published : bool
        M_c^ch with the noise of the paper, which is not private; needs `evaluate`.
    out : path, optional
        Release directory to make; needed unless `seed` is given.
    ledger : path, optional
        Who pays; by default the ledger beside the data.
    report : callable, optional
        Makes the HTML page for the release directory.
    run : Run, optional
        Told how far the work is, and asked whether it shall end.

    Returns
    -------
    GroupRelease

    Notes
    -----
    **Privacy**: the whole budget, for the neighbours asked for, given the invariants; `docs/proofs/groups.md`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> people = pa.table({"home": ["A", "A", "B", "C"], "state": ["GA", "GA", "GA", "NY"]})
    >>> released = groups(people, unit="home", regions=["state"], domain_from_data=True, max_size=3, epsilon=50, seed=1)
    >>> released.counts.tolist()      # all, GA, NY; sizes 1 to 3
    [[2, 1, 0], [1, 1, 0], [1, 0, 0]]
    """
    started = time.perf_counter()
    asked = Asked.check(requested(spec, GroupsOptions))
    if asked.options.seed is not None:
        release = _seeded(asked, asked.options.seed, out, report, run)
    elif out is None:
        raise InputError("option --out is missing; noise is drawn once and has to be kept.", option="--out")
    else:
        release = _paid(asked, asked.account(ledger), Path(out), report, run)
    return replace(release, seconds=time.perf_counter() - started)


@door(GroupsOptions)
def measure(
    data: Data | None = None,
    *,
    spec: SpecLike = None,
    table: str | None = None,
    query: str | None = None,
    unit: str | None = None,
    size: str | None = None,
    groups: str | None = None,
    regions: str | Sequence[str] = (),
    domain: str | Path | None = None,
    max_size: int | None = None,
    min_size: int = 0,
    epsilon: Amount | None = None,
    rho: Amount | None = None,
    shares: str | Sequence[str] = "chosen",
    mechanism: str | None = None,
    noise: str = "louver",
    quantity: str | None = None,
    max_quantity: int = 1,
    across: str = "error",
    total: str = "noisy",
    neighbours: str = "add-remove-record",
    out: str | Path,
    ledger: str | Path | None = None,
    resume: bool = False,
    run: Run | None = None,
) -> Measured:
    """Debit the ledger, draw the noise once, and leave measurements and what is public beside them in a folder.

    Parameters
    ----------
    out : path
        Folder to make.
    resume : bool
        Carry on in a folder that an interrupted call with the same options left.

    The other parameters are those of `groups`; a `domain` is needed.

    Returns
    -------
    Measured
        Its `folder` is what `estimate` works from, without the data.
    """
    started = time.perf_counter()
    asked = Asked.check(requested(spec, GroupsOptions))
    if asked.options.seed is not None:
        raise InputError("option --seed: measurements are paid for; use groups to try.", option="--seed")
    plan, folder = asked.public_plan(), Path(out)
    account = asked.account(ledger)
    if not resume:
        check_out(folder)
    head = measure_into(
        folder,
        (MEASUREMENTS_FILE, *([INVARIANTS_FILE] if plan.total is Total.PUBLIC else [])),
        partial(_load, asked, plan, folder),
        account=account,
        payment=asked.payment(plan),
        check_out=check_out,
        design=asked.design(plan),
        run=run,
    )
    return Measured(folder=folder, loss=plan.loss, head=head, seconds=time.perf_counter() - started)


@door(GroupsOptions, needs_data=False)
def estimate(
    *,
    measurements: str | Path,
    spec: SpecLike = None,
    unit: str | None = None,
    size: str | None = None,
    groups: str | None = None,
    regions: str | Sequence[str] = (),
    domain: str | Path | None = None,
    max_size: int | None = None,
    min_size: int = 0,
    epsilon: Amount | None = None,
    rho: Amount | None = None,
    shares: str | Sequence[str] = "chosen",
    mechanism: str | None = None,
    noise: str = "louver",
    quantity: str | None = None,
    max_quantity: int = 1,
    across: str = "error",
    total: str = "noisy",
    neighbours: str = "add-remove-record",
    out: str | Path | None = None,
    report: Report | None = None,
    run: Run | None = None,
) -> GroupRelease:
    """Estimate from a folder that `measure` left; never opens the data and costs no privacy.

    Parameters
    ----------
    measurements : path
        The folder.
    out : path, optional
        Release directory to make.

    The other parameters are those of `groups`, and must be what was measured.
    """
    started = time.perf_counter()
    asked = Asked.check(requested(spec, GroupsOptions))
    plan, folder = asked.public_plan(), Path(measurements)
    if out is not None:
        check_out(Path(out))
    path = folder / MEASUREMENTS_FILE
    if not path.is_file():
        raise InputError(f"{folder.name} holds no measurements; measure first.", option="--measurements")
    if Measurements(path).description()["design"] != asked.design(plan):
        message = (
            f"{path.name} was not measured with these options; give the measurements that belong to them."
        )
        raise InputError(message, file=path.name, option="--measurements")
    release = _estimate(asked, plan, folder, run)
    if out is not None:
        _write_from(folder, release, out, asked, report)
    return replace(release, seconds=time.perf_counter() - started)


@door(GroupsOptions, needs_data=False)
def preview(
    *,
    expect: int,
    spec: SpecLike = None,
    unit: str | None = None,
    size: str | None = None,
    groups: str | None = None,
    regions: str | Sequence[str] = (),
    domain: str | Path | None = None,
    max_size: int | None = None,
    min_size: int = 0,
    epsilon: Amount | None = None,
    rho: Amount | None = None,
    shares: str | Sequence[str] = "chosen",
    mechanism: str | None = None,
    noise: str = "louver",
    quantity: str | None = None,
    max_quantity: int = 1,
    across: str = "error",
    total: str = "noisy",
    neighbours: str = "add-remove-record",
    run: Run | None = None,
) -> Preview:
    """Forecast the errors of a release before anything is spent; the data are not opened.

    Parameters
    ----------
    expect : int
        Number of groups to forecast for; they are spread evenly over the domain's regions, with geometric sizes.

    The other parameters are those of `groups`; a `domain` is needed.
    """
    asked = Asked.check(requested(spec, GroupsOptions))
    if asked.regions is None:
        raise InputError("option --domain is missing: a forecast does not open the data.", option="--domain")
    plan = asked.plan(asked.regions)
    likely = stand_in(asked.regions, plan.largest_size, expect, plan.first_size)
    return Preview(plan=plan, forecast=forecast(likely, plan, run=run), expect=expect)


def _read(asked: Asked, plan: SizePlan | None) -> tuple[SizePlan, GroupTable]:
    """Read the confidential table, and plan for its regions where they are taken from it."""
    true_table = asked.read()
    plan = plan or asked.plan(true_table.regions)
    if plan.mechanism.check_size is not None:
        plan.mechanism.check_size(true_table.counts.size, true_table.n_groups)
    return plan, true_table


def _load(asked: Asked, plan: SizePlan, folder: Path) -> tuple[Iterator[TrueBatch], Callable[[], None]]:
    """True answers, and what writes the exact values beside the measurements."""
    true_table = _read(asked, plan)[1]
    return true_batches(true_table, plan), partial(_write_exact, plan, true_table, folder)


def _seeded(
    asked: Asked, seed: int, out: str | Path | None, report: Report | None, run: Run | None
) -> GroupRelease:
    """Run with noise that anyone can repeat."""
    if out is not None:
        check_out(Path(out))
    plan, true_table = _read(asked, None if asked.regions is None else asked.plan(asked.regions))
    with tempfile.TemporaryDirectory(prefix="louver-groups-") as name:
        folder = Path(name)
        _measure(plan, true_table, folder, KeyedNoise.from_seed(seed), None, run)
        release = _estimate(asked, plan, folder, run)
        if asked.options.evaluate:
            found = errors(release.counts, true_table.counts, plan.regions.tree)
            release = replace(release, evaluation=found)
        if out is not None:
            _write_from(folder, release, out, asked, report)
    return release


def _paid(asked: Asked, account: Account, out: Path, report: Report | None, run: Run | None) -> GroupRelease:
    """Check, read, reserve, measure, estimate, move into place, seal. A run that was interrupted is carried on."""
    plan = None if asked.regions is None else asked.plan(asked.regions)
    payment = asked.payment(plan)
    if plan is not None and account.pending(payment) is None:
        check_out(out)  # before anything is read
    account.begin(payment)
    with account.touching("group sizes"):
        plan, true_table = _read(asked, plan)
    assert plan.is_private
    payment = asked.payment(plan)
    if account.pending(payment) is None:
        check_out(out)  # before anything is spent
    if run is not None:
        run.check()
    debit = account.reserve(payment)
    if out.exists() and read_manifest(out).ledger_head == str(debit.head):  # stopped between move and seal
        release = _moved(asked, plan, out, debit.head)
    else:
        noise = noise_of(payment, debit)
        with ReleaseWriter(out) as writer:
            folder = writer.path(MEASUREMENTS_FILE).parents[1]
            _measure(plan, true_table, folder, noise, debit, run)
            release = _estimate(asked, plan, folder, run)
            _write(release, writer, asked, report)
    account.seal(debit, {name: entry.sha256 for name, entry in read_manifest(out).files.items()})
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
    write_measurements(path, true_batches(true_table, plan), noise, debit, run=run)
    _write_exact(plan, true_table, folder)


def _write_exact(plan: SizePlan, true_table: GroupTable, folder: Path) -> None:
    """Write what is published exactly: the number of groups, where it is public."""
    if plan.total is Total.PUBLIC:
        exact = pa.table({"invariant": ["groups"], "value": [true_table.n_groups]})
        pq.write_table(exact, folder / INVARIANTS_FILE)


def _estimate(asked: Asked, plan: SizePlan, folder: Path, run: Run | None) -> GroupRelease:
    """Post-process measurements; of the true table nothing is used but the total, where it is public."""
    total = None
    if plan.total is Total.PUBLIC:
        total = pq.read_table(folder / INVARIANTS_FILE)["value"][0].as_py()
    measured = Measurements(folder / MEASUREMENTS_FILE)
    counts = plan.mechanism.solve(noisy_answers(measured.batches(), plan, total), run)
    told = measured.description()
    head = None if told["entry"] is None else Head(told["entry"], told["entry_hash"])
    return _finished(asked, plan, counts, head, run, is_private=not told["not_private"])


def _moved(asked: Asked, plan: SizePlan, out: Path, head: Head) -> GroupRelease:
    """Take up a release that is in place but not sealed; refuse it where its files are not those that were written."""
    if not is_unchanged(out):
        raise InputError(
            f"option --out: {out.name} was changed before its debit was sealed; move it away and run again.",
            option="--out",
        )
    counts = pq.read_table(out / DATA_FILE)["groups"].to_numpy().reshape(-1, plan.n_sizes)
    return _finished(asked, plan, counts, head, None, is_private=True)


def _finished(
    asked: Asked, plan: SizePlan, counts: Ints, head: Head | None, run: Run | None, *, is_private: bool
) -> GroupRelease:
    """Put a result together, with errors forecast on the release itself."""
    released = GroupTable(plan.regions, counts, plan.first_size)
    return GroupRelease(
        plan=plan,
        counts=counts,
        forecast=forecast(released, plan, 1 if counts.size > FORECAST_CELLS else 5, run),
        is_private=is_private,
        is_domain_from_data=asked.regions is None,
        head=head,
    )


def _write_from(
    folder: Path, release: GroupRelease, out: str | Path, asked: Asked, report: Report | None
) -> None:
    """Make the release directory, measurements and exact values included."""
    with ReleaseWriter(out) as writer:
        for name in (MEASUREMENTS_FILE, INVARIANTS_FILE):
            if (folder / name).is_file():
                shutil.copyfile(folder / name, writer.path(name))
        _write(release, writer, asked, report)


def _write(release: GroupRelease, writer: ReleaseWriter, asked: Asked, report: Report | None) -> None:
    release.write_into(writer, asked.parameters, None if report is None else report(release))


make_callable(__name__, groups)
