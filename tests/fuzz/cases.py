"""Every kind of case, by name; a seed gives the same case again."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from fuzz import artifacts
from fuzz.drafts import DRAFTS, Draft, spoil, write
from fuzz.files import profile
from fuzz.judge import Case

__all__ = ["DRAFTED", "KINDS", "has_pages", "make"]


def _drafted(draft: Callable[[random.Random], Draft]) -> artifacts.Maker:
    def make(draw: random.Random, folder: Path, told: list[str]) -> artifacts.Made:
        spoilt = spoil(draw, draft(draw))
        told.extend(spoilt.told)
        return write(spoilt, folder), None

    return make


DRAFTED: dict[str, Callable[[random.Random], Draft]] = {
    **DRAFTS,
    "profile": profile,
    "topdown": artifacts.topdown,
}
KINDS: dict[str, artifacts.Maker] = {
    **{name: _drafted(draft) for name, draft in DRAFTED.items()},
    "verify": artifacts.verify,
    "open": artifacts.open_release,
    "against": artifacts.against,
    "ledger": artifacts.ledger,
    "spending": artifacts.spending,
    "estimate": artifacts.estimate,
}


def make(kind: str, seed: int, folder: Path) -> Case:
    """The case of a kind and a seed, its files written below `folder`."""
    draw = random.Random(f"{kind} {seed}")
    folder.mkdir(parents=True)
    told: list[str] = []
    arguments, call = KINDS[kind](draw, folder, told)
    return Case(folder=folder, arguments=arguments, call=call, told=tuple(told))


def has_pages(seed: int) -> bool:
    """Whether reports are written in full; every tenth time is enough."""
    return seed % 10 == 0
