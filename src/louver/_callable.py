"""Packages that can be called: `louver.bounds(...)` is the verb, `louver.bounds.suggest` lives beside it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

__all__ = ["make_callable"]


def make_callable(module: str, verb: Callable[..., Any]) -> None:
    """Let calling the module call `verb`."""

    class Verb(ModuleType):
        __doc__ = verb.__doc__
        __call__ = staticmethod(verb)

    sys.modules[module].__class__ = Verb
