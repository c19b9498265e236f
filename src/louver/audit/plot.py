"""Pictures of a joint audit. Matplotlib is imported only here, inside the functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from louver._figure import blank_figure, literal_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from louver.audit.result import AuditedCell, JointAudit

__all__ = ["plot_audit"]

SAFE, RISK, MUTED, INK = "#2a6f97", "#c1442d", "#9aa5b1", "#22313f"
MAX_ROWS, MAX_TABLES = 30, 40
LABEL_WIDTH = 52


def plot_audit(audit: JointAudit) -> Figure:
    """Left: which tables disclose which cells. Right: the narrowest intervals."""
    disclosed = sorted(audit.disclosed(), key=lambda cell: (cell.lower, len(cell.because or ())))[:MAX_ROWS]
    narrow = [cell for cell in audit.cells if cell.upper is not None and cell.upper > 0]
    narrow = sorted(narrow, key=lambda cell: ((cell.upper or 0) - cell.lower, cell.lower))[:MAX_ROWS]
    n_lines = max(len(disclosed), len(narrow), 8)
    height = 1.4 + 0.22 * n_lines
    figure = blank_figure(12.5, height)
    left, right = figure.subplots(1, 2)
    _matrix(left, disclosed, audit.tables)
    _intervals(right, narrow, audit.small)
    for axes in (left, right):
        axes.set_ylim(n_lines - 0.5, -0.7)
    return literal_text(figure)


def _matrix(axes: Axes, cells: list[AuditedCell], tables: tuple[str, ...]) -> None:
    """Draw a square for every table in a cell's smallest set."""
    axes.set_title("which tables together disclose a cell", loc="left", fontsize=10, color=INK)
    if not cells:
        axes.text(0.5, 0.5, "no small cell is exact", ha="center", va="center", color=SAFE)
        axes.set_axis_off()
        return
    used = [name for name in tables if any(name in (cell.because or ()) for cell in cells)][:MAX_TABLES]
    for row, cell in enumerate(cells):
        for column, name in enumerate(used):
            is_blamed = name in (cell.because or ())
            axes.scatter(column, row, marker="s", s=70, color=RISK if is_blamed else "#eef1f4")
    axes.set_yticks(range(len(cells)), [_label(cell) for cell in cells], fontsize=7, parse_math=False)
    axes.set_xticks(range(len(used)), used, rotation=40, ha="left", fontsize=8, parse_math=False)
    axes.xaxis.tick_top()
    axes.set_xlim(-0.7, max(4, len(used)) - 0.3)
    _plain(axes)


def _intervals(axes: Axes, cells: list[AuditedCell], small: int) -> None:
    axes.set_title("narrowest intervals", loc="left", fontsize=10, color=INK)
    for row, cell in enumerate(cells):
        is_bad = cell.is_exact and cell.is_small(small)
        color = RISK if is_bad else SAFE
        axes.plot([cell.lower, cell.upper or 0], [row, row], color=color, linewidth=2.5, marker="|")
        if cell.true_count is not None:
            axes.scatter(cell.true_count, row, s=14, color=RISK if is_bad else INK, zorder=3)
    axes.set_yticks(range(len(cells)), [_label(cell) for cell in cells], fontsize=7, parse_math=False)
    axes.set_xlabel("people (dot: true count)", fontsize=8)
    top = max((cell.upper or 0 for cell in cells), default=1)
    axes.set_xlim(-0.02 * top - 0.5, 1.03 * top + 0.5)
    axes.set_xticks(np.unique(np.linspace(0, top, 6).astype(int)))
    _plain(axes)


def _label(cell: AuditedCell) -> str:
    text = f"{cell.table}: {', '.join(cell.cell.values())}"
    line = " ".join(text.split())
    return line if len(line) <= LABEL_WIDTH else line[: LABEL_WIDTH - 1] + "…"


def _plain(axes: Axes) -> None:
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.tick_params(length=0, colors=INK)
