"""Records of the parts on disk, and the published file that is assembled from them.

All files are in one private folder that is removed with the run. The codes of a part, which the worker that forms its classes reads, are
separate from the columns that are published unchanged and from the position of each record, which only the run itself reads.

Every record has a key: its number in the source, or a random one. The records of each part are sorted by it and stored in stretches of
keys; then the file is written one stretch at a time, taken from all parts together. So memory holds at most one part or stretch.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from louver._arrays import Bools, Floats, Ints
from louver.anonymize.generalise import PublishedColumn
from louver.anonymize.load import weights_of
from louver.anonymize.publish import published_texts
from louver.data.coded import common_type, number_type
from louver.run import Run

__all__ = ["KEY", "STRETCH_ROWS", "Arranging", "Spill", "TextsOfCodes", "append", "read_appended"]

FLUSH_ROWS = 2**19
"""Number of records collected before they are written to their parts."""

KEY = "\0key"
"""Column of the record positions; no input file has a column with this name."""


@dataclass(frozen=True, slots=True)
class Spill:
    """Files of the parts below a folder."""

    folder: Path

    def codes(self, part: int) -> Path:
        """Value codes of the part's records."""
        return self.folder / f"codes-{part}.arrow"

    def others(self, part: int) -> Path:
        """Their positions and the columns published unchanged, in the same order."""
        return self.folder / f"others-{part}.arrow"

    def labels(self, part: int, method: str, k: int) -> Path:
        """A new file for the class of each record, in the same order.

        Every call returns another file: a part whose worker is presumed dead is formed again, with other classes if time is limited, and
        the first worker may still finish and write.
        """
        return self.folder / f"labels-{part}-{method}-{k}-{secrets.token_hex(8)}.npy"

    def arranged(self, part: int) -> Path:
        """Published records of the part, a batch for each stretch of the release."""
        return self.folder / f"arranged-{part}.arrow"

    def write(
        self,
        batches: Iterable[tuple[Ints, Sequence[Ints], pa.RecordBatch]],
        types: Sequence[np.dtype[np.generic]],
    ) -> None:
        """Assign records to their parts: batches of (part, value codes, other columns)."""
        names = [str(place) for place in range(len(types))]
        for part, values, others in _collected(batches):
            order = np.argsort(part, kind="stable")
            found, starts = np.unique(part[order], return_index=True)
            codes = pa.table([v.astype(t)[order] for v, t in zip(values, types, strict=True)], names=names)
            rest = others.take(pa.array(order))
            stops = np.append(starts[1:], len(part))
            for number, a, b in zip(found.tolist(), starts.tolist(), stops.tolist(), strict=True):
                append(self.codes(number), codes.slice(a, b - a))
                append(self.others(number), rest.slice(a, b - a))

    def read_codes(self, parts: Sequence[int]) -> list[Ints]:
        """Value codes of all records of the given parts, by column."""
        table = pa.concat_tables([read_appended(self.codes(part)) for part in parts]).combine_chunks()
        return [np.asarray(np.from_dlpack(column.chunk(0)), np.int64) for column in table.columns]

    def read_weights(self, parts: Sequence[int]) -> Floats:
        """Sampling weights of all records of the given parts."""
        return weights_of(self.read_others(parts).combine_chunks().to_batches()[0])

    def read_others(self, parts: Sequence[int]) -> pa.Table:
        """Positions and unchanged columns of all records of the given parts."""
        return pa.concat_tables([read_appended(self.others(part)) for part in parts])


def _collected(
    batches: Iterable[tuple[Ints, Sequence[Ints], pa.RecordBatch]],
) -> Iterator[tuple[Ints, list[Ints], pa.Table]]:
    """Combine batches until they are large enough to be split again."""
    kept: list[tuple[Ints, Sequence[Ints], pa.RecordBatch]] = []
    n = 0
    for batch in batches:
        kept.append(batch)
        n += len(batch[0])
        if n >= FLUSH_ROWS:
            yield _joined(kept)
            kept, n = [], 0
    if kept:
        yield _joined(kept)


def _joined(
    kept: Sequence[tuple[Ints, Sequence[Ints], pa.RecordBatch]],
) -> tuple[Ints, list[Ints], pa.Table]:
    columns = zip(*(values for _, values, _ in kept), strict=True)
    others = pa.Table.from_batches([batch for _, _, batch in kept])
    return np.concatenate([part for part, _, _ in kept]), [np.concatenate(c) for c in columns], others


def append(path: Path, table: pa.Table) -> None:
    """Append a separate stream to a file that only its owner may read."""
    with (
        os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as file,
        pa.ipc.new_stream(file, table.schema) as stream,
    ):
        stream.write_table(table)


def read_appended(path: Path) -> pa.Table:
    """All streams of a file."""
    tables = []
    with path.open("rb") as file:
        end = os.fstat(file.fileno()).st_size
        while file.tell() < end:
            tables.append(pa.ipc.open_stream(file).read_all())
    return pa.concat_tables(tables)


STRETCH_ROWS = 2**20
"""Number of records that are written together."""

CLASS = "\0class"

TextsOfCodes = dict[int, list[str | None]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Arranging:
    """The data with which the records of parts become those of the release.

    Attributes
    ----------
    spill : Spill
    parts : sequence of tuples of int
        Numbers of the parts that were processed together.
    labels : sequence of callables
        Return the class of each record of these parts.
    offsets : sequence of int
        Number of the first class of each group of parts.
    published : sequence of PublishedColumn
        The published values of all classes.
    columns : sequence of str
        Columns of the source, in their original order.
    unchanged : sequence of str
        The columns that are published unchanged.
    is_text : bool
        Whether numbers among these are stored as text and are converted.
    as_bounds : bool
    n_records : int
        Number of records in the source.
    is_order_kept : bool
        Whether keys are row numbers.
    class_ids : int64 (classes,), optional
    """

    spill: Spill
    parts: Sequence[tuple[int, ...]]
    labels: Sequence[Callable[[], Ints]]
    offsets: Sequence[int]
    published: Sequence[PublishedColumn]
    columns: Sequence[str]
    unchanged: Sequence[str]
    is_text: bool
    as_bounds: bool
    n_records: int
    is_order_kept: bool
    class_ids: Ints | None

    def write(self, path: Path, sensitive: Mapping[str, Ints], run: Run) -> dict[str, TextsOfCodes]:
        """Write the file; returns the texts that stand for each code of the sensitive columns in it.

        Parameters
        ----------
        sensitive : mapping of str to int64 (values,)
            Code of each distinct value of the columns that follow the quasi-identifiers among the codes of parts.
        """
        types = self._types(run)
        texts: dict[str, TextsOfCodes] = {name: {} for name in sensitive}
        for number, parts in enumerate(self.parts):
            run.report("arranging", number, 2 * len(self.parts))
            table, is_kept = self._kept(number, types)
            if sensitive:
                values = self.spill.read_codes(parts)[len(self.published) :]
                for (name, codes), found in zip(sensitive.items(), values, strict=True):
                    _unite(texts[name], published_texts(table[name], codes[found[is_kept]]))
            self._store(parts[0], table)
        meant = self._published_values()
        held = self._stretch(0, meant)
        with pq.ParquetWriter(path, held.schema) as writer:
            for number in range(1, self._n_stretches):
                run.report("arranging", self._n_stretches + number, 2 * self._n_stretches)
                # Row groups are full regardless of suppressed records: their sizes must not reveal where these were.
                held = pa.concat_tables([held, self._stretch(number, meant)])
                n_full = len(held) // STRETCH_ROWS * STRETCH_ROWS
                if n_full:
                    writer.write_table(held.slice(0, n_full), row_group_size=STRETCH_ROWS)
                held = held.slice(n_full)
            if len(held):
                writer.write_table(held, row_group_size=STRETCH_ROWS)
        return texts

    @property
    def _n_stretches(self) -> int:
        return max(1, -(-self.n_records // STRETCH_ROWS))

    def _types(self, run: Run) -> dict[str, pa.DataType | None]:
        """The numeric type of text columns that hold only numbers, judged by the published records alone."""
        types: dict[str, pa.DataType | None] = dict.fromkeys(
            self.unchanged, pa.null() if self.is_text else None
        )
        if self.is_text:
            for number in range(len(self.parts)):
                run.check()
                table, _ = self._kept(number, {})
                types = {name: common_type(kind, number_type(table[name])) for name, kind in types.items()}
        return {name: None if kind == pa.null() else kind for name, kind in types.items()}

    def _kept(self, number: int, types: Mapping[str, pa.DataType | None]) -> tuple[pa.Table, Bools]:
        """The published records of some parts, with their keys and classes, and a mask of the records that are published."""
        class_of = self.labels[number]()
        is_kept = class_of >= 0
        table = self.spill.read_others(self.parts[number]).append_column(
            CLASS, pa.array(class_of + self.offsets[number])
        )
        table = table.filter(pa.array(is_kept))
        for name, kind in types.items():
            if kind is not None:
                table = table.set_column(table.column_names.index(name), name, table[name].cast(kind))
        return table, is_kept

    def _store(self, part: int, table: pa.Table) -> None:
        """Store a part sorted by key, with one batch for each stretch."""
        keys = _keys(table)
        order = np.argsort(keys, kind="stable")
        table = table.take(pa.array(order)).combine_chunks()
        starts = np.searchsorted(self._stretch_of(keys[order]), np.arange(self._n_stretches + 1))
        with (
            pa.OSFile(str(self.spill.arranged(part)), "wb") as file,
            pa.ipc.new_file(file, table.schema) as out,
        ):
            for a, b in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
                out.write_batch((table.slice(a, b - a).to_batches() or [_nothing(table.schema)])[0])

    def _stretch_of(self, keys: NDArray[np.uint64]) -> Ints:
        if self.is_order_kept:
            return (keys // np.uint64(STRETCH_ROWS)).astype(np.int64)
        half = np.uint64(32)
        return ((keys >> half) * np.uint64(self._n_stretches) >> half).astype(np.int64)

    def _published_values(self) -> dict[str, list[tuple[str, pa.Array]]]:
        """For each quasi-identifier, the columns it is published as, with one value for every meaning."""
        found = {}
        for p in self.published:
            each = replace(p, of_group=np.arange(len(p.meanings)))
            found[p.attribute.name] = list(each.columns(self.as_bounds))
        return found

    def _stretch(self, number: int, meant: Mapping[str, Sequence[tuple[str, pa.Array]]]) -> pa.Table:
        """The records of one stretch as they are published."""
        batches_of_parts = []
        for parts in self.parts:
            with pa.OSFile(str(self.spill.arranged(parts[0])), "rb") as file:
                batches_of_parts.append(pa.Table.from_batches([pa.ipc.open_file(file).get_batch(number)]))
        table = pa.concat_tables(batches_of_parts)
        order = np.argsort(_keys(table), kind="stable")
        class_of = np.asarray(table[CLASS].combine_chunks())[order]
        names: list[str] = []
        arrays: list[pa.ChunkedArray | pa.Array] = []
        group_of = {p.attribute.name: p.of_group for p in self.published}
        for name in self.columns:
            if name in group_of:
                places = pa.array(group_of[name][class_of])
                for new_name, each in meant[name]:
                    names.append(new_name)
                    arrays.append(each.take(places))
            elif name in self.unchanged:
                names.append(name)
                arrays.append(table[name].take(pa.array(order)))
        if self.class_ids is not None:
            names.append("class_id")
            arrays.append(pa.array(self.class_ids[class_of]))
        return pa.table(arrays, names=names)


def _keys(table: pa.Table) -> NDArray[np.uint64]:
    return np.asarray(table[KEY].combine_chunks(), np.uint64)


def _nothing(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def _unite(texts: TextsOfCodes, new: TextsOfCodes) -> None:
    """Add texts that are not yet included."""
    for code, found in new.items():
        known = texts.setdefault(code, [])
        known += [text for text in found if text not in known]
