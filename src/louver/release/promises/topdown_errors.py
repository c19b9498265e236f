"""Checks that intervals of TopDown tables contain the published numbers and that standard errors follow from the published error files.

`data/regions.parquet` has a variance for each region and query, whose root is the region's unit; `data/errors.parquet` has classes of
numbers, by their size in units, with the error of each class in units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from louver._arrays import Floats, Ints
from louver.release.folder import Folder, Malformed, without_dictionary
from louver.release.promises.base import Places

__all__ = ["ERROR_COLUMNS", "PublishedErrors"]

ERROR_COLUMNS = ("standard_error", "lower_90", "upper_90")
ROUNDED = 0.011  # standard errors have two decimals


@dataclass(frozen=True, slots=True)
class PublishedErrors:
    """Classes by level and query, as (begin, error) in units, and variances (regions, queries) by level."""

    queries: Sequence[str]
    classes: Mapping[tuple[str | None, str], tuple[Floats, Floats]]
    regions: Mapping[str, tuple[pa.Array, Floats]]

    @classmethod
    def read(
        cls, folder: Folder, errors: str, regions: str, queries: Sequence[str], levels: Sequence[str]
    ) -> PublishedErrors:
        """Read the two files: errors for every query at every level, and for unions."""
        table = without_dictionary(folder.table(errors))
        classes: dict[tuple[str | None, str], tuple[list[float], list[float]]] = {}
        columns = (table[name].to_pylist() for name in ("level", "query", "first", "error"))
        for level, query, first, error in zip(*columns, strict=True):
            if first is None or error is None or not (np.isfinite(first) and np.isfinite(error)) or error < 0:
                raise Malformed("a class of errors is missing or impossible")
            own = classes.setdefault((level, query), ([], []))
            own[0].append(first)
            own[1].append(error)
        if set(classes) != {(level, query) for level in (*levels, None) for query in queries}:
            raise Malformed("errors are not described for every query and level")
        rows = folder.table(regions)
        variances = rows["variance"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
        if len(variances) != rows.num_rows * len(queries) or not (variances >= 0).all():
            raise Malformed("the regions do not have a variance for every query")
        return cls(
            queries,
            {key: (np.array(first), np.array(error)) for key, (first, error) in classes.items()},
            _by_level(without_dictionary(rows), variances.reshape(-1, len(queries))),
        )

    def problem(self, folder: Folder, query: str, file: str) -> str | None:
        """What is wrong with the columns of a table, if anything."""
        places = {level: Places(codes) for level, (codes, _) in self.regions.items()}
        found = (self._problem_of(rows, query, places)
                 for rows in folder.batches(file, ["level", "region", "count", *ERROR_COLUMNS]))  # fmt: skip
        return next((problem for problem in found if problem is not None), None)

    def _problem_of(self, rows: pa.Table, query: str, places: Mapping[str, Places]) -> str | None:
        """The same for the given rows."""
        count, lower, upper, error = (
            rows[name].to_numpy().astype(np.float64)
            for name in ("count", "lower_90", "upper_90", "standard_error")
        )
        if not ((lower >= 0) & (lower <= count) & (count <= upper)).all():
            return "has an interval that does not contain its number"
        if not (error >= 0).all():
            return "has an invalid standard error"
        levels = rows["level"].cast(pa.string())
        for level in pc.unique(levels).to_pylist():
            here = pc.equal(levels, level).combine_chunks().to_numpy(zero_copy_only=False)
            expected = None
            if level in places:
                place = places[level].of(rows["region"].filter(pa.array(here)))
                expected = self._expected(level, query, place, count[here])
            is_exact = (error[here] == 0) & (lower[here] == upper[here])
            if expected is None or not (is_exact | (np.abs(error[here] - expected) < ROUNDED)).all():
                return "has a standard error that does not follow from the published error files"
        return None

    def _expected(self, level: str, query: str, place: Ints, count: Floats) -> Floats | None:
        """Standard errors that numbers in these regions must have; None if none are published."""
        if (level, query) not in self.classes or query not in self.queries or (place < 0).any():
            return None
        unit = np.sqrt(self.regions[level][1][place, list(self.queries).index(query)])
        first, error = self.classes[level, query]
        size = count / np.where(unit > 0, unit, 1.0)
        return np.asarray(error[np.maximum(np.searchsorted(first, size, side="right") - 1, 0)] * unit)


def _by_level(rows: pa.Table, variances: Floats) -> dict[str, tuple[pa.Array, Floats]]:
    """Codes and variances of every level."""
    found = {}
    for level in pc.unique(rows["level"]).to_pylist():
        here = pc.equal(rows["level"], level)
        found[level] = (
            rows["region"].filter(here).combine_chunks(),
            variances[here.combine_chunks().to_numpy(zero_copy_only=False)],
        )
    return found
