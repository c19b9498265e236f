"""What is coded before classes are formed: recodes of quasi-identifiers, and rounding and top-coding of numbers published unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from louver._arrays import Floats, Ints
from louver.anonymize.options import NUMBER_CODES, AnonymizeOptions, flag_of
from louver.data.coding import NUMBER
from louver.data.read import Source
from louver.errors import InputError
from louver.schema.attribute import Attribute, Kind
from louver.schema.recode import Recode, bin_labels

__all__ = ["binned", "coded_numbers", "done_to", "recoded_labels"]

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


def coded_numbers(records: pa.Table, source: Source, options: AnonymizeOptions) -> pa.Table:
    """The records with the codes applied that `--top-code`, `--bottom-code` and `--round-to` ask for."""
    for flag, names in ((flag_of(name), codes(options)) for name, codes in NUMBER_CODES.items()):
        for name in names:
            source.check_column(name)
            if not _is_numeric(records.column(name), source.missing_codes_of(name)):
                raise InputError(
                    f'option {flag} names column "{name}", which does not hold numbers; name another.',
                    option=flag,
                    column=name,
                )
    for name in {name: None for codes in NUMBER_CODES.values() for name in codes(options)}:
        place = records.column_names.index(name)
        records = records.set_column(
            place, name, _coded(records.column(name), name, source.missing_codes_of(name), options)
        )
    return records


def done_to(name: str, options: AnonymizeOptions) -> str:
    """What is done to a column that travels along, in words.

    Examples
    --------
    >>> done_to("pay", AnonymizeOptions(quasi=("age",), top_code={"pay": 200000.0}, round_to={"pay": 100.0}))
    'rounded to multiples of 100, top-coded at 200000'
    >>> done_to("sex", AnonymizeOptions(quasi=("age",)))
    'unchanged'
    """
    told = [
        f"{words} {codes[name]:.15g}"
        for words, codes in (
            ("rounded to multiples of", options.round_to),
            ("bottom-coded at", options.bottom_code),
            ("top-coded at", options.top_code),
        )
        if name in codes
    ]
    return ", ".join(told) or "unchanged"


def _coded(column: pa.ChunkedArray, name: str, codes: Sequence[str], options: AnonymizeOptions) -> pa.Array:
    """One column, of whole numbers where it stays whole; text stays text, and what stands for missing is left empty."""
    values = _numbers(column, codes)
    if name in options.round_to:
        step = options.round_to[name]
        n_decimals = max(0, -int(Decimal(repr(step)).normalize().as_tuple().exponent))
        values = np.round(np.rint(values / step) * step, n_decimals)
    values = np.clip(values, options.bottom_code.get(name, -np.inf), options.top_code.get(name, np.inf))
    missing = np.isnan(values)
    is_whole = bool((values[~missing] == np.floor(values[~missing])).all())
    numbers = pa.array(
        np.where(missing, 0, values).astype(np.int64 if is_whole else np.float64), mask=missing
    )
    return numbers.cast(pa.string()) if _is_text(column) else numbers


def _numbers(column: pa.ChunkedArray, missing: Sequence[str]) -> Floats:
    if missing:
        is_code = pc.is_in(column.cast(pa.string()), value_set=pa.array(missing, pa.string()))
        column = pc.if_else(is_code, pa.scalar(None, column.type), column)
    if _is_text(column):
        trimmed = pc.utf8_trim_whitespace(column.cast(pa.string()))
        column = pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, pa.string()), trimmed)
    numbers: Floats = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.array(numbers, np.float64)


def _is_text(column: pa.ChunkedArray) -> bool:
    return bool(pa.types.is_string(column.type) or pa.types.is_large_string(column.type))


def _is_numeric(column: pa.ChunkedArray, missing: Sequence[str]) -> bool:
    """Whether every value that is not missing, and stands for no missing one, is a number."""
    if not _is_text(column):
        kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
        return any(is_kind(column.type) for is_kind in kinds)
    values = [value for value in pc.unique(column).to_pylist() if value and value not in missing]
    return all(NUMBER.fullmatch(value.strip()) for value in values)
