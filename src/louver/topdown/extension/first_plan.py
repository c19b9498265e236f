"""How the first release was measured, from its folder alone: its plan is needed to measure and estimate it again in simulations.

The manifest has its options, promises and public statements; the regions are those of the extension.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from louver._arrays import Bools
from louver.schema.attribute import Attribute
from louver.schema.validate import validated
from louver.topdown.extension.first import FirstRelease
from louver.topdown.knowledge.implied import UNBOUNDED
from louver.topdown.load import build_queries, cell_set, read_shares
from louver.topdown.measuring.noise_plan import QueryPlan, make_plan
from louver.topdown.options import TopDownOptions
from louver.topdown.problem import Design, Statement
from louver.topdown.result import STATEMENTS_FILE

__all__ = ["plan_of_first"]


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
