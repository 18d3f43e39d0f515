"""Regular expressions in Go's syntax, run by the engine Go's was modelled on.

Schemas and CEL rules carry RE2 patterns. RE2 itself runs them: it accepts what Go accepts, refuses
what Go refuses (look-around, back-references), and takes time linear in the text, so that no
pattern of a custom resource can keep a server busy. Only the words of its refusals differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

import re2

from skerry.kit.caching import WeightedCache


class PatternError(ValueError):
    """The pattern is not a regular expression Go would accept."""


class Match(Protocol):
    """Where a pattern was found."""

    def group(self, number: int = 0, /) -> str: ...


class Pattern(Protocol):
    """A pattern ready for use; ``programsize`` is how many instructions it became."""

    @property
    def programsize(self) -> int: ...

    def search(self, text: str, /) -> Match | None: ...

    def finditer(self, text: str, /) -> Iterator[Match]: ...


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


def _quiet() -> re2.Options:
    options = re2.Options()
    # It would write to standard error what the caller is told anyway.
    options.log_errors = False
    # Ten characters can ask for 120,000 instructions, which take 200 ms to make. Within this many
    # bytes there are 10,000, made in 5 ms; patterns of definitions in use have some hundreds.
    options.max_mem = 256 * 1024
    return options


_OPTIONS: Final = _quiet()


# Those of a definition that is served are kept by its rules; this lets equal ones share.
_KEPT: Final = WeightedCache[str, Pattern](16 << 20)
_INSTRUCTION_BYTES: Final = 64


def compiled(pattern: str) -> Pattern:
    """Return the pattern ready to ``search`` with; raise ``PatternError`` where Go would."""
    known = _KEPT.get(pattern)
    if known is not None:
        return known
    try:
        found: Pattern = re2.compile(pattern, _OPTIONS)
    except re2.error as error:
        raise PatternError(f"error parsing regexp: {_in_go(error)}") from error
    _KEPT.put(pattern, found, 4 * len(pattern) + _INSTRUCTION_BYTES * found.programsize)
    return found


def _in_go(error: Exception) -> str:
    said = error.args[0]
    text = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
    what, _, where = text.partition(": ")
    return f"{_WORDS.get(what, what)}: `{where}`"
