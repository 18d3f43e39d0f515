"""A ReplicaSet is looked at when it, one of its pods, or a pod it could adopt changes."""

from __future__ import annotations

from skerry.controllers.workload.waking import index_owned, waking_owner, waking_self
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer
from skerry.runtime.workqueue import WorkQueue


def connect(queue: WorkQueue[Key], replica_sets: Informer, pods: Informer) -> None:
    """Wake the queue's keys by what happens to both types."""
    index_owned(pods)
    replica_sets.add_handler(waking_self(queue.add))
    pods.add_handler(waking_owner("ReplicaSet", replica_sets, queue.add))
