"""Checking public knowledge before any budget is spent.

Finds out whether it is consistent, what it implies, which statements have consequences that cannot be derived completely, which statements
clash, and whether a given table can be extended to the leaves. The records are never opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from louver._arrays import Ints
from louver._html import JsonText
from louver.data.read import open_source
from louver.data.tabulate import read_text, tabulate
from louver.errors import InfeasibleError, InputError, printable
from louver.schema.attribute import Attribute
from louver.topdown.knowledge.clash import Clash, find_clash
from louver.topdown.knowledge.implied import (
    UNBOUNDED,
    DerivedKind,
    Implied,
    Violation,
    classify,
    is_laminar,
)
from louver.topdown.measuring.noise_plan import QueryPlan
from louver.topdown.problem import Design

__all__ = [
    "Clash",
    "KnowledgeCheck",
    "check_knowledge",
    "crossing_words",
    "find_clash",
    "read_counts",
    "read_values",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeCheck(JsonText):
    """The consequences of public knowledge, and whether it is consistent.

    Parameters
    ----------
    is_consistent : bool
    clash : tuple of Clash
        Statements that contradict each other; leaving out any one resolves it. Empty where consistent.
    kind : DerivedKind
        Whether the derived consequences are complete, and integral.
    outside : tuple of str
        Statements that prevent the consequences from being complete.
    crossing : tuple of str
        The reason, in words: the two statements that cause it.
    types : int
        Number of types the statements divide the cells into.
    constrained : mapping of str to int
        For each level, the number of regions that are constrained at all.
    implied : tuple of str
        Bounds on sets of types at the root, in words.
    violation : Violation or None
        The reason why a given table cannot be extended; None if it can be or none was given.
    """

    is_consistent: bool
    clash: tuple[Clash, ...]
    kind: DerivedKind
    outside: tuple[str, ...]
    crossing: tuple[str, ...]
    types: int
    constrained: Mapping[str, int]
    implied: tuple[str, ...]
    violation: Violation | None = None

    @property
    def passed(self) -> bool:
        """Whether nothing stands in the way of a release."""
        return self.is_consistent and self.violation is None

    def to_dict(self) -> dict[str, Any]:
        """The findings for programs."""
        return {**asdict(self), "kind": str(self.kind), "passed": self.passed}

    def __repr__(self) -> str:
        lines = [f"Public knowledge: {'consistent' if self.is_consistent else 'CONTRADICTORY'}, {self.kind}"]
        lines += [f"  clash: {c.statement} in {c.level} {c.region}" for c in self.clash[:6]]
        lines += [f"  implied for the root: {words}" for words in self.implied[:4]]
        lines += [f"  {words}" for words in self.crossing[:3]]
        if self.violation is not None:
            where = ", ".join(self.violation.leaves[:3])
            lines.append(f"  the table of {self.violation.region} cannot be extended: see {where}")
        return "\n".join(map(printable, lines[:10]))


def check_knowledge(
    plan: QueryPlan,
    *,
    invariants: Mapping[str, Ints] | None = None,
    table: tuple[int, int, Ints] | None = None,
) -> KnowledgeCheck:
    """Check the public knowledge of a design.

    Parameters
    ----------
    plan : QueryPlan
    invariants : mapping, optional
        Known values of invariants; the others are assumed to be unknown.
    table : (level, region, counts), optional
        Counts (cells,) of a region, to be tested for an extension to its leaves (Problem 2).
    """
    spine = plan.design.spine
    known = {} if invariants is None else dict(invariants)
    zeros = {
        s.name: np.zeros(spine.sizes[s.level], np.int64) for s in plan.design.statements if s.is_invariant
    }
    kind = classify(plan.n_types, plan.statements(zeros))
    facts: dict[str, Any] = {"kind": kind, "types": plan.n_types}
    try:
        implied = plan.implied(known)
        if implied.kind is DerivedKind.ELIMINATED and len(known) == len(zeros):
            facts["kind"] = implied.kind
        facts |= {"outside": _outside(plan, facts["kind"]), "crossing": crossing_words(plan, facts["kind"])}
    except InfeasibleError:
        clash = find_clash(plan, known)
        facts |= {"outside": _outside(plan, kind), "crossing": crossing_words(plan, kind)}
        return KnowledgeCheck(is_consistent=False, clash=clash, constrained={}, implied=(), **facts)
    violation = None
    if table is not None:
        level, region, counts = table
        by_type = np.bincount(plan.type_of, weights=counts, minlength=plan.n_types).astype(np.int64)
        violation = implied.find_violation(level, region, by_type)
    return KnowledgeCheck(
        is_consistent=True,
        clash=(),
        constrained=_constrained(implied),
        implied=_in_words(plan, implied),
        violation=violation,
        **facts,
    )


def read_values(plan: QueryPlan, path: Path) -> dict[str, Ints]:
    """Read values of invariants from a public file with the columns invariant, level, region and value.

    Raises
    ------
    InputError
        On a row that names no region of an invariant, or a value that is not a count.
    """
    spine = plan.design.spine
    level_of = {statement.name: statement.level for statement in plan.invariants}
    place = {name: {code: i for i, code in enumerate(spine.codes[level])} for name, level in level_of.items()}
    values: dict[str, Ints] = {}
    with open_source(path) as source:
        rows = read_text(source, ["invariant", "level", "region", "value"])
    for number, row in enumerate(rows, start=1):
        name, level, region, value = (text or "" for text in row)
        names_one = name in level_of and level == spine.names[level_of[name]]
        if not names_one or region not in place[name]:
            message = f"{path.name} names no region of an invariant on row {number}; correct it."
            raise InputError(message, file=path.name, row=number)
        if not value.isdecimal() or int(value) >= UNBOUNDED:
            message = f'column "value" in {path.name} is not a whole number on row {number}; correct it.'
            raise InputError(message, file=path.name, column="value", row=number)
        known = values.setdefault(name, np.full(len(place[name]), -1, dtype=np.int64))
        known[place[name][region]] = int(value)
    for name, known in values.items():
        if (known < 0).any():
            message = f'{path.name} does not have all regions of invariant "{name}"; give one row for each.'
            raise InputError(message, file=path.name)
    return values


def read_counts(design: Design, path: Path, by: Attribute | None = None) -> Ints:
    """Read the counts of all cells from a file with the attributes and a column `count`; others are zero. `by` comes first."""
    schema, attributes = design.spec.schema, design.attributes
    if by is not None:
        others = (attribute for attribute in schema.attributes if attribute.name != by.name)
        schema, attributes = replace(schema, attributes=(by, *others)), (by, *attributes)
    with open_source(path) as source:
        names = [attribute.name for attribute in attributes]
        histogram = tabulate(source, names, weight="count", schema=schema)
    counts = np.zeros([attribute.size for attribute in attributes], dtype=np.int64)
    counts[tuple(histogram.codes.T)] = histogram.counts
    return counts.ravel()


def _outside(plan: QueryPlan, kind: DerivedKind) -> tuple[str, ...]:
    """Statements of kinds whose consequences are not derived completely."""
    if kind is not DerivedKind.CROSSING:
        return ()
    everything = (1 << plan.n_types) - 1
    last = plan.design.spine.n_levels - 1
    masks = {s.name: plan.mask_of(s) for s in plan.design.statements if s.level == last}
    names = [name for name, mask in masks.items() if not is_laminar([mask, *masks.values()])]
    for statement in plan.design.statements:
        mask = plan.mask_of(statement)
        if statement.level < last and mask != everything and mask.bit_count() > 1:
            names.append(statement.name)
    return tuple(names)


def crossing_words(plan: QueryPlan, kind: DerivedKind | None = None) -> tuple[str, ...]:
    """The statements that make the consequences of public knowledge intractable, and the consequence; empty if there are none."""
    if kind is None:
        sizes = plan.design.spine.sizes
        zeros = {s.name: np.zeros(sizes[s.level], np.int64) for s in plan.invariants}
        kind = classify(plan.n_types, plan.statements(zeros))
    if kind is not DerivedKind.CROSSING:
        return plan.design.notes
    everything = (1 << plan.n_types) - 1
    last = plan.design.spine.n_levels - 1
    at_leaves = [s for s in plan.design.statements if s.level == last]
    problems = [
        f'"{a.name}" and "{b.name}" are about sets of cells that overlap and are not nested: what two such marginals imply for the '
        "regions above cannot be derived completely in general (Theorem 2)"
        for a, b in combinations(at_leaves, 2)
        if not is_laminar([plan.mask_of(a), plan.mask_of(b)])
    ]
    problems += [
        f'"{s.name}" is stated above the leaves about several of the sets that other statements divide: what the two imply '
        "together cannot be derived completely (Theorem 1)"
        for s in plan.design.statements
        if s.level < last and plan.mask_of(s) != everything and plan.mask_of(s).bit_count() > 1
    ]
    return tuple(
        f"{words}; necessary bounds are kept, and the failsafe handles the rest" for words in problems
    )


def _constrained(implied: Implied) -> dict[str, int]:
    """How many regions of each level are constrained."""
    spine = implied.spine
    numbers = {}
    for level, name in enumerate(spine.names):
        lower, upper = implied.bounds(level, 0, spine.sizes[level])
        is_bound = (lower[:, 1:] > 0) | (upper[:, 1:] < UNBOUNDED)
        numbers[name] = int(is_bound.any(axis=1).sum())
    return numbers


def _in_words(plan: QueryPlan, implied: Implied) -> tuple[str, ...]:
    """The root's bounds on single types and on the total."""
    lower, upper = (bounds[0] for bounds in implied.bounds(0, 0, 1))
    everything = (1 << plan.n_types) - 1
    names = {plan.mask_of(s): s.name for s in plan.design.statements}
    words = []
    for mask in [*(1 << t for t in range(plan.n_types)), everything]:
        name = "everyone" if mask == everything else names.get(mask, f"type {mask.bit_length()}")
        if lower[mask] == upper[mask]:
            words.append(f"{name}: exactly {lower[mask]:,}")
        elif lower[mask] > 0 or upper[mask] < UNBOUNDED:
            most = "" if upper[mask] >= UNBOUNDED else f", at most {upper[mask]:,}"
            words.append(f"{name}: at least {lower[mask]:,}{most}")
    return tuple(words)
