"""The cells of protected tables as the steward sees them, and what a search reports while it goes on."""

from __future__ import annotations

from pathlib import Path

from louver.protect import ProtectedTables
from louver.protect.grid import STATES, GridCell
from louver.run import Run
from unit.protect.spec import LINES, protect, write


def by_labels(found: ProtectedTables) -> dict[tuple[str, ...], GridCell]:
    [grid] = found.grids
    assert set(grid.codes[0]) == {"Total", "food", "wood", "iron"} and grid.by == ("trade", "size")
    return {cell.labels: cell for cell in grid.cells}


def test_every_cell_has_its_number_and_what_becomes_of_it(tmp_path: Path) -> None:
    write(tmp_path)
    found = protect(tmp_path)
    cells = by_labels(found)
    assert len(cells) == len(LINES)
    assert cells["food", "small"].state == "primary" and cells["food", "small"].value == "50"
    assert cells["food", "small"].reasons == ("fewer than 3 contributors",)
    hidden = {labels for labels, cell in cells.items() if cell.published is None}
    assert hidden == {tuple(cell.cell.values()) for cell in found.cells}
    assert {cells[labels].state for labels in hidden} == {"primary", "secondary"}
    assert cells["Total", "Total"] == GridCell(("Total", "Total"), "1,800", "1,800", "shown")
    assert {cell.state for cell in cells.values()} <= set(STATES)


def test_a_primary_cell_that_stays_open_is_called_so(tmp_path: Path) -> None:
    write(tmp_path)
    kept = [
        {"table": "firms", "cell": {"trade": trade, "size": "large"}, "set": "publish", "reason": "needed"}
        for trade in ("food", "wood", "iron", "Total")
    ]
    found = protect(tmp_path, status=kept)
    kept_row = protect(
        tmp_path,
        status=[
            *kept,
            {"table": "firms", "cell": {"trade": "food"}, "set": "publish", "reason": "needed"},
        ],
    )
    assert found.is_protected and not kept_row.is_protected
    assert by_labels(kept_row)["food", "small"].state == "open"


def test_rounded_tables_show_what_is_published(tmp_path: Path) -> None:
    write(tmp_path)
    cells = by_labels(protect(tmp_path, rules=[], method="round", base=100))
    assert all(int(cell.published.replace(",", "")) % 100 == 0 for cell in cells.values())
    assert cells["food", "small"].value == "50" and cells["food", "small"].published in ("0", "100")


def test_a_search_reports_its_cost_and_its_bound(tmp_path: Path) -> None:
    write(tmp_path)
    seen: list[tuple[float, float | None]] = []
    found = protect(tmp_path, run=Run(stand=lambda lost, least: seen.append((lost, least))))
    assert found.summary.optimal and seen
    lost, least = [one for one, _ in seen], [one for _, one in seen if one is not None]
    assert lost == sorted(lost, reverse=True) and least == sorted(least)
    assert all(0 < one <= 1 for one in lost) and lost[-1] == least[-1], "the gap closes"
