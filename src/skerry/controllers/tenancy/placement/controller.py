"""Wiring."""

from __future__ import annotations

from skerry.api.kcp.resources import LOCATIONS, PLACEMENTS, SYNC_TARGETS
from skerry.controllers.tenancy.placement.decide import decide
from skerry.controllers.tenancy.placement.keys import (
    IN,
    LOOKED_AT,
    NAME,
    EventHandlers,
    Workspace,
    own_cluster,
    wanted_workspace,
    workspaces_of,
)
from skerry.controllers.tenancy.placement.observe import Namespaces, Observed, Observer
from skerry.logic.fleet.placement.records import lean_location, lean_sync_target
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.informer import InformerFactory
from skerry.runtime.workqueue import WorkQueue


def build(
    everywhere: ControllerContext, scheduling: InformerFactory, workload: InformerFactory
) -> Controller[Workspace, Observed]:
    """Return the controller of Placements; all three see every workspace."""
    placements = scheduling.informer(PLACEMENTS)
    locations = scheduling.informer(LOCATIONS, transform=lean_location, packed=True)
    targets = workload.informer(SYNC_TARGETS, transform=lean_sync_target, packed=True)
    placements.index.add_index(IN, own_cluster)
    placements.index.add_index(LOOKED_AT, wanted_workspace)
    locations.index.add_index(IN, own_cluster)
    locations.index.add_index(LOOKED_AT, workspaces_of)
    targets.index.add_index(IN, own_cluster)
    queue: WorkQueue[Workspace] = everywhere.queue(NAME)
    handlers = EventHandlers(placements, locations, queue.add)
    namespaces = Namespaces(everywhere.factory, handlers.namespace_changed)
    placements.add_handler(handlers.placement_changed)
    locations.add_handler(handlers.location_changed)
    targets.add_handler(handlers.sync_target_changed)
    clock = everywhere.client.clock
    reconciler = Reconciler(
        Observer(placements, locations, targets, namespaces).observe,
        lambda observed: decide(observed, clock.now()),
        everywhere.executor(NAME),
    )
    return everywhere.controller(NAME, reconciler, queue, [placements, locations, targets])
