"""Every exception that louver raises deliberately.

A message is one sentence: where, what is wrong, what to do. It names files, columns, rows, options and
schema labels, never a value or a count read from confidential data ("locate, never quote").
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

__all__ = [
    "BudgetError",
    "Cancelled",
    "InfeasibleError",
    "InputError",
    "LouverError",
    "PromiseError",
    "SolverError",
    "internal_error",
    "one_sentence",
    "printable",
]


class LouverError(Exception):
    """Base class of every error that a caller may want to catch."""


class Cancelled(LouverError):
    """Work was stopped by `Run.cancel`; nothing half-finished is left behind."""

    def __init__(self) -> None:
        super().__init__("stopped.")


class InputError(LouverError):
    """Bad input: a file, a spec or an option that cannot be used as it stands.

    Parameters
    ----------
    message : str
        One sentence: where, what is wrong, what to do.
    file, column, row, option : optional
        Location of the problem, for programs; `row` counts data rows from 1.

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
    """A privacy budget that does not allow the request; nothing was spent.

    Parameters
    ----------
    message : str
        One sentence: where, what is wrong, what to do.
    requested, remaining : Fraction, optional
        Both amounts in the ledger's measure, if the refusal is about an amount.
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


class PromiseError(LouverError):
    """Files that do not keep the promises of their release, found before publication.

    Parameters
    ----------
    message : str
    promise : str
        Name of the promise.
    """

    def __init__(self, message: str, *, promise: str) -> None:
        super().__init__(message)
        self.promise = promise


class SolverError(LouverError):
    """A solver stopped without a reliable answer."""


SYSTEM_PROBLEMS = {
    errno.ENOSPC: "could not be written: the disk is full; free some space and run again",
    errno.EDQUOT: "could not be written: the disk quota is used up; free some space and run again",
    errno.EROFS: "could not be written: the disk is read-only; choose another place",
    errno.ENAMETOOLONG: "has too long a name; use a shorter one",
    errno.EISDIR: "is a directory; name a file",
    errno.ENOTDIR: "is not in a folder, because a part of its path is a file; check the path",
    errno.ENOENT: "does not exist; check the path",
    errno.EEXIST: "already exists; name another",
    errno.ENOTEMPTY: "already exists and is not empty; name another",
    errno.EACCES: "cannot be opened; check its permissions",
    errno.EPERM: "cannot be opened; check its permissions",
    errno.EMFILE: "cannot be opened, because too many files are open; close some and run again",
    errno.ELOOP: "is a circular link; name a file",
}


def internal_error(error: BaseException) -> str:
    """Where an unexpected error occurred, without any values it may contain."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = "unknown"
    if trace is not None:
        place = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
    return f"internal error {type(error).__name__} at {place}; please report it"


@contextmanager
def one_sentence() -> Iterator[None]:
    """Turn failures with external causes into a `LouverError`.

    The entry points of the verbs and the command line use it: wherever it occurs, a full disk, a name that is too long, text that cannot be
    encoded, nesting that is too deep, or a table that Arrow or DuckDB cannot handle is reported in one sentence. If more is known (the row,
    the key), the code in question reports it first.

    Examples
    --------
    >>> with one_sentence():
    ...     open("no such folder/patients.csv")
    Traceback (most recent call last):
    ...
    louver.errors.InputError: patients.csv does not exist; check the path.
    """
    try:
        yield
        return
    except BrokenPipeError:
        raise
    except OSError as error:
        problem = _system_problem(error)
    except (UnicodeError, RecursionError) as error:
        problem = _text_problem(error)
    except Exception as error:
        if not isinstance(error, _outside_errors()):
            raise
        problem = InputError("the data cannot be read or stored; check that every file is complete.")
    raise problem from None  # the original may quote what was read


def _system_problem(error: OSError) -> InputError:
    name = (
        None if not isinstance(error.filename, str | bytes) else os.path.basename(os.fsdecode(error.filename))
    )
    reason = SYSTEM_PROBLEMS.get(
        error.errno or 0, "could not be read or written; check the disk and the path"
    )
    return InputError(f"{name or 'a file'} {reason}.", file=name)


def _text_problem(error: UnicodeError | RecursionError) -> InputError:
    if isinstance(error, RecursionError):
        return InputError("a file is nested too deeply; it was not written by louver, or it is damaged.")
    return InputError("a name or a file contains invalid Unicode; save or name it in UTF-8.")


def _outside_errors() -> tuple[type[Exception], ...]:
    """Error classes of the libraries loaded so far."""
    places = (("pyarrow", "ArrowException"), ("duckdb", "Error"))
    return tuple(getattr(sys.modules[module], name) for module, name in places if module in sys.modules)


def printable(text: object) -> str:
    r"""External text on one line: no line breaks, and nothing that a terminal would interpret as a command.

    Names of columns, labels and files come from outside; any line shown to users that contains them must pass through this function.

    Examples
    --------
    >>> printable("age\x1b[2K\nall promises hold")
    'age?[2K?all promises hold'
    """
    return "".join(letter if letter.isprintable() else "?" for letter in str(text))
