"""Tables after --hide against brute force: every table of whole numbers that a reader of the marks cannot rule out."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import louver as lv
from few_or_many import few_or_many
from oracles.hiding import Hiding, exact_small

CROSSES = {
    2: [[(0, 1)], [(0, 1), (1,)], [(0,), (0, 1)]],
    3: [[(0, 1), (1, 2)], [(0, 1), (1, 2), (0, 2)], [(0, 1, 2)]],
}


@st.composite
def linked(draw):
    """A truth, and tables with totals that share attributes, one of them perhaps coarser."""
    shape = draw(st.sampled_from([(2, 2), (2, 3), (3, 3), (4, 2), (2, 2, 2)]))
    size = int(np.prod(shape))
    truth = np.array(draw(st.lists(st.sampled_from([0, 1, 1, 2, 3, 4, 6]), min_size=size, max_size=size)))
    below = draw(st.sampled_from([3, 4]))
    tables = [Hiding(axes, below) for axes in draw(st.sampled_from(CROSSES[len(shape)]))]
    if shape[0] > 2 and draw(st.booleans()):
        tables.append(Hiding((0, 1), below, {0: tuple(min(code, 1) for code in range(shape[0]))}))
    return truth.reshape(shape), tables


def described(number, table, shape):
    recode = {}
    for axis, codes in table.groups.items():
        merged = recode.setdefault("abc"[axis], {})
        for code in range(shape[axis]):
            merged.setdefault(f"{'abc'[axis]}{codes[code]}", []).append(f"{'abc'[axis]}{code}")
    by = ["abc"[axis] for axis in table.axes]
    return {"name": f"t{number}", "by": by, "recode": recode, "totals": True, "below": table.below}


def hidden_by(table, cells, truth):
    """Numbers of a table that are hidden: small ones, and those of a plan."""
    labels = list(table.labels(truth.shape))
    true = table.sums(truth.shape) @ truth.ravel()
    hidden = (true > 0) & (true < table.below)
    for cell in cells:
        hidden[labels.index({"abc".index(name): int(label[1:]) for name, label in cell.items()})] = True
    return hidden


@pytest.fixture(autouse=True, scope="module")
def few_steps():
    """Whether fewer cells would do is not asked here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("louver.audit.hide.ALL_EFFORT", 0.2)
        yield


@few_or_many(
    5,
    30,
    given(case=linked()),
    settings(suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.reuse, Phase.generate]),
)
def test_no_small_count_is_exact_for_a_reader_who_knows_what_a_mark_means(case):
    """Nor for one who can tell small cells from others, but for those that no pattern keeps from him."""
    truth, tables = case
    cells = list(np.ndindex(truth.shape))
    columns = {"abc"[axis]: [f"{'abc'[axis]}{cell[axis]}" for cell in cells] for axis in range(truth.ndim)}
    found = lv.audit(
        pa.table({**columns, "count": [int(truth[cell]) for cell in cells]}),
        weight="count",
        tables=[described(number, table, truth.shape) for number, table in enumerate(tables)],
        hide=True,
        no_advice=True,
        small=tables[0].below,
        seconds=600,
    )
    published = [
        (table, hidden_by(table, plan.cells, truth)) for table, plan in zip(tables, found.hide, strict=True)
    ]
    everything = [(table, table.sums(truth.shape) @ truth.ravel() > 0) for table in tables]
    lost = exact_small(truth, everything, is_knowing=False)
    only_by_mark = exact_small(truth, everything, is_knowing=True)
    assert {place for place, _ in lost} == {n for n, plan in enumerate(found.hide) if not plan.is_possible}
    assert all(plan.is_safe or not plan.is_possible for plan in found.hide)
    assert exact_small(truth, published, is_knowing=False) <= lost
    assert exact_small(truth, published, is_knowing=True) <= only_by_mark
    assert len(only_by_mark - lost) == sum(plan.by_mark for plan in found.hide)
