"""k-anonymity: loss and time of every method beside its peers.

Run: python benchmarks/anonymize.py [PART...] [--adult FILE] [--fars FILE] [--seconds 10 60] [--small]

adult        all methods on Adult, 4 and 8 quasi-identifiers, k = 3, 5, 10; auto as a whole call of the verb
ratios       ratios to the optimum over 20 random samples of Adult (section 4.2)
wide         15, 25 and 35 attributes, k = 10 and 100 (section 4.4), made up like the census extract of the paper
fars         drivers in fatal crashes: month, age, sex, deaths (appendix F)
exact        sub-problems of 12 to 30 records against the paper's program (21)-(28) in HiGHS
split-carry  20,000 to 100,000 records, 4 attributes, k = 3 and 5 (Fig. 6): is it linear?
greedy       100,000 records, 8 attributes, against plain numpy: time and classes
million      one million records, 8 attributes, by auto as a whole call in a process of its own: time, memory, loss

Adult (UCI, `adult.data` then `adult.test`, with a header) is read from --adult or the environment variable
LOUVER_ADULT, FARS 2016 from --fars or LOUVER_FARS; without them a table of the same shape is made up, and figures
measured elsewhere do not apply. The loss is the mean over records and attributes of class range / attribute range, in
percent. Every part runs after a warm-up, so compilation is not counted. --small takes the smallest size of each part.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.csv

import louver as lv
from louver.anonymize.columns import NumericColumn
from louver.anonymize.methods import auto, exact, freeform, greedy, k_member, mondrian, split_carry
from louver.anonymize.methods import sorted_cut as sorted_order
from louver.anonymize.methods.freeform import Matching
from louver.anonymize.problem import AnonymizeProblem, Grouping
from louver.anonymize.watch import Watch
from louver.optim.status import Status

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from oracles.kanonymity_milp import solve_milp
from oracles.plain_greedy import interval_spreads, plain_labels

FOUR = ("age", "education-num", "race", "sex")
EIGHT = (*FOUR, "workclass", "marital-status", "occupation", "native-country")
ADULT_TRAINING = 32_561
FARS = ("MONTH", "AGE", "SEX", "DEATHS")

ELSEWHERE = {
    "ARX local recoding": (0.34, 0.59, 1.11, 2.63, 4.28, 6.86),
    "k-member in numpy": (0.15, 0.29, 0.63, 1.57, 2.76, 5.04),
    "Mondrian relaxed": (1.1, 2.1, 3.6, 7.4, 12.3, 18.3),
}
"""Losses measured elsewhere on Adult: 4 attributes at k = 3, 5, 10, then 8."""

METHODS: dict[str, Callable[[AnonymizeProblem], Grouping]] = {
    "sorted": sorted_order.solve,
    "mondrian": mondrian.solve,
    "mondrian-relaxed": lambda problem: mondrian.solve(problem, is_strict=False),
    "k-member": k_member.solve,
    "greedy": greedy.solve,
}

SPLIT_CARRY_MOST_K = 5
"""Beyond this sub-problems are too large, as the paper says of itself."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "parts", nargs="*", help=f"any of {', '.join(PARTS)}, or all; a quick look without any"
    )
    parser.add_argument("--adult", default=os.environ.get("LOUVER_ADULT"))
    parser.add_argument("--fars", default=os.environ.get("LOUVER_FARS"))
    parser.add_argument("--seconds", type=float, nargs="*", default=[10.0, 60.0], help="for auto")
    parser.add_argument("--milp-seconds", type=float, default=20.0, help="limit of one program in HiGHS")
    parser.add_argument("--plain-seconds", type=float, default=30.0, help="limit of one plain scan")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--alone", action="store_true", help="run `million` in this process")
    options = parser.parse_args()
    if not options.parts:  # a quick look
        options.parts, options.small = ["ratios", "greedy"], True
        options.seconds, options.milp_seconds, options.plain_seconds = [2.0], 2.0, 2.0
    if options.parts == ["all"]:
        options.parts = list(PARTS)
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    print(f"louver {lv.__version__}, numpy {np.__version__}, {os.cpu_count()} cores, load {os.getloadavg()}")
    for part in options.parts or PARTS:
        print(f"\n== {part}")
        PARTS[part](options)


# Data


def adult_table(path: str | None) -> dict[str, np.ndarray]:
    """The 30,162 complete training records as whole numbers, categories by sorted label; or a made-up table like it."""
    if path is None:
        print("(no Adult file: a made-up table of its shape)")
        random = np.random.default_rng(1994)
        n_values = {"age": 74, "education-num": 16, "race": 5, "sex": 2, "workclass": 7,
                    "marital-status": 7, "occupation": 14, "native-country": 41}  # fmt: skip
        return {name: skewed(random, 30_162, n) for name, n in n_values.items()}
    table = pa.csv.read_csv(path).slice(0, ADULT_TRAINING)
    text = {name: np.array(table[name].to_pylist()).astype(str) for name in table.column_names}
    is_complete = np.all([values != "?" for values in text.values()], axis=0)
    return {
        name: text[name][is_complete].astype(int)
        if name in FOUR[:2]
        else np.unique(text[name][is_complete], return_inverse=True)[1]
        for name in EIGHT
    }


def skewed(random: np.random.Generator, n: int, n_values: int) -> np.ndarray:
    """Values of which the lower ones are more frequent."""
    return (n_values * random.random(n) ** 2).astype(int)


def fars_table(path: str | None, n: int) -> dict[str, np.ndarray]:
    """Some records of FARS 2016 with known age; or a made-up table like them."""
    if path is None:
        print("(no FARS file: a made-up table of its shape)")
        random = np.random.default_rng(2016)
        return {name: skewed(random, n, v) for name, v in zip(FARS, (12, 90, 2, 4), strict=True)}
    table = pa.csv.read_csv(path).select(FARS).drop_null()
    chosen = np.random.default_rng(1).choice(table.num_rows, n, replace=False)
    numbers = table.take(pa.array(chosen))
    return {name: np.unique(numbers[name].to_pylist(), return_inverse=True)[1] for name in FARS}


def problem_of(columns: Sequence[np.ndarray], k: int) -> AnonymizeProblem:
    numeric = [NumericColumn(name=str(j), values=c.astype(float)) for j, c in enumerate(columns)]
    return AnonymizeProblem.build(numeric, k=k)


def percent(problem: AnonymizeProblem, loss: int) -> float:
    return 100 * loss * problem.unit / problem.n_records / len(problem.columns)


def timed(solve: Callable[[], Grouping]) -> tuple[Grouping, float]:
    started = time.perf_counter()
    answer = solve()
    return answer, time.perf_counter() - started


def warm_up() -> None:
    """Have everything compiled."""
    random = np.random.default_rng(0)
    problem = problem_of([random.integers(0, 9, 60) for _ in range(3)], 3)
    for solve in METHODS.values():
        solve(problem)
    split_carry.solve(problem)
    timed_auto(problem, 0.2)
    for matching in Matching:
        freeform.solve(problem, matching=matching)


# Parts


def adult(options: argparse.Namespace) -> None:
    warm_up()
    data = adult_table(options.adult)
    widths, ks = (((FOUR, 400),), (3,)) if options.small else (((FOUR, None), (EIGHT, None)), (3, 5, 10))
    print("loss in percent, and seconds; ratios are to k-member in this run")
    for names, n in widths:
        columns = [data[name][:n] for name in names]
        for k in ks:
            problem = problem_of(columns, k)
            lines = {name: _line(problem, solve) for name, solve in METHODS.items()}
            if k <= SPLIT_CARRY_MOST_K:
                lines["split-carry"] = _line(problem, split_carry.solve)
            for matching in Matching:
                if problem.n_records <= freeform.MAX_RECORDS:
                    lines[f"freeform-{matching} (weaker)"] = _line(
                        problem, lambda p, m=matching: freeform.solve(p, matching=m)
                    )
            for seconds in options.seconds:
                lines[f"auto {seconds:g} s"] = whole_call(dict(zip(names, columns, strict=True)), k, seconds)
            _show(f"{len(names)} attributes, {problem.n_records:,} records, k = {k}", lines)
    if options.adult and not options.small:
        for name, losses in ELSEWHERE.items():
            print(f"elsewhere: {name:20} " + " ".join(f"{loss:6.2f}" for loss in losses))


def _line(
    problem: AnonymizeProblem, solve: Callable[[AnonymizeProblem], Grouping]
) -> tuple[float, float, float | None]:
    answer, seconds = timed(lambda: solve(problem))
    bound = None if answer.lower_bound is None else percent(problem, answer.lower_bound)
    return percent(problem, answer.loss), seconds, bound


def whole_call(columns: dict[str, np.ndarray], k: int, seconds: float) -> tuple[float, float, float | None]:
    """auto through the verb, loading and generalising included."""
    table = pa.table(columns)
    started = time.perf_counter()
    release = lv.anonymize(table, quasi=list(columns), k=k, seconds=seconds)
    elapsed = time.perf_counter() - started
    share = 100 / table.num_rows / len(columns)
    bound = None if release.lower_bound is None else release.lower_bound * share
    return release.utility.information_loss * share, elapsed, bound


def _show(title: str, lines: dict[str, tuple[float, float, float | None]]) -> None:
    print(title)
    peer = lines["k-member"][0]
    for name, (loss, seconds, bound) in lines.items():
        proof = "" if not bound else f"  at most {100 * (loss / bound - 1):.0f} % above the optimum"
        print(f"  {name:32} {loss:8.4f} %  x{loss / peer if peer else 1:6.3f} {seconds:8.2f} s{proof}")


def ratios(options: argparse.Namespace) -> None:
    warm_up()
    data = adult_table(options.adult)
    n_samples, sizes = (2, (14,)) if options.small else (20, (15, 20, 25, 30))
    methods = METHODS | {
        "split-carry": split_carry.solve,
        "annealed": annealed,
        "auto": lambda p: timed_auto(p, 2.0),
    }
    for names in (FOUR,) if options.small else (FOUR, EIGHT):
        for n in sizes:
            found: dict[str, list[float]] = {name: [] for name in methods}
            for sample in range(n_samples):
                rows = np.random.default_rng(sample).choice(len(data["age"]), n, replace=False)
                problem = problem_of([data[name][rows] for name in names], 3)
                optimum = exact.solve(problem)
                assert optimum.status is Status.OPTIMAL
                for name, solve in methods.items():
                    found[name].append(solve(problem).loss / max(1, optimum.loss))
            print(
                f"{len(names)} attributes, {n} records, k = 3, ratio to the optimum: mean (largest) of {n_samples}"
            )
            print("  " + "  ".join(f"{m} {statistics.mean(r):.3f} ({max(r):.3f})" for m, r in found.items()))


def timed_auto(problem: AnonymizeProblem, seconds: float) -> Grouping:
    """auto within a limit of time."""
    return Watch(seconds=seconds).attend(lambda watch: auto.solve(problem, watch))


def annealed(problem: AnonymizeProblem) -> Grouping:
    """auto as it treats larger problems: without `exact`."""
    with mock.patch.object(auto, "EXACT_RECORDS", 0):
        return auto.solve(problem, steps=50)


def wide(options: argparse.Namespace) -> None:
    warm_up()
    random = np.random.default_rng(35)
    n = 300 if options.small else 20_000
    # Columns of a census extract hang together: each is a noisy function of a few hidden ones.
    hidden = random.normal(size=(n, 5))
    values = hidden @ random.normal(size=(5, 35)) + random.normal(size=(n, 35))
    n_values = random.integers(2, 60, 35)
    columns = [
        np.digitize(values[:, j], np.quantile(values[:, j], np.linspace(0, 1, n_values[j] + 1)[1:-1]))
        for j in range(35)
    ]
    for m in (15,) if options.small else (15, 25, 35):
        for k in (10,) if options.small else (10, 100):
            problem = problem_of(columns[:m], k)
            lines = {name: _line(problem, solve) for name, solve in METHODS.items()}
            lines["auto"] = _line(problem, lambda p: timed_auto(p, options.seconds[0]))
            _show(f"{m} attributes, {n:,} records, k = {k}", lines)


def fars(options: argparse.Namespace) -> None:
    warm_up()
    for n in (200,) if options.small else (1_000, 20_000):
        data = fars_table(options.fars, n)
        for k in (3,) if options.small else (3, 5):
            problem = problem_of(list(data.values()), k)
            lines = {name: _line(problem, solve) for name, solve in METHODS.items()}
            lines["split-carry"] = _line(problem, split_carry.solve)
            lines["auto"] = _line(problem, lambda p: timed_auto(p, options.seconds[0]))
            _show(f"FARS, {n:,} records, k = {k}", lines)


def exact_part(options: argparse.Namespace) -> None:
    data = adult_table(options.adult)
    exact.solve(problem_of([data[name][:12] for name in FOUR], 3))
    print("seconds of louver and of the paper's program in HiGHS; > means that the program met its limit")
    for names in (FOUR,) if options.small else (FOUR, EIGHT):
        for k in (3,) if options.small else (3, 4):
            for n in (12,) if options.small else (12, 14, 16, 20, 24, 30):
                rows = np.random.default_rng(n).choice(len(data["age"]), n, replace=False)
                values = np.column_stack([data[name][rows] for name in names]).astype(float)
                problem = problem_of(list(values.T), k)
                ours, seconds = timed(lambda p=problem: exact.solve(p))
                started = time.perf_counter()
                theirs, is_optimal = solve_milp(values, k, seconds=options.milp_seconds)
                peer = time.perf_counter() - started
                loss = problem.information_loss(ours)
                equal = abs(loss - theirs) < 1e-4 if is_optimal else loss <= theirs + 1e-4
                print(
                    f"  {len(names)} attributes k = {k} n = {n:2}  {seconds:8.4f} s  {'' if is_optimal else '>'}{peer:8.2f} s"
                    f"  {'>' if not is_optimal else ''}{peer / seconds:8.0f} times  "
                    f"objective {loss:.4f} {'equal' if is_optimal else 'no worse'}: {equal}"
                )


def split_carry_part(options: argparse.Namespace) -> None:
    warm_up()
    data = adult_table(options.adult)
    for k in (3,) if options.small else (3, 5):
        for n in (500,) if options.small else (20_000, 40_000, 60_000, 80_000, 100_000):
            random = np.random.default_rng(n)
            columns = resampled(data, FOUR, n, random)
            problem = problem_of(columns, k)
            answer, seconds = timed(lambda p=problem: split_carry.solve(p))
            by_greedy = percent(problem, greedy.solve(problem).loss)
            print(
                f"  k = {k} n = {n:7,}  {seconds:7.2f} s  {1e6 * seconds / n:7.1f} us a record  "
                f"{percent(problem, answer.loss):.4f} %  greedy {by_greedy:.4f} %"
            )


def resampled(
    data: dict[str, np.ndarray], names: Sequence[str], n: int, random: np.random.Generator
) -> list[np.ndarray]:
    """Records drawn from a table, their ordered and largest columns jittered."""
    rows = random.integers(0, len(data["age"]), n)
    jitter = {"age": 3, "education-num": 1, "occupation": 1}
    columns = []
    for name in names:
        values = data[name][rows]
        if name in jitter:
            moved = values + random.integers(-jitter[name], jitter[name] + 1, n)
            values = np.clip(moved, data[name].min(), data[name].max())
        columns.append(values)
    return columns


class _OutOfTimeError(Exception):
    """A plain scan met its limit."""


def greedy_part(options: argparse.Namespace) -> None:
    data = adult_table(options.adult)
    n = 500 if options.small else 100_000
    columns = resampled(data, EIGHT, n, np.random.default_rng(n))
    greedy.solve(problem_of(columns, 5))
    for k in (5,) if options.small else (5, 10, 100):
        problem = problem_of(columns, k)
        labels, seconds = timed(lambda p=problem: greedy.grown_classes(p, Watch(), farthest_first=False))
        classes, peer, share = plain_classes(problem, options.plain_seconds)
        is_same = all(len({labels[i] for i in members}) == 1 for members in classes)
        is_same &= len({labels[members[0]] for members in classes}) == len(classes)
        how = "" if share == 1 else f" (extrapolated from {100 * share:.1f} %)"
        print(
            f"  k = {k:3} n = {n:,}  {seconds:6.2f} s  numpy {peer / share:8.1f} s{how}  "
            f"{peer / share / seconds:6.0f} times  {len(classes):,} classes compared, same: {is_same}"
        )


def plain_classes(problem: AnonymizeProblem, limit: float) -> tuple[list[list[int]], float, float]:
    """Classes of a plain scan until a limit, the seconds it took, and the share of all its comparisons made in them."""
    n, k = problem.n_records, problem.least_size
    spreads = interval_spreads(problem.codes)
    classes: list[list[int]] = []
    n_compared = 0
    started = time.perf_counter()

    def watched(candidates: np.ndarray, members: list[int]) -> np.ndarray:
        nonlocal n_compared
        if time.perf_counter() - started > limit:
            raise _OutOfTimeError
        found = spreads(candidates, members)
        n_compared += len(candidates)
        if len(members) == k - 1:
            classes.append([*members, int(candidates[np.argmin(found)])])
        return found

    n_all = sum(n - i for i in range(1, n // k * k) if i % k)
    with contextlib.suppress(_OutOfTimeError):
        plain_labels(n, k, watched)
    return classes, time.perf_counter() - started, n_compared / n_all


def million(options: argparse.Namespace) -> None:
    """In a process of its own, so that its memory can be told."""
    if not options.alone:
        command = [sys.executable, __file__, "million", "--alone", *(["--small"] if options.small else [])]
        sys.stdout.flush()
        subprocess.run([*command, *(["--adult", options.adult] if options.adult else [])], check=True)
        return
    data = adult_table(options.adult)
    n, seconds = (2_000, 0.2) if options.small else (1_000_000, 200.0)
    warm_up()
    columns = dict(zip(EIGHT, resampled(data, EIGHT, n, np.random.default_rng(8)), strict=True))
    loss, elapsed, bound = whole_call(columns, 5, seconds)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    problem = problem_of(list(columns.values()), 5)
    by_greedy = percent(problem, greedy.solve(problem).loss)
    print(
        f"  {n:,} records, 8 attributes, k = 5: {loss:.4f} % in {elapsed:.0f} s, at most {memory:.1f} GB; "
        f"greedy {by_greedy:.4f} %, no partition below {bound:.4f} %"
    )


PARTS: dict[str, Callable[[argparse.Namespace], None]] = {
    "adult": adult,
    "ratios": ratios,
    "wide": wide,
    "fars": fars,
    "exact": exact_part,
    "split-carry": split_carry_part,
    "greedy": greedy_part,
    "million": million,
}


if __name__ == "__main__":
    main()
