"""Our own measurements in the layout of noisy measurement files, for programs that read such files, and for our tests."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from louver._arrays import Ints
from louver.errors import InputError
from louver.privacy.measurements import Measurements
from louver.release.write import check_out
from louver.run import Run
from louver.schema.recode import Recode
from louver.topdown.knowledge.implied import UNBOUNDED
from louver.topdown.measuring.noise_plan import QueryPlan
from louver.topdown.measuring.true_counts import read_invariants
from louver.topdown.problem import DETAILED, Design, Statement
from louver.topdown.published.layout import ANSWERS, COLUMNS, CONSTRAINTS, EVERY, FORMAT, SUMMED, Groups
from louver.topdown.result import INVARIANTS_FILE, MEASUREMENTS_FILE

__all__ = ["PublishedName", "published_names", "write_published"]

LEVEL_NAME = re.compile(r"[A-Za-z0-9_-]+")  # folders are named after levels


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedName:
    """The layout's name for a query, and how it is divided: an entry and a number of rows for each axis."""

    name: str
    entries: tuple[str, ...]
    shape: tuple[int, ...]
    order: tuple[int, ...]
    """The attributes of our query in the order of the axes."""
    sizes: tuple[int, ...]
    """Rows of each attribute of our query, in its own order."""

    def arranged(self, values: Ints) -> Ints:
        """Answers (regions, rows) of our query in the order of the layout: the last axis fastest."""
        cube = values.reshape(len(values), *self.sizes)
        return np.ascontiguousarray(cube.transpose(0, *(axis + 1 for axis in self.order))).reshape(
            values.shape
        )


@dataclass(slots=True)
class _Axes:
    """Binnings that queries and statements need, by axis."""

    design: Design
    binnings: dict[str, dict[str, Groups]] = field(default_factory=dict)

    def bin(self, axis: str, wanted: str, groups: Groups) -> str:
        """The name of a binning: the one wanted, unless it is already taken."""
        own = self.binnings.setdefault(axis, {})
        while wanted in (axis, EVERY, SUMMED) or own.get(wanted, groups) != groups:
            wanted += "_"
        own[wanted] = groups
        return wanted

    def description(self) -> str:
        axes = {
            attribute.name: {
                "labels": list(attribute.labels),
                "binnings": self.binnings.get(attribute.name, {}),
            }
            for attribute in self.design.attributes
        }
        return json.dumps({"format": FORMAT, "axes": axes}, ensure_ascii=False)


def published_names(design: Design) -> dict[str, PublishedName]:
    """The layout's name for each query of a design."""
    return _named(design, _Axes(design))


def _named(design: Design, axes: _Axes) -> dict[str, PublishedName]:
    names = [attribute.name for attribute in design.attributes]
    found: dict[str, PublishedName] = {}
    for query, meaning in zip(design.queries, design.query_attributes, strict=True):
        merged = {} if query.name == DETAILED else design.options.queries[query.name].merge
        entries, shape = [SUMMED] * len(names), [1] * len(names)
        for attribute in meaning:
            axis = names.index(attribute.name)
            shape[axis] = attribute.size
            entries[axis] = EVERY if query.name == DETAILED else attribute.name
            if attribute.name in merged:
                merge = {new: tuple(old) for new, old in merged[attribute.name].items()}
                _, mapping = design.attributes[axis].recoded(Recode(attribute.name, merge=merge))
                groups = tuple(
                    tuple(np.flatnonzero(mapping == row).tolist()) for row in range(attribute.size)
                )
                entries[axis] = axes.bin(attribute.name, query.name, groups)
        divided = " * ".join(entry for entry in entries if entry != SUMMED) or "total"
        name = query.name if merged or query.name == DETAILED else divided
        while name in {one.name for one in found.values()}:
            name += "_"
        positions = [names.index(attribute.name) for attribute in meaning]
        found[query.name] = PublishedName(
            name=name,
            entries=tuple(entries),
            shape=tuple(shape),
            order=tuple(np.argsort(positions).tolist()),
            sizes=tuple(attribute.size for attribute in meaning),
        )
    return found


def write_published(plan: QueryPlan, measurements: Path, out: Path, run: Run | None = None) -> Path:
    """Write the measurements and the public knowledge of a folder in the layout of noisy measurement files.

    Parameters
    ----------
    plan : QueryPlan
        The plan of the measurements; its regions must be prefixes of the codes of the leaves.
    measurements : Path
        Folder written by `measure`, or a release directory.
    out : Path
        Folder to make; it appears whole or not at all.

    Notes
    -----
    **Privacy**: post-processing; only noisy answers, invariants and public bounds are copied.
    **Cost**: one batch in memory; a file for each level, kind and state.
    """
    design = plan.design
    check_out(out)
    _check_writable(design)
    path = measurements / MEASUREMENTS_FILE
    measured = Measurements.of_design(path, design.measured_fingerprint())
    invariants = read_invariants(measurements / INVARIANTS_FILE, plan)
    axes = _Axes(design)
    names = _named(design, axes)
    rows = [
        one for statement in design.statements for one in _constraints(design, axes, statement, invariants)
    ]
    made = Path(tempfile.mkdtemp(dir=out.absolute().parent, prefix=f".{out.name}."))
    try:
        with _Files(made, design, axes.description()) as files:
            for batch in measured.batches():
                (run or Run()).check()
                name = names[batch.query]
                columns = _columns(design, f"{name.name}_dpq", name.entries, name.shape)
                files.write(
                    ANSWERS,
                    batch.level,
                    batch.nodes,
                    columns,
                    name.arranged(batch.noisy_counts),
                    batch.variance,
                )
            for level, nodes, columns, values in rows:
                files.write(CONSTRAINTS, level, nodes, columns, values, 0.0)
        made.chmod(0o755)
        made.rename(out)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    return out


def _check_writable(design: Design) -> None:
    """Whether the layout can hold these regions and attributes."""
    if design.prefixes is None:
        message = "the layout nmf identifies regions by prefixes of codes; give the geography a column with prefixes."
        raise InputError(message, option="geography")
    if not all(LEVEL_NAME.fullmatch(name) for name in design.spine.names):
        message = "the layout nmf names folders by levels; give levels names of letters, digits, - and _."
        raise InputError(message, option="geography.levels")
    if not {attribute.name for attribute in design.attributes}.isdisjoint(COLUMNS):
        message = "an attribute has the name of a column of the layout nmf, such as value or sign; rename it."
        raise InputError(message, option="attributes")


def _columns(
    design: Design, name: str, entries: Sequence[str], shape: Sequence[int], sign: str | None = None
) -> dict[str, Any]:
    """Values that all rows of a query share."""
    axes = dict(zip((attribute.name for attribute in design.attributes), entries, strict=True))
    return {"query_name": name, **axes, "query_shape": list(shape), **({"sign": sign} if sign else {})}


def _constraints(
    design: Design, axes: _Axes, statement: Statement, invariants: dict[str, Ints]
) -> list[tuple[str, Sequence[str], dict[str, Any], Ints]]:
    """A statement as rows: equal to an exact value, or at least and at most a bound, if there is one."""
    entries = [SUMMED] * len(design.attributes)
    for axis, attribute in enumerate(design.attributes):
        if attribute.name in statement.labels:
            codes = sorted(attribute.code_of(label) for label in statement.labels[attribute.name])
            entries[axis] = axes.bin(attribute.name, statement.name, (tuple(codes),))
    codes_of = design.spine.codes[statement.level]
    everywhere = np.ones(len(codes_of), dtype=np.bool_)
    parts = (
        [("con", "=", invariants[statement.name], everywhere)]
        if statement.is_invariant
        else [
            ("lb_con", ">=", statement.lower, statement.lower > 0),
            ("ub_con", "<=", statement.upper, statement.upper < UNBOUNDED),
        ]
    )
    shape = [1] * len(entries)
    return [
        (
            design.spine.names[statement.level],
            [codes_of[region] for region in np.flatnonzero(is_bound)],
            _columns(design, f"{statement.name}_{ending}", entries, shape, sign),
            values[is_bound].reshape(-1, 1),
        )
        for ending, sign, values, is_bound in parts
    ]


class _Files:
    """The files of a folder, each open until all of them are written."""

    def __init__(self, folder: Path, design: Design, description: str) -> None:
        self._folder, self._design, self._description = folder, design, description
        self._open: dict[Path, pq.ParquetWriter] = {}
        self._stack = ExitStack()
        names = [name.casefold() for name in design.spine.names]
        self._state = names.index("state") if "state" in names else None

    def __enter__(self) -> _Files:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def write(
        self,
        kind: str,
        level: str,
        nodes: Sequence[str],
        columns: dict[str, Any],
        values: Ints,
        variance: float,
    ) -> None:
        """Append the rows of one query, to the file of each state."""
        folder = self._folder / f"{level}.parquet" / kind
        prefixes = self._design.prefixes or []
        width = 0
        if self._state is not None and self._design.spine.level_of(level) >= self._state:
            width = prefixes[self._state]
        states = np.array([node[:width] for node in nodes], dtype=object)
        for state in dict.fromkeys(states):
            own = np.flatnonzero(states == state)
            path = folder / f"State={state}" / "part-0.parquet" if width else folder / "part-0.parquet"
            self._append(path, kind, [nodes[int(region)] for region in own], columns, values[own], variance)

    def _append(
        self, path: Path, kind: str, nodes: list[str], columns: dict[str, Any], values: Ints, variance: float
    ) -> None:
        schema = self._schema(kind)
        if path not in self._open:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._open[path] = self._stack.enter_context(pq.ParquetWriter(path, schema, compression="zstd"))
        offsets = np.arange(len(nodes) + 1, dtype=np.int32) * values.shape[1]
        filled = {
            **{name: [one] * len(nodes) for name, one in columns.items()},
            "geocode": nodes,
            "value": pa.ListArray.from_arrays(pa.array(offsets), pa.array(values.ravel())),
            "variance": [variance] * len(nodes),
        }
        arrays = [
            one if isinstance(one := filled[field.name], pa.Array) else pa.array(one, field.type)
            for field in schema
        ]
        self._open[path].write_table(pa.table(arrays, schema=schema))

    def _schema(self, kind: str) -> pa.Schema:
        axes = [(attribute.name, pa.string()) for attribute in self._design.attributes]
        fields = [("geocode", pa.string()), ("query_name", pa.string()), *axes]
        fields += [
            ("query_shape", pa.list_(pa.int64())),
            ("value", pa.list_(pa.int64())),
            ("variance", pa.float64()),
        ]
        fields += [("sign", pa.string())] if kind == CONSTRAINTS else []
        return pa.schema(fields).with_metadata({"louver": self._description})
