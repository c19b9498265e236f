"""Packages that can be called: `louver.bounds(...)` is the verb, `louver.bounds.suggest` is a function of its package."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

__all__ = ["make_callable"]


def make_callable(module: str, verb: Callable[..., Any]) -> None:
    """Make the module callable as `verb`, with the verb's signature and help text."""

    class Verb(ModuleType):
        __signature__ = inspect.signature(verb)
        __wrapped__ = staticmethod(verb)

        def __call__(self, *args: Any, **keywords: Any) -> Any:
            return verb(*args, **keywords)

    sys.modules[module].__class__ = Verb
    sys.modules[module].__doc__ = verb.__doc__
