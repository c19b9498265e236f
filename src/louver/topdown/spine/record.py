"""The public record of a spine: for every leaf its regions and its areas."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from louver._arrays import Ints
from louver.topdown.spine.arrange import ArrangedSpine, region_of

__all__ = ["spine_table"]


def spine_table(arrangement: ArrangedSpine) -> pa.Table:
    """One row for each leaf, in the order of the spine."""
    spine, tree, leaf = arrangement.spine, arrangement.geographic, arrangement.leaf
    columns = {"leaf": pa.array(spine.leaves, pa.string())}
    for level in range(spine.n_levels - 1):
        columns[f"spine: {spine.names[level]}"] = _text(region_of(spine, level), spine.codes[level])
    for level in range(arrangement.fixed + 1, tree.n_levels - 1):
        columns[f"geography: {tree.names[level]}"] = _text(region_of(tree, level)[leaf], tree.codes[level])
    for kind in arrangement.kinds:
        columns[f"area: {kind.name}"] = _text(arrangement.area_of(kind), kind.areas)
    return pa.table(columns)


def _text(place: Ints, names: tuple[str, ...]) -> pa.Array:
    """Names in place of numbers; -1 stands for none."""
    return pa.array(names, pa.string()).take(pa.array(place, mask=np.asarray(place < 0)))
