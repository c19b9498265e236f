"""Sorted integers as runs: arithmetic progressions [first, last, step]."""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import kernel

__all__ = [
    "append_regions",
    "append_runs",
    "compressed",
    "gcd",
    "grown",
    "put_run_inplace",
]


@kernel
def gcd(a, b):
    while b:
        a, b = b, a % b
    return a


@kernel
def grown(rows, used, needed):
    """The first `used` rows in an array with room for `needed` rows."""
    if needed <= rows.shape[0]:
        return rows
    larger = np.empty((max(2 * rows.shape[0], needed), rows.shape[1]), dtype=rows.dtype)
    for row in range(used):
        for col in range(rows.shape[1]):
            larger[row, col] = rows[row, col]
    return larger


@kernel
def put_run_inplace(runs, span, item, first, last, step):
    """`append_runs` of a single progression where `runs` has room for it."""
    used = span[-1, 1]
    runs[used, 0], runs[used, 1], runs[used, 2] = first, last, step if last > first else 1
    span[item, 0], span[item, 1] = used, used + 1
    span[-1, 1] = used + 1


@kernel
def append_runs(runs, span, item, values, first, step, count):
    """`runs`, followed by those of the progression (first, step, count) and then ascending `values`.

    Each run is as long as possible. Since every part of a progression is a progression, no other list of consecutive runs is shorter. A
    single value has step 1. `span[item]` is set to where the new runs stand; the last row of `span` counts the runs in use.
    """
    start = used = span[-1, 1]
    last = first + (count - 1) * step
    for x in values:
        if count == 0:
            first, last, count = x, x, 1
        elif count == 1:
            step, last, count = x - last, x, 2
        elif x - last == step:
            last = x
            count += 1
        else:
            runs = grown(runs, used, used + 1)
            runs[used, 0], runs[used, 1], runs[used, 2] = first, last, step
            used += 1
            first, last, count = x, x, 1
    if count > 0:
        runs = grown(runs, used, used + 1)
        runs[used, 0], runs[used, 1] = first, last
        runs[used, 2] = step if count > 1 else 1
        used += 1
    span[item, 0], span[item, 1] = start, used
    span[-1, 1] = used
    return runs


@kernel
def append_regions(runs, span, item, lowest, highest):
    """As `append_runs`, for the union of the intervals [lowest[i], highest[i]], in any order."""
    order = np.argsort(lowest)
    start = used = span[-1, 1]
    span[item, 0], span[item, 1] = start, start
    if lowest.shape[0] == 0:
        return runs
    first, last, step, count = np.int64(0), np.int64(0), np.int64(1), 0
    done = lowest[order[0]] - 1  # all of the union up to here has been visited
    for i in order:
        x = max(lowest[i], done + 1)
        while x <= highest[i]:
            if count == 0:
                first, last, count = x, x, 1
            elif count == 1:
                step, last, count = x - last, x, 2
            elif x - last == step:
                last = x
                count += 1
            else:
                runs = grown(runs, used, used + 1)
                runs[used, 0], runs[used, 1], runs[used, 2] = first, last, step
                used += 1
                first, last, count = x, x, 1
            if count > 1 and step == 1 and highest[i] > last:
                count += highest[i] - last
                last = highest[i]
                x = last
            x += 1
        done = max(done, highest[i])
    runs = grown(runs, used, used + 1)
    runs[used, 0], runs[used, 1] = first, last
    runs[used, 2] = step if count > 1 else 1
    span[item, 1] = used + 1
    span[-1, 1] = used + 1
    return runs


@kernel
def compressed(values):
    """Ascending values as the shortest list of consecutive runs."""
    runs = np.empty((4, 3), dtype=np.int64)
    span = np.zeros((2, 2), dtype=np.int64)
    runs = append_runs(runs, span, np.int64(0), values, np.int64(0), np.int64(1), np.int64(0))
    return runs[: span[0, 1]]
