"""Publishing a table: refused alone, or together with what was published before, or written.

The joint audit and the release are the work of `louver.audit`, which publishes all tables; it is imported only where it is needed.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from louver._verdict import Level, Verdict
from louver._words import counted
from louver.bounds.options import BoundsOptions
from louver.bounds.result import BoundsAudit
from louver.run import Run
from louver.schema.recode import Recode
from louver.schema.request import Request

__all__ = ["Publication", "as_piece", "publish_table", "refusal"]

MOST_SMALL = 2**33
"""The largest limit of small counts that a joint audit takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """What the register adds.

    Attributes
    ----------
    earlier, together : int or None
        Tables of the same records that were published before, and small counts that all give away together; None where the
        table was refused by itself.
    refused : str or None
        Why nothing was published.
    published : str or None
        Folder of the release.
    remark : str or None
        What to know where the register says nothing of these records.
    verdict : Verdict or None
        Of the joint audit.
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
        """Whether everything was asked and nothing is given away together, or the steward answered for what was left."""
        return self.published is not None or (self.verdict is not None and self.verdict.level is Level.OK)

    def __str__(self) -> str:
        if self.refused is not None:
            return f"Not published: {self.refused}"
        if self.published is not None:
            return f"Published: {self.published}"
        told = f"Together with {counted(self.earlier or 0, 'earlier table')}"
        if self.verdict is not None and self.verdict.level is Level.CARE:
            return f"{told}: {self.verdict}"
        return f"{told}: {counted(self.together or 0, 'small count')} given away."


def publish_table(audit: BoundsAudit, request: Request[BoundsOptions], run: Run) -> Publication:
    """Audit the table together with what was published before, and publish it where that is asked for and safe."""
    options = request.options
    refused = None if options.publish is None else refusal(audit, options)
    if refused is not None:
        return Publication(earlier=None, together=None, refused=refused, published=None)
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
        report=page_of,
        run=run,
    )
    is_refused = options.publish is not None and found.published is None
    return Publication(
        earlier=found.earlier,
        together=found.summary.small_exact,
        refused=found.refusal if is_refused else None,
        published=found.published,
        remark=found.remark,
        verdict=found.verdict,
    )


def as_piece(options: BoundsOptions) -> dict[str, Any]:
    """The table as a piece: row conditionals, exact or rounded, with the number of people beside them."""
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
    """Why the table must not be published by itself; rows that tell a status may be accepted, small counts may not."""
    is_accepted = options.accept and not audit.summary.disclosed_small_cells
    if not audit.verdict.is_risky or is_accepted:
        return None
    remedy = "" if audit.summary.disclosed_small_cells else " --accept publishes it all the same."
    return " ".join(audit.verdict.reasons) + remedy


def _plain(recode: Recode) -> dict[str, Any]:
    if recode.merge is not None:
        return {new: list(old) for new, old in recode.merge.items()}
    return {"bins": list(recode.bins)} if recode.bins is not None else {"level": recode.level}
