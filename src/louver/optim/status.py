"""How far a solver's answer can be trusted, in one vocabulary for all solvers."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Status"]


class Status(StrEnum):
    """Outcome of a solve; only OPTIMAL is proof, a limit reached is FEASIBLE at best."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    FAILED = "failed"
