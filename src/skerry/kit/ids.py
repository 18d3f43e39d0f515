"""Randomness and identifiers as dependencies.

A seeded source makes a whole run, object UIDs included, repeat exactly.
"""

from __future__ import annotations

import random
import uuid
from typing import Protocol

# Kubernetes' own alphabet for generated names: no vowels, no easily confused characters.
_NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


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
    """Identifiers from the operating system's entropy."""

    def __init__(self) -> None:
        self._random = random.SystemRandom()

    def uid(self) -> str:
        return str(uuid.uuid4())

    def suffix(self, length: int = 5) -> str:
        return "".join(self._random.choices(_NAME_ALPHABET, k=length))

    def bytes(self, count: int) -> bytes:
        return self._random.randbytes(count)

    def fraction(self) -> float:
        return self._random.random()


class SeededIds:
    """Identifiers that repeat for the same seed; for tests and simulation, never for secrets."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def uid(self) -> str:
        return str(uuid.UUID(bytes=self._random.randbytes(16), version=4))

    def suffix(self, length: int = 5) -> str:
        return "".join(self._random.choices(_NAME_ALPHABET, k=length))

    def bytes(self, count: int) -> bytes:
        return self._random.randbytes(count)

    def fraction(self) -> float:
        return self._random.random()
