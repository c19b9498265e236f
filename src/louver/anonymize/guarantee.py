"""What a release promises about every record."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["WEAKER", "Guarantee"]

WEAKER = (
    "Freeform generalisation is weaker than k-anonymity: each published record fits k original records, and each original "
    "record fits k published ones, but published records need not have k - 1 others equal to them."
)


class Guarantee(StrEnum):
    """What a release promises."""

    K_ANONYMITY = "k-anonymity"
    K_MAP = "k-map"
    K_UNITS = "k-units"
    FREEFORM = "freeform"
