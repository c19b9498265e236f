"""A k-anonymous file, what it lost, what risk is left, and the release directory made of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from louver.optim.status import Status
from louver.release.manifest import Manifest, ReleaseWriter
from louver.release.metrics import Risk, Utility

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["DATA_FILE", "AnonymizedRelease"]

DATA_FILE = "data/anonymized.parquet"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class AnonymizedRelease:
    """Microdata in which every combination of quasi-identifiers occurs at least k times.

    Attributes
    ----------
    table : pyarrow.Table
        What is published: identifying columns dropped, quasi-identifiers generalised, all others as they were.
    quasi : tuple of str
        Columns of `table` that hold the quasi-identifiers.
    status : Status
        OPTIMAL only where no partition loses less.
    lower_bound : float or None
        Loss that every partition has at least; None where no bound is known.
    promises : tuple of mappings
        What `verify` recomputes from the file.
    """

    table: pa.Table
    method: str
    k: int
    quasi: tuple[str, ...]
    status: Status
    n_classes: int
    n_suppressed: int
    lower_bound: float | None
    risk: Risk
    utility: Utility
    promises: tuple[Mapping[str, Any], ...]
    parameters: Mapping[str, Any]
    is_order_kept: bool = False
    seconds: float = field(default=0.0)

    @property
    def gap(self) -> float | None:
        """How far the loss may lie above the optimum, relative to the bound; None where no bound is known."""
        if self.status is Status.OPTIMAL:
            return 0.0
        if not self.lower_bound:
            return None
        return self.utility.information_loss / self.lower_bound - 1

    def to_dict(self) -> dict[str, Any]:
        """The content of the JSON result; its keys are stable."""
        return {
            "method": self.method,
            "k": self.k,
            "records": self.table.num_rows,
            "classes": self.n_classes,
            "smallest_class": self.risk.class_sizes[0][0] if self.risk.class_sizes else 0,
            "suppressed": self.n_suppressed,
            "information_loss": self.utility.information_loss,
            "gcp": self.utility.gcp,
            "lower_bound": self.lower_bound,
            "optimal": self.status is Status.OPTIMAL,
            "risk": asdict(self.risk),
            "utility": asdict(self.utility),
            "seconds": self.seconds,
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def to_frame(self) -> pa.Table:
        return self.table

    def plot(self) -> Figure:
        """Loss per attribute and class sizes."""
        from louver.anonymize.plot import plot_release

        return plot_release(self)

    def manifest(self) -> Manifest:
        results = {key: value for key, value in self.to_dict().items() if key != "seconds"}
        warnings = ["Rows are in the order of the source."] if self.is_order_kept else []
        return Manifest(
            verb="anonymize",
            method=self.method,
            parameters=self.parameters,
            promises=self.promises,
            results=results,
            disclosures=["every column that is not a quasi-identifier, record by record"],
            warnings=warnings,
            seconds=self.seconds,
        )

    def write(self, out: str | Path, report: str) -> Manifest:
        """Write the release directory; `report` is the HTML page to put into it."""
        with ReleaseWriter(out) as writer:
            pq.write_table(self.table, writer.path(DATA_FILE))
            writer.path("report.html").write_text(report, encoding="utf-8")
            return writer.seal(self.manifest())

    def __repr__(self) -> str:
        u, r = self.utility, self.risk
        smallest = r.class_sizes[0][0] if r.class_sizes else 0
        if self.status is Status.OPTIMAL:
            proof = "optimal"
        elif self.gap is None:
            proof = "no bound on the optimum is known"
        else:
            proof = f"at most {self.gap:.1%} above the optimum"
        return (
            f"AnonymizedRelease: {self.table.num_rows:,} records, k = {self.k}, method {self.method}\n"
            f"  {self.n_classes:,} classes, the smallest of {smallest:,} records; {self.n_suppressed:,} suppressed\n"
            f"  information loss {u.information_loss:.6g} ({u.gcp:.2%} of the quasi-identifiers' detail), {proof}\n"
            f"  highest re-identification risk {r.prosecutor_highest:.2%}, average {r.prosecutor_average:.2%}\n"
            f"  unique records: {r.uniques_before:,} before, {r.uniques_after:,} after"
        )

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"
