"""Objects a cluster is born with, and how the server itself writes objects.

Whatever is missing is written in one commit; what exists is left as it is, so that an
administrator's changes last. Two servers starting over one store may both try: one of them wins
and the other finds everything there.
"""

from __future__ import annotations

from collections.abc import Sequence

from skerry.api.keys import ObjectKey
from skerry.api.objects import Object
from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.kit.timestamps import rfc3339
from skerry.server.catalogue import TypeSet
from skerry.server.codec import encode
from skerry.server.preparation.pipeline import Stamp
from skerry.store.base import Conflict, Store, Write

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")


class Seeder:
    """Writes objects on the server's own behalf."""

    def __init__(self, store: Store, clock: Clock, ids: IdSource, stamp: Stamp) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._stamp = stamp

    def born(self, types: TypeSet, cluster: str, obj: Object, now: str = "") -> Write:
        """Return the write that creates *obj*, complete with defaults and metadata.

        With *now* the object was made for that moment and lacks no defaults of custom kinds.
        """
        resource = types.by_kind[(obj["apiVersion"], obj["kind"])]
        metadata = obj["metadata"]
        status = obj.get("status")
        metadata.setdefault("uid", self._ids.uid())
        metadata["creationTimestamp"] = now or rfc3339(self._clock.now())
        if resource.counts_generation:
            metadata["generation"] = 1
        if not (now and resource.custom):
            resource.default(obj)
            resource.prepare_create(obj)
        if status is not None:
            obj["status"] = status
        self._stamp.put(obj, cluster)
        key = ObjectKey(
            resource.stored_group,
            resource.storage_resource,
            cluster,
            metadata.get("namespace", ""),
            metadata["name"],
        )
        return Write(key.path(), encode(obj), expected=0)

    async def ensure(self, types: TypeSet, cluster: str, objects: Sequence[Object]) -> None:
        """Create those of *objects* that are not there, all at once."""
        writes = [self.born(types, cluster, obj) for obj in objects]
        while True:
            missing = [w for w in writes if await self._store.get(w.key) is None]
            if not missing:
                return
            try:
                await self._store.commit(missing)
            except Conflict:
                continue


def plain_objects(priority_classes: bool = True) -> list[Object]:
    """Return what a plain server is born with, besides RBAC."""
    objects: list[Object] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in NAMESPACES
    ]
    if priority_classes:
        objects += [
            _priority_class("system-cluster-critical", 2000000000, "cluster"),
            _priority_class("system-node-critical", 2000001000, "node"),
        ]
    return objects


def _priority_class(name: str, value: int, what: str) -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "preemptionPolicy": "PreemptLowerPriority",
        "description": f"For pods the {what} cannot do without.",
    }
