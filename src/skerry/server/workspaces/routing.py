"""From URLs to clusters and views.

| path | meaning |
|---|---|
| ``/clusters/<name or path>/...`` | one logical cluster |
| ``/clusters/*/...`` | all of them, for reading |
| ``/services/apiexport/<cluster>/<export>/clusters/<name or *>/...`` | an export's view |
| ``/services/initializingworkspaces/<cluster>:<type>/clusters/...`` | an initializer's view |
| anything else | the cluster a ServiceAccount's token names; health without one |
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import jwt

from skerry.api.errors import BadRequest, Forbidden, NotFound
from skerry.logic.resource import Resource
from skerry.logic.workspaces.bindings import EXPORT_LABEL
from skerry.logic.workspaces.names import (
    SYSTEM_ADMIN,
    WILDCARD,
    home_cluster_name,
    initializer_label,
    is_path,
    label_hash,
)
from skerry.server.access import Attributes
from skerry.server.catalogue import TypeSet
from skerry.server.engine import Route
from skerry.server.http.message import Request
from skerry.server.request_info import RequestInfo
from skerry.server.workspaces.catalogue import HubCatalogue
from skerry.server.workspaces.state import HubState

_READ_VERBS = ("get", "list", "watch")
# Answered without a cluster: health, metrics and what load balancers ask.
_UNROUTED = ("/healthz", "/livez", "/readyz", "/metrics", "/version")
_CLAIM = "kubernetes.io"


@dataclass(slots=True)
class HubRouter:
    """Finds the cluster or view a request is for."""

    state: HubState
    catalogue: HubCatalogue

    def route(self, request: Request) -> Route:
        path = request.path
        if path.startswith("/clusters/"):
            return self._cluster(path[len("/clusters/") :])
        if path.startswith("/services/"):
            return self._service(path[len("/services/") :])
        return self._bare(request)

    def _cluster(self, rest: str) -> Route:
        segment, _, path = rest.partition("/")
        return Route(self._named(segment), f"/{path}")

    def _named(self, segment: str) -> str:
        """Return the cluster a path segment names.

        A path that leads nowhere is kept as it is: nobody may enter it, which is what kcp says
        of it too.
        """
        if segment == WILDCARD:
            return WILDCARD
        if not is_path(segment):
            raise BadRequest(f'invalid cluster: "{segment}" does not match the regex')
        if segment.startswith("user:"):
            _, user, *names = segment.split(":")
            segment = ":".join([home_cluster_name(user), *names])
        return self.state.resolve(segment) or segment

    def _bare(self, request: Request) -> Route:
        if request.path.startswith(_UNROUTED):
            return Route(SYSTEM_ADMIN, request.path)
        cluster = _cluster_of_token(request.headers.get("authorization", ""))
        return Route(cluster or "", request.path)

    def _service(self, rest: str) -> Route:
        kind, _, rest = rest.partition("/")
        if kind == "apiexport":
            parts = rest.split("/", 4)
            if len(parts) >= 4 and parts[2] == "clusters":
                return self._export_view(parts[0], parts[1], parts[3], _tail(parts, 4))
        if kind == "initializingworkspaces":
            parts = rest.split("/", 3)
            if len(parts) >= 3 and parts[1] == "clusters":
                return self._initializer_view(parts[0], parts[2], _tail(parts, 3))
        raise Forbidden("Path not resolved to a valid virtual workspace")

    def _export_view(self, cluster: str, export: str, target: str, path: str) -> Route:
        if (cluster, export) not in self.state.exports:
            raise NotFound.path()
        where = WILDCARD if target == WILDCARD else self._named(target)

        def guard(info: RequestInfo) -> Attributes:
            return Attributes(
                cluster=cluster,
                verb=info.verb if info.is_resource else "get",
                group="apis.kcp.io",
                version="v1alpha1",
                resource="apiexports",
                subresource="content",
                name=export,
            )

        labels = ""
        if path.startswith("/apis/apis.kcp.io/"):
            labels = f"{EXPORT_LABEL}={label_hash(f'{cluster}:{export}')}"
        types = self._export_types(cluster, export)
        return Route(where, path, types, labels, guard)

    def _export_types(self, cluster: str, export: str) -> TypeSet:
        found = self.state.export("", export, cluster)
        served: list[Resource] = []
        if found is not None:
            for schema in found.schemas:
                served += self.state.resources(self.state.offered(found, schema))
        served += [
            _read_only(resource)
            for resource in self.catalogue.types(SYSTEM_ADMIN).resources
            if resource.info.resource == "apibindings"
        ]
        return TypeSet(served)

    def _initializer_view(self, initializer: str, target: str, path: str) -> Route:
        cluster, _, name = initializer.rpartition(":")
        if self.state.types.get((cluster, name)) is None:
            raise NotFound.path()
        where = WILDCARD if target == WILDCARD else self._named(target)
        label, value = initializer_label(initializer)

        def guard(info: RequestInfo) -> Attributes:
            return Attributes(
                cluster=cluster,
                verb="initialize",
                group="tenancy.kcp.io",
                version="v1alpha1",
                resource="workspacetypes",
                name=name,
            )

        if where != WILDCARD and not path.startswith("/apis/core.kcp.io/"):
            known = self.state.clusters.get(where)
            if known is None or known.phase != "Initializing":
                raise Forbidden("Path not resolved to a valid virtual workspace")
            return Route(where, path, guard=guard)
        types = TypeSet(
            r
            for r in self.catalogue.types(SYSTEM_ADMIN).resources
            if r.info.resource == "logicalclusters"
        )
        return Route(where, path, types, f"{label}={value[:63]}", guard)


def _tail(parts: list[str], index: int) -> str:
    return f"/{parts[index]}" if len(parts) > index else "/"


def _read_only(resource: Resource) -> Resource:
    info = replace(resource.info, verbs=_READ_VERBS, subresources=())
    return replace(resource, info=info)


def _cluster_of_token(authorization: str) -> str:
    """Return the cluster a ServiceAccount's token claims; it is verified later, there."""
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer" or token.count(".") != 2:
        return ""
    try:
        claims = jwt.decode(token, options={"verify_signature": False})
    except jwt.InvalidTokenError:
        return ""
    private = claims.get(_CLAIM)
    return str(private.get("clusterName", "")) if isinstance(private, dict) else ""
