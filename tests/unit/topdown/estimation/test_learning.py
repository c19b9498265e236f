"""The prior of leaves is learnt in pieces: the same to the last bit whatever the engine, and however the pieces are cut."""

from __future__ import annotations

import numpy as np
import pytest

from louver.engine.local import LocalEngine
from louver.topdown.errors.simulate import AssumedTruth, SimulatedCounts
from louver.topdown.estimation import bayes_leaves
from louver.topdown.estimation.batches import Known, LevelSource
from louver.topdown.estimation.bayes import learn_level
from louver.topdown.estimation.evidence import gather_evidence
from louver.topdown.load import read_design
from louver.topdown.measuring.noise_plan import make_plan
from louver.topdown.measuring.true_counts import true_leaves
from louver.topdown.problem import split_batches
from topdown_town import SPEC, write_town


@pytest.fixture(scope="module")
def learnt(tmp_path_factory):
    """A function that learns the prior of the town's blocks, four batches of them."""
    spec = SPEC.partition("[[topdown.bounds]]")[0]
    plan = make_plan(read_design(write_town(tmp_path_factory.mktemp("town"), spec)))
    truth = AssumedTruth.of(plan, true_leaves(plan.design))
    noisy = SimulatedCounts(plan, truth.levels, 1)
    level = plan.design.spine.n_levels - 1
    batches = [(i, i + 1) for i in range(plan.design.spine.sizes[-2])]

    def learn(engine, together):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bayes_leaves, "LEARNT_TOGETHER", together)
            tree = gather_evidence(truth.problem, noisy)
            source = engine.share(
                LevelSource(engine.share(Known(truth.problem, noisy, tree)), level, truth.levels[-2])
            )
            return learn_level(truth.problem, tree, level, source, batches, shrink=None, engine=engine).prior

    assert split_batches(plan.design.spine, level, 1) and len(batches) == 4
    return learn


@pytest.mark.parametrize(("workers", "together"), [(2, 500), (2, 3), (1, 1)])
def test_the_prior_is_the_same_to_the_last_bit(learnt, workers, together):
    one, other = learnt(LocalEngine(1), 500), learnt(LocalEngine(workers), together)
    assert np.array_equal(one.sizes, other.sizes) and np.array_equal(one.factors, other.factors)
    assert not np.allclose(one.sizes, one.sizes[0, 0])


def test_pieces_hold_about_as_many_leaves_each():
    class Part:
        def __init__(self, n):
            self.start = np.zeros(n + 1)

    parts = [Part(n) for n in (300, 300, 300, 900, 10, 20)]
    found = bayes_leaves._together(parts)
    sizes = [[len(part.start) - 1 for part in piece] for piece in found]
    assert sizes == [[300, 300], [300, 900], [10, 20]]
    assert bayes_leaves._together([]) == []
