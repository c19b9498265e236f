"""The result of a joint audit: bounds of every target with their certificates, and reasons."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any

from louver._html import JsonText, html_table
from louver._verdict import Level, Verdict
from louver._words import counted
from louver.audit.verdict import AuditQuestion, judge_answers
from louver.errors import printable

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.figure import Figure

__all__ = ["Advice", "AuditSummary", "AuditedCell", "HidingPlan", "JointAudit"]

SHOWN_ROWS = 12
SHOWN_CELLS = 6

COUNT_PEOPLE = " Name the column with --unit to count households, or use --count-people to count people."


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedCell:
    """One target.

    Attributes
    ----------
    table : str
        The table or target to which the cell belongs.
    cell : dict
        Its labels.
    where : dict
        Labels that the filter of its table keeps.
    lower, upper : int
        Bounds on the cell in every table that agrees with the pieces; `upper` is None if nothing bounds it.
    certified : bool
        Whether tables that agree with the pieces attain both bounds.
    status : str
        `exact`, `zero`, `within` (p %), `small` (certainly below the limit), `certain` (certainly not empty), or `open`.
    because : tuple of str or None
        A smallest set of pieces that discloses the cell; None if it is not disclosed, or was not searched for.
    is_smallest : bool
        Whether it is proved that no smaller set does.
    words : str or None
        The reason in a sentence.
    true_count : int or None
        The count in the records; confidential.
    is_undecided : bool
        Whether it is unknown if the count, which must not be disclosed, is disclosed.
    units : int or None
        Number of distinct units to which its people belong, if units are known; confidential.
    """

    table: str
    cell: dict[str, str]
    lower: int
    upper: int | None
    certified: bool
    status: str
    because: tuple[str, ...] | None = None
    is_smallest: bool = False
    words: str | None = None
    true_count: int | None = None
    is_undecided: bool = False
    where: dict[str, str] = field(default_factory=dict)
    units: int | None = None

    def is_small(self, limit: int) -> bool:
        """Whether the count is above zero and below `limit`, in people, or in units where they are known."""
        return self.lower > 0 and (self.lower if self.units is None else self.units) < limit

    @property
    def is_exact(self) -> bool:
        return self.lower == self.upper

    @property
    def description(self) -> str:
        """Its labels with their attributes, after those of the filter."""
        return ", ".join(f"{name}={label}" for name, label in (self.where | self.cell).items()) or "everybody"

    @property
    def range(self) -> str:
        text = f"{self.lower:,}" if self.is_exact else f"{self.lower:,} to {self.upper:,}"
        return text if self.units is None else f"{text} of {counted(self.units, 'unit')}"

    @property
    def reason(self) -> str:
        return "" if self.words is None else f" ({self.words.removesuffix('.')})"

    def to_dict(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "cell": self.cell,
            "where": self.where,
            "lower": self.lower,
            "upper": self.upper,
            "certified": self.certified,
            "status": self.status,
            "because": None if self.because is None else list(self.because),
            "units": self.units,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSummary:
    """Counts of cells: of tables, targets, and groups that were found.

    `small_exact` is the number of disclosed cells of fewer than `small` people or units, counting cells of the same people once.
    `undecided` is the number of cells, and of earlier files of records, for which this is unknown. `groups` is the number of small
    groups that were tested; None if only targets were tested.
    """

    targets: int
    exact: int
    small_exact: int
    within: int
    zero: int
    certified: int
    undecided: int
    groups: int | None
    seconds: float = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Pieces to leave out or coarsen so that no small cell is exact, as confirmed by another audit.

    Attributes
    ----------
    leave_out : tuple of str
    coarsen : tuple of (str, str)
        Piece, and its coarser form in words.
    is_safe : bool
        Whether the audit of the rest finds no small cell exact.
    is_least : bool
        Whether it is proved that no cheaper choice of pieces to leave out is safe.
    """

    leave_out: tuple[str, ...]
    coarsen: tuple[tuple[str, str], ...] = ()
    is_safe: bool = False
    is_least: bool = False

    @property
    def words(self) -> str:
        """The advice in words, all of which must be followed: "without: a, and with: b without sex"; empty if there is no advice."""
        out = f"without: {', '.join(self.leave_out)}" if self.leave_out else ""
        coarser = ", ".join(f"{table} {how}" for table, how in self.coarsen)
        return ", and ".join(part for part in (out, f"with: {coarser}" if coarser else "") if part)

    def to_dict(self) -> dict[str, Any]:
        return {
            "leave_out": list(self.leave_out),
            "coarsen": [{"table": table, "how": how} for table, how in self.coarsen],
            "safe": self.is_safe,
            "least": self.is_least,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class HidingPlan:
    """Cells of one table to hide in addition to those already hidden.

    Attributes
    ----------
    table : str
    cells : tuple of dict
        Further cells, by their labels; a cell without a label of an attribute is a total.
    small_cells : int
        Cells that are hidden because they are small.
    by_mark : int
        Small cells that are protected only while readers cannot tell small cells from others with the same mark.
    is_safe : bool
        Whether an audit confirms that no small cell can then be derived.
    is_possible : bool
        False where it is proved that no choice of cells protects all small ones.
    is_least : bool
        Whether it is proved that no fewer further cells would be enough, in all tables together.
    """

    table: str
    cells: tuple[dict[str, str], ...]
    small_cells: int
    by_mark: int
    is_safe: bool
    is_possible: bool
    is_least: bool

    @property
    def words(self) -> str:
        """Summary of the plan, as a clause."""
        if not self.is_possible:
            return "no choice of cells protects all small ones, given the other tables"
        if not self.is_safe:
            return "no choice of cells was shown to protect all small ones"
        how = "the minimum" if self.is_least else "the fewest found"
        text = f"{counted(len(self.cells), 'more cell')} in addition to {counted(self.small_cells, 'small one')} ({how})"
        if self.by_mark:
            text += f"; {self.by_mark:,} of the small ones only if nothing distinguishes them from other hidden cells"
        return text

    @property
    def listed(self) -> list[str]:
        """The first cells in words, if hiding them is safe."""
        if not self.is_safe:
            return []
        description = [", ".join(f"{name}={label}" for name, label in cell.items()) for cell in self.cells]
        more = ["... --html lists more"] if len(description) > SHOWN_ROWS else []
        return [one or "the grand total" for one in description[:SHOWN_ROWS]] + more

    def to_dict(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "cells": list(self.cells),
            "small_cells": self.small_cells,
            "by_mark": self.by_mark,
            "safe": self.is_safe,
            "possible": self.is_possible,
            "least": self.is_least,
        }


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class JointAudit(JsonText):
    """What several published tables disclose together. For internal use only, because it contains true counts.

    Attributes
    ----------
    tables : tuple of str
        Names of the pieces.
    summary : AuditSummary
    cells : tuple of AuditedCell
    advice : Advice or None
    hide : tuple of HidingPlan
        One for every table whose small cells are hidden, if requested.
    small : int
        Counts below this are small: of units where they are known, otherwise of people.
    within : float
        Percentage that counts as too close.
    has_records : bool
        False for an outsider's audit, in which bounds are proved and attained by tables that were found.
    earlier : int
        Number of tables that were published before, according to the register; they are the last of `tables`.
    published : str or None
        Folder to which the tables were written; None if they were not, because cells are disclosed or publication was not requested.
    remark : str or None
        A note if the register has nothing about these records.
    is_apart_by_word : bool
        Whether only the steward's word says that earlier publications are about other people (`new_population`).
    fail_on : str or None
        What makes `passed` false: `exact`, `small` or `within`.
    question : AuditQuestion
        The question, and how far it was answered.
    is_accepted : bool
        Whether the steward accepts that questions about earlier publications are open (`accept_unchecked`).
    """

    tables: tuple[str, ...]
    summary: AuditSummary
    cells: tuple[AuditedCell, ...]
    advice: Advice | None
    small: int
    within: float
    has_records: bool
    question: AuditQuestion
    fail_on: str | None = None
    hide: tuple[HidingPlan, ...] = ()
    earlier: int = 0
    published: str | None = None
    remark: str | None = None
    is_apart_by_word: bool = False
    is_accepted: bool = False

    @property
    def verdict(self) -> Verdict:
        """The verdict: what readers learn, whether to publish, and what was not examined."""
        return self._judged(self.remark if self.is_apart_by_word else None)

    def _judged(self, overlap: str | None) -> Verdict:
        s = self.summary
        return judge_answers(
            self.question,
            small=self.small,
            within=self.within,
            n_small=s.small_exact,
            n_within=s.within,
            n_undecided=s.undecided,
            has_advice=self.advice is not None,
            overlap=overlap,
        )

    @property
    def passed(self) -> bool:
        """Whether nothing listed in `fail_on` was found, and every question was answered."""
        s = self.summary
        found = {"exact": s.exact, "small": s.small_exact, "within": s.within + s.small_exact}
        is_open = s.undecided > 0 or not self.question.is_answered or not self.question.is_safe_if_followed
        return self.fail_on is None or not (found[self.fail_on] or is_open)

    def disclosed(self) -> Iterator[AuditedCell]:
        """Cells that are disclosed: small and exact, or too close."""
        for cell in self.cells:
            if (cell.status == "exact" and cell.is_small(self.small)) or cell.status == "within":
                yield cell

    def undecided(self) -> Iterator[AuditedCell]:
        """Cells for which it is unknown whether they are disclosed."""
        return (cell for cell in self.cells if cell.is_undecided)

    @property
    def refusal(self) -> str | None:
        """The first reason why the tables must not be published; None if nothing speaks against it."""
        worst = next(self.disclosed(), None)
        if worst is not None:
            return f"{worst.words or 'a small count is disclosed.'} It is about {worst.description}."
        # The steward's word that these are other people does not stop a publication, nor what the steward accepts.
        found = self._without_open_questions() if self.is_accepted else self
        question, verdict = found.question, found._judged(None)
        if verdict.level is Level.OK:
            return None
        if question.household is None or question.counts_people:
            return str(verdict)
        by_people = replace(found, question=replace(question, counts_people=True))
        return f"{verdict}{COUNT_PEOPLE}" if by_people.refusal is None else str(verdict)

    @property
    def is_acceptable(self) -> bool:
        """Whether the publication is refused only because questions about earlier publications are open."""
        return self.refusal is not None and replace(self, is_accepted=True).refusal is None

    def _without_open_questions(self) -> JointAudit:
        """The same without the questions about earlier publications that are open."""
        return replace(
            self,
            question=replace(self.question, files=(), ledger=None),
            summary=replace(self.summary, undecided=self.summary.undecided - self.question.n_open),
        )

    def to_dict(self) -> dict[str, Any]:
        """The content of the JSON result; its keys are stable."""
        return {
            "verdict": self.verdict.to_dict(),
            "question": self.question.to_dict(self.small),
            "summary": asdict(self.summary),
            "cells": [cell.to_dict() for cell in self.cells],
            "advice": None if self.advice is None else self.advice.to_dict(),
            "hide": [plan.to_dict() for plan in self.hide],
            "earlier": self.earlier,
            "published": self.published,
            "remark": self.remark,
        }

    def to_frame(self) -> pyarrow.Table:
        """One line per target."""
        import pyarrow

        lines = [
            {
                "table": cell.table,
                "cell": ", ".join(cell.cell.values()),
                "lower": cell.lower,
                "upper": cell.upper,
                "certified": cell.certified,
                "status": cell.status,
                "because": None if cell.because is None else ", ".join(cell.because),
            }
            for cell in self.cells
        ]
        return pyarrow.Table.from_pylist(lines)

    def plot(self) -> Figure:
        """Draw the pieces against the cells that they disclose."""
        from louver.audit.plot import plot_audit

        return plot_audit(self)

    def __repr__(self) -> str:
        s = self.summary
        lines = [
            str(self.verdict),
            f"JointAudit of {counted(len(self.tables), 'table')}: "
            f"{counted(s.small_exact, 'small cell')} exact (0 < {self.question.counted} < {self.small})",
            f"  {s.exact:,} of {s.targets:,} cells exact, {s.zero:,} certainly empty, {s.within:,} within {self.within:g} %",
            f"  {s.certified:,} certified: bounds proved and attained",
        ]
        if self.earlier:
            lines.append(f"  published before: {counted(self.earlier, 'table')} of these")
        if self.remark is not None:
            lines.append(f"  {self.remark}")
        lines += [f"  {sentence}" for sentence in self.question.assumed()]
        if not self.has_records:
            lines.append("  without the records: no certificates by the truth")
        listed = list(islice(self.disclosed(), SHOWN_CELLS + 1))
        lines += [f"  disclosed: {one.description}: {one.range}{one.reason}" for one in listed[:SHOWN_CELLS]]
        if len(listed) > SHOWN_CELLS:
            lines.append("  ... --html lists more")
        if self.advice is not None and self.advice.words:
            lines.append(f"  safe {self.advice.words}")
        for plan in self.hide:
            lines += [f"  hide in {plan.table}: {plan.words}", *(f"    {cell}" for cell in plan.listed)]
        return "\n".join(map(printable, lines))

    def _repr_html_(self) -> str:
        lines = [
            (cell.table, cell.description, cell.lower, cell.upper, ", ".join(cell.because or ()))
            for cell in islice(self.disclosed(), SHOWN_ROWS)
        ]
        header = ("table", "cell", "lower", "upper", "because of")
        return f"<pre>{escape(repr(self))}</pre>{html_table(header, lines)}"
