"""The registry of estimators."""

from __future__ import annotations

import subprocess
import sys
from typing import get_args

import pytest

from cli.command import child_environment
from louver.topdown.estimation.bayes import FEWEST
from louver.topdown.estimation.estimators import BAYES, ESTIMATORS, LEAST_SQUARES, PLAIN
from louver.topdown.options import EstimatorName


def test_the_option_names_the_registry() -> None:
    assert tuple(ESTIMATORS) == get_args(EstimatorName)
    assert all(estimator.name == name for name, estimator in ESTIMATORS.items())


@pytest.mark.parametrize(
    ("estimator", "levels"),
    [(PLAIN, []), (LEAST_SQUARES, []), (BAYES, [2])],
    ids=lambda given: str(given)[:9],
)
def test_a_prior_is_learnt_where_there_are_enough_regions(estimator, levels) -> None:
    sizes = (1, FEWEST - 1, FEWEST)
    assert [level for level in range(3) if estimator.has_prior(sizes, level)] == levels
    assert not estimator.has_prior((FEWEST,), 0)  # the root has no parent to be composed as


@pytest.mark.long
def test_topdown_does_not_load_the_extension() -> None:
    code = "import sys, louver.topdown; print([n for n in sys.modules if n.startswith('louver.topdown.extension')])"
    done = subprocess.run(
        [sys.executable, "-c", code], env=child_environment(), capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]", done.stderr
