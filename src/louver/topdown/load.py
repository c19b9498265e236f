"""From a spec to a `Design`: the list of leaves and the public tables are read, and every part is checked against the others."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from louver._arrays import Bools, Floats, Ints
from louver.data.coding import text_sql
from louver.data.read import open_source
from louver.data.regions import RegionTree
from louver.data.tabulate import read_text
from louver.errors import InputError
from louver.privacy.budget import Measure, fraction_of
from louver.privacy.neighbours import Relation, check_filter
from louver.release.manifest import file_entry
from louver.run import Run
from louver.schema.attribute import Attribute
from louver.schema.recode import Recode
from louver.schema.spec import Spec, as_spec
from louver.schema.validate import validated
from louver.topdown.knowledge.implied import UNBOUNDED
from louver.topdown.options import (
    BoundOptions,
    CovariateOptions,
    GeographyOptions,
    InvariantOptions,
    PublishedOptions,
    SharesOptions,
    TopDownOptions,
)
from louver.topdown.planning.shares import with_shares
from louver.topdown.problem import DETAILED, Covariate, Design, Query, Statement
from louver.topdown.spine.areas import read_area_kinds
from louver.topdown.spine.arrange import ArrangedSpine, arrange
from louver.topdown.spine.forecast import default_shares

__all__ = [
    "SpecLike",
    "build_queries",
    "cell_set",
    "read_design",
    "read_first_design",
    "read_shares",
]

QUERY_NAME = re.compile(r"[A-Za-z0-9_-]+")  # queries name files
TABLE_COLUMNS = {"level", "region", "count"}

EVERYBODY = "all"
"""Name of the only level, and of its only region, in a spec without geography."""

ONE_REGION = RegionTree(names=(EVERYBODY,), codes=((EVERYBODY,),), leaf_labels=((),), starts=())

SpecLike = str | Path | Mapping[str, Any] | Spec


def read_design(
    given: SpecLike,
    data: Any = None,
    model: type[TopDownOptions] = TopDownOptions,
    run: Run | None = None,
    *,
    noted: SharesOptions | None = None,
) -> Design:
    """Read a spec with a `[topdown]` section, its list of leaves and its public tables.

    Parameters
    ----------
    given : path, mapping or Spec
    data : path, uri or dataframe, optional
        The records, in place of the spec's source.
    model : type of options
        Model of the `[topdown]` section.
    run : Run, optional
        Checked for cancellation while reading.
    noted : SharesOptions, optional
        For a spec without shares: the shares chosen when it was measured; by default they are chosen here, for the workload "even".

    Raises
    ------
    InputError
        One sentence that names file and key.
    """
    spec = as_spec(given)
    records = spec.data if data is None else data
    where = f"{spec.path.name} [topdown]"
    options = validated(model, spec.options("topdown"), where)
    check_filter(spec.source.where, Relation(options.neighbours))
    attributes = _cell_attributes(spec, options, where)
    if options.geography is None:
        spine = ONE_REGION
    else:
        spine = _read_spine(spec, records, options.geography, where, run)
    arrangement = _arrangement(spec, records, options, spine, where, run)
    if arrangement is not None:
        spine = arrangement.spine
    queries, query_attributes = build_queries(options, attributes, where)
    shares = options.shares or noted
    published = options.published
    level_shares: tuple[Fraction, ...] = ()
    query_shares: tuple[Mapping[str, Fraction], ...] = ()
    if published is not None:
        level_shares, query_shares = _published_shares(published, spine, queries, where)
    elif shares is not None:
        level_shares, query_shares = read_shares(
            shares, spine, queries, where, needs_detailed=options.needs_detailed
        )
    codes = _cell_codes(attributes)
    everything = replace(spec.schema, attributes=attributes, recodes=(), hierarchy_rules={})
    is_possible = ~everything.is_structural_zero(codes)
    if not is_possible.any():
        raise InputError(
            f"{spec.path.name}: all cells are structural zeros; leave some cells possible.",
            file=spec.path.name,
        )
    statements = [
        _invariant(one, spine, attributes, f'{where}: key "invariants[{number}]"', arrangement)
        for number, one in enumerate(options.invariants, start=1)
    ]
    tables = _SideTables(options.geography, run)
    statements += [
        _bound(one, spec, records, tables, spine, attributes, f'{where}: key "bounds[{number}]"')
        for number, one in enumerate(options.bounds, start=1)
    ]
    covariates = tuple(
        _covariate(one, spec, records, tables, spine, attributes, f'{where}: key "covariates[{number}]"')
        for number, one in enumerate(options.covariates, start=1)
    )
    names = [statement.name for statement in statements]
    if len(set(names)) < len(names):
        raise InputError(f"{where}: two invariants or bounds have the same name; rename one.", option="name")
    design = Design(
        spec=spec,
        data=records,
        is_own_file=data is None and spec.source.file is not None,
        options=options.model_copy(update={"shares": shares}),
        attributes=attributes,
        is_possible=is_possible,
        spine=spine,
        queries=queries,
        query_attributes=query_attributes,
        level_shares=level_shares,
        query_shares=query_shares,
        statements=tuple(statements),
        budget=options.budget(where),
        covariates=covariates,
        has_chosen_shares=options.shares is None and published is None,
        arrangement=arrangement,
    )
    if shares is None and published is None:
        return with_shares(design, default_shares(design))
    return design


def read_first_design(
    given: SpecLike, data: Any = None, run: Run | None = None, *, noted: SharesOptions | None = None
) -> Design:
    """Read a TopDown spec, and the bounds of the spec that will extend it, if it names one; parameters as for `read_design`."""
    design = read_design(given, data, run=run, noted=noted)
    if design.options.extended_by is None:
        return design
    # The extension is imported only for a spec that will be extended.
    from louver.topdown.extension.project import project_extension

    return project_extension(design, run)


def _cell_attributes(spec: Spec, options: TopDownOptions, where: str) -> tuple[Attribute, ...]:
    """All attributes of the spec except the regions, as they are counted, each with its list of labels."""
    regions = set() if options.geography is None else set(options.geography.region_columns)
    for recode in spec.schema.recodes:
        if recode.attribute in regions:
            message = (
                f'{where}: column "{recode.attribute}" is a region and cannot have merge, bins or level.'
            )
            raise InputError(message, column=recode.attribute, option="geography")
    attributes = tuple(attribute for attribute in spec.schema.coded if attribute.name not in regions)
    if not attributes:
        suffix = " besides the regions" if regions else ""
        raise InputError(f"{where} needs at least one attribute{suffix}.", option="attributes")
    for attribute in attributes:
        if not attribute.labels:
            message = (
                f'{where}: attribute "{attribute.name}" needs its labels in the spec; domains are public.'
            )
            raise InputError(message, column=attribute.name, option="labels")
    most = options.most_cells
    if prod(attribute.size for attribute in attributes) > most:
        raise InputError(f"{where}: there are more than {most:,} cells; use coarser attributes.")
    return attributes


def _cell_codes(attributes: Sequence[Attribute]) -> Ints:
    """Codes of every cell, the last attribute fastest."""
    grids = np.indices([attribute.size for attribute in attributes])
    return grids.reshape(len(attributes), -1).T.astype(np.int64)


def _read_spine(
    spec: Spec, records: Any, geography: GeographyOptions, where: str, run: Run | None
) -> RegionTree:
    """The tree of regions from the public list of leaves."""
    is_coded = geography.column is not None and geography.prefixes is not None
    if is_coded == (geography.columns is not None):
        message = f'{where}: key "geography" needs either column with prefixes, or columns.'
        raise InputError(message, option="geography")
    columns = geography.region_columns
    if geography.columns is not None and len(columns) != len(geography.levels):
        message = f'{where}: key "geography.columns" needs one column for each of the {len(geography.levels)} levels.'
        raise InputError(message, option="geography.columns")
    path = _public_file(spec, records, geography.leaves, f'{where}: key "geography.leaves"')
    try:
        if geography.prefixes is not None:
            codes = _read_column(path, columns[0], run).to_pylist()
            return RegionTree.from_prefixes(codes, geography.levels, geography.prefixes)
        return RegionTree.from_columns(_read_rows(path, columns, run), geography.levels)
    except InputError as error:
        message = f"{Path(geography.leaves).name}: {error}"
        raise InputError(message, file=geography.leaves, row=error.row, option=error.option) from None


def _arrangement(
    spec: Spec, records: Any, options: TopDownOptions, tree: RegionTree, where: str, run: Run | None
) -> ArrangedSpine | None:
    """The spine arranged for areas, where the spec names any."""
    given = options.spine
    if given is None:
        return None
    if options.geography is None or options.published is not None:
        message = f'{where}: key "spine" arranges regions, and this spec has none to arrange; leave it out.'
        raise InputError(message, option="spine")
    if given.fixed is not None and given.fixed not in tree.names[:-1]:
        message = f'{where}: key "spine.fixed" names no level above the leaves; correct it.'
        raise InputError(message, option="spine.fixed")
    fixed = 0 if given.fixed is None else tree.names.index(given.fixed)
    names = given.levels or [f"part {n}" for n in range(1, max(tree.n_levels - 1 - fixed, 2))]
    if len(set(names)) < len(names) or set(names) & set(tree.names):
        message = f'{where}: key "spine.levels" needs names that differ from each other and from levels of the geography.'
        raise InputError(message, option="spine.levels")
    path = _public_file(spec, records, given.areas, f'{where}: key "spine.areas"')
    kinds = read_area_kinds(path, tree, run, tree.names)
    power = 2 if options.budget(where).measure is Measure.EPSILON else 1
    return arrange(tree, fixed, kinds, names, tolerance=given.tolerance, power=power, run=run)


def _public_file(spec: Spec, records: Any, name: str, place: str) -> Path:
    """A file with public content; the confidential records are not such a file."""
    path = spec.path.parent / name
    sources = [Path(source) for source in (records, spec.data) if isinstance(source, str | Path)]
    if path.exists() and any(source.exists() and path.samefile(source) for source in sources):
        message = f"{place} names the confidential source; write the public columns to a separate file."
        raise InputError(message, file=path.name, option=place)
    return path


def _read_rows(path: Path, columns: Sequence[str], run: Run | None) -> list[tuple[str, ...]]:
    """Rows of a public file as text; no value may be missing."""
    with open_source(path, run=run) as source:
        rows = read_text(source, columns)
    complete: list[tuple[str, ...]] = []
    for number, row in enumerate(rows, start=1):
        for column, value in zip(columns, row, strict=True):
            if value is None:
                message = f'column "{column}" in {path.name} has no value on row {number}; fill it in.'
                raise InputError(message, file=path.name, column=column, row=number)
        complete.append(tuple(str(value) for value in row))
    return complete


def _read_column(path: Path, column: str, run: Run | None) -> pa.Array:
    """A column of a public file as text; no value may be missing."""
    with open_source(path, run=run) as source:
        sql = f"SELECT {text_sql(source, column)} FROM records"
        parts = [batch.column(0).cast(pa.string()) for batch in source.batches(sql)]
    found = pa.chunked_array(parts, pa.string()).combine_chunks()
    if found.null_count:
        number = pc.index(found.is_null(), True).as_py() + 1
        message = f'column "{column}" in {path.name} has no value on row {number}; fill it in.'
        raise InputError(message, file=path.name, column=column, row=number)
    return found


def build_queries(
    options: TopDownOptions, attributes: Sequence[Attribute], where: str
) -> tuple[tuple[Query, ...], tuple[tuple[Attribute, ...], ...]]:
    """The named marginals and the query for all cells, with the meaning of their rows."""
    codes = _cell_codes(attributes)
    names = [attribute.name for attribute in attributes]
    queries, meanings = [], []
    for name, given in options.queries.items():
        place = f'{where}: key "queries.{name}"'
        if name == DETAILED:
            raise InputError(
                f"{place} is the name of the query for all cells; choose another.", option=f"queries.{name}"
            )
        if not QUERY_NAME.fullmatch(name):
            message = (
                f'{where}: key "queries" has a name that is not made of letters, digits, - and _; rename it.'
            )
            raise InputError(message, option="queries")
        if not TABLE_COLUMNS.isdisjoint(given.attributes):
            message = f"{place} has an attribute named level, region or count, as columns of its table are; rename it."
            raise InputError(message, option=place)
        row_of = np.zeros(len(codes), dtype=np.int64)
        n_rows = 1
        meaning = []
        for attribute_name in given.attributes:
            if attribute_name not in names:
                raise InputError(f"{place} names an attribute that the spec does not have.", option=place)
            axis = names.index(attribute_name)
            attribute, mapping = attributes[axis], np.arange(attributes[axis].size)
            if attribute_name in given.merge:
                merge = {new: tuple(old) for new, old in given.merge[attribute_name].items()}
                attribute, mapping = attribute.recoded(Recode(attribute_name, merge=merge))
            row_of = row_of * attribute.size + mapping[codes[:, axis]]
            n_rows *= attribute.size
            meaning.append(attribute)
        if not set(given.merge) <= set(given.attributes):
            raise InputError(f"{place} merges an attribute that it does not list.", option=place)
        if len(set(given.attributes)) < len(given.attributes):
            raise InputError(f"{place} lists an attribute twice.", option=place)
        axes = None if given.merge else tuple(names.index(one) for one in given.attributes)
        queries.append(Query(name=name, row_of=row_of, n_rows=n_rows, axes=axes))
        meanings.append(tuple(meaning))
    if len({name.casefold() for name in options.queries}) < len(options.queries):
        message = f'{where}: key "queries" has two names that differ only in case; rename one.'
        raise InputError(message, option="queries")
    axes = tuple(range(len(attributes)))
    detailed = Query(name=DETAILED, row_of=np.arange(len(codes)), n_rows=len(codes), axes=axes)
    return (*queries, detailed), (*meanings, tuple(attributes))


def read_shares(
    given: SharesOptions,
    spine: RegionTree,
    queries: Sequence[Query],
    where: str,
    *,
    needs_detailed: bool = True,
) -> tuple[tuple[Fraction, ...], tuple[Mapping[str, Fraction], ...]]:
    """Exact shares, which must sum to one (ERRATA T1)."""
    if set(given.levels) != set(spine.names):
        raise InputError(f'{where}: key "shares.levels" must name every level once.', option="shares.levels")
    levels = {
        name: fraction_of(share, f'{where}: key "shares.levels.{name}"')
        for name, share in given.levels.items()
    }
    _check_sum(levels, f'{where}: key "shares.levels"')
    known = {query.name for query in queries}
    by_level = []
    for level in given.at:
        if level not in spine.names:
            raise InputError(f'{where}: key "shares.at.{level}" names no level.', option="shares.at")
    for level in spine.names:
        key = f"shares.at.{level}" if level in given.at else "shares.queries"
        chosen = given.at.get(level, given.queries)
        shares = {}
        for name, share in chosen.items():
            if name not in known:
                raise InputError(f'{where}: key "{key}.{name}" names no query.', option=key)
            shares[name] = fraction_of(share, f'{where}: key "{key}.{name}"')
        _check_sum(shares, f'{where}: key "{key}"')
        if needs_detailed and DETAILED not in shares:
            raise InputError(f'{where}: key "{key}" needs a share for "{DETAILED}".', option=key)
        by_level.append(shares)
    return tuple(levels[name] for name in spine.names), tuple(by_level)


def _published_shares(
    published: PublishedOptions, spine: RegionTree, queries: Sequence[Query], where: str
) -> tuple[tuple[Fraction, ...], tuple[Mapping[str, Fraction], ...]]:
    """Shares implied by the published variances; a level that was not measured has none."""
    losses = published.losses(where)
    key = f'{where}: key "published.variances"'
    if not set(losses) <= set(spine.names):
        raise InputError(f"{key} names no level of the geography.", option="published")
    names = [query.name for query in queries]
    if any(not set(own) <= set(names) for own in losses.values()):
        raise InputError(f"{key} names no query.", option="published")
    if any(own and DETAILED not in own for own in losses.values()):
        raise InputError(f'{key} needs "{DETAILED}" at every level that was measured.', option="published")
    by_level = [
        {name: losses[level][name] for name in names if name in losses.get(level, {})}
        for level in spine.names
    ]
    if not by_level[-1]:
        raise InputError(f"{key} needs the leaves, but they were not measured.", option="published")
    sums = [sum(own.values(), Fraction(0)) for own in by_level]
    query_shares = tuple(
        {name: loss / held for name, loss in own.items()} for own, held in zip(by_level, sums, strict=True)
    )
    return tuple(held / sum(sums) for held in sums), query_shares


def _check_sum(shares: Mapping[str, Fraction], place: str) -> None:
    total = sum(shares.values(), Fraction(0))
    if total != 1:
        message = f"{place} sums to {total}, not to 1; write shares as fractions such as 1/3."
        raise InputError(message, option="shares")


def cell_set(labels: Mapping[str, Sequence[str]], attributes: Sequence[Attribute], place: str) -> Bools:
    """Cells that have one of the given labels in every attribute named; all cells if none is named."""
    names = [attribute.name for attribute in attributes]
    inside = np.ones([attribute.size for attribute in attributes], dtype=np.bool_)
    for name, wanted in labels.items():
        if name not in names:
            raise InputError(f"{place} names an attribute that the spec does not have.", option="cells")
        axis = names.index(name)
        for position, label in enumerate(wanted, start=1):
            if not attributes[axis].has_label(label):
                message = f'{place} lists label {position} for "{name}", which has no such label.'
                raise InputError(message, column=name, option="cells")
        is_wanted = np.zeros(attributes[axis].size, dtype=np.bool_)
        is_wanted[[attributes[axis].code_of(label) for label in wanted]] = True
        inside &= is_wanted.reshape([-1 if a == axis else 1 for a in range(len(names))])
    return inside.ravel()


def _invariant(
    given: InvariantOptions,
    spine: RegionTree,
    attributes: Sequence[Attribute],
    place: str,
    arrangement: ArrangedSpine | None,
) -> Statement:
    known = set(spine.names) if arrangement is None else set(arrangement.geographic.names)
    if given.level in known - set(spine.names):
        message = f"{place} is about regions that the spine rearranges; let the spine begin below them, by its key fixed."
        raise InputError(message, option="level")
    if given.level not in known:
        raise InputError(f"{place} names no level of the geography.", option="level")
    nothing = np.zeros(0, dtype=np.int64)
    return Statement(
        name=given.name,
        level=spine.level_of(given.level),
        cells=cell_set(given.cells, attributes, place),
        labels={name: tuple(labels) for name, labels in given.cells.items()},
        lower=nothing,
        upper=nothing,
    )


def _bound(
    given: BoundOptions,
    spec: Spec,
    records: Any,
    tables: _SideTables,
    spine: RegionTree,
    attributes: Sequence[Attribute],
    place: str,
) -> Statement:
    """Bounds for every leaf from a public table."""
    if (given.facilities is None) == (given.lower is None and given.upper is None):
        raise InputError(f"{place} needs either facilities, or lower, upper or both.", option="bounds")
    table = tables.read(_public_file(spec, records, given.file, place), spine)
    if given.facilities is not None:
        lower = table.column(given.facilities)
        upper = np.where(lower > 0, UNBOUNDED, 0)
    else:
        lower = table.values(given.lower, 0)
        upper = table.values(given.upper, UNBOUNDED)
    if (lower > upper).any():
        row = table.row_of(int(np.flatnonzero(lower > upper)[0]))
        message = f"{place}: {table.name} has a lower bound above the upper one on row {row}; correct it."
        raise InputError(message, file=table.name, row=row)
    return Statement(
        name=given.name,
        level=spine.n_levels - 1,
        cells=cell_set(given.cells, attributes, place),
        labels={name: tuple(labels) for name, labels in given.cells.items()},
        lower=lower,
        upper=upper,
    )


def _covariate(
    given: CovariateOptions,
    spec: Spec,
    records: Any,
    tables: _SideTables,
    spine: RegionTree,
    attributes: Sequence[Attribute],
    place: str,
) -> Covariate:
    """A public number of every leaf, from the list of leaves or from another table."""
    file = given.file or (tables.geography.leaves if tables.geography is not None else None)
    if file is None:
        raise InputError(
            f"{place} needs a geography; with one region there is nothing to divide.", option="covariates"
        )
    table = tables.read(_public_file(spec, records, file, place), spine)
    return Covariate(
        column=given.column,
        file=file,
        sha256=file_entry(table.path).sha256,
        cells=cell_set(given.cells, attributes, place),
        values=table.amounts(given.column),
    )


@dataclass(slots=True)
class _SideTables:
    """The public tables of a spec, each read once."""

    geography: GeographyOptions | None
    run: Run | None
    known: dict[Path, _SideTable] = field(default_factory=dict)

    def read(self, path: Path, spine: RegionTree) -> _SideTable:
        if path not in self.known:
            self.known[path] = _SideTable.read(path, self.geography, spine, self.run)
        return self.known[path]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _SideTable:
    """A public table with one row per leaf, in the order of the spine's leaves."""

    name: str
    path: Path
    order: Ints  # row of the file for each leaf
    run: Run | None

    @classmethod
    def read(
        cls, path: Path, geography: GeographyOptions | None, spine: RegionTree, run: Run | None
    ) -> _SideTable:
        leaf = cls._leaves(path, geography, spine, run)
        unknown = np.flatnonzero(leaf < 0)
        if len(unknown):
            row = int(unknown[0]) + 1
            message = f"{path.name} names a region on row {row} that is not in the list of leaves."
            raise InputError(message, file=path.name, row=row)
        _, first = np.unique(leaf, return_index=True)
        if len(first) < len(leaf):
            row = int(np.setdiff1d(np.arange(len(leaf)), first)[0]) + 1
            message = f"{path.name} has a leaf twice, on row {row}; give each leaf one row."
            raise InputError(message, file=path.name, row=row)
        order = np.full(spine.sizes[-1], -1, dtype=np.int64)
        order[leaf] = np.arange(len(leaf))
        if (order < 0).any():
            message = f"{path.name} has no row for some of the leaves; give each leaf one row."
            raise InputError(message, file=path.name)
        return cls(name=path.name, path=path, order=order, run=run)

    @staticmethod
    def _leaves(path: Path, geography: GeographyOptions | None, spine: RegionTree, run: Run | None) -> Ints:
        """The leaf that each row of a file refers to, -1 if none; without a geography, a row refers to all people."""
        if geography is None:
            with open_source(path, run=run) as source:
                return np.zeros(source.read_all().num_rows, dtype=np.int64)
        if geography.columns is None:
            codes = _read_column(path, geography.column or "", run)
            found = pc.index_in(codes, value_set=pa.array(spine.leaves, pa.string()))
            return np.asarray(np.from_dlpack(pc.fill_null(found, -1)), dtype=np.int64)
        place = {labels: leaf for leaf, labels in enumerate(spine.leaf_labels)}
        rows = _read_rows(path, geography.columns, run)
        return np.array([place.get(row, -1) for row in rows], dtype=np.int64)

    def row_of(self, leaf: int) -> int:
        """Row of a leaf, counted from 1."""
        return int(self.order[leaf]) + 1

    def values(self, given: int | str | None, default: int) -> Ints:
        """A constant, a column, or a default for all leaves."""
        if isinstance(given, str):
            return self.column(given)
        return np.full(len(self.order), default if given is None else given, dtype=np.int64)

    def column(self, name: str) -> Ints:
        """Whole numbers of zero or more, leaf by leaf."""
        texts = _read_column(self.path, name, self.run)
        is_number = pc.match_substring_regex(texts, "^0*[0-9]{1,12}$")
        if not pc.all(is_number).as_py():
            return self._odd_column(name, texts.to_pylist())
        values = np.asarray(np.from_dlpack(texts.cast(pa.int64())), dtype=np.int64)
        return values[self.order]

    def amounts(self, name: str) -> Floats:
        """Numbers of zero or more, leaf by leaf."""
        texts = _read_column(self.path, name, self.run)
        is_number = pc.match_substring_regex(texts, r"^[0-9]{1,12}(\.[0-9]{1,12})?$")
        if not pc.all(is_number).as_py():
            number = pc.index(is_number, False).as_py() + 1
            message = (
                f'column "{name}" in {self.name} is not a number of zero or more on row {number}; correct it.'
            )
            raise InputError(message, file=self.name, column=name, row=number)
        values = np.asarray(np.from_dlpack(texts.cast(pa.float64())), dtype=np.float64)
        return values[self.order]

    def _odd_column(self, name: str, texts: list[str]) -> Ints:
        """The same for values that are not numbers of the usual length and size."""
        for number, text in enumerate(texts, start=1):
            if not text.isdecimal() or int(text) >= UNBOUNDED:
                message = f'column "{name}" in {self.name} is not a whole number on row {number}; correct it.'
                raise InputError(message, file=self.name, column=name, row=number)
        return np.array([int(text) for text in texts], dtype=np.int64)[self.order]
