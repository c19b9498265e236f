"""The loss under other choices on the same data: the risk-utility curve over k and methods, and local instead of global recoding."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from louver.anonymize.classes import ClassesOfPart
from louver.anonymize.load import Codebook
from louver.anonymize.methods import METHODS
from louver.anonymize.options import AnonymizeOptions
from louver.anonymize.publish import RecordStore, classes_as_published, lost_shares, risk_as_published
from louver.anonymize.watch import Watch
from louver.errors import InfeasibleError
from louver.run import Run

__all__ = ["CURVE_METHODS", "CurvePoint", "LocalRecoding", "Tried", "trace", "try_each_k", "try_local"]

CURVE_METHODS = ("auto", "greedy", "sorted", "mondrian-relaxed")

MOST_SECONDS = 3.0
"""Time limit for one point of a method other than the release's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """One choice of method and k.

    Attributes
    ----------
    gcp : float
        Mean share of the quasi-identifiers' detail that was lost.
    highest_risk, average_risk : float
        Prosecutor risk.
    """

    method: str
    k: int
    gcp: float
    highest_risk: float
    average_risk: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tried:
    """The result of a search for one k, part by part; `seconds` is its duration."""

    parts: list[ClassesOfPart]
    seconds: float

    @property
    def loss(self) -> int:
        return sum(part.loss for part in self.parts)


def try_each_k(store: RecordStore, options: AnonymizeOptions, made: Tried, run: Run) -> dict[int, Tried]:
    """The best classes that the release's own method finds for every k of the curve and for the release's own k.

    Parameters
    ----------
    made : Tried
        The result for the release.

    Notes
    -----
    Every k has the same limit and options. Classes of at least k records also have at least k - 1, so the classes found for a larger k are
    used for a smaller one if they lose less: the loss never falls as k grows. The release itself is one of the points.
    """
    if not options.curve:
        return {options.k: made}
    limit = options.seconds if options.steps is None else None
    return _from_the_largest(store, options, {*options.curve, options.k}, {options.k: made}, limit, run)


def _from_the_largest(
    store: RecordStore,
    options: AnonymizeOptions,
    ks: Iterable[int],
    known: Mapping[int, Tried],
    seconds: float | None,
    run: Run,
) -> dict[int, Tried]:
    """Classes by k, none losing more than those for a larger k; a k that cannot be met is left out."""
    found: dict[int, Tried] = {}
    best: Tried | None = None
    for k in sorted(ks, reverse=True):
        own = known[k] if k in known else _search(store, options, k, Watch(run, seconds))
        if own is not None and (best is None or own.loss <= best.loss):
            best = own
        elif own is not None and best is not None:
            parts = [
                replace(taken, bound=part.bound, status=part.status)
                for taken, part in zip(best.parts, own.parts, strict=True)
            ]
            best = Tried(parts=parts, seconds=own.seconds)
        if best is not None:
            found[k] = best
    return dict(sorted(found.items()))


def _search(store: RecordStore, options: AnonymizeOptions, k: int, watch: Watch) -> Tried | None:
    """The result of one method for one k; None if k cannot be met."""
    if k > store.codebook.n_records and not options.k_map:
        return None
    started = time.perf_counter()
    try:
        parts = store.form(options.model_copy(update={"k": k, "bound_seconds": None}), watch)
    except InfeasibleError:
        return None
    return Tried(parts=parts, seconds=time.perf_counter() - started)


def trace(
    store: RecordStore,
    options: AnonymizeOptions,
    own: Mapping[int, Tried],
    run: Run,
    others: Sequence[str] = CURVE_METHODS,
) -> tuple[CurvePoint, ...]:
    """The points of the release's own method, and those of `others`, which get at most MOST_SECONDS for each k."""
    if not options.curve:
        return ()
    points = [_point(store.codebook, options, k, tried) for k, tried in own.items()]
    unset = [name for method in METHODS.values() for name in method.own_options]
    for method in others:
        if method != options.method:
            plain = options.model_copy(update={"method": method, **dict.fromkeys((*unset, "steps"))})
            limit = min(options.seconds, MOST_SECONDS)
            found = _from_the_largest(store, plain, set(options.curve), {}, limit, run)
            points += [_point(store.codebook, plain, k, tried) for k, tried in found.items()]
    return tuple(points)


def _point(codebook: Codebook, options: AnonymizeOptions, k: int, tried: Tried) -> CurvePoint:
    risk = risk_as_published(tried.parts, classes_as_published(codebook, tried.parts, options), options)
    return CurvePoint(
        method=options.method,
        k=k,
        gcp=float((lost_shares(tried.parts) / codebook.n_records).mean()),
        highest_risk=risk.prosecutor_highest,
        average_risk=risk.prosecutor_average,
        seconds=tried.seconds,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalRecoding:
    """The loss of classes generalised one by one, if one recoding for the whole file was chosen."""

    recoding: str
    information_loss: float
    gcp: float
    classes: int
    suppressed: int


def try_local(store: RecordStore, options: AnonymizeOptions, run: Run) -> LocalRecoding | None:
    """The loss of local recoding, by a short search; None if local recoding is published."""
    if options.recoding == "local":
        return None
    watch = Watch(run, min(options.seconds, MOST_SECONDS) if options.steps is None else None)
    local = options.model_copy(update={"recoding": "local", "bound_seconds": None})
    parts = store.form(local, watch)
    codebook, lost = store.codebook, lost_shares(parts)
    return LocalRecoding(
        recoding="local",
        information_loss=float((lost * np.array([column.weight for column in codebook.columns])).sum()),
        gcp=float(lost.mean()) / codebook.n_records,
        classes=classes_as_published(codebook, parts, options).n,
        suppressed=sum(part.n_suppressed for part in parts),
    )
