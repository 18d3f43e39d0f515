"""Sets of slots as they travel: compressed bitmaps in base64."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable

from pyroaring import BitMap

# More slots than a placement ever had at a time; what is more is nobody's set of slots. A few bytes
# of text may stand for a billion, and whoever judges slots goes through them one by one.
MAX_SLOTS = 1 << 18
_MAX_TEXT = 4 * 1024 * 1024


def encoded(slots: Iterable[int]) -> str:
    """Return a set of slots as text; equal sets give equal text. Empty for none."""
    found = BitMap(slots)
    if not found:
        return ""
    found.run_optimize()
    return base64.b64encode(found.serialize()).decode()


def decoded(text: object) -> BitMap:
    """Return the slots that *text* stands for; none for text that is no set of slots."""
    if not isinstance(text, str) or not text or len(text) > _MAX_TEXT:
        return BitMap()
    try:
        found = BitMap.deserialize(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, OverflowError):
        return BitMap()
    return found if len(found) <= MAX_SLOTS else BitMap()
