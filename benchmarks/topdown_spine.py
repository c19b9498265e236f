"""Errors of named areas and of geographic regions, with the geography as spine and with one arranged for these areas, at equal budget.

    python benchmarks/topdown_spine.py --data DIR [--seeds 10] [--epsilon 1 | --rho 1/8] [--shares default|equal] [--kinds district place]

Rhode Island 2010, 25,181 blocks. Its districts and places are MADE UP, from fixed seeds: 40 districts are runs of blocks, cut anywhere, so
that every block is in one; 60 places are parts of one to five neighbouring block groups, so that most blocks are in none. Everything runs
from files, with seeded noise: nothing here is private.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
from topdown_specs import LEVELS, PREFIXES, write_rhode_island

import louver as lv

SHARES = """levels = {levels}
queries = {{ total = "0.1", voting_age = "0.2", race = "0.3", detailed = "0.4" }}"""


def districts(codes: list[str], count: int = 40, seed: int = 5) -> list[str]:
    """Runs of consecutive blocks."""
    cuts = np.sort(np.random.default_rng(seed).choice(len(codes) - 1, count - 1, replace=False) + 1)
    return [f"District {i}" for i in np.searchsorted(cuts, np.arange(len(codes)), side="right")]


def places(codes: list[str], count: int = 60, seed: int = 6) -> list[str]:
    """Parts of neighbouring block groups; an empty name where there is no place."""
    random, found = np.random.default_rng(seed), [""] * len(codes)
    groups = np.unique([code[:12] for code in codes], return_index=True)[1]
    ends = [*groups.tolist(), len(codes)]
    for place, first in enumerate(np.sort(random.choice(len(groups) - 6, count, replace=False)).tolist()):
        for group in range(first, first + int(random.integers(1, 6))):
            start, stop = ends[group], ends[group + 1]
            n = min(int(np.ceil((stop - start) * random.uniform(0.5, 1.2))), stop - start)
            begin = start if random.random() < 0.5 else stop - n
            for block in range(begin, begin + n):
                found[block] = found[block] or f"Place {place}"
    return found


KINDS = {"district": districts, "place": places}


def write_areas(path: Path, codes: list[str], kinds: list[str]) -> dict[str, np.ndarray]:
    """The file of areas; and for each kind the area of every block, -1 for none."""
    areas = {}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["leaf", "area", "kind"])
        for kind in kinds:
            named = KINDS[kind](codes)
            writer.writerows((code, area, kind) for code, area in zip(codes, named, strict=True) if area)
            number = {area: i for i, area in enumerate(sorted(set(named) - {""}))}
            areas[kind] = np.array([number.get(area, -1) for area in named])
    return areas


def write_specs(folder: Path, options: argparse.Namespace) -> dict[str, Path]:
    """The same spec without and with a spine."""
    specs = {}
    for name in ("geography", "spine"):
        names = ("state", "county", "part 1", "part 2", "block") if name == "spine" else LEVELS
        equal = "{ " + ", ".join(f'"{level}" = "1/5"' for level in names) + " }"
        shares = SHARES.format(levels=equal) if options.shares == "equal" else ""
        path = write_rhode_island(folder, options.data, epsilon=options.epsilon, shares=shares, name=name)
        text = path.read_text()
        if not shares:
            text = text.replace("[topdown.shares]\n\n", "")
        if options.rho is not None:
            text = text.replace(f"epsilon = {options.epsilon}\n", f'rho = "{options.rho}"\ndelta = 1e-10\n')
        if name == "spine":
            given = f'areas = "areas.csv"\nfixed = "county"\ntolerance = {options.tolerance}\n'
            text = text.replace("[topdown.queries]", f"[topdown.spine]\n{given}[topdown.queries]")
        path.write_text(text)
        specs[name] = path
    return specs


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--rho")
    parser.add_argument("--shares", choices=["default", "equal"], default="default")
    parser.add_argument("--kinds", nargs="+", choices=[*KINDS], default=[*KINDS])
    parser.add_argument("--estimator", default="bayes")
    parser.add_argument("--tolerance", default="0.05")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        specs = write_specs(folder, options)
        with (folder / "blocks.csv").open(newline="") as file:
            rows = sorted(list(csv.reader(file))[1:])
        codes = [row[0] for row in rows]
        truth = {row[0]: np.array(row[1:], np.int64) for row in rows}
        groups = dict(write_areas(folder / "areas.csv", codes, options.kinds))
        for level, width in zip(LEVELS, PREFIXES, strict=True):
            groups[level] = np.unique([code[:width] for code in codes], return_inverse=True)[1]
        compare(specs, truth, codes, groups, options)


def compare(specs, truth, codes, groups, options) -> None:
    exact = np.stack([truth[code] for code in codes])
    errors = defaultdict(lambda: defaultdict(list))
    began = time.process_time()
    for seed in range(options.first, options.first + options.seeds):
        for name, path in specs.items():
            release = lv.topdown(path, seed=seed, estimator=options.estimator, intervals=0)
            design = release.plan.design
            if seed == options.first:
                describe(name, design)
            dense = release.estimate.leaves.to_dense(design.n_cells)
            place = {code: i for i, code in enumerate(design.spine.leaves)}
            own = dense[[place[code] for code in codes]]
            for key, group in groups.items():
                inside = group >= 0
                sums = np.zeros((int(group.max()) + 1, design.n_cells))
                np.add.at(sums, group[inside], (own - exact)[inside])
                for query in design.queries:
                    rows = np.zeros((len(sums), query.n_rows))
                    np.add.at(rows.T, query.row_of, sums.T)
                    errors[key, query.name][name].append(float(np.abs(rows).mean()))
        report(errors, seed + 1 - options.first, time.process_time() - began)


def describe(name, design) -> None:
    shares = design.options.shares
    print(f"{name}: regions {design.spine.sizes}; levels {shares.levels}")
    if design.arrangement is not None:
        print(f"  rules {design.arrangement.rule_names}", flush=True)


def report(errors, n_seeds, seconds) -> None:
    print(
        f"{n_seeds} seeds, {seconds:.0f} processor seconds: mean absolute error, geography and spine, ratio"
    )
    for (key, query), found in errors.items():
        before, after = (np.mean(found[name]) for name in ("geography", "spine"))
        told = f"{after / before:.3f}" if before else ""
        print(f"  {key:10}{query:12}{before:9.2f}{after:9.2f}  {told}", flush=True)


if __name__ == "__main__":
    main()
