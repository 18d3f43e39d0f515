"""Events: one stored object seen through ``v1`` and ``events.k8s.io/v1``.

The core form is stored. The newer API renames six fields and is stricter about what it takes;
the old one takes nearly anything, because old clients send nearly anything. All rules work on the
core form and accept either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from skerry.api.errors import FieldError
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.logic.machinery.builtin.rules import (
    Errors,
    Rules,
    RuleTable,
    absent,
    each,
    immutable,
    member,
)
from skerry.logic.machinery.names import dns1123_subdomain, path_segment, qualified_name

GROUP: Final = "events.k8s.io"
NEW_API: Final = "events.k8s.io/v1"
CORE_API: Final = "v1"
# What ``convert`` of the newer type takes as the stored version: ``v1`` would be ambiguous,
# since both groups are at ``v1``.
STORED_VERSION: Final = "core/v1"

# Core name, name in events.k8s.io/v1.
_RENAMED = (
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
)
_TO_CORE = {new: core for core, new in _RENAMED}
_TO_NEW = dict(_RENAMED)
# The longest texts of the newer API.
_MAX_LENGTH = {"reportingInstance": 128, "action": 128, "reason": 128, "message": 1024}


def convert(obj: Object, version: str) -> Object:
    """Return *obj* in the core form for ``core/v1``, in that of events.k8s.io for ``v1``."""
    return to_core(obj) if version == STORED_VERSION else to_events(obj)


def to_core(obj: Object) -> Object:
    """Return the event as ``v1`` shows it."""
    return obj if obj.get("apiVersion") == CORE_API else _renamed(obj, _TO_CORE, CORE_API)


def to_events(obj: Object) -> Object:
    """Return the event as ``events.k8s.io/v1`` shows it."""
    return obj if obj.get("apiVersion") == NEW_API else _renamed(obj, _TO_NEW, NEW_API)


def _renamed(obj: Object, names: Mapping[str, str], api_version: str) -> Object:
    converted = {names.get(name, name): value for name, value in obj.items()}
    converted["apiVersion"] = api_version
    return converted


def _default(obj: Object) -> None:
    """Fill in what Go writes of an event even where it is empty."""
    names = _TO_NEW if obj.get("apiVersion") == NEW_API else {}
    for name, value in (("reportingComponent", ""), ("reportingInstance", ""), ("source", {})):
        absent(obj, names.get(name, name), dict(value) if value == {} else value)


def _validate_create(obj: Object) -> Errors:
    return _legacy_errors(to_core(obj), "reportingComponent")


def _validate_strict_create(obj: Object) -> Errors:
    event = to_core(obj)
    errors = _legacy_errors(event, "reportingController")
    errors += _series_errors(event)
    if not event.get("eventTime"):
        errors.append(FieldError.required("eventTime"))
    if event.get("type") not in ("Normal", "Warning"):
        text = f"has invalid value: {event.get('type') or ''}"
        errors.append(FieldError.invalid("type", "", text))
    for field in ("firstTimestamp", "lastTimestamp", "count"):
        if event.get(field):
            errors.append(FieldError.invalid(field, "", "needs to be unset"))
    source = event.get("source") or {}
    if source.get("component") or source.get("host"):
        errors.append(FieldError.invalid("source", "", "needs to be unset"))
    return errors


def _series_errors(event: Object) -> Errors:
    series = event.get("series")
    if series is None:
        return []
    errors: Errors = []
    if (series.get("count") or 0) < 2:
        errors.append(FieldError.invalid("series.count", "", "should be at least 2"))
    if not series.get("lastObservedTime"):
        errors.append(FieldError.required("series.lastObservedTime"))
    return errors


def _legacy_errors(event: Object, component_field: str) -> Errors:
    """Return what even the old API refuses; events with a time are new ones and say more."""
    namespace = member(event, "metadata", "namespace") or ""
    involved = member(event, "involvedObject", "namespace") or ""
    if event.get("eventTime"):
        agreed = bool(involved) or namespace in ("default", "kube-system")
    else:
        agreed = namespace == involved if involved else namespace in ("", "default")
    errors: Errors = []
    if not agreed:
        text = "does not match event.namespace"
        errors.append(FieldError.invalid("involvedObject.namespace", involved, text))
    if event.get("eventTime"):
        errors += _described_errors(event, component_field)
    return errors + each("namespace", namespace, dns1123_subdomain(namespace))


def _described_errors(event: Object, component_field: str) -> Errors:
    errors: Errors = []
    component = event.get("reportingComponent") or ""
    if not component:
        errors.append(FieldError.required(component_field))
    errors += each(component_field, component, qualified_name(component))
    for field, max_length in _MAX_LENGTH.items():
        text = event.get(field) or ""
        if not text and field != "message":
            errors.append(FieldError.required(field))
        if len(text.encode("utf-8", "surrogatepass")) > max_length:
            detail = f"can have at most {max_length} characters"
            errors.append(FieldError.invalid(field, "", detail))
    return errors


_UNCHANGING = (
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    "type",
    "eventTime",
    "action",
    "related",
    "reportingComponent",
    "reportingInstance",
)


def _validate_strict_update(obj: Object, old: Object) -> Errors:
    """Let a series go on; everything else about an event has happened."""
    event, former = to_core(obj), to_core(old)
    errors = _legacy_errors(event, "reportingController")
    if event.get("series") != former.get("series"):
        errors += _series_errors(event)
    for field in _UNCHANGING:
        shown = "reportingController" if field == "reportingComponent" else field
        errors += immutable(event.get(field), former.get(field), shown)
    return errors


def _read(*path: str) -> Callable[[Object], str]:
    def read(obj: Object) -> str:
        value: Any = member(to_core(obj), *path)
        return "" if value is None else str(value)

    return read


def _source(obj: Object) -> str:
    event = to_core(obj)
    return str(member(event, "source", "component") or event.get("reportingComponent") or "")


_REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_CORE_FIELDS: dict[str, Callable[[Object], str]] = {
    **{f"involvedObject.{name}": _read("involvedObject", name) for name in _REFERENCE},
    "reason": _read("reason"),
    "reportingComponent": _read("reportingComponent"),
    "source": _source,
    "type": _read("type"),
}
_NEW_FIELDS: dict[str, Callable[[Object], str]] = {
    **{f"regarding.{name}": _read("involvedObject", name) for name in _REFERENCE},
    "reason": _read("reason"),
    "reportingController": _read("reportingComponent"),
    "type": _read("type"),
}

RULES: RuleTable = {
    GroupResource("", "events"): Rules(
        default=_default,
        validate_create=_validate_create,
        validate_update=lambda new, _: _validate_create(new),
        # Names of old events are timestamps glued to names: anything a path can hold.
        check_name=path_segment,
        counts_generation=False,
        selectable_fields=_CORE_FIELDS,
    ),
    GroupResource(GROUP, "events"): Rules(
        default=_default,
        validate_create=_validate_strict_create,
        validate_update=_validate_strict_update,
        counts_generation=False,
        selectable_fields=_NEW_FIELDS,
        convert=convert,
        storage_version=STORED_VERSION,
        storage_group="",
    ),
}
