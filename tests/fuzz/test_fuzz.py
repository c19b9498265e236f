"""A short run of the fuzzer; `python -m tests.fuzz` is the long one, and repeats a case by its kind and seed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from fuzz.cases import DRAFTED, KINDS, has_pages, make
from fuzz.drafts import typed, write
from fuzz.hostile import NO_PLACE, odd_text
from fuzz.judge import Case, clear, run

N_CASES = 200
SLOW = {"topdown": 120, "against": 10, "spending": 10, "estimate": 10}


@pytest.fixture
def shares_database() -> None:
    """The judge decides."""


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_handed_in(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit 0, 1 or 2, one sentence, nothing half-written, no confidential value, no forged line."""
    for seed in range(SLOW.get(kind, N_CASES)):
        case = make(kind, seed, tmp_path / str(seed))
        monkeypatch.chdir(case.folder)
        outcome = run(case, pages=has_pages(seed))
        assert not outcome.faults, (f"--kind {kind} --seed {seed} --cases 1", outcome)
        clear(case.folder)


@pytest.mark.long
@pytest.mark.parametrize("kind", DRAFTED)
def test_what_is_spoilt_was_good(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most drafts succeed, so that what is refused afterwards is refused for what was done to them."""
    codes = []
    for seed in range(12):
        folder = tmp_path / str(seed)
        arguments = write(DRAFTED[kind](random.Random(seed)), folder)
        monkeypatch.chdir(folder)
        codes.append(run(Case(folder, arguments), pages=False).code)
    assert sum(code in (0, 1) for code in codes) >= 8, codes


def test_a_seed_gives_the_same_case_again(tmp_path: Path) -> None:
    for kind in KINDS:
        first, second = (make(kind, 7, tmp_path / f"{kind} {place}") for place in "ab")
        assert first.arguments == second.arguments and first.told == second.told


def test_nothing_outside_the_scratch_folder_is_named() -> None:
    draw = random.Random(1)
    given = {typed(odd_text(draw)) for _ in range(20_000)}
    assert {text for text in given if text.startswith("/")} <= {NO_PLACE}
