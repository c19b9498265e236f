"""Pictures of released group sizes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from louver.groups.problem import Query, answers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from louver.groups.result import GroupRelease

__all__ = ["plot_release"]

SAFE = "#2a6f97"


def plot_release(release: GroupRelease, region: int = 0) -> Figure:
    """Draw one region: groups by size, and groups of at least each size with two standard deviations of their noise."""
    from matplotlib.figure import Figure

    counts = release.counts[region]
    sizes = np.array(release.sizes)
    last = int(np.flatnonzero(counts)[-1]) + 2 if counts.any() else 2
    level = sum(region >= start for start in release.plan.regions.tree.level_start[1:-1])
    spread = 2 * math.sqrt(release.plan.levels[level].distribution.variance)
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.bar(sizes[:last], counts[:last], color=SAFE)
    left.set(xlabel="size", ylabel="groups", title="Groups by size")
    suffix = answers(counts[None, :], Query.SUFFIX, release.plan.regions.tree)[0]
    right.plot(sizes[:last], suffix[:last], color=SAFE, drawstyle="steps-mid")
    right.fill_between(
        sizes[:last],
        np.maximum(suffix[:last] - spread, 0),
        suffix[:last] + spread,
        color=SAFE,
        alpha=0.2,
        step="mid",
    )
    right.set(xlabel="size", ylabel="groups of at least this size", title="Cumulative, with its noise")
    for axes in (left, right):
        axes.set_yscale("symlog")
        axes.spines[["top", "right"]].set_visible(False)
    return figure
