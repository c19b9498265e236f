"""Packages that can be called: `louver.bounds(...)` is the verb, `louver.bounds.suggest` lives beside it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

__all__ = ["make_callable"]


def make_callable(module: str, verb: Callable[..., Any]) -> None:
    """Let calling the module call `verb`; signature and help of the module are the verb's too."""

    class Verb(ModuleType):
        __signature__ = inspect.signature(verb)
        __wrapped__ = staticmethod(verb)

        def __call__(self, *args: Any, **keywords: Any) -> Any:
            return verb(*args, **keywords)

    sys.modules[module].__class__ = Verb
    sys.modules[module].__doc__ = verb.__doc__
