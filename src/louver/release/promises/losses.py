"""How much detail of each quasi-identifier the published records lose, measured from published values alone.

An interval of numbers loses its width divided by the width of all intervals together. A value that stands for labels loses their number
minus one, divided by the number of all labels that occur in the mapping (minus one if they are ordered). A value that may be anything loses
everything.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from louver._arrays import Floats
from louver.release.promises.base import TOLERANCE, Context, Outcome, Promise
from louver.release.promises.mapping import attributes_of, read_mapping

__all__ = ["Losses", "check_losses", "mean_loss"]

Share = Annotated[float, Field(ge=0, le=1)]


class Losses(Promise):
    """The losses that the manifest states follow from the mapping."""

    promise: Literal["losses"]
    mapping: Literal["data/mapping.parquet"]
    by_column: tuple[tuple[str, Share], ...]


def check_losses(context: Context, promise: Losses) -> Outcome:
    """Measure every column again."""
    mapping = read_mapping(context.folder)
    names = attributes_of(mapping)
    if names != [name for name, _ in promise.by_column]:
        return Outcome(False, "the losses are not for the columns that the mapping lists")
    for name, stated in promise.by_column:
        found = mean_loss(mapping.filter(pc.equal(mapping["attribute"], name)))
        if abs(found - stated) > TOLERANCE:
            return Outcome(False, f'the loss of "{name}" does not follow from the mapping')
    return Outcome(True, f"{len(names)} quasi-identifiers")


def mean_loss(lines: pa.Table) -> float:
    """Mean over records of the share of information lost in one attribute."""
    records = lines["records"].to_numpy().astype(np.float64)
    shares = _label_shares(lines) if lines["members"].null_count < lines.num_rows else _width_shares(lines)
    shares[np.asarray(lines["sort"]) == "anything"] = 1.0
    return float(records @ shares / max(1.0, records.sum()))


def _label_shares(lines: pa.Table) -> Floats:
    """Number of labels for which each value stands, minus one, divided by the largest possible loss; 0 for a missing value."""
    n_labels = pc.count_distinct(pc.list_flatten(lines["members"])).as_py()
    sizes = pc.fill_null(pc.list_value_length(lines["members"]), 1).to_numpy().astype(np.float64)
    most = n_labels - (np.asarray(lines["sort"]) == "interval")
    shares: Floats = (sizes - 1) / np.maximum(1, most)
    return shares


def _width_shares(lines: pa.Table) -> Floats:
    """Width of each interval divided by the width of all of them together; 0 for a missing value."""
    if lines["lower"].null_count == lines.num_rows:
        return np.zeros(lines.num_rows)
    width = pc.fill_null(pc.subtract(lines["upper"], lines["lower"]), 0.0).to_numpy().astype(np.float64)
    span = pc.max(lines["upper"]).as_py() - pc.min(lines["lower"]).as_py()
    return width / span if span else np.zeros(lines.num_rows)
