"""CustomResourceDefinitions: ready when the create returns.

kube-apiserver accepts names and establishes a definition by controllers, seconds later. Here the
write that brings a definition also decides about its names and stores its conditions, so that the
type is served when the client has its answer.
"""

from __future__ import annotations

from skerry.api.errors import MethodNotAllowed
from skerry.api.objects import Object
from skerry.kit.clock import Clock
from skerry.kit.timestamps import rfc3339
from skerry.logic.machinery import crd
from skerry.logic.machinery.conditions import set_conditions
from skerry.server.admission.operation import Operation
from skerry.server.catalogue import CRD_GROUP, CRD_RESOURCE, Catalogue

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
TERMINATING = "create not allowed while custom resource definition is terminating"


class DefinitionAdmission:
    """Settles names and conditions of a definition as it is written."""

    def __init__(self, catalogue: Catalogue, clock: Clock) -> None:
        self._catalogue = catalogue
        self._clock = clock

    async def admit(self, operation: Operation) -> None:
        if operation.type != (CRD_GROUP, CRD_RESOURCE):
            if operation.verb == "CREATE" and operation.call.resource.custom:
                self._refuse_terminating(operation)
            return
        obj, metadata = operation.obj, operation.obj["metadata"]
        now = self._clock.now()
        if operation.verb == "DELETE":
            _set_terminating(obj, rfc3339(now))
            return
        # Also on writes to the status: whoever clears it does not stop the type being served.
        cluster = operation.call.info.cluster
        others = [
            other
            for other in self._catalogue.definitions(cluster)
            if other["metadata"]["name"] != metadata.get("name")
        ]
        crd.remember_storage_version(obj)
        obj["status"] = crd.establish(obj, others, now, self._reserved(obj, operation))

    def _refuse_terminating(self, operation: Operation) -> None:
        """Refuse new objects of a type whose objects are being removed."""
        group, resource = operation.type
        cluster = operation.call.info.cluster
        definition = self._catalogue.definition(cluster, f"{resource}.{group}")
        if definition is not None and "deletionTimestamp" in definition["metadata"]:
            raise MethodNotAllowed(TERMINATING)

    def _reserved(self, obj: Object, operation: Operation) -> crd.TakenNames:
        """Return the names that types served here by other means have in the same group."""
        group = (obj.get("spec") or {}).get("group")
        infos = [
            resource.info
            for resource in operation.call.types.resources
            # Types of other definitions count among the others, with the names they were given.
            if resource.info.group == group and (resource.identity or not resource.custom)
        ]
        names = {info.resource for info in infos} | {info.singular for info in infos}
        return crd.TakenNames(frozenset(names), frozenset(info.kind for info in infos))


def _set_terminating(definition: Object, now: str) -> None:
    """Say that the objects of the type are being removed."""
    status = definition.setdefault("status", {})
    terminating = {
        "type": "Terminating",
        "status": "True",
        "reason": "InstanceDeletionInProgress",
        "message": "CustomResource deletion is in progress",
    }
    status["conditions"] = set_conditions(status.get("conditions") or (), [terminating], now)
