"""Sizes that agree with numbers of people: empirical Bayes on suffix counts, then whole groups leaf by leaf."""

from __future__ import annotations

from louver._arrays import Ints
from louver.groups.problem import NoisyAnswers, SizeQuery, sizes_of
from louver.optim.agreement import HousedPeople, fit_agreeing, round_agreeing
from louver.run import Run

__all__ = ["solve_agreeing"]


def solve_agreeing(noisy: NoisyAnswers, known: HousedPeople, run: Run | None = None) -> Ints:
    """Numbers of groups of each size in every region whose members are exactly the people known to be in groups.

    Notes
    -----
    In suffix counts, sizes times groups is the sum of a row: the constraint is linear, and so are bounds on the number of groups, which is
    the first entry.
    """
    fitted = fit_agreeing(noisy.rows, noisy.tree, noisy.variances, known, run)
    return sizes_of(round_agreeing(fitted, noisy.tree, known, run), SizeQuery.SUFFIX)
