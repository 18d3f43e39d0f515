"""From what a client sent to an object that may be stored.

The order is Kubernetes': recognise, refuse or drop unknown fields, check types, default, prepare
metadata and kind, let admission act, validate. Everything here is about one object; reading,
committing and retrying are elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from skerry.api.errors import BadRequest, Conflict, FieldError, Invalid, TypedPatchError
from skerry.api.kinds import GroupVersion, GroupVersionKind, ResourceInfo
from skerry.api.objects import Object
from skerry.logic.machinery.builtin import definitions
from skerry.logic.machinery.builtin.metadata import (
    takes_any_finalizer,
    unqualified_finalizer_errors,
    validate_metadata,
)
from skerry.logic.machinery.builtin.nulls import read_nulls
from skerry.logic.machinery.names import generated_name
from skerry.logic.machinery.resource import Resource
from skerry.logic.machinery.schema import declared_path, duplicate_keys, prune, type_errors
from skerry.server.http.message import Request
from skerry.server.preparation.named_version import named_version
from skerry.server.preparation.parts import Part
from skerry.server.request.body import decode_options
from skerry.server.request.call import Call
from skerry.server.request.options import WriteOptions

_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
# Kinds that are sent but never stored.
DELETE_OPTIONS = GroupVersionKind("", "v1", "DeleteOptions")
BINDING = GroupVersionKind("", "v1", "Binding")
EVICTION = GroupVersionKind("policy", "v1", "Eviction")
SCALE = GroupVersionKind("autoscaling", "v1", "Scale")
TOKEN_REQUEST = GroupVersionKind("authentication.k8s.io", "v1", "TokenRequest")
_DEFINITIONS = {
    DELETE_OPTIONS: "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    BINDING: "io.k8s.api.core.v1.Binding",
    EVICTION: "io.k8s.api.policy.v1.Eviction",
    SCALE: "io.k8s.api.autoscaling.v1.Scale",
    TOKEN_REQUEST: "io.k8s.api.authentication.v1.TokenRequest",
}


_TEXT = (str, type(None))

# What a rule may raise that takes an object to be of the form its schema asks for.
TRIPPED = (AttributeError, IndexError, KeyError, TypeError, ValueError)


def recognise(call: Call, obj: Object, *, applied: bool = False) -> None:
    """Check that *obj* is of the type the URL names; what it leaves unsaid, the URL says."""
    info = call.resource.info
    api_version, kind = obj.get("apiVersion"), obj.get("kind")
    if call.resource.custom and not kind:
        raise BadRequest("Object 'Kind' is missing in the request body")
    if not isinstance(api_version, _TEXT) or not isinstance(kind, _TEXT):
        raise BadRequest("apiVersion and kind: want strings")
    if kind and kind != info.kind:
        if call.resource.custom and api_version == info.api_version and not applied:
            name = call.info.name or str((obj.get("metadata") or {}).get("name") or "")
            wrong = FieldError.invalid("kind", kind, f"must be {info.kind}")
            raise Invalid.of(call.group, kind, name, [wrong])
        version = GroupVersion.parse(api_version or "").version or info.version
        raise BadRequest(f'{kind} in version "{version}" cannot be handled as a {info.kind}')
    if api_version and api_version != info.api_version:
        raise BadRequest(
            f"the API version in the data ({api_version}) does not match the expected API "
            f"version ({info.api_version})"
        )
    obj["apiVersion"], obj["kind"] = info.api_version, info.kind
    if obj.get("metadata") is None:
        obj["metadata"] = {}
    if not isinstance(obj["metadata"], dict):
        raise BadRequest(f'{info.kind} in version "{info.version}": metadata: want an object')


def repeated_fields(body: bytes, obj: Object, options: WriteOptions) -> Sequence[str]:
    """Return the fields that a body of JSON, decoded to *obj*, gives twice, where anybody wants to
    know."""
    return duplicate_keys(body, obj) if options.field_validation != "Ignore" else ()


def conform(
    call: Call,
    obj: Object,
    options: WriteOptions,
    repeated: Sequence[str] = (),
    *,
    lines: Sequence[str] = (),
    applied: bool = False,
) -> None:
    """Drop what the schema does not know, as loudly as asked, and refuse wrong types.

    *repeated* are fields that were given twice, *lines* what was found of them in YAML. What is
    *applied* must be known whole, however loudly was asked: nobody could own a field that is not
    there.
    """
    resource = call.resource
    unknown = prune(resource.schema, obj) if resource.prunes else []
    if resource.custom:
        unfamiliar, problems = read_metadata(obj["metadata"])
        unknown += [f"metadata.{path}" for path in unfamiliar]
    else:
        problems = type_errors(resource.schema, obj, resource.info.kind, resource.info.version)
    if problems:
        raise BadRequest(problems[0])
    if applied and unknown:
        raise _not_declared(call, obj, unknown)
    if options.field_validation == "Ignore":
        return
    if not unknown and not repeated and not lines:
        return
    if options.field_validation == "Strict" and lines and applied:
        why = "error strict decoding YAML: error converting YAML to JSON: "
        raise BadRequest(f"{why}{_unmarshal_errors(lines)}")
    strict = options.field_validation == "Strict"
    complaints = [_unmarshal_errors(lines)] if strict and lines else list(lines)
    complaints += [f'unknown field "{path}"' for path in unknown]
    complaints += [f'duplicate field "{path}"' for path in repeated]
    if strict:
        why = f"strict decoding error: {', '.join(complaints)}"
        raise BadRequest(f"{cannot_be_handled(resource.info)}{why}")
    call.warnings.extend(complaints)


def cannot_be_handled(info: ResourceInfo) -> str:
    """Return how Kubernetes begins what its decoder says of a body."""
    return f'{info.kind} in version "{info.version}" cannot be handled as a {info.kind}: '


def read_metadata(metadata: Object) -> tuple[Sequence[str], Sequence[str]]:
    """Read the metadata of a custom object as ObjectMeta, in place.

    Definitions do not describe it. Returns the fields that were dropped, and wrong types.
    """
    schema = definitions().get(_OBJECT_META)
    unknown = prune(schema, metadata)
    problems = type_errors(schema, metadata, "ObjectMeta", "v1")
    read_nulls(metadata, schema)
    return unknown, problems


def _unmarshal_errors(lines: Sequence[str]) -> str:
    return "\n  ".join(("yaml: unmarshal errors:", *lines))


def _not_declared(call: Call, obj: Object, unknown: Sequence[str]) -> TypedPatchError:
    """Return the refusal of fields that the schema does not have; Kubernetes calls it internal."""
    info, metadata = call.resource.info, obj["metadata"]
    name = metadata.get("name") or call.info.name
    where = f"{call.namespace}/{name}" if call.namespace else f"/{name}"
    paths = [declared_path(call.resource.schema, obj, path) for path in unknown]
    found = [f"{path}: field not declared in schema" for path in paths]
    text = found[0] if len(found) == 1 else "\n  ".join(("errors:", *found))
    return TypedPatchError(
        f"failed to create typed patch object ({where}; {info.api_version}, Kind={info.kind}): "
        f"{text}"
    )


def sent_as(request: Request, kind: GroupVersionKind) -> Object:
    """Return the body of *request*, which must be a *kind* that is not stored itself.

    What the schema does not know is dropped, as decoding in Go would.
    """
    obj = decode_options(request.body, request.headers.get("content-type", ""), kind.kind)
    named = obj.get("kind") or kind.kind
    if named != kind.kind:
        raise BadRequest(f'{named} in version "{kind.version}" cannot be handled as a {kind.kind}')
    require_type(obj, kind)
    return obj


def require_type(obj: Object, kind: GroupVersionKind) -> None:
    """Refuse members of *obj* that do not have the type they have in *kind*."""
    schema = definitions().get(_DEFINITIONS[kind])
    prune(schema, obj)
    if problems := type_errors(schema, obj, kind.kind, kind.version):
        raise BadRequest(problems[0])


def address(call: Call, obj: Object, *, creating: bool) -> None:
    """Make the object's name and namespace agree with the URL's."""
    metadata = obj["metadata"]
    namespace = metadata.get("namespace") or ""
    if call.resource.info.namespaced:
        if namespace and namespace != call.namespace:
            raise BadRequest(
                "the namespace of the provided object does not match the namespace sent on the "
                "request"
                if creating
                else f"the namespace of the object ({namespace}) does not match the namespace on "
                f"the request ({call.namespace})"
            )
        metadata["namespace"] = call.namespace
    else:
        metadata.pop("namespace", None)
    name = metadata.get("name") or ""
    if not creating and name != call.info.name:
        if name:
            raise misnamed(call, name)
        metadata["name"] = call.info.name


def misnamed(call: Call, name: str) -> BadRequest:
    """Return the refusal of an object that is called otherwise than the URL says."""
    return BadRequest(
        f"the name of the object ({name}) does not match the name on the URL ({call.info.name})"
    )


def begin_life(resource: Resource, obj: Object, now: str, uid: Callable[[], str]) -> None:
    """Give a new object the metadata only the server may set."""
    metadata = obj["metadata"]
    if named_version(obj):
        raise BadRequest("resourceVersion should not be set on objects to be created")
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion"):
        metadata.pop(name, None)
    metadata["uid"] = uid()
    metadata["creationTimestamp"] = now
    metadata.pop("generation", None)
    if resource.counts_generation:
        metadata["generation"] = 1
    if resource.has_status and not resource.status_at_creation:
        obj.pop("status", None)
    resource.prepare_create(obj)
    drop_empty(metadata)


def choose_name(obj: Object, suffix: Callable[[], str]) -> None:
    """Fill in a generated name where none is given; *suffix* is asked only then."""
    metadata = obj["metadata"]
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = generated_name(metadata["generateName"], suffix())


def carry_over(call: Call, obj: Object, old: Object, part: Part | None) -> None:
    """Keep in an update what an update may not touch, and count the generation.

    With a *part*, nothing else of the object differs any more.
    """
    resource, metadata, before = call.resource, obj["metadata"], old["metadata"]
    if (uid := metadata.get("uid")) and uid != before["uid"]:
        if call.request.method == "PATCH":
            wrong = FieldError.invalid("metadata.uid", uid, "field is immutable")
            raise Invalid.of(call.group, call.kind, before["name"], [wrong])
        raise Conflict.of(
            call.group,
            resource.info.resource,
            before["name"],
            f"Precondition failed: UID in precondition: {uid}, UID in object meta: {before['uid']}",
        )
    for name in (
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "generateName",
    ):
        _copy(name, before, metadata)
    metadata.pop("selfLink", None)
    if not named_version(obj):
        # Whoever names no version means whichever is live.
        metadata["resourceVersion"] = before["resourceVersion"]
    if part is None:
        if resource.has_status:
            _copy("status", old, obj)
        resource.prepare_update(obj, old)
    drop_empty(metadata)
    if resource.counts_generation and _generation_changed(resource, obj, old):
        metadata["generation"] = before.get("generation", 0) + 1


def _generation_changed(resource: Resource, obj: Object, old: Object) -> bool:
    ignored = {"metadata", "apiVersion", "kind"}
    if resource.has_status:
        ignored.add("status")
    names = (obj.keys() | old.keys()) - ignored
    return any(obj.get(name) != old.get(name) for name in names)


def _copy(name: str, source: dict[str, Any], target: dict[str, Any]) -> None:
    if name in source:
        target[name] = source[name]
    else:
        target.pop(name, None)


def drop_empty(metadata: dict[str, Any]) -> None:
    """Remove empty members, as Go's omitempty does, so that equal objects have equal bytes."""
    for name in [n for n, v in metadata.items() if not v and (v is None or v in ("", {}, []))]:
        del metadata[name]


def refuse_invalid(
    call: Call, obj: Object, old: Object | None = None, part: Part | None = None
) -> None:
    """Raise with everything that is wrong with *obj*."""
    resource = call.resource
    errors: list[FieldError] = validate_metadata(
        obj, resource.info.namespaced, resource.check_name, old
    )
    finalizers = obj["metadata"].get("finalizers")
    if finalizers and not (resource.custom or takes_any_finalizer(resource.info.group_resource)):
        errors += unqualified_finalizer_errors(finalizers)
    if old is None:
        errors += resource.validate_create(obj)
    elif part is not None:
        errors += part.check(obj, old)
    else:
        errors += resource.validate_update(obj, old)
    if errors:
        metadata = obj["metadata"]
        name = metadata.get("name") or metadata.get("generateName") or ""
        raise Invalid.of(call.group, call.kind, name, errors)
