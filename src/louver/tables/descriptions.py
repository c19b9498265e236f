"""Which groups of people are examined: a set of labels for each attribute, and everyone with a label from each set.

Labels that no piece distinguishes count as one (the classes of the domain). Nothing is lost: no reader can know who has which of these
labels, unless nobody has any of them. For an attribute with few classes, every set is examined. For the others the sets are: each class,
each pair, each category and filter of a piece, each node of a hierarchy and each range of an order; the intersections and differences of
categories, filters and nodes; the complements of all these; and each set without the classes that are known by themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

from louver.optim.kernels.audit.boxes import unmoved_boxes
from louver.optim.kernels.audit.propagate import UNBOUNDED
from louver.run import Run
from louver.tables.evidence import Moves
from louver.tables.pieces import Domain, Piece
from louver.tables.system import IntArray

__all__ = ["Box", "Descriptions", "Unmoved", "descriptions"]

MAX_WORK = 1_000_000_000
"""Maximum number of cells that one search may sum (a second or two of work)."""

MAX_ROOM = 30_000_000
"""Maximum number of sums that one search may keep."""

EVERY_SET = (12, 9, 7, 5, 3)
"""Numbers of classes up to which every set is examined; the largest that time allows is used."""

MAX_CLASSES, MAX_FORMED = 30, 64
"""Number of classes up to which pairs and ranges are formed, and number of categories up to which all pairs are compared."""

CAPACITY = 4096
"""Maximum number of boxes that one search returns."""

Box = tuple[tuple[int, ...], ...]
"""A set of classes for each attribute."""


@dataclass(frozen=True, slots=True, eq=False)
class _Family:
    """Sets of classes of one attribute as a forest: each is its parent (-1 for none) plus one class."""

    parent: IntArray
    atom: IntArray
    is_asked: NDArray[np.bool_]
    is_every_set: bool

    @property
    def size(self) -> int:
        return len(self.parent)

    def members(self, number: int) -> tuple[int, ...]:
        found = []
        while number >= 0:
            found.append(int(self.atom[number]))
            number = int(self.parent[number])
        return tuple(sorted(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmoved:
    """Boxes with few people whose counts no witness changes, how many boxes were examined, and whether all are listed."""

    boxes: list[Box]
    n_tested: int
    is_whole: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Descriptions:
    """The sets of each attribute, and how many attributes a description may use.

    Attributes
    ----------
    most : int
        Maximum number of attributes in one description; all of them, unless there are too many descriptions.
    """

    domain: Domain
    families: tuple[_Family, ...]
    most: int

    @property
    def is_whole(self) -> bool:
        """Whether descriptions may use all attributes."""
        return self.most == len(self.families)

    @property
    def some_sets(self) -> tuple[str, ...]:
        """Attributes for which not every set of labels is examined."""
        return tuple(
            attribute.name
            for attribute, family in zip(self.domain.attributes, self.families, strict=True)
            if not family.is_every_set
        )

    def unmoved(self, counts: IntArray, moves: Moves, small: int, run: Run) -> Unmoved | None:
        """Boxes with 0 < count < small whose cells have moves that add up to 0; None if that takes too long.

        Parameters
        ----------
        counts, moves : (n_cells,)
            Counts and moves of the joint cells.
        """
        shape = self.domain.shape
        found: dict[Box, None] = {}
        n_tested, is_whole = 0, True
        for axes in combinations(range(len(shape)), self.most):
            others = tuple(axis for axis in range(len(shape)) if axis not in axes)
            some = [array.reshape(shape).sum(axis=others) for array in (counts, moves)]
            for order in self._orders(axes):
                run.check()
                place = [axes.index(axis) for axis in order]
                look = self._look(order, some[0].transpose(place), some[1].transpose(place), small, run)
                if look is None:
                    return None
                boxes, n_small, is_all = look
                found.update(dict.fromkeys(boxes))
                n_tested = max(n_tested, n_small) if self.is_whole else n_tested + n_small
                is_whole = is_whole and is_all
        return Unmoved(boxes=list(found), n_tested=n_tested, is_whole=is_whole)

    def left_of(self, box: Box, moves: Moves) -> Iterator[Box]:
        """The rest of an unmoved box without the labels of one attribute that have no move.

        Only needed for attributes whose sets are not all examined: for the others, it is a box that is listed in any case.
        """
        own = moves.reshape(self.domain.shape)[np.ix_(*box)]
        for axis, family in enumerate(self.families):
            if family.is_every_set:
                continue
            others = tuple(other for other in range(own.ndim) if other != axis)
            is_moved = own.sum(axis=others, dtype=np.uint64) != 0
            if is_moved.any() and not is_moved.all():
                left = tuple(np.array(box[axis])[is_moved].tolist())
                yield (*box[:axis], left, *box[axis + 1 :])

    def _orders(self, axes: Sequence[int]) -> Iterator[list[int]]:
        """Small families first; each attribute with only some of its sets comes last once, because the rest of a set is examined for the
        last attribute."""
        by_size = sorted(axes, key=lambda axis: self.families[axis].size)
        last = [axis for axis in by_size if not self.families[axis].is_every_set] or by_size[-1:]
        for axis in last:
            yield [*(other for other in by_size if other != axis), axis]

    def _look(
        self, order: Sequence[int], counts: NDArray[np.int64], moves: Moves, small: int, run: Run
    ) -> tuple[list[Box], int, bool] | None:
        families = [self.families[axis] for axis in order]
        shape = np.array(counts.shape, dtype=np.int64)
        sizes = [family.size for family in families]
        rest = np.array([prod(counts.shape[level + 1 :]) for level in range(len(order))], dtype=np.int64)
        room = np.cumsum([counts.size, *(size * int(after) for size, after in zip(sizes, rest, strict=True))])
        if room[-1] > MAX_ROOM + counts.size and self.most > 1:
            return None
        both = [np.zeros(int(room[-1]), dtype=array.dtype) for array in (counts, moves)]
        for array, space in zip((counts, moves), both, strict=True):
            space[: counts.size] = array.ravel()
        out = np.zeros((CAPACITY, len(order)), dtype=np.int64)
        n_found, n_small = unmoved_boxes(
            shape,
            np.cumsum([0, *sizes]),
            np.concatenate([family.parent for family in families]),
            np.concatenate([family.atom for family in families]),
            np.concatenate([family.is_asked for family in families]),
            np.array([family.is_every_set for family in families]),
            rest,
            room[:-1],
            both[0],
            both[1],
            small,
            MAX_WORK if self.most > 1 else UNBOUNDED,
            out,
            run.flag,
        )
        run.check()
        if n_small < 0:
            return None
        boxes = [self._box(order, row, moves) for row in out[:n_found]]
        return boxes, int(n_small), n_found <= CAPACITY

    def _box(self, order: Sequence[int], row: IntArray, moves: Moves) -> Box:
        chosen = [tuple(range(size)) for size in self.domain.shape]
        for axis, number in zip(order, row.tolist(), strict=True):
            chosen[axis] = self.families[axis].members(number if number >= 0 else -1 - number)
        if row[-1] < 0:
            own = moves[np.ix_(*(chosen[axis] for axis in order))]
            is_moved = own.sum(axis=tuple(range(len(order) - 1)), dtype=np.uint64) != 0
            last = order[-1]
            chosen[last] = tuple(np.array(chosen[last])[is_moved].tolist())
        return tuple(chosen)


def descriptions(domain: Domain, pieces: Sequence[Piece]) -> Iterator[Descriptions]:
    """The possible searches, largest first: every set of labels for fewer and fewer attributes, then fewer attributes together."""
    formed = [_formed(domain, axis, pieces) for axis in range(len(domain.shape))]
    before: list[int] = []
    for most in EVERY_SET:
        wide = [axis for axis, size in enumerate(domain.shape) if size <= most]
        if wide != before:
            families = [
                _every_set(size) if axis in wide else formed[axis] for axis, size in enumerate(domain.shape)
            ]
            yield Descriptions(domain=domain, families=tuple(families), most=len(formed))
        before = wide
    for n_attributes in range(len(formed), 0, -1):
        yield Descriptions(domain=domain, families=tuple(formed), most=n_attributes)


def _every_set(n_classes: int) -> _Family:
    """All sets but the empty one, numbered by their bit mask minus 1."""
    bits = np.arange(1, 2**n_classes, dtype=np.int64)
    atom = np.floor(np.log2(bits)).astype(np.int64)
    return _Family(
        parent=bits - (1 << atom) - 1, atom=atom, is_asked=np.ones(len(bits), dtype=bool), is_every_set=True
    )


def _formed(domain: Domain, axis: int, pieces: Sequence[Piece]) -> _Family:
    """The sets of an attribute that are always examined."""
    n_classes = domain.shape[axis]
    every = (1 << n_classes) - 1
    formed = set(_categories(domain, axis, pieces))
    sets = {1 << atom for atom in range(n_classes)} | {every} | formed
    if len(formed) <= MAX_FORMED:
        sets |= {a & b for a in formed for b in formed} | {a & ~b for a in formed for b in formed}
    if n_classes <= MAX_CLASSES:
        sets |= {(1 << a) | (1 << b) for a in range(n_classes) for b in range(a)}
        if domain.attributes[axis].is_ordered:
            sets |= {(1 << b) - (1 << a) for b in range(n_classes + 1) for a in range(b)}
        formed = sets
    sets |= {every & ~chosen for chosen in formed}
    sets.discard(0)
    if len(sets) == every:
        return _every_set(n_classes)
    return _as_forest(sets)


def _categories(domain: Domain, axis: int, pieces: Sequence[Piece]) -> Iterator[int]:
    """Categories and filters of the pieces and nodes of a hierarchy, as bits of classes."""
    attribute = domain.attributes[axis]
    for piece in pieces:
        for cross in piece.crosses:
            if attribute.name in cross.by:
                yield from _by_code(np.arange(domain.shape[axis]), domain.codes(attribute.name, cross))
            if attribute.name in cross.where:
                yield _bits(domain.classes_inside(attribute.name, cross))
    if attribute.hierarchy is not None:
        for level in range(1, attribute.hierarchy.n_levels):
            above = [attribute.hierarchy.ancestor_of(label, level) for label in attribute.labels]
            yield from _by_code(domain.classes[axis], np.unique(above, return_inverse=True)[1])


def _by_code(classes: IntArray, codes: IntArray) -> Iterator[int]:
    """For each code, the classes that it touches."""
    for code in np.unique(codes):
        yield _bits(np.unique(classes[codes == code]))


def _bits(classes: IntArray) -> int:
    return sum(1 << one for one in classes.tolist())


def _as_forest(sets: Iterable[int]) -> _Family:
    """Sets with all steps leading to them, each step before the set it leads to."""
    number: dict[int, int] = {}
    parent: list[int] = []
    atom: list[int] = []

    def add(chosen: int) -> int:
        step, above = 0, -1
        while step != chosen:
            lowest = (chosen & ~step) & -(chosen & ~step)
            step |= lowest
            if step not in number:
                number[step] = len(parent)
                parent.append(above)
                atom.append(lowest.bit_length() - 1)
            above = number[step]
        return above

    wanted = [add(chosen) for chosen in sorted(sets, key=lambda chosen: (chosen.bit_count(), chosen))]
    is_asked = np.zeros(len(parent), dtype=bool)
    is_asked[wanted] = True
    return _Family(
        parent=np.array(parent, dtype=np.int64),
        atom=np.array(atom, dtype=np.int64),
        is_asked=is_asked,
        is_every_set=False,
    )
