"""The content of a publication, as plain values that the register keeps: counts of a cross, shares, files of records, protected tables.

Every verb that publishes exact numbers writes its entry with these; `audit` reads them back (`audit/register.py`), and `protect` reads
those of protected tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from louver.schema.recode import Recode

__all__ = ["Plain", "counts", "file", "protected", "shares", "table"]

Plain = dict[str, Any]
Bounds = Sequence[int | None]


def table(name: str, *, margins: Sequence[Plain] = (), shares: Sequence[Plain] = ()) -> Plain:
    """One published table; an entry's content is `{"tables": [table(...), ...], "files": [file(...), ...]}`."""
    return {"name": name, "margins": list(margins), "shares": list(shares)}


def counts(
    by: Sequence[str],
    labels: Sequence[Sequence[str]],
    lower: Sequence[int],
    upper: Bounds | None = None,
    *,
    where: Mapping[str, Sequence[str]] | None = None,
    recodes: Mapping[str, Recode] | None = None,
) -> Plain:
    """Bounds of the cells of a cross, the last attribute's labels varying fastest.

    Parameters
    ----------
    labels : sequence of sequences of str
        Labels of each attribute of `by`, after its recode.
    upper : sequence of int or None, optional
        None for "no bound"; if omitted, the counts are exact.
    where : mapping, optional
        Labels of the records that are counted, after the recode.
    """
    return {
        **_cross(by, labels, where, recodes),
        "lower": list(lower),
        "upper": list(lower if upper is None else upper),
    }


def file(
    name: str,
    *,
    quasi: Sequence[str],
    values: Sequence[Sequence[Sequence[str] | None]],
    columns: Mapping[str, Sequence[str | None]],
    rows: Sequence[Sequence[int]],
    counts: Sequence[int],
    n_left_out: int,
    where: Mapping[str, Sequence[str]],
    too_large: Sequence[str],
    is_one_recoding: bool,
    occurs: Sequence[Sequence[Sequence[str]]] = (),
    listed_in: str | None = None,
) -> Plain:
    """A published file of records: what each record shows, and how many records show it.

    Parameters
    ----------
    quasi : sequence of str
        Columns that are published in coarser form.
    values : sequence of sequences
        Published values of each of them: the labels that a record may have (empty if they are not known, None for all labels).
    columns : mapping
        Columns that are published unchanged, with their labels; None stands for a missing value.
    rows : sequence of sequences of int
        Distinct records: positions in `values`, then in the labels of `columns`.
    counts : sequence of int
        Number of records published as each of these.
    n_left_out : int
        Records that are not published.
    where : mapping
        Labels that define the records in the file.
    too_large : sequence of str
        Columns that are published but not described here.
    is_one_recoding : bool
        Whether every value is published as the same thing in the whole file, so that classes do not overlap.
    occurs : sequence of sequences, optional
        For each of `values`, the labels that somebody has because the value is a set that lists them or an interval that ends there.
    listed_in : {"class", "column"}, optional
        Where that is so: in every class with the value, or among all records with it. None if it is not known.
    """
    return {
        "name": name,
        "quasi": list(quasi),
        "values": [[None if one is None else list(one) for one in kept] for kept in values],
        "columns": {column: list(labels) for column, labels in columns.items()},
        "rows": [list(row) for row in rows],
        "counts": list(counts),
        "n_left_out": n_left_out,
        "where": {column: list(labels) for column, labels in where.items()},
        "too_large": list(too_large),
        "is_one_recoding": is_one_recoding,
        **(
            {}
            if listed_in is None
            else {"occurs": [[list(one) for one in kept] for kept in occurs], "listed_in": listed_in}
        ),
    }


def shares(
    by: Sequence[str],
    labels: Sequence[Sequence[str]],
    printed: Sequence[Sequence[int]],
    *,
    decimals: int | None,
    is_half_even: bool = False,
    is_empty: Sequence[bool],
    where: Mapping[str, Sequence[str]] | None = None,
    recodes: Mapping[str, Recode] | None = None,
) -> Plain:
    """Row conditionals: `by` names the attributes of the rows, then those of the columns.

    Parameters
    ----------
    printed : sequence of sequences of int
        One for each row: reduced counts where `decimals` is None, otherwise shares in units of the last decimal.
    is_empty : sequence of bool
        Rows published as empty.
    """
    return {
        **_cross(by, labels, where, recodes),
        "n_cols": len(printed[0]) if printed else 0,
        "printed": [list(row) for row in printed],
        "decimals": decimals,
        "is_half_even": is_half_even,
        "is_empty": list(is_empty),
    }


def protected(
    table: Plain,
    codes: Plain,
    *,
    quantity: str,
    value: str | None,
    method: str,
    shown: Sequence[Sequence[str | int]],
    hidden: Sequence[Sequence[str]],
) -> Plain:
    """A table with hidden cells, so that `protect` can hide later tables consistently with it.

    Parameters
    ----------
    table, codes : mapping
        As in the promise of the release.
    quantity : str
        The quantity that the numbers measure; `value` names the column that was added up, None for counts.
    shown, hidden : sequences
        The codes of each cell; for a shown cell, followed by its number in units of the last decimal.
    """
    return {
        **{key: table[key] for key in ("name", "by", "depth", "decimals", "negative")},
        "codes": {name: codes[name] for name in table["by"]},
        "quantity": quantity,
        "value": value,
        "method": method,
        "shown": [list(cell) for cell in shown],
        "hidden": [list(cell) for cell in hidden],
    }


def _cross(
    by: Sequence[str],
    labels: Sequence[Sequence[str]],
    where: Mapping[str, Sequence[str]] | None,
    recodes: Mapping[str, Recode] | None,
) -> Plain:
    return {
        "by": list(by),
        "where": {name: list(chosen) for name, chosen in (where or {}).items()},
        "recodes": {name: _recode(recode) for name, recode in (recodes or {}).items()},
        "labels": [list(names) for names in labels],
    }


def _recode(recode: Recode) -> Plain:
    if recode.merge is not None:
        return {"merge": {new: list(old) for new, old in recode.merge.items()}}
    return {"bins": list(recode.bins)} if recode.bins is not None else {"level": recode.level}
