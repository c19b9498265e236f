"""What the steward should know before a k-anonymous file is published: one verdict, which screen, JSON, page and explorer render."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from louver._words import listed
from louver.anonymize.guarantee import WEAKER, Guarantee
from louver.anonymize.watch import Stopped

if TYPE_CHECKING:
    from louver.anonymize.result import AnonymizedRelease

__all__ = ["Level", "Reason", "Verdict", "judge"]

MOSTLY_LOST = (
    "More than half of the quasi-identifiers' detail is lost: ask for less (a smaller k or l, a larger t, fewer "
    "quasi-identifiers) or allow some records to be left out (--suppress)."
)
UNFINISHED = "The search reached its limit (--seconds or --steps) before it was done, so more detail is lost than need be: allow it more."


class Level(StrEnum):
    """How serious a finding is, from the mildest."""

    OK = "ok"
    CARE = "care"
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One finding.

    Attributes
    ----------
    about : str
        What it speaks of: against, units, weaker, worked-out, alone, alike, stopped or lost.
    level : Level
    sentence : str
    """

    about: str
    level: Level
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether a release may be published as it is. Stays inside.

    Attributes
    ----------
    level : Level
        The most serious of all reasons; `ok` where there is none.
    sentence : str
    reasons : tuple of Reason
        The most serious first.
    not_asked : tuple of str
        What nobody looked at, so that the verdict says nothing about it.
    """

    level: Level
    sentence: str
    reasons: tuple[Reason, ...]
    not_asked: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "level": self.level.value,
            "sentence": self.sentence,
            "reasons": [asdict(reason) | {"level": reason.level.value} for reason in self.reasons],
            "not_asked": list(self.not_asked),
        }

    def lines(self) -> list[str]:
        """The verdict as lines of text."""
        return [self.sentence, *(f"- {reason.sentence}" for reason in self.reasons), *self.not_asked]


LEVELS = tuple(Level)


def judge(release: AnonymizedRelease) -> Verdict:
    """The verdict on a release."""
    reasons = sorted(_reasons(release), key=lambda reason: -LEVELS.index(reason.level))
    level = reasons[0].level if reasons else Level.OK
    promise = PROMISE[release.guarantee].format(k=release.k)
    several = f"{len(reasons)} findings" if len(reasons) > 1 else "one finding"
    sentence = {
        Level.OK: f"{promise}; nothing was found against publishing it.",
        Level.CARE: f"{promise}; read {several} before you publish it.",
        Level.STOP: f"Do not publish it as it is: {promise[0].lower()}{promise[1:]}, but that is not enough.",
    }[level]
    return Verdict(
        level=level, sentence=sentence, reasons=tuple(reasons), not_asked=tuple(_not_asked(release))
    )


PROMISE = {
    Guarantee.K_ANONYMITY: "Every class has at least {k:,} records",
    Guarantee.K_MAP: "Every class matches at least {k:,} people of the population",
    Guarantee.K_UNITS: "Every class has records of at least {k:,} different units",
    Guarantee.FREEFORM: "Every record fits at least {k:,} published records",
}


def _reasons(release: AnonymizedRelease) -> Iterator[Reason]:
    """What was found, in the order in which it is read."""
    together = release.intersection
    if together is not None and together.is_risky:
        level = Level.STOP if release.is_withheld else Level.CARE
        yield Reason(about="against", level=level, sentence=_sentence(str(together)))
    if release.guarantee is Guarantee.FREEFORM:
        yield Reason(about="weaker", level=Level.CARE, sentence=WEAKER)
    for line in release.worked_out:
        if line.nearly:
            yield Reason(about="worked-out", level=Level.CARE, sentence=f"{line}.")
    if release.unchanged and release.n_alone:
        sentence = (
            f"{release.n_alone:,} of {release.table.num_rows:,} records differ from all others for those who know what is "
            f"published unchanged, too ({listed(release.unchanged)}): make it quasi-identifying, round it, or drop it."
        )
        yield Reason(about="alone", level=Level.CARE, sentence=sentence)
    for name, records in release.alike:
        if records:
            sentence = (
                f'{records:,} of {release.table.num_rows:,} records are in classes where all have the same value of "{name}", so that '
                "whoever finds the class knows it: ask for --l 2 or more."
            )
            yield Reason(about="alike", level=Level.CARE, sentence=sentence)
    if release.stopped is Stopped.UNFINISHED:
        yield Reason(about="stopped", level=Level.CARE, sentence=UNFINISHED)
    if release.utility.gcp > 0.5:
        yield Reason(about="lost", level=Level.CARE, sentence=MOSTLY_LOST)


def _not_asked(release: AnonymizedRelease) -> Iterator[str]:
    if release.intersection is None:
        yield "Not compared with other releases of the same people (--against)."
    if release.guarantee is not Guarantee.K_UNITS:
        yield "Members of one household count as different people (--unit counts households)."
    if release.part_sizes and release.unchanged:
        yield "What unchanged columns give back was not worked out (--parts)."


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
