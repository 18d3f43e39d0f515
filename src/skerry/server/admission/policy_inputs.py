"""What the expressions of a policy see of a write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

import orjson

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.kit.text import whole_number
from skerry.logic.machinery.admission.evaluation import Inputs
from skerry.logic.machinery.admission.matching import NAMESPACES
from skerry.server.admission.operation import Operation
from skerry.server.preparation import prepare
from skerry.server.preparation.scaling import scale_of
from skerry.server.request.call import Call
from skerry.server.request.versions import Versions


def inputs_of(
    operation: Operation, resource: GroupVersionResource, namespace: Object | None
) -> Inputs:
    """Return what expressions see of *operation* when its type is called *resource*."""
    obj, old = objects_of(operation, resource)
    return Inputs(obj, old, _request(operation, resource, operation.call), namespace)


def objects_of(
    operation: Operation, resource: GroupVersionResource
) -> tuple[Object | None, Object | None]:
    """Return the object and what it was before, where the type is called *resource*."""
    shown = _shown_at(operation, resource)
    if operation.verb == "DELETE":
        return None, shown(operation.obj)
    old = operation.old
    return shown(operation.obj), None if old is None else shown(old)


def _shown_at(operation: Operation, resource: GroupVersionResource) -> Callable[[Object], Object]:
    """Return what brings an object to the form that a policy for *resource* looks at."""
    call = operation.call
    if operation.verb == "CONNECT":
        # Options of a connection are no object.
        return lambda obj: {name: value for name, value in obj.items() if name != "metadata"}
    if operation.subresource == "scale" and call.resource.scale is not None:
        paths = call.resource.scale
        return lambda obj: scale_of(obj, paths)
    if resource.version == call.resource.info.version:
        return lambda obj: obj
    versions = Versions(call)
    api_version = str(resource.group_version)
    return lambda obj: versions.converted(orjson.loads(orjson.dumps(obj)), api_version) or obj


def _request(operation: Operation, resource: GroupVersionResource, call: Call) -> Mapping[str, Any]:
    info, user = call.resource.info, call.user.seen_from(call.info.cluster)
    kind = info.gvk
    for subresource in info.subresources:
        if subresource.name == operation.subresource:
            kind = subresource.kind
    matched = kind if operation.subresource else kind._replace(version=resource.version)
    who: dict[str, Any] = {"username": user.name, "uid": user.uid, "groups": list(user.groups)}
    who["extra"] = {key: list(values) for key, values in user.extra.items()}
    request: dict[str, Any] = {
        "kind": matched._asdict(),
        "resource": resource._asdict(),
        "requestKind": kind._asdict(),
        "requestResource": info.gvr._asdict(),
        "operation": operation.verb,
        "userInfo": {key: value for key, value in who.items() if value},
        "dryRun": operation.dry_run,
        "options": None if operation.verb == "CONNECT" else _options(operation),
    }
    below = operation.subresource
    named = {
        "name": operation.name,
        # A Namespace is in itself.
        "namespace": call.info.name if operation.type == NAMESPACES else call.namespace,
        "subResource": below,
        "requestSubResource": below,
    }
    request.update((key, value) for key, value in named.items() if value)
    return request


_OPTION_KINDS: Final = {
    "CREATE": "CreateOptions",
    "UPDATE": "UpdateOptions",
    "DELETE": "DeleteOptions",
}
_DELETE_OPTIONS: Final = (
    *("gracePeriodSeconds", "preconditions", "orphanDependents", "propagationPolicy"),
)


def _options(operation: Operation) -> Object:
    """Return the options as their verb has them; those of a patch are an update's or a create's."""
    call = operation.call
    options: Object = {"kind": _OPTION_KINDS[operation.verb], "apiVersion": "meta.k8s.io/v1"}
    if operation.dry_run:
        options["dryRun"] = ["All"]
    query = dict(parse_qsl(call.request.query_string))
    if operation.verb == "DELETE":
        sent: Object = {}
        if call.request.body and call.info.verb in ("delete", "deletecollection"):
            sent = prepare.sent_as(call.request, prepare.DELETE_OPTIONS)
        options.update((name, sent[name]) for name in _DELETE_OPTIONS if name in sent)
        if query.get("propagationPolicy"):
            options["propagationPolicy"] = query["propagationPolicy"]
        seconds = whole_number(query.get("gracePeriodSeconds", ""))
        if seconds is not None:
            options["gracePeriodSeconds"] = seconds
    for name in ("fieldManager", "fieldValidation"):
        if query.get(name):
            options[name] = query[name]
    return options
