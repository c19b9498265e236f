"""Keyed hashes of confidential data: a fingerprint of a source, and a sketch of the people in it.

The same data give the same fingerprint. A sketch recognises the same people: neither row order nor the type or spelling of a value matters
(`7`, `7.0` and `007` are one value). Columns may have been added, dropped or renamed, and records added or removed:
`Census.compare` estimates how many people two sets have in common. Without the key, neither reveals anything.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import math
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from louver.data.coding import SCALAR_TYPES, text_sql
from louver.data.formats import format_of
from louver.data.read import POSTGRES_SCHEMES, ArrowStream, Source, open_source, parse_while_hashing, quoted
from louver.errors import Cancelled, LouverError
from louver.run import Run

__all__ = [
    "Census",
    "Common",
    "Fingerprint",
    "Persons",
    "Sketch",
    "fingerprint",
    "has_same_records",
    "in_percent",
]

SAMPLE = 2048
"""Number of distinct records, and of distinct persons, whose hashes a sketch keeps."""

ENOUGH = 20
"""If full overlap would give at least this many hits, having no hits means no overlap."""

EXACT = 1 << 53
"""From this size on, floating-point numbers are not exact, so large whole numbers are compared as text."""

Hashes = NDArray[np.uint64]
MODULUS = 1 << 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Persons:
    """The values of the column that distinguishes persons.

    Attributes
    ----------
    column : str
    number : int
        Different persons.
    total : int
        Sum of the hashes of all of them, modulo 2^64.
    sample : uint64 (at most SAMPLE,)
        The smallest hashes, ascending.
    """

    column: str
    number: int
    total: int
    sample: Hashes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sketch:
    """A sketch of a set of records.

    Attributes
    ----------
    people : int
        Records, or the sum of their counts.
    columns : tuple of str
        All columns except that of counts, in order of their names.
    totals : tuple of int
        For each column the sum of the hashes of all its values, modulo 2^64: any change of any value changes it.
    whole : int
        The same sum for complete records.
    counts : int64 (rows,)
        How often each record of the sample occurs.
    sample : uint64 (rows, columns)
        Hashes of the values of the SAMPLE distinct records with the smallest hashes.
    persons : Persons or None
        The persons, if a column distinguishes them.
    """

    people: int
    columns: tuple[str, ...]
    totals: tuple[int, ...]
    whole: int
    counts: NDArray[np.int64]
    sample: Hashes
    persons: Persons | None = None

    def to_json(self) -> str:
        """The sketch as text, the same for the same records in any order."""
        persons = None
        if self.persons is not None:
            kept = self.persons
            persons = [kept.column, kept.number, kept.total, _packed(kept.sample)]
        return json.dumps(
            {
                "people": self.people,
                "columns": self.columns,
                "totals": self.totals,
                "whole": self.whole,
                "counts": self.counts.tolist(),
                "sample": _packed(self.sample),
                "persons": persons,
            },
            ensure_ascii=False,
        )

    @classmethod
    def from_json(cls, text: str) -> Sketch:
        """Read back what `to_json` wrote; ValueError, KeyError or TypeError for anything else."""
        read = json.loads(text)
        persons = None
        if read["persons"] is not None:
            column, number, total, sample = read["persons"]
            persons = Persons(column=column, number=number, total=total, sample=_unpacked(sample))
        counts = np.array(read["counts"], np.int64)
        return cls(
            people=read["people"],
            columns=tuple(read["columns"]),
            totals=tuple(read["totals"]),
            whole=read["whole"],
            counts=counts,
            sample=_unpacked(read["sample"]).reshape(len(counts), len(read["columns"])),
            persons=persons,
        )

    @property
    def different(self) -> float:
        """Number of distinct records, estimated from the sample if it does not contain all of them."""
        return self.people * len(self.counts) / max(1, int(self.counts.sum()))

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.to_json().encode("utf-8")).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """What two sets of records have in common.

    Attributes
    ----------
    is_same : bool
        Whether they are the same records: the same number of people, and the same values in every column that both have.
    of_earlier, of_these : float or None
        Estimated share of the people of the earlier records who are in these, and of these who were in the earlier ones; None if they are
        not known. Records that agree in all shared columns are assumed to be the same people, so the shares tend to be too high rather than
        too low.
    is_too_few : bool
        Whether the shares are unknown because one of the sets is too small for the sample: nobody was found, which could happen even if all
        its people were in the other. Otherwise they are unknown because the two have no column in common.
    columns : tuple of str
        Names, as in the earlier records, of the columns by which people were recognised.
    """

    is_same: bool
    of_earlier: float | None
    of_these: float | None
    is_too_few: bool = False
    columns: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        of_earlier: float,
        n_earlier: int,
        n_these: int,
        *,
        expected: float,
        is_same: bool,
        columns: tuple[str, ...],
    ) -> Common:
        """Shares, estimated from a sample of the earlier people; `expected` hits would occur if all were in common."""
        if not of_earlier and expected < ENOUGH:
            return cls(is_same=is_same, of_earlier=None, of_these=None, is_too_few=True, columns=columns)
        of_these = min(1.0, of_earlier * n_earlier / max(1, n_these))
        return cls(is_same=is_same, of_earlier=of_earlier, of_these=of_these, columns=columns)

    @property
    def share(self) -> float | None:
        """The larger share."""
        return (
            None if self.of_earlier is None or self.of_these is None else max(self.of_earlier, self.of_these)
        )


class Census:
    """The people of an open source, hashed under a key.

    Parameters
    ----------
    source : Source
        All records; a filter would change the sketch.
    secret : bytes
        The key.
    weight : str, optional
        Column of counts.
    person : str, optional
        Column that distinguishes persons.

    Notes
    -----
    **Cost**: `sketch` and each call of `compare` read the records once, with a hash for each value; memory for one batch and a sample. A
    column of persons costs another pass, which the database spills to disk if necessary.
    """

    def __init__(
        self, source: Source, secret: bytes, *, weight: str | None = None, person: str | None = None
    ) -> None:
        self._source = source
        self._secret = secret
        self._weight = weight
        self._prefix = hmac.digest(secret, b"people", "sha256").hex()[:32]
        if person is not None:
            source.check_column(person)
        self._person = person
        self._columns = tuple(
            sorted(n for n, kind in source.types.items() if n != weight and SCALAR_TYPES.fullmatch(kind))
        )

    def sketch(self) -> Sketch:
        """The people of the records."""
        multipliers = self._multipliers(self._columns)
        totals, whole, people = np.zeros(len(self._columns), np.uint64), 0, 0
        keys, counts, sample = _empty(len(self._columns))
        for hashes, weights in self._batches(self._columns):
            rows = _row_hashes(hashes, multipliers)
            times = weights.astype(np.uint64)
            totals += (hashes * times[:, None]).sum(axis=0, dtype=np.uint64)
            whole = (whole + int((rows * times).sum(dtype=np.uint64))) % MODULUS
            people += int(weights.sum())
            is_low = rows <= keys[-1] if len(keys) == SAMPLE else np.ones(len(rows), np.bool_)
            keys, first, inverse = np.unique(
                np.concatenate([keys, rows[is_low]]), return_index=True, return_inverse=True
            )
            added = np.zeros(len(keys), np.int64)
            np.add.at(added, inverse.reshape(-1), np.concatenate([counts, weights[is_low]]))
            sample = np.concatenate([sample, hashes[is_low]])[first][:SAMPLE]
            keys, counts = keys[:SAMPLE], added[:SAMPLE]
        return Sketch(
            people=people,
            columns=self._columns,
            totals=tuple(int(total) for total in totals),
            whole=whole,
            counts=counts,
            sample=sample,
            persons=None if self._person is None else self._persons(self._person),
        )

    def compare(self, own: Sketch, earlier: Sequence[Sketch]) -> list[Common]:
        """The overlap of these records (`own` is their sketch) with each of several earlier sets."""
        looked_up = [_Lookup.of(self, own, one) for one in earlier]
        names = tuple(dict.fromkeys(name for one in looked_up for name in one.columns.values()))
        place_of = {name: place for place, name in enumerate(names)}
        if names:
            for hashes, weights in self._batches(names):
                for one in looked_up:
                    one.add(hashes[:, [place_of[name] for name in one.columns.values()]], weights)
        found = [lookup.common(own) for lookup in looked_up]
        return [self._by_person(own, one, common) for one, common in zip(earlier, found, strict=True)]

    def _by_person(self, own: Sketch, earlier: Sketch, common: Common) -> Common:
        """Shares of persons instead of records, if both sketches have them."""
        if own.persons is None or earlier.persons is None:
            return common
        sought, column = earlier.persons, own.persons.column
        self._source.connection.register("sought", pa.table({"hash": sought.sample}))
        found = self._source.first_row(
            f"SELECT count(*) AS n FROM sought WHERE hash IN (SELECT {self._hash_sql(column)} FROM records)"
        )
        self._source.connection.unregister("sought")
        assert found is not None
        if (own.persons.number, own.persons.total) == (sought.number, sought.total):
            return replace(common, of_earlier=1.0, of_these=1.0, is_too_few=False, columns=(sought.column,))
        return Common.of(
            int(found["n"]) / len(sought.sample),
            sought.number,
            own.persons.number,
            expected=_expected(len(sought.sample), sought.number, own.persons.number),
            is_same=common.is_same,
            columns=(sought.column,),
        )

    def _persons(self, column: str) -> Persons:
        distinct = f"SELECT DISTINCT {self._hash_sql(column)} AS hash FROM records"
        found = self._source.first_row(
            f"SELECT count(*) AS n, CAST(sum(CAST(hash AS HUGEINT)) % {MODULUS} AS UBIGINT) AS total FROM ({distinct})"
        )
        assert found is not None
        parts = [
            np.asarray(batch.column(0).to_numpy(zero_copy_only=False), np.uint64)
            for batch in self._source.batches(f"{distinct} ORDER BY hash LIMIT {SAMPLE}")
        ]
        sample = np.concatenate(parts)
        return Persons(column=column, number=int(found["n"]), total=int(found["total"]), sample=sample)

    def _batches(self, columns: Sequence[str]) -> Iterator[tuple[Hashes, NDArray[np.int64]]]:
        """Hashes of the values of some columns (rows, columns), and how often each row counts; rows that count zero times are dropped."""
        fields = [f"{self._hash_sql(name)} AS h{place}" for place, name in enumerate(columns)]
        weight = "1"
        if self._weight is not None:
            text = f"CAST({text_sql(self._source, self._weight)} AS VARCHAR)"
            weight = f"greatest(0, coalesce(TRY_CAST(TRY_CAST({text} AS DOUBLE) AS BIGINT), 0))"
        for batch in self._source.batches(
            f"SELECT {', '.join([*fields, f'CAST({weight} AS BIGINT) AS w'])} FROM records"
        ):
            weights = np.asarray(batch.column(len(columns)).to_numpy(zero_copy_only=False), np.int64)
            hashes = np.empty((len(weights), len(columns)), np.uint64)
            for place in range(len(columns)):
                hashes[:, place] = batch.column(place).to_numpy(zero_copy_only=False)
            is_counted = weights > 0
            yield hashes[is_counted], weights[is_counted]

    def _hash_sql(self, column: str) -> str:
        """SQL for the keyed hash of a value: of its number if it is one, otherwise of its text in lower case."""
        text = f"CAST({text_sql(self._source, column)} AS VARCHAR)"
        number = f"TRY_CAST({text} AS DOUBLE)"
        digits = f"regexp_extract(trim({text}), '^([+-]?[0-9]+)([.]0*)?$', 1)"
        large = (
            f"CASE WHEN abs({number}) < {EXACT} THEN NULL WHEN {digits} = '' THEN CAST(TRY_CAST({number} AS HUGEINT) AS VARCHAR)"
            f" ELSE coalesce(CAST(TRY_CAST({digits} AS HUGEINT) AS VARCHAR), ltrim({digits}, '+0')) END"
        )
        plain = f"coalesce({large}, CAST({number} AS VARCHAR), lower(trim({text})), '')"
        return f"CAST('0x' || substr(sha256('{self._prefix}' || {plain}), 1, 16) AS UBIGINT)"

    def _multipliers(self, columns: Sequence[str]) -> Hashes:
        """An odd number for each column name, so that equal values in different columns have different hashes."""
        found = [
            int.from_bytes(hmac.digest(self._secret, b"column " + name.encode("utf-8"), "sha256")[:8], "big")
            for name in columns
        ]
        return np.array([number | 1 for number in found], np.uint64)


@dataclass(slots=True, kw_only=True, eq=False)
class _Lookup:
    """A search for a sample of earlier records among these.

    Attributes
    ----------
    columns : mapping
        Column of the earlier records -> the same column of these.
    is_every : bool
        Whether these have every column of the earlier ones, with the same values as far as each column shows.
    keys, wanted, found : arrays
        Distinct records of the sample by the shared columns, and how often each occurs there and here.
    """

    earlier: Sketch
    columns: Mapping[str, str]
    is_every: bool
    is_equal: bool
    multipliers: Hashes
    keys: Hashes
    wanted: NDArray[np.int64]
    found: NDArray[np.int64]
    whole: int = 0

    @classmethod
    def of(cls, census: Census, own: Sketch, earlier: Sketch) -> _Lookup:
        shared = _shared(own, earlier)
        total_of = dict(zip(own.columns, own.totals, strict=True))
        equal = {
            name: here
            for name, here in shared.items()
            if total_of[here] == earlier.totals[earlier.columns.index(name)]
        }
        is_equal = own.people == earlier.people and len(equal) == len(shared) > 0
        used = shared
        if own.people == earlier.people and any(_varies(earlier, name) for name in equal):
            used = equal  # values of a column that was corrected or recoded do not show who is in the data
        places = [earlier.columns.index(name) for name in used]
        multipliers = census._multipliers(tuple(used))
        rows = _row_hashes(earlier.sample[:, places], multipliers)
        keys, inverse = np.unique(rows, return_inverse=True)
        wanted = np.zeros(len(keys), np.int64)
        np.add.at(wanted, inverse.reshape(-1), earlier.counts)
        return cls(
            earlier=earlier,
            columns=used,
            is_every=len(used) == len(earlier.columns),
            is_equal=is_equal,
            multipliers=multipliers,
            keys=keys,
            wanted=wanted,
            found=np.zeros(len(keys), np.int64),
        )

    def add(self, hashes: Hashes, weights: NDArray[np.int64]) -> None:
        """Look up a batch of records."""
        if not self.columns or not len(self.keys):
            return
        rows = _row_hashes(hashes, self.multipliers)
        self.whole = (self.whole + int((rows * weights.astype(np.uint64)).sum(dtype=np.uint64))) % MODULUS
        place = np.minimum(np.searchsorted(self.keys, rows), len(self.keys) - 1)
        is_found = self.keys[place] == rows
        np.add.at(self.found, place[is_found], weights[is_found])

    def common(self, own: Sketch) -> Common:
        if not self.columns:
            return Common(is_same=False, of_earlier=None, of_these=None)
        is_all = bool((self.found >= self.wanted).all())
        is_same = self.is_equal and (self.whole == self.earlier.whole if self.is_every else is_all)
        of_earlier = float(np.minimum(self.found, self.wanted).sum() / max(1, self.wanted.sum()))
        expected = _expected(len(self.earlier.counts), self.earlier.different, own.different)
        return Common.of(
            of_earlier,
            self.earlier.people,
            own.people,
            expected=expected,
            is_same=is_same,
            columns=tuple(self.columns),
        )


def _expected(n_sampled: int, n_earlier: float, n_these: float) -> float:
    """Expected hits in a sample of the earlier records if the smaller set is contained in the other; infinite if the sample is complete."""
    return math.inf if n_sampled < SAMPLE else n_sampled * min(1.0, n_these / n_earlier)


def _shared(own: Sketch, earlier: Sketch) -> dict[str, str]:
    """Columns matched by name, and other columns with exactly the same values under another name."""
    shared = {name: name for name in earlier.columns if name in own.columns}
    free = {total: name for name, total in zip(own.columns, own.totals, strict=True) if name not in shared}
    for name, total in zip(earlier.columns, earlier.totals, strict=True):
        if name not in shared and total in free and _varies(earlier, name):
            shared[name] = free.pop(total)
    return shared


def _varies(sketch: Sketch, column: str) -> bool:
    """Whether a column has more than one value in the sample."""
    values = sketch.sample[:, sketch.columns.index(column)]
    return bool(len(values)) and bool((values != values[0]).any())


def _row_hashes(hashes: Hashes, multipliers: Hashes) -> Hashes:
    """A hash of each record from those of its values (Steele et al. 2014, the finaliser of SplitMix64)."""
    rows: Hashes = (hashes * multipliers).sum(axis=1, dtype=np.uint64)
    rows = (rows ^ (rows >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    rows = (rows ^ (rows >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return rows ^ (rows >> np.uint64(31))


def _empty(n_columns: int) -> tuple[Hashes, NDArray[np.int64], Hashes]:
    return np.empty(0, np.uint64), np.empty(0, np.int64), np.empty((0, n_columns), np.uint64)


def _packed(hashes: Hashes) -> str:
    return base64.b64encode(np.ascontiguousarray(hashes, dtype="<u8").tobytes()).decode("ascii")


def _unpacked(text: str) -> Hashes:
    return np.frombuffer(base64.b64decode(text, validate=True), "<u8").astype(np.uint64)


def in_percent(share: float | None) -> str:
    """A share in words; "none" and "all" only if exact.

    Examples
    --------
    >>> [in_percent(share) for share in (0, 0.0001, 0.97, 0.9999, 1)]
    ['none', 'under 1 %', '97 %', 'over 99 %', 'all']
    """
    if not share:
        return "none"
    if share == 1:
        return "all"
    return "under 1 %" if share < 0.01 else "over 99 %" if share > 0.99 else f"{share:.0%}".replace("%", " %")


BLOCK = 1 << 22  # bytes hashed between two checks for cancellation, a few milliseconds


class Fingerprint:
    """A function from a secret key to the hash of the data: see `fingerprint`."""

    def __init__(self, read: Callable[[Sequence[bytes]], dict[bytes, bytes]]):
        self._read = read
        self._expected: tuple[bytes, ...] = ()
        self._found: dict[bytes, bytes] = {}

    def expect(self, secrets: Iterable[bytes]) -> None:
        """When the data are read next, hash them under these secrets, too. Each answer is given once: a second question reads them again."""
        self._expected = tuple(secret for secret in secrets if secret not in self._found)

    def __call__(self, secret: bytes) -> bytes:
        if secret not in self._found:
            self._found = self._read([*dict.fromkeys((secret, *self._expected))])
            self._expected = ()
        return self._found.pop(secret)


def fingerprint(
    data: str | os.PathLike[str] | ArrowStream,
    *,
    table: str | None = None,
    query: str | None = None,
    run: Run | None = None,
    **reading: object,
) -> Fingerprint:
    """Return a function from a secret key to the hash of the data.

    Parameters
    ----------
    run : Run, optional
        Checked for cancellation while hashing.
    **reading
        Options of `open_source`, which do not change the identity of the data: a ledger is bound to the whole source, and two filters of it
        spend from one budget.

    Notes
    -----
    A file is hashed byte by byte, so the same records in another format count as other data. Records of a dataframe or of a table in a
    database (including a DuckDB file, which may contain many tables and views on other files) are hashed one by one and the hashes are
    added up, so their order does not matter; the names of the columns are hashed with them.
    """
    is_file = isinstance(data, str | os.PathLike) and not (
        str(data).startswith(POSTGRES_SCHEMES) or _is_database(data)
    )

    parsing = {name: reading[name] for name in ("delimiter", "header_row", "encoding") if name in reading}

    def keyed(secrets: Sequence[bytes]) -> dict[bytes, bytes]:
        if is_file:
            return _file_hashes(Path(os.fspath(data)), secrets, run or Run(), parsing)  # type: ignore[arg-type]
        total = _record_sum(data, table, query, run)
        return {secret: hmac.digest(secret, total, "sha256") for secret in secrets}

    return Fingerprint(keyed)


def _is_database(path: str | os.PathLike[str]) -> bool:
    kind = format_of(path)
    return kind is not None and kind.reader == "database"


def has_same_records(
    one: str | os.PathLike[str] | ArrowStream,
    other: str | os.PathLike[str] | ArrowStream,
    *,
    weight: str | None = None,
    table: str | None = None,
    query: str | None = None,
    run: Run | None = None,
) -> bool:
    """Whether two sources hold the same records as far as the columns show that both have, whatever their order and format.

    `weight` names the column of counts of both; `table` and `query` are those of `other`. False also if one of them cannot be read as a
    table.
    """
    secret = secrets.token_bytes(32)
    try:
        with open_source(other, table=table, query=query, decimal_mark=".", run=run) as source:
            known = Census(source, secret, weight=weight).sketch()
        with open_source(one, decimal_mark=".", run=run) as source:
            census = Census(source, secret, weight=weight)
            own = census.sketch()
            return own.digest == known.digest or census.compare(own, [known])[0].is_same
    except Cancelled:
        raise
    except LouverError:
        return False


def _file_hashes(
    path: Path, secrets: Sequence[bytes], run: Run, parsing: Mapping[str, Any]
) -> dict[bytes, bytes]:
    """The hash of a file under each of some keys, in one pass."""
    keyed = {secret: hmac.new(secret, digestmod="sha256") for secret in secrets}

    def update(block: bytes) -> None:
        for one in keyed.values():
            one.update(block)

    if parse_while_hashing(path, update, run, **parsing):
        run.check()
    else:
        with path.open("rb") as stream:
            while block := stream.read(BLOCK):
                run.check()
                update(block)
    return {secret: one.digest() for secret, one in keyed.items()}


def _record_sum(
    data: str | os.PathLike[str] | ArrowStream,
    table: str | None,
    query: str | None,
    run: Run | None,
) -> bytes:
    """Sum of the hashes of all records, modulo 2^256, with their columns in the order found."""
    total = 0
    with open_source(data, table=table, query=query, decimal_mark=".", run=run) as source:
        # Each value is preceded by its length, so that no two records have the same bytes.
        names = source.columns
        columns = [f"coalesce(CAST({quoted(name)} AS VARCHAR), chr(0))" for name in names]
        text = " || ".join(f"length({column}) || ':' || {column}" for column in columns)
        for batch in source.batches(f"SELECT sha256({text}) AS digest FROM records"):
            total += sum(int(digest, 16) for digest in batch.column(0).to_pylist())
    text = "".join(f"{len(name)}:{name}" for name in names)
    return hashlib.sha256(text.encode()).digest() + (total % (1 << 256)).to_bytes(32, "big")
