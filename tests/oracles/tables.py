"""Contingency tables as plain dictionaries from label tuples to counts: slow and obviously right."""

from __future__ import annotations

from collections import Counter

Table = dict[tuple[str, ...], int]


def table_of(histogram) -> Table:
    """The cells of a histogram by their labels."""
    return {
        tuple(a.labels[code] for a, code in zip(histogram.attributes, cell, strict=True)): int(count)
        for cell, count in zip(histogram.codes, histogram.counts, strict=True)
    }


def count(cells: list[tuple[tuple[str, ...], int]]) -> Table:
    total: Counter[tuple[str, ...]] = Counter()
    for cell, number in cells:
        total[cell] += number
    return {cell: number for cell, number in total.items() if number}


def margin(table: Table, axes: list[int]) -> Table:
    return count([(tuple(cell[axis] for axis in axes), number) for cell, number in table.items()])


def cut(table: Table, axis: int, label: str) -> Table:
    inside = {cell: number for cell, number in table.items() if cell[axis] == label}
    return count([(cell[:axis] + cell[axis + 1 :], number) for cell, number in inside.items()])


def renamed(table: Table, axis: int, new_label: dict[str, str]) -> Table:
    cells = []
    for cell, number in table.items():
        changed = list(cell)
        changed[axis] = new_label.get(cell[axis], cell[axis])
        cells.append((tuple(changed), number))
    return count(cells)
