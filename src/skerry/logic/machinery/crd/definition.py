"""A CustomResourceDefinition's parts, read without trusting their shape.

Whoever calls has checked types against the built-in schema, but unions (a schema or a boolean, a
schema or a list) and nulls pass that check, so every reader here falls back to nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def mapping(value: Any) -> Mapping[str, Any]:
    """Return *value* if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def sequence(value: Any) -> Sequence[Any]:
    """Return *value* if it is a list, else an empty one."""
    return value if isinstance(value, list) else ()


def text(value: Any) -> str:
    """Return *value* if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def spec_of(crd: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the definition's spec."""
    return mapping(crd.get("spec"))


def names_of(crd: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the names the definition asks for."""
    return mapping(spec_of(crd).get("names"))


def versions_of(crd: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the definition's versions in the order it lists them."""
    return [mapping(version) for version in sequence(spec_of(crd).get("versions"))]


def schema_of(version: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the schema of a version, None when it has none; nulls in it count as absent."""
    found = mapping(version.get("schema")).get("openAPIV3Schema")
    if not isinstance(found, dict):
        return None
    # Nearly no schema has any, and looking takes a third of what a copy takes.
    return _without_nulls(found) if _has_nulls(found) else found


# Values that are the user's own data rather than schema.
_DATA = ("default", "enum", "example")


def _has_nulls(schema: dict[str, Any]) -> bool:
    stack: list[Any] = [schema]
    while stack:
        value = stack.pop()
        if type(value) is dict:
            values = value.values()
            if None in values:
                return True
            stack += values
        elif type(value) is list:
            stack += value
    return False


def _without_nulls(raw: Any) -> Any:
    if isinstance(raw, list):
        return [_without_nulls(item) for item in raw]
    if not isinstance(raw, dict):
        return raw
    return {
        key: value if key in _DATA else _without_nulls(value)
        for key, value in raw.items()
        if value is not None
    }


def storage_version(crd: Mapping[str, Any]) -> str:
    """Return the version objects are stored at."""
    return next(
        (text(version.get("name")) for version in versions_of(crd) if version.get("storage")), ""
    )


def condition(crd: Mapping[str, Any], kind: str) -> Mapping[str, Any] | None:
    """Return the condition of that type."""
    conditions = sequence(mapping(crd.get("status")).get("conditions"))
    return next((item for item in conditions if mapping(item).get("type") == kind), None)


def is_true(crd: Mapping[str, Any], kind: str) -> bool:
    """Tell whether the condition of that type holds."""
    return mapping(condition(crd, kind)).get("status") == "True"


def established(crd: Mapping[str, Any]) -> bool:
    """Tell whether the definition's resources are served."""
    return is_true(crd, "Established")
