"""ChaCha20 as RFC 8439 writes it, on Python integers."""

from __future__ import annotations

import struct

MASK = 0xFFFFFFFF


def _rotated(x: int, n: int) -> int:
    return ((x << n) | (x >> (32 - n))) & MASK


def _quarter_round(s: list[int], a: int, b: int, c: int, d: int) -> None:
    for first, second, target, shift in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        s[first] = (s[first] + s[second]) & MASK
        s[target] = _rotated(s[target] ^ s[first], shift)


def block(key: bytes, counter: int, nonce: bytes) -> bytes:
    """Section 2.3.1: one block of 64 bytes."""
    start = [*struct.unpack("<4I", b"expand 32-byte k"), *struct.unpack("<8I", key), counter]
    start += struct.unpack("<3I", nonce)
    s = list(start)
    for _ in range(10):
        for column in range(4):
            _quarter_round(s, column, column + 4, column + 8, column + 12)
        for diagonal in range(4):
            _quarter_round(
                s, diagonal, 4 + (diagonal + 1) % 4, 8 + (diagonal + 2) % 4, 12 + (diagonal + 3) % 4
            )
    return struct.pack("<16I", *((x + y) & MASK for x, y in zip(s, start, strict=True)))
