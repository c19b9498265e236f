"""TopDown: sensitivities by enumerating neighbours, noise that survives a kill, budgets that are not overspent."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np
import pytest

from cli.command import child_environment
from louver.privacy.budget import Measure
from louver.privacy.distributions import DiscreteLaplace
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation
from louver.release.verify import verify
from louver.topdown import topdown
from louver.topdown.load import read_design
from louver.topdown.measuring.noise_plan import QueryPlan, make_plan, sensitivity
from louver.topdown.measuring.true_counts import invariant_values, true_batches
from louver.topdown.problem import SparseLevel
from privacy.topdown_crash import N_KILLS, NAMED
from topdown_town import write_town

CRASH = Path(__file__).with_name("topdown_crash.py")

HAMLET = """
[attributes.sex]
labels = ["f", "m"]
[attributes.age]
labels = ["<18", "18-64", "65+"]
[topdown]
{budget}
neighbours = "{neighbours}"
[topdown.geography]
column = "block"
levels = ["hamlet", "area", "block"]
prefixes = [0, 1, 2]
leaves = "leaves.csv"
[topdown.queries]
total = []
age = ["age"]
adults = {{ attributes = ["age"], merge = {{ age = {{ adult = ["18-64", "65+"] }} }} }}
by_sex = ["sex", "age"]
[topdown.shares]
levels = {{ hamlet = "1/7", area = "2/7", block = "4/7" }}
queries = {{ total = "1/10", age = "2/10", adults = "3/10", detailed = "4/10" }}
at = {{ area = {{ by_sex = "1/3", detailed = "2/3" }} }}
{invariants}
"""
INVARIANTS = {
    "none": "",
    "area total": '[[topdown.invariants]]\nname = "x"\nlevel = "area"',
    "block total": '[[topdown.invariants]]\nname = "x"\nlevel = "block"',
    "women of the hamlet": '[[topdown.invariants]]\nname = "x"\nlevel = "hamlet"\ncells = { sex = ["f"] }',
}
LEAVES, N_CELLS = ("11", "12", "21"), 6
RECORDS = [(leaf, cell) for leaf in range(len(LEAVES)) for cell in range(N_CELLS)]
Data = tuple[tuple[int, int], ...]
UNIVERSE: list[Data] = [data for n in range(3) for data in combinations_with_replacement(RECORDS, n)]


def neighbours_of(data: Data, relation: Relation) -> Iterator[Data]:
    """Every neighbour, straight from the sentence that defines the relation."""
    for i in range(len(data)):
        rest = data[:i] + data[i + 1 :]
        if relation is Relation.CHANGE_RECORD:
            yield from (tuple(sorted((*rest, record))) for record in RECORDS if record != data[i])
        else:
            yield rest


def levels_of(plan: QueryPlan, data: Data) -> tuple[SparseLevel, ...]:
    counts = np.zeros((len(LEAVES), N_CELLS), dtype=np.int64)
    for (leaf, cell), n in Counter(data).items():
        counts[leaf, cell] = n
    levels = [SparseLevel.from_dense(counts)]
    for starts in reversed(plan.design.spine.starts):
        levels.insert(0, levels[0].add_up(starts, N_CELLS))
    return tuple(levels)


@pytest.mark.parametrize("known", INVARIANTS)
@pytest.mark.parametrize("budget", ["epsilon = 7", 'rho = "7/3"\ndelta = 1e-9'], ids=["epsilon", "rho"])
@pytest.mark.parametrize("relation", [Relation.CHANGE_RECORD, Relation.ADD_REMOVE_RECORD])
def test_no_neighbour_moves_an_answer_further_than_declared(tmp_path, relation, budget, known):
    """Every query of every level, over all of its regions; and all of them together within the plan's loss."""
    (tmp_path / "leaves.csv").write_text("block\n" + "\n".join(LEAVES) + "\n")
    text = HAMLET.format(budget=budget, neighbours=relation, invariants=INVARIANTS[known])
    (tmp_path / "hamlet.toml").write_text(text)
    design = read_design(tmp_path / "hamlet.toml")
    if relation is Relation.ADD_REMOVE_RECORD and "total" in known:
        with pytest.raises(Exception, match="nothing would be protected"):
            make_plan(design)
        return
    plan = make_plan(design)
    answers, exact = {}, {}
    for data in UNIVERSE:
        levels = levels_of(plan, data)
        batches = list(true_batches(plan, levels))
        answers[data] = {(b.level, b.query): b.true_counts for b in batches}
        exact[data] = {name: values.tolist() for name, values in invariant_values(plan, levels).items()}
    noise = {(b.level, b.query): b.distribution for b in batches}
    largest = dict.fromkeys(noise, (0, 0))
    worst = Fraction(0)
    for data in UNIVERSE:
        for other in neighbours_of(data, relation):
            if exact[data] != exact[other]:
                continue
            spent = Fraction(0)
            for key, distribution in noise.items():
                difference = np.abs(answers[data][key] - answers[other][key])
                l1, l2_squared = int(difference.sum()), int((difference**2).sum())
                largest[key] = (max(largest[key][0], l1), max(largest[key][1], l2_squared))
                is_laplace = isinstance(distribution, DiscreteLaplace)
                spent += (
                    l1 / distribution.scale
                    if is_laplace
                    else Fraction(l2_squared) / (2 * distribution.sigma_squared)
                )
            worst = max(worst, spent)
    assert set(noise) == {
        (design.spine.names[level], query.query.name)
        for level, queries in enumerate(plan.measured)
        for query in queries
    }
    declared = sensitivity(relation)
    assert all(found <= declared for found in largest.values())
    assert worst <= plan.loss.amount <= design.budget.amount
    if known == "none":  # nothing is declared larger than it is
        del largest["hamlet", "total"], largest["area", "by_sex"]
        assert worst == plan.loss.amount or relation is Relation.CHANGE_RECORD
        assert {found for key, found in largest.items() if key[0] != "hamlet"} == {declared}


@pytest.mark.long
def test_killed_at_named_and_at_random_moments(tmp_path):
    """1, 2 and 4 workers; after any kill one debit, the same noise, the same bytes, nothing left behind."""
    done = subprocess.run(
        [sys.executable, str(CRASH), str(tmp_path), "11"],
        stdout=subprocess.PIPE,
        text=True,
        env=child_environment(),
        check=True,
    )
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(reports) == N_KILLS
    for report in reports:
        assert report["same_noise"] and report["same_bytes"] and report["verified"], report
        paid = (report["spent"], report["pending"], report["sealed"], report["disclosures"])
        assert paid == ("2", 0, 1, 1), report
        assert set(report["left"]) == {"town", "out", "again"} | ({"events"} & set(report["left"])), report
    assert {r["moment"]: r["stage"] for r in reports if r["moment"] in NAMED} == NAMED


@pytest.fixture
def town(tmp_path):
    path = write_town(tmp_path / "town")
    ledger = path.parent / "people.csv.ledger"
    Ledger.create(ledger, Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(3))
    return path


def start(*arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "louver", *map(str, arguments)],
        env=child_environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.long
def test_two_processes_do_not_overspend(town, tmp_path):
    """Two requests and enough for one of them; which one gets it does not matter."""
    other = town.with_name("other.toml")
    other.write_text(
        town.read_text().replace('age_race = "1/4", detailed = "1/2"', 'age_race = "1/2", detailed = "1/4"')
    )
    both = [
        start("topdown", "measure", spec, "--out", tmp_path / f"from-{spec.stem}") for spec in (town, other)
    ]
    told = [process.communicate()[1] for process in both]
    assert sorted(process.returncode for process in both) == [0, 2], told
    refused = next(text for process, text in zip(both, told, strict=True) if process.returncode)
    assert "left" in refused
    state = Ledger(town.parent / "people.csv.ledger").state()
    assert state.spent == 2 and len(state.sealed) == 1 and not state.pending


@pytest.mark.long
def test_the_command_is_killed_and_resumed(town, tmp_path):
    """Whatever moment the kill hits, the same command with --resume ends well and pays once."""
    out, work = tmp_path / "out", tmp_path / ".out.topdown"
    process = start("topdown", "run", town, "--out", out)
    while process.poll() is None and not work.exists():
        time.sleep(0.005)
    if process.poll() is None:
        os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    topdown(town, out=out, resume=True)
    state = Ledger(town.parent / "people.csv.ledger").state()
    assert state.spent == 2 and not state.pending
    assert verify(out).passed and not work.exists()
