"""groups: differentially private group sizes over a hierarchy of regions.

Fioretto, Van Hentenryck & Zhu (2021), with its privacy error repaired (ERRATA G1, G2) and a mechanism of our own as default.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from louver._callable import make_callable
from louver.data.fingerprint import fingerprint
from louver.data.read import open_source
from louver.data.units import UnitCells, count_units, read_unit_counts
from louver.data.values import read_text
from louver.errors import InputError
from louver.groups.mechanisms import MECHANISMS, Mechanism, find_mechanism
from louver.groups.options import GroupsOptions
from louver.groups.plan import Plan, chosen_shares, equal_shares, make_plan, noisy_answers, true_batches
from louver.groups.problem import GroupTable, Regions, Total
from louver.groups.result import MEASUREMENTS_FILE, GroupRelease
from louver.groups.simulate import LevelError, errors, forecast, run, stand_in
from louver.privacy.ledger import Head, Ledger, ledger_beside, request_digest
from louver.privacy.measurements import Measurements, write_measurements
from louver.privacy.noise import KeyedNoise
from louver.release.manifest import ReleaseWriter, read_manifest
from louver.schema.spec import validated

if TYPE_CHECKING:
    from louver.data.read import ArrowStream

    Data = str | Path | ArrowStream
    Report = Callable[[GroupRelease], str]

__all__ = ["MECHANISMS", "GroupRelease", "GroupsOptions", "Mechanism", "groups", "preview"]

FORECAST_CELLS = 1_000_000
"""Tables with more cells than this are forecast from one simulation, smaller ones from five."""


ANSWER_OPTIONS = ("unit", "size", "groups", "quantity", "max_quantity", "across", "max_size", "regions")
"""Options that, with the data and the plan, decide the true answers."""


def groups(
    data: Data,
    *,
    table: str | None = None,
    query: str | None = None,
    out: str | Path | None = None,
    ledger: str | Path | None = None,
    report: Report | None = None,
    **options: Any,
) -> GroupRelease:
    """Release how many groups of each size every region has.

    Parameters
    ----------
    data : path, PostgreSQL uri or dataframe
        Records, one for each member of a unit, or a table counted before.
    table, query : str, optional
        Table of a DuckDB file or PostgreSQL database; query for PostgreSQL.
    out : path, optional
        Release directory to make; needed unless `seed` is given.
    ledger : path, optional
        Who pays; by default the ledger beside the data.
    report : callable, optional
        Makes the HTML page for the release directory.
    unit : str
        Column that says which unit a record belongs to.
    size, groups : str
        For a table counted before: columns of the size and of the number of groups.
    regions : sequence of str
        Columns of the region levels, coarsest first.
    domain : path
        File that lists the leaf regions, with the same columns. `domain_from_data=True` takes them from the data and
        discloses them.
    max_size : int
        Largest size told apart; larger units count with it.
    epsilon, rho : number or str
        The budget, one of them.
    shares : "chosen", "equal" or sequence
        Shares of the budget for `total` and every region level.
    mechanism : str
        "louver" by default; see `MECHANISMS`.
    quantity, max_quantity : str, int
        Column of what a record adds to its unit, and the most it may add.
    across : "error" or "split"
        What to do with a unit in several regions.
    total : "public" or "noisy"
        Whether the number of groups is published exactly, which makes the list of units an invariant.
    neighbours : str
        "add-remove-record", "change-record" or "add-remove-unit".
    seed : int, optional
        For tests, demos and evaluation: not private, and no ledger is touched.
    evaluate : bool
        Compare with the truth; needs `seed`, and the result is not for release.

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
    >>> released.counts.tolist()      # all, GA, NY; sizes 0 to 3
    [[0, 2, 1, 0], [0, 1, 1, 0], [0, 1, 0, 0]]
    """
    started = time.perf_counter()
    checked = validated(GroupsOptions, options, "groups")
    checked.check()
    budget = checked.budget()
    payer = None if checked.seed is not None else _ledger(data, ledger, out)
    bound, secret = fingerprint(data, table=table, query=query), os.urandom(32)
    before = None if payer is None else bound(secret)
    true_table = _read(data, table, query, checked)
    plan = _plan(true_table.regions, checked, budget)
    parameters = {key: value for key, value in checked.model_dump(mode="json").items() if key != "domain"}
    if payer is None:
        release = _seeded(true_table, plan, checked, started)
        if out is not None:
            with ReleaseWriter(out) as writer:
                assert checked.seed is not None
                noise = KeyedNoise.from_seed(checked.seed)
                write_measurements(writer.path(MEASUREMENTS_FILE), true_batches(true_table, plan), noise)
                release.write_into(writer, parameters, report(release) if report else None)
        return release
    assert out is not None
    if bound(secret) != before:
        raise InputError(
            "the data changed while they were read; try again when nobody writes to them.", option="FILE"
        )
    asked = {name: getattr(checked, name) for name in ANSWER_OPTIONS} | {"table": table, "query": query}
    return _paid(true_table, plan, checked, payer, bound, Path(out), parameters, report, started, asked)


def preview(*, expect: int, **options: Any) -> tuple[Plan, tuple[LevelError, ...]]:
    """Forecast the errors of a release before anything is spent; the data are not opened.

    Parameters
    ----------
    expect : int
        Number of groups to forecast for; they are spread evenly over the domain's regions, with geometric sizes.
    **options
        As for `groups`, with a `domain`.
    """
    checked = validated(GroupsOptions, options, "groups")
    checked.check()
    if checked.domain is None:
        raise InputError("option --domain is missing: a forecast does not open the data.", option="--domain")
    assert checked.max_size is not None
    regions = _listed(checked.domain, checked.regions)
    plan = _plan(regions, checked, checked.budget())
    table = stand_in(regions, checked.max_size, expect, plan.total)
    return plan, forecast(table, plan)


def _ledger(data: Data, ledger: str | Path | None, out: str | Path | None) -> Ledger:
    """Open the ledger that pays, before anything is read."""
    if out is None:
        raise InputError("option --out is missing; noise is drawn once and has to be kept.", option="--out")
    if ledger is not None:
        return Ledger(Path(ledger))
    if isinstance(data, str | Path) and Path(data).is_file():
        return Ledger(ledger_beside(Path(data)))
    raise InputError("option --ledger is missing; only a file has a ledger beside it.", option="--ledger")


def _read(data: Data, table: str | None, query: str | None, options: GroupsOptions) -> GroupTable:
    """Count the units of every region and size; refuse regions outside the domain."""
    assert options.max_size is not None
    total = Total(options.total)
    with open_source(data, table=table, query=query) as source:
        if options.unit is not None:
            counted = count_units(
                source,
                options.unit,
                options.regions,
                options.max_size,
                quantity=options.quantity,
                largest_quantity=options.max_quantity,
                is_split=options.across == "split",
            )
        else:
            assert options.size is not None and options.groups is not None
            counted = read_unit_counts(
                source, options.regions, options.size, options.groups, options.max_size
            )
        name = source.name
    regions = _regions(options, counted)
    known = set(regions.leaves)
    if any(leaf not in known for leaf in counted.leaves):
        raise InputError(
            f"{name} has a region that the domain does not list; add it to the domain or drop its rows.",
            file=name,
            option="--domain",
        )
    cells = {key: n for key, n in counted.cells.items() if total is Total.PUBLIC or key[1] > 0}
    return GroupTable.from_cells(regions, cells, options.max_size, total)


def _regions(options: GroupsOptions, counted: UnitCells) -> Regions:
    if options.domain is None:
        return Regions.from_leaves(options.regions, counted.leaves)
    return _listed(options.domain, options.regions)


def _listed(domain: str, levels: tuple[str, ...]) -> Regions:
    """Read the public list of regions."""
    with open_source(domain) as source:
        rows = read_text(source, levels)
        for number, row in enumerate(rows, 1):
            if None in row:
                column = levels[row.index(None)]
                message = (
                    f'column "{column}" in {source.name} has no value on row {number}; give every row one.'
                )
                raise InputError(message, file=source.name, column=column, row=number)
    return Regions.from_leaves(levels, [tuple(str(label) for label in row) for row in rows])


def _plan(regions: Regions, options: GroupsOptions, budget: Any) -> Plan:
    assert options.max_size is not None
    mechanism = find_mechanism(options.mechanism)
    if options.shares == "chosen":
        shares = chosen_shares(regions.tree, is_weighted=mechanism.is_weighted)
    elif options.shares == "equal":
        shares = equal_shares(regions.tree.n_levels)
    else:
        shares = options.given_shares()
    return make_plan(
        mechanism,
        regions,
        options.max_size,
        budget,
        shares,
        total=Total(options.total),
        largest_quantity=options.max_quantity,
        as_published=options.as_published,
    )


def _finished(plan: Plan, counts: Any, options: GroupsOptions, started: float, **more: Any) -> GroupRelease:
    """Put a result together, with errors forecast on the release itself."""
    released = GroupTable(plan.regions, counts, plan.first_size)
    runs = 1 if counts.size > FORECAST_CELLS else 5
    return GroupRelease(
        plan=plan,
        counts=counts,
        forecast=forecast(released, plan, runs),
        is_domain_from_data=options.domain is None,
        seconds=time.perf_counter() - started,
        **more,
    )


def _seeded(true_table: GroupTable, plan: Plan, options: GroupsOptions, started: float) -> GroupRelease:
    """Run in memory with noise that anyone can repeat."""
    assert options.seed is not None
    counts = run(true_table, plan, KeyedNoise.from_seed(options.seed))
    evaluation = errors(counts, true_table.counts, plan.regions.tree) if options.evaluate else None
    return _finished(plan, counts, options, started, evaluation=evaluation, is_private=False)


def _paid(
    true_table: GroupTable,
    plan: Plan,
    options: GroupsOptions,
    ledger: Ledger,
    bound: Callable[[bytes], bytes],
    out: Path,
    parameters: dict[str, Any],
    report: Report | None,
    started: float,
    asked: dict[str, Any],
) -> GroupRelease:
    """Reserve, measure, estimate, move into place, seal. A run that was interrupted is carried on.

    `asked` holds every option that decides the true answers: only a run with the same plan and the same true answers may
    take up a pending debit and its key.
    """
    request = request_digest(plan.request() | {"asked": asked})
    resumes = any(body["request"] == request for body in ledger.state().pending.values())
    if not resumes:
        ReleaseWriter(out)  # refuses a place that cannot be used, before anything is spent
    debit = ledger.reserve(
        plan.loss,
        request=request,
        purpose=f"group sizes by {plan.mechanism.name}",
        dataset=bound,
        # A unit that is split over regions counts in each of them: its size bounds nothing.
        largest_unit=None if options.across == "split" else plan.largest_size,
    )
    head = Head(debit.entry, debit.hash)
    exact = ["the total number of groups"] if plan.total is Total.PUBLIC else []
    exact += ["the list of regions that occur"] if options.domain is None else []
    known = set(ledger.state().disclosures) if debit.is_resumed else set()
    for what in exact:
        if what not in known:
            ledger.disclose(what)
    if out.exists() and read_manifest(out).ledger_head == str(head):  # stopped between the move and the seal
        release = _estimate(out / MEASUREMENTS_FILE, true_table, plan, options, started, head)
    else:
        with ReleaseWriter(out) as writer:
            measured = writer.path(MEASUREMENTS_FILE)
            write_measurements(measured, true_batches(true_table, plan), KeyedNoise(debit.key), debit)
            release = _estimate(measured, true_table, plan, options, started, head)
            release.write_into(writer, parameters, report(release) if report else None)
    files = {name: entry.sha256 for name, entry in read_manifest(out).files.items()}
    ledger.seal(debit, files)
    return release


def _estimate(
    measured: Path, true_table: GroupTable, plan: Plan, options: GroupsOptions, started: float, head: Head
) -> GroupRelease:
    """Post-process measurements; of the true table only the public total is used."""
    total = true_table.n_groups if plan.total is Total.PUBLIC else None
    counts = plan.mechanism.solve(noisy_answers(Measurements(measured).batches(), plan, total))
    return replace(_finished(plan, counts, options, started), head=head)


make_callable(__name__, groups)
