"""Measurements: noisy answers on disk, drawn exactly once.

These are the sealed files from which `estimate` works. Noise is added to the true answers batch by batch and written to a temporary file
next to the final one, which is then renamed; `spend.measure` reserves before and seals after. Whenever a run stops, the next run draws the
same noise from the same key and pays nothing more.

A file has one row per (node, query): `level`, `node`, `query`, `values` (noisy integers in schema order),
`variance` of each value, and the ledger `entry`; one row group per batch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from louver._arrays import Floats, Ints
from louver._html import JsonText
from louver.data.write import replacing
from louver.errors import BudgetError, InputError, printable
from louver.privacy.budget import Loss, amounts_of
from louver.privacy.distributions import Distribution
from louver.privacy.ledger import Debit, Head
from louver.privacy.noise import Noise, Nonce, perturb
from louver.run import Run

__all__ = [
    "Measured",
    "Measurements",
    "NoisyBatch",
    "PublishedBatch",
    "TrueBatch",
    "sha256_of",
    "write_measurements",
    "write_published_batches",
]

FORMAT = "louver measurements 1"

SCHEMA = pa.schema(
    [
        ("level", pa.string()),
        ("node", pa.string()),
        ("query", pa.string()),
        ("values", pa.list_(pa.int64())),
        ("variance", pa.float64()),
        ("entry", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrueBatch:
    """Exact answers of one query on some nodes of one level. Confidential: they stay inside the wall.

    Attributes
    ----------
    level, query : str
        Their names, as published.
    nonce : Nonce
        Numbers of level, query and batch; every batch of a debit has its own nonce.
    nodes : tuple of str
        Public names of the nodes.
    true_counts : int64 (n_nodes, n_cells)
        In schema order.
    distribution : Distribution
        The noise to add.
    """

    level: str
    query: str
    nonce: Nonce
    nodes: tuple[str, ...]
    true_counts: Ints
    distribution: Distribution


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyBatch:
    """Noisy answers of one query on some nodes of one level. Public."""

    level: str
    query: str
    nodes: tuple[str, ...]
    noisy_counts: Ints
    variance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedBatch:
    """Noisy answers of one query published by a third party, on some nodes of one level; the variance is NaN if none is given."""

    level: str
    query: str
    nodes: tuple[str, ...]
    noisy_counts: Ints
    variances: Floats


@dataclass(frozen=True, slots=True)
class Measurements:
    """A sealed measurements file; reading it needs no ledger and costs no privacy.

    Examples
    --------
    >>> import tempfile
    >>> from fractions import Fraction
    >>> from louver.privacy.distributions import DiscreteLaplace
    >>> from louver.privacy.noise import KeyedNoise
    >>> batch = TrueBatch(level="total", query="count", nonce=Nonce(0, 0, 0), nodes=("all",),
    ...                   true_counts=np.array([[7, 3]]), distribution=DiscreteLaplace(Fraction(10)))
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory) / "measurements.parquet"
    ...     _ = write_measurements(path, lambda: [batch], KeyedNoise.from_seed(1))
    ...     [read.noisy_counts.tolist() for read in Measurements(path).batches()]
    [[[4, 44]]]
    """

    path: Path

    def __post_init__(self) -> None:
        if self.description().get("format") != FORMAT:
            raise InputError(f"{self.path.name} is not a measurements file.", file=self.path.name)

    @classmethod
    def of_design(cls, path: Path, design: str) -> Measurements:
        """The measurements in a folder, which must match the design."""
        if not path.is_file():
            folder = path.parents[1].name
            raise InputError(f"{folder} has no measurements; measure first.", option="--measurements")
        found = cls(path)
        if found.description().get("design") != design:
            message = f"{path.name} was not measured by this spec or with these options; use the measurements that belong to it."
            raise InputError(message, file=path.name, option="--measurements")
        return found

    @property
    def head(self) -> Head | None:
        """The ledger entry that paid; None for seeded noise."""
        description = self.description()
        return None if description["entry"] is None else Head(description["entry"], description["entry_hash"])

    @property
    def debited(self) -> str | None:
        """The debit, in the ledger's own measure and relation; None for seeded noise."""
        loss = self.description()["loss"]
        return None if loss is None else str(loss)

    @property
    def is_private(self) -> bool:
        """Whether the noise was drawn from a secret key."""
        return not self.description()["not_private"]

    def description(self) -> dict[str, Any]:
        """Return what the file says about its noise, its debit and whether it is private."""
        try:
            metadata = pq.read_schema(self.path).metadata or {}
            description = json.loads(metadata.get(b"louver", b"{}"))
        except (OSError, pa.ArrowException, ValueError, RecursionError):
            description = {}
        return description if isinstance(description, dict) else {}

    def batches(self) -> Iterator[NoisyBatch]:
        """Yield the batches in the order they were measured, one row group at a time.

        Raises
        ------
        InputError
            If the file is damaged or was not written by `measure`.
        """
        try:
            with pq.ParquetFile(self.path) as file:
                for group in range(file.num_row_groups):
                    rows = file.read_row_group(group)
                    rows.validate(full=True)  # dictionaries are not examined when they are read
                    yield _read_batch(rows.cast(SCHEMA))
            return
        except (OSError, pa.ArrowException, ValueError):
            message = (
                f"{self.path.name} is damaged; copy it again from where it was measured, or measure again."
            )
        raise InputError(message, file=self.path.name)


def _read_batch(table: pa.Table) -> NoisyBatch:
    """The rows of one batch; raises ValueError if they are not the regions of one query."""
    values = table["values"].combine_chunks()
    level, query, variance = (_one(table[name]) for name in ("level", "query", "variance"))
    if values.null_count or values.flatten().null_count or table["node"].null_count:
        raise ValueError
    noisy_counts = values.flatten().to_numpy().reshape(len(table), -1)
    if (np.diff(values.offsets.to_numpy()) != noisy_counts.shape[1]).any():
        raise ValueError
    return NoisyBatch(
        level=level,
        query=query,
        nodes=tuple(table["node"].to_pylist()),
        noisy_counts=noisy_counts,
        variance=variance,
    )


def _one(column: pa.ChunkedArray) -> Any:
    """The single value shared by all rows."""
    values = column.unique().to_pylist()
    if len(values) != 1 or values[0] is None:
        raise ValueError
    return values[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured(JsonText):
    """Sealed measurements and their exact values: everything that has crossed the wall.

    Parameters
    ----------
    folder : Path
    loss : Loss
        Their privacy loss.
    head : Head
        The ledger entry that paid.
    debited : str
        The debit, in the ledger's measure and relation.
    seconds : float
        Ignored in comparisons.
    """

    folder: Path
    loss: Loss
    head: Head
    debited: str
    seconds: float = field(default=0.0, compare=False)

    @classmethod
    def of(cls, measurements: Measurements, folder: Path, loss: Loss, seconds: float) -> Measured:
        """Measurements that a ledger has sealed."""
        head, debited = measurements.head, measurements.debited
        assert head is not None and debited is not None
        return cls(folder=folder, loss=loss, head=head, debited=debited, seconds=seconds)

    def to_dict(self) -> dict[str, Any]:
        """The content of the JSON result."""
        return {
            "measurements": str(self.folder),
            **amounts_of(self.loss),
            "neighbours": str(self.loss.neighbours),
            "entry": self.head.entry,
            "debited": self.debited,
            "seconds": self.seconds,
        }

    def __repr__(self) -> str:
        paid = "" if self.debited == str(self.loss) else f", for which it debited {self.debited}"
        return printable(f"Measured in {self.folder.name}: {self.loss}, ledger entry {self.head.entry}{paid}")


def write_measurements(
    path: Path,
    batches: Callable[[], Iterable[TrueBatch]],
    noise: Noise,
    debit: Debit | None = None,
    *,
    design: str | None = None,
    run: Run | None = None,
) -> str:
    """Add noise to every batch and write the file; return its sha256.

    Parameters
    ----------
    path : Path
        Written completely or not at all, and flushed to disk on return.
    batches : callable
        Returns the batches from the first on, which are the same each time; none is empty. They are consumed one at a time, so a level
        need not fit into memory.
    noise : Noise
    debit : Debit, optional
        The debit that pays for the noise; None for seeded noise, which is not private.
    design : str, optional
        Hash of the request, kept in the file so that it cannot be mistaken for another later.
    run : Run, optional
        Checked for cancellation before every batch; a cancelled call leaves no file.

    Notes
    -----
    **Privacy**: the true answers are pinned to the debit before any noise is drawn, so that this noise is never applied to other answers,
    no matter when a run is killed.

    **Cost**: the batches are computed twice if a debit pays, once to pin them and once to perturb them.
    """
    description = {
        "format": FORMAT,
        "not_private": not noise.is_private,
        "entry": debit.entry if debit else None,
        "entry_hash": debit.hash if debit else None,
        "loss": str(debit.loss) if debit else None,
        "design": design,
    }
    if noise.is_private and debit is None:
        raise BudgetError("private measurements need a debit; reserve one in a ledger.")
    if debit is not None:
        debit.check_drawable()
    run = run or Run()
    if debit is not None:
        debit.pin(_keyed_digest(batches(), debit.key, run))
    schema = SCHEMA.with_metadata({"louver": json.dumps(description, sort_keys=True)})
    with replacing(path) as sink, pq.ParquetWriter(sink, schema, compression="zstd") as writer:
        for batch in batches():
            run.check()
            noisy = perturb(batch.true_counts, batch.distribution, noise, batch.nonce)
            writer.write_table(_rows(batch, noisy, debit, schema), row_group_size=max(1, len(batch.nodes)))
    return sha256_of(path)


def write_published_batches(
    path: Path, batches: Iterable[PublishedBatch], *, published_by: str, design: str
) -> None:
    """Write answers drawn and published by a third party, in the same form; nodes without an answer have no values or variance."""
    description = {
        "format": FORMAT,
        "not_private": False,
        "entry": None,
        "entry_hash": None,
        "loss": None,
        "design": design,
        "published_by": published_by,
    }
    schema = SCHEMA.with_metadata({"louver": json.dumps(description, sort_keys=True)})
    with replacing(path) as sink, pq.ParquetWriter(sink, schema, compression="zstd") as writer:
        for batch in batches:
            is_there = ~np.isnan(batch.variances)
            lengths = np.where(is_there, batch.noisy_counts.shape[1], 0)
            offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
            values = pa.array(np.ascontiguousarray(batch.noisy_counts[is_there]).ravel())
            n = len(batch.nodes)
            columns = [
                pa.array([batch.level] * n, pa.string()),
                pa.array(batch.nodes, pa.string()),
                pa.array([batch.query] * n, pa.string()),
                pa.ListArray.from_arrays(pa.array(offsets), values, mask=pa.array(~is_there)),
                pa.array(batch.variances, mask=~is_there),
                pa.nulls(n, pa.int64()),
            ]
            writer.write_table(pa.table(columns, schema=schema), row_group_size=max(1, n))


def _keyed_digest(batches: Iterable[TrueBatch], key: bytes, run: Run) -> str:
    """Keyed hash of all true answers, their noise and their nonces."""
    hasher = hashlib.blake2b(key=key, person=b"louver answers")
    for batch in batches:
        run.check()
        hasher.update(f"{batch.nonce} {batch.distribution} {batch.true_counts.shape} ".encode())
        hasher.update(np.ascontiguousarray(batch.true_counts, dtype="<i8").data)
    return hasher.hexdigest()


def _rows(batch: TrueBatch, noisy: Ints, debit: Debit | None, schema: pa.Schema) -> pa.Table:
    n_nodes, n_cells = noisy.shape
    offsets = np.arange(n_nodes + 1, dtype=np.int32) * n_cells
    return pa.table(
        [
            pa.array([batch.level] * n_nodes, pa.string()),
            pa.array(batch.nodes, pa.string()),
            pa.array([batch.query] * n_nodes, pa.string()),
            pa.ListArray.from_arrays(pa.array(offsets), pa.array(noisy.ravel())),
            pa.array(np.full(n_nodes, batch.distribution.variance)),
            pa.array([debit.entry if debit else None] * n_nodes, pa.int64()),
        ],
        schema=schema,
    )


def sha256_of(path: Path) -> str:
    """Hash of a file, as ledgers and manifests record it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
