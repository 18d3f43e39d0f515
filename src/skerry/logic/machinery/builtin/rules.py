"""What one built-in type adds to its discovery facts, and the parts many types share.

The modules beside this one each hold a table ``RULES`` from group resource to ``Rules``;
``resources.py`` joins them with the catalogue.

Objects reach these functions decoded and of the right types: wrong types have been refused
before. Absent and null mean the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from skerry.api.errors import FieldError, shown
from skerry.api.kinds import GroupResource, GroupVersionResource
from skerry.api.objects import Object
from skerry.logic.machinery.names import dns1123_subdomain
from skerry.logic.machinery.resource import Scale

Errors = list[FieldError]
IMMUTABLE = "field is immutable"
NEGATIVE = "must be greater than or equal to 0"


def nothing(_: Object) -> None:
    """Leave the object as it is."""


def no_change(_: Object, __: Object) -> None:
    """Leave both objects as they are."""


def no_errors(_: Object) -> Errors:
    """Find nothing wrong."""
    return []


def no_update_errors(_: Object, __: Object) -> Errors:
    """Find nothing wrong with a change."""
    return []


@dataclass(frozen=True, slots=True)
class Rules:
    """The kind-specific part of a ``Resource``; see there for what each function promises."""

    default: Callable[[Object], None] = nothing
    prepare_create: Callable[[Object], None] = nothing
    prepare_update: Callable[[Object, Object], None] = no_change
    validate_create: Callable[[Object], Errors] = no_errors
    validate_update: Callable[[Object, Object], Errors] = no_update_errors
    validate_status: Callable[[Object, Object], Errors] = no_update_errors
    warnings: Callable[[Object], Sequence[str]] = field(default=lambda _: ())
    check_name: Callable[[str], Sequence[str]] = dns1123_subdomain
    counts_generation: bool = True
    status_at_creation: bool = False
    selectable_fields: Mapping[str, Callable[[Object], str]] = field(default_factory=dict)
    scale: Scale | None = None
    convert: Callable[[Object, str], Object] | None = None
    grace_seconds: Callable[[Object], int | None] = field(default=lambda _: None)
    storage_version: str = ""
    storage_group: str | None = None
    compiles: bool = False


# A type whose versions differ has an entry per version; it goes before one for the whole type.
RuleTable = dict[GroupResource | GroupVersionResource, Rules]


def member(obj: Mapping[str, Any], *path: str) -> Any:
    """Return what lies at *path*, None where the way ends before."""
    node: Any = obj
    for name in path:
        if not node:
            return None
        node = node.get(name)
    return node


def text_at(*path: str) -> Callable[[Object], str]:
    """Return a reader for field selectors: booleans and numbers as text, absent as empty."""

    def read(obj: Object) -> str:
        value = member(obj, *path)
        if value is None:
            return ""
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value)

    return read


def number_at(*path: str) -> Callable[[Object], str]:
    """Return a reader for numeric fields, which are zero when absent."""
    return lambda obj: str(member(obj, *path) or 0)


def truth_at(*path: str) -> Callable[[Object], str]:
    """Return a reader for boolean fields, which are false when absent."""
    return lambda obj: "true" if member(obj, *path) else "false"


def child(obj: Object, name: str) -> Object:
    """Return the object at *name*, made where there is none."""
    found: Object | None = obj.get(name)
    if found is None:
        found = obj[name] = {}
    return found


def absent(obj: Object, name: str, value: object) -> None:
    """Set *name* where it is missing (null counts as missing)."""
    if obj.get(name) is None:
        obj[name] = value


def fresh_status(obj: Object) -> None:
    """Drop what a client claims of the status of an object it creates."""
    obj["status"] = {}


def immutable(new: object, old: object, path: str) -> Errors:
    """Refuse a change; empty, null and absent are the same."""
    if new == old or (not new and not old and new is not False and old is not False):
        return []
    return [FieldError.invalid(path, new, IMMUTABLE)]


def non_negative(value: int | None, path: str) -> Errors:
    """Refuse a number below zero; absent is fine."""
    return [FieldError.invalid(path, value, NEGATIVE)] if value is not None and value < 0 else []


def each(path: str, value: object, wrong: Sequence[str]) -> Errors:
    """Return one refusal of *value* per complaint."""
    return [FieldError.invalid(path, value, text) for text in wrong]


def unsupported(path: str, value: object, supported: Sequence[str]) -> FieldError:
    """Refuse a value outside a closed set, naming the set in the order Kubernetes does."""
    listed = ", ".join(f'"{item}"' for item in supported)
    text = f"Unsupported value: {shown(value)}: supported values: {listed}"
    return FieldError("FieldValueNotSupported", path, text)


def one_of(value: str | None, path: str, supported: Sequence[str]) -> Errors:
    """Require one of a closed set of values."""
    if value in supported:
        return []
    if not value:
        return [FieldError.required(path)]
    return [unsupported(path, value, supported)]
