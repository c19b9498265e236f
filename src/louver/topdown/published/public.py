"""Published files, except their answers, as a spec and a list of leaves: levels, queries, exact values, bounds, zeros."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from louver._arrays import Floats, Ints
from louver._words import counted
from louver.data.read import open_source
from louver.data.tabulate import read_text
from louver.errors import InputError
from louver.run import Run
from louver.topdown.knowledge.implied import UNBOUNDED
from louver.topdown.problem import DETAILED
from louver.topdown.published.layout import PRODUCTS, SUMMED, HistogramAxis
from louver.topdown.published.read import Published, PublishedLevel, PublishedRows

__all__ = ["NATION", "SPEC_FILE", "FilesLayout", "groups_of", "write_public"]

SPEC_FILE, LEAVES_FILE, HASHES_FILE = "topdown.toml", "leaves.csv", "published.sha256"
NATION = "nation"
NAMES = {"US": NATION, "State": "branch"}
BOTH_BRANCHES = "state"
"""The level above the two branches of a state, outside and inside tribal areas; it was not measured."""

STATES = 51
"""With fewer states than this, the national level gives no information about those present."""

TABULATION = 16
"""The last characters of a block's code: state, county, tract, block group and block as they are tabulated."""

UNITS_FACTOR = 99_999
"""Maximum number of people in a housing unit or facility, for upper bounds."""

CODE, UNITS = "code", "housing_units"
HOUSEHOLDS = ("hhgq", "household")
"""Attribute and label of the people who live in housing units, whose number is exact in the upper bounds."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FilesLayout:
    """Levels and queries of the files in the form of a spec.

    Parameters
    ----------
    has_branches : bool
        Whether codes begin with a branch and a state, like those of the Census Bureau.
    names : mapping of str to str
        The folders' level names -> louver's names.
    queries : mapping of str to str
        The files' query names -> louver's names.
    """

    axes: tuple[HistogramAxis, ...]
    levels: tuple[PublishedLevel, ...]
    has_branches: bool
    files: Mapping[str, str]
    left_out: tuple[str, ...]
    names: Mapping[str, str]
    queries: Mapping[str, str]
    rows: Mapping[str, PublishedRows] = field(repr=False)

    @classmethod
    def of(cls, survey: Published) -> FilesLayout:
        levels = survey.levels
        left_out: tuple[str, ...] = ()
        states = next((level for level in levels if level.name == "State"), None)
        has_branches = survey.axes in PRODUCTS and states is not None and states.width == 3
        if states is not None and has_branches:
            _check_branches(states)
            n_states = len({code[1:] for code in states.codes})
            if levels[0].width == 0 and n_states < STATES:
                left_out = (
                    f"{levels[0].name}, which counts more than the {counted(n_states, 'state')} given",
                )
                levels = levels[1:]
        if not levels[-1].answers:
            raise _unusable(levels[-1].name, "its regions have no noisy answers")
        rows = {own.name: own for level in levels for own in level.answers}
        return cls(
            axes=survey.axes,
            levels=levels,
            has_branches=has_branches,
            files={name: entry.sha256 for name, entry in survey.files.items()},
            left_out=left_out,
            names=_level_names(levels, has_branches=has_branches),
            queries=_query_names(rows, survey.axes),
            rows=rows,
        )

    def code(self, published: str) -> str:
        """A region's code with the codes of the regions above as prefixes: the state before the branch."""
        return published[1:3] + published[0] + published[3:] if self.has_branches and published else published

    def codes(self, published: pa.Array) -> pa.Array:
        """The same for many."""
        if not self.has_branches:
            return published
        parts = [pc.utf8_slice_codeunits(published, a, b) for a, b in ((1, 3), (0, 1), (3, None))]
        return pc.binary_join_element_wise(*parts, "")

    @property
    def geography(self) -> list[tuple[str, int]]:
        """Names and widths of all levels, including those not measured."""
        found = [(self.names[level.name], level.width) for level in self.levels]
        if self.has_branches:
            place = next(i for i, (_, width) in enumerate(found) if width == 3)
            found.insert(place, (BOTH_BRANCHES, 2))
        top = {self.code(code)[: found[0][1]] for code in self.levels[0].codes}
        return found if len(top) == 1 else [("all", 0), *found]


def _unusable(level: str, what: str) -> InputError:
    return InputError(f"{level}.parquet: {what}; louver cannot estimate from it.", file=f"{level}.parquet")


def _check_branches(states: PublishedLevel) -> None:
    for code in states.codes:
        if not re.fullmatch("[01][0-9]{2}", code):
            raise _unusable(states.name, "a geocode is not a branch, 0 or 1, and a state of two digits")


def _level_names(levels: Sequence[PublishedLevel], *, has_branches: bool) -> dict[str, str]:
    """louver's level names: the folder names in lower case."""
    names = {
        level.name: (NAMES.get(level.name, level.name.lower()) if has_branches else level.name)
        for level in levels
    }
    if len(set(names.values())) < len(names) or {"all", BOTH_BRANCHES if has_branches else "all"} & {
        *names.values()
    }:
        raise _unusable(levels[0].name, "its name, or that of another level, is one that louver needs")
    return names


def _query_names(rows: Mapping[str, PublishedRows], axes: Sequence[HistogramAxis]) -> dict[str, str]:
    """louver's query names; the query of all cells is `detailed`."""
    found: dict[str, str] = {}
    for name, own in rows.items():
        groups = groups_of(own, axes)
        is_whole = all(len(one) == len(axis.labels) for one, axis in zip(groups, axes, strict=True))
        is_detailed = (
            is_whole and (name == DETAILED or DETAILED not in rows) and DETAILED not in found.values()
        )
        wanted = DETAILED if is_detailed else re.sub(r"[^A-Za-z0-9-]+", "_", name).strip("_") or "query"
        while wanted.casefold() in {other.casefold() for other in found.values()} or (
            wanted == DETAILED and not is_detailed
        ):
            wanted += "_"
        found[name] = wanted
    return found


def groups_of(rows: PublishedRows, axes: Sequence[HistogramAxis]) -> list[tuple[tuple[int, ...], ...]]:
    """For each axis the labels that the rows count together."""
    return [axis.groups(entry) or () for axis, entry in zip(axes, rows.entries, strict=True)]


def write_public(made: Path, layout: FilesLayout, by: str, totals: Path | None, run: Run) -> dict[str, Ints]:
    """Write spec, leaves and hashes; return the exact values by the names of invariants."""
    knowledge = _Knowledge(layout)
    for level in layout.levels:
        for rows in level.constraints:
            knowledge.take(level, rows)
    if totals is not None:
        knowledge.take_totals(totals, run)
    leaves = layout.levels[-1]
    order = sorted(range(len(leaves.codes)), key=lambda i: layout.code(leaves.codes[i]))
    columns = {CODE: [layout.code(leaves.codes[i]) for i in order]}
    columns |= {
        name: ["" if x is None else str(x) for x in (values[i] for i in order)]
        for name, values in knowledge.columns().items()
    }
    with (made / LEAVES_FILE).open("w", encoding="utf-8", newline="") as sink:
        writer = csv.writer(sink, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    hashes = "".join(f"{digest}  {name}\n" for name, digest in sorted(layout.files.items()))
    (made / HASHES_FILE).write_text(hashes, encoding="utf-8")
    (made / SPEC_FILE).write_text(_spec(layout, knowledge, by, hashes), encoding="utf-8")
    return knowledge.exact


def _spec(layout: FilesLayout, knowledge: _Knowledge, by: str, hashes: str) -> str:
    """The spec that describes published measurements."""
    lines = [
        "# Written by louver from published noisy measurement files; see published.sha256 for the files.",
        "",
    ]
    for axis in layout.axes:
        lines += [f"[attributes.{json.dumps(axis.name)}]", f"labels = {_toml(list(axis.labels))}", ""]
    for zero in knowledge.zeros:
        lines += ["[[structural_zeros]]", *(f"{json.dumps(k)} = {_toml(v)}" for k, v in zero.items()), ""]
    lines += [
        "[topdown.published]",
        f"by = {_toml(by)}",
        f"files = {len(layout.files)}",
        f'sha256 = "{hashlib.sha256(hashes.encode()).hexdigest()}"',
        *([f"tabulation = {TABULATION}"] if layout.has_branches else []),
        "",
    ]
    for level in layout.levels:
        usual = {layout.queries[rows.name]: _usual(rows.variances) for rows in level.answers}
        if usual:
            lines += [f"[topdown.published.variances.{json.dumps(layout.names[level.name])}]"]
            lines += [f"{json.dumps(name)} = {_toml(repr(variance))}" for name, variance in usual.items()] + [
                ""
            ]
    levels = layout.geography
    lines += [
        "[topdown.geography]",
        f"column = {_toml(CODE)}",
        f"levels = {_toml([name for name, _ in levels])}",
        f"prefixes = {_toml([width for _, width in levels])}",
        f"leaves = {_toml(LEAVES_FILE)}",
        "",
        "[topdown.queries]",
        *(_query(layout, rows) for rows in layout.rows.values() if layout.queries[rows.name] != DETAILED),
        "",
    ]
    for name, (level_name, cells) in knowledge.invariants.items():
        lines += [
            "[[topdown.invariants]]",
            f"name = {_toml(name)}",
            f"level = {_toml(level_name)}",
            f"cells = {_toml(cells)}",
            "",
        ]
    for name, (cells, columns) in knowledge.bounds.items():
        lines += [
            "[[topdown.bounds]]",
            f"name = {_toml(name)}",
            f"file = {_toml(LEAVES_FILE)}",
            f"cells = {_toml(cells)}",
        ]
        lines += [f"{side} = {_toml(column)}" for side, column in columns.items()] + [""]
    if UNITS in knowledge.columns():
        lines += [
            "[[topdown.covariates]]",
            f"column = {_toml(UNITS)}",
            f"cells = {_toml({HOUSEHOLDS[0]: [HOUSEHOLDS[1]]})}",
            "",
        ]
    return "\n".join(lines)


def _toml(value: Any) -> str:
    """A value as TOML."""
    if isinstance(value, Mapping):
        return (
            "{ " + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + " }"
            if value
            else "{}"
        )
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(one) for one in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def _usual(variances: Floats) -> float:
    """The most common variance among regions; the smallest in case of ties."""
    values, counts = np.unique(variances, return_counts=True)
    return float(values[np.argmax(counts)])


def _query(layout: FilesLayout, rows: PublishedRows) -> str:
    """A query of the spec."""
    attributes, merged = [], {}
    for axis, entry, groups in zip(layout.axes, rows.entries, groups_of(rows, layout.axes), strict=True):
        if entry == SUMMED:
            continue
        attributes.append(axis.name)
        if sorted(code for group in groups for code in group) != list(range(len(axis.labels))):
            message = f"query {rows.name} does not count every {axis.name}; louver cannot estimate from it."
            raise InputError(message, option=rows.name)
        if len(groups) < len(axis.labels):
            together = [group for group in groups if len(group) > 1]
            merged[axis.name] = {
                f"{entry} {i}": [axis.labels[code] for code in group]
                for i, group in enumerate(together, start=1)
            }
    name = json.dumps(layout.queries[rows.name])
    if merged:
        return f"{name} = {{ attributes = {_toml(attributes)}, merge = {_toml(merged)} }}"
    return f"{name} = {_toml(attributes)}"


@dataclass(slots=True)
class _Knowledge:
    """Content of the constraints: structural zeros, exact values, and bounds of the leaves."""

    layout: FilesLayout
    zeros: list[dict[str, list[str]]] = field(default_factory=list)
    invariants: dict[str, tuple[str, dict[str, list[str]]]] = field(default_factory=dict)
    exact: dict[str, Ints] = field(default_factory=dict)
    bounds: dict[str, tuple[dict[str, list[str]], dict[str, str]]] = field(default_factory=dict)
    _columns: dict[str, list[int | None]] = field(default_factory=dict)

    def columns(self) -> dict[str, list[int | None]]:
        """Columns of the list of leaves, in the order of the published codes."""
        return self._columns

    def take(self, level: PublishedLevel, rows: PublishedRows) -> None:
        """One constraint at one level: bounds apply at the leaves, exact values wherever every region has one."""
        is_leaf = level is self.layout.levels[-1]
        for row, cells in enumerate(self._cells(rows)):
            if rows.sign == "=" and not rows.values[:, row].any() and len(rows.region) == len(level.codes):
                if is_leaf and cells:
                    self.zeros.append(cells)
            elif rows.sign == "=" and len(rows.region) == len(level.codes):
                self._fix(level, rows, row, cells)
            elif is_leaf:
                self._bound(level, rows, row, cells)

    def take_totals(self, path: Path, run: Run) -> None:
        """Exact totals of states from a public file."""
        levels = dict(self.layout.geography)
        if BOTH_BRANCHES not in levels:
            message = "option --totals is for files whose regions begin with a state; leave it out."
            raise InputError(message, option="--totals")
        leaves = self.layout.levels[-1]
        states = sorted({self.layout.code(code)[:2] for code in leaves.codes})
        found: dict[str, int] = {}
        with open_source(path, run=run) as source:
            rows = read_text(source, ["geocode", "value"])
        for number, (code, value) in enumerate(rows, start=1):
            text = "" if value is None else str(value)
            if code is None or not text.isdecimal() or int(text) >= UNBOUNDED:
                message = (
                    f"{path.name}, row {number}: this needs a state's code and a whole number; correct it."
                )
                raise InputError(message, file=path.name, row=number)
            if str(code) in found:
                message = f"{path.name}, row {number}: the state is listed twice; list each once."
                raise InputError(message, file=path.name, row=number)
            found[str(code)] = int(text)
        if not set(states) <= set(found):
            message = f"{path.name} lacks the total of a state that is in the files; add it."
            raise InputError(message, file=path.name)
        self.invariants["state total"] = (BOTH_BRANCHES, {})
        self.exact["state total"] = np.array([found[state] for state in states], dtype=np.int64)

    def _cells(self, rows: PublishedRows) -> Iterator[dict[str, list[str]]]:
        """The labels that each value of a constraint counts."""
        groups = groups_of(rows, self.layout.axes)
        for place in np.ndindex(*(len(one) for one in groups)):
            yield {
                axis.name: [axis.labels[code] for code in groups[i][place[i]]]
                for i, axis in enumerate(self.layout.axes)
                if len(groups[i][place[i]]) < len(axis.labels)
            }

    def _fix(self, level: PublishedLevel, rows: PublishedRows, row: int, cells: dict[str, list[str]]) -> None:
        """Exact values of a level; those of a lower level are more detailed and replace them."""
        name = _name(rows, cells)
        codes = [self.layout.code(code) for code in level.codes]
        order = np.array(sorted(range(len(codes)), key=codes.__getitem__), dtype=np.int64)
        self.invariants[name] = (self.layout.names[level.name], cells)
        self.exact[name] = rows.values[order, row]

    def _bound(
        self, level: PublishedLevel, rows: PublishedRows, row: int, cells: dict[str, list[str]]
    ) -> None:
        """Bounds of the leaves."""
        name = "bounds of " + (" and ".join(" or ".join(labels) for labels in cells.values()) or "everybody")
        _, columns = self.bounds.setdefault(name, (cells, {}))
        number = list(self.bounds).index(name) + 1
        sides = {">=": ("lower",), "<=": ("upper",), "=": ("lower", "upper")}[rows.sign]
        for side in sides:
            default = 0 if side == "lower" else UNBOUNDED - 1
            values = np.full(len(level.codes), default, dtype=np.int64)
            values[rows.region] = np.minimum(rows.values[:, row], UNBOUNDED - 1)
            column = f"{side}_{number}"
            columns[side] = column
            self._columns[column] = [*values.tolist()]
        is_household = rows.sign == "<=" and cells == {HOUSEHOLDS[0]: [HOUSEHOLDS[1]]}
        if is_household and not (values % UNITS_FACTOR).any():
            self._columns[UNITS] = [*(values // UNITS_FACTOR).tolist()]


def _name(rows: PublishedRows, cells: Mapping[str, Sequence[str]]) -> str:
    """Name of an exact value."""
    return rows.name + "".join(f", {' or '.join(labels)}" for labels in cells.values())
