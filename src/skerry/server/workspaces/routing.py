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

from collections.abc import Callable, Iterable

import jwt

from skerry.api.errors import BadRequest, Forbidden
from skerry.logic.machinery.edges.tunnel import EDGES_PATH
from skerry.logic.machinery.workspaces.names import (
    SYSTEM_ADMIN,
    WILDCARD,
    home_cluster_name,
    is_path,
)
from skerry.server.engine import Route
from skerry.server.extensions import CERTIFICATES, CONSOLE_CODES, CONSOLE_SESSIONS, KEYS
from skerry.server.http.message import Request
from skerry.server.open_streams import Right
from skerry.server.request.info import RequestInfo
from skerry.server.user import User
from skerry.server.workspaces.catalogue import HubCatalogue
from skerry.server.workspaces.state import HubState
from skerry.server.workspaces.views import ExportViews, InitializerViews

# Pages of the process, not of a workspace: whoever asks, and below whichever cluster, the policy
# of the hub itself decides.
_PROCESS = ("/healthz", "/livez", "/readyz", "/metrics", "/debug", KEYS, CERTIFICATES)
# Answered without a cluster as well.
_UNROUTED = (*_PROCESS, "/version")
# For everybody who is recognised, and about nobody else: no right is asked for.
_PERSONAL = (CONSOLE_CODES, CONSOLE_SESSIONS)
_EDGES = f"{EDGES_PATH}/"
_CLAIM = "kubernetes.io"
# No token of ours is longer; the text of a stranger is not taken apart to find that out.
_MAX_TOKEN_LENGTH = 16 * 1024


class HubRouter:
    """Finds the cluster or view a request is for."""

    def __init__(
        self, state: HubState, catalogue: HubCatalogue, closed: Callable[[str], bool]
    ) -> None:
        """*closed* tells which clusters show nothing that somebody inside agreed to show."""
        self._state = state
        self._exports = ExportViews(state, catalogue, closed)
        self._initializers = InitializerViews(state, catalogue)
        # Where requests go that are about what runs at an edge; nowhere, unless somebody says so.
        self.edges: Callable[[str, str], Route] | None = None

    def route(self, request: Request) -> Route:
        path = request.path
        if path.startswith("/clusters/"):
            return self._cluster(path[len("/clusters/") :])
        if path.startswith("/services/"):
            return self._service(path[len("/services/") :])
        return self._bare(request)

    def _cluster(self, rest: str) -> Route:
        segment, _, tail = rest.partition("/")
        path = f"/{tail}"
        cluster = self._named(segment)
        if path.startswith(_PROCESS):
            return Route(SYSTEM_ADMIN, path)
        if self.edges is not None and path.startswith(_EDGES) and cluster in self._state.clusters:
            return self.edges(cluster, path)
        return Route(cluster, path)

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
        return self._state.resolve(segment) or segment

    def _bare(self, request: Request) -> Route:
        if request.path.startswith(_UNROUTED):
            return Route(SYSTEM_ADMIN, request.path)
        cluster = cluster_of_token(request.headers.get("authorization", ""))
        if request.path in _PERSONAL:
            return Route(cluster, request.path, guard=_no_right)
        return Route(cluster, request.path)

    def _service(self, rest: str) -> Route:
        kind, _, rest = rest.partition("/")
        if kind == "apiexport":
            parts = rest.split("/", 4)
            if len(parts) >= 4 and parts[2] == "clusters":
                target, path = self._named(parts[3]), _tail(parts, 4)
                return self._exports.route(parts[0], parts[1], target, path)
        if kind == "initializingworkspaces":
            parts = rest.split("/", 3)
            if len(parts) >= 3 and parts[1] == "clusters":
                target, path = self._named(parts[2]), _tail(parts, 3)
                return self._initializers.route(parts[0], target, path)
        raise Forbidden("Path not resolved to a valid virtual workspace")


def _no_right(_: User, __: RequestInfo) -> Iterable[Right]:
    return ()


def _tail(parts: list[str], index: int) -> str:
    """Return the path within a view, which has no pages of the process."""
    path = f"/{parts[index]}" if len(parts) > index else "/"
    if path.startswith(_PROCESS):
        raise Forbidden("Path not resolved to a valid virtual workspace")
    return path


def cluster_of_token(authorization: str) -> str:
    """Return the cluster a ServiceAccount's token claims; it is verified later, there."""
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer" or token.count(".") != 2 or len(token) > _MAX_TOKEN_LENGTH:
        return ""
    try:
        claims = jwt.decode(token, options={"verify_signature": False})
    except (jwt.InvalidTokenError, RecursionError):
        return ""
    private = claims.get(_CLAIM)
    named = private.get("clusterName") if isinstance(private, dict) else ""
    return named if isinstance(named, str) and is_path(named) else ""
