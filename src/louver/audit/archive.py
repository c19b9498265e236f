"""Pieces as the register keeps them, and back: what an entry tells does not depend on the records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from louver.audit.filed import check_described, file_columns, file_piece
from louver.errors import InputError
from louver.optim.kernels.audit.propagate import UNBOUNDED
from louver.release import told
from louver.release.register import Entry
from louver.schema.attribute import Attribute
from louver.schema.recode import Recode
from louver.tables.domain import cross_attributes
from louver.tables.pieces import Cross, Margin, Piece, Shares
from louver.tables.system import IntArray

__all__ = ["check_columns", "earlier_names", "from_entries", "n_published", "to_content"]


def to_content(pieces: Sequence[Piece], attributes: Sequence[Attribute]) -> told.Plain:
    """All that pieces tell, as plain values."""
    return {"tables": [_told(piece, attributes) for piece in pieces]}


def _told(piece: Piece, attributes: Sequence[Attribute]) -> told.Plain:
    def cross(part: Margin | Shares) -> dict[str, Any]:
        labels = [attribute.labels for attribute in cross_attributes(part.cross, attributes)]
        return {
            "by": part.cross.by,
            "labels": labels,
            "where": part.cross.where,
            "recodes": part.cross.recodes,
        }

    return told.table(
        piece.name,
        margins=[
            told.counts(
                **cross(margin),
                lower=margin.lower.tolist(),
                upper=[None if x >= UNBOUNDED else x for x in margin.upper.tolist()],
            )
            for margin in piece.margins
        ],
        shares=[
            told.shares(
                **cross(shares),
                printed=shares.printed.tolist(),
                decimals=shares.decimals,
                is_half_even=shares.is_half_even,
                is_empty=shares.is_empty.tolist(),
            )
            for shares in piece.shares
        ],
    )


def earlier_names(entries: Sequence[Entry], named: Sequence[str] = ()) -> list[str]:
    """Attributes that earlier tables speak of, and those of earlier files that these, or new tables (`named`), speak of, too."""
    crosses = [
        part
        for entry in entries
        for table in entry.content["tables"]
        for part in (*table["margins"], *table["shares"])
    ]
    names = dict.fromkeys(name for cross in crosses for name in (*cross["by"], *cross["where"]))
    files = [file for entry in entries for file in _files(entry)]
    known = {*named, *names, *(name for file in files for name in file["quasi"])}
    return list(
        dict.fromkeys([*names, *(name for file in files for name in file_columns(file, list(known)))])
    )


def n_published(entries: Sequence[Entry]) -> int:
    """Earlier tables and files."""
    return sum(len(entry.content["tables"]) + len(_files(entry)) for entry in entries)


def check_columns(entries: Sequence[Entry], named: Sequence[str], columns: Sequence[str]) -> None:
    """Refuse records without a column that an earlier table speaks of, and tables of a column that an earlier file does not describe."""
    for entry in entries:
        for file in _files(entry):
            check_described(file, _dated(file["name"], entry), named)
        for name in earlier_names([entry], named):
            if name not in columns:
                raise InputError(
                    f'option --register: publication {entry.number} speaks of column "{name}", which these records do not have; '
                    "audit from a file that has it.",
                    option="--register",
                    column=name,
                )


def from_entries(
    entries: Sequence[Entry], attributes: Sequence[Attribute], crosses: Sequence[Cross]
) -> list[Piece]:
    """What was published before, over the attributes as they are read now.

    Parameters
    ----------
    crosses : sequence of Cross
        What is asked now: a file is counted by that, and by what earlier tables speak of.
    """
    tables = [
        _table(table, _dated(table["name"], entry), attributes)
        for entry in entries
        for table in entry.content["tables"]
    ]
    named = [*crosses, *(cross for table in tables for cross in table.crosses)]
    files = [(file, entry) for entry in entries for file in _files(entry)]
    coarse = [Cross(by=(name,)) for file, _ in files for name in file["quasi"]]
    return [
        *tables,
        *(file_piece(file, _dated(file["name"], entry), attributes, named, coarse) for file, entry in files),
    ]


def _files(entry: Entry) -> Sequence[Mapping[str, Any]]:
    files: Sequence[Mapping[str, Any]] = entry.content.get("files", ())
    return files


def _dated(name: str, entry: Entry) -> str:
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
        f'option --register: table "{name}" has other labels of "{attribute.name}" than the records have now; '
        "list them in the spec as they were.",
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
