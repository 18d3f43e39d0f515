r"""JSONPath as text: one parser for the dialects that are written in it.

    path    = root { step }                      "$"; "@" inside a filter
    step    = "." [ name | integer | "*" ]
            | ".." [ name | integer | "*" ]
            | "[" ( "*" | strings | places | filter ) "]"
    strings = string { "," string }              'single' or "double" quoted, backslash escapes
    places  = place { "," place }                place = integer | slice
    slice   = [ start ] ":" [ end ] [ ":" [ stride ] ]
    filter  = "?(" operand [ operator operand ] ")"
    operand = path from "@" | string | JSON

A path means a tuple of steps, and nothing here looks at a value: printer columns read values
through them (``crd/jsonpath.py``), Customizers replace values at them
(``fleet/customization/paths.py``). What the two let people write differs, and is a ``Dialect``:
kubectl's is generous, a replacement is to be a path that somebody meant. ``..`` is a step of its
own, a value and everything below it, parents before children.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, TypeAlias


class JSONPathError(ValueError):
    """A text that is not a path."""


@dataclass(frozen=True, slots=True)
class Members:
    """Members of a map by name."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Items:
    """Items of a list by index; a negative one counts from the end."""

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


@dataclass(frozen=True, slots=True)
class Union:
    """``[0,2:4]``: what each part finds, one after the other."""

    parts: tuple[Items | Slice, ...]


@dataclass(frozen=True, slots=True)
class Literal:
    """A value written in a filter."""

    value: Any


@dataclass(frozen=True, slots=True)
class Filter:
    """``[?(@.a==1)]``: the items of a list that compare so; without an operator, that have it."""

    left: Operand
    operator: str = ""
    right: Operand = Literal(None)


Step: TypeAlias = "Members | Items | Number | Every | Slice | Descent | Union | Filter"
# A path from the item, or a value.
Operand: TypeAlias = "tuple[Step, ...] | Literal"


@dataclass(frozen=True, slots=True)
class Dialect:
    """What may be written."""

    name: re.Pattern[str]
    """A name after a dot; ``.0`` is a ``Number`` where this does not match digits."""

    number: re.Pattern[str]
    """An integer in brackets."""

    lone_dot: bool = False
    """Whether ``.`` by itself is the value it stands behind."""

    filters: bool = False
    """Whether brackets may hold a filter, or slices among other places."""


KUBECTL = Dialect(
    re.compile(r"(?:\\.|[^.\[\]\\(){}\s])+"),
    re.compile(r"-?[0-9]+"),
    lone_dot=True,
    filters=True,
)
"""What client-go understands."""

_INTEGER = re.compile(r"[0-9]{1,9}")
_STRING = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"", re.DOTALL)
_SPACE = re.compile(r"\s*")
_OPERATOR = re.compile(r"\s*(==|!=|<=|>=|<|>)\s*")
_QUOTED_OR_BRACKET = re.compile(rf"{_STRING.pattern}|[\[\]]", re.DOTALL)
_QUOTED_OR_OPERATOR = re.compile(rf"{_STRING.pattern}|{_OPERATOR.pattern}", re.DOTALL)


def parsed(text: str, dialect: Dialect) -> tuple[Step, ...]:
    """Return the steps of *text*, whose first character is the root; says what is wrong where."""
    parser = _Parser(text, dialect)
    steps: list[Step] = []
    while not parser.at_end:
        steps += parser.step()
    return tuple(steps)


class _Parser:
    def __init__(self, text: str, dialect: Dialect) -> None:
        self._text = text
        self._dialect = dialect
        self._position = 1

    @property
    def at_end(self) -> bool:
        return self._position >= len(self._text)

    def step(self) -> list[Step]:
        if self._take(".."):
            return [Descent(), *self._plain_step()]
        if self._take("."):
            found = self._plain_step()
            if not found and not (self._dialect.lone_dot and self._ahead() in ("", "[")):
                raise self._wrong("a name, a number or '*' after '.'")
            return found
        if self._take("["):
            return [self._bracket()]
        raise self._wrong("'.', '..' or '['")

    def _plain_step(self) -> list[Step]:
        name = self._match(self._dialect.name)
        if name is not None and name[0] != "*":
            return [Members((_unescaped(name[0]),))]
        if name is not None or self._take("*"):
            return [Every()]
        number = self._match(_INTEGER)
        return [] if number is None else [Number(int(number[0]))]

    def _bracket(self) -> Step:
        self._match(_SPACE)
        if self._take("*"):
            self._close()
            return Every()
        ahead = self._ahead()
        if ahead == "?" and self._dialect.filters:
            return self._filter()
        return self._strings() if ahead in ("'", '"') else self._places()

    def _strings(self) -> Members:
        names = []
        while True:
            found = self._match(_STRING)
            if found is None:
                raise self._wrong("a string")
            names.append(_string(found))
            if not self._more():
                return Members(tuple(names))

    def _places(self) -> Step:
        """Read items and slices; by themselves slices may stand in every dialect."""
        parts: list[Items | Slice] = [self._place(slices=True)]
        mixed = self._dialect.filters
        while isinstance(parts[0], Items) or mixed:
            if not self._more():
                break
            parts.append(self._place(slices=mixed))
        else:
            self._close()
        if len(parts) == 1:
            return parts[0]
        indexes = [part.indexes[0] for part in parts if isinstance(part, Items)]
        return Items(tuple(indexes)) if len(indexes) == len(parts) else Union(tuple(parts))

    def _place(self, *, slices: bool) -> Items | Slice:
        start = self._match(self._dialect.number)
        if slices:
            before = self._position
            self._match(_SPACE)
            if self._take(":"):
                return self._slice(start)
            self._position = before
        if start is None:
            raise self._wrong("a number")
        return Items((int(start[0]),))

    def _slice(self, start: re.Match[str] | None) -> Slice:
        end = self._bound()
        stride = self._bound() if self._take(":") else None
        if stride is not None and stride <= 0:
            raise JSONPathError(f"path {self._text!r}: the stride of a slice cannot be {stride}")
        return Slice(0 if start is None else int(start[0]), end, stride or 1)

    def _bound(self) -> int | None:
        """Read a number, or none, and the space around it."""
        self._match(_SPACE)
        found = self._match(self._dialect.number)
        self._match(_SPACE)
        return None if found is None else int(found[0])

    def _filter(self) -> Filter:
        """Read to the closing bracket, which may not be the next one: filters stand in filters."""
        start, depth = self._position, 1
        for found in _QUOTED_OR_BRACKET.finditer(self._text, start):
            depth += (found[0] == "[") - (found[0] == "]")
            if depth == 0:
                self._position = found.end()
                return self._comparison(self._text[start + 1 : found.start()].strip())
        self._position = len(self._text)
        raise self._wrong("']'")

    def _comparison(self, text: str) -> Filter:
        if not (text.startswith("(") and text.endswith(")")):
            raise JSONPathError(f"path {self._text!r}: filter {text!r}: want it in parentheses")
        inside = text[1:-1].strip()
        for found in _QUOTED_OR_OPERATOR.finditer(inside):
            if (operator := found[3]) is not None:
                left, right = inside[: found.start()], inside[found.end() :]
                return Filter(self._operand(left), operator, self._operand(right))
        return Filter(self._operand(inside))

    def _operand(self, text: str) -> Operand:
        part = text.strip()
        if part.startswith("@"):
            return parsed(part, self._dialect)
        if (string := _STRING.fullmatch(part)) is not None:
            return Literal(_string(string))
        try:
            return Literal(json.loads(part))
        except (ValueError, RecursionError) as error:
            wanted = "'@', a string or JSON"
            raise JSONPathError(f"path {self._text!r}: operand {part!r}: want {wanted}") from error

    def _more(self) -> bool:
        """Read a comma, after which there is more, or the closing bracket."""
        self._match(_SPACE)
        if not self._take(","):
            self._close()
            return False
        self._match(_SPACE)
        return True

    def _close(self) -> None:
        self._match(_SPACE)
        if not self._take("]"):
            raise self._wrong("']'")

    def _ahead(self) -> str:
        return self._text[self._position : self._position + 1]

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

    def _wrong(self, wanted: str) -> JSONPathError:
        rest = self._text[self._position :]
        seen = f"found {rest[:20]!r}" if rest else "the text ends"
        return JSONPathError(f"path {self._text!r}: {seen} at {self._position}, want {wanted}")


def _string(found: re.Match[str]) -> str:
    return _unescaped(found[1] if found[1] is not None else found[2])


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)
