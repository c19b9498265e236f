"""The order in which items are left out one by one, each with few additions."""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import kernel

__all__ = ["copy_inplace", "leave_one_out_plan", "plan_depth"]


@kernel
def leave_one_out_plan(n):
    """Steps that leave each of n items out once, with O(n log n) additions.

    Returns
    -------
    steps : int64 (2n - 1, 4)
        (depth, low, high, leaf): copy the set of level depth - 1 to level depth (level 0 is given), add items
        low..high-1 to it; `leaf` >= 0 says that level depth now holds everything but that item.

    Notes
    -----
    Implements the order of Wright & Smucker (2014), §3.1, Table 7: a level holds everything outside its range.
    """
    steps = np.empty((max(2 * n - 1, 0), 4), dtype=np.int64)
    stack = np.empty((128, 5), dtype=np.int64)
    n_steps = 0
    n_stack = 0
    if n > 0:
        stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3], stack[0, 4] = 0, n, 0, 0, 0
        n_stack = 1
    while n_stack > 0:
        n_stack -= 1
        low, high, depth = stack[n_stack, 0], stack[n_stack, 1], stack[n_stack, 2]
        steps[n_steps, 0] = depth
        steps[n_steps, 1], steps[n_steps, 2] = stack[n_stack, 3], stack[n_stack, 4]
        steps[n_steps, 3] = low if high - low == 1 else -1
        n_steps += 1
        if high - low > 1:
            middle = (low + high) // 2
            for a, b, c, d in ((middle, high, low, middle), (low, middle, middle, high)):
                stack[n_stack, 0], stack[n_stack, 1], stack[n_stack, 2] = a, b, depth + 1
                stack[n_stack, 3], stack[n_stack, 4] = c, d
                n_stack += 1
    return steps


@kernel
def copy_inplace(target, source):
    """Copy like target[:] = source, which would also compile the message of an error that cannot occur."""
    for x in range(source.shape[0]):
        target[x] = source[x]


@kernel
def plan_depth(plan):
    """How many levels the plan needs, at least one."""
    depth = np.int64(1)
    for step in range(plan.shape[0]):
        depth = max(depth, plan[step, 0] + 1)
    return depth
