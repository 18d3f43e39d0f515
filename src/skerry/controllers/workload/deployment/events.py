"""A Deployment is looked at when it or one of its ReplicaSets changes, and, for Recreate, when the
last pod of a ReplicaSet goes."""

from __future__ import annotations

from collections.abc import Callable

from skerry.api.objects import Object
from skerry.controllers.workload.events import (
    OWNER_UID,
    enqueue_owner,
    enqueue_self,
    index_owned,
)
from skerry.logic.workloads.owners import controller_of
from skerry.runtime.index import Key, key_of
from skerry.runtime.informer import Handler, Informer
from skerry.runtime.workqueue import WorkQueue


def connect(
    queue: WorkQueue[Key], deployments: Informer, replica_sets: Informer, pods: Informer
) -> None:
    """Enqueue what depends on events of the three types."""
    index_owned(replica_sets)
    index_owned(pods)
    deployments.add_handler(enqueue_self(queue.add))
    replica_sets.add_handler(enqueue_owner("Deployment", deployments, queue.add))
    pods.add_handler(_enqueue_on_last_pod(replica_sets, pods, queue.add))


def _enqueue_on_last_pod(
    replica_sets: Informer, pods: Informer, add: Callable[[Key], None]
) -> Handler:
    def handle(old: Object | None, new: Object | None) -> None:
        reference = controller_of(old) if old is not None and new is None else None
        if old is None or reference is None or reference.get("kind") != "ReplicaSet":
            return
        if pods.index.keys_by(OWNER_UID, reference["uid"]):
            return
        place = key_of(old)
        owner = replica_sets.index.get(Key(place.cluster, place.namespace, reference["name"]))
        above = None if owner is None else controller_of(owner)
        if above is not None and above.get("kind") == "Deployment":
            add(Key(place.cluster, place.namespace, above["name"]))

    return handle
