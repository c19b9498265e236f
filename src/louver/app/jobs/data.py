"""What the Data page asks for."""

from __future__ import annotations

from typing import Any

from louver.profile import profile
from louver.run import Run

__all__ = ["profiled"]


def profiled(path: str, source: dict[str, Any], run: Run) -> dict[str, Any]:
    """What `profile` finds, as JSON has it."""
    return profile(path, **source, run=run).to_dict()
