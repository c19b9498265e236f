"""audit: what several tables published from the same records disclose together.

Wright & Smucker (2014), section 4.4, leave it open. `louver.audit(...)` bounds every cell given all tables together, proves
that integer tables attain the bounds, and names the tables that are responsible.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from louver._callable import make_callable
from louver.audit.cells import units_of
from louver.audit.judge import Findings, judge
from louver.audit.load import LoadedTables, attribute_names, crosses_of, load, restrict
from louver.audit.options import AuditKeywords, AuditOptions, AuditTableOptions
from louver.audit.publish import publish as publish_tables
from louver.audit.register import check_columns, earlier_names, from_entries, n_published, to_content
from louver.audit.result import Advice, AuditedCell, AuditSummary, JointAudit
from louver.audit.verdict import AuditQuestion
from louver.data.parsing_once import parsing_once
from louver.data.read import open_source
from louver.data.restriction import restriction
from louver.data.tabulate import tabulate
from louver.data.units import find_unit_column, unit_names
from louver.errors import InputError
from louver.release.matched_register import MatchedRegister
from louver.release.write import check_out
from louver.run import Run
from louver.schema.request import Request, SpecLike, door, requested
from louver.schema.spec import Schema

if TYPE_CHECKING:
    from louver.audit.publish import Report
    from louver.data.histogram import Histogram
    from louver.data.read import ArrowStream, Source
    from louver.schema.attribute import Attribute
    from louver.tables.pieces import Piece

    Data = str | Path | ArrowStream

__all__ = [
    "Advice",
    "AuditOptions",
    "AuditQuestion",
    "AuditSummary",
    "AuditedCell",
    "JointAudit",
    "audit",
    "audit_pieces",
]


@door(AuditOptions, keywords=AuditKeywords)
def audit(
    data: Data | None = None,
    *,
    spec: SpecLike = None,
    schema: Schema | None = None,
    report: Report | None = None,
    run: Run | None = None,
    **options: Unpack[AuditKeywords],
) -> JointAudit:
    """Audit several tables together.

    Parameters
    ----------
    data : path, PostgreSQL uri or dataframe, optional
        The records, or their counts with `weight`. Without them the audit is an outsider's: every table comes from a
        file, and the spec or `schema` lists the labels.
    tables : sequence of mappings
        What is published: `name`, and `by` for counts or `rows` and `cols` for conditionals; see the guide.
    known : sequence of mappings
        Knowledge of an outsider: `where`, and `exactly`, `at_least` or `at_most`.
    targets : sequence of mappings
        Cells to audit: `by`, `where`, `only_small`. By default all cells of the tables and of the finest cross.
    fail_on : {"exact", "small", "within"}, optional
        Findings that make `passed` false.

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
    request = requested(spec, AuditOptions)
    started = time.perf_counter()
    with parsing_once(request.options.registry is not None):
        register = _matched_register(request)
        loaded = _loaded(request, register)
    found = request.run.attend(_found, request, loaded, register, started)
    return _published(found, request, loaded, register, report)


def audit_pieces(
    request: Request[Any],
    names: Sequence[str],
    pieces_of: Callable[[Sequence[Attribute]], list[Piece]],
    register: MatchedRegister,
    *,
    small: int,
    is_accepted: bool,
) -> tuple[JointAudit | None, dict[str, Any]]:
    """Audit what another verb publishes, together with what the register holds about the same records.

    Parameters
    ----------
    names : sequence of str
        Columns that the pieces refer to.
    pieces_of : callable
        Makes the pieces from the attributes of the records.
    is_accepted : bool
        Whether the steward accepts that questions about earlier files of records are open.

    Returns
    -------
    found : JointAudit or None
        None if nothing about these people is known to have been published before.
    content : dict
        The content that the register keeps about the pieces.
    """
    started = time.perf_counter()
    with open_source(request.data, **request.source.opening(), run=request.run) as opened:
        check_columns(register.entries, names, opened.columns)
        names = tuple(dict.fromkeys((*names, *earlier_names(register.entries, names, opened.columns))))
        schema = None if request.schema is None else replace(request.schema, recodes=())
        histogram = tabulate(opened, names, schema=schema)
    own = pieces_of(histogram.attributes)
    content = to_content(own, histogram.attributes)
    if not n_published(register.entries) and register.only_in_ledger is None:
        return None, content
    earlier = from_entries(
        register.entries, histogram.attributes, [cross for piece in own for cross in piece.crosses]
    )
    loaded = request.run.attend(
        load, AuditOptions(), histogram.attributes, histogram, earlier=[*own, *earlier]
    )
    # Only the number of tables in the options matters here: the first pieces are those to be published.
    tables = tuple(AuditTableOptions(name=piece.name, by=piece.crosses[0].names) for piece in own)
    options = AuditOptions(
        tables=tables,
        small=small,
        decide=True,
        no_advice=True,
        publish="release",
        accept_unchecked=is_accepted,
    )
    findings = request.run.attend(judge, loaded, options, request.run)
    return _result(options, loaded, findings, register, time.perf_counter() - started), content


def _matched_register(request: Request[AuditOptions]) -> MatchedRegister | None:
    options = request.options
    if options.registry is None:
        return None
    if request.data is None:
        raise InputError(
            "option --register needs the records; an outsider does not publish.", option="--register"
        )
    if options.publish is not None:
        check_out(Path(options.publish), "--publish")
    return MatchedRegister.of(
        options.registry,
        request.data,
        request.source,
        person=options.person,
        is_new_population=options.new_population,
        is_publishing=options.publish is not None,
        run=request.run,
    )


def _published(
    found: JointAudit,
    request: Request[AuditOptions],
    loaded: LoadedTables,
    register: MatchedRegister | None,
    report: Report | None,
) -> JointAudit:
    """Write the tables and enter them into the register, unless cells are or may be disclosed."""
    options = request.options
    if options.publish is None or register is None or found.refusal is not None:
        return found
    run = request.run
    content = run.attend(to_content, loaded.pieces[: len(options.tables)], loaded.domain.attributes)
    publish_tables(Path(options.publish), loaded, options, lambda: register.append(content), run, report)
    return replace(found, published=options.publish)


def _loaded(request: Request[AuditOptions], register: MatchedRegister | None) -> LoadedTables:
    options, schema, source = request.options, request.schema, request.source
    entries = () if register is None else register.entries
    wanted, labels = attribute_names(options), _filter(request, register)
    wanted = tuple(dict.fromkeys((*wanted, *labels)))
    zeros = () if schema is None else schema.structural_zeros
    folder = "" if request.spec is None else str(request.spec.parent)
    if request.data is None:
        if options.unit is not None:
            raise InputError(
                "option --unit needs the records; leave it out for an outsider's audit.", option="--unit"
            )
        listed = _listed_attributes(wanted, schema)
        return request.run.attend(load, options, listed, None, _among(zeros, wanted), folder)
    reading = {**source.opening(), **({} if register is None else {"where": None})}
    with open_source(request.data, **reading, run=request.run) as opened:
        columns = (*opened.columns, *(name for words in source.wide.values() for name in words))
        check_columns(entries, wanted, columns)
        names = tuple(dict.fromkeys((*wanted, *earlier_names(entries, wanted, columns))))
        is_counted = source.weight is not None or bool(source.wide) or options.unit is not None
        if not is_counted and (likely := unit_names(opened, names)):
            # A hierarchy of the spec may need further columns.
            opened.hold(
                [*(name for name in names if name in opened.types), *likely] if schema is None else ()
            )
        counted = _counted(opened, names, request)
        household = None if is_counted else find_unit_column(opened, names, request.run)
    histogram = counted.marginalise(names)
    options = restrict(options, labels, histogram.attributes)
    earlier = from_entries(entries, histogram.attributes, crosses_of(options, histogram.attributes))
    loaded = request.run.attend(
        load, options, histogram.attributes, histogram, _among(zeros, names), folder, earlier
    )
    if options.unit is not None:
        return replace(loaded, units=request.run.attend(units_of, loaded.domain, counted, options.unit))
    return loaded if household is None else replace(loaded, household=household.name)


def _among(
    zeros: Sequence[Mapping[str, tuple[str, ...]]], names: Sequence[str]
) -> tuple[Mapping[str, tuple[str, ...]], ...]:
    """Structural zeros of these columns alone."""
    return tuple(zero for zero in zeros if set(zero) <= set(names))


def _counted(opened: Source, names: tuple[str, ...], request: Request[AuditOptions]) -> Histogram:
    """The records counted by some columns; the column of units, if there is one, comes last."""
    unit, source = request.options.unit, request.source
    if unit is None:
        return tabulate(opened, names, weight=source.weight, wide=source.wide, schema=request.schema)
    opened.check_column(unit)
    if unit in names:
        raise InputError(
            f'column "{unit}" is in --unit and in a table; units are counted, not published.',
            option="--unit",
            column=unit,
        )
    if source.wide:
        raise InputError(
            "option --unit needs records of people; columns of counts have no units.", option="--unit"
        )
    return tabulate(opened, (*names, unit), weight=source.weight, schema=request.schema)


def _filter(
    request: Request[AuditOptions], register: MatchedRegister | None
) -> Mapping[str, tuple[str, ...]]:
    """The labels that satisfy the source's `where`, if there is a register."""
    source = request.source
    if register is None or source.where is None:
        return {}
    with open_source(request.data, **{**source.opening(), "where": None}, run=request.run) as opened:
        return restriction(opened, source.where, request.schema)


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


def _found(
    request: Request[AuditOptions], loaded: LoadedTables, register: MatchedRegister | None, started: float
) -> JointAudit:
    findings = judge(loaded, request.options, request.run)
    return _result(request.options, loaded, findings, register, time.perf_counter() - started)


def _result(
    options: AuditOptions,
    loaded: LoadedTables,
    findings: Findings,
    register: MatchedRegister | None,
    seconds: float,
) -> JointAudit:
    cells = findings.cells
    ledger = None if register is None else register.only_in_ledger
    question = replace(findings.question, ledger=ledger)
    summary = AuditSummary(
        targets=len(cells),
        exact=sum(cell.status == "exact" for cell in cells),
        small_exact=findings.n_small,
        within=sum(cell.status == "within" for cell in cells),
        zero=sum(cell.status == "zero" for cell in cells),
        certified=sum(cell.certified for cell in cells),
        undecided=sum(cell.is_undecided for cell in cells) + question.n_open,
        groups=question.groups,
        seconds=seconds,
    )
    return JointAudit(
        tables=tuple(piece.name for piece in loaded.pieces),
        summary=summary,
        cells=cells,
        advice=findings.advice,
        hide=findings.hide,
        earlier=0 if register is None else n_published(register.entries),
        remark=None if register is None else register.remark,
        is_apart_by_word=register is not None and register.is_apart_by_word,
        small=options.small,
        within=options.within,
        fail_on=options.fail_on,
        has_records=loaded.truth is not None,
        question=question,
        is_accepted=options.accept_unchecked,
    )


make_callable(__name__, audit)
