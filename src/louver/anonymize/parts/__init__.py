"""Files beyond memory: cut into parts by a few splits computed from counts, solved part by part, and published as one release.

The source is read in passes, none of which holds its records: one collects the distinct values of every column, one counts in a coarse
grid, and one writes the records to the files of their parts. The reasons are in docs/decisions/0019-files-beyond-memory.md.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import floor
from pathlib import Path

import numpy as np
import pyarrow as pa

from louver._arrays import Ints
from louver.anonymize.classes import ClassesOfPart, describe, form_classes
from louver.anonymize.columns import build_requirements
from louver.anonymize.generalise import PublishedColumn
from louver.anonymize.load import Codebook, check_columns, coded_records, read_codebook
from louver.anonymize.metrics import PublishedClasses
from louver.anonymize.options import AnonymizeOptions
from louver.anonymize.parts.cut import GridCells, bins_of, cut
from louver.anonymize.parts.spill import KEY, Arranging, Spill
from louver.anonymize.publish import Arranged
from louver.anonymize.result import RecordsOnDisk, shuffled
from louver.anonymize.roles import NumberCoding, unchanged
from louver.anonymize.watch import Watch
from louver.data.read import Source, open_source, quoted
from louver.data.scratch import Scratch
from louver.engine.engines import Engine, Shared, open_engine
from louver.errors import Cancelled, InputError
from louver.optim.kernels.classes.diversity import is_diverse
from louver.run import Run
from louver.schema.request import Request

__all__ = ["DiskStore", "cut_into_parts"]

RECORDS = "records.parquet"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartsOfFile:
    """Data needed to process any part. Confidential."""

    codebook: Codebook
    spill: Spill
    has_weights: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePart:
    """A part of the file.

    Attributes
    ----------
    numbers : tuple of int
        Numbers of the original parts; several if a single one does not meet the requirements.
    n_records : int
    max_suppressed : int
        Its share of the records that may be left out.
    cores : int or None
        Number of cores that a method may use; None for all.
    """

    numbers: tuple[int, ...]
    n_records: int
    max_suppressed: int
    cores: int | None


@contextmanager
def cut_into_parts(request: Request[AnonymizeOptions], out: Path, watch: Watch) -> Iterator[DiskStore]:
    """The file cut into parts, while these are on disk.

    Parameters
    ----------
    out : Path
        Folder of the release; workers on other machines see its parent folder.
    """
    options, run = request.options, watch.run
    place = None if options.engine.startswith("local:") else out.absolute().parent
    # Objects that an engine shares between machines contain record values, so they are kept in the private folder, too.
    with Scratch(place) as scratch, open_engine(options.engine, scratch.path, run) as engine:
        spill = Spill(scratch.path)
        with watch.stage("reading"), open_source(request.data, **request.source.opening(), run=run) as source:
            _check_roles(source, options)
            source.hold()
            codebook = read_codebook(source, options, request.schema, run)
            sizes, sensitive = _cut_up(source, codebook, options, spill, run)
            store = DiskStore(
                codebook=codebook,
                column_names=source.columns,
                is_text=source.is_text,
                parts=_parts(sizes, sensitive, codebook, options, engine),
                spill=spill,
                engine=engine,
            )
        yield store


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DiskStore:
    """A file cut into parts on disk."""

    codebook: Codebook
    column_names: tuple[str, ...]
    is_text: bool
    parts: list[FilePart]
    spill: Spill
    engine: Engine

    @property
    def part_sizes(self) -> tuple[int, ...]:
        return tuple(part.n_records for part in self.parts)

    def form(self, options: AnonymizeOptions, watch: Watch) -> list[ClassesOfPart]:
        """The classes of every part, by the engine."""
        has_weights = options.sampling_weight is not None
        shared = self.engine.share(
            PartsOfFile(codebook=self.codebook, spill=self.spill, has_weights=has_weights)
        )
        seconds = None if watch.limit is None else watch.limit * self.engine.workers / self.codebook.n_records
        work = partial(_form_part, shared, options, seconds)
        found: list[ClassesOfPart] = []
        with watch.stage("search"):
            for classes in self.engine.map(work, self.parts, watch.run):
                found.append(classes)
                watch.run.report("forming classes", len(found), len(self.parts))
        return found

    def arrange(
        self,
        parts: Sequence[ClassesOfPart],
        published: Sequence[PublishedColumn],
        seen: PublishedClasses,
        options: AnonymizeOptions,
        run: Run,
    ) -> Arranged:
        """The records of all parts as one file."""
        carried = unchanged(self.column_names, options)
        arranging = Arranging(
            spill=self.spill,
            parts=[part.numbers for part in self.parts],
            labels=[part.class_of_records for part in parts],
            offsets=np.cumsum([0, *(len(part.sizes) for part in parts)])[:-1].tolist(),
            published=published,
            columns=self.column_names,
            unchanged=carried,
            is_text=self.is_text,
            as_bounds=options.format == "bounds",
            n_records=self.codebook.n_records,
            is_order_kept=options.keep_order,
            class_ids=shuffled(seen.n)[seen.of_group] if options.class_id else None,
        )
        table = RecordsOnDisk(self.spill.folder / RECORDS)
        texts = arranging.write(table.path, {s.name: s.codes for s in self.codebook.sensitive}, run)
        quasi = [name for p in published for name in p.column_names(options.format == "bounds")]
        with open_source(table.path, decimal_mark=".", run=run) as source:
            n_alone = _count(source, f"GROUP BY {_names(source.columns)} HAVING count(*) = 1")
            alike = tuple(
                (name, _count(source, f"GROUP BY {_names(quasi)} HAVING {_is_single(name)}"))
                for name in options.sensitive
            )
        return Arranged(table=table, texts=texts, worked_out=(), n_alone=n_alone, alike=alike)


def _form_part(
    shared: Shared[PartsOfFile],
    options: AnonymizeOptions,
    seconds_per_record: float | None,
    part: FilePart,
    run: Run,
) -> ClassesOfPart:
    """The classes of one part; the class of each record goes to a file next to its records."""
    file = shared.value
    codebook = file.codebook
    values, weights = file.spill.read_codes(part.numbers), None
    if file.has_weights:
        weights = file.spill.read_weights(part.numbers)
    problem = codebook.problem(values, options, part.max_suppressed)
    seconds = None if seconds_per_record is None else seconds_per_record * part.n_records
    watch = Watch(_SilentRun(run), seconds, part.cores)
    answer = form_classes(problem, options, watch)
    class_of = np.empty(problem.n_records, np.int32)
    class_of[problem.rows] = answer.labels
    path = file.spill.labels(part.numbers[0], options.method, options.k)
    np.save(path, class_of)
    return describe(codebook, values, problem, answer, path, watch.stopped, weights)


class _SilentRun(Run):
    """A run that reports no progress for a single part and is cancelled with its parent run."""

    def __init__(self, above: Run) -> None:
        super().__init__()
        self._above = above

    def check(self) -> None:
        try:
            self._above.check()
        except Cancelled:
            self.cancel()
        super().check()


def _count(source: Source, grouping: str) -> int:
    """Published records in groups that meet a condition."""
    found = source.first_row(
        f"SELECT CAST(coalesce(sum(n), 0) AS BIGINT) AS n FROM (SELECT count(*) AS n FROM records {grouping})"
    )
    assert found is not None
    return int(found["n"])


def _names(columns: Sequence[str]) -> str:
    return ", ".join(map(quoted, columns))


def _is_single(column: str) -> str:
    """SQL: whether all records of a group have the same value, or all lack one."""
    name = quoted(column)
    return f"count(DISTINCT {name}) + CAST(count({name}) < count(*) AS TINYINT) = 1"


def _check_roles(source: Source, options: AnonymizeOptions) -> None:
    """Refuse columns that do not exist, and columns without a role, because the values of the whole file are never examined together."""
    check_columns(source, options)
    weight = () if options.sampling_weight is None else (options.sampling_weight,)
    listed = (*options.quasi, *options.identifying, *options.sensitive, *options.keep, *weight)
    for name in source.columns:
        if name not in listed:
            raise InputError(
                f'column "{name}" in {source.name} has no role, and --parts does not examine its values; name it in --identifying to drop '
                "it, in --quasi to generalise it, or in --sensitive or --keep to publish it unchanged.",
                file=source.name,
                column=name,
                option="--parts",
            )


def _cut_up(
    source: Source, codebook: Codebook, options: AnonymizeOptions, spill: Spill, run: Run
) -> tuple[Ints, list[Ints]]:
    """Count, cut and write the records to the files of their parts; returns the records and the sensitive values of each part."""
    columns = codebook.value_columns
    cells = GridCells(bins=bins_of(columns, codebook.counts))
    n = 0
    for values, _ in coded_records(source, codebook, options, {}):
        cells.add(values)
        n += len(values[0])
        run.report("counting", n, codebook.n_records)
    least = max((1 if options.k_map else options.k, *options.curve))
    part_of = cut(cells, columns, options.n_parts(codebook.n_records), least)
    n_parts = int(part_of.max()) + 1
    sensitive = [np.zeros((n_parts, len(s.codes)), np.int64) for s in codebook.sensitive]
    names = unchanged(source.columns, options)
    numbers = NumberCoding.of(source, options, names, lambda name: _different(source, name))

    def parted() -> Iterator[tuple[Ints, list[Ints], pa.RecordBatch]]:
        n = 0
        for values, others in coded_records(
            source, codebook, options, {name: quoted(name) for name in names}
        ):
            part = part_of[np.searchsorted(cells.keys, cells.keys_of(values))]
            for counts, found in zip(sensitive, values[len(columns) :], strict=True):
                np.add.at(counts, (part, found), 1)
            table = numbers.apply(pa.Table.from_batches([others]))
            yield part, values, _keyed(table, n, len(part), options.keep_order)
            n += len(part)
            run.report("cutting", n, codebook.n_records)

    spill.write(parted(), [np.min_scalar_type(len(counts)) for counts in codebook.counts])
    return np.bincount(part_of, cells.counts).astype(np.int64), sensitive


def _different(source: Source, name: str) -> pa.ChunkedArray:
    """The distinct values of a column."""
    return pa.Table.from_batches(list(source.batches(f"SELECT DISTINCT {quoted(name)} FROM records"))).column(
        0
    )


def _keyed(others: pa.Table, first: int, n: int, is_order_kept: bool) -> pa.RecordBatch:
    """Add each record's position: its number in the source, or a random one."""
    keys = (
        np.arange(first, first + n, dtype=np.uint64)
        if is_order_kept
        else np.frombuffer(os.urandom(8 * n), dtype=np.uint64)
    )
    columns = [
        c.cast(c.type.value_type) if pa.types.is_dictionary(c.type) else c
        for c in (column.combine_chunks() for column in others.columns)
    ]
    return pa.RecordBatch.from_arrays([pa.array(keys), *columns], names=[KEY, *others.schema.names])


def _parts(
    sizes: Ints, sensitive: Sequence[Ints], codebook: Codebook, options: AnonymizeOptions, engine: Engine
) -> list[FilePart]:
    """The parts, each with its share of the time and of the records that may be left out."""
    workers, found = engine.workers, []
    for numbers in _united(sizes, sensitive, codebook):
        size = int(sizes[list(numbers)].sum())
        found.append(
            FilePart(
                numbers=numbers,
                n_records=size,
                max_suppressed=floor(options.suppress * size),
                cores=None if workers == 1 else 1,
            )
        )
    return found


def _united(sizes: Ints, sensitive: Sequence[Ints], codebook: Codebook) -> list[tuple[int, ...]]:
    """Neighbouring parts merged until each, as one class, meets the requirements on the sensitive columns."""
    groups: list[tuple[int, ...]] = []
    waiting: tuple[int, ...] = ()
    for part in range(len(sizes)):
        waiting += (part,)
        if _is_diverse(waiting, sensitive, codebook):
            groups.append(waiting)
            waiting = ()
    if waiting:
        groups = [*groups[:-1], (*(groups[-1] if groups else ()), *waiting)]
    return groups


def _is_diverse(parts: tuple[int, ...], sensitive: Sequence[Ints], codebook: Codebook) -> bool:
    """Whether the given parts, as one class, have the sensitive values that every class needs."""
    if not codebook.sensitive:
        return True
    nobody = np.zeros(0, np.int64)
    limits = build_requirements(codebook.sensitive, nobody, np.zeros((0, 0), np.int32), nobody, 0).limits
    counts = []
    for required, by_part in zip(codebook.sensitive, sensitive, strict=True):
        known = required.codes >= 0
        total = by_part[list(parts)].sum(axis=0)
        counts.append(np.bincount(required.codes[known], total[known], minlength=required.n_values))
    return bool(is_diverse(limits, np.concatenate([nobody, *counts]).astype(np.int64)))
