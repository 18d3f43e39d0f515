"""The answer kube-apiserver's decoder gives when a built-in kind has a value of the wrong type.

Go decodes into structs and stops at the first value that does not fit. The names of its structs
are the last parts of the definitions' names; where Go uses a named string type the schema only
says ``string``, and so do we. null fits everything: it leaves the field empty.

No path is built while all is well. A mismatch is raised, and every level it passes on the way
out adds its own name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import orjson

from skerry.api.schema import Schema
from skerry.logic.machinery.quantity import Quantity, QuantityError
from skerry.logic.machinery.schema import formats
from skerry.logic.machinery.schema.compilation import Fields, Roots, says_nothing

Fit = Callable[[Any], None]
_LIMITS = {"int32": 1 << 31, "int64": 1 << 63, "": 1 << 63}


class _Mismatch(Exception):
    """A value Go cannot decode; ``text`` is complete, or wants the field's name."""

    def __init__(self, value: Any, wanted: str, text: str = "", found: str = "") -> None:
        super().__init__(text)
        self.value = value
        self.found = found or _json_type(value)
        self.wanted = wanted
        self.text = text
        self.struct = ""
        self.fields: list[str] = []

    def within(self, schema: Schema, field: str) -> None:
        """Note that the value is the field *field* of a struct."""
        if not self.struct:
            self.struct = struct_name(schema)
        self.fields.append(field)

    def message(self) -> str:
        if self.text:
            return self.text
        if not self.fields:
            return f"json: cannot unmarshal {self.found} into Go value of type {self.wanted}"
        where = ".".join([self.struct, *reversed(self.fields)])
        target = f"Go struct field {where} of type {self.wanted}"
        return f"json: cannot unmarshal {self.found} into {target}"

    def restoration(self) -> str:
        """Return the complaint of Go's converter, which takes maps to structs without any text."""
        kind = _KINDS[type(self.value)]
        if self.text:
            return f"error decoding from json: {self.text}" if self.wanted else self.text
        if self.wanted.startswith("map["):
            return f"cannot restore map from {kind}"
        if self.wanted.startswith("[]"):
            return f"cannot restore slice from {kind}"
        if "." in self.wanted:
            return f"cannot restore struct from: {kind}"
        if self.wanted in _CONVERTIBLE.get(kind, ()):
            return f"cannot convert {kind} to {self.wanted}"
        return f"unrecognized type: {self.wanted}"


# What Go's language converts and its converter will not.
_CONVERTIBLE: Final = {"int64": ("string", "int32", "int64"), "float64": ("int32", "int64")}
_KINDS: Final = {
    bool: "bool", str: "string", int: "int64", float: "float64", list: "slice", dict: "map",
}  # fmt: skip


def restoration_error(schema: Schema, obj: Any) -> str:
    """Return what Go's converter of unstructured objects says of *obj*; "" where it fits.

    Strategic merge patches are taken to objects by it, without a text in between.
    """
    try:
        _ROOTS.of(schema)(obj)
    except _Mismatch as mismatch:
        return mismatch.restoration()
    return ""


def type_errors(schema: Schema, obj: Any, kind: str, version: str) -> list[str]:
    """Return the decoder's complaint about *obj*: nothing, or one sentence about the first."""
    try:
        _ROOTS.of(schema)(obj)
    except _Mismatch as mismatch:
        text = mismatch.message()
        return [f'{kind} in version "{version}" cannot be handled as a {kind}: {text}']
    return []


def struct_name(schema: Schema) -> str:
    """Return the Go struct a definition stands for."""
    return schema.name.rsplit(".", 1)[-1]


def go_type(schema: Schema) -> str:
    """Return the Go type a schema stands for, as error messages print it."""
    if schema.name and schema.property_names:
        return ".".join(schema.name.rsplit(".", 2)[-2:])
    if schema.type == "integer":
        return schema.format or "int64"
    if schema.type == "number":
        return "float64"
    if schema.type == "boolean":
        return "bool"
    if schema.type == "array" and schema.items is not None:
        return f"[]{go_type(schema.items)}"
    if schema.format == "byte":
        return "[]uint8"
    if schema.additional is not None:
        return f"map[string]{go_type(schema.additional)}"
    return "string" if schema.type == "string" else "map[string]interface {}"


def _json_type(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int | float):
        return "number"
    return "object" if isinstance(value, dict) else "array"


def _anything(_: Any) -> None:
    """Every JSON value fits."""


def _compile(schema: Schema) -> Fit:
    special = _special(schema)
    if special is not None:
        return special
    if schema.type == "integer":
        return _integer_rule(schema.format)
    if schema.type == "array":
        return _list_rule(schema)
    if schema.property_names:
        return _struct_rule(schema)
    if schema.additional is not None:
        return _map_rule(schema, schema.additional)
    if schema.type == "object":
        return _plain_rule(dict, schema)
    return _SCALARS.get(schema.type, _anything)


def _special(schema: Schema) -> Fit | None:
    """Return the rule of a type that decodes itself."""
    if schema.format == "quantity":
        return _quantity
    if schema.int_or_string:
        return _int_or_string
    if schema.type == "string" and schema.format == "date-time":
        return _time
    if schema.type == "string" and schema.format == "byte":
        return _base64
    if says_nothing(schema.raw):
        return _anything
    return None


def _string(value: Any) -> None:
    if type(value) is not str and value is not None:
        raise _Mismatch(value, "string")


def _boolean(value: Any) -> None:
    if type(value) is not bool and value is not None:
        raise _Mismatch(value, "bool")


def _number(value: Any) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise _Mismatch(value, "float64")


_SCALARS: dict[str, Fit] = {"string": _string, "boolean": _boolean, "number": _number}


def _integer_rule(name: str) -> Fit:
    limit = _LIMITS.get(name, 1 << 63)
    wanted = name or "int64"

    def fit(value: Any) -> None:
        if type(value) is int:
            if -limit <= value < limit:
                return
            raise _Mismatch(value, wanted, found=f"number {value}")
        if type(value) is float:
            raise _Mismatch(value, wanted, found=f"number {orjson.dumps(value).decode()}")
        if value is not None:
            raise _Mismatch(value, wanted)

    return fit


def _quantity(value: Any) -> None:
    if value is None:
        return
    try:
        Quantity.parse(value if isinstance(value, str | int | float) else "x")
    except QuantityError as error:
        raise _Mismatch(value, "", str(error)) from error


def _int_or_string(value: Any) -> None:
    if value is None or type(value) is str:
        return
    if type(value) is int and -(1 << 31) <= value < 1 << 31:
        return
    found = f"number {value}" if type(value) in (int, float) else _json_type(value)
    raise _Mismatch(value, "", f"json: cannot unmarshal {found} into Go value of type int32")


def _time(value: Any) -> None:
    if value is None:
        return
    if type(value) is not str:
        text = f"json: cannot unmarshal {_json_type(value)} into Go value of type string"
        raise _Mismatch(value, "", text)
    if not formats.is_date_time(value):
        layout = "2006-01-02T15:04:05Z07:00"
        part, wanted = _first_unparsed(value)
        text = f'parsing time "{value}" as "{layout}": cannot parse "{part}" as "{wanted}"'
        raise _Mismatch(value, "", text)


# The pieces of Go's layout in order, each with what it takes.
_LAYOUT = (
    (r"\d{4}", "2006"), ("-", "-"), (r"\d{2}", "01"), ("-", "-"), (r"\d{2}", "02"), ("T", "T"),
    (r"\d{2}", "15"), (":", ":"), (r"\d{2}", "04"), (":", ":"), (r"\d{2}(\.\d+)?", "05"),
    (r"Z|[+-]\d{2}:\d{2}", "Z07:00"),
)  # fmt: skip


def _first_unparsed(text: str) -> tuple[str, str]:
    """Return where Go's parser stops and the piece of the layout it was reading."""
    for pattern, piece in _LAYOUT:
        found = re.match(pattern, text)
        if found is None:
            return text, piece
        text = text[found.end() :]
    return text, ""


def _base64(value: Any) -> None:
    if value is None:
        return
    if type(value) is not str:
        raise _Mismatch(value, "[]uint8")
    if not formats.is_base64(value):
        text = f"illegal base64 data at input byte {_illegal_at(value)}"
        raise _Mismatch(value, "[]uint8", text)


def _illegal_at(text: str) -> int:
    """Return the offset Go names: the first foreign character, or the end of what is there."""
    found = re.search(r"[^A-Za-z0-9+/\r\n]", text)
    if found is not None and found.group() != "=":
        return found.start()
    return max(len(text) - len(text) % 4, 0)


def _plain_rule(kind: type, schema: Schema) -> Fit:
    def fit(value: Any) -> None:
        if type(value) is not kind and value is not None:
            raise _Mismatch(value, go_type(schema))

    return fit


def _struct_rule(schema: Schema) -> Fit:
    fields = Fields(schema, _compile, _anything)

    def fit(value: Any) -> None:
        if type(value) is not dict:
            if value is None:
                return
            raise _Mismatch(value, go_type(schema))
        key = ""
        try:
            for key, member in value.items():
                fields[key](member)
        except _Mismatch as mismatch:
            mismatch.within(schema, key)
            raise

    return fit


def _map_rule(schema: Schema, additional: Schema) -> Fit:
    if additional.type == "string" and _special(additional) is None:
        return _texts_rule(schema)
    rule = _lazily(additional)

    def fit(value: Any) -> None:
        if type(value) is not dict:
            if value is None:
                return
            raise _Mismatch(value, go_type(schema))
        for member in value.values():
            rule(member)

    return fit


_TEXT_OR_NULL: Final = frozenset({str, type(None)})


def _texts_rule(schema: Schema) -> Fit:
    """Return the rule of labels, annotations and data, which most objects have: no call each."""

    def fit(value: Any) -> None:
        if type(value) is not dict:
            if value is None:
                return
            raise _Mismatch(value, go_type(schema))
        if not _TEXT_OR_NULL.issuperset(map(type, value.values())):
            for member in value.values():
                _string(member)

    return fit


def _list_rule(schema: Schema) -> Fit:
    rule = _lazily(schema.items) if schema.items is not None else _anything

    def fit(value: Any) -> None:
        if type(value) is not list:
            if value is None:
                return
            raise _Mismatch(value, go_type(schema))
        for item in value:
            rule(item)

    return fit


def _lazily(schema: Schema) -> Fit:
    """Return a rule compiled on first use; definitions refer to themselves."""
    cell: list[Fit] = []

    def fit(value: Any) -> None:
        if not cell:
            cell.append(_compile(schema))
        cell[0](value)

    return fit


_ROOTS: Final[Roots[Fit]] = Roots(_compile)
