"""Privacy randomness: an AES-256-CTR stream keyed from the operating system.

NIST SP 800-38A counter mode; the stream is re-keyed after a fork and long before the counter
could repeat, so two processes never share noise.
"""

from __future__ import annotations

import hashlib
import os
import threading

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from stillroom.errors import NotSanitised

Words = npt.NDArray[np.uint64]

_BYTES_PER_KEY = 1 << 36


class Entropy:
    """Uniform bits from the operating system's randomness, stretched by AES-CTR."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rekey()

    def _key_material(self) -> bytes:
        return os.urandom(48)

    def _rekey(self) -> None:
        material = self._key_material()
        cipher = Cipher(algorithms.AES(material[:32]), modes.CTR(material[32:]))
        self._stream = cipher.encryptor()
        self._left = _BYTES_PER_KEY
        self._pid = os.getpid()

    def octets(self, count: int) -> bytes:
        """`count` uniform bytes."""
        with self._lock:
            # A forked child would otherwise repeat its parent's noise, which could be subtracted.
            if self._pid != os.getpid() or self._left < count:
                self._rekey()
            self._left -= count
            return self._stream.update(bytes(count))

    def words(self, count: int) -> Words:
        """`count` uniform 64-bit words."""
        return np.frombuffer(self.octets(8 * count), dtype="<u8").astype(np.uint64, copy=False)

    def signs(self, count: int) -> npt.NDArray[np.int64]:
        """`count` uniform signs, -1 or +1."""
        packed = np.frombuffer(self.octets((count + 7) // 8), dtype=np.uint8)
        return 1 - 2 * np.unpackbits(packed, count=count).astype(np.int64)

    def integer(self, bits: int) -> int:
        """One uniform integer of `bits` bits."""
        octets = (bits + 7) // 8
        return int.from_bytes(self.octets(octets), "little") >> (8 * octets - bits)

    def __reduce__(self) -> tuple[object, ...]:
        raise NotSanitised(
            "a noise stream cannot be copied or pickled",
            why="whoever holds a copy can subtract the noise",
            remedy="make a new Gate in the other process",
        )


def source_of(entropy: Entropy) -> str:
    """Where noise comes from, for the ledger: "os" for `Entropy` itself, "test" for any other (K6).

    A subclass may draw its bits from anywhere, so it cannot speak for itself.

    >>> source_of(Entropy()), source_of(SeededEntropy(1))
    ('os', 'test')
    """
    return "os" if type(entropy) is Entropy else "test"


class SeededEntropy(Entropy):
    """A repeatable stream for tests; every block drawn from it is priced as infinity (K6)."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        super().__init__()

    def _key_material(self) -> bytes:
        return hashlib.shake_256(f"stillroom test stream {self._seed}".encode()).digest(48)
