"""Noisy answers in a release: drawn for the debit that the manifest names, and as private as it states.

Spending verbs publish one file of measurements; its own description must match the manifest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow.compute as pc

from louver.errors import printable
from louver.release.folder import Folder, Malformed
from louver.release.manifest import Manifest
from louver.release.promises.base import Context, Outcome
from louver.release.strict_json import is_as_written, parse_json

__all__ = ["MEASUREMENTS", "check_measurements", "publisher_of"]

MEASUREMENTS = {"groups": "measurements/groups.parquet", "topdown": "measurements/topdown.parquet"}
"""The file in which each spending verb stores measurements."""

FORMAT = "louver measurements 1"
FORMS = {
    "entry": r"[0-9]{1,12}",
    "entry_hash": r"[0-9a-f]{64}",
    "design": r"[0-9a-f]{64}",
    "loss": r"(epsilon|rho) = [0-9]{1,2000}(/[0-9]{1,2000})? \([a-z-]{1,30}\)",
}
DESCRIBED = {"format", "not_private", "entry", "entry_hash", "loss", "design"}
PUBLISHED_BY = "published_by"
"""Who drew the noise, if not louver."""


def check_measurements(context: Context) -> Outcome:
    """Compare the file's own description, and the entry next to every answer, with the manifest."""
    manifest, name = context.manifest, MEASUREMENTS[context.manifest.verb]
    for problem in _problems(context.folder, manifest, name):
        return Outcome(False, problem)
    by = publisher_of(manifest)
    paid = "seeded" if by is None else f"published by {printable(by)}; no ledger of louver paid for them"
    if manifest.ledger_head is not None:
        paid = f"paid by entry {manifest.ledger_head.split(':')[0]}"
    return Outcome(True, f"{context.folder.rows(name)} noisy answers, {paid}")


def publisher_of(manifest: Manifest) -> str | None:
    """Who drew and published the noise of a TopDown release, if not louver."""
    published = manifest.parameters.get("published") if manifest.verb == "topdown" else None
    return str(published.get("by")) if isinstance(published, dict) else None


def _problems(folder: Folder, manifest: Manifest, name: str) -> Iterator[str]:
    description = parse_json(folder.metadata(name).get(b"louver", b"{}"))
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise Malformed("the measurements do not describe themselves")
    by = publisher_of(manifest)
    is_closed = set(description) <= DESCRIBED | ({PUBLISHED_BY} if by is not None else set()) and all(
        description.get(key) is None or re.fullmatch(form, str(description[key]))
        for key, form in FORMS.items()
    )
    if not is_closed or not is_as_written(folder.metadata(name)[b"louver"]):
        yield "the measurements contain more metadata than louver writes"
    entry = description["entry"]
    head = None if entry is None else f"{entry}:{description['entry_hash']}"
    if head != manifest.ledger_head:
        yield "the measurements are not those that the manifest's ledger entry paid for"
    if description["not_private"] != manifest.not_private:
        yield "the measurements and the manifest differ on whether the noise is private"
    if description.get(PUBLISHED_BY) != by:
        yield "the measurements and the manifest differ on who published them"
    if by is not None and (head is not None or manifest.not_private):
        yield "measurements published by somebody else must be neither paid from a ledger nor seeded"
    if by is None and head is None and not manifest.not_private:
        yield "the manifest calls the measurements private, but no ledger entry paid for them"
    for batch in folder.batches(name, ["entry"]):
        if pc.unique(batch["entry"]).to_pylist() != [entry]:
            yield "some measurements belong to another ledger entry"
