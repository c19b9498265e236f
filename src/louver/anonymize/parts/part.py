"""Forming the classes of one part: an ordinary problem, whose codes, ranges and labels are those of the whole file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from louver._arrays import Floats, Ints
from louver.anonymize.columns import NumericColumn, given_values
from louver.anonymize.comparison import Bins, Tally, tally
from louver.anonymize.generalise import Published, generalise
from louver.anonymize.metrics import Reached, reached_by
from louver.anonymize.options import AnonymizeOptions
from louver.anonymize.parts.domain import Domain
from louver.anonymize.parts.spill import Spill
from louver.anonymize.problem import Partition, Problem
from louver.anonymize.solve import solve
from louver.anonymize.watch import Stopped, Watch
from louver.engine.engines import Shared
from louver.errors import Cancelled
from louver.optim.status import Status
from louver.run import Run

__all__ = ["PartAnswer", "Piece", "Whole", "bins_of_domain", "form_part"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Whole:
    """What the work on every part needs. Confidential."""

    domain: Domain
    options: AnonymizeOptions
    spill: Spill


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One part.

    Attributes
    ----------
    parts : tuple of int
        As they were cut; several where one alone does not meet what is asked of classes.
    n_records : int
    seconds : float or None
        Its share of the time.
    max_suppressed : int
        Its share of the records that may be left out.
    cores : int or None
        That a method may use; None for all.
    """

    parts: tuple[int, ...]
    n_records: int
    seconds: float | None
    max_suppressed: int
    cores: int | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartAnswer:
    """The classes of one part, and what adds up over parts.

    Attributes
    ----------
    published : tuple of Published
        Intervals of labels name every label between their ends.
    sizes : int64 (classes,)
    lost : float64 (columns,)
        Sum over records of the share lost.
    labels : tuple of int64
        Labels of each ordered column that published records have, and of each sensitive one.
    n_unique : int
        Records alone with their values before.
    bound : float or None
        Loss that every partition of this part has at least.
    stopped : Stopped or None
        Where a limit ended the search.
    """

    published: tuple[Published, ...]
    sizes: Ints
    lost: Floats
    labels: Mapping[str, Ints]
    n_unique: int
    n_suppressed: int
    tally: Tally
    reached: tuple[Reached, ...]
    status: Status
    method: str
    bound: float | None
    subproblem_sizes: tuple[int, ...]
    stopped: Stopped | None


def form_part(shared: Shared[Whole], piece: Piece, run: Run) -> PartAnswer:
    """Form the classes of a part; which of them each record is in goes to a file beside its records."""
    whole = shared.value
    values = whole.spill.read_codes(piece.parts)
    problem = whole.domain.problem(values, whole.options, piece.max_suppressed)
    watch = Watch(_Silent(run), piece.seconds, piece.cores)
    answer = solve(problem, whole.options, watch)
    assert isinstance(answer, Partition)
    class_of = np.empty(problem.n_records, np.int32)
    class_of[problem.rows] = answer.labels
    np.save(whole.spill.labels(piece.parts[0]), class_of)
    return _told(whole.domain, values, problem, answer, watch.stopped)


class _Silent(Run):
    """Tells nobody how far one part is, and ends with another run."""

    def __init__(self, above: Run) -> None:
        super().__init__()
        self._above = above

    def check(self) -> None:
        try:
            self._above.check()
        except Cancelled:
            self.cancel()
        super().check()


def bins_of_domain(domain: Domain) -> list[Bins]:
    """What distributions are compared in, each with the bin of every different value."""
    return [
        Bins(attribute, column, np.arange(len(column.ranks)))
        for attribute, column in zip(domain.attributes, domain.columns, strict=True)
    ]


def _told(
    domain: Domain, values: list[Ints], problem: Problem, answer: Partition, stopped: Stopped | None
) -> PartAnswer:
    members, starts = answer.grouped()
    published = tuple(
        generalise(attribute, column, problem.rows[members], starts, frozenset(attribute.labels))
        for attribute, column in zip(domain.attributes, problem.columns, strict=True)
    )
    bins = bins_of_domain(domain)
    kept = problem.rows[answer.labels >= 0]
    labels = {
        attribute.name: _labels(given_values(column, kept))
        for attribute, column in zip(domain.attributes, problem.columns, strict=True)
        if isinstance(column, NumericColumn) and attribute.labels
    }
    labels |= {asked.name: np.unique(asked.codes[kept]) for asked in problem.sensitive}
    return PartAnswer(
        published=published,
        sizes=answer.sizes,
        lost=problem.lost_shares(answer),
        labels=labels,
        n_unique=int((problem.points().multiplicity == 1).sum()),
        n_suppressed=answer.n_suppressed,
        tally=tally(
            bins, [b.of_records[v] for b, v in zip(bins, values, strict=False)], published, answer.sizes
        ),
        reached=reached_by(problem, answer),
        status=answer.status,
        method=answer.method,
        bound=None if answer.lower_bound is None else answer.lower_bound * problem.unit,
        subproblem_sizes=answer.subproblem_sizes,
        stopped=stopped,
    )


def _labels(codes: Floats) -> Ints:
    return np.unique(codes[~np.isnan(codes)]).astype(np.int64)
