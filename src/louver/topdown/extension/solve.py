"""From an extension to its release: measure with the ledger that paid for the first one, share out, edit."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

from louver.engine.engines import Engine
from louver.errors import InputError
from louver.privacy.ledger import Head, Ledger
from louver.privacy.measurements import Measurements
from louver.privacy.spend import Payment
from louver.run import Run
from louver.topdown.estimation.levels import Estimate
from louver.topdown.extension.estimation import estimate_classes
from louver.topdown.extension.problem import Extension
from louver.topdown.extension.repair import repair
from louver.topdown.extension.result import ExtendedRelease
from louver.topdown.measuring.noise_plan import QueryPlan
from louver.topdown.measuring.sealing import measure_paid
from louver.topdown.measuring.true_counts import SealedCounts
from louver.topdown.planning.composition import check_extension
from louver.topdown.result import INVARIANTS_FILE, MEASUREMENTS_FILE

__all__ = ["check_payer", "estimate_extension", "measure_extension"]


def check_payer(extension: Extension, ledger: Ledger) -> None:
    """Refuse a ledger that did not pay for the first release: what both lose would stand nowhere.

    Raises
    ------
    InputError
        If the first release was not sealed by this ledger.
    """
    manifest = extension.first.manifest
    head = None if manifest.ledger_head is None else Head.parse(manifest.ledger_head)
    sealed = {} if head is None else ledger.state().sealed.get(head.entry, {})
    files = (MEASUREMENTS_FILE, INVARIANTS_FILE)
    if any(sealed.get(Path(name).name) != manifest.files[name].sha256 for name in files):
        message = (
            f"this ledger did not pay for {extension.first.path.name}; name the one that did with --ledger."
        )
        raise InputError(message, option="--ledger")


def measure_extension(
    extension: Extension, plan: QueryPlan, folder: Path, ledger: Ledger, run: Run | None
) -> Measurements:
    """Measurements of an extension in a folder, paid for once.

    Notes
    -----
    **Privacy**: nothing is published exactly, so no invariants join those before, but all of them bind its neighbours, too; the two
    releases compose sequentially.
    """
    payment = Payment(
        loss=plan.loss,
        request=plan.request(),
        purpose="TopDown extension",
        composed=partial(check_extension, plan.design, extension.refinement.class_of),
    )
    return measure_paid(plan, folder, ledger, payment, lambda levels: {}, run)


def estimate_extension(
    extension: Extension,
    plan: QueryPlan,
    folder: Path,
    engine: Engine,
    run: Run | None,
    seconds: dict[str, float],
) -> ExtendedRelease:
    """Share out and edit from the measurements of a folder."""
    path = folder / MEASUREMENTS_FILE
    began = time.perf_counter()
    measured = Measurements.of_design(path, plan.design.measured_fingerprint())
    shared = estimate_classes(extension, SealedCounts(path, plan), engine=engine, run=run)
    estimated = time.perf_counter()
    leaves, edits = repair(extension, shared.leaves, run)
    return ExtendedRelease(
        plan=plan,
        estimate=Estimate(leaves=leaves, levels=shared.levels),
        is_private=measured.is_private,
        head=measured.head,
        debited=measured.debited,
        seconds={**seconds, "estimate": estimated - began, "edit": time.perf_counter() - estimated},
        extension=extension,
        edits=edits,
    )
