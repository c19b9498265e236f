"""anonymize: k-anonymous microdata with the least information loss.

Liang & Samavi (2020): exact, Split & Carry and Greedy Search, beside the methods they compare with. Full-domain
generalisation, one level per attribute for the whole file, is left out: classes are generalised one by one, which
loses far less.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from louver._callable import make_callable
from louver.anonymize import auto, exact, greedy, k_member, mondrian, split_carry
from louver.anonymize import sorted as sorted_order
from louver.anonymize.columns import Ints
from louver.anonymize.generalise import released_table
from louver.anonymize.load import Loaded, load
from louver.anonymize.options import AnonymizeOptions
from louver.anonymize.problem import Partition, Problem
from louver.anonymize.result import DATA_FILE, AnonymizedRelease
from louver.data.read import open_source
from louver.optim.status import Status
from louver.release.metrics import risk_of, utility_of
from louver.schema.spec import Schema, validated

if TYPE_CHECKING:
    from louver.data.read import ArrowStream

    Data = str | Path | ArrowStream

__all__ = ["AnonymizeOptions", "AnonymizedRelease", "Partition", "Problem", "anonymize"]


def anonymize(
    data: Data,
    *,
    table: str | None = None,
    query: str | None = None,
    schema: Schema | None = None,
    **options: Any,
) -> AnonymizedRelease:
    """Make microdata k-anonymous.

    Parameters
    ----------
    data : path, PostgreSQL uri or dataframe
        Records.
    table, query : str, optional
        Table of a DuckDB file or PostgreSQL database; query for PostgreSQL.
    schema : Schema, optional
        Kinds, labels, order and hierarchies of the columns.
    quasi : sequence of str
        Quasi-identifying columns, which are generalised.
    k : int
        Least number of records that share their published quasi-identifiers (5).
    identifying : sequence of str
        Columns to drop. All other columns travel along unchanged.
    sensitive : sequence of str
        Columns that l-diversity and t-closeness speak of.
    ordered : sequence of str
        Text columns whose categories have an order; numbers always have.
    hierarchy : mapping of str to path
        Hierarchy files in the layout of ARX; a class gets the lowest node above its values.
    weights : mapping of str to float
        Importance of quasi-identifiers (1).
    method : str
        `auto` (the best found within `seconds`), `exact`, `split-carry`, `greedy`, `sorted`, `mondrian`,
        `mondrian-relaxed`, `k-member`.
    seconds : float
        Time limit of `auto`, `exact` and `split-carry` (10).
    steps : int
        In place of `seconds`, a limit on work, so that a run can be repeated: rounds of `auto`, thousands of search
        nodes of `exact` and of each sub-problem of `split-carry`.
    l, l_kind, t, distance
        l-diversity ("distinct" or "entropy") and t-closeness ("equal", "ordered", "hierarchical").
    suppress : float
        Largest share of records that may be left out; each counts as full loss.
    missing : {"category", "match", "error"}
        A missing value is a category of its own, matches anything, or is refused.
    format : {"labels", "bounds"}
        Intervals as one label ("35-37") or as two columns.
    keep_order, class_id : bool
        Do not shuffle the rows; add the number of the class.

    Returns
    -------
    AnonymizedRelease

    Examples
    --------
    >>> people = pa.table({"age": [31, 33, 34, 52, 55, 58], "ill": ["flu", "flu", "cold", "cold", "flu", "ulcer"]})
    >>> release = anonymize(people, quasi=["age"], k=3, method="exact", keep_order=True)
    >>> release.table["age"].to_pylist()
    ['31-34', '31-34', '31-34', '52-58', '52-58', '52-58']
    """
    started = time.perf_counter()
    checked = _checked(options)
    with open_source(data, table=table, query=query) as source:
        loaded = load(source, checked, schema)
    partition = _solve(loaded.problem, checked)
    if checked.t is not None and not loaded.problem.holds_as_published(partition):
        # Close to the whole table, but not to what is left of it: then nothing is left out, and no bound is known.
        partition = _solve(replace(loaded.problem, max_suppressed=0), checked)
        partition = replace(partition, status=Status.FEASIBLE, lower_bound=None)
    release = _release(loaded, partition, checked)
    return replace(release, seconds=time.perf_counter() - started)


def _checked(options: Mapping[str, Any]) -> AnonymizeOptions:
    plain = dict(options)
    for name in ("quasi", "identifying", "sensitive", "ordered"):
        if isinstance(plain.get(name), str):
            plain[name] = (plain[name],)
    if isinstance(plain.get("hierarchy"), Mapping):
        plain["hierarchy"] = {name: str(path) for name, path in plain["hierarchy"].items()}
    if isinstance(plain.get("weights"), Mapping):
        plain["weights"] = {name: float(weight) for name, weight in plain["weights"].items()}
    checked = validated(AnonymizeOptions, plain, "options")
    checked.check()
    return checked


def _solve(problem: Problem, options: AnonymizeOptions) -> Partition:
    seconds, steps = (options.seconds, None) if options.steps is None else (None, options.steps)
    nodes = None if steps is None else 1000 * steps
    match options.method:
        case "exact":
            return exact.solve(problem, seconds=seconds, max_nodes=nodes)
        case "split-carry":
            return split_carry.solve(problem, seconds=seconds, subproblem_nodes=nodes)
        case "greedy":
            return greedy.solve(problem)
        case "sorted":
            return sorted_order.solve(problem)
        case "mondrian" | "mondrian-relaxed":
            return mondrian.solve(problem, is_strict=options.method == "mondrian")
        case "k-member":
            return k_member.solve(problem)
        case _:
            return auto.solve(problem, seconds=seconds, steps=steps)


def _release(loaded: Loaded, partition: Partition, options: AnonymizeOptions) -> AnonymizedRelease:
    problem = loaded.problem
    table = released_table(
        loaded.records,
        loaded.attributes,
        problem.columns,
        problem.rows,
        partition.labels,
        drop=options.identifying,
        as_bounds=options.format == "bounds",
        with_class=options.class_id,
    )
    if not options.keep_order:
        table = table.take(pa.array(_shuffled(table.num_rows)))
    quasi = tuple(
        name
        for name in table.column_names
        if name not in loaded.records.column_names or name in options.quasi
    )
    quasi = tuple(name for name in quasi if name != "class_id" or name in options.quasi)
    weights = np.array([column.weight for column in problem.columns])
    lost = _lost_shares(problem, partition)
    return AnonymizedRelease(
        table=table,
        method=partition.method,
        k=options.k,
        quasi=quasi,
        status=partition.status,
        n_classes=partition.n_classes,
        n_suppressed=partition.n_suppressed,
        lower_bound=None if partition.lower_bound is None else partition.lower_bound * problem.unit,
        risk=risk_of(partition.sizes, problem.points().multiplicity),
        utility=utility_of(
            list(options.quasi), weights, lost, partition.sizes, partition.n_suppressed, options.k
        ),
        promises=_promises(table, quasi, loaded, options),
        parameters=options.model_dump(exclude={"hierarchy"}) | {"hierarchy": list(options.hierarchy)},
        is_order_kept=options.keep_order,
    )


def _lost_shares(problem: Problem, partition: Partition) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Sum over records of the share of each column that is lost, weights aside."""
    unweighted = replace(problem, columns=tuple(replace(column, weight=1.0) for column in problem.columns))  # type: ignore[type-var]
    return unweighted.column_losses(partition)


def _promises(
    table: pa.Table, quasi: tuple[str, ...], loaded: Loaded, options: AnonymizeOptions
) -> tuple[Mapping[str, Any], ...]:
    promises: list[Mapping[str, Any]] = [
        {"promise": "records", "file": DATA_FILE, "records": table.num_rows},
        {"promise": "k-anonymity", "file": DATA_FILE, "quasi": list(quasi), "k": options.k},
    ]
    for attribute, limits in zip(loaded.sensitive, loaded.problem.sensitive, strict=True):
        common = {
            "file": DATA_FILE,
            "quasi": list(quasi),
            "sensitive": attribute.name,
            "values": [str(None) if label == attribute.missing else label for label in attribute.labels],
        }
        if options.l is not None:
            promises.append({"promise": "l-diversity", **common, "kind": options.l_kind, "l": options.l})
        if options.t is not None:
            levels = [level.tolist() for level in limits.ancestors]
            closeness = {"distance": options.distance, "hierarchy": levels, "t": options.t}
            promises.append({"promise": "t-closeness", **common, **closeness})
    return tuple(promises)


def _shuffled(n: int) -> Ints:
    """A random order from the operating system's randomness."""
    return np.argsort(np.frombuffer(os.urandom(8 * n), dtype=np.uint64), kind="stable")


make_callable(__name__, anonymize)
