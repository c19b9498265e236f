"""Everything one call of `louver bounds` answers, and how it is told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from louver.bounds.publication import Publication
from louver.bounds.result import BoundsAudit, Comparison
from louver.bounds.suggestions import Suggestions
from louver.bounds.summary import Summary
from louver.errors import printable

__all__ = ["BoundsAnswer", "advice_beside"]

REDESIGNS_BELOW = "Redesigns are below."

MAX_PRINTED, MAX_TELLING = 12, 6


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BoundsAnswer:
    """An audit, with redesigns where they were asked for, or a comparison of arrangements.

    Parameters
    ----------
    audit, comparison, suggestions, publication : optional
        The results there are.
    recodes : str, optional
        Folder that the redesigns were written to.
    fail_on : {"small", "rows", "attribute", "any"}, optional
        What must not be disclosed.
    """

    audit: BoundsAudit | None = None
    comparison: Comparison | None = None
    suggestions: Suggestions | None = None
    publication: Publication | None = None
    recodes: str | None = None
    fail_on: str | None = None

    @property
    def passed(self) -> bool:
        """Whether nothing is disclosed that `fail_on` names, and nothing was refused."""
        if self.publication is not None and self._is_refused(self.publication):
            return False
        return not any(_is_disclosive(summary, self.fail_on) for summary in self._summaries())

    def _is_refused(self, publication: Publication) -> bool:
        is_asked = self.fail_on in ("small", "any")
        return publication.refused is not None or (is_asked and not publication.is_safe)

    def _summaries(self) -> list[Summary]:
        audited = [] if self.audit is None else [self.audit.summary]
        return audited + (
            [] if self.comparison is None else [summary for _, summary in self.comparison.lines]
        )

    def to_dict(self) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for result in (self.audit, self.comparison, self.suggestions):
            merged |= {} if result is None else result.to_dict()
        return merged | ({} if self.publication is None else {"publication": self.publication.to_dict()})

    def to_json(self) -> str:
        """The same as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def __repr__(self) -> str:
        parts = []
        if self.audit is not None:
            advice = advice_beside(self.audit, self.suggestions, self.publication)
            parts += [self.audit.words(advice), *_disclosed(self.audit), *_telling(self.audit)]
        if self.comparison is not None:
            parts += _ranked(self.comparison)
        if self.suggestions is not None:
            parts += [repr(self.suggestions), self._files()]
        if self.publication is not None:
            told = (self.publication.remark, str(self.publication))
            parts += [printable(line[0].upper() + line[1:]) for line in told if line is not None]
        return "\n".join(parts)

    def _files(self) -> str:
        if self.recodes is None:
            return "--write-recodes DIR writes them as files that --recode reads."
        return printable(f"Recode files: {self.recodes}")


def advice_beside(
    audit: BoundsAudit, suggestions: Suggestions | None, publication: Publication | None
) -> str | None:
    """What to do next beside the other answers; None is what the audit says alone."""
    if suggestions is not None:
        return REDESIGNS_BELOW
    if publication is None:
        return None
    is_publishable = publication.refused is publication.published is None and publication.is_safe
    return audit.advice(is_registered=True, is_publishable=is_publishable)


def _disclosed(audit: BoundsAudit) -> list[str]:
    shown = list(islice(audit.disclosed_cells(), MAX_PRINTED + 1))
    lines = [
        f"  disclosed: {_named(cell.row)} → {_named(cell.col)}: {cell.lower}" for cell in shown[:MAX_PRINTED]
    ]
    if len(shown) > MAX_PRINTED:
        lines.append("  ... --json or --html lists them all")
    return [printable(line) for line in lines]


def _telling(audit: BoundsAudit) -> list[str]:
    shown = list(islice(audit.telling_rows(), MAX_TELLING + 1))
    least = "" if audit.is_counted else "at least "
    lines = [
        f"  tells: {_named(one.row)} → {_named(one.col)} ({least}{one.people:,} in the row)"
        for one in shown[:MAX_TELLING]
    ]
    if len(shown) > MAX_TELLING:
        lines.append("  ... --html lists more")
    return [printable(line) for line in lines]


def _named(labels: Mapping[str, str]) -> str:
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


def _is_disclosive(summary: Summary, fail_on: str | None) -> bool:
    small, certain, rows, zeros = summary.risk
    found = {"small": small, "attribute": certain, "rows": rows, "any": small + certain + rows + zeros}
    return fail_on is not None and found[fail_on] > 0
