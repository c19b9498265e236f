"""One recoding for the whole file, by search: top-down from one block per column, then repeatedly from parts of the best."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence

import numpy as np

from louver._arrays import Bools, Floats, Ints
from louver.anonymize.methods.method import Method, draws
from louver.anonymize.problem import AnonymizeProblem
from louver.anonymize.recoding import Codings, Recoded, Recoding, RecodingSpace
from louver.anonymize.watch import Stopped, Watch
from louver.errors import InfeasibleError
from louver.optim.status import Status

__all__ = ["METHOD", "Lattice", "all_codings", "searched", "solve"]

ROUNDS = 400
"""Number of rounds if neither time nor steps are limited, and number of rounds without improvement after which a search ends."""

JUDGED_PER_STEP = 2_000
"""Number of combinations of codings that the lattice search may evaluate for each step."""

LATTICE_SHARE = 0.5
"""Share of the time after which the lattice search is abandoned."""

BOUND_SHARE = 0.2
"""The same for the lattices of some columns, which prove a bound if the lattice of all columns is too large."""

STARTS = 8
"""Number of initial rounds that begin with one block per column."""

AROUND, ANEW = 0.5, 0.3
"""Share of the rounds that search near the best recoding, and share of the others that begin with one block per column."""

MOST_NEAR = {1: 200, 2: 40, 3: 12}
"""How many codings near a column's own are tried, by how many columns are changed together."""


def solve(problem: AnonymizeProblem, watch: Watch | None = None, *, steps: int | None = None) -> Recoded:
    """The best recoding found.

    Parameters
    ----------
    problem : AnonymizeProblem
    watch : Watch, optional
    steps : int, optional
        Rounds, in place of the time limit: the same answer on every machine.

    Notes
    -----
    Top-down specialisation (Fung, Wang & Yu 2005): from one block per column, the division that saves the most information and leaves no
    more records out than allowed is made, until there is none. A division that fails also fails in every finer recoding, and is not tried
    again. Each round then either makes some columns of the best recoding coarse and divides again, with other weights of the columns in
    every round, or tries all codings near the current ones of two or three columns together. Where columns have few codings, `Lattice`
    rules out or judges all combinations first, and its answer is the optimum.

    **Lower bound**: the least loss of the combinations that an abandoned `Lattice` has not ruled out; if there are too many to examine, the
    bound that `bound_by_columns` proves.

    **Loss**: that of (34), as for classes formed one by one, so the two can be compared.

    **Cost**: a round evaluates about as many recodings as there are values; each evaluation is one count of the points.

    Raises
    ------
    InfeasibleError
        If no recoding was found that meets the requirements: if they are monotone, not even one block per column does.
    """
    watch = watch or Watch()
    space = RecodingSpace.of(problem)
    best, bound = searched(space, watch, steps)
    status = Status.FEASIBLE if bound is None or bound < best.loss else Status.OPTIMAL
    watch.run.check()
    bound = None if bound is None else min(bound, best.loss)
    return space.answer(best, method=METHOD.name, status=status, lower_bound=bound)


def searched(space: RecodingSpace, watch: Watch, steps: int | None) -> tuple[Recoding, float | None]:
    """The best recoding found, and a lower bound on the loss of every recoding; None if no bound is known."""
    with watch.stage("first answer"):
        best = space.judged(space.coarsest)
        if best is not None:
            best = _divided(space, best, np.ones(len(space.domains)), watch)
            _tell(space, best, watch)
        if watch.is_over:
            watch.note(Stopped.UNFINISHED)
    with watch.stage("search"):
        best, bound = _of_all(space, best, watch, steps)
        if best is None:
            raise InfeasibleError(
                "no recoding of these records meets the requirements, not even one value for all; relax them."
            )
        if bound is None or bound < best.loss:
            best = _rounds(space, best, watch, steps)
    return best, bound


def _of_all(
    space: RecodingSpace, best: Recoding | None, watch: Watch, steps: int | None
) -> tuple[Recoding | None, float | None]:
    """The best of all recodings if there are few, and a lower bound on the loss of every recoding."""
    if best is None and space.is_monotone:
        return best, None
    most = None if steps is None else JUDGED_PER_STEP * max(1, steps)
    codings = all_codings(space)
    if codings is None:
        return best, bound_by_columns(space, watch, most or MOST_JUDGED) or None
    lattice = Lattice(space, codings, watch, most, until=LATTICE_SHARE)
    best = lattice.search(best)
    return best, lattice.least if lattice.is_complete or lattice.least > 0 else None


def bound_by_columns(space: RecodingSpace, watch: Watch, max_judged: int) -> float:
    """A lower bound on the loss of every recoding, from the columns with few codings.

    Notes
    -----
    A publishable recoding remains publishable if all columns except a few are put into a single block, and it loses at least what these few
    lose. So the least loss of a lattice of a few columns, with all others in one block, is a bound, and bounds of different columns add up.
    Where records may be left out, only columns with a hierarchy count, because their labels do not depend on the records published.
    """
    if not space.is_monotone or space.out_share < 1:
        return 0.0
    coarsest = [[coding] for coding in space.coarsest]
    own = {
        place: every
        for place, domain in enumerate(space.domains)
        if (space.max_out == 0 or domain.level(domain.coarsest()) is not None)
        and (every := domain.codings()) is not None
    }
    total = 0.0
    for places in _groups_of_columns({place: len(codings) for place, codings in own.items()}):
        codings = [own[place] if place in places else coarsest[place] for place in range(len(space.domains))]
        lattice = Lattice(
            space, codings, watch, max_judged, until=BOUND_SHARE, has_bound=True, is_by_bound=True
        )
        lattice.search(None)
        others = [place for place in range(len(space.domains)) if place not in places]
        total += lattice.least - sum(space.column_loss(place, coarsest[place][0]) for place in others)
    return total


def _groups_of_columns(sizes: dict[int, int]) -> list[set[int]]:
    """Columns in groups of as many as MOST_NODES allows, those with the most codings first."""
    groups: list[set[int]] = []
    for place in sorted(sizes, key=lambda place: -sizes[place]):
        fitting = [
            group for group in groups if math.prod(sizes[one] for one in group) * sizes[place] <= MOST_NODES
        ]
        if fitting:
            fitting[0].add(place)
        else:
            groups.append({place})
    return groups


def _rounds(space: RecodingSpace, best: Recoding, watch: Watch, steps: int | None) -> Recoding:
    """Search near the best recoding, or divide again from parts of it or from the top, until time or steps run out."""
    _tell(space, best, watch)
    drawn = draws()
    n_rounds, n_vain = 0, 0
    while n_rounds < (ROUNDS if steps is None else steps) or (watch.is_limited and n_vain < ROUNDS):
        if watch.is_over:
            break
        watch.share = watch.share_of_time if watch.is_limited else n_rounds / max(1, steps or ROUNDS)
        if n_rounds >= STARTS and next(drawn) < AROUND:
            found = _around(space, best, drawn, watch)
        else:
            is_anew = n_rounds < STARTS or next(drawn) < ANEW
            found = _divided_again(space, best, drawn, watch, is_anew=is_anew)
        n_rounds, n_vain = n_rounds + 1, n_vain + 1
        if found.loss < best.loss * (1 - 1e-12):
            best, n_vain = found, 0
            _tell(space, best, watch)
    if n_vain < ROUNDS:
        watch.note(Stopped.IMPROVING)
    return best


def _tell(space: RecodingSpace, best: Recoding, watch: Watch) -> None:
    watch.found(space.problem, best.loss / space.problem.unit)


def _around(space: RecodingSpace, best: Recoding, drawn: Iterator[float], watch: Watch) -> Recoding:
    """The best of all combinations of codings near those of two or three columns, the others as they are."""
    free = _some(drawn, len(space.domains), 2 + (next(drawn) < 0.5))
    codings = []
    for place, (domain, coding) in enumerate(zip(space.domains, best.codings, strict=True)):
        near = [*domain.splits(coding), *domain.others(coding)] if place in free else []
        while len(near) > MOST_NEAR[len(free)]:
            near.pop(int(next(drawn) * len(near)))
        codings.append([coding, *near])
    return Lattice(space, codings, watch, has_bound=True).search(best) or best


def _divided_again(
    space: RecodingSpace, best: Recoding, drawn: Iterator[float], watch: Watch, *, is_anew: bool
) -> Recoding:
    """Make some columns coarse, or all, and divide again: the others first where possible, in random order."""
    m = len(space.domains)
    coarse = set(range(m)) if is_anew else _some(drawn, m, 1 + int(next(drawn) * 3))
    later = set() if is_anew else coarse
    codings = tuple(
        domain.coarsest() if place in coarse else coding
        for place, (domain, coding) in enumerate(zip(space.domains, best.codings, strict=True))
    )
    start = space.judged(codings)
    if start is None:  # this can happen if coarser recodings may leave out more records
        return best
    weights = np.array([4.0 ** (2 * next(drawn) - 1 - 2 * (place in later)) for place in range(m)])
    return _divided(space, start, weights, watch)


def _some(drawn: Iterator[float], m: int, n: int) -> set[int]:
    """At most `n` of the numbers below `m`, drawn at random."""
    return {int(next(drawn) * m) for _ in range(n)}


def _divided(space: RecodingSpace, start: Recoding, weights: Floats, watch: Watch) -> Recoding:
    """Divide blocks, those that save most first, until no division saves anything; `weights` bends the order by column."""
    best = start
    failed: set[tuple[int, bytes]] = set()
    versions = [0] * len(space.domains)
    heap: list[tuple[float, int, int, bytes]] = []
    for place in range(len(space.domains)):
        _push(heap, space, best.codings, place, versions[place], float(weights[place]), failed)
    while heap and not watch.is_over:
        _, place, version, key = heapq.heappop(heap)
        if version != versions[place]:
            continue
        finer = np.frombuffer(key, np.int64)
        codings = (*best.codings[:place], finer, *best.codings[place + 1 :])
        found = space.judged(codings)
        if found is None or found.loss >= best.loss:
            failed.add(_division(best.codings[place], finer, place))
            continue
        best = found
        versions[place] += 1
        _push(heap, space, best.codings, place, versions[place], float(weights[place]), failed)
    return best


def _push(
    heap: list[tuple[float, int, int, bytes]],
    space: RecodingSpace,
    codings: Codings,
    place: int,
    version: int,
    weight: float,
    failed: set[tuple[int, bytes]],
) -> None:
    """Queue the divisions of a column by what they save, except those that failed before."""
    now = space.column_loss(place, codings[place])
    for finer in space.domains[place].splits(codings[place]):
        saved = now - space.column_loss(place, finer)
        if saved > 0 and _division(codings[place], finer, place) not in failed:
            heapq.heappush(heap, (-saved * weight, place, version, finer.tobytes()))


def _division(coarse: Ints, finer: Ints, place: int) -> tuple[int, bytes]:
    """A division, identified by what it separates: the atoms of the block, and which of them go together."""
    apart = np.flatnonzero(coarse != finer)
    inside = np.flatnonzero(coarse == coarse[apart[0]])
    return place, inside.tobytes() + (finer[inside] == finer[inside[0]]).tobytes()


METHOD = Method(
    name="global",
    solve=lambda problem, watch, options: solve(problem, watch, steps=options.steps),
    is_choice=False,
)


MOST_NODES = 4_000_000
"""Maximum number of combinations of codings held in memory, 17 bytes each."""

MOST_JUDGED = 20_000
"""The same limit if each combination must be evaluated, because leaving records out makes intervals narrower, or because finer recodings
may leave out fewer records."""

LOOK_AHEAD = 4096
"""Number of combinations that are looked up together."""


def all_codings(space: RecodingSpace) -> list[list[Ints]] | None:
    """All codings of every column; None if there are too many combinations to examine each one."""
    found = [domain.codings() for domain in space.domains]
    codings = [one for one in found if one is not None]
    most = MOST_NODES if space.has_bound and space.is_monotone else MOST_JUDGED
    is_small = len(codings) == len(found) and math.prod(map(len, codings)) <= most
    return codings if is_small else None


class Lattice:
    """Every combination of the given codings of the columns, either ruled out or evaluated.

    Parameters
    ----------
    whole : Whole
    codings : sequence of sequence of int64
        For each column.
    watch : Watch
    max_judged : int, optional
    until : float
        Share of the watch's time after which to end.
    has_bound : bool
        Whether the columns' losses are a bound (`RecodingSpace.has_bound`), or are to be treated as one.
    is_by_bound : bool
        Whether the least bound of a publishable recoding is sought, not the least loss.

    Attributes
    ----------
    least : float
        The least bound of all combinations that were not ruled out, at most the loss of the best: every recoding loses at least this much.

    Notes
    -----
    Coarser recodings leave no more records out (`RecodingSpace.is_monotone`). So if one leaves out too many, all finer ones do (predictive
    tagging: Kohlmayer et al. 2012, Flash), even if it divides only a few columns and has all others in one block (LeFevre, DeWitt &
    Ramakrishnan 2005, Incognito). A record loses at least what its values lose, left out or not, so the sum of the columns' losses is a
    bound: exact for hierarchies, and for intervals and sets if no record may be left out. Combinations that are neither ruled out nor
    excluded by their bound are evaluated, starting with those that are coarser than most others, so that each rules out as many
    as possible.

    **Cost**: one count of the points for each combination evaluated; a few bytes for each combination.
    """

    def __init__(
        self,
        space: RecodingSpace,
        codings: Sequence[Sequence[Ints]],
        watch: Watch,
        max_judged: int | None = None,
        *,
        until: float = 1.0,
        has_bound: bool | None = None,
        is_by_bound: bool = False,
    ) -> None:
        self.space, self.watch = space, watch
        self.n_judged, self.is_complete, self.least = 0, True, 0.0
        self._is_by_bound = is_by_bound
        self._max_judged, self._until = max_judged, until
        self._has_bound = space.has_bound if has_bound is None else has_bound
        self._codings = codings
        self._shape = tuple(len(one) for one in codings if len(one) > 1)
        """A column with only one coding has no axis, because the number of axes of an array is limited."""

    def search(self, best: Recoding | None) -> Recoding | None:
        """The best recoding; `is_complete` says whether all other combinations were ruled out."""
        self._bound = _outer(np.add, [self._losses(place) for place in range(len(self._codings))])
        if not self._has_bound:
            self._bound = np.zeros(len(self._bound))
        finer = [_refinements(codings) for codings in self._codings if len(codings) > 1]
        is_out = np.zeros(self._shape, np.bool_)
        for node in self._by_size_below(finer, is_out.reshape(-1), best):
            if best is not None and self._bound[node] >= best.loss:
                continue
            if self._is_over:
                self.is_complete = False
                break
            axes = [int(at) for at in np.unravel_index(node, self._shape)]
            found = self._judged(axes)
            if found is not None and self._is_by_bound:
                found = Recoding(codings=found.codings, loss=float(self._bound[node]))
            if found is None and self.space.is_monotone:
                is_out[np.ix_(*(below[at] for below, at in zip(finer, axes, strict=True)))] = True
            if found is not None and (best is None or found.loss < best.loss):
                best = found
        self.least = self._least(best, is_out.reshape(-1))
        return best

    def _least(self, best: Recoding | None, is_out: Bools) -> float:
        """A lower bound on the loss of every combination; those already evaluated are ruled out or no better than the best."""
        if self.is_complete:
            return 0.0 if best is None else best.loss
        is_open = ~is_out if best is None else ~is_out & (self._bound < best.loss)
        open_bound = float(self._bound[is_open].min(initial=np.inf))
        return min(open_bound, np.inf if best is None else best.loss)

    @property
    def _is_over(self) -> bool:
        is_late = self.watch.is_over or self.watch.share_of_time > self._until
        return is_late or self.n_judged == self._max_judged

    def _losses(self, place: int) -> Floats:
        return np.array([self.space.column_loss(place, coding) for coding in self._codings[place]])

    def _by_size_below(self, finer: Sequence[Bools], is_out: Bools, best: Recoding | None) -> Iterator[int]:
        """Combinations that are not ruled out, those coarser than the most others first."""
        n_below = _outer(np.multiply, [below.sum(axis=1).astype(np.float64) for below in finer])
        open_ = np.arange(len(n_below))
        if best is not None:
            open_ = np.flatnonzero(self._bound < best.loss)
        order = open_[np.argsort(-n_below[open_], kind="stable")]
        for start in range(0, len(order), LOOK_AHEAD):
            part = order[start : start + LOOK_AHEAD]
            for node in part[~is_out[part]].tolist():
                if not is_out[node]:
                    yield node

    def _judged(self, axes: Sequence[int]) -> Recoding | None:
        self.n_judged += 1
        free = iter(axes)
        chosen = tuple(codings[next(free) if len(codings) > 1 else 0] for codings in self._codings)
        return self.space.judged(chosen)


def _outer(combine: np.ufunc, parts: Sequence[Floats]) -> Floats:
    """A number for every combination, from one number per coding of each column."""
    found = np.full(1, combine.identity, np.float64)
    for part in parts:
        found = combine.outer(found, part).reshape(-1)
    return found


def _refinements(codings: Sequence[Ints]) -> Bools:
    """Entry [row, column]: whether the coding of the row is refined by that of the column; each refines itself."""
    table = np.stack(codings)
    refines = np.empty((len(table), len(table)), np.bool_)
    for i, coding in enumerate(table):
        _, first, block = np.unique(coding, return_index=True, return_inverse=True)
        # A coding refines another if the other distinguishes no value from the first value of its block.
        refines[:, i] = (table[:, first[block.reshape(-1)]] == table).all(axis=1)
    return refines
