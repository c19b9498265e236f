"""louver: publish statistics about people without publishing the people.

Verbs are loaded when they are first used::

    import louver as lv
    lv.bounds("table.csv", rows=["age", "sex"], cols=["income"], weight="count")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from louver._version import __version__

__all__ = [
    "InputError",
    "Run",
    "__version__",
    "anonymize",
    "audit",
    "bounds",
    "groups",
    "open",
    "profile",
    "protect",
    "topdown",
    "verify",
]

PLACES = {
    "InputError": ("errors", "InputError"),
    "Run": ("run", "Run"),
    "open": ("release.open", "open_release"),
    "verify": ("release.verify", "verify"),
}
"""Public names that are not packages."""

if TYPE_CHECKING:
    from louver.anonymize import anonymize
    from louver.audit import audit
    from louver.bounds import bounds
    from louver.errors import InputError
    from louver.groups import groups
    from louver.profile import profile
    from louver.protect import protect
    from louver.release.open import open_release as open
    from louver.release.verify import verify
    from louver.run import Run
    from louver.topdown import topdown


def __getattr__(name: str) -> Any:
    if name in PLACES:
        module, attribute = PLACES[name]
        return getattr(import_module(f"louver.{module}"), attribute)
    if name in __all__:
        return import_module(f"louver.{name}")
    raise AttributeError(f"module 'louver' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
