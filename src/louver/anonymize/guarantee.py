"""What a release promises about every record."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Guarantee"]


class Guarantee(StrEnum):
    """What a release promises."""

    K_ANONYMITY = "k-anonymity"
    K_MAP = "k-map"
    K_UNITS = "k-units"
    FREEFORM = "freeform"
