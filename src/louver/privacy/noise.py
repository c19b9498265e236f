"""Exact discrete noise from a keyed stream, replayable after a crash.

Produces n independent draws of discrete Laplace or discrete Gaussian noise that belong to a key and a nonce (level, query, batch), the same
on every machine and at every attempt, and the cost of adding them. The proof that the draws have exactly the stated distribution is
`docs/proofs/noise.md`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from louver._arrays import Ints
from louver.errors import BudgetError, InputError
from louver.optim.kernels.sampling.chacha20 import GROUP_WORDS, LANES, chacha20_words
from louver.optim.kernels.sampling.inverse_cdf import UNDECIDED, sample_inplace
from louver.privacy.distributions import Distribution, table_of
from louver.privacy.exact import NOISE_LIMIT, draw_geometric, locate, signed

__all__ = ["KeyedNoise", "Noise", "Nonce", "OpenDPNoise", "perturb", "settle"]

KEY_BYTES = 32

MAX_DRAWS = 1 << 31
"""Maximum number of draws under one nonce: a sixteenth of its words, so that settling ties never exhausts them."""

MAX_GROUPS = (1 << 32) // LANES
"""Maximum number of groups under one nonce: the block counter of RFC 8439 has 32 bits."""

MAX_COUNT = 1 << 53
"""Largest absolute true count accepted."""

NOISY_LIMIT = 1 << 61
"""Limit at which noisy counts are cut, which is post-processing of the uncut sum (see the proof)."""


class Nonce(NamedTuple):
    """The numbers of a batch of noise, each below 2^32. They never depend on a worker or process."""

    level: int
    query: int
    batch: int


class Noise(Protocol):
    """A source of noise; `is_replayable` says whether a key and a nonce give the same draws again."""

    is_private: bool
    is_replayable: bool

    def draw(self, distribution: Distribution, n: int, nonce: Nonce) -> Ints:
        """Return n draws that belong to `nonce`."""
        ...

    def price(self, distribution: Distribution, sensitivity: Fraction) -> Fraction:
        """Return a lower bound on the privacy loss of adding this noise to a query."""
        ...


def perturb(true_counts: Ints, distribution: Distribution, noise: Noise, nonce: Nonce) -> Ints:
    """Add one draw to every true count; never wraps around.

    Notes
    -----
    **Neighbours**, **Sensitivity**: the caller's; `Noise.price` turns them into a loss.
    **Privacy**: `docs/proofs/noise.md`, sections 3 and 4.
    """
    if true_counts.size and max(int(true_counts.max()), -int(true_counts.min())) > MAX_COUNT:
        raise InputError("a count to be measured is larger than 2^53; measure smaller units.")
    draws = noise.draw(distribution, true_counts.size, nonce).reshape(true_counts.shape)
    noisy: Ints = np.clip(true_counts + draws, -NOISY_LIMIT, NOISY_LIMIT)
    return noisy


class KeyedNoise:
    """Noise from a ChaCha20 stream; the same key and nonce give the same draws.

    Parameters
    ----------
    key : bytes
        32 bytes from the operating system, one key for each debit.

    Notes
    -----
    A nonce is used once, and only in the process that made the object: a forked child has to open the debit itself. So no two batches of
    one run share noise.

    Examples
    --------
    >>> from louver.privacy.distributions import DiscreteLaplace
    >>> noise = KeyedNoise.from_seed(1)
    >>> noise.draw(DiscreteLaplace(Fraction(10)), 5, Nonce(0, 0, 0)).tolist()
    [-3, 41, 1, -4, 5]
    """

    is_replayable = True

    def __init__(self, key: bytes, *, is_private: bool = True) -> None:
        if len(key) != KEY_BYTES:
            raise InputError(f"a noise key has {KEY_BYTES} bytes; take it from a ledger's debit.")
        self.is_private = is_private
        self._key = key
        self._served: set[Nonce] = set()
        self._process = os.getpid()

    @classmethod
    def from_seed(cls, seed: int) -> KeyedNoise:
        """Noise for tests, demos and evaluation: anyone who knows the seed can subtract it."""
        return cls(hashlib.sha256(b"louver seed %d" % seed).digest(), is_private=False)

    def __repr__(self) -> str:
        return f"KeyedNoise(is_private={self.is_private})"

    def __reduce__(self) -> Any:
        raise BudgetError("a source of noise cannot be copied to another process; open the debit there.")

    def price(self, distribution: Distribution, sensitivity: Fraction) -> Fraction:
        return distribution.price(sensitivity)

    def draw(self, distribution: Distribution, n: int, nonce: Nonce) -> Ints:
        """Draw n values of `distribution` for `nonce`.

        Notes
        -----
        **Cost**: 5 to 10 ns a draw while the scale stays below about 3,000; some 30 us beyond.
        """
        if not 0 <= n <= MAX_DRAWS:
            raise InputError("a batch of noise has more than 2^31 draws; make the batches smaller.")
        state = self._claim(nonce)
        table = table_of(distribution)
        if table is None:
            words = _words(state, 0)
            return np.fromiter((distribution.draw_large(words) for _ in range(n)), np.int64, n)
        out = np.empty(n, np.int64)
        sample_inplace(state, *table, out)
        words = _words(state, -(-n // GROUP_WORDS))
        for i in np.flatnonzero(out == UNDECIDED).tolist():
            out[i] = settle(distribution, _word_at(state, i), words)
        return out

    def _claim(self, nonce: Nonce) -> NDArray[np.uint32]:
        """Mark the nonce as used and return its ChaCha20 state."""
        if os.getpid() != self._process:
            raise BudgetError("a source of noise was used in another process; open the debit there.")
        if nonce in self._served:
            raise BudgetError("noise was requested twice under one nonce; give every batch its own.")
        if not all(0 <= part < 1 << 32 for part in nonce):
            raise InputError("a nonce has a part outside 0 .. 2^32 - 1; number levels, queries and batches.")
        self._served.add(nonce)
        parts = np.array([0, *nonce], dtype="<u4").tobytes()
        return np.frombuffer(b"expand 32-byte k" + self._key + parts, dtype="<u4").astype(np.uint32)


def _words(state: NDArray[np.uint32], first_group: int) -> Iterator[int]:
    """Yield the words of a stream from a group on; each word is used for only one decision."""
    group = np.empty(GROUP_WORDS, np.uint64)
    for index in range(first_group, MAX_GROUPS):
        chacha20_words(state, index, group)
        yield from group.tolist()
    raise BudgetError("a noise stream is used up; make the batches smaller.")


def _word_at(state: NDArray[np.uint32], i: int) -> int:
    """Return word i of a stream again."""
    group = np.empty(GROUP_WORDS, np.uint64)
    chacha20_words(state, i // GROUP_WORDS, group)
    return int(group[i % GROUP_WORDS])


def settle(distribution: Distribution, word: int, words: Iterator[int]) -> int:
    """Settle exactly a draw that the kernel left undecided: a tie in 63 bits, or a tail.

    Parameters
    ----------
    distribution : Distribution
    word : int
        The word with which the draw began.
    words : iterator of int
        Fresh 64-bit words.
    """
    magnitude = locate(distribution, word >> 1, words)
    if distribution.tail is not None and magnitude == distribution.n_thresholds:
        magnitude += draw_geometric(distribution.tail, words)
    return signed(magnitude, word)


class OpenDPNoise:
    """Noise drawn by OpenDP (extra `opendp`): externally vetted, slower, and not replayable.

    Notes
    -----
    **Departs**: OpenDP's scale is a float. It is rounded up far enough that the loss its privacy map reports
    is covered by the exact price of the requested distribution; `price` still takes the larger of both.
    A debit that was interrupted before sealing is lost, since its draws cannot be made again.
    """

    is_private = True
    is_replayable = False

    def __init__(self) -> None:
        try:
            import opendp.prelude as opendp
        except ImportError:
            raise InputError(
                "OpenDP is not installed; install louver[opendp] or use louver's own noise.", option="noise"
            ) from None
        opendp.enable_features("contrib")
        self._opendp: Any = opendp

    def price(self, distribution: Distribution, sensitivity: Fraction) -> Fraction:
        """Return the larger of the exact price and the loss given by OpenDP's privacy map."""
        mapped = self._measurement(distribution).map(distribution.opendp_sensitivity(sensitivity))
        return max(distribution.price(sensitivity), Fraction(mapped))

    def draw(self, distribution: Distribution, n: int, nonce: Nonce) -> Ints:
        """Draw n values; the nonce identifies the batch but does not determine the draws."""
        draws = self._measurement(distribution)([0] * n)
        return np.clip(np.array(draws, dtype=np.int64), -NOISE_LIMIT, NOISE_LIMIT)

    def _measurement(self, distribution: Distribution) -> Any:
        domain = self._opendp.vector_domain(self._opendp.atom_domain(T="i64"))
        return distribution.by_opendp(self._opendp, domain)
