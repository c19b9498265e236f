"""What was asked about protected tables, what was not, and what the answers amount to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from louver._verdict import Level, Verdict
from louver._words import counted
from louver.protect.load import Loaded

__all__ = ["Question", "closes_a_circle", "question_of", "verdict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What was asked.

    Attributes
    ----------
    primary : int
        Cells that must be protected.
    attackers : int
        Contributors who know themselves, from whom the cells are protected beside the outsider.
    known_percent : float or None
        How well the outsider knows every number beforehand.
    unknown_pairs : int
        Cells with two contributors whose parts are not known, so that neither could be asked about as an attacker.
    asks_contributors : bool
        Whether contributors were asked about at all.
    dependent : tuple of (str, str)
        Attributes of which the records show that the first determines the second, and no hierarchy says so.
    is_circle : bool
        Whether tables are linked in a circle, so that readers could also reason about the crossed table that nobody publishes.
    waived : int
        Cells that a rule calls primary and that are published by decision.
    """

    primary: int
    attackers: int
    known_percent: float | None
    unknown_pairs: int
    asks_contributors: bool
    dependent: tuple[tuple[str, str], ...]
    is_circle: bool
    waived: int

    def to_dict(self) -> dict[str, Any]:
        """The content of a JSON result."""
        return asdict(self) | {"asked": self.asked(), "not_asked": self.not_asked()}

    def asked(self) -> list[str]:
        """In sentences."""
        knows = "that no number is negative"
        if self.known_percent is not None:
            knows = f"every number to within {self.known_percent:g} % beforehand"
        told = [
            f"{counted(self.primary, 'primary cell')} against an outsider who sees all tables and knows {knows}."
        ]
        if self.attackers:
            told.append(
                f"The same against {counted(self.attackers, 'contributor')} who each know their own part and are alone or one of two in a cell."
            )
        return told

    def not_asked(self) -> list[str]:
        """In sentences."""
        told = ["Tables published before, and other variables of the same contributors, were not looked at."]
        if not self.asks_contributors:
            told.append("Contributors who know their own part were not asked about.")
        else:
            told.append(
                "Several contributors who tell each other their numbers were not asked about, unless they are one holding."
            )
        told.append("A reader who knows how the pattern was searched for was not asked about.")
        return told + self.doubts()

    def doubts(self) -> list[str]:
        """What was not asked and could matter here, in sentences."""
        told = []
        if self.is_circle:
            told.append(
                "The tables are linked in a circle: readers who reason about the crossed table behind them, which nobody publishes, were "
                "not asked about."
            )
        for first, second in self.dependent:
            told.append(
                f'In the records "{first}" determines "{second}", but the tables were not linked by that; give "{second}" codes of "{first}".'
            )
        if self.unknown_pairs and self.asks_contributors:
            told.append(
                f"{counted(self.unknown_pairs, 'cell')} with two contributors: what each contributes is not known, so neither was asked about."
            )
        if self.waived:
            told.append(
                f"Published by decision although a rule calls them primary: {counted(self.waived, 'cell')}."
            )
        return told


def question_of(
    loaded: Loaded,
    *,
    primary: int,
    attackers: int,
    known_percent: float | None,
    asks_contributors: bool,
    waived: int,
) -> Question:
    """What was asked about these tables."""
    by_variable: dict[str, list[frozenset[str]]] = {}
    is_many = False
    for table in loaded.tables:
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
        dependent=loaded.dependent,
        is_circle=is_many or any(closes_a_circle(sets) for sets in by_variable.values()),
        waived=waived,
    )


def closes_a_circle(sets: Sequence[frozenset[str]]) -> bool:
    """Whether sets of attributes are linked in a circle (are not decomposable).

    Tables by sets without a circle that agree in what they share always have a crossed table behind them; where there is a circle,
    that there must be one tells readers more (Graham's reduction decides it).

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
    """What the outcome amounts to: fit for publication only where every demand has a witness."""
    if rounding is not None:
        return _rounded_verdict(question, is_optimal=is_optimal, gap=gap, n_open=n_open, beyond=rounding)
    if n_open:
        return Verdict(
            Level.STOP,
            "Do not publish: coarsen the codes, or let more cells be hidden.",
            (f"Not shown to be protected: {counted(n_open, 'primary cell')}.", *question.not_asked()),
        )
    if not question.primary:
        return Verdict(
            Level.OK if not question.doubts() else Level.CARE,
            "Nothing needs to be hidden.",
            tuple(question.not_asked()),
        )
    best = f"a better pattern could save at most {gap:.1%} of the {noun}"
    if is_optimal:
        best = "no pattern is cheaper"
    elif gap == 1:
        best = "how much a better pattern could save was not asked"
    reasons = [
        *question.asked(),
        f"Hidden to protect them: {counted(secondary, 'further cell')}; {best}.",
        *question.not_asked(),
    ]
    if question.doubts():
        return Verdict(
            Level.CARE, "Every primary cell is protected as far as asked; read what was not.", tuple(reasons)
        )
    return Verdict(Level.OK, "Every primary cell is protected.", tuple(reasons))


def _rounded_verdict(
    question: Question, *, is_optimal: bool, gap: float, n_open: int, beyond: int
) -> Verdict:
    """What rounded tables amount to: readers know how far a number can be from its value, and that the true ones add up."""
    near = "less than the base" if not beyond else f"less than {beyond + 1} times the base"
    best = (
        "no table that adds up is nearer"
        if is_optimal
        else f"a nearer table could save at most {gap:.1%} of the distance"
    )
    told = [f"Every number is {near} from its value, which readers know; all sums hold, and {best}."]
    if n_open:
        return Verdict(
            Level.STOP,
            "Do not publish: choose a larger base, or coarsen the codes.",
            (
                *told,
                f"Readers can locate more closely than their ranges allow: {counted(n_open, 'primary cell')}.",
                *question.not_asked(),
            ),
        )
    if not question.primary:
        reasons = (
            *told,
            "No rule says which numbers tell too much, so nothing was asked about them.",
            *question.not_asked(),
        )
        return Verdict(
            Level.CARE, "The tables are rounded and add up; what readers learn was not asked.", reasons
        )
    reasons = (*told, *question.asked(), *question.not_asked())
    if question.doubts():
        return Verdict(
            Level.CARE, "Every primary cell is protected as far as asked; read what was not.", reasons
        )
    return Verdict(Level.OK, "Every primary cell is protected.", reasons)
