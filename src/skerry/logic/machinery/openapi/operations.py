"""Every request the server answers for a resource, before any document's notation.

An ``Operation`` names its schemas by definition; the OpenAPI v2 and v3 documents write the same
operations down in their own ways.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from skerry.api.kinds import GroupVersion, GroupVersionKind, Subresource
from skerry.logic.machinery.openapi.names import (
    META,
    definition_of,
    list_definition_of,
    subresource_definition,
)
from skerry.logic.machinery.openapi.parameters import (
    DELETING,
    DELETING_MANY,
    LISTING,
    PATCHING,
    WRITING,
)
from skerry.logic.machinery.resource import Resource

# What both notations say alike, of all operations.
MEDIA_TYPES = ("application/json", "application/yaml")
RESPONSE_TEXTS = {"200": "OK", "201": "Created", "202": "Accepted"}
SECURITY_SCHEMES = {
    "BearerToken": {
        "description": "Bearer Token authentication",
        "type": "apiKey",
        "name": "authorization",
        "in": "header",
    }
}

_IN_PATH = ("name", "namespace", "path")
_STATUS = f"{META}.Status"
_DELETE_OPTIONS = f"{META}.DeleteOptions"
_PATCH = f"{META}.Patch"
_RESOURCE_LIST = f"{META}.APIResourceList"

# kubectl decides how to patch by these: strategic merge only where it is offered.
_PATCH_TYPES = ("application/json-patch+json", "application/merge-patch+json")
_STRATEGIC = "application/strategic-merge-patch+json"
_APPLY = "application/apply-patch+yaml"

_CONNECT_METHODS = {
    "create": "post",
    "delete": "delete",
    "get": "get",
    "patch": "patch",
    "update": "put",
}
# Subresources that carry a stream in place of an object.
_STREAMS = frozenset({"attach", "exec", "log", "portforward", "proxy"})


@dataclass(frozen=True, slots=True)
class Operation:
    """One method on one path. An empty body or response definition means raw content."""

    path: str
    method: str
    action: str
    id: str
    description: str
    kind: GroupVersionKind | None = None
    query: tuple[str, ...] = ()
    body: str = ""
    body_types: tuple[str, ...] = ()
    responses: Mapping[str, str] = field(default_factory=dict)

    def extensions(self) -> dict[str, Any]:
        """Return what Kubernetes adds to an operation: what it does to which kind."""
        if self.kind is None:
            return {}
        group, version, kind = self.kind
        return {
            "x-kubernetes-action": self.action,
            "x-kubernetes-group-version-kind": {"group": group, "version": version, "kind": kind},
        }

    @property
    def in_path(self) -> list[str]:
        """The parameters that the path has a place for."""
        return [name for name in _IN_PATH if f"{{{name}}}" in self.path]


def root_path(group_version: GroupVersion) -> str:
    """Return where a group version is served."""
    if not group_version.group:
        return f"/api/{group_version.version}"
    return f"/apis/{group_version.group}/{group_version.version}"


def group_version_operation(group_version: GroupVersion) -> Operation:
    """Return the request for a group version's discovery document."""
    return Operation(
        path=f"{root_path(group_version)}/",
        method="get",
        action="",
        id=f"get{_camel(group_version)}APIResources",
        description="get available resources",
        responses={"200": _RESOURCE_LIST},
    )


def operations(resource: Resource) -> Iterator[Operation]:
    """Yield everything that can be asked of a resource and its subresources."""
    info = resource.info
    group_version = GroupVersion(info.group, info.version)
    root = root_path(group_version)
    scope = "/namespaces/{namespace}" if info.namespaced else ""
    one = _Naming(resource, _camel(group_version) + ("Namespaced" if info.namespaced else ""))
    collection = f"{root}{scope}/{info.resource}"
    yield from _collection_operations(one, collection)
    if info.namespaced and "list" in info.verbs:
        everywhere = _Naming(resource, _camel(group_version), "ForAllNamespaces")
        yield _list(everywhere, f"{root}/{info.resource}")
    yield from _item_operations(one, f"{collection}/{{name}}")
    for subresource in info.subresources:
        yield from _subresource_operations(one, subresource, f"{collection}/{{name}}")


@dataclass(frozen=True, slots=True)
class _Naming:
    """What the operations of a resource are called."""

    resource: Resource
    middle: str
    suffix: str = ""

    @property
    def kind(self) -> GroupVersionKind:
        return self.resource.info.gvk

    def id(self, verb: str, collection: str = "", subresource: str = "") -> str:
        group_version = self.middle.removesuffix("Namespaced")
        scope = self.middle[len(group_version) :]
        return f"{verb}{group_version}{collection}{scope}{self.kind.kind}{subresource}{self.suffix}"


def _collection_operations(one: _Naming, path: str) -> Iterator[Operation]:
    info, definition = one.resource.info, definition_of(one.resource)
    if "list" in info.verbs:
        yield _list(one, path)
    if "create" in info.verbs:
        yield Operation(
            path,
            "post",
            "post",
            one.id("create"),
            f"create {_a(info.kind)}",
            one.kind,
            WRITING,
            definition,
            responses=dict.fromkeys(("200", "201", "202"), definition),
        )
    if "deletecollection" in info.verbs:
        yield Operation(
            path,
            "delete",
            "deletecollection",
            one.id("delete", "Collection"),
            f"delete collection of {info.kind}",
            one.kind,
            DELETING_MANY,
            _DELETE_OPTIONS,
            responses={"200": _STATUS},
        )


def _list(naming: _Naming, path: str) -> Operation:
    return Operation(
        path,
        "get",
        "list",
        naming.id("list"),
        f"list or watch objects of kind {naming.kind.kind}",
        naming.kind,
        LISTING,
        responses={"200": list_definition_of(naming.resource)},
    )


def _item_operations(one: _Naming, path: str) -> Iterator[Operation]:
    info, definition = one.resource.info, definition_of(one.resource)
    yield from _object_operations(one, info.verbs, path, one.kind, definition)
    if "delete" in info.verbs:
        yield Operation(
            path,
            "delete",
            "delete",
            one.id("delete"),
            f"delete {_a(info.kind)}",
            one.kind,
            DELETING,
            _DELETE_OPTIONS,
            responses={"200": _STATUS, "202": _STATUS},
        )


def _subresource_operations(one: _Naming, below: Subresource, path: str) -> Iterator[Operation]:
    path = f"{path}/{below.name}"
    if below.name in _STREAMS:
        yield from _connect_operations(one, below, path)
        return
    definition = subresource_definition(one.resource, below)
    name = below.name.capitalize()
    if "create" in below.verbs:
        yield Operation(
            path,
            "post",
            "post",
            one.id("create", subresource=name),
            f"create {below.name} of {_a(one.kind.kind)}",
            below.kind,
            WRITING,
            definition,
            responses=dict.fromkeys(("200", "201", "202"), definition),
        )
    yield from _object_operations(one, below.verbs, path, below.kind, definition, name)


def _object_operations(
    one: _Naming,
    verbs: tuple[str, ...],
    path: str,
    kind: GroupVersionKind,
    definition: str,
    below: str = "",
) -> Iterator[Operation]:
    """Yield reading, replacing and patching of an object or of a part of it."""
    what = (
        f"{below.lower()} of the specified {one.kind.kind}"
        if below
        else f"the specified {one.kind.kind}"
    )
    if "get" in verbs:
        yield Operation(
            path,
            "get",
            "get",
            one.id("read", subresource=below),
            f"read {what}",
            kind,
            responses={"200": definition},
        )
    if "update" in verbs:
        yield Operation(
            path,
            "put",
            "put",
            one.id("replace", subresource=below),
            f"replace {what}",
            kind,
            WRITING,
            definition,
            responses={"200": definition, "201": definition},
        )
    if "patch" in verbs:
        strategic = () if one.resource.custom else (_STRATEGIC,)
        yield Operation(
            path,
            "patch",
            "patch",
            one.id("patch", subresource=below),
            f"partially update {what}",
            kind,
            PATCHING,
            _PATCH,
            (*_PATCH_TYPES, *strategic, _APPLY),
            responses={"200": definition, "201": definition},
        )


def _connect_operations(one: _Naming, below: Subresource, path: str) -> Iterator[Operation]:
    name = below.name.capitalize()
    if below.name == "log":
        log_id, text = one.id("read", subresource=name), f"read log of {_a(one.kind.kind)}"
        yield Operation(path, "get", "get", log_id, text, below.kind, responses={"200": ""})
        return
    paths = {path: name}
    if below.name == "proxy":
        paths[f"{path}/{{path}}"] = "ProxyWithPath"
    for place, suffix in paths.items():
        for verb in below.verbs:
            method = _CONNECT_METHODS[verb]
            yield Operation(
                place,
                method,
                "connect",
                one.id("connect", method.capitalize(), suffix),
                f"connect {method.upper()} requests to {below.name} of {one.kind.kind}",
                below.kind,
                responses={"200": ""},
            )


def _a(kind: str) -> str:
    return f"{'an' if kind[0] in 'AEIOU' else 'a'} {kind}"


def _camel(group_version: GroupVersion) -> str:
    """Return ``AppsV1``, ``CoreV1``, ``RbacAuthorizationV1`` or ``ExampleComV1``."""
    group = group_version.group.removesuffix(".k8s.io") or "core"
    words = [*group.replace("-", ".").split("."), group_version.version]
    return "".join(word[:1].upper() + word[1:] for word in words)
