"""A StatefulSet is looked at when it, its pods or its revisions change."""

from __future__ import annotations

from skerry.controllers.workload.events import enqueue_owner, enqueue_self, index_owned
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer
from skerry.runtime.workqueue import WorkQueue


def connect(queue: WorkQueue[Key], sets: Informer, pods: Informer, revisions: Informer) -> None:
    """Enqueue what depends on events of the three types."""
    index_owned(pods)
    index_owned(revisions)
    sets.add_handler(enqueue_self(queue.add))
    pods.add_handler(enqueue_owner("StatefulSet", sets, queue.add))
    revisions.add_handler(enqueue_owner("StatefulSet", sets, queue.add))
