"""The fewest changes to a household whose ages do not fit, by trying everything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

__all__ = ["fewest_changes"]


def fewest_changes(
    people: Sequence[int],
    choices: Callable[[int], Sequence[int]],
    n_misfits: Callable[[Sequence[int]], int],
    is_kept: Callable[[Sequence[int]], bool],
) -> tuple[int, int]:
    """People who fit in no way, then people changed, over all ways to give everybody a cell of `choices`.

    Parameters
    ----------
    people : cells of all people.
    choices : the cells that the person in a place can have.
    n_misfits : people who do not fit.
    is_kept : whether bounds and rules are broken no more than before.
    """
    return min(
        (n_misfits(tried), sum(new != old for new, old in zip(tried, people, strict=True)))
        for tried in product(*(choices(place) for place in range(len(people))))
        if is_kept(tried)
    )
