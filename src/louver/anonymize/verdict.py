"""The verdict for the data steward before publishing a k-anonymous file; every interface renders it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from louver._verdict import Level, Verdict
from louver._words import counted, listed
from louver.anonymize.columns import Guarantee
from louver.anonymize.watch import Stopped
from louver.release.sentences import WEAKER

if TYPE_CHECKING:
    from louver.anonymize.result import AnonymizedRelease

__all__ = ["judge", "level_together"]

MOSTLY_LOST = (
    "More than half of the quasi-identifiers' detail is lost: relax the requirements (a smaller k or l, a larger t, fewer "
    "quasi-identifiers) or allow some records to be left out (--suppress)."
)
UNFINISHED = (
    "The search reached its limit (--seconds or --steps) before it was finished, so more detail is lost than "
    "necessary: raise the limit."
)


CLOSENESS = "Closeness of sensitive values (--t) was measured over records, not over units."

OTHER_MEMBERS = (
    "Generalised values disclosed by unchanged columns of other members, and sensitive values that occur in "
    "every unit of a class, were not counted (--whole-units)."
)

LEVELS = tuple(Level)
"""Levels, the mildest first."""


def judge(release: AnonymizedRelease) -> Verdict:
    """The verdict on a release; its reasons are the findings, the most serious first, and what was not examined."""
    found = sorted(_found(release), key=lambda line: -LEVELS.index(line[0]))
    level = found[0][0] if found else Level.OK
    promise = PROMISE[release.guarantee].format(k=release.k)
    sentence = {
        Level.OK: f"{promise}; nothing was found against publishing it.",
        Level.CARE: f"{promise}; read {counted(len(found), 'finding')} before you publish it.",
        Level.STOP: f"Do not publish it as it is: {promise[0].lower()}{promise[1:]}, but that is not enough.",
    }[level]
    return Verdict(level, sentence, (*(reason for _, reason in found), *_not_examined(release)))


PROMISE = {
    Guarantee.K_ANONYMITY: "Every class has at least {k:,} records",
    Guarantee.K_MAP: "Every class matches at least {k:,} people of the population",
    Guarantee.K_UNITS: "Every class has records of at least {k:,} different units",
    Guarantee.FREEFORM: "Every record fits at least {k:,} published records",
}


def _found(release: AnonymizedRelease) -> Iterator[tuple[Level, str]]:
    """The findings, in the order in which they are listed."""
    together, n = release.intersection, release.table.num_rows
    if together is not None and (level := level_together(release)) is not Level.OK:
        yield level, _sentence(str(together))
    if release.unasked is not None:
        yield Level.CARE, _sentence(release.unasked.removesuffix("."))
    if release.units_found is not None and release.units_found.below_k:
        yield Level.CARE, f"{release.units_found}."
    if release.guarantee is Guarantee.FREEFORM:
        yield Level.CARE, WEAKER
    for line in release.worked_out:
        if line.nearly:
            yield Level.CARE, f"{line}."
    if release.unchanged and release.n_alone:
        yield (
            Level.CARE,
            f"{release.n_alone:,} of {n:,} records are unique to anyone who also knows the columns published unchanged "
            f"({listed(release.unchanged)}): make these quasi-identifying, round them, or drop them.",
        )
    for name, records in release.alike:
        if records:
            yield (
                Level.CARE,
                f'{records:,} of {n:,} records are in classes where all have the same value of "{name}", so anyone who finds the '
                "class learns it: use --l 2 or more.",
            )
    if release.stopped is Stopped.UNFINISHED:
        yield Level.CARE, UNFINISHED
    if release.utility.gcp > 0.5:
        yield Level.CARE, MOSTLY_LOST


def level_together(release: AnonymizedRelease) -> Level:
    """How serious the disclosures together with earlier releases are."""
    together = release.intersection
    if together is None or not (together.is_risky or together.link is None):
        return Level.OK
    return Level.STOP if release.is_withheld else Level.CARE


def _not_examined(release: AnonymizedRelease) -> Iterator[str]:
    if release.intersection is None:
        yield "Not compared with other releases of the same people (--against)."
    if release.guarantee is not Guarantee.K_UNITS:
        yield "Members of one household count as different people (--unit counts households)."
    elif release.parameters["t"] is not None:
        yield CLOSENESS
    if release.parameters["whole_units"] and release.unchanged:
        yield OTHER_MEMBERS
    if release.part_sizes and release.unchanged:
        yield "Generalised values that unchanged columns reveal were not counted (--parts)."


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
