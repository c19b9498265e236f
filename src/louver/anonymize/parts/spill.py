"""The records of each part on disk, between the pass that cuts the file and the part's turn.

Everything lies in one private folder that goes with the run. The codes of a part, which whoever forms its classes reads, lie apart from
the columns that are published unchanged and from the place of each record, which only the run itself reads.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from louver._arrays import Ints

__all__ = ["KEY", "Spill", "append", "read_appended"]

FLUSH_ROWS = 2**19
"""Records that are collected before they are put to their parts."""

KEY = "\0key"
"""Column of the records' places; no file has a column of that name."""


@dataclass(frozen=True, slots=True)
class Spill:
    """Files of the parts below a folder."""

    folder: Path

    def codes(self, part: int) -> Path:
        """Numbers of the values of the part's records."""
        return self.folder / f"codes-{part}.arrow"

    def others(self, part: int) -> Path:
        """Their places and what is published unchanged, in the same order."""
        return self.folder / f"others-{part}.arrow"

    def labels(self, part: int) -> Path:
        """The class of each record, in the same order, once they are formed."""
        return self.folder / f"labels-{part}.npy"

    def arranged(self, part: int) -> Path:
        """Published records of the part, a batch for each stretch of the release."""
        return self.folder / f"arranged-{part}.arrow"

    def write(
        self,
        batches: Iterable[tuple[Ints, Sequence[Ints], pa.RecordBatch]],
        types: Sequence[np.dtype[np.generic]],
    ) -> None:
        """Put records to their parts: batches of (part, numbers of values, other columns)."""
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
        """Numbers of the values of all records of some parts, by column."""
        table = pa.concat_tables([read_appended(self.codes(part)) for part in parts]).combine_chunks()
        return [np.asarray(np.from_dlpack(column.chunk(0)), np.int64) for column in table.columns]

    def read_others(self, parts: Sequence[int]) -> pa.Table:
        """Places and unchanged columns of all records of some parts."""
        return pa.concat_tables([read_appended(self.others(part)) for part in parts])


def _collected(
    batches: Iterable[tuple[Ints, Sequence[Ints], pa.RecordBatch]],
) -> Iterator[tuple[Ints, list[Ints], pa.Table]]:
    """Batches put together until they are large enough to be parted again."""
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
    """Add a stream of its own to a file that nobody else may read."""
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
