"""Text of unknown length, cut to a stated one."""

from __future__ import annotations


def shortened(text: str, limit: int) -> str:
    """Return *text*, or its first *limit* characters and how many were left out.

    For whatever repeats what a client sent: log lines, audit events, error messages.
    """
    if len(text) <= limit:
        return text
    return f"{text[:limit]}... ({len(text) - limit} more characters)"
