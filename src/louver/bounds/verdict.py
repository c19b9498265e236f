"""What an outsider learns from a table, whether it may be published, and what to do next."""

from __future__ import annotations

from fractions import Fraction

from louver._verdict import Level, Verdict
from louver._words import counted
from louver.bounds.summary import Summary
from louver.errors import printable

__all__ = ["advise", "judge"]

REDESIGN = "Next: --suggest looks for a redesign"
SENTENCES = {
    Level.OK: "By itself it may be published.",
    Level.CARE: "Publish it only if that may be known.",
    Level.STOP: "Do not publish it as it is.",
}


def judge(
    summary: Summary, *, small: int, certain: Fraction, is_counted: bool, survey_weight: str | None = None
) -> Verdict:
    """Judge one table.

    Parameters
    ----------
    is_counted : bool
        Whether it is the steward's own table; somebody else's is published already.
    survey_weight : str, optional
        Column of counts that may weight people up: one sampled person then passes for hundreds.
    """
    found = f"{_counts(summary)}{_status(summary, certain, is_counted)}.{_small_rows(summary, small)}"
    level = _level(summary)
    if survey_weight is not None:
        note = f'Column "{printable(survey_weight)}" is named like a sampling weight: one person of the file then counts as many.'
        return Verdict(Level.STOP, SENTENCES[Level.STOP], (found, note))
    if is_counted:
        return Verdict(level, SENTENCES[level], (found,))
    if level is Level.STOP:
        return Verdict(level, "Everybody who has the table can work this out.", (found,))
    return Verdict(level, found)


def advise(
    level: Level,
    *,
    survey_weight: str | None = None,
    is_registered: bool = False,
    is_publishable: bool = False,
) -> str:
    """What to do next with a table of the steward's own, on the command line.

    Parameters
    ----------
    is_registered : bool
        Whether the register was asked already.
    is_publishable : bool
        Whether it may be published beside what the register holds.
    """
    if survey_weight is not None:
        return "Next: audit without --weight, or rename the column where it counts people."
    if level is Level.STOP:
        return f"{REDESIGN}; fewer or broader categories help."
    if level is Level.CARE:
        return f"{REDESIGN}{'' if is_registered else ', --register for what other tables add'}."
    if not is_registered:
        return "Next: --register audits it together with what was published before."
    return "Next: --publish DIR writes it as a release." if is_publishable else ""


def _level(summary: Summary) -> Level:
    if summary.disclosed_small_cells or summary.certain_rows:
        return Level.STOP
    return Level.CARE if summary.disclosed_rows or summary.small_rows else Level.OK


def _counts(summary: Summary) -> str:
    if summary.disclosed_small_cells:
        return f"{counted(summary.disclosed_small_cells, 'small count')} can be worked out"
    if summary.disclosed_rows:
        return f"No small count can be worked out, {counted(summary.disclosed_rows, 'row')} in full"
    return "Counts cannot be worked out"


def _status(summary: Summary, certain: Fraction, is_counted: bool) -> str:
    if not summary.certain_rows:
        joint = "but" if summary.disclosed_small_cells else "and"
        return f", {joint} no row tells a person's status"
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
