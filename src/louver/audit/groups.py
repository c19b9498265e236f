"""A search for small groups of people whose counts the pieces determine.

Every group listed by `descriptions` is tested. A group whose count some table changes is not determined, and the moves of all
tables found so far rule out most groups at once (`witnesses`); each remaining group is decided individually, and the tables
found along the way rule out more.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from louver.audit.cells import UnitCounts
from louver.audit.load import LoadedTables
from louver.run import Run
from louver.tables.descriptions import Box, Descriptions, descriptions
from louver.tables.evidence import Moves, Witnesses
from louver.tables.problem import Forms, TablesProblem, build
from louver.tables.solve import fixed, walk, witnesses_of
from louver.tables.system import IntArray

__all__ = ["FilesAlone", "GroupSearch", "box_cells", "search_groups"]

AT_ONCE = 48
"""Number of groups decided together; the tables found for them rule out most others."""

MAX_FOUND = 100
"""Number of determined groups after which the search stops."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupSearch:
    """Outcome of the search over groups.

    Attributes
    ----------
    descriptions : Descriptions
    n_tested : int
        Groups of fewer than `small` people that were tested; with units, groups that may have fewer than `small` units.
    found : list of Box
        Groups that are determined; none contains another, or a determined cell that was known before.
    undecided : list of Box
        Groups for which this could not be decided.
    is_whole : bool
        Whether nothing was skipped for lack of time; if groups were found, whether they are all.
    is_late : bool
        Whether time ran out.
    """

    descriptions: Descriptions
    n_tested: int
    found: list[Box]
    undecided: list[Box]
    is_whole: bool
    is_late: bool


def search_groups(
    loaded: LoadedTables,
    problem: TablesProblem,
    witnesses: Witnesses,
    known: csr_array,
    small: int,
    run: Run,
    deadline: float = np.inf,
    files: FilesAlone | None = None,
) -> GroupSearch | None:
    """Test every group of fewer than `small` people, or units where they are known.

    Parameters
    ----------
    known : csr_array (cells, unknowns)
        Small cells that are known to be determined, as sums of unknowns; groups that contain one add nothing new.
    files : FilesAlone, optional
        Earlier files: groups whose counts they show by themselves add nothing new either.

    Returns
    -------
    None if no table is known to start from.
    """
    walk(problem, witnesses, run)
    if not witnesses.is_based.all():
        return None
    search = _GroupSearch(loaded, problem, witnesses, known, small, run, deadline, files)
    search.go()
    return search.outcome()


class _GroupSearch:
    """Groups found, groups left open, and the sums known to be determined so far."""

    def __init__(
        self,
        loaded: LoadedTables,
        problem: TablesProblem,
        witnesses: Witnesses,
        known: csr_array,
        small: int,
        run: Run,
        deadline: float,
        files: FilesAlone | None,
    ) -> None:
        self.files = files
        self.shown: dict[Box, bool] = {}
        self.loaded, self.problem, self.witnesses = loaded, problem, witnesses
        self.known, self.small, self.run, self.deadline = known, small, run, deadline
        self.wider = descriptions(loaded.domain, loaded.pieces)
        self.descriptions = next(self.wider)
        self.found: list[Box] = []
        self.undecided: dict[Box, None] = {}
        self.refuted: set[Box] = set()
        self.n_units: dict[Box, int] = {}
        self.n_tested = 0
        self.is_whole = True

    def is_late(self) -> bool:
        self.run.check()
        return time.monotonic() > self.deadline

    def go(self) -> None:
        """Look for groups that no table changes and decide some of them, until none is left or time runs out."""
        while True:
            left, is_listed = self._left()
            if not left:
                self.is_whole = is_listed
                return
            if self.is_late() or len(self.found) >= MAX_FOUND:
                self._give_up(left)
                return
            self._decide(left[:AT_ONCE])

    def _left(self) -> tuple[list[Box], bool]:
        """Groups that no table found so far changes, simplest descriptions first, and whether these are all."""
        counts, moves = self.witnesses.by_cell(self.problem)
        units, limit = self.loaded.units, self.small
        if units is not None:
            counts, limit = units.weights, units.limit(self.small)
        seen = self.descriptions.unmoved(counts, moves, limit, self.run)
        while seen is None:
            self.n_tested, self.descriptions = 0, next(self.wider)
            seen = self.descriptions.unmoved(counts, moves, limit, self.run)
        self.n_tested = max(self.n_tested, seen.n_tested)
        shape = self.loaded.domain.shape
        listed = seen.boxes if units is None else self._of_few(units, seen.boxes, moves)
        boxes = [box for box in listed if box not in self.undecided and box not in self.refuted]
        boxes = self._not_shown(boxes)
        boxes.sort(key=lambda box: _effort(box, shape))
        return self._news(boxes), seen.is_whole

    def _of_few(self, units: UnitCounts, boxes: list[Box], moves: Moves) -> list[Box]:
        """Groups of few units among those of low weight, and among what remains of these without labels that nothing moves."""
        found: dict[Box, None] = {}
        for box in boxes:
            if self._is_few(units, box):
                found[box] = None
            else:
                left = (one for one in self.descriptions.left_of(box, moves) if self._is_few(units, one))
                found.update(dict.fromkeys(left))
        return list(found)

    def _is_few(self, units: UnitCounts, box: Box) -> bool:
        if box not in self.n_units:
            self.n_units[box] = units.among(box_cells(self.loaded.domain.shape, box))
        return 0 < self.n_units[box] < self.small

    def _not_shown(self, boxes: list[Box]) -> list[Box]:
        """Without groups whose counts earlier files show by themselves."""
        if self.files is None:
            return boxes
        new = [box for box in boxes if box not in self.shown]
        shape = self.loaded.domain.shape
        verdict = self.files.shows([box_cells(shape, box) for box in new], self.deadline)
        self.shown |= dict(zip(new, (verdict == 1).tolist(), strict=True))
        unknown = [box for box, one in zip(new, verdict.tolist(), strict=True) if one < 0]
        self.undecided.update(dict.fromkeys(unknown))
        return [box for box in boxes if not self.shown[box] and box not in self.undecided]

    def _news(self, boxes: list[Box]) -> list[Box]:
        """Groups that contain no known one, without duplicates."""
        kept: list[Box] = []
        seen: set[bytes] = set()
        for box in boxes:
            form = box_forms(self.problem, self.loaded.domain.shape, [box]).upper
            key = form.indices.tobytes()
            if key in seen or _holds(form, self.known):
                continue
            seen.add(key)
            kept.append(box)
            if len(kept) > AT_ONCE:
                break
        return kept

    def _decide(self, boxes: list[Box]) -> None:
        forms = box_forms(self.problem, self.loaded.domain.shape, boxes)
        verdict = fixed(self.problem, forms, self.witnesses, self.run, self.deadline)
        self.undecided.update(dict.fromkeys(box for box, one in zip(boxes, verdict, strict=True) if one < 0))
        # Some groups are ruled out by a tight bound alone, without a table whose moves would show it.
        self.refuted.update(box for box, one in zip(boxes, verdict, strict=True) if one == 0)
        for number in np.flatnonzero(verdict == 1):
            form = csr_array(forms.upper[[number]])
            if not _holds(form, self.known):
                self.found.append(boxes[number])
                self.known = csr_array(vstack([self.known, form], format="csr"))

    def _give_up(self, left: list[Box]) -> None:
        self.is_whole = False
        if not self.found:
            self.undecided.update(dict.fromkeys(left))

    def outcome(self) -> GroupSearch:
        return GroupSearch(
            descriptions=self.descriptions,
            n_tested=self.n_tested,
            found=self.found,
            undecided=list(self.undecided),
            is_whole=self.is_whole,
            is_late=self.is_late(),
        )


def _effort(box: Box, shape: Sequence[int]) -> tuple[int, int, Box]:
    """Attributes that a description uses, then labels that it lists."""
    used = [chosen for chosen, size in zip(box, shape, strict=True) if len(chosen) < size]
    return len(used), sum(len(chosen) for chosen in used), box


def _holds(form: csr_array, known: csr_array) -> bool:
    """Whether a sum holds all unknowns of a known one."""
    if not known.shape[0]:
        return False
    is_inside = np.zeros(known.shape[1], dtype=np.int64)
    is_inside[form.indices] = 1
    return bool((known @ is_inside >= np.diff(known.indptr)).any())


class FilesAlone:
    """What earlier files of records show by themselves; it is not charged to tables."""

    def __init__(self, loaded: LoadedTables, run: Run) -> None:
        files = [piece for piece in loaded.pieces if piece.is_file]
        self.run = run
        self.problem = build(loaded.domain, files, loaded.truth, loaded.is_possible)
        self.witnesses = witnesses_of(self.problem, run)
        walk(self.problem, self.witnesses, run)

    def shows(self, groups: Sequence[IntArray], deadline: float = np.inf) -> NDArray[np.int8]:
        """Whether each group of joint cells has the same count in all tables that agree with the files: 1 yes, 0 no, -1 not known."""
        moves = self.witnesses.by_cell(self.problem)[1]
        verdict = np.array([0 if moves[cells].sum(dtype=np.uint64) else -1 for cells in groups], np.int8)
        still = np.flatnonzero(verdict < 0)
        if len(still):
            forms = _forms(self.problem, [groups[place] for place in still.tolist()])
            verdict[still] = fixed(self.problem, forms, self.witnesses, self.run, deadline)
        return verdict


def box_forms(problem: TablesProblem, shape: Sequence[int], boxes: Sequence[Box]) -> Forms:
    """Groups as sums of unknowns."""
    return _forms(problem, [box_cells(shape, box) for box in boxes])


def _forms(problem: TablesProblem, cells_of: Sequence[IntArray]) -> Forms:
    lower, upper = _Rows(), _Rows()
    for cells in cells_of:
        groups = problem.group[cells]
        held, n_held = np.unique(groups[groups >= 0], return_counts=True)
        upper.add(held)
        lower.add(held[n_held == problem.size[held]])
    n_unknowns = problem.system.n_columns
    return Forms(lower=lower.matrix(n_unknowns), upper=upper.matrix(n_unknowns))


def box_cells(shape: Sequence[int], box: Box) -> IntArray:
    """Joint cells of a group, ascending."""
    cells: IntArray = np.ravel_multi_index(np.ix_(*box), tuple(shape)).ravel()
    return cells


class _Rows:
    """Rows of ones, collected one after another."""

    def __init__(self) -> None:
        self.columns: list[IntArray] = []

    def add(self, columns: NDArray[np.int64]) -> None:
        self.columns.append(columns)

    def matrix(self, n_columns: int) -> csr_array:
        indptr = np.cumsum([0, *(len(columns) for columns in self.columns)])
        indices = np.concatenate([np.zeros(0, dtype=np.int64), *self.columns])
        data = np.ones(len(indices), dtype=np.int64)
        return csr_array((data, indices, indptr), shape=(len(self.columns), n_columns))
