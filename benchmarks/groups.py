"""Group sizes: error and time of every mechanism on a census-like and a taxi-like hierarchy, beside the paper's Table 7.

Run: python benchmarks/groups.py census|taxi|scale|solver [--runs 30] [--epsilon 0.1 0.5 1.0] [--small]

census  1 nation, 52 states, 3,144 counties, sizes to 1,000, 117.6 million groups, built as section 11 describes
taxi    1 city, 6 boroughs, 263 zones, 13,282 groups, sizes to 13,282
scale   run time over N = 5 to 50 sizes, integer programs included, as in section 11.1
solver  M_H^dp against a general QP solver on a size where that ends

All mechanisms run in one process on the same table, run by run with the same seeds; those that measure the same counts with the
same shares get the same noise. Errors are means over the runs; `+-` is half the 95 % interval (Student's t). EMD is the L1 error of
numbers of groups of at most each size (ERRATA G8), `from above` that of groups of at least each size. Seconds are the median of
post-processing. M_c^ch runs with its published noise and is NOT PRIVATE (ERRATA G1).
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from scipy import sparse, stats

from louver.data.regions import RegionTree
from louver.groups.mechanisms import MECHANISMS, count_violations
from louver.groups.plan import SizePlan, chosen_shares, equal_shares, make_plan
from louver.groups.problem import GroupTable, NoisyAnswers, Total
from louver.groups.simulate import LevelError, errors, measured
from louver.privacy.budget import Loss, Measure
from louver.privacy.neighbours import Relation
from louver.privacy.noise import KeyedNoise

# Table 7, L1 errors by level: census in thousands; taxi in units of 10^4 that cannot be right (ERRATA G5).
TABLE_7 = {
    ("census", "0.1"): {"M_H^r": (40.3, 54.3, 802.1), "M_H^dp": (10.3, 38.4, 825.4), "M_c^r": (23.1, 64.5, 632.2),
                        "M_c^dp": (0.9, 23.2, 550.6), "M_c^ch": (0.2, 13.9, 603.0), "TopDown": (3.7, 35.0, 820.5)},
    ("census", "0.5"): {"M_H^r": (39.4, 37.9, 216.3), "M_H^dp": (2.4, 9.4, 230.8), "M_c^r": (23.1, 61.0, 494.2),
                        "M_c^dp": (0.2, 5.8, 159.1), "M_c^ch": (0.0, 3.4, 165.3), "TopDown": (0.9, 8.6, 228.4)},
    ("census", "1.0"): {"M_H^r": (40.7, 39.2, 130.0), "M_H^dp": (1.2, 5.1, 128.8), "M_c^r": (24.1, 63.0, 494.5),
                        "M_c^dp": (0.1, 3.2, 91.0), "M_c^ch": (0.0, 1.7, 86.9), "TopDown": (0.5, 4.6, 127.2)},
}  # fmt: skip

CONTENDERS = [
    ("M_H^r", "equal"), ("M_H^dp", "equal"), ("M_c^r", "equal"), ("M_c^dp", "equal"), ("M_c^ch", "equal"),
    ("TopDown", "equal"), ("louver", "equal"), ("M_c^dp", "chosen"), ("louver", "chosen"),
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "what",
        nargs="?",
        choices=["census", "taxi", "scale", "solver"],
        help="a quick look at census without it",
    )
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--epsilon", nargs="*", default=["0.1", "0.5", "1.0"])
    parser.add_argument(
        "--small", action="store_true", help="a tenth of the regions and sizes, for a quick look"
    )
    parser.add_argument("--mechanisms", nargs="*", help="only these")
    options = parser.parse_args()
    if options.what is None:
        options.what, options.small, options.runs, options.epsilon = "census", True, 2, ["1.0"]
    if options.what == "scale":
        scale(options.runs)
    elif options.what == "solver":
        solver()
    else:
        table = (census if options.what == "census" else taxi)(small=options.small)
        for epsilon in options.epsilon:
            name = f"a tenth of {options.what}" if options.small else options.what
            accuracy(table, name, epsilon, options.runs, options.mechanisms)


def _regions(counts: Sequence[Sequence[int]]) -> RegionTree:
    """A hierarchy with numbers for names."""
    levels: list[list[tuple[str, ...]]] = [[()]]
    for level in counts:
        levels.append([(*r, f"{i:05d}") for r, n in zip(levels[-1], level, strict=True) for i in range(n)])
    names = tuple(f"level {k + 1}" for k in range(1, len(levels)))
    return RegionTree.from_leaves(names, levels[-1])


def census(*, small: bool = False, seed: int = 2) -> GroupTable:
    """Household sizes as published for 2010, n_8+ spread with the ratio n_7 / n_6, and 50 outliers from 10 to 1,000."""
    rng = np.random.default_rng(seed)
    n_states, n_counties, largest, n_groups = (
        (10, 300, 100, 11_763_044) if small else (52, 3144, 1000, 117_630_445)
    )
    state_of = np.sort(rng.choice(n_states, n_counties - n_states, p=rng.dirichlet(np.full(n_states, 2.0))))
    counts = [[n_states], (np.bincount(state_of, minlength=n_states) + 1).tolist()]
    population = rng.lognormal(0, 1.45, n_counties)
    shares_2010 = np.array([0.267, 0.328, 0.161, 0.134, 0.065, 0.026, 0.0105])
    leaves = np.zeros((n_counties, largest + 1), np.int64)
    for county, groups in enumerate(rng.multinomial(n_groups, population / population.sum())):
        head = rng.dirichlet(shares_2010 * 200)
        ratio = min(0.75, max(0.2, head[6] / head[5]))
        shares = np.concatenate([[0], head, head[6] * ratio ** np.arange(1, largest - 6)])
        leaves[county] = rng.multinomial(groups, shares / shares.sum())
    for _ in range(50):
        county = rng.integers(n_counties)
        leaves[county, 2] -= 1
        leaves[county, rng.integers(10, largest + 1)] += 1
    regions = _regions(counts)
    return GroupTable(regions, regions.tree.sum_up(leaves), 0)


def taxi(*, small: bool = False, seed: int = 2) -> GroupTable:
    """Taxis by their number of pickups: most zones hold few taxis, sizes spread widely around 1,800."""
    rng = np.random.default_rng(seed)
    largest, n_taxis = (1328, 1328) if small else (13_282, 13_282)
    counts = [[6], [43, 61, 1, 69, 69, 20]]
    zones = sum(counts[1])
    zone_of = rng.choice(zones, n_taxis, p=rng.dirichlet(np.full(zones, 0.3)))
    size_of = np.clip(rng.gamma(2.0, largest / 14.4, n_taxis).astype(int), 1, largest)
    leaves = np.zeros((zones, largest + 1), np.int64)
    np.add.at(leaves, (zone_of, size_of), 1)
    regions = _regions(counts)
    return GroupTable(regions, regions.tree.sum_up(leaves), 0)


def _plan(table: GroupTable, name: str, shares: str, epsilon: str) -> SizePlan:
    tree = table.regions.tree
    return make_plan(
        MECHANISMS[name],
        table.regions,
        table.largest_size,
        Loss(Fraction(epsilon), Measure.EPSILON, Relation.ADD_REMOVE_RECORD),
        equal_shares(tree.n_levels) if shares == "equal" else chosen_shares(tree),
        total=Total.PUBLIC,
        as_published=name == "M_c^ch",
    )


def _measured(table: GroupTable, plan: SizePlan, seed: int) -> NoisyAnswers:
    return measured(table, plan, KeyedNoise.from_seed(seed))


@dataclass
class Found:
    """What the runs of one mechanism gave."""

    levels: list[tuple[LevelError, ...]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    violations: list[int] = field(default_factory=list)

    def by_level(self, kind: str) -> list[tuple[float, float]]:
        """Mean and half interval of an error, in thousands, for every level."""
        return [
            _mean([getattr(levels[k], kind) / 1e3 for levels in self.levels])
            for k in range(len(self.levels[0]))
        ]

    def lowest(self, kind: str) -> float:
        return statistics.fmean(getattr(levels[-1], kind) for levels in self.levels)

    def summed(self) -> float:
        return statistics.fmean(sum(level.l1 for level in levels) for levels in self.levels)


def accuracy(table: GroupTable, name: str, epsilon: str, runs: int, only: Sequence[str] | None) -> None:
    tree = table.regions.tree
    shown = [c for c in CONTENDERS if not only or c[0] in only]
    print(
        f"\n{name}, epsilon {epsilon}, {runs} runs, {table.n_groups:,} groups, regions {tree.level_sizes}, "
        f"sizes to {table.largest_size}; chosen shares {[float(s) for s in chosen_shares(tree)]}",
        flush=True,
    )
    found = {contender: Found() for contender in shown}
    for seed in range(runs):
        drawn: dict[tuple[str, str], NoisyAnswers] = {}
        for contender in shown:
            plan = _plan(table, *contender, epsilon)
            same_noise = str(plan.query), contender[1]
            if same_noise not in drawn:
                drawn[same_noise] = _measured(table, plan, seed)
            began = time.perf_counter()
            released = plan.mechanism.solve(drawn[same_noise])
            found[contender].seconds.append(time.perf_counter() - began)
            found[contender].levels.append(errors(released, table.counts, tree))
            found[contender].violations.append(count_violations(released, tree))
    print(
        f"{'mechanism':<10}{'shares':<8}{'L1 by level, thousands':<40}{'paper':<24}{'EMD by level, thousands':<34}"
        f"{'from above':<30}{'sum L1':>9}{'#CV':>8}{'seconds':>9}"
    )
    for contender in shown:
        _print_row(contender, found[contender], TABLE_7.get((name, epsilon), {}))
    _print_targets(found)


def _print_row(contender: tuple[str, str], found: Found, paper: dict[str, tuple[float, ...]]) -> None:
    told = "/".join(f"{mean:.1f}+-{half:.1f}" for mean, half in found.by_level("l1"))
    printed = "/".join(f"{x:.1f}" for x in paper.get(contender[0], ())) if contender[1] == "equal" else ""
    emd, above = (
        "/".join(f"{mean:.1f}" for mean, _ in found.by_level(kind)) for kind in ("emd", "suffix_emd")
    )
    print(
        f"{contender[0]:<10}{contender[1]:<8}{told:<40}{printed:<24}{emd:<34}{above:<30}"
        f"{found.summed() / 1e3:>9.1f}{statistics.fmean(found.violations):>8.0f}{statistics.median(found.seconds):>9.2f}"
    )


def _mean(values: list[float]) -> tuple[float, float]:
    if len(values) == 1:
        return values[0], 0.0
    half = float(stats.t.ppf(0.975, len(values) - 1)) * statistics.stdev(values) / len(values) ** 0.5
    return statistics.fmean(values), half


def _print_targets(found: dict[tuple[str, str], Found]) -> None:
    """Paired differences of the default at equal shares, and the ratios that were aimed for."""
    own = found.get(("louver", "equal"))
    if own is None:
        return
    for other in ("M_H^dp", "M_c^dp", "TopDown"):
        theirs = found.get((other, "equal"))
        if theirs is None:
            continue
        told = []
        for k in range(len(own.levels[0])):
            pairs = zip(own.levels, theirs.levels, strict=True)
            mean, half = _mean([(a[k].l1 - b[k].l1) / 1e3 for a, b in pairs])
            told.append(f"{mean:+.3f}+-{half:.3f}{' WORSE' if mean - half > 0 else ''}")
        ratios = [theirs.lowest(kind) / own.lowest(kind) for kind in ("emd", "suffix_emd")]
        print(
            f"  louver minus {other:<7} L1 by level: {' / '.join(told)}; "
            f"lowest-level EMD {ratios[0]:.1f} times smaller (from above {ratios[1]:.1f})"
        )
    equal = found.get(("M_c^dp", "equal"))
    for contender in (("louver", "chosen"), ("M_c^dp", "chosen")):
        if equal is not None and contender in found:
            ratio = found[contender].summed() / equal.summed()
            print(f"  summed L1 against M_c^dp at equal shares: {contender[0]} chosen {ratio:.3f}")


def scale(runs: int) -> None:
    """Section 11.1: seconds over the number of sizes, on a small tree where the integer programs end."""
    names = ["M_H", "M_dp^OP", "M_H^r", "M_H^dp", "M_c", "M_c^r", "M_c^dp", "M_c^ch", "TopDown", "louver"]
    rng = np.random.default_rng(1)
    regions = _regions([[2], [2, 2]])
    print("seconds, median; 7 regions, 12 groups\n" + f"{'N':>4}" + "".join(f"{name:>10}" for name in names))
    for largest in (5, 10, 20, 30, 40, 50):
        leaves = rng.multinomial(12, np.full(4 * (largest + 1), 1 / (4 * (largest + 1)))).reshape(4, -1)
        table = GroupTable(regions, regions.tree.sum_up(leaves), 0)
        line = f"{largest:>4}"
        for name in names:
            plan = _plan(table, name, "equal", "1.0")
            taken = []
            for seed in range(min(runs, 2 if name in ("M_H", "M_dp^OP", "M_c") else 5)):
                noisy = _measured(table, plan, seed)
                began = time.perf_counter()
                plan.mechanism.solve(noisy)
                taken.append(time.perf_counter() - began)
            line += f"{statistics.median(taken):>10.4f}"
        print(line, flush=True)


def solver() -> None:
    """Model 1 without whole numbers by PIQP and Clarabel, and with them by M_H^dp."""
    print(
        f"{'regions':>8}{'sizes':>7}{'M_H^dp s':>10}{'PIQP s':>9}{'Clarabel s':>12}{'ratios':>16}{'cost / relaxed':>16}"
    )
    for counts, largest in (([[5], [10] * 5], 100), ([[8], [15] * 8], 150), ([[10], [20] * 10], 200)):
        rng = np.random.default_rng(1)
        regions = _regions(counts)
        tree = regions.tree
        leaves = rng.poisson(40 * np.exp(-np.arange(largest + 1) / 12), (tree.n_leaves, largest + 1))
        table = GroupTable(regions, tree.sum_up(leaves), 0)
        noisy = _measured(table, _plan(table, "M_H^dp", "equal", "0.5"), 1)
        MECHANISMS["M_H^dp"].solve(noisy)
        began = time.perf_counter()
        whole = MECHANISMS["M_H^dp"].solve(noisy)
        ours = time.perf_counter() - began
        taken, costs = [], []
        for peer in (_piqp, _clarabel):
            began = time.perf_counter()
            x = peer(noisy)
            taken.append(time.perf_counter() - began)
            costs.append(float(((x - noisy.rows) ** 2).sum()))
        cost = float(((whole - noisy.rows) ** 2).sum())
        print(
            f"{tree.n_regions:>8}{largest + 1:>7}{ours:>10.4f}{taken[0]:>9.2f}{taken[1]:>12.2f}"
            f"{f'{taken[0] / ours:.0f} / {taken[1] / ours:.0f}':>16}{cost / min(costs):>16.6f}",
            flush=True,
        )


def _program(noisy: NoisyAnswers) -> tuple[sparse.csc_matrix, np.ndarray, sparse.csc_matrix, np.ndarray, int]:
    """min 1/2 x'Px + c'x over the leaves, x >= 0, sum x = G; P couples leaves with common parents."""
    tree, n_sizes = noisy.tree, noisy.rows.shape[1]
    up = sparse.csc_matrix(tree.sum_up(np.eye(tree.n_leaves, dtype=np.int64)))
    up_all = sparse.kron(up, sparse.identity(n_sizes)).tocsc()
    quadratic = (2 * up_all.T @ up_all).tocsc().astype(float)
    linear = -2.0 * up_all.T @ noisy.rows.ravel()
    n = tree.n_leaves * n_sizes
    assert noisy.total is not None
    return quadratic, linear, sparse.csc_matrix(np.ones((1, n))), np.array([float(noisy.total)]), n


def _rows(noisy: NoisyAnswers, x: np.ndarray) -> np.ndarray:
    up = noisy.tree.sum_up(np.eye(noisy.tree.n_leaves, dtype=np.int64))
    return up @ np.asarray(x).reshape(noisy.tree.n_leaves, -1)


def _piqp(noisy: NoisyAnswers) -> np.ndarray:
    import piqp

    quadratic, linear, ones, total, n = _program(noisy)
    problem = piqp.SparseSolver()
    empty = sparse.csc_matrix((0, n))
    problem.setup(quadratic, linear, ones, total, empty, None, np.zeros(0), np.zeros(n), np.full(n, np.inf))
    problem.solve()
    return _rows(noisy, problem.result.x)


def _clarabel(noisy: NoisyAnswers) -> np.ndarray:
    import clarabel

    quadratic, linear, ones, total, n = _program(noisy)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    matrix = sparse.vstack([ones, -sparse.identity(n)]).tocsc()
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(n)]
    right = np.concatenate([total, np.zeros(n)])
    upper = sparse.triu(quadratic).tocsc()
    return _rows(noisy, clarabel.DefaultSolver(upper, linear, matrix, right, cones, settings).solve().x)


if __name__ == "__main__":
    print(f"python {sys.version.split()[0]}, numpy {np.__version__}")
    main()
