"""Objects live in namespaces that exist and are not being deleted."""

from __future__ import annotations

from skerry.api.errors import Forbidden, NotFound
from skerry.server.admission.operation import Operation
from skerry.server.observed import ObservedObjects
from skerry.store.base import Store

# Kubernetes keeps these whoever asks.
IMMORTAL = frozenset({"default", "kube-system", "kube-public"})
# Reviews are asked in a namespace but never stored there.
_UNSTORED = frozenset({"localsubjectaccessreviews"})


class NamespaceLifecycle:
    """Refuses creation where there is no live namespace, and deletion of the immortal ones."""

    def __init__(self, store: Store, namespaces: ObservedObjects) -> None:
        self._store = store
        self._namespaces = namespaces

    async def admit(self, operation: Operation) -> None:
        info = operation.call.resource.info
        if info.resource == "namespaces" and not info.group:
            if operation.verb == "DELETE" and operation.obj["metadata"]["name"] in IMMORTAL:
                name = operation.obj["metadata"]["name"]
                raise Forbidden.of("", "namespaces", name, "this namespace may not be deleted")
            return
        if operation.verb != "CREATE" or not info.namespaced or info.resource in _UNSTORED:
            return
        name = operation.call.namespace
        cluster = operation.call.info.cluster
        namespace = await self._namespaces.find(self._store, cluster, name)
        if namespace is None:
            raise NotFound.of("", "namespaces", name)
        if "deletionTimestamp" in namespace["metadata"]:
            self._refuse_terminating(operation, name)

    def _refuse_terminating(self, operation: Operation, namespace: str) -> None:
        group, resource = operation.type
        error = Forbidden.of(
            group,
            resource,
            operation.obj["metadata"].get("name", ""),
            f"unable to create new content in namespace {namespace} because it is being terminated",
        )
        error.details["causes"] = [
            {
                "reason": "NamespaceTerminating",
                "message": f"namespace {namespace} is being terminated",
                "field": "metadata.namespace",
            }
        ]
        raise error
