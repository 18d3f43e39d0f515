"""A Job is looked at when it or one of its pods changes, and when it is gone but pods remain."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from skerry.api.objects import Object
from skerry.controllers.workload.events import enqueue_owner, enqueue_self, index_owned
from skerry.logic.workloads.owners import controller_of
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer
from skerry.runtime.workqueue import WorkQueue

BY_JOB = "job-name"


def _by_job(pod: Object) -> Iterable[Hashable]:
    reference = controller_of(pod)
    if reference is None or reference.get("kind") != "Job":
        return ()
    return ((pod["metadata"].get("namespace", ""), reference["name"]),)


def connect(queue: WorkQueue[Key], jobs: Informer, pods: Informer) -> None:
    """Enqueue what depends on events of both types."""
    index_owned(pods)
    pods.index.add_index(BY_JOB, _by_job)
    jobs.add_handler(enqueue_self(queue.add))
    pods.add_handler(enqueue_owner("Job", jobs, queue.add))
