"""What the scale subresource reads and writes: replicas of anything, in one form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skerry.api.errors import BadRequest, Conflict, FieldError, Invalid
from skerry.api.objects import Object
from skerry.logic.machinery.patch import apply_json_patch, apply_merge_patch
from skerry.logic.machinery.resource import Scale
from skerry.logic.machinery.selectors import Selector
from skerry.server.preparation import prepare
from skerry.server.preparation.named_version import named_version
from skerry.server.request.body import OPTIONS_LIMITS, as_object, media_type, parse_json
from skerry.server.request.call import Call, member
from skerry.server.request.media import JSON_PATCH


def wanted_replicas(call: Call) -> Callable[[Object], int]:
    """Return how the request turns the present scale into a number of replicas."""
    request = call.request
    media = media_type(request.headers.get("content-type", ""))
    if call.info.verb == "update":
        sent = prepare.sent_as(request, prepare.SCALE)
        return lambda current: _replicas(call, _same_version(call, sent, current))
    document = parse_json(request.body, OPTIONS_LIMITS)
    if media == JSON_PATCH:
        return lambda current: _replicas(call, apply_json_patch(current, document))
    patch = as_object(document)
    return lambda current: _replicas(call, as_object(apply_merge_patch(current, patch)))


def _same_version(call: Call, sent: Object, current: Object) -> Object:
    wanted = named_version(sent)
    if wanted and wanted != current["metadata"]["resourceVersion"]:
        raise Conflict.stale(call.group, call.resource.info.resource, call.info.name)
    return sent


def _replicas(call: Call, scale: Object) -> int:
    replicas = member(scale, "spec", "replicas")
    if replicas is None:
        replicas = 0
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        raise BadRequest(f"spec.replicas: {replicas!r}: want a whole number")
    # Those of custom kinds are judged with the object.
    if replicas < 0 and not call.resource.custom:
        detail = "must be greater than or equal to 0"
        error = FieldError.invalid("spec.replicas", replicas, detail)
        raise Invalid.of("autoscaling", "Scale", call.info.name, [error])
    return replicas


def scale_of(obj: Object, paths: Scale) -> Object:
    """Return the Scale that shows *obj*."""
    metadata = obj["metadata"]
    names = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    selector = member(obj, *paths.label_selector.split(".")) if paths.label_selector else None
    status: dict[str, Any] = {"replicas": member(obj, *paths.status_replicas.split(".")) or 0}
    if selector:
        text = (
            selector if isinstance(selector, str) else str(Selector.from_label_selector(selector))
        )
        status["selector"] = text
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in names if name in metadata},
        "spec": {"replicas": member(obj, *paths.spec_replicas.split(".")) or 0},
        "status": status,
    }


def put(obj: Object, path: str, value: Any) -> None:
    """Set what lies at the dotted *path* below *obj*, making members on the way."""
    *parents, last = path.split(".")
    node = obj
    for name in parents:
        node = node.setdefault(name, {})
    node[last] = value
