"""WorkspaceTypes as they are written: names that can be meant, and a place for initializers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from skerry.api.errors import FieldError, Forbidden
from skerry.api.objects import Object
from skerry.api.refs import PATH_ANNOTATION
from skerry.kit.clock import Clock
from skerry.kit.timestamps import rfc3339
from skerry.logic.machinery.workspaces.names import ROOT
from skerry.server.admission.operation import Operation
from skerry.server.workspaces.state import TENANCY, HubState
from skerry.server.workspaces.workspace_creation import check_name

# Words that stand for something else where types are named.
_RESERVED = ("any", "system")


def type_status(base_url: str, cluster: str, name: str, now: str) -> Object:
    """Return the status of a type that is in order: where its initializers find their work."""
    return {
        "conditions": [
            {"lastTransitionTime": now, "status": "True", "type": kind}
            for kind in ("Ready", "VirtualWorkspaceURLsReady")
        ],
        "virtualWorkspaces": [
            {"url": f"{base_url}/services/initializingworkspaces/{cluster}:{name}"}
        ],
    }


class TypeRules:
    """Completes types, and refuses those that cannot be meant."""

    def __init__(self, state: HubState, clock: Clock, base_url: Callable[[], str]) -> None:
        self._state = state
        self._clock = clock
        self._base_url = base_url

    async def admit(self, operation: Operation) -> None:
        if operation.type != (TENANCY, "workspacetypes") or operation.verb == "DELETE":
            return
        if operation.subresource:
            return
        cluster, obj = operation.call.info.cluster, operation.obj
        name = obj["metadata"]["name"]
        if operation.verb == "CREATE":
            check_name("WorkspaceType", name)
        for why in _wrong(name, cluster, obj.get("spec") or {}):
            raise Forbidden.of(TENANCY, "workspacetypes", name, why)
        annotations = obj["metadata"].setdefault("annotations", {})
        annotations[PATH_ANNOTATION] = self._state.path_of(cluster)
        if operation.verb == "CREATE":
            now = rfc3339(self._clock.now())
            obj["status"] = type_status(self._base_url(), cluster, name, now)


def _wrong(name: str, cluster: str, spec: Object) -> Iterator[str]:
    if name in _RESERVED:
        yield str(FieldError.invalid("metadata.name", name, "name is reserved"))
    if name == ROOT and cluster != ROOT:
        yield "root workspace type can only be created in root cluster"
    child = spec.get("defaultChildWorkspaceType")
    if child is not None and not child.get("path"):
        yield ".spec.defaultChildWorkspaceType.path must be set"
    for limit in ("limitAllowedChildren", "limitAllowedParents"):
        for index, each in enumerate((spec.get(limit) or {}).get("types") or ()):
            if not each.get("path"):
                yield f".spec.{limit}.types[{index}].path must be set"
