"""Where perturbation stands beside generalisation: risk by record linkage against utility.

Run: python benchmarks/perturbation.py [--adult FILE] [--records 2000] [--seed 1] [--chart FILE.svg]

On the same quasi-identifiers of Adult (age, years of schooling, race, sex, marital status; a made-up table of that shape without the file):

louver          k-anonymous classes of auto (k = 3, 5, 10, 20), analysed by draws within intervals and sets
MDAV            microaggregation with fixed size (Domingo-Ferrer and Mateo-Sanz 2002): numbers become means of k near records, labels
                the commonest
rank swapping   values exchanged with one at most p per cent of the ranks away (Moore 1996), column by column
PRAM            labels changed by a matrix that leaves expected frequencies as they are, exactly (Gouweleeuw et al. 1998), numbers by
                steps along their values

Risk: an attacker holds the original quasi-identifiers of everybody and links every published record to the nearest person; the share of
right links, ties shared. Against generalisation the persons that a record covers are all equally near. Utility: the greatest error of the
shares in all two-way tables, the error of the coefficients of age and schooling in a logistic regression of income in standard errors,
and the loss of single values, as a share of the range or the share of changed labels.

These are baselines for comparison, not recommendations: none of them promises that nobody is found, and no bound on the risk is proved.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

import louver as lv

NUMBERS, LABELS = ("age", "education-num"), ("race", "sex", "marital-status")
QUASI = (*NUMBERS, *LABELS)
COPIES = 5
Columns = dict[str, np.ndarray]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--adult", type=Path)
    parser.add_argument("--records", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--chart", type=Path)
    options = parser.parse_args()
    random = np.random.default_rng(options.seed)
    original, income = read(options, random)
    print(f"{'method':<20} {'right links':>11} {'two-way':>8} {'logistic':>9} {'values':>7}")
    points = []
    for name, risk, copies in perturbed(original, random):
        tables = np.mean([two_way_error(original, copy) for copy in copies])
        slopes = slope_error(original, copies, income)
        values = np.mean([value_error(original, copy) for copy in copies])
        points.append((name, risk, slopes))
        print(f"{name:<20} {risk:>11.1%} {tables:>8.2%} {slopes:>9.2f} {values:>7.2%}", flush=True)
    if options.chart is not None:
        draw(points, options.chart)


def read(options: argparse.Namespace, random: np.random.Generator) -> tuple[Columns, np.ndarray]:
    """Codes of all columns (labels numbered), and whether income is high."""
    n = options.records
    if options.adult is None:
        print("(no Adult file: a made-up table of its shape)")
        sizes = (74, 16, 5, 2, 7)
        made = {
            name: (size * random.random(n) ** 2).astype(int) for name, size in zip(QUASI, sizes, strict=True)
        }
        score = made["age"] / 40 + made["education-num"] / 6 - 2
        return made, random.random(n) < 1 / (1 + np.exp(-score))
    table = pa.csv.read_csv(options.adult).slice(0, n)
    columns = {
        name: np.unique(table[name].to_numpy(zero_copy_only=False), return_inverse=True)[1]
        if name in LABELS
        else table[name].to_numpy().astype(int)
        for name in QUASI
    }
    return columns, np.array([value == ">50K" for value in table["income"].to_pylist()])


def perturbed(original: Columns, random: np.random.Generator) -> Iterator[tuple[str, float, list[Columns]]]:
    """Every method with its name, its risk, and the copies that an analyst uses."""
    for k in (3, 5, 10, 20):
        yield (f"louver k = {k}", *generalised(original, k))
    ways: list[tuple[str, Callable[[], Columns]]] = []
    ways += [(f"MDAV k = {k}", lambda k=k: mdav(original, k)) for k in (3, 5, 10, 20)]
    ways += [
        (f"rank swapping {p} %", lambda p=p: rank_swapped(original, p / 100, random)) for p in (2, 5, 10, 20)
    ]
    ways += [(f"PRAM {p} %", lambda p=p: prammed(original, p / 100, random)) for p in (5, 10, 20, 40)]
    for name, way in ways:
        copy = way()
        yield name, linkage_risk(original, copy), [copy]


def generalised(original: Columns, k: int) -> tuple[float, list[Columns]]:
    """louver's release: the share of right links against its classes, and completed copies."""
    source = pa.table({name: [f"v{v}" for v in c] if name in LABELS else c for name, c in original.items()})
    release = lv.anonymize(source, quasi=list(QUASI), k=k, steps=5, keep_order=True)
    rows = zip(*(release.table[name].to_pylist() for name in QUASI), strict=True)
    covers: dict[tuple, float] = {}
    right = 0.0
    for row in rows:
        if row not in covers:
            covers[row] = 1 / int(
                np.all(
                    [holds(cell, original[name], name) for cell, name in zip(row, QUASI, strict=True)], axis=0
                ).sum()
            )
        right += covers[row]
    from louver.release.draws import draw_tables

    copies = []
    for table in draw_tables(release.table, release.mapping, COPIES, 0, is_local=True):
        copies.append(
            {
                name: np.array([int(str(v)[1:]) for v in table[name].to_pylist()])
                if name in LABELS
                else np.rint(table[name].to_numpy()).astype(int)
                for name in QUASI
            }
        )
    return right / len(original["age"]), copies


def holds(cell: object, values: np.ndarray, name: str) -> np.ndarray:
    """Which values a published cell stands for."""
    text = str(cell)
    if name in LABELS:
        return np.isin(values, [int(label[1:]) for label in text.split(" | ")])
    ends = [float(end) for end in text.strip("[]").split(",")]
    return (values >= ends[0]) & (values <= ends[-1])


def scaled(columns: Columns, by: Columns) -> np.ndarray:
    """Numbers in standard deviations; labels as columns of zeros and ones, a change costing one."""
    parts = [(columns[name] / max(1e-9, by[name].std()))[:, None] for name in NUMBERS]
    for name in LABELS:
        parts.append((columns[name][:, None] == np.unique(by[name])[None, :]) / np.sqrt(2))
    return np.hstack(parts)


def linkage_risk(original: Columns, copy: Columns) -> float:
    """Share of published records whose nearest person is the right one, ties shared."""
    people, published = scaled(original, original), scaled(copy, original)
    right = 0.0
    for i, row in enumerate(published):
        distance = np.square(people - row).sum(axis=1)
        nearest = np.flatnonzero(distance <= distance.min() + 1e-9)
        right += (i in nearest) / len(nearest)
    return right / len(published)


def mdav(original: Columns, k: int) -> Columns:
    """Groups of k around the record farthest from the mean, and around the one farthest from that, until fewer than 3k are left."""
    points = scaled(original, original)
    left, groups = np.arange(len(points)), []

    def take(centre: np.ndarray, n: int) -> np.ndarray:
        nonlocal left
        order = np.argsort(np.square(points[left] - centre).sum(axis=1), kind="stable")
        group, left = left[order[:n]], np.sort(left[order[n:]])
        return group

    while len(left) >= 3 * k:
        mean = points[left].mean(axis=0)
        first = points[left[np.argmax(np.square(points[left] - mean).sum(axis=1))]]
        second = points[left[np.argmax(np.square(points[left] - first).sum(axis=1))]]
        groups += [take(first, k), take(second, k)]
    if len(left) >= 2 * k:
        mean = points[left].mean(axis=0)
        groups.append(take(points[left[np.argmax(np.square(points[left] - mean).sum(axis=1))]], k))
    groups.append(left)
    copy = {name: values.copy() for name, values in original.items()}
    for group in groups:
        for name in NUMBERS:
            copy[name][group] = round(float(original[name][group].mean()))
        for name in LABELS:
            copy[name][group] = np.bincount(original[name][group]).argmax()
    return copy


def rank_swapped(original: Columns, share: float, random: np.random.Generator) -> Columns:
    """Each value exchanged with one at most `share` of the ranks away."""
    copy = {}
    for name, values in original.items():
        order = np.lexsort([random.random(len(values)), values])
        most = max(1, int(share * len(values)))
        swapped, is_free = order.copy(), np.ones(len(values), bool)
        for rank in range(len(values)):
            if is_free[rank]:
                partners = rank + 1 + np.flatnonzero(is_free[rank + 1 : rank + 1 + most])
                is_free[rank] = False
                if len(partners):
                    other = random.choice(partners)
                    swapped[rank], swapped[other] = swapped[other], swapped[rank]
                    is_free[other] = False
        copy[name] = np.empty_like(values)
        copy[name][order] = values[swapped]
    return copy


def prammed(original: Columns, share: float, random: np.random.Generator) -> Columns:
    """A value stays, or with a chance of `share` is drawn again from the file's own distribution; near values only, for numbers.

    With shares q the matrix (1 - share) I + share 1 q' has q as its invariant distribution, exactly. Numbers are drawn again within groups
    of neighbouring values, which is the same matrix block by block.
    """
    copy = {}
    for name, values in original.items():
        block = (
            values // 10
            if name == "age"
            else values // 4
            if name == "education-num"
            else np.zeros_like(values)
        )
        copy[name] = values.copy()
        for b in np.unique(block):
            inside = np.flatnonzero(block == b)
            changed = inside[random.random(len(inside)) < share]
            copy[name][changed] = random.choice(values[inside], len(changed))
    return copy


def two_way_error(original: Columns, copy: Columns) -> float:
    """Greatest error of a share in any table of two columns, numbers in groups of ten."""
    worst = 0.0
    for one, other in combinations(QUASI, 2):
        tables = []
        for columns in (original, copy):
            a, b = (columns[c] // 10 if c == "age" else columns[c] for c in (one, other))
            tables.append(np.histogram2d(a, b, bins=[np.arange(-1, 101), np.arange(-1, 101)])[0] / len(a))
        worst = max(worst, float(np.abs(tables[0] - tables[1]).max()))
    return worst


def slope_error(original: Columns, copies: list[Columns], income: np.ndarray) -> float:
    """Greatest error of the slopes of income on age and schooling, in standard errors of the original."""
    truth, errors = logistic(original, income)
    found = np.mean([logistic(copy, income)[0] for copy in copies], axis=0)
    return float(np.abs((found - truth) / errors)[1:].max())


def logistic(columns: Columns, outcome: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients by Newton's method, with their standard errors."""
    x = np.column_stack([np.ones(len(outcome)), *(columns[name] for name in NUMBERS)]).astype(float)
    beta = np.zeros(x.shape[1])
    for _ in range(30):
        p = 1 / (1 + np.exp(-x @ beta))
        information = (x * (p * (1 - p))[:, None]).T @ x
        beta += np.linalg.solve(information, x.T @ (outcome - p))
    return beta, np.sqrt(np.diag(np.linalg.inv(information)))


def value_error(original: Columns, copy: Columns) -> float:
    """Mean change of a value: share of the range for numbers, share of changed labels."""
    return float(
        np.mean(
            [
                np.abs(original[name] - copy[name]).mean() / max(1, np.ptp(original[name]))
                if name in NUMBERS
                else (original[name] != copy[name]).mean()
                for name in QUASI
            ]
        )
    )


def draw(points: list[tuple[str, float, float]], path: Path) -> None:
    """Risk against the error of the regression."""
    from matplotlib.figure import Figure

    axes = (figure := Figure(figsize=(7, 4.5))).subplots()
    for family, mark in (("louver", "o"), ("MDAV", "s"), ("rank", "^"), ("PRAM", "D")):
        line = [(risk, error) for name, risk, error in points if name.startswith(family)]
        axes.plot(*zip(*line, strict=True), f"{mark}-", label="rank swapping" if family == "rank" else family)
    axes.set_xlabel("records linked to the right person")
    axes.set_ylabel("error of a regression's slope, standard errors")
    axes.legend(frameon=False)
    figure.savefig(path)


if __name__ == "__main__":
    main()
