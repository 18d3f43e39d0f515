"""Compiled forms of schemas, made once and only as far as they are used.

A compiled rule is a closure per schema node. The closures of an object's fields sit in a
``Fields`` table that compiles a field when it is first met, so that a Pod's thousand nodes (and
the recursive ``JSONSchemaProps``) cost only what requests touch, and afterwards a lookup is one
dict access.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from skerry.api.schema import Schema

Rule = TypeVar("Rule")


class Fields(dict[str, Any], Generic[Rule]):
    """Field name to compiled rule; compiles on first use, never remembers unknown names."""

    __slots__ = ("_compile", "_schema", "_unknown")

    def __init__(self, schema: Schema, compile_: Callable[[Schema], Rule], unknown: Any) -> None:
        super().__init__()
        self._schema = schema
        self._compile = compile_
        self._unknown = unknown

    def __missing__(self, name: str) -> Any:
        child = self._schema.field(name)
        if child is None:
            return self._unknown
        rule = self[name] = self._compile(child)
        return rule


class Roots(Generic[Rule]):
    """Compiled rules of whole schemas; they are kept with the schema and go with it."""

    def __init__(self, compile_: Callable[[Schema], Rule]) -> None:
        self._compile = compile_

    def of(self, schema: Schema) -> Rule:
        forms = schema.forms
        if forms is not None and self in forms:
            found: Rule = forms[self]
            return found
        made = self._compile(schema)
        if schema.forms is None:
            schema.forms = {}
        schema.forms[self] = made
        return made


def says_nothing(raw: Mapping[str, Any]) -> bool:
    """Tell whether *raw* describes any JSON value at all (``JSON``, ``RawExtension``)."""
    return not any(key in raw for key in ("type", "properties", "items", "additionalProperties"))
