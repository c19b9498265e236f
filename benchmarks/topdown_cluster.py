"""TopDown estimation on the cores of this machine and on three Dask workers on loopback: seconds, bytes sent, and whether bytes agree.

The workers share the machine's cores with the local engine's threads, so nothing can be won here: the ratio is what sending costs.
A first run on each engine loads the kernels and counts what is sent; the second is timed.

Usage: topdown_cluster.py [--blocks 5000] [--estimator bayes]
"""

from __future__ import annotations

import argparse
import os
import pickle
import sys
import tempfile
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path

import louver as lv
from louver.engine import shared
from louver.engine.dask import DaskEngine
from louver.privacy.budget import Measure
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parent))
from synthetic_state import synthetic_state
from topdown_specs import write_synthetic

from dask_cluster import cluster_of

WORKERS = 3


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--blocks", type=int, default=5_000)
    parser.add_argument("--estimator", default="bayes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, cluster_of(Path(folder), WORKERS) as cluster:
        compare(Path(folder), cluster.address, options.blocks, options.estimator)


def compare(folder: Path, address: str, blocks: int, estimator: str) -> None:
    """Measure once, estimate twice on each engine."""
    load = ", ".join(f"{x:.1f}" for x in os.getloadavg())
    print(f"python {sys.version.split()[0]}, louver {lv.__version__}, {os.cpu_count()} cores; load {load}")
    groups = max(20, blocks // 20)
    tracts = (groups // 8, groups // 8)
    state = synthetic_state(tracts=tracts, block_groups=groups, blocks=blocks, people=50 * blocks)
    spec = write_synthetic(folder, state)
    Ledger.create(folder / "synthetic.csv.ledger", Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(4))
    lv.topdown.measure(spec, out=folder / "measured")
    sent, seconds, found = Counter[str](), {}, {}
    for engine in ("local:2", address):
        with counting(sent):
            _estimate(folder, spec, engine, estimator)
        seconds[engine], found[engine] = _estimate(folder, spec, engine, estimator)
    local, dask = seconds.values()
    is_same = len(set(found.values())) == 1
    print(f"{blocks:,} blocks, {estimator}: local:2 {local:.2f} s, {WORKERS} workers {dask:.2f} s, {dask / local:.2f} times; "
          f"bytes {'the same' if is_same else 'DIFFER'}")  # fmt: skip
    told = ", ".join(f"{name} {number:,}" for name, number in sent.items())
    print(
        f"  sent to and from workers: {told}; measurements {_size(folder / 'measured'):,} bytes, read there"
    )


def _estimate(folder: Path, spec: Path, engine: str, estimator: str) -> tuple[float, bytes]:
    """Seconds of estimating, and the counts that came out."""
    for path in folder.glob("measured/checkpoints/*/*"):
        path.unlink()
    began = time.perf_counter()
    release = lv.topdown.estimate(
        spec, measurements=folder / "measured", engine=engine, estimator=estimator, intervals=0
    )
    leaves = release.estimate.leaves
    return time.perf_counter() - began, leaves.cell.tobytes() + leaves.count.tobytes()


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("measurements/*"))


class counting:
    """Counts bytes of tasks, shared files (each worker reads them once) and results while it lasts."""

    def __init__(self, sent: Counter[str]) -> None:
        self._sent = sent
        self._held = DaskEngine._submit, DaskEngine._result, shared._write

    def __enter__(self) -> None:
        submit, result, write = self._held

        def submitted(engine, packed, piece):
            self._sent.update({"batches": 1, "bytes of tasks": len(packed) + len(pickle.dumps(piece))})
            return submit(engine, packed, piece)

        def resulted(engine, future, run):
            found = result(engine, future, run)
            self._sent["bytes of results"] += len(pickle.dumps(found, protocol=5))
            return found

        def written(value, path):
            digest = write(value, path)
            self._sent["bytes of shared files"] += path.stat().st_size
            return digest

        DaskEngine._submit, DaskEngine._result, shared._write = submitted, resulted, written

    def __exit__(self, *error: object) -> None:
        DaskEngine._submit, DaskEngine._result, shared._write = self._held


if __name__ == "__main__":
    main()
