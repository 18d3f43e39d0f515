"""The types expressions are checked against, and how schemas declare them.

A schema's objects become object types with their declared fields, its free-form maps become
maps, int-or-string becomes ``dyn``. Sizes ride along: the most elements a list or map may have,
the most bytes of a string, and the fewest bytes a value can take in a request. Cost estimates
need them, as in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from skerry.api.schema import Schema
from skerry.logic.machinery.cel.escaping import escaped
from skerry.logic.machinery.work import spend

# Kubernetes sizes what a schema leaves unbounded by the largest request it would read.
MAX_REQUEST_BYTES = 3 * 1024 * 1024


@dataclass(frozen=True, slots=True, eq=False)
class CelType:
    """A type: a name and its parameters; an object type also has fields.

    Object types are the same only if they stand for the same schema node.
    """

    name: str
    parameters: tuple[CelType, ...] = ()
    fields: Mapping[str, tuple[str, CelType]] = field(default_factory=dict)
    nullable: bool = False
    # The most elements, entries or bytes a value of this type may have; None: nobody knows.
    size: int | None = None
    # The fewest bytes of a value in JSON.
    smallest: int = 1
    list_type: str = "atomic"
    list_keys: tuple[str, ...] = ()

    def __str__(self) -> str:
        shown = _SHOWN.get(self.name, self.name)
        if not self.parameters:
            return shown
        return f"{shown}({', '.join(map(str, self.parameters))})"


_SHOWN = {"optional": "optional_type", "null": "null_type"}

BOOL = CelType("bool", smallest=4)
INT = CelType("int")
UINT = CelType("uint")
DOUBLE = CelType("double")
STRING = CelType("string", smallest=2)
BYTES = CelType("bytes", smallest=2)
NULL = CelType("null")
DYN = CelType("dyn")
TYPE = CelType("type")
TIMESTAMP = CelType("google.protobuf.Timestamp", smallest=22)
DURATION = CelType("google.protobuf.Duration", smallest=4)


def list_of(element: CelType, size: int | None = None) -> CelType:
    """Return the type of lists of *element*, of at most *size*."""
    return CelType("list", (element,), size=size, smallest=2)


def map_of(key: CelType, value: CelType, size: int | None = None) -> CelType:
    """Return the type of maps from *key* to *value*, of at most *size* entries."""
    return CelType("map", (key, value), size=size, smallest=2)


def optional_of(value: CelType) -> CelType:
    """Return the type of values that may be absent."""
    return CelType("optional", (value,))


def variable(name: str) -> CelType:
    """Return a type variable, which a call binds."""
    return CelType(f"~{name}")


def assignable(wanted: CelType, given: CelType, bound: dict[str, CelType]) -> bool:
    """Tell whether *given* may stand where *wanted* is asked, binding type variables."""
    if wanted.name.startswith("~"):
        known = bound.get(wanted.name)
        if known is None or known.name == "dyn" or _unsettled(known):
            bound[wanted.name] = given
            return known is None or known.name == "dyn" or assignable(known, given, bound)
        return assignable(known, given, bound)
    if "dyn" in (wanted.name, given.name):
        return True
    if "null" in (wanted.name, given.name):
        return _takes_null(wanted) and _takes_null(given)
    if wanted.name != given.name or (
        wanted.fields is not given.fields and (wanted.fields or given.fields)
    ):
        return False
    return all(
        assignable(one, other, bound)
        for one, other in zip(wanted.parameters, given.parameters, strict=False)
    )


_SCALARS = frozenset(("bool", "int", "uint", "double", "string", "bytes", "list", "map", "type"))


def _takes_null(kind: CelType) -> bool:
    """Tell whether null may be compared with a type: all but CEL's own simple ones."""
    return kind.nullable or kind.name not in _SCALARS


def _unsettled(known: CelType) -> bool:
    """Tell whether a bound type has parameters nothing has fixed yet (an empty list)."""
    return any(part.name == "dyn" or _unsettled(part) for part in known.parameters)


def resolved(wanted: CelType, bound: Mapping[str, CelType]) -> CelType:
    """Return *wanted* with its type variables replaced; an unbound one may be anything."""
    if wanted.name.startswith("~"):
        return bound.get(wanted.name, DYN)
    if not wanted.parameters:
        return wanted
    return replace(wanted, parameters=tuple(resolved(part, bound) for part in wanted.parameters))


@lru_cache(maxsize=512)
def signature(text: str) -> tuple[tuple[CelType, ...], CelType, bool]:
    """Read ``string.(int) bool`` (a method) or ``(list(T), T) T`` (a function)."""
    left, result = text.rsplit(")", 1) if not text.endswith(")") else _split_result(text)
    receiver, _, inside = left.partition(".(") if ".(" in left else ("", "", left[1:])
    given = [receiver] if receiver else []
    parts = tuple(_type(part) for part in [*given, *_split(inside)])
    return parts, _type(result.strip()), bool(receiver)


def _split_result(text: str) -> tuple[str, str]:
    """Split before a result type that has parameters itself."""
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(text[at], 0)
        if text[at] == " " and depth == 0:
            return text[: at - 1], text[at + 1 :]
    raise ValueError(f"signature {text!r}: want '(types) result'")


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += {"(": 1, ")": -1}.get(char, 0)
        if char == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


_NAMED = {
    "bool": BOOL, "int": INT, "uint": UINT, "double": DOUBLE, "string": STRING, "bytes": BYTES,
    "null": NULL, "dyn": DYN, "type": TYPE, "timestamp": TIMESTAMP, "duration": DURATION,
}  # fmt: skip


def _type(text: str) -> CelType:
    if text in _NAMED:
        return _NAMED[text]
    if "(" in text:
        name, _, inside = text.partition("(")
        return CelType(name, tuple(_type(part) for part in _split(inside[:-1])))
    return variable(text) if len(text) == 1 else CelType(text)


# --- types that schemas declare

# Describing one node of a schema.
_NODE_UNITS = 30
_META_FIELDS = ("apiVersion", "kind", "metadata")


def declared(schema: Schema, *, root: bool = False) -> CelType | None:
    """Return the type rules see at a node of a schema; None where rules see nothing.

    *root* is a whole resource: of its metadata only name and generateName are in reach.
    """
    spend(_NODE_UNITS)
    if schema.int_or_string:
        return replace(DYN, nullable=schema.nullable)
    declare = _BY_TYPE.get(schema.type)
    made = declare(schema, root) if declare is not None else None
    if made is None or not schema.nullable:
        return made
    return replace(made, nullable=True)


def _declared_list(schema: Schema, _: bool) -> CelType | None:
    if schema.items is None:
        return None
    element = declared(schema.items, root=schema.items.embedded)
    if element is None:
        return None
    size = schema.raw.get("maxItems")
    if size is None:
        size = (MAX_REQUEST_BYTES - 2) // (element.smallest + 1)
    made = list_of(element, int(size))
    return replace(made, list_type=schema.list_type, list_keys=schema.list_keys)


def _declared_object(schema: Schema, root: bool) -> CelType | None:
    if schema.additional is not None and not schema.property_names:
        return _declared_map(schema)
    fields: dict[str, tuple[str, CelType]] = {}
    smallest = 2
    for name, child in schema.properties():
        if root and name in _META_FIELDS:
            continue
        made = declared(child, root=child.embedded)
        written = escaped(name)
        if made is None or written is None:
            continue
        fields[written] = (name, made)
        if name in schema.required and not child.default:
            smallest += len(name) + 4 + made.smallest
    if root or schema.embedded:
        fields.update(_resource_fields())
    return CelType("object", fields=fields, smallest=smallest)


@lru_cache(maxsize=1)
def _resource_fields() -> dict[str, tuple[str, CelType]]:
    text = replace(STRING, size=MAX_REQUEST_BYTES)
    meta = {"name": ("name", text), "generateName": ("generateName", text)}
    return {
        "apiVersion": ("apiVersion", text),
        "kind": ("kind", text),
        "metadata": ("metadata", CelType("object", fields=meta, smallest=2)),
    }


def _declared_map(schema: Schema) -> CelType | None:
    additional = schema.additional
    value = declared(additional, root=additional.embedded) if additional is not None else None
    if value is None:
        return None
    size = schema.raw.get("maxProperties")
    if size is None:
        # A key takes its quotes, a colon and a comma beside the value.
        size = (MAX_REQUEST_BYTES - 2) // (value.smallest + 6)
    # Kubernetes counts keys as free, however long they may be.
    return map_of(replace(STRING, size=0), value, int(size))


_TIMES = {"date": TIMESTAMP, "date-time": TIMESTAMP, "duration": DURATION}
# Each has a largest written form, whatever the schema says.
_TIME_SIZES = {"date": 10, "date-time": 35, "duration": 33}
_BYTES_PER_CHARACTER = 4


def _declared_string(schema: Schema, _: bool) -> CelType:
    if schema.format in _TIMES:
        return replace(_TIMES[schema.format], size=_TIME_SIZES[schema.format])
    max_length = schema.raw.get("maxLength")
    base = BYTES if schema.format == "byte" else STRING
    if max_length is None and schema.raw.get("enum"):
        return replace(base, size=max(len(str(item)) for item in schema.raw["enum"]))
    if max_length is None:
        return replace(base, size=MAX_REQUEST_BYTES - 2)
    return replace(base, size=int(max_length) * _BYTES_PER_CHARACTER)


_BY_TYPE: dict[str, Callable[[Schema, bool], CelType | None]] = {
    "array": _declared_list,
    "object": _declared_object,
    "string": _declared_string,
    "boolean": lambda *_: BOOL,
    "integer": lambda *_: INT,
    "number": lambda *_: DOUBLE,
}
