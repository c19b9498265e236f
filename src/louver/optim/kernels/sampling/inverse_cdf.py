"""The inverse-CDF look-up that turns keyed random words into noise.

Finds the magnitude that each word of a stream selects in a table of cumulative thresholds. Everything is integer
arithmetic, so a key gives the same noise on every machine. What the thresholds mean, and why the result is exact, is in
`docs/proofs/noise.md`.

Notes
-----
**Implements**: indexed inverse-CDF search after Chen & Asau (1974).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from louver.optim.kernels import kernel
from louver.optim.kernels.sampling.chacha20 import GROUP_WORDS, LANES, fill_group

__all__ = ["UNDECIDED", "look_up", "sample_inplace"]

UNDECIDED = np.iinfo(np.int64).min
"""Marks a draw that 63 bits cannot settle; the caller settles it exactly. No noise value equals it."""


@kernel
def look_up(
    words: NDArray[np.uint64],
    thresholds: NDArray[np.uint64],
    guide: NDArray[np.uint16],
    shift: int,
    out: NDArray[np.int64],
) -> None:
    """Turn each word into a signed magnitude by inverse CDF, or mark it `UNDECIDED`.

    Bit 0 of a word is the sign and the upper 63 bits are the first bits of a uniform U. With m magnitudes,
    `thresholds[k]` holds the first 63 bits of a number within 2^-63 below P(|X| <= k), and
    `thresholds[m]` is 2^63 - 1.

    Parameters
    ----------
    words : uint64 (n,)
    thresholds : uint64 (m + 1,)
        Ascending.
    guide : uint16 (2^(63 - shift),)
        guide[g] = number of thresholds that the walk may skip for words whose upper bits are g.
    shift : int
        63 minus the number of upper bits that index `guide`.
    out : int64 (n,)
    """
    last = thresholds.shape[0] - 1
    one = np.uint64(1)
    bits = np.uint64(shift)
    for i in range(out.shape[0]):
        u = words[i] >> one
        k = np.int64(guide[u >> bits])
        # Invariant: thresholds[0..k) are all below u - 1, so U lies above each of them.
        while thresholds[k] + one < u:
            k += 1
        if k == last or thresholds[k] <= u:
            out[i] = UNDECIDED
        elif words[i] & one:
            out[i] = -k
        else:
            out[i] = k


@kernel
def sample_inplace(
    state: NDArray[np.uint32],
    thresholds: NDArray[np.uint64],
    guide: NDArray[np.uint16],
    shift: int,
    out: NDArray[np.int64],
) -> None:
    """Fill `out` from the start of a stream: draw i uses word i and no other."""
    start = np.empty(16 * LANES, np.uint32)
    x = np.empty(16 * LANES, np.uint32)
    words = np.empty(GROUP_WORDS, np.uint64)
    n = out.shape[0]
    for first in range(0, n, GROUP_WORDS):
        fill_group(state, (first // GROUP_WORDS) * LANES, start, x, words)
        look_up(words, thresholds, guide, shift, out[first : min(n, first + GROUP_WORDS)])
