"""Words of memory that a process shares with those it forks.

There is no lock: an aligned word is read and written in one step, and each should have one writer.
"""

from __future__ import annotations

import mmap

_WORD = 8


def shared_words(count: int) -> memoryview:
    """Return *count* unsigned words of 64 bits, all 0; to be made before the fork."""
    return memoryview(mmap.mmap(-1, count * _WORD)).cast("Q")
