"""A CronJob is looked at when it or one of its Jobs changes, and when its next time comes."""

from __future__ import annotations

from collections.abc import Callable

from skerry.api.objects import Object
from skerry.controllers.workload.events import enqueue_self, index_owned
from skerry.logic.workloads.owners import controller_of
from skerry.runtime.index import Key, key_of
from skerry.runtime.informer import Handler, Informer
from skerry.runtime.workqueue import WorkQueue


def connect(queue: WorkQueue[Key], cron_jobs: Informer, jobs: Informer) -> None:
    """Enqueue what depends on events of both types."""
    index_owned(jobs)
    cron_jobs.add_handler(enqueue_self(queue.add))
    jobs.add_handler(_enqueue_owner(queue.add))


def _enqueue_owner(add: Callable[[Key], None]) -> Handler:
    """Enqueue the CronJob of a Job; orphans are nobody's here."""

    def handle(old: Object | None, new: Object | None) -> None:
        obj = new or old
        reference = None if obj is None else controller_of(obj)
        if obj is not None and reference is not None and reference.get("kind") == "CronJob":
            key = key_of(obj)
            add(Key(key.cluster, key.namespace, reference["name"]))

    return handle
