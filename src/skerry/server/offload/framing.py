"""Messages on a stream of bytes: four bytes of length, then the message."""

from __future__ import annotations

from typing import Final

HEAD: Final = 4
# A body, a stored object and a definition at their largest, with room to spare.
MAX_FRAME: Final = 64 << 20


class FrameError(ValueError):
    """The length of a message that nobody here sends."""


def framed(message: bytes) -> bytes:
    """Return *message* with its length before it."""
    return len(message).to_bytes(HEAD, "big") + message


def length(head: bytes) -> int:
    """Return how many bytes follow *head*."""
    count = int.from_bytes(head, "big")
    if count > MAX_FRAME:
        raise FrameError(f"a message of {count} bytes: want at most {MAX_FRAME}")
    return count
