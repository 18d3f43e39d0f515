"""An OpenAPI v2 document as protobuf, in the messages of the gnostic project.

client-go's ``OpenAPISchema`` accepts nothing else. A table says which field of which message a
key of the JSON document is; keys that begin with ``x-`` become vendor extensions, whose values
travel as YAML text, and JSON is YAML.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson

from skerry.wire.protobuf import delimited_field, fixed64_field, number_field

Write = Callable[[int, Any], bytes]


def swagger_protobuf(document: Mapping[str, Any]) -> bytes:
    """Return a swagger *document* as protobuf."""
    return _message(_DOCUMENT, document)


class _Message:
    """The keys of a JSON object with their field numbers, and the number of extensions."""

    __slots__ = ("extensions", "fields")

    def __init__(self, extensions: int, fields: Mapping[str, tuple[int, Write]]) -> None:
        self.extensions = extensions
        self.fields = fields


def _message(message: _Message, value: Mapping[str, Any]) -> bytes:
    return b"".join(_parts(message, value))


def _parts(message: _Message, value: Mapping[str, Any]) -> Iterator[bytes]:
    for key, each in value.items():
        field = message.fields.get(key)
        if field is not None:
            number, write = field
            yield write(number, each)
        elif key.startswith("x-"):
            yield _named(message.extensions, key, _yaml(each))


def _named(number: int, name: str, value: bytes) -> bytes:
    entry = delimited_field(1, name.encode()) + delimited_field(2, value)
    return delimited_field(number, entry)


def _yaml(value: Any) -> bytes:
    return delimited_field(2, orjson.dumps(value))


def _text(number: int, value: Any) -> bytes:
    return delimited_field(number, str(value).encode())


def _texts(number: int, value: Any) -> bytes:
    return b"".join(_text(number, each) for each in value)


def _flag(number: int, value: Any) -> bytes:
    return number_field(number, bool(value))


def _whole(number: int, value: Any) -> bytes:
    return number_field(number, int(value))


def _double(number: int, value: Any) -> bytes:
    return fixed64_field(number, struct.pack("<d", value))


def _any(number: int, value: Any) -> bytes:
    return delimited_field(number, _yaml(value))


def _anys(number: int, value: Any) -> bytes:
    return b"".join(_any(number, each) for each in value)


def _of(message: Callable[[], _Message]) -> Write:
    return lambda number, value: delimited_field(number, _message(message(), value))


def _schema(value: Mapping[str, Any]) -> bytes:
    return _message(_SCHEMA, value)


def _schemas(number: int, value: Any) -> bytes:
    return b"".join(delimited_field(number, _schema(each)) for each in value)


def _named_schemas(number: int, value: Mapping[str, Any]) -> bytes:
    return delimited_field(
        number, b"".join(_named(1, name, _schema(each)) for name, each in value.items())
    )


def _type(number: int, value: Any) -> bytes:
    return delimited_field(number, _texts(1, [value] if isinstance(value, str) else value))


def _items(number: int, value: Any) -> bytes:
    return delimited_field(number, _schemas(1, value if isinstance(value, list) else [value]))


def _additional(number: int, value: Any) -> bytes:
    if isinstance(value, bool):
        return delimited_field(number, _flag(2, value))
    return delimited_field(number, delimited_field(1, _schema(value)))


_SCHEMA = _Message(
    31,
    {
        "$ref": (1, _text),
        "format": (2, _text),
        "title": (3, _text),
        "description": (4, _text),
        "default": (5, _any),
        "multipleOf": (6, _double),
        "maximum": (7, _double),
        "exclusiveMaximum": (8, _flag),
        "minimum": (9, _double),
        "exclusiveMinimum": (10, _flag),
        "maxLength": (11, _whole),
        "minLength": (12, _whole),
        "pattern": (13, _text),
        "maxItems": (14, _whole),
        "minItems": (15, _whole),
        "uniqueItems": (16, _flag),
        "maxProperties": (17, _whole),
        "minProperties": (18, _whole),
        "required": (19, _texts),
        "enum": (20, _anys),
        "additionalProperties": (21, _additional),
        "type": (22, _type),
        "items": (23, _items),
        "allOf": (24, _schemas),
        "properties": (25, _named_schemas),
    },
)


def _parameters(number: int, value: Any) -> bytes:
    return b"".join(delimited_field(number, delimited_field(1, _parameter(each))) for each in value)


def _parameter(value: Mapping[str, Any]) -> bytes:
    """Return a parameter: a body, or one of the other kinds, each a message of its own."""
    if value["in"] == "body":
        return delimited_field(1, _message(_BODY_PARAMETER, value))
    number, message = _NON_BODY_PARAMETERS[value["in"]]
    return delimited_field(2, delimited_field(number, _message(message, value)))


_BODY_PARAMETER = _Message(
    6,
    {
        "description": (1, _text),
        "name": (2, _text),
        "in": (3, _text),
        "required": (4, _flag),
        "schema": (5, lambda number, value: delimited_field(number, _schema(value))),
    },
)
_NON_BODY_PARAMETERS = {
    "query": (
        3,
        _Message(
            23,
            {
                "required": (1, _flag),
                "in": (2, _text),
                "description": (3, _text),
                "name": (4, _text),
                "type": (6, _text),
                "uniqueItems": (20, _flag),
            },
        ),
    ),
    "path": (
        4,
        _Message(
            22,
            {
                "required": (1, _flag),
                "in": (2, _text),
                "description": (3, _text),
                "name": (4, _text),
                "type": (5, _text),
                "uniqueItems": (19, _flag),
            },
        ),
    ),
}

_RESPONSE = _Message(
    5,
    {
        "description": (1, _text),
        "schema": (
            2,
            lambda number, value: delimited_field(number, delimited_field(1, _schema(value))),
        ),
    },
)


def _responses(number: int, value: Mapping[str, Any]) -> bytes:
    named = (
        _named(1, code, delimited_field(1, _message(_RESPONSE, each)))
        for code, each in value.items()
    )
    return delimited_field(number, b"".join(named))


_OPERATION = _Message(
    13,
    {
        "tags": (1, _texts),
        "description": (3, _text),
        "operationId": (5, _text),
        "produces": (6, _texts),
        "consumes": (7, _texts),
        "parameters": (8, _parameters),
        "responses": (9, _responses),
        "schemes": (10, _texts),
    },
)
_operation = _of(lambda: _OPERATION)
_PATH_ITEM = _Message(
    10,
    {
        "get": (2, _operation),
        "put": (3, _operation),
        "post": (4, _operation),
        "delete": (5, _operation),
        "patch": (8, _operation),
        "parameters": (9, _parameters),
    },
)


def _paths(number: int, value: Mapping[str, Any]) -> bytes:
    named = (_named(2, path, _message(_PATH_ITEM, each)) for path, each in value.items())
    return delimited_field(number, b"".join(named))


_INFO = _Message(7, {"title": (1, _text), "version": (2, _text)})
_API_KEY = _Message(
    5,
    {"type": (1, _text), "name": (2, _text), "in": (3, _text), "description": (4, _text)},
)


def _security_definitions(number: int, value: Mapping[str, Any]) -> bytes:
    named = (
        _named(1, name, delimited_field(2, _message(_API_KEY, each)))
        for name, each in value.items()
    )
    return delimited_field(number, b"".join(named))


def _security(number: int, value: Any) -> bytes:
    return b"".join(
        delimited_field(
            number, b"".join(_named(1, name, _texts(1, scopes)) for name, scopes in each.items())
        )
        for each in value
    )


_DOCUMENT = _Message(
    16,
    {
        "swagger": (1, _text),
        "info": (2, _of(lambda: _INFO)),
        "paths": (8, _paths),
        "definitions": (9, _named_schemas),
        "security": (12, _security),
        "securityDefinitions": (13, _security_definitions),
    },
)
