"""A property that takes long is tried on a few examples with every change, and on many with all tests."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings

__all__ = ["few_or_many"]


def few_or_many(
    few: int, many: int, given: Callable[..., Any], base: settings | None = None
) -> Callable[..., Any]:
    """In place of `given`: the test `few` tries so many examples; the test `many`, which is long, tries that many."""

    def decorate(check: Callable[..., None]) -> Callable[..., None]:
        tries = {number: settings(base, max_examples=number)(given(check)) for number in (few, many)}
        signature = inspect.signature(tries[few])

        def test(examples: int, **arguments: Any) -> None:
            tries[examples](**arguments)

        number = inspect.Parameter("examples", inspect.Parameter.KEYWORD_ONLY)
        test.__signature__ = signature.replace(parameters=[*signature.parameters.values(), number])
        test.__name__, test.__doc__, test.__module__ = check.__name__, check.__doc__, check.__module__
        long = pytest.param(many, id="many", marks=pytest.mark.long)
        return pytest.mark.parametrize("examples", [pytest.param(few, id="few"), long])(test)

    return decorate
