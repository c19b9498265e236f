"""Measurements in a folder: paid for once, whatever happens, and never mixed with those of another spec.

The folder holds `request.json` (what was asked for), `invariants.parquet`, `measurements/` and, while levels are
estimated, `checkpoints/`.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from louver.data.write import replacing
from louver.errors import InputError
from louver.privacy.ledger import Head, KeyedHash, Ledger, request_digest
from louver.privacy.measurements import Measurements, measure
from louver.release.manifest import MANIFEST, file_entry, read_manifest
from louver.release.write import check_out
from louver.topdown.measuring import (
    invariant_values,
    source_hash,
    true_batches,
    true_levels,
    write_invariants,
)
from louver.topdown.plan import Plan
from louver.topdown.result import INVARIANTS_FILE, MEASUREMENTS_FILE

__all__ = ["checkpoints_of", "is_finished", "measure_into", "measurements_path"]

REQUEST_FILE = "request.json"
CHECKPOINTS = "checkpoints"


def measure_into(plan: Plan, folder: Path, ledger: Ledger) -> Head:
    """Measurements and invariants in `folder`, paid for once; nothing to do where they are there already."""
    request = request_digest(plan.request())
    _check_folder(folder, request)
    path = folder / MEASUREMENTS_FILE
    if not _is_sealed(folder, ledger):
        unchanged = _unchanged(source_hash(plan.design))
        levels = true_levels(plan.design)
        values = invariant_values(plan, levels)
        plan.problem(values)  # contradictions end here, before anything is spent
        payment: dict[str, Any] = {
            "loss": plan.loss,
            "request": request,
            "purpose": "TopDown measurements",
            "dataset": unchanged,
        }
        ledger.reserve(**payment)  # refused before anything exact is logged or written
        _disclose(ledger, request, values)
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(folder / REQUEST_FILE) as sink:
            sink.write(json.dumps(request).encode())
        exact = folder / INVARIANTS_FILE
        write_invariants(exact, plan, values)
        design = plan.design.measured_fingerprint()
        batches = true_batches(plan, levels)
        measure(measurements_path(folder), batches, ledger=ledger, design=design, beside=[exact], **payment)
    description = Measurements(path).description()
    return Head(description["entry"], description["entry_hash"])


def _check_folder(folder: Path, request: str) -> None:
    """Refuse a folder that holds something else than this request."""
    if not folder.exists():
        check_out(folder)
        return
    found = _noted_request(folder / REQUEST_FILE)
    if found is not None and found != request:
        message = f"{folder.name} holds the measurements of another spec; choose another place."
        raise InputError(message, option="--out")
    # A run that was killed while it wrote its note may have left a hidden file.
    if found is None and (not folder.is_dir() or any(p.name[0] != "." for p in folder.iterdir())):
        raise InputError(f"{folder.name} exists already; name a new folder.", option="--out")


def _noted_request(path: Path) -> str | None:
    """The request a folder was made for, None where it has no note."""
    if not path.is_file():
        return None
    try:
        request = json.loads(path.read_text())
    except ValueError:
        request = None
    if not isinstance(request, str):
        message = f"{path.name} in {path.parent.name} cannot be read; move the folder away to measure anew."
        raise InputError(message, file=path.name, option="--out")
    return request


def _unchanged(dataset: KeyedHash) -> KeyedHash:
    """The keyed hash of data that are what they are now; refuses data that changed since."""
    own = secrets.token_bytes(32)
    before = dataset(own)

    def keyed(secret: bytes) -> bytes:
        digest = dataset(secret)
        if dataset(own) != before:
            message = "the data changed while they were read; try again when nobody writes to them."
            raise InputError(message, option="source")
        return digest

    return keyed


def _disclose(ledger: Ledger, request: str, invariants: Iterable[str]) -> None:
    """Log what is published exactly, once."""
    known = ledger.state().disclosures
    for name in invariants:
        what = f'topdown {request[:16]}: the counts of invariant "{name}"'
        if what not in known:
            ledger.disclose(what)


def _is_sealed(folder: Path, ledger: Ledger) -> bool:
    """Whether the ledger has sealed exactly the files of this folder."""
    files = [folder / MEASUREMENTS_FILE, folder / INVARIANTS_FILE]
    if not all(path.is_file() for path in files):
        return False
    entry = Measurements(files[0]).description()["entry"]
    sealed = ledger.state().sealed.get(entry, {})
    return all(sealed.get(path.name) == file_entry(path).sha256 for path in files)


def measurements_path(folder: Path) -> Path:
    """Where the measurements of a folder are; the way there is made."""
    path = folder / MEASUREMENTS_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def checkpoints_of(plan: Plan, folder: Path) -> Path | None:
    """Where finished levels are kept: a place for each design and its measurements; none in a published folder."""
    if not (folder / REQUEST_FILE).is_file():
        return None
    hasher = hashlib.sha256(plan.design.fingerprint().encode())
    for name in (MEASUREMENTS_FILE, INVARIANTS_FILE):
        hasher.update(file_entry(folder / name).sha256.encode())
    return folder / CHECKPOINTS / hasher.hexdigest()[:16]


def is_finished(plan: Plan, out: Path, ledger: Ledger) -> bool:
    """Whether `out` is a release of this design from measurements that the ledger has sealed."""
    if not (out / MANIFEST).is_file():
        return False
    manifest = read_manifest(out)
    if manifest.spec_sha256 != plan.design.fingerprint() or manifest.ledger_head is None:
        return False
    sealed = ledger.state().sealed.get(Head.parse(manifest.ledger_head).entry, {})
    return sealed.get(Path(MEASUREMENTS_FILE).name) == manifest.files[MEASUREMENTS_FILE].sha256
