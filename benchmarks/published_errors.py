"""Errors of estimates from published measurements of Rhode Island, against the truth: by level, and for random unions of blocks.

    python benchmarks/published_errors.py --data DIR --blocks 3000 --seeds 3 --intervals 3

Beside the release stand the published answers themselves ("raw"), least squares over all levels before any constraint ("linear") and the
estimator "plain". Mean absolute errors over regions and rows; coverage of 90 % intervals of the numbers that are not exact.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
from published_state import publish, rhode_island

from louver.topdown import estimate, import_nmf
from louver.topdown.estimation.evidence import gather_evidence
from louver.topdown.measuring.true_counts import SealedCounts, batches_of, read_invariants
from louver.topdown.problem import Query
from louver.topdown.result import INVARIANTS_FILE, MEASUREMENTS_FILE

QUERIES = ("total", "votingage", "hispanic", "cenrace")


def linear(problem, noisy, batches) -> list[np.ndarray]:
    """Least squares over the whole tree: cells of every region, level by level."""
    tree = gather_evidence(problem, noisy)
    labels, spine = tree.leaves.tree, problem.spine
    found: list[np.ndarray] = []
    for level in range(spine.n_levels):
        spans = batches if level == spine.n_levels - 1 else [(0, spine.sizes[level])]
        parts = [tree.read(level, *span) for span in spans]
        own = np.concatenate([np.array(part.values[part.detailed], float) for part in parts])
        if level:
            starts = spine.starts[level - 1]
            for parent in range(len(starts) - 1):
                span = slice(starts[parent], starts[parent + 1])
                covariances = labels.covariances(level, span.start, span.stop, spine.n_levels)
                summed = covariances.sum(axis=0)
                missing = labels.cells.split((found[-1][parent] - own[span].sum(axis=0))[None])
                moved = [
                    c @ np.linalg.pinv(s) @ m
                    for c, s, m in zip(covariances.swapaxes(0, 1), summed, missing, strict=True)
                ]
                own[span] += labels.cells.join(moved)
        found.append(own)
    return found


def rows_of(query: Query, cells: np.ndarray) -> np.ndarray:
    order = np.argsort(query.row_of, kind="stable")
    starts = np.searchsorted(query.row_of[order], np.arange(query.n_rows))
    return np.add.reduceat(cells[:, order], starts, axis=1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--blocks", type=int, default=3000)
    parser.add_argument("--every", type=int, default=1, help="one tract in so many, over all counties")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--intervals", type=int, default=0)
    asked = parser.parse_args()
    errors, covered = defaultdict(list), defaultdict(list)
    state = rhode_island(asked.data, blocks=asked.blocks or None, every=asked.every)
    codes = [code[1:3] + code[0] + code[3:] for code in state.codes]
    order = sorted(range(len(codes)), key=codes.__getitem__)
    truth = state.counts[order].astype(np.int64)
    for seed in range(1, asked.seeds + 1):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            publish(state, folder / "files", seed=seed)
            began = time.perf_counter()
            import_nmf(folder / "files", out=folder / "measured")
            print(
                f"seed {seed}: {len(codes)} blocks, imported in {time.perf_counter() - began:.0f} s",
                flush=True,
            )
            spec = folder / "measured/topdown.toml"
            releases = {}
            for estimator in ("bayes", "plain"):
                began = time.perf_counter()
                n = asked.intervals if estimator == "bayes" else 0
                releases[estimator] = estimate(
                    spec, measurements=folder / "measured", estimator=estimator, intervals=n
                )
                print(f"  {estimator}: {time.perf_counter() - began:.0f} s", flush=True)
            plan = releases["bayes"].plan
            noisy = SealedCounts(folder / "measured" / MEASUREMENTS_FILE, plan)
            problem = plan.problem(read_invariants(folder / "measured" / INVARIANTS_FILE, plan))
            straight = linear(problem, noisy, batches_of(plan)[-1])
            compare(plan, noisy, releases, straight, truth, seed, errors, covered)
        report(errors, covered)


def report(errors, covered) -> None:
    """The means over the seeds so far."""
    print("query level          | raw linear plain louver | louver/best   coverage")
    for key in errors:
        raw, line, plain, own = np.mean(errors[key], axis=0)
        best = np.nanmin([raw, line, plain])
        told = f"{np.mean(covered[key]):.3f}" if covered[key] else ""
        print(
            f"{key[0]:10} {key[1]:12}| {raw:8.2f} {line:8.2f} {plain:8.2f} {own:8.2f} | {own / best:.3f}   {told}",
            flush=True,
        )


def compare(plan, noisy, releases, straight, truth, seed, errors, covered) -> None:
    spine = plan.design.spine
    levels = {name: list(one.levels())[::-1] for name, one in releases.items()}
    queries = [query for query in plan.design.queries if query.name in QUERIES]
    random = np.random.default_rng(seed)
    for level in range(spine.n_levels):
        starts = np.searchsorted(
            [code[: plan.design.prefixes[level]] for code in spine.leaves], spine.codes[level]
        )
        true = np.add.reduceat(truth, starts, axis=0)
        for query in queries:
            exact = rows_of(query, true)
            answers = np.full(exact.shape, np.nan)
            load = plan.workloads()[level]
            names = [one.name for one in load.queries]
            if query.name in names:
                place = names.index(query.name)
                answers = np.concatenate(
                    [noisy.read(level, a, b)[place] for a, b in batches_of(plan)[level]]
                ).astype(float)
                answers[load.by_region.kinds[load.by_region.kind_of, place] <= 0] = np.nan
            numbers = [answers, rows_of(query, straight[level])]
            numbers += [query.answer(levels[name][level]) for name in ("plain", "bayes")]
            key = (query.name, spine.names[level])
            errors[key].append(
                [np.nanmean(np.abs(one - exact)) if np.isfinite(one).any() else np.nan for one in numbers]
            )
            known = releases["bayes"].known_error
            if known is not None:
                region, row = np.indices(exact.shape).reshape(2, -1)
                found = known.intervals(level, query, region, row, numbers[-1].ravel())
                is_open = found.standard_error > 0
                inside = (found.lower <= exact.ravel()) & (exact.ravel() <= found.upper)
                covered[key].append(inside[is_open].mean() if is_open.any() else np.nan)
    for query in queries:
        offs = []
        for _ in range(200):
            first, length = random.integers(len(truth)), random.integers(3, 60)
            span = slice(int(first), int(min(first + length, len(truth))))
            exact = rows_of(query, truth[span].sum(axis=0)[None])[0]
            raw = np.concatenate([noisy_rows(plan, noisy, query, span)]).sum(axis=0)
            parts = [raw, rows_of(query, straight[-1][span].sum(axis=0)[None])[0]]
            parts += [
                query.answer(levels[name][-1].part(span.start, span.stop)).sum(axis=0)
                for name in ("plain", "bayes")
            ]
            offs.append([np.abs(part - exact).mean() for part in parts])
        errors[query.name, "200 unions"].append(np.mean(offs, axis=0))


def noisy_rows(plan, noisy, query, span) -> np.ndarray:
    """Published answers of some blocks; those without any count as zero."""
    level = plan.design.spine.n_levels - 1
    place = [one.query.name for one in plan.measured[level]].index(query.name)
    parts = [
        noisy.read(level, a, b)[place][max(0, span.start - a) : max(0, span.stop - a)]
        for a, b in batches_of(plan)[level]
        if a < span.stop and b > span.start
    ]
    return np.concatenate(parts)


if __name__ == "__main__":
    main()
