"""Classes of k different units: records of households, published so that a household is as hard to find as a person.

A unit is a household, a business, a person with several records. A class needs records of k different units, and what is constant
within every unit (its region, its size) is generalised alike for all its members; otherwise comparing them would reveal it. Sensitive
values that must be diverse must be diverse among units: nine relatives with nine illnesses are one unit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from louver._arrays import Bools, Ints
from louver.anonymize.columns import Guarantee, Sensitive, build_requirements
from louver.anonymize.methods import auto, exact, greedy
from louver.anonymize.methods.method import Method, draws
from louver.anonymize.problem import AnonymizeProblem, Partition, RecordUnits
from louver.anonymize.watch import Stopped, Watch
from louver.errors import InfeasibleError
from louver.optim.kernels.classes.diversity import N_LIMITS, STOP
from louver.optim.kernels.classes.loss import KIND, N_FIELDS, SET, labels_loss
from louver.optim.status import Status
from louver.run import Run

__all__ = ["METHOD", "UnitPartition", "UnitSearch", "solve", "values_apart"]

LEAST_SECONDS = 0.05
"""A cell that would have less time than this keeps the classes from Greedy Search."""

MOST_CUTS = 16
"""Number of cuts that are tried for a column of a cell."""

MOST_JUDGED = 4096
"""Number of units of a large cell that are used to compare its cuts."""

SEARCH_SHARE = 0.5
"""Share of the time remaining after the tree for moving households between neighbouring cells."""

TRIES_PER_STEP = 50
"""Number of pairs of cells that are tried for each of `--steps`."""

NEAR = 3
"""Greatest distance in tree order at which two cells are tried together."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnitPartition(Partition):
    """Classes, and the cells of units that share the published values of unit-level columns.

    Attributes
    ----------
    cells : int64 (n,)
        Cell of each record, -1 where it is suppressed; a class lies in one cell, and so does a unit.
    shared : tuple of int
        Positions of the columns that are constant within every unit.
    """

    cells: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    shared: tuple[int, ...] = ()

    def covered(self, column: int) -> tuple[Ints, Ints, Ints]:
        """Records that the published values of a column cover: those of the class, or of its cell for a unit-level column."""
        members, starts = self.grouped()
        if column not in self.shared:
            return members, starts, np.arange(len(starts))
        order = np.argsort(self.cells, kind="stable")[self.n_suppressed :]
        firsts = np.flatnonzero(np.diff(self.cells[order], prepend=-1))
        return order, firsts, self.cells[members[starts]]


def solve(
    problem: AnonymizeProblem, watch: Watch | None = None, *, is_auto: bool, steps: int | None = None
) -> UnitPartition:
    """Cells of units, and classes within each.

    Parameters
    ----------
    is_auto : bool
        Move units between cells, then improve the classes of every cell by `auto`, for as long as the time allows.

    Notes
    -----
    Units are put into cells by their unit-level columns, and the records of each cell into classes with k different units by all other
    columns. Narrow cells keep unit-level detail, wide cells give records a choice of classes with many units. `UnitSearch` builds a tree of
    cells, each cut in two where the unit-level columns lose least, down to cells of k units or of equal unit-level values; then every node
    becomes one cell if that loses less than the best cells below it. So every cell is as wide as pays off locally, and the leaves are
    already a valid answer, however little time there is.

    "k different units" is distinct l-diversity of the unit identifier, with l = k. With `l`, a class needs l values from l different units,
    each from another (`values_apart`). Classes that lack them are united with the next one, which preserves all other requirements: they
    hold for a union if they hold for its parts.

    The lower bound is that of `auto.find_neighbours`, for which a class has records of k units: those of one unit are near each other, so
    it is well above the bound for k records.

    **Cost**: depth of the tree times Greedy Search, less for nodes where merging cannot reduce the loss.

    Raises
    ------
    InfeasibleError
        If requirements on sensitive columns cannot be met, not even by all records together.
    """
    watch = watch or Watch()
    assert problem.units is not None
    with watch.stage("first answer"):
        search = UnitSearch(problem, problem.units, watch)
        cells = search.best_of_tree()
        watch.found(problem, sum(cell.loss for cell in cells))
    with watch.stage("bound"):
        bound = search.lower_bound()
    if is_auto and not watch.is_over:
        with watch.stage("search"):
            cells = search.moved(cells, steps)
            cells = search.improved(cells, steps)
    watch.run.check()
    return search.partition(cells, method="auto" if is_auto else "greedy", lower_bound=bound)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Cell:
    """Units that share their published unit-level values.

    Attributes
    ----------
    units : int64
    records : int64 (n,)
    labels : int64 (n,)
        Class of each record.
    shared_loss, own_loss : int
        Loss of the unit-level columns, and of all others.
    """

    units: Ints
    records: Ints
    labels: Ints
    n_classes: int
    shared_loss: int
    own_loss: int

    @property
    def loss(self) -> int:
        return self.shared_loss + self.own_loss


class UnitSearch:
    """The search for cells of units and classes within them."""

    def __init__(self, problem: AnonymizeProblem, units: RecordUnits, watch: Watch) -> None:
        self._problem, self._watch = problem, watch
        self._of_record, self._shared = units.codes[problem.rows], list(units.shared)
        self._order = np.argsort(self._of_record, kind="stable")
        self._start = np.searchsorted(self._of_record[self._order], np.arange(units.n + 1))
        self._size = np.diff(self._start)
        self._codes = problem.codes[self._order[self._start[:-1]]]
        """Codes of the first record of each unit; in unit-level columns these are the codes of the whole unit."""
        fields = problem.geometry[: len(problem.columns) * N_FIELDS].reshape(-1, N_FIELDS)
        self._is_set = fields[:, KIND] == SET
        self._others = [j for j in range(len(problem.columns)) if j not in self._shared]
        required = Sensitive(name="units", codes=units.codes, n_values=units.n, l=problem.k)
        self._required = (*problem.sensitive, required)
        self._all_requirements = build_requirements(
            self._required, problem.rows, problem.codes[:0], problem.rows[:0], 0
        )
        self._n_units = units.n

    def best_of_tree(self) -> list[_Cell]:
        """The best cells that a tree of cuts allows: from the leaves upwards, a node or the best cells below it.

        Invariant: the cells found for a node lose no more than those of its leaves, or there are none because they are infeasible.
        """
        nodes = self._tree()
        best: list[list[_Cell] | InfeasibleError] = []
        for units, first, second in reversed(nodes):
            self._watch.run.check()
            below = None
            if first:
                # Children come after their parent in the tree, so their cells are at this distance from the end of the list.
                below = _together(best[len(nodes) - 1 - first], best[len(nodes) - 1 - second])
            best.append(self._best_of_node(units, below))
        found = best[-1]
        if isinstance(found, InfeasibleError):
            raise found
        return found

    def _tree(self) -> list[tuple[Ints, int, int]]:
        """Nodes with their units and the positions of their halves (0: none), parents before their children."""
        nodes: list[tuple[Ints, int, int]] = [(np.arange(self._n_units), 0, 0)]
        place = 0
        while place < len(nodes):
            self._watch.run.check()
            units = nodes[place][0]
            side = self._best_cut(units)
            if side is not None:
                nodes[place] = (units, len(nodes), len(nodes) + 1)
                nodes += [(units[side], 0, 0), (units[~side], 0, 0)]
            place += 1
        return nodes

    def _best_of_node(
        self, units: Ints, below: list[_Cell] | InfeasibleError | None
    ) -> list[_Cell] | InfeasibleError:
        """The best cells below a node, or the node as one cell if that loses less."""
        if isinstance(below, list):
            least = sum(cell.loss for cell in below)
            if self._shared_loss(units) >= least:
                return below
            if self._watch.is_over:
                self._watch.note(Stopped.UNFINISHED)
                return below
        try:
            whole = self._formed(units, self._greedy)
        except InfeasibleError as error:
            return below if isinstance(below, list) else error
        return below if isinstance(below, list) and least <= whole.loss else [whole]

    def moved(self, cells: list[_Cell], steps: int | None) -> list[_Cell]:
        """Move units between neighbouring cells: merge two cells and cut them again if that loses less."""
        watch, drawn = self._watch, draws()
        end = None if not watch.is_limited else watch.left * (1 - SEARCH_SHARE)
        n_tries = n_vain = 0
        while len(cells) > 1 and n_vain < 4 * len(cells) and not watch.is_over:
            if (
                (n_tries >= TRIES_PER_STEP * steps)
                if steps is not None
                else end is not None and watch.left < end
            ):
                watch.note(Stopped.IMPROVING)
                break
            n_tries, n_vain = n_tries + 1, n_vain + 1
            first = int(next(drawn) * (len(cells) - 1))
            second = min(len(cells) - 1, first + 1 + int(next(drawn) * NEAR))
            one, other = cells[first], cells[second]
            united = np.concatenate([one.units, other.units])
            found = self._best_of_pair(united, one.loss + other.loss, drawn)
            if found is not None:
                cells[first : first + 1], cells[second : second + 1] = found[:1], found[1:]
                n_vain = 0
                watch.found(self._problem, sum(cell.loss for cell in cells))
        return cells

    def improved(self, cells: list[_Cell], steps: int | None) -> list[_Cell]:
        """The classes of every cell by `auto`, starting with those that lose most, each with its share of the remaining time."""
        watch = self._watch
        better = list(cells)
        loss_left = sum(cell.own_loss for cell in cells)
        for place in sorted(range(len(cells)), key=lambda place: -cells[place].own_loss):
            cell = cells[place]
            if not cell.own_loss:
                break
            own = watch.left * cell.own_loss / loss_left if watch.is_limited else None
            loss_left -= cell.own_loss
            if watch.is_over or (own is not None and own < LEAST_SECONDS):
                watch.note(Stopped.UNFINISHED)
                continue
            found = self._cell(cell.units, self._by_auto(own, steps))
            if found is not None and found.loss < cell.loss:
                better[place] = found
        return better

    def _by_auto(self, seconds: float | None, steps: int | None) -> Callable[[AnonymizeProblem], Partition]:
        """Forms the classes of a cell by `auto`."""

        def form(part: AnonymizeProblem) -> Partition:
            # Every cell has its own stop flag: when the time of one cell is over, the others continue.
            watch = Watch(self._watch.run, seconds)
            found = auto.solve(part, watch, steps=steps)
            if found.status is not Status.OPTIMAL:
                self._watch.note(watch.stopped or (Stopped.UNFINISHED if watch.is_over else None))
            return found

        return form

    def lower_bound(self) -> int | None:
        """A lower bound on the loss of any cells and classes, in units: a class extends far enough to have records of k units; None if
        time is up."""
        whole = replace(
            self._problem, units=None, sensitive=self._required, requirements=self._all_requirements
        )
        try:
            return auto.find_neighbours(whole, whole.points(), self._watch, n_wanted=1).lower_bound
        except auto.TimeUpError:
            return None

    def partition(self, cells: Sequence[_Cell], method: str, lower_bound: int | None) -> UnitPartition:
        """The classes of all cells."""
        n = self._problem.n_records
        labels, cell_of = np.empty(n, np.int64), np.empty(n, np.int64)
        n_classes = 0
        for number, cell in enumerate(cells):
            labels[cell.records] = cell.labels + n_classes
            cell_of[cell.records] = number
            n_classes += cell.n_classes
        return UnitPartition(
            labels=labels,
            loss=sum(cell.loss for cell in cells),
            lower_bound=lower_bound,
            method=method,
            cells=cell_of,
            shared=tuple(self._shared),
        )

    def _best_cut(self, units: Ints) -> Bools | None:
        """Which units go to one side, so that unit-level columns lose least; None if no units can be distinguished."""
        if len(units) < 2 * self._problem.k:
            return None
        step = max(1, len(units) // MOST_JUDGED)
        judged = units[::step]
        best, least = None, self._shared_loss(judged)
        for side in self._cuts(units):
            lost = self._shared_loss(judged[side[::step]]) + self._shared_loss(judged[~side[::step]])
            if lost < least:
                best, least = side, lost
        return best

    def _cuts(self, units: Ints) -> Iterator[Bools]:
        """Ways to cut a cell in two with k units on either side: at a value of a column, or one label apart from the others."""
        k, sizes = self._problem.k, self._size[units]
        for j in self._shared:
            values = self._codes[units, j]
            different, place = np.unique(values, return_inverse=True)
            if len(different) < 2:
                continue
            weight = np.bincount(place, sizes)
            chosen = different[:-1]
            if len(chosen) > MOST_CUTS:
                below = np.cumsum(weight)
                at = np.searchsorted(below, np.linspace(0, below[-1], MOST_CUTS + 2)[1:-1])
                chosen = different[np.unique(np.minimum(at, len(different) - 2))]
            sides = [values <= value for value in chosen]
            if self._is_set[j] and len(different) > 2:
                sides += [values == different[at] for at in np.argsort(-weight, kind="stable")[:MOST_CUTS]]
            for side in sides:
                if k <= int(side.sum()) <= len(units) - k:
                    yield side

    def _best_of_pair(self, units: Ints, loss: int, drawn: Iterator[float]) -> list[_Cell] | None:
        """One or two cells of these units that lose less than a given amount."""
        options: list[list[Ints]] = [[units]]
        sides = list(self._cuts(units))
        if sides:
            lost = [self._shared_loss(units[side]) + self._shared_loss(units[~side]) for side in sides]
            chosen = {int(np.argmin(lost)), int(next(drawn) * len(sides))}
            options += [[units[sides[at]], units[~sides[at]]] for at in sorted(chosen)]
        best = None
        for option in options:
            if sum(map(self._shared_loss, option)) >= loss:
                continue
            found = [self._cell(part, self._greedy) for part in option]
            total = sum(cell.loss for cell in found if cell is not None)
            if all(cell is not None for cell in found) and total < loss:
                best, loss = [cell for cell in found if cell is not None], total
        return best

    def _cell(self, units: Ints, form: Callable[[AnonymizeProblem], Partition]) -> _Cell | None:
        try:
            return self._formed(units, form)
        except InfeasibleError:
            return None

    def _greedy(self, part: AnonymizeProblem) -> Partition:
        return greedy.solve(part, self._watch)

    def _records(self, units: Ints) -> Ints:
        """Records of some units."""
        starts, sizes = self._start[units], self._size[units]
        ends = np.cumsum(sizes)
        return self._order[np.repeat(starts - (ends - sizes), sizes) + np.arange(int(ends[-1]))]

    def _shared_loss(self, units: Ints) -> int:
        """Loss of the unit-level columns if these units form one cell."""
        if not self._shared or not len(units):
            return 0
        codes = self._codes[units]
        codes[:, self._others] = codes[0, self._others]
        one = np.zeros(len(units), np.int64)
        per_unit = int(labels_loss(self._problem.geometry, np.ascontiguousarray(codes), one, 1)) // len(units)
        return per_unit * int(self._size[units].sum())

    def _formed(self, units: Ints, form: Callable[[AnonymizeProblem], Partition]) -> _Cell:
        """A cell of these units, its records in classes with k different units."""
        problem, shared = self._problem, self._shared
        members = self._records(units)
        codes = problem.codes[members]
        codes[:, shared] = codes[0, shared]
        sorted_ = np.lexsort([self._of_record[members], *codes.T[::-1]])
        members, codes = members[sorted_], np.ascontiguousarray(codes[sorted_])
        present, number = np.unique(self._of_record[members], return_inverse=True)
        sensitive, limits = (
            self._all_requirements.sensitive[members].copy(),
            self._all_requirements.limits.copy(),
        )
        sensitive[:, -1] = number
        last = (len(self._required) - 1) * N_LIMITS
        limits[last + STOP] += len(present) - self._n_units
        part = replace(
            problem,
            units=None,
            sensitive=self._required,
            rows=problem.rows[members],
            codes=codes,
            requirements=self._all_requirements._replace(sensitive=sensitive, limits=limits),
        )
        found = _diverse_among_units(part, form(part), self._of_record[members])
        return _Cell(
            units=units,
            records=members,
            labels=found.labels,
            n_classes=found.n_classes,
            shared_loss=self._shared_loss(units),
            own_loss=found.loss,
        )


def _together(
    one: list[_Cell] | InfeasibleError, other: list[_Cell] | InfeasibleError
) -> list[_Cell] | InfeasibleError:
    """The cells of both halves, unless one of them has none."""
    if isinstance(one, InfeasibleError):
        return one
    return other if isinstance(other, InfeasibleError) else [*one, *other]


def values_apart(labels: Ints, n_classes: int, units: Ints, values: Ints) -> Ints:
    """Largest number of distinct values per class, each from a different unit: a maximum matching.

    Parameters
    ----------
    labels, units, values : int64 (n,)
        Class, unit and value of each record; a value of -1 is missing.
    """
    triples = np.unique(np.stack([labels, units, values], axis=1)[values >= 0], axis=0)
    _, unit = np.unique(triples[:, :2], axis=0, return_inverse=True)
    pairs, value = np.unique(triples[:, [0, 2]], axis=0, return_inverse=True)
    if not len(pairs):
        return np.zeros(n_classes, np.int64)
    graph = csr_array((np.ones(len(triples), np.int8), (unit.reshape(-1), value.reshape(-1))))
    is_matched = maximum_bipartite_matching(graph, perm_type="row") >= 0
    return np.bincount(pairs[is_matched, 0], minlength=n_classes).astype(np.int64)


def _diverse_among_units(part: AnonymizeProblem, found: Partition, units: Ints) -> Partition:
    """Merge classes until each has l sensitive values that come from l different units."""
    required = [(one.codes[part.rows], math.ceil(one.l)) for one in part.sensitive[:-1] if one.l is not None]
    labels, n_classes = found.labels, found.n_classes
    while True:
        is_short = np.zeros(n_classes, np.bool_)
        for values, least in required:
            is_short |= values_apart(labels, n_classes, units, values) < least
        if not is_short.any():
            break
        if n_classes == 1:
            raise InfeasibleError(
                "no classes of these records have --l sensitive values from as many different units, not even all records together; "
                "ask for a smaller --l."
            )
        labels, n_classes = _united(labels, is_short)
    if n_classes == found.n_classes:
        return found
    loss = int(labels_loss(part.geometry, part.codes, labels, n_classes))
    return replace(found, labels=labels, loss=loss, lower_bound=None, status=Status.FEASIBLE)


def _united(labels: Ints, is_short: NDArray[np.bool_]) -> tuple[Ints, int]:
    """Classes in the order of their first records; each one that falls short joins the next, and the last one joins its predecessor."""
    _, first = np.unique(labels, return_index=True)
    order = np.argsort(first)
    begins = np.concatenate([[True], ~is_short[order][:-1]])
    if is_short[order[-1]]:
        begins[-1] = len(order) == 1
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(begins) - 1
    return number[labels], int(begins.sum())


def warm_up(problem: AnonymizeProblem, run: Run) -> None:
    """Compile the kernels that cells need: those of `auto`, and those of `exact` for cells with few records."""
    auto.warm_up(problem, run)
    exact.solve(replace(problem.tiny(), max_suppressed=1), Watch(run))


METHOD = Method(
    name="units",
    solve=lambda problem, watch, options: solve(
        problem, watch, is_auto=options.method == "auto", steps=options.steps
    ),
    guarantee=Guarantee.K_UNITS,
    warm_up=warm_up,
    is_choice=False,
)
