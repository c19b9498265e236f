"""The registry entry of a method, and the shared steps: merging and suppressing until classes may be published."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from louver._arrays import Ints
from louver.anonymize.columns import Guarantee
from louver.anonymize.problem import SUPPRESSED, AnonymizeProblem, Grouping, Partition
from louver.anonymize.watch import Watch
from louver.errors import InfeasibleError
from louver.optim.kernels.classes.publishable import suppress_inplace, unite_inplace
from louver.run import Run

if TYPE_CHECKING:
    from louver.anonymize.options import AnonymizeOptions

__all__ = ["Method", "close_as_published", "draws", "repaired"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A method that forms classes.

    Attributes
    ----------
    name : str
        Its name in `--method`.
    solve : callable
        Forms classes from problem, watch and options; respects the watch, and `steps` if given.
    guarantee : Guarantee
        The guarantee of its classes; k-anonymity becomes k-map if k counts people of a population.
    own_options : tuple of str
        Options of this method only.
    refuses : tuple of str
        Options with which it cannot be combined.
    warm_up : callable, optional
        Compiles the kernels that a problem needs, if solving two of its records would compile too much or too little.
    is_choice : bool
        Whether `--method` accepts its name; if not, another option selects it.
    """

    name: str
    solve: Callable[[AnonymizeProblem, Watch, AnonymizeOptions], Grouping]
    guarantee: Guarantee = Guarantee.K_ANONYMITY
    own_options: tuple[str, ...] = ()
    refuses: tuple[str, ...] = ()
    warm_up: Callable[[AnonymizeProblem, Run], None] | None = None
    is_choice: bool = True


def repaired(problem: AnonymizeProblem, labels: Ints, watch: Watch) -> Ints:
    """Labels whose classes all meet the problem's requirements.

    Notes
    -----
    Every requirement is closed under uniting classes, so uniting each failing class with its cheapest partner ends
    with classes that all pass, or with one class that does not. Then records whose absence saves more than they
    themselves cost are left out, as far as the problem allows.

    Once the time is up, failing classes are united with the next in order, and no more records are left out.

    **Cost**: O(failing classes x 8,192 x m) plus the cost given in `louver.optim.kernels.classes.value_runs`;
    suppression O(records left out x n).

    Raises
    ------
    InfeasibleError
        If even the whole table, less what may be left out, does not meet the requirements.
    """
    if problem.is_plain:
        return labels
    labels = np.array(labels, np.int64)
    n_classes = int(labels.max(initial=-1)) + 1
    about = (problem.geometry, problem.requirements, problem.codes, labels, n_classes, problem.least_size)
    spare = problem.max_suppressed - int((labels == SUPPRESSED).sum())
    n_failing = unite_inplace(*about, spare, watch.stop)
    watch.run.check()
    if n_failing:
        raise InfeasibleError(
            "no classes of these records meet the requirements, not even all records together; ask for a smaller k or --l (no "
            "more than a sensitive column has values), or a larger --t."
        )
    spare = problem.max_suppressed - int((labels == SUPPRESSED).sum())
    if spare > 0:
        suppress_inplace(*about, spare, watch.stop)
        watch.run.check()
    return labels


def close_as_published(problem: AnonymizeProblem, partition: Partition, watch: Watch) -> Partition:
    """The partition after merging classes that are close to the whole table but not to its published part.

    The suppressed records remain the same, and so does the table against which closeness is measured.
    """
    members = np.flatnonzero(partition.labels != SUPPRESSED)
    if len(members) in (0, problem.n_records):
        return partition
    united = repaired(problem.kept(members), partition.labels[members], watch)
    if len(np.unique(united)) == partition.n_classes:
        return partition
    labels = partition.labels.copy()
    labels[members] = united
    return problem.partition(labels, method=partition.method, subproblem_sizes=partition.subproblem_sizes)


def draws() -> Iterator[float]:
    """A fixed stream of numbers between 0 and 1 (splitmix64): it guides a search and provides no protection."""
    state = 0
    while True:
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        key = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        key = (key ^ (key >> 27)) * 0x94D049BB133111EB % 2**64
        yield (key ^ (key >> 31)) / 2**64
