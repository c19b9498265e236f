"""anonymize: k-anonymous microdata with the least information loss.

Liang & Samavi (2020): exact, Split & Carry and Greedy Search, beside the methods they compare with. Full-domain
generalisation, one level per attribute for the whole file, is left out: classes are generalised one by one, which
loses far less.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from louver._arrays import Bools, Floats, Ints
from louver._callable import make_callable
from louver.anonymize import auto, exact, freeform, greedy, k_member, mondrian, split_carry
from louver.anonymize import sorted as sorted_order
from louver.anonymize.columns import given_values
from louver.anonymize.comparison import compare
from louver.anonymize.curve import CurvePoint, trace
from louver.anonymize.freeform import Freeform, Matching
from louver.anonymize.generalise import generalise, mapping_table, released_table
from louver.anonymize.intersection import Earlier, intersect, known_values, read_earlier
from louver.anonymize.load import Loaded, load
from louver.anonymize.metrics import published_losses, risk_of, utility_of
from louver.anonymize.options import SPLIT_CARRY, AnonymizeOptions
from louver.anonymize.problem import Answer, Partition, Problem
from louver.anonymize.repair import close_as_published
from louver.anonymize.requirements import Distance
from louver.anonymize.result import CLASSES_FILE, DATA_FILE, MAPPING_FILE, AnonymizedRelease, Guarantee
from louver.anonymize.split_carry import Carry
from louver.anonymize.watch import Watch
from louver.data.fingerprint import fingerprint
from louver.data.read import open_source
from louver.optim.status import Status
from louver.privacy.ledger_finding import find_ledger
from louver.release.write import check_out
from louver.run import Run
from louver.schema.attribute import Attribute
from louver.schema.request import Request, SpecLike, door, requested
from louver.schema.spec import Schema

if TYPE_CHECKING:
    from louver.data.read import ArrowStream

    Data = str | Path | ArrowStream
    Report = Callable[[AnonymizedRelease], str]

CURVE_SECONDS = 3.0
"""Most time for one point of the risk-utility curve."""

STAGES = ("reading", "first answer", "bound", "search", "publishing")
"""What the result tells the seconds of."""

__all__ = ["AnonymizeOptions", "AnonymizedRelease", "Partition", "Problem", "anonymize"]


@door(AnonymizeOptions)
def anonymize(
    data: Data | None = None,
    *,
    spec: SpecLike = None,
    schema: Schema | None = None,
    table: str | None = None,
    query: str | None = None,
    quasi: str | Sequence[str] = (),
    k: int = 5,
    identifying: str | Sequence[str] = (),
    sensitive: str | Sequence[str] = (),
    ordered: str | Sequence[str] = (),
    hierarchy: Mapping[str, str | Path] | None = None,
    weights: Mapping[str, float] | None = None,
    method: str = "auto",
    seconds: float = 10.0,
    steps: int | None = None,
    normalise: bool = False,
    one_hot: str | Sequence[str] = (),
    sets: int | None = None,
    boundary: int | None = None,
    carry: str | None = None,
    size: int | None = None,
    accepted: int | None = None,
    subproblem_seconds: float | None = None,
    l: float | None = None,  # noqa: E741 - the field's own name
    l_kind: str = "distinct",
    t: float | None = None,
    distance: str = "equal",
    suppress: float = 0.0,
    population: str | Path | None = None,
    population_count: str | None = None,
    k_map: bool = False,
    sampling_weight: str | None = None,
    against: str | Path | Sequence[str | Path] = (),
    curve: Sequence[int] = (),
    missing: str = "category",
    format: str = "labels",
    keep_order: bool = False,
    class_id: bool = False,
    out: str | Path | None = None,
    ledger: str | Path | None = None,
    report: Report | None = None,
    run: Run | None = None,
) -> AnonymizedRelease:
    """Make microdata k-anonymous.

    Parameters
    ----------
    data : path, PostgreSQL uri or dataframe
        Records.
    spec : path, mapping or Spec, optional
        A spec with the source, its attributes and a section `[anonymize]`; what is given here wins.
    schema : Schema, optional
        Kinds, labels, order and hierarchies of the columns.
    table, query : str, optional
        Table of a DuckDB file or PostgreSQL database; query for PostgreSQL.
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
    normalise : bool
        Scale the weights so that they add up to one (35).
    one_hot : sequence of str
        Nominal columns whose loss counts one binary attribute per category (section 2.5) instead of Definition 8.
    method : str
        `auto` (the best found within `seconds`), `exact`, `split-carry`, `greedy`, `sorted`, `mondrian`,
        `mondrian-relaxed`, `k-member`; `freeform-greedy`, `freeform-sort-greedy`, `freeform-hungarian`, which are
        weaker than k-anonymity.
    seconds : float
        Time limit of the search (10); see the guide for what comes on top.
    steps : int
        In place of `seconds`, a limit on work, so that a run can be repeated: rounds of `auto`, thousands of search
        nodes of `exact` and of each sub-problem of `split-carry`.
    sets, boundary, carry, size, accepted, subproblem_seconds
        Split & Carry: S, l, "classes", "subset" or "bubble", P, A, and the limit of a sub-problem.
    l, l_kind, t, distance
        l-diversity ("distinct" or "entropy") and t-closeness ("equal", "ordered", "hierarchical").
    suppress : float
        Largest share of records that may be left out; each counts as full loss.
    population, population_count : path, str
        Table of the population with the quasi-identifiers, and its column of numbers of people: journalist risk.
    k_map : bool
        k counts people of the population that match a class, instead of records.
    sampling_weight : str
        Column that says how many people a record stands for: journalist risk.
    against : sequence of paths
        Earlier releases of the same data; `intersection` says what all of them disclose together.
    curve : sequence of int
        Values of k to trace the risk-utility curve at, with several methods.
    missing : {"category", "match", "error"}
        A missing value is a category of its own, matches anything, or is refused.
    format : {"labels", "bounds"}
        Intervals as one label ("35-37") or as two columns.
    keep_order, class_id : bool
        Do not shuffle the rows; add the number of the class.
    out : path, optional
        Release directory to make.
    ledger : path, optional
        With `out`: where the file is logged as an exact disclosure; by default the ledger beside the data, where there is one.
    report : callable, optional
        Makes the HTML page for the release directory.
    run : Run, optional
        Told how far the work is, and asked whether it shall end.

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
    request = requested(spec, AnonymizeOptions)
    payer = None
    if out is not None:
        check_out(Path(out))
        source = request.source
        payer = find_ledger(request.data, ledger, table=source.table, query=source.query)
        dataset = fingerprint(request.data, table=source.table, query=source.query)
    release = _anonymize(request, run)
    if out is not None:
        page = None if report is None else report(release)
        release = replace(release, ledger=payer)
        release.write(out, page, payer, dataset=dataset)
    return release


def _anonymize(request: Request[AnonymizeOptions], run: Run | None) -> AnonymizedRelease:
    started = time.perf_counter()
    checked = request.options
    watch = Watch(run, checked.seconds if checked.steps is None else None)
    with watch.stage("reading"), open_source(request.data, **request.source.opening()) as source:
        loaded = load(source, checked, request.schema)
        earlier = [read_earlier(folder, source.columns) for folder in checked.against]
        known = known_values(source, loaded, earlier) if earlier else {}
    answer = _solve(loaded.problem, checked, watch)
    if isinstance(answer, Partition) and checked.t is not None:
        answer = _as_published(loaded, answer, checked, watch)
    with watch.stage("publishing"):
        release = _release(loaded, answer, checked)
    with watch.stage("curve"):
        release = replace(release, curve=_curve(loaded, checked, watch.run))
    if earlier:
        new = Earlier(
            name="this release",
            table=release.table,
            mapping=release.mapping,
            missing_matches=checked.missing == "match",
            is_order_kept=checked.keep_order,
        )
        together = intersect(loaded.records, known, [new, *earlier], checked.sensitive, checked.k)
        release = replace(release, intersection=together)
    stages = {name: seconds for name, seconds in watch.took.items() if name in STAGES}
    return replace(release, stages=stages, seconds=time.perf_counter() - started)


def _as_published(
    loaded: Loaded, answer: Partition, options: AnonymizeOptions, watch: Watch
) -> Partition | Freeform:
    """The answer with t-closeness in what is published, where records were left out."""
    if not _leaves_values_out(loaded, answer):
        return close_as_published(loaded.problem, answer, watch)
    # Closeness would be measured by values that are not published: then nothing is left out, and no bound is known.
    everybody = _solve(replace(loaded.problem, max_suppressed=0), options, watch)
    return replace(everybody, status=Status.FEASIBLE, lower_bound=None)


def _leaves_values_out(loaded: Loaded, answer: Partition) -> bool:
    """Whether an ordered distance counts values that are neither published nor public."""
    kept = loaded.problem.rows[answer.labels >= 0]
    return any(
        len(_shown_codes(attribute, limits.codes[kept], loaded)) < limits.n_values
        for attribute, limits in zip(loaded.sensitive, loaded.problem.sensitive, strict=True)
        if limits.distance is Distance.ORDERED
    )


def _solve(problem: Problem, options: AnonymizeOptions, watch: Watch) -> Partition | Freeform:
    """Compile what is needed, then let the time begin and the method work."""

    def work(watch: Watch) -> Partition | Freeform:
        if watch.is_limited:
            with watch.stage("compiling"):
                _by_method(problem.tiny(), options.model_copy(update={"carry": None, "steps": 1}), Watch())
                if options.method == "auto":
                    auto.warm_up(problem)
            watch.restart()
        return _by_method(problem, options, watch)

    return watch.attend(work)


def _by_method(problem: Problem, options: AnonymizeOptions, watch: Watch) -> Partition | Freeform:
    steps = options.steps
    nodes = None if steps is None else 1000 * steps
    match options.method:
        case "exact":
            return exact.solve(problem, watch, max_nodes=nodes)
        case "split-carry":
            return split_carry.solve(
                problem,
                watch,
                n_sets=options.sets or split_carry.N_SETS,
                boundary=options.boundary,
                carry=Carry(options.carry or Carry.CLASSES),
                size=options.size,
                accepted=options.accepted,
                subproblem_seconds=options.subproblem_seconds,
                subproblem_nodes=nodes,
            )
        case "greedy":
            return greedy.solve(problem, watch)
        case "sorted":
            return sorted_order.solve(problem, watch)
        case "mondrian" | "mondrian-relaxed":
            return mondrian.solve(problem, watch, is_strict=options.method == "mondrian")
        case "k-member":
            return k_member.solve(problem, watch)
        case "freeform-greedy" | "freeform-sort-greedy" | "freeform-hungarian":
            return freeform.solve(problem, watch, matching=Matching(options.method.removeprefix("freeform-")))
        case _:
            return auto.solve(problem, watch, steps=steps)


def _release(loaded: Loaded, answer: Partition | Freeform, options: AnonymizeOptions) -> AnonymizedRelease:
    problem = loaded.problem
    members, starts = answer.grouped()
    published = [
        generalise(attribute, column, problem.rows[members], starts, loaded.public[attribute.name])
        for attribute, column in zip(loaded.attributes, problem.columns, strict=True)
    ]
    group_of = np.full(loaded.records.num_rows, -1, np.int64)
    group_of[problem.rows] = answer.labels
    mapping = mapping_table(published, answer.sizes)
    losses = published_losses(mapping)
    table = released_table(
        loaded.records,
        published,
        group_of,
        drop=options.identifying,
        as_bounds=options.format == "bounds",
        class_ids=_shuffled(len(starts)) if options.class_id else None,
    )
    if not options.keep_order:
        table = table.take(pa.array(_shuffled(table.num_rows)))
    quasi = tuple(name for p in published for name in p.column_names(options.format == "bounds"))
    guarantee = _guarantee(options)
    classes = None
    if guarantee is Guarantee.K_MAP:
        values = dict(column for p in published for column in p.columns(options.format == "bounds"))
        classes = pa.table({**values, "people": problem.population_matches(answer)})
    sizes = answer.sizes
    if isinstance(answer, Freeform):
        _, sizes = np.unique(np.stack([p.of_group for p in published], axis=1), axis=0, return_counts=True)
    lost = _lost_shares(problem, answer)
    return AnonymizedRelease(
        table=table,
        mapping=mapping,
        published_losses=losses,
        classes=classes,
        guarantee=guarantee,
        method=answer.method,
        k=options.k,
        quasi=quasi,
        status=answer.status,
        n_classes=len(sizes),
        n_suppressed=answer.n_suppressed,
        lower_bound=None if answer.lower_bound is None else answer.lower_bound * problem.unit,
        risk=risk_of(
            sizes,
            problem.points().multiplicity,
            _people(loaded, answer),
            problem.record_matches(answer) if isinstance(answer, Freeform) else None,
        ),
        utility=utility_of(
            list(options.quasi),
            np.array([column.weight for column in problem.columns]),
            lost,
            sizes,
            answer.n_suppressed,
            options.k,
        ),
        comparison=compare(problem.columns, published, problem.rows, answer.sizes),
        promises=_promises(group_of >= 0, quasi, losses, loaded, options),
        parameters=_parameters(options),
        is_order_kept=options.keep_order,
        subproblem_sizes=answer.subproblem_sizes if isinstance(answer, Partition) else (),
    )


def _curve(loaded: Loaded, options: AnonymizeOptions, run: Run) -> tuple[CurvePoint, ...]:
    if not options.curve:
        return ()
    seconds = min(options.seconds, CURVE_SECONDS)

    def solve(problem: Problem, method: str) -> Partition | Freeform:
        plain = {"method": method, "seconds": seconds, **dict.fromkeys((*SPLIT_CARRY, "steps"))}
        return _solve(problem, options.model_copy(update=plain), Watch(run, seconds))

    return trace(loaded, options.curve, solve, _lost_shares)


def _guarantee(options: AnonymizeOptions) -> Guarantee:
    if options.method.startswith("freeform-"):
        return Guarantee.FREEFORM
    return Guarantee.K_MAP if options.k_map else Guarantee.K_ANONYMITY


def _parameters(options: AnonymizeOptions) -> dict[str, Any]:
    """What was asked for, without the names of files and folders."""
    kept = options.model_dump(exclude={"hierarchy", "population", "against", "curve"})
    return kept | {"hierarchy": list(options.hierarchy), "population": options.population is not None}


def _people(loaded: Loaded, answer: Answer) -> Floats | None:
    """People of the population that each group matches, by count or by sampling weights."""
    if loaded.represents is not None:
        weights = loaded.represents[loaded.problem.rows]
        is_kept = answer.labels >= 0
        people: Floats = np.bincount(answer.labels[is_kept], weights[is_kept], minlength=len(answer.sizes))  # type: ignore[assignment]
        return people
    if len(loaded.problem.requirements.population):
        return loaded.problem.population_matches(answer).astype(np.float64)
    return None


def _lost_shares(problem: Problem, answer: Answer) -> Floats:
    """Sum over records of the share of each column that is lost, weights aside."""
    unweighted = replace(problem, columns=tuple(replace(column, weight=1.0) for column in problem.columns))  # type: ignore[type-var]
    return unweighted.column_losses(answer)


def _promises(
    is_kept: Bools,
    quasi: tuple[str, ...],
    losses: list[tuple[str, float]],
    loaded: Loaded,
    options: AnonymizeOptions,
) -> tuple[Mapping[str, Any], ...]:
    about: dict[str, Any] = {"file": DATA_FILE, "quasi": list(quasi), "k": options.k}
    guarantee = _guarantee(options)
    if guarantee is Guarantee.K_MAP:
        about["classes"] = CLASSES_FILE
    elif guarantee is Guarantee.FREEFORM:
        about["mapping"] = MAPPING_FILE
        about["open"] = _matching_anything(loaded, options)
    promises: list[Mapping[str, Any]] = [
        {"promise": "records", "file": DATA_FILE, "records": int(is_kept.sum())},
        {"promise": "mapping", "file": DATA_FILE, "mapping": MAPPING_FILE},
        {"promise": "losses", "mapping": MAPPING_FILE, "by_column": losses},
        {"promise": guarantee.value, **about},
    ]
    for attribute, limits in zip(loaded.sensitive, loaded.problem.sensitive, strict=True):
        shown = _shown_codes(attribute, limits.codes[is_kept], loaded)
        texts = _published_texts(
            loaded.records[attribute.name].filter(pa.array(is_kept)), limits.codes[is_kept]
        )
        common = {
            "file": DATA_FILE,
            "quasi": list(quasi),
            "sensitive": attribute.name,
            "values": [texts.get(code, []) for code in shown],
        }
        if options.l is not None:
            promises.append({"promise": "l-diversity", **common, "kind": options.l_kind, "l": options.l})
        if options.t is not None:
            levels = [level[shown].tolist() for level in limits.ancestors]
            closeness = {"distance": options.distance, "hierarchy": levels, "t": options.t}
            promises.append({"promise": "t-closeness", **common, **closeness})
    return tuple(promises)


def _shown_codes(attribute: Attribute, published: Ints, loaded: Loaded) -> list[int]:
    """Codes of the values that are public or published; one that only records left out have is not named."""
    shown = set(np.unique(published).tolist())
    public = loaded.public[attribute.name]
    return [code for code, label in enumerate(attribute.labels) if code in shown or label in public]


def _published_texts(column: pa.ChunkedArray, codes: Ints) -> dict[int, list[str | None]]:
    """For every code of a sensitive column the values of the file that stand for it, as text; None where there is none."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    values = column.combine_chunks().dictionary_encode(null_encoding="encode")
    places = values.indices.to_numpy(zero_copy_only=False)
    texts: dict[int, list[str | None]] = {}
    for code, place in np.unique(np.stack([codes, places], axis=1), axis=0).tolist():
        value = values.dictionary[place].as_py()
        texts.setdefault(code, []).append(None if value is None else str(value))
    return texts


def _matching_anything(loaded: Loaded, options: AnonymizeOptions) -> list[str]:
    """Quasi-identifiers with missing values that match anything."""
    if options.missing != "match":
        return []
    rows = loaded.problem.rows
    return [c.name for c in loaded.problem.columns if np.isnan(given_values(c, rows)).any()]


def _shuffled(n: int) -> Ints:
    """A random order from the operating system's randomness."""
    return np.argsort(np.frombuffer(os.urandom(8 * n), dtype=np.uint64), kind="stable")


make_callable(__name__, anonymize)
