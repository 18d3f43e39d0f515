"""A DaemonSet is looked at when it, its pods or revisions change; all of them when a node does."""

from __future__ import annotations

from collections.abc import Callable

from skerry.api.objects import Object
from skerry.controllers.workload.waking import index_owned, waking_owner, waking_self
from skerry.runtime.index import Key
from skerry.runtime.informer import Handler, Informer
from skerry.runtime.workqueue import WorkQueue


def connect(
    queue: WorkQueue[Key], sets: Informer, pods: Informer, revisions: Informer, nodes: Informer
) -> None:
    """Wake the queue's keys by what happens to the four types."""
    index_owned(pods)
    index_owned(revisions)
    sets.add_handler(waking_self(queue.add))
    pods.add_handler(waking_owner("DaemonSet", sets, queue.add))
    revisions.add_handler(waking_owner("DaemonSet", sets, queue.add))
    nodes.add_handler(_waking_all(sets, queue.add))


def _waking_all(sets: Informer, add: Callable[[Key], None]) -> Handler:
    def handle(old: Object | None, new: Object | None) -> None:
        if old is not None and new is not None and _facts(old) == _facts(new):
            return  # a heartbeat
        for key in list(sets.index):
            add(key)

    return handle


def _facts(node: Object) -> tuple[object, object, object]:
    spec = node["spec"]
    return (node["metadata"].get("labels"), spec.get("taints"), spec.get("unschedulable"))
