"""Regular expressions in Go's syntax, run by the engine Go's was modelled on.

Schemas and CEL rules carry RE2 patterns. RE2 itself runs them: it accepts what Go accepts, refuses
what Go refuses (look-around, back-references), and takes time linear in the text. Linear in the
pattern's program, too: ``.*a.{900}b`` is short, and each byte of a text costs it ten microseconds.
So what a search may cost is known before (``cost``), and whoever searches spends it.

Compiled patterns take up to a hundred kilobytes each once they were used on difficult texts. They
are kept here and nowhere else, as many as were used lately.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Protocol

import re2

from skerry.kit.caching import WeightedCache
from skerry.logic.machinery.work import spend


class PatternError(ValueError):
    """The pattern is not a regular expression Go would accept."""


class Match(Protocol):
    """Where a pattern was found."""

    def group(self, number: int = 0, /) -> str: ...


# What RE2 may take for a pattern: enough for thousands of steps, and for those that need more (a
# few dozen letters of any script) enough for a hundred thousand.
_SMALL_BYTES: Final = 128 * 1024
_LARGE_BYTES: Final = 2 * 1024 * 1024
_MAX_LENGTH: Final = 8192
# Units for any pattern and for each of its characters; for trying a large program, which takes
# 30 ms and is never done on the loop; and for a byte of text at each step of the program, in the
# worst case.
_PATTERN_UNITS: Final = 600
_CHARACTER_UNITS: Final = 10
_LARGE_UNITS: Final = 300_000
_STEP_UNITS: Final = 0.016


class Pattern:
    """A pattern ready for use. Groups are not captured: only whether and where matters."""

    __slots__ = ("_compiled", "size")

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled
        # Steps of the program.
        self.size: int = compiled.programsize

    def cost(self, length: int) -> float:
        """Return the most units that searching a text of *length* may take."""
        return _STEP_UNITS * self.size * length

    def search(self, text: str) -> Match | None:
        found: Match | None = self._compiled.search(text)
        return found

    def finditer(self, text: str) -> Iterator[Match]:
        found: Iterator[Match] = self._compiled.finditer(text)
        return found

    def found_in(self, text: str) -> bool:
        """Tell whether the pattern is anywhere in *text*, spending what that may cost."""
        spend(self.cost(len(text)))
        return self.search(text) is not None


# How RE2 says it, and how Go does.
_WORDS: Final = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "trailing \\": "trailing backslash at end of expression",
    "pattern too large - compile failed": "expression too large",
}


def _options(memory: int) -> re2.Options:
    options = re2.Options()
    # It would write to standard error what the caller gets anyway.
    options.log_errors = False
    options.never_capture = True
    options.max_mem = memory
    return options


_SMALL: Final = _options(_SMALL_BYTES)
_LARGE: Final = _options(_LARGE_BYTES)
_TOO_LARGE: Final = "expression too large"


# Weighed by what they may come to take.
_KEPT: Final = WeightedCache[str, Pattern](32 << 20)


def compiled(pattern: str) -> Pattern:
    """Return the pattern ready to search with; raise ``PatternError`` where Go would, or where
    the program is too large."""
    known = _KEPT.get(pattern)
    if known is not None:
        return known
    if len(pattern) > _MAX_LENGTH:
        raise PatternError(f"error parsing regexp: {_TOO_LARGE}")
    spend(_PATTERN_UNITS + _CHARACTER_UNITS * len(pattern))
    memory, made = _SMALL_BYTES, _tried(pattern, _SMALL)
    if made is None:
        spend(_LARGE_UNITS)
        memory, made = _LARGE_BYTES, _tried(pattern, _LARGE)
    if made is None:
        raise PatternError(f"error parsing regexp: {_TOO_LARGE}")
    _KEPT.put(pattern, made, memory + 4 * len(pattern))
    return made


def _tried(pattern: str, options: re2.Options) -> Pattern | None:
    """Return the pattern; None when its program needs more than *options* allow."""
    try:
        return Pattern(re2.compile(pattern, options))
    except re2.error as error:
        message = _in_go(error)
        if message.startswith(_TOO_LARGE):
            return None
        raise PatternError(f"error parsing regexp: {message}") from error


def _in_go(error: Exception) -> str:
    said = error.args[0]
    text = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
    what, _, where = text.partition(": ")
    return f"{_WORDS.get(what, what)}: `{where}`"
