"""Keyed random words: the ChaCha20 key stream.

Produces the stream of 64-bit words that belongs to a key and a nonce. Everything is integer arithmetic, so a key gives
the same words on every machine.

Notes
-----
**Implements**: RFC 8439, section 2.3 (the ChaCha20 block function, 32-bit counter, 96-bit nonce).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from louver.optim.kernels import kernel

__all__ = ["GROUP_WORDS", "LANES", "chacha20_words", "fill_group"]

LANES = 16
"""Blocks computed in parallel, so that the compiler can use the machine's widest vectors."""

GROUP_WORDS = 8 * LANES
"""64-bit words per group of `LANES` blocks; streams are computed in whole groups."""


@kernel
def _quarter_round(x: NDArray[np.uint32], a: int, b: int, c: int, d: int) -> None:
    """RFC 8439, section 2.1, on rows a, b, c, d of the state, for all lanes at once."""
    a, b, c, d = LANES * a, LANES * b, LANES * c, LANES * d
    for lane in range(LANES):
        va, vb, vc, vd = x[a + lane], x[b + lane], x[c + lane], x[d + lane]
        va = np.uint32(va + vb)
        vd ^= va
        vd = np.uint32((vd << np.uint32(16)) | (vd >> np.uint32(16)))
        vc = np.uint32(vc + vd)
        vb ^= vc
        vb = np.uint32((vb << np.uint32(12)) | (vb >> np.uint32(20)))
        va = np.uint32(va + vb)
        vd ^= va
        vd = np.uint32((vd << np.uint32(8)) | (vd >> np.uint32(24)))
        vc = np.uint32(vc + vd)
        vb ^= vc
        vb = np.uint32((vb << np.uint32(7)) | (vb >> np.uint32(25)))
        x[a + lane], x[b + lane], x[c + lane], x[d + lane] = va, vb, vc, vd


@kernel
def fill_group(
    state: NDArray[np.uint32],
    first_block: int,
    start: NDArray[np.uint32],
    x: NDArray[np.uint32],
    words: NDArray[np.uint64],
) -> None:
    """Write blocks first_block .. first_block + LANES - 1 as GROUP_WORDS little-endian words."""
    for row in range(16):
        for lane in range(LANES):
            start[row * LANES + lane] = state[row]
    for lane in range(LANES):
        start[12 * LANES + lane] = np.uint32(first_block + lane)
    for i in range(16 * LANES):
        x[i] = start[i]
    for _ in range(10):
        _quarter_round(x, 0, 4, 8, 12)
        _quarter_round(x, 1, 5, 9, 13)
        _quarter_round(x, 2, 6, 10, 14)
        _quarter_round(x, 3, 7, 11, 15)
        _quarter_round(x, 0, 5, 10, 15)
        _quarter_round(x, 1, 6, 11, 12)
        _quarter_round(x, 2, 7, 8, 13)
        _quarter_round(x, 3, 4, 9, 14)
    for lane in range(LANES):
        for pair in range(8):
            low = 2 * pair * LANES + lane
            high = low + LANES
            words[8 * lane + pair] = np.uint64(np.uint32(x[low] + start[low])) | (
                np.uint64(np.uint32(x[high] + start[high])) << np.uint64(32)
            )


@kernel
def chacha20_words(state: NDArray[np.uint32], first_group: int, out: NDArray[np.uint64]) -> None:
    """Write the key stream from group `first_group` on.

    Parameters
    ----------
    state : uint32 (16,)
        Constants, key, an ignored counter word, nonce, as RFC 8439 lays them out.
    first_group : int
        First group; group g holds the blocks LANES*g .. LANES*g + LANES - 1.
    out : uint64, length a multiple of GROUP_WORDS
        Receives the words; byte k of the key stream is byte k % 8 of word k // 8, little-endian.
    """
    start = np.empty(16 * LANES, np.uint32)
    x = np.empty(16 * LANES, np.uint32)
    for group in range(out.shape[0] // GROUP_WORDS):
        block = (first_group + group) * LANES
        fill_group(state, block, start, x, out[group * GROUP_WORDS : (group + 1) * GROUP_WORDS])
