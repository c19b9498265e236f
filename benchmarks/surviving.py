"""Which regression coefficients survive: classes with labels of their own, one recoding for the file, differentially private microdata.

Run: python benchmarks/surviving.py ADULT [--records 6000] [--k 3 5 10] [--epsilon 1 4] [--seconds 5] [--out chart.svg]

ADULT is the UCI file with a header (adult.csv.gz). Quasi-identifiers: age and years of schooling in bands of five and three (so that all
three kinds of release have the same domain), sex, marital status; kept: hours in bands of ten, income. The model is a logistic regression of
income, weighted by the survey's weights (fnlwgt, kept), with 95 % intervals; k-anonymous files by ten draws. Private records have no weights:
they come from a TopDown run without regions on records counted once, and are compared with the unweighted model. A coefficient survives
if its interval and that of the source overlap by half or more, it is at most four times as long, and the coefficient stays above 0, below 0,
or neither. Code of its own throughout.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

import louver as lv
from louver.optim.regression import Fit, combine, fit_logistic

QUASI = ["age", "schooling", "sex", "marital"]
TERMS = ["constant", "age", "schooling", "male", "married", "hours"]
COPIES = 10


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("adult", type=Path)
    parser.add_argument("--records", type=int, default=6000)
    parser.add_argument("--k", type=int, nargs="*", default=[3, 5, 10])
    parser.add_argument("--epsilon", type=float, nargs="*", default=[1.0, 4.0])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    table = read(options.adult, options.records)
    weighted, plain = fit([table]), fit([table.drop_columns("weight")])
    lines: list[tuple[str, Fit, Fit]] = []
    for k in options.k:
        for title, more in (("local", {}), ("global", {"recoding": "global", "suppress": 0.01})):
            lines.append((f"{title}, k = {k}", weighted, anonymised(table, k, options.seconds, more)))
    for epsilon in options.epsilon:
        lines.append((f"private, epsilon {epsilon:g}", plain, private(table.drop_columns("weight"), epsilon)))
    for title, before, after in lines:
        words = [f"{name} {far(before, after)[i]:.2f}" for i, name in enumerate(TERMS)]
        print(
            f"{title}: {survive(before, after).sum()} of {len(TERMS)} survive; off by {', '.join(words)} se"
        )
    print(f"load {os.getloadavg()[0]:.0f}")
    if options.out is not None:
        draw(lines, options.out)


def read(path: Path, n: int) -> pa.Table:
    source = pa.csv.read_csv(path).slice(0, n)
    number = {name: np.array(source[name].to_pylist()) for name in ("age", "education-num", "hours-per-week")}
    return pa.table(
        {
            "age": np.minimum(number["age"] // 5 * 5, 80),
            "schooling": number["education-num"] // 3 * 3,
            "sex": source["sex"],
            "marital": source["marital-status"],
            "hours": np.minimum(number["hours-per-week"] // 10 * 10, 70),
            "income": source["income"],
            "weight": source["fnlwgt"],
        }
    )


def fit(copies: list[pa.Table]) -> Fit:
    """The model on copies of a file, combined by Rubin's rules."""
    fits = []
    for copy in copies:
        rows = {name: np.array(copy[name].to_pylist()) for name in copy.column_names}
        married = np.char.startswith(rows["marital"].astype(str), "Married-civ")
        x = np.column_stack(
            [
                np.ones(copy.num_rows),
                rows["age"].astype(float) / 10,
                rows["schooling"].astype(float),
                rows["sex"] == "Male",
                married,
                rows["hours"].astype(float) / 10,
            ]
        ).astype(float)
        y = (rows["income"] == ">50K").astype(float)
        weights = rows.get("weight", np.ones(copy.num_rows)).astype(float)
        fits.append(fit_logistic(x, y, weights / weights.mean()))
    return combine(fits) if len(fits) > 1 else fits[0]


def anonymised(table: pa.Table, k: int, seconds: float, more: dict) -> Fit:
    with tempfile.TemporaryDirectory() as folder:
        lv.anonymize(
            table,
            quasi=QUASI,
            sensitive=["income"],
            keep=["hours", "weight"],
            k=k,
            seconds=seconds,
            out=f"{folder}/out",
            **more,
        )
        return fit(list(lv.open(f"{folder}/out").draws(COPIES)))


def private(table: pa.Table, epsilon: float) -> Fit:
    """Microdata of a seeded TopDown run without regions: a trial, not a release."""
    labels = {name: sorted({str(v) for v in table[name].to_pylist()}) for name in table.column_names}
    text = pa.table({name: table[name].cast(pa.string()) for name in table.column_names})
    pairs = [[a, b] for i, a in enumerate(labels) for b in list(labels)[i + 1 :]]
    spec = {
        "attributes": {name: {"labels": values} for name, values in labels.items()},
        "topdown": {"epsilon": epsilon, "queries": {"_".join(pair): pair for pair in pairs}},
    }
    with tempfile.TemporaryDirectory() as folder:
        lv.topdown(spec, data=text, out=f"{folder}/out", seed=1)
        return fit([pa.parquet.read_table(f"{folder}/out/data/microdata.parquet").select(list(labels))])


def far(before: Fit, after: Fit) -> np.ndarray:
    """Distance of the estimates in standard errors of the source."""
    return np.abs(after.estimates - before.estimates) / before.standard_errors


def survive(before: Fit, after: Fit) -> np.ndarray:
    (low, high), (new_low, new_high) = before.interval(0.95), after.interval(0.95)
    shared = np.maximum(0, np.minimum(high, new_high) - np.maximum(low, new_low))
    overlap = (shared / (high - low) + shared / (new_high - new_low)) / 2
    side, new_side = np.sign(low) * (low * high > 0), np.sign(new_low) * (new_low * new_high > 0)
    return (overlap >= 0.5) & (new_high - new_low <= 4 * (high - low)) & (side == new_side)


def draw(lines: list[tuple[str, Fit, Fit]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(TERMS) - 1, figsize=(11, 0.32 * len(lines) + 1.1), sharey=True)
    for panel, i in zip(panels, range(1, len(TERMS)), strict=True):
        for place, (_, before, after) in enumerate(lines):
            low, high = (end[i] for end in before.interval(0.95))
            panel.fill_betweenx([place - 0.4, place + 0.4], low, high, color="#d7dde5", linewidth=0)
            new_low, new_high = (end[i] for end in after.interval(0.95))
            colour = "#1f6f54" if survive(before, after)[i] else "#b3362b"
            panel.plot([new_low, new_high], [place, place], color=colour, linewidth=2)
            panel.plot([after.estimates[i]], [place], "o", color=colour, markersize=4)
        panel.set_title(TERMS[i], fontsize=9)
        panel.tick_params(labelsize=8)
    panels[0].set_yticks(range(len(lines)), [title for title, *_ in lines])
    panels[0].invert_yaxis()
    figure.tight_layout()
    figure.savefig(path)


if __name__ == "__main__":
    main()
