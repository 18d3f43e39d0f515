"""Has objects that nobody acts upon at an embedded edge say so.

Reads the kinds of ``logic.workloads.not_enforced``, writes an annotation, a condition and an Event.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.kit.timestamps import rfc3339
from skerry.logic.workloads.not_enforced import KINDS, decide
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.index import Key, key_of
from skerry.runtime.informer import Handler
from skerry.runtime.workqueue import WorkQueue

NAME = "enforcement-controller"


class Subject(NamedTuple):
    """One object of one of the kinds."""

    gvr: GroupVersionResource
    key: Key

    def __str__(self) -> str:
        return f"{self.gvr.group_resource} {self.key}"


class Observed(NamedTuple):
    """An object, and its kind."""

    gvr: GroupVersionResource
    object: Object


def build(context: ControllerContext) -> Controller[Subject, Observed]:
    """Return the controller; an object is looked at when it changes."""
    informers = {gvr: context.factory.informer(gvr) for gvr in KINDS}
    queue: WorkQueue[Subject] = context.queue(NAME)
    for gvr, informer in informers.items():
        informer.add_handler(_enqueue(gvr, queue.add))

    async def observe(subject: Subject) -> Observed | None:
        found = informers[subject.gvr].index.get(subject.key)
        return None if found is None else Observed(subject.gvr, found)

    reconciler = Reconciler(
        observe,
        lambda o: decide(o.gvr, o.object, rfc3339(context.client.clock.now())),
        context.executor(NAME),
    )
    return context.controller(NAME, reconciler, queue, list(informers.values()), workers=1)


def _enqueue(gvr: GroupVersionResource, add: Callable[[Subject], None]) -> Handler:
    def handle(old: Object | None, new: Object | None) -> None:
        if new is not None:
            add(Subject(gvr, key_of(new)))

    return handle
