"""What the Tables page asks for. The counted table and the last audits stay in the process; only what is looked at crosses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import islice
from math import prod
from typing import Any

import numpy as np

from louver._arrays import Bools, Ints
from louver._verdict import Verdict
from louver.app.jobs.counts import Stamp, counted, histogram_of, stamp_of
from louver.app.jobs.information import kept
from louver.audit import audit
from louver.audit.options import MAX_COUNT
from louver.bounds import suggest, survey_weight
from louver.bounds.check import audit_table
from louver.bounds.load import read_rules
from louver.bounds.options import BoundsOptions
from louver.bounds.problem import Arrangement, TwoWayTable, arrange
from louver.bounds.publication import as_piece
from louver.bounds.result import BoundsAudit, judge
from louver.bounds.summary import Summary, asked_cells, exposure
from louver.run import Run
from louver.schema.attribute import Attribute
from louver.schema.request import Request
from louver.schema.source import SourceOptions

__all__ = [
    "STATES",
    "Asked",
    "View",
    "audited",
    "counted",
    "explained",
    "find_disclosed",
    "histogram_of",
    "measured",
    "suggested",
    "together",
    "window",
]

STATES = ("zero", "small", "certain", "exact", "narrow", "safe")
"""What is disclosed of a cell; the first that applies."""
MOST_NARROW = 10
IN_LINE = 3
"""Row attributes that stand in a line; those before them head a group of lines."""
MOST_DOTS = 40
MOST_LISTED = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One table of one file; `base` is the table that it is compared with: as opened, or where suggestions were asked for."""

    path: str
    source: SourceOptions
    names: tuple[str, ...]
    options: BoundsOptions
    base: BoundsOptions

    def __hash__(self) -> int:
        return hash((self.path, self.source.model_dump_json(), self.names, self.options.model_dump_json()))


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What of the table is looked at: lines and columns, what cells say, which rows, which groups are folded."""

    lines: tuple[int, int] = (0, 60)
    cols: tuple[int, int] = (0, 40)
    says: str = "range"
    only: str = ""
    folded: frozenset[int] = frozenset()
    before: Asked | None = None
    """The same table with less knowledge: cells that have fallen since are marked."""


@dataclass(frozen=True, slots=True, eq=False)
class _Audited:
    found: BoundsAudit
    states: np.ndarray[tuple[int, int], np.dtype[np.int8]]
    n_values: Ints
    lower: Ints
    upper: Ints
    need: Ints
    """People that the exact shares of each row need at least."""

    @property
    def table(self) -> TwoWayTable:
        return self.found.table


def audited(asked: Asked, view: View, run: Run) -> dict[str, Any]:
    """Verdict, tiles, what is kept, the first window of the table, and how many cells fell."""
    run.report("working out bounds", 0, 0)
    got = run.attend(_audit, asked)
    tiles = {state: int((got.states == number).sum()) for number, state in enumerate(STATES)}
    tiles["zero"] = got.found.summary.disclosed_zero_cells
    return {
        "verdict": got.found.verdict.to_dict(),
        "summary": asdict(got.found.summary),
        "tiles": tiles,
        "kept": _kept(asked, got.found.arrangement),
        "n": got.table.n,
        "fallen": None if view.before is None else int(_fallen(asked, view.before).sum()),
        "window": window(asked, view, run),
    }


def window(asked: Asked, view: View, run: Run) -> dict[str, Any]:
    """The lines and columns of the table that are seen, and which cells of them fell."""
    got = _audit(asked)
    lines, groups = _lines(asked, view.only, view.folded, stamp_of(asked.path))
    first, last = max(view.lines[0], 0), min(view.lines[1], len(lines))
    left, right = max(view.cols[0], 0), min(view.cols[1], got.table.n_cols)
    shown = [_line(got, int(line), groups, view, (left, right)) for line in lines[first:last]]
    if view.before is not None:
        fallen = _fallen(asked, view.before)[:, left:right]
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


def _fallen(asked: Asked, before: Asked) -> Bools:
    """Cells of which more is given away than before, of the same table."""
    worse: Bools = _audit(asked).states < _audit(before).states
    return worse


def explained(asked: Asked, row: int, col: int, run: Run) -> dict[str, Any]:
    """All that fits one cell, and why, in words."""
    got = _audit(asked)
    runs = got.found.solution.values(row, col)
    n_values = int(got.n_values[row, col])
    dots = [
        x for start, stop, step in runs for x in range(start, min(stop, start + step * MOST_DOTS) + 1, step)
    ]
    state = STATES[got.states[row, col]]
    share = _shares(got, row, col, col + 1)[0]
    labels = got.table.row_labels(int(got.table.row_index[row])), got.table.col_labels(col)
    return {
        "row": row,
        "col": col,
        "state": state,
        "title": _title(state, dots, n_values, runs),
        "published": share,
        "where": f"{', '.join(labels[0].values())} → {', '.join(labels[1].values())}",
        "dots": dots if n_values <= MOST_DOTS else [runs[0][0], runs[-1][1]],
        "is_range": n_values > MOST_DOTS,
        "n_values": n_values,
        "why": _why(got, row, state),
        "labels": [labels[0], labels[1]],
    }


def find_disclosed(asked: Asked, view: View, line: int, col: int, run: Run) -> tuple[int, int] | None:
    """Line and column of the next cell after this one that gives something away."""
    got = _audit(asked)
    lines, _ = _lines(asked, view.only, view.folded, stamp_of(asked.path))
    is_bad = (got.states == STATES.index("small")) | (got.states == STATES.index("certain"))
    at = np.flatnonzero((lines >= 0) & is_bad.any(axis=1)[np.maximum(lines, 0)])
    later = [int(n) for n in at[np.searchsorted(at, line) :][:2]] + [int(n) for n in at[:1]]
    for place in later:
        bad = np.flatnonzero(is_bad[lines[place]])
        bad = bad[bad > col] if place == line else bad
        if bad.size:
            return place, int(bad[0])
    return (line, int(np.flatnonzero(is_bad[lines[line]])[0])) if later else None


def suggested(asked: Asked, seconds: float, avoid: str, run: Run) -> dict[str, Any]:
    """Redesigns that give nothing away."""
    o = asked.options
    found = suggest(
        asked.path,
        **_given(asked.source),
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
    lines = [
        line.to_dict()
        | {"words": line.words, "kept": line.share, "verdict": _judged(asked, line.summary).to_dict()}
        for line in found.lines
    ]
    return {"lines": lines, "is_proved": found.is_proved, "examined": found.examined, "asked": o}


def measured(asked: Asked, tried: Sequence[BoundsOptions], run: Run) -> list[float | None]:
    """What each of several tables keeps of the base's information about its columns."""
    return [_kept(asked, options.arrangement()) for options in tried]


def together(
    path: str,
    source: SourceOptions,
    asked: Sequence[BoundsOptions],
    within: float,
    seconds: float,
    run: Run,
) -> dict[str, Any]:
    """What several arrangements give away that are published together."""
    pieces = [
        as_piece(options) | {"name": f"table {number}"} for number, options in enumerate(asked, start=1)
    ]
    small = min(max(options.small for options in asked), MAX_COUNT)
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


def _kept(asked: Asked, arrangement: Arrangement) -> float | None:
    histogram = histogram_of(asked.path, asked.source, asked.names)
    return kept(histogram, asked.base.arrangement(), arrangement)


def _judged(asked: Asked, summary: Summary) -> Verdict:
    """The verdict on a redesign."""
    o = asked.options
    return judge(
        summary,
        small=o.small,
        certain=read_rules(_request(asked)).certain,
        is_counted=True,
        survey_weight=survey_weight(asked.source),
    )


def _request(asked: Asked) -> Request[BoundsOptions]:
    return Request(data=asked.path, source=asked.source, schema=None, options=asked.options)


def _given(source: SourceOptions) -> dict[str, Any]:
    return source.model_dump(exclude={"file", "uri"}, exclude_defaults=True)


def _audit(asked: Asked) -> _Audited:
    return _audit_of(asked, stamp_of(asked.path))


@lru_cache(maxsize=3)
def _audit_of(asked: Asked, stamp: Stamp) -> _Audited:
    arrangement, options = asked.options.arrangement(), read_rules(_request(asked))
    histogram = histogram_of(asked.path, asked.source, asked.names)
    table = arrange(histogram, arrangement, zero_rows=options.zero_rows)
    found = replace(audit_table(table, arrangement, options), survey_weight=survey_weight(asked.source))
    n_values = _n_values(found)
    lower, upper = found.solution.lower, found.solution.upper
    need = table.reduced().sum(axis=1)
    return _Audited(found, _states(found, n_values), n_values, lower, upper, need)


def _n_values(found: BoundsAudit) -> Ints:
    """How many values fit each cell, (n, J)."""
    solution: Any = found.solution
    runs, span = solution.runs, solution.span
    sizes = np.concatenate([[0], np.cumsum((runs[:, 1] - runs[:, 0]) // runs[:, 2].clip(1) + 1)])
    n_values: Ints = sizes[span[..., 1]] - sizes[span[..., 0]]
    if n_values.ndim == 1:  # rows of exact conditionals: their cells are multiples of one number
        n_values = np.where(found.solution.upper > 0, n_values[:, None], 1)
    return n_values


def _states(found: BoundsAudit, n_values: Ints) -> Any:
    """The first of `STATES` that applies to each cell, (n, J)."""
    lower, upper, table = found.solution.lower, found.solution.upper, found.table
    is_exact = lower == upper
    everything = asked_cells(table, None)
    seen = exposure(
        table,
        found.solution,
        small=found.small,
        certain=found.certain,
        is_counted=found.is_counted,
        asked=everything,
    )
    most = np.zeros(table.counts.shape, dtype=bool)
    most[np.arange(len(most)), table.counts.argmax(axis=1)] = True
    tells: Bools = most & seen.is_certain[:, None]
    cases = [
        is_exact & (upper == 0),
        is_exact & (lower < found.small),
        tells,
        is_exact,
        n_values <= MOST_NARROW,
    ]
    return np.select(cases, range(5), 5).astype(np.int8)


@lru_cache(maxsize=4)
def _lines(
    asked: Asked, only: str, folded: frozenset[int], stamp: Stamp
) -> tuple[Ints, dict[int, tuple[str, str, bool]]]:
    """Positions of the rows that are shown, and -1 - g before those of group g; what each group is called and holds."""
    got = _audit(asked)
    shown = np.arange(len(got.states))
    if only:
        shown = shown[(got.states == STATES.index(only)).any(axis=1)]
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
        groups[group] = (_joined(attributes[:n_heads], group), _told(inside), is_folded)
        lines += [np.array([-1 - group]), *([] if is_folded else [shown[start:stop]])]
    return (np.concatenate(lines) if lines else shown), groups


def _told(states: Any) -> str:
    words = {1: "small and exact", 2: "tell a status", 3: "exact", 4: "narrow"}
    counts = [(int((states == number).sum()), text) for number, text in words.items()]
    return ", ".join(f"{count} {text}" for count, text in counts if count)


def _line(
    got: _Audited, line: int, groups: dict[int, Any], view: View, cols: tuple[int, int]
) -> dict[str, Any]:
    if line < 0:
        name, told, is_folded = groups[-1 - line]
        return {"group": -1 - line, "label": name, "told": told, "folded": is_folded}
    attributes = got.table.row_attributes
    last = attributes[-IN_LINE:]
    label = _joined(last, int(got.table.row_index[line]) % prod(a.size for a in last))
    return {
        "row": line,
        "label": label,
        "states": got.states[line, cols[0] : cols[1]].tolist(),
        "texts": _texts(got, line, view.says, *cols),
    }


def _texts(got: _Audited, row: int, says: str, left: int, right: int) -> list[str]:
    if says == "share":
        return _shares(got, row, left, right)
    if says == "count":
        return [f"{count:,}" for count in got.table.counts[row, left:right].tolist()]
    lower = got.lower[row, left:right].tolist()
    upper = got.upper[row, left:right].tolist()
    return [f"{a:,}" if a == b else f"{a:,} – {b:,}" for a, b in zip(lower, upper, strict=True)]


def _shares(got: _Audited, row: int, left: int, right: int) -> list[str]:
    """Percentages as they are published; exact ones are told with enough figures, never rounded to all or nothing."""
    counts, total = got.table.counts[row, left:right].tolist(), int(got.table.counts[row].sum())
    decimals = got.found.decimals
    if decimals is not None:
        from louver.bounds.rounded import published_values

        values = published_values(got.table.counts[row : row + 1], decimals, got.found.rounding)[
            0, left:right
        ]
        return [f"{100 * value / 10**decimals:.{max(decimals - 2, 0)}f} %" for value in values.tolist()]
    return [
        f"{100 * count / total:.4g} %" if count in (0, total) else _between(100 * count / total)
        for count in counts
    ]


def _between(percent: float) -> str:
    shown = f"{percent:.2f}"
    return f"{'<' if shown == '0.00' else '>' if shown == '100.00' else ''}{ {'0.00': '0.01', '100.00': '99.99'}.get(shown, shown) } %"


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


def _title(state: str, dots: list[int], n_values: int, runs: Sequence[tuple[int, int, int]]) -> str:
    people = "person" if dots[-1] == 1 else "people"
    if state == "zero":
        return "Nobody is here, and everyone can see that"
    if state == "certain":
        return "Everybody in this row has this status"
    if n_values == 1:
        return f"Exactly {dots[0]:,} {people}"
    if n_values <= 4:
        return f"{', '.join(f'{x:,}' for x in dots[:-1])} or {dots[-1]:,} {people}"
    return f"{runs[0][0]:,} to {runs[-1][1]:,} people; {n_values:,} counts fit"


def _why(got: _Audited, row: int, state: str) -> str:
    """One sentence: what the published row asks of its total, and what is left for it."""
    least, most = (int(x) for x in got.found.solution.totals[row])
    if state == "zero":
        return "A share of exactly 0 is a count of 0."
    fits = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    if state == "certain":
        share = "The share is 100 %" if got.found.certain == 1 else "Nearly everybody in the row is here"
        return f"{share}. How many people are in the row: {fits}."
    if got.found.decimals is not None:
        return f"The rounded shares fit a row of {fits} people, with what all other rows need."
    need, free = int(got.need[row]), got.table.n - int(got.need.sum())
    told = f"These shares need {need:,} people in the row, or {2 * need:,}, and so on. "
    if got.found.n_known:
        return f"{told}With what outsiders know, {fits} fit."
    return f"{told}{free:,} people are not accounted for elsewhere, so it is {fits}."
