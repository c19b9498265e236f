"""The long run: `python -m tests.fuzz --cases 3000 --seed 1 [--kind verify]`; every failure is told with how to repeat it.

SIGUSR1 asks how far it is.
"""

# ruff: noqa: T201

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz.cases import KINDS, has_pages, make
from fuzz.judge import Hanging, Outcome, clear, run

SECONDS = 1200  # a case that takes longer hangs, on however busy a machine


def main() -> int:
    options = parse()
    signal.signal(signal.SIGALRM, _hang)
    root = Path(tempfile.mkdtemp(prefix="louver-fuzz-run-"))
    counts: Counter[str] = Counter()
    n_failures = 0
    began = time.monotonic()

    def tell(*_: object) -> None:
        seconds = f"{time.monotonic() - began:.0f} s, {time.process_time():.0f} s of processor time"
        lines = [f"{counts.total()} cases in {seconds}, {n_failures} failures"]
        lines += [f"  {key}: {count}" for key, count in sorted(counts.items())]
        print("\n".join(lines), file=sys.__stdout__, flush=True)  # the case's own streams are looked at

    signal.signal(signal.SIGUSR1, tell)
    for number in range(options.cases):
        kind = options.kind[number % len(options.kind)]
        seed = options.seed + number // len(options.kind)
        outcome = one(kind, seed, root / "cases" / f"{kind}-{seed}", show=options.show)
        counts[f"{kind} exit {outcome.code}"] += 1
        n_failures += bool(outcome.faults)
    tell()
    return 1 if n_failures else 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--cases", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", choices=KINDS, nargs="+", default=list(KINDS))
    parser.add_argument("--show", action="store_true", help="print every case and what it said")
    return parser.parse_args()


def one(kind: str, seed: int, folder: Path, *, show: bool) -> Outcome:
    """Run one case in its own folder and tell what is wrong with it."""
    case = make(kind, seed, folder)
    here = os.getcwd()
    os.chdir(folder)
    signal.alarm(SECONDS)
    try:
        outcome = run(case, pages=has_pages(seed))
    except Hanging:
        outcome = Outcome(-1, "", "", ["hangs"])
    finally:
        signal.alarm(0)
        os.chdir(here)
    if outcome.faults or show:
        print(f"--kind {kind} --seed {seed} --cases 1: {'; '.join(outcome.faults) or 'fine'}")
        print(f"   {case.told} exit {outcome.code}")
        print(f"   {' '.join(map(repr, case.arguments))[:300]}")
        print(
            "   "
            + (outcome.err or outcome.out)[-1500:]
            .strip()
            .replace("\n", "\n   ")
            .encode("unicode_escape")
            .decode()
            .replace("\\n", "\n")
        )
        sys.stdout.flush()
    clear(folder)
    return outcome


def _hang(*_: object) -> None:
    raise Hanging


if __name__ == "__main__":
    sys.exit(main())
