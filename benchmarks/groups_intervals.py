"""Group sizes: how often the 90 % intervals of a release hold the truth, by level and by size of the number.

Run: python benchmarks/groups_intervals.py [--releases 200] [--only NAME]

A made-up state of 6 counties and 51 towns, 400,000 persons, sizes 1 to 16, is released again and again with other noise by every kind of
mechanism, relation and budget; so are the crashes that come with louver (4 regions, 60 sampling units, sizes to 20) and a tenth of the
census-like table of benchmarks/groups.py (10 states, 300 counties, sizes to 100). Standard errors and intervals are simulated from each
release as `louver groups` does. Printed are, level by level, the percentage of published numbers whose interval holds the truth: of 10 or
more, of 1 to 9 and of 0; the same by true numbers of 1 to 9; of persons of regions; and the root of mean squares of the standard errors
over that of the true errors. Seconds are the processor's.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from louver.data.regions import RegionTree
from louver.data.samples import sample_path
from louver.groups.mechanisms import MECHANISMS
from louver.groups.plan import SizePlan, chosen_shares, equal_shares, make_plan
from louver.groups.problem import GroupTable, Total
from louver.groups.simulate import measured
from louver.groups.uncertainty import simulate_release
from louver.privacy.budget import Loss, Measure
from louver.privacy.neighbours import Relation
from louver.privacy.noise import KeyedNoise

sys.path.insert(0, str(Path(__file__).parent))
from groups import census

TEXTS = pa.schema({"REGION": pa.string(), "PSU": pa.string()})

RECORD, CHANGE, UNIT = Relation.ADD_REMOVE_RECORD, Relation.CHANGE_RECORD, Relation.ADD_REMOVE_UNIT
EPSILON, RHO, NOISY, PUBLIC = Measure.EPSILON, Measure.RHO, Total.NOISY, Total.PUBLIC

CASES = {
    "default": ("louver", EPSILON, "0.3", RECORD, NOISY, "chosen"),
    "equal shares, change-record": ("louver", EPSILON, "0.5", CHANGE, NOISY, "equal"),
    "rho": ("louver", RHO, "0.02", RECORD, NOISY, "chosen"),
    "rho, change-record": ("louver", RHO, "0.05", CHANGE, NOISY, "equal"),
    "public total": ("louver", EPSILON, "0.3", RECORD, PUBLIC, "chosen"),
    "units": ("M_H^dp", EPSILON, "0.3", UNIT, NOISY, "chosen"),
    "units, rho": ("M_H^dp", RHO, "0.02", UNIT, NOISY, "equal"),
    "sizes": ("M_H^dp", EPSILON, "0.5", RECORD, NOISY, "chosen"),
    "prefix by regions": ("M_c^dp", EPSILON, "0.3", RECORD, PUBLIC, "equal"),
    "relaxed": ("M_c^r", EPSILON, "0.3", RECORD, PUBLIC, "equal"),
    "level by level": ("TopDown", EPSILON, "0.5", RECORD, PUBLIC, "equal"),
    "crashes": ("louver", EPSILON, "0.3", RECORD, NOISY, "chosen"),
    "crashes, public total": ("louver", EPSILON, "1", RECORD, PUBLIC, "chosen"),
    "crashes, units": ("M_H^dp", EPSILON, "0.5", UNIT, NOISY, "chosen"),
    "crashes, sizes": ("M_H^dp", EPSILON, "0.5", RECORD, PUBLIC, "chosen"),
    "census": ("louver", EPSILON, "0.5", RECORD, PUBLIC, "chosen"),
    "census, sizes": ("M_H^dp", EPSILON, "0.5", RECORD, PUBLIC, "chosen"),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--releases", type=int, default=200)
    parser.add_argument("--only", choices=CASES)
    options = parser.parse_args()
    print(f"{options.releases} releases; percentage of intervals that hold the truth")
    for name, case in CASES.items():
        if options.only in (None, name):
            coverage(name, *case, options.releases)


def state(total: Total, seed: int = 3) -> GroupTable:
    rng = np.random.default_rng(seed)
    leaves = [(f"c{i}", f"t{i}-{j}") for i in range(6) for j in range(rng.integers(2, 20))]
    regions = RegionTree.from_leaves(("county", "town"), leaves)
    first = 0 if total is PUBLIC else 1
    shares = np.array([0.28, 0.33, 0.16, 0.13, 0.06, 0.025, 0.01, *(0.005 * 0.6 ** np.arange(9))])
    counts = np.zeros((len(leaves), 17 - first), np.int64)
    for row, groups in zip(counts, rng.lognormal(7.5, 1, len(leaves)), strict=True):
        row[1 - first :] = rng.multinomial(int(groups), rng.dirichlet(shares * 100))
    return GroupTable(regions, regions.tree.sum_up(counts), first)


def crashes(total: Total, largest: int = 20) -> GroupTable:
    """Crashes by region, primary sampling unit and the number of people in them."""
    people = pa.csv.read_csv(sample_path("ges2013"))
    leaves = pa.csv.read_csv(sample_path("ges2013_regions")).select(["REGION", "PSU"]).cast(TEXTS)
    counted = people.group_by(["REGION", "PSU", "CASENUM"]).aggregate([([], "count_all")])
    places = counted.select(["REGION", "PSU"]).cast(TEXTS).to_pylist()
    sizes = np.minimum(counted["count_all"].to_numpy(), largest).tolist()
    cells = Counter((tuple(place.values()), size) for place, size in zip(places, sizes, strict=True))
    regions = RegionTree.from_leaves(("REGION", "PSU"), [tuple(leaf.values()) for leaf in leaves.to_pylist()])
    return GroupTable.from_cells(regions, cells, largest, total)


def _table(label: str, total: Total) -> GroupTable:
    if label.startswith("census"):
        return census(small=True)
    return crashes(total) if label.startswith("crashes") else state(total)


def _plan(table: GroupTable, name: str, loss: Loss, total: Total, shares: str) -> SizePlan:
    tree, mechanism = table.regions.tree, MECHANISMS[name]
    chosen = chosen_shares(tree, loss.measure, is_weighted=mechanism.is_weighted)
    split = chosen if shares == "chosen" else equal_shares(tree.n_levels)
    return make_plan(mechanism, table.regions, table.largest_size, loss, split, total=total)


def coverage(
    label: str,
    name: str,
    measure: Measure,
    amount: str,
    relation: Relation,
    total: Total,
    shares: str,
    n: int,
) -> None:
    table = _table(label, total)
    tree, sizes = table.regions.tree, np.arange(table.first_size, table.largest_size + 1)
    plan = _plan(table, name, Loss(Fraction(amount), measure, relation), total, shares)
    true, persons = table.counts, table.counts @ sizes
    held = {kind: np.zeros((tree.n_levels, 2)) for kind in ("10+", "1-9", "0", "true 1-9", "persons")}
    squares = np.zeros((tree.n_levels, 2))
    seconds = [0.0, 0.0]
    for seed in range(n):
        began = time.process_time()
        counts = plan.mechanism.solve(measured(table, plan, KeyedNoise.from_seed(seed)))
        middle = time.process_time()
        found = simulate_release(GroupTable(table.regions, counts, table.first_size), plan)
        seconds = [seconds[0] + middle - began, seconds[1] + time.process_time() - middle]
        holds = (found.groups.lower <= true) & (true <= found.groups.upper)
        holds_persons = (found.persons.lower <= persons) & (persons <= found.persons.upper)
        for k in range(tree.n_levels):
            here = tree.level(k)
            kinds = {
                "10+": counts[here] >= 10,
                "1-9": (counts[here] > 0) & (counts[here] < 10),
                "0": counts[here] == 0,
                "true 1-9": (true[here] > 0) & (true[here] < 10),
            }
            for kind, mask in kinds.items():
                held[kind][k] += holds[here][mask].sum(), mask.sum()
            held["persons"][k] += holds_persons[here].sum(), here.stop - here.start
            squares[k] += (
                np.square(found.groups.standard_error[here]).sum(),
                np.square(counts - true)[here].sum(),
            )
    noise = ", ".join(f"{level.distribution.variance**0.5:.1f}" for level in plan.levels)
    print(
        f"\n{label}: {name}, {measure} {amount}, {relation}, {total} total, {shares} shares; noise {noise}; "
        f"{seconds[0] / n:.3f} s to estimate, {seconds[1] / n:.3f} s more to simulate"
    )
    print(f"{'':<8}" + "".join(f"{kind:>18}" for kind in held) + f"{'told / true error':>20}")
    for k, level in enumerate(plan.levels):
        cells = [
            f"{100 * a / b:.1f} ({b / n:,.0f} a time)" if b else "-" for a, b in (x[k] for x in held.values())
        ]
        ratio = np.sqrt(squares[k][0] / squares[k][1])
        print(f"{level.name:<8}" + "".join(f"{cell:>18}" for cell in cells) + f"{ratio:>20.2f}", flush=True)


if __name__ == "__main__":
    main()
