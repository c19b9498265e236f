"""The keyed stream against RFC 8439 and a plain implementation of it."""

from __future__ import annotations

import numpy as np
import pytest

from louver.optim.kernels.sampling.chacha20 import GROUP_WORDS, LANES, chacha20_words
from oracles.chacha20 import block

# RFC 8439: section 2.3.2; appendix A.1, vectors 1 to 5.
VECTORS = [
    (bytes(range(32)), 1, "000000090000004a00000000", "10f1e7e4d13b5915500fdd1fa32071c4"),
    (bytes(32), 0, "000000000000000000000000", "76b8e0ada0f13d90405d6ae55386bd28"),
    (bytes(32), 1, "000000000000000000000000", "9f07e7be5551387a98ba977c732d080d"),
    (bytes(31) + b"\x01", 1, "000000000000000000000000", "3aeb5224ecf849929b9d828db1ced4dd"),
    (b"\x00\xff" + bytes(30), 2, "000000000000000000000000", "72d54dfbf12ec44b362692df94137f32"),
    (bytes(32), 0, "000000000000000000000002", "c2c64d378cd536374ae204b9ef933fcd"),
]


def _state(key: bytes, nonce: bytes) -> np.ndarray:
    return np.frombuffer(b"expand 32-byte k" + key + bytes(4) + nonce, "<u4").astype(np.uint32)


@pytest.mark.parametrize(("key", "counter", "nonce", "start"), VECTORS)
def test_vectors_of_the_rfc(key: bytes, counter: int, nonce: str, start: str) -> None:
    words = np.empty(GROUP_WORDS, np.uint64)
    chacha20_words(_state(key, bytes.fromhex(nonce)), 0, words)
    stream = words.astype("<u8").tobytes()
    assert stream[64 * counter :].hex().startswith(start)
    assert block(key, counter, bytes.fromhex(nonce)).hex().startswith(start)


@pytest.mark.parametrize("group", [0, 1, 12345, (1 << 32) // LANES - 2])
def test_every_lane_of_every_group(group: int) -> None:
    key = bytes(range(100, 132))
    nonce = bytes(range(7, 19))
    words = np.empty(2 * GROUP_WORDS, np.uint64)
    chacha20_words(_state(key, nonce), group, words)
    expected = b"".join(block(key, LANES * group + i, nonce) for i in range(2 * LANES))
    assert words.astype("<u8").tobytes() == expected
