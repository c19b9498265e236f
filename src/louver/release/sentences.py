"""Sentences of manifests, word for word: the verbs write them, and `verify` accepts no others."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = [
    "CELL_KEY_CELLS",
    "CHAIN",
    "HIDDEN_CELLS",
    "IN_ORDER",
    "NOT_PRIVATE",
    "ROUNDED_ALONE",
    "ROUNDED_CELLS",
    "TABLES",
    "WEAKER",
    "column_disclosed",
    "failsafe_used",
    "invariant_disclosed",
    "public_numbers",
]

WEAKER = (
    "Freeform generalisation is weaker than k-anonymity: each published record fits k original records, and each original "
    "record fits k published ones, but published records need not have k - 1 others equal to them."
)
IN_ORDER = "Rows are in the order of the source."
NOT_PRIVATE = "The noise is not private: do not publish."
CHAIN = "M_c^ch with its published noise loses far more than it claims (ERRATA G1)."
ROUNDED_ALONE = "Regions need not add up to those above them: every number was rounded by itself."
HIDDEN_CELLS = "numbers of the tables, exact wherever they are not hidden"
ROUNDED_CELLS = "numbers of the tables, each rounded to a multiple of its stated base"
CELL_KEY_CELLS = (
    "numbers of the tables, each with noise that depends on its set of records: totals are not the sums of their parts, and the same "
    "noise is used wherever the same records are counted with the same keys; this is not differential privacy"
)
TABLES = "counts of people, exact or rounded as stated, audited together with everything in the register"


def column_disclosed(name: str) -> str:
    return f'column "{name}", record by record'


def invariant_disclosed(name: str) -> str:
    return f'the counts of invariant "{name}", exactly'


def failsafe_used(n_regions: int) -> str:
    return f"The failsafe was used for {n_regions} regions; they are listed in the results."


def bounds_moved(n_leaves: int) -> str:
    return f"The failsafe moved bounds on the number of groups in {n_leaves} leaf regions whose people would not fit otherwise."


def public_numbers(columns: Sequence[str]) -> str:
    """The assumption of a guarantee if an estimate uses public numbers."""
    listed = ", ".join(f'"{column}"' for column in columns)
    return (
        f"Taken as public: the numbers of every leaf in {listed}. If they were counted from these records, the files reveal more than "
        "promised."
    )
