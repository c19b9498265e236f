"""The public inputs of an extension: the first release, its refinement, bounds and edit rules.

In leaves of one household, ages can show that somebody cannot be the head's child or parent. Records do not identify households, so items
8 to 10 of section 8.2 can only be applied where a leaf has one head and nobody outside households: all its people are that head's
household.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from louver._arrays import Bools, Ints
from louver.errors import InputError
from louver.run import Run
from louver.schema.validate import validated
from louver.topdown.extension.first import FirstRelease, Refinement, read_first
from louver.topdown.extension.options import ExtendOptions, GapOptions
from louver.topdown.knowledge.implied import UNBOUNDED
from louver.topdown.load import SpecLike, cell_set, read_design
from louver.topdown.measuring.noise_plan import QueryPlan, make_plan
from louver.topdown.options import RunOptions
from louver.topdown.problem import Design, SparseLevel, add_levels
from louver.topdown.result import MEASUREMENTS_FILE

__all__ = [
    "MAX_BOUNDS",
    "Extension",
    "Gap",
    "Household",
    "Rule",
    "read_extension",
    "read_household",
    "read_rules",
]

MAX_BOUNDS = 62
"""Bounds of an extension; each has a bit."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rule:
    """An edit rule: in every leaf the sum of coefficient x count is not negative; if no coefficient is positive, some cells are empty.

    Parameters
    ----------
    name : str
    coefficient : ndarray of int64, shape (cells,)
    """

    name: str
    coefficient: Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Extension:
    """What is measured, and what the estimate must keep.

    Parameters
    ----------
    plan : QueryPlan
        Includes the design, which holds the bounds.
    first : First
    refinement : Refinement
    rules : tuple of Rule
    marks : ndarray of int64, shape (cells,)
        A bit for every bound whose set a cell is in.
    household : Household or None
        Requirements on ages in leaves of one household.
    """

    plan: QueryPlan
    first: FirstRelease
    refinement: Refinement
    rules: tuple[Rule, ...]
    marks: Ints
    household: Household | None

    @property
    def design(self) -> Design:
        """The checked spec."""
        return self.plan.design

    @property
    def options(self) -> ExtendOptions:
        """The spec's `[topdown]`."""
        assert isinstance(self.design.options, ExtendOptions)
        return self.design.options

    def without_source(self) -> Extension:
        """The same for a worker on another machine, which is given neither the records nor their location."""
        plan = replace(self.plan, design=self.design.without_source())
        return replace(self, plan=plan, first=replace(self.first, path=Path(self.first.path.name)))

    def with_intervals(self, simulations: int | None) -> Extension:
        """The same with another number of simulations for intervals; None for the number in the spec."""
        if simulations is None:
            return self
        chosen = validated(RunOptions, {"intervals": simulations}).intervals
        options = self.design.options.model_copy(update={"intervals": chosen})
        return replace(self, plan=replace(self.plan, design=replace(self.design, options=options)))

    def first_levels(self) -> tuple[SparseLevel, ...]:
        """The first release at every level, the root first."""
        return add_levels(self.design.spine, self.first.leaves, self.first.n_cells)

    def unusual(self) -> Bools:
        """Cells that a rule empties while the class of the first release has other possible cells: nobody is expected in them."""
        emptied = np.zeros(self.design.n_cells, dtype=np.bool_)
        for rule in self.rules:
            if rule.coefficient.max() <= 0:
                emptied |= rule.coefficient < 0
        class_of, usual = self.refinement.class_of, self.design.is_possible & ~emptied
        has_other = np.zeros(self.first.n_cells, dtype=np.bool_)
        has_other[class_of[usual]] = True
        return np.asarray(emptied & has_other[class_of])

    def bounds(self, level: int) -> list[tuple[Ints, Ints]]:
        """The sums of the leaves' bounds in the regions of a level: necessary conditions, not sufficient ones."""
        spine = self.design.spine
        summed = []
        for statement in self.design.statements:
            lower, upper = statement.lower, statement.upper
            for starts in reversed(spine.starts[level:]):
                lower = np.add.reduceat(lower, starts[:-1])
                upper = np.minimum(np.add.reduceat(upper, starts[:-1]), UNBOUNDED)
            summed.append((lower, upper))
        return summed

    def closed(self) -> list[Ints]:
        """For every level, the root first, a bit for every bound that allows no one in a region."""
        spine = self.design.spine
        bits = np.zeros(spine.sizes[-1], dtype=np.int64)
        for number, statement in enumerate(self.design.statements):
            bits |= (statement.upper == 0).astype(np.int64) << number
        levels = [bits]
        for starts in reversed(spine.starts):
            levels.insert(0, np.bitwise_and.reduceat(levels[0], starts[:-1]))
        return levels


def read_extension(
    spec: SpecLike, data: object = None, *, seeded: bool = False, run: Run | None = None
) -> Extension:
    """Read the spec of an extension and the release it extends.

    Raises
    ------
    InputError
        One sentence that names file and key.
    """
    design = read_design(spec, data, ExtendOptions, run)
    assert isinstance(design.options, ExtendOptions)
    where = f"{design.spec.path.name} [topdown]"
    if len(design.statements) > MAX_BOUNDS:
        raise InputError(f"{where}: there are more than {MAX_BOUNDS} bounds; state fewer.", option="bounds")
    first, refinement = read_first(design, seeded=seeded, where=where, run=run)
    design = replace(design, extends=first.manifest.files[MEASUREMENTS_FILE].sha256)
    # Bounds split no types here, so the plan does not see them.
    plan = make_plan(replace(design, statements=()))
    plan = replace(plan, design=replace(plan.design, statements=design.statements))
    marks = np.zeros(design.n_cells, dtype=np.int64)
    for number, statement in enumerate(design.statements):
        marks |= statement.cells.astype(np.int64) << number
    return Extension(
        plan=plan,
        first=first,
        refinement=refinement,
        rules=read_rules(design, where),
        marks=marks,
        household=read_household(design, where),
    )


def read_rules(design: Design, where: str) -> tuple[Rule, ...]:
    """The edit rules of an extension."""
    options = design.options
    assert isinstance(options, ExtendOptions)
    names = [rule.name for rule in options.rules]
    names += [] if options.household is None else [gap.name for gap in options.household.gaps]
    if len(set(names)) < len(names):
        raise InputError(f"{where}: two rules or gaps have the same name; rename one.", option="rules")
    rules = []
    for number, given in enumerate(options.rules, start=1):
        place = f'{where}: key "rules[{number}]"'
        counted = cell_set(given.cells, design.attributes, place)
        of = np.zeros_like(counted) if given.of is None else cell_set(given.of, design.attributes, place)
        if (counted & of).any():
            raise InputError(f"{place} counts some cells on both sides; keep them apart.", option="rules")
        rules.append(Rule(name=given.name, coefficient=given.at_most * of.astype(np.int64) - counted))
    return tuple(rules)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Gap:
    """People in `cells` are at least `years` older than the head (`sign` 1) or younger (-1)."""

    name: str
    cells: Bools
    sign: int
    years: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Household:
    """How a leaf of one household is recognised, and the requirements on its ages.

    Parameters
    ----------
    head, members : ndarray of bool, shape (cells,)
    years : ndarray of int64, shape (cells,)
    apart_from_years : ndarray of int64, shape (cells,)
        A number that identifies everything except the age.
    gaps : tuple of Gap
    """

    head: Bools
    members: Bools
    years: Ints
    apart_from_years: Ints
    gaps: tuple[Gap, ...]

    def broken(self, leaves: SparseLevel) -> Bools:
        """Which gaps are broken in which leaves of one household, (gaps, leaves)."""
        n = leaves.n_regions
        leaf = np.repeat(np.arange(n), np.diff(leaves.start))
        heads = np.bincount(leaf, self.head[leaves.cell] * leaves.count, minlength=n)
        outside = np.bincount(leaf, ~self.members[leaves.cell] * leaves.count, minlength=n)
        age = np.bincount(leaf, (self.head * self.years)[leaves.cell] * leaves.count, minlength=n)
        is_one = (heads == 1) & (outside == 0)
        misfit = self.misfits(leaves.cell, age[leaf].astype(np.int64)) & is_one[leaf]
        found = [np.bincount(leaf, own, minlength=n) > 0 for own in misfit]
        return np.array(found, dtype=np.bool_).reshape(-1, n)

    def misfits(self, cells: Ints, age: Ints) -> Bools:
        """Which gaps people in cells break, given the age of each one's head, (gaps, cells)."""
        apart = self.years[cells] - age
        found = [gap.cells[cells] & (gap.sign * apart < gap.years) for gap in self.gaps]
        return np.array(found, dtype=np.bool_).reshape(-1, len(cells))


def read_household(design: Design, where: str) -> Household | None:
    """`[topdown.household]` of an extension's spec.

    Raises
    ------
    InputError
        One sentence that names the key.
    """
    assert isinstance(design.options, ExtendOptions)
    given = design.options.household
    if given is None:
        return None
    place = f'{where}: key "household"'
    head = cell_set(given.head, design.attributes, place)
    members = cell_set(given.members, design.attributes, place)
    if (head & ~members).any():
        raise InputError(f"{place}: a head is a member too; add its labels to members.", option="household")
    gaps = tuple(_read_gap(gap, design, head, members, place) for gap in given.gaps)
    years, others = _years(given.years, design, place)
    return Household(head=head, members=members, years=years, apart_from_years=others, gaps=gaps)


def _read_gap(given: GapOptions, design: Design, head: Bools, members: Bools, place: str) -> Gap:
    cells = cell_set(given.cells, design.attributes, place)
    if (cells & (head | ~members)).any():
        message = f"{place}: people of a gap must be members other than the head; correct its cells."
        raise InputError(message, option="household")
    sign, years = (-1, given.younger) if given.older is None else (1, given.older)
    assert years is not None, "checked by the options"
    return Gap(name=given.name, cells=cells, sign=sign, years=years)


def _years(name: str, design: Design, place: str) -> tuple[Ints, Ints]:
    """The age of every cell, and a number that identifies everything else."""
    axis = next((axis for axis, one in enumerate(design.attributes) if one.name == name), None)
    if axis is None or not all(label.isdecimal() for label in design.attributes[axis].labels):
        message = f'{place}: key "years" must name an attribute whose labels are whole numbers.'
        raise InputError(message, option="household")
    labels = np.array([int(label) for label in design.attributes[axis].labels], dtype=np.int64)
    code = list(np.indices(design.shape, sparse=True))
    years = np.broadcast_to(labels[code[axis]], design.shape).reshape(-1)
    code[axis] = np.zeros_like(code[axis])
    others = np.broadcast_to(np.ravel_multi_index(np.broadcast_arrays(*code), design.shape), design.shape)
    return years, np.ascontiguousarray(others).reshape(-1).astype(np.int64)
