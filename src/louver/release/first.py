"""The release that another one builds on: it must pass its own checks, and the same ledger must have paid for it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from louver.errors import InputError
from louver.privacy.ledger import Head, Ledger
from louver.release.manifest import Manifest, read_manifest
from louver.release.verify import STATUS, verify
from louver.run import Run

__all__ = [
    "FIRST_MANIFEST",
    "FIRST_MICRODATA",
    "INVARIANTS_FILE",
    "MEASUREMENTS_FILE",
    "MICRODATA_FILE",
    "has_paid",
    "read_first_manifest",
    "topdown_promise",
]

FIRST_MANIFEST = "first/manifest.json"
FIRST_MICRODATA = "first/microdata.parquet"
"""Copies of the first release's manifest and people in the release that builds on it."""

MICRODATA_FILE = "data/microdata.parquet"
MEASUREMENTS_FILE = "measurements/topdown.parquet"
INVARIANTS_FILE = "invariants.parquet"
"""Files of a TopDown release."""


def read_first_manifest(path: Path, use: str, option: str, *, seeded: bool, run: Run | None) -> Manifest:
    """The manifest of a release that passes `verify`.

    Parameters
    ----------
    use : str
        The intended use, which ends the message: "can be ...".
    option : str
        The option that names the release.
    seeded : bool
        Whether a release that is not private is allowed.

    Raises
    ------
    InputError
        If it does not pass.
    """
    found = (run or Run()).attend(partial(verify, path, accept_strings=None))
    failed = [check.name for check in found.checks if not check.passed]
    if [name for name in failed if not (seeded and name in STATUS)]:
        message = (
            f"{path.name} does not pass `louver verify` ({failed[0]}); only a release that does can be {use}."
        )
        raise InputError(message, file=path.name, option=option)
    return read_manifest(path)


def topdown_promise(manifest: Manifest) -> Mapping[str, Any] | None:
    """The promise of a TopDown release about its people; None for any other release."""
    return next((one for one in manifest.promises if one.get("promise") == "topdown"), None)


def has_paid(ledger: Ledger, manifest: Manifest) -> bool:
    """Whether a ledger sealed the measurements and invariants of a TopDown release."""
    head = None if manifest.ledger_head is None else Head.parse(manifest.ledger_head)
    sealed = {} if head is None else ledger.state().sealed.get(head.entry, {})
    files = (MEASUREMENTS_FILE, INVARIANTS_FILE)
    return all(sealed.get(Path(name).name) == manifest.files[name].sha256 for name in files)
