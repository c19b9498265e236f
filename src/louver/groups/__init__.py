"""groups: differentially private group sizes over a hierarchy of regions.

Fioretto, Van Hentenryck & Zhu (2021), with its privacy error repaired (ERRATA G1, G2) and a mechanism of our own as default.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from louver._callable import make_callable
from louver.data.fingerprint import fingerprint
from louver.data.read import open_source
from louver.data.units import UnitCells, count_units, read_unit_counts
from louver.data.values import read_text
from louver.errors import BudgetError, InputError
from louver.groups.mechanisms import MECHANISMS, Mechanism, find_mechanism
from louver.groups.options import GroupsOptions
from louver.groups.plan import (
    Plan,
    chosen_shares,
    equal_shares,
    make_plan,
    noisy_answers,
    priced,
    true_batches,
)
from louver.groups.problem import GroupTable, Regions, Total
from louver.groups.result import MEASUREMENTS_FILE, GroupRelease
from louver.groups.simulate import Forecast, errors, forecast, run, stand_in
from louver.privacy.budget import Loss
from louver.privacy.ledger import Debit, Head, Ledger, ledger_beside, request_digest
from louver.privacy.measurements import Measurements, write_measurements
from louver.privacy.noise import KeyedNoise, OpenDPNoise
from louver.release.manifest import read_manifest
from louver.release.verify import is_unchanged
from louver.release.write import ReleaseWriter
from louver.schema.spec import validated

if TYPE_CHECKING:
    from louver.data.read import ArrowStream

    Data = str | Path | ArrowStream
    Report = Callable[[GroupRelease], str]

__all__ = ["MECHANISMS", "GroupRelease", "GroupsOptions", "Mechanism", "groups", "preview"]

FORECAST_CELLS = 1_000_000
"""Tables with more cells than this are forecast from one simulation, smaller ones from five."""


ANSWER_OPTIONS = (
    "unit",
    "size",
    "groups",
    "quantity",
    "max_quantity",
    "across",
    "max_size",
    "min_size",
    "regions",
    "noise",
)
"""Options that, with the data and the plan, decide the true answers and where their noise comes from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """One call of the verb, read and planned; nothing is measured yet. Confidential."""

    true_table: GroupTable
    plan: Plan
    options: GroupsOptions
    report: Report | None
    started: float

    @property
    def parameters(self) -> dict[str, Any]:
        """The options as the manifest records them; where the domain lies is nobody's business."""
        dumped = self.options.model_dump(mode="json")
        return {key: value for key, value in dumped.items() if key != "domain"}

    @property
    def total(self) -> int | None:
        """The number of groups, where it is public: all that post-processing may know of the true table."""
        return self.true_table.n_groups if self.plan.total is Total.PUBLIC else None


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
    checked = validated(GroupsOptions, options)
    checked.check()
    budget = checked.budget()
    _check_domain(data, checked.domain)
    outside = OpenDPNoise() if checked.noise == "opendp" else None
    payer = None if checked.seed is not None else _ledger(data, ledger, out)
    bound, secret = fingerprint(data, table=table, query=query), os.urandom(32)
    before = None if payer is None else bound(secret)
    true_table = _read(data, table, query, checked)
    plan = _plan(true_table.regions, checked, budget)
    if outside is not None:
        plan = priced(plan, outside)
    if plan.mechanism.check_size is not None:
        plan.mechanism.check_size(true_table.counts.size, true_table.n_groups)
    asked = _Asked(true_table=true_table, plan=plan, options=checked, report=report, started=started)
    if payer is None:
        return _seeded(asked, out)
    assert out is not None
    if bound(secret) != before:
        raise InputError(
            "the data changed while they were read; try again when nobody writes to them.", option="FILE"
        )
    answers = {name: getattr(checked, name) for name in ANSWER_OPTIONS} | {"table": table, "query": query}
    return _paid(asked, payer, bound, Path(out), request_digest(plan.request() | {"asked": answers}), outside)


def _check_domain(data: Data, domain: str | None) -> None:
    """Refuse the confidential file as its own list of regions: one person could create a region."""
    if domain is None or not isinstance(data, str | Path):
        return
    if Path(domain).exists() and Path(data).exists() and Path(domain).samefile(data):
        raise InputError(
            "option --domain names the data themselves; give a public list, or --domain-from-data, which discloses it.",
            option="--domain",
        )


def preview(*, expect: int, **options: Any) -> tuple[Plan, Forecast]:
    """Forecast the errors of a release before anything is spent; the data are not opened.

    Parameters
    ----------
    expect : int
        Number of groups to forecast for; they are spread evenly over the domain's regions, with geometric sizes.
    **options
        As for `groups`, with a `domain`.
    """
    checked = validated(GroupsOptions, options)
    checked.check()
    if checked.domain is None:
        raise InputError("option --domain is missing: a forecast does not open the data.", option="--domain")
    assert checked.max_size is not None
    regions = _listed(checked.domain, checked.regions)
    plan = _plan(regions, checked, checked.budget())
    table = stand_in(regions, checked.max_size, expect, plan.first_size)
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
    return GroupTable.from_cells(regions, cells, options.max_size, total, options.min_size)


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


def _plan(regions: Regions, options: GroupsOptions, budget: Loss) -> Plan:
    assert options.max_size is not None
    mechanism = find_mechanism(options.mechanism, budget.neighbours)
    if options.shares == "chosen":
        shares = chosen_shares(regions.tree, budget.measure, is_weighted=mechanism.is_weighted)
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
        smallest_size=options.min_size,
        largest_quantity=options.max_quantity,
        as_published=options.as_published,
    )


def _finished(asked: _Asked, counts: Any, **more: Any) -> GroupRelease:
    """Put a result together, with errors forecast on the release itself."""
    plan = asked.plan
    released = GroupTable(plan.regions, counts, plan.first_size)
    runs = 1 if counts.size > FORECAST_CELLS else 5
    return GroupRelease(
        plan=plan,
        counts=counts,
        forecast=forecast(released, plan, runs),
        is_domain_from_data=asked.options.domain is None,
        seconds=time.perf_counter() - asked.started,
        **more,
    )


def _seeded(asked: _Asked, out: str | Path | None) -> GroupRelease:
    """Run in memory with noise that anyone can repeat."""
    seed, true_table, plan = asked.options.seed, asked.true_table, asked.plan
    assert seed is not None
    counts = run(true_table, plan, KeyedNoise.from_seed(seed))
    evaluation = errors(counts, true_table.counts, plan.regions.tree) if asked.options.evaluate else None
    release = _finished(asked, counts, evaluation=evaluation, is_private=False)
    if out is not None:
        with ReleaseWriter(out) as writer:
            noise = KeyedNoise.from_seed(seed)
            write_measurements(writer.path(MEASUREMENTS_FILE), true_batches(true_table, plan), noise)
            _write(release, writer, asked)
    return release


def _paid(
    asked: _Asked,
    ledger: Ledger,
    bound: Callable[[bytes], bytes],
    out: Path,
    request: str,
    outside: OpenDPNoise | None,
) -> GroupRelease:
    """Reserve, measure, estimate, move into place, seal. A run that was interrupted is carried on.

    `request` names the plan and every option that decides the true answers: only a run with the same ones may take up a pending
    debit and its key. Noise from outside has no key: it is on disk, inside the release, before the debit is sealed, and a run that
    stopped earlier has lost it.
    """
    plan = asked.plan
    assert plan.is_private
    if not any(body["request"] == request for body in ledger.state().pending.values()):
        ReleaseWriter(out)  # refuses a place that cannot be used, before anything is spent
    debit = ledger.reserve(
        plan.loss,
        request=request,
        purpose=f"group sizes by {plan.mechanism.name}",
        dataset=bound,
        # A unit that is split over regions counts in each of them: its size bounds nothing. With a public total, units neither
        # come nor go, and no chain of records leads from one list of units to another.
        largest_unit=None
        if asked.options.across == "split" or plan.total is Total.PUBLIC
        else plan.largest_size,
        is_replayable=outside is None,
    )
    _disclose(asked, ledger, debit)
    head = Head(debit.entry, debit.hash)
    if out.exists() and read_manifest(out).ledger_head == str(head):  # stopped between the move and the seal
        release = _moved(asked, out, head)
    elif debit.is_resumed and outside is not None:
        raise BudgetError(
            f"entry {debit.entry} was interrupted and OpenDP's noise cannot be drawn again; give it up with "
            f"`louver ledger abandon --entry {debit.entry}` and pay anew."
        )
    else:
        with ReleaseWriter(out) as writer:
            measured = writer.path(MEASUREMENTS_FILE)
            noise = outside if outside is not None else KeyedNoise(debit.key)
            write_measurements(measured, true_batches(asked.true_table, plan), noise, debit)
            release = _estimate(asked, measured, head)
            _write(release, writer, asked)
    files = {name: entry.sha256 for name, entry in read_manifest(out).files.items()}
    ledger.seal(debit, files)
    return release


def _disclose(asked: _Asked, ledger: Ledger, debit: Debit) -> None:
    """Log what is published exactly, once for each debit."""
    by = f"by {asked.options.unit or asked.options.size}, entry {debit.entry}"
    exact = [f"the total number of groups {by}"] if asked.plan.total is Total.PUBLIC else []
    exact += [f"the list of regions that occur {by}"] if asked.options.domain is None else []
    known = set(ledger.state().disclosures) if debit.is_resumed else set()
    for what in exact:
        if what not in known:
            ledger.disclose(what)


def _moved(asked: _Asked, out: Path, head: Head) -> GroupRelease:
    """Take up a release that is in place but not sealed; refuse it where its files are not those that were written."""
    if not is_unchanged(out):
        raise InputError(
            f"option --out: {out.name} was changed before its debit was sealed; move it away and run again.",
            option="--out",
        )
    return _estimate(asked, out / MEASUREMENTS_FILE, head)


def _estimate(asked: _Asked, measured: Path, head: Head) -> GroupRelease:
    """Post-process measurements; of the true table only the public total is used."""
    plan, total = asked.plan, asked.total
    counts = plan.mechanism.solve(noisy_answers(Measurements(measured).batches(), plan, total))
    return replace(_finished(asked, counts), head=head)


def _write(release: GroupRelease, writer: ReleaseWriter, asked: _Asked) -> None:
    page = None if asked.report is None else asked.report(release)
    release.write_into(writer, asked.parameters, page)


make_callable(__name__, groups)
