"""Publishing from a page, taking a release away, and checking one that was brought."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from louver.app.jobs.books import manifest_told, release_folder
from louver.bounds import BoundsOptions, answer
from louver.data.write import write_csv
from louver.errors import InputError, LouverError
from louver.release.manifest import read_manifest
from louver.release.open import open_release
from louver.release.packed import pack, unpack
from louver.release.verify import verify
from louver.report.workbook import write_workbook
from louver.run import Run
from louver.schema.request import ask
from louver.schema.source import SourceOptions

__all__ = ["MOST_DOWNLOAD", "checked_upload", "packed", "publish_table"]

MOST_DOWNLOAD = 300_000_000
"""Bytes that a page hands to the browser; what is larger is copied from its folder."""
NOT_TABLES = ("measurements/", "first/")
"""Parquet files of a release that are no tables for readers."""


def publish_table(
    path: str,
    source: SourceOptions,
    options: BoundsOptions,
    given: Mapping[str, Any],
    out: str,
    run: Run,
) -> dict[str, Any]:
    """Audit a table alone and with all that the register has, and publish it where nothing speaks against it."""
    asked = options.model_dump(exclude_defaults=True) | dict(given) | {"publish": out}
    told = source.model_dump(exclude={"file", "uri"}, exclude_defaults=True)
    request = ask(BoundsOptions, path, None, told | asked)
    found = answer(request, run).publication
    assert found is not None
    return {"refused": found.refused, "remark": found.remark, "earlier": found.earlier}


def packed(releases: str, name: str, form: str, folder: str, run: Run) -> bytes:
    """A release, or its tables, as one file: `zip` is all of it, `csv` and `xlsx` its tables."""
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
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, table in tables.items():
            run.check()
            one = made.with_suffix(".csv")
            write_csv(table, one)
            archive.write(one, f"{name.replace('/', '-')}.csv")


def checked_upload(archive: str, folder: str, run: Run) -> dict[str, Any]:
    """Unpack a release that was brought, and recompute its promises; nothing of it is kept."""
    place = Path(tempfile.mkdtemp(dir=folder))
    try:
        release = unpack(Path(archive), place / "release", run)
        run.report("recomputing its promises", 0, 0)
        found = verify(release).to_dict()
        try:
            told: dict[str, Any] | None = manifest_told(read_manifest(release))
        except LouverError:  # then the checks say so
            told = None
        return {key: found[key] for key in ("passed", "verdict", "checks")} | {"told": told}
    finally:
        shutil.rmtree(place, ignore_errors=True)
        Path(archive).unlink(missing_ok=True)
