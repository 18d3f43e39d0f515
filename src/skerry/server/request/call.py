"""One resource request on its way through the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from skerry.api.errors import Forbidden, NotFound
from skerry.api.keys import ObjectKey, object_path, type_prefix
from skerry.logic.machinery.resource import ANY_IDENTITY, Resource
from skerry.server.catalogue import TypeSet
from skerry.server.http.message import Request
from skerry.server.request.info import RequestInfo
from skerry.server.user import User


def _refuse(verb: str) -> None:
    raise Forbidden(f"this request may not {verb}")


class Call(msgspec.Struct):
    """Who asks what of which type. ``warnings`` go back to the client in Warning headers.

    ``require`` raises Forbidden unless the request were allowed with another verb, too.
    """

    request: Request
    info: RequestInfo
    user: User
    resource: Resource
    types: TypeSet
    # A label selector every object must match, and what tells by its key whether an object is to
    # be seen at all; set by views.
    labels: str = ""
    visible: Callable[[str], bool] | None = None
    # Name of the view the request came through; empty without one.
    view: str = ""
    require: Callable[[str], None] = _refuse
    warnings: list[str] = msgspec.field(default_factory=list)
    # When the webhooks that it meets must have answered, on the loop's clock; 0 before the first.
    deadline: float = 0.0

    @property
    def group(self) -> str:
        return self.resource.info.group

    @property
    def kind(self) -> str:
        return self.resource.info.kind

    def key(self, name: str = "") -> ObjectKey:
        """Return the store key of the object the request names, or of *name* beside it."""
        return ObjectKey(
            self.resource.stored_group,
            self.resource.storage_resource,
            self.info.cluster,
            self.namespace,
            name or self.info.name,
        )

    def path(self, name: str = "") -> str:
        """Return the same as text."""
        info, resource = self.info, self.resource
        namespace = info.namespace if resource.info.namespaced else ""
        stored = (resource.stored_group, resource.storage_resource)
        return object_path(*stored, info.cluster, namespace, name or info.name)

    @property
    def namespace(self) -> str:
        """The namespace in the path; empty for cluster-scoped types and lists across all."""
        return self.info.namespace if self.resource.info.namespaced else ""

    @property
    def prefix(self) -> str:
        """The prefix of the keys of the collection the request names."""
        cluster = "" if self.info.cluster == "*" else self.info.cluster
        resource = self.resource
        if resource.identity == ANY_IDENTITY:
            # Without the closing slash: local objects and those of every export.
            return type_prefix(resource.stored_group, resource.info.resource)[:-1]
        return type_prefix(
            resource.stored_group, resource.storage_resource, cluster, self.namespace
        )

    def not_found(self, name: str = "") -> NotFound:
        return NotFound.of(self.group, self.resource.info.resource, name or self.info.name)


def member(obj: Mapping[str, Any], *path: str) -> Any:
    """Return what lies at *path* below *obj*, None where nothing or something else lies."""
    node: Any = obj
    for name in path:
        if not isinstance(node, Mapping):
            return None
        node = node.get(name)
    return node
