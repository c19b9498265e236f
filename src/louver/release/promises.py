"""What a release can promise, and how each promise is recomputed from the published files alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from louver.release.generalised import check_freeform, check_k_map, check_losses, check_mapping
from louver.release.topdown import check_topdown

__all__ = ["PROMISES"]

Promise = Mapping[str, Any]
Outcome = tuple[bool, str]

TOLERANCE = 1e-9
"""Slack for promises about real numbers (entropies, distances)."""


def _k_anonymity(folder: Path, promise: Promise) -> Outcome:
    """Every combination of published quasi-identifiers occurs k times or never."""
    table = _columns(folder, promise, promise["quasi"])
    if not table.num_rows:
        return True, "no records"
    sizes = np.bincount(_classes(table))
    smallest = int(sizes.min())
    return smallest >= int(promise["k"]), f"smallest class has {smallest} records, promised {promise['k']}"


def _records(folder: Path, promise: Promise) -> Outcome:
    """The file has as many records as the manifest says."""
    found = pq.read_metadata(folder / promise["file"]).num_rows
    return found == promise["records"], f"{found} records"


def _l_diversity(folder: Path, promise: Promise) -> Outcome:
    """Every class has l distinct sensitive values, or (entropy) at least log l of entropy."""
    table = _columns(folder, promise, [*promise["quasi"], promise["sensitive"]])
    counts = _class_counts(table, promise)
    if promise["kind"] == "distinct":
        least = float((counts > 0).sum(axis=1).min())
        return least >= promise["l"], f"least diverse class has {least:.0f} values, promised {promise['l']}"
    shares = counts / counts.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.where(counts > 0, shares * np.log(shares), 0.0).sum(axis=1)
    least = float(np.exp(entropy.min()))
    return least >= promise[
        "l"
    ] - TOLERANCE, f"least entropy is that of {least:.4g} values, promised {promise['l']}"


def _t_closeness(folder: Path, promise: Promise) -> Outcome:
    """The sensitive distribution of every class is within t of the whole table's (equal or ordered distance)."""
    table = _columns(folder, promise, [*promise["quasi"], promise["sensitive"]])
    counts = _class_counts(table, promise)
    shares = counts / counts.sum(axis=1, keepdims=True)
    difference = shares - counts.sum(axis=0) / counts.sum()
    if promise["distance"] == "equal":
        distance = np.abs(difference).sum(axis=1) / 2
    elif promise["distance"] == "ordered":
        distance = np.abs(np.cumsum(difference, axis=1)).sum(axis=1) / max(1, counts.shape[1] - 1)
    else:
        distance = _tree_distance(difference, promise["hierarchy"])
    worst = float(distance.max())
    return worst <= promise["t"] + TOLERANCE, f"largest distance is {worst:.4g}, promised {promise['t']}"


def _tree_distance(difference: np.ndarray[Any, Any], levels: list[list[int]]) -> np.ndarray[Any, Any]:
    """Earth mover's distance where moving across a node at height h of H costs h / H.

    `levels[h][leaf]` numbers the ancestor of each leaf at height h + 1. A unit that leaves its node at height h
    crosses it once each way: half the absolute surplus of every node, times 1 / H, adds up to the distance.
    """
    height = len(levels)
    total = np.abs(difference).sum(axis=1)
    for ancestors in levels[:-1]:
        surplus = np.zeros((len(difference), max(ancestors) + 1))
        np.add.at(surplus.T, np.asarray(ancestors), difference.T)
        total += np.abs(surplus).sum(axis=1)
    distance: np.ndarray[Any, Any] = total / (2 * height)
    return distance


def _group_table(folder: Path, promise: Promise) -> Outcome:
    """Numbers of groups are whole and not negative, children add up to parents, and every level to the total."""
    table = pq.read_table(folder / promise["file"])
    levels = list(promise["levels"])
    groups = table.column("groups")
    if not pa.types.is_integer(groups.type) or groups.null_count or pc.min(groups).as_py() < 0:
        return False, "a number of groups is negative, missing or not whole"
    if set(pc.unique(table.column("level")).to_pylist()) != set(levels):
        return False, "the levels of the file are not the promised ones"
    plain = table.cast(pa.schema([(f.name, _plain_type(f.type)) for f in table.schema]))
    rows = [plain.filter(pc.equal(plain.column("level"), level)) for level in levels]
    for depth in range(1, len(levels)):
        keys = [*levels[1:depth], "size"]
        summed = rows[depth].group_by(keys).aggregate([("groups", "sum")])
        parents = rows[depth - 1].select([*keys, "groups"])
        order = [(key, "ascending") for key in keys]
        left, right = summed.sort_by(order), parents.sort_by(order)
        if any(left.column(key) != right.column(key) for key in keys) or not left.column("groups_sum").equals(
            right.column("groups").cast(pa.int64())
        ):
            return False, f'regions of level "{levels[depth]}" do not add up to those above'
    totals = {int(pc.sum(level.column("groups")).as_py()) for level in rows}
    if len(totals) != 1 or (promise["total"] is not None and totals != {promise["total"]}):
        return False, "a level does not add up to the total"
    return True, f"{len(levels)} levels add up to {totals.pop()} groups"


def _plain_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _columns(folder: Path, promise: Promise, names: list[str]) -> pa.Table:
    return pq.read_table(folder / promise["file"], columns=list(dict.fromkeys(names)))


def _classes(table: pa.Table, names: list[str] | None = None) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Number of the class (equal values in all columns) of each row; a missing value equals only itself."""
    classes = np.zeros(table.num_rows, dtype=np.int64)
    for name in names or table.column_names:
        encoded = table.column(name).combine_chunks().dictionary_encode(null_encoding="encode")
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        _, classes = np.unique(classes * (len(encoded.dictionary) + 1) + codes, return_inverse=True)
    return classes


def _class_counts(table: pa.Table, promise: Promise) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Sensitive values per class, columns in the order the promise lists them."""
    classes = _classes(table, list(promise["quasi"]))
    place = {value: i for i, value in enumerate(promise["values"])}
    codes = np.array([place[str(value)] for value in table.column(promise["sensitive"]).to_pylist()])
    counts = np.zeros((int(classes.max()) + 1, len(place)), dtype=np.int64)
    np.add.at(counts, (classes, codes), 1)
    return counts


PROMISES: Mapping[str, Callable[[Path, Promise], Outcome]] = {
    "k-anonymity": _k_anonymity,
    "k-map": check_k_map,
    "freeform": check_freeform,
    "mapping": check_mapping,
    "losses": check_losses,
    "records": _records,
    "l-diversity": _l_diversity,
    "t-closeness": _t_closeness,
    "group-table": _group_table,
    "topdown": check_topdown,
}
