"""Text of unknown length or content: cut to a stated one, put in one line, read as a number."""

from __future__ import annotations


def shortened(text: str, limit: int) -> str:
    """Return *text*, or its first *limit* characters and how many were left out.

    For whatever repeats what a client sent: log lines, audit events, error messages.
    """
    if len(text) <= limit:
        return text
    return f"{text[:limit]}... ({len(text) - limit} more characters)"


def one_line(text: str) -> str:
    """Return *text* in one line: spaces for control characters, and single ones.

    For what another machine says and people read.
    """
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


# As many as the largest unsigned 64-bit number has.
_MAX_DIGITS = 20


def whole_number(text: str) -> int | None:
    """Return the number that *text* writes in ASCII digits alone; None where it writes none.

    Python's own conversion takes digits of every script, fails on some that ``isdigit`` takes,
    and takes time quadratic in their number.
    """
    if not text.isascii() or not text.isdigit() or len(text) > _MAX_DIGITS:
        return None
    return int(text)
