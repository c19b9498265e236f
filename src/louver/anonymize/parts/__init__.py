"""Files beyond memory: cut into parts by a few splits computed from counts, each part solved on its own, one release of all.

The source is read in passes, none of which holds its records: the different values of every column, the counts in a coarse grid, and the
records to the files of their parts. Why so: docs/decisions/0019-files-beyond-memory.md.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from math import floor
from pathlib import Path

import numpy as np
import pyarrow as pa

from louver._arrays import Ints
from louver.anonymize.options import AnonymizeOptions
from louver.anonymize.parts.cut import Cells, bins_of, cut
from louver.anonymize.parts.domain import Domain, read_domain
from louver.anonymize.parts.gather import gather
from louver.anonymize.parts.part import Piece, Whole, form_part
from louver.anonymize.parts.spill import KEY, Spill
from louver.anonymize.requirements import build_requirements
from louver.anonymize.result import AnonymizedRelease
from louver.anonymize.roles import unchanged
from louver.data.read import Source, open_source
from louver.data.scratch import Scratch
from louver.data.tabulate import coded_batches
from louver.engine.engines import Engine, open_engine
from louver.errors import InputError
from louver.optim.kernels.classes.diversity import is_diverse
from louver.run import Run
from louver.schema.request import Request

__all__ = ["in_parts"]


@contextmanager
def in_parts(request: Request[AnonymizeOptions], out: Path, run: Run) -> Iterator[AnonymizedRelease]:
    """The release, for as long as its records are on disk.

    Parameters
    ----------
    out : Path
        Where it will go; workers on other machines see the folder above it.
    """
    options, started = request.options, time.perf_counter()
    place = None if options.engine.startswith("local:") else out.absolute().parent
    # What an engine shares between machines holds values of the records: it lies in the private folder, too.
    with Scratch(place) as scratch, open_engine(options.engine, scratch.path, run) as engine:
        spill = Spill(scratch.path)
        with open_source(request.data, **request.source.opening(), run=run) as source:
            _check_columns(source, options)
            source.hold()
            domain = read_domain(source, options, request.schema, run)
            pieces = _pieces(*_cut_up(source, domain, options, spill, run), domain, options, engine)
            columns, is_text = source.columns, source.is_text
        read = time.perf_counter()
        whole = engine.share(Whole(domain=domain, options=options, spill=spill))
        answers = []
        for answer in engine.map(partial(form_part, whole), pieces, run):
            answers.append(answer)
            run.report("forming classes", len(answers), len(pieces))
        formed = time.perf_counter()
        release = gather(pieces, answers, domain, spill, columns, is_text, options, run)
        ended = time.perf_counter()
        stages = {"reading": read - started, "search": formed - read, "publishing": ended - formed}
        yield replace(release, stages=stages, seconds=ended - started)


def _check_columns(source: Source, options: AnonymizeOptions) -> None:
    """Refuse columns that are not there, and those without a role, of which nobody looks at all values together."""
    listed = (*options.quasi, *options.identifying, *options.sensitive, *options.keep)
    for name in listed:
        source.check_column(name)
    for name in source.columns:
        if name not in listed:
            raise InputError(
                f'column "{name}" in {source.name} has no role, which --parts does not look into; name it in --identifying to drop '
                "it, in --quasi to generalise it, or in --sensitive or --keep to publish it unchanged.",
                file=source.name,
                column=name,
                option="--parts",
            )


def _cut_up(
    source: Source, domain: Domain, options: AnonymizeOptions, spill: Spill, run: Run
) -> tuple[Ints, list[Ints]]:
    """Count, cut and put the records to the files of their parts; returns the records and the sensitive values of each part."""
    cells = Cells(bins=bins_of(domain.columns, domain.counts))
    n = 0
    for coded, _ in coded_batches(source, domain.schema):
        values = domain.values_of(coded)
        cells.add(values)
        n += len(values[0])
        run.report("counting", n, domain.n_records)
    part_of = cut(cells, domain.columns, options.n_parts(domain.n_records), options.k)
    n_parts = int(part_of.max()) + 1
    sensitive = [np.zeros((n_parts, len(s.codes)), np.int64) for s in domain.sensitive]

    def parted() -> Iterator[tuple[Ints, list[Ints], pa.RecordBatch]]:
        n = 0
        for coded, others in coded_batches(source, domain.schema, unchanged(source.columns, options)):
            values = domain.values_of(coded)
            part = part_of[np.searchsorted(cells.keys, cells.keys_of(values))]
            for counts, found in zip(sensitive, values[len(domain.columns) :], strict=True):
                np.add.at(counts, (part, found), 1)
            yield part, values, _keyed(others, n, len(part), options.keep_order)
            n += len(part)
            run.report("cutting", n, domain.n_records)

    spill.write(parted(), [np.min_scalar_type(len(counts)) for counts in domain.counts])
    return np.bincount(part_of, cells.counts).astype(np.int64), sensitive


def _keyed(others: pa.RecordBatch, first: int, n: int, is_order_kept: bool) -> pa.RecordBatch:
    """With the place of each record: its number in the source, or a random one."""
    keys = (
        np.arange(first, first + n, dtype=np.uint64)
        if is_order_kept
        else np.frombuffer(os.urandom(8 * n), dtype=np.uint64)
    )
    columns = [c.cast(c.type.value_type) if pa.types.is_dictionary(c.type) else c for c in others.columns]
    return pa.RecordBatch.from_arrays([pa.array(keys), *columns], names=[KEY, *others.schema.names])


def _pieces(
    sizes: Ints, sensitive: Sequence[Ints], domain: Domain, options: AnonymizeOptions, engine: Engine
) -> list[Piece]:
    """Parts that are worked on together, each with its share of the time and of the records that may be left out."""
    workers, n = engine.workers, domain.n_records
    found = []
    for parts in _united(sizes, sensitive, domain):
        size = int(sizes[list(parts)].sum())
        seconds = None if options.steps is not None else options.seconds * workers * size / n
        found.append(
            Piece(
                parts=parts,
                n_records=size,
                seconds=seconds,
                max_suppressed=floor(options.suppress * size),
                cores=None if workers == 1 else 1,
            )
        )
    return found


def _united(sizes: Ints, sensitive: Sequence[Ints], domain: Domain) -> list[tuple[int, ...]]:
    """Neighbouring parts taken together until each, as one class, meets what is asked of the sensitive columns."""
    groups: list[tuple[int, ...]] = []
    waiting: tuple[int, ...] = ()
    for part in range(len(sizes)):
        waiting += (part,)
        if _is_diverse(waiting, sensitive, domain):
            groups.append(waiting)
            waiting = ()
    if waiting:
        groups = [*groups[:-1], (*(groups[-1] if groups else ()), *waiting)]
    return groups


def _is_diverse(parts: tuple[int, ...], sensitive: Sequence[Ints], domain: Domain) -> bool:
    """Whether some parts, as one class, have the sensitive values that every class needs."""
    if not domain.sensitive:
        return True
    nobody = np.zeros(0, np.int64)
    limits = build_requirements(domain.sensitive, nobody, np.zeros((0, 0), np.int32), nobody, 0).limits
    counts = []
    for asked, by_part in zip(domain.sensitive, sensitive, strict=True):
        known = asked.codes >= 0
        total = by_part[list(parts)].sum(axis=0)
        counts.append(np.bincount(asked.codes[known], total[known], minlength=asked.n_values))
    return bool(is_diverse(limits, np.concatenate([nobody, *counts]).astype(np.int64)))
