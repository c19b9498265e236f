"""TopDown: errors on real blocks beside a reference, seconds of each stage, and the solvers beside general ones.

Run: python benchmarks/topdown.py WHAT [--data FOLDER] [--seeds 10] [--engine local:1]

rhode-island  the protocol of the reference implementation, epsilon 1 and 4, state total or block totals invariant (needs --data)
sample        569 blocks with the full P.L. 94-171 schema, SEMI-SYNTHETIC (needs --data)
state         a synthetic state: 1 million people, 20,000 blocks, 2,016 cells, group-quarters bounds; measure, then estimate
solvers       least squares and rounding against general solvers (topdown_solvers.py), the default

`--data` is a folder with ri_2010_blocks.csv.gz and ri_e2e2018_pl94171.csv.gz. Everything runs from files, through the library's
verbs, with seeded noise: nothing here is private.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
from synthetic_state import synthetic_state
from topdown_solvers import compare_solvers
from topdown_specs import LEVELS, write_rhode_island, write_sample, write_synthetic

import louver as lv
from louver.topdown import TopDownRelease

# The reference: mean absolute error (standard error) over 10 seeds for total, voting age, race, detailed.
REFERENCE = {
    ("1", False): {
        "state": ((0, 0), (36, 12), (29.6, 3.2), (21.8, 1.7)),
        "county": ((35.4, 5.3), (32.9, 3.9), (22.48, 0.96), (18.85, 0.77)),
        "tract": ((43.79, 0.47), (34.75, 0.46), (18.077, 0.072), (14.285, 0.055)),
        "blkgrp": ((35.95, 0.27), (28.18, 0.23), (12.758, 0.053), (9.632, 0.023)),
        "block": ((18.305, 0.028), (11.642, 0.014), (3.0604, 0.0038), (1.8791, 0.0016)),
    },
    ("1", True): {
        "state": ((0, 0), (36, 12), (29.6, 3.2), (21.8, 1.7)),
        "county": ((0, 0), (29.1, 3.5), (21.33, 0.79), (18.61, 0.78)),
        "tract": ((0, 0), (27.10, 0.60), (17.220, 0.075), (13.972, 0.061)),
        "blkgrp": ((0, 0), (21.62, 0.22), (11.842, 0.049), (9.331, 0.017)),
        "block": ((0, 0), (6.122, 0.012), (1.6168, 0.0033), (1.3774, 0.0016)),
    },
    ("4", False): {
        "state": ((0, 0), (8.6, 3.0), (7.53, 0.82), (5.49, 0.42)),
        "county": ((9.0, 1.3), (8.42, 0.98), (5.74, 0.29), (4.96, 0.20)),
        "tract": ((11.71, 0.13), (9.32, 0.13), (5.279, 0.018), (4.316, 0.015)),
        "blkgrp": ((10.167, 0.069), (8.084, 0.052), (4.207, 0.011), (3.3368, 0.0056)),
        "block": ((6.5688, 0.0096), (4.4198, 0.0048), (1.2913, 0.0010), (0.8412, 0.0007)),
    },
    ("4", True): {
        "state": ((0, 0), (8.6, 3.0), (7.53, 0.82), (5.49, 0.42)),
        "county": ((0, 0), (7.36, 0.82), (5.44, 0.22), (4.91, 0.20)),
        "tract": ((0, 0), (7.31, 0.15), (5.070, 0.019), (4.247, 0.018)),
        "blkgrp": ((0, 0), (6.276, 0.056), (4.004, 0.013), (3.2685, 0.0065)),
        "block": ((0, 0), (2.6083, 0.0072), (0.8698, 0.0014), (0.6924, 0.0008)),
    },
}  # fmt: skip
QUERIES = ("total", "voting_age", "race", "detailed")
# Its post-processing in seconds (least squares and rounding), fastest and slowest of 10 runs.
REFERENCE_SECONDS = {
    ("1", False): (2.6, 3.2),
    ("4", False): (3.6, 4.5),
    ("1", True): (4.1, 5.2),
    ("4", True): (4.2, 5.9),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts: dict[str, Callable[[argparse.Namespace, Path], None]] = {
        "rhode-island": rhode_island,
        "sample": sample,
        "state": state,
        "solvers": lambda options, _: compare_solvers(small=options.small),
    }
    parser.add_argument("what", nargs="?", choices=parts, help="a quick look at the solvers without it")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--engine", default="local:1")
    parser.add_argument("--small", action="store_true", help="smallest sizes, for a quick look")
    options = parser.parse_args()
    if options.what is None:
        options.what, options.small = "solvers", True
    if options.what in ("rhode-island", "sample") and options.data is None:
        parser.error("--data is missing")
    load = ", ".join(f"{x:.1f}" for x in os.getloadavg())
    print(f"python {sys.version.split()[0]}, numpy {np.__version__}, louver {lv.__version__}; load {load}")
    with tempfile.TemporaryDirectory() as folder:
        parts[options.what](options, Path(folder))


def rhode_island(options: argparse.Namespace, folder: Path) -> None:
    """Errors against the reference's, in its standard errors; and seconds of each stage."""
    for (epsilon, block_totals), reference in REFERENCE.items():
        spec = write_rhode_island(folder, options.data, epsilon=epsilon, block_totals=block_totals)
        lv.topdown(spec, seed=0, estimator="plain")  # warm up
        runs = [
            lv.topdown(spec, seed=seed, evaluate=True, estimator="plain", engine=options.engine)
            for seed in range(options.seeds)
        ]
        kind = "block totals" if block_totals else "state total"
        print(
            f"\nRhode Island 2010, epsilon {epsilon}, {kind} invariant, {options.seeds} seeds, {options.engine}"
        )
        print(f"{'level':<8}" + "".join(f"{name:<40}" for name in QUERIES))
        for level in LEVELS:
            told = [
                _beside(_errors(runs, level, name), *reference[level][i]) for i, name in enumerate(QUERIES)
            ]
            print(f"{level:<8}" + "".join(f"{text:<40}" for text in told))
        _stages(runs)
        slowest, fastest = max(r.seconds["estimate"] for r in runs), min(r.seconds["estimate"] for r in runs)
        low, high = REFERENCE_SECONDS[epsilon, block_totals]
        print(
            f"  post-processing {fastest:.2f}-{slowest:.2f} s; reference {low}-{high} s, printed with it: {low / slowest:.1f} to {high / fastest:.1f} times faster"
        )
        failed = sum(len(r.estimate.rescued) + len(r.estimate.suboptimal) for r in runs)
        print(f"  regions rescued or without proof of optimality: {failed}")


def _errors(runs: list[TopDownRelease], level: str, query: str) -> list[float]:
    found = [e for r in runs for e in r.evaluation or () if (e.level, e.query) == (level, query)]
    return [e.mean_absolute for e in found]


def _beside(errors: list[float], mean: float, standard_error: float) -> str:
    """Ours, theirs, and the difference in standard errors of the difference."""
    ours = statistics.fmean(errors)
    own = statistics.stdev(errors) / len(errors) ** 0.5 if len(errors) > 1 else 0.0
    both = (own**2 + standard_error**2) ** 0.5
    told = f"{(ours - mean) / both:+.1f} se" if both else "exact"
    return f"{ours:.4g} ({own:.2g}) ref {mean:g} ({standard_error:g}) {told}"


def _stages(runs: list[TopDownRelease]) -> None:
    names = runs[0].seconds
    told = ", ".join(f"{name} {statistics.median(r.seconds[name] for r in runs):.2f}" for name in names)
    levels = ", ".join(
        f"{level.name} {statistics.median(r.estimate.levels[i].seconds for r in runs):.3f}"
        for i, level in enumerate(runs[0].estimate.levels)
    )
    print(f"  seconds, median: {told}; estimation by level: {levels}")


def sample(options: argparse.Namespace, folder: Path) -> None:
    """The 569 blocks: errors, seconds, and that every release keeps its promises."""
    spec = write_sample(folder, options.data)
    lv.topdown(spec, seed=0)
    runs = [
        lv.topdown(spec, seed=seed, evaluate=True, engine=options.engine) for seed in range(options.seeds)
    ]
    print(
        f"\n569 blocks of Providence County, semi-synthetic, epsilon 4, {runs[0].n_people:,} people, {options.seeds} seeds"
    )
    for level in LEVELS[1:]:
        told = ", ".join(
            f"{query} {statistics.fmean(_errors(runs, level, query)):.3f}"
            for query in ("quarters", "people", "detailed")
        )
        print(f"  {level:<8} mean absolute error: {told}")
    _stages(runs)
    out = folder / "release"
    lv.topdown(spec, seed=0, out=out)
    failed = [check.name for check in lv.verify(out).checks if not check.passed]
    print(
        f"  verify, apart from the seeded noise: {[name for name in failed if name != 'private noise'] or 'holds'}"
    )
    print(
        f"  regions rescued or without proof: {sum(len(r.estimate.rescued) + len(r.estimate.suboptimal) for r in runs)}"
    )


def state(options: argparse.Namespace, folder: Path) -> None:
    """A paid run of the synthetic state: measure and estimate, seconds and peak memory of this process."""
    from louver.privacy.budget import Measure
    from louver.privacy.ledger import Ledger
    from louver.privacy.neighbours import Relation

    sizes = {"tracts": (6, 3), "block_groups": 20, "blocks": 300, "people": 15_000} if options.small else {}
    spec = write_synthetic(folder, synthetic_state(**{"people": 1_010_000} | sizes))
    Ledger.create(folder / "synthetic.csv.ledger", Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(4))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    began = time.perf_counter()
    measured = lv.topdown.measure(spec, out=folder / "measured")
    measuring = time.perf_counter() - began
    began = time.perf_counter()
    release = lv.topdown.estimate(
        spec, measurements=measured.folder, out=folder / "release", engine=options.engine
    )
    estimating = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"\nsynthetic state: {release.n_people:,} people, regions {release.plan.design.spine.sizes}, {options.engine}"
    )
    print(
        f"  measure {measuring:.1f} s, estimate and write {estimating:.1f} s, together {measuring + estimating:.1f} s"
    )
    _stages([release])
    print(f"  peak memory {peak:.2f} GiB (building the state had taken {before:.2f} GiB)")
    began = time.perf_counter()
    passed = lv.verify(folder / "release").passed
    print(
        f"  verify {'holds' if passed else 'FAILS'}, {time.perf_counter() - began:.1f} s; rescued {len(release.estimate.rescued)}, "
        f"without proof {len(release.estimate.suboptimal)}"
    )


if __name__ == "__main__":
    main()
