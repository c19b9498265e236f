"""Forecasts of TopDown's errors over what releases turned out to be off by; and what chosen shares and other strategies are worth.

Run: python benchmarks/topdown_forecast.py WHAT --data FOLDER [--seeds 4] [--simulations 4] [--epsilon 1]

rhode-island  Hawaii 2020 stands in for Rhode Island 2010: forecast over observed error by level and query, for two plans. Once as it
              is, then bent to the composition that Rhode Island had in 2020 (its voting districts), as a whole and by county.
hawaii        the other way round; the composition is Hawaii's own, as a whole, since nothing else is known of it here
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
from louver.topdown.estimation.subspaces import Subspaces, mask_of
from louver.topdown.load import read_design
from louver.topdown.measuring.noise_plan import make_plan, measurable
from louver.topdown.planning.forecast import forecast
from louver.topdown.planning.shares import (
    Aim,
    choose_shares,
    guessed_live,
    precision_of,
    scalar_tree,
    with_shares,
)
from louver.topdown.planning.stand_in import read_stand_in
from louver.topdown.problem import Design

CELLS = list(product(("18+", "<18"), GROUPS))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("rhode-island", "hawaii", "strategies"))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--simulations", type=int, default=4)
    parser.add_argument("--epsilon", default="1")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        what = {"rhode-island": rhode_island, "hawaii": hawaii, "strategies": strategies}[options.what]
        what(options, Path(folder))


def rhode_island(options: argparse.Namespace, folder: Path) -> None:
    counties, own = (np.array(part) for part in zip(*_districts(options.data), strict=True))
    by_county = np.array([own[counties == county].sum(axis=0) for county in np.unique(counties)])
    compositions = {
        "as it is": None,
        "bent to Rhode Island 2020": own.sum(axis=0)[None],
        "bent to its counties in 2020": by_county,
    }
    stand_in = _write_blocks(folder / "hawaii.csv", options.data / "hi_2020_blocks.csv.gz")
    _compare(options, folder, options.data, ("Hawaii", stand_in), compositions)


def hawaii(options: argparse.Namespace, folder: Path) -> None:
    blocks = options.data / "hi_2020_blocks.csv.gz"
    (folder / "truth").mkdir()
    (folder / "truth" / "ri_2010_blocks.csv.gz").symlink_to(
        blocks.resolve()
    )  # Hawaii under the name of the spec
    with gzip.open(blocks, "rt", newline="") as file:
        whole = np.sum([[_count(row, *cell) for cell in CELLS] for row in csv.DictReader(file)], axis=0)
    stand_in = _write_blocks(folder / "stand-in.csv", options.data / "ri_2010_blocks.csv.gz")
    compositions = {"as it is": None, "bent to Hawaii": whole[None]}
    _compare(options, folder, folder / "truth", ("Rhode Island", stand_in), compositions)


def _compare(
    options: argparse.Namespace,
    folder: Path,
    data: Path,
    stand_in: tuple[str, Path],
    compositions: dict[str, np.ndarray | None],
) -> None:
    """Forecast over observed errors, plan by plan and composition by composition."""
    for name in ("below", "even"):
        spec = write_rhode_island(folder, data, epsilon=options.epsilon, shares=PLANS[name], name=name)
        plan = make_plan(read_design(spec))
        observed: dict[tuple[str, str], list[float]] = {}
        for seed in range(options.seeds):
            for one in lv.topdown(spec, seed=seed, evaluate=True, intervals=0).evaluation or ():
                observed.setdefault((one.level, one.query), []).append(one.mean_absolute)
        for words, composition in compositions.items():
            leaves = read_stand_in(plan.design, str(stand_in[1]), composition=composition)
            found = forecast({name: plan}, leaves, stand_in[0], simulations=options.simulations)
            print(
                f"\nplan {name}, epsilon {options.epsilon}, {stand_in[0]} {words}: forecast, observed ({options.seeds} seeds), ratio"
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


def _write_blocks(path: Path, blocks: Path) -> Path:
    """Laid out as the records of the spec are."""
    with gzip.open(blocks, "rt", newline="") as file, path.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["GEOID", *(f"{age} {group}" for age, group in CELLS)])
        writer.writerows(
            [row["GEOID"], *(_count(row, *cell) for cell in CELLS)] for row in csv.DictReader(file)
        )
    return path


def _districts(data: Path) -> list[tuple[str, list[int]]]:
    """County and counts of Rhode Island's voting districts ten years later."""
    with gzip.open(data / "us_2020_vtd.csv.gz", "rt", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["state"] == "RI"]
    return [(row["county"], [_count(row, *cell) for cell in CELLS]) for row in rows]


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
    weights = np.zeros((len(is_measured), len(design.published_queries)))
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
