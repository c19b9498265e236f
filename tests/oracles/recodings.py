"""The least loss over all recodings of whole columns, by trying every combination; straight from the definitions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import product

Coding = Sequence[Hashable]
"""The block of each row."""

BlockLoss = Callable[[Coding, Sequence[int]], float]
"""Loss per record of a block of a coding, given as the rows of it that are published."""


def runs(values: Sequence[float | None]) -> Iterator[Coding]:
    """All ways to cut the values into runs of neighbours; missing ones apart, or everything in one block."""
    known = sorted({v for v in values if v is not None})
    if len(known) and None in values:
        yield [0] * len(values)
    for cuts in product((False, True), repeat=max(0, len(known) - 1)):
        block, of = 0, {}
        for value, is_cut in zip(known, (False, *cuts), strict=False):
            block += is_cut
            of[value] = block
        yield [-1 if v is None else of[v] for v in values]


def sets(labels: Sequence[int]) -> Iterator[Coding]:
    """All partitions of the labels that occur."""
    found: list[list[list[int]]] = [[]]
    for label in sorted(set(labels)):
        found = [
            [
                *(block + [label] * (place == i) for i, block in enumerate(blocks)),
                *([[label]] if place < 0 else []),
            ]
            for blocks in found
            for place in range(-1, len(blocks))
        ]
    for blocks in found:
        yield [next(i for i, block in enumerate(blocks) if label in block) for label in labels]


def least_recoding(
    columns: Sequence[tuple[float, Sequence[Coding], BlockLoss]],
    k: int,
    most_out: int,
    is_fine: Callable[[Sequence[int]], bool] = lambda rows: True,
) -> float | None:
    """The least loss; classes below k, or that are not fine, are left out at full loss, at most so many records."""
    best = None
    full = sum(weight for weight, _, _ in columns)
    for codings in product(*(codings for _, codings, _ in columns)):
        classes = defaultdict(list)
        for row, key in enumerate(zip(*codings, strict=True)):
            classes[key].append(row)
        kept = {row for rows in classes.values() if len(rows) >= k and is_fine(rows) for row in rows}
        n_out = len(codings[0]) - len(kept)
        if n_out > most_out:
            continue
        loss = n_out * full
        for (weight, _, block_loss), coding in zip(columns, codings, strict=True):
            blocks = defaultdict(list)
            for row in sorted(kept):
                blocks[coding[row]].append(row)
            loss += weight * sum(len(rows) * block_loss(coding, rows) for rows in blocks.values())
        best = loss if best is None else min(best, loss)
    return best
