"""The result of one call of `louver bounds`, and its presentation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from louver._html import JsonText
from louver._verdict import Level, Verdict
from louver._words import counted
from louver.bounds.disclosure import Disclosure
from louver.bounds.options import BoundsOptions
from louver.bounds.result import BoundsAudit, Comparison
from louver.bounds.search import Suggestions
from louver.errors import printable
from louver.schema.recode import Recode
from louver.schema.request import Request

if TYPE_CHECKING:
    from louver.audit import JointAudit

__all__ = ["BoundsAnswer", "TablePublication", "advice_with", "as_piece", "publish_table", "refusal"]

MOST_SMALL = 2**33
"""The largest limit of small counts that a joint audit accepts."""

ACCEPT_UNCHECKED = " --accept-unchecked publishes it anyway."


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePublication:
    """The audit together with the register.

    Attributes
    ----------
    earlier, together : int or None
        Tables of the same records published before, and small counts that all of them disclose jointly; None if the table was refused by
        itself.
    refused : str or None
        Why nothing was published.
    published : str or None
        Folder of the release.
    remark : str or None
        A note if the register has nothing about these records.
    verdict : Verdict or None
        The verdict of the joint audit.
    """

    earlier: int | None
    together: int | None
    refused: str | None
    published: str | None
    remark: str | None = None
    verdict: Verdict | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"verdict": None if self.verdict is None else self.verdict.to_dict()}

    @property
    def is_safe(self) -> bool:
        """Whether everything was checked and nothing is disclosed jointly, or the steward accepted the remaining risks."""
        return self.published is not None or (self.verdict is not None and self.verdict.level is Level.OK)

    @property
    def level(self) -> Level:
        """The level of the outcome: that of the joint audit, unless the table was refused."""
        return Level.STOP if self.refused is not None or self.verdict is None else self.verdict.level

    def sentences(self) -> list[str]:
        """The outcome, line by line: the remark, the doubts about a published table, and the result."""
        verdict, remark = self.verdict, self.remark
        doubts = verdict is not None and self.published is not None and verdict.level is not Level.OK
        remark = None if remark is None else f"{remark[0].upper()}{remark[1:]}"
        if verdict is not None and remark in verdict.reasons:
            remark = None
        return [*filter(None, (remark, str(verdict) if doubts else None)), str(self)]

    def __str__(self) -> str:
        if self.refused is not None:
            return f"Not published: {self.refused}"
        if self.published is not None:
            return f"Published: {self.published}"
        content = f"Together with {counted(self.earlier or 0, 'earlier table')}"
        if self.verdict is not None and self.verdict.level is Level.CARE:
            return f"{content}: {self.verdict}"
        return f"{content}: {counted(self.together or 0, 'small count')} disclosed."


def publish_table(audit: BoundsAudit, request: Request[BoundsOptions]) -> TablePublication:
    """Audit the table together with earlier publications, and publish it if that is requested and safe."""
    options = request.options
    refused = None if options.publish is None else refusal(audit, options)
    if refused is not None:
        return TablePublication(earlier=None, together=None, refused=refused, published=None)
    from louver.audit import audit as audit_together
    from louver.release.pages import page_of

    found = audit_together(
        request.data,
        schema=request.schema,
        **request.source.model_dump(exclude={"file", "uri"}, exclude_defaults=True),
        tables=[as_piece(options)],
        small=min(options.small, MOST_SMALL),
        decide=True,
        no_advice=True,
        seconds=options.seconds,
        registry=options.registry,
        person=options.person,
        new_population=options.new_population,
        unit=options.unit,
        count_people=options.count_people,
        publish=options.publish,
        accept_unchecked=options.accept_unchecked,
        report=page_of,
        run=request.run,
    )
    is_refused = options.publish is not None and found.published is None
    return TablePublication(
        earlier=found.earlier,
        together=found.summary.small_exact,
        refused=_refused(found) if is_refused else None,
        published=found.published,
        remark=found.remark,
        verdict=found.verdict,
    )


def _refused(found: JointAudit) -> str | None:
    return f"{found.refusal}{ACCEPT_UNCHECKED}" if found.is_acceptable else found.refusal


def as_piece(options: BoundsOptions) -> dict[str, Any]:
    """The table as a piece: exact or rounded row conditionals, together with the number of people."""
    arrangement = options.arrangement()
    piece: dict[str, Any] = {
        "name": arrangement.label,
        "rows": list(arrangement.rows),
        "cols": list(arrangement.cols),
        "recode": {recode.attribute: _plain(recode) for recode in arrangement.recodes},
        "counts": "total",
    }
    if options.decimals is not None:
        piece |= {"decimals": options.decimals, "rounding": options.rounding}
    return piece


def refusal(audit: BoundsAudit, options: BoundsOptions) -> str | None:
    """Why the table must not be published by itself; rows that reveal a status may be accepted, small counts may not."""
    is_accepted = options.accept and not audit.summary.disclosed_small_cells
    if not audit.verdict.is_risky or is_accepted:
        return None
    remedy = "" if audit.summary.disclosed_small_cells else " --accept publishes it anyway."
    return " ".join(audit.verdict.reasons) + remedy


def _plain(recode: Recode) -> dict[str, Any]:
    if recode.merge is not None:
        return {new: list(old) for new, old in recode.merge.items()}
    return {"bins": list(recode.bins)} if recode.bins is not None else {"level": recode.level}


REDESIGNS_BELOW = "Redesigns are below."

MAX_PRINTED, MAX_TELLING = 12, 6


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BoundsAnswer(JsonText):
    """An audit, with redesigns if requested, or a comparison of arrangements.

    Parameters
    ----------
    audit, comparison, suggestions, publication : optional
        The available results.
    recodes : str, optional
        Folder to which the redesigns were written.
    fail_on : {"small", "rows", "attribute", "any"}, optional
        The kind of disclosure that makes `passed` false.
    """

    audit: BoundsAudit | None = None
    comparison: Comparison | None = None
    suggestions: Suggestions | None = None
    publication: TablePublication | None = None
    recodes: str | None = None
    fail_on: Disclosure | None = None

    @property
    def passed(self) -> bool:
        """Whether nothing listed in `fail_on` is disclosed, and nothing was refused."""
        if self.publication is not None and self._is_refused(self.publication):
            return False
        found = [result for result in (self.audit, self.comparison) if result is not None]
        return self.fail_on is None or not any(result.discloses(self.fail_on) for result in found)

    def _is_refused(self, publication: TablePublication) -> bool:
        is_asked = self.fail_on in ("small", "any")
        return publication.refused is not None or (is_asked and not publication.is_safe)

    def to_dict(self) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for result in (self.audit, self.comparison, self.suggestions):
            merged |= {} if result is None else result.to_dict()
        return merged | ({} if self.publication is None else {"publication": self.publication.to_dict()})

    def __repr__(self) -> str:
        parts = []
        if self.audit is not None:
            advice = advice_with(self.audit, self.suggestions, self.publication)
            parts += [self.audit.words(advice), *_disclosed(self.audit), *_telling(self.audit)]
        if self.comparison is not None:
            parts += _ranked(self.comparison)
        if self.suggestions is not None:
            parts += [repr(self.suggestions), self._files()]
        if self.publication is not None:
            parts += map(printable, self.publication.sentences())
        return "\n".join(parts)

    def _files(self) -> str:
        if self.recodes is None:
            return "--write-recodes DIR writes them as files that --recode reads."
        return printable(f"Recode files: {self.recodes}")


def advice_with(
    audit: BoundsAudit, suggestions: Suggestions | None, publication: TablePublication | None
) -> str | None:
    """What to do next, given the other answers; None stands for the audit alone."""
    if suggestions is not None:
        return REDESIGNS_BELOW
    if publication is None:
        return None
    is_publishable = publication.refused is publication.published is None and publication.is_safe
    return audit.advice(is_registered=True, is_publishable=is_publishable)


def _disclosed(audit: BoundsAudit) -> list[str]:
    shown = list(islice(audit.disclosed_cells(), MAX_PRINTED + 1))
    lines = [
        f"  disclosed: {_labels_text(cell.row)} → {_labels_text(cell.col)}: {cell.lower}"
        for cell in shown[:MAX_PRINTED]
    ]
    if len(shown) > MAX_PRINTED:
        lines.append("  ... --json or --html lists them all")
    return [printable(line) for line in lines]


def _telling(audit: BoundsAudit) -> list[str]:
    shown = list(islice(audit.telling_rows(), MAX_TELLING + 1))
    least = "" if audit.is_counted else "at least "
    lines = [
        f"  reveals: {_labels_text(one.row)} → {_labels_text(one.col)} ({least}{one.people:,} in the row)"
        for one in shown[:MAX_TELLING]
    ]
    if len(shown) > MAX_TELLING:
        lines.append("  ... --html lists more")
    return [printable(line) for line in lines]


def _labels_text(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={label}" for name, label in labels.items())


def _ranked(comparison: Comparison) -> list[str]:
    lines = [
        f"{'small':>6} {'status':>6} {'rows':>6} {'zeros':>7} {'size':>12}  arrangement (least disclosive first)"
    ]
    for arrangement, s in comparison.lines:
        small, certain, rows, zeros = s.risk
        size = f"{s.rows} x {s.cols}"
        lines.append(f"{small:>6} {certain:>6} {rows:>6} {zeros:>7} {size:>12}  {arrangement.label}")
    return [printable(line) for line in lines]
