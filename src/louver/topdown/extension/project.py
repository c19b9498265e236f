"""Bounds of a larger schema projected onto the smaller one before the smaller one is released.

A first release that ignores later bounds may have people who cannot satisfy them. `extended_by` names the spec of the extension:
its bounds, edit rules and structural zeros are projected onto the cells of the first schema by Fourier-Motzkin elimination, once for all
leaves, with the bounds themselves as unknowns that are kept.

Notes
-----
**Implements**: Abowd et al. (2019), Problem 1, step 1; section 6.2. Classes of the first schema that can have the same kinds of finer cells
are one unknown, and parts that no bound connects are projected separately.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from louver._arrays import Bools, Ints
from louver.errors import InputError, SolverError
from louver.optim.elimination import LinearRow, project
from louver.run import Run
from louver.topdown.extension.first import refinement_of
from louver.topdown.extension.options import ExtendOptions
from louver.topdown.extension.problem import Rule, read_rules
from louver.topdown.knowledge.implied import UNBOUNDED
from louver.topdown.load import read_design
from louver.topdown.problem import Design, Statement

__all__ = ["project_extension"]


def project_extension(design: Design, run: Run | None = None) -> Design:
    """The design with the bounds on its cells that follow from the spec that extends it (`extended_by`).

    Raises
    ------
    InputError
        One sentence that names file and key.
    """
    assert design.options.extended_by is not None
    larger = read_design(
        design.spec.path.parent / design.options.extended_by, design.data, ExtendOptions, run
    )
    where = f"{larger.spec.path.name} [topdown]"
    if larger.spine.leaves != design.spine.leaves or larger.spine.names != design.spine.names:
        message = f"{where}: the geography is not that of {design.spec.path.name}; an extension has the levels and leaves of it."
        raise InputError(message, file=larger.spec.path.name, option="geography")
    attributes = {attribute.name: attribute.labels for attribute in design.attributes}
    class_of = refinement_of(larger, attributes, where).class_of
    has_room = np.zeros(design.n_cells, dtype=np.bool_)
    has_room[class_of[larger.is_possible]] = True
    statements, notes = [], []
    rules = read_rules(larger, where)
    for part in _parts(_Kinds.of(larger, rules, class_of, design.n_cells)):
        found, words = part.project(design, larger)
        statements += found
        notes += words
    return replace(
        design,
        is_possible=design.is_possible & has_room,
        statements=(*design.statements, *statements),
        notes=(*design.notes, *notes),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Kinds:
    """Classes of the first schema by the kinds of finer cells that their people can have.

    A kind is a set of finer cells that all bounds treat alike; a group is a set of classes with the same kinds.
    """

    group_of: Ints  # (classes,), -1 for a class without a possible cell
    allowed: Bools  # (groups, kinds)
    bounded: Bools  # (bounds, kinds)
    ruled: Ints  # (rules, kinds): coefficients whose sum is not negative

    @classmethod
    def of(cls, larger: Design, rules: Sequence[Rule], class_of: Ints, n_classes: int) -> _Kinds:
        kind_of = np.zeros(larger.n_cells, dtype=np.int64)
        for statement in larger.statements:
            _, kind_of = np.unique(kind_of * 2 + statement.cells, return_inverse=True)
        for rule in rules:
            _, kind_of = np.unique(np.stack([kind_of, rule.coefficient]), axis=1, return_inverse=True)
            kind_of = kind_of.ravel()
        place = np.unique(kind_of, return_index=True)[1]
        allowed = np.zeros((n_classes, len(place)), dtype=np.bool_)
        allowed[class_of[larger.is_possible], kind_of[larger.is_possible]] = True
        groups, group_of = np.unique(allowed, axis=0, return_inverse=True)
        group_of = np.where(allowed.any(axis=1), group_of.ravel(), -1)
        bounded = np.array([s.cells[place] for s in larger.statements], dtype=np.bool_)
        return cls(
            group_of=group_of,
            allowed=groups,
            bounded=bounded.reshape(len(larger.statements), len(place)),
            ruled=np.array([rule.coefficient[place] for rule in rules], dtype=np.int64).reshape(
                -1, len(place)
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Part:
    """Groups, bounds and rules that are connected."""

    kinds: _Kinds
    groups: tuple[int, ...]
    bounds: tuple[int, ...]
    rules: tuple[int, ...] = ()

    def project(self, design: Design, larger: Design) -> tuple[list[Statement], list[str]]:
        """Statements about the first schema's cells in every leaf, and the consequences that cannot be expressed as such."""
        names = [larger.statements[b].name for b in self.bounds]
        listed = f"{larger.spec.path.name}: {', '.join(names)}"
        incomplete = (
            f'the consequences of "{listed}" for the first release cannot be fully expressed as bounds on sets of its cells; an '
            "extension may be refused, before anything is spent"
        )
        try:
            rows, is_exact = self._eliminated()
        except SolverError:
            return [], [incomplete]
        found: dict[bytes, Statement] = {}
        is_complete = is_exact
        for row in rows:
            own, given = row.coefficients[: len(self.groups)], row.coefficients[len(self.groups) :]
            if not any(own) or (not any(given) and min(own) >= 0):
                continue  # lower bounds do not exceed upper ones, and counts are not negative
            one = self._statement(design, larger, row, f"{listed} ({len(found) + 1})")
            if one is None:
                is_complete = False
            elif one.lower.any() or (one.upper < UNBOUNDED).any():
                key = one.cells.tobytes()
                found[key] = _both(found[key], one) if key in found else one
        return list(found.values()), [] if is_complete else [incomplete]

    def _eliminated(self) -> tuple[tuple[LinearRow, ...], bool]:
        """Rows over the groups, the lower bounds and the upper bounds; whether whole numbers extend."""
        pairs = [(g, k) for g in self.groups for k in np.flatnonzero(self.kinds.allowed[g]).tolist()]
        n_kept = len(self.groups) + 2 * len(self.bounds)
        n = n_kept + len(pairs)

        def row(terms: Mapping[int, int]) -> LinearRow:
            return LinearRow(tuple(terms.get(i, 0) for i in range(n)), Fraction(0))

        sums = [
            row({place: -1, **{n_kept + i: 1 for i, (own, _) in enumerate(pairs) if own == g}})
            for place, g in enumerate(self.groups)
        ]
        limits, alone = [], set()
        for number, b in enumerate(self.bounds):
            inside = {n_kept + i: 1 for i, (_, k) in enumerate(pairs) if self.kinds.bounded[b, k]}
            alone |= set(inside) if len(inside) == 1 else set()
            low, high = len(self.groups) + number, len(self.groups) + len(self.bounds) + number
            limits += [row({**inside, low: -1}), row({**dict.fromkeys(inside, -1), high: 1}), row({low: 1})]
        # A count with a lower bound of its own cannot be negative anyway.
        limits += [row({n_kept + i: 1}) for i in range(len(pairs)) if n_kept + i not in alone]
        for r in self.rules:
            limits.append(row({n_kept + i: int(self.kinds.ruled[r, k]) for i, (_, k) in enumerate(pairs)}))
        found = project(sums, limits, range(n_kept))
        opposite = [LinearRow(tuple(-a for a in own.coefficients), -own.constant) for own in found.equations]
        return (*found.equations, *opposite, *found.inequalities), found.is_exact

    def _statement(self, design: Design, larger: Design, row: LinearRow, name: str) -> Statement | None:
        """A row as a bound on one set of cells in every leaf; None if it has another form."""
        own = row.coefficients[: len(self.groups)]
        signs = {a for a in own if a}
        if signs not in ({1}, {-1}):
            return None
        chosen = [g for g, a in zip(self.groups, own, strict=True) if a]
        cells = np.isin(self.kinds.group_of, chosen)
        labels = _labels(design, cells)
        if labels is None:
            return None
        held, is_vacuous = (
            np.zeros(design.spine.sizes[-1], np.int64),
            np.zeros(design.spine.sizes[-1], np.bool_),
        )
        given = [larger.statements[b].lower for b in self.bounds] + [
            larger.statements[b].upper for b in self.bounds
        ]
        for coefficient, values in zip(row.coefficients[len(self.groups) :], given, strict=True):
            if coefficient:
                held -= coefficient * np.where(values >= UNBOUNDED, 0, values)
                is_vacuous |= values >= UNBOUNDED
        if signs == {1}:
            lower, upper = np.where(is_vacuous, 0, np.maximum(held, 0)), np.full(len(held), UNBOUNDED)
        else:
            lower, upper = (
                np.zeros(len(held), np.int64),
                np.where(is_vacuous, UNBOUNDED, np.maximum(-held, 0)),
            )
        level = design.spine.n_levels - 1
        return Statement(name=name, level=level, cells=cells, labels=labels, lower=lower, upper=upper)


def _both(a: Statement, b: Statement) -> Statement:
    """Combine two statements about the same set of cells."""
    return replace(a, lower=np.maximum(a.lower, b.lower), upper=np.minimum(a.upper, b.upper))


def _parts(kinds: _Kinds) -> Iterator[_Part]:
    """Groups, bounds and rules, divided into connected parts; groups that no bound touches are left out."""
    n_bounds = len(kinds.bounded)
    touches = np.vstack([kinds.bounded, kinds.ruled != 0]) @ kinds.allowed.T  # bounds and rules by groups
    waiting = set(range(n_bounds))
    while waiting:
        rows: set[int] = {waiting.pop()}
        groups: set[int] = set()
        while True:
            new = set(np.flatnonzero(touches[sorted(rows)].any(axis=0)).tolist())
            more = set(np.flatnonzero(touches[:, sorted(new)].any(axis=1)).tolist()) | rows
            if new == groups and more == rows:
                break
            groups, rows = new, more
        waiting -= rows
        yield _Part(
            kinds=kinds,
            groups=tuple(sorted(groups)),
            bounds=tuple(sorted(row for row in rows if row < n_bounds)),
            rules=tuple(sorted(row - n_bounds for row in rows if row >= n_bounds)),
        )


def _labels(design: Design, cells: Bools) -> dict[str, tuple[str, ...]] | None:
    """A set of cells by attributes and labels, with impossible cells added or left out as needed; None if it is not a product."""
    inside = cells.reshape(design.shape)
    product, labels = np.ones(design.shape, dtype=np.bool_), {}
    for axis, attribute in enumerate(design.attributes):
        others = tuple(a for a in range(len(design.shape)) if a != axis)
        has_label = inside.any(axis=others)
        if not has_label.all():
            labels[attribute.name] = tuple(np.array(attribute.labels)[has_label].tolist())
            product &= has_label.reshape([-1 if a == axis else 1 for a in range(len(design.shape))])
    return labels if np.array_equal(product.ravel(), cells) else None
