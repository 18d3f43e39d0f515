"""URLs that clients write into objects."""

from __future__ import annotations

from typing import Final
from urllib.parse import SplitResult, urlsplit

# Longer than what browsers and proxies pass on. The standard library keeps the latest URLs it
# was asked about, however long they are.
MAX_LENGTH: Final = 8192


def split_url(text: str) -> SplitResult:
    """Return the parts of *text*; raises ValueError for what is no URL or is too long."""
    if len(text) > MAX_LENGTH:
        raise ValueError(f"a URL of {len(text)} characters: want at most {MAX_LENGTH}")
    return urlsplit(text)
