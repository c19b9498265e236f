"""One recoding for the whole file, by search: from one block per column downwards, again and again from parts of the best."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import numpy as np

from louver._arrays import Floats, Ints
from louver.anonymize.harmonised import Codings, Recoded, Recoding, Whole
from louver.anonymize.methods.lattice import Lattice, all_codings
from louver.anonymize.methods.method import Method
from louver.anonymize.problem import Problem
from louver.anonymize.watch import Stopped, Watch
from louver.errors import InfeasibleError
from louver.optim.status import Status

__all__ = ["METHOD", "solve"]

ROUNDS = 400
"""Rounds without a limit in time or steps, and rounds without a better recoding after which a search ends."""

JUDGED_PER_STEP = 2_000
"""Combinations of codings that the search of the lattice may judge for each step."""

LATTICE_SHARE = 0.5
"""Share of the time after which the search of the lattice is given up."""

STARTS = 8
"""Rounds that begin with one block per column, first of all."""

AROUND, ANEW = 0.5, 0.3
"""Share of the rounds that look around the best recoding, and, of the others, that begin with one block per column."""

MOST_NEAR = {1: 200, 2: 40, 3: 12}
"""Codings near that of a column that are tried, by how many columns are changed together."""


def solve(problem: Problem, watch: Watch | None = None, *, steps: int | None = None) -> Recoded:
    """The best recoding found.

    Parameters
    ----------
    problem : Problem
    watch : Watch, optional
    steps : int, optional
        Rounds, in place of the time limit: the same answer on every machine.

    Notes
    -----
    Top-down specialisation (Fung, Wang & Yu 2005): from one block per column, the division that saves most information
    and leaves no more records out than allowed is made, until there is none. A division that fails now fails in every finer
    recoding, and is not tried again. Each round then makes some columns of the best recoding coarse and divides again, in
    an order in which columns weigh differently from round to round, or tries all codings near those of two or three columns
    together. Where columns have few codings, `Lattice` rules out or judges all combinations first, and its answer is the optimum.

    **Loss**: that of (34), as for classes formed one by one, so the two can be compared.

    **Cost**: a round judges about as many recodings as there are values; each judgement is one count of the points.

    Raises
    ------
    InfeasibleError
        If no recoding was found that meets the requirements: where they are monotone, not even one block per column does.
    """
    watch = watch or Watch()
    whole = Whole.of(problem)
    with watch.stage("first answer"):
        best = whole.judged(whole.coarsest)
        if best is not None:
            best = _divided(whole, best, np.ones(len(whole.domains)), watch)
            _tell(whole, best, watch)
        if watch.is_over:
            watch.note(Stopped.UNFINISHED)
    with watch.stage("search"):
        best, is_best = _of_all(whole, best, watch, steps)
        if best is None:
            raise InfeasibleError(
                "no recoding of these records meets the requirements, not even one value for all; ask for less."
            )
        if not is_best:
            best = _rounds(whole, best, watch, steps)
    status, bound = (Status.OPTIMAL, best.loss) if is_best else (Status.FEASIBLE, None)
    watch.run.check()
    return whole.answer(best, method=METHOD.name, status=status, lower_bound=bound)


def _of_all(
    whole: Whole, best: Recoding | None, watch: Watch, steps: int | None
) -> tuple[Recoding | None, bool]:
    """The best of all recodings, where they are few; and whether it is."""
    codings = all_codings(whole)
    if codings is None or (best is None and whole.is_monotone):
        return best, False
    most = None if steps is None else JUDGED_PER_STEP * max(1, steps)
    lattice = Lattice(whole, codings, watch, most, until=LATTICE_SHARE)
    return lattice.search(best), lattice.is_complete


def _rounds(whole: Whole, best: Recoding, watch: Watch, steps: int | None) -> Recoding:
    """Look around the best recoding, or divide again from parts of it or from the top, until time or steps are over."""
    _tell(whole, best, watch)
    draws = _draws()
    n_rounds, n_vain = 0, 0
    while n_rounds < (ROUNDS if steps is None else steps) or (watch.is_limited and n_vain < ROUNDS):
        if watch.is_over:
            break
        watch.share = watch.share_of_time if watch.is_limited else n_rounds / max(1, steps or ROUNDS)
        if n_rounds >= STARTS and next(draws) < AROUND:
            found = _around(whole, best, draws, watch)
        else:
            is_anew = n_rounds < STARTS or next(draws) < ANEW
            found = _divided_again(whole, best, draws, watch, is_anew=is_anew)
        n_rounds, n_vain = n_rounds + 1, n_vain + 1
        if found.loss < best.loss * (1 - 1e-12):
            best, n_vain = found, 0
            _tell(whole, best, watch)
    if n_vain < ROUNDS:
        watch.note(Stopped.IMPROVING)
    return best


def _tell(whole: Whole, best: Recoding, watch: Watch) -> None:
    watch.found(whole.problem, best.loss / whole.problem.unit)


def _around(whole: Whole, best: Recoding, draws: Iterator[float], watch: Watch) -> Recoding:
    """The best of all combinations of codings near those of two or three columns, the others as they are."""
    free = _some(draws, len(whole.domains), 2 + (next(draws) < 0.5))
    codings = []
    for place, (domain, coding) in enumerate(zip(whole.domains, best.codings, strict=True)):
        near = [*domain.splits(coding), *domain.others(coding)] if place in free else []
        while len(near) > MOST_NEAR[len(free)]:
            near.pop(int(next(draws) * len(near)))
        codings.append([coding, *near])
    return Lattice(whole, codings, watch, has_bound=True).search(best) or best


def _divided_again(
    whole: Whole, best: Recoding, draws: Iterator[float], watch: Watch, *, is_anew: bool
) -> Recoding:
    """Some columns made coarse, or all, and divided again: those that were not first, and others by chance."""
    m = len(whole.domains)
    coarse = set(range(m)) if is_anew else _some(draws, m, 1 + int(next(draws) * 3))
    later = set() if is_anew else coarse
    codings = tuple(
        domain.coarsest() if place in coarse else coding
        for place, (domain, coding) in enumerate(zip(whole.domains, best.codings, strict=True))
    )
    start = whole.judged(codings)
    if start is None:  # where coarser recodings may leave out more
        return best
    weights = np.array([4.0 ** (2 * next(draws) - 1 - 2 * (place in later)) for place in range(m)])
    return _divided(whole, start, weights, watch)


def _some(draws: Iterator[float], m: int, n: int) -> set[int]:
    """At most so many of m numbers."""
    return {int(next(draws) * m) for _ in range(n)}


def _draws() -> Iterator[float]:
    """A fixed stream of numbers between 0 and 1 (splitmix64): it steers a search and protects nobody."""
    state = 0
    while True:
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        key = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        key = (key ^ (key >> 27)) * 0x94D049BB133111EB % 2**64
        yield (key ^ (key >> 31)) / 2**64


def _divided(whole: Whole, start: Recoding, weights: Floats, watch: Watch) -> Recoding:
    """Divide blocks, those first that save most, until no division saves anything; `weights` bends the order by column."""
    best = start
    failed: set[tuple[int, bytes]] = set()
    versions = [0] * len(whole.domains)
    heap: list[tuple[float, int, int, bytes]] = []
    for place in range(len(whole.domains)):
        _push(heap, whole, best.codings, place, versions[place], float(weights[place]), failed)
    while heap and not watch.is_over:
        _, place, version, key = heapq.heappop(heap)
        if version != versions[place]:
            continue
        finer = np.frombuffer(key, np.int64)
        codings = (*best.codings[:place], finer, *best.codings[place + 1 :])
        found = whole.judged(codings)
        if found is None or found.loss >= best.loss:
            failed.add(_division(best.codings[place], finer, place))
            continue
        best = found
        versions[place] += 1
        _push(heap, whole, best.codings, place, versions[place], float(weights[place]), failed)
    return best


def _push(
    heap: list[tuple[float, int, int, bytes]],
    whole: Whole,
    codings: Codings,
    place: int,
    version: int,
    weight: float,
    failed: set[tuple[int, bytes]],
) -> None:
    """Queue the divisions of a column by what they save, but those that failed before."""
    now = whole.column_loss(place, codings[place])
    for finer in whole.domains[place].splits(codings[place]):
        saved = now - whole.column_loss(place, finer)
        if saved > 0 and _division(codings[place], finer, place) not in failed:
            heapq.heappush(heap, (-saved * weight, place, version, finer.tobytes()))


def _division(coarse: Ints, finer: Ints, place: int) -> tuple[int, bytes]:
    """A division by what it tells apart: the atoms of the block, and which of them go together."""
    apart = np.flatnonzero(coarse != finer)
    inside = np.flatnonzero(coarse == coarse[apart[0]])
    return place, inside.tobytes() + (finer[inside] == finer[inside[0]]).tobytes()


METHOD = Method(
    name="global", solve=lambda problem, watch, options: solve(problem, watch, steps=options.steps)
)
