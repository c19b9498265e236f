"""Pieces as the register keeps them, and back: what an entry tells does not depend on the records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from louver.audit.domain import cross_attributes
from louver.audit.pieces import Cross, Margin, Piece, Shares
from louver.audit.system import IntArray
from louver.errors import InputError
from louver.optim.kernels.audit.propagate import UNBOUNDED
from louver.release.register import Entry
from louver.schema.attribute import Attribute
from louver.schema.recode import Recode

__all__ = ["earlier_names", "from_entry", "to_content"]


def to_content(pieces: Sequence[Piece], attributes: Sequence[Attribute]) -> dict[str, Any]:
    """All that pieces tell, as plain values."""
    return {
        "tables": [
            {
                "name": piece.name,
                "margins": [
                    {
                        **_cross(margin.cross, attributes),
                        "lower": margin.lower.tolist(),
                        "upper": [None if x >= UNBOUNDED else x for x in margin.upper.tolist()],
                    }
                    for margin in piece.margins
                ],
                "shares": [
                    {
                        **_cross(shares.cross, attributes),
                        "n_cols": shares.n_cols,
                        "printed": shares.printed.tolist(),
                        "decimals": shares.decimals,
                        "is_half_even": shares.is_half_even,
                        "is_empty": shares.is_empty.tolist(),
                    }
                    for shares in piece.shares
                ],
            }
            for piece in pieces
        ]
    }


def earlier_names(entries: Sequence[Entry]) -> list[str]:
    """Attributes that earlier tables speak of."""
    crosses = [
        part
        for entry in entries
        for table in entry.content["tables"]
        for part in (*table["margins"], *table["shares"])
    ]
    return list(dict.fromkeys(name for cross in crosses for name in (*cross["by"], *cross["where"])))


def from_entry(entry: Entry, attributes: Sequence[Attribute]) -> list[Piece]:
    """The pieces of an entry, over the attributes as they are read now."""
    pieces = []
    for table in entry.content["tables"]:
        name = f"{table['name']} (published {entry.created[:10]})"
        pieces.append(
            Piece(
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
        )
    return pieces


def _cross(cross: Cross, attributes: Sequence[Attribute]) -> dict[str, Any]:
    return {
        "by": list(cross.by),
        "where": {name: list(labels) for name, labels in cross.where.items()},
        "recodes": {name: _recode(recode) for name, recode in cross.recodes.items()},
        "labels": [list(attribute.labels) for attribute in cross_attributes(cross, attributes)],
    }


def _recode(recode: Recode) -> dict[str, Any]:
    if recode.merge is not None:
        return {"merge": {new: list(old) for new, old in recode.merge.items()}}
    return {"bins": list(recode.bins)} if recode.bins is not None else {"level": recode.level}


def _read_cross(part: Mapping[str, Any], attributes: Sequence[Attribute], name: str) -> Cross:
    cross = Cross(
        by=tuple(part["by"]),
        where={key: tuple(labels) for key, labels in part["where"].items()},
        recodes={key: Recode(key, **recode) for key, recode in part["recodes"].items()},
    )
    for attribute, labels in zip(cross_attributes(cross, attributes), part["labels"], strict=True):
        if list(attribute.labels) != labels:
            raise InputError(
                f'option --register: table "{name}" has other labels of "{attribute.name}" than the records have now; '
                "list them in the spec as they were.",
                option="--register",
                column=attribute.name,
            )
    return cross


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
