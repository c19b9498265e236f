"""A picture of released group sizes in one region."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from louver._arrays import Floats, Ints
from louver._figure import blank_figure, literal_text
from louver.groups.problem import SizeQuery, answers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from louver.groups.result import GroupRelease

__all__ = ["plot_release"]

SAFE, INK = "#2a6f97", "#22313f"
MAX_BARS = 80
"""Sizes that are drawn one by one."""

WITHIN_90 = 1.645
"""Standard deviations within which nine tenths of normal noise lies."""


def plot_release(release: GroupRelease, region: int = 0) -> Figure:
    """Draw one region: groups by size, and groups of at least each size, both with 90 % bands."""
    figure = blank_figure(9, 3.4)
    left, right = figure.subplots(1, 2)
    shown = _shown(release.counts[region])
    sizes = np.array(release.sizes)[shown]
    _bars(left, release, region, shown)
    left.set(xlabel="size", ylabel="groups", title="Groups by size")
    tree = release.plan.regions.tree
    suffix = answers(release.counts[region][None, :], SizeQuery.SUFFIX, tree)[0][shown]
    spread = WITHIN_90 * _cumulative_deviations(release, region)[shown]
    right.plot(sizes, suffix, color=SAFE, drawstyle="steps-mid")
    right.fill_between(
        sizes, np.maximum(suffix - spread, 0), suffix + spread, color=SAFE, alpha=0.2, step="mid", linewidth=0
    )
    right.set(xlabel="size", ylabel="groups of at least this size", title="Cumulative", yscale="symlog")
    _tidy(right)
    return literal_text(figure)


def _shown(counts: Ints) -> slice:
    """Columns worth drawing: up to one past the largest size that occurs."""
    return slice(0, int(np.flatnonzero(counts)[-1]) + 2 if counts.any() else 2)


def _bars(axes: Axes, release: GroupRelease, region: int, shown: slice) -> None:
    counts = release.counts[region][shown]
    sizes = np.array(release.sizes)[shown]
    found = release.uncertainty
    least, most = found.lower[region][shown], found.upper[region][shown]
    if len(sizes) > MAX_BARS:  # one outline instead of a thousand bars
        edges = np.append(sizes, sizes[-1] + 1) - 0.5
        axes.stairs(counts, edges, fill=True, color=SAFE, alpha=0.85)
        axes.fill_between(sizes, least, most, step="mid", color=INK, alpha=0.18, linewidth=0)
    else:
        axes.bar(sizes, counts, color=SAFE, alpha=0.85)
        errors = [counts - least, most - counts]
        axes.errorbar(sizes, counts, yerr=errors, fmt="none", ecolor=INK, elinewidth=0.8, capsize=1.5)
    axes.set_yscale("symlog")
    _tidy(axes)


def _tidy(axes: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
    axes.spines[["top", "right"]].set_visible(False)


def _level(release: GroupRelease, region: int) -> int:
    return len(release.plan.regions.labels[region])


def _cumulative_deviations(release: GroupRelease, region: int) -> Floats:
    """Standard deviations of groups of at least each size: sums of the noise of single sizes, where these are measured."""
    n_sizes = release.counts.shape[1]
    terms = np.arange(n_sizes, 0, -1) if release.plan.query is SizeQuery.SIZES else np.ones(n_sizes)
    deviations: Floats = release.plan.deviations[_level(release, region)] * np.sqrt(terms)
    return deviations
