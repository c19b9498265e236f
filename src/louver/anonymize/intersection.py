"""What several releases of the same data disclose together.

Liang & Samavi (2020), section 6: with other weights the classes are cut otherwise, and somebody who holds both files
can intersect them. The attacker here knows the quasi-identifiers of a person. In every release that person is one of
the rows whose published values fit; the columns that were published unchanged must be the same in all of them. So of
the rows with unchanged columns v at most min over releases of the fitting rows with v can be the person's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy import sparse

from louver.anonymize.columns import Floats, Ints, given_values
from louver.anonymize.generalise import Sort
from louver.anonymize.load import Loaded
from louver.anonymize.result import DATA_FILE, MAPPING_FILE
from louver.errors import InputError
from louver.release.generalised import published_values
from louver.release.manifest import read_manifest

__all__ = ["Earlier", "Intersection", "intersect", "read_earlier"]

Bools = NDArray[np.bool_]

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
        Records of the source that may be in all releases.
    fewest : int
        Least number of rows that can be a person's.
    below_k, single : int
        Records with fewer than k candidates, and with one.
    learnt : tuple of (sensitive column, records)
        Records whose value is certain from all releases together but from none alone.
    """

    releases: tuple[str, ...]
    records: int
    k: int
    fewest: int
    below_k: int
    single: int
    learnt: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        told = (
            f"together with {', '.join(self.releases)}: {self.below_k:,} of {self.records:,} records have fewer than "
            f"{self.k} candidates, {self.single:,} have one; the fewest are {self.fewest:,}"
        )
        lines = [
            f'; the value of "{name}" becomes certain for {count:,}' for name, count in self.learnt if count
        ]
        return told + "".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Earlier:
    """A released table with the meaning of its values; missing ones may match anything."""

    name: str
    table: pa.Table
    mapping: pa.Table
    missing_matches: bool

    @property
    def quasi(self) -> tuple[str, ...]:
        """The source columns that were generalised."""
        return tuple(dict.fromkeys(self.mapping["attribute"].to_pylist()))


def read_earlier(folder: str | Path, loaded: Loaded) -> Earlier:
    """Read a release directory of `louver anonymize` that was made from the same columns."""
    name = Path(folder).name
    manifest = read_manifest(folder)
    if manifest.verb != "anonymize":
        raise InputError(f"option --against: {name} is no release of louver anonymize.", option="--against")
    try:
        earlier = Earlier(
            name=name,
            table=pq.read_table(Path(folder) / DATA_FILE),
            mapping=pq.read_table(Path(folder) / MAPPING_FILE),
            missing_matches=manifest.parameters.get("missing") == "match",
        )
        quasi = earlier.quasi
    except (OSError, KeyError, pa.ArrowException):
        earlier, quasi = None, ()
    if earlier is None:
        raise InputError(
            f"option --against: the files of {name} cannot be read; check it with louver verify.",
            option="--against",
        )
    absent = [column for column in quasi if column not in loaded.records.column_names]
    if absent:
        raise InputError(
            f'option --against: {name} generalises column "{absent[0]}", which the data do not have.',
            option="--against",
            column=absent[0],
        )
    return earlier


def intersect(loaded: Loaded, releases: Sequence[Earlier], sensitive: Sequence[str], k: int) -> Intersection:
    """Candidates of every record of the source in all releases together; the first is the new one.

    Notes
    -----
    **Cost**: O(distinct records x classes) per quasi-identifier and release, in blocks.
    """
    quasi = list(dict.fromkeys(name for release in releases for name in release.quasi))
    values = [_Values(loaded, name) for name in quasi]
    points, counts = np.unique(np.stack([v.of_row for v in values], axis=1), axis=0, return_counts=True)
    kept = [
        name
        for name in loaded.records.column_names
        if name not in quasi and all(name in release.table.column_names for release in releases)
    ]
    carried = _carried(releases, kept)
    n_carried = int(max((c.max(initial=-1) for c in carried), default=-1)) + 1
    fitting = [
        _fitting(release, dict(zip(quasi, values, strict=True)), quasi, points, of_row, n_carried)
        for release, of_row in zip(releases, carried, strict=True)
    ]
    together = fitting[0]
    for other in fitting[1:]:
        together = together.minimum(other)
    candidates = np.asarray(together.sum(axis=1)).reshape(-1)
    is_in_all = candidates > 0
    learnt = []
    for name in sensitive:
        if name not in kept:
            continue
        is_value = _value_of_carried(releases, carried, name, n_carried)
        alone = np.any([_is_certain(one, is_value) for one in fitting], axis=0)
        certain = _is_certain(together, is_value) & ~alone & is_in_all
        learnt.append((name, int(counts[certain].sum())))
    return Intersection(
        releases=tuple(release.name for release in releases[1:]),
        records=int(counts[is_in_all].sum()),
        k=k,
        fewest=int(candidates[is_in_all].min(initial=np.iinfo(np.int64).max)) if is_in_all.any() else 0,
        below_k=int(counts[is_in_all & (candidates < k)].sum()),
        single=int(counts[candidates == 1].sum()),
        learnt=tuple(learnt),
    )


class _Values:
    """The distinct values of a source column, as text and as numbers; a missing one is neither."""

    texts: list[str | None]
    numbers: Floats
    of_row: Ints

    def __init__(self, loaded: Loaded, name: str) -> None:
        place = next((i for i, a in enumerate(loaded.attributes) if a.name == name), None)
        if place is not None:
            attribute = loaded.attributes[place]
            values = given_values(loaded.problem.columns[place], np.arange(loaded.records.num_rows))
            distinct, self.of_row = np.unique(values, return_inverse=True)
            if attribute.labels:
                self.texts = [None if np.isnan(d) else attribute.labels[int(d)] for d in distinct]
                self.numbers = _numbers(self.texts)
            else:
                self.texts = [None] * len(distinct)
                self.numbers = distinct
        else:
            encoded = pc.cast(loaded.records.column(name), pa.string()).combine_chunks().dictionary_encode()
            self.texts = [text.strip() or None for text in encoded.dictionary.to_pylist()] + [None]
            indices = pc.fill_null(encoded.indices, len(self.texts) - 1)
            self.of_row = np.asarray(np.from_dlpack(indices), np.int64)
            self.numbers = _numbers(self.texts)


def _numbers(texts: Sequence[str | None]) -> Floats:
    values = []
    for text in texts:
        try:
            values.append(float(text) if text is not None else np.nan)
        except ValueError:
            values.append(np.nan)
    return np.array(values, np.float64)


def _carried(releases: Sequence[Earlier], names: Sequence[str]) -> list[Ints]:
    """A number for each row of each release; rows have the same one where all unchanged columns agree."""
    if not names:
        return [np.zeros(release.table.num_rows, np.int64) for release in releases]
    texts = pa.concat_tables(
        [pa.table({n: pc.cast(release.table[n], pa.string()) for n in names}) for release in releases]
    )
    number = np.zeros(texts.num_rows, np.int64)
    for name in names:
        encoded = texts[name].combine_chunks().dictionary_encode(null_encoding="encode")
        codes = np.asarray(np.from_dlpack(encoded.indices), np.int64)
        _, number = np.unique(number * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)
    stops = np.cumsum([release.table.num_rows for release in releases])
    return list(np.split(number, stops[:-1]))


def _fitting(
    release: Earlier,
    values: dict[str, _Values],
    quasi: Sequence[str],
    points: Ints,
    carried: Ints,
    n_carried: int,
) -> sparse.csr_matrix:
    """How many rows of a release with each combination of unchanged columns fit each point, (points, carried)."""
    codes, fits = [], []
    for name in release.quasi:
        of_row, fit = _meanings(release, name, values[name])
        codes.append(of_row)
        fits.append((quasi.index(name), fit))
    classes, class_of = np.unique(np.stack(codes, axis=1), axis=0, return_inverse=True)
    content = sparse.csr_matrix(
        (np.ones(len(carried), np.int64), (class_of.reshape(-1), carried)), shape=(len(classes), n_carried)
    )
    step = max(1, BLOCK_CELLS // max(1, len(classes)))
    blocks = []
    for start in range(0, len(points), step):
        block = points[start : start + step]
        is_fit = np.ones((len(block), len(classes)), np.bool_)
        for (place, fit), labels in zip(fits, classes.T, strict=True):
            is_fit &= fit[block[:, place]][:, labels]
        blocks.append(sparse.csr_matrix(is_fit.astype(np.int64)) @ content)
    return sparse.vstack(blocks).tocsr()


def _meanings(release: Earlier, name: str, values: _Values) -> tuple[Ints, Bools]:
    """The published value of each row (a number), and whether each source value fits each of them."""
    of_row, lines = published_values(release.table, release.mapping, name)
    is_missing = np.array([text is None for text in values.texts]) & np.isnan(values.numbers)
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


def _value_of_carried(
    releases: Sequence[Earlier], carried: Sequence[Ints], name: str, n_carried: int
) -> sparse.csr_matrix:
    """Which value of a sensitive column each combination of unchanged columns has, (carried, values)."""
    texts = pa.chunked_array(
        [chunk for r in releases for chunk in pc.cast(r.table[name], pa.string()).chunks], pa.string()
    )
    encoded = texts.combine_chunks().dictionary_encode(null_encoding="encode")
    codes = np.asarray(np.from_dlpack(encoded.indices), np.int64)
    value_of = np.zeros(n_carried, np.int64)
    value_of[np.concatenate(carried)] = codes
    return sparse.csr_matrix(
        (np.ones(n_carried, np.int64), (np.arange(n_carried), value_of)),
        shape=(n_carried, int(codes.max(initial=0)) + 1),
    )


def _is_certain(fitting: sparse.csr_matrix, is_value: sparse.csr_matrix) -> Bools:
    """Whether all candidates of a point have one sensitive value."""
    counts = (fitting @ is_value).tocsr()
    counts.eliminate_zeros()
    is_one: Bools = np.diff(counts.indptr) == 1
    return is_one
