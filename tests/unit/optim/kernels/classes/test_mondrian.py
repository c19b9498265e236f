"""Mondrian against a plain recursive one, with and without requirements."""

from __future__ import annotations

import numpy as np
import pytest

from louver.anonymize.columns import NumericColumn, Sensitive
from louver.anonymize.problem import AnonymizeProblem
from louver.optim.kernels.classes.mondrian import mondrian_labels
from mixed_records import GOING


def plain_parts(codes, k, is_strict, is_allowed):
    """LeFevre et al. (2006): cut by the widest column at the allowed place nearest the middle, until none is left."""

    def parts(members):
        n = len(members)
        widths = codes[members].max(axis=0) - codes[members].min(axis=0)
        for j in sorted(range(codes.shape[1]), key=lambda j: (-widths[j], j)) if n >= 2 * k else []:
            if is_strict and widths[j] == 0:
                break
            ordered = sorted(members, key=lambda i: codes[i, j])
            for cut in sorted(range(k, n - k + 1), key=lambda cut: (abs(cut - n // 2), cut)):
                if is_strict and codes[ordered[cut - 1], j] == codes[ordered[cut], j]:
                    continue
                if is_allowed(ordered[:cut]) and is_allowed(ordered[cut:]):
                    return [*parts(ordered[:cut]), *parts(ordered[cut:])]
        return [frozenset(members)]

    return set(parts(list(range(len(codes)))))


@pytest.mark.parametrize("is_strict", [True, False])
@pytest.mark.parametrize(("n", "k", "l"), [(20, 2, None), (50, 5, None), (50, 3, 2), (7, 4, None)])
def test_parts_equal_a_plain_recursion(n, k, l, is_strict):  # noqa: E741 - the field's own name
    values = np.random.default_rng(n).integers(0, 3, n)
    sensitive = () if l is None else (Sensitive(name="s", codes=values, n_values=3, l=l),)
    columns = np.random.default_rng(k).integers(0, 9, (2, n)).astype(float)
    problem = AnonymizeProblem.build(
        [NumericColumn(name=str(j), values=column) for j, column in enumerate(columns)],
        k=k,
        sensitive=sensitive,
    )
    of_record = values[problem.rows]

    def is_allowed(members):
        return l is None or len(set(of_record[members].tolist())) >= l

    labels = mondrian_labels(problem.geometry, problem.requirements, problem.codes, k, is_strict, GOING)
    found = {frozenset(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels)}
    assert found == plain_parts(problem.codes, k, is_strict, is_allowed)
