"""Wiring."""

from __future__ import annotations

from skerry.controllers.workload.kinds import CLAIMS, STORAGE_CLASSES, VOLUMES
from skerry.controllers.workload.volume.decide import decide
from skerry.controllers.workload.volume.events import connect
from skerry.controllers.workload.volume.observe import Observed, Observer
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.index import Key
from skerry.runtime.workqueue import WorkQueue

NAME = "persistentvolume-controller"


def build(context: ControllerContext, root: str) -> Controller[Key, Observed]:
    """Return the controller that binds claims; local volumes are directories below *root*.

    Without a *root* volumes are made by others only.
    """
    factory = context.factory
    claims, volumes = factory.informer(CLAIMS), factory.informer(VOLUMES)
    classes = factory.informer(STORAGE_CLASSES)
    queue: WorkQueue[Key] = context.queue(NAME)
    connect(queue, claims, volumes, classes)
    observer = Observer(context.client, claims, volumes, classes, root)
    reconciler: Reconciler[Key, Observed] = Reconciler(
        observer.observe, decide, context.executor(NAME)
    )
    # One at a time: two claims must not choose one volume from the same facts.
    return context.controller(NAME, reconciler, queue, [claims, volumes, classes], workers=1)
