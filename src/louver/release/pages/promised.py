"""What a page says about the noise of a release, whichever verb drew it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from louver.release.manifest import Manifest

__all__ = ["loss_of", "not_private"]


def loss_of(privacy: Mapping[str, Any]) -> str:
    """The privacy loss that a manifest states.

    Examples
    --------
    >>> loss_of({"measure": "epsilon", "amount": "1/2", "neighbours": "change-record"})
    'epsilon = 1/2 (change-record)'
    """
    return f"{privacy['measure']} = {privacy['amount']} ({privacy['neighbours']})"


def not_private(manifest: Manifest) -> str:
    """Why a release is not private; empty where it is."""
    if manifest.not_for_release:
        return "NOT PRIVATE and not for release: made to compare with the truth."
    if manifest.not_private:
        return "NOT PRIVATE: the noise comes from a seed that anybody can repeat."
    return ""
