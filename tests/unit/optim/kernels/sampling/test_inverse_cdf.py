"""The look-up on tables made by hand from exact fractions, and samples as the look-up of the key stream."""

from __future__ import annotations

from bisect import bisect_right
from fractions import Fraction

import numpy as np
import pytest

from louver.optim.kernels.sampling.chacha20 import GROUP_WORDS
from louver.optim.kernels.sampling.inverse_cdf import UNDECIDED, look_up, sample_inplace
from oracles.chacha20 import block

CUMULATIVE = [Fraction(1, 3), Fraction(2, 3), Fraction(9, 10), Fraction(1023, 1024)]
"""P(|X| <= k) for k = 0, 1, ..."""
GUIDE_BITS = 4


def table():
    """Thresholds as the kernel's text defines them, and a guide that skips what lies below each of its cells."""
    thresholds = [int(c * 2**63) for c in CUMULATIVE] + [2**63 - 1]
    starts = [g << 63 - GUIDE_BITS for g in range(1 << GUIDE_BITS)]
    guide = [sum(t + 1 < start for t in thresholds[:-1]) for start in starts]
    arrays = np.array(thresholds, np.uint64), np.array(guide, np.uint16)
    for array in arrays:
        array.setflags(write=False)
    return *arrays, 63 - GUIDE_BITS


@pytest.mark.parametrize("sign", [0, 1])
def test_words_select_the_magnitude_whose_interval_they_lie_in(sign):
    random = np.random.default_rng(sign)
    uniforms = random.integers(0, 2**63, 2000, dtype=np.uint64)
    out = np.empty(2000, np.int64)
    look_up(uniforms * np.uint64(2) + np.uint64(sign), *table(), out)
    decided = out != UNDECIDED
    for u, drawn in zip(uniforms[decided].tolist(), out[decided].tolist(), strict=True):
        # Whatever bits follow, U = (u + rest) / 2^63 lies in one interval.
        low, high = (
            bisect_right(CUMULATIVE, Fraction(u, 2**63)),
            bisect_right(CUMULATIVE, Fraction(u + 1, 2**63)),
        )
        assert low == high == abs(drawn)
        assert drawn <= 0 if sign else drawn >= 0
    beyond = [u for u, d in zip(uniforms.tolist(), decided.tolist(), strict=True) if not d]
    assert all(Fraction(u + 1, 2**63) >= CUMULATIVE[-1] for u in beyond)


def test_words_at_a_threshold_are_left_undecided():
    for c in CUMULATIVE:
        words = np.array([2 * int(c * 2**63)], np.uint64)
        out = np.empty(1, np.int64)
        look_up(words, *table(), out)
        assert out[0] == UNDECIDED


@pytest.mark.parametrize("n", [1, GROUP_WORDS, GROUP_WORDS + 3])
def test_draw_i_uses_word_i(n):
    key, nonce = bytes(range(32)), bytes(range(12))
    state = np.frombuffer(b"expand 32-byte k" + key + bytes(4) + nonce, "<u4").astype(np.uint32)
    drawn, expected = np.empty(n, np.int64), np.empty(n, np.int64)
    sample_inplace(state, *table(), drawn)
    stream = b"".join(block(key, counter, nonce) for counter in range(-(-n // 8)))
    look_up(np.frombuffer(stream, "<u8")[:n].astype(np.uint64), *table(), expected)
    assert drawn.tolist() == expected.tolist()
