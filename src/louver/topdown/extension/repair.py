"""The final edit: leaves that break a bound or an edit rule are changed as little as possible.

In every such leaf, as few people as possible are given another cell of their own class of the first release, so that all bounds hold and,
where possible, all rules; no number of the first release changes. The regions above are the sums of the leaves; for every person who was
changed, someone nearby is changed in the opposite way.

Edits in the same direction would add up in the regions above, so each is balanced by the opposite change of another person.

For example, leaves with more householders than homes lose some, no leaf gains any, and a state would lose hundreds. So for every person who
was changed, a person of the same class in the nearest region, in a leaf that needed no edit, is changed in the opposite way, if that leaf
still satisfies its bounds and rules. Regions that contain both then keep their estimated counts.

In leaves of one household, ages (or else roles in the household) are changed until they fit the head's age.

Notes
-----
**Implements**: Abowd et al. (2019), section 8.2.3, the edit phase after Fellegi & Holt, for items 4 to 6 (ERRATA T2) and for bounds that
the allocation could not satisfy; items 8 to 10 follow. **Implements**: Abowd et al. (2019), section 8.2.2, for items 8 to 10, on a
best-effort basis. The head remains the head, at any age that its class allows. Given the head's age, the other people are independent, so
the head's ages are tried in ascending order of the number of people who would have to change. Bounds and rules are broken no more than
before: cells that they treat alike are tried first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy.sparse import csr_array

from louver._arrays import Bools, Floats, Ints
from louver.errors import InfeasibleError
from louver.optim.highs import solve_linear
from louver.optim.status import Status
from louver.run import Run
from louver.topdown.extension.constraints import Constraints, Finder, allowed_kinds
from louver.topdown.extension.problem import Extension, Household
from louver.topdown.knowledge.implied import UNBOUNDED
from louver.topdown.problem import SparseLevel

__all__ = ["Edits", "People", "balance", "check_extendable", "people_of", "repair", "settle"]

BROKEN = 1e4
"""Cost, in people changed, of leaving a rule broken by one person."""

RARE = 1e-2
"""Cost, in people changed, of moving to a kind that no one in the class has, so that the most likely of several ways is chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """The findings and changes of the final edit.

    Parameters
    ----------
    broken_before, broken_after : mapping of str to int
        For every bound, rule and gap, the number of leaves that break it; no bound is broken afterwards.
    leaves : int
        Number of leaves in which somebody was changed.
    people : int
        People changed.
    """

    broken_before: dict[str, int]
    broken_after: dict[str, int]
    leaves: int
    people: int


def check_extendable(extension: Extension, run: Run | None = None) -> None:
    """Refuse bounds that no extension of the first release can satisfy; nothing has been spent yet.

    Raises
    ------
    InfeasibleError
        Names a leaf. Bounds known early enough are best stated in the first release's spec too.
    """
    if not extension.design.statements:
        return
    known = Constraints.of(extension)
    allowed = allowed_kinds(extension, known)
    first = extension.first.leaves
    bounds = slice(0, known.n_bounds)
    in_set = known.coefficient[bounds] > 0
    for leaf in range(first.n_regions):
        if run is not None:
            run.check()
        span = slice(first.start[leaf], first.start[leaf + 1])
        # No people are missing, and all have a kind that no bound limits here.
        is_limited = (in_set & (known.upper[bounds, leaf] < UNBOUNDED)[:, None]).any(axis=0)
        if (
            not known.lower[bounds, leaf].any()
            and (allowed[first.cell[span]] & ~is_limited).any(axis=1).all()
        ):
            continue
        if _reassigned(known, leaf, first.cell[span], first.count[span], allowed, None) is None:
            code = extension.design.spine.leaves[leaf]
            message = (
                f'the people whom {extension.first.path.name} has in {extension.design.spine.names[-1]} "{code}" cannot '
                "satisfy the bounds, "
                "whatever their other attributes; correct the bounds, or state them in the first release's spec."
            )
            raise InfeasibleError(message, clash=(leaf,))


def repair(extension: Extension, leaves: SparseLevel, run: Run | None = None) -> tuple[SparseLevel, Edits]:
    """Edit all leaves that break something: first bounds and rules, then ages in leaves of one household."""
    known, household = Constraints.of(extension), extension.household
    if not known.names and household is None:
        return leaves, Edits(broken_before={}, broken_after={}, leaves=0, people=0)
    before, finder = _broken(extension, known, leaves), Finder.of(extension, known)
    editor = _Editor(extension, leaves, run or Run())
    rare = _rarity(extension, known, leaves)
    edited = editor.edit(known.broken(leaves), partial(_edit_leaf, extension, known, finder, rare))
    editor.keep(balance(extension, known, finder, leaves, edited))
    if household is not None:
        class_of = extension.refinement.class_of
        editor.edit(household.broken(editor.leaves), partial(settle, household, known, finder, class_of))
    after = _broken(extension, known, editor.leaves)
    assert not any(after[name] for name in known.names[: known.n_bounds])
    return editor.leaves, Edits(
        broken_before=before, broken_after=after, leaves=len(editor.edited), people=editor.n_people
    )


def _rarity(extension: Extension, known: Constraints, leaves: SparseLevel) -> Floats:
    """The share of a class that is not of a kind, over all leaves together, (classes, kinds)."""
    people = np.zeros((extension.first.n_cells, known.coefficient.shape[1]))
    np.add.at(people, (extension.refinement.class_of[leaves.cell], known.kind_of[leaves.cell]), leaves.count)
    return np.asarray(1.0 - people / np.maximum(people.sum(axis=1, keepdims=True), 1.0))


def _broken(extension: Extension, known: Constraints, leaves: SparseLevel) -> dict[str, int]:
    """In how many leaves each bound, rule and gap is broken."""
    found = dict(zip(known.names, known.broken(leaves).sum(axis=1).tolist(), strict=True))
    if extension.household is not None:
        gaps = extension.household.broken(leaves).sum(axis=1).tolist()
        found |= {gap.name: n_leaves for gap, n_leaves in zip(extension.household.gaps, gaps, strict=True)}
    return found


@dataclass(slots=True)
class _Editor:
    """The leaves during editing, which of them were edited, and how many people were changed."""

    extension: Extension
    leaves: SparseLevel
    run: Run
    edited: set[int] = field(default_factory=set)
    n_people: int = 0

    def edit(
        self, broken: Bools, change: Callable[[int, People], tuple[People, int]]
    ) -> dict[int, tuple[People, People]]:
        """Change every leaf that breaks something; those that were changed, before and after."""
        done: dict[int, tuple[People, int]] = {}
        before = {leaf: people_of(self.leaves, leaf) for leaf in np.flatnonzero(broken.any(axis=0)).tolist()}
        for number, (leaf, people) in enumerate(before.items(), start=1):
            done[leaf] = change(leaf, people)
            self.run.report("editing", number, len(before))
        self.keep(done)
        return {leaf: (before[leaf], people) for leaf, (people, n_changed) in done.items() if n_changed}

    def keep(self, done: Mapping[int, tuple[People, int]]) -> None:
        """Put changed leaves back in place."""
        changed = {leaf: people for leaf, (people, n_changed) in done.items() if n_changed}
        self.leaves = _replaced(
            self.leaves, {leaf: self._ordered(people) for leaf, people in changed.items()}
        )
        self.n_people += sum(n_changed for _, n_changed in done.values())
        self.edited |= set(changed)

    def _ordered(self, people: People) -> tuple[Ints, Ints]:
        """Cells by classes of the first release, and counts."""
        left = np.array(sorted(people), dtype=np.int64)
        left = left[np.argsort(self.extension.refinement.class_of[left], kind="stable")]
        return left, np.array([people[cell] for cell in left.tolist()], dtype=np.int64)


def _reassigned(
    known: Constraints,
    leaf: int,
    classes: Ints,
    people: Ints,
    allowed: Bools,
    held: Ints | None,
    rare: Floats | None = None,
) -> Ints | None:
    """People of each class by kind (classes, kinds) that satisfy the bounds and, at a price, the rules; None if impossible.

    Relative to the current people `held`, as few as possible move.
    """
    place, kind = np.nonzero(allowed[classes])
    n, n_classes = len(place), len(classes)
    if not n:  # nobody lives there
        return (
            None if (known.lower[:, leaf] > 0).any() else np.zeros((0, known.coefficient.shape[1]), np.int64)
        )
    n_rules = len(known.names) - known.n_bounds if held is not None else 0
    rows = known.coefficient[: known.n_bounds + n_rules][:, kind]
    now = np.zeros(n) if held is None else held[place, kind].astype(np.float64)
    price = np.ones(n) if rare is None else 1.0 + RARE * rare[classes[place], kind]
    # Unknowns: people, people who moved in, and the excess over each rule.
    matrix = np.zeros((n_classes + n + len(rows), 2 * n + n_rules))
    matrix[place, np.arange(n)] = 1.0
    matrix[n_classes : n_classes + n, :n] = -np.eye(n)
    matrix[n_classes : n_classes + n, n : 2 * n] = np.eye(n)
    matrix[n_classes + n :, :n] = rows
    matrix[n_classes + n + known.n_bounds :, 2 * n :] = np.eye(n_rules)
    upper = known.upper[: len(rows), leaf].astype(np.float64)
    status, x = solve_linear(
        np.concatenate([np.zeros(n), price, np.full(n_rules, BROKEN)]),
        csr_array(matrix),
        np.concatenate([people, -now, known.lower[: len(rows), leaf]]),
        np.concatenate([people, np.full(n, np.inf), np.where(upper >= UNBOUNDED, np.inf, upper)]),
        np.zeros(2 * n + n_rules),
        np.full(2 * n + n_rules, np.inf),
        is_integer=True,
    )
    if status is not Status.OPTIMAL or x is None:
        return None
    answer = np.zeros((n_classes, known.coefficient.shape[1]), dtype=np.int64)
    answer[place, kind] = np.rint(x[:n])
    return answer


def _edit_leaf(
    extension: Extension, known: Constraints, finder: Finder, rare: Floats, leaf: int, people: People
) -> tuple[People, int]:
    """The people of a leaf with as few changes as possible, and the number of people changed."""
    cells, counts = np.array(list(people), dtype=np.int64), np.array(list(people.values()), dtype=np.int64)
    classes, place = np.unique(extension.refinement.class_of[cells], return_inverse=True)
    kinds = known.kind_of[cells]
    held = np.zeros((len(classes), known.coefficient.shape[1]), dtype=np.int64)
    np.add.at(held, (place, kinds), counts)
    wanted = _reassigned(known, leaf, classes, held.sum(axis=1), finder.allowed, held, rare)
    assert wanted is not None, "checked before anything was spent"
    now, n_changed = dict(people), 0
    for row, old, new in _moves(held, wanted):
        mine = cells[(place == row) & (kinds == old)].tolist()
        source = max((cell for cell in mine if now[cell]), key=lambda cell: now[cell])
        found = finder.cells(int(classes[row]))
        target = finder.nearest(found[known.kind_of[found] == new], source)
        now[source] -= 1
        now[target] = now.get(target, 0) + 1
        n_changed += 1
    return {cell: count for cell, count in now.items() if count}, n_changed


def _moves(held: Ints, wanted: Ints) -> Iterator[tuple[int, int, int]]:
    """Class, old and new kind of every person who is changed."""
    for row in range(len(held)):
        change = wanted[row] - held[row]
        leaving = np.repeat(np.arange(len(change)), np.maximum(-change, 0))
        coming = np.repeat(np.arange(len(change)), np.maximum(change, 0))
        for old, new in zip(leaving.tolist(), coming.tolist(), strict=True):
            yield row, old, new


def _replaced(leaves: SparseLevel, edited: dict[int, tuple[Ints, Ints]]) -> SparseLevel:
    """The leaves, some of them replaced by their edited state."""
    if not edited:
        return leaves
    parts, begun = [], 0
    for leaf, (cells, counts) in sorted(edited.items()):
        parts.append(leaves.part(begun, leaf))
        parts.append(SparseLevel(start=np.array([0, len(cells)]), cell=cells, count=counts))
        begun = leaf + 1
    parts.append(leaves.part(begun, leaves.n_regions))
    return SparseLevel.concatenate(parts)


People = dict[int, int]
"""Cell -> people of a leaf in it, without empty cells."""


def settle(
    household: Household, known: Constraints, finder: Finder, class_of: Ints, leaf: int, people: People
) -> tuple[People, int]:
    """A leaf of one household in which as many people as possible fit after few changes, and the number of people changed."""
    cells = np.array(list(people), dtype=np.int64)
    counts = np.array(list(people.values()), dtype=np.int64)
    head = int(cells[household.head[cells]][0])
    seats = finder.cells(int(class_of[head]))
    seats = seats[household.head[seats] & (finder.kind_of[seats] == finder.kind_of[head])]
    ages, age_now = np.unique(household.years[seats]), household.years[head]
    misfit = np.array([household.misfits(cells, np.full(len(cells), age)).any(axis=0) for age in ages])
    least = misfit @ counts + (ages != age_now)
    best, price = people, (int(counts.sum()), 0)  # people who do not fit, people changed
    for number in np.lexsort((np.abs(ages - age_now), least)).tolist():
        if (0, least[number]) >= price:
            break
        age = int(ages[number])
        tried = _Leaf(household, known, finder, class_of, leaf, dict(people))
        if age != age_now:
            tried.move(head, finder.nearest(seats[household.years[seats] == age], head))
        n_left = tried.place_all(cells[misfit[number]].tolist(), age)
        if (n_left, least[number] - n_left) < price:
            best, price = tried.people, (n_left, int(least[number]) - n_left)
    return best, price[1]


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A leaf while it is changed."""

    household: Household
    known: Constraints
    finder: Finder
    class_of: Ints
    leaf: int
    people: People

    def move(self, old: int, new: int) -> None:
        """Give one person another cell."""
        self.people[old] -= 1
        if not self.people[old]:
            del self.people[old]
        self.people[new] = self.people.get(new, 0) + 1

    def place_all(self, cells: list[int], age: int) -> int:
        """Move everyone in some cells to fitting ones; each move may make room for others. Returns how many people fit nowhere."""
        n_left = sum(self.people[cell] for cell in cells)
        while n_left:
            left = {cell: self.place(cell, age) for cell in cells}
            if sum(left.values()) == n_left:
                break
            n_left, cells = sum(left.values()), [cell for cell in cells if left[cell]]
        return n_left

    def place(self, cell: int, age: int) -> int:
        """Move everyone in a cell to one that fits a head of this age; returns how many people fit nowhere."""
        found = self.finder.cells(int(self.class_of[cell]))
        found = found[self.household.members[found] & ~self.household.head[found]]
        found = found[~self.household.misfits(found, np.full(len(found), age)).any(axis=0)]
        alike = found[self.finder.kind_of[found] == self.finder.kind_of[cell]]
        others = self.household.apart_from_years
        aged = alike[others[alike] == others[cell]]
        alike = aged if len(aged) else alike
        for n_left in range(self.people[cell], 0, -1):
            kept = alike if len(alike) else found[self._excess(cell, found) <= 0]
            if not len(kept):
                return n_left
            self.move(cell, self.finder.nearest(kept, cell))
        return 0

    def _excess(self, cell: int, found: Ints) -> Ints:
        """For each of the given cells, by how much more bounds or rules would be broken if one person moved there."""
        kinds = self.finder.kind_of
        now = np.array(list(self.people), dtype=np.int64)
        counts = np.array(list(self.people.values()), dtype=np.int64)
        coefficient = self.known.coefficient
        held = (coefficient[:, kinds[now]] @ counts)[:, None]
        then = held + coefficient[:, kinds[found]] - coefficient[:, [kinds[cell]]]
        lower, upper = self.known.lower[:, [self.leaf]], self.known.upper[:, [self.leaf]]
        more = [np.maximum(lower - x, 0) + np.maximum(x - upper, 0) for x in (then, held)]
        return np.asarray((more[0] - more[1]).max(axis=0, initial=0))


def balance(
    extension: Extension,
    known: Constraints,
    finder: Finder,
    leaves: SparseLevel,
    edited: Mapping[int, tuple[People, People]],
) -> dict[int, tuple[People, int]]:
    """Leaves changed to balance others: their people, and how many of them were changed.

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
    """Leaf, old and new cell of everyone who was changed, except those already balanced by an edit of another leaf."""
    waiting: dict[tuple[int, int, int], list[tuple[int, int, int]]] = {}
    for leaf, (before, after) in sorted(edited.items()):
        for old, new in _moves_back(class_of, before, after):
            of_class, kinds = int(class_of[old]), (int(kind_of[old]), int(kind_of[new]))
            opposite = waiting.get((of_class, *kinds[::-1]))
            if opposite:
                opposite.pop()
            else:
                waiting.setdefault((of_class, *kinds), []).append((leaf, old, new))
    return [move for moves in waiting.values() for move in moves]


def _moves_back(class_of: Ints, before: People, after: People) -> Iterator[tuple[int, int]]:
    """Old and new cell of everyone who was changed."""
    left: dict[int, list[int]] = {}
    for cell, count in before.items():
        left.setdefault(int(class_of[cell]), []).extend([cell] * max(count - after.get(cell, 0), 0))
    for cell, count in sorted(after.items()):
        for _ in range(max(count - before.get(cell, 0), 0)):
            yield left[int(class_of[cell])].pop(0), cell


@dataclass(frozen=True, slots=True, eq=False)
class _Others:
    """People who can be changed to balance others: entries of leaves that were not edited, by class and kind."""

    extension: Extension
    known: Constraints
    finder: Finder
    ancestor: Ints  # (levels, leaves)
    leaf: Ints  # of every entry
    cell: Ints
    left: Ints  # people of every entry who are unchanged
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
        """Leaf and cell of the nearest person who can move from a cell like `new` to one like `old`; no person is found twice."""
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
