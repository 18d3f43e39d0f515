"""A workspace is looked at when its Placements or namespaces change, or what those may choose."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import CLUSTER_ANNOTATION, PATH_ANNOTATION
from skerry.logic.fleet.placement.records import lean_sync_target
from skerry.runtime.client import cluster_of
from skerry.runtime.informer import Informer

NAME = "placements"
NAMESPACES = GroupVersionResource("", "v1", "namespaces")
# On a namespace: some Placement is for it.
PLACED = "scheduling.kcp.io/placement"

# Names of indexes: by the cluster an object is in, by where Placements look for Locations.
IN = "cluster"
LOOKED_AT = "looked at"


class Workspace(NamedTuple):
    """What is looked at: all Placements of one logical cluster."""

    cluster: str


def own_cluster(obj: Object) -> Iterable[Hashable]:
    """Index under the cluster an object is in."""
    return (cluster_of(obj),)


def wanted_workspace(placement: Object) -> Iterable[Hashable]:
    """Index a Placement under the workspace its Locations are in: a path, or its own cluster."""
    spec = placement.get("spec") or {}
    return (spec.get("locationWorkspace") or cluster_of(placement),)


def workspaces_of(location: Object) -> Iterable[Hashable]:
    """Index a Location under both names of its workspace."""
    path = (location["metadata"].get("annotations") or {}).get(PATH_ANNOTATION)
    cluster = cluster_of(location)
    return (cluster, path) if path and path != cluster else (cluster,)


def kept_sync_target(obj: Object) -> Object:
    """Return what counts of a SyncTarget here; no heartbeat is in it."""
    lean = lean_sync_target(obj)
    ready = [each for each in lean["status"]["conditions"] if each.get("type") == "Ready"]
    evict = lean["spec"].get("evictAfter")
    return {**lean, "spec": {"evictAfter": evict}, "status": {"conditions": ready}}


def kept_namespace(obj: Object) -> Object:
    """Return what is worth keeping of a namespace."""
    metadata = obj["metadata"]
    annotations = metadata.get("annotations") or {}
    kept = {key: annotations[key] for key in (CLUSTER_ANNOTATION, PLACED) if key in annotations}
    members = ("name", "uid", "resourceVersion", "labels", "deletionTimestamp")
    lean = {name: metadata[name] for name in members if metadata.get(name)}
    return {"metadata": {**lean, "annotations": kept}}


def differs(old: Object | None, new: Object | None) -> bool:
    """Tell whether two of what is kept differ in more than their version: heartbeats do not."""
    return _unversioned(old) != _unversioned(new)


def _kept(obj: Object | None) -> Object | None:
    return None if obj is None else kept_sync_target(obj)


def _unversioned(obj: Object | None) -> Object | None:
    if obj is None:
        return None
    metadata = {k: v for k, v in obj["metadata"].items() if k != "resourceVersion"}
    return {**obj, "metadata": metadata}


class EventHandlers:
    """Adds the clusters whose Placements a change may matter to."""

    def __init__(
        self,
        placements: Informer,
        locations: Informer,
        add: Callable[[Workspace], None],
    ) -> None:
        self._placements = placements
        self._locations = locations
        self._add = add

    def placement_changed(self, old: Object | None, new: Object | None) -> None:
        obj = new or old
        if obj is not None:
            self._add(Workspace(cluster_of(obj)))

    def location_changed(self, old: Object | None, new: Object | None) -> None:
        for obj in (old, new):
            if obj is not None:
                self._enqueue_lookers(workspaces_of(obj))

    def sync_target_changed(self, old: Object | None, new: Object | None) -> None:
        obj = new or old
        if obj is None or not differs(_kept(old), _kept(new)):
            return
        # One of them will do, however many there are: all know their workspace by the same names.
        location = self._locations.index.first(IN, cluster_of(obj))
        if location is not None:
            self._enqueue_lookers(workspaces_of(location))

    def namespace_changed(self, old: Object | None, new: Object | None) -> None:
        obj = new or old
        if obj is None or not differs(old, new):
            return
        cluster = cluster_of(obj)
        if self._placements.index.keys_by(IN, cluster):
            self._add(Workspace(cluster))

    def _enqueue_lookers(self, workspaces: Iterable[Hashable]) -> None:
        for workspace in workspaces:
            for key in self._placements.index.keys_by(LOOKED_AT, workspace):
                self._add(Workspace(key.cluster))
