"""Primary cells: the numbers that reveal too much by themselves, and the width of the range within which a reader may locate them.

| rule | a cell is primary where | upper safety range |
|---|---|---|
| `frequency` | fewer than `minimum` contribute | `range` percent of it (10); of a count, up to `minimum` |
| `p-percent` | the rest x - x1 - x2 is less than p % of the largest x1 | p % of x1 - (x - x1 - x2) |
| `p-q` | q % of the rest is less than p % of the largest | (p / q) x1 - (x - x1 - x2) |
| `dominance` | the n largest are more than k % of it | (100 / k) times their sum - x |
| `request` | a contributor who requested it has more than k % | (100 / k) times that part - x |
| `zero` | it has contributors, and each contributes 0 | `up` |

A rule's `range`, in percent of the number, replaces its formula. The lower range is as wide, but never reaches below 0. A count has no
lower range: readers may learn that there is someone, which a hidden cell reveals anyway, but not that there are only a few. Negative
contributions count by their absolute value.

Notes
-----
**Implements**: Hundepool et al. (2012), "Statistical Disclosure Control", section 4.2 (rules) and table 4.2 (upper protection levels).
**Departs**: every range is at least one unit, so that no primary cell is determined; the value `minimum` must be possible for a count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from louver.errors import InputError
from louver.protect.load import Cell, Line, Loaded, LoadedTable
from louver.protect.options import ProtectOptions, RuleOptions, StatusOptions

__all__ = ["Primary", "Set", "judge_cells"]

DEFAULT_RANGE = 10.0
"""Width of a range in percent, if neither a rule nor its formula determines it."""


@dataclass(frozen=True, slots=True)
class Primary:
    """A cell that must be hidden: how far its range must extend up and down, in units, and why."""

    up: int
    down: int
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Set:
    """A manual decision about a cell."""

    status: str
    reason: str
    cost: float | None = None
    range: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Primary cells by number, decisions by number, and primary cells that are published by decision.

    `given` are the cells that a given pattern hides; None if a pattern is to be found.
    """

    primary: dict[int, Primary]
    decided: dict[int, Set]
    waived: dict[int, Primary]
    given: frozenset[int] | None = None


def judge_cells(options: ProtectOptions, loaded: Loaded) -> Judged:
    """Apply every rule to every cell of its tables."""
    found: dict[int, Primary] = {}
    for place, table in enumerate((*loaded.tables, *loaded.earlier)):
        is_new = place < len(loaded.tables)
        rules = [
            (number, rule)
            for number, rule in enumerate(options.rules, start=1)
            if (not rule.tables or table.options.name in rule.tables or not is_new)
            and not (table.options.is_counts and rule.rule != "frequency")
        ]
        if options.rules and not rules and not table.options.status and is_new:
            raise InputError(f'no rule applies to table "{table.options.name}"; add one.', option="rules")
        for number, rule in rules:
            _check_known(table, loaded.cells, number, rule)
        for line in table.lines:
            for _, rule in rules:
                hit = _hit(loaded.cells[line.cell], rule)
                if hit is not None:
                    found[line.cell] = _wider(found.get(line.cell), hit)
    decided = _decisions(options, loaded)
    waived = {}
    for number, one in decided.items():
        if one.status == "hide" or (one.status == "secondary" and not options.given_pattern):
            cell = loaded.cells[number]
            reach = _share(cell, one.range or DEFAULT_RANGE)
            found[number] = _wider(
                found.get(number), Primary(reach, _down(cell, reach), (f"decided: {one.reason}",))
            )
        elif one.status == "publish" and number in found:
            waived[number] = found.pop(number)
    given = frozenset(n for n, one in decided.items() if one.status in ("hide", "secondary"))
    return Judged(
        primary=found, decided=decided, waived=waived, given=given if options.given_pattern else None
    )


def _wider(known: Primary | None, other: Primary) -> Primary:
    if known is None:
        return other
    reasons = tuple(dict.fromkeys((*known.reasons, *other.reasons)))
    return Primary(max(known.up, other.up), max(known.down, other.down), reasons)


def _check_known(table: LoadedTable, cells: Sequence[Cell], number: int, rule: RuleOptions) -> None:
    """Refuse a rule that needs information missing from the file."""
    options = table.options
    needed = {"frequency": 0, "p-percent": 2, "p-q": 2, "dominance": rule.n or 0}.get(rule.rule, 0)
    if rule.rule in ("frequency", "zero") and any(cells[line.cell].frequency is None for line in table.lines):
        raise InputError(
            f'rule {number} needs the number of contributors of table "{options.name}"; name the column as frequency.',
            option="rules",
        )
    if options.file is None or not needed:
        return
    if len(options.largest) < needed:
        raise InputError(
            f'rule {number} needs the {needed} largest contributions of table "{options.name}"; list their columns in largest.',
            option="rules",
        )


def _hit(cell: Cell, rule: RuleOptions) -> Primary | None:
    """The safety range that a rule requires; None if the cell is safe by this rule."""
    if rule.rule == "frequency":
        assert rule.minimum is not None
        if not cell.frequency or cell.frequency >= rule.minimum:
            return None
        reason = f"fewer than {rule.minimum} contributors"
        if cell.is_count:
            # A weighted count may exceed the minimum although few people were sampled.
            up = max(1, rule.minimum - cell.value, _share(cell, rule.range) if rule.range else 0)
            return Primary(up, 0, (reason,))
        reach = _share(cell, rule.range or DEFAULT_RANGE)
        return Primary(reach, _down(cell, reach), (reason,))
    if rule.rule == "zero":
        assert rule.up is not None
        if not cell.frequency or cell.value or any(cell.largest):
            return None
        reach = max(1, math.ceil(rule.up * 10**cell.decimals - 1e-9))
        return Primary(reach, _down(cell, reach), ("all contributors have 0",))
    missing = _concentrated(cell, rule)
    if missing is None:
        return None
    reach = missing if rule.range is None else _share(cell, rule.range)
    return Primary(reach, _down(cell, reach), (_reason(rule),))


def _concentrated(cell: Cell, rule: RuleOptions) -> int | None:
    """Units by which a number must be able to grow so that its largest contributions are no longer too large a part."""
    size = float(abs(cell.value)) if not cell.is_negative else max(float(abs(cell.value)), sum(cell.largest))
    if not size or cell.frequency == 0:
        return None
    first, second = (*cell.largest, 0.0, 0.0)[:2]
    rest = max(0.0, size - first - second)
    if rule.rule == "dominance":
        assert rule.n is not None and rule.k is not None
        missing = sum(cell.largest[: rule.n]) * 100 / rule.k - size
    elif rule.rule == "request":
        assert rule.k is not None
        missing = cell.requested * 100 / rule.k - size
    else:
        assert rule.p is not None
        missing = first * rule.p / (rule.q or 100.0) - rest
    return None if missing <= 1e-9 * size else max(1, math.ceil(missing))


def _reason(rule: RuleOptions) -> str:
    if rule.rule == "dominance":
        n = rule.n or 1
        who = "the largest contributor has" if n == 1 else f"the {n} largest contributors have"
        return f"{who} more than {rule.k:g} %"
    if rule.rule == "request":
        return f"a contributor who requested protection has more than {rule.k:g} %"
    if rule.rule == "p-q":
        return f"a contributor can be estimated to within {rule.p:g} % by somebody who knew it to within {rule.q:g} %"
    return f"a contributor can be estimated to within {rule.p:g} %"


def _share(cell: Cell, percent: float) -> int:
    """Percent of a number in units, at least one."""
    return max(1, math.ceil(abs(cell.value) * percent / 100 - 1e-9))


def _down(cell: Cell, reach: int) -> int:
    """The range downwards, limited to values that the number can have."""
    if cell.is_negative:
        return reach
    return 0 if cell.is_count else min(reach, cell.value)


def _decisions(options: ProtectOptions, loaded: Loaded) -> dict[int, Set]:
    """Cells whose status is set by a file or the options."""
    found: dict[int, Set] = {}
    for number, cell in enumerate(loaded.cells):
        if cell.is_published_before:
            found[number] = Set("publish", "published before")
        elif cell.set_by_file is not None:
            found[number] = Set(cell.set_by_file, "status in the file")
    tables = {table.options.name: table for table in loaded.tables}
    for number, status in enumerate(options.status, start=1):
        line = _named(tables[status.table], status, number)
        if loaded.cells[line.cell].is_published_before and status.set in ("hide", "secondary"):
            raise InputError(
                f"status {number} hides a cell that an earlier release shows; leave it out.", option="status"
            )
        found[line.cell] = Set(status.set, status.reason, status.cost, status.range)
    return found


def _named(table: LoadedTable, status: StatusOptions, number: int) -> Line:
    by = table.options.by
    totals = {axis.attribute.name: axis.attribute.total for axis in table.grid.axes}
    if not set(status.cell) <= set(by):
        raise InputError(
            f"status {number} refers to an attribute that its table does not have.", option="status"
        )
    labels = tuple(status.cell.get(name, totals[name]) for name in by)
    for line in table.lines:
        if line.labels == labels:
            return line
    raise InputError(
        f"status {number} refers to a cell that its table does not have; check its codes.", option="status"
    )
