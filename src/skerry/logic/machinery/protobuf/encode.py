"""The way back: an object as the protobuf body a Go client would send.

Only what the object has is written. Fields the table does not know are left out, as a client
compiled without them would; a value of the wrong type is a ``ValueError``.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from skerry.logic.machinery.protobuf.decode import MAGIC
from skerry.logic.machinery.protobuf.table import Field, fields_of, message_of
from skerry.logic.machinery.protobuf.values import SPECIAL
from skerry.wire.protobuf import delimited_field, fixed64_field, number_field


def encode(obj: Mapping[str, Any]) -> bytes:
    """Return *obj*, of a built-in kind, as a protobuf body."""
    api_version, kind = obj["apiVersion"], obj["kind"]
    message = message_of(api_version, kind)
    if message is None:
        raise ValueError(f'no kind "{kind}" is registered for version "{api_version}"')
    type_meta = delimited_field(1, api_version.encode()) + delimited_field(2, kind.encode())
    raw = _message(message, obj)
    empty = delimited_field(3, b"") + delimited_field(4, b"")
    return MAGIC + delimited_field(1, type_meta) + delimited_field(2, raw) + empty


def _message(name: str, obj: Any) -> bytes:
    if not isinstance(obj, Mapping):
        raise ValueError(f"{name}: want an object, not {type(obj).__name__}")
    return b"".join(part for field in fields_of(name).values() for part in _field(name, field, obj))


def _field(message: str, field: Field, obj: Mapping[str, Any]) -> Iterator[bytes]:
    value = obj if field.inline else obj.get(field.name)
    if value is None:
        return
    try:
        if field.is_map:
            for key in sorted(value):
                entry = _one(1, "string", key) + _one(2, field.type, value[key])
                yield delimited_field(field.number, entry)
        elif field.repeated:
            for each in value:
                yield _one(field.number, field.type, each)
        else:
            yield _one(field.number, field.type, value)
    except (TypeError, AttributeError, struct.error) as error:
        raise ValueError(f"{message}.{field.name}: cannot encode {value!r}") from error


def _one(number: int, type_name: str, value: Any) -> bytes:
    if type_name in ("int", "uint", "bool"):
        return number_field(number, int(value))
    if type_name == "double":
        return fixed64_field(number, struct.pack("<d", value))
    return delimited_field(number, _delimited(type_name, value))


def _delimited(type_name: str, value: Any) -> bytes:
    if value is None:
        # A zero time within a map; elsewhere null is left out.
        return b""
    if type_name == "string":
        encoded: bytes = value.encode()
        return encoded
    if type_name == "bytes":
        return base64.b64decode(value, validate=True)
    if type_name == "list":
        return b"".join(delimited_field(1, each.encode()) for each in value)
    if type_name == "runtime.RawExtension":
        return delimited_field(1, orjson.dumps(value))
    special = SPECIAL.get(type_name)
    if special is not None:
        return special[1](value)
    return _message(type_name, _fields_of_alternative(type_name, value))


def _fields_of_alternative(type_name: str, value: Any) -> Any:
    """Return the message's own fields where JSON has a schema or something simpler."""
    if type_name == "apiextensions.v1.JSONSchemaPropsOrBool":
        if isinstance(value, bool):
            return {"allows": value}
        return {"allows": True, "schema": value}
    if type_name == "apiextensions.v1.JSONSchemaPropsOrArray":
        return {"jSONSchemas": value} if isinstance(value, list) else {"schema": value}
    if type_name == "apiextensions.v1.JSONSchemaPropsOrStringArray":
        return {"property": value} if isinstance(value, list) else {"schema": value}
    return value
