"""Do two trees of louver release the same bytes? A program, not a test module.

compare_releases.py OLD NEW     each a checkout with its own .venv; prints every difference, exits 1 if there is one
compare_releases.py --make DIR  only run the commands with this Python's louver; DIR/results.json may stand for a tree later

Both run the same commands, with seeds or fixed steps, on the embedded samples and on small made-up data. Compared are all
files below `data/`, and JSON without times; keys that only the new one has are listed apart and are no difference.
"""

# ruff: noqa: T201

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from itertools import product
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from topdown_town import SPEC, write_town

IGNORED = {"seconds", "created", "version", "digest", "files", "manifest", "spec_sha256"}
METHODS = (
    "auto",
    "exact",
    "split-carry",
    "greedy",
    "sorted",
    "mondrian",
    "mondrian-relaxed",
    "k-member",
    "freeform-greedy",
    "freeform-sort-greedy",
    "freeform-hungarian",
)
MECHANISMS = ("louver", "M_H^r", "M_H^dp", "M_c^r", "M_c^dp", "M_c^ch", "TopDown", "M_H", "M_c", "M_dp^OP")
PROGRAMS = {"M_H": ("people.csv", 6), "M_c": ("few.csv", 3), "M_dp^OP": ("few.csv", 3)}
"""Mechanisms that a general solver serves: what they end on."""

Command = tuple[str, ...]


def commands() -> Iterator[tuple[str, Command]]:
    """Every command, and the name of what it makes."""
    yield from _bounds()
    yield from _anonymize()
    yield from _groups()
    yield from _topdown()


def _bounds() -> Iterator[tuple[str, Command]]:
    cps8 = ("bounds", "cps8.csv.gz", "--weight=count", "--json")
    yield "bounds cps8 6", (*cps8, "--rows=X1,X2,X3,X4,X5,X6", "--cols=X7,X8")
    table = ("bounds", "people.csv", "--rows=town,sex", "--cols=ill", "--json")
    for name, more in {
        "plain": (),
        "recoded": ("--recode=recode.toml",),
        "given": ("--given=given.toml",),
        "cells": ("--cells=cells.csv",),
        "one decimal": ("--decimals=1",),
        "three decimals": ("--decimals=3",),
        "half even": ("--decimals=2", "--rounding=half-even"),
        "dropped": ("--drop-zero-rows",),
        "merged": ("--merge-zero-rows",),
        "small 20": ("--small=20", "--fail-on=small"),
        "given and rounded": ("--given=given.toml", "--decimals=2"),
    }.items():
        yield f"bounds {name}", (*table, *more)
    yield "bounds arrangements", ("bounds", "people.csv", "--arrangements=arrangements.toml", "--json")
    shares = (
        "bounds",
        "shares.csv",
        "--rows=town",
        "--cols=ill",
        "--weight=share",
        "--conditionals",
        "--json",
    )
    yield "bounds conditionals", (*shares, "--n=500")
    for rows in ("town", "sex", "town,age", "town,sex,age"):
        yield f"bounds rows {rows}", ("bounds", "people.csv", f"--rows={rows}", "--cols=ill", "--json")


def _anonymize() -> Iterator[tuple[str, Command]]:
    always = (
        "anonymize",
        "people.csv",
        "--identifying=name,home,income",
        "--keep-order",
        "--steps=3",
        "--json",
    )
    for method in METHODS:
        data = "few.csv" if method == "exact" else "people.csv"
        base = (always[0], data, *always[2:], "--quasi=age,town,sex", f"--method={method}")
        yield f"anonymize {method}", (*base, "-k5")
        if not method.startswith("freeform"):
            yield f"anonymize {method} diverse", (*base, "-k3", "--sensitive=ill", "--l=2")
            yield f"anonymize {method} close", (*base, "-k3", "--sensitive=ill", "--t=0.4", "--suppress=0.05")
    more = {
        "hierarchy": ("--hierarchy=town=town.csv",),
        "weights": ("--weights=age=.8,town=.2", "--normalise"),
        "bounds format": ("--format=bounds",),
        "one-hot": ("--one-hot=sex",),
        "missing match": ("--missing=match",),
        "ordered": ("--ordered=town",),
        "entropy": ("--sensitive=ill", "--l=1.5", "--l-kind=entropy"),
        "ordered distance": (
            "--identifying=name,home",
            "--sensitive=income",
            "--t=0.5",
            "--distance=ordered",
        ),
        "sampling weight": ("--identifying=name,home", "--sampling-weight=income"),
        "population": ("--population=population.csv",),
    }
    for (name, options), method in product(more.items(), ("auto", "greedy", "mondrian")):
        yield (
            f"anonymize {method} {name}",
            (*always, "--quasi=age,town,sex", "-k4", f"--method={method}", *options),
        )
    for carry in ((), ("--carry=subset", "--boundary=2"), ("--carry=bubble", "--size=12", "--accepted=1")):
        options = ("--quasi=age,town", "-k3", "--method=split-carry", *carry)
        yield f"anonymize split-carry {carry[:1]}", (always[0], "few.csv", *always[2:], *options)


def _groups() -> Iterator[tuple[str, Command]]:
    always = (
        "groups",
        "people.csv",
        "--unit=home",
        "--regions=county,town",
        "--domain=towns.csv",
        "--across=split",
        "--seed=5",
        "--json",
    )
    for mechanism, total, amount in product(MECHANISMS, ("public", "noisy"), ("--epsilon=1", "--rho=0.5")):
        data, size = PROGRAMS.get(mechanism, ("people.csv", 12))
        options = (f"--max-size={size}", f"--mechanism={mechanism}", f"--total={total}", amount)
        yield f"groups {mechanism} {total} {amount}", (always[0], data, *always[2:], *options)
    base = (*always, "--max-size=12", "--epsilon=2")
    for total in ("public", "noisy"):
        for name, more in {
            "equal": ("--shares=equal",),
            "shares": ("--shares=1/2,1/4,1/4",),
            "min-size": ("--min-size=1",),
            "quantity": ("--quantity=visits", "--max-quantity=3"),
            "change-record": ("--neighbours=change-record",),
            "units": ("--neighbours=add-remove-unit", "--across=error"),
            "evaluate": ("--evaluate",),
        }.items():
            yield f"groups {name} {total}", (*base, *more, f"--total={total}")
        counted = (
            "groups",
            "counted.csv",
            "--size=size",
            "--groups=groups",
            "--regions=county,town",
            "--domain=towns.csv",
        )
        yield (
            f"groups counted {total}",
            (*counted, "--max-size=9", "--epsilon=1", "--seed=2", f"--total={total}", "--json"),
        )
    yield (
        "groups as published",
        (*base, "--mechanism=M_c^ch", "--as-published", "--evaluate", "--total=public"),
    )
    ges = (
        "groups",
        "ges2013.csv.gz",
        "--unit=CASENUM",
        "--regions=REGION",
        "--domain-from-data",
        "--max-size=30",
        "--epsilon=1",
        "--seed=1",
        "--json",
    )
    for total in ("public", "noisy"):
        yield f"groups ges2013 {total}", (*ges, f"--total={total}")


def _topdown() -> Iterator[tuple[str, Command]]:
    for name, seed in product(SPECS, (1, 2)):
        yield (
            f"topdown {name} {seed}",
            ("topdown", "run", f"town/{name}.toml", f"--seed={seed}", "--csv", "--json"),
        )
        yield (
            f"topdown {name} {seed} evaluated",
            (
                "topdown",
                "run",
                f"town/{name}.toml",
                f"--seed={seed}",
                "--evaluate",
                "--engine=local:2",
                "--json",
            ),
        )
    for name in SPECS:
        yield f"topdown check {name}", ("topdown", "check", f"town/{name}.toml", "--json")


def _without(spec: str, *starts: str) -> str:
    blocks = spec.split("\n\n")
    return "\n\n".join(block for block in blocks if not block.lstrip().startswith(starts))


SPECS = {
    "laplace": SPEC,
    "gaussian": SPEC.replace("epsilon = 2", 'rho = "1/3"\ndelta = 1e-9'),
    "no bounds": _without(SPEC, "[[topdown.bounds]]"),
    "no invariants": _without(SPEC, "[[topdown.invariants]]"),
    "no zeros": _without(SPEC, "[[structural_zeros]]"),
    "plain": _without(SPEC, "[[topdown.bounds]]", "[[topdown.invariants]]", "[[structural_zeros]]"),
    "low budget": SPEC.replace("epsilon = 2", 'epsilon = "1/20"'),
    "add-remove": _without(SPEC, "[[topdown.invariants]]").replace(
        "epsilon = 2", 'epsilon = 2\nneighbours = "add-remove-record"'
    ),
}


def write_inputs(folder: Path) -> None:
    """The made-up data, from a fixed seed."""
    draw = random.Random(8)
    towns = {f"t{i}": f"c{i % 3}" for i in range(8)}
    people = []
    for number in range(400):
        town = draw.choice(list(towns))
        age = "" if draw.random() < 0.02 else str(draw.randrange(18, 90))
        ill = draw.choices(("no", "mild", "severe"), (80, 15, 5))[0]
        people.append(
            [
                f"p{number}",
                f"h{number // draw.choice((1, 2, 3))}",
                towns[town],
                town,
                draw.choice("fm"),
                age,
                ill,
                str(1 + int(draw.expovariate(1 / 30))),
                str(draw.randrange(4)),
            ]
        )
    header = ["name", "home", "county", "town", "sex", "age", "ill", "income", "visits"]
    # A home lies in one town: that of its first member.
    home_of: dict[str, list[str]] = {}
    for row in people:
        first = home_of.setdefault(row[1], row)
        row[2], row[3] = first[2], first[3]
    _write(folder / "people.csv", header, people)
    _write(folder / "few.csv", header, [row for row in people if row[5]][:24])
    _write(folder / "population.csv", header, people * 2)
    _write(folder / "towns.csv", ["county", "town"], sorted([county, town] for town, county in towns.items()))
    counted = [
        [county, town, str(size), str(draw.randrange(6))]
        for town, county in sorted(towns.items())
        for size in range(1, 10)
    ]
    _write(folder / "counted.csv", ["county", "town", "size", "groups"], counted)
    _write(
        folder / "town.csv", ["level0", "level1"], sorted([town, county] for town, county in towns.items())
    )
    _write(folder / "cells.csv", ["town", "sex", "ill"], [["t1", "f", "no"], ["t2", "m", "mild"]])
    shares = [
        ["t1", "no", "2/3"],
        ["t1", "ill", "1/3"],
        ["t2", "no", "3/5"],
        ["t2", "ill", "2/5"],
        ["t3", "no", "1"],
        ["t3", "ill", "0"],
    ]
    _write(folder / "shares.csv", ["town", "ill", "share"], shares)
    (folder / "recode.toml").write_text('[ill]\nyes = ["mild", "severe"]\n')
    (folder / "given.toml").write_text('[[known]]\nrow = { town = "t1", sex = "f" }\nat_most = 60\n')
    (folder / "arrangements.toml").write_text(
        '[[arrangement]]\nrows = ["town"]\ncols = ["ill"]\n\n[[arrangement]]\nrows = ["sex"]\ncols = ["ill", "town"]\n'
    )
    for name, spec in SPECS.items():
        write_town(folder / "town", spec).rename(folder / "town" / f"{name}.toml")


def _write(path: Path, header: list[str], rows: list[list[str]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def make(folder: Path) -> None:
    """Run every command with the louver of this process; leave a file of what each one gave."""
    from louver.data.samples import sample_path

    for sample in ("cps8", "ges2013"):
        (folder / f"{sample}.csv.gz").write_bytes(sample_path(sample).read_bytes())
    write_inputs(folder)
    os.chdir(folder)
    results = {name: _result(number, command) for number, (name, command) in enumerate(commands())}
    (folder / "results.json").write_text(json.dumps(results))


def _result(number: int, command: Command) -> dict[str, Any]:
    from louver.cli import main

    out = Path(f"out{number}")
    releases = command[0] != "bounds" and command[1] != "check"
    sys.argv = ["louver", *command, *([f"--out={out}"] if releases else [])]
    code, stdout, stderr = 0, io.StringIO(), io.StringIO()
    with redirect_stdout(stdout), redirect_stderr(stderr):
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
    text = stdout.getvalue().replace(out.name, "out")
    return {
        "code": code,
        "json": _timeless(json.loads(text)) if text.startswith("{") else text,
        "err": stderr.getvalue().replace(out.name, "out"),
        "files": {
            path.relative_to(out).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted((out / "data").rglob("*"))
            if path.is_file()
        },
        "manifest": _timeless(json.loads((out / "manifest.json").read_text()))
        if (out / "manifest.json").is_file()
        else None,
    }


def _timeless(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _timeless(value) for key, value in tree.items() if key not in IGNORED}
    return [_timeless(value) for value in tree] if isinstance(tree, list) else tree


def differences(old: Any, new: Any, place: str) -> Iterator[str]:
    """Where two trees differ; what only the new one has is not told here."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in old:
            if key not in new:
                yield f"{place}.{key} is gone"
            else:
                yield from differences(old[key], new[key], f"{place}.{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from differences(one, other, f"{place}[{number}]")
    elif old != new:
        yield f"{place}: {str(old)[:120]!r} -> {str(new)[:120]!r}"


def new_keys(old: Any, new: Any, place: str) -> Iterator[str]:
    """Keys that only the new tree has."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key, value in new.items():
            if key not in old:
                yield f"{place}.{key}"
            else:
                yield from new_keys(old[key], value, f"{place}.{key}")
    elif isinstance(old, list) and isinstance(new, list):
        for one, other in zip(old, new, strict=False):
            yield from new_keys(one, other, f"{place}[]")


def compare(old: dict[str, Any], new: dict[str, Any]) -> int:
    """Print what differs; return how many commands differ in the bytes of `data/` or in what they refuse."""
    n_other, added = 0, set()
    for name, before in old.items():
        after = new[name]
        bytes_differ = [file for file in before["files"] if before["files"][file] != after["files"].get(file)]
        more = [file for file in after["files"] if file not in before["files"]]
        told = [f"data: {file} differs" for file in bytes_differ] + [f"data: {file} is new" for file in more]
        for part in ("code", "err", "json", "manifest"):
            told.extend(differences(before[part], after[part], part))
            added.update(new_keys(before[part], after[part], part))
        if told:
            print(f"{name}:")
            for line in told[:12]:
                print(f"    {line}")
        n_other += bool(bytes_differ) or before["code"] != after["code"]
    print(f"{len(old)} commands: {len(old) - n_other} the same in data/ and exit code, {n_other} not")
    print("new keys:", ", ".join(sorted(added)) or "none")
    return n_other


def run_tree(tree: Path) -> dict[str, Any]:
    """All results of one tree, made by its own Python; or of a results.json that --make left."""
    if tree.is_file():
        made: dict[str, Any] = json.loads(tree.read_text())
        return made
    with tempfile.TemporaryDirectory(prefix="louver-compare-") as name:
        environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
        command = [str(tree / ".venv/bin/python"), __file__, "--make", name]
        subprocess.run(command, env=environment, check=True)
        results: dict[str, Any] = json.loads((Path(name) / "results.json").read_text())
    return results


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("trees", type=Path, nargs="*", metavar="TREE")
    parser.add_argument("--make", type=Path, help="run the commands here and stop")
    options = parser.parse_args()
    if options.make:
        make(options.make.absolute())
        return 0
    with ThreadPoolExecutor(2) as pool:
        old, new = pool.map(run_tree, [tree.absolute() for tree in options.trees])
    return 1 if compare(old, new) else 0


if __name__ == "__main__":
    sys.exit(main())
