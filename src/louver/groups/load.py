"""Reading the inputs of a call: the public list of regions, and the confidential units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from louver.data.people import fingerprint
from louver.data.read import open_source
from louver.data.regions import RegionTree
from louver.data.tabulate import read_text
from louver.data.units import UnitCells, count_units, read_unit_counts
from louver.errors import InputError
from louver.groups.agreement import Agreement, read_agreement
from louver.groups.mechanisms import find_mechanism
from louver.groups.options import GroupsOptions
from louver.groups.plan import SizePlan, chosen_shares, equal_shares, make_plan, priced
from louver.groups.problem import GroupTable, Total
from louver.privacy.ledger import KeyedHash, People, Publication
from louver.privacy.measurements import Measurements
from louver.privacy.noise import Noise, OpenDPNoise
from louver.privacy.spend import Account, Payment, open_ledger, request_of
from louver.run import Run
from louver.schema.request import Request
from louver.schema.source import SourceOptions
from louver.schema.validate import Options

__all__ = ["NOT_IN_REQUEST", "GroupsCall"]

NOT_IN_REQUEST = {
    "groups.agrees_with": "the folder of the other release, whose digest is in the request",
    "groups.members": "people of that release, which is public: only what is estimated depends on them",
    "groups.heads": "likewise",
    "groups.most_groups": "a public bound on what is estimated",
    "groups.least_groups": "likewise",
    "groups.failsafe": "likewise",
    "groups.code": "with agrees_with, in the request next to the digest",
    "groups.domain": "the file of the public list of regions; the regions themselves are in the request",
    "groups.epsilon": "decides the noise of every level, which is in the request; the ledger compares the loss",
    "groups.rho": "likewise",
    "groups.shares": "likewise",
    "groups.seed": "a seeded run touches no ledger",
    "groups.evaluate": "needs a seed",
    "groups.as_published": "needs evaluate",
    "source.file": "the file of the records; the ledger's keyed hash binds the records themselves",
    "source.uri": "likewise",
}
"""Options that cannot change the true answers or the noise of a paid run, with reasons."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsCall:
    """A checked call of the verb; nothing confidential has been read yet.

    Attributes
    ----------
    data : path, uri or dataframe
    source : SourceOptions
    options : GroupsOptions
    noise : Noise or None
        A source of noise other than the debit's key.
    regions : RegionTree or None
        The public list; None if regions are taken from the data.
    run : Run
        Checked while reading.
    agreement : Agreement or None
        The release of people with which sizes agree.
    """

    data: Any
    source: SourceOptions
    options: GroupsOptions
    noise: Noise | None
    regions: RegionTree | None
    run: Run = field(default_factory=Run)
    agreement: Agreement | None = None

    @classmethod
    def check(cls, request: Request[GroupsOptions]) -> GroupsCall:
        """Check the budget and read the public list of regions."""
        options = request.options
        options.budget()
        _check_domain(request.data, options.domain)
        agreement = None if options.agrees_with is None else read_agreement(options, run=request.run)
        regions = None if agreement is None else agreement.regions
        if regions is None and options.domain is not None:
            regions = _listed(options.domain, options.regions, request.run)
        return cls(
            data=request.data,
            source=request.source,
            options=options,
            noise=OpenDPNoise() if options.noise == "opendp" else None,
            regions=regions,
            run=request.run,
            agreement=agreement,
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """The options as recorded in the manifest, without the file of the domain, and with the digest of the other release."""
        stated = self.options.model_dump(
            mode="json", exclude={"domain", "agrees_with", *_unused(self.options)}
        )
        return stated if self.agreement is None else {**stated, "agrees_with": self.agreement.digest}

    @property
    def dataset(self) -> KeyedHash:
        """Keyed hash of the data."""
        return fingerprint(self.data, **self.source.opening(), run=self.run)

    def account(self, ledger: str | Path | None) -> Account:
        """The ledger to be charged, opened before anything is read."""
        budget, source = self.options.budget(), self.source
        if self.options.delta is not None and self.regions is not None:
            budget = self.plan(self.regions).loss
        payer = open_ledger(self.data, ledger, budget, table=source.table, query=source.query, run=self.run)
        if self.agreement is not None:
            self.agreement.check_payer(payer)
        people = People(self.data, weight=source.weight, run=self.run, **source.opening())
        return Account(payer, self.dataset, people)

    def public_plan(self) -> SizePlan:
        """The plan of a call that does not take its regions from the data."""
        if self.regions is None:
            message = "option --domain is missing: measuring and estimating share a public list of regions."
            raise InputError(message, option="--domain")
        return self.plan(self.regions)

    def measured_plan(self, file: Path) -> SizePlan:
        """The plan with which measurements in a file were drawn; refuses measurements made with other options."""
        plan = self.public_plan()
        Measurements.of_design(file, self.design(plan))
        return plan

    def plan(self, regions: RegionTree) -> SizePlan:
        """The plan of all measurements, with the cost of the noise."""
        options, budget = self.options, self.options.budget()
        assert options.max_size is not None
        mechanism = find_mechanism(options.mechanism, budget.neighbours)
        if options.shares == "chosen":
            shares = chosen_shares(regions.tree, budget.measure, is_weighted=mechanism.is_weighted)
        elif options.shares == "equal":
            shares = equal_shares(regions.tree.n_levels)
        else:
            shares = options.given_shares()
        plan = make_plan(
            mechanism,
            regions,
            options.max_size,
            budget,
            shares,
            total=Total(options.total),
            smallest_size=options.min_size,
            largest_quantity=options.max_quantity,
            as_published=options.as_published,
            promise=options.promise(),
        )
        return plan if self.noise is None else priced(plan, self.noise)

    def payment(self, plan: SizePlan | None) -> Payment:
        """The payment; without a plan, the minimum loss for a request that is not yet known."""
        options = self.options
        is_public = options.total == "public"
        if plan is None:
            return Payment(
                loss=options.budget(),
                purpose="group sizes",
                largest_unit=self._largest_unit,
                noise=self.noise,
            )
        by = f"{options.unit or options.size}{f', where {self.source.where}' if self.source.where else ''}"
        exact = [("total", f"the total number of groups by {by}")] if is_public else []
        exact += [("regions", f"the list of regions that occur by {by}")] if self.regions is None else []
        exact += [("not protected", f"not protected by {by}: {what}") for what in plan.not_protected]
        return Payment(
            loss=plan.loss,
            request=self._request(plan),
            purpose=f"group sizes by {plan.mechanism.name}",
            largest_unit=self._largest_unit,
            noise=self.noise,
            publishes=tuple(
                Publication(what=what, invariants=({"verb": "groups", "kind": kind, "by": by},))
                for kind, what in exact
            ),
            composed=None if self.agreement is None else self._check_neighbours,
        )

    def _check_neighbours(self, published: Sequence[Mapping[str, Any]]) -> None:
        """Refuse sizes that would protect nobody, given what the ledger has published exactly.

        A changed record may change only its unit, which affects no invariant. Adding or removing a person changes the invariants that
        count the person, so none may have been published.
        """
        if published and self.options.neighbours == "add-remove-record":
            raise InputError(
                "this ledger has published counts exactly, so no person can be added or removed and nothing would be protected.",
                option="--neighbours",
            )

    @property
    def _largest_unit(self) -> int | None:
        """Maximum number of records per unit, for a ledger of units.

        A unit split over several regions counts in each of them, so its size gives no bound. With a public total, units are never added
        or removed, and no chain of records leads from one list of units to another.
        """
        is_bounded = self.options.across != "split" and self.options.total != "public"
        return self.options.max_size if is_bounded else None

    def _request(self, plan: SizePlan) -> str:
        return self._named(plan, {"groups": self.options, "source": self.source})

    def design(self, plan: SizePlan) -> str:
        """A digest of what was measured, without the source of the data, which estimation must match."""
        return self._named(plan, {"groups": self.options})

    def _named(self, plan: SizePlan, options: dict[str, Options]) -> str:
        return request_of(
            "groups",
            options,
            NOT_IN_REQUEST,
            ((level.name, str(plan.query), level.distribution) for level in plan.levels),
            regions=plan.regions.labels,
            **self._agreed,
        )

    @property
    def _agreed(self) -> dict[str, Any]:
        """The identity of the release with which sizes agree; measurements are estimated with that release and no other."""
        if self.agreement is None:
            return {}
        return {"agrees_with": self.agreement.digest, "code": self.options.code}

    def read(self) -> GroupTable:
        """Count the units of every region and size; refuse regions outside the domain. Confidential."""
        options = self.options
        assert options.max_size is not None
        with open_source(self.data, **self.source.opening(), run=self.run) as source:
            if options.unit is not None:
                counted = count_units(
                    source,
                    options.unit,
                    options.regions if options.code is None else [options.code],
                    options.max_size,
                    quantity=options.quantity,
                    largest_quantity=options.max_quantity,
                    is_split=options.across == "split",
                    may_be_alone=self.agreement is not None,
                )
                if self.agreement is not None:
                    counted = self.agreement.placed(counted)
            else:
                assert options.size is not None and options.groups is not None
                counted = read_unit_counts(
                    source, options.regions, options.size, options.groups, options.max_size
                )
            name = source.name
        return self._table(counted, name)

    def _table(self, counted: UnitCells, name: str) -> GroupTable:
        options, total = self.options, Total(self.options.total)
        assert options.max_size is not None
        regions = self.regions or RegionTree.from_leaves(options.regions, counted.leaves)
        known = set(regions.leaf_labels)
        if any(leaf not in known for leaf in counted.leaves):
            raise InputError(
                f"{name} has a region that the domain does not list; add it to the domain or drop its rows.",
                file=name,
                option="--domain",
            )
        cells = {key: n for key, n in counted.cells.items() if total is Total.PUBLIC or key[1] > 0}
        return GroupTable.from_cells(regions, cells, options.max_size, total, options.min_size)


def _unused(options: GroupsOptions) -> set[str]:
    """Options of agreement, which a release without agreement omits."""
    names = {"members", "heads", "code", "most_groups", "least_groups", "failsafe"}
    return names if options.agrees_with is None else set()


def _check_domain(data: Any, domain: Any) -> None:
    """Refuse to use the confidential file as its own list of regions, because a single person could create a region."""
    is_same = domain is not None and domain is data
    if isinstance(domain, str) and isinstance(data, str | Path):
        is_same = Path(domain).exists() and Path(data).exists() and Path(domain).samefile(data)
    if is_same:
        raise InputError(
            "option --domain is the data file itself; give a public list, or --domain-from-data, which discloses the list.",
            option="--domain",
        )


def _listed(domain: Any, levels: tuple[str, ...], run: Run) -> RegionTree:
    """Read the public list of regions."""
    with open_source(domain, run=run) as source:
        rows = read_text(source, levels)
        for number, row in enumerate(rows, 1):
            if None in row:
                column = levels[row.index(None)]
                message = (
                    f'column "{column}" in {source.name} has no value on row {number}; give every row one.'
                )
                raise InputError(message, file=source.name, column=column, row=number)
    return RegionTree.from_leaves(levels, [tuple(str(label) for label in row) for row in rows])
