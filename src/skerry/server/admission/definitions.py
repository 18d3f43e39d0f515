"""CustomResourceDefinitions: ready when the create returns.

kube-apiserver accepts names and establishes a definition by controllers, seconds later. Here the
write that brings a definition also decides about its names and stores its conditions, so that the
type is served when the client has its answer.
"""

from __future__ import annotations

from skerry.kit.clock import Clock, rfc3339
from skerry.logic import crd
from skerry.server.admission.operation import Operation
from skerry.server.catalogue import CRD_GROUP, CRD_RESOURCE, Catalogue

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"


class DefinitionAdmission:
    """Settles names, conditions and the clean-up finalizer of a definition as it is written."""

    def __init__(self, catalogue: Catalogue, clock: Clock) -> None:
        self._catalogue = catalogue
        self._clock = clock

    async def admit(self, operation: Operation) -> None:
        if operation.type != (CRD_GROUP, CRD_RESOURCE):
            return
        obj, metadata = operation.obj, operation.obj["metadata"]
        now = rfc3339(self._clock.now())
        if operation.verb == "DELETE":
            obj["status"] = crd.terminating(obj, now)
            return
        if operation.verb == "CREATE" and CLEANUP not in metadata.get("finalizers", []):
            metadata.setdefault("finalizers", []).append(CLEANUP)
        if operation.subresource == "status":
            return
        others = [
            other
            for other in self._catalogue.definitions(operation.call.info.cluster)
            if other["metadata"]["name"] != metadata.get("name")
        ]
        obj["status"] = crd.establish(obj, others, now)
