r"""JSONPath as Kubernetes speaks it, as far as printer columns use it.

``.spec.replicas``, ``.metadata.annotations['a.b/c']`` or ``.a\.b``, ``[0]``, ``[-1]``, ``[0:2]``,
``[*]``, ``..name``, unions ``['a','b']`` and filters ``[?(@.type=="Ready")]``. A path is parsed
once into steps, each a function from the values found so far to the next ones; a value a step
does not fit (a field of a list, an index beyond the end) simply yields nothing, because a printer
column must never fail a request.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

Step = Callable[[list[Any]], list[Any]]

_FIELD = re.compile(r"(?:[^.\[\\]|\\.)+")
_QUOTED = re.compile(r"""^(['"])(.*)\1$""", re.DOTALL)
_INDEX = re.compile(r"^-?\d+$")
_SLICE = re.compile(r"^(-?\d*):(-?\d*)(?::(\d*))?$")
_FILTER = re.compile(r"^\?\((.*)\)$", re.DOTALL)
# The operator is the first one outside quotes.
_COMPARISON = re.compile(r"""^((?:[^'"<>=!]|'[^']*'|"[^"]*")*)(==|!=|<=|>=|<|>)(.*)$""", re.DOTALL)
_NUMBER = re.compile(r"^-?\d+(\.\d+)?$")

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_LITERALS = {"true": True, "false": False}


class JsonPath:
    """A parsed path; ``ValueError`` when it cannot be read."""

    __slots__ = ("_steps", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        inner = text[1:-1] if text.startswith("{") and text.endswith("}") else text
        self._steps = list(_steps(inner.strip().removeprefix("$")))

    def find(self, value: Any) -> list[Any]:
        """Return everything the path names in *value*, in order."""
        found = [value]
        for step in self._steps:
            found = step(found)
        return found


def _steps(text: str) -> Iterator[Step]:
    position = 0
    while position < len(text):
        if text.startswith("..", position):
            yield _descend
            position += 2
            if text.startswith("[", position):
                continue
        elif text[position] == ".":
            position += 1
        elif text[position] == "[":
            position, step = _bracket(text, position)
            yield step
            continue
        elif position:
            raise ValueError(f"JSON path {text!r}: unexpected {text[position:]!r}")
        position, name = _field_name(text, position)
        if name:
            yield _every if name == "*" else _field(name)


def _field_name(text: str, position: int) -> tuple[int, str]:
    match = _FIELD.match(text, position)
    if match is None:
        # A lone dot names the value itself; anything else that is not a name is a mistake.
        if position < len(text) and text[position] != "[":
            raise ValueError(f"JSON path {text!r}: want a field name at {text[position:]!r}")
        return position, ""
    return match.end(), re.sub(r"\\(.)", r"\1", match.group())


def _bracket(text: str, position: int) -> tuple[int, Step]:
    end = _closing(text, position)
    content = text[position + 1 : end].strip()
    return end + 1, _bracket_step(content, text)


def _closing(text: str, position: int) -> int:
    """Return where the bracket opened at *position* closes, quotes and nesting respected."""
    depth, quote = 0, ""
    for index in range(position, len(text)):
        character = text[index]
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in "[(":
            depth += 1
        elif character in "])":
            depth -= 1
            if depth == 0:
                return index
    raise ValueError(f"JSON path {text!r}: a bracket is not closed")


def _bracket_step(content: str, text: str) -> Step:
    if content == "*":
        return _every
    if match := _FILTER.match(content):
        return _filter(match.group(1))
    members = list(_split(content, ","))
    if len(members) > 1:
        return _union([_bracket_step(member.strip(), text) for member in members])
    if match := _QUOTED.match(content):
        return _field(match.group(2))
    if _INDEX.match(content):
        return _index(int(content))
    if match := _SLICE.match(content):
        first, last, stride = (int(bound) if bound else None for bound in match.groups())
        return _slice(slice(first, last, stride or None))
    raise ValueError(f"JSON path {text!r}: cannot read [{content}]")


def _split(content: str, separator: str) -> Iterator[str]:
    """Yield the parts of *content* between separators that are not within quotes."""
    start, quote = 0, ""
    for index, character in enumerate(content):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == separator:
            yield content[start:index]
            start = index + 1
    yield content[start:]


def _field(name: str) -> Step:
    return lambda found: [
        value[name] for value in found if isinstance(value, Mapping) and name in value
    ]


def _index(index: int) -> Step:
    def step(found: list[Any]) -> list[Any]:
        lists = (value for value in found if isinstance(value, list))
        return [value[index] for value in lists if -len(value) <= index < len(value)]

    return step


def _slice(bounds: slice) -> Step:
    return lambda found: [
        member for value in found if isinstance(value, list) for member in value[bounds]
    ]


def _union(steps: list[Step]) -> Step:
    return lambda found: [member for step in steps for member in step(found)]


def _members(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list) else ()


def _every(found: list[Any]) -> list[Any]:
    return [member for value in found for member in _members(value)]


def _descend(found: list[Any]) -> list[Any]:
    """Return every value that has members, each before what lies in it."""
    result: list[Any] = []
    pending = list(reversed(found))
    while pending:
        value = pending.pop()
        members = list(_members(value))
        if members:
            result.append(value)
            pending.extend(reversed(members))
    return result


def _filter(condition: str) -> Step:
    if match := _COMPARISON.match(condition):
        left, symbol, right = match.groups()
        return _comparison(_operand(left), _COMPARISONS[symbol], _operand(right))
    exists = _operand(condition)
    return lambda found: [
        member for value in found if isinstance(value, list) for member in value if exists([member])
    ]


def _operand(text: str) -> Step:
    """Return a side of a comparison: a path from the member (``@``) or a literal."""
    text = text.strip()
    if text.startswith("@"):
        path = JsonPath(text[1:])
        return lambda found: path.find(found[0])
    literal = _literal(text)
    return lambda _: [literal]


def _literal(text: str) -> Any:
    if match := _QUOTED.match(text):
        return match.group(2)
    if text in _LITERALS:
        return _LITERALS[text]
    if _NUMBER.match(text):
        return float(text) if "." in text else int(text)
    raise ValueError(f"JSON path filter: cannot read {text!r}")


def _comparison(left: Step, compare: Callable[[Any, Any], Any], right: Step) -> Step:
    def holds(member: Any) -> bool:
        ours, theirs = left([member]), right([member])
        if len(ours) != 1 or len(theirs) != 1 or not _comparable(ours[0], theirs[0]):
            return False
        return bool(compare(ours[0], theirs[0]))

    return lambda found: [
        member for value in found if isinstance(value, list) for member in value if holds(member)
    ]


def _comparable(left: Any, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return isinstance(left, bool) and isinstance(right, bool)
    if isinstance(left, str):
        return isinstance(right, str)
    return isinstance(left, int | float) and isinstance(right, int | float)
