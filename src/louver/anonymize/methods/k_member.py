"""k-member clustering: the alternative that most tools offer."""

from __future__ import annotations

from louver.anonymize.methods.greedy import grown_classes
from louver.anonymize.methods.method import Method, repaired
from louver.anonymize.problem import AnonymizeProblem, Partition
from louver.anonymize.watch import Watch

__all__ = ["METHOD", "solve"]


def solve(problem: AnonymizeProblem, watch: Watch | None = None) -> Partition:
    """k-member clustering.

    Notes
    -----
    Implements: Byun, Kamra, Bertino & Li (2007), Figure 4: the next seed is the record farthest from the one added
    last; a class grows by the record that adds the least loss; leftovers go where they add least.
    Departs: the first record is the first of the sorted order, not a random one, so that runs can be repeated.

    **Cost**: O(n^2 m / k) for the seeds and O(n^2 m) at worst for the growth.
    """
    watch = watch or Watch()
    labels = grown_classes(problem, watch, farthest_first=True)
    return problem.partition(repaired(problem, labels, watch), method="k-member")


METHOD = Method(name="k-member", solve=lambda problem, watch, _: solve(problem, watch))
