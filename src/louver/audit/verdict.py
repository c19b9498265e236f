"""What an audit examined, and the conclusion from its answers."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from louver._verdict import Level, Verdict
from louver._words import counted

__all__ = ["AuditQuestion", "judge_answers"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuestion:
    """What was examined, and how much of it was answered.

    Attributes
    ----------
    cells : int
        Cells of tables and targets that were bounded or decided.
    groups : int or None
        Groups of fewer than `small` people that were tested; None if only targets were, or if no table is known to start from.
    attributes : tuple of str
        Attributes that describe groups.
    most : int
        Attributes of one description.
    some_sets : tuple of str
        Attributes of which not every set of labels was tested.
    is_whole : bool
        Whether every description was tested.
    is_late : bool
        Whether the time ended before the search did.
    has_targets : bool
        Whether only the given targets were examined.
    dependencies : tuple of (str, str)
        Columns of which the first determines the second; everybody is assumed to know the rule.
    within : float
        Percentage within which the counts of cells were tested, too; groups are tested for exact counts only.
    household : str or None
        A column of the records that looks like the number of a household, whose members were counted one by one.
    counts_people : bool
        Whether the steward chose to count people.
    unit : str or None
        The column of units by which groups were counted; None if they were counted by people.
    near : tuple of (str, str, float)
        Columns of which the first nearly determines the second, and the share of the records that follow.
    near_small : int or None
        Small counts that readers can derive if they also know the exceptions; None if unknown.
    files : tuple of str
        Earlier files of records of which only bounds for each class by itself were used: whether all of it together discloses a small
        count is not known.
    ledger : str or None
        Exact publications about these people that a ledger lists and the register does not have, in a sentence: whether they disclose a
        small count together with the tables is not known.
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
    within: float = 0.0
    household: str | None = None
    counts_people: bool = False
    unit: str | None = None
    near: tuple[tuple[str, str, float], ...] = ()
    near_small: int | None = None
    files: tuple[str, ...] = ()
    ledger: str | None = None

    @property
    def is_complete(self) -> bool:
        """Whether every question that had to be answered was answered."""
        return self.has_targets or (self.groups is not None and self.is_whole)

    @property
    def is_answered(self) -> bool:
        """The same, and whether everything known to be published earlier was taken into account."""
        return self.is_complete and not self.n_open

    @property
    def n_open(self) -> int:
        """Earlier publications of which it is not known what they disclose together with the tables."""
        return len(self.files) + (self.ledger is not None)

    @property
    def is_safe_if_followed(self) -> bool:
        """Whether readers who assume near dependencies as rules learn no small count."""
        return not self.near or self.near_small == 0

    @property
    def counted(self) -> str:
        """What is counted, in one word."""
        return "count" if self.unit is None else "units"

    def few(self, small: int) -> str:
        """The condition that makes a group small, in words."""
        if self.unit is None:
            return f"fewer than {small:,} people"
        return f'people of fewer than {small:,} units (column "{self.unit}")'

    @property
    def described(self) -> str:
        """How groups are described, in words."""
        if len(self.attributes) == 1:
            return f'labels of "{self.attributes[0]}" describe'
        return f"labels of up to {counted(self.most, 'attribute')} describe"

    def to_dict(self, small: int) -> dict[str, Any]:
        """The content of a JSON result."""
        return asdict(self) | {"asked": self.examined(small), "not_asked": self.not_examined()}

    def examined(self, small: int) -> list[str]:
        """In sentences."""
        sentences = [f"{counted(self.cells, 'cell')} of tables and targets."]
        if self.groups is not None:
            sentences.append(f"Every group of {self.few(small)} that {self.described}: {self._looked_at()}.")
        return sentences + self.assumed()

    def _looked_at(self) -> str:
        looked = counted(self.groups or 0, "group")
        return looked if self.unit is None else f"{looked} that may have so few"

    def assumed(self) -> list[str]:
        """Knowledge that everyone is assumed to have beforehand, in sentences."""
        return [
            f'Everyone is assumed to know which "{second}" belongs to each "{first}".'
            for first, second in self.dependencies
        ]

    def not_examined(self) -> list[str]:
        """In sentences."""
        sentences = []
        if self.groups is None:
            why = (
                "only the given targets were examined"
                if self.has_targets
                else "no table that agrees with all of them was found"
            )
            sentences.append(f"Groups beyond these cells were not tested: {why}.")
        if self.groups is not None and self.most < len(self.attributes):
            sentences.append(
                f"Groups that need more than {counted(self.most, 'attribute')} to describe are too many to check."
            )
        if self.groups is not None and self.within:
            sentences.append(
                f"Within {self.within:g} % only cells of tables and targets were tested, not all groups."
            )
        if self.some_sets:
            names = " and ".join(f'"{name}"' for name in self.some_sets)
            sentences.append(
                f"Of {names}, groups were formed by single labels, pairs, categories, filters and their differences, not by every set of "
                "labels."
            )
        if self.household is not None:
            sentences.append(
                f'Groups were counted by people, not by households (column "{self.household}"): a group that is a single large household '
                "counts as large."
            )
        return sentences + self.left_open()

    def left_open(self) -> list[str]:
        """What earlier publications may reveal in addition, in sentences."""
        sentences = [
            f'Of "{name}" each class was considered by itself: what all classes confine together, that somebody has every label a class '
            "lists and both ends of its intervals, and columns that were not audited, was not."
            for name in self.files
        ]
        return sentences if self.ledger is None else [*sentences, self.ledger]


def judge_answers(
    question: AuditQuestion,
    *,
    small: int,
    within: float,
    n_small: int,
    n_within: int,
    n_undecided: int,
    has_advice: bool,
    overlap: str | None = None,
) -> Verdict:
    """The conclusion from the findings: safe only if the whole question was examined and answered.

    `overlap` describes people who may also be in earlier, unaudited publications.
    """
    not_examined = tuple(question.not_examined())
    found = [f"{counted(n_small, 'small count')} exactly"] if n_small else []
    found += [f"{n_within:,} to within {within:g} %"] if n_within else []
    if found:
        least = "" if question.is_whole else "at least "
        learned = f"Anyone who combines the tables learns {least}{' and '.join(found)}."
        change = " Changes that would help are below." if has_advice else ""
        return Verdict(Level.STOP, f"Do not publish them as they are.{change}", (learned,))
    if n_undecided or not question.is_answered:
        n_cells = n_undecided - question.n_open
        many = counted(n_cells, "small count") if n_cells > 0 else "a small count"
        reason = f"It is not known whether {many} can be derived."
        return Verdict(Level.CARE, _remedy(question), (reason, *not_examined))
    if not question.is_safe_if_followed:
        sentence = "Correct the exceptional records, or publish by only one of the two columns."
        return Verdict(Level.CARE, sentence, (*_near(question), *not_examined))
    if question.groups is None:
        reason = f"No small count is disclosed among the {counted(question.cells, 'cell')} of the targets."
        return Verdict(
            Level.CARE, "Leave out the targets to check all groups of people.", (reason, *not_examined)
        )
    reason = (
        f"No group of {question.few(small)} that {question.described} is determined: {_refuted(question)}."
    )
    if question.household is not None and not question.counts_people:
        sentence = "No small count of people is disclosed; check groups of few households before you publish."
        return Verdict(Level.CARE, sentence, (reason, *not_examined))
    if overlap is not None:
        sentence = (
            "These tables disclose no small count; check what they reveal together with the earlier ones."
        )
        return Verdict(Level.CARE, sentence, (reason, overlap[0].upper() + overlap[1:], *not_examined))
    return Verdict(Level.OK, "No small count is disclosed, alone or together.", (reason, *not_examined))


def _near(question: AuditQuestion) -> list[str]:
    """Near dependencies and their disclosures, in sentences."""
    sentences = [
        f'"{first}" nearly determines "{second}" ({_percent(share)} of the records agree).'
        for first, second, share in question.near
    ]
    if question.near_small is None:
        return [
            *sentences,
            "It is not known whether a reader who assumes it can derive small counts.",
        ]
    return [
        *sentences,
        f"A reader who assumes it can derive {counted(question.near_small, 'small count')}.",
    ]


def _percent(share: float) -> str:
    return "over 99.9 %" if share > 0.999 else f"{math.floor(1000 * share) / 10:g} %"


def _remedy(question: AuditQuestion) -> str:
    if question.is_complete and question.files:
        return (
            "Publish tables without the columns of the earlier file, or read what was not checked and decide."
        )
    if question.is_complete and question.ledger is not None:
        return (
            "Audit the exact numbers as tables of the same register, or read what was not checked and decide."
        )
    if question.is_late:
        return "Allow more seconds before you publish."
    if question.groups is not None and question.most < len(question.attributes):
        return "Publish fewer attributes or broader categories."
    return "The search ended without an answer, and more time will not help; publish fewer or coarser tables."


def _refuted(question: AuditQuestion) -> str:
    n_groups = question.groups
    if not n_groups:
        return "there is none"
    if question.unit is not None:
        return f"{counted(n_groups, 'group')} that may be that small were checked, and no small one is determined by everything published"
    if n_groups == 1:
        return "1 was checked, and a table that agrees with everything published changes it"
    return (
        f"{n_groups:,} were checked, and each is changed by some table that agrees with everything published"
    )
