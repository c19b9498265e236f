"""What an audit amounts to, made once: command line, JSON, reports and pages show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from louver._words import counted

__all__ = ["Question", "Verdict", "verdict"]

Level = Literal["safe", "limited", "undecided", "risk"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What was asked, and how far it was answered.

    Attributes
    ----------
    cells : int
        Cells of tables and targets that were bounded or decided.
    groups : int or None
        Groups of fewer than `small` people that were asked about; None where only named targets were, or where no table is
        known to count from.
    attributes : tuple of str
        What groups are described by.
    most : int
        Attributes of one description.
    some_sets : tuple of str
        Attributes of which not every set of labels was asked for.
    is_whole : bool
        Whether every description was reached.
    is_late : bool
        Whether the time ended before the search did.
    has_targets : bool
        Whether targets were named and nothing else was asked.
    dependencies : tuple of (str, str)
        Columns of which the first determines the second; everybody is assumed to know how.
    """

    cells: int
    groups: int | None
    attributes: tuple[str, ...]
    most: int
    some_sets: tuple[str, ...] = ()
    is_whole: bool = True
    is_late: bool = False
    has_targets: bool = False
    dependencies: tuple[tuple[str, str], ...] = ()

    @property
    def is_reached(self) -> bool:
        """Whether all was answered that had to be."""
        return self.has_targets or (self.groups is not None and self.is_whole)

    def asked(self, small: int) -> list[str]:
        """In sentences."""
        told = [f"{counted(self.cells, 'cell')} of tables and targets."]
        if self.groups is not None:
            told.append(
                f"Every group of fewer than {small:,} people that up to {counted(self.most, 'attribute')} describe: "
                f"{counted(self.groups, 'group')}."
            )
        told += [
            f'Everybody is assumed to know which "{second}" belongs to each "{first}".'
            for first, second in self.dependencies
        ]
        return told

    def not_asked(self) -> list[str]:
        """In sentences."""
        told = []
        if self.groups is None:
            why = "only the named targets were" if self.has_targets else "no table was found to count from"
            told.append(f"Groups beyond these cells were not asked about: {why}.")
        if not self.is_whole:
            told.append("Not every description was reached.")
        if self.groups is not None and self.most < len(self.attributes):
            told.append(f"Groups that take more than {counted(self.most, 'attribute')} to describe.")
        for name in self.some_sets:
            told.append(
                f'Sets of three or more labels of "{name}" that are no category, filter, range or node of a hierarchy, '
                "nor the rest of one."
            )
        return told


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether tables may be published, and why.

    Attributes
    ----------
    level : {"safe", "limited", "undecided", "risk"}
        `safe` only where the whole question was asked and answered; `limited` where nothing was found but less was asked.
    sentence : str
        What anybody learns.
    decision : str
        What to do; empty where there is nothing to do.
    reasons : tuple of str
        Why, the first ones.
    asked, not_asked : tuple of str
        What was asked, and what was not.
    """

    level: Level
    sentence: str
    decision: str = ""
    reasons: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    not_asked: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.sentence} {self.decision}".rstrip()

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def verdict(
    question: Question,
    *,
    small: int,
    within: float,
    n_small: int,
    n_within: int,
    n_undecided: int,
    has_advice: bool,
    reasons: Sequence[str],
) -> Verdict:
    """What findings amount to."""
    told = {
        "reasons": tuple(reasons),
        "asked": tuple(question.asked(small)),
        "not_asked": tuple(question.not_asked()),
    }
    found = [f"{counted(n_small, 'small count')} exactly"] if n_small else []
    found += [f"{n_within:,} to within {within:g} %"] if n_within else []
    if found:
        least = "" if question.is_whole else "at least "
        return Verdict(
            level="risk",
            sentence=f"Anyone who puts the tables together learns {least}{' and '.join(found)}.",
            decision="Do not publish them as they are." + (" What to change is below." if has_advice else ""),
            **told,
        )
    if n_undecided or not question.is_reached:
        many = counted(n_undecided, "small count") if n_undecided else "a small count"
        return Verdict(
            level="undecided",
            sentence=f"It was not found out whether {many} can be worked out.",
            decision=_remedy(question),
            **told,
        )
    if question.groups is None:
        return Verdict(
            level="limited",
            sentence=f"No small count is given away among the {counted(question.cells, 'cell')} of the targets.",
            decision="Other groups of people were not asked about; leave out the targets to ask about all.",
            **told,
        )
    return Verdict(
        level="safe",
        sentence="No small count is given away, alone or together: "
        f"no group of fewer than {small:,} people that up to {counted(question.most, 'attribute')} describe is determined "
        f"({_refuted(question.groups)}).",
        **told,
    )


def _remedy(question: Question) -> str:
    if question.is_late:
        return "Give more --seconds before you publish."
    if question.groups is not None and question.most < len(question.attributes):
        return "There are too many descriptions to go through; publish fewer attributes or broader categories."
    return "The search ended without an answer, and more time will not help; publish fewer or coarser tables."


def _refuted(n_groups: int) -> str:
    if not n_groups:
        return "there is no such group"
    if n_groups == 1:
        return "1 group asked about, and a table that agrees with all that is published changes it"
    return f"{n_groups:,} groups asked about, and of each a table that agrees with all that is published changes it"
