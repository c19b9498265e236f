"""Seven made-up people, small problems over numbers, and releases on disk, for the tests of anonymize."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from louver.anonymize.columns import NumericColumn
from louver.anonymize.problem import AnonymizeProblem
from louver.anonymize.result import AnonymizedRelease
from louver.report.anonymize import anonymize_report

AGES = [31, 33, 34, 52, 55, 58, 60]
ILL = ["flu", "flu", "cold", "cold", "flu", "ulcer", "cold"]
TOWN = ["Ayr", "Ayr", "Bute", "Cairn", "Cairn", "Doon", "Doon"]


def people() -> pa.Table:
    return pa.table(
        {"age": AGES, "town": TOWN, "ill": ILL, "stands_for": [3.0, 3.0, 3.0, 1.0, 1.0, 1.0, 2.5]}
    )


def written(release: AnonymizedRelease, out: Path) -> Path:
    release.write(out, anonymize_report(release))
    return out


def problem_of(*columns: object, k: int, **more: object) -> AnonymizeProblem:
    named = [NumericColumn(name=str(j), values=np.array(c, float)) for j, c in enumerate(columns)]
    return AnonymizeProblem.build(named, k=k, **more)


def random_columns(n: int, m: int, seed: int = 1) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [random.integers(0, 30, n) for _ in range(m)]
