"""Expressions as trees, parsed by the CEL project's own parser.

``cel_expr_python`` parses the text, expands macros (``all``, ``exists``, ``map`` ...) and hands
out the tree as a ``ParsedExpr`` message; the few message fields a tree consists of are read here
by number, so nothing of protobuf is needed at run time. The parser refuses what is nested more
than 32 deep (Kubernetes: 250); chains of ``&&`` and ``||`` are balanced and may be long. It takes
time in proportion to the text, some microseconds a character, so texts have a limit.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, TypeAlias

from skerry.logic.machinery.work import spend
from skerry.wire.protobuf import read_fields, read_varint, signed


class ParseError(ValueError):
    """The text is no CEL expression; the message is laid out as Kubernetes shows it."""


@dataclass(frozen=True, slots=True)
class Constant:
    id: int
    value: Any
    # Of an unsigned literal the value alone does not tell.
    unsigned: bool = False


@dataclass(frozen=True, slots=True)
class Identifier:
    id: int
    name: str


@dataclass(frozen=True, slots=True)
class Select:
    id: int
    operand: Node
    field: str
    # ``has(operand.field)``: ask only whether it is there.
    test: bool


@dataclass(frozen=True, slots=True)
class Call:
    id: int
    target: Node | None
    function: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ListOf:
    id: int
    elements: tuple[Node, ...]
    # Indexes of elements that are optionals and may be absent (``[?x]``).
    optional: frozenset[int]


@dataclass(frozen=True, slots=True)
class MapOf:
    id: int
    # Key, value, and whether the value is an optional (``{?k: x}``).
    entries: tuple[tuple[Node, Node, bool], ...]
    message: str = ""


@dataclass(frozen=True, slots=True)
class Comprehension:
    """A fold: what every macro over lists and maps becomes."""

    id: int
    variable: str
    range: Node
    result_variable: str
    start: Node
    condition: Node
    step: Node
    result: Node


Node: TypeAlias = Constant | Identifier | Select | Call | ListOf | MapOf | Comprehension


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression and where its nodes stand in the text."""

    text: str
    root: Node
    positions: dict[int, int] = field(hash=False)

    def complaint(self, node: int, message: str) -> str:
        """Return *message* with the line it is about and a mark below the place."""
        offset = self.positions.get(node, 0)
        before = self.text[:offset]
        line = before.count("\n")
        column = offset - (before.rfind("\n") + 1)
        source = self.text.split("\n")[line]
        return f"ERROR: <input>:{line + 1}:{column + 1}: {message}\n | {source}\n | {'.' * column}^"


@lru_cache(maxsize=1)
def _environment() -> Any:
    # Loaded with the first rule: a server without rules starts sooner and stays smaller.
    from cel_expr_python import cel
    from cel_expr_python.ext import ext_bindings, ext_optional

    return cel.NewEnv(extensions=[ext_optional.ExtOptional(), ext_bindings.ExtBindings()])


# The longest rules that the Kubernetes project itself publishes take 1.5 KB.
MAX_LENGTH: Final = 4096
_CHARACTER_UNITS: Final = 60


@lru_cache(maxsize=1024)
def parsed(text: str) -> Expression:
    """Return the tree of *text*; raise ``ParseError`` with the parser's complaints."""
    if len(text) > MAX_LENGTH:
        raise ParseError(
            f"ERROR: <input>:1:1: expression of {len(text)} characters exceeds the limit of "
            f"{MAX_LENGTH}"
        )
    spend(_CHARACTER_UNITS * len(text))
    try:
        message = _environment().compile(text, disable_check=True).serialize()
    except RuntimeError as error:
        raise ParseError(_cleaned(str(error))) from error
    parsed_expr = _one(_message(message), 2)
    fields = _message(parsed_expr)
    info = _message(_one(fields, 3))
    positions = {_number(entry, 1): _number(entry, 2) for entry in map(_message, info.get(4, []))}
    return Expression(text, _node(_one(fields, 2)), positions)


def _cleaned(text: str) -> str:
    return re.sub(r" \[INVALID_ARGUMENT\]$", "", text.removeprefix("INVALID_ARGUMENT: "))


# --- reading the tree that the parser writes

_Fields: TypeAlias = dict[int, list[Any]]


def _message(data: bytes) -> _Fields:
    found: _Fields = {}
    for number, _, value in read_fields(data):
        found.setdefault(number, []).append(value)
    return found


def _one(fields: _Fields, number: int) -> bytes:
    values = fields.get(number)
    return values[-1] if values else b""


def _number(fields: _Fields, number: int) -> int:
    values = fields.get(number)
    return int(values[-1]) if values else 0


def _text(fields: _Fields, number: int) -> str:
    return _one(fields, number).decode()


def _node(data: bytes) -> Node:
    fields = _message(data)
    node = _number(fields, 2)
    for number, read in _READERS.items():
        if number in fields:
            made: Node = read(node, _message(fields[number][-1]))
            return made
    return Constant(node, None)


def _constant(node: int, fields: _Fields) -> Constant:
    if not fields:
        return Constant(node, None)
    number, values = next(iter(fields.items()))
    value = values[-1]
    if number == 2:
        return Constant(node, bool(value))
    if number == 3:
        return Constant(node, signed(value))
    if number == 4:
        return Constant(node, value, unsigned=True)
    if number == 5:
        return Constant(node, struct.unpack("<d", value)[0])
    if number == 6:
        return Constant(node, value.decode())
    return Constant(node, bytes(value) if number == 7 else None)


def _identifier(node: int, fields: _Fields) -> Identifier:
    return Identifier(node, _text(fields, 1))


def _select(node: int, fields: _Fields) -> Select:
    return Select(node, _node(_one(fields, 1)), _text(fields, 2), bool(_number(fields, 3)))


def _call(node: int, fields: _Fields) -> Call:
    target = _node(fields[1][-1]) if 1 in fields else None
    return Call(node, target, _text(fields, 2), tuple(map(_node, fields.get(3, []))))


def _list(node: int, fields: _Fields) -> ListOf:
    packed = b"".join(
        part if isinstance(part, bytes) else bytes([part]) for part in fields.get(2, [])
    )
    optional, at = set(), 0
    while at < len(packed):
        index, at = read_varint(packed, at)
        optional.add(index)
    return ListOf(node, tuple(map(_node, fields.get(1, []))), frozenset(optional))


def _map(node: int, fields: _Fields) -> MapOf:
    entries = []
    for entry in map(_message, fields.get(2, [])):
        key = _node(entry[3][-1]) if 3 in entry else Constant(0, _text(entry, 2))
        entries.append((key, _node(_one(entry, 4)), bool(_number(entry, 5))))
    return MapOf(node, tuple(entries), _text(fields, 1))


def _comprehension(node: int, fields: _Fields) -> Comprehension:
    return Comprehension(
        node,
        _text(fields, 1),
        _node(_one(fields, 2)),
        _text(fields, 3),
        _node(_one(fields, 4)),
        _node(_one(fields, 5)),
        _node(_one(fields, 6)),
        _node(_one(fields, 7)),
    )


_READERS: dict[int, Any] = {
    3: _constant,
    4: _identifier,
    5: _select,
    6: _call,
    7: _list,
    8: _map,
    9: _comprehension,
}
