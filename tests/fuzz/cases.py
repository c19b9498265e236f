"""Every kind of case, by name; a seed gives the same case again."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from fuzz import artifacts
from fuzz.drafts import DRAFTS, Draft, spoil, write
from fuzz.files import profile
from fuzz.judge import Case

__all__ = ["KINDS", "make"]


def _drafted(draft: Callable[[random.Random], Draft]) -> artifacts.Maker:
    def make(draw: random.Random, folder: Path, told: list[str]) -> artifacts.Made:
        spoilt = spoil(draw, draft(draw))
        told.extend(spoilt.told)
        return write(spoilt, folder), None

    return make


KINDS: dict[str, artifacts.Maker] = {
    **{name: _drafted(draft) for name, draft in DRAFTS.items()},
    "profile": _drafted(profile),
    "topdown": _drafted(artifacts.topdown),
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
