"""Figures of a TopDown release that its page shows and no other file has: sizes of regions, their errors, and how they were found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from louver.topdown.result import TopDownRelease

__all__ = ["level_figures", "release_figures"]

QUANTILES = 21
"""Sizes of regions that are told for each level, from the smallest to the largest in equal steps; all where there are no more."""


def level_figures(release: TopDownRelease) -> list[dict[str, Any]]:
    """For every level: sizes of its regions, how far off they typically are (0 for exact), and parents without proof of optimality."""
    errors = _errors_of_sizes(release)
    figures = []
    for people, error, report in zip(release.sizes(), errors, release.estimate.levels, strict=True):
        ordered = np.sort(people)
        places = np.linspace(0, len(people) - 1, min(QUANTILES, len(people))).round().astype(np.int64)
        sizes, middle = ordered[places].tolist(), int(ordered[len(people) // 2])
        figures.append({"sizes": sizes, "median": middle, "error": error, "unproved": len(report.suboptimal)})
    return figures


def release_figures(release: TopDownRelease) -> dict[str, Any]:
    """Typical errors by level and query, bias by size, what is known beforehand, and how many cells are structural zeros."""
    design = release.plan.design
    return {
        "errors": _errors(release),
        "statements": [
            {
                "name": statement.name,
                "exact": statement.is_invariant,
                "level": design.spine.names[statement.level],
            }
            for statement in design.statements
        ],
        "structural_zeros": int((~design.is_possible).sum()),
    }


def _errors(release: TopDownRelease) -> dict[str, Any] | None:
    known, names = release.known_error, release.plan.design.spine.names
    if known is None:
        return None
    first = next(query.name for query in known.queries if query.n_rows == 1)
    return {
        "typical": [
            {
                "level": name,
                "query": query.name,
                "error": known.typical_error(level, place),
                "simulated": bool(known.model.classes[level, place].pairs.sum()),
            }
            for level, name in enumerate(names)
            for place, query in enumerate(known.queries)
        ],
        "bias": [
            [size, n, bias]
            for level, query, size, n, bias in known.bias
            if level == names[-1] and query == first
        ],
    }


def _errors_of_sizes(release: TopDownRelease) -> list[float]:
    """For each level, how far off a region's size typically is: as simulated, or where nothing is, by its measurements. 0 for exact."""
    known = release.known_error
    noise = _noise_of_sizes(release)
    if known is None:
        return noise
    total = next(place for place, query in enumerate(known.queries) if query.n_rows == 1)
    return [known.typical_error(level, total) if own else 0.0 for level, own in enumerate(noise)]


def _noise_of_sizes(release: TopDownRelease) -> list[float]:
    """For each level, the standard deviation of a region's size by its own measurements: every query of r rows adds
    up to the size with variance r v, and 1 / sum(1 / (r v)) is that of their best mean. 0 where the size is exact."""
    exact = {statement.level for statement in release.plan.invariants if not statement.labels}
    shares = [
        sum(1 / (query.query.n_rows * query.distribution.variance) for query in level)
        for level in release.plan.measured
    ]
    least = max(exact, default=-1)
    return [0.0 if level <= least or not share else share**-0.5 for level, share in enumerate(shares)]
