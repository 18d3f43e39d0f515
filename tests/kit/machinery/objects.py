"""Objects to judge, and the short way to have them judged as the REST layer does."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from skerry.api.objects import Object
from skerry.logic.machinery.builtin import builtin_resources, validate_metadata
from skerry.logic.machinery.resource import Resource

RESOURCES: dict[tuple[str, str, str], Resource] = {
    (r.info.group, r.info.version, r.info.resource): r for r in builtin_resources()
}


def resource(name: str, group: str = "", version: str = "v1") -> Resource:
    return RESOURCES[group, version, name]


def merged(base: Object, change: Object | None) -> Object:
    """Return *base* with *change* laid over it; None removes."""
    result = deepcopy(base)
    for key, value in (change or {}).items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        else:
            result[key] = deepcopy(value)
    return result


def named(kind: Resource, **fields: Any) -> Object:
    metadata: Object = {"name": "x"}
    if kind.info.namespaced:
        metadata["namespace"] = "default"
    return {
        "apiVersion": kind.info.api_version,
        "kind": kind.info.kind,
        "metadata": metadata,
        **deepcopy(fields),
    }


def created(kind: Resource, obj: Object) -> Object:
    """Return *obj* defaulted and prepared; it must be valid."""
    new, errors = judged(kind, obj)
    assert errors == []
    return new


def judged(kind: Resource, obj: Object) -> tuple[Object, list[str]]:
    """Return the prepared object and everything that is wrong with it."""
    new = deepcopy(obj)
    new["metadata"].setdefault("uid", "u-1")
    kind.default(new)
    kind.prepare_create(new)
    errors = validate_metadata(new, kind.info.namespaced, kind.check_name)
    errors += kind.validate_create(new)
    return new, [str(error) for error in errors]


def errors_of(kind: Resource, obj: Object) -> list[str]:
    return judged(kind, obj)[1]


def update_errors(kind: Resource, old: Object, change: Object) -> list[str]:
    """Return what is wrong with laying *change* over a created object."""
    before = created(kind, old)
    before["metadata"]["resourceVersion"] = "1"
    after = merged(before, change)
    kind.default(after)
    kind.prepare_update(after, before)
    errors = validate_metadata(after, kind.info.namespaced, kind.check_name, before)
    return [str(error) for error in errors + kind.validate_update(after, before)]


POD_SPEC: Object = {"containers": [{"name": "c", "image": "nginx:1.25"}]}
TEMPLATE: Object = {"metadata": {"labels": {"app": "x"}}, "spec": POD_SPEC}
SELECTOR: Object = {"matchLabels": {"app": "x"}}


def pod(spec: Object | None = None, **fields: Any) -> Object:
    return named(resource("pods"), spec=merged(POD_SPEC, spec), **fields)


def container(**fields: Any) -> Object:
    return {"containers": [{"name": "c", "image": "nginx:1.25", **fields}]}


def workload(name: str, spec: Object | None = None, group: str = "apps") -> Object:
    base = {"selector": SELECTOR, "template": TEMPLATE}
    return named(resource(name, group), spec=merged(base, spec))
