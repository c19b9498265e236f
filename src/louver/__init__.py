"""louver: publish statistics about people without publishing the people.

Verbs are loaded when they are first used::

    import louver as lv
    lv.bounds("table.csv", rows=["age", "sex"], cols=["income"], weight="count")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from louver._version import __version__

__all__ = ["__version__", "anonymize", "audit", "bounds", "groups", "open", "profile", "topdown", "verify"]

if TYPE_CHECKING:
    from louver.anonymize import anonymize
    from louver.audit import audit
    from louver.bounds import bounds
    from louver.groups import groups
    from louver.profile import profile
    from louver.release.open import open_release as open
    from louver.release.verify import verify
    from louver.topdown import topdown


def __getattr__(name: str) -> Any:
    if name == "verify":
        return import_module("louver.release.verify").verify
    if name == "open":
        return import_module("louver.release.open").open_release
    if name in __all__:
        return import_module(f"louver.{name}")
    raise AttributeError(f"module 'louver' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
