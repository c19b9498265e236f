"""The final edit: leaves that break a bound or an edit rule are changed as little as possible.

In every such leaf as few people as possible get another cell of their own class of the first release, so that all bounds hold and,
where that can be done, all rules; nothing that the first release says changes. The regions above are the sums of the leaves; for everybody
who was changed somebody near is changed the other way (`balance`).

Notes
-----
**Implements**: Abowd et al. (2019), section 8.2.3, the edit phase after Fellegi & Holt, for items 4 to 6 (ERRATA T2) and for bounds that
sharing out could not keep; items 8 to 10 are in `gaps`.
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
from louver.topdown.extension.balance import balance, people_of
from louver.topdown.extension.constraints import Constraints
from louver.topdown.extension.finder import Finder, allowed_kinds
from louver.topdown.extension.gaps import People, settle
from louver.topdown.extension.problem import Extension
from louver.topdown.knowledge.implied import UNBOUNDED
from louver.topdown.problem import SparseLevel

__all__ = ["Edits", "check_extendable", "repair"]

BROKEN = 1e4
"""What it costs to leave a rule broken by one person, in people changed."""

RARE = 1e-2
"""What it costs to become what nobody of one's class is, in people changed: of several ways the likeliest is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """What the final edit found and did.

    Parameters
    ----------
    broken_before, broken_after : mapping of str to int
        For every bound, rule and gap the leaves that break it; no bound is broken afterwards.
    leaves : int
        Leaves in which somebody was changed.
    people : int
        People changed.
    """

    broken_before: dict[str, int]
    broken_after: dict[str, int]
    leaves: int
    people: int


def check_extendable(extension: Extension, run: Run | None = None) -> None:
    """Refuse bounds that no extension of the first release can keep; nothing has been spent.

    Raises
    ------
    InfeasibleError
        Names a leaf. Bounds known in time are best stated in the first release's spec too.
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
        # Nobody is missing, and everybody has a kind that no bound limits here.
        is_limited = (in_set & (known.upper[bounds, leaf] < UNBOUNDED)[:, None]).any(axis=0)
        if (
            not known.lower[bounds, leaf].any()
            and (allowed[first.cell[span]] & ~is_limited).any(axis=1).all()
        ):
            continue
        if _reassigned(known, leaf, first.cell[span], first.count[span], allowed, None) is None:
            code = extension.design.spine.leaves[leaf]
            message = (
                f'the people whom {extension.first.path.name} has in {extension.design.spine.names[-1]} "{code}" cannot keep the '
                "bounds, whatever they are like otherwise; correct the bounds, or state them in the first release's spec."
            )
            raise InfeasibleError(message, clash=(leaf,))


def repair(extension: Extension, leaves: SparseLevel, run: Run | None = None) -> tuple[SparseLevel, Edits]:
    """Edit all leaves that break something: for bounds and rules first, then for ages in leaves of one household."""
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
    """The share of a class that is not of a kind, everywhere taken together, (classes, kinds)."""
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
    """The leaves while they are edited; which were, and how many people."""

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
        """Put changed leaves in their places."""
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
    """People of each class by kind (classes, kinds) that keep the bounds and, at a price, the rules; None if none do.

    With what is `held` as few people as possible move.
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
    # Unknowns: people, people who came, and by how much each rule is broken.
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
    """The people of a leaf with as few changed as possible, and how many those are."""
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
    """The leaves with some of them in a new state."""
    if not edited:
        return leaves
    parts, begun = [], 0
    for leaf, (cells, counts) in sorted(edited.items()):
        parts.append(leaves.part(begun, leaf))
        parts.append(SparseLevel(start=np.array([0, len(cells)]), cell=cells, count=counts))
        begun = leaf + 1
    parts.append(leaves.part(begun, leaves.n_regions))
    return SparseLevel.concatenate(parts)
