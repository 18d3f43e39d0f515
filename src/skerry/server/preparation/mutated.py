"""What a webhook sees of a write before it is complete, and what its patch may make of it.

A mutating webhook is asked before the server gives a new object what only the server may give, so
it sees no uid and no generated name. Whatever it answers is brought into form as if the client had
sent it: unknown fields are dropped, defaults filled in, and what a client may not set is set back.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from skerry.api.errors import ApiError, Denied, InternalError
from skerry.api.objects import Object
from skerry.api.schema import Schema
from skerry.logic.machinery.apply.managed import decoded
from skerry.logic.machinery.builtin import definitions
from skerry.logic.machinery.patch import apply_json_patch
from skerry.logic.machinery.patch.values import json_kind
from skerry.logic.machinery.schema import prune, type_errors
from skerry.server.preparation import prepare
from skerry.server.preparation.named_version import named_version
from skerry.server.preparation.parts import part_of
from skerry.server.preparation.scaling import put
from skerry.server.request.call import Call

_SCHEME: Final = 'in scheme "pkg/runtime/scheme.go:100"'
_MANAGED: Final = (
    ".metadata.managedFields was in an invalid state after admission; this could be caused by an "
    "outdated mutating admission controller; please fix your requests: "
)


_ASKED: Final = {
    "Binding": "io.k8s.api.core.v1.Binding",
    "Eviction": "io.k8s.api.policy.v1.Eviction",
}
_TEXT: Final = {"type": "string"}
_STREAMS: Final = {
    "container": _TEXT,
    **{name: {"type": "boolean"} for name in ("stdin", "stdout", "stderr", "tty")},
}


def _options(kind: str, **properties: object) -> Schema:
    named = {"kind": _TEXT, "apiVersion": _TEXT, **properties}
    return Schema({"type": "object", "properties": named}, name=f"v1.{kind}")


# Options of connections, which no OpenAPI document has.
_OPTIONS: Final = {
    schema.name.removeprefix("v1."): schema
    for schema in (
        _options("PodExecOptions", **_STREAMS, command={"type": "array", "items": _TEXT}),
        _options("PodAttachOptions", **_STREAMS),
        _options("PodPortForwardOptions", ports={"type": "array", "items": {"type": "integer"}}),
        _options("PodProxyOptions", path=_TEXT),
        _options("NodeProxyOptions", path=_TEXT),
        _options("ServiceProxyOptions", path=_TEXT),
    )
}


def unborn(call: Call, obj: Object) -> Object:
    """Return *obj*, about to be created, as it was before the server gave it a life of its own."""
    metadata = {
        name: value for name, value in obj["metadata"].items() if name not in ("uid", "generation")
    }
    metadata["creationTimestamp"] = None
    if metadata.get("generateName") and not call.info.name:
        metadata.pop("name", None)
    return {**obj, "metadata": metadata}


def patched(obj: Object, patch: bytes) -> Object | None:
    """Return *obj* as a JSON patch changes it; None when the patch is empty."""
    try:
        operations: Any = orjson.loads(patch)
    except (orjson.JSONDecodeError, RecursionError) as error:
        raise InternalError.of(f"invalid character in patch: {error}") from error
    if not isinstance(operations, list):
        kind = json_kind(operations)
        why = f"json: cannot unmarshal {kind} into Go value of type jsonpatch.Patch"
        raise InternalError.of(why)
    if not operations:
        return None
    # A copy: of the original, parts are shared with what is kept.
    copy: Object = orjson.loads(orjson.dumps(obj))
    try:
        result: Any = apply_json_patch(copy, operations)
    except ApiError as error:
        raise InternalError.of(str(error.__cause__ or error)) from error
    if not isinstance(result, dict):
        raise InternalError.of(f"couldn't get version/kind; json: {json_kind(result)} found")
    return result


def requested(before: Object, new: Object) -> Object:
    """Return what a webhook made of a request, in the form that the request goes on with."""
    kind, version = before["kind"], before["apiVersion"]
    if (new.get("kind"), new.get("apiVersion")) != (kind, version):
        found = f"({new.get('apiVersion')}.{new.get('kind')})"
        raise Denied(500, "", f"converting {found} to (core.{kind}): unknown conversion", {})
    schema = _OPTIONS.get(kind) or definitions().get(_ASKED[kind])
    prune(schema, new)
    for problem in type_errors(schema, new, kind, version):
        raise InternalError.of(problem.partition(f"cannot be handled as a {kind}: ")[2] or problem)
    return {**new, "metadata": new.get("metadata") or {}}


def with_scale(call: Call, obj: Object, scale: Object) -> Object:
    """Return *obj* with the replicas that *scale* wants."""
    replicas = (scale.get("spec") or {}).get("replicas") or 0
    if call.resource.scale is None or type(replicas) is not int:
        raise InternalError.of("json: cannot unmarshal spec.replicas into Go value of type int32")
    changed: Object = orjson.loads(orjson.dumps(obj))
    put(changed, call.resource.scale.spec_replicas, replicas)
    return changed


def conformed(call: Call, before: Object, new: Object, old: Object | None, part: str) -> Object:
    """Return *new*, which a webhook made of *before*, in the form that a write goes on with.

    *old* is the stored object of an update, *part* the subresource that is written.
    """
    _require_type(call, new)
    _keep_managed_fields(call, before, new)
    call.resource.default(new)
    if old is None:
        return _new(call, before, new)
    prepare.address(call, new, creating=False)
    written = part_of(call.resource, part)
    if written is not None:
        new = written.narrow(new, old)
    new["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"]
    prepare.carry_over(call, new, old, written)
    return new


def _new(call: Call, before: Object, new: Object) -> Object:
    metadata, born = new["metadata"], before["metadata"]
    if named_version(new):
        raise Denied(500, "", "resourceVersion should not be set on objects to be created", {})
    if metadata.get("creationTimestamp") is None:
        metadata.pop("creationTimestamp", None)
    prepare.address(call, new, creating=True)
    if not metadata.get("name") and born.get("name"):
        metadata["name"] = born["name"]
    created = born["creationTimestamp"]
    prepare.begin_life(call.resource, new, created, lambda: str(born["uid"]))
    return new


def _require_type(call: Call, new: Object) -> None:
    """Refuse what is of another type, or has members of wrong types; drop what is not known."""
    resource = call.resource
    info = resource.info
    kind, version = new.get("kind"), new.get("apiVersion")
    if kind != info.kind or version != info.api_version:
        found = f'"{kind}" is registered for version "{version}"'
        raise InternalError.of(f"no kind {found} {_SCHEME}")
    if not isinstance(new.get("metadata"), dict):
        raise InternalError.of(f"json: cannot unmarshal {json_kind(new.get('metadata'))} into Go")
    if resource.prunes:
        prune(resource.schema, new)
    name = "ObjectMeta" if resource.custom else info.kind
    if resource.custom:
        _, problems = prepare.read_metadata(new["metadata"])
    else:
        problems = type_errors(resource.schema, new, name, info.version)
    for problem in problems:
        raise InternalError.of(problem.partition(f"cannot be handled as a {name}: ")[2] or problem)


def _keep_managed_fields(call: Call, before: Object, new: Object) -> None:
    """Set back managedFields that make no sense; nobody but the server may write them wrongly."""
    managed, known = (each["metadata"].get("managedFields") for each in (new, before))
    if not managed or managed == known:
        return
    try:
        decoded(managed, trusted=False)
    except ValueError as error:
        text = f"{_MANAGED}{error}"
        if text not in call.warnings:
            call.warnings.append(text)
        new["metadata"]["managedFields"] = known
