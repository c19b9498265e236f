"""Convert pieces to register entries and back; the content of an entry does not depend on the records.

An entry describes tables and files of records. In a file a reader can count whatever its columns allow: classes crossed with columns that
are published unchanged. A class stands for labels of quasi-identifiers that its records may have. So the number of people with given labels
is at least that of the classes within these labels, and at most that of the classes that overlap them plus the records left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louver.errors import InputError
from louver.optim.kernels.audit.propagate import UNBOUNDED
from louver.release import disclosures
from louver.release.register import RegisterEntry
from louver.schema.attribute import Attribute
from louver.schema.recode import Recode
from louver.tables.pieces import Cross, Margin, Piece, Shares, cross_attributes, recoded, refined
from louver.tables.system import IntArray
from louver.tables.transport import FileRecords, Listed

__all__ = [
    "check_columns",
    "check_described",
    "earlier_names",
    "file_columns",
    "file_piece",
    "from_entries",
    "n_published",
    "to_content",
]


def to_content(pieces: Sequence[Piece], attributes: Sequence[Attribute]) -> disclosures.Plain:
    """Everything the pieces state, as plain values."""
    return {"tables": [_described(piece, attributes) for piece in pieces]}


def _described(piece: Piece, attributes: Sequence[Attribute]) -> disclosures.Plain:
    def cross(part: Margin | Shares) -> dict[str, Any]:
        labels = [attribute.labels for attribute in cross_attributes(part.cross, attributes)]
        return {
            "by": part.cross.by,
            "labels": labels,
            "where": part.cross.where,
            "recodes": part.cross.recodes,
        }

    return disclosures.table(
        piece.name,
        margins=[
            disclosures.counts(
                **cross(margin),
                lower=margin.lower.tolist(),
                upper=[None if x >= UNBOUNDED else x for x in margin.upper.tolist()],
            )
            for margin in piece.margins
        ],
        shares=[
            disclosures.shares(
                **cross(shares),
                printed=shares.printed.tolist(),
                decimals=shares.decimals,
                is_half_even=shares.is_half_even,
                is_empty=shares.is_empty.tolist(),
            )
            for shares in piece.shares
        ],
    )


def earlier_names(
    entries: Sequence[RegisterEntry], requested: Sequence[str] = (), columns: Sequence[str] = ()
) -> list[str]:
    """Attributes used by earlier tables, and those of earlier files.

    Of the columns that a file publishes unchanged these are the ones that new tables (`requested`) or earlier ones use, and all others
    that the records have (`columns`), as long as classes and cells are not too many.
    """
    crosses = [
        part
        for entry in entries
        for table in entry.content["tables"]
        for part in (*table["margins"], *table["shares"])
    ]
    names = dict.fromkeys(name for cross in crosses for name in (*cross["by"], *cross["where"]))
    files = [file for entry in entries for file in _files(entry)]
    in_tables = {*requested, *names}
    known = {*in_tables, *(name for file in files for name in file["quasi"])}
    for file in files:
        names |= dict.fromkeys(file_columns(file, list(known)))
        if not in_tables.isdisjoint([*file["quasi"], *file["columns"]]):
            names |= dict.fromkeys(_further(file, known, columns))
    return list(names)


def n_published(entries: Sequence[RegisterEntry]) -> int:
    """Earlier tables and files."""
    return sum(len(entry.content["tables"]) + len(_files(entry)) for entry in entries)


def check_columns(entries: Sequence[RegisterEntry], requested: Sequence[str], columns: Sequence[str]) -> None:
    """Reject records that lack a column used by an earlier table, and tables of a column that an earlier file does not describe."""
    for entry in entries:
        for file in _files(entry):
            check_described(file, _dated(file["name"], entry), requested)
        for name in earlier_names([entry], requested):
            if name not in columns:
                raise InputError(
                    f'option --register: publication {entry.number} refers to column "{name}", which these records do not have; '
                    "audit from a file that has it.",
                    option="--register",
                    column=name,
                )


def from_entries(
    entries: Sequence[RegisterEntry], attributes: Sequence[Attribute], crosses: Sequence[Cross]
) -> list[Piece]:
    """Earlier publications, over the attributes as they are now read.

    Parameters
    ----------
    crosses : sequence of Cross
        The current request: a file is counted by these, and by the attributes of earlier tables.
    """
    tables = [
        _table(table, _dated(table["name"], entry), attributes)
        for entry in entries
        for table in entry.content["tables"]
    ]
    requested = [*crosses, *(cross for table in tables for cross in table.crosses)]
    files = [(file, entry) for entry in entries for file in _files(entry)]
    coarse = [Cross(by=(name,)) for file, _ in files for name in file["quasi"]]
    return [
        *tables,
        *(
            file_piece(file, _dated(file["name"], entry), attributes, requested, coarse)
            for file, entry in files
        ),
    ]


def _files(entry: RegisterEntry) -> Sequence[Mapping[str, Any]]:
    files: Sequence[Mapping[str, Any]] = entry.content.get("files", ())
    return files


def _dated(name: str, entry: RegisterEntry) -> str:
    return f"{name} (published {entry.created[:10]})"


def _table(table: Mapping[str, Any], name: str, attributes: Sequence[Attribute]) -> Piece:
    return Piece(
        name=name,
        margins=tuple(
            Margin(
                cross=_read_cross(part, attributes, name),
                lower=np.array(part["lower"], dtype=np.int64),
                upper=_upper(part["upper"]),
            )
            for part in table["margins"]
        ),
        shares=tuple(_read_shares(part, attributes, name) for part in table["shares"]),
    )


def _read_cross(part: Mapping[str, Any], attributes: Sequence[Attribute], name: str) -> Cross:
    cross = Cross(
        by=tuple(part["by"]),
        where={key: tuple(labels) for key, labels in part["where"].items()},
        recodes={key: Recode(key, **recode) for key, recode in part["recodes"].items()},
    )
    for attribute, labels in zip(cross_attributes(cross, attributes), part["labels"], strict=True):
        if list(attribute.labels) != labels:
            raise _other_labels(name, attribute)
    for attribute in cross_attributes(cross.over(tuple(cross.where)), attributes):
        if not all(attribute.has_label(label) for label in cross.where[attribute.name]):
            raise _other_labels(name, attribute)
    return cross


def _other_labels(name: str, attribute: Attribute) -> InputError:
    return InputError(
        f'option --register: table "{name}" has other labels of "{attribute.name}" than the records have now; list the earlier labels in '
        "the spec.",
        option="--register",
        column=attribute.name,
    )


def _read_shares(part: Mapping[str, Any], attributes: Sequence[Attribute], name: str) -> Shares:
    return Shares(
        cross=_read_cross(part, attributes, name),
        n_cols=part["n_cols"],
        printed=np.array(part["printed"], dtype=np.int64),
        decimals=part["decimals"],
        is_half_even=part["is_half_even"],
        is_empty=np.array(part["is_empty"], dtype=bool),
    )


def _upper(values: Sequence[int | None]) -> IntArray:
    return np.array([UNBOUNDED if value is None else value for value in values], dtype=np.int64)


MOST_COMPARED = 4096
"""Number of classes up to which an upper bound on the people in each is derived; with more, there is none."""
MOST_CELLS = 1 << 20
"""Maximum product of classes and cells of the columns that are published unchanged."""

MOST_WORK = 1 << 24
"""Classes times joint cells, up to which all labels of the columns that a file keeps are audited, named by a table or not."""

Bools = NDArray[np.bool_]


def file_columns(file: Mapping[str, Any], requested: Sequence[str]) -> list[str]:
    """Columns of a file that an audit needs: those that are published coarsened, and all others requested."""
    return [*file["quasi"], *file["where"], *(name for name in file["columns"] if name in requested)]


def _further(file: Mapping[str, Any], known: Collection[str], columns: Sequence[str]) -> Iterator[str]:
    """Columns that a file publishes unchanged and no table names: fewest labels first, while classes times cells stay within bounds."""
    n_quasi = len(file["quasi"])
    work = len({tuple(row[:n_quasi]) for row in file["rows"]})
    work *= prod(
        max(1, len({label for value in values if value for label in value})) for values in file["values"]
    )
    sizes = {name: len(labels) for name, labels in file["columns"].items()}
    work *= prod(size for name, size in sizes.items() if name in known)
    for name in sorted(sizes, key=lambda name: sizes[name]):
        if name not in known and name in columns and None not in file["columns"][name]:
            work *= sizes[name]
            if work > MOST_WORK:
                return
            yield name


def check_described(file: Mapping[str, Any], place: str, requested: Sequence[str]) -> None:
    """Refuse tables that name a column which the file publishes and the register does not describe."""
    for name in file["too_large"]:
        if name in requested:
            raise InputError(
                f'option --register: {place} publishes column "{name}" record by record, in a form that is not audited together '
                "with tables; leave the column out.",
                option="--register",
                column=name,
            )


def file_piece(
    file: Mapping[str, Any],
    name: str,
    attributes: Sequence[Attribute],
    others: Sequence[Cross],
    coarse: Sequence[Cross],
) -> Piece:
    """Everything a file reveals about the cells of the other pieces.

    Parameters
    ----------
    others : sequence of Cross
        Crosses that tables refer to.
    coarse : sequence of Cross
        Columns that files publish in coarser form.
    """
    found = _File.of(file, name, attributes, [*others, *coarse])
    margins = [*found.by_class(), found.in_all(), found.total(), *found.occurring()]
    crosses = [found.restricted(cross) for cross in others]
    margins += [found.bounded(cross) for cross in _distinct(crosses) if cross is not None]
    is_unknown = (
        bool(file["too_large"])
        or len(found.held) < len(file["columns"])
        or bool(found.recodes)
        or not found.is_known
        or any(labels is None for values in file["values"] for labels in values)  # values may be missing
        or (found.has_sets and found.listed_in is None)
    )
    return Piece(
        name=name,
        margins=tuple(margins),
        is_file=True,
        columns=tuple(found.columns),
        states_more=is_unknown,
        records=found.records() if found.has_sets and not is_unknown else None,
    )


def _distinct(crosses: Sequence[Cross | None]) -> list[Cross | None]:
    kept: list[Cross | None] = []
    for cross in crosses:
        if cross not in kept:
            kept.append(cross)
    return kept


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _RegisterColumn:
    """A column of the file in terms of the labels of an attribute.

    Attributes
    ----------
    may_be : bool (values, labels)
        Labels that a record with a published value may have.
    is_known : bool (values,)
        False where the labels are not known; `may_be` then has all of them.
    occurs : tuple of int64
        For each value, labels that somebody has because the value lists them or ends there.
    of_row : int64 (rows,)
        Published value of each distinct record.
    """

    attribute: Attribute
    may_be: Bools
    is_known: Bools
    occurs: tuple[IntArray, ...]
    of_row: IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _File:
    name: str
    quasi: Mapping[str, _RegisterColumn]
    held: Mapping[str, _RegisterColumn]
    recodes: Mapping[str, Recode]
    where: Mapping[str, tuple[str, ...]]
    counts: IntArray
    n_left_out: int
    columns: Mapping[str, _RegisterColumn] = field(default_factory=dict)
    listed_in: str | None = None
    chosen_by: Mapping[str, Attribute] = field(default_factory=dict)

    @classmethod
    def of(
        cls, file: Mapping[str, Any], name: str, attributes: Sequence[Attribute], others: Sequence[Cross]
    ) -> _File:
        by_name = {attribute.name: attribute for attribute in attributes}
        rows = np.array(file["rows"], np.int64).reshape(len(file["counts"]), -1)
        where = {column: tuple(labels) for column, labels in file["where"].items()}
        chosen_by = {column: by_name[column] for column in where}
        for column, labels in where.items():
            _codes(by_name[column], labels, name)
        quasi = {
            column: _column(by_name[column], values, rows[:, place], where.get(column), name, occurs)
            for place, (column, values, occurs) in enumerate(
                zip(
                    file["quasi"],
                    file["values"],
                    file.get("occurs", [[[]] * len(kept) for kept in file["values"]]),
                    strict=True,
                )
            )
        }
        held = {
            column: _column(by_name[column], [[label] for label in labels], rows[:, place], None, name)
            for place, (column, labels) in enumerate(file["columns"].items(), start=len(quasi))
            if column in by_name
        }
        n_classes = len(np.unique(rows[:, : len(quasi)], axis=0))
        is_small = n_classes * prod(c.attribute.size for c in (*quasi.values(), *held.values())) <= MOST_WORK
        return cls(
            name=name,
            quasi=quasi,
            held=held,
            recodes={}
            if is_small
            else {
                column: recode
                for column, found in held.items()
                if column not in where and (recode := _merged(found.attribute, others)) is not None
            },
            where=where,
            counts=np.array(file["counts"], np.int64),
            n_left_out=file["n_left_out"],
            columns={**quasi, **held},
            listed_in=file.get("listed_in"),
            chosen_by=chosen_by,
        )

    @property
    def has_sets(self) -> bool:
        """Whether classes stand for several labels.

        Where they were formed one by one they may overlap, and then all together confine counts that no class confines by itself; and a
        label is only listed, an interval only ends there, because somebody has it. `by_class` knows neither, `records` both.
        """
        used = ((column, np.unique(column.of_row)) for column in self.quasi.values())
        return any(bool((column.may_be[values].sum(axis=1) > 1).any()) for column, values in used)

    @property
    def is_known(self) -> bool:
        """Whether the labels of every class are known."""
        return all(bool(column.is_known[column.of_row].all()) for column in self.quasi.values())

    def by_class(self) -> list[Margin]:
        """Each class whose labels are known, crossed with the columns that are published unchanged.

        The people with its labels are those of all classes within it, and possibly others from the classes that overlap it.
        """
        cross = Cross(by=tuple(self.held), recodes=self.recodes, where=self.where)
        sizes, cell_of = self._cells(cross)
        classes, class_of = np.unique(
            np.stack([column.of_row for column in self.quasi.values()], axis=1), axis=0, return_inverse=True
        )
        if len(classes) * prod(sizes) > MOST_CELLS:
            raise InputError(
                f"option --register: {self.name} has too many classes for an audit together with "
                f"{', '.join(self.held) or 'tables'}; merge categories, or leave these columns out.",
                option="--register",
            )
        counts = np.zeros((len(classes), prod(sizes)), np.int64)
        np.add.at(counts, (class_of.reshape(-1), cell_of), self.counts)
        lower, upper = counts, np.full_like(counts, UNBOUNDED)
        if len(classes) <= MOST_COMPARED:
            lower = self._inside(classes).astype(np.int64) @ counts
            upper = self._near(classes).astype(np.int64) @ counts + self.n_left_out
        margins = []
        for number, published in enumerate(classes):
            labels = self._labels(published)
            if labels is not None:
                of_class = Cross(by=cross.by, recodes=cross.recodes, where={**self.where, **labels})
                margins.append(Margin(cross=of_class, lower=lower[number], upper=upper[number]))
        return margins

    def in_all(self) -> Margin:
        """All records, by the columns that are published unchanged."""
        cross = Cross(by=tuple(self.held), recodes=self.recodes, where=self.where)
        sizes, cell_of = self._cells(cross)
        counts = np.zeros(prod(sizes), np.int64)
        np.add.at(counts, cell_of, self.counts)
        return Margin(cross=cross, lower=counts, upper=counts + self.n_left_out)

    def total(self) -> Margin:
        """Everybody whom the file is about."""
        everybody = np.array([self.counts.sum() + self.n_left_out])
        return Margin(cross=Cross(by=(), where=self.where), lower=everybody, upper=everybody)

    def occurring(self) -> Iterator[Margin]:
        """Labels that somebody has."""
        if self.listed_in is None:
            return
        for name, column in self.quasi.items():
            used = np.unique(column.of_row)
            found = {code for value in used.tolist() for code in column.occurs[value].tolist()}
            for code in sorted(found):
                where = {**self.where, name: (column.attribute.labels[code],)}
                cross = Cross(by=(), where=where)
                yield Margin(cross=cross, lower=np.array([1]), upper=np.array([UNBOUNDED]))

    def records(self) -> FileRecords:
        """All records, by what they show."""
        about = {name: np.isin(self.chosen_by[name].labels, labels) for name, labels in self.where.items()}
        may_be = {
            name: column.may_be[column.of_row] & about.get(name, True)
            for name, column in self.columns.items()
        }
        is_one = self.listed_in == "column"
        return FileRecords(
            may_be=may_be,
            counts=self.counts,
            n_left_out=self.n_left_out,
            about=about,
            listed=tuple(self._listed_in_columns() if is_one else self._listed_in_classes()),
            is_in_margins=is_one and not self.n_left_out,
        )

    def _listed_in_columns(self) -> Iterator[Listed]:
        """Labels that occur among all records with one value."""
        for name, column in self.quasi.items():
            for value in np.unique(column.of_row).tolist():
                kinds = np.flatnonzero(column.of_row == value)
                if len(column.occurs[value]):
                    yield Listed(kinds=kinds, column=name, codes=column.occurs[value])

    def _listed_in_classes(self) -> Iterator[Listed]:
        """Labels that occur in each class."""
        shown = np.stack([column.of_row for column in self.quasi.values()], axis=1)
        classes, class_of = np.unique(shown, axis=0, return_inverse=True)
        for number, published in enumerate(classes.tolist()):
            kinds = np.flatnonzero(class_of.reshape(-1) == number)
            for (name, column), value in zip(self.quasi.items(), published, strict=True):
                if len(column.occurs[value]):
                    yield Listed(kinds=kinds, column=name, codes=column.occurs[value])

    def restricted(self, cross: Cross) -> Cross | None:
        """A cross restricted to the columns of the file and the records it covers; None if it has none of the columns."""
        by = tuple(name for name in cross.by if name in self.columns)
        where = {name: labels for name, labels in cross.where.items() if name in self.columns}
        if not by and not where:
            return None
        for name, labels in self.where.items():
            if name in cross.recodes and name in (*by, *where):
                return None
            where[name] = tuple(label for label in labels if label in where.get(name, labels))
            if not where[name]:
                return None
        recodes = {name: recode for name, recode in cross.recodes.items() if name in (*by, *where)}
        return Cross(by=by, where=where, recodes=recodes)

    def bounded(self, cross: Cross) -> Margin:
        """Lower and upper bounds on the people in each cell, as shown by the file."""
        sizes = [recoded(self.columns[name].attribute, cross)[0].size for name in cross.by]
        lower, upper = np.zeros(sizes, np.int64), np.zeros(sizes, np.int64)
        filtered = [name for name in cross.where if name in self.columns]
        requested = list(dict.fromkeys((*cross.by, *filtered)))
        kinds, of_row = np.unique(
            np.stack([self.columns[name].of_row for name in requested], axis=1), axis=0, return_inverse=True
        )
        people = np.bincount(of_row.reshape(-1), self.counts, len(kinds)).astype(np.int64)
        reaches = {name: self._reach(name, cross) for name in cross.by}
        passes = {name: self._passes(name, cross) for name in filtered}
        for kind, n in zip(kinds.tolist(), people.tolist(), strict=True):
            value_of = dict(zip(requested, kind, strict=True))
            if not all(may[value_of[name]] for name, (may, _) in passes.items()):
                continue
            cells = [np.flatnonzero(reach[value_of[name]]) for name, reach in reaches.items()]
            upper[np.ix_(*cells)] += n
            is_inside = all(must[value_of[name]] for name, (_, must) in passes.items())
            is_sure = all(self.columns[name].is_known[value_of[name]] for name in cross.by)
            if is_inside and is_sure and all(len(found) == 1 for found in cells):
                lower[tuple(int(found[0]) for found in cells)] += n
        return Margin(cross=cross, lower=lower.ravel(), upper=upper.ravel() + self.n_left_out)

    def _cells(self, cross: Cross) -> tuple[list[int], IntArray]:
        """Sizes of the columns published unchanged, and the cell of each distinct record."""
        sizes: list[int] = []
        cell_of = np.zeros(len(self.counts), np.int64)
        for name in cross.by:
            column = self.held[name]
            coarse, codes = recoded(column.attribute, cross)
            sizes.append(coarse.size)
            cell_of = cell_of * coarse.size + codes[column.may_be.argmax(axis=1)][column.of_row]
        return sizes, cell_of

    def _near(self, classes: IntArray) -> Bools:
        """Whether a person could match both of two classes."""
        near = np.ones((len(classes), len(classes)), np.bool_)
        for column, published in zip(self.quasi.values(), classes.T, strict=True):
            overlap = (column.may_be.astype(np.int64) @ column.may_be.T.astype(np.int64)) > 0
            near &= overlap[np.ix_(published, published)]
        return near

    def _inside(self, classes: IntArray) -> Bools:
        """Whether everyone in the second of two classes certainly has the labels of the first."""
        inside = np.ones((len(classes), len(classes)), np.bool_)
        for column, published in zip(self.quasi.values(), classes.T, strict=True):
            beyond = ((~column.may_be).astype(np.int64) @ column.may_be.T.astype(np.int64)) > 0
            inside &= (~beyond & column.is_known)[np.ix_(published, published)]
        return inside

    def _labels(self, published: IntArray) -> dict[str, tuple[str, ...]] | None:
        """Labels of a class, omitting columns in which it covers every label; None if they are not known."""
        found = {}
        for (name, column), value in zip(self.quasi.items(), published.tolist(), strict=True):
            if not column.is_known[value]:
                return None
            may_be = column.may_be[value]
            if not may_be.all():
                found[name] = tuple(column.attribute.labels[code] for code in np.flatnonzero(may_be))
        return found

    def _reach(self, name: str, cross: Cross) -> Bools:
        """Labels after the recode that a record with each published value may have."""
        column = self.columns[name]
        coarse, codes = recoded(column.attribute, cross)
        reach = np.zeros((len(column.may_be), coarse.size), np.bool_)
        for code in range(column.attribute.size):
            reach[:, codes[code]] |= column.may_be[:, code]
        return reach

    def _passes(self, name: str, cross: Cross) -> tuple[Bools, Bools]:
        """Whether a record with each published value may pass the filter, and whether it must."""
        reach = self._reach(name, cross)
        coarse = recoded(self.columns[name].attribute, cross)[0]
        is_wanted = np.zeros(coarse.size, np.bool_)
        is_wanted[[coarse.code_of(label) for label in cross.where[name]]] = True
        must = ~(reach & ~is_wanted).any(axis=1) & self.columns[name].is_known
        may: Bools = np.asarray((reach & is_wanted).any(axis=1))
        return may, must


def _column(
    attribute: Attribute,
    values: Sequence[Sequence[str | None] | None],
    of_row: IntArray,
    among: Sequence[str] | None,
    place: str,
    occurs: Sequence[Sequence[str]] = (),
) -> _RegisterColumn:
    """A column of the file; `among` holds the labels of the records that the file covers."""
    everybody = np.zeros(attribute.size, np.bool_)
    everybody[:] = True
    if among is not None:
        everybody[:] = False
        everybody[_codes(attribute, among, place)] = True
    may_be = np.zeros((len(values), attribute.size), np.bool_)
    is_known = np.ones(len(values), np.bool_)
    for number, labels in enumerate(values):
        if labels:
            may_be[number, _codes(attribute, labels, place)] = True
        else:
            may_be[number] = everybody
            is_known[number] = labels is None
    return _RegisterColumn(
        attribute=attribute,
        may_be=may_be,
        is_known=is_known,
        # Who is published with a single label has it.
        occurs=tuple(
            np.array(_codes(attribute, labels if may_be[number].sum() > 1 else (), place), np.int64)
            for number, labels in enumerate(occurs)
        ),
        of_row=of_row,
    )


def _codes(attribute: Attribute, labels: Sequence[str | None], place: str) -> list[int]:
    known = [attribute.missing if label is None else label for label in labels]
    for label in known:
        if label is None or not attribute.has_label(label):
            raise InputError(
                f'option --register: {place} has other labels of "{attribute.name}" than the records have now; list the earlier labels '
                "in the spec.",
                option="--register",
                column=attribute.name,
            )
    return [attribute.code_of(label) for label in known if label is not None]


def _merged(attribute: Attribute, others: Sequence[Cross]) -> Recode | None:
    """Merge labels that no other piece distinguishes, because who has which of them says nothing about the other pieces."""
    domain = refined([attribute], others)
    (classes,) = domain.classes
    if domain.n_cells == attribute.size:
        return None
    groups = [np.flatnonzero(classes == number) for number in range(domain.n_cells)]
    return Recode(
        attribute.name,
        merge={
            " or ".join(attribute.labels[code] for code in group): tuple(
                attribute.labels[code] for code in group
            )
            for group in groups
        },
    )
