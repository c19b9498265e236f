"""TopDown's intervals: how often they hold the truth, by level, by size of the number, and for random unions of leaves.

Run: python benchmarks/topdown_intervals.py --data FOLDER [--truth hawaii] [--seeds 10] [--first 0] [--plan default] [--estimator bayes]
     [--epsilon 1] [--public units]

Rhode Island 2010 (25,181 blocks), Hawaii 2020 or a made-up state (made_up_states.py), state total invariant. The plan "default" has no
shares in the spec; `--public` gives public numbers of every block as in topdown_default.py. Each seed is a whole release: measured,
estimated, simulated as `louver topdown run` does, and compared with the truth. Coverage is that of numbers above zero, as the tables have
them, and of zeros beside it; standard errors are compared with true errors as root mean squares. The unions are 100 for each kind of region
they lie in: neighbours in the order of codes, or chosen at random, 2 to 2,000 leaves.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
from made_up_states import SHAPES
from topdown_default import true_counts, without_shares, write_public, write_state
from topdown_estimators import PLANS
from topdown_specs import write_rhode_island

from louver.topdown.errors.area import ErrorTree
from louver.topdown.errors.intervals import KnownError, simulate_errors
from louver.topdown.errors.simulate import AssumedTruth
from louver.topdown.load import read_design
from louver.topdown.measuring.noise_plan import QueryPlan, make_plan
from louver.topdown.measuring.true_counts import true_leaves
from louver.topdown.problem import SparseLevel

BLOCKS = {"rhode-island": "ri_2010_blocks.csv.gz", "hawaii": "hi_2020_blocks.csv.gz"}
SIZES = (1, 10, 50, 100, 250, 1_000)
Tally = dict[tuple[str, str, str], list[np.ndarray]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--truth", choices=[*BLOCKS, *SHAPES], default="rhode-island")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--plan", choices=["default", *PLANS], default="below")
    parser.add_argument("--public", choices=["units", "useless", "census", "empty"])
    parser.add_argument("--estimator", default="bayes")
    parser.add_argument("--epsilon", default="1")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        spec = write_spec(Path(name), options)
        plan = make_plan(read_design(spec).estimated(estimator=options.estimator))
        truth = AssumedTruth.of(plan, true_leaves(plan.design))
    unions = random_unions(plan)
    tally: Tally = defaultdict(list)
    seconds = [0.0, 0.0]
    for seed in range(options.first, options.first + options.seeds):
        began = time.perf_counter()
        released = truth.simulate(seed)
        middle = time.perf_counter()
        known = simulate_errors(plan, released.levels[-1], released.noisy)
        assert known is not None
        seconds = [seconds[0] + middle - began, seconds[1] + time.perf_counter() - middle]
        count_levels(plan, truth.levels, released.levels, known, tally)
        count_unions(plan, truth.levels, released.levels, known, unions, tally)
        report(tally, options, seed, seconds)


def write_spec(folder: Path, options: argparse.Namespace) -> Path:
    """Records, public files and the spec of a truth and a plan."""
    data = folder / "truth"
    data.mkdir()
    if options.truth in SHAPES:
        write_state(options.truth, data / BLOCKS["rhode-island"], 1.0)
    else:
        (data / BLOCKS["rhode-island"]).symlink_to((options.data / BLOCKS[options.truth]).resolve())
    if options.plan == "default":
        spec = without_shares(folder, data, options.epsilon, "open")
    else:
        spec = write_rhode_island(folder, data, epsilon=options.epsilon, shares=PLANS[options.plan])
    if options.public:
        write_public(folder, true_counts(folder / "blocks.csv"), options.public, spec)
    return spec


def random_unions(plan: QueryPlan) -> list[tuple[str, np.ndarray]]:
    """Leaves of 100 unions in one region of each level but the last."""
    spine, rng, unions = plan.design.spine, np.random.default_rng(1), []
    for level, name in enumerate(spine.names[:-1]):
        for _ in range(100):
            region = int(rng.integers(spine.sizes[level]))
            first, last = spine.leaf_range(level, region, region + 1)
            most = min(last - first, 2_000)
            size = min(most, int(np.exp(rng.uniform(np.log(2), np.log(most + 1)))) if most > 2 else most)
            start = int(rng.integers(first, last - size + 1))
            chosen = np.arange(start, start + size)
            if rng.random() < 0.5:
                chosen = np.sort(rng.choice(np.arange(first, last), size, replace=False))
            unions.append((f"union in a {name}", chosen))
    return unions


def count_levels(
    plan: QueryPlan,
    true: tuple[SparseLevel, ...],
    released: tuple[SparseLevel, ...],
    known: KnownError,
    tally: Tally,
) -> None:
    for level, name in enumerate(plan.design.spine.names):
        for query in plan.design.queries:
            number, truth = query.answer(released[level]), query.answer(true[level])
            region, row = np.indices(number.shape).reshape(2, -1)
            found = known.intervals(level, query, region, row, number.ravel())
            held = (found.lower <= truth.ravel()) & (truth.ravel() <= found.upper)
            add(tally, name, query.name, number.ravel(), truth.ravel(), held, found.standard_error)


def count_unions(
    plan: QueryPlan,
    true: tuple[SparseLevel, ...],
    released: tuple[SparseLevel, ...],
    known: KnownError,
    unions: list[tuple[str, np.ndarray]],
    tally: Tally,
) -> None:
    tree = ErrorTree(
        starts=plan.design.spine.starts, levels=released, own=known.own, final=known.final, model=known.model
    )
    for place, query in enumerate(known.queries):
        answers = query.answer(true[-1])
        for name, leaves in unions:
            number, found = tree.union(leaves, query, place)
            truth = answers[leaves].sum(axis=0)
            held = (found.lower <= truth) & (truth <= found.upper)
            for kind in (name, "unions, all"):
                add(tally, kind, query.name, number, truth, held, found.standard_error)


def add(
    tally: Tally, where: str, query: str, number: np.ndarray, truth: np.ndarray, held: np.ndarray, error: np.ndarray
) -> None:  # fmt: skip
    size = np.searchsorted(SIZES, number, side="right")
    for i in np.unique(size):
        here = size == i
        label = f"{SIZES[i - 1]}+" if i else "0"
        sums = [here.sum(), held[here].sum(), np.square(number - truth)[here].sum(), np.square(error)[here].sum(),
                (number - truth)[here].sum()]  # fmt: skip
        tally[where, query, label].append(np.array(sums, np.float64))


def report(tally: Tally, options: argparse.Namespace, seed: int, seconds: list[float]) -> None:
    n = seed - options.first + 1
    print(
        f"\n{options.truth}, epsilon {options.epsilon}, plan {options.plan}, {options.estimator}, public {options.public}, {n} seeds; "
        f"{seconds[0] / n:.1f} s to estimate, {seconds[1] / n:.1f} s more to simulate"
    )
    labels = ["0", *(f"{size}+" for size in SIZES)]
    head = "".join(f"{label:>8}" for label in labels)
    print(f"{'coverage, %':<40}{'above 0':>8}{'stated/true':>12}{head}")
    keys = list(dict.fromkeys((where, query) for where, query, _ in tally))
    for where, query in keys:
        parts = {
            label: np.sum(tally[where, query, label], axis=0)
            for label in labels
            if (where, query, label) in tally
        }
        above = sum((part for label, part in parts.items() if label != "0"), np.zeros(5))
        ratio = np.sqrt(above[3] / above[2]) if above[2] else 1.0
        line = "".join(
            f"{100 * parts[x][1] / parts[x][0]:>8.1f}" if x in parts else f"{'':>8}" for x in labels
        )
        print(
            f"{where + ', ' + query:<40}{100 * above[1] / max(above[0], 1):>8.1f}{ratio:>12.2f}{line}",
            flush=True,
        )


if __name__ == "__main__":
    main()
