"""Columns that determine others: readers know which district lies in which region, so a table by one is linked with a table by the other.

The meaning of a code of the coarser column is the set of codes of the finer one with which it occurs in the records. A table by the finer
column shows no sums over these sets, but readers can form them, so these sums become cells that no table shows (decision 0120).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from louver.data.dependencies import near_function
from louver.protect.cells import Axis, ColumnCodes, axis_of, check_size
from louver.protect.hierarchy import Tree

__all__ = ["Links", "find_links"]

OWN = "\0"
"""Prefix of codes that no table shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Dependencies between columns in the records.

    Attributes
    ----------
    pairs : tuple of (str, str)
        Finer and coarser column that are linked.
    doubts : tuple of (str, str)
        The same kind of pair, not linked because a table uses both columns, or another finer column is linked.
    near : tuple of (str, str)
        Columns of which the first determines the second in nearly all records, where a table is by only one of them.
    stands_for : mapping
        Linked coarser column -> its codes -> codes of the finer column.
    """

    pairs: tuple[tuple[str, str], ...]
    doubts: tuple[tuple[str, str], ...]
    near: tuple[tuple[str, str], ...]
    stands_for: Mapping[str, Mapping[str, frozenset[str]]]

    def linked(self, attribute: ColumnCodes, attributes: Mapping[str, ColumnCodes]) -> ColumnCodes:
        """An attribute whose codes stand for those of the finer column."""
        finer = {coarser: finer for finer, coarser in self.pairs}.get(attribute.name)
        if finer is None or attribute.of != attribute.name:
            return attribute
        below, base = self.stands_for[attribute.name], attributes[finer]
        stands_for = {
            leaf: frozenset[str]().union(*(base.stands_for[one] for one in below.get(leaf, ())))
            for leaf in attribute.stands_for
        }
        return replace(attribute, of=base.of, stands_for=stands_for, is_linked=True)

    def wider(
        self, name: str, axes: Sequence[Axis], attributes: Mapping[str, ColumnCodes]
    ) -> tuple[Axis, ...] | None:
        """The axes of a table extended by the sums that readers can form; None if there are none."""
        found = []
        for axis in axes:
            trees = [
                self._tree(axis.attribute, attributes[coarser], tree)
                for finer, coarser in self.pairs
                if finer == axis.attribute.name
                for tree in attributes[coarser].trees
            ]
            if trees:
                attribute = replace(axis.attribute, trees=(*axis.attribute.trees, *trees))
                found.append(axis_of(attribute, None))
            else:
                found.append(axis)
        if all(one is axis for one, axis in zip(found, axes, strict=True)):
            return None
        check_size(name, found)
        return tuple(found)

    def _tree(self, finer: ColumnCodes, coarser: ColumnCodes, tree: Tree) -> Tree:
        """A tree with the codes of the coarser column above those of the finer one."""
        below = self.stands_for[coarser.name]
        own = {code: f"{OWN}{coarser.name}{OWN}{code}" for code in tree.codes} | {tree.total: finer.total}
        seen = {code for code in tree.codes if any(leaf in below for leaf in tree.leaves[code])}
        parts = {
            own[code]: tuple(own[part] for part in tree.parts[code] if part in seen)
            if tree.parts.get(code)
            else tuple(sorted(below[code]))
            for code in seen
        }
        known = frozenset[str]().union(*below.values())
        rest = tuple(sorted(finer.trees[0].leaves[finer.trees[0].total] - known))
        if rest:
            parts |= {finer.total: (*parts[finer.total], OWN), OWN: rest}
        return Tree(finer.total, parts)


def find_links(
    attributes: Mapping[str, ColumnCodes],
    labels: Mapping[str, Sequence[str]],
    tables: Sequence[Sequence[str]],
) -> Links:
    """Pairs of columns of which one determines the other in all records.

    Parameters
    ----------
    attributes : mapping
        The attributes of all tables, by name.
    labels : mapping
        Column -> the code of each record.
    tables : sequence of sequences of str
        The columns of each table.

    Notes
    -----
    Of columns that determine each other, the first with the most codes is the finer one. A rule may hold by chance, but that does no harm:
    assuming too much knowledge can only hide more.
    """
    n_codes = {name: len(set(labels[name])) for name in attributes}
    order = sorted(attributes, key=lambda name: -n_codes[name])
    base = {name: attribute.of for name, attribute in attributes.items()}
    pairs, doubts, near = [], [], []
    stands_for: dict[str, dict[str, frozenset[str]]] = {}
    for place, coarser in enumerate(order):
        for finer in order[:place]:
            if base[finer] == base[coarser] or not 1 < n_codes[coarser] <= n_codes[finer] < len(
                labels[finer]
            ):
                continue
            both = set(zip(labels[finer], labels[coarser], strict=True))
            if len(both) > n_codes[finer]:
                is_apart = any((finer in by) != (coarser in by) for by in tables)
                if is_apart and _is_near(labels[finer], labels[coarser]):
                    near.append((finer, coarser))
                continue
            shares_table = any(
                coarser in by and base[finer] in [base[other] for other in by if other != coarser]
                for by in tables
            )
            is_free = attributes[coarser].of == coarser and coarser not in stands_for
            if shares_table or not is_free:
                doubts.append((finer, coarser))
                continue
            base[coarser] = base[finer]
            pairs.append((finer, coarser))
            below: dict[str, set[str]] = {}
            for one, other in sorted(both):
                below.setdefault(other, set()).add(one)
            stands_for[coarser] = {code: frozenset(own) for code, own in below.items()}
    return Links(
        pairs=tuple(pairs),
        doubts=tuple(pair for pair in doubts if base[pair[0]] != base[pair[1]]),
        near=tuple(near),
        stands_for=stands_for,
    )


def _is_near(finer: Sequence[str], coarser: Sequence[str]) -> bool:
    """Whether so few records contradict a rule that readers may assume it."""
    pairs = Counter(zip(finer, coarser, strict=True))
    codes = [
        np.unique(labels, return_inverse=True)[1].astype(np.int64) for labels in zip(*pairs, strict=True)
    ]
    return near_function(codes[0], codes[1], np.array(list(pairs.values()), dtype=np.int64)) is not None
