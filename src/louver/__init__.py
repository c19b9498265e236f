"""louver: publish statistics about people without publishing the people.

Verbs are loaded when they are first used::

    import louver as lv
    lv.bounds("table.csv", rows=["age", "sex"], cols=["income"], weight="count")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["__version__", "bounds"]

if TYPE_CHECKING:
    from louver.bounds import bounds


def __getattr__(name: str) -> Any:
    if name in __all__:
        return import_module(f"louver.{name}")
    raise AttributeError(f"module 'louver' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
