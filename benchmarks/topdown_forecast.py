"""Forecasts of TopDown's errors over what releases turned out to be off by; and what chosen shares and other strategies are worth.

Run: python benchmarks/topdown_forecast.py WHAT --data FOLDER [--seeds 4] [--simulations 4] [--epsilon 1]

rhode-island  Hawaii 2020 stands in for Rhode Island 2010: forecast over observed error by level and query, for two plans. Once as it
              is, once bent to the composition that Rhode Island had in 2020 (its voting districts).
strategies    no data: the closed form of shares chosen among the queries asked, among all marginals, and for the cells alone
"""

from __future__ import annotations

import argparse
import csv
import gzip
import tempfile
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
from topdown_estimators import PLANS
from topdown_specs import GROUPS, write_rhode_island, write_sample

import louver as lv
from louver.topdown.design import Design
from louver.topdown.forecast import forecast
from louver.topdown.load import read_design
from louver.topdown.plan import make_plan, measurable
from louver.topdown.shares import (
    Aim,
    choose_shares,
    guessed_live,
    precision_of,
    scalar_tree,
    wanted_queries,
    with_shares,
)
from louver.topdown.stand_in import read_stand_in
from louver.topdown.subspaces import Subspaces, mask_of

CELLS = list(product(("18+", "<18"), GROUPS))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("rhode-island", "strategies"))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--simulations", type=int, default=4)
    parser.add_argument("--epsilon", default="1")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        {"rhode-island": rhode_island, "strategies": strategies}[options.what](options, Path(folder))


def rhode_island(options: argparse.Namespace, folder: Path) -> None:
    hawaii = _write_hawaii(folder, options.data)
    composition = _composition(options.data)
    for name in ("below", "even"):
        spec = write_rhode_island(
            folder, options.data, epsilon=options.epsilon, shares=PLANS[name], name=name
        )
        plan = make_plan(read_design(spec))
        observed: dict[tuple[str, str], list[float]] = {}
        for seed in range(options.seeds):
            for one in lv.topdown(spec, seed=seed, evaluate=True, intervals=0).evaluation or ():
                observed.setdefault((one.level, one.query), []).append(one.mean_absolute)
        for words, bent in (("as it is", None), ("bent to Rhode Island 2020", composition)):
            leaves = read_stand_in(plan.design, str(hawaii), composition=bent)
            found = forecast({name: plan}, leaves, "Hawaii", simulations=options.simulations)
            print(
                f"\nplan {name}, epsilon {options.epsilon}, Hawaii {words}: forecast, observed ({options.seeds} seeds), ratio"
            )
            for line in found.lines:
                true = float(np.mean(observed[line.level, line.query]))
                ratio = f"{line.mean_absolute / true:.3f}" if true else "-"
                print(
                    f"  {line.level:<7} {line.query:<11} {line.mean_absolute:9.3f} {true:9.3f}  {ratio}  {line.method}",
                    flush=True,
                )


def _count(row: dict[str, str], age: str, group: str) -> int:
    adults = int(row[f"vap_{group}"])
    return adults if age == "18+" else int(row[f"pop_{group}"]) - adults


def _write_hawaii(folder: Path, data: Path) -> Path:
    """Laid out as the records of Rhode Island are."""
    path = folder / "hawaii.csv"
    with (
        gzip.open(data / "hi_2020_blocks.csv.gz", "rt", newline="") as file,
        path.open("w", newline="") as out,
    ):
        writer = csv.writer(out)
        writer.writerow(["GEOID", *(f"{age} {group}" for age, group in CELLS)])
        writer.writerows(
            [row["GEOID"], *(_count(row, *cell) for cell in CELLS)] for row in csv.DictReader(file)
        )
    return path


def _composition(data: Path) -> np.ndarray:
    """Counts of Rhode Island's cells ten years later."""
    with gzip.open(data / "us_2020_vtd.csv.gz", "rt", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["state"] == "RI"]
    return np.array([sum(_count(row, *cell) for row in rows) for cell in CELLS])


def strategies(options: argparse.Namespace, folder: Path) -> None:
    """Mean over levels and queries asked of the error relative to that of the best shares among the queries asked."""
    places = {
        "Rhode Island": write_rhode_island(folder, options.data, epsilon=options.epsilon),
        "569 blocks, 2,016 cells": write_sample(folder, options.data),
    }
    for place, spec in places.items():
        for measure, design in (("epsilon", read_design(spec)), ("rho", _in_rho(folder, spec))):
            errors = {
                name: _errors(own, is_measured, len(design.queries))
                for name, (own, is_measured) in _candidates(design).items()
            }
            usual = errors["queries asked"]
            counted = usual > 0
            told = [
                f"{name} {np.mean(own[counted] / usual[counted]):.3f} (worst {np.max(own[counted] / usual[counted]):.2f})"
                for name, own in errors.items()
            ]
            print(f"{place}, {measure}: {', '.join(told)}", flush=True)


def _errors(design: Design, is_measured: np.ndarray, n_asked: int) -> np.ndarray:
    """Standard errors (levels, queries asked) of the best shares among what may be measured, by the closed form."""
    weights = np.zeros((len(is_measured), len(wanted_queries(design))))
    weights[:, -n_asked:] = 1.0
    chosen = with_shares(design, choose_shares(design, is_measured, Aim(weights=weights)).shares)
    parts = [
        [float(level * own.get(query.name, 0)) for query in design.queries]
        for level, own in zip(chosen.level_shares, chosen.query_shares, strict=True)
    ]
    tree = scalar_tree(design, guessed_live(design, None))
    return np.sqrt(tree.variances(precision_of(design)(np.array(parts)))[:, -n_asked:])


def _in_rho(folder: Path, spec: Path) -> Design:
    text = spec.read_text()
    budget = next(line for line in text.splitlines() if line.startswith("epsilon"))
    path = folder / f"rho-{spec.name}"
    path.write_text(text.replace(budget, "rho = 0.1\ndelta = 1e-10"))
    return read_design(path)


def _candidates(design: Design) -> dict[str, tuple[Design, np.ndarray]]:
    """For each strategy a design with its queries, those asked last, and which of them may be measured."""
    subspaces = Subspaces(design.shape)
    asked = [mask_of(query) for query in design.queries]
    others = [subspaces.marginal(mask) for mask in range(subspaces.n_sets) if mask not in asked]
    wide = replace(design, queries=(*others, *design.queries))
    cells = np.zeros((design.spine.n_levels, len(design.queries)), dtype=bool)
    cells[:, -1] = True
    return {
        "cells alone": (design, cells),
        "queries asked": (design, measurable(design)),
        "all marginals": (wide, measurable(wide)),
    }


if __name__ == "__main__":
    main()
