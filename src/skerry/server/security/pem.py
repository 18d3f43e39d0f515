"""PEM files with several blocks in them."""

from __future__ import annotations

import re

_BLOCK = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----\r?\n[^-]*-----END \1-----\r?\n?")


def blocks(pem: bytes, label: str) -> list[bytes]:
    """Return the blocks of *pem* whose label ends with *label*, in order; the rest is skipped."""
    return [found[0] for found in _BLOCK.finditer(pem) if found[1].decode().endswith(label)]
