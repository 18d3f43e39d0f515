r"""The JSONPath that printer columns and selectable fields are written in.

A path is parsed once into steps, each a function from the values found so far to the next ones.
``.a.b``, ``['a']``, ``.a\.b`` (an escaped dot), ``[0]``, ``[-1]``, ``[1:3]``, ``[0,2]``, ``[*]``,
``..name``, ``['a','b']`` and filters such as ``[?(@.type=="Ready")].status`` are understood, as
client-go understands them. A step that does not fit what it meets yields nothing: a missing
field must never fail a request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeAlias

from skerry.kit.caching import short_text_cache

Step: TypeAlias = "Callable[[list[Any], _Budget], Iterator[Any]]"
Operand: TypeAlias = "Callable[[Any, _Budget], list[Any]]"
Find: TypeAlias = Callable[[Any], list[Any]]

_NAME = re.compile(r"(?:\\.|[^.\[\]\\(){}\s])+")
_SLICE = re.compile(r"(-?\d*)(?::(-?\d*))?(?::(\d+))?")
_OPERATOR = re.compile(r"\s*(==|!=|<=|>=|<|>)\s*")
_QUOTED = re.compile(r"""\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\s*(?:,|$)""")


class JSONPathError(ValueError):
    """The text is no JSONPath."""


# Longer ones are nobody's columns. Filters may stand in filters, and each is read by itself.
MAX_LENGTH = 1024
MAX_FILTERS = 10
# A column that finds more in one object is left empty; a page has room for a few dozen characters.
MAX_VISITED = 3000


@short_text_cache(4096)
def compiled(path: str) -> Find:
    """Return what finds the values at *path* (``.spec.replicas``, braces optional)."""
    if len(path) > MAX_LENGTH or path.count("?") > MAX_FILTERS:
        raise JSONPathError(
            f"a path of {len(path)} characters: want {MAX_LENGTH} at most and {MAX_FILTERS} filters"
        )
    text = path.strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1]
    steps = _Parser(text).steps()

    def find(value: Any) -> list[Any]:
        try:
            return _walked(steps, value, _Budget())
        except _Spent:
            return []

    return find


def _walked(steps: list[Step], value: Any, budget: _Budget) -> list[Any]:
    found = [value]
    for step in steps:
        found = list(step(found, budget))
    return found


class _Spent(Exception):
    """A path has looked at more values than it may."""


class _Budget:
    """How many values a path may still look at in one object.

    Descents and unions of slices can find the same values again and again; each further one
    multiplies them.
    """

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MAX_VISITED

    def spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise _Spent

    def limited(self, values: Iterable[Any]) -> Iterator[Any]:
        """Yield *values*, each of which counts."""
        for value in values:
            self.spend()
            yield value


class _Parser:
    """One pass over a path."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 1 if text[:1] in ("$", "@") else 0

    def steps(self) -> list[Step]:
        found: list[Step] = []
        while self._at < len(self._text):
            found.append(self._step())
        return found

    def _step(self) -> Step:
        if self._text.startswith("..", self._at):
            self._at += 2
            bracket = self._text.startswith("[", self._at)
            return _descend(self._bracket() if bracket else self._name())
        char = self._text[self._at]
        if char == ".":
            self._at += 1
            if self._at >= len(self._text) or self._text[self._at] == "[":
                # A lone dot is the value itself.
                return lambda values, _: iter(values)
            return self._name()
        if char == "[":
            return self._bracket()
        if self._at == 0:
            return self._name()
        raise JSONPathError(f"unrecognized character in action: {char!r} in {self._text!r}")

    def _name(self) -> Step:
        found = _NAME.match(self._text, self._at)
        if found is None:
            raise JSONPathError(f"want a field name at {self._text[self._at :]!r}")
        self._at = found.end()
        return _every if found.group() == "*" else _fields([_unescaped(found.group())])

    def _bracket(self) -> Step:
        end = self._closing(self._at)
        inside = self._text[self._at + 1 : end].strip()
        self._at = end + 1
        if inside == "*":
            return _every
        if inside.startswith("?"):
            return _filter(inside[1:].strip())
        if inside[:1] in ("'", '"'):
            return _fields(_quoted_names(inside))
        return _union([_slice(part.strip()) for part in inside.split(",")])

    def _closing(self, start: int) -> int:
        """Return where the bracket opened at *start* closes."""
        depth = 0
        for at, char in _outside_quotes(self._text, start):
            depth += (char == "[") - (char == "]")
            if depth == 0:
                return at
        raise JSONPathError(f"unterminated array in {self._text!r}")


def _outside_quotes(text: str, start: int = 0) -> Iterable[tuple[int, str]]:
    """Yield the characters of *text* that do not stand within quotes, with their places."""
    quote, at = "", start
    while at < len(text):
        char = text[at]
        if quote:
            at += char == "\\"
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        else:
            yield at, char
        at += 1


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _quoted_names(inside: str) -> list[str]:
    names, at = [], 0
    while at < len(inside):
        found = _QUOTED.match(inside, at)
        if found is None:
            raise JSONPathError(f"invalid array index {inside}")
        single, double = found.groups()
        names.append(_unescaped(single if single is not None else double))
        at = found.end()
    return names


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _every(values: list[Any], budget: _Budget) -> Iterator[Any]:
    return (child for value in values for child in budget.limited(_children(value)))


def _fields(names: list[str]) -> Step:
    return lambda values, budget: (
        value[name]
        for value in values
        if isinstance(value, dict)
        for name in budget.limited(names)
        if name in value
    )


def _union(steps: list[Step]) -> Step:
    if len(steps) == 1:
        return steps[0]
    return lambda values, budget: (
        found for value in values for step in steps for found in step([value], budget)
    )


def _slice(text: str) -> Step:
    found = _SLICE.fullmatch(text)
    if found is None or text in ("", "-"):
        raise JSONPathError(f"invalid array index {text}")
    first, last, stride = found.groups()
    if last is None:
        index = int(first)
        span = slice(index, index + 1 or None)
    else:
        span = slice(_bound(first), _bound(last), _bound(stride) or None)
    return lambda values, budget: (
        item
        for value in values
        if isinstance(value, list)
        for item in (value[at] for at in budget.limited(range(*span.indices(len(value)))))
    )


def _bound(text: str | None) -> int | None:
    return int(text) if text and text != "-" else None


def _descend(step: Step) -> Step:
    """Apply *step* to every value and to everything inside it."""

    def find(values: list[Any], budget: _Budget) -> Iterator[Any]:
        pending = list(reversed(values))
        while pending:
            budget.spend()
            value = pending.pop()
            yield from step([value], budget)
            pending.extend(reversed(list(islice(_children(value), budget.left + 1))))

    return find


def _filter(text: str) -> Step:
    if not (text.startswith("(") and text.endswith(")")):
        raise JSONPathError(f"unclosed filter {text!r}")
    inside = text[1:-1].strip()
    operator = _top_operator(inside)
    if operator is None:
        exists = _operand(inside)
        return _kept(lambda item, budget: bool(exists(item, budget)))
    left, right = _operand(inside[: operator.start()]), _operand(inside[operator.end() :])
    return _kept(_comparison(operator.group(1), left, right))


def _kept(test: Callable[[Any, _Budget], bool]) -> Step:
    return lambda values, budget: (
        item
        for value in values
        if isinstance(value, list)
        for item in budget.limited(value)
        if test(item, budget)
    )


def _top_operator(text: str) -> re.Match[str] | None:
    """Return the comparison in *text* that stands outside quotes."""
    for at, _ in _outside_quotes(text):
        found = _OPERATOR.match(text, at)
        if found is not None:
            return found
    return None


def _operand(text: str) -> Operand:
    """Return what computes one side of a filter: a path from ``@`` or a literal."""
    part = text.strip()
    if part.startswith("@"):
        steps = _Parser(part).steps()
        return lambda item, budget: _walked(steps, item, budget)
    if part[:1] in ("'", '"') and len(part) > 1 and part[-1] == part[0]:
        literal: Any = _unescaped(part[1:-1])
    else:
        try:
            literal = json.loads(part)
        except (ValueError, RecursionError) as error:
            raise JSONPathError(f"unrecognized filter operand {part!r}") from error
    return lambda *_: [literal]


_ORDERINGS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda left, right: bool(left == right),
    "!=": lambda left, right: bool(left != right),
    "<": lambda left, right: bool(left < right),
    "<=": lambda left, right: bool(left <= right),
    ">": lambda left, right: bool(left > right),
    ">=": lambda left, right: bool(left >= right),
}


def _comparison(operator: str, left: Operand, right: Operand) -> Callable[[Any, _Budget], bool]:
    compare = _ORDERINGS[operator]

    def test(item: Any, budget: _Budget) -> bool:
        one, other = left(item, budget), right(item, budget)
        if not one or not other:
            return False
        try:
            return compare(one[0], other[0])
        except TypeError:
            # Values of different types have no order.
            return False

    return test
