"""Tables beside a file of records against brute force: every group that sets of labels describe, all people that the records may be."""

from __future__ import annotations

import tempfile
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from few_or_many import few_or_many
from louver._verdict import Level
from louver.audit import audit
from louver.release import disclosures
from louver.release.matched_register import MatchedRegister
from louver.schema.source import SourceOptions
from oracles.descriptions import all_groups, shown_counts
from oracles.files import ShownClass, possible_tables

SMALL = 3
SETTINGS = settings(
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)


def label(axis, code):
    return f"{'abc'[axis]}{code}"


@st.composite
def count_tables(draw, shape, name):
    """A table as options, and as the oracle has it."""
    axes = draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, unique=True))
    where = {}
    if draw(st.booleans()):
        axis = draw(st.integers(0, len(shape) - 1))
        where[axis] = sorted(
            draw(st.lists(st.integers(0, shape[axis] - 1), min_size=1, max_size=2, unique=True))
        )
    below = draw(st.sampled_from([None, 3]))
    totals = draw(st.booleans())
    subsets = [axes] if not totals else [c for n in range(len(axes) + 1) for c in combinations(axes, n)]
    options = {
        "name": name,
        "by": ["abc"[axis] for axis in axes],
        "where": {"abc"[axis]: [label(axis, code) for code in codes] for axis, codes in where.items()},
        "below": below,
        "totals": totals,
    }
    return options, [
        shown_counts(shape, {axis: range(shape[axis]) for axis in subset}, where, below=below)
        for subset in subsets
    ]


SHAPES = [(2, 2), (3, 2), (3,), (3, 3), (2, 2, 2)]


@st.composite
def files(draw):
    """People in classes of two or more, each class published by the labels of its people, perhaps with the last column as it is."""
    shape = draw(st.sampled_from(SHAPES))
    total = draw(st.integers(4, 7 if np.prod(shape) <= 6 else 6))
    cells = list(np.ndindex(*shape))
    people = [cells[draw(st.integers(0, len(cells) - 1))] for _ in range(total)]
    n_left_out = draw(st.sampled_from([0, 0, 0, 1]))
    cuts = draw(st.sampled_from([(total - n_left_out,), (2, total - n_left_out), (3, total - n_left_out)]))
    is_kept = len(shape) > 1 and draw(st.booleans())
    members: dict[tuple, list] = {}
    for start, stop in zip((0, *cuts[:-1]), cuts, strict=True):
        group = people[start:stop]
        if len(group) > 0:
            shown = tuple(
                None if is_kept and axis == len(shape) - 1 else tuple(sorted({one[axis] for one in group}))
                for axis in range(len(shape))
            )
            members.setdefault(shown, []).extend(group)
    classes = [
        ShownClass(
            labels,
            tuple(sum(one[-1] == code for one in group) for code in range(shape[-1]))
            if is_kept
            else (len(group),),
        )
        for labels, group in members.items()
    ]
    return shape, people, classes, n_left_out


def entry_of(shape, classes, n_left_out):
    is_kept = classes[0].labels[-1] is None
    axes = range(len(shape) - is_kept)
    values = [sorted({one.labels[axis] for one in classes}) for axis in axes]
    named = [[[label(axis, code) for code in codes] for codes in values[axis]] for axis in axes]
    rows, counts = [], []
    for one in classes:
        for code, n in enumerate(one.kept):
            if n:
                shown = [values[axis].index(one.labels[axis]) for axis in axes]
                rows.append([*shown, code] if is_kept else shown)
                counts.append(n)
    kept = "abc"[len(shape) - 1]
    return disclosures.file(
        "2-anonymous",
        quasi=["abc"[axis] for axis in axes],
        values=named,
        occurs=named,
        listed_in="class",
        columns={kept: [label(len(shape) - 1, code) for code in range(shape[-1])]} if is_kept else {},
        rows=rows,
        counts=counts,
        n_left_out=n_left_out,
        where={},
        too_large=[],
        is_one_recoding=False,
    )


def determined(tables, group):
    return len(set((tables @ group.astype(np.int64)).tolist())) == 1


@few_or_many(40, 400, given(files(), st.data()), SETTINGS)
def test_no_small_group_is_determined_by_a_file_and_tables_where_the_verdict_is_ok(file, data) -> None:
    shape, people, classes, n_left_out = file
    drawn = [data.draw(count_tables(shape, f"t{n}")) for n in range(data.draw(st.integers(1, 2)))]
    columns = {"abc"[axis]: [label(axis, one[axis]) for one in people] for axis in range(len(shape))}
    spec = "".join(
        f"[attributes.{'abc'[axis]}]\nlabels = {[label(axis, code) for code in range(size)]}\n"
        for axis, size in enumerate(shape)
    )
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "spec.toml").write_text(spec.replace("'", '"'))
        register = MatchedRegister.of(
            Path(folder) / "register", pa.table(columns), SourceOptions(), is_publishing=True
        )
        register.append({"tables": [], "files": [entry_of(shape, classes, n_left_out)]})
        found = audit(
            pa.table(columns),
            spec=Path(folder) / "spec.toml",
            tables=[table for table, _ in drawn],
            registry=Path(folder) / "register",
            small=SMALL,
            no_advice=True,
            fail_on="small",
            seconds=600,
        )
    counts = Counter(people)
    truth = np.array([counts[cell] for cell in np.ndindex(*shape)])
    alone = possible_tables(shape, classes, n_left_out)
    assert (alone == truth).all(axis=1).any()
    both = alone
    for _, shown in drawn:
        for one in shown:
            own = one.printed(one.rows @ truth)
            both = both[[bool((one.printed(one.rows @ table) == own).all()) for table in both]]
    small = [group for group in all_groups(shape) if 0 < int(truth @ group) < SMALL]
    news = [group for group in small if determined(both, group) and not determined(alone, group)]
    assert not found.question.files
    if found.verdict.level is Level.OK:
        assert found.passed and not news
    if found.verdict.level is Level.STOP and not found.question.dependencies:
        assert news or any(determined(both, group) for group in small)
    if not found.question.dependencies and not found.question.near and not found.summary.undecided:
        assert not news or found.verdict.level is Level.STOP
