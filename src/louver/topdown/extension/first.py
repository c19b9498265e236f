"""The release that is extended: it is verified, counted, and checked to be a coarser view of the larger schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from louver._arrays import Bools, Ints
from louver.errors import InputError
from louver.release.first import read_first_manifest, topdown_promise
from louver.release.manifest import MANIFEST, Manifest, is_plain, read_content
from louver.run import Run
from louver.schema.attribute import Attribute
from louver.schema.validate import validated
from louver.topdown.extension.options import ExtendOptions
from louver.topdown.knowledge.implied import UNBOUNDED
from louver.topdown.load import build_queries, cell_set, read_shares
from louver.topdown.measuring.noise_plan import QueryPlan, make_plan
from louver.topdown.options import TopDownOptions
from louver.topdown.problem import Design, SparseLevel, Statement
from louver.topdown.result import MEASUREMENTS_FILE, MICRODATA_FILE, STATEMENTS_FILE
from louver.topdown.spine.arrange import spine_table

__all__ = ["FirstRelease", "Refinement", "plan_of_first", "read_first", "refinement_of"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FirstRelease:
    """The parts of a release that an extension needs.

    Parameters
    ----------
    path : Path
    manifest : Manifest
    digest : str
        The manifest's own hash, which covers all files.
    attributes : mapping of str to tuple of str
        Labels of each attribute.
    leaves : SparseLevel
        People of every leaf by cell of the first release.
    """

    path: Path
    manifest: Manifest
    digest: str
    attributes: Mapping[str, tuple[str, ...]]
    leaves: SparseLevel

    @property
    def n_cells(self) -> int:
        """Cells of the first release."""
        return prod(map(len, self.attributes.values()))

    def in_words(self, cell: int) -> str:
        """A cell by its labels."""
        codes = np.unravel_index(cell, [len(labels) for labels in self.attributes.values()])
        pairs = zip(self.attributes.items(), codes, strict=True)
        return ", ".join(f"{name} {labels[code]}" for (name, labels), code in pairs)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Refinement:
    """The first release's view of the larger schema.

    Parameters
    ----------
    source : mapping of str to str
        For each attribute of the first release, the one that stands for it.
    labels : mapping of str to mapping
        For each attribute of the first release, its label for each label of the attribute that stands for it.
    class_of : ndarray of int64, shape (cells,)
        Cell of the first release that each cell of the larger schema belongs to.
    """

    source: Mapping[str, str]
    labels: Mapping[str, Mapping[str, str]]
    class_of: Ints


def refinement_of(design: Design, attributes: Mapping[str, Sequence[str]], where: str) -> Refinement:
    """Find the first release's attributes in the larger schema.

    Raises
    ------
    InputError
        If one of them is not there, or the larger schema does not divide its labels.
    """
    assert isinstance(design.options, ExtendOptions)
    refines = design.options.refines
    place = f'{where}: key "refines"'
    own = {attribute.name: attribute.labels for attribute in design.attributes}
    for name in refines:
        if name not in attributes:
            raise InputError(
                f'{place} names "{name}", which the first release does not have.', option="refines"
            )
    source, labels = {}, {}
    for name, old in attributes.items():
        source[name], labels[name] = _view(name, old, own, refines.get(name), place)
    if len(set(source.values())) < len(source):
        raise InputError(f"{place} uses one attribute for two of the first release.", option="refines")
    if set(source.values()) == set(own) and all(len(labels[n]) == len(old) for n, old in attributes.items()):
        raise InputError(
            f"{where} adds no attribute and refines none; there is nothing to extend.", option="extends"
        )
    codes = np.indices(design.shape, sparse=True)
    class_of = np.zeros(design.shape, dtype=np.int64)
    names = [attribute.name for attribute in design.attributes]
    for name, old in attributes.items():
        axis, position = names.index(source[name]), {label: i for i, label in enumerate(old)}
        mapping = np.array([position[labels[name][label]] for label in own[source[name]]])
        class_of = class_of * len(old) + mapping[codes[axis]]
    return Refinement(source=source, labels=labels, class_of=class_of.ravel())


def _view(
    name: str, old: Sequence[str], own: Mapping[str, Sequence[str]], given: Any, place: str
) -> tuple[str, dict[str, str]]:
    """The attribute that stands for an attribute of the first release, and the old label for each of its labels."""
    if given is None:
        if set(own.get(name, ())) != set(old):
            message = (
                f'the larger schema has no attribute "{name}" with the labels of the first release; add it, or say under '
                "[topdown.refines] which finer attribute stands for it."
            )
            raise InputError(message, column=name, option="refines")
        return name, {label: label for label in old}
    if given.attribute not in own:
        raise InputError(
            f'{place}: "{name}" names an attribute that the spec does not have.', option="refines"
        )
    if set(given.merge) != set(old):
        message = f'{place}: "{name}" does not list exactly the labels that the first release has for it.'
        raise InputError(message, column=name, option="refines")
    found = {label: new for new, finer in given.merge.items() for label in finer}
    n_listed = sum(map(len, given.merge.values()))
    if set(found) != set(own[given.attribute]) or n_listed != len(found):
        message = f'{place}: "{name}" does not list every label of "{given.attribute}" once, so that does not refine it.'
        raise InputError(message, column=given.attribute, option="refines")
    return given.attribute, found


def read_first(
    design: Design, *, seeded: bool, where: str, run: Run | None = None
) -> tuple[FirstRelease, Refinement]:
    """Verify the release that a design extends, count its people, and find its attributes in the larger schema.

    Raises
    ------
    InputError
        If it is not a TopDown release, fails its checks, or has other regions.
    """
    assert isinstance(design.options, ExtendOptions)
    path = design.spec.path.parent / design.options.extends
    if not is_plain(path / MANIFEST):
        raise InputError(f'{where}: key "extends" names no release directory.', option="extends")
    manifest = read_first_manifest(path, "extended", "extends", seeded=seeded, run=run)
    promise = topdown_promise(manifest)
    if promise is None:
        raise InputError(
            f"{path.name} is not a TopDown release; extend one.", file=path.name, option="extends"
        )
    if any(one.get("promise") == "extension" for one in manifest.promises):
        message = f"{path.name} is an extension itself; extend the release that it extends, with all attributes at once."
        raise InputError(message, file=path.name, option="extends")
    digest = str(read_content(path)["digest"])
    if design.options.digest not in (None, digest):
        message = f'{path.name} is not the release that key "digest" names; correct one of them.'
        raise InputError(message, file=path.name, option="digest")
    _check_regions(design, path, promise)
    attributes = {name: tuple(labels) for name, labels in promise["attributes"].items()}
    refinement = refinement_of(design, attributes, where)
    first = FirstRelease(
        path=path,
        manifest=manifest,
        digest=digest,
        attributes=attributes,
        leaves=_count(design, path, attributes),
    )
    _check_room(first, refinement, design, where)
    return first, refinement


def _check_regions(design: Design, path: Path, promise: Mapping[str, Any]) -> None:
    """Refuse other levels or leaves."""
    spine, prefixes = design.spine, design.prefixes
    stated = (promise["regions"], promise["prefixes"], promise["levels"])
    nodes = pq.read_table(path / MEASUREMENTS_FILE, columns=["level", "node"])
    leaves = pc.unique(nodes.filter(pc.equal(nodes["level"], promise["levels"][-1]))["node"]).to_pylist()
    own = (list(design.geography_columns), prefixes, list(spine.names))
    if own != stated or sorted(leaves) != sorted(spine.leaves) or not _has_spine(design, path, promise):
        message = f"the geography is not that of {path.name}; an extension has the levels and leaves of what it extends."
        raise InputError(message, file=path.name, option="geography")


def _has_spine(design: Design, path: Path, promise: Mapping[str, Any]) -> bool:
    """Whether regions were arranged for areas in the same way, or in neither of the two."""
    record = promise.get("spine")
    if record is None or design.arrangement is None:
        return record is None and design.arrangement is None
    return bool(pq.read_table(path / record["file"]).equals(spine_table(design.arrangement)))


def _count(design: Design, path: Path, attributes: Mapping[str, Sequence[str]]) -> SparseLevel:
    """People of the first release by leaf and cell."""
    n_cells = prod(map(len, attributes.values()))
    leaves = pa.array(design.spine.leaves, pa.string())
    keys, counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
    with pq.ParquetFile(path / MICRODATA_FILE) as file:
        for batch in file.iter_batches():
            regions = [batch[name].cast(pa.string()) for name in design.geography_columns]
            place = np.zeros(batch.num_rows, np.int64)
            if regions:
                code = regions[0] if len(regions) == 1 else pc.binary_join_element_wise(*regions, "/")
                place = _places(code, leaves)
            for name, labels in attributes.items():
                place = place * len(labels) + _places(
                    batch[name].cast(pa.string()), pa.array(labels, pa.string())
                )
            new, n = np.unique(place, return_counts=True)
            keys, where = np.unique(np.concatenate([keys, new]), return_inverse=True)
            counts = np.bincount(where, np.concatenate([counts, n]), minlength=len(keys)).astype(np.int64)
    start = np.searchsorted(keys // n_cells, np.arange(len(leaves) + 1)).astype(np.int64)
    return SparseLevel(start=start, cell=keys % n_cells, count=counts)


def _places(column: pa.Array, values: pa.Array) -> Ints:
    found: Ints = pc.index_in(column, value_set=values).to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def _check_room(first: FirstRelease, refinement: Refinement, design: Design, where: str) -> None:
    """Refuse structural zeros that leave people of the first release without a cell."""
    has_room = np.zeros(first.n_cells, dtype=np.bool_)
    has_room[refinement.class_of[design.is_possible]] = True
    lost = np.flatnonzero(~has_room[first.leaves.cell])
    if len(lost):
        words = first.in_words(int(first.leaves.cell[lost[0]]))
        message = f"{where}: structural zeros leave no cell for people whom {first.path.name} has with {words}; remove some."
        raise InputError(message, file=first.path.name, option="structural_zeros")


def plan_of_first(first: FirstRelease, larger: Design, has_room: Bools) -> QueryPlan | None:
    """The plan by which a first release was measured; None for measurements that were published by others.

    Parameters
    ----------
    first : FirstRelease
    larger : Design
        Of the extension, which has the same regions.
    has_room : ndarray of bool, shape (cells,)
        Cells of the first release that exist in the larger schema; the others are treated as impossible.

    Notes
    -----
    Public numbers that the estimate used (`covariates`) are not in a release, so simulations do without them: errors are then
    overstated, never understated.
    """
    where = first.path.name
    given = {**first.manifest.parameters, "covariates": [], "extended_by": None}
    options = validated(TopDownOptions, given, where)
    if options.published is not None or options.shares is None:
        return None
    attributes = tuple(Attribute(name=name, labels=labels) for name, labels in first.attributes.items())
    queries, meanings = build_queries(options, attributes, where)
    level_shares, query_shares = read_shares(options.shares, larger.spine, queries, where)
    promise = next(one for one in first.manifest.promises if one.get("promise") == "topdown")
    design = replace(
        larger.without_source(),
        options=options,
        attributes=attributes,
        is_possible=_possible(promise, attributes, where) & has_room,
        queries=queries,
        query_attributes=meanings,
        level_shares=level_shares,
        query_shares=query_shares,
        statements=_statements(first.path, promise, attributes, larger),
        budget=options.budget(where),
        covariates=(),
        extends="",
    )
    return make_plan(design)


def _possible(promise: Mapping[str, Any], attributes: tuple[Attribute, ...], where: str) -> Bools:
    """Cells that are not structural zeros of the first release."""
    possible = cell_set({}, attributes, where)
    for zero in promise["structural_zeros"]:
        possible &= ~cell_set(zero, attributes, where)
    return possible


def _statements(
    path: Path, promise: Mapping[str, Any], attributes: tuple[Attribute, ...], larger: Design
) -> tuple[Statement, ...]:
    """Invariants, and bounds with their values for every leaf."""
    spine = larger.spine
    table = pq.read_table(path / STATEMENTS_FILE)
    leaves = pa.array(spine.leaves, pa.string())
    found = []
    for name, labels in promise["cells"].items():
        cells = cell_set(labels, attributes, path.name)
        lower = upper = np.zeros(0, dtype=np.int64)
        level = len(spine.names) - 1
        if name in promise["exact"]:
            level = spine.level_of(promise["exact"][name])
        else:
            rows = table.filter(pc.equal(table["statement"], name))
            place = pc.index_in(rows["region"].cast(pa.string()), value_set=leaves).to_numpy()
            lower, upper = (np.full(len(leaves), most, dtype=np.int64) for most in (0, UNBOUNDED))
            lower[place] = rows["lower"].to_numpy()
            upper[place] = pc.fill_null(rows["upper"], UNBOUNDED).to_numpy()
        kept = {attribute: tuple(own) for attribute, own in labels.items()}
        found.append(Statement(name=name, level=level, cells=cells, labels=kept, lower=lower, upper=upper))
    return tuple(found)
