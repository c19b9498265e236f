"""Bounds by linear programs: whatever the solver of real numbers says, its duals are rounded and counted in integers."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from louver.optim.kernels.audit.propagate import UNBOUNDED
from louver.optim.kernels.audit.safe import scaled_lower_bound
from louver.optim.status import Status
from louver.optim.warm import Relaxation, WarmProgram
from louver.run import Run
from louver.tables.enumerate import LARGEST
from louver.tables.system import IntArray, System, as_floats

__all__ = ["Relaxed"]

SCALE = 2**20
"""Duals are rounded to multiples of 1 / SCALE."""

MAX_DUAL = 2.0**50


@dataclass(slots=True, eq=False)
class Relaxed:
    """A system without whole numbers, for one objective after another."""

    system: System
    run: Run
    programs: int = field(init=False, default=0)
    _program: WarmProgram | None = field(init=False, default=None)

    def minimise(self, cost: NDArray[np.float64]) -> Relaxation | None:
        """The least of cost @ x over real numbers; None where the solver does not tell."""
        if self._program is None:
            self._program = _program(self.system, self.run)
        self.programs += 1
        answer = self._program.minimise(cost)
        return answer if answer.status is Status.OPTIMAL else None

    def safe_bound(self, cost: IntArray, duals: NDArray[np.float64]) -> int:
        """A lower bound on cost @ x, in integers whatever the duals are."""
        system = self.system
        rounded = np.rint(np.clip(SCALE * duals, -MAX_DUAL, MAX_DUAL)).astype(np.int64)
        rounded[(rounded > 0) & (system.row_lower <= -UNBOUNDED)] = 0
        rounded[(rounded < 0) & (system.row_upper >= UNBOUNDED)] = 0
        upper = np.minimum(system.upper, LARGEST)
        if self._fits(rounded, upper):
            residual = SCALE * cost - system.matrix.T @ rounded
            total = int(
                scaled_lower_bound(rounded, system.row_lower, system.row_upper, residual, system.lower, upper)
            )
        else:
            total = _long_lower_bound(system, cost, rounded, upper)
        return -(-total // SCALE)

    def _fits(self, rounded: IntArray, upper: IntArray) -> bool:
        """Whether no sum in a safe bound can leave 64 bits, by a generous estimate."""
        system, heaviest = self.system, float(np.abs(rounded).max(initial=1))
        entries = float(np.abs(system.matrix.data).max(initial=1))
        residual = SCALE * entries + heaviest * entries * max(1, system.n_rows)
        limits = [
            np.abs(b[np.abs(b) < UNBOUNDED]).max(initial=1) for b in (system.row_lower, system.row_upper)
        ]
        total = residual * float(upper.sum(dtype=np.float64)) + heaviest * system.n_rows * float(max(limits))
        return total < 2.0**62


def _long_lower_bound(system: System, cost: IntArray, rounded: IntArray, upper: IntArray) -> int:
    """The same in integers of any length."""
    duals = [int(y) for y in rounded]
    residual = [SCALE * int(c) for c in cost]
    matrix = system.matrix
    for row, y in enumerate(duals):
        if y:
            for k in range(matrix.indptr[row], matrix.indptr[row + 1]):
                residual[matrix.indices[k]] -= y * int(matrix.data[k])
    total = 0
    for y, low, high in zip(duals, system.row_lower.tolist(), system.row_upper.tolist(), strict=True):
        total += y * low if y > 0 else y * high if y < 0 else 0
    for d, low, high in zip(residual, system.lower.tolist(), upper.tolist(), strict=True):
        total += d * low if d > 0 else d * high if d < 0 else 0
    return total


def _program(system: System, run: Run) -> WarmProgram:
    return WarmProgram(
        csr_array(system.matrix.astype(np.float64)),
        as_floats(system.row_lower),
        as_floats(system.row_upper),
        as_floats(system.lower),
        as_floats(system.upper),
        run,
    )
