"""Measurements in a folder: paid for exactly once, whatever happens, and never mixed with those of another spec.

The folder holds `request.json` (the request), `invariants.parquet`, `measurements/` and, while levels are
estimated, `checkpoints/`; and `shares.json` for a spec that leaves its shares to louver: they are fixed there before the debit is
reserved, and any run that continues this one, on any machine, reads them from there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from louver._arrays import Ints
from louver.data.scratch import Scratch
from louver.data.write import replacing
from louver.errors import InputError
from louver.privacy.ledger import Ledger, Publication
from louver.privacy.measurements import Measurements, TrueBatch
from louver.privacy.spend import REQUEST_FILE, Account, Payment
from louver.privacy.spend import measure_into as spend_into
from louver.release.manifest import MANIFEST, file_entry, read_manifest
from louver.release.promises.shapes import check_parameters
from louver.release.write import check_out
from louver.run import Run
from louver.schema.validate import validated
from louver.topdown.knowledge.check import crossing_words
from louver.topdown.measuring.noise_plan import QueryPlan
from louver.topdown.measuring.true_counts import (
    invariant_values,
    source_hash,
    source_people,
    true_batches,
    true_levels,
    write_invariants,
)
from louver.topdown.options import SharesOptions
from louver.topdown.planning.composition import check_together, invariant_records
from louver.topdown.problem import Histograms
from louver.topdown.result import INVARIANTS_FILE, MEASUREMENTS_FILE

__all__ = [
    "checkpoints_of",
    "is_finished",
    "measure_into",
    "measure_paid",
    "measurements_path",
    "noted_shares",
    "payment_of",
]

CHECKPOINTS = "checkpoints"
SHARES_FILE = "shares.json"


def measure_into(plan: QueryPlan, folder: Path, ledger: Ledger, run: Run | None = None) -> Measurements:
    """Measurements and invariants in `folder`, paid for once; nothing is done if they already exist."""

    def exact(levels: Sequence[Histograms]) -> dict[str, Ints]:
        values = invariant_values(plan, levels)
        # Contradictions are refused here, before anything is spent.
        (run or Run()).attend(plan.problem, values)
        if plan.design.has_chosen_shares:
            _note_shares(plan, folder)
        return values

    for words in crossing_words(plan):
        (run or Run()).tell(words)
    return measure_paid(plan, folder, ledger, payment_of(plan), exact, run)


@dataclass(slots=True)
class LevelCounts:
    """Counts of all queries at all levels, and the invariants: what `privacy.spend` measures.

    Attributes
    ----------
    plan : QueryPlan
    payment : Payment
    exact : callable
        The invariants' counts, from the true histograms.
    scratch : Path
        A private folder for the true histograms while they are needed.
    """

    plan: QueryPlan
    payment: Payment
    exact: Callable[[Sequence[Histograms]], Mapping[str, Ints]]
    scratch: Path
    run: Run | None
    _levels: Sequence[Histograms] = field(init=False, default=())
    _values: Mapping[str, Ints] = field(init=False, default_factory=dict)

    @property
    def subject(self) -> str:
        return self.payment.purpose

    @property
    def design(self) -> str:
        return self.plan.design.measured_fingerprint()

    @property
    def files(self) -> Sequence[str]:
        return MEASUREMENTS_FILE, INVARIANTS_FILE

    @property
    def notes(self) -> Sequence[str]:
        return (SHARES_FILE,)

    def check_out(self, out: Path) -> None:
        check_out(out)

    def read(self) -> None:
        self._levels = true_levels(self.plan.design, self.scratch, self.run)
        self._values = self.exact(self._levels)

    def batches(self) -> Iterable[TrueBatch]:
        return true_batches(self.plan, self._levels)

    def write_exact(self, folder: Path) -> None:
        write_invariants(folder / INVARIANTS_FILE, self.plan, self._values)


def measure_paid(
    plan: QueryPlan,
    folder: Path,
    ledger: Ledger,
    payment: Payment,
    exact: Callable[[Sequence[Histograms]], Mapping[str, Ints]],
    run: Run | None,
) -> Measurements:
    """Measurements in `folder` for a payment, and the `exact` values of the true histograms."""
    check_parameters("topdown", plan.design.options.model_dump(mode="json"))
    account = Account(ledger, source_hash(plan.design, run), source_people(plan.design, run))
    with Scratch() as scratch:
        return spend_into(
            folder, LevelCounts(plan, payment, exact, scratch.path, run), account=account, run=run
        )


def _note_shares(plan: QueryPlan, folder: Path) -> None:
    """Write the chosen shares; if the file exists, they were read from it and are the same."""
    assert plan.design.options.shares is not None
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / SHARES_FILE) as sink:
        sink.write(plan.design.options.shares.model_dump_json().encode())


def noted_shares(*folders: Path) -> SharesOptions | None:
    """The shares chosen for the measurements or the release in one of these folders; None if no folder records them.

    Raises
    ------
    InputError
        If the file of shares cannot be read.
    """
    for folder in folders:
        found: Any = None
        if (folder / SHARES_FILE).is_file():
            try:
                found = json.loads((folder / SHARES_FILE).read_text(encoding="utf-8"))
            except ValueError:
                message = f"{SHARES_FILE} in {folder.name} cannot be read; move the folder elsewhere to measure again."
                raise InputError(message, file=SHARES_FILE) from None
        elif (folder / MANIFEST).is_file():
            found = read_manifest(folder).parameters.get("shares")
        if found is not None:
            return validated(SharesOptions, found, SHARES_FILE)
    return None


def payment_of(plan: QueryPlan) -> Payment:
    """The payment for measuring, with the exact publications."""
    return Payment(
        loss=plan.loss,
        request=plan.request(),
        purpose="TopDown measurements",
        publishes=tuple(
            Publication(what=f'topdown: the counts of invariant "{record["name"]}"', invariants=(record,))
            for record in invariant_records(plan.design)
        ),
        composed=partial(check_together, plan.design),
    )


def measurements_path(folder: Path) -> Path:
    """The path of the measurements in a folder; its parent folders are created."""
    path = folder / MEASUREMENTS_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def checkpoints_of(plan: QueryPlan, folder: Path) -> Path | None:
    """The folder of finished levels, one for each design and its measurements; None in a published folder."""
    if not (folder / REQUEST_FILE).is_file():
        return None
    hasher = hashlib.sha256(plan.design.fingerprint().encode())
    for name in (MEASUREMENTS_FILE, INVARIANTS_FILE):
        hasher.update(file_entry(folder / name).sha256.encode())
    return folder / CHECKPOINTS / hasher.hexdigest()[:16]


def is_finished(plan: QueryPlan, out: Path, account: Account) -> bool:
    """Whether `out` is a release of this design from measurements of these data that the ledger has sealed."""
    if not (out / MANIFEST).is_file():
        return False
    manifest = read_manifest(out)
    if manifest.spec_sha256 != plan.design.fingerprint() or manifest.ledger_head is None:
        return False
    return account.has_sealed([out / MEASUREMENTS_FILE, out / INVARIANTS_FILE])
