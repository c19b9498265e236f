"""The meaning of a result for the decision to publish: decided once by the verb, rendered everywhere else."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

__all__ = ["RATINGS", "TOO_NOISY", "Level", "Verdict", "rate_error"]


class Level(StrEnum):
    """The severity of a verdict."""

    OK = "ok"
    """Nothing that was examined is disclosed."""
    CARE = "care"
    """Something is disclosed that may or may not matter, or something was left undecided: read the reasons first."""
    STOP = "stop"
    """Do not publish it as it is."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of a verb on its own result.

    The command line, JSON, reports and pages of the explorer render it; none of them judges the result again.

    Attributes
    ----------
    level : Level
    sentence : str
        The conclusion: one sentence that says whether to publish.
    reasons : tuple of str
        The reasons, one sentence each, including what was not examined or not decided.

    Examples
    --------
    >>> found = Verdict(Level.STOP, "Do not publish it as it is.", ("3 small counts can be derived.",))
    >>> print(found)
    3 small counts can be derived. Do not publish it as it is.
    """

    level: Level
    sentence: str
    reasons: tuple[str, ...] = ()

    @property
    def is_risky(self) -> bool:
        """Whether the verdict is not to publish."""
        return self.level is Level.STOP

    def to_dict(self) -> dict[str, Any]:
        """The content of a JSON result."""
        return {"level": str(self.level), "sentence": self.sentence, "reasons": list(self.reasons)}

    def __str__(self) -> str:
        return " ".join((*self.reasons, self.sentence))


RATINGS = ((0.01, "very good"), (0.05, "usable"), (0.2, "rough"))
"""Largest relative error for each word."""
TOO_NOISY = "too noisy alone"


def rate_error(relative: float) -> str:
    """A rating of a noisy number with this relative error by itself.

    Examples
    --------
    >>> rate_error(0.03), rate_error(0.5)
    ('usable', 'too noisy alone')
    """
    return next((word for most, word in RATINGS if relative <= most), TOO_NOISY)
