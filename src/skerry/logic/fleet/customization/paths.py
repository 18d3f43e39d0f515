"""The grammar of replacement paths, a part of JSONPath.

    path    = "$" { step }
    step    = "." ( name | integer | "*" )
            | "[" ( "*" | strings | integers | slice ) "]"
            | ".." [ name | integer | "*" ]
    strings = string { "," string }          'single' or "double" quoted, backslash escapes
    slice   = [ start ] ":" [ end ] [ ":" [ stride ] ]

Names are letters, digits and underscores; a member with any other character is written in
quotes. There are no filters and no negative numbers. ``..`` means a value and everything below
it, parents before children.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from skerry.kit.caching import short_text_cache


class PathError(ValueError):
    """A text that is not a path."""


@dataclass(frozen=True, slots=True)
class Members:
    """Members of a map by name."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Items:
    """Items of a list by index."""

    indexes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Number:
    """``.0``: an item of a list, or the member of a map that is called so."""

    index: int


@dataclass(frozen=True, slots=True)
class Every:
    """``*``: all members or items."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Items of a list by range."""

    start: int
    end: int | None
    stride: int


@dataclass(frozen=True, slots=True)
class Descent:
    """``..``: the value itself and everything below it."""


Step = Members | Items | Number | Every | Slice | Descent


@dataclass(frozen=True, slots=True)
class Path:
    """A parsed path."""

    text: str
    steps: tuple[Step, ...]

    @property
    def definite(self) -> bool:
        """Whether it can mean at most one place, so that a missing one may be made."""
        return all(map(_single, self.steps))


def _single(step: Step) -> bool:
    match step:
        case Members(names):
            return len(names) == 1
        case Items(indexes):
            return len(indexes) == 1
        case Number():
            return True
        case Every() | Slice() | Descent():
            return False


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_INTEGER = re.compile(r"[0-9]{1,9}", re.ASCII)
_STRING = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"", re.DOTALL)
_SPACE = re.compile(r"[ \t]*")
_NUMBER = r"[ \t]*(?:([0-9]{1,9})[ \t]*)?"
_SLICE = re.compile(rf"{_NUMBER}:{_NUMBER}(?::{_NUMBER})?\]", re.ASCII)


# Replacements are written once and made at every destination.
@short_text_cache(4096)
def parse_path(text: str) -> Path:
    """Read a path; ``PathError`` says what was found where."""
    if not text.startswith("$"):
        raise PathError(f"path {text!r}: want '$' at the beginning")
    parser = _Parser(text)
    steps: list[Step] = []
    while not parser.at_end:
        steps += parser.step()
    return Path(text, tuple(steps))


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 1

    @property
    def at_end(self) -> bool:
        return self._position == len(self._text)

    def step(self) -> list[Step]:
        if self._take(".."):
            after = self._plain_step()
            return [Descent(), *after]
        if self._take("."):
            found = self._plain_step()
            if not found:
                raise self._wrong("a name, a number or '*' after '.'")
            return found
        if self._take("["):
            return [self._bracket()]
        raise self._wrong("'.', '..' or '['")

    def _plain_step(self) -> list[Step]:
        if self._take("*"):
            return [Every()]
        name = self._match(_NAME)
        if name is not None:
            return [Members((name[0],))]
        number = self._match(_INTEGER)
        return [] if number is None else [Number(int(number[0]))]

    def _bracket(self) -> Step:
        found = self._match(_SLICE)
        if found is not None:
            return self._slice(found)
        self._match(_SPACE)
        if self._take("*"):
            self._close()
            return Every()
        ahead = self._text[self._position : self._position + 1]
        if ahead in ("'", '"'):
            return Members(tuple(_unescaped(found) for found in self._series(_STRING, "a string")))
        return Items(tuple(int(found[0]) for found in self._series(_INTEGER, "a number")))

    def _slice(self, found: re.Match[str]) -> Slice:
        start, end, stride = (int(part) if part else None for part in found.groups())
        if stride == 0:
            raise PathError(f"path {self._text!r}: the stride of a slice cannot be 0")
        return Slice(start or 0, end, 1 if stride is None else stride)

    def _series(self, kind: re.Pattern[str], what: str) -> list[re.Match[str]]:
        """Read ``a, b, …`` and the closing bracket."""
        series: list[re.Match[str]] = []
        while True:
            self._match(_SPACE)
            found = self._match(kind)
            if found is None:
                raise self._wrong(what)
            series.append(found)
            self._match(_SPACE)
            if not self._take(","):
                self._close()
                return series

    def _close(self) -> None:
        self._match(_SPACE)
        if not self._take("]"):
            raise self._wrong("']'")

    def _take(self, word: str) -> bool:
        taken = self._text.startswith(word, self._position)
        if taken:
            self._position += len(word)
        return taken

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self._text, self._position)
        if found is not None:
            self._position = found.end()
        return found

    def _wrong(self, wanted: str) -> PathError:
        rest = self._text[self._position :]
        seen = f"found {rest[:20]!r}" if rest else "the text ends"
        return PathError(f"path {self._text!r}: {seen} at {self._position}, want {wanted}")


def _unescaped(found: re.Match[str]) -> str:
    text = found[1] if found[1] is not None else found[2]
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)
