"""Jobs of the Releases page and of every page that publishes: release folders, checks and downloads."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa

from louver.bounds import BoundsOptions, publish
from louver.data.workbook import write_workbook
from louver.data.write import write_csv
from louver.errors import InputError, LouverError, printable
from louver.release.manifest import MANIFEST, Manifest, read_manifest
from louver.release.open import open_release
from louver.release.packed import pack, unpack
from louver.release.verify import verify
from louver.run import Run
from louver.schema.request import ask
from louver.schema.source import SourceOptions

__all__ = [
    "MOST_DOWNLOAD",
    "checked",
    "checked_upload",
    "free_name",
    "listed",
    "manifest_for_page",
    "out_folder",
    "packed",
    "publish_table",
    "release_folder",
    "report_of",
]

MOST = 500
"""Maximum number of release folders that a page lists."""


def listed(folder: str, run: Run) -> list[dict[str, Any]]:
    """Every release below a folder, newest first, as its manifest describes it; not yet checked by `verify`."""
    found = []
    there = Path(folder).iterdir() if Path(folder).is_dir() else ()
    places = sorted(place for place in there if (place / MANIFEST).is_file())
    for place in places[:MOST]:
        run.check()
        try:
            found.append({"folder": place.name, **manifest_for_page(read_manifest(place))})
        except LouverError as error:
            found.append({"folder": place.name, "kind": "", "created": "", "problem": str(error)})
    return sorted(found, key=lambda one: str(one["created"]), reverse=True)


def checked(folder: str, name: str, skip_report: bool, accept_strings: int, run: Run) -> dict[str, Any]:
    """Every promise of one release, recomputed."""
    found = verify(release_folder(folder, name), skip_report=skip_report, accept_strings=accept_strings)
    return found.to_dict()


def report_of(folder: str, name: str, run: Run) -> str | None:
    """The HTML page in a release."""
    return open_release(release_folder(folder, name)).report


def out_folder(releases: Path, name: str) -> str:
    """The folder for a release: a new one inside the releases folder, which is created if it is missing.

    Raises
    ------
    InputError
        If the folder cannot be created, or the name is not a plain name or is already taken.
    """
    if not name or not name.isprintable() or name.startswith((".", "-")) or set(name) & set("/\\:"):
        raise InputError("the release needs a simple name, such as crashes-2013.")
    if (releases / name).exists():
        raise InputError(f"{printable(name)} already exists; choose another name.")
    try:
        releases.mkdir(exist_ok=True)
    except OSError:
        problem = f"the folder {printable(releases.name)} cannot be created; start the explorer where you may write."
    else:
        return str(releases / name)
    raise InputError(problem)


def free_name(releases: Path, stem: str) -> str:
    """A name that no release uses yet: the stem, or the stem with a number."""
    return next(
        name for n in count(1) if not (releases / (name := stem if n == 1 else f"{stem}-{n}")).exists()
    )


def release_folder(folder: str, name: str) -> Path:
    """The path of a release that the page listed by the name of its folder."""
    if name not in {place.name for place in Path(folder).iterdir()}:
        raise InputError(f"{printable(name)} is no longer in the folder; reload the page.")
    return Path(folder) / name


def manifest_for_page(manifest: Manifest) -> dict[str, Any]:
    """A release as its manifest describes it."""
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


MOST_DOWNLOAD = 300_000_000
"""Maximum number of bytes sent to the browser; anything larger must be copied from its folder."""
NOT_TABLES = ("measurements/", "first/")
"""Parquet files of a release that are not tables meant for readers."""


def publish_table(
    path: str,
    source: SourceOptions,
    options: BoundsOptions,
    given: Mapping[str, Any],
    out: str,
    run: Run,
) -> dict[str, Any]:
    """Audit a table alone and together with everything in the register, and publish it if nothing prevents it."""
    wanted = options.model_dump(exclude_defaults=True) | dict(given) | {"publish": out}
    content = source.model_dump(exclude={"file", "uri"}, exclude_defaults=True)
    found = publish(spec=ask(BoundsOptions, path, None, content | wanted), run=run)
    judged = None if found.verdict is None else found.verdict.to_dict()
    return {"refused": found.refused, "remark": found.remark, "earlier": found.earlier, "verdict": judged}


def packed(releases: str, name: str, form: str, folder: str, run: Run) -> bytes:
    """A release, or its tables, as one file: `zip` is the whole release, `csv` and `xlsx` are its tables."""
    release = release_folder(releases, name)
    place = Path(tempfile.mkdtemp(dir=folder))
    try:
        made = place / "made"
        if form == "zip":
            pack(release, made, run)
        else:
            tables = _tables(release)
            write_workbook(tables, made) if form == "xlsx" else _write_csvs(tables, made, run)
        if made.stat().st_size > MOST_DOWNLOAD:
            raise InputError(
                f"this is more than {MOST_DOWNLOAD // 1_000_000} MB; copy it from the folder of releases."
            )
        return made.read_bytes()
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _tables(release: Path) -> dict[str, pa.Table]:
    opened = open_release(release)
    return {name: opened.tables[name] for name in opened.tables if not name.startswith(NOT_TABLES)}


def _write_csvs(tables: Mapping[str, pa.Table], made: Path, run: Run) -> None:
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as zip_file:
        for name, table in tables.items():
            run.check()
            one = made.with_suffix(".csv")
            write_csv(table, one)
            zip_file.write(one, f"{name.replace('/', '-')}.csv")


def checked_upload(
    zip_file: str, folder: str, skip_report: bool, accept_strings: int, run: Run
) -> dict[str, Any]:
    """Unpack a release that was uploaded, and recompute its promises; nothing is kept."""
    place = Path(tempfile.mkdtemp(dir=folder))
    try:
        release = unpack(Path(zip_file), place / "release", run)
        run.report("recomputing its promises", 0, 0)
        found = verify(release, skip_report=skip_report, accept_strings=accept_strings).to_dict()
        try:
            content: dict[str, Any] | None = manifest_for_page(read_manifest(release))
        except LouverError:  # the checks report it
            content = None
        return {key: found[key] for key in ("passed", "verdict", "checks")} | {"manifest": content}
    finally:
        shutil.rmtree(place, ignore_errors=True)
        Path(zip_file).unlink(missing_ok=True)
