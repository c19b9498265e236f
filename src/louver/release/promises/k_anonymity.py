"""k-anonymity, and k-map, where k counts people of a population."""

from __future__ import annotations

from typing import Annotated, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from louver.release.folder import Malformed, without_dictionary
from louver.release.promises.base import Context, Outcome, Promise, count_codes, count_distinct

__all__ = ["KAnonymity", "KMap", "KUnits", "check_k_anonymity", "check_k_map", "check_k_units"]

Columns = Annotated[tuple[str, ...], Field(min_length=1)]


class KAnonymity(Promise):
    """Every combination of published quasi-identifiers occurs k times or never."""

    promise: Literal["k-anonymity"]
    file: Literal["data/anonymized.parquet"]
    quasi: Columns
    k: Annotated[int, Field(ge=1)]


class KMap(Promise):
    """Every published combination is listed with the number of people of the population that it matches, at least k."""

    promise: Literal["k-map"]
    file: Literal["data/anonymized.parquet"]
    quasi: Columns
    k: Annotated[int, Field(ge=1)]
    classes: Literal["data/classes.parquet"]


class KUnits(Promise):
    """Every published combination is listed with the number of its distinct units (households), at least k, and has at least as many
    records."""

    promise: Literal["k-units"]
    file: Literal["data/anonymized.parquet"]
    quasi: Columns
    k: Annotated[int, Field(ge=1)]
    classes: Literal["data/classes.parquet"]


def check_k_anonymity(context: Context, promise: KAnonymity) -> Outcome:
    """Count the records of every class."""
    classes, _ = count_codes(context.folder, promise.file, promise.quasi)
    if not classes.num_rows:
        return Outcome(True, "no records")
    smallest = int(pc.min(classes["n"]).as_py())
    detail = f"smallest of {classes.num_rows} classes has {smallest} records, promised {promise.k}"
    return Outcome(smallest >= promise.k, detail)


def check_k_map(context: Context, promise: KMap) -> Outcome:
    """Look every class up in the list."""
    found = _listed(context, promise, "people")
    if isinstance(found, Outcome):
        return found
    fewest = int(pc.min(found["people_max"]).as_py() or 0)
    detail = f"a class matches at least {fewest} people, as its maker counted them, promised {promise.k}"
    return Outcome(fewest >= promise.k, detail)


def check_k_units(context: Context, promise: KUnits) -> Outcome:
    """Look every class up in the list; no class can have more units than records."""
    found = _listed(context, promise, "units")
    if isinstance(found, Outcome):
        return found
    if pc.any(pc.greater(found["units_max"], found["n_sum"])).as_py():
        return Outcome(False, "a class is listed with more units than it has records")
    fewest = int(pc.min(found["units_max"]).as_py() or 0)
    detail = f"a class has at least {fewest} different units, as its maker counted them, promised {promise.k}"
    return Outcome(fewest >= promise.k, detail)


def _listed(context: Context, promise: KMap | KUnits, counted: str) -> pa.Table | Outcome:
    """Every class with its records and the listed number, or what is wrong with the list."""
    published = count_distinct(context.folder, promise.file, promise.quasi)
    keys = published.column_names[:-1]
    if not published.num_rows:
        return Outcome(True, "no records")
    listed = context.folder.table(promise.classes, most_rows=context.folder.rows(promise.file))
    listed = without_dictionary(listed.select([*promise.quasi, counted]).rename_columns([*keys, counted]))
    if not pa.types.is_integer(listed.schema.field(counted).type):
        raise Malformed(f"numbers of {counted} are not whole")
    zeros = pa.array([0] * published.num_rows, pa.int64())
    both = pa.concat_tables(
        [
            published.append_column(counted, zeros),
            listed.append_column("n", pa.array([0] * listed.num_rows, pa.int64())).select(
                [*keys, "n", counted]
            ),
        ],
        promote_options="permissive",
    )
    found = both.group_by(keys).aggregate([("n", "sum"), (counted, "max")])
    if found.num_rows != published.num_rows or listed.num_rows != published.num_rows:
        return Outcome(False, "the classes listed are not those of the file")
    return found
