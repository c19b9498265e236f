"""Tables with hidden cells: they add up, they agree with one another, and no hidden number can be derived from the shown ones.

Only what the public numbers show can be checked. There is an unknown for every hidden number and for every unlisted total with listed
parts. The shown numbers and the hierarchies connect the unknowns; linear programs must show that each hidden number can vary by at least
one unit of its last decimal. Which cells were primary, and how wide their ranges are, is not public.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import product
from typing import Annotated, Any, Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field

from louver.release.folder import Malformed
from louver.release.promises.base import Context, Outcome, Promise
from louver.release.promises.copies import copy_problem

__all__ = [
    "Knowledge",
    "ProtectedTablesPromise",
    "PublishedCodes",
    "PublishedProtectedTable",
    "check_protected",
    "learn",
]

MOST_DECIMALS = 6
MOST_LINES = 2_000_000
MOST_UNKNOWNS = 20_000
"""Number of unknowns up to which every hidden number is tested; with more, only sums with a single hidden part are sought."""

STATUS_COLUMNS = ("obs_status", "conf_status")
SHOWN, SUPPRESSED = ("A", "F"), ("Q", "C")
"""Observation and confidentiality status in the code lists of SDMX: normal and free, or suppressed and confidential."""

STRICT = ConfigDict(strict=True, extra="forbid", frozen=True)


class PublishedCodes(BaseModel):
    """Codes of an attribute: the parts of which each total is the sum, in one or more hierarchies over the same leaves."""

    model_config = STRICT

    total: str
    of: str
    stands_for: dict[str, tuple[str, ...]]
    trees: Annotated[tuple[dict[str, tuple[str, ...]], ...], Field(min_length=1)]


class PublishedProtectedTable(BaseModel):
    """A table by some attributes: their codes, the number (missing where hidden) and its two status codes."""

    model_config = STRICT

    name: str
    file: Annotated[str, Field(pattern=r"^data/[a-z0-9-]+\.parquet$")]
    by: Annotated[tuple[str, ...], Field(min_length=1)]
    value: str
    measured: str
    counts: bool
    negative: bool
    decimals: Annotated[int, Field(ge=0, le=MOST_DECIMALS)]
    depth: dict[str, int]


class ProtectedTablesPromise(Promise):
    """Every table of the release."""

    promise: Literal["protected-tables"]
    tables: Annotated[tuple[PublishedProtectedTable, ...], Field(min_length=1)]
    codes: dict[str, PublishedCodes]


Meaning = tuple[str, tuple[tuple[str, frozenset[str]], ...]]


@dataclass(slots=True)
class Knowledge:
    """All numbers by their meaning: shown numbers in units, hidden numbers, and totals that no table lists."""

    shown: dict[Meaning, int] = field(default_factory=dict)
    hidden: dict[Meaning, PublishedProtectedTable] = field(default_factory=dict)
    unlisted: dict[Meaning, PublishedProtectedTable] = field(default_factory=dict)
    sums: dict[tuple[Meaning, frozenset[Meaning]], str] = field(default_factory=dict)


def check_protected(context: Context, promise: ProtectedTablesPromise) -> Outcome:
    """Check every table, then all tables together."""
    knowledge = Knowledge()
    n_lines = 0
    for table in promise.tables:
        cells = _cells(context, table)
        n_lines += len(cells)
        problem = copy_problem(context.folder, table.file)
        problem = problem or learn(knowledge, table, promise.codes, cells)
        if problem is not None:
            return Outcome(False, problem)
    for (total, parts), file in knowledge.sums.items():
        is_shown = total in knowledge.shown and all(part in knowledge.shown for part in parts)
        if is_shown and knowledge.shown[total] != sum(knowledge.shown[part] for part in parts):
            return Outcome(False, f"a total of {file} is not the sum of its parts")
    detail = f"{n_lines} cells, {len(knowledge.hidden)} hidden"
    if not knowledge.hidden:
        return Outcome(True, detail)
    if len(knowledge.hidden) + len(knowledge.unlisted) > MOST_UNKNOWNS:
        alone = _single(knowledge)
        return Outcome(
            alone is None,
            alone or f"{detail}; too many for a full check; only that none is alone in a sum was checked",
        )
    disclosed = _disclosed_number(knowledge)
    return Outcome(disclosed is None, disclosed or f"{detail}, none of which follows from the others")


def _cells(context: Context, table: PublishedProtectedTable) -> dict[tuple[str, ...], int | None]:
    """Numbers in units by their codes; None if hidden."""
    read = context.folder.table(table.file, most_rows=MOST_LINES)
    if read.column_names != [*table.by, table.value, *STATUS_COLUMNS]:
        raise Malformed("the columns of the file are not the promised ones")
    kind = read[table.value].type
    is_whole = pa.types.is_integer(kind)
    if not (is_whole if table.decimals == 0 else pa.types.is_decimal(kind) and kind.scale == table.decimals):
        raise Malformed(f"the numbers of {table.file} are not of the promised kind")
    found: dict[tuple[str, ...], int | None] = {}
    columns = [column.to_pylist() for column in read.columns]
    for *codes, number, observed, status in zip(*columns, strict=True):
        key = tuple(codes)
        if None in key or key in found:
            raise Malformed(f"a cell of {table.file} has no code or is repeated")
        if (observed, status) != (SUPPRESSED if number is None else SHOWN):
            raise Malformed(f"a status of {table.file} does not say whether its number is hidden")
        if number is not None and number < 0 and not table.negative:
            raise Malformed(f"a number of {table.file} is negative")
        found[key] = None if number is None else int(Decimal(number).scaleb(table.decimals))
    return found


def _leaves(
    codes: PublishedCodes, depth: int | None
) -> tuple[dict[str, frozenset[str]], list[tuple[str, tuple[str, ...]]]]:
    """The leaves for which each code stands, and which codes are sums of which, deepest first."""
    means: dict[str, frozenset[str]] = {}
    sums: list[tuple[int, str, tuple[str, ...]]] = []
    for tree in codes.trees:
        own: dict[str, int] = {codes.total: 0}
        for code in _downwards(tree, codes.total):
            for part in tree.get(code, ()):
                if part in own:
                    raise Malformed("a hierarchy has a code twice")
                own[part] = own[code] + 1
        if set(tree) - set(own):
            raise Malformed("a hierarchy has codes below nothing")
        below: dict[str, frozenset[str]] = {}
        for code in sorted(own, key=lambda one: -own[one]):
            parts = tree.get(code, ())
            leaf = frozenset(codes.stands_for.get(code, (code,)))
            below[code] = frozenset().union(*(below[part] for part in parts)) if parts else leaf
            if means.setdefault(code, below[code]) != below[code]:
                raise Malformed("two hierarchies give a code different parts")
        for code, parts in tree.items():
            if parts and (depth is None or own[code] < depth):
                sums.append((own[code], code, parts))
    return means, [(code, parts) for _, code, parts in sorted(sums, key=lambda one: -one[0])]


def _downwards(tree: Mapping[str, tuple[str, ...]], total: str) -> Iterator[str]:
    """Codes from the total down; stops after the largest possible number."""
    waiting, most = [total], 1 + sum(map(len, tree.values()))
    for _ in range(most):
        if not waiting:
            return
        code = waiting.pop(0)
        yield code
        waiting += tree.get(code, ())


def learn(
    knowledge: Knowledge,
    table: PublishedProtectedTable,
    codes: Mapping[str, PublishedCodes],
    cells: Mapping[tuple[str, ...], int | None],
) -> str | None:
    """Enter a table; return what is wrong with it, if anything."""
    axes = [
        (codes[name].of, codes[name].total, *_leaves(codes[name], table.depth.get(name))) for name in table.by
    ]

    def meaning(key: tuple[str, ...]) -> Meaning:
        detail = (
            (of, means[code], means[total]) for (of, total, means, _), code in zip(axes, key, strict=True)
        )
        quantity = f"{'count' if table.counts else 'sum'} {table.measured}"
        return quantity, tuple(
            sorted(((of, part) for of, part, whole in detail if part != whole), key=_order)
        )

    listed: dict[tuple[str, ...], Meaning] = {}
    for key, number in cells.items():
        if any(code not in axis[2] for code, axis in zip(key, axes, strict=True)):
            return f"a code of {table.file} is in no hierarchy"
        listed[key] = one = meaning(key)
        if number is None and one not in knowledge.shown:
            knowledge.hidden.setdefault(one, table)
        elif (
            number is not None
            and one not in knowledge.hidden
            and knowledge.shown.setdefault(one, number) == number
        ):
            pass
        else:
            return f"a cell of {table.file} differs from the same cell in another table or line"
    for place, (_, _, _, sums) in enumerate(axes):
        by_rest: dict[tuple[str, ...], dict[str, Meaning]] = {}
        for key, one in listed.items():
            by_rest.setdefault(key[:place] + key[place + 1 :], {})[key[place]] = one
        for rest, line in by_rest.items():
            for code, parts in sums:
                present = [line[part] for part in parts if part in line]
                if present and code not in line:
                    key = (*rest[:place], code, *rest[place:])
                    line[code] = listed[key] = one = meaning(key)
                    if one not in knowledge.shown and one not in knowledge.hidden:
                        knowledge.unlisted.setdefault(one, table)
                if present and set(present) != {line[code]}:
                    knowledge.sums.setdefault((line[code], frozenset(present)), table.file)
    return None


def _order(one: tuple[str, frozenset[str]]) -> tuple[str, list[str]]:
    return one[0], sorted(one[1])


def _single(knowledge: Knowledge) -> str | None:
    """A sum in which all numbers but one are shown."""
    for (total, parts), file in knowledge.sums.items():
        unknown = [one for one in {total, *parts} if one not in knowledge.shown]
        if len(unknown) == 1 and unknown[0] in knowledge.hidden:
            return f"a hidden number of {file} follows from a sum whose other numbers are shown"
    return None


def _disclosed_number(knowledge: Knowledge) -> str | None:
    """A hidden number that all shown numbers together determine; None if there is none."""
    import numpy as np
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    tables = knowledge.hidden | {
        one: own for one, own in knowledge.unlisted.items() if one not in knowledge.hidden
    }
    number = {one: place for place, one in enumerate(tables)}
    unit = np.array([10.0**-own.decimals for own in tables.values()])
    entries: list[tuple[int, int, float]] = []
    right: list[float] = []
    for total, parts in knowledge.sums:
        signed = [(total, 1.0), *((part, -1.0) for part in parts)]
        unknown = [(number[one], sign) for one, sign in signed if one in number]
        if not unknown:
            continue
        known = sum(-sign * knowledge.shown[one] for one, sign in signed if one not in number)
        entries += [(len(right), place, sign) for place, sign in unknown]
        right.append(known * float(unit[unknown[0][0]]))
    rows, columns, signs = zip(*entries, strict=True) if entries else ((), (), ())
    matrix = csr_array((signs, (rows, columns)), shape=(len(right), len(number)))
    bounds = [
        (None if own.negative else float(own.counts and one in knowledge.hidden), None)
        for one, own in tables.items()
    ]
    least, most = np.full(len(number), np.inf), np.full(len(number), -np.inf)
    enough = np.maximum(unit / 2, 1e-6)
    for place, sign in product(range(len(knowledge.hidden)), (-1.0, 1.0)):
        if most[place] - least[place] > enough[place]:
            continue
        cost = np.zeros(len(number))
        cost[place] = sign
        equal: Any = (matrix, right) if right else (None, None)
        found = linprog(cost, A_eq=equal[0], b_eq=equal[1], bounds=bounds, method="highs")
        if found.status == 4:  # presolve could not decide whether the program is infeasible or unbounded
            plain: Any = {"presolve": False}
            found = linprog(cost, A_eq=equal[0], b_eq=equal[1], bounds=bounds, method="highs", options=plain)
        if found.status == 3:  # nothing bounds it
            most[place], least[place] = np.inf, 0.0
        elif found.status == 2:
            return "no table agrees with the shown numbers and the hierarchies"
        elif found.x is None:
            raise Malformed("the possible values of the hidden numbers could not be determined")
        else:
            least, most = np.minimum(least, found.x), np.maximum(most, found.x)
    detail = list(tables.values())
    for place in range(len(knowledge.hidden)):
        if most[place] - least[place] <= enough[place]:
            return f"a hidden number of {detail[place].file} follows from the shown ones"
    return None
