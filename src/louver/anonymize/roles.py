"""Roles of columns: a check for columns without one, codes for numbers published unchanged, and the dictionary of all columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from louver._arrays import Floats
from louver.anonymize.columns import NumericColumn, QuasiColumn, TreeColumn
from louver.anonymize.options import NUMBER_CODES, AnonymizeOptions, flag_of
from louver.data.coded import coded_column, read_coded
from louver.data.coding import NUMBER
from louver.data.dependencies import find_dependencies
from louver.data.kinds import LIKE_A_UNIT, ColumnKind, guess_kind, may_be_unit, why_telling
from louver.data.read import Source
from louver.errors import InputError
from louver.run import Run
from louver.schema.attribute import Attribute, Kind

__all__ = ["NumberCoding", "check_roles", "dictionary", "done_to", "dropped", "unchanged"]

EXACT_DATES = "exact dates, which others may know"


def dropped(options: AnonymizeOptions) -> tuple[str, ...]:
    """Columns that are not published: identifying ones, the column of units, a person key, and a sampling weight that is not kept."""
    published = {*options.keep, *options.sensitive, None}
    others = [name for name in (options.unit, options.link, options.sampling_weight) if name not in published]
    return tuple(dict.fromkeys([*options.identifying, *(name for name in others if name is not None)]))


def unchanged(columns: Sequence[str], options: AnonymizeOptions) -> tuple[str, ...]:
    """Columns that are published as they are, in the order of the source."""
    changed = {*options.quasi, *dropped(options)}
    return tuple(name for name in columns if name not in changed)


def check_roles(source: Source, records: pa.Table, options: AnonymizeOptions, run: Run) -> None:
    """Refuse to publish columns without a role that single people out or determine a quasi-identifier.

    Parameters
    ----------
    source : Source
    records : Table
        All columns, with numbers already rounded and cut off as they are published.
    options : AnonymizeOptions
    run : Run

    Notes
    -----
    The thresholds are those of `louver.data.kinds` and `louver.data.dependencies`, which `louver profile` uses too. A column that is
    rounded or cut off is judged by its published values, since nobody sees more; if these are still nearly unique, it is refused.
    """
    listed = {*options.sensitive, *options.keep}
    names = [name for name in unchanged(source.columns, options) if name not in listed]
    if not names:
        return
    as_published = {name for codes in NUMBER_CODES.values() for name in codes(options)}
    coded = [
        coded_column(column.name, records[column.name]) if column.name in as_published else column
        for column in read_coded(source, [*names, *options.quasi], run)
    ]
    others, quasi = coded[: len(names)], coded[len(names) :]
    found: dict[str, list[str]] = {}
    telling, kinds = {}, {column.name: guess_kind(column)[0] for column in others}
    for column in others:
        reason = why_telling(column, kinds[column.name])
        if reason is None and kinds[column.name] is ColumnKind.DATE and column.n_values > 1:
            reason = EXACT_DATES
        if reason is not None:
            telling[column.name] = reason
    numbers = [c for c in others if c.name not in telling and may_be_unit(c, kinds[c.name])]
    if numbers:
        rest = [name for name in source.columns if name not in {*names, *options.quasi}]
        every = [*coded, *(read_coded(source, rest, run) if rest else ())]
        for column in numbers:
            of = [other for other in every if other.name != column.name]
            if find_dependencies([column], run, of=of):
                telling[column.name] = LIKE_A_UNIT
    for dependency in find_dependencies([c for c in others if c.name not in telling], run, of=quasi):
        telling.setdefault(dependency.determinant, f'determines "{dependency.dependent}"')
    for name in names:
        if name in telling:
            found.setdefault(telling[name], []).append(f'"{name}"')
    if found:
        listed_columns = "; ".join(f"{', '.join(columns)} ({reason})" for reason, columns in found.items())
        households = "in --unit if it numbers households, " if LIKE_A_UNIT in found else ""
        raise InputError(
            f"{source.name} has columns without a role that may identify people: {listed_columns}; name each "
            f"{households}in --identifying to "
            "drop it, in --quasi to generalise it, or in --sensitive or --keep to publish it unchanged.",
            file=source.name,
            column=next(iter(telling)),
            option="--keep",
        )


SCHEMA = pa.schema([(name, pa.string()) for name in ("name", "role", "kind", "done")])


def dictionary(
    names: Sequence[str],
    attributes: Sequence[Attribute],
    columns: Sequence[QuasiColumn],
    published: pa.Schema,
    options: AnonymizeOptions,
) -> pa.Table:
    """One line for each column of the source, under its name; quasi-identifiers are given as attributes and columns."""
    quasi = {
        attribute.name: _quasi(attribute, column)
        for attribute, column in zip(attributes, columns, strict=True)
    }
    lines = []
    for name in names:
        if name in quasi:
            role, (kind, done) = "quasi", quasi[name]
        elif name in dropped(options):
            role, kind, done = _role_of_dropped(name, options), "", "dropped"
        else:
            role = "sensitive" if name in options.sensitive else "keep"
            kind, done = kind_of(published.field(name).type), done_to(name, options)
        lines.append({"name": name, "role": role, "kind": kind, "done": done})
    return pa.Table.from_pylist(lines, SCHEMA)


def kind_of(kind: pa.DataType) -> str:
    """The kind of a column in words, by its type.

    Examples
    --------
    >>> kind_of(pa.int8()), kind_of(pa.date32()), kind_of(pa.string())
    ('whole number', 'date', 'text')
    """
    for is_kind, name in (
        (pa.types.is_integer, "whole number"),
        (pa.types.is_floating, "number"),
        (pa.types.is_decimal, "number"),
        (pa.types.is_boolean, "truth value"),
        (pa.types.is_temporal, "date"),
    ):
        if is_kind(kind):
            return name
    return "text"


def _quasi(attribute: Attribute, column: QuasiColumn) -> tuple[str, str]:
    """The kind of a quasi-identifier, and how it was generalised."""
    if isinstance(column, NumericColumn):
        return ("ordered" if attribute.labels else "number"), "generalised to intervals"
    if attribute.kind is Kind.DATE and isinstance(column, TreeColumn):
        return "date", "generalised to months, quarters, years or decades"
    if isinstance(column, TreeColumn):
        return "hierarchy", "generalised along the hierarchy"
    return "category", "generalised to sets"


def _role_of_dropped(name: str, options: AnonymizeOptions) -> str:
    if name in options.identifying:
        return "identifying"
    return "unit" if name == options.unit else "weight"


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberCoding:
    """The numbers that `--top-code`, `--bottom-code` and `--round-to` publish for those of the source.

    Attributes
    ----------
    published : mapping of str to (Array, Array)
        For each coded column its distinct values, and what is published for each.
    """

    published: Mapping[str, tuple[pa.Array, pa.Array]]

    @classmethod
    def of(
        cls,
        source: Source,
        options: AnonymizeOptions,
        columns: Sequence[str],
        values_of: Callable[[str], pa.ChunkedArray],
    ) -> NumberCoding:
        """Code the distinct values of the columns; `values_of` gives the values of one, each at least once."""
        for flag, names in ((flag_of(name), codes(options)) for name, codes in NUMBER_CODES.items()):
            for name in names:
                source.check_column(name)
                if not _is_numeric(values_of(name), source.missing_codes_of(name)):
                    raise InputError(
                        f'option {flag} names column "{name}", which does not hold numbers; name another.',
                        option=flag,
                        column=name,
                    )
        published = {}
        for name in {name: None for codes in NUMBER_CODES.values() for name in codes(options)}:
            values = pc.unique(values_of(name))
            coded = _coded(pa.chunked_array([values]), name, source.missing_codes_of(name), options)
            published[name] = (values, coded)
        return cls(published={name: published[name] for name in columns if name in published})

    def apply(self, table: pa.Table) -> pa.Table:
        """The records, with their numbers replaced by the published ones."""
        for name, (values, coded) in self.published.items():
            place = table.column_names.index(name)
            table = table.set_column(
                place, name, coded.take(pc.index_in(table.column(name), value_set=values))
            )
        return table


def done_to(name: str, options: AnonymizeOptions) -> str:
    """What is done to a column that is otherwise published unchanged, in words.

    Examples
    --------
    >>> done_to("pay", AnonymizeOptions(quasi=("age",), top_code={"pay": 200000.0}, round_to={"pay": 100.0}))
    'rounded to multiples of 100, top-coded at 200000'
    >>> done_to("sex", AnonymizeOptions(quasi=("age",)))
    'unchanged'
    """
    steps = [
        f"{words} {codes[name]:.15g}"
        for words, codes in (
            ("rounded to multiples of", options.round_to),
            ("bottom-coded at", options.bottom_code),
            ("top-coded at", options.top_code),
        )
        if name in codes
    ]
    return ", ".join(steps) or "unchanged"


def _coded(column: pa.ChunkedArray, name: str, codes: Sequence[str], options: AnonymizeOptions) -> pa.Array:
    """One column, with whole numbers if its values remain whole; text remains text, and codes for missing values become empty."""
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
    """Whether every value that is not missing, or declared to be missing, is a number."""
    if not _is_text(column):
        kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
        return any(is_kind(column.type) for is_kind in kinds)
    values = [value for value in pc.unique(column).to_pylist() if value and value not in missing]
    return all(NUMBER.fullmatch(value.strip()) for value in values)
