"""audit: what several tables published from the same records give away together.

Wright & Smucker (2014), section 4.4, leave it open. `louver.audit(...)` bounds every cell by all tables at once, proves and
attains the bounds in integers, and says which tables are to blame.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from louver._callable import make_callable
from louver.audit.judge import Findings, judge
from louver.audit.load import Loaded, attribute_names, load
from louver.audit.options import AuditOptions
from louver.audit.result import Advice, AuditedCell, JointAudit, Summary
from louver.data.read import open_source
from louver.data.tabulate import tabulate
from louver.errors import InputError
from louver.run import Run
from louver.schema.spec import Schema, validated

if TYPE_CHECKING:
    from louver.data.read import ArrowStream
    from louver.schema.attribute import Attribute

    Data = str | Path | ArrowStream

__all__ = ["Advice", "AuditOptions", "AuditedCell", "JointAudit", "Summary", "audit"]


def audit(
    data: Data | None = None,
    *,
    tables: Sequence[Mapping[str, Any]],
    known: Sequence[Mapping[str, Any]] = (),
    targets: Sequence[Mapping[str, Any]] = (),
    small: int = 5,
    within: float = 0.0,
    decide: bool = False,
    advise: bool = True,
    seconds: float = 60.0,
    table: str | None = None,
    query: str | None = None,
    weight: str | None = None,
    wide: Mapping[str, Mapping[str, str]] | None = None,
    schema: Schema | None = None,
    folder: str | Path = "",
    run: Run | None = None,
) -> JointAudit:
    """Audit several tables together.

    Parameters
    ----------
    data : path, PostgreSQL uri or dataframe, optional
        The records, or their counts with `weight`. Without them the audit is an outsider's: every table comes from a
        file, and `schema` lists the labels.
    tables : sequence of mappings
        What is published: `name`, and `by` for counts or `rows` and `cols` for conditionals; see the guide.
    known : sequence of mappings
        What an outsider knows: `where`, and `exactly`, `at_least` or `at_most`.
    targets : sequence of mappings
        Cells to audit: `by`, `where`, `only_small`. By default all cells of the tables and of the finest cross.
    small : int
        Counts below this are small.
    within : float
        Percentage within which a count counts as given away.
    decide : bool
        Only decide which small cells are given away, without bounds for the others.
    advise : bool
        Look for tables to leave out or to coarsen.
    seconds : float
        After about so long the best found so far is returned.
    folder : path
        Where the files that tables name lie.

    Examples
    --------
    >>> import pyarrow as pa
    >>> people = pa.table({"town": ["A"] * 5 + ["B"] * 4, "ill": ["y"] * 3 + ["n"] * 2 + ["y"] + ["n"] * 3})
    >>> both = audit(
    ...     people,
    ...     tables=[{"name": "all", "by": ["ill"]}, {"name": "A only", "by": ["ill"], "where": {"town": ["A"]}}],
    ...     targets=[{"by": ["ill"], "where": {"town": ["B"]}}],
    ... )
    >>> [(cell.lower, cell.upper, cell.because) for cell in both.cells]
    [(3, 3, ('all', 'A only')), (1, 1, ('all', 'A only'))]
    """
    started = time.perf_counter()
    options = validated(
        AuditOptions,
        {
            "tables": [dict(entry) for entry in tables],
            "known": [dict(entry) for entry in known],
            "targets": [dict(entry) for entry in targets],
            "small": small,
            "within": float(within),
            "decide": decide,
            "advise": advise,
            "seconds": float(seconds),
        },
        "audit",
    )
    source = _Source(data=data, table=table, query=query, weight=weight, wide=wide)
    loaded = _loaded(source, options, schema, str(folder))
    findings = judge(loaded, options, run or Run())
    return _result(options, loaded, findings, time.perf_counter() - started)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """Where the records are."""

    data: Data | None
    table: str | None
    query: str | None
    weight: str | None
    wide: Mapping[str, Mapping[str, str]] | None


def _loaded(source: _Source, options: AuditOptions, schema: Schema | None, folder: str) -> Loaded:
    names = attribute_names(options)
    zeros = () if schema is None else schema.structural_zeros
    zeros = tuple(zero for zero in zeros if set(zero) <= set(names))
    if source.data is None:
        return load(options, _listed_attributes(names, schema), None, zeros, folder)
    with open_source(source.data, table=source.table, query=source.query) as opened:
        histogram = tabulate(opened, names, weight=source.weight, wide=source.wide, schema=schema)
    return load(options, histogram.attributes, histogram, zeros, folder)


def _listed_attributes(names: Sequence[str], schema: Schema | None) -> list[Attribute]:
    """Attributes of an outsider's audit: their labels must be public."""
    coded = {} if schema is None else {attribute.name: attribute for attribute in schema.coded}
    for name in names:
        if name not in coded or not coded[name].labels:
            raise InputError(
                f'there are no records, so the labels of "{name}" must be listed under [attributes.{name}].',
                column=name,
            )
    return [coded[name] for name in names]


def _result(options: AuditOptions, loaded: Loaded, findings: Findings, seconds: float) -> JointAudit:
    cells = findings.cells
    summary = Summary(
        targets=len(cells),
        exact=sum(cell.status == "exact" for cell in cells),
        small_exact=sum(cell.status == "exact" and 0 < cell.lower < options.small for cell in cells),
        within=sum(cell.status == "within" for cell in cells),
        zero=sum(cell.status == "zero" for cell in cells),
        certified=sum(cell.certified for cell in cells),
        seconds=seconds,
    )
    return JointAudit(
        tables=tuple(piece.name for piece in loaded.pieces),
        summary=summary,
        cells=cells,
        advice=findings.advice,
        small=options.small,
        within=options.within,
        has_records=loaded.truth is not None,
    )


make_callable(__name__, audit)
