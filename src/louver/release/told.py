"""What a publication tells, as plain values that the register keeps: counts of a cross, counts of classes, shares.

Every verb that publishes exact numbers writes its entry with these; `audit` reads them all back (`audit/archive.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from louver.schema.recode import Recode

__all__ = ["Plain", "counts", "counts_of_classes", "shares", "table"]

Plain = dict[str, Any]
Bounds = Sequence[int | None]


def table(name: str, *, margins: Sequence[Plain] = (), shares: Sequence[Plain] = ()) -> Plain:
    """One published table; an entry's content is `{"tables": [table(...), ...]}`."""
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
        Of each attribute of `by`, after its recode.
    upper : sequence of int or None, optional
        None for "no bound"; the counts are exact where it is left out.
    where : mapping, optional
        Labels of the records that are counted, after the recode.
    """
    return {
        **_cross(by, labels, where, recodes),
        "lower": list(lower),
        "upper": list(lower if upper is None else upper),
    }


def counts_of_classes(classes: Iterable[tuple[Mapping[str, Sequence[str]], int, int | None]]) -> list[Plain]:
    """Classes of records, each by the labels that its records may have, with the least and the most people in it.

    Examples
    --------
    >>> [margin] = counts_of_classes([({"age": ["20", "21"], "sex": ["f"]}, 5, 5)])
    >>> margin["where"], margin["lower"]
    ({'age': ['20', '21'], 'sex': ['f']}, [5])
    """
    return [counts((), (), [low], [high], where=where) for where, low, high in classes]


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
