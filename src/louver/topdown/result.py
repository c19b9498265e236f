"""A TopDown release: microdata, tables, their privacy loss, and how they were estimated.

Its files are written some hundred thousand rows at a time; none is ever held in memory as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from louver._arrays import Ints
from louver._html import JsonText, Shown
from louver._verdict import Verdict
from louver._words import counted
from louver.data.write import write_csv
from louver.errors import printable
from louver.privacy.budget import amounts_of
from louver.privacy.ledger import Head
from louver.release.manifest import Manifest
from louver.release.pages.promised import NOT_AUDITED, topdown_verdict
from louver.release.sentences import NOT_PRIVATE, failsafe_used, invariant_disclosed, public_numbers
from louver.release.write import ReleaseWriter
from louver.schema.attribute import Attribute
from louver.topdown.errors.intervals import KnownError
from louver.topdown.estimation.levels import Estimate
from louver.topdown.knowledge.implied import UNBOUNDED
from louver.topdown.measuring.noise_plan import QueryPlan
from louver.topdown.plot import level_figures, release_figures
from louver.topdown.problem import Design, Histograms, Query, SparseLevel
from louver.topdown.spine.arrange import spine_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "INVARIANTS_FILE",
    "MEASUREMENTS_FILE",
    "MICRODATA_FILE",
    "ROWS",
    "QueryError",
    "TopDownRelease",
    "answers_of",
    "labelled",
    "mean_errors",
    "microdata",
    "row_labels",
    "statements",
    "write_row_groups",
]

MICRODATA_FILE = "data/microdata.parquet"
CSV_FILE = "data/microdata.csv"
TABLE_FOLDER = "data/tables"
ERRORS_FILE = "data/errors.parquet"
REGIONS_FILE = "data/regions.parquet"
NOT_IN_MANIFEST = ("verdict", "seconds", "stages", "manifest")
SPINE_FILE = "public/spine.parquet"
STATEMENTS_FILE = "public/statements.parquet"
INVARIANTS_FILE = "invariants.parquet"
MEASUREMENTS_FILE = "measurements/topdown.parquet"
MOST_VALUES = 1 << 22  # answers compared at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryError:
    """Mean absolute error of one query over all regions of a level and all its rows."""

    level: str
    query: str
    mean_absolute: float


def mean_errors(query: Query, found: SparseLevel, truth: Histograms) -> NDArray[np.float64]:
    """Mean absolute and mean squared error (2,) of a query over all regions and rows."""
    sums, step = np.zeros(2), max(1, MOST_VALUES // query.n_rows)
    for first in range(0, truth.n_regions, step):
        last = min(first + step, truth.n_regions)
        off = np.abs(query.answer(found.part(first, last)) - query.answer(truth.part(first, last)))
        sums += off.sum(), np.square(off, dtype=np.float64).sum()
    means: NDArray[np.float64] = sums / (truth.n_regions * query.n_rows)
    return means


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class TopDownRelease(JsonText, Shown):
    """Histograms of all leaves: whole numbers, not negative, consistent with each other and with public knowledge.

    Parameters
    ----------
    plan : QueryPlan
        The measured queries with their noise.
    estimate : Estimate
    known_error : KnownError or None
        Standard errors and intervals, from simulations of the release; None if none were requested.
    evaluation : tuple of QueryError or None
        True errors, for evaluations only.
    is_private : bool
        False for seeded noise.
    head : Head or None
        The ledger's entry that paid.
    debited : str or None
        The debit, in the ledger's measure and relation.
    seconds : mapping of str to float
        Time of each stage.
    path : Path or None
        Where it was written.
    """

    plan: QueryPlan
    estimate: Estimate
    known_error: KnownError | None = None
    evaluation: tuple[QueryError, ...] | None = None
    is_private: bool = True
    head: Head | None = None
    debited: str | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    path: Path | None = None

    @property
    def n_people(self) -> int:
        """People in the release."""
        return int(self.estimate.leaves.count.sum())

    @property
    def not_protected(self) -> tuple[str, ...]:
        """Exact values in these files or in those on which they are based, in words."""
        return self.plan.not_protected

    @property
    def lost_before(self) -> str | None:
        """The privacy loss of the release that it extends, which is in these files too; None if it extends none."""
        return None

    @property
    def verdict(self) -> Verdict:
        """What the release promises, and what it does not protect."""
        is_for_release = self.evaluation is None
        covariates = [one["column"] for one in self._covariates()]
        return topdown_verdict(
            self._privacy(), covariates, is_private=self.is_private, is_for_release=is_for_release
        )

    def _covariates(self) -> list[dict[str, str]]:
        """The public numbers that the estimate used."""
        return [
            {"column": one.column, "file": one.file, "sha256": one.sha256}
            for one in self.plan.design.covariates
        ]

    def levels(self) -> Iterator[SparseLevel]:
        """Histograms of every level, the leaves first: each level is the sum of the one below."""
        current = self.estimate.leaves
        yield current
        for starts in reversed(self.plan.design.spine.starts):
            current = current.add_up(starts, self.plan.design.n_cells)
            yield current

    def sizes(self) -> list[Ints]:
        """People of the regions of every level, the root first."""
        sizes = [self.estimate.leaves.people]
        for starts in reversed(self.plan.design.spine.starts):
            sizes.insert(0, np.add.reduceat(sizes[0], starts[:-1]))
        return sizes

    def to_dict(self) -> dict[str, Any]:
        """The content of the JSON result; its keys are stable."""
        loss, design = self.plan.loss, self.plan.design
        levels = []
        for level, report in enumerate(self.estimate.levels):
            entry: dict[str, Any] = {
                "name": report.name,
                "regions": report.regions,
                "share": float(design.level_shares[level]),
                "largest_residual": report.largest_residual,
                "queries": [
                    {"name": m.query.name, "loss": str(m.loss.amount), "variance": m.variance}
                    for m in self.plan.measured[level]
                ],
            }
            if self.evaluation is not None:
                entry["mean_absolute_error"] = {
                    error.query: error.mean_absolute
                    for error in self.evaluation
                    if error.level == report.name
                }
            levels.append(entry)
        return {
            **amounts_of(loss),
            "neighbours": str(loss.neighbours),
            "debited": self.debited,
            "people": self.n_people,
            "levels": levels,
            "failsafe_regions": [region.region for region in self.estimate.rescued],
            "suboptimal_regions": list(self.estimate.suboptimal),
            "verdict": self.verdict.to_dict(),
            "seconds": sum(self.seconds.values()),
            "stages": dict(self.seconds),
            "intervals": 0 if self.known_error is None else self.known_error.simulations,
            "manifest": None if self.path is None else str(self.path / "manifest.json"),
        }

    def to_frame(self) -> pa.Table:
        """Microdata: one row per person with regions and attributes."""
        return next(microdata(self.plan.design, self.estimate.leaves, max(1, self.n_people)))

    def tables(self) -> Iterator[tuple[str, Iterator[Part]]]:
        """The total and every query but the detailed one, without zeros: level, region, attributes, the count and its error."""
        design = self.plan.design
        histograms = list(self.levels())[::-1]
        codes = [pa.array(level, pa.string()) for level in design.spine.codes]
        for query, meaning in design.published_tables:
            yield query.name, self._table(query, meaning, histograms, codes)

    def _table(
        self,
        query: Query,
        meaning: tuple[Attribute, ...],
        histograms: Sequence[SparseLevel],
        codes: Sequence[pa.Array],
    ) -> Iterator[Part]:
        """The rows of one table, level by level."""
        for level, name in enumerate(self.plan.design.spine.names):
            for region, row, count in answers_of(query, histograms[level]):
                columns = {
                    "level": pa.repeat(pa.scalar(name, pa.string()), len(region)),
                    "region": codes[level].take(pa.array(region)),
                    **row_labels(row, meaning),
                    "count": pa.array(count),
                    **self._error_columns(level, query, region, row, count),
                }
                yield level, pa.table(columns)

    def _error_columns(
        self, level: int, query: Query, region: Ints, row: Ints, count: Ints
    ) -> dict[str, pa.Array]:
        if self.known_error is None:
            return {}
        found = self.known_error.intervals(level, query, region, row, count)
        return {
            "standard_error": pa.array(found.standard_error),
            "lower_90": pa.array(found.lower),
            "upper_90": pa.array(found.upper),
        }

    def manifest(self, parameters: dict[str, Any], *, csv: bool = False) -> Manifest:
        """Describe the release: its content, how it was made, what it is conditional on, and what it promises."""
        design = self.plan.design
        invariants = [statement.name for statement in self.plan.invariants]
        warnings = [] if self.is_private else [NOT_PRIVATE]
        rescued = self.estimate.rescued
        if rescued:
            warnings.append(failsafe_used(len(rescued)))
        covariates = self._covariates()
        if covariates:
            warnings.append(public_numbers([one["column"] for one in covariates]))
        return Manifest(
            verb="topdown",
            method="dual Newton least squares, rounding by shortest paths",
            parameters=parameters,
            promises=[self._promise(csv)],
            privacy=self._privacy(),
            results={
                **self._results(),
                "covariates": covariates,
                "failsafe": [
                    {
                        "level": region.level,
                        "region": region.region,
                        "distance": region.distance,
                        "moved": region.moved,
                        "kept_margin": region.kept_margin,
                    }
                    for region in rescued
                ],
            },
            disclosures=[invariant_disclosed(name) for name in invariants],
            warnings=warnings,
            spec_sha256=design.fingerprint(),
            ledger_head=None if self.head is None else str(self.head),
            not_private=not self.is_private,
            not_for_release=self.evaluation is not None,
            # The time taken to read the records and draw noise is not published.
            seconds=self.seconds["estimate"],
        )

    def _privacy(self) -> dict[str, Any]:
        """What the manifest says about the noise."""
        design, loss = self.plan.design, self.plan.loss
        rho = self.plan.epsilon_delta
        published = design.options.published
        return {
            "measure": str(loss.measure),
            "amount": str(loss.amount),
            "budget": str(design.budget.amount),
            "composed": None if self.plan.promise is None else list(map(str, self.plan.promise)),
            "epsilon_at_delta": None if rho is None else [str(rho[0]), str(rho[1])],
            "neighbours": str(loss.neighbours),
            "meaning": loss.neighbours.meaning,
            "conditional_on": "The guarantee holds among tables that share the exact values of the invariants.",
            "invariants": [statement.name for statement in self.plan.invariants],
            "not_protected": list(self.not_protected),
            **({} if published is None else {"stated_by": published.by}),
            "queries": [
                {"level": design.spine.names[m.level], "query": m.query.name, "loss": str(m.loss.amount)}
                for level in self.plan.measured
                for m in level
            ],
        }

    def _results(self) -> dict[str, Any]:
        """The JSON result without its times, and the other figures on the page."""
        content = {key: value for key, value in self.to_dict().items() if key not in NOT_IN_MANIFEST}
        levels = [entry | more for entry, more in zip(content["levels"], level_figures(self), strict=True)]
        return {**content, "levels": levels, **release_figures(self)}

    def _promise(self, csv: bool) -> dict[str, Any]:
        """What `verify` recomputes from the published files."""
        design = self.plan.design
        return {
            "promise": "topdown",
            "file": MICRODATA_FILE,
            "csv": CSV_FILE if csv else None,
            "regions": list(design.geography_columns),
            "prefixes": design.prefixes,
            "levels": list(design.spine.names),
            "attributes": {attribute.name: list(attribute.labels) for attribute in design.attributes},
            "structural_zeros": [
                {name: list(labels) for name, labels in zero.items()}
                for zero in design.spec.schema.structural_zeros
            ],
            "measurements": MEASUREMENTS_FILE,
            "statements": STATEMENTS_FILE,
            "invariants": INVARIANTS_FILE,
            "exact": {s.name: design.spine.names[s.level] for s in self.plan.invariants},
            "cells": {
                statement.name: {name: list(labels) for name, labels in statement.labels.items()}
                for statement in design.statements
            },
            "tables": {
                query.name: {
                    "file": f"{TABLE_FOLDER}/{query.name}.parquet",
                    "attributes": {
                        attribute.name: _merged_labels(design.attributes, attribute, query.name, self.plan)
                        for attribute in meaning
                    },
                }
                for query, meaning in design.published_tables
            },
            **self._promised_errors(),
            **self._promised_spine(),
        }

    def _promised_errors(self) -> dict[str, Any]:
        """The files that describe errors, if there are any."""
        if self.known_error is None:
            return {}
        queries = [query.name for query in self.known_error.queries]
        return {"errors": {"file": ERRORS_FILE, "regions": REGIONS_FILE, "queries": queries}}

    def _promised_spine(self) -> dict[str, Any]:
        """The positions of leaves in a spine that was arranged for areas, and its rules."""
        arrangement = self.plan.design.arrangement
        if arrangement is None:
            return {}
        geography = self.plan.design.options.geography
        prefixes = None if geography is None else geography.prefixes
        return {"spine": {"file": SPINE_FILE, "prefixes": prefixes, **arrangement.stated()}}

    def write_into(
        self, writer: ReleaseWriter, parameters: dict[str, Any], report: str | None, *, csv: bool = False
    ) -> Manifest:
        """Write the files of the release next to its measurements, and move everything into place."""
        design = self.plan.design
        write_row_groups(
            writer.path(MICRODATA_FILE), enumerate(microdata(design, self.estimate.leaves)), writer.check
        )
        if csv:
            write_csv(microdata(design, self.estimate.leaves), writer.path(CSV_FILE))
        for name, parts in self.tables():
            write_row_groups(writer.path(f"{TABLE_FOLDER}/{name}.parquet"), parts, writer.check)
        if self.known_error is not None:
            errors, regions = self.known_error.to_tables(self.plan.design.spine)
            pq.write_table(errors, writer.path(ERRORS_FILE), compression="zstd")
            pq.write_table(regions, writer.path(REGIONS_FILE), compression="zstd")
        write_row_groups(
            writer.path(STATEMENTS_FILE), ((0, part) for part in statements(design)), writer.check
        )
        if design.arrangement is not None:
            pq.write_table(spine_table(design.arrangement), writer.path(SPINE_FILE), compression="zstd")
        if report is not None:
            writer.path("report.html").write_text(report, encoding="utf-8")
        return writer.seal(self.manifest(parameters, csv=csv))

    def plot(self) -> Figure:
        """Draw the budget and the noise of every query, and with an evaluation the errors."""
        from louver.topdown.plot import plot_release

        return plot_release(self)

    def __repr__(self) -> str:
        content = "" if self.is_private else " NOT PRIVATE"
        lines = [f"TopDownRelease: {self.n_people:,} people, {self.plan.loss}{content}"]
        for level in self.estimate.levels:
            line = f"  {level.name}: {counted(level.regions, 'region')}"
            if self.evaluation is not None:
                errors = {e.query: e.mean_absolute for e in self.evaluation if e.level == level.name}
                line += ", mean absolute error " + ", ".join(f"{q} {x:.3g}" for q, x in errors.items())
            lines.append(line)
        if self.debited not in (None, str(self.plan.loss)):
            lines.insert(1, f"  debited: {self.debited}(the amount that the ledger counts)")
        lines.insert(1, f"  {self.verdict.sentence}")
        exact = [f"  not protected: {what}" for what in self.not_protected]
        lines[2:2] = [*exact, f"  {NOT_AUDITED}"] if exact else []
        lines.append(f"  failsafe used for {counted(len(self.estimate.rescued), 'region')}")
        return "\n".join(map(printable, lines[:10]))


def _merged_labels(
    attributes: tuple[Attribute, ...], merged: Attribute, query: str, plan: QueryPlan
) -> dict[str, list[str]]:
    """For every label of a query's attribute, the microdata labels that it represents."""
    merge = plan.design.options.queries[query].merge.get(merged.name, {})
    original = next(attribute for attribute in attributes if attribute.name == merged.name)
    renamed = {old: new for new, olds in merge.items() for old in olds}
    groups: dict[str, list[str]] = {label: [] for label in merged.labels}
    for label in original.labels:
        groups[renamed.get(label, label)].append(label)
    return groups


ROWS = 1 << 20
"""Maximum number of rows in a row group."""

MOST_ANSWERS = 1 << 22
"""Maximum number of answers, zeros included, that are computed together."""

Part = tuple[int, pa.Table]
"""Rows of a file, and the number of the chapter they belong to."""


def write_row_groups(
    path: Path, parts: Iterable[Part], check: Callable[[], object] = tuple, rows: int = ROWS
) -> None:
    """Write parts one after another, in row groups of the given size; a chapter is written as one chunk, however it is divided into parts.

    `check` is called before each part, and may raise.
    """
    writer: pq.ParquetWriter | None = None
    held: list[Part] = []
    for part in parts:
        check()
        held.append(part)
        writer = writer or pq.ParquetWriter(path, part[1].schema, compression="zstd")
        while sum(table.num_rows for _, table in held) > rows:
            first, rest = _cut(held, rows)
            writer.write_table(_joined(first), row_group_size=rows)
            held = rest
    assert writer is not None, "a file has at least one part"
    with writer:
        writer.write_table(_joined(held), row_group_size=rows)


def _cut(parts: list[Part], rows: int) -> tuple[list[Part], list[Part]]:
    """Split parts into their first rows and the others."""
    before, after = [], []
    for chapter, table in parts:
        before.append((chapter, table.slice(0, rows)))
        after.append((chapter, table.slice(rows)))
        rows = max(0, rows - table.num_rows)
    return [part for part in before if len(part[1])], [part for part in after if len(part[1])]


def _joined(parts: list[Part]) -> pa.Table:
    chapters = groupby(parts, key=itemgetter(0))
    return pa.concat_tables(
        _without_unused(pa.concat_tables(t for _, t in own).combine_chunks()) for _, own in chapters
    )


def _without_unused(chapter: pa.Table) -> pa.Table:
    """The same rows with dictionaries that contain only their own values, so that a file reveals nothing that is not in its rows."""
    columns = [
        pa.chunked_array([_shortened(chunk) for chunk in column.chunks], column.type)
        if pa.types.is_dictionary(column.type)
        else column
        for column in chapter.columns
    ]
    return pa.table(columns, schema=chapter.schema)


def _shortened(column: pa.DictionaryArray) -> pa.DictionaryArray:
    seen = pc.unique(column.indices).drop_null()
    listed = seen.take(pc.array_sort_indices(seen))
    if len(listed) == len(column.dictionary):
        return column
    codes = pc.index_in(column.indices, value_set=listed)
    return pa.DictionaryArray.from_arrays(codes.cast(column.type.index_type), column.dictionary.take(listed))


def microdata(design: Design, leaves: SparseLevel, rows: int = ROWS) -> Iterator[pa.Table]:
    """One row per person with regions and attributes, in tables of the given size; each lists only its own leaves."""
    until = np.cumsum(leaves.count)
    n_people = int(until[-1]) if len(until) else 0
    begun = 0
    for start in range(0, max(1, n_people), rows):
        stop = min(start + rows, n_people)
        first, last = np.searchsorted(until, [start, stop - 1], side="right")
        entry = np.arange(first, min(last + 1, len(until)))
        number = np.minimum(until[entry], stop) - np.maximum(until[entry] - leaves.count[entry], start)
        person = np.repeat(entry, number)
        leaf = np.searchsorted(leaves.start, person, side="right") - 1
        ended = leaves.n_regions if stop == n_people else int(leaf[-1]) + 1
        columns = _regions(design, leaf, begun, ended)
        codes = np.unravel_index(leaves.cell[person], design.shape)
        for attribute, code in zip(design.attributes, codes, strict=True):
            columns[attribute.name] = labelled(code, attribute.labels)
        begun = ended - 1
        yield pa.table(columns)


def _regions(design: Design, leaf: Ints, first: int, last: int) -> dict[str, pa.Array]:
    """The geography columns of the source for people in the leaves first to last."""
    names = design.geography_columns
    if len(names) == 1:
        return {names[0]: labelled(leaf - first, design.spine.leaves[first:last])}
    paths = design.spine.leaf_labels[first:last]
    columns = {}
    for axis, name in enumerate(names):
        labels = {label: i for i, label in enumerate(dict.fromkeys(path[axis] for path in paths))}
        code = np.array([labels[path[axis]] for path in paths])
        columns[name] = labelled(code[leaf - first], tuple(labels))
    return columns


def answers_of(query: Query, level: SparseLevel) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Region, row and count of a query's answers that are not zero, some regions at a time."""
    step = max(1, MOST_ANSWERS // query.n_rows)
    for first in range(0, level.n_regions, step):
        answers = query.answer(level.part(first, min(first + step, level.n_regions)))
        region, row = np.nonzero(answers)
        yield region + first, row, answers[region, row]


def statements(design: Design) -> Iterator[pa.Table]:
    """Bounds from public tables: one row for each binding bound."""
    spine = design.spine
    codes = pa.array(spine.leaves, pa.string())
    yield _bounds("", codes, np.zeros(0, np.int64), np.zeros((2, 0), np.int64))
    for statement in design.statements:
        if not statement.is_invariant:
            binding = np.flatnonzero((statement.lower > 0) | (statement.upper < UNBOUNDED))
            for first in range(0, len(binding), ROWS):
                own = binding[first : first + ROWS]
                yield _bounds(
                    statement.name, codes, own, np.stack([statement.lower[own], statement.upper[own]])
                )


def _bounds(name: str, codes: pa.Array, leaf: Ints, bounds: Ints) -> pa.Table:
    return pa.table(
        {
            "statement": pa.repeat(pa.scalar(name, pa.string()), len(leaf)),
            "region": codes.take(pa.array(leaf)),
            "lower": pa.array(bounds[0]),
            "upper": pa.array(bounds[1], mask=bounds[1] >= UNBOUNDED),
        }
    )


def labelled(codes: NDArray[Any], labels: tuple[str, ...]) -> pa.Array:
    """A dictionary column."""
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(labels, pa.string()))


def row_labels(row: Ints, meaning: tuple[Attribute, ...]) -> dict[str, pa.Array]:
    """Columns with the labels of the rows of a query."""
    if not meaning:
        return {}
    codes = np.unravel_index(row, [attribute.size for attribute in meaning])
    found = zip(meaning, codes, strict=True)
    return {a.name: pa.array(a.labels, pa.string()).take(pa.array(code)) for a, code in found}
