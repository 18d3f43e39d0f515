"""Randomness and identifiers as dependencies.

A seeded source makes a whole run, object UIDs included, repeat exactly.
"""

from __future__ import annotations

import builtins
import os
import random
from typing import Protocol

# Kubernetes' own alphabet for generated names: no vowels, no easily confused characters.
_NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_POOL_BYTES = 4096


def uuid_text(raw: builtins.bytes) -> str:
    """Return sixteen bytes as the text of a UUID.

    Spelled out, since ``uuid.UUID`` takes longer than all else a new object needs of its own.
    """
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _random_uuid(drawn: builtins.bytes) -> str:
    """Return sixteen random bytes as a UUID of version 4."""
    text = drawn.hex()
    variant = "89ab"[drawn[8] >> 6]
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{variant}{text[17:20]}-{text[20:]}"


class IdSource(Protocol):
    """Where unique and random values come from."""

    def uid(self) -> str:
        """Return a fresh UUID in its canonical form."""

    def suffix(self, length: int = 5) -> str:
        """Return random characters fit for the end of a generated name."""

    def bytes(self, count: int) -> bytes:
        """Return random bytes; of a ``SystemIds`` fit for secrets."""

    def fraction(self) -> float:
        """Return a number in [0, 1), for jitter."""


class SystemIds:
    """Identifiers from the operating system's entropy.

    Entropy for names and UIDs is fetched a page at a time: a workspace needs dozens of them, and
    each system call costs more than all else there is to making one. Secrets get their own.
    """

    def __init__(self) -> None:
        self._random = random.SystemRandom()
        self._pool = b""
        self._used = 0

    def uid(self) -> str:
        return _random_uuid(self._pooled(16))

    def suffix(self, length: int = 5) -> str:
        # Sixteen bits for one of 27 characters: the bias is below a thousandth.
        drawn = self._pooled(2 * length)
        return "".join(
            _NAME_ALPHABET[(drawn[i] << 8 | drawn[i + 1]) % len(_NAME_ALPHABET)]
            for i in range(0, 2 * length, 2)
        )

    def _pooled(self, count: int) -> builtins.bytes:
        if self._used + count > len(self._pool):
            self._pool, self._used = os.urandom(max(_POOL_BYTES, count)), 0
        self._used += count
        return self._pool[self._used - count : self._used]

    def bytes(self, count: int) -> bytes:
        return self._random.randbytes(count)

    def fraction(self) -> float:
        return self._random.random()


class SeededIds:
    """Identifiers that repeat for the same seed; for tests and simulation, never for secrets."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def uid(self) -> str:
        return _random_uuid(self._random.randbytes(16))

    def suffix(self, length: int = 5) -> str:
        return "".join(self._random.choices(_NAME_ALPHABET, k=length))

    def bytes(self, count: int) -> bytes:
        return self._random.randbytes(count)

    def fraction(self) -> float:
        return self._random.random()
