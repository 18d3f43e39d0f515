"""The table ``destination`` from its inputs alone: a scan of everything, to measure the kept by.

The rule in one screen. A SyncTarget is a destination of a placement by way of a Location if

* some of the placement's selectors match the Location's labels, and none of them is invalid,
* its workspace selector, if it has one, matches the labels of the Location's workspace,
* the Location's workspace admits the placement's (see ``consent``), and
* the SyncTarget is in the Location's workspace and satisfies the Location's instanceSelector.

A strategy then chooses among the Locations; that is left to ``scheduler.placement``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from skerry.api.refs import ClusterName, ObjectRef
from skerry.logic.fleet.placement.records import Destination, Location, Placement, SyncTarget
from skerry.logic.fleet.placement.terms import matches

Labels = Mapping[str, str]
Admits = Callable[[Placement, Location], bool]


def destinations(
    placements: Iterable[Placement],
    locations: Iterable[Location],
    sync_targets: Iterable[SyncTarget],
    workspaces: Mapping[ClusterName, Labels],
    admits: Admits = lambda placement, location: True,
) -> dict[ObjectRef, list[Destination]]:
    """Return the destinations of every placement, in order; *workspaces* are labels by cluster."""
    locations, sync_targets = list(locations), list(sync_targets)
    return {
        placement.ref: sorted(
            destination
            for location in locations
            if selects(placement, location, workspaces) and admits(placement, location)
            for destination in instances(location, sync_targets)
        )
        for placement in placements
    }


def selects(
    placement: Placement, location: Location, workspaces: Mapping[ClusterName, Labels]
) -> bool:
    """Tell whether a placement selects a Location, by its labels and those of its workspace."""
    if placement.errors or not any(matches(each, location.labels) for each in placement.selectors):
        return False
    if placement.workspaces is None:
        return True
    return matches(placement.workspaces, workspaces.get(location.ref.cluster, {}))


def instances(location: Location, sync_targets: Iterable[SyncTarget]) -> Iterable[Destination]:
    """Yield the destinations that a Location stands for."""
    for target in sync_targets:
        near = target.ref.cluster == location.ref.cluster
        if near and location.instances is not None and matches(location.instances, target.labels):
            yield Destination(location.ref.cluster, location.ref.name, target.ref.name, target.uid)
