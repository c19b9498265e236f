"""An outsider's prior knowledge: bounds on a cell, on a sum of cells in a row, or on a row total.

Wright & Smucker (2014), section 2. Statements that cannot all be consistent with the published conditionals are
reported by a smallest set of them that clash.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from louver._arrays import Bools, Ints
from louver.bounds.problem import TwoWayTable
from louver.errors import InfeasibleError, InputError
from louver.schema.attribute import Attribute
from louver.schema.validate import OWN, read_toml, validated

__all__ = [
    "NO_LIMIT",
    "BoundStatement",
    "KnownCells",
    "bind",
    "clash_error",
    "known_totals",
    "parse_given",
    "read_given",
    "smallest_clash",
]

NO_LIMIT = 2**62
"""Means "no upper bound" in integer arrays."""

EXHAUSTIVE_CHECKS = 3000
"""Maximum number of feasibility checks to prove that no smaller set of statements is contradictory."""


def _check_labels(value: Any) -> Any:
    if isinstance(value, str) or (isinstance(value, list) and all(isinstance(label, str) for label in value)):
        return value
    raise PydanticCustomError(OWN, "must be a label or a list of labels, in quotes")


Labels = Annotated[str | list[str], BeforeValidator(_check_labels)]
Count = Annotated[int, Field(ge=0, strict=True)]


class KnownCells(BaseModel):
    """One `[[known]]` entry: bounds on the cells of one row that `col` selects, all of them by default."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    row: dict[str, str]
    col: dict[str, Labels] = {}
    at_least: Count | None = None
    at_most: Count | None = None
    exactly: Count | None = None


class _Given(BaseModel):
    model_config = ConfigDict(extra="forbid")

    known: list[KnownCells]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundStatement:
    """A statement in the terms of one table.

    Attributes
    ----------
    number : int
        Position of the statement in the list, from 1.
    row : int
        Position among the nonzero rows, or -1 for a zero row.
    cells : bool (J,)
    lower, upper : int
        Bounds on the sum of these cells; `upper` is NO_LIMIT if there is none.
    """

    number: int
    row: int
    cells: Bools
    lower: int
    upper: int

    @property
    def fails_on_zeros(self) -> bool:
        """Whether the statement contradicts a row that is published as zero."""
        return self.row < 0 and self.lower > 0


def read_given(path: str | Path) -> list[KnownCells]:
    """Read a-priori knowledge from a TOML file with `[[known]]` entries."""
    return validated(_Given, read_toml(path), Path(path).name).known


def parse_given(given: Sequence[KnownCells | Mapping[str, object]]) -> list[KnownCells]:
    """The same from a list of mappings, for the library."""
    plain = [entry if isinstance(entry, Mapping) else entry.model_dump(exclude_none=True) for entry in given]
    return validated(_Given, {"known": plain}, "given").known


def bind(
    statements: Sequence[KnownCells], table: TwoWayTable, where: str = "the known bounds"
) -> list[BoundStatement]:
    """Find the rows and cells that statements refer to; messages call their list `where`."""
    position_of = {int(index): position for position, index in enumerate(table.row_index)}
    bound: list[BoundStatement] = []
    for number, statement in enumerate(statements, start=1):
        subject = f"statement {number} of {where}"
        lower, upper = _limits(statement, subject)
        row = _row_index(statement, table, subject)
        if table.dropped_rows and row not in position_of:
            raise InputError(
                f"{subject} is about a row with a zero cell, which the table leaves out; remove it.",
                option="--given",
            )
        cells = _cell_mask(statement, table.col_attributes, subject)
        bound.append(
            BoundStatement(number=number, row=position_of.get(row, -1), cells=cells, lower=lower, upper=upper)
        )
    return bound


def known_totals(table: TwoWayTable) -> list[BoundStatement]:
    """Bounds from the row totals published with the conditionals; they are not user statements, so their number is 0."""
    every = np.ones(table.n_cols, dtype=bool)
    totals = [] if table.row_totals is None else table.row_totals.tolist()
    return [BoundStatement(number=0, row=row, cells=every, lower=t, upper=t) for row, t in enumerate(totals)]


def smallest_clash(
    known: Sequence[BoundStatement], is_feasible: Callable[[Sequence[BoundStatement]], bool]
) -> tuple[int, ...]:
    """Numbers of statements that cannot all be true, as few as can be found.

    Sets of 1, 2, 3, ... statements are tried in turn, so the first that clashes is smallest; where that
    would take more than `EXHAUSTIVE_CHECKS` checks, statements are dropped one by one while the rest
    still clash, which gives an irreducible set, from which no statement can be dropped.
    """
    for size in range(1, len(known) + 1):
        if comb(len(known), size) > EXHAUSTIVE_CHECKS:
            break
        for candidate in combinations(known, size):
            if not is_feasible(candidate):
                return tuple(statement.number for statement in candidate)
    kept = list(known)
    for statement in known:
        rest = [other for other in kept if other is not statement]
        if not is_feasible(rest):
            kept = rest
    return tuple(statement.number for statement in kept)


def clash_error(
    known: Sequence[BoundStatement], is_feasible: Callable[[Sequence[BoundStatement]], bool], where: str
) -> InfeasibleError:
    """The error that names a smallest clashing set."""
    clash = smallest_clash(known, is_feasible)
    if len(clash) == 1:
        content, remedy = f"statement {clash[0]} of {where} contradicts", "it"
    else:
        content = (
            f"statements {', '.join(map(str, clash[:-1]))} and {clash[-1]} of {where} together contradict"
        )
        remedy = "one of them"
    return InfeasibleError(
        f"{content} the published conditionals and sample size; no table fits, so correct or remove {remedy}.",
        clash=clash,
    )


def row_bounds(known: Sequence[BoundStatement], reduced: Ints) -> tuple[Ints, Ints]:
    """Bounds lower <= nu <= upper that statements impose on the extra multiples of each row.

    Notes
    -----
    Implements: section 2, from l <= (nu + 1) sum r <= u.
    Departs: the lower bound rounds up (ERRATA B1).
    A statement that no multiple satisfies gives lower > upper.
    """
    lower = np.zeros(reduced.shape[0], dtype=np.int64)
    upper = np.full(reduced.shape[0], NO_LIMIT, dtype=np.int64)
    for statement in known:
        if statement.row < 0:
            continue
        unit = int(reduced[statement.row, statement.cells].sum())
        if unit == 0:
            if statement.lower > 0:
                lower[statement.row], upper[statement.row] = 0, -1
            continue
        lower[statement.row] = max(lower[statement.row], -(-statement.lower // unit) - 1)
        if statement.upper < NO_LIMIT:
            upper[statement.row] = min(upper[statement.row], statement.upper // unit - 1)
    return lower, upper


def _limits(statement: KnownCells, subject: str) -> tuple[int, int]:
    at_least, at_most, exactly = statement.at_least, statement.at_most, statement.exactly
    if exactly is not None:
        if at_least is not None or at_most is not None:
            raise InputError(
                f"{subject} combines exactly with at_least or at_most; keep one of them.",
                option="--given",
            )
        return min(exactly, NO_LIMIT), min(exactly, NO_LIMIT)
    if at_least is None and at_most is None:
        raise InputError(
            f"{subject} has no bound; give at_least, at_most or exactly.",
            option="--given",
        )
    return min(at_least or 0, NO_LIMIT), NO_LIMIT if at_most is None else min(at_most, NO_LIMIT)


def _row_index(statement: KnownCells, table: TwoWayTable, subject: str) -> int:
    names = [attribute.name for attribute in table.row_attributes]
    if set(statement.row) != set(names):
        raise InputError(
            f"{subject} must give one label for each row attribute ({', '.join(names)}).",
            option="--given",
        )
    index = 0
    for attribute in table.row_attributes:
        index = index * attribute.size + _code(attribute, statement.row[attribute.name], subject)
    return index


def _cell_mask(statement: KnownCells, attributes: Sequence[Attribute], subject: str) -> Bools:
    names = [attribute.name for attribute in attributes]
    for name in statement.col:
        if name not in names:
            raise InputError(
                f'{subject} has "{name}" under col, which is not a column attribute.',
                option="--given",
                column=name,
            )
    mask = np.ones((1,), dtype=bool)
    for attribute in attributes:
        chosen = np.ones(attribute.size, dtype=bool)
        if attribute.name in statement.col:
            labels = statement.col[attribute.name]
            chosen[:] = False
            for label in [labels] if isinstance(labels, str) else labels:
                chosen[_code(attribute, label, subject)] = True
        mask = (mask[:, None] & chosen[None, :]).ravel()
    return mask


def _code(attribute: Attribute, label: str, subject: str) -> int:
    if label not in attribute.labels:
        raise InputError(
            f'{subject} has a label that column "{attribute.name}" lacks.',
            option="--given",
            column=attribute.name,
        )
    return attribute.code_of(label)
