"""The least loss over all partitions, by trying every class of every subset; straight from the definitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from math import exp, log

Loss = Callable[[Sequence[int]], float]
"""Loss per record, between 0 and 1, of a class given as rows."""


def interval_loss(values: Sequence[float | None], *, missing_matches: bool = False) -> Loss:
    """Definition 4 on the table's own range; None is missing."""
    known = [v for v in values if v is not None]
    width = max(known) - min(known) if known else 0

    def loss(rows: Sequence[int]) -> float:
        inside = [values[i] for i in rows if values[i] is not None]
        if not inside:
            return 0.0
        if len(inside) < len(rows) and not missing_matches:
            return 1.0
        return (max(inside) - min(inside)) / width if width else 0.0

    return loss


def set_loss(labels: Sequence[int], n_labels: int, *, one_hot: bool = False) -> Loss:
    """Definition 8, or the binary attributes of section 2.5; label -1 matches anything."""

    def loss(rows: Sequence[int]) -> float:
        count = len({labels[i] for i in rows} - {-1})
        if one_hot:
            return count / n_labels if count > 1 else 0.0
        return max(0, count - 1) / n_labels

    return loss


def tree_loss(labels: Sequence[int], levels: Sequence[Sequence[int]]) -> Loss:
    """Share of leaves, less one, below the lowest node that holds all of a class; label -1 matches anything."""
    n_labels = len(levels[0])

    def loss(rows: Sequence[int]) -> float:
        inside = {labels[i] for i in rows} - {-1}
        if not inside:
            return 0.0
        for level in levels:
            nodes = {level[label] for label in inside}
            if len(nodes) == 1:
                return (sum(node in nodes for node in level) - 1) / n_labels
        raise AssertionError("the last level is the root")

    return loss


def has_distinct(values: Sequence[int], least: int) -> Callable[[Sequence[int]], bool]:
    """Distinct l-diversity."""
    return lambda rows: len({values[i] for i in rows}) >= least


def has_entropy(values: Sequence[int], least: float) -> Callable[[Sequence[int]], bool]:
    """Entropy l-diversity."""

    def is_allowed(rows: Sequence[int]) -> bool:
        inside = [values[i] for i in rows]
        shares = [inside.count(v) / len(inside) for v in set(inside)]
        return exp(-sum(s * log(s) for s in shares)) >= least - 1e-9

    return is_allowed


def has_recursive(values: Sequence[int], least: int, c: str) -> Callable[[Sequence[int]], bool]:
    """Recursive (c, l)-diversity, c as a decimal number: r_1 < c (r_l + ... + r_m), counts descending."""

    def is_allowed(rows: Sequence[int]) -> bool:
        inside = [values[i] for i in rows]
        counts = sorted((inside.count(v) for v in set(inside)), reverse=True)
        return counts[0] < Fraction(c) * sum(counts[least - 1 :])

    return is_allowed


def is_close(
    values: Sequence[int], n_values: int, t: float, distance: Callable[[int, int], float]
) -> Callable[[Sequence[int]], bool]:
    """t-closeness for a ground distance between values, by the transport problem itself."""
    import numpy as np
    from scipy.optimize import linprog

    cost = np.array([[distance(a, b) for b in range(n_values)] for a in range(n_values)])
    whole = np.bincount(values, minlength=n_values) / len(values)
    ways = np.kron(np.eye(n_values), np.ones(n_values)), np.kron(np.ones(n_values), np.eye(n_values))

    @cache
    def is_allowed_counts(counts: tuple[int, ...]) -> bool:
        shares = np.array(counts) / sum(counts)
        found = linprog(
            cost.ravel(), A_eq=np.vstack(ways), b_eq=np.concatenate([shares, whole]), method="highs"
        )
        return bool(found.fun <= t + 1e-9)

    return lambda rows: is_allowed_counts(tuple(np.bincount([values[i] for i in rows], minlength=n_values)))


def least_loss(
    n: int,
    k: int,
    losses: Sequence[tuple[float, Loss]],
    *,
    is_allowed: Callable[[Sequence[int]], bool] = lambda rows: True,
    max_suppressed: int = 0,
) -> float | None:
    """The least total loss of any partition into allowed classes of k or more; None if there is none.

    Parameters
    ----------
    losses : sequence of (weight, loss)
    """

    @cache
    def cost_of(members: tuple[int, ...]) -> float | None:
        if len(members) < k or not is_allowed(members):
            return None
        return len(members) * sum(weight * loss(members) for weight, loss in losses)

    full = sum(weight for weight, _ in losses)

    @cache
    def best(left: tuple[int, ...], n_out: int) -> float | None:
        if not left:
            return 0.0
        first, others = left[0], left[1:]
        found: list[float] = []
        if n_out > 0:
            rest = best(others, n_out - 1)
            if rest is not None:
                found.append(full + rest)
        for chosen in range(2 ** len(others)):
            members = (first, *(m for bit, m in enumerate(others) if chosen >> bit & 1))
            cost = cost_of(members)
            if cost is not None:
                rest = best(tuple(m for m in others if m not in members), n_out)
                if rest is not None:
                    found.append(cost + rest)
        return min(found, default=None)

    return best(tuple(range(n)), max_suppressed)


def least_unit_loss(
    units: Sequence[int], k: int, own: Sequence[tuple[float, Loss]], shared: Sequence[tuple[float, Loss]]
) -> float | None:
    """The least loss of classes with k different units each; what units share is alike for all that classes link together."""
    best = None
    for classes in _partitions(list(range(len(units)))):
        if any(len({units[i] for i in rows}) < k for rows in classes):
            continue
        linked = [{units[i] for i in rows} for rows in classes]
        for _ in classes:
            linked = [set().union(*(other for other in linked if other & mine)) for mine in linked]
        total = 0.0
        for rows, together in zip(classes, linked, strict=True):
            cell = [i for i, unit in enumerate(units) if unit in together]
            total += sum(weight * len(rows) * loss(rows) for weight, loss in own)
            total += sum(weight * len(rows) * loss(cell) for weight, loss in shared)
        best = total if best is None else min(best, total)
    return best


def _partitions(rows: list[int]) -> Iterator[list[list[int]]]:
    if not rows:
        yield []
        return
    first, *others = rows
    for rest in _partitions(others):
        yield [[first], *rest]
        for place, members in enumerate(rest):
            yield [*rest[:place], [first, *members], *rest[place + 1 :]]
