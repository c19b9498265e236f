"""The answer in plain words: what an outsider learns, whether to publish, what to do next."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from louver._words import counted
from louver.bounds.summary import Summary
from louver.errors import printable

__all__ = ["Verdict", "verdict"]
REDESIGN = "Next: --suggest looks for a redesign"
TOGETHER = "Next: --register audits it together with what was published before."


@dataclass(frozen=True, slots=True)
class Verdict:
    """Three sentences, and whether the first is bad news.

    Attributes
    ----------
    learned : str
        What an outsider may learn from the table.
    decision : str
        Whether it may be published.
    advice : str
        What to do next.
    """

    learned: str
    decision: str
    advice: str
    is_risky: bool

    def __str__(self) -> str:
        return " ".join(part for part in (self.learned, self.decision, self.advice) if part)

    def beside_register(self, *, is_publishable: bool) -> Verdict:
        """The verdict where the register was asked already; what may be published then is offered to be."""
        if self.advice == TOGETHER:
            return replace(
                self, advice="Next: --publish DIR writes it as a release." if is_publishable else ""
            )
        return replace(self, advice=self.advice.replace(", --register for what other tables add", ""))

    def of_estimates(self, weight: str) -> Verdict:
        """The verdict where people may have been weighted up: one sampled person passes for hundreds."""
        note = f'Column "{printable(weight)}" is named like a sampling weight: one person of the file then counts as many.'
        advice = "Next: audit without --weight, or rename the column where it counts people."
        return Verdict(f"{self.learned} {note}", "Do not publish it as it is.", advice, True)


def verdict(summary: Summary, *, small: int, certain: Fraction, is_counted: bool) -> Verdict:
    """Judge one table.

    Parameters
    ----------
    is_counted : bool
        Whether it is the steward's own table; somebody else's is published already.
    """
    learned = f"{_counts(summary)}{_status(summary, certain, is_counted)}.{_small_rows(summary, small)}"
    is_risky = bool(summary.disclosed_small_cells or summary.certain_rows)
    if not is_counted:
        told = "Everybody who has the table can work this out." if is_risky else ""
        return Verdict(learned, told, "", is_risky)
    if is_risky:
        return Verdict(
            learned,
            "Do not publish it as it is.",
            f"{REDESIGN}; fewer or broader categories help.",
            is_risky,
        )
    if summary.disclosed_rows or summary.small_rows:
        return Verdict(
            learned,
            "Publish it only if that may be known.",
            f"{REDESIGN}, --register for what other tables add.",
            is_risky,
        )
    return Verdict(
        learned,
        "By itself it may be published.",
        TOGETHER,
        is_risky,
    )


def _counts(summary: Summary) -> str:
    if summary.disclosed_small_cells:
        return f"{counted(summary.disclosed_small_cells, 'small count')} can be worked out"
    if summary.disclosed_rows:
        return f"No small count can be worked out, {counted(summary.disclosed_rows, 'row')} in full"
    return "Counts cannot be worked out"


def _status(summary: Summary, certain: Fraction, is_counted: bool) -> str:
    if not summary.certain_rows:
        return ", and no row tells a person's status"
    joint = "and" if summary.disclosed_small_cells else "but"
    tells = "tells" if summary.certain_rows == 1 else "tell"
    sure = "" if certain == 1 else f" with at least {float(100 * certain):g} % certainty"
    people = counted(summary.certain_people, "person").replace("persons", "people")
    people = people if is_counted else f"at least {people}"
    return f", {joint} {counted(summary.certain_rows, 'row')} {tells} a person's status{sure} ({people})"


def _small_rows(summary: Summary, small: int) -> str:
    if not summary.small_rows:
        return ""
    hold = "holds" if summary.small_rows == 1 else "hold"
    return f" {counted(summary.small_rows, 'row')} {hold} fewer than {small} people."
