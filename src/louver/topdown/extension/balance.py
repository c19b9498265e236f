"""Edits that all go one way would show in the regions above: each is answered by the opposite change of somebody else.

A leaf with more householders than homes loses some, and none gains any; a state would lose hundreds. So for every person who was
changed, a person of the same class in the nearest region, in a leaf that nobody had to edit, is changed the other way, if that leaf keeps
its bounds and rules: regions that hold both have what was estimated for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from louver._arrays import Ints
from louver.topdown.extension.constraints import Constraints
from louver.topdown.extension.finder import Finder
from louver.topdown.extension.gaps import People
from louver.topdown.extension.problem import Extension
from louver.topdown.problem import SparseLevel

__all__ = ["balance", "people_of"]


def balance(
    extension: Extension,
    known: Constraints,
    finder: Finder,
    leaves: SparseLevel,
    edited: Mapping[int, tuple[People, People]],
) -> dict[int, tuple[People, int]]:
    """Leaves that are changed for others: their people, and how many of them were changed.

    Parameters
    ----------
    leaves : SparseLevel
        As estimated.
    edited : mapping of int to (People, People)
        Leaves that were edited, before and after.
    """
    class_of = extension.refinement.class_of
    others = _Others.of(extension, known, finder, leaves, set(edited))
    answers: dict[int, tuple[People, int]] = {}
    for leaf, old, new in _one_way(class_of, known.kind_of, edited):
        found = others.find(leaf, old, new)
        if found is None:
            continue
        there, mine = found
        choices = finder.cells(int(class_of[old]))
        target = finder.nearest(choices[known.kind_of[choices] == known.kind_of[old]], mine)
        target = old if mine == new else target
        people, n_changed = answers.get(there, (people_of(leaves, there), 0))
        people[mine] -= 1
        people[target] = people.get(target, 0) + 1
        answers[there] = ({cell: count for cell, count in people.items() if count}, n_changed + 1)
    return answers


def people_of(leaves: SparseLevel, leaf: int) -> People:
    """The people of a leaf by cell."""
    span = slice(leaves.start[leaf], leaves.start[leaf + 1])
    return dict(zip(leaves.cell[span].tolist(), leaves.count[span].tolist(), strict=True))


def _one_way(
    class_of: Ints, kind_of: Ints, edited: Mapping[int, tuple[People, People]]
) -> list[tuple[int, int, int]]:
    """Leaf, old and new cell of everybody who was changed, less those whom an edit of another leaf answers already."""
    waiting: dict[tuple[int, int, int], list[tuple[int, int, int]]] = {}
    for leaf, (before, after) in sorted(edited.items()):
        for old, new in _moves(class_of, before, after):
            of_class, kinds = int(class_of[old]), (int(kind_of[old]), int(kind_of[new]))
            opposite = waiting.get((of_class, *kinds[::-1]))
            if opposite:
                opposite.pop()
            else:
                waiting.setdefault((of_class, *kinds), []).append((leaf, old, new))
    return [move for moves in waiting.values() for move in moves]


def _moves(class_of: Ints, before: People, after: People) -> Iterator[tuple[int, int]]:
    """Old and new cell of everybody who was changed."""
    left: dict[int, list[int]] = {}
    for cell, count in before.items():
        left.setdefault(int(class_of[cell]), []).extend([cell] * max(count - after.get(cell, 0), 0))
    for cell, count in sorted(after.items()):
        for _ in range(max(count - before.get(cell, 0), 0)):
            yield left[int(class_of[cell])].pop(0), cell


@dataclass(frozen=True, slots=True, eq=False)
class _Others:
    """People who can be changed for others: entries of leaves that were not edited, by class and kind."""

    extension: Extension
    known: Constraints
    finder: Finder
    ancestor: Ints  # (levels, leaves)
    leaf: Ints  # of every entry
    cell: Ints
    left: Ints  # people of every entry who are as they were
    entry: Ints  # entries by class and kind
    key: Ints  # class and kind of those
    held: Ints  # (rows, leaves)

    @classmethod
    def of(
        cls, extension: Extension, known: Constraints, finder: Finder, leaves: SparseLevel, edited: set[int]
    ) -> _Others:
        spine = extension.design.spine
        ancestor = [np.arange(spine.sizes[-1])]
        for starts in reversed(spine.starts):
            ancestor.insert(0, np.repeat(np.arange(len(starts) - 1), np.diff(starts))[ancestor[0]])
        leaf = np.repeat(np.arange(leaves.n_regions), np.diff(leaves.start))
        kind = known.kind_of[leaves.cell]
        key = extension.refinement.class_of[leaves.cell] * known.coefficient.shape[1] + kind
        entry = np.flatnonzero(~np.isin(leaf, list(edited)))
        entry = entry[np.argsort(key[entry], kind="stable")]
        held = np.zeros(known.lower.shape, dtype=np.int64)
        np.add.at(held.T, leaf, known.coefficient[:, kind].T * leaves.count[:, None])
        return cls(
            extension,
            known,
            finder,
            np.array(ancestor),
            leaf,
            leaves.cell,
            leaves.count.copy(),
            entry,
            key[entry],
            held,
        )

    def find(self, leaf: int, old: int, new: int) -> tuple[int, int] | None:
        """Leaf and cell of the nearest person who can go from a cell like `new` to one like `old`; nobody is found twice."""
        kinds, coefficient = self.known.kind_of, self.known.coefficient
        key = self.extension.refinement.class_of[old] * coefficient.shape[1] + kinds[new]
        found = self.entry[slice(*np.searchsorted(self.key, [key, key + 1]))]
        found = found[self.left[found] > 0]
        change = coefficient[:, kinds[old]] - coefficient[:, kinds[new]]
        rows = np.flatnonzero(change)
        limited = np.ix_(rows, self.leaf[found])
        then = self.held[limited] + change[rows, None]
        is_kept = (then >= self.known.lower[limited]) & (then <= self.known.upper[limited])
        found = found[is_kept.all(axis=0)]
        if not len(found):
            return None
        shared = (self.ancestor[:, self.leaf[found]] == self.ancestor[:, [leaf]]).sum(axis=0)
        found = found[shared == shared.max()]
        cell = self.finder.nearest(self.cell[found], new)
        chosen = int(found[self.cell[found] == cell][0])
        self.left[chosen] -= 1
        self.held[:, self.leaf[chosen]] += change
        return int(self.leaf[chosen]), cell
