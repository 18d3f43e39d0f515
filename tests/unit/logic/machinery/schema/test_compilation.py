"""Schemas are compiled once, and only as far as they are used."""

from __future__ import annotations

from skerry.api.schema import Schema
from skerry.logic.machinery.schema.compilation import Fields, Roots, says_nothing

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}


def test_a_field_is_compiled_when_it_is_first_met_and_never_again() -> None:
    compiled: list[str] = []

    def compile_(schema: Schema) -> str:
        compiled.append(schema.type)
        return schema.type

    fields = Fields(Schema(SCHEMA), compile_, unknown="?")
    assert compiled == []
    assert [fields["a"], fields["a"], fields["b"]] == ["string", "string", "integer"]
    assert compiled == ["string", "integer"]


def test_unknown_names_are_not_remembered() -> None:
    """A client can make up any number of them."""
    fields: Fields[str] = Fields(Schema(SCHEMA), lambda schema: schema.type, unknown="?")
    assert {fields[f"x{number}"] for number in range(100)} == {"?"}
    assert len(fields) == 0


def test_a_whole_schema_is_compiled_once_for_each_purpose() -> None:
    compiled: list[Schema] = []

    def compile_(schema: Schema) -> int:
        compiled.append(schema)
        return len(compiled)

    first, second = Roots(compile_), Roots(compile_)
    schema, other = Schema(SCHEMA), Schema(SCHEMA)
    assert [first.of(schema), first.of(schema), second.of(schema), first.of(other)] == [1, 1, 2, 3]


def test_a_result_that_is_nothing_is_a_result() -> None:
    compiled: list[Schema] = []
    roots: Roots[None] = Roots(compiled.append)
    schema = Schema(SCHEMA)
    roots.of(schema)
    roots.of(schema)
    assert len(compiled) == 1


def test_only_what_describes_no_value_says_nothing() -> None:
    assert says_nothing({"description": "anything"})
    for key in ("type", "properties", "items", "additionalProperties"):
        assert not says_nothing({key: {}})
