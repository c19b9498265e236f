"""Mondrian: splits the records in two repeatedly, each time along the widest column."""

from __future__ import annotations

from louver.anonymize.methods.method import Method, repaired
from louver.anonymize.problem import AnonymizeProblem, Partition
from louver.anonymize.watch import Watch
from louver.optim.kernels.classes.mondrian import mondrian_labels

__all__ = ["solve"]


def solve(problem: AnonymizeProblem, watch: Watch | None = None, *, is_strict: bool = True) -> Partition:
    """Mondrian multidimensional partitioning.

    Parameters
    ----------
    problem : AnonymizeProblem
    watch : Watch, optional
        Once its time is up, parts are not divided further.
    is_strict : bool
        Whether records with equal values stay on one side of a cut; in the relaxed form, a cut may separate them.

    Notes
    -----
    Implements: LeFevre, DeWitt & Ramakrishnan (2006), strict and relaxed, on the column with the largest loss. Departs: the cut is the
    *allowable* one nearest the median, and the next column is tried if the widest has none; a cut that fails only because the median value
    is frequent does not end the recursion. Both sides must meet all requirements. Regions are those of the records, not of the cuts.

    **Cost**: O(n log^2 n m).
    """
    watch = watch or Watch()
    labels = mondrian_labels(
        problem.geometry, problem.requirements, problem.codes, problem.least_size, is_strict, watch.stop
    )
    method = "mondrian" if is_strict else "mondrian-relaxed"
    return problem.partition(repaired(problem, labels, watch), method=method)


STRICT = Method(name="mondrian", solve=lambda problem, watch, _: solve(problem, watch))
RELAXED = Method(
    name="mondrian-relaxed", solve=lambda problem, watch, _: solve(problem, watch, is_strict=False)
)
