"""Jobs of the Tables and Audit pages. The counted table and the last audits stay in the process; only the visible part is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import islice
from math import prod
from typing import Any

import numpy as np

from louver._arrays import Bools, Ints
from louver.app.jobs.data import Stamp, counted, histogram_of, stamp_of
from louver.audit import JointAudit, audit
from louver.audit.options import MAX_COUNT
from louver.bounds import suggest
from louver.bounds.answer import as_piece
from louver.bounds.check import audit_table
from louver.bounds.disclosure import CELL_STATES, count_states, has_fallen, is_revealing
from louver.bounds.load import read_rules
from louver.bounds.options import BoundsOptions
from louver.bounds.problem import Arrangement, TwoWayTable, arrange
from louver.bounds.redesigns import information_kept
from louver.bounds.result import BoundsAudit
from louver.release.pages import page_of
from louver.run import Run
from louver.schema.attribute import Attribute
from louver.schema.request import Request
from louver.schema.source import SourceOptions

__all__ = [
    "ArrangedTable",
    "TableView",
    "audited",
    "audited_together",
    "counted",
    "explained",
    "find_disclosed",
    "histogram_of",
    "measured",
    "published_together",
    "suggested",
    "together",
    "window",
]

IN_LINE = 3
"""Number of row attributes shown within a line; those before them are headings of a group of lines."""
MOST_DOTS = 40
MOST_LISTED = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrangedTable:
    """One table of one file; `base` is the table that it is compared with: as opened, or as it was when suggestions were requested."""

    path: str
    source: SourceOptions
    names: tuple[str, ...]
    options: BoundsOptions
    base: BoundsOptions

    def __hash__(self) -> int:
        return hash((self.path, self.source.model_dump_json(), self.names, self.options.model_dump_json()))


@dataclass(frozen=True, slots=True, kw_only=True)
class TableView:
    """The visible part of the table: lines and columns, content of cells, selected rows, and folded groups."""

    lines: tuple[int, int] = (0, 60)
    cols: tuple[int, int] = (0, 40)
    says: str = "range"
    only: str = ""
    folded: frozenset[int] = frozenset()
    before: ArrangedTable | None = None
    """The same table with less knowledge, used to mark cells that have become disclosed since."""


@dataclass(frozen=True, slots=True, eq=False)
class _CheckedTable:
    """An audit with the data that every window of it needs, computed once."""

    found: BoundsAudit
    states: Ints
    lower: Ints
    upper: Ints

    @property
    def table(self) -> TwoWayTable:
        return self.found.table


def audited(arranged: ArrangedTable, view: TableView, run: Run) -> dict[str, Any]:
    """Verdict, tiles, the information kept, the first window of the table, and how many cells became disclosed."""
    run.report("computing bounds", 0, 0)
    got = run.attend(_audit, arranged)
    tiles = count_states(got.states) | {"zero": got.found.summary.disclosed_zero_cells}
    return {
        "verdict": got.found.verdict.to_dict(),
        "summary": asdict(got.found.summary),
        "tiles": tiles,
        "kept": _kept(arranged, got.found.arrangement),
        "n": got.table.n,
        "fallen": None if view.before is None else int(_fallen(arranged, view.before).sum()),
        "window": window(arranged, view, run),
    }


def window(arranged: ArrangedTable, view: TableView, run: Run) -> dict[str, Any]:
    """The visible lines and columns of the table, and which of their cells became disclosed."""
    got = _audit(arranged)
    lines, groups = _lines(arranged, view.only, view.folded, stamp_of(arranged.path))
    first, last = max(view.lines[0], 0), min(view.lines[1], len(lines))
    left, right = max(view.cols[0], 0), min(view.cols[1], got.table.n_cols)
    shown = [_line(got, int(line), groups, view, (left, right)) for line in lines[first:last]]
    if view.before is not None:
        fallen = _fallen(arranged, view.before)[:, left:right]
        for line in shown:
            line["fallen"] = np.flatnonzero(fallen[line["row"]]).tolist() if "row" in line else []
    return {
        "n_lines": len(lines),
        "n_cols": got.table.n_cols,
        "first": first,
        "left": left,
        "lines": shown,
        "heads": _heads(got.table.col_attributes, left, right),
        "row_names": [a.name for a in got.table.row_attributes],
    }


def _fallen(arranged: ArrangedTable, before: ArrangedTable) -> Bools:
    """Cells about which more is disclosed than before; both arrangements have the same table."""
    return has_fallen(_audit(arranged).states, _audit(before).states)


def explained(arranged: ArrangedTable, row: int, col: int, run: Run) -> dict[str, Any]:
    """Every value that is possible for one cell, and the reason, in words."""
    got = _audit(arranged)
    cell = got.found.explain(row, col)
    labels = got.table.row_labels(int(got.table.row_index[row])), got.table.col_labels(col)
    is_range = cell.n_values > MOST_DOTS
    values = (
        [value for start, stop, step in cell.values for value in range(start, stop + 1, step)]
        if not is_range
        else []
    )
    return {
        "row": row,
        "col": col,
        "state": cell.state,
        "title": cell.title,
        "published": got.found.published_shares(row)[col],
        "where": f"{', '.join(labels[0].values())} → {', '.join(labels[1].values())}",
        "dots": [cell.values[0][0], cell.values[-1][1]] if is_range else values,
        "is_range": is_range,
        "n_values": cell.n_values,
        "why": cell.reason,
        "labels": [labels[0], labels[1]],
    }


def find_disclosed(
    arranged: ArrangedTable, view: TableView, line: int, col: int, run: Run
) -> tuple[int, int] | None:
    """Line and column of the next cell after this one that discloses something."""
    got = _audit(arranged)
    lines, _ = _lines(arranged, view.only, view.folded, stamp_of(arranged.path))
    is_bad = is_revealing(got.states)
    at = np.flatnonzero((lines >= 0) & np.asarray(is_bad.any(axis=1))[np.maximum(lines, 0)])
    later = [int(n) for n in at[np.searchsorted(at, line) :][:2]] + [int(n) for n in at[:1]]
    for place in later:
        bad = np.flatnonzero(is_bad[lines[place]])
        bad = bad[bad > col] if place == line else bad
        if bad.size:
            return place, int(bad[0])
    return (line, int(np.flatnonzero(is_bad[lines[line]])[0])) if later else None


def suggested(arranged: ArrangedTable, seconds: float, avoid: str, run: Run) -> dict[str, Any]:
    """Redesigns that disclose nothing."""
    o = arranged.options
    found = suggest(
        arranged.path,
        **_given(arranged.source),
        rows=o.rows,
        cols=o.cols,
        recode=o.recode,
        decimals=o.decimals,
        small=o.small,
        certain=o.certain,
        seconds=seconds,
        avoid=avoid,
        run=run,
    )
    lines = [line.to_dict() | {"words": line.words, "kept": line.share} for line in found.lines]
    return {"lines": lines, "is_proved": found.is_proved, "examined": found.examined, "asked": o}


def measured(arranged: ArrangedTable, tried: Sequence[BoundsOptions], run: Run) -> list[float | None]:
    """The share of the base's information about its columns that each of several tables keeps."""
    return [_kept(arranged, options.arrangement()) for options in tried]


def together(
    path: str,
    source: SourceOptions,
    arranged: Sequence[BoundsOptions],
    within: float,
    seconds: float,
    run: Run,
) -> dict[str, Any]:
    """What several arrangements disclose if they are published together."""
    pieces = [
        as_piece(options) | {"name": f"table {number}"} for number, options in enumerate(arranged, start=1)
    ]
    small = min(max(options.small for options in arranged), MAX_COUNT)
    found = audit(
        path,
        **_given(source),
        tables=pieces,
        small=small,
        within=within,
        no_advice=True,
        seconds=seconds,
        run=run,
    )
    cells = [
        {"where": ", ".join(cell.cell.values()), "count": cell.lower, "because": cell.because or ()}
        for cell in islice(found.disclosed(), MOST_LISTED)
    ]
    return {"verdict": found.verdict.to_dict(), "summary": asdict(found.summary), "cells": cells}


def _kept(arranged: ArrangedTable, arrangement: Arrangement) -> float | None:
    histogram = histogram_of(arranged.path, arranged.source, arranged.names)
    return information_kept(histogram, arranged.base.arrangement(), arrangement)


def _request(arranged: ArrangedTable) -> Request[BoundsOptions]:
    return Request(data=arranged.path, source=arranged.source, schema=None, options=arranged.options)


def _given(source: SourceOptions) -> dict[str, Any]:
    return source.model_dump(exclude={"file", "uri"}, exclude_defaults=True)


def _audit(arranged: ArrangedTable) -> _CheckedTable:
    return _audit_of(arranged, stamp_of(arranged.path))


@lru_cache(maxsize=3)
def _audit_of(arranged: ArrangedTable, stamp: Stamp) -> _CheckedTable:
    arrangement, options = arranged.options.arrangement(), read_rules(_request(arranged))
    histogram = histogram_of(arranged.path, arranged.source, arranged.names)
    table = arrange(histogram, arrangement, zero_rows=options.zero_rows)
    found = audit_table(table, arrangement, options)
    return _CheckedTable(found, found.cell_states(), found.solution.lower, found.solution.upper)


@lru_cache(maxsize=4)
def _lines(
    arranged: ArrangedTable, only: str, folded: frozenset[int], stamp: Stamp
) -> tuple[Ints, dict[int, tuple[str, str, bool]]]:
    """Positions of the rows that are shown, and -1 - g before those of group g; the title and size of each group."""
    got = _audit(arranged)
    shown = np.arange(len(got.states))
    if only:
        shown = shown[(got.states == CELL_STATES.index(only)).any(axis=1)]
    attributes = got.table.row_attributes
    n_heads = max(len(attributes) - IN_LINE, 0)
    if not n_heads:
        return shown, {}
    below = prod(a.size for a in attributes[n_heads:])
    group_of = got.table.row_index[shown] // below
    lines: list[Ints] = []
    groups = {}
    starts = np.flatnonzero(np.diff(group_of, prepend=-1))
    for start, stop in zip(starts, [*starts[1:], len(shown)], strict=True):
        group = int(group_of[start])
        inside = got.states[shown[start:stop]]
        is_folded = group in folded
        groups[group] = (_joined(attributes[:n_heads], group), _counts_of_states(inside), is_folded)
        lines += [np.array([-1 - group]), *([] if is_folded else [shown[start:stop]])]
    return (np.concatenate(lines) if lines else shown), groups


def _counts_of_states(states: Any) -> str:
    words = {"small": "small and exact", "certain": "reveal a status", "exact": "exact", "narrow": "narrow"}
    counts = count_states(states)
    return ", ".join(f"{counts[state]} {text}" for state, text in words.items() if counts[state])


def _line(
    got: _CheckedTable, line: int, groups: dict[int, Any], view: TableView, cols: tuple[int, int]
) -> dict[str, Any]:
    if line < 0:
        name, content, is_folded = groups[-1 - line]
        return {"group": -1 - line, "label": name, "words": content, "folded": is_folded}
    attributes = got.table.row_attributes
    last = attributes[-IN_LINE:]
    label = _joined(last, int(got.table.row_index[line]) % prod(a.size for a in last))
    return {
        "row": line,
        "label": label,
        "states": got.states[line, cols[0] : cols[1]].tolist(),
        "texts": _texts(got, line, view.says, *cols),
    }


def _texts(got: _CheckedTable, row: int, says: str, left: int, right: int) -> list[str]:
    if says == "share":
        return got.found.published_shares(row)[left:right]
    if says == "count":
        return [f"{count:,}" for count in got.table.counts[row, left:right].tolist()]
    lower = got.lower[row, left:right].tolist()
    upper = got.upper[row, left:right].tolist()
    return [f"{a:,}" if a == b else f"{a:,} – {b:,}" for a, b in zip(lower, upper, strict=True)]


def _heads(attributes: Sequence[Attribute], left: int, right: int) -> list[dict[str, Any]]:
    """For each column attribute its name, and labels with the number of columns below them, from `left` to `right`."""
    heads = []
    below = prod(a.size for a in attributes)
    for attribute in attributes:
        below //= attribute.size
        labels: list[list[Any]] = []
        for col in range(left, right):
            label = attribute.labels[col // below % attribute.size]
            if labels and col // below == (col - 1) // below:
                labels[-1][1] += 1
            else:
                labels.append([label, 1])
        heads.append({"name": attribute.name, "labels": labels})
    return heads


def _joined(attributes: Sequence[Attribute], index: int) -> str:
    labels = []
    for attribute in reversed(attributes):
        index, code = divmod(index, attribute.size)
        labels.append(attribute.labels[code])
    return " · ".join(reversed(labels))


MOST_GROUPS = 40


def audited_together(
    path: str, source: SourceOptions, options: Mapping[str, Any], run: Run
) -> dict[str, Any]:
    """What the tables disclose together, and what to change."""
    return _for_page(_audit_tables(path, source, options, run))


def published_together(
    path: str, source: SourceOptions, options: Mapping[str, Any], out: str, run: Run
) -> dict[str, Any]:
    """Publish the tables, unless the audit forbids it."""
    found = _audit_tables(path, source, {**options, "publish": out}, run)
    refused = None if found.published else found.refusal
    return {"refused": refused, "remark": found.remark, "verdict": found.verdict.to_dict()}


def _audit_tables(path: str, source: SourceOptions, options: Mapping[str, Any], run: Run) -> JointAudit:
    given = source.model_dump(exclude={"file", "uri"}, exclude_defaults=True)
    return audit(path, **given, **options, report=page_of, run=run)


def _for_page(found: JointAudit) -> dict[str, Any]:
    """The result in the form needed by the page: the verdict, and the first distinct groups that are disclosed."""
    content = found.to_dict()
    lines = {(cell.description, cell.range): cell.words or "" for cell in found.disclosed()}
    cells = [
        {"named": description, "range": known, "why": why}
        for (description, known), why in islice(lines.items(), MOST_GROUPS)
    ]
    keys = ("verdict", "summary", "hide", "earlier", "remark")
    advice = found.advice
    advised = {
        "advised": "" if advice is None else advice.words,
        "n_out": 0 if advice is None else len(advice.leave_out),
    }
    return {key: content[key] for key in keys} | advised | {"cells": cells, "n_cells": len(lines)}
