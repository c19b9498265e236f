"""TopDown as a newcomer runs it: no shares in the spec, errors by level over those of the paper's algorithm.

Run: python benchmarks/topdown_default.py [STATE ...] --data FOLDER [--seeds 10] [--epsilon 1] [--part 1] [--public units useless]

STATE is rhode_island (needs --data, with ri_2010_blocks.csv.gz), or plain_state, mixed_state or split_state (made_up_states.py); all of
them without it. `plain` has the reference's shares: levels alike, 0.1 / 0.2 / 0.3 / 0.4 for total to detailed. `--part` draws a smaller
state.

`--public` compares louver with itself instead: with public numbers of every block, made from the truth with noise, over without them, and
the worst ratio of a single seed. They are units (housing units), useless (numbers of other blocks), census (another census' counts by
race), or empty (a bound that nobody lives in the empty blocks).
Everything runs from files, with seeded noise: nothing here is private.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import statistics
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
from made_up_states import SHAPES, made_up_state
from topdown_specs import GROUPS, LEVELS, write_rhode_island

import louver as lv

QUERIES = ("total", "voting_age", "race", "detailed")
SIZES = ((0, 0), (1, 9), (10, 49), (50, 99), (100, 10**9))
MINORITIES = ((0.0, 0.1), (0.1, 0.5), (0.5, 1.01))
Scores = dict[str, list[float]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("states", nargs="*")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--part", type=float, default=1.0)
    parser.add_argument("--estimator", default="bayes")
    parser.add_argument("--public", nargs="+", default=[], choices=["units", "useless", "census", "empty"])
    options = parser.parse_args()
    for name in options.states or ["rhode_island", *SHAPES]:
        with tempfile.TemporaryDirectory() as folder:
            compare(name, options, Path(folder))


def compare(name: str, options: argparse.Namespace, folder: Path) -> None:
    data = options.data
    if name in SHAPES:
        data = folder / "data"
        data.mkdir()
        write_state(name, data / "ri_2010_blocks.csv.gz", options.part)
    plain = write_rhode_island(folder, data, epsilon=options.epsilon)
    open_ = without_shares(folder, data, options.epsilon, "open")
    truth = true_counts(folder / "blocks.csv")
    people = truth.sum(axis=1)
    print(
        f"\n{name}, epsilon {options.epsilon}, {options.seeds} seeds: {people.sum():,} people, {len(people):,} blocks, "
        f"{(people == 0).mean():.0%} of them empty"
    )
    own = _scores(open_, {"estimator": options.estimator}, options.seeds, truth)
    for kind in options.public:
        spec = without_shares(folder, data, options.epsilon, kind)
        write_public(folder, truth, kind, spec)
        _compare_public(kind, _scores(spec, {}, options.seeds, truth), own)
    if options.public:
        return
    base = _scores(plain, {"estimator": "plain"}, options.seeds, truth)
    print(f"{'':10}" + "".join(f"{query:>26}" for query in QUERIES) + "   (louver, plain, ratio)")
    for level in LEVELS:
        told = "".join(_ratio(own[f"{level} {query}"], base[f"{level} {query}"]) for query in QUERIES)
        print(f"{level:10}{told}")
    for score in [score for score in own if " " not in score or score.startswith(("bias", "filled"))]:
        print(f"  {score}: {statistics.fmean(own[score]):.3f} (plain {statistics.fmean(base[score]):.3f})")


def without_shares(folder: Path, data: Path, epsilon: str, name: str) -> Path:
    spec = write_rhode_island(folder, data, epsilon=epsilon, shares="", name=name)
    spec.write_text(spec.read_text().replace("[topdown.shares]\n\n", ""))
    return spec


def _compare_public(kind: str, known: Scores, without: Scores) -> None:
    """Errors with public numbers over those without, by level; in brackets the worst single seed."""
    print(f"  {kind}: over nothing, and the worst seed")
    for level in LEVELS:
        line = ""
        for query in QUERIES:
            with_, none = known[f"{level} {query}"], without[f"{level} {query}"]
            if statistics.fmean(none):
                worst = max(a / max(b, 1e-9) for a, b in zip(with_, none, strict=True))
                line += f"{query:>14} {statistics.fmean(with_) / statistics.fmean(none):.3f} ({worst:.3f})"
        print(f"  {level:8}{line}")
    for score in ("block total", "block detailed", "filled of the empty blocks"):
        print(
            f"    {score}: {statistics.fmean(known[score]):.3f}, without {statistics.fmean(without[score]):.3f}"
        )


def write_state(name: str, path: Path, part: float) -> None:
    """A made-up state as the file of Rhode Island is laid out."""
    state = made_up_state(name, part=part)
    header = ["GEOID", *(f"pop_{group}" for group in GROUPS), *(f"vap_{group}" for group in GROUPS)]
    with gzip.open(path, "wt", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        for code, row in zip(state.geocodes, state.counts.tolist(), strict=True):
            adults, minors = row[:8], row[8:]
            writer.writerow([code, *(a + b for a, b in zip(adults, minors, strict=True)), *adults])


def write_public(folder: Path, truth: np.ndarray, kind: str, spec: Path) -> None:
    """Public numbers of every block beside its code, and what the spec says about them.

    Units: 2.5 persons each, by a factor of log-standard deviation 0.2; some are vacant; one block in a hundred is not in the list.
    """
    rng, people = np.random.default_rng(5), truth.sum(axis=1)
    with (folder / "leaves.csv").open(newline="") as file:
        codes = sorted(row[0] for row in list(csv.reader(file))[1:])
    if kind == "units":
        units = rng.poisson(people / (2.5 * rng.lognormal(0, 0.2, len(people)))) + rng.poisson(
            0.03 * people + 0.15
        )
        columns = {"units": np.where(rng.random(len(people)) < 0.01, 0, units)}
    elif kind == "useless":
        columns = {"useless": rng.poisson(rng.gamma(0.9, 20.0, len(people)))}
    elif kind == "census":
        before = rng.poisson(
            truth * rng.lognormal(0, 0.25, truth.shape) * (rng.random((len(truth), 1)) > 0.03)
        )
        columns = dict(zip(GROUPS, before.reshape(len(truth), 2, 8).sum(axis=1).T, strict=True))
    else:
        columns = {"most": np.where(people > 0, 10**9, 0)}
    with (folder / f"{kind}.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("GEOID", *columns), *zip(codes, *columns.values(), strict=True)])
    with spec.open("a") as file:
        for name in columns:
            if kind == "empty":
                file.write('[[topdown.bounds]]\nname = "empty"\nfile = "empty.csv"\nupper = "most"\n')
                continue
            file.write(f'[[topdown.covariates]]\ncolumn = "{name}"\nfile = "{kind}.csv"\n')
            file.write(f'cells = {{ race = ["{name}"] }}\n' if kind == "census" else "")


def true_counts(path: Path) -> np.ndarray:
    """Counts (blocks, cells) in the order of the codes."""
    with path.open(newline="") as file:
        rows = sorted(list(csv.reader(file))[1:])
    return np.array([[int(x) for x in row[1:]] for row in rows])


def _scores(spec: Path, how: dict[str, str], seeds: int, truth: np.ndarray) -> Scores:
    scores: Scores = defaultdict(list)
    people, others = truth.sum(axis=1), truth.reshape(len(truth), 2, 8).sum(axis=1)
    share = 1.0 - others.max(axis=1) / np.maximum(people, 1)
    began = time.process_time()
    for seed in range(seeds):
        release = lv.topdown(spec, seed=seed, evaluate=True, intervals=0, **how)
        for one in release.evaluation or ():
            scores[f"{one.level} {one.query}"].append(one.mean_absolute)
        found = release.estimate.leaves.to_dense(truth.shape[1])
        off = found.sum(axis=1) - people
        scores["filled of the empty blocks"].append(float((off[people == 0] > 0).mean()))
        for low, high in SIZES:
            inside = (people >= low) & (people <= high)
            scores[f"bias of blocks of {low} to {high} people"].append(float(off[inside].mean()))
        minority = found.reshape(len(found), 2, 8).sum(axis=1)
        minority = (
            minority.sum(axis=1) - np.take_along_axis(minority, others.argmax(axis=1)[:, None], axis=1)[:, 0]
        )
        wanted = people - others.max(axis=1)
        for low, high in MINORITIES:
            inside = (share >= low) & (share < high) & (people >= 10)
            if inside.any():
                scores[
                    f"bias of people outside the largest group, where they are {low:.0%} to {min(high, 1):.0%}"
                ].append(float((minority - wanted)[inside].mean()))
    scores["processor_seconds"] = [(time.process_time() - began) / seeds]
    return scores


def _ratio(own: list[float], plain: list[float]) -> str:
    ours, theirs = statistics.fmean(own), statistics.fmean(plain)
    return f"{ours:>9.2f}{theirs:>9.2f}" + (f"{ours / theirs:>8.3f}" if theirs else f"{'':>8}")


if __name__ == "__main__":
    main()
