"""What the registry says of a method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from louver.anonymize.guarantee import Guarantee
from louver.anonymize.problem import Answer, Problem
from louver.anonymize.watch import Watch
from louver.run import Run

if TYPE_CHECKING:
    from louver.anonymize.options import AnonymizeOptions

__all__ = ["Method"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A way to form classes.

    Attributes
    ----------
    name : str
        As `--method` calls it.
    solve : callable
        Problem, watch and options to classes; keeps to the watch, and to `steps` where they are given.
    guarantee : Guarantee
        What its classes promise; k-anonymity becomes k-map where k counts people of a population.
    own_options : tuple of str
        Options that mean something to this method alone.
    refuses : tuple of str
        Options that it cannot take.
    warm_up : callable, optional
        Compiles what a problem needs, where solving two records of it would compile too much or too little.
    """

    name: str
    solve: Callable[[Problem, Watch, AnonymizeOptions], Answer]
    guarantee: Guarantee = Guarantee.K_ANONYMITY
    own_options: tuple[str, ...] = ()
    refuses: tuple[str, ...] = ()
    warm_up: Callable[[Problem, Run], None] | None = None
