"""Text of unknown length or content: cut to a stated one, put in one line, read as a number.

And a number as text, the way other programs write it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Final

# Go writes an exponent when there are more digits than this before the point.
_POINT_DIGITS: Final = 6


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


# What a terminal obeys, shows as a line of its own or takes to turn text about, and what cannot be
# written at all: controls, separators of lines, directions of writing, surrogates.
_OBEYED: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_SPACES: Final = "\t\n\v\f\r\x85\u2028\u2029"


def inert(text: str) -> str:
    """Return *text* as it can be written to a terminal: it is shown there and obeyed nowhere.

    Lines and tabs stay. Spaces stand for other separators of lines, and ``?`` for each character
    that does anything else: an escape sequence is seen for what it is.
    """
    return _OBEYED.sub(_replacement, text)


def inert_line(text: str) -> str:
    """Return *text* in one line, inert; spaces stay as many as they are.

    For a part of something that has lines of its own: nobody adds another by what they are called.
    """
    return inert(text).replace("\n", " ").replace("\t", " ")


def inert_lines(lines: Iterable[str]) -> str:
    """Return a text of *lines*, each inert and one line."""
    return "".join(f"{inert_line(line)}\n" for line in lines)


def inert_json(text: str) -> str:
    """Return JSON *text*, inert: its strings have escapes in place of what a terminal obeys.

    It is read as the same value. Nothing outside of strings is obeyed but ends of lines.
    """
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _replacement(found: re.Match[str]) -> str:
    return " " if found[0] in _SPACES else "?"


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


def float_text(value: float) -> str:
    """Return a number as Go's ``%g`` and ``%v`` write it: ``1``, ``1e+06``, ``+Inf``.

    The digits are those of Python, which writes the exponent later (``1e+16``), keeps the point of
    whole numbers and has its own names for what is no number.
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    digits, exponent = f"{Decimal(repr(value)).normalize():e}".split("e")
    if value and not -4 <= int(exponent) < _POINT_DIGITS:
        return f"{digits}e{int(exponent):+03d}"
    return repr(value).removesuffix(".0")
