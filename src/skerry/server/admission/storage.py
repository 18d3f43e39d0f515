"""What claims and volumes get as they are written: a class, and protection while they are used.

A finalizer keeps a claim until no pod uses it, and a volume until it is not bound; the volume
protection controller (``controllers.core.volume_protection``) takes it off.
"""

from __future__ import annotations

from typing import ClassVar

from skerry.logic.machinery.storage_classes import default_class, has_class
from skerry.server.admission.operation import Operation
from skerry.server.observed import ObservedObjects

_CLAIMS = ("", "persistentvolumeclaims")
_FINALIZERS = {
    _CLAIMS: "kubernetes.io/pvc-protection",
    ("", "persistentvolumes"): "kubernetes.io/pv-protection",
}


class DefaultStorageClass:
    """Gives a new claim that names no class the default one."""

    TYPES: ClassVar = frozenset({_CLAIMS})

    def __init__(self, classes: ObservedObjects) -> None:
        self._classes = classes

    async def admit(self, operation: Operation) -> None:
        if operation.verb != "CREATE" or operation.subresource or has_class(operation.obj):
            return
        classes = self._classes.within(operation.call.info.cluster)
        default = default_class(classes.values())
        if default is not None:
            operation.obj["spec"]["storageClassName"] = default["metadata"]["name"]


class StorageProtection:
    """Keeps claims and volumes that are in use from going."""

    TYPES: ClassVar = frozenset(_FINALIZERS)

    async def admit(self, operation: Operation) -> None:
        if operation.verb != "CREATE" or operation.subresource:
            return
        finalizers = operation.obj["metadata"].setdefault("finalizers", [])
        name = _FINALIZERS[operation.type]
        if name not in finalizers:
            finalizers.append(name)
