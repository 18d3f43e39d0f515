"""Wiring."""

from __future__ import annotations

from skerry.api.kcp.resources import LOCATIONS, SYNC_TARGETS
from skerry.api.refs import ObjectRef
from skerry.controllers.tenancy.location.decide import decide
from skerry.controllers.tenancy.location.keys import (
    NAME,
    EventHandlers,
    with_counts,
)
from skerry.controllers.tenancy.location.observe import Observed, Observer
from skerry.logic.fleet.placement.inventory import Inventory
from skerry.logic.fleet.placement.records import lean_sync_target
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.informer import InformerFactory
from skerry.runtime.workqueue import WorkQueue


def build(
    scheduling: ControllerContext, workload: InformerFactory
) -> Controller[ObjectRef, Observed]:
    """Return the controller that counts; both see every workspace."""
    locations = scheduling.factory.informer(LOCATIONS, transform=with_counts, packed=True)
    targets = workload.informer(SYNC_TARGETS, transform=lean_sync_target, packed=True)
    queue: WorkQueue[ObjectRef] = scheduling.queue(NAME)
    inventory = Inventory()
    handlers = EventHandlers(inventory, queue.add)
    locations.add_handler(handlers.location_changed)
    targets.add_handler(handlers.sync_target_changed)
    reconciler = Reconciler(
        Observer(inventory, locations).observe, decide, scheduling.executor(NAME)
    )
    return scheduling.controller(NAME, reconciler, queue, [locations, targets])
