"""What louver made before its options, ledger and spending were rebuilt opens, verifies and resumes.

tests/data/make_before.py says how the files were made.
"""

from __future__ import annotations

import tarfile
from fractions import Fraction
from pathlib import Path

import pytest

import louver as lv
from louver.privacy.ledger import Ledger
from louver.release.verify import verify
from louver.topdown import estimate, topdown

ARCHIVE = Path(__file__).parents[2] / "data" / "before.tar.gz"


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("before")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.mark.parametrize(
    "name", ["anonymized", "groups-released", "groups-public", "groups-sealed", "topdown-released"]
)
def test_releases_still_verify_but_for_their_pages(before: Path, name: str) -> None:
    """Their pages were made by Matplotlib from records that stay inside, and cannot be made again."""
    failed = [check.name for check in verify(before / name / "out").checks if not check.passed]
    assert failed == ["report"]
    found = verify(before / name / "out", skip_report=True)
    assert found.passed and "report: not checked" in str(found)


@pytest.mark.parametrize("name", ["groups-released", "groups-public", "groups-sealed", "topdown-released"])
def test_ledgers_are_still_sound(before: Path, name: str) -> None:
    assert Ledger(before / name / "people.csv.ledger").verify(before / name).is_sound


def test_measured_folders_are_still_estimated(before: Path, tmp_path: Path) -> None:
    town = before / "topdown-released" / "town.toml"
    estimate(town, measurements=town.parent / "measured", out=tmp_path / "again")
    assert verify(tmp_path / "again").passed


@pytest.mark.parametrize("name", ["topdown-reserved", "topdown-sealed"])
def test_interrupted_runs_are_carried_on(before: Path, name: str) -> None:
    folder = before / name
    topdown(folder / "town.toml", out=folder / "out", resume=True)
    state = Ledger(folder / "people.csv.ledger").state()
    assert state.spent == 2 and not state.pending
    assert verify(folder / "out").passed and not list(folder.glob(".out.*"))


def test_a_pending_debit_of_groups_is_taken_up(before: Path) -> None:
    folder = before / "groups-reserved"
    asked = {"unit": "home", "regions": ["county", "town"], "max_size": 4, "epsilon": 1, "total": "noisy"}
    lv.groups(folder / "people.csv", domain=str(folder / "towns.csv"), out=folder / "out", **asked)
    state = Ledger(folder / "people.csv.ledger").state()
    assert state.spent == Fraction(1) and not state.pending and verify(folder / "out").passed
