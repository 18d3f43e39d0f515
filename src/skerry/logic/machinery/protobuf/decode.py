"""Protobuf request bodies of built-in kinds, as the JSON the same client would have sent.

A body is the four bytes ``k8s\\0`` and a ``runtime.Unknown``: the type's name and the object's
own message. Go clients write every field that is not a pointer, zero or not, and their JSON
leaves zero values out where the type says so; the same is done here, so that a Pod is the same
Pod whichever way it came. Unknown field numbers are skipped: they come from newer clients.
"""

from __future__ import annotations

import base64
import math
import struct
from typing import Any

from skerry.api.kinds import GroupVersionKind
from skerry.logic.machinery.protobuf.table import Field, fields_of, message_of
from skerry.logic.machinery.protobuf.values import SPECIAL, json_value, strings, texts, utf8
from skerry.wire.protobuf import (
    DELIMITED,
    FIXED64,
    VARINT,
    read_fields,
    read_varint,
    signed,
)

MAGIC = b"k8s\x00"

# Only the schemas of custom kinds nest without a bound of their own. Deeper than this is an
# attack on the stack, not a schema anybody wrote.
DEEPEST = 100

_WIRE_TYPES = {"bool": VARINT, "int": VARINT, "uint": VARINT, "double": FIXED64}
_EMPTY: tuple[Any, ...] = ("", 0, False)


def decode(body: bytes, default: GroupVersionKind | None = None) -> dict[str, Any]:
    """Return the object a protobuf *body* carries, with its apiVersion and kind.

    *default* is the type meant when the body names none. ``ValueError`` tells what is wrong with
    a body that cannot be read or carries a kind that is not built in.
    """
    return _decode(body, default, 0)


def _decode(body: bytes, default: GroupVersionKind | None, depth: int) -> dict[str, Any]:
    if not body.startswith(MAGIC):
        raise ValueError("provided data does not appear to be a protobuf message")
    envelope = texts(body[len(MAGIC) :])
    type_meta = texts(envelope.get(1, b""))
    api_version, kind = utf8(type_meta.get(1, b"")), utf8(type_meta.get(2, b""))
    if default is not None:
        api_version, kind = api_version or default.api_version, kind or default.kind
    if encoding := envelope.get(3):
        raise ValueError(f"content encoding {utf8(encoding)!r} of a protobuf body is not supported")
    if not kind:
        raise ValueError("Object 'Kind' is missing in a protobuf body")
    message = message_of(api_version, kind)
    if message is None:
        raise ValueError(f'no kind "{kind}" is registered for version "{api_version}"')
    found = _message(message, envelope.get(2, b""), depth)
    return {"apiVersion": api_version, "kind": kind, **found}


def _message(name: str, data: bytes, depth: int) -> dict[str, Any]:
    if depth > DEEPEST:
        raise ValueError(f"messages are nested more than {DEEPEST} deep")
    fields = fields_of(name)
    result: dict[str, Any] = {}
    for number, wire_type, value in read_fields(data):
        field = fields.get(number)
        if field is not None:
            _take(result, name, field, wire_type, value, depth)
    return result


def _take(
    result: dict[str, Any], message: str, field: Field, wire_type: int, value: Any, depth: int
) -> None:
    """Put one field that was read where JSON has it."""
    wanted = _WIRE_TYPES.get(field.type, DELIMITED)
    if field.repeated and wire_type == DELIMITED and wanted == VARINT:
        for each in _packed(value):
            result.setdefault(field.name, []).append(_scalar(field.type, each))
        return
    if wire_type != (DELIMITED if field.is_map else wanted):
        raise ValueError(f"{message}.{field.name} has the wrong wire type {wire_type}")
    if field.is_map:
        key, member = _entry(field.type, value, depth)
        result.setdefault(field.name, {})[key] = member
        return
    decoded = _value(field.type, value, depth)
    if field.repeated:
        result.setdefault(field.name, []).append(decoded)
    elif field.inline:
        result.update(decoded)
    elif decoded is not None and not (field.omits_zero and decoded in _EMPTY):
        result[field.name] = decoded


def _packed(data: bytes) -> list[int]:
    position, values = 0, []
    while position < len(data):
        value, position = read_varint(data, position)
        values.append(value)
    return values


def _entry(type_name: str, data: bytes, depth: int) -> tuple[str, Any]:
    """Return one entry of a map; a key or value that is its zero may be left out on the wire."""
    parts = {number: (wire_type, value) for number, wire_type, value in read_fields(data)}
    _, key = parts.get(1, (DELIMITED, b""))
    wanted = _WIRE_TYPES.get(type_name, DELIMITED)
    wire_type, value = parts.get(2, (wanted, b"" if wanted == DELIMITED else 0))
    if not isinstance(key, bytes) or wire_type != wanted:
        raise ValueError(f"a map of {type_name} has an entry of the wrong wire type")
    return utf8(key), _value(type_name, value, depth)


def _scalar(type_name: str, value: int) -> Any:
    if type_name == "bool":
        return value != 0
    return value if type_name == "uint" else signed(value)


def _value(type_name: str, value: Any, depth: int) -> Any:
    if isinstance(value, int):
        return _scalar(type_name, value)
    if type_name == "string":
        return utf8(value)
    if type_name == "bytes":
        return base64.b64encode(value).decode()
    if type_name == "list":
        return strings(value)
    if type_name == "double":
        return _double(value)
    return _message_value(type_name, value, depth + 1)


def _double(value: bytes) -> int | float:
    """Return a number as JSON has it: whole ones without a fraction."""
    number: float = struct.unpack("<d", value)[0]
    if not math.isfinite(number):
        raise ValueError(f"{number} is not a number JSON has")
    return int(number) if number.is_integer() else number


def _message_value(type_name: str, data: bytes, depth: int) -> Any:
    special = SPECIAL.get(type_name)
    if special is not None:
        return special[0](data)
    if type_name == "runtime.RawExtension":
        return _raw_extension(data, depth)
    if type_name in _ALTERNATIVES:
        return _alternative(type_name, data, depth)
    return _message(type_name, data, depth)


def _raw_extension(data: bytes, depth: int) -> Any:
    """Return an embedded object, which travels as JSON or as a protobuf body of its own."""
    raw = texts(data).get(1, b"")
    if not raw.startswith(MAGIC):
        return json_value(raw)
    if depth > DEEPEST:
        raise ValueError(f"messages are nested more than {DEEPEST} deep")
    return _decode(raw, None, depth)


# A schema or something simpler: which of the fields is set decides the JSON. The simpler form,
# and the value it has when the message is empty.
_ALTERNATIVES: dict[str, tuple[str, Any]] = {
    "apiextensions.v1.JSONSchemaPropsOrArray": ("jSONSchemas", []),
    "apiextensions.v1.JSONSchemaPropsOrBool": ("allows", False),
    "apiextensions.v1.JSONSchemaPropsOrStringArray": ("property", []),
}


def _alternative(type_name: str, data: bytes, depth: int) -> Any:
    simple, empty = _ALTERNATIVES[type_name]
    found = _message(type_name, data, depth)
    if "schema" in found:
        return found["schema"]
    return found.get(simple, empty)
