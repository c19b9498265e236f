"""What a solver's answer is worth."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Status"]


class Status(StrEnum):
    """Only `OPTIMAL` is proof; a limit reached is `FEASIBLE` at best."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
