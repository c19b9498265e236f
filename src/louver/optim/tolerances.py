"""Tolerances, declared once and passed in."""

from __future__ import annotations

__all__ = ["ACCEPTED_RESIDUAL", "DUAL_RESIDUAL", "QP_TOLERANCE"]

DUAL_RESIDUAL = 1e-8
"""Persons by which a constraint may be missed when Newton's method on the dual stops."""

ACCEPTED_RESIDUAL = 1e-5
"""Persons by which a constraint may be missed in any least-squares solution that is rounded."""

QP_TOLERANCE = 1e-10
"""Absolute and relative tolerance asked of the general quadratic solver."""
