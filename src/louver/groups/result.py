"""A release of group sizes: the table, its privacy loss, and its errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from louver._arrays import Ints
from louver._html import JsonText, Shown
from louver._verdict import Verdict
from louver._words import counted
from louver.errors import printable
from louver.groups.agreement import Agreement
from louver.groups.plan import SizePlan
from louver.groups.problem import SizeQuery, Total
from louver.groups.simulate import Forecast, LevelError
from louver.groups.uncertainty import SimulatedErrors, Uncertainty
from louver.privacy.budget import Measure
from louver.privacy.ledger import Head
from louver.release.manifest import Manifest
from louver.release.pages.promised import NOT_AUDITED, groups_verdict, loss_of
from louver.release.sentences import CHAIN, NOT_PRIVATE, ROUNDED_ALONE, bounds_moved
from louver.release.write import ReleaseWriter

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["DATA_FILE", "INVARIANTS_FILE", "MEASUREMENTS_FILE", "PERSONS_FILE", "GroupRelease"]

DATA_FILE = "data/groups.parquet"
PERSONS_FILE = "data/persons.parquet"
INVARIANTS_FILE = "invariants.parquet"
MEASUREMENTS_FILE = "measurements/groups.parquet"

SMALL = 10
"""Numbers below this are mostly noise and are left out of the typical error."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GroupRelease(JsonText, Shown):
    """Numbers of groups by region and size: whole, not negative, consistent over the hierarchy.

    Attributes
    ----------
    plan : SizePlan
        What was measured, and with which noise.
    counts : int64 (n_regions, n_sizes)
        Released numbers of groups, read-only.
    simulated : SimulatedErrors
        The errors of this release, from simulations on the release itself.
    evaluation : tuple of LevelError or None
        The true errors, for evaluations only.
    is_private : bool
        False for seeded noise, and if the noise is smaller than the sensitivity requires.
    is_domain_from_data : bool
        Whether the list of regions was taken from the data, which discloses it exactly.
    head : Head or None
        The ledger's entry that paid.
    debited : str or None
        The debit, in the ledger's measure and relation.
    agreement : Agreement or None
        The release of people with which the sizes agree.
    """

    plan: SizePlan
    counts: Ints
    simulated: SimulatedErrors
    evaluation: tuple[LevelError, ...] | None = None
    is_private: bool = True
    is_domain_from_data: bool = False
    head: Head | None = None
    debited: str | None = None
    agreement: Agreement | None = None
    seconds: float = field(default=0.0, compare=False)

    @property
    def total_groups(self) -> int:
        return int(self.counts[0].sum())

    @property
    def forecast(self) -> Forecast:
        """Expected errors of every level."""
        return self.simulated.forecast

    @property
    def uncertainty(self) -> Uncertainty:
        """Standard error and 90 % interval of every number of `counts`."""
        return self.simulated.groups

    @property
    def sizes(self) -> range:
        """The sizes for which the columns of `counts` stand."""
        return range(self.plan.first_size, self.plan.largest_size + 1)

    @property
    def _lost_before(self) -> str:
        assert self.agreement is not None
        return loss_of(self.agreement.manifest.privacy)

    @property
    def persons(self) -> Ints:
        """Implied number of persons of every region; units beyond the largest size are counted at that size."""
        persons: Ints = self.counts @ np.array(self.sizes)
        return persons

    @property
    def verdict(self) -> Verdict:
        """What the release promises, and what it does not protect."""
        return groups_verdict(self._privacy(), **self._status)

    @property
    def _status(self) -> dict[str, bool]:
        is_for_release = self.evaluation is None and self.plan.is_private
        first = None if self.agreement is None else self.agreement.manifest
        return {
            "is_private": self.is_private and not (first and first.not_private),
            "is_for_release": is_for_release and not (first and first.not_for_release),
        }

    def to_dict(self) -> dict[str, Any]:
        """The content of the JSON result; its keys are stable."""
        loss = self.plan.loss
        promise = (None, None) if self.plan.promise is None else tuple(map(float, self.plan.promise))
        levels = []
        for i, level in enumerate(self.plan.levels):
            entry = {
                "name": level.name,
                "regions": level.n_regions,
                "share": float(level.share),
                "measured_l1": self.forecast.before[i].l1,
                "forecast_l1": self.forecast.after[i].l1,
                "forecast_emd": self.forecast.after[i].emd,
            }
            if self.evaluation is not None:
                found = self.evaluation[i]
                entry |= {"l1_error": found.l1, "emd": found.emd, "suffix_emd": found.suffix_emd}
            levels.append(entry)
        return {
            "mechanism": self.plan.mechanism.name,
            "epsilon": float(loss.amount) if loss.measure is Measure.EPSILON else promise[0],
            "rho": float(loss.amount) if loss.measure is Measure.RHO else None,
            "delta": promise[1],
            "neighbours": str(loss.neighbours),
            "debited": self.debited,
            "levels": levels,
            "total_groups": self.total_groups,
            "verdict": self.verdict.to_dict(),
            "seconds": self.seconds,
        }

    def to_frame(self) -> pa.Table:
        """One row for each region and size: the region's labels, null below its level, then level, size, groups and their errors."""
        n_sizes = len(self.sizes)
        columns = self._region_columns(n_sizes)
        columns["size"] = pa.array(np.tile(np.array(self.sizes), len(self.counts)))
        columns["groups"] = pa.array(self.counts.ravel())
        return pa.table(columns | _error_columns(self.simulated.groups))

    def persons_frame(self) -> pa.Table:
        """One row for each region with the number of persons that its groups imply."""
        columns = self._region_columns(1) | {"persons": pa.array(self.persons)}
        return pa.table(columns | _error_columns(self.simulated.persons))

    def _region_columns(self, repeats: int) -> dict[str, pa.Array]:
        regions = self.plan.regions
        columns: dict[str, pa.Array] = {}
        for k, name in enumerate(regions.names[1:]):
            labels = [labels[k] if len(labels) > k else None for labels in regions.labels]
            columns[name] = _repeated(labels, repeats)
        columns["level"] = _repeated([regions.names[len(labels)] for labels in regions.labels], repeats)
        return columns

    def plot(self) -> Figure:
        """Draw the size distribution of the whole, and its cumulative form with its noise."""
        from louver.groups.plot import plot_release

        return plot_release(self)

    @property
    def invariants(self) -> list[str]:
        """What the guarantee assumes to be known, and does not protect."""
        known = []
        if self.plan.total is Total.PUBLIC:
            known.append("the list of units and their regions, hence the total number of groups")
        if self.is_domain_from_data:
            known.append("the list of regions that occur")
        if self.agreement is not None:
            known += self.agreement.manifest.privacy.get("invariants") or ()
        return known

    def manifest(self, parameters: dict[str, Any]) -> Manifest:
        """Describe the release: its content, how it was made, what it is conditional on, and what it promises."""
        plan = self.plan
        is_public = plan.total is Total.PUBLIC
        disclosures = ["the total number of groups, exactly"] if is_public else []
        if self.is_domain_from_data:
            disclosures.append("the list of regions that occur, exactly")
        warnings = []
        if not self._status["is_private"]:
            warnings.append(NOT_PRIVATE)
        if self.agreement is not None and self.agreement.moved:
            warnings.append(bounds_moved(self.agreement.moved))
        if plan.query is SizeQuery.CHAIN and not plan.is_private:
            warnings.append(CHAIN)
        if not plan.mechanism.is_consistent:
            warnings.append(ROUNDED_ALONE)
        return Manifest(
            verb="groups",
            method=plan.mechanism.name,
            parameters=parameters,
            promises=self._promises(),
            privacy=self._privacy(),
            results=self._results(),
            disclosures=disclosures,
            warnings=warnings,
            ledger_head=None if self.head is None else str(self.head),
            not_private=not self._status["is_private"],
            not_for_release=not self._status["is_for_release"],
        )

    def _privacy(self) -> dict[str, Any]:
        """What the manifest says about the noise."""
        plan, loss = self.plan, self.plan.loss
        return {
            "measure": str(loss.measure),
            "amount": str(loss.amount),
            "composed": None if plan.promise is None else list(map(str, plan.promise)),
            "neighbours": str(loss.neighbours),
            "meaning": loss.neighbours.meaning,
            "invariants": self.invariants,
            "not_protected": self._not_protected,
            **self._first_loss(),
            "levels": [
                {
                    "name": level.name,
                    "loss": str(level.loss.amount),
                    "sensitivity": level.sensitivity,
                    "squared_sensitivity": level.squared_sensitivity,
                }
                for level in plan.levels
            ],
        }

    @property
    def _not_protected(self) -> list[str]:
        """What this release and the one with which it agrees do not protect."""
        first = [] if self.agreement is None else self.agreement.manifest.privacy.get("not_protected") or ()
        return [*self.plan.not_protected, *first]

    def _first_loss(self) -> dict[str, Any]:
        """The privacy loss of the release with which this one agrees, which covers the same people."""
        if self.agreement is None:
            return {}
        first = self.agreement.manifest.privacy
        return {"first_release": {key: first.get(key) for key in ("measure", "amount", "neighbours")}}

    def _promises(self) -> list[dict[str, Any]]:
        agreed = [] if self.agreement is None else [self.agreement.promise(DATA_FILE)]
        return [self._promise(), *agreed]

    def _results(self) -> dict[str, Any]:
        """The JSON result without its times, plus the other figures on the page."""
        stable = {key: value for key, value in self.to_dict().items() if key not in ("seconds", "verdict")}
        plan, before = self.plan, self.forecast.before
        levels = [
            entry
            | {
                "measured_emd": before[i].emd,
                "noise": math.sqrt(plan.levels[i].distribution.variance),
                "weighed": float(plan.deviations[i]),
                "typical": self._typical_error(i),
            }
            for i, entry in enumerate(stable["levels"])
        ]
        return {
            **stable,
            "levels": levels,
            "query": str(plan.query),
            "sizes": [plan.first_size, plan.largest_size],
        }

    def _typical_error(self, level: int) -> int:
        """Half the width of the median interval, over numbers that are not small if there are any."""
        here, found = self.plan.regions.tree.level(level), self.uncertainty
        width, is_large = (found.upper - found.lower)[here], self.counts[here] >= SMALL
        return math.ceil(float(np.median(width[is_large] if is_large.any() else width)) / 2)

    def _promise(self) -> dict[str, Any]:
        """What `verify` recomputes from the published table."""
        about = {"file": DATA_FILE, "levels": list(self.plan.regions.names)}
        if not self.plan.mechanism.is_consistent:
            return {"promise": "group-counts", **about}
        total = self.total_groups if self.plan.total is Total.PUBLIC else None
        return {"promise": "group-table", **about, "total": total}

    def write_into(self, writer: ReleaseWriter, parameters: dict[str, Any], report: str | None) -> Manifest:
        """Write the files of the release next to its measurements, and move everything into place."""
        pq.write_table(self.to_frame(), writer.path(DATA_FILE), compression="zstd")
        pq.write_table(self.persons_frame(), writer.path(PERSONS_FILE), compression="zstd")
        if self.agreement is not None:
            self.agreement.write(writer)
        if report is not None:
            writer.path("report.html").write_text(report, encoding="utf-8")
        return writer.seal(self.manifest(parameters))

    def __repr__(self) -> str:
        warning = "" if self.is_private else " NOT PRIVATE"
        lines = [
            f"GroupRelease by {self.plan.mechanism.name}: {self.total_groups:,} groups of size {self.sizes[0]} to "
            f"{self.sizes[-1]}, {self.plan.loss}{warning}"
        ]
        for i, level in enumerate(self.plan.levels):
            line = f"  {level.name}: {counted(level.n_regions, 'region')}, share {float(level.share):.3f}"
            line += f", L1 error about {self.forecast.after[i].l1:,.0f}"
            if self.evaluation is not None:
                line += f" (true {self.evaluation[i].l1:,.0f}, earth mover's {self.evaluation[i].emd:,.0f})"
            lines.append(line)
        if self.debited not in (None, str(self.plan.loss)):
            lines.insert(1, f"  debited: {self.debited}(the amount that the ledger counts)")
        lines.insert(1, f"  {self.verdict.sentence}")
        if self.agreement is not None:
            lines.insert(2, f"  agrees with {self.agreement.path.name}, whose loss is {self._lost_before}")
        exact = [f"  not protected: {what}" for what in self._not_protected]
        lines[2:2] = [*exact, f"  {NOT_AUDITED}"] if exact else []
        return "\n".join(map(printable, lines[:10]))


def _error_columns(found: Uncertainty) -> dict[str, pa.Array]:
    """The columns with the error of a published number."""
    error_columns = {"standard_error": found.standard_error, "lower_90": found.lower, "upper_90": found.upper}
    return {name: pa.array(values.ravel()) for name, values in error_columns.items()}


def _repeated(labels: Sequence[str | None], repeats: int) -> pa.Array:
    """A dictionary column with every label repeated."""
    encoded = pa.array(labels, pa.string()).dictionary_encode()
    return encoded.take(pa.array(np.repeat(np.arange(len(labels)), repeats)))
