"""A DaemonSet is looked at when it, its pods or revisions change; all of them when a node does."""

from __future__ import annotations

from collections.abc import Callable

from skerry.api.objects import Object
from skerry.controllers.workload.events import enqueue_owner, enqueue_self, index_owned
from skerry.runtime.index import Key
from skerry.runtime.informer import Handler, Informer
from skerry.runtime.workqueue import WorkQueue


def connect(
    queue: WorkQueue[Key], sets: Informer, pods: Informer, revisions: Informer, nodes: Informer
) -> None:
    """Enqueue what depends on events of the four types."""
    index_owned(pods)
    index_owned(revisions)
    sets.add_handler(enqueue_self(queue.add))
    pods.add_handler(enqueue_owner("DaemonSet", sets, queue.add))
    revisions.add_handler(enqueue_owner("DaemonSet", sets, queue.add))
    nodes.add_handler(_enqueue_all(sets, queue.add))


def _enqueue_all(sets: Informer, add: Callable[[Key], None]) -> Handler:
    def handle(old: Object | None, new: Object | None) -> None:
        if old is not None and new is not None and _facts(old) == _facts(new):
            return  # a heartbeat
        for key in list(sets.index):
            add(key)

    return handle


def _facts(node: Object) -> tuple[object, object, object]:
    spec = node["spec"]
    return (node["metadata"].get("labels"), spec.get("taints"), spec.get("unschedulable"))
