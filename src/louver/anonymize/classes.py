"""From a problem to classes: runs the chosen method under a time limit and summarises its classes.

A file in memory is one part. The loss, the published values and the risk of classes are described part by part, and add up.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from louver._arrays import Bools, Floats, Ints
from louver.anonymize.coding import shown_codes, up_to_root
from louver.anonymize.columns import Distance, NumericColumn, Sensitive, given_values
from louver.anonymize.comparison import ColumnBins, Tally, tally
from louver.anonymize.generalise import PublishedColumn, generalise
from louver.anonymize.load import Codebook, HeldFile
from louver.anonymize.methods import Method, method_of, priced_bound
from louver.anonymize.methods.freeform import FreeformGroups
from louver.anonymize.methods.method import close_as_published
from louver.anonymize.metrics import MeasuredLimits, measured_diversity
from louver.anonymize.options import AnonymizeOptions
from louver.anonymize.problem import AnonymizeProblem, Grouping, Partition, column_as_published
from louver.anonymize.recoding import Recoded
from louver.anonymize.watch import Stopped, Watch
from louver.data.coded import CodedColumn
from louver.optim.status import Status

__all__ = ["ClassesOfPart", "bins_of_codebook", "describe", "form_classes", "form_in_memory", "solve"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassesOfPart:
    """The classes of one part, and figures that add up over parts.

    Attributes
    ----------
    labels : int64 (n,) or Path
        The class of each record of the part in the order of the source, -1 where it is left out; or the file that holds it.
    published : tuple of PublishedColumn
        Intervals of labels name every label between their ends.
    sizes : int64 (classes,)
    loss : int
        Units lost.
    lost : float64 (columns,)
        Sum over records of the share lost.
    codes : mapping of str to int64
        Codes of each ordered column that published records have, and of each sensitive one.
    n_unique : int
        Records that were unique before generalisation.
    bound : int or None
        Units that every partition of this part loses at least.
    matches : int64 (n,) or None
        How many published records each record fits, if that is not the size of its class.
    people : float64 (classes,) or None
        People of the population that each class stands for by sampling weights, or that it matches.
    units, likely_units : int64 (pairs, 2) or None
        Each class with each of its units: the given units, and those in a column that looks like unit numbers.
    stopped : Stopped or None
        The stage at which a limit ended the search.
    is_exception : bool (classes,) or None
        Which classes are exceptions to one recoding for the whole file.
    """

    labels: Ints | Path
    published: tuple[PublishedColumn, ...]
    sizes: Ints
    loss: int
    lost: Floats
    codes: Mapping[str, Ints]
    n_unique: int
    n_suppressed: int
    tally: Tally
    reached: tuple[MeasuredLimits, ...]
    status: Status
    method: str
    bound: int | None
    unit_of_loss: float
    subproblem_sizes: tuple[int, ...]
    stopped: Stopped | None
    matches: Ints | None = None
    people: Floats | None = None
    units: Ints | None = None
    likely_units: Ints | None = None
    likely_column: str | None = None
    is_exception: Bools | None = None

    def class_of_records(self) -> Ints:
        """The labels, in memory or on disk."""
        return np.asarray(np.load(self.labels) if isinstance(self.labels, Path) else self.labels, np.int64)


def form_in_memory(file: HeldFile, options: AnonymizeOptions, watch: Watch) -> list[ClassesOfPart]:
    """The classes of a file in memory, which is a single part."""
    problem = file.problem.with_k(options.k)
    answer = _with_bound(problem, form_classes(problem, options, watch), options, watch)
    labels = np.full(problem.n_records, -1, np.int64)
    labels[problem.rows] = answer.labels
    return [
        describe(
            file.codebook,
            file.values,
            problem,
            answer,
            labels,
            watch.stopped,
            file.represents,
            file.likely_unit,
        )
    ]


def form_classes(problem: AnonymizeProblem, options: AnonymizeOptions, watch: Watch) -> Grouping:
    """Form classes that may be published."""
    answer = solve(problem, options, watch)
    if options.t is None or not isinstance(answer, Partition):
        return answer
    if not _leaves_values_out(problem, answer):
        return close_as_published(problem, answer, watch)
    # Closeness would be measured against unpublished values; in this case no record is left out, and no bound is known.
    everybody = solve(replace(problem, max_suppressed=0), options, watch)
    assert isinstance(everybody, Partition)
    return replace(everybody, status=Status.FEASIBLE, lower_bound=None)


def _with_bound(
    problem: AnonymizeProblem, answer: Grouping, options: AnonymizeOptions, watch: Watch
) -> Grouping:
    """The answer with the bound that prices prove within their time limit, after compiling the kernels."""
    if options.bound_seconds is None or not isinstance(answer, Partition):
        return answer
    own = Watch(watch.run, options.bound_seconds, watch.cores)
    own.problem = problem

    def work(own: Watch) -> int:
        priced_bound.warm_up(problem)
        own.restart()
        with own.stage("bound"):
            return priced_bound.lower_bound(problem, answer, own, own.cores)

    bound = own.attend(work)
    watch.took["bound"] = watch.took.get("bound", 0.0) + own.took.get("bound", 0.0)
    status = Status.OPTIMAL if bound == answer.loss else answer.status
    return replace(answer, lower_bound=bound, status=status)


def solve(problem: AnonymizeProblem, options: AnonymizeOptions, watch: Watch) -> Grouping:
    """Compile the kernels of the method, then start its clock and return its answer."""
    method = method_of(options)

    def work(watch: Watch) -> Grouping:
        if watch.is_limited:
            with watch.stage("compiling"):
                if method.warm_up is not None:
                    method.warm_up(problem, watch.run)
                else:
                    plain = options.model_copy(update={"carry": None, "steps": 1})
                    method.solve(problem.tiny(), Watch(), plain)
            watch.restart()
        watch.problem, watch.lost, watch.least, watch.stopped = problem, None, None, None
        return _timed(method, problem, options, watch)

    return watch.attend(work)


def _timed(method: Method, problem: AnonymizeProblem, options: AnonymizeOptions, watch: Watch) -> Grouping:
    """The answer; a method without stages of its own counts as search only."""
    began = time.perf_counter()
    answer = method.solve(problem, watch, options)
    if "search" not in watch.took and "first answer" not in watch.took:
        watch.took["search"] = time.perf_counter() - began
    if answer.status is Status.OPTIMAL:
        watch.stopped = None
    elif watch.stopped is None and watch.is_over:
        watch.stopped = Stopped.UNFINISHED
    return answer


def describe(
    codebook: Codebook,
    values: Sequence[Ints],
    problem: AnonymizeProblem,
    answer: Grouping,
    labels: Ints | Path,
    stopped: Stopped | None,
    weights: Floats | None = None,
    likely_unit: CodedColumn | None = None,
) -> ClassesOfPart:
    """The published values, the loss and the risk of the classes of a part.

    Parameters
    ----------
    values : sequence of int64 (n,)
        Numbers of the values of its records.
    weights : float64 (n,), optional
        Their sampling weights.
    """
    published = _generalised(codebook, problem, answer)
    bins = bins_of_codebook(codebook)
    kept = problem.rows[answer.labels >= 0]
    codes = {
        attribute.name: _codes(given_values(column, kept))
        for attribute, column in zip(codebook.attributes, problem.columns, strict=True)
        if isinstance(column, NumericColumn) and attribute.labels
    }
    codes |= {required.name: np.unique(required.codes[kept]) for required in problem.sensitive}
    return ClassesOfPart(
        labels=labels,
        published=published,
        sizes=answer.sizes,
        loss=answer.loss,
        lost=problem.lost_shares(answer),
        codes=codes,
        n_unique=int((problem.points().multiplicity == 1).sum()),
        n_suppressed=answer.n_suppressed,
        tally=tally(
            bins, [b.of_records[v] for b, v in zip(bins, values, strict=False)], published, answer.sizes
        ),
        reached=measured_diversity(problem, answer),
        status=answer.status,
        method=answer.method,
        bound=answer.lower_bound,
        unit_of_loss=problem.unit,
        subproblem_sizes=answer.subproblem_sizes if isinstance(answer, Partition) else (),
        stopped=stopped,
        matches=problem.record_matches(answer) if isinstance(answer, FreeformGroups) else None,
        people=_people(problem, answer, weights),
        units=None if problem.units is None else _pairs(problem, answer, problem.units.codes),
        likely_units=None
        if likely_unit is None or isinstance(answer, FreeformGroups)
        else _pairs(problem, answer, _unit_codes(likely_unit)),
        likely_column=None if likely_unit is None else likely_unit.name,
        is_exception=answer.is_exception if isinstance(answer, Recoded) else None,
    )


def bins_of_codebook(codebook: Codebook) -> list[ColumnBins]:
    """The bins that distributions are compared in, with the bin of every distinct value."""
    return [
        ColumnBins(attribute, column, np.arange(len(column.ranks)))
        for attribute, column in zip(codebook.attributes, codebook.value_columns, strict=True)
    ]


def _generalised(
    codebook: Codebook, problem: AnonymizeProblem, answer: Grouping
) -> tuple[PublishedColumn, ...]:
    """The published values of the classes for every quasi-identifier."""
    published = []
    for place, (attribute, column) in enumerate(zip(codebook.attributes, problem.columns, strict=True)):
        covered, first, of_group = answer.covered(place)
        column = column_as_published(column, answer.levels[place] if answer.levels else None)
        found = generalise(attribute, column, problem.rows[covered], first, frozenset(attribute.labels))
        published.append(replace(found, of_group=found.of_group[of_group]))
    return tuple(published)


def _people(problem: AnonymizeProblem, answer: Grouping, weights: Floats | None) -> Floats | None:
    """People that each class represents by sampling weights, or matches in the population."""
    if weights is not None:
        is_kept = answer.labels >= 0
        n = len(answer.sizes)
        people: Floats = np.bincount(answer.labels[is_kept], weights[problem.rows[is_kept]], minlength=n)  # type: ignore[assignment]
        return people
    if len(problem.requirements.population):
        return problem.population_matches(answer).astype(np.float64)
    return None


def _pairs(problem: AnonymizeProblem, answer: Grouping, unit_of_row: Ints) -> Ints:
    """Each class, with each of its units listed once."""
    is_kept = answer.labels >= 0
    units = unit_of_row[problem.rows[is_kept]]
    pairs: Ints = np.unique(np.stack([answer.labels[is_kept], units], axis=1), axis=0)
    return pairs


def _unit_codes(column: CodedColumn) -> Ints:
    """The unit of each record; a record without a number is a unit of its own."""
    codes = column.codes.astype(np.int64)
    return np.where(codes == column.n_values, column.n_values + np.arange(len(codes)), codes)


def _codes(codes: Floats) -> Ints:
    return np.unique(codes[~np.isnan(codes)]).astype(np.int64)


def _leaves_values_out(problem: AnonymizeProblem, answer: Partition) -> bool:
    """Whether a distance is measured over values, or levels above them, that the published records do not have."""
    kept = problem.rows[answer.labels >= 0]
    return any(_is_measured_by_more(limits, limits.codes[kept]) for limits in problem.sensitive)


def _is_measured_by_more(limits: Sensitive, published: Ints) -> bool:
    shown = shown_codes(published)
    if limits.distance is Distance.ORDERED:
        return len(shown) < limits.n_values
    levels = [np.asarray(level)[shown] for level in limits.ancestors]
    return len(up_to_root(levels)) < len(levels)
