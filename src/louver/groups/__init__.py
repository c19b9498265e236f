"""groups: differentially private group sizes over a hierarchy of regions.

Fioretto, Van Hentenryck & Zhu (2021), with its privacy error repaired (ERRATA G1, G2) and a mechanism of louver's own as the default.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from louver._callable import make_callable
from louver.errors import InputError
from louver.groups.load import GroupsCall
from louver.groups.mechanisms import MECHANISMS, Mechanism
from louver.groups.options import DataKeywords, GroupsKeywords, GroupsOptions, WholeKeywords
from louver.groups.result import MEASUREMENTS_FILE, GroupRelease
from louver.groups.simulate import Preview, forecast, stand_in
from louver.groups.solve import GroupSizes, estimate_from, release_paid, release_seeded, write_from
from louver.privacy.measurements import Measured
from louver.privacy.spend import measure_into
from louver.release.write import check_out
from louver.run import Run
from louver.schema.request import SpecLike, door, requested

if TYPE_CHECKING:
    from collections.abc import Callable

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


@door(GroupsOptions, keywords=WholeKeywords)
def groups(
    data: Data | None = None,
    *,
    spec: SpecLike = None,
    out: str | Path | None = None,
    ledger: str | Path | None = None,
    report: Report | None = None,
    run: Run | None = None,
    **options: Unpack[WholeKeywords],
) -> GroupRelease:
    """Release how many groups of each size every region has.

    Parameters
    ----------
    data : path, PostgreSQL uri or dataframe
        Records, one for each member of a unit, or a table of existing counts.
    mechanism : str
        See `MECHANISMS`; by default "louver", and "M_H^dp" for neighbours that differ in a unit.
    out : path, optional
        Release directory to make; needed unless `seed` is given.

    Returns
    -------
    GroupRelease

    Notes
    -----
    **Privacy**: the whole budget, for the requested neighbours, given the invariants; see `docs/proofs/groups.md`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> people = pa.table({"home": ["A", "A", "B", "C"], "state": ["GA", "GA", "GA", "NY"]})
    >>> released = groups(people, unit="home", regions=["state"], domain_from_data=True, max_size=3, epsilon=50, seed=1)
    >>> released.counts.tolist()      # all, GA, NY; sizes 1 to 3
    [[2, 1, 0], [1, 1, 0], [1, 0, 0]]
    """
    started = time.perf_counter()
    call = GroupsCall.check(requested(spec, GroupsOptions))
    if call.options.seed is not None:
        release = release_seeded(call, call.options.seed, out, report)
    elif out is None:
        raise InputError(
            "option --out is missing; noise is drawn only once and must be kept.", option="--out"
        )
    else:
        release = release_paid(call, call.account(ledger), Path(out), report)
    return replace(release, seconds=time.perf_counter() - started)


@door(GroupsOptions, keywords=DataKeywords)
def measure(
    data: Data | None = None,
    *,
    spec: SpecLike = None,
    out: str | Path,
    ledger: str | Path | None = None,
    resume: bool = False,
    run: Run | None = None,
    **options: Unpack[DataKeywords],
) -> Measured:
    """Debit the ledger, draw the noise once, and write measurements and exact public values to a folder.

    Parameters
    ----------
    data : path, PostgreSQL uri or dataframe
        Records, one for each member of a unit, or a table of existing counts.
    out : path
        Folder to make.
    resume : bool
        Resume in the folder of an interrupted call with the same options.

    Returns
    -------
    Measured
        `estimate` works from its `folder`, without the data.
    """
    started = time.perf_counter()
    call = GroupsCall.check(requested(spec, GroupsOptions))
    if call.options.seed is not None:
        raise InputError(
            "option --seed: measurements must be paid for; use groups for tests.", option="--seed"
        )
    folder, plan = Path(out), call.public_plan()
    account = call.account(ledger)
    if not resume:
        check_out(folder)
    measured = measure_into(folder, GroupSizes(call, None, plan), account=account, run=call.run)
    return Measured.of(measured, folder, plan.loss, seconds=time.perf_counter() - started)


@door(GroupsOptions, keywords=GroupsKeywords, needs_data=False)
def estimate(
    *,
    measurements: str | Path,
    spec: SpecLike = None,
    out: str | Path | None = None,
    report: Report | None = None,
    run: Run | None = None,
    **options: Unpack[GroupsKeywords],
) -> GroupRelease:
    """Estimate from a folder written by `measure`; never opens the data and costs no privacy.

    Parameters
    ----------
    measurements : path
        The folder; the options must match those of the measurements.
    out : path, optional
        Release directory to make.
    """
    started = time.perf_counter()
    call = GroupsCall.check(requested(spec, GroupsOptions))
    call.public_plan()
    if out is not None:
        check_out(Path(out))
    folder = Path(measurements)
    plan = call.measured_plan(folder / MEASUREMENTS_FILE)
    release = estimate_from(call, plan, folder)
    if out is not None:
        write_from(folder, release, out, call, report)
    return replace(release, seconds=time.perf_counter() - started)


@door(GroupsOptions, keywords=GroupsKeywords, needs_data=False)
def preview(
    *,
    expect: int,
    spec: SpecLike = None,
    run: Run | None = None,
    **options: Unpack[GroupsKeywords],
) -> Preview:
    """Forecast the errors of a release before anything is spent; the data are not opened.

    Parameters
    ----------
    expect : int
        Number of groups for which errors are forecast; they are spread evenly over the domain's regions, with geometric sizes.
    """
    call = GroupsCall.check(requested(spec, GroupsOptions))
    if call.regions is None:
        raise InputError("option --domain is missing: a forecast does not open the data.", option="--domain")
    plan = call.plan(call.regions)
    likely = stand_in(call.regions, plan.largest_size, expect, plan.first_size)
    return Preview(plan=plan, forecast=forecast(likely, plan, run=call.run), expect=expect)


make_callable(__name__, groups)
