"""A short run of the fuzzer; `python -m tests.fuzz` is the long one, and repeats a case by its kind and seed."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.cases import KINDS, make
from fuzz.judge import run

N_CASES = 12
SLOW = {"anonymize": 8, "against": 6, "spending": 5, "estimate": 5}


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_handed_in(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit 0, 1 or 2, one sentence, nothing half-written, no confidential value, no forged line."""
    for seed in range(SLOW.get(kind, N_CASES)):
        case = make(kind, seed, tmp_path / str(seed))
        monkeypatch.chdir(case.folder)
        outcome = run(case)
        assert not outcome.faults, (f"--kind {kind} --seed {seed} --cases 1", outcome)


def test_a_seed_gives_the_same_case_again(tmp_path: Path) -> None:
    for kind in KINDS:
        first, second = (make(kind, 7, tmp_path / f"{kind} {place}") for place in "ab")
        assert first.arguments == second.arguments and first.told == second.told
