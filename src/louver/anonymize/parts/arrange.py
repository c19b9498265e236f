"""The published file, put together from the parts: record by record in the order of the source, or in a random one.

Every record has a key: its number in the source, or a random one. The records of each part are sorted by it and stored in stretches of
keys; then the file is written a stretch at a time, taken from all parts together. So no more than a part or a stretch is in memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from louver._arrays import Bools, Ints
from louver.anonymize.generalise import Published
from louver.anonymize.parts.spill import KEY, Spill
from louver.anonymize.publish import published_texts
from louver.data.coded import common_type, number_type
from louver.run import Run

__all__ = ["STRETCH_ROWS", "Arranging", "Texts"]

STRETCH_ROWS = 2**20
"""Records that are written together."""

CLASS = "\0class"

Texts = dict[int, list[str | None]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Arranging:
    """How the records of parts become those of the release.

    Attributes
    ----------
    spill : Spill
    parts : sequence of tuples of int
        Parts that were worked on together.
    offsets : sequence of int
        Number of the first class of each.
    published : sequence of Published
        What all classes publish.
    columns : sequence of str
        Columns of the source, in its order.
    unchanged : sequence of str
        Those that are published as they are.
    is_text : bool
        Whether numbers among these are text, and become numbers.
    as_bounds : bool
    n_records : int
        In the source.
    is_order_kept : bool
        Whether keys are row numbers.
    class_ids : int64 (classes,), optional
    """

    spill: Spill
    parts: Sequence[tuple[int, ...]]
    offsets: Sequence[int]
    published: Sequence[Published]
    columns: Sequence[str]
    unchanged: Sequence[str]
    is_text: bool
    as_bounds: bool
    n_records: int
    is_order_kept: bool
    class_ids: Ints | None

    def write(self, path: Path, sensitive: Mapping[str, Ints], run: Run) -> dict[str, Texts]:
        """Write the file; returns the texts that stand for each code of the sensitive columns in it.

        Parameters
        ----------
        sensitive : mapping of str to int64 (values,)
            Code of each different value of the columns that follow the quasi-identifiers among the codes of parts.
        """
        types = self._types(run)
        texts: dict[str, Texts] = {name: {} for name in sensitive}
        for number, (parts, offset) in enumerate(zip(self.parts, self.offsets, strict=True)):
            run.report("arranging", number, 2 * len(self.parts))
            table, is_kept = self._kept(parts, offset, types)
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
                # Row groups are full whatever was left out: their sizes must not tell where that was.
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
        """For columns of text that hold nothing but numbers their type; told by published records alone."""
        types: dict[str, pa.DataType | None] = dict.fromkeys(
            self.unchanged, pa.null() if self.is_text else None
        )
        if self.is_text:
            for parts, offset in zip(self.parts, self.offsets, strict=True):
                run.check()
                table, _ = self._kept(parts, offset, {})
                types = {name: common_type(kind, number_type(table[name])) for name, kind in types.items()}
        return {name: None if kind == pa.null() else kind for name, kind in types.items()}

    def _kept(
        self, parts: tuple[int, ...], offset: int, types: Mapping[str, pa.DataType | None]
    ) -> tuple[pa.Table, Bools]:
        """The published records of some parts, with their keys and classes; and which of all records they are."""
        class_of = np.load(self.spill.labels(parts[0]))
        is_kept = class_of >= 0
        table = self.spill.read_others(parts).append_column(
            CLASS, pa.array(class_of.astype(np.int64) + offset)
        )
        table = table.filter(pa.array(is_kept))
        for name, kind in types.items():
            if kind is not None:
                table = table.set_column(table.column_names.index(name), name, table[name].cast(kind))
        return table, is_kept

    def _store(self, part: int, table: pa.Table) -> None:
        """Sorted by key, a batch for each stretch."""
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
        """For each quasi-identifier the columns it is published as, with one value for every meaning."""
        found = {}
        for p in self.published:
            each = replace(p, of_group=np.arange(len(p.meanings)))
            found[p.attribute.name] = list(each.columns(self.as_bounds))
        return found

    def _stretch(self, number: int, meant: Mapping[str, Sequence[tuple[str, pa.Array]]]) -> pa.Table:
        """The records of one stretch as they are published."""
        stored = []
        for parts in self.parts:
            with pa.OSFile(str(self.spill.arranged(parts[0])), "rb") as file:
                stored.append(pa.Table.from_batches([pa.ipc.open_file(file).get_batch(number)]))
        table = pa.concat_tables(stored)
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


def _unite(texts: Texts, new: Texts) -> None:
    """Add texts that are not there yet."""
    for code, found in new.items():
        known = texts.setdefault(code, [])
        known += [text for text in found if text not in known]
