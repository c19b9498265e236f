"""A picture of a profile. Matplotlib is imported inside the function: it is slow to load."""

from __future__ import annotations

from typing import TYPE_CHECKING

from louver._figure import blank_figure, literal_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from louver.profile.result import Profile

__all__ = ["plot_profile"]

SAFE, RISK, INK = "#2a6f97", "#c1442d", "#22313f"
MAX_COLUMNS = 40
LABEL_WIDTH = 32


def plot_profile(profile: Profile) -> Figure:
    """Share of records that each column alone singles out, largest first."""
    columns = sorted(profile.columns, key=lambda column: column.share_alone)[-MAX_COLUMNS:]
    figure = blank_figure(11, 1.2 + 0.24 * max(len(columns), 4))
    axes = figure.subplots()
    shares = [100 * column.share_alone for column in columns]
    colours = [RISK if column.share_alone >= profile.share else SAFE for column in columns]
    places = range(len(columns))
    axes.barh(places, shares, color=colours)
    names = [" ".join(column.name.split())[:LABEL_WIDTH] for column in columns]
    axes.set_yticks(places, names)
    axes.set_xlim(0, 100)
    axes.set_xlabel("records with a unique value, %")
    axes.tick_params(colors=INK, labelsize=8.5)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", alpha=0.25)
    return literal_text(figure)
