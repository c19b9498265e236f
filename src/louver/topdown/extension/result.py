"""An extended release: that of TopDown, together with the first release and the promise that nobody in it changed.

Steps: measure with the ledger that paid for the first release, distribute the people, edit.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from louver._verdict import Verdict
from louver.engine.engines import Engine
from louver.errors import InputError
from louver.privacy.ledger import Ledger
from louver.privacy.measurements import Measurements
from louver.privacy.spend import Payment
from louver.release.first import FIRST_MANIFEST, FIRST_MICRODATA, has_paid
from louver.release.manifest import MANIFEST, Manifest
from louver.release.pages.promised import loss_of, topdown_verdict
from louver.release.write import ReleaseWriter
from louver.run import Run
from louver.topdown.estimation.levels import Estimate
from louver.topdown.extension.estimation import estimate_classes
from louver.topdown.extension.intervals import simulate_extension
from louver.topdown.extension.problem import Extension
from louver.topdown.extension.repair import Edits, repair
from louver.topdown.measuring.noise_plan import QueryPlan
from louver.topdown.measuring.sealing import measure_paid
from louver.topdown.measuring.true_counts import SealedCounts
from louver.topdown.planning.composition import check_extension
from louver.topdown.result import MEASUREMENTS_FILE, MICRODATA_FILE, TopDownRelease

__all__ = [
    "FIRST_MANIFEST",
    "FIRST_MICRODATA",
    "ExtendedRelease",
    "check_payer",
    "estimate_extension",
    "measure_extension",
]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class ExtendedRelease(TopDownRelease):
    """People of a first release with new and finer attributes: row by row the same people.

    Parameters
    ----------
    extension : Extension
    edits : Edits
    """

    extension: Extension
    edits: Edits

    @property
    def not_protected(self) -> tuple[str, ...]:
        """The exact publications of the first release; the extension adds none."""
        return tuple(self.extension.first.manifest.privacy.get("not_protected", ()))

    @property
    def lost_before(self) -> str:
        """The privacy loss of the first release."""
        return loss_of(self.extension.first.manifest.privacy)

    def to_dict(self) -> dict[str, Any]:
        """The content of the JSON result; its keys are stable."""
        content = TopDownRelease.to_dict(self)
        return {**content, "extends": self.extension.first.digest, "edits": asdict(self.edits)}

    @property
    def verdict(self) -> Verdict:
        """The verdict on both releases together; if the first is not private, neither is this one."""
        first = self.extension.first.manifest
        return topdown_verdict(
            self._privacy(),
            [one["column"] for one in self._covariates()],
            is_private=self.is_private and not first.not_private,
            is_for_release=self.evaluation is None and not first.not_for_release,
        )

    def _covariates(self) -> list[dict[str, str]]:
        """The covariates of the first release; an extension has none of its own."""
        return list(self.extension.first.manifest.results.get("covariates", ()))

    def _privacy(self) -> dict[str, Any]:
        first = self.extension.first.manifest.privacy
        return {
            **TopDownRelease._privacy(self),
            "conditional_on": first.get("conditional_on"),
            "invariants": first.get("invariants", []),
            "first_release": {key: first.get(key) for key in ("measure", "amount", "neighbours")},
        }

    def manifest(self, parameters: dict[str, Any], *, csv: bool = False) -> Manifest:
        """Describe the release; this one discloses whatever the first one does."""
        own = TopDownRelease.manifest(self, parameters, csv=csv)
        first = self.extension.first.manifest
        method = "likeliest counts within the classes of the first release, people allocated one by one"
        promises = [
            *own.promises,
            self._extension_promise(),
            *self._rule_promises(),
            *self._household_promises(),
        ]
        return replace(
            own,
            method=method,
            promises=promises,
            not_private=own.not_private or first.not_private,
            not_for_release=own.not_for_release or first.not_for_release,
        )

    def _extension_promise(self) -> dict[str, Any]:
        """Promise that the projection is the first release, row by row."""
        refinement = self.extension.refinement
        return {
            "promise": "extension",
            "file": MICRODATA_FILE,
            "first": FIRST_MICRODATA,
            "first_manifest": FIRST_MANIFEST,
            "first_digest": self.extension.first.digest,
            "regions": list(self.plan.design.geography_columns),
            "attributes": {
                name: {"attribute": refinement.source[name], "labels": dict(refinement.labels[name])}
                for name in self.extension.first.attributes
            },
        }

    def _rule_promises(self) -> list[dict[str, Any]]:
        """The number of leaves in which each edit rule is still broken."""
        rules = self.extension.options.rules
        if not rules:
            return []
        return [
            {
                "promise": "edit-rules",
                "file": MICRODATA_FILE,
                "regions": list(self.plan.design.geography_columns),
                "rules": {
                    rule.name: {
                        "cells": rule.cells,
                        "at_most": rule.at_most,
                        "of": rule.of,
                        "broken": self.edits.broken_after[rule.name],
                    }
                    for rule in rules
                },
            }
        ]

    def _household_promises(self) -> list[dict[str, Any]]:
        """The number of leaves of one household in which each gap in years is still broken."""
        given = self.extension.options.household
        if given is None or not given.gaps:
            return []
        gaps = {
            gap.name: {**gap.model_dump(exclude={"name"}), "broken": self.edits.broken_after[gap.name]}
            for gap in given.gaps
        }
        return [
            {
                "promise": "households",
                "file": MICRODATA_FILE,
                "regions": list(self.plan.design.geography_columns),
                **given.model_dump(),
                "gaps": gaps,
            }
        ]

    def write_into(
        self, writer: ReleaseWriter, parameters: dict[str, Any], report: str | None, *, csv: bool = False
    ) -> Manifest:
        """Put the files of the release next to its measurements, along with those of the first release."""
        shutil.copyfile(self.extension.first.path / MANIFEST, writer.path(FIRST_MANIFEST))
        shutil.copyfile(self.extension.first.path / MICRODATA_FILE, writer.path(FIRST_MICRODATA))
        return TopDownRelease.write_into(self, writer, parameters, report, csv=csv)

    def __repr__(self) -> str:
        n_rules = sum(self.edits.broken_after.values())  # no bound is
        edits = f"  edited: {self.edits.people:,} people in {self.edits.leaves:,} leaves; rules still broken in {n_rules:,}"
        lines = TopDownRelease.__repr__(self).splitlines()
        return "\n".join(
            [
                lines[0],
                f"  extends {self.extension.first.path.name}, row by row, whose loss is {self.lost_before}",
                *lines[1:7],
                edits,
            ]
        )


def check_payer(extension: Extension, ledger: Ledger) -> None:
    """Refuse a ledger that did not pay for the first release: their joint loss would be recorded nowhere.

    Raises
    ------
    InputError
        If the first release was not sealed by this ledger.
    """
    if not has_paid(ledger, extension.first.manifest):
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
    **Privacy**: nothing is published exactly, so no invariants are added to earlier ones, but all of them bind its neighbours, too; the two
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
    """Distribute the people and edit, from the measurements in a folder."""
    path = folder / MEASUREMENTS_FILE
    began = time.perf_counter()
    measured = Measurements.of_design(path, plan.design.measured_fingerprint())
    noisy = SealedCounts(path, plan)
    shared = estimate_classes(extension, noisy, engine=engine, run=run)
    estimated = time.perf_counter()
    leaves, edits = repair(extension, shared.leaves, run)
    edited = time.perf_counter()
    known_error = simulate_extension(extension, leaves, noisy, engine=engine, run=run)
    if known_error is not None:
        seconds = {**seconds, "intervals": time.perf_counter() - edited}
    return ExtendedRelease(
        plan=plan,
        estimate=Estimate(leaves=leaves, levels=shared.levels),
        known_error=known_error,
        is_private=measured.is_private,
        head=measured.head,
        debited=measured.debited,
        seconds={**seconds, "estimate": estimated - began, "edit": edited - estimated},
        extension=extension,
        edits=edits,
    )
