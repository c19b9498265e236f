"""What the pages Ledger and Releases ask for: entries, what is left, and release folders as they say of themselves."""

from __future__ import annotations

from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

from louver.errors import InputError, LouverError, printable
from louver.privacy.budget import Loss, Measure, fraction_of
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation
from louver.release.manifest import MANIFEST, Manifest, read_manifest
from louver.release.open import open_release
from louver.release.verify import verify
from louver.run import Run

__all__ = [
    "checked",
    "free_name",
    "given_up",
    "granted",
    "ledger_left",
    "ledger_read",
    "listed",
    "loss_told",
    "manifest_told",
    "out_folder",
    "practice_ledger",
    "release_folder",
    "report_of",
]

MOST = 500
"""Release folders that a page lists."""


def ledger_left(ledger: str, run: Run) -> dict[str, str]:
    """What can still be spent."""
    state = Ledger(Path(ledger)).state()
    held = sum((Fraction(body["amount"]) for body in state.pending.values()), Fraction(0))
    amounts = {"granted": state.granted, "left": state.remaining, "held": held}
    kind = {"measure": str(state.measure), "neighbours": str(state.neighbours)}
    return kind | {name: str(amount) for name, amount in amounts.items()}


def ledger_read(ledger: str, releases: str | None, run: Run) -> dict[str, Any]:
    """State and history of a ledger, and whether its past is sound."""
    book = Ledger(Path(ledger))
    state = book.state()
    check = book.verify(None if releases is None else Path(releases))
    told = state.to_dict() | {"name": printable(Path(ledger).name), "check": check.to_dict()}
    held = sum((Fraction(one["amount"]) for one in told["pending"]), Fraction(0))
    return told | {"held": str(held)}


def practice_ledger(ledger: str, measure: str, neighbours: str, grant: str, run: Run) -> None:
    """Make a ledger for a sample, where there is none."""
    if not Path(ledger).exists():
        Path(ledger).parent.mkdir(parents=True, exist_ok=True)
        Ledger.create(Path(ledger), Measure(measure), Relation(neighbours), Fraction(grant))


def granted(ledger: str, releases: str | None, amount: str, run: Run) -> dict[str, Any]:
    """Allow more to be spent."""
    book = Ledger(Path(ledger))
    book.grant(fraction_of(amount, "the amount"), book.state().measure)
    return ledger_read(ledger, releases, run)


def given_up(ledger: str, releases: str | None, entry: int, run: Run) -> dict[str, Any]:
    """Erase the key of an interrupted debit; its amount stays spent."""
    Ledger(Path(ledger)).abandon(entry)
    return ledger_read(ledger, releases, run)


def loss_told(loss: Loss) -> dict[str, str]:
    """A loss, as a page is told it."""
    return {"amount": str(loss.amount), "measure": str(loss.measure), "neighbours": str(loss.neighbours)}


def listed(folder: str, run: Run) -> list[dict[str, Any]]:
    """Every release below a folder, the newest first, as its manifest tells it; `verify` has not doubted it yet."""
    found = []
    there = Path(folder).iterdir() if Path(folder).is_dir() else ()
    places = sorted(place for place in there if (place / MANIFEST).is_file())
    for place in places[:MOST]:
        run.check()
        try:
            found.append({"folder": place.name, **manifest_told(read_manifest(place))})
        except LouverError as error:
            found.append({"folder": place.name, "kind": "", "created": "", "problem": str(error)})
    return sorted(found, key=lambda one: str(one["created"]), reverse=True)


def checked(folder: str, name: str, skip_report: bool, accept_strings: int, run: Run) -> dict[str, Any]:
    """Every promise of one release, recomputed."""
    found = verify(release_folder(folder, name), skip_report=skip_report, accept_strings=accept_strings)
    return found.to_dict()


def report_of(folder: str, name: str, run: Run) -> str | None:
    """The page that lies in a release."""
    return open_release(release_folder(folder, name)).report


def out_folder(releases: Path, name: str) -> str:
    """Where a release goes: a new folder below the one of all releases, which is made where it is missing.

    Raises
    ------
    InputError
        If the folder cannot be made, or the name is no plain name, or taken.
    """
    if not name or not name.isprintable() or name.startswith((".", "-")) or set(name) & set("/\\:"):
        raise InputError("the release needs a plain name, such as crashes-2013.")
    if (releases / name).exists():
        raise InputError(f"{printable(name)} exists already; choose another name.")
    try:
        releases.mkdir(exist_ok=True)
    except OSError:
        problem = (
            f"the folder {printable(releases.name)} cannot be made; start the explorer where you may write."
        )
    else:
        return str(releases / name)
    raise InputError(problem)


def free_name(releases: Path, stem: str) -> str:
    """A name that no release has yet: the stem, or the stem with a number."""
    return next(
        name for n in count(1) if not (releases / (name := stem if n == 1 else f"{stem}-{n}")).exists()
    )


def release_folder(folder: str, name: str) -> Path:
    """A release that the page listed: a name of a folder, not a path."""
    if name not in {place.name for place in Path(folder).iterdir()}:
        raise InputError(f"{printable(name)} is not in the folder any more; show the page again.")
    return Path(folder) / name


def manifest_told(manifest: Manifest) -> dict[str, Any]:
    """A release as its manifest tells it."""
    privacy, results = manifest.privacy, manifest.results
    return {
        "kind": manifest.verb,
        "method": manifest.method,
        "created": manifest.created,
        "is_private": not manifest.not_private,
        "is_for_release": not manifest.not_for_release,
        "measure": privacy.get("measure"),
        "amount": None if "amount" not in privacy else str(privacy["amount"]),
        "neighbours": privacy.get("meaning"),
        "not_protected": [str(one) for one in privacy.get("not_protected", ())],
        "disclosures": [str(one) for one in manifest.disclosures],
        "warnings": [str(one) for one in manifest.warnings],
        "promises": [str(one.get("promise")) for one in manifest.promises],
        "results": {
            key: results.get(key) for key in ("k", "gcp", "records", "classes", "people", "total_groups")
        },
        "levels": [
            {key: one.get(key) for key in ("name", "regions", "forecast_l1")}
            for one in results.get("levels", ())
        ],
        "tables": [str(one.get("name")) for one in manifest.parameters.get("tables", ())],
        "problem": None,
    }
