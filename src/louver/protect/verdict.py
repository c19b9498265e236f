"""The verdict on protected tables: what was examined, what was not, and the conclusion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from louver._verdict import Level, Verdict
from louver._words import counted
from louver.protect.load import Loaded

__all__ = ["Question", "closes_a_circle", "noisy_verdict", "question_of", "verdict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What was examined.

    Attributes
    ----------
    primary : int
        Cells that must be protected.
    attackers : int
        Contributors who know their own part, against whom the cells are protected in addition to the outsider.
    known_percent : float or None
        Percentage within which the outsider knows every number beforehand.
    unknown_pairs : int
        Cells with two contributors whose parts are not known, so that neither could be considered as an attacker.
    asks_contributors : bool
        Whether contributors were considered at all.
    linked : tuple of (str, str)
        Pairs of attributes of which the first determines the second in the records; readers are assumed to know this.
    dependent : tuple of (str, str)
        Other such pairs, whose tables were not linked because a table uses both columns, or another finer column is linked.
    near : tuple of (str, str)
        Pairs of attributes of which the first determines the second in nearly all records.
    is_circle : bool
        Whether tables are linked in a circle, so that readers could also reason about the crossed table that nobody publishes.
    waived : int
        Cells that a rule calls primary and that are published by decision, or were published before.
    earlier : int or None
        Tables and files that were published before about the same people and were examined together with these; None without a register.
    apart : str or None
        A note if the register has nothing about these people, or if some of its publications are left out.
    is_apart_by_word : bool
        Whether only the steward's word says that the people of earlier publications are different.
    ledger : str or None
        Exact publications about these people that a ledger lists and the register does not have, in a sentence.
    n_counts : int
        Primary cells that are counts, for which contributors are not considered.
    shown_before : tuple of str
        Variables whose numbers an earlier file of records shows, person by person.
    files : tuple of str
        What earlier files of records may reveal about counts in addition to what was examined, in sentences.
    is_noisy : bool
        Whether readers who average away the noise of cell keys were considered.
    """

    primary: int
    attackers: int
    known_percent: float | None
    unknown_pairs: int
    asks_contributors: bool
    dependent: tuple[tuple[str, str], ...]
    is_circle: bool
    waived: int
    earlier: int | None = None
    apart: str | None = None
    is_apart_by_word: bool = False
    ledger: str | None = None
    n_counts: int = 0
    shown_before: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    is_noisy: bool = False
    linked: tuple[tuple[str, str], ...] = ()
    near: tuple[tuple[str, str], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The content of a JSON result."""
        return asdict(self) | {"asked": self.examined(), "not_asked": self.not_examined()}

    def examined(self) -> list[str]:
        """In sentences."""
        if self.is_noisy:
            return [
                f"{counted(self.primary, 'small count')} against readers who average all sums of parts and differences from totals in "
                "these tables, and in earlier ones with cell keys.",
                "The same against readers who know the largest noise and propagate bounds on the counts over every sum of these tables.",
            ]
        knows = "that no number is negative"
        if self.known_percent is not None:
            knows = f"every number to within {self.known_percent:g} % beforehand"
        sentences = [
            f"{counted(self.primary, 'primary cell')} against an outsider who sees all tables and knows {knows}."
        ]
        if self.attackers:
            sentences.append(
                f"The same against {counted(self.attackers, 'contributor')} who each know their own part and are alone or one of two in a "
                "cell."
            )
        for first, second in self.linked:
            sentences.append(
                f'Readers are taken to know that "{first}" determines "{second}", as in the records.'
            )
        if self.earlier:
            sentences.append(
                f"All of this together with {counted(self.earlier, 'earlier publication')} about the same people."
            )
        return sentences

    def not_examined(self) -> list[str]:
        """In sentences."""
        sentences = [
            "Tables published before, and other variables of the same contributors, were not considered."
        ]
        if self.earlier is not None:
            sentences = ["Other variables of the same contributors were not considered."]
        if self.is_noisy:
            sentences = [
                "Bounds were propagated over sums, not solved exactly over all tables at once: readers who solve exactly, "
                "or know numbers of other people beforehand, can learn more.",
                "It is not differential privacy: nothing is promised about a single person, and no budget limits what is published.",
            ]
        if self.apart is not None and not self.is_apart_by_word:
            sentences.append(f"{self.apart[0].upper()}{self.apart[1:]}")
        if self.is_noisy:
            return [*sentences, *self.files]
        if not self.asks_contributors:
            sentences.append("Contributors who know their own part were not considered.")
        else:
            sentences.append(
                "Several contributors who share their numbers were not considered, unless they belong to one holding."
            )
            if self.n_counts:
                sentences.append(
                    "For counts, contributors who know that they are alone in a cell were not considered."
                )
        sentences.append("Readers who know how the pattern was found were not considered.")
        return sentences + self.doubts()

    def doubts(self) -> list[str]:
        """Questions that were not examined and could matter here, in sentences."""
        sentences = []
        if self.is_apart_by_word and self.apart is not None:
            sentences.append(f"{self.apart[0].upper()}{self.apart[1:]}")
        if self.is_circle:
            sentences.append(
                "The tables are linked in a circle: readers who reason about the crossed table behind them, which nobody publishes, were "
                "not considered."
            )
        for name in self.shown_before:
            sentences.append(
                f'An earlier file of records shows numbers of "{name}" person by person; what readers learn from it about these sums was '
                "not checked."
            )
        sentences += self.files
        if self.ledger is not None and self.ledger not in self.files:
            sentences.append(self.ledger)
        for first, second in self.dependent:
            sentences.append(
                f'In the records "{first}" determines "{second}", but the tables were not linked by that; give "{second}" codes of '
                f'"{first}".'
            )
        for first, second in self.near:
            sentences.append(
                f'In nearly all records "{first}" determines "{second}"; what is learnt by readers who assume this rule, or know the '
                "exceptions, was not examined."
            )
        if self.unknown_pairs and self.asks_contributors:
            sentences.append(
                f"{counted(self.unknown_pairs, 'cell')} with two contributors: what each contributes is not known, so neither was "
                "considered."
            )
        if self.waived:
            sentences.append(
                f"Published by decision, or earlier, although a rule makes them primary: {counted(self.waived, 'cell')}."
            )
        return sentences


def question_of(
    loaded: Loaded,
    *,
    primary: int,
    attackers: int,
    known_percent: float | None,
    asks_contributors: bool,
    waived: int,
    earlier: int | None = None,
    apart: str | None = None,
    is_apart_by_word: bool = False,
    ledger: str | None = None,
    n_counts: int = 0,
    shown_before: tuple[str, ...] = (),
) -> Question:
    """The question about these tables."""
    by_variable: dict[str, list[frozenset[str]]] = {}
    is_many = False
    for table in (*loaded.tables, *loaded.earlier):
        axes = table.grid.axes
        by_variable.setdefault(table.options.quantity, []).append(
            frozenset(axis.attribute.of for axis in axes)
        )
        is_many |= any(len(axis.attribute.trees) > 1 and table.options.depth for axis in axes)
    return Question(
        primary=primary,
        attackers=attackers,
        known_percent=known_percent,
        unknown_pairs=loaded.unknown_pairs,
        asks_contributors=asks_contributors,
        linked=loaded.linked,
        near=loaded.near,
        dependent=loaded.dependent,
        is_circle=is_many or any(closes_a_circle(sets) for sets in by_variable.values()),
        waived=waived,
        earlier=earlier,
        apart=apart,
        is_apart_by_word=is_apart_by_word,
        ledger=ledger,
        n_counts=n_counts,
        shown_before=shown_before,
    )


def closes_a_circle(sets: Sequence[frozenset[str]]) -> bool:
    """Whether sets of attributes are linked in a circle, that is, are not decomposable.

    Tables by sets without a circle that agree where they overlap always have a crossed table behind them; if there is a circle, its
    existence gives readers more information. Graham's reduction decides this.

    Examples
    --------
    >>> closes_a_circle([frozenset("ab"), frozenset("bc")]), closes_a_circle([frozenset("ab"), frozenset("bc"), frozenset("ca")])
    (False, True)
    """
    left = [set(one) for one in sets]
    while True:
        before = [set(one) for one in left]
        for one in left:
            one -= {name for name in one if sum(name in other for other in left) == 1}
        left = [
            one
            for place, one in enumerate(left)
            if not any(one < other or (one == other and place > at) for at, other in enumerate(left))
        ]
        if left == before:
            return any(left)


def noisy_verdict(
    question: Question, *, limit: int, forecast: float, measured: float, n_certain: int, n_told: int = 0
) -> Verdict:
    """The verdict on counts with cell keys; at best "care", because nothing is proved."""
    reasons = (
        *question.examined(),
        f"They recover {measured:.1%} of the counts below {limit:,} (forecast {forecast:.1%}).",
        "Totals are not the sums of their parts.",
        *question.not_examined(),
    )
    if n_certain:
        certain = f"Readers can be sure of {counted(n_certain, 'small count')}; {n_told:,} of them follow from bounds and sums."
        return Verdict(
            Level.STOP,
            "Do not publish: publish fewer tables or codes, or choose a larger variance.",
            (certain, *reasons),
        )
    return Verdict(
        Level.CARE,
        "Nothing found: by forecast, averaging is less than 95 % certain of each small count, and none follows from bounds and sums, as "
        "far as checked.",
        reasons,
    )


def verdict(
    question: Question,
    *,
    secondary: int,
    is_optimal: bool,
    gap: float,
    n_open: int,
    noun: str,
    rounding: int | None = None,
) -> Verdict:
    """The verdict: fit for publication only if every demand has a witness."""
    if rounding is not None:
        return _rounded_verdict(question, is_optimal=is_optimal, gap=gap, n_open=n_open, beyond=rounding)
    if n_open:
        return Verdict(
            Level.STOP,
            "Do not publish: coarsen the codes, or allow more cells to be hidden.",
            (f"Not proved protected: {counted(n_open, 'primary cell')}.", *question.not_examined()),
        )
    if not question.primary:
        return Verdict(
            Level.OK if not question.doubts() else Level.CARE,
            "Nothing needs to be hidden."
            if not question.doubts()
            else "Nothing needs to be hidden, as far as checked; read what was not checked.",
            tuple(question.not_examined()),
        )
    best = f"a better pattern could save at most {gap:.1%} of the {noun}"
    if is_optimal:
        best = "no pattern is cheaper"
    elif gap == 1:
        best = "how much a better pattern could save was not determined"
    reasons = [
        *question.examined(),
        f"Hidden to protect them: {counted(secondary, 'further cell')}; {best}.",
        *question.not_examined(),
    ]
    if question.doubts():
        return Verdict(
            Level.CARE,
            "Every primary cell is protected, as far as checked; read what was not checked.",
            tuple(reasons),
        )
    return Verdict(Level.OK, "Every primary cell is protected.", tuple(reasons))


def _rounded_verdict(
    question: Question, *, is_optimal: bool, gap: float, n_open: int, beyond: int
) -> Verdict:
    """The verdict on rounded tables: readers know how far a number can be from its value, and that the true numbers add up."""
    near = "less than the base" if not beyond else f"less than {beyond + 1} times the base"
    best = (
        "no consistent table is closer"
        if is_optimal
        else f"a closer table could save at most {gap:.1%} of the distance"
    )
    sentences = [f"Every number is {near} from its value, which readers know; all sums hold, and {best}."]
    if n_open:
        return Verdict(
            Level.STOP,
            "Do not publish: choose a larger base, or coarsen the codes.",
            (
                *sentences,
                f"Readers can narrow down more than their ranges allow: {counted(n_open, 'primary cell')}.",
                *question.not_examined(),
            ),
        )
    if not question.primary:
        reasons = (
            *sentences,
            "No rule says which numbers reveal too much, so none was checked.",
            *question.not_examined(),
        )
        return Verdict(
            Level.CARE, "The tables are rounded and add up; what readers learn was not checked.", reasons
        )
    reasons = (*sentences, *question.examined(), *question.not_examined())
    if question.doubts():
        return Verdict(
            Level.CARE,
            "Every primary cell is protected, as far as checked; read what was not checked.",
            reasons,
        )
    return Verdict(Level.OK, "Every primary cell is protected.", reasons)
