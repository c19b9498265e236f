"""A program, not a test module: runs of TopDown that are killed, at named and at random moments, and carried on.

topdown_crash.py DIRECTORY SEED    one line of JSON per kill
"""

# ruff: noqa: T201

from __future__ import annotations

import json
import sys
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from louver.privacy.budget import Measure
from louver.privacy.distributions import DiscreteLaplace
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation
from louver.privacy.noise import KeyedNoise, Nonce
from louver.release.verify import verify
from louver.topdown import estimate, problem, topdown
from louver.topdown.estimation.levels import estimate as estimate_levels
from louver.topdown.load import read_design
from louver.topdown.measuring.noise_plan import make_plan
from louver.topdown.measuring.true_counts import SealedCounts
from privacy.workers import Moment, events_until, in_child, killed_in_child
from topdown_town import write_town

WORKERS = (1, 2, 4)
MEASUREMENTS = "measurements/topdown.parquet"


def load_kernels(town: Path) -> None:
    """Estimate once from made-up answers, so that children find compiled code; no thread is started."""
    plan = make_plan(read_design(town))
    wards = np.array([60, 60])

    class MadeUp(SealedCounts):
        def read(self, level: int, start: int, stop: int) -> tuple[np.ndarray, ...]:
            queries = plan.measured[level]
            return tuple(np.full((stop - start, q.query.n_rows), 60 // q.query.n_rows + 1) for q in queries)

    made_up = MadeUp(Path("nowhere"), plan)
    estimate_levels(plan.problem({"ward total": wards}), made_up, kept_margin=plan.kept_margin())
    KeyedNoise.from_seed(0).draw(DiscreteLaplace(Fraction(8)), 1, Nonce(0, 0, 0))


def run_until(town: Path, out: Path, workers: int, moment: Moment) -> None:
    """Run, and kill this process at the given moment."""
    seen = events_until(moment, lambda: topdown(town, out=out, engine=f"local:{workers}"))
    (out.parent / "events").write_text(str(seen))


def published(folder: Path) -> dict[str, str]:
    """All of data/, byte by byte."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes().hex()
        for path in sorted((folder / "data").rglob("*"))
        if path.is_file()
    }


def report(town: Path, out: Path, workers: int, moment: Moment) -> None:
    """Look at what a kill left, carry the run on, and print whether everything is as it must be."""
    ledger = Ledger(town.parent / "people.csv.ledger")
    before = ledger.state()
    kept = [
        path for path in (out / MEASUREMENTS, out.with_name(".out.topdown") / MEASUREMENTS) if path.is_file()
    ]
    noisy = kept[0].read_bytes() if kept else None
    stage = (
        "released"
        if out.exists()
        else "sealed"
        if before.sealed
        else "reserved"
        if before.pending
        else "unpaid"
    )
    topdown(town, out=out, engine=f"local:{workers}", resume=True)
    after = ledger.state()
    again = out.with_name("again")
    estimate(town, measurements=out, out=again)
    told = {
        "moment": moment,
        "stage": stage,
        "same_noise": noisy in (None, (out / MEASUREMENTS).read_bytes()),
        "same_bytes": published(out) == published(again),
        "verified": verify(out).passed,
        "spent": str(after.spent),
        "pending": len(after.pending),
        "sealed": len(after.sealed),
        "disclosures": len(after.disclosures),
        "left": sorted(path.name for path in out.parent.iterdir()),
    }
    print(json.dumps(told))


NAMED = {
    "Ledger.reserve call": "unpaid",
    "Ledger.reserve return": "reserved",
    "Ledger.seal call": "reserved",
    "Ledger.seal return": "sealed",
    "ReleaseWriter.seal call": "sealed",
    "ReleaseWriter.seal return": "released",
}
N_KILLS = len(NAMED) + 3


def crash(directory: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    events = count_events(directory / "whole")
    random = [1 + int(events * rng.random()) for _ in range(N_KILLS - len(NAMED))]
    for trial, moment in enumerate([*NAMED, *random]):
        town, out = fresh_town(directory / str(trial))
        workers, others = WORKERS[trial % 3], WORKERS[(trial + 1) % 3]
        killed_in_child(moment, partial(run_until, town, out, workers, moment))
        assert in_child(partial(report, town, out, others, moment)) == 0


def count_events(here: Path) -> int:
    """Events of a run that nobody stops."""
    town, out = fresh_town(here)
    load_kernels(town)
    assert in_child(partial(run_until, town, out, 2, 0)) == 0
    return int((here / "events").read_text())


def fresh_town(here: Path) -> tuple[Path, Path]:
    """A spec with data and a ledger that pays for two runs, and where to release."""
    town = write_town(here / "town")
    Ledger.create(town.parent / "people.csv.ledger", Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(4))
    return town, here / "out"


if __name__ == "__main__":
    problem.BATCH_VALUES = 60  # several batches to a level, so that workers have something to share
    crash(Path(sys.argv[1]), int(sys.argv[2]))
