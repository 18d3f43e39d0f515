"""What verbs mean where there is no one cluster, or none that exists.

Across all clusters there is reading of collections and nothing else. A request that names no
cluster is nobody's. Only ``system:masters`` ever get this far with either; everybody else is
refused before.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

from msgspec.structs import replace

from skerry.api.errors import ApiError, Forbidden, InternalError, MethodNotAllowed, NotFound
from skerry.logic.machinery.resource import ANY_IDENTITY
from skerry.logic.machinery.workspaces.names import WILDCARD
from skerry.server.engine import PathHandler, ResourceHandler
from skerry.server.http.message import Answer, Request
from skerry.server.request.call import Call
from skerry.server.response.negotiate import negotiate
from skerry.server.workspaces.state import HubState

K = TypeVar("K", bound=Hashable)
_COLLECTIONS = ("list", "watch")
_WRITES = ("create", "update", "patch")


class WildcardRequests:
    """Stands before the plain handlers."""

    def __init__(self, state: HubState) -> None:
        self._state = state

    def guarded(self, handlers: Mapping[K, ResourceHandler]) -> dict[K, ResourceHandler]:
        """Return *handlers*, each behind these rules."""
        return {key: self._before(handler) for key, handler in handlers.items()}

    def _before(self, plain: ResourceHandler) -> ResourceHandler:
        async def handle(call: Call) -> Answer:
            error = self._refusal(call.info.verb, call)
            if error is not None:
                raise error
            return await plain(call)

        return handle

    def _refusal(self, verb: str, call: Call) -> ApiError | None:
        cluster = call.info.cluster
        if cluster == WILDCARD:
            return _refused_everywhere(verb, call)
        if not cluster:
            return InternalError("no cluster found in the context")
        if verb in _WRITES and not cluster.startswith("system:"):
            return self._refused_write(verb, call)
        return None

    def _refused_write(self, verb: str, call: Call) -> ApiError | None:
        """Nothing may be written where nothing would ever remove it."""
        known = self._state.clusters.get(call.info.cluster)
        if known is None or (known.deleting and verb == "create"):
            info = call.resource.info
            fault = "does not exist" if known is None else "is being deleted"
            return Forbidden.of(info.group, info.resource, call.info.name, f"the workspace {fault}")
        return None


def _refused_everywhere(verb: str, call: Call) -> ApiError | None:
    if verb not in _COLLECTIONS or call.info.name:
        if call.view:
            return NotFound.path()
        kind = call.resource.info.resource
        return MethodNotAllowed(
            f'{verb} is not supported on resources of kind "{kind}" in the `*` logical cluster'
        )
    if call.resource.identity == ANY_IDENTITY:
        shape = negotiate(call.request.headers.get("accept", "")).shape
        if shape != "metadata":
            # Without the identity of an export nobody can say what the objects look like.
            return NotFound.path()
    return None


def without_cluster(plain: PathHandler) -> PathHandler:
    """Return a handler of paths that sees them as they are within a cluster."""

    async def handle(request: Request, cluster: str) -> Answer:
        if request.path.startswith("/clusters/"):
            rest = request.path.removeprefix("/clusters/").partition("/")[2]
            request = replace(request, path=f"/{rest}")
        return await plain(request, cluster)

    return handle
