"""Every exception louver raises on purpose.

A message is one sentence: where, what is wrong, what to do. It names files, columns, rows, options and
schema labels, never a value or a count read from confidential data ("locate, never quote").
"""

from __future__ import annotations

from fractions import Fraction

__all__ = ["BudgetError", "Cancelled", "InfeasibleError", "InputError", "LouverError", "SolverError"]


class LouverError(Exception):
    """Base of every error a caller may want to catch."""


class Cancelled(LouverError):
    """Work that was asked to stop, through `Run.cancel`; nothing half-done is left behind."""

    def __init__(self) -> None:
        super().__init__("stopped.")


class InputError(LouverError):
    """Bad input: a file, a spec or an option that cannot be used as it stands.

    Parameters
    ----------
    message : str
        One sentence: where, what is wrong, what to do.
    file, column, row, option : optional
        Where the problem is, for programs; `row` counts data rows from 1.

    Examples
    --------
    >>> error = InputError("patients.csv has no rows; give a file with data.", file="patients.csv")
    >>> error.file
    'patients.csv'
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        column: str | None = None,
        row: int | None = None,
        option: str | None = None,
    ) -> None:
        super().__init__(message)
        self.file = file
        self.column = column
        self.row = row
        self.option = option


class BudgetError(LouverError):
    """A privacy budget that does not allow what was asked; nothing was spent.

    Parameters
    ----------
    message : str
        One sentence: where, what is wrong, what to do.
    requested, remaining : Fraction, optional
        Both amounts in the ledger's measure, where the refusal is about an amount.
    """

    def __init__(
        self, message: str, *, requested: Fraction | None = None, remaining: Fraction | None = None
    ) -> None:
        super().__init__(message)
        self.requested = requested
        self.remaining = remaining


class InfeasibleError(LouverError):
    """Statements that cannot all be true; `clash` holds the positions of a smallest such set."""

    def __init__(self, message: str, *, clash: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.clash = clash


class SolverError(LouverError):
    """A solver stopped without an answer that can be trusted."""
