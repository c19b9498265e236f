"""What several releases of the same data disclose together.

Liang & Samavi (2020), section 6: with other weights the classes are cut otherwise, and somebody who holds both files
can intersect them. The attacker here knows a person's values of every column that some release generalises. In every
release that person is one of the rows that fit; in two releases the columns that both publish unchanged, and the
position where both keep the order, must be the same. So of the rows with unchanged columns v at most the lesser
number over the two releases can be the person's, and the least sum over all pairs of releases bounds the candidates.

An attacker who pairs the rows of two releases one to one may exclude more: the figures are what is certain to be
lost, not all that may be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from louver._arrays import Bools, Floats, Ints
from louver.anonymize.columns import given_values
from louver.anonymize.generalise import Sort
from louver.anonymize.load import MISSING, Loaded
from louver.anonymize.result import DATA_FILE, MAPPING_FILE, AnonymizedRelease
from louver.data.read import Source
from louver.data.tabulate import read_codes
from louver.data.typed import typed
from louver.errors import InputError
from louver.release.folder import Folder
from louver.release.manifest import read_manifest
from louver.release.verify import verify
from louver.schema.attribute import Attribute
from louver.schema.spec import Schema

__all__ = ["Earlier", "Intersection", "as_earlier", "intersect", "known_values", "read_earlier"]


BLOCK_CELLS = 1 << 24
"""Pairs of person and class looked at at once, which bounds memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intersection:
    """Candidates that are left of each person when all releases are compared.

    Attributes
    ----------
    releases : tuple of str
        The earlier releases.
    records : int
        Records of the source.
    fewest : int
        Least number of rows that can be a person's.
    below_k, single : int
        Records with fewer than k candidates, and with one; an attacker may know more.
    absent : int
        Records that fit no row of some release: whoever is left out of one of them stands out.
    learnt : tuple of (sensitive column, records)
        Records whose value is certain from two releases together but from none alone.
    """

    releases: tuple[str, ...]
    records: int
    k: int
    fewest: int
    below_k: int
    single: int
    absent: int
    learnt: tuple[tuple[str, int], ...]

    @property
    def is_risky(self) -> bool:
        return bool(self.below_k or self.absent or any(count for _, count in self.learnt))

    @property
    def is_disclosing(self) -> bool:
        """Whether some records have fewer than k candidates, or a sensitive value becomes certain."""
        return bool(self.below_k or any(count for _, count in self.learnt))

    def __str__(self) -> str:
        told = (
            f"together with {', '.join(self.releases)}: at least {self.below_k:,} of {self.records:,} records have fewer "
            f"than {self.k} candidates, {self.single:,} have one; the fewest are {self.fewest:,}"
        )
        more = [
            f'; the value of "{name}" becomes certain for {count:,}' for name, count in self.learnt if count
        ]
        if self.absent:
            more.append(f"; {self.absent:,} are not in every release and stand out by that")
        return told + "".join(more)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Earlier:
    """A released table with the meaning of its values; missing ones may match anything, and rows be in order."""

    name: str
    table: pa.Table
    mapping: pa.Table
    missing_matches: bool
    is_order_kept: bool

    @property
    def quasi(self) -> tuple[str, ...]:
        """The source columns that were generalised."""
        return tuple(dict.fromkeys(self.mapping["attribute"].to_pylist()))


def read_earlier(folder: str | Path, columns: Sequence[str]) -> Earlier:
    """Read a release directory of `louver anonymize` that was made from these columns."""
    name = Path(folder).name
    manifest = read_manifest(folder)
    if manifest.verb != "anonymize":
        raise InputError(f"option --against: {name} is no release of louver anonymize.", option="--against")
    if not verify(folder).passed:
        raise InputError(
            f"option --against: {name} is not as it was released; see what louver verify says of it.",
            option="--against",
        )
    files = Folder(Path(folder), (DATA_FILE, MAPPING_FILE))
    earlier = Earlier(
        name=name,
        table=files.table(DATA_FILE),
        mapping=files.table(MAPPING_FILE),
        missing_matches=manifest.parameters.get("missing") == "match",
        is_order_kept=bool(manifest.parameters.get("keep_order")),
    )
    absent = [column for column in earlier.quasi if column not in columns]
    if absent:
        raise InputError(
            f'option --against: {name} generalises column "{absent[0]}", which the data do not have.',
            option="--against",
            column=absent[0],
        )
    return earlier


def as_earlier(release: AnonymizedRelease) -> Earlier:
    """A release that was just made, beside those that it is compared with."""
    return Earlier(
        name="this release",
        table=release.table,
        mapping=release.mapping,
        missing_matches=release.parameters["missing"] == "match",
        is_order_kept=release.is_order_kept,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Values:
    """The distinct values of a source column, as text and as numbers; a missing one is neither."""

    texts: Sequence[str | None]
    numbers: Floats
    of_row: Ints


def known_values(source: Source, loaded: Loaded, earlier: Sequence[Earlier]) -> dict[str, Values]:
    """What an attacker knows of every person: all columns that some release generalises."""
    names = [name for release in earlier for name in release.quasi]
    values: dict[str, Values] = {}
    for attribute, column in zip(loaded.attributes, loaded.problem.columns, strict=True):
        given = given_values(column, np.arange(loaded.records.num_rows))
        distinct, of_row = np.unique(given, return_inverse=True)
        if attribute.labels:
            texts = [None if np.isnan(d) else attribute.labels[int(d)] for d in distinct]
            values[attribute.name] = Values(texts=texts, numbers=_numbers(texts), of_row=of_row)
        else:
            values[attribute.name] = Values(texts=[None] * len(distinct), numbers=distinct, of_row=of_row)
    for name in dict.fromkeys(names):
        if name not in values:
            coded = read_codes(source, [name], Schema(attributes=(Attribute(name=name, missing=MISSING),)))
            labels = list(coded.attributes[0].labels)
            numbers = _numbers([None if label == MISSING else label for label in labels])
            values[name] = Values(texts=labels, numbers=numbers, of_row=coded.codes[:, 0].astype(np.int64))
    return values


def intersect(
    records: pa.Table,
    values: Mapping[str, Values],
    releases: Sequence[Earlier],
    sensitive: Sequence[str],
    k: int,
) -> Intersection:
    """Candidates of every record of the source in all pairs of releases; the first is the new one.

    Notes
    -----
    **Cost**: O(distinct records x classes) per quasi-identifier and release, in blocks.
    """
    points, counts = np.unique(
        np.stack([v.of_row for v in values.values()], axis=1), axis=0, return_counts=True
    )
    fits = [_Fits(release, values, records, points) for release in releases]
    alone = [fit.candidates for fit in fits]
    nobody = np.iinfo(np.int64).max
    candidates = np.min([np.where(found > 0, found, nobody) for found in alone], axis=0)
    certain = {name: np.zeros(len(points), np.bool_) for name in sensitive}
    known = {name: np.zeros(len(points), np.bool_) for name in sensitive}
    for first, second in combinations(range(len(releases)), 2):
        a, b = releases[first], releases[second]
        shared = [n for n in records.column_names if n not in values and _has(a, n) and _has(b, n)]
        carried = _carried((a, b), shared)
        n_carried = int(max(part.max(initial=-1) for part in carried)) + 1
        of_first, of_second = fits[first].by(carried[0], n_carried), fits[second].by(carried[1], n_carried)
        together = of_first.minimum(of_second)
        found = np.asarray(together.sum(axis=1)).reshape(-1)
        candidates = np.where(found > 0, np.minimum(candidates, found), candidates)
        for name in sensitive:
            if name in shared:
                is_value = _value_of_carried((a, b), carried, name)
                certain[name] |= _is_certain(together, is_value)
                known[name] |= _is_certain(of_first, is_value) | _is_certain(of_second, is_value)
    is_absent = np.any([found == 0 for found in alone], axis=0)
    return Intersection(
        releases=tuple(release.name for release in releases[1:]),
        records=int(counts.sum()),
        k=k,
        fewest=int(candidates.min()) if candidates.min() < nobody else 0,
        below_k=int(counts[candidates < k].sum()),
        single=int(counts[candidates == 1].sum()),
        absent=int(counts[is_absent].sum()),
        learnt=tuple((name, int(counts[certain[name] & ~known[name]].sum())) for name in sensitive),
    )


def _has(release: Earlier, name: str) -> bool:
    return name in release.table.column_names


def _numbers(texts: Sequence[str | None]) -> Floats:
    values = []
    for text in texts:
        try:
            values.append(float(text) if text is not None else np.nan)
        except ValueError:
            values.append(np.nan)
    return np.array(values, np.float64)


class _Fits:
    """Which rows of a release each point fits."""

    def __init__(
        self, release: Earlier, values: Mapping[str, Values], records: pa.Table, points: Ints
    ) -> None:
        codes, fits = [], []
        for place, (name, known) in enumerate(values.items()):
            if name in release.quasi:
                of_row, fit = _meanings(release, name, known)
            elif _has(release, name):
                of_row, fit = _exact(release, name, known, records)
            else:
                continue
            codes.append(of_row)
            fits.append((place, fit))
        classes, class_of = np.unique(np.stack(codes, axis=1), axis=0, return_inverse=True)
        step = max(1, BLOCK_CELLS // max(1, len(classes)))
        blocks = []
        for start in range(0, len(points), step):
            block = points[start : start + step]
            is_fit = np.ones((len(block), len(classes)), np.bool_)
            for (place, fit), labels in zip(fits, classes.T, strict=True):
                is_fit &= fit[block[:, place]][:, labels]
            blocks.append(sparse.csr_matrix(is_fit.astype(np.int64)))
        self._class_of = class_of.reshape(-1)
        self._of_class = sparse.vstack(blocks).tocsr()

    @property
    def candidates(self) -> Ints:
        sizes = np.bincount(self._class_of, minlength=self._of_class.shape[1])
        return np.asarray(self._of_class @ sizes).reshape(-1)

    def by(self, carried: Ints, n_carried: int) -> sparse.csr_matrix:
        """How many fitting rows have each number in `carried`, (points, numbers)."""
        shape = (self._of_class.shape[1], n_carried)
        content = sparse.csr_matrix((np.ones(len(carried), np.int64), (self._class_of, carried)), shape=shape)
        return (self._of_class @ content).tocsr()


def _meanings(release: Earlier, name: str, values: Values) -> tuple[Ints, Bools]:
    """The published value of each row (a number), and whether each source value fits each of them."""
    of_row, lines = published_values(release.table, release.mapping, name)
    is_missing = np.array([text in (None, MISSING) for text in values.texts]) & np.isnan(values.numbers)
    fit = np.zeros((len(values.texts), len(lines)), np.bool_)
    for place, line in enumerate(lines):
        if line["sort"] == Sort.ANYTHING:
            fit[:, place] = True
        elif line["sort"] == Sort.MISSING:
            fit[:, place] = is_missing | release.missing_matches
        elif line["members"] is not None:
            members = set(line["members"])
            fit[:, place] = [text in members for text in values.texts]
        else:
            fit[:, place] = (values.numbers >= line["lower"]) & (values.numbers <= line["upper"])
    if release.missing_matches:
        fit[is_missing] = True
    return of_row, fit


def _exact(release: Earlier, name: str, values: Values, records: pa.Table) -> tuple[Ints, Bools]:
    """The same for a column that a release publishes unchanged: a row fits where it has the very value."""
    both = [pc.cast(column, pa.string()) for column in (typed(records[name]), typed(release.table[name]))]
    encoded = (
        pa.chunked_array([chunk for column in both for chunk in column.chunks], pa.string())
        .combine_chunks()
        .dictionary_encode(null_encoding="encode")
    )
    codes = np.asarray(np.from_dlpack(encoded.indices), np.int64)
    of_source, of_row = codes[: records.num_rows], codes[records.num_rows :]
    fit = np.zeros((len(values.texts), int(codes.max(initial=0)) + 1), np.bool_)
    fit[values.of_row, of_source] = True
    return of_row, fit


def _carried(pair: tuple[Earlier, Earlier], names: Sequence[str]) -> tuple[Ints, Ints]:
    """A number for each row of two releases; rows have the same one where all shared columns agree."""
    n_first = pair[0].table.num_rows
    number = np.zeros(n_first + pair[1].table.num_rows, np.int64)
    if all(release.is_order_kept for release in pair) and n_first == pair[1].table.num_rows:
        number = np.tile(np.arange(n_first), 2)
    for name in names:
        encoded = _texts(pair, name).dictionary_encode(null_encoding="encode")
        codes = np.asarray(np.from_dlpack(encoded.indices), np.int64)
        _, number = np.unique(number * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)
    return number[:n_first], number[n_first:]


def _texts(pair: tuple[Earlier, Earlier], name: str) -> pa.Array:
    columns = [pc.cast(typed(release.table[name]), pa.string()) for release in pair]
    return pa.chunked_array([c for column in columns for c in column.chunks], pa.string()).combine_chunks()


def _value_of_carried(pair: tuple[Earlier, Earlier], carried: tuple[Ints, Ints], name: str) -> Ints:
    """Which value of a sensitive column each combination of shared columns has."""
    codes = np.asarray(
        np.from_dlpack(_texts(pair, name).dictionary_encode(null_encoding="encode").indices), np.int64
    )
    numbers = np.concatenate(carried)
    value_of = np.zeros(int(numbers.max(initial=-1)) + 1, np.int64)
    value_of[numbers] = codes
    return value_of


def _is_certain(fitting: sparse.csr_matrix, value_of: Ints) -> Bools:
    """Whether all candidates of a point have one sensitive value."""
    n = fitting.shape[1]
    shape = (n, int(value_of.max(initial=-1)) + 1)
    is_value = sparse.csr_matrix((np.ones(n, np.int64), (np.arange(n), value_of)), shape=shape)
    counts = (fitting @ is_value).tocsr()
    counts.eliminate_zeros()
    is_one: Bools = np.diff(counts.indptr) == 1
    return is_one


def published_values(table: pa.Table, mapping: pa.Table, name: str) -> tuple[Ints, list[dict[str, Any]]]:
    """Which line of the mapping each row publishes of an attribute, and these lines.

    Raises
    ------
    KeyError
        For a value that the mapping does not list.
    """
    lines = mapping.filter(pc.equal(mapping["attribute"], name)).to_pylist()
    if name in table.column_names:
        place_of: dict[object, int] = {line["published"]: place for place, line in enumerate(lines)}
        column = table[name].combine_chunks().dictionary_encode(null_encoding="encode")
        places = [place_of[value] for value in column.dictionary.to_pylist()]
        return np.array(places, np.int64)[np.asarray(np.from_dlpack(column.indices))], lines
    place_of = {_ends(line): place for place, line in enumerate(lines)}
    ends = [table[f"{name}_{end}"].to_pylist() for end in ("lower", "upper")]
    return np.array([place_of[pair] for pair in zip(*ends, strict=True)], np.int64), lines


def _ends(line: Mapping[str, Any]) -> tuple[object, object]:
    return (line["members"][0], line["members"][-1]) if line["members"] else (line["lower"], line["upper"])
