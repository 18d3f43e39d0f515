"""Everything else plugins look up: volumes, services, controllers, budgets.

Plain stores by kind. Those few that are searched by something other than their name have an index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from skerry.api.objects import Object


def key_of(obj: Object) -> str:
    """Return ``namespace/name``, or the name alone."""
    metadata = obj["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


class ObjectStore:
    """Objects of one kind by ``namespace/name`` and by namespace."""

    def __init__(self) -> None:
        self._objects: dict[str, Object] = {}
        self._spaces: dict[str, dict[str, Object]] = {}
        # Grows with every change; lets readers keep what they derived until it moves.
        self.generation = 0
        self._listeners: list[Callable[[Object], None]] = []

    def subscribe(self, listener: Callable[[Object], None]) -> Callable[[], None]:
        """Call *listener* with every object set from now on; call the answer to stop."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def set(self, obj: Object) -> None:
        key = key_of(obj)
        self._objects[key] = obj
        self._spaces.setdefault(obj["metadata"].get("namespace") or "", {})[key] = obj
        self.generation += 1
        for listener in tuple(self._listeners):
            listener(obj)

    def remove(self, obj: Object) -> None:
        key = key_of(obj)
        self._objects.pop(key, None)
        self._spaces.get(obj["metadata"].get("namespace") or "", {}).pop(key, None)
        self.generation += 1

    def get(self, name: str, namespace: str = "") -> Object | None:
        return self._objects.get(f"{namespace}/{name}" if namespace else name)

    def within(self, namespace: str) -> list[Object]:
        """Return all objects of a namespace."""
        return list(self._spaces.get(namespace, {}).values())

    def __iter__(self) -> Iterator[Object]:
        return iter(list(self._objects.values()))

    def __len__(self) -> int:
        return len(self._objects)


# Attribute → (apiVersion, plural) of every kind beside pods and nodes the scheduler reads.
KINDS: dict[str, tuple[str, str]] = {
    "claims": ("v1", "persistentvolumeclaims"),
    "volumes": ("v1", "persistentvolumes"),
    "classes": ("storage.k8s.io/v1", "storageclasses"),
    "csi_nodes": ("storage.k8s.io/v1", "csinodes"),
    "csi_drivers": ("storage.k8s.io/v1", "csidrivers"),
    "capacities": ("storage.k8s.io/v1", "csistoragecapacities"),
    "attachments": ("storage.k8s.io/v1", "volumeattachments"),
    "services": ("v1", "services"),
    "replication_controllers": ("v1", "replicationcontrollers"),
    "replica_sets": ("apps/v1", "replicasets"),
    "stateful_sets": ("apps/v1", "statefulsets"),
    "budgets": ("policy/v1", "poddisruptionbudgets"),
    "namespaces": ("v1", "namespaces"),
}


class ClusterObjects:
    """One store per kind of ``KINDS``."""

    def __init__(self) -> None:
        self.claims = ObjectStore()
        self.volumes = ObjectStore()
        self.classes = ObjectStore()
        self.csi_nodes = ObjectStore()
        self.csi_drivers = ObjectStore()
        self.capacities = ObjectStore()
        self.attachments = ObjectStore()
        self.services = ObjectStore()
        self.replication_controllers = ObjectStore()
        self.replica_sets = ObjectStore()
        self.stateful_sets = ObjectStore()
        self.budgets = ObjectStore()
        self.namespaces = ObjectStore()

    def store(self, attribute: str) -> ObjectStore:
        found: ObjectStore = getattr(self, attribute)
        return found
