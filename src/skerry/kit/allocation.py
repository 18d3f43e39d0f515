"""Where large pieces of memory come from, in processes with thousands of connections.

The buffer that TLS reads into has 256 KB, of which a connection that is mostly silent fills a few.
As a mapping of its own only the pages that were filled are there. But glibc learns: once a piece
of that size was given back, the next ones come from the heap, where they cover what others have
used, all of it resident, and stay when connections end. So it is made not to learn.
"""

from __future__ import annotations

import ctypes
from typing import Final

# The size from which on a piece of memory is a mapping of its own: that of the buffer.
LARGE_BYTES: Final = 256 << 10
_M_MMAP_THRESHOLD: Final = -3


def keep_large_apart() -> None:
    """Call before connections are made; does nothing where another library allocates."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)
