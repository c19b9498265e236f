"""Household sizes that agree with people, beside sizes measured by themselves: errors on a state with made-up households.

Run: python benchmarks/agreeing_sizes.py BLOCKS [--people RELEASE] [--make FOLDER] [--epsilon 0.5 1 2] [--runs 10] [--max-size 12]

BLOCKS    a CSV with the columns GEOID and pop, such as the 25,181 census blocks of Rhode Island in 2010
--make    writes people.parquet, leaves.csv and a TopDown spec for them to a folder, and ends
--people  a TopDown release of these people; without it the people of blocks are exact, as where block totals are invariants

Households are made up: sizes 1 to 12 with the shares of Rhode Island's households in the American Community Survey of 2010, drawn by block
group and block around them (Dirichlet, weights 60 and 15), some people of large blocks in group quarters, one housing unit in ten vacant.
Both tables come from the same noise (change-record, default shares). Errors are those of `--evaluate`, means over runs; the ratio is
agreeing over separate. The identity, the bound and whole numbers are checked in every block of every run.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import statistics
import time
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from louver.data.regions import RegionTree
from louver.groups.mechanisms import MECHANISMS
from louver.groups.methods.cumulative import solve_agreeing
from louver.groups.plan import SizePlan, chosen_shares, make_plan
from louver.groups.problem import GroupTable, Total
from louver.groups.simulate import errors, measured
from louver.groups.uncertainty import simulate_release, widened
from louver.optim.agreement import HousedPeople
from louver.privacy.budget import Loss, Measure
from louver.privacy.neighbours import Relation
from louver.privacy.noise import KeyedNoise

SHARES = np.array([0.302, 0.325, 0.162, 0.128, 0.054, 0.019, 0.006, 0.0025, 0.001, 0.0004, 0.0001, 0.00005])
LEVELS, PREFIXES = ("county", "tract", "group", "block"), (5, 11, 12, 15)

SPEC = """
[source]
file = "people.parquet"

[attributes.lives]
labels = ["household", "group quarters"]

[attributes.adult]
labels = ["no", "yes"]

[topdown]
epsilon = 2
neighbours = "change-record"

[topdown.geography]
column = "block"
levels = ["state", "county", "tract", "group", "block"]
prefixes = [2, 5, 11, 12, 15]
leaves = "leaves.csv"

[[topdown.bounds]]
name = "room"
cells = { lives = ["household"] }
file = "leaves.csv"
upper = "room"
"""


@dataclass(frozen=True)
class Town:
    """Households of every block by size, people in group quarters, and housing units."""

    codes: list[str]
    sizes: np.ndarray
    quarters: np.ndarray
    units: np.ndarray


def made_up(path: Path) -> Town:
    """Households for the people of every block."""
    rng = np.random.default_rng(7)
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        rows = sorted((row["GEOID"], int(row["pop"])) for row in csv.DictReader(file))
    shares, group = SHARES / SHARES.sum(), ""
    sizes, quarters, units = np.zeros((len(rows), len(SHARES)), np.int64), [], []
    for place, (code, people) in enumerate(rows):
        if code[:12] != group:
            group, own = code[:12], rng.dirichlet(shares * 60)
        in_quarters = int(rng.binomial(people, 0.6)) if people > 300 and rng.random() < 0.12 else 0
        here, left = rng.dirichlet(own * 15 + 1e-6), people - in_quarters
        while left > 0:
            size = min(left, 1 + int(rng.choice(len(SHARES), p=here)))
            sizes[place, size - 1] += 1
            left -= size
        quarters.append(in_quarters)
        units.append(sizes[place].sum() + rng.binomial(sizes[place].sum(), 0.1) + (rng.random() < 0.1))
    return Town([code for code, _ in rows], sizes, np.array(quarters), np.array(units, dtype=np.int64))


def write(town: Town, folder: Path) -> None:
    """The same as records, with a list of blocks and a spec."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(8)
    block, home = [], []
    number = 0
    for code, sizes, quarters in zip(town.codes, town.sizes, town.quarters, strict=True):
        for size, n in enumerate(sizes, start=1):
            for _ in range(n):
                block += [code] * size
                home += [f"h{number}"] * size
                number += 1
        block += [code] * int(quarters)
        home += [None] * int(quarters)
    table = pa.table({"block": block, "home": pa.array(home, pa.string())})
    lives = pc.if_else(pc.is_null(table["home"]), "group quarters", "household")
    adult = pa.array(np.where(rng.random(len(block)) < 0.78, "yes", "no"))
    table = table.append_column("lives", lives).append_column("adult", adult)
    pq.write_table(table.take(pa.array(rng.permutation(len(block)))), folder / "people.parquet")
    with (folder / "leaves.csv").open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["block", "units", "room"])
        room = town.units * len(SHARES)
        lines.writerows(zip(town.codes, town.units.tolist(), room.tolist(), strict=True))
    (folder / "state.toml").write_text(SPEC.lstrip())


def people_of(release: Path, town: Town) -> np.ndarray:
    """People in households of every block of a release."""
    table = pq.read_table(release / "data" / "microdata.parquet", columns=["block", "lives"])
    codes = table.filter(pc.equal(table["lives"].cast(pa.string()), "household"))["block"].cast(pa.string())
    place = pc.index_in(codes.combine_chunks(), value_set=pa.array(town.codes))
    return np.bincount(place.to_numpy(), minlength=len(town.codes)).astype(np.int64)


def plan_of(regions: RegionTree, epsilon: Fraction, max_size: int) -> SizePlan:
    budget = Loss(epsilon, Measure.EPSILON, Relation.CHANGE_RECORD)
    shares = chosen_shares(regions.tree)
    return make_plan(MECHANISMS["louver"], regions, max_size, budget, shares, total=Total.NOISY)


def check(counts: np.ndarray, people: np.ndarray, most: np.ndarray, regions: RegionTree) -> None:
    """Every promise, in every block."""
    leaves = counts[regions.tree.level(regions.tree.n_levels - 1)]
    assert (leaves @ np.arange(1, counts.shape[1] + 1) == people).all()
    assert (leaves >= 0).all() and (leaves.sum(axis=1) <= most).all()
    assert (regions.tree.sum_up(leaves) == counts).all()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("blocks", type=Path)
    parser.add_argument("--people", type=Path)
    parser.add_argument("--make", type=Path)
    parser.add_argument(
        "--epsilon", type=Fraction, nargs="+", default=[Fraction(1, 2), Fraction(1), Fraction(2)]
    )
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--max-size", type=int, default=12)
    parser.add_argument(
        "--intervals", action="store_true", help="coverage of 90 %% intervals, first run of each epsilon"
    )
    asked = parser.parse_args()
    town = made_up(asked.blocks)
    if asked.make is not None:
        write(town, asked.make)
        return
    regions = RegionTree.from_leaves(
        LEVELS, [tuple(code[:length] for length in PREFIXES) for code in town.codes]
    )
    tree, largest = regions.tree, asked.max_size
    leaves = np.zeros((len(town.codes), largest), np.int64)
    for size in range(1, len(SHARES) + 1):
        leaves[:, min(size, largest) - 1] += town.sizes[:, size - 1]
    true = GroupTable(regions, tree.sum_up(leaves), 1)
    people = leaves @ np.arange(1, largest + 1) if asked.people is None else people_of(asked.people, town)
    fewest = -(-people // largest)
    most = np.maximum(town.units, fewest)
    print(
        f"{len(people):,} blocks, {people.sum():,} people in households, {true.n_groups:,} households; "
        f"people of a block off by {np.abs(people - leaves @ np.arange(1, largest + 1)).mean():.2f}; "
        f"bounds moved in {int((town.units < fewest).sum())} blocks"
    )
    known = HousedPeople.of_leaves(tree, people, np.zeros_like(people), most, largest)
    for epsilon in asked.epsilon:
        plan = plan_of(regions, epsilon, largest)
        found, seconds = [], []
        for seed in range(asked.runs):
            noisy = measured(true, plan, KeyedNoise.from_seed(seed))
            began = time.process_time()
            alone = plan.mechanism.solve(noisy)
            between = time.process_time()
            together = solve_agreeing(noisy, known)
            seconds.append((between - began, time.process_time() - between))
            check(together, people, most, regions)
            found.append([errors(table, true.counts, tree) for table in (alone, together)])
            if asked.intervals and seed == 0:
                table = GroupTable(regions, together, 1)
                shown = widened(simulate_release(table, plan), table, alone).groups
                inside = (shown.lower <= true.counts) & (true.counts <= shown.upper)
                cover = [f"{inside[tree.level(k)].mean():.3f}" for k in range(tree.n_levels)]
                print(f"epsilon {epsilon}: 90 % intervals hold the truth, by level: {' '.join(cover)}")
        for k, name in enumerate(regions.names):
            words = []
            for kind in ("l1", "emd", "suffix_emd"):
                a, b = (statistics.fmean(getattr(run[i][k], kind) for run in found) for i in (0, 1))
                ratios = [getattr(run[1][k], kind) / getattr(run[0][k], kind) for run in found]
                words.append(
                    f"{kind} {a:,.0f} -> {b:,.0f} ({b / a:.3f}; {min(ratios):.2f} to {max(ratios):.2f})"
                )
            print(f"epsilon {epsilon} {name:>7}: " + "   ".join(words))
        a, b = (statistics.median(pair[i] for pair in seconds) for i in (0, 1))
        print(f"epsilon {epsilon}: {a:.1f} and {b:.1f} processor seconds")


if __name__ == "__main__":
    main()
