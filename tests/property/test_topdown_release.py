"""Every release passes verify, whatever is invariant, bounded and measured with whatever noise."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from few_or_many import few_or_many
from louver.release.verify import verify
from louver.topdown import topdown
from topdown_town import SPEC, write_town

BUDGETS = ("epsilon = 20", "epsilon = 1", 'epsilon = "1/20"', 'rho = "1/100"\ndelta = 1e-9')
WARDS = '[[topdown.invariants]]\nname = "ward total"\nlevel = "ward"\n'
STATEMENTS = (
    WARDS,
    '[[topdown.invariants]]\nname = "block total"\nlevel = "block"\n',
    '[[topdown.invariants]]\nname = "in prison"\nlevel = "area"\ncells = { quarters = ["jail"] }\n',
    '[[topdown.bounds]]\nname = "at most"\nfile = "facilities.csv"\ncells = { quarters = ["home"] }\nupper = "houses"\n',
)


@few_or_many(
    2,
    10,
    given(st.sampled_from(BUDGETS), st.sets(st.sampled_from(STATEMENTS)), st.integers(0, 2**32)),
)
def test_every_release_passes_verify(budget, statements, seed):
    assert WARDS in SPEC
    spec = SPEC.replace("epsilon = 2", budget).replace(WARDS, "")
    with tempfile.TemporaryDirectory() as name:
        town = write_town(Path(name) / "town", spec + "".join(sorted(statements)))
        release = topdown(town, seed=seed, out=Path(name) / "out")
        failed = [check.name for check in verify(Path(name) / "out").checks if not check.passed]
    assert failed == ["private noise"]
    assert not release.estimate.rescued
