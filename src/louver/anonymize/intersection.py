"""What several releases about the same people jointly disclose.

Liang & Samavi (2020), section 6: with other weights the classes differ, and anyone who has both files can intersect them. The attacker
knows a person's values in every column that a release generalises, as they were when it was made. In every release, that person is one of
the rows that fit. In two releases, the columns that both publish unchanged and whose values have not changed for the person must be equal,
and so must the position if both keep the order. So among the rows with the values v in these columns, the person's candidates are at most
the smaller number of fitting rows in the two releases. The sum of these numbers over all v, at its smallest over all pairs of releases,
bounds the candidates.

An attacker who pairs the rows of two releases one to one may exclude more: the figures state what is certainly disclosed, not everything
that may be.
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

from louver._arrays import Bools, Ints
from louver.anonymize.coding import MISSING
from louver.anonymize.generalise import Sort
from louver.anonymize.lookup import Coding, KnownPeople, KnownValues, as_texts
from louver.anonymize.result import DATA_FILE, MAPPING_FILE
from louver.errors import InputError
from louver.release.folder import Folder
from louver.release.manifest import read_manifest
from louver.release.verify import verify

__all__ = [
    "EarlierRelease",
    "Intersection",
    "check_source",
    "intersect",
    "published_values",
    "read_earlier",
]


UNLINKED = (
    ". This holds if no value has changed since: everyone was looked up by current values, which is wrong for "
    "people whose values have changed (a birthday, a move), so more people, or other people, may be "
    "disclosed. Give the earlier records (--earlier) and a person key (--link)"
)
MOST_PATTERNS = 200
"""Maximum number of sets of unchanged columns for which the rows of two releases are joined."""

BLOCK_CELLS = 1 << 24
"""Pairs of person and class processed at once, which bounds memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intersection:
    """The candidates that remain for each person when all releases are compared.

    Attributes
    ----------
    releases : tuple of str
        The earlier releases.
    records : int
        Records of the source.
    fewest : int
        Smallest number of rows that can belong to any one person.
    below_k, single : int
        Records with fewer than k candidates, and with exactly one; an attacker may know more.
    absent : int
        Records that fit no row of some release: a person who is left out of one release stands out.
    learnt : tuple of (sensitive column, records)
        Records whose value is certain from two releases together but not from either alone.
    link : str or None
        The key by which people were looked up with their earlier values; None if current values were used.
    """

    releases: tuple[str, ...]
    records: int
    k: int
    fewest: int
    below_k: int
    single: int
    absent: int
    learnt: tuple[tuple[str, int], ...]
    link: str | None = None

    @property
    def is_risky(self) -> bool:
        return bool(self.below_k or self.absent or any(count for _, count in self.learnt))

    @property
    def is_disclosing(self) -> bool:
        """Whether some records have fewer than k candidates, or a sensitive value becomes certain."""
        return bool(self.below_k or any(count for _, count in self.learnt))

    def __str__(self) -> str:
        sentence = (
            f"together with {', '.join(self.releases)}: at least {self.below_k:,} of {self.records:,} records have fewer "
            f"than {self.k} candidates, {self.single:,} have one; the fewest are {self.fewest:,}"
        )
        more = [
            f'; the value of "{name}" becomes certain for {count:,}' for name, count in self.learnt if count
        ]
        if self.absent:
            more.append(f"; {self.absent:,} stand out because they are not in every release")
        if self.link is None:
            more.append(UNLINKED)
        return sentence + "".join(more)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EarlierRelease:
    """A released table with the meaning of its values; missing values may match anything, and rows may have kept their order."""

    name: str
    table: pa.Table
    mapping: pa.Table
    missing_matches: bool
    is_order_kept: bool
    n_suppressed: int
    coding: Coding

    @property
    def quasi(self) -> tuple[str, ...]:
        """The source columns that were generalised."""
        return tuple(dict.fromkeys(self.mapping["attribute"].to_pylist()))

    def check_columns(self, columns: Sequence[str], file: str | None = None) -> None:
        """Refuse records without a column that was generalised."""
        absent = [column for column in self.quasi if column not in columns]
        if absent:
            raise InputError(
                f'option --against: {self.name} generalises column "{absent[0]}", which '
                f"{'the data do' if file is None else f'{file} does'} not have.",
                option="--against",
                column=absent[0],
                file=file,
            )


def read_earlier(folder: str | Path) -> EarlierRelease:
    """Read a release directory of `louver anonymize`."""
    name = Path(folder).name
    manifest = read_manifest(folder)
    if manifest.verb != "anonymize":
        raise InputError(
            f"option --against: {name} is not a release of louver anonymize.", option="--against"
        )
    if not verify(folder, skip_report=True, accept_strings=None).passed:
        raise InputError(
            f"option --against: {name} has changed since it was released; check it with louver verify.",
            option="--against",
        )
    files = Folder(Path(folder), (DATA_FILE, MAPPING_FILE))
    earlier = EarlierRelease(
        name=name,
        table=files.table(DATA_FILE),
        mapping=files.table(MAPPING_FILE),
        missing_matches=manifest.parameters.get("missing") == "match",
        is_order_kept=bool(manifest.parameters.get("keep_order")),
        n_suppressed=int(manifest.results.get("suppressed") or 0),
        coding=Coding.of(manifest.parameters),
    )
    if manifest.parameters.get("recode"):
        raise InputError(
            f"option --against: {name} was made with --recode, so nobody can be looked up by the original values.",
            option="--against",
        )
    return earlier


def check_source(release: EarlierRelease, known: KnownPeople, file: str) -> None:
    """Refuse records that a release was not made from: more people match none of its rows than it left out."""
    fits = _Fits(release, known)
    is_absent = fits.candidates == 0
    if int(is_absent[fits.of_person[known.is_present]].sum()) > release.n_suppressed:
        raise InputError(
            f"option --earlier: {release.name} was not made from {file}, whose people match no row of it; give the "
            "records from which it was made.",
            option="--earlier",
            file=file,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Pair:
    """Two releases, and for each person the columns published unchanged by both in which the value is the same.

    Attributes
    ----------
    first, second : int
        Places in the list of releases.
    shared : list of str
    patterns : bool (patterns, columns)
        The columns that kept their values; the attacker is assumed to know this.
    of_person : int64 (people,)
        Index of each person's pattern.
    """

    first: int
    second: int
    shared: list[str]
    patterns: Bools
    of_person: Ints


def intersect(
    known: Sequence[KnownPeople],
    releases: Sequence[EarlierRelease],
    sensitive: Sequence[str],
    k: int,
    *,
    link: str | None = None,
) -> Intersection:
    """Candidates of every person in all pairs of releases; the first is the new one.

    Parameters
    ----------
    known : sequence of KnownPeople
        The values known about every person when each release was made.
    link : str, optional
        The key by which people were found in the earlier records.

    Notes
    -----
    **Cost**: O(distinct records x classes) per quasi-identifier and release, in blocks, and a join of the rows of each pair of releases
    for each set of columns that kept their values, MOST_PATTERNS at most.
    """
    fits = [_Fits(release, then) for release, then in zip(releases, known, strict=True)]
    pairs = [_pair(i, j, releases, known) for i, j in combinations(range(len(releases)), 2)]
    points: Ints
    points, counts = np.unique(
        np.stack([*(fit.of_person for fit in fits), *(pair.of_person for pair in pairs)], axis=1),
        axis=0,
        return_counts=True,
    )
    alone = [fit.candidates[points[:, place]] for place, fit in enumerate(fits)]
    nobody = np.iinfo(np.int64).max
    candidates = np.min([np.where(found > 0, found, nobody) for found in alone], axis=0)
    learnt = {name: _Learnt(len(points)) for name in sensitive}
    for number, pair in enumerate(pairs):
        ends = (pair.first, pair.second)
        tables = (releases[pair.first], releases[pair.second])
        is_placed = _is_placed(tables, known[pair.first], known[pair.second])
        for pattern, constant in enumerate(pair.patterns):
            chosen = np.flatnonzero(points[:, len(fits) + number] == pattern)
            names = [name for name, is_same in zip(pair.shared, constant, strict=True) if is_same]
            carried = _carried(tables, names, is_placed)
            n_carried = int(max(part.max(initial=-1) for part in carried)) + 1
            by_end = [
                fits[end].by(part, n_carried)[points[chosen, end]]
                for end, part in zip(ends, carried, strict=True)
            ]
            together = by_end[0].minimum(by_end[1]).tocsr()
            found = np.asarray(together.sum(axis=1)).reshape(-1)
            candidates[chosen] = np.where(
                found > 0, np.minimum(candidates[chosen], found), candidates[chosen]
            )
            for name in sensitive:
                for end, part, release in zip(ends, carried, tables, strict=True):
                    if _has(release, name):
                        certain, before = _certain(
                            fits[end], points[chosen, end], part, together, release, name
                        )
                        learnt[name].add(chosen, certain, before, is_constant=name in names)
    is_absent = np.any([found == 0 for found in alone], axis=0)
    return Intersection(
        releases=tuple(release.name for release in releases[1:]),
        records=int(counts.sum()),
        k=k,
        link=link,
        fewest=int(candidates.min()) if candidates.min() < nobody else 0,
        below_k=int(counts[candidates < k].sum()),
        single=int(counts[candidates == 1].sum()),
        absent=int(counts[is_absent].sum()),
        learnt=tuple((name, int(counts[found.flags].sum())) for name, found in learnt.items()),
    )


class _Learnt:
    """People whose sensitive value is certain from two releases together but from neither alone."""

    def __init__(self, n: int) -> None:
        self._certain, self._before, self._changed = (np.zeros(n, np.bool_) for _ in range(3))

    def add(self, chosen: Ints, certain: Bools, before: Bools, *, is_constant: bool) -> None:
        """Record who is certain in one of two releases; a changed value is certain only from its own release."""
        if is_constant:
            self._certain[chosen] |= certain
            self._before[chosen] |= before
        else:
            self._changed[chosen] |= certain & ~before

    @property
    def flags(self) -> Bools:
        flags: Bools = (self._certain & ~self._before) | self._changed
        return flags


def _pair(first: int, second: int, releases: Sequence[EarlierRelease], known: Sequence[KnownPeople]) -> _Pair:
    """Compare the columns that two releases publish unchanged for every person."""
    a, b = known[first], known[second]
    shared = [
        name
        for name in releases[first].table.column_names
        if name in a.records.column_names
        and name in b.records.column_names
        and name not in a.values
        and name not in b.values
        and _has(releases[second], name)
    ]
    n = len(a.rows)
    if a is b or not shared:
        patterns, of_person = np.ones((1, len(shared)), np.bool_), np.zeros(n, np.int64)
        return _Pair(first=first, second=second, shared=shared, patterns=patterns, of_person=of_person)
    is_same = np.stack([_is_same(a.records[name], b.records[name]) for name in shared], axis=1)
    patterns, of_person, counts = np.unique(is_same, axis=0, return_inverse=True, return_counts=True)
    of_person = of_person.reshape(-1)
    if (
        len(patterns) > MOST_PATTERNS
    ):  # for the rarest patterns, only the columns that they have in common are used
        order = np.argsort(-counts, kind="stable")
        number = np.empty(len(patterns), np.int64)
        number[order] = np.minimum(np.arange(len(patterns)), MOST_PATTERNS - 1)
        common = np.all(patterns[order[MOST_PATTERNS - 1 :]], axis=0, keepdims=True)
        patterns = np.concatenate([patterns[order[: MOST_PATTERNS - 1]], common])
        of_person = number[of_person]
    return _Pair(first=first, second=second, shared=shared, patterns=patterns, of_person=of_person)


def _is_same(one: pa.ChunkedArray, other: pa.ChunkedArray) -> Bools:
    """The rows where two columns have the same value or are both missing."""
    left, right = as_texts(one), as_texts(other)
    both_missing = pc.and_(pc.is_null(left), pc.is_null(right))
    same = pc.or_(pc.fill_null(pc.equal(left, right), False), both_missing)
    flags: Bools = same.to_numpy(zero_copy_only=False)
    return flags


def _is_placed(pair: tuple[EarlierRelease, EarlierRelease], first: KnownPeople, second: KnownPeople) -> bool:
    """Whether equal row positions in two releases mean the same person: both keep the order of the same people."""
    return (
        all(release.is_order_kept for release in pair)
        and pair[0].table.num_rows == pair[1].table.num_rows
        and np.array_equal(first.rows, second.rows)
    )


def _has(release: EarlierRelease, name: str) -> bool:
    return name in release.table.column_names


class _Fits:
    """The rows of a release that each person fits, by the values that the person had when it was made.

    Attributes
    ----------
    of_person : int64 (people,)
        The combination of values that each person has.
    """

    def __init__(self, release: EarlierRelease, known: KnownPeople) -> None:
        codes, fits, given = [], [], []
        for name, values in known.values.items():
            if name in release.quasi:
                of_row, fit = _meanings(release, name, values)
            elif _has(release, name):
                of_row, fit = _exact(release, name, values, known)
            else:
                continue
            codes.append(of_row)
            fits.append(fit)
            given.append(values.of_person)
        points, self.of_person = np.unique(np.stack(given, axis=1), axis=0, return_inverse=True)
        self.of_person = self.of_person.reshape(-1)
        classes, class_of = np.unique(np.stack(codes, axis=1), axis=0, return_inverse=True)
        step = max(1, BLOCK_CELLS // max(1, len(classes)))
        blocks = []
        for start in range(0, len(points), step):
            block = points[start : start + step]
            is_fit = np.repeat(np.all(block >= 0, axis=1, keepdims=True), len(classes), axis=1)
            for fit, values_of, labels in zip(fits, block.T, classes.T, strict=True):
                is_fit &= fit[values_of][:, labels]
            blocks.append(sparse.csr_matrix(is_fit.astype(np.int64)))
        self._class_of = class_of.reshape(-1)
        self._of_class = sparse.vstack(blocks).tocsr()

    @property
    def candidates(self) -> Ints:
        """How many rows each combination of values fits."""
        sizes = np.bincount(self._class_of, minlength=self._of_class.shape[1])
        return np.asarray(self._of_class @ sizes).reshape(-1)

    def by(self, carried: Ints, n_carried: int) -> sparse.csr_matrix:
        """How many fitting rows have each number in `carried`, (combinations, numbers)."""
        shape = (self._of_class.shape[1], n_carried)
        content = sparse.csr_matrix((np.ones(len(carried), np.int64), (self._class_of, carried)), shape=shape)
        return (self._of_class @ content).tocsr()


def _meanings(release: EarlierRelease, name: str, values: KnownValues) -> tuple[Ints, Bools]:
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


def _exact(release: EarlierRelease, name: str, values: KnownValues, known: KnownPeople) -> tuple[Ints, Bools]:
    """The same for a column that a release publishes unchanged: a row fits if it has exactly that value."""
    is_present = known.is_present
    both = [as_texts(known.records[name].filter(pa.array(is_present))), as_texts(release.table[name])]
    encoded = pa.concat_arrays(both).dictionary_encode(null_encoding="encode")
    codes = np.asarray(np.from_dlpack(encoded.indices), np.int64)
    of_source, of_row = codes[: len(both[0])], codes[len(both[0]) :]
    fit = np.zeros((len(values.texts), int(codes.max(initial=0)) + 1), np.bool_)
    fit[values.of_person[is_present], of_source] = True
    return of_row, fit


def _carried(
    pair: tuple[EarlierRelease, EarlierRelease], names: Sequence[str], is_placed: bool
) -> tuple[Ints, Ints]:
    """A number for each row of two releases; rows share a number where all these columns agree, and also the position if it is used."""
    n_first = pair[0].table.num_rows
    number = np.zeros(n_first + pair[1].table.num_rows, np.int64)
    if is_placed:
        number = np.tile(np.arange(n_first), 2)
    for name in names:
        texts = pa.concat_arrays([as_texts(release.table[name]) for release in pair])
        codes = np.asarray(np.from_dlpack(texts.dictionary_encode(null_encoding="encode").indices), np.int64)
        _, number = np.unique(number * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)
    return number[:n_first], number[n_first:]


def _certain(
    fit: _Fits, chosen: Ints, carried: Ints, together: sparse.csr_matrix, release: EarlierRelease, name: str
) -> tuple[Bools, Bools]:
    """Whether all rows of a release that may belong to a person have the same sensitive value, with and without the other release."""
    texts = as_texts(release.table[name]).dictionary_encode(null_encoding="encode")
    values = np.asarray(np.from_dlpack(texts.indices), np.int64)
    n_values = int(values.max(initial=0)) + 1
    kinds, of_row = np.unique(carried * n_values + values, return_inverse=True)
    rows = fit.by(of_row.reshape(-1), len(kinds))[chosen]
    is_value = sparse.csr_matrix(
        (np.ones(len(kinds), np.int64), (np.arange(len(kinds)), kinds % n_values)),
        shape=(len(kinds), n_values),
    )
    left = rows.multiply(together.sign()[:, kinds // n_values]).tocsr()
    return _is_one(left @ is_value), _is_one(rows @ is_value)


def _is_one(counts: sparse.csr_matrix) -> Bools:
    """The positions at which a single value is counted."""
    counts = counts.tocsr()
    counts.eliminate_zeros()
    is_one: Bools = np.diff(counts.indptr) == 1
    return is_one


def published_values(table: pa.Table, mapping: pa.Table, name: str) -> tuple[Ints, list[dict[str, Any]]]:
    """For each row, the index of its published value among the mapping lines of an attribute, and these lines.

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
