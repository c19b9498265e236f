"""Fourier-Motzkin elimination in exact arithmetic: what a system of linear constraints says about some of its unknowns.

Equations remove unknowns first (Gauss), then every remaining unknown is eliminated by combining what bounds it from below
with what bounds it from above. Rows are kept primitive, and those that follow from others are dropped with an exact proof.

Notes
-----
**Implements**: Abowd et al. (2019), section 6.2 and appendix D; redundancy after Imbert (1990) and by linear programs. **Departs**: whether
whole solutions extend to whole solutions is decided, not assumed. A step is exact over the integers if, in each combined pair, one
coefficient is one and the constants are whole (Pugh 1992); after any other step nothing is claimed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import gcd

import numpy as np
from scipy.optimize import linprog

from louver.errors import SolverError

__all__ = ["MAX_ROWS", "LinearRow", "Projection", "follows", "project"]

MAX_ROWS = 1_000
"""Maximum number of rows that a step may produce; their number can be squared with every unknown."""

FEW_ROWS = 24  # up to this many rows are kept without checking which follow from others


@dataclass(frozen=True, slots=True)
class LinearRow:
    """`coefficients @ x >= constant`, or `=` among equations.

    Examples
    --------
    >>> LinearRow((2, -4), Fraction(3)).primitive()
    LinearRow(coefficients=(1, -2), constant=Fraction(3, 2))
    """

    coefficients: tuple[int, ...]
    constant: Fraction

    def primitive(self) -> LinearRow:
        """The same row with coefficients that have no common divisor."""
        divisor = gcd(*self.coefficients) or 1
        return LinearRow(tuple(a // divisor for a in self.coefficients), Fraction(self.constant) / divisor)

    def plus(self, other: LinearRow, own: int, others: int) -> LinearRow:
        """`own` times this row and `others` times the other."""
        pairs = zip(self.coefficients, other.coefficients, strict=True)
        return LinearRow(
            tuple(own * a + others * b for a, b in pairs), own * self.constant + others * other.constant
        ).primitive()

    def holds(self, point: Sequence[int], *, is_equation: bool = False) -> bool:
        """Whether a point satisfies the row."""
        value = sum(a * x for a, x in zip(self.coefficients, point, strict=True))
        return value == self.constant if is_equation else value >= self.constant

    @property
    def _is_whole(self) -> bool:
        return self.constant.denominator == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """What a system says about the unknowns that were kept, in their order.

    Parameters
    ----------
    equations, inequalities : tuple of LinearRow
        Complete over the real numbers. An unknown that an equation determines does not occur in inequalities.
    is_exact : bool
        Whether every whole solution is known to extend to a whole solution of the system it came from.
    is_feasible : bool
        False where the system contradicts itself.
    """

    equations: tuple[LinearRow, ...]
    inequalities: tuple[LinearRow, ...]
    is_exact: bool
    is_feasible: bool = True

    def holds(self, point: Sequence[int]) -> bool:
        """Whether a point of the kept unknowns satisfies every row."""
        return (
            self.is_feasible
            and all(row.holds(point, is_equation=True) for row in self.equations)
            and all(row.holds(point) for row in self.inequalities)
        )

    def in_words(self, names: Sequence[str]) -> tuple[str, ...]:
        """The rows as sentences about named unknowns.

        Examples
        --------
        >>> row = LinearRow((1, -1), Fraction(2))
        >>> Projection(equations=(row,), inequalities=(), is_exact=True).in_words(["a", "b"])
        ('a = 2 + b',)
        """
        equal = [_in_words(row, "=", names) for row in self.equations]
        return (*equal, *(_in_words(row, ">=", names) for row in self.inequalities))


def _in_words(row: LinearRow, sign: str, names: Sequence[str]) -> str:
    """One row with its positive terms on the left."""
    left = [_term(a, name) for a, name in zip(row.coefficients, names, strict=True) if a > 0]
    right = [_term(-a, name) for a, name in zip(row.coefficients, names, strict=True) if a < 0]
    if row.constant > 0 or not right:
        right.insert(0, str(row.constant))
    elif row.constant < 0:
        left.insert(0, str(-row.constant))
    return f"{' + '.join(left) or '0'} {sign} {' + '.join(right)}"


def _term(coefficient: int, name: str) -> str:
    return name if coefficient == 1 else f"{coefficient} {name}"


def project(
    equations: Iterable[LinearRow], inequalities: Iterable[LinearRow], kept: Sequence[int]
) -> Projection:
    """Eliminate all unknowns but those kept.

    Parameters
    ----------
    equations, inequalities : iterable of LinearRow
        The system.
    kept : sequence of int
        Positions of the unknowns to keep.

    Raises
    ------
    SolverError
        If a step would produce more than MAX_ROWS rows.

    Examples
    --------
    Two regions of 3 and 4 people; in the first at most one is old, in the second at least two. How many are old together?
    Unknowns: old in the first, in the second, together.

    >>> sums = [LinearRow((1, 1, -1), Fraction(0))]
    >>> bounds = [LinearRow((1, 0, 0), Fraction(0)), LinearRow((-1, 0, 0), Fraction(-1)),
    ...           LinearRow((0, 1, 0), Fraction(2)), LinearRow((0, -1, 0), Fraction(-4))]
    >>> project(sums, bounds, [2]).in_words(["old"])
    ('5 >= old', 'old >= 2')
    """
    exact, equal, rest = _substitute(list(equations), list(inequalities), set(kept))
    rows = {row: frozenset([i]) for i, row in enumerate(_tightest(rest))}
    unknowns = {j for row in rows for j, a in enumerate(row.coefficients) if a} - set(kept)
    for step in range(len(unknowns)):
        unknown = min(unknowns, key=lambda j: (_growth(rows, j), j))
        unknowns.remove(unknown)
        exact &= _is_exact_step(rows, unknown)
        rows = _eliminate(rows, unknown, step + 1)
        if len(rows) > FEW_ROWS:
            proved = _irredundant(list(rows))
            rows = {row: rows[row] for row in proved}
    return _finished(equal, list(rows), list(kept), exact)


def _substitute(
    equations: list[LinearRow], inequalities: list[LinearRow], kept: set[int]
) -> tuple[bool, list[LinearRow], list[LinearRow]]:
    """Remove unknowns by equations; return whether each had a coefficient of one, and the remaining equations and inequalities."""
    exact, left = True, []
    equations = [row.primitive() for row in equations]
    while equations:
        # Eliminating an unknown whose coefficient is one keeps the solutions integral.
        equations.sort(key=lambda row: not _unit(row, kept))
        row = equations.pop(0)
        chosen = _unit(row, kept) or [j for j, a in enumerate(row.coefficients) if a and j not in kept]
        if not chosen:
            left.append(row)
            continue
        exact &= abs(row.coefficients[chosen[0]]) == 1 and row._is_whole
        equations = [_without(other, row, chosen[0]) for other in equations]
        inequalities = [_without(other, row, chosen[0]) for other in inequalities]
    return exact, left, [row.primitive() for row in inequalities]


def _unit(row: LinearRow, kept: set[int]) -> list[int]:
    return [j for j, a in enumerate(row.coefficients) if abs(a) == 1 and j not in kept]


def _without(row: LinearRow, equation: LinearRow, unknown: int) -> LinearRow:
    """The row after an equation replaces one unknown; inequalities keep their direction."""
    a, pivot = row.coefficients[unknown], equation.coefficients[unknown]
    return row if a == 0 else row.plus(equation, abs(pivot), -a if pivot > 0 else a)


def _tightest(rows: Iterable[LinearRow]) -> list[LinearRow]:
    """The tightest row for each direction."""
    most: dict[tuple[int, ...], Fraction] = {}
    for row in rows:
        most[row.coefficients] = max(row.constant, most.get(row.coefficients, row.constant))
    return [LinearRow(a, c) for a, c in most.items() if any(a) or c > 0]


def _growth(rows: Iterable[LinearRow], unknown: int) -> int:
    """By how many rows the system grows when an unknown is eliminated."""
    signs = [(row.coefficients[unknown] > 0) - (row.coefficients[unknown] < 0) for row in rows]
    below, above = signs.count(1), signs.count(-1)
    return below * above - below - above


def _is_exact_step(rows: Iterable[LinearRow], unknown: int) -> bool:
    """Whether a whole value is always found between all lower and upper bounds of an unknown."""
    bounds = [row for row in rows if row.coefficients[unknown]]
    sizes = [
        {abs(row.coefficients[unknown]) for row in bounds if row.coefficients[unknown] * s > 0}
        for s in (1, -1)
    ]
    return all(row._is_whole for row in bounds) and any(size <= {1} for size in sizes)


def _eliminate(
    rows: dict[LinearRow, frozenset[int]], unknown: int, step: int
) -> dict[LinearRow, frozenset[int]]:
    """Combine every lower with every upper bound; rows of more than step + 1 origins follow from others (Imbert)."""
    below = [row for row in rows if row.coefficients[unknown] > 0]
    above = [row for row in rows if row.coefficients[unknown] < 0]
    new = {row: origin for row, origin in rows.items() if not row.coefficients[unknown]}
    for low, high in product(below, above):
        origin = rows[low] | rows[high]
        if len(origin) <= step + 1:
            row = low.plus(high, -high.coefficients[unknown], low.coefficients[unknown])
            new[row] = min(origin, new.get(row, origin), key=len)
            if len(new) > MAX_ROWS:
                raise SolverError(
                    f"eliminating the unknowns of these constraints takes more than {MAX_ROWS:,} rows; "
                    "state constraints on fewer sets, or on sets that are nested or disjoint."
                )
    return {row: new[row] for row in _tightest(new)}


def _irredundant(rows: list[LinearRow]) -> list[LinearRow]:
    """Rows that remain when those that provably follow from the others are dropped."""
    left = list(rows)
    for row in sorted(rows, key=lambda row: -sum(map(abs, row.coefficients))):
        others = [other for other in left if other != row]
        if follows(row, others):
            left = others
    return left


def follows(row: LinearRow, others: Sequence[LinearRow]) -> bool:
    """Whether a row is a combination of others, with weights that are not negative, and not stronger than that combination.

    A linear program in floating point proposes which rows take part; their weights are computed and checked exactly.
    """
    if not others:
        return False
    matrix = np.array([other.coefficients for other in others], dtype=np.float64).T
    cost = -np.array([float(other.constant) for other in others])
    answer = linprog(cost, A_eq=matrix, b_eq=np.array(row.coefficients, np.float64), method="highs-ds")
    if answer.x is None or answer.fun is None or -answer.fun < float(row.constant) - 1e-6:
        return False
    part = [other for other, weight in zip(others, answer.x, strict=True) if weight > 1e-9]
    weights = _solve_exactly([other.coefficients for other in part], row.coefficients)
    if weights is None or any(weight < 0 for weight in weights):
        return False
    return sum(w * other.constant for w, other in zip(weights, part, strict=True)) >= row.constant


def _solve_exactly(columns: Sequence[Sequence[int]], right: Sequence[int]) -> list[Fraction] | None:
    """The weights of columns that add up to the right side; None if there are none or they are not unique."""
    table = [[Fraction(c[i]) for c in columns] + [Fraction(right[i])] for i in range(len(right))]
    n = len(columns)
    for j in range(n):
        pivot = next((i for i in range(j, len(table)) if table[i][j]), None)
        if pivot is None:
            return None
        table[j], table[pivot] = table[pivot], table[j]
        table[j] = [value / table[j][j] for value in table[j]]
        for i in range(len(table)):
            if i != j and table[i][j]:
                table[i] = [a - table[i][j] * b for a, b in zip(table[i], table[j], strict=True)]
    return None if any(line[n] for line in table[n:]) else [line[n] for line in table[:n]]


def _finished(
    equations: list[LinearRow], inequalities: list[LinearRow], kept: Sequence[int], exact: bool
) -> Projection:
    """Rows over the kept unknowns: pairs of opposite rows become equations, which are solved and substituted into the others."""
    equal = [LinearRow(tuple(row.coefficients[j] for j in kept), row.constant) for row in equations]
    rest = [LinearRow(tuple(row.coefficients[j] for j in kept), row.constant) for row in inequalities]
    while True:
        equal = _solved(equal)
        rest = _irredundant(_tightest(_reduced(row, equal) for row in rest))
        opposite = {tuple(-a for a in row.coefficients): -row.constant for row in rest}
        if any(not any(row.coefficients) for row in (*equal, *rest)) or any(
            opposite.get(row.coefficients, row.constant) < row.constant for row in rest
        ):
            return Projection(equations=(), inequalities=(), is_exact=True, is_feasible=False)
        found = [row for row in rest if opposite.get(row.coefficients) == row.constant]
        if not found:
            break
        equal, rest = equal + found, [row for row in rest if row not in found]
    order = sorted(
        rest, key=lambda row: (len(row.coefficients) - row.coefficients.count(0), _leading(row)[0])
    )
    return Projection(equations=tuple(equal), inequalities=tuple(order), is_exact=exact)


def _leading(row: LinearRow) -> tuple[int, int]:
    """Position of the first unknown of a row, and its coefficient."""
    return next(((j, a) for j, a in enumerate(row.coefficients) if a), (len(row.coefficients), 0))


def _solved(equations: list[LinearRow]) -> list[LinearRow]:
    """Equations that each determine their first unknown; those that follow from others are dropped."""
    done: list[LinearRow] = []
    for row in equations:
        row = _reduced(row, done)
        place, first = _leading(row)
        if first == 0 and row.constant == 0:
            continue
        if first == 0:
            return [row]
        row = row if first > 0 else LinearRow(tuple(-a for a in row.coefficients), -row.constant)
        done = [_without(other, row, place) for other in done] + [row]
    return sorted(done, key=_leading)


def _reduced(row: LinearRow, equations: Sequence[LinearRow]) -> LinearRow:
    """The row after equations replace the unknowns that they determine."""
    for equation in equations:
        place = _leading(equation)[0]
        if place < len(row.coefficients):
            row = _without(row, equation, place)
    return row.primitive()
