"""A k-anonymous file, its loss, the remaining risk, and its release directory."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from louver._arrays import Ints
from louver._html import JsonText, Shown
from louver._verdict import Verdict
from louver.anonymize.columns import Guarantee
from louver.anonymize.comparison import BeforeAndAfter
from louver.anonymize.metrics import InferableValues, MeasuredLimits, Risk, UnitsFound, Utility
from louver.anonymize.verdict import judge
from louver.anonymize.watch import Stopped
from louver.data.write import write_csv
from louver.optim.status import Status
from louver.privacy.ledger import KeyedHash, Ledger, People
from louver.release.manifest import Manifest
from louver.release.sentences import IN_ORDER, WEAKER, column_disclosed
from louver.release.write import ReleaseWriter
from louver.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from louver.anonymize.alternatives import CurvePoint, LocalRecoding
    from louver.anonymize.analyses import Comparisons
    from louver.anonymize.intersection import Intersection
    from louver.release.matched_register import MatchedRegister

__all__ = [
    "CLASSES_FILE",
    "COLUMNS_FILE",
    "CSV_FILE",
    "DATA_FILE",
    "MAPPING_FILE",
    "AnonymizedRelease",
    "RecordsOnDisk",
    "shuffled",
]

BATCH_RECORDS = 2**18
"""Number of records of a stored file that are read at a time."""

DATA_FILE = "data/anonymized.parquet"
MAPPING_FILE = "data/mapping.parquet"
CLASSES_FILE = "data/classes.parquet"
COLUMNS_FILE = "data/columns.parquet"
CSV_FILE = "data/anonymized.csv"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class AnonymizedRelease(JsonText, Shown):
    """Microdata in which every combination of quasi-identifiers occurs at least k times, or what `guarantee` says.

    Attributes
    ----------
    table : pyarrow.Table or StoredRecords
        The published records: identifying columns dropped, quasi-identifiers generalised, all others unchanged; if they were made in parts,
        the file that holds them (`read` returns the table).
    mapping : pyarrow.Table
        Every published value of every quasi-identifier, what it stands for and how many records have it.
    published_losses : list of (name, share)
        Mean share of each quasi-identifier that is lost, measured only by its own published values.
    dictionary : pyarrow.Table
        Every column of the source with its role, its kind and its treatment.
    worked_out : tuple of InferableValues
        How many generalised values can be inferred from the columns published unchanged; internal only.
    classes : pyarrow.Table or None
        k-map: the published combinations and the people of the population that each one matches.
    quasi : tuple of str
        Columns of `table` with the quasi-identifiers.
    guarantee : Guarantee
        k-anonymity; k-map, if k counts people of the population; or freeform, which is weaker.
    subproblem_sizes : tuple of int
        Records in each sub-problem of Split & Carry.
    part_sizes : tuple of int
        Records in each part that was processed separately; empty if all were processed together.
    status : Status
        OPTIMAL only where no partition loses less.
    lower_bound : float or None
        Lower bound on the loss of any partition; None if no bound is known.
    comparison : BeforeAndAfter
        Distributions and associations before and after; internal only.
    intersection : Intersection or None
        What this release and earlier ones disclose together; internal only.
    curve : tuple of CurvePoint
        The loss of other choices of k and method, with `--curve`; internal only.
    local : LocalRecoding or None
        The loss of classes generalised one by one, if one recoding holds for the whole file; internal only.
    promises : tuple of mappings
        What `verify` recomputes from the file.
    reached : tuple of MeasuredLimits
        The l and t that the classes have, for each sensitive column with requirements.
    stages : mapping of str to float
        Seconds for reading, the first answer, the bound, the search and the output; internal only.
    ledger : Path or None
        The ledger in which a release made with `out` is logged.
    remark : str or None
        A note on the people in the register.
    unasked : str or None
        Earlier publications that are, or may be, about these people and with which this file was not compared.
    analyses : Comparisons or None
        Chosen analyses before and after; internal only.
    entry : mapping or None
        The register entry, if a register is given; internal only.
    n_alone : int
        Published records that differ from all others in some column, unchanged ones included.
    alike : tuple of (sensitive column, records)
        Published records in classes whose members all have one value of the column; internal only.
    units_found : UnitsFound or None
        The number of households in classes, by a column that looks like household numbers, if no unit is given; internal only.
    n_exceptions : int
        Published records in classes that are exceptions to one recoding for the whole file.
    stopped : Stopped or None
        The stage at which a limit on time or steps ended the search; None if it ended by itself. Internal only.
    is_accepted : bool
        Whether it may be written although it discloses too much together with earlier releases.
    """

    table: pa.Table
    mapping: pa.Table
    published_losses: list[tuple[str, float]]
    dictionary: pa.Table
    worked_out: tuple[InferableValues, ...]
    classes: pa.Table | None
    guarantee: Guarantee
    method: str
    k: int
    quasi: tuple[str, ...]
    status: Status
    n_classes: int
    n_suppressed: int
    lower_bound: float | None
    risk: Risk
    utility: Utility
    comparison: BeforeAndAfter
    promises: tuple[Mapping[str, Any], ...]
    parameters: Mapping[str, Any]
    n_alone: int
    alike: tuple[tuple[str, int], ...] = ()
    units_found: UnitsFound | None = None
    n_exceptions: int = 0
    stopped: Stopped | None = None
    reached: tuple[MeasuredLimits, ...] = ()
    is_order_kept: bool = False
    subproblem_sizes: tuple[int, ...] = ()
    part_sizes: tuple[int, ...] = ()
    intersection: Intersection | None = None
    analyses: Comparisons | None = None
    curve: tuple[CurvePoint, ...] = ()
    local: LocalRecoding | None = None
    stages: Mapping[str, float] = field(default_factory=dict)
    ledger: Path | None = None
    entry: Mapping[str, Any] | None = None
    remark: str | None = None
    unasked: str | None = None
    is_accepted: bool = False
    seconds: float = field(default=0.0)

    @property
    def gap(self) -> float | None:
        """How far the loss may be above the optimum, relative to the bound; None if no bound is known."""
        if self.status is Status.OPTIMAL:
            return 0.0
        if not self.lower_bound:
            return None
        return self.utility.information_loss / self.lower_bound - 1

    @property
    def gcp_bound(self) -> float | None:
        """Lower bound on the GCP of any partition; None if no bound is known."""
        if not self.lower_bound:
            return None
        return self.utility.gcp * self.lower_bound / self.utility.information_loss

    @property
    def verdict(self) -> Verdict:
        """The verdict for the steward; internal only."""
        return judge(self)

    @property
    def is_withheld(self) -> bool:
        """Whether it must not be written, because it discloses too much together with earlier releases and this has not been explicitly
        accepted."""
        return self.intersection is not None and self.intersection.is_disclosing and not self.is_accepted

    @property
    def unchanged(self) -> tuple[str, ...]:
        """Columns that are published unchanged."""
        return tuple(
            line["name"] for line in self.dictionary.to_pylist() if line["role"] in ("sensitive", "keep")
        )

    @property
    def coded(self) -> dict[str, str]:
        """The columns among these whose numbers were rounded or cut off first, and how."""
        done = {line["name"]: line["done"] for line in self.dictionary.to_pylist()}
        return {name: done[name] for name in self.unchanged if done[name] != "unchanged"}

    @property
    def smallest_class(self) -> int:
        return self.risk.class_sizes[0][0] if self.risk.class_sizes else 0

    @property
    def published_gap(self) -> float | None:
        """`gap` in whole per cent; None if records were left out, because the loss would reveal something about their values."""
        return None if self.gap is None or self.n_suppressed else math.ceil(100 * self.gap) / 100

    def published_dict(self) -> dict[str, Any]:
        """The results in the manifest: only figures that the published records reveal anyway."""
        losses = self.published_losses
        risk, utility = asdict(self.risk), asdict(self.utility)
        for name in ("uniques_before", "information_loss", "gcp", "by_column"):
            risk.pop(name, None)
            utility.pop(name, None)
        return {
            **self._counts(),
            "unchanged": list(self.unchanged),
            "reached": [asdict(line) for line in self.reached],
            "gcp": sum(share for _, share in losses) / max(1, len(losses)),
            "by_column": losses,
            "gap": self.published_gap,
            "risk": risk,
            "utility": utility,
        }

    def _counts(self) -> dict[str, Any]:
        sizes = self.subproblem_sizes
        return {
            "method": self.method,
            "guarantee": self.guarantee.value,
            "k": self.k,
            "records": self.table.num_rows,
            "classes": self.n_classes,
            "smallest_class": self.smallest_class,
            "suppressed": self.n_suppressed,
            "subproblems": {"number": len(sizes), "largest": max(sizes), "mean": sum(sizes) / len(sizes)}
            if sizes
            else None,
            "parts": len(self.part_sizes) or None,
        }

    def to_dict(self) -> dict[str, Any]:
        """The content of the JSON result, which is for internal use; its keys are stable."""
        return {
            **self._counts(),
            "largest_part": max(self.part_sizes, default=None),
            "columns": self.dictionary.to_pylist(),
            "worked_out": [asdict(line) for line in self.worked_out],
            "alone": self.n_alone,
            "alike": [list(line) for line in self.alike],
            "households": None if self.units_found is None else asdict(self.units_found),
            "verdict": self.verdict.to_dict(),
            "exceptions": self.n_exceptions,
            "withheld": self.is_withheld,
            "stopped": None if self.stopped is None else self.stopped.value,
            "reached": [asdict(line) for line in self.reached],
            "information_loss": self.utility.information_loss,
            "gcp": self.utility.gcp,
            "lower_bound": self.lower_bound,
            "optimal": self.status is Status.OPTIMAL,
            "risk": asdict(self.risk),
            "utility": asdict(self.utility),
            "distributions": [
                asdict(line) | {"distance": line.distance} for line in self.comparison.distributions
            ],
            "associations": [asdict(line) for line in self.comparison.associations],
            "against": None if self.intersection is None else asdict(self.intersection),
            "curve": [asdict(point) for point in self.curve],
            "analyses": None if self.analyses is None else asdict(self.analyses),
            "beside": None if self.local is None else asdict(self.local),
            "stages": dict(self.stages),
            "seconds": self.seconds,
        }

    def to_frame(self) -> pa.Table:
        return self.table.read() if isinstance(self.table, RecordsOnDisk) else self.table

    def plot(self) -> Figure:
        """Loss per attribute and class sizes."""
        from louver.anonymize.plot import plot_release

        return plot_release(self)

    def manifest(self) -> Manifest:
        """Describe the release, without the time it took, which is internal (docs/decisions/0008)."""
        warnings = [WEAKER] if self.guarantee is Guarantee.FREEFORM else []
        if self.is_order_kept:
            warnings.append(IN_ORDER)
        return Manifest(
            verb="anonymize",
            method=self.method,
            parameters=self.parameters,
            promises=self.promises,
            results=self.published_dict(),
            disclosures=[column_disclosed(name) for name in self.unchanged],
            warnings=warnings,
        )

    def write(
        self,
        out: str | Path,
        report: str | None = None,
        ledger: str | Path | None = None,
        *,
        dataset: KeyedHash | None = None,
        people: People | None = None,
        register: MatchedRegister | None = None,
        run: Run | None = None,
    ) -> Manifest:
        """Write the release directory.

        Parameters
        ----------
        out : path
            Must not exist.
        report : str, optional
            The HTML page to include.
        ledger : path, optional
            The ledger of the data: the file is logged there as an exact disclosure, which no budget covers.
        dataset : KeyedHash, optional
            Keyed hash of the data; the ledger refuses data other than those it has admitted.
        people : People, optional
            The people in the data, so that the ledger can recognise them again.
        register : MatchedRegister, optional
            The register into which the classes are entered.
        run : Run, optional
            Checked for cancellation until the file is logged.
        """
        with ReleaseWriter(out, run) as writer:
            if isinstance(self.table, RecordsOnDisk):
                self.table.write(writer.path(DATA_FILE))
            else:
                pq.write_table(self.table, writer.path(DATA_FILE))
            pq.write_table(self.mapping, writer.path(MAPPING_FILE))
            pq.write_table(self.dictionary, writer.path(COLUMNS_FILE))
            if self.parameters["csv"]:
                is_stored = isinstance(self.table, RecordsOnDisk)
                write_csv(self.table.batches() if is_stored else self.table, writer.path(CSV_FILE))
            if self.classes is not None:
                pq.write_table(self.classes, writer.path(CLASSES_FILE))
            if report is not None:
                writer.path("report.html").write_text(report, encoding="utf-8")
            log = partial(self._log, ledger, dataset, people, register)
            return writer.seal(self.manifest(), None if ledger is None and register is None else log)

    def _log(
        self,
        ledger: str | Path | None,
        dataset: KeyedHash | None,
        people: People | None,
        register: MatchedRegister | None,
    ) -> str:
        """Enter the classes into the register, log the file as an exact disclosure; return the head of the ledger or of the register."""
        entered = "" if register is None or self.entry is None else register.append(self.entry)
        if ledger is None:
            return entered
        what = f"a file of {self.table.num_rows:,} records, {self.guarantee} with k = {self.k}"
        return str(Ledger(Path(ledger)).disclose(what, dataset=dataset, people=people))

    def __repr__(self) -> str:
        u, r = self.utility, self.risk
        if self.status is Status.OPTIMAL:
            proof = "optimal"
        elif self.gap is None:
            proof = "no bound on the optimum is known"
        else:
            proof = f"at most {self.gap:.1%} above the optimum"
        if self.stopped is Stopped.IMPROVING:
            proof += ", as far as the limit of the search allowed"
        return (
            f"AnonymizedRelease: {self.table.num_rows:,} records, {self.guarantee} with k = {self.k}, "
            f"method {self.method}\n"
            + "".join(f"  {line}\n" for line in (self.verdict.sentence, *self.verdict.reasons))
            + f"  {self.n_classes:,} classes, the smallest of {self.smallest_class:,} {r.counted}; {self.n_suppressed:,} suppressed\n"
            + self._part_lines()
            + (
                f"  {self.n_exceptions:,} records are exceptions to the recoding\n"
                if self.n_exceptions
                else ""
            )
            + f"  information loss {u.information_loss:.6g} ({u.gcp:.2%} of the quasi-identifiers' detail), {proof}\n"
            f"  highest re-identification risk {r.prosecutor_highest:.2%}, average {r.prosecutor_average:.2%}\n"
            f"  unique records: {r.uniques_before:,} before, {r.uniques_after:,} after"
            + "".join(f"\n  {line}" for line in self.reached)
            + f"\n  {_kinds(self.dictionary.to_pylist())}"
            + "".join(f"\n  {line}" for line in self._unchanged_lines())
            + (f"\n  {_loss_of_local(self.local)}" if self.local is not None else "")
            + (f"\n  {self.analyses.sentence}" if self.analyses is not None else "")
            + self._intersection_lines()
            + (f"\n  {_seconds(self.stages)}" if self.stages else "")
        )

    def _part_lines(self) -> str:
        sizes = self.part_sizes
        return f"  in {len(sizes):,} parts of at most {max(sizes):,} records\n" if sizes else ""

    def _unchanged_lines(self) -> Iterator[str]:
        """The columns published unchanged, in words."""
        plain = [name for name in self.unchanged if name not in self.coded]
        yield f"published unchanged: {', '.join(plain) or 'no column'}"
        if self.coded:
            yield f"published coded: {', '.join(f'{name} ({how})' for name, how in self.coded.items())}"

    def _intersection_lines(self) -> str:
        """The comparison with earlier releases, if it is not among the reasons of the verdict."""
        together = self.intersection
        is_listed = together is None or together.is_risky or together.link is None
        return "" if is_listed else f"\n  {together}"


def _loss_of_local(local: LocalRecoding) -> str:
    return f"classes formed one by one (--recoding local) would lose {local.information_loss:.6g} ({local.gcp:.2%})"


def _kinds(lines: list[dict[str, str]]) -> str:
    """How each quasi-identifier was interpreted."""
    kinds = (f"{line['name']} ({line['kind']})" for line in lines if line["role"] == "quasi")
    return f"quasi-identifiers: {', '.join(kinds)}"


def _seconds(stages: Mapping[str, float]) -> str:
    """How long each stage took."""
    return "seconds: " + ", ".join(f"{name} {seconds:.1f}" for name, seconds in stages.items())


@dataclass(frozen=True, slots=True)
class RecordsOnDisk:
    """A Parquet file of records that stands in for the table it holds."""

    path: Path

    @property
    def num_rows(self) -> int:
        return int(pq.read_metadata(self.path).num_rows)

    @property
    def schema(self) -> pa.Schema:
        return pq.read_schema(self.path)

    def read(self) -> pa.Table:
        """All records, in memory."""
        return pq.read_table(self.path)

    def batches(self) -> Iterator[pa.Table]:
        """The records in batches; a single empty table if there are none."""
        with pq.ParquetFile(self.path) as file:
            if not file.metadata.num_rows:
                yield file.read()
            for batch in file.iter_batches(BATCH_RECORDS):
                yield pa.Table.from_batches([batch])

    def write(self, path: Path) -> None:
        """Copy the file."""
        shutil.copyfile(self.path, path)


def shuffled(n: int) -> Ints:
    """A random order from the operating system's randomness."""
    return np.argsort(np.frombuffer(os.urandom(8 * n), dtype=np.uint64), kind="stable")
