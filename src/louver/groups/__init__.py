"""groups: differentially private group sizes over a hierarchy of regions.

Fioretto, Van Hentenryck & Zhu (2021), with its privacy error repaired (ERRATA G1, G2) and a mechanism of our own as default.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from louver._callable import make_callable
from louver.errors import InputError
from louver.groups.load import Asked
from louver.groups.mechanisms import MECHANISMS, Mechanism
from louver.groups.options import Amount, GroupsOptions
from louver.groups.preview import Preview
from louver.groups.problem import Total
from louver.groups.result import INVARIANTS_FILE, MEASUREMENTS_FILE, GroupRelease
from louver.groups.simulate import forecast, stand_in
from louver.groups.solve import estimate_from, load_answers, release_paid, release_seeded, write_from
from louver.privacy.measurements import Measured, Measurements
from louver.privacy.spend import measure_into
from louver.release.write import check_out
from louver.run import Run
from louver.schema.request import SpecLike, door, requested

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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


@door(GroupsOptions)
def groups(
    data: Data | None = None,
    *,
    spec: SpecLike = None,
    table: str | None = None,
    query: str | None = None,
    decimal_mark: str | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    keep_codes: bool | None = None,
    where: str | None = None,
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
        Table of a DuckDB file or PostgreSQL database, or sheet of an Excel file; query for PostgreSQL.
    decimal_mark, encoding, delimiter, keep_codes : optional
        How a file is read: `docs/files.md`.
    where : str, optional
        Condition on the rows that are read, such as "age >= 18 and state in ('GA', 'NY')".
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
        release = release_seeded(asked, asked.options.seed, out, report, run)
    elif out is None:
        raise InputError("option --out is missing; noise is drawn once and has to be kept.", option="--out")
    else:
        release = release_paid(asked, asked.account(ledger), Path(out), report, run)
    return replace(release, seconds=time.perf_counter() - started)


@door(GroupsOptions)
def measure(
    data: Data | None = None,
    *,
    spec: SpecLike = None,
    table: str | None = None,
    query: str | None = None,
    decimal_mark: str | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    keep_codes: bool | None = None,
    where: str | None = None,
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
        partial(load_answers, asked, plan, folder),
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
    release = estimate_from(asked, plan, folder, run)
    if out is not None:
        write_from(folder, release, out, asked, report)
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


make_callable(__name__, groups)
