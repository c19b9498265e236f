"""Recodes that are applied to quasi-identifiers before anything else, in the format of `bounds`."""

from __future__ import annotations

import numpy as np

from louver._arrays import Floats, Ints
from louver.errors import InputError
from louver.schema.attribute import Attribute, Kind
from louver.schema.recode import Recode, bin_labels

__all__ = ["binned", "recoded_labels"]

MISSING = "(missing)"


def binned(attribute: Attribute, values: Floats, recode: Recode) -> tuple[Attribute, Ints]:
    """Numbers as ordered bins, and the bin of each; missing ones have a label of their own."""
    if recode.bins is None:
        raise InputError(
            f'option --recode merges labels of column "{attribute.name}", which holds numbers; give bins.',
            option="--recode",
            column=attribute.name,
        )
    missing = np.isnan(values)
    is_whole = bool((values[~missing] == np.floor(values[~missing])).all()) and all(
        edge.is_integer() for edge in recode.bins
    )
    labels = bin_labels(recode.bins, whole=is_whole)
    codes = np.searchsorted(recode.bins, values, side="right").astype(np.int64)
    label = None
    if missing.any():
        label, labels = MISSING, (*labels, MISSING)
        codes[missing] = len(labels) - 1
    return Attribute(name=attribute.name, kind=Kind.ORDERED, labels=labels, missing=label), codes


def recoded_labels(public: frozenset[str], attribute: Attribute, recode: Recode | None) -> frozenset[str]:
    """Labels that are known to exist, after the recode: bins that are asked for are, whoever has them."""
    if recode is None:
        return public
    if recode.bins is not None and not attribute.labels:
        whole = frozenset(bin_labels(recode.bins, whole=True))
        return whole | frozenset(bin_labels(recode.bins, whole=False))
    if not attribute.labels:
        return public
    coarse, new = attribute.recoded(recode)
    return frozenset(
        coarse.labels[new[attribute.code_of(label)]] for label in public if attribute.has_label(label)
    )
