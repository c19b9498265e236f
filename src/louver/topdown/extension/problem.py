"""What an extension knows apart from its measurements: the first release, what refines it, bounds and edit rules. All public."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from louver._arrays import Ints
from louver.errors import InputError
from louver.run import Run
from louver.topdown.design import Design
from louver.topdown.extension.first import First, Refinement, read_first
from louver.topdown.extension.household import Household, read_household
from louver.topdown.extension.options import ExtendOptions
from louver.topdown.knowledge.implied import UNBOUNDED
from louver.topdown.load import SpecLike, cell_set, read_design
from louver.topdown.measuring.noise_plan import QueryPlan, make_plan
from louver.topdown.problem import SparseLevel, add_levels
from louver.topdown.result import MEASUREMENTS_FILE

__all__ = ["MAX_BOUNDS", "Extension", "Rule", "read_extension", "read_rules"]

MAX_BOUNDS = 62
"""Bounds of an extension; each has a bit."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rule:
    """An edit rule: in every leaf the sum of coefficient x count is not negative.

    Parameters
    ----------
    name : str
    coefficient : ndarray of int64, shape (cells,)
    """

    name: str
    coefficient: Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Extension:
    """What is measured, and what the estimate has to keep.

    Parameters
    ----------
    plan : QueryPlan
        Its design holds the bounds.
    first : First
    refinement : Refinement
    rules : tuple of Rule
    marks : ndarray of int64, shape (cells,)
        A bit for every bound whose set a cell is in.
    household : Household or None
        What ages must keep in leaves of one household.
    """

    plan: QueryPlan
    first: First
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
        """The same for a worker on another machine, which learns neither the records nor where they are."""
        plan = replace(self.plan, design=self.design.without_source())
        return replace(self, plan=plan, first=replace(self.first, path=Path(self.first.path.name)))

    def first_levels(self) -> tuple[SparseLevel, ...]:
        """The first release at every level, the root first."""
        return add_levels(self.design.spine, self.first.leaves, self.first.n_cells)

    def bounds(self, level: int) -> list[tuple[Ints, Ints]]:
        """What the bounds of the leaves add up to in the regions of a level: necessary, not sufficient."""
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
        """For every level, the root first, a bit for every bound that allows nobody in a region."""
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
    # Bounds divide no types here, so that the plan does not see them.
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
        raise InputError(f"{where}: two rules or gaps have one name; rename one.", option="rules")
    rules = []
    for number, given in enumerate(options.rules, start=1):
        place = f'{where}: key "rules[{number}]"'
        counted = cell_set(given.cells, design.attributes, place)
        of = cell_set(given.of, design.attributes, place)
        if (counted & of).any():
            raise InputError(f"{place} counts some cells on both sides; keep them apart.", option="rules")
        rules.append(Rule(name=given.name, coefficient=given.at_most * of.astype(np.int64) - counted))
    return tuple(rules)
