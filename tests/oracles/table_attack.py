"""An attack on published tables: a linear program for every cell, over the numbers of the crossed table behind them.

It reads what anybody can read (the files and the hierarchies) and shares nothing with what made them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
from scipy.optimize import linprog

Tree = Mapping[str, Sequence[str]]


class Attack:
    """What a reader of several tables can say about a number.

    Parameters
    ----------
    trees : mapping
        Attribute -> code -> the codes that it is the sum of; the total is called Total.
    tables : sequence of (by, lines)
        Lines are tuples of codes and the number, None where it is hidden.
    counts : bool
        Whether numbers count people, so that a hidden one is at least 1.
    """

    def __init__(
        self,
        trees: Mapping[str, Tree],
        tables: Sequence[tuple[Sequence[str], Sequence[tuple]]],
        counts: bool = False,
    ):
        self.trees, self.names = trees, sorted(trees)
        self.cross = list(product(*(sorted(self.leaves(name, "Total")) for name in self.names)))
        equal, least = [], []
        for by, lines in tables:
            listed = {codes for *codes, _ in map(tuple, lines) for codes in [tuple(codes)]}
            for *codes, number in lines:
                row = self.row(dict(zip(by, codes, strict=True)))
                if number is not None:
                    equal.append((row, float(number)))
                elif counts:
                    least.append((row, 1.0))
            finest = product(*(sorted(self.leaves(name, "Total")) for name in by))
            equal += [
                (self.row(dict(zip(by, codes, strict=True))), 0.0) for codes in finest if codes not in listed
            ]
        self.equal, self.least = equal, least

    def leaves(self, name: str, code: str) -> set[str]:
        parts = self.trees[name].get(code)
        return {code} if not parts else set().union(*(self.leaves(name, part) for part in parts))

    def row(self, cell: Mapping[str, str]) -> np.ndarray:
        inside = {name: self.leaves(name, code) for name, code in cell.items()}
        return np.array(
            [
                all(
                    code in inside[name]
                    for name, code in zip(self.names, codes, strict=True)
                    if name in inside
                )
                for codes in self.cross
            ],
            dtype=float,
        )

    def bounds(
        self,
        cell: Mapping[str, str],
        knows: Sequence[tuple[Mapping[str, str], float]] = (),
        at_least: Sequence[tuple[Mapping[str, str], float]] = (),
    ) -> tuple[float, float]:
        """Least and greatest possible number of a cell for somebody who knows some numbers, and lower bounds of others."""
        equal = [*self.equal, *((self.row(one), number) for one, number in knows)]
        least = [*self.least, *((self.row(one), number) for one, number in at_least)]
        target = self.row(cell)
        ends = []
        for sign in (1.0, -1.0):
            found = linprog(
                sign * target,
                A_eq=np.array([row for row, _ in equal]),
                b_eq=[number for _, number in equal],
                A_ub=-np.array([row for row, _ in least]) if least else None,
                b_ub=[-number for _, number in least] or None,
                bounds=(0, None),
            )
            assert found.status in (0, 3), found.message
            ends.append(sign * found.fun if found.status == 0 else sign * -np.inf)
        return ends[0], ends[1]
