"""Swagger as protobuf: fields by number, extensions as YAML, parameters by where they stand."""

from __future__ import annotations

import struct
from typing import Any

import orjson
import pytest

from skerry.logic.machinery.openapi.v2_protobuf import swagger_protobuf
from skerry.wire.protobuf import read_fields


def read(data: bytes) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for number, _, value in read_fields(data):
        found.setdefault(number, []).append(value)
    return found


def named(data: bytes, number: int = 1) -> dict[str, bytes]:
    """Return a list of named values: name and value of each entry."""
    entries = [read(entry) for entry in read(data).get(number, [])]
    return {entry[1][0].decode(): entry[2][0] for entry in entries}


def schema(**raw: Any) -> dict[int, list[Any]]:
    document = read(swagger_protobuf({"definitions": {"x": raw}}))
    return read(named(document[9][0])["x"])


def test_a_document_has_its_version_and_title() -> None:
    found = read(swagger_protobuf({"swagger": "2.0", "info": {"title": "K", "version": "v1"}}))
    assert found[1] == [b"2.0"]
    assert read(found[2][0]) == {1: [b"K"], 2: [b"v1"]}


@pytest.mark.parametrize(
    ("raw", "number", "value"),
    [
        ({"$ref": "#/definitions/y"}, 1, b"#/definitions/y"),
        ({"description": "ä"}, 4, "ä".encode()),
        ({"maximum": 1.5}, 7, struct.pack("<d", 1.5)),
        ({"minimum": 0}, 9, struct.pack("<d", 0)),
        ({"maxLength": 300}, 11, 300),
        ({"uniqueItems": True}, 16, 1),
        ({"required": ["a"]}, 19, b"a"),
    ],
)
def test_each_key_has_its_number(raw: dict[str, Any], number: int, value: object) -> None:
    assert schema(**raw)[number] == [value]


def test_a_type_may_be_several_and_items_a_list() -> None:
    assert read(schema(type="string")[22][0]) == {1: [b"string"]}
    assert read(schema(type=["string", "null"])[22][0]) == {1: [b"string", b"null"]}
    inner = read(schema(items={"type": "string"})[23][0])[1]
    assert inner == read(schema(items=[{"type": "string"}])[23][0])[1]


def test_additional_properties_are_a_schema_or_a_truth() -> None:
    assert read(schema(additionalProperties=True)[21][0]) == {2: [1]}
    (inner,) = read(schema(additionalProperties={"title": "t"})[21][0])[1]
    assert read(inner) == {3: [b"t"]}


def test_values_of_any_kind_travel_as_yaml() -> None:
    (value,) = schema(default={"a": [1]})[5]
    assert orjson.loads(read(value)[2][0]) == {"a": [1]}
    assert len(schema(enum=[1, "a"])[20]) == 2


def test_extensions_are_kept_and_unknown_keys_are_not() -> None:
    found = schema(**{"x-kubernetes-list-type": "map", "unheard-of": 1})
    assert list(found) == [31]
    entry = read(found[31][0])
    assert entry[1] == [b"x-kubernetes-list-type"]
    assert orjson.loads(read(entry[2][0])[2][0]) == "map"


def test_parameters_are_messages_by_where_they_stand() -> None:
    parameters = [
        {"name": "body", "in": "body", "schema": {"title": "t"}, "required": True},
        {"name": "q", "in": "query", "type": "string"},
        {"name": "p", "in": "path", "type": "string", "required": True},
    ]
    operation = {"parameters": parameters, "operationId": "x"}
    found = read(swagger_protobuf({"paths": {"/a": {"get": operation}}}))
    item = read(named(found[8][0], 2)["/a"])
    body, query, path = (read(read(each)[1][0]) for each in read(item[2][0])[8])
    assert read(body[1][0])[2] == [b"body"]
    assert read(read(query[2][0])[3][0])[6] == [b"string"]
    assert read(read(path[2][0])[4][0])[5] == [b"string"]


def test_responses_and_security_are_named() -> None:
    responses = {"200": {"description": "OK", "schema": {"title": "t"}}}
    document = {
        "paths": {"/a": {"post": {"responses": responses}}},
        "security": [{"BearerToken": []}],
        "securityDefinitions": {"BearerToken": {"type": "apiKey", "in": "header"}},
    }
    found = read(swagger_protobuf(document))
    operation = read(read(named(found[8][0], 2)["/a"])[4][0])
    assert set(named(operation[9][0])) == {"200"}
    assert set(named(found[13][0])) == {"BearerToken"}
    assert set(named(found[12][0])) == {"BearerToken"}
