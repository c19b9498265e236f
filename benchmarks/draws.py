"""Do 90 % intervals hold what they should, after a file was made k-anonymous? Draws beside midpoints and the file itself.

Files are made up: age is even, schooling grows with age and ends at 0 and 5, an amount and an illness depend on both. Every file is
anonymised, analysed, and the truth of the model that made it looked up in the intervals.
"""

from __future__ import annotations

import sys
import tempfile

import numpy as np
import pyarrow as pa
from scipy.special import expit

import louver as lv
from louver.optim.regression import Fit, combine, fit_linear, fit_logistic, fit_mean

NAMES = ["const", "age", "schooling", "male", "const (ill)", "age (ill)", "schooling (ill)", "mean age"]
TRUTH = np.array([10, 0.3, 2, -3, -3, 0.04, 0.3, 48.5])
COPIES = 10


def make(seed: int, n: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    age = random.integers(18, 80, n)
    schooling = np.clip(np.round((age - 20) / 30 + random.normal(2, 1.2, n)), 0, 5).astype(int)
    sex = random.choice(["f", "m"], n)
    amount = 10 + 0.3 * age + 2 * schooling - 3 * (sex == "m") + random.normal(0, 6, n)
    ill = (random.random(n) < expit(-3 + 0.04 * age + 0.3 * schooling)).astype(int)
    region = random.choice(list("abcdef"), n)
    return {"age": age, "schooling": schooling, "sex": sex, "region": region, "amount": amount, "ill": ill}


def analyse(table: dict[str, np.ndarray]) -> Fit:
    """A linear regression, a logistic one and a mean, as one list of estimates."""
    ones = np.ones(len(table["age"]))
    x = np.column_stack([ones, table["age"], table["schooling"], table["sex"] == "m"]).astype(float)
    fits = [
        fit_linear(x, table["amount"].astype(float), ones),
        fit_logistic(x[:, :3], table["ill"].astype(float), ones),
        fit_mean(table["age"].astype(float), ones),
    ]
    return Fit(
        estimates=np.concatenate([fit.estimates for fit in fits]),
        standard_errors=np.concatenate([fit.standard_errors for fit in fits]),
        freedom=np.full(8, np.inf),
    )


def midpoints(release: lv.Release) -> dict[str, np.ndarray]:
    """Numbers in the middle of their interval, the first label of each set."""
    lines = release.tables["mapping"].to_pylist()
    value = {
        (line["attribute"], line["published"]): (line["lower"] + line["upper"]) / 2
        if line["members"] is None
        else line["members"][0]
        for line in lines
    }
    records = release.tables["anonymized"]
    return {
        name: np.array([value.get((name, one), one) for one in records[name].to_pylist()])
        for name in records.column_names
    }


def main(files: int = 100, n: int = 1000) -> None:
    for k in (5, 10):
        held: dict[str, np.ndarray] = {name: np.zeros(8) for name in ("file", "draws", "midpoints")}
        width = {name: np.zeros(8) for name in held}
        for seed in range(files):
            table = make(seed, n)
            with tempfile.TemporaryDirectory() as folder:
                lv.anonymize(
                    pa.table(table),
                    quasi=["age", "schooling", "sex", "region"],
                    sensitive=["amount", "ill"],
                    k=k,
                    steps=20,
                    out=f"{folder}/released",
                )
                release = lv.open(f"{folder}/released")
                copies = [
                    {c: np.array(copy[c].to_pylist()) for c in copy.column_names}
                    for copy in release.draws(COPIES, seed)
                ]
                fits = {
                    "file": analyse(table),
                    "draws": combine([analyse(copy) for copy in copies]),
                    "midpoints": analyse(midpoints(release)),
                }
            for name, fit in fits.items():
                low, high = fit.interval(0.9)
                held[name] += (low <= TRUTH) & (high >= TRUTH)
                width[name] += high - low
        print(
            f"{files} files of {n} records, k = {k}: % of 90 % intervals that hold the truth (width beside the file's)"
        )
        print(f"  {'':<10}" + "".join(f"{name:>17}" for name in NAMES))
        for name, counts in held.items():
            cells = (
                f"{100 * c / files:.0f} ({w:.2f})"
                for c, w in zip(counts, width[name] / width["file"], strict=True)
            )
            print(f"  {name:<10}" + "".join(f"{cell:>17}" for cell in cells), flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
