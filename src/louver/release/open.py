"""Reading any release back: its kind, its tables, and its statements about itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from louver._html import html_table
from louver.errors import InputError
from louver.release.draws import draw_tables
from louver.release.folder import Folder, Malformed, plain_files, read_text
from louver.release.manifest import Manifest, read_manifest
from louver.release.verify import Verification, verify

__all__ = ["Release", "open_release"]

REPORT = "report.html"


@dataclass(frozen=True, slots=True)
class _Tables(Mapping[str, pa.Table]):
    """Published tables by name, each read on first access."""

    folder: Folder
    files: Mapping[str, str]

    def __getitem__(self, name: str) -> pa.Table:
        try:
            return self.folder.table(self.files[name])
        except (OSError, Malformed, pa.ArrowException):
            problem = f"{self.files[name]} in {self.folder.path.name} cannot be read; check it with `louver verify`."
        raise InputError(problem, file=self.files[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Release:
    """A release directory as found on disk, not yet verified; see `verify`.

    Attributes
    ----------
    path : Path
    manifest : Manifest
        Everything that the release states about itself.
    tables : mapping of str to pyarrow.Table
        The published Parquet files by name (`data/groups.parquet` is "groups", `data/tables/age.parquet` is "tables/age"), and
        those next to them (`measurements/...`, `invariants`); each is read on first access.
    """

    path: Path
    manifest: Manifest
    tables: Mapping[str, pa.Table]
    _folder: Folder = field(repr=False)

    @property
    def kind(self) -> str:
        """The verb that made it."""
        return self.manifest.verb

    @property
    def privacy(self) -> Mapping[str, Any]:
        """Guarantee, budget, neighbours and invariants; empty where there is no noise."""
        return self.manifest.privacy

    @property
    def promises(self) -> tuple[Mapping[str, Any], ...]:
        """The promises that `verify` recomputes."""
        return tuple(self.manifest.promises)

    @property
    def report(self) -> str | None:
        """The HTML page for human readers, if there is one."""
        if REPORT not in self._folder.files:
            return None
        try:
            return read_text(self._folder.file(REPORT))
        except Malformed as error:
            raise InputError(f"{self.path.name}: {error}.", file=REPORT) from None

    def verify(self, *, skip_report: bool = False, accept_strings: int | None = 0) -> Verification:
        """Recompute every promise; the options are those of `louver.verify`."""
        return verify(self.path, skip_report=skip_report, accept_strings=accept_strings)

    def draws(self, n: int = 10, seed: int = 0) -> list[pa.Table]:
        """Completed copies of a k-anonymous file, for multiple imputation.

        Every interval and set is replaced by a value that it may stand for, drawn from a model of the columns together. Analyse each copy
        and combine the estimates by Rubin's rules. The same seed gives the same copies.
        """
        if self.kind != "anonymize":
            raise InputError(
                f"{self.path.name} has no generalised records; only releases of anonymize have draws.",
                file=self.path.name,
            )
        is_local = self.manifest.parameters.get("recoding", "local") == "local"
        return draw_tables(self.tables["anonymized"], self.tables["mapping"], n, seed, is_local=is_local)

    def __repr__(self) -> str:
        lines = [f"Release {self.path.name}: {self.kind} by {self.manifest.method}, {self.manifest.created}"]
        if self.privacy:
            lines.append(
                f"  {self.privacy.get('measure')} = {self.privacy.get('amount')} ({self.privacy.get('neighbours')})"
                + (" NOT PRIVATE" if self.manifest.not_private else "")
            )
        lines.append(f"  promises {', '.join(str(entry.get('promise')) for entry in self.promises)}")
        lines.append(f"  tables {', '.join(self.tables)}")
        return "\n".join(lines)

    def table_costs(self) -> dict[str, float] | None:
        """Costs of published tables of counts: small counts shown (`small`), and the share of numbers hidden or rounded (`lost`).

        Tables of shares are left out, because `bounds` derives what they reveal; None if there are no counts.
        """
        parameters: Any = self.manifest.parameters
        small, shown, hidden, cells = int(parameters.get("small", 5)), 0, 0, 0
        for table in parameters.get("tables", ()):
            rows = self.tables[self._table_of(table)]
            if "count" not in rows.column_names:
                continue
            counts = rows["count"]
            is_rounded = table.get("base") is not None
            cells += len(counts)
            hidden += len(counts) if is_rounded else counts.null_count
            is_small = pc.and_(pc.greater(counts, 0), pc.less(counts, small))
            shown += 0 if is_rounded else int(pc.sum(is_small).as_py() or 0)
        return {"small": shown, "lost": hidden / cells} if cells else None

    def _table_of(self, described: Any) -> str:
        file = described.get("file") if isinstance(described, dict) else None
        if not isinstance(file, str) or _table_name(file) not in self.tables:
            raise InputError(
                f"{self.path.name} is damaged; check it with `louver verify`.", file=self.path.name
            )
        return _table_name(file)

    def _repr_html_(self) -> str:
        first, *rest = repr(self).splitlines()
        return f"<p>{escape(first)}</p>" + html_table(("", ""), [line.split(maxsplit=1) for line in rest])


def open_release(path: str | Path) -> Release:
    """Open a release directory.

    Parameters
    ----------
    path : path
        The folder made by a verb that publishes.

    Raises
    ------
    InputError
        If it is not a release directory, or its manifest cannot be read.
    """
    place = Path(path)
    if not place.is_dir():
        raise InputError(f"{place.name} is not a release directory.", file=place.name)
    manifest = read_manifest(place)
    try:
        present, _ = plain_files(place)
    except Malformed as error:
        raise InputError(f"{place.name} is not a release directory: {error}.", file=place.name) from None
    folder = Folder(place, present & set(manifest.files))
    files = {_table_name(name): name for name in manifest.files if name.endswith(".parquet")}
    return Release(path=place, manifest=manifest, tables=_Tables(folder, files), _folder=folder)


def _table_name(file: str) -> str:
    return file.removesuffix(".parquet").removeprefix("data/")
