"""The data that the batches of a level are processed with, on this machine or another: all public."""

from __future__ import annotations

from dataclasses import dataclass

from louver.engine.engines import Shared
from louver.run import Run
from louver.topdown.problem import EvidenceSource, Families, NoisyCounts, Problem, SparseLevel

__all__ = ["Known", "LevelSource", "Span"]

Span = tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """Data that all levels share."""

    problem: Problem
    noisy: NoisyCounts
    tree: EvidenceSource | None = None


@dataclass(frozen=True, slots=True, eq=False)
class LevelSource:
    """Source of the families of a level."""

    known: Shared[Known]
    level: int
    parents: SparseLevel | None

    def gather(self, span: Span, run: Run) -> Families:
        """The children of some parents, and their evidence."""
        run.check()
        known = self.known.value
        return Families.gather(known.problem, self.level, self.parents, span, known.noisy, known.tree)
