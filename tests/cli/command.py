"""The louver under test, and what a run of it leaves behind.

With LOUVER_SITE set to a folder that holds an installed wheel, that wheel is the one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

if SITE := os.environ.get("LOUVER_SITE"):
    sys.path.insert(0, SITE)

import louver

PACKAGE = Path(louver.__file__).parent

# Two sites, N = 15 = R, so that every count is determined: the factors of both rows are 1.
COUNTED = "site,ill,count\nA,no,4\nA,yes,3\nB,no,3\nB,yes,5\n"

# Both rows reduce to (1, 1): 2a + 2b = 60 with a, b >= 1, so that each cell is anything from 1 to 29.
SAFE = "site,ill,count\nA,no,10\nA,yes,10\nB,no,20\nB,yes,20\n"


@dataclass(frozen=True)
class Finished:
    """How a run of the command ended."""

    code: int
    out: str
    err: str


Runner = Callable[..., Finished]


def child_environment(**more: str) -> dict[str, str]:
    """The environment of a child that imports the louver under test."""
    return {**os.environ, "PYTHONPATH": str(PACKAGE.parent), **more}
