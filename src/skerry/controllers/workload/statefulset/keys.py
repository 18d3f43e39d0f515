"""A StatefulSet is looked at when it, its pods or its revisions change."""

from __future__ import annotations

from skerry.controllers.workload.waking import index_owned, waking_owner, waking_self
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer
from skerry.runtime.workqueue import WorkQueue


def connect(queue: WorkQueue[Key], sets: Informer, pods: Informer, revisions: Informer) -> None:
    """Wake the queue's keys by what happens to the three types."""
    index_owned(pods)
    index_owned(revisions)
    sets.add_handler(waking_self(queue.add))
    pods.add_handler(waking_owner("StatefulSet", sets, queue.add))
    revisions.add_handler(waking_owner("StatefulSet", sets, queue.add))
