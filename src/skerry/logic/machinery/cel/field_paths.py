"""Paths inside a schema as ``fieldPath`` and selectable fields write them: ``.spec['a-b'].c``."""

from __future__ import annotations

import re

from skerry.api.schema import Schema

_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'")
_NAME = re.compile(r"[^.\[\]]+")
_ESCAPES = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'",
    "\\": "\\",
}  # fmt: skip


class FieldPathError(ValueError):
    """The path means no field of the schema."""


def resolved_path(
    text: str, schema: Schema, *, brackets: bool = True
) -> tuple[list[tuple[str, bool]], Schema | None]:
    """Return the steps of *text* (name, whether a declared field) and the schema it ends at."""
    steps: list[tuple[str, bool]] = []
    at, here = 0, schema
    found: Schema | None = schema
    while at < len(text):
        if found is None:
            raise FieldPathError("does not refer to a valid field")
        here = found
        name, at = _step(text, at, brackets=brackets)
        named, found = _into(here, name)
        steps.append((name, named))
    return steps, found


def rendered(steps: list[tuple[str, bool]]) -> str:
    """Return the path as field errors print it."""
    text = ""
    for name, named in steps:
        if named:
            text += f".{name}" if text else name
        else:
            text += f"[{name}]"
    return text


def _step(text: str, at: int, *, brackets: bool) -> tuple[str, int]:
    if text[at] == "[":
        if not brackets:
            raise FieldPathError("array notation is not allowed")
        return _bracketed(text, at + 1)
    if text[at] != ".":
        found = _NAME.match(text, at)
        raise FieldPathError(f"expected [ or . but got: {found.group() if found else text[at]}")
    found = _NAME.match(text, at + 1)
    if found is None:
        raise FieldPathError("unexpected end of JSON path")
    return found.group(), found.end()


def _bracketed(text: str, at: int) -> tuple[str, int]:
    if at >= len(text):
        raise FieldPathError("unexpected end of JSON path")
    found = _QUOTED.match(text, at)
    if found is None:
        other = _NAME.match(text, at)
        shown = other.group() if other else text[at]
        raise FieldPathError(f"expected single quoted string but got {shown}")
    if not text.startswith("]", found.end()):
        rest = text[found.end() : found.end() + 1]
        raise FieldPathError(
            f"expected ] but got {rest}" if rest else "unexpected end of JSON path"
        )
    return re.sub(r"\\(.)", _unescaped, found.group(1)), found.end() + 1


def _unescaped(found: re.Match[str]) -> str:
    char = _ESCAPES.get(found.group(1))
    if char is None:
        raise FieldPathError(f"invalid string literal: invalid escape char {found.group()}")
    return char


def _into(schema: Schema, name: str) -> tuple[bool, Schema | None]:
    if schema.property_names:
        child = schema.field(name)
        if child is None:
            raise FieldPathError("does not refer to a valid field")
        return True, child
    if schema.additional is not None:
        return False, schema.additional
    raise FieldPathError("does not refer to a valid field")
