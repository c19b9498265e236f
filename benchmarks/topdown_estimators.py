"""TopDown's estimators: errors and bias beside the paper's algorithm, with other plans and from the same budget.

Run: python benchmarks/topdown_estimators.py WHAT --data FOLDER [--seeds 30] [--epsilon 1] [--shrink off] [--workers 1]

rhode-island  25,181 blocks of the 2010 Census, state total invariant: `plain` with the reference's shares, `bayes` with two plans
sample        569 blocks with 2,016 cells and group-quarters bounds, SEMI-SYNTHETIC: both estimators from the same measurements
state         a synthetic state of 1 million people with 2,016 cells: the same, and seconds

Everything runs from files, through the library's verb, with seeded noise: nothing here is private. Ratios are to `plain`; the
standard error of a ratio comes from the spread over the seeds.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from synthetic_state import synthetic_state
from topdown_specs import LEVELS, PROTOCOL, write_rhode_island, write_sample, write_synthetic

import louver as lv
from louver.topdown import TopDownRelease

PLANS = {
    "plain": PROTOCOL,
    # Weighted to tract and below: what matters there is the block group, and the block itself.
    "below": """levels = { state = "0.01", county = "0.01", tract = "0.01", blkgrp = "0.60", block = "0.37" }
queries = { detailed = 1 }
at = { blkgrp = { total = "0.43", detailed = "0.57" } }""",
    # No level worse than plain.
    "even": """levels = { state = "0.10", county = "0.20", tract = "0.01", blkgrp = "0.33", block = "0.36" }
queries = { detailed = 1 }
at = { county = { total = "0.3", detailed = "0.7" }, blkgrp = { total = "0.4", detailed = "0.6" } }""",
}
SIZES = ((0, 0), (1, 9), (10, 49), (50, 99), (100, 10**9))
Scores = dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("rhode-island", "sample", "state"))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--shrink", nargs="*", default=["off"])
    parser.add_argument("--plans", nargs="*", default=["below", "even"])
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--estimator", default="bayes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        {"rhode-island": rhode_island, "sample": sample, "state": state}[options.what](options, Path(folder))


def rhode_island(options: argparse.Namespace, folder: Path) -> None:
    specs = {
        name: write_rhode_island(folder, options.data, epsilon=options.epsilon, shares=shares, name=name)
        for name, shares in PLANS.items()
    }
    truth = _truth(folder / "blocks.csv")
    score = partial(_score, truth=truth)
    print(f"Rhode Island 2010, epsilon {options.epsilon}, {options.seeds} seeds")
    plain = _all(options, partial(score, specs["plain"], {"estimator": "plain"}))
    _print_levels("plain", plain, None)
    for name in options.plans:
        for shrink in options.shrink:
            how = {"estimator": options.estimator} | ({} if shrink == "default" else {"shrink": shrink})
            found = _all(options, partial(score, specs[name], how))
            _print_levels(f"{options.estimator}, plan {name}, shrink {shrink}", found, plain)


def _all(options: argparse.Namespace, score: partial[Scores]) -> dict[str, list[float]]:
    """Scores of all seeds, by name."""
    began = time.perf_counter()
    found = defaultdict(list)
    with ProcessPoolExecutor(options.workers) as pool:
        every: Iterable[Scores] = (
            pool.map(score, range(options.seeds)) if options.workers > 1 else map(score, range(options.seeds))
        )
        for scores in every:
            for name, value in scores.items():
                found[name].append(value)
    found["wall"] = [time.perf_counter() - began]
    return found


def _truth(path: Path) -> np.ndarray:
    """Counts (blocks, cells) in the order of the codes."""
    with path.open(newline="") as file:
        rows = sorted(list(csv.reader(file))[1:])
    return np.array([[int(x) for x in row[1:]] for row in rows])


def _score(spec: Path, how: dict[str, str], seed: int, *, truth: np.ndarray) -> Scores:
    release = lv.topdown(spec, seed=seed, evaluate=True, intervals=0, **how)
    scores = {f"{e.level} {e.query}": e.mean_absolute for e in release.evaluation or ()}
    scores |= _bias(release, truth)
    scores["seconds"] = release.seconds["estimate"]
    scores["failed"] = len(release.estimate.rescued) + len(release.estimate.suboptimal)
    return scores


def _bias(release: TopDownRelease, truth: np.ndarray) -> Scores:
    """Bias of block totals by true size; and what may go wrong with small groups and with mixture."""
    released = release.estimate.leaves.to_dense(truth.shape[1])
    totals, wanted = released.sum(axis=1), truth.sum(axis=1)
    scores = {}
    for low, high in SIZES:
        inside = (wanted >= low) & (wanted <= high)
        scores[f"bias {low}-{high}"] = float((totals - wanted)[inside].mean())
    starts = release.plan.design.spine.starts
    groups = np.add.reduceat(truth, starts[-1][:-1]), np.add.reduceat(released, starts[-1][:-1])
    tracts = np.add.reduceat(groups[0], starts[-2][:-1])
    for name, (true, found), above, number, limit in (
        ("blkgrp", groups, tracts, np.diff(starts[-2]), 0.02),
        ("block", (truth, released), groups[0], np.diff(starts[-1]), 0.05),
    ):
        share = np.repeat(above / np.maximum(above.sum(axis=1, keepdims=True), 1), number, axis=0)
        chosen = (true >= 20) & (share < limit)
        scores[f"{name} small group bias"] = float((found - true)[chosen].mean())
        scores[f"{name} small group error"] = float(np.abs(found - true)[chosen].mean())
    for name, table in (("true", truth), ("released", released)):
        races = table.reshape(len(table), 2, -1).sum(axis=1)
        people = races.sum(axis=1)
        kept = people >= 10
        scores[f"homogeneity {name}"] = float((races[kept].max(axis=1) / people[kept]).mean())
    return scores


def _print_levels(title: str, found: dict[str, list[float]], plain: dict[str, list[float]] | None) -> None:
    print(
        f"\n{title}: {statistics.median(found['seconds']):.2f} s to estimate, {sum(found['failed']):.0f} regions rescued or without proof, {found['wall'][0]:.0f} s in all"
    )
    for level in LEVELS:
        told = []
        for query in ("total", "detailed"):
            own = found.get(f"{level} {query}", [])
            if plain is None or not statistics.fmean(plain[f"{level} {query}"]):
                told.append(f"{query} {statistics.fmean(own):.4g} ({_error(own):.2g})")
            else:
                base = plain[f"{level} {query}"]
                ratio = statistics.fmean(own) / statistics.fmean(base)
                spread = (
                    ratio
                    * (
                        (_error(own) / statistics.fmean(own)) ** 2
                        + (_error(base) / statistics.fmean(base)) ** 2
                    )
                    ** 0.5
                )
                told.append(f"{query} {statistics.fmean(own):.4g}, ratio {ratio:.3f} ({spread:.3f})")
        print(f"  {level:<8}" + "   ".join(told))
    print(
        "  bias of block totals by size: "
        + ", ".join(
            f"{low}{'+' if high > 1e6 else f'-{high}'} {statistics.fmean(found[f'bias {low}-{high}']):+.2f}"
            for low, high in SIZES
        )
    )
    print(
        "  "
        + ", ".join(
            f"{name} {statistics.fmean(found[name]):.3f}"
            for name in found
            if "small" in name or "homog" in name
        ),
        flush=True,
    )


def _error(values: list[float]) -> float:
    return statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0


def sample(options: argparse.Namespace, folder: Path) -> None:
    _compare(write_sample(folder, options.data), options, "569 blocks, semi-synthetic, epsilon 4")


def state(options: argparse.Namespace, folder: Path) -> None:
    _compare(
        write_synthetic(folder, synthetic_state(people=1_010_000)),
        options,
        "synthetic state, 1 million people, epsilon 4",
    )


def _compare(spec: Path, options: argparse.Namespace, title: str) -> None:
    """Every estimator from the same measurements."""
    print(title)
    means: dict[str, dict[tuple[str, str], float]] = {}
    for estimator in ("plain", "least-squares", "bayes"):
        runs = [
            lv.topdown(spec, seed=seed, evaluate=True, estimator=estimator, engine=f"local:{options.workers}")
            for seed in range(options.seeds)
        ]
        errors: dict[tuple[str, str], list[float]] = defaultdict(list)
        for one in (e for release in runs for e in release.evaluation or ()):
            errors[one.level, one.query].append(one.mean_absolute)
        means[estimator] = {key: statistics.fmean(values) for key, values in errors.items()}
        seconds = {name: statistics.median(r.seconds[name] for r in runs) for name in runs[0].seconds}
        failed = sum(len(r.estimate.rescued) + len(r.estimate.suboptimal) for r in runs)
        print(
            f"  {estimator}: seconds { ({k: round(v, 2) for k, v in seconds.items()}) }, by level {[round(x.seconds, 2) for x in runs[-1].estimate.levels]}; {failed} regions rescued or without proof"
        )
        for level in dict.fromkeys(level for level, _ in errors):
            told = ", ".join(
                f"{query} {value:.4g} ({value / means['plain'][own, query]:.3f})"
                for (own, query), value in means[estimator].items() if own == level and means["plain"][own, query]
            )  # fmt: skip
            print(f"    {level:<8}{told}", flush=True)


if __name__ == "__main__":
    main()
