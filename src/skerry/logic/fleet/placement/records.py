"""The facts of Locations, SyncTargets and EdgePlacements that placement depends on.

A change of anything else about the objects enqueues nothing.

There are two reductions. A *record* has what the rules of placement read, parsed and compared by
value: a record that equals the last one is no change. A *lean* object is what informers cache in
place of the whole: still an object, with what any controller reads of it, so that memory follows
what is read and not what somebody wrote there.

What cannot be read is kept apart from what is absent: a selector that is malformed gives
``errors``, one that is missing gives None or nothing, and what either means is said at each record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from skerry.api.edge import (
    CHANGED_BY,
    EDGE_PLACEMENTS,
    HEARTBEAT_LEASE_SECONDS,
    SYNC_TARGET_NAME,
    TAINTS,
    location_ref,
)
from skerry.api.kcp.resources import LOCATIONS, SYNC_TARGETS
from skerry.api.objects import Raw
from skerry.api.refs import CLUSTER_ANNOTATION, PATH_ANNOTATION, ClusterName, ObjectRef
from skerry.logic.fleet.placement.strategy import Strategy, strategy_of, taints_of
from skerry.logic.fleet.placement.terms import Terms, contradictions, read_selector
from skerry.logic.machinery.taints import Taint

_EDGE_PLACEMENT = EDGE_PLACEMENTS.group_resource
_LOCATION = LOCATIONS.group_resource
_SYNC_TARGET = SYNC_TARGETS.group_resource


class Destination(NamedTuple):
    """A SyncTarget, and the Location by which it was chosen; in the order of slices.

    The UID is part of it, since a SyncTarget that was made anew under its name is another edge,
    with a mailbox of its own.
    """

    cluster: ClusterName
    location: str
    sync_target: str
    uid: str

    @property
    def location_ref(self) -> ObjectRef:
        """The Location by which it was chosen."""
        return location_ref(self.cluster, self.location)

    def as_object(self) -> dict[str, str]:
        """Return the form it has in a SinglePlacementSlice."""
        return {
            "cluster": self.cluster,
            "locationName": self.location,
            "syncTargetName": self.sync_target,
            "syncTargetUID": self.uid,
        }


@dataclass(frozen=True, slots=True)
class Location:
    """A Location. ``instances`` None matches no SyncTarget; ``errors`` say why if it should."""

    ref: ObjectRef
    labels: Mapping[str, str]
    instances: Terms | None
    errors: tuple[str, ...] = ()
    taints: tuple[Taint, ...] = ()


@dataclass(frozen=True, slots=True)
class SyncTarget:
    """An edge cluster. ``available``: it lives, and new workloads are welcome.

    Only a strategy asks for that: without one, an edge that is away is a destination like others.
    """

    ref: ObjectRef
    uid: str
    labels: Mapping[str, str]
    available: bool = False


@dataclass(frozen=True, slots=True)
class Placement:
    """An EdgePlacement's *where*. With ``errors`` its destinations are unknown.

    One malformed selector makes all of them so. The others alone would give fewer, and a slip of
    the pen would remove workloads.
    """

    ref: ObjectRef
    selectors: tuple[Terms, ...]
    # None: Locations of every workspace.
    workspaces: Terms | None = None
    strategy: Strategy | None = None
    errors: tuple[str, ...] = ()
    # What can never be satisfied, in sentences.
    unsatisfiable: tuple[str, ...] = ()


def location_of(obj: Raw) -> Location:
    """Read a Location object."""
    metadata, spec = obj["metadata"], obj.get("spec") or {}
    read = read_selector(spec.get("instanceSelector"), "spec.instanceSelector")
    annotations = metadata.get("annotations") or {}
    return Location(
        ObjectRef.of(_LOCATION, obj),
        metadata.get("labels") or {},
        read.terms,
        read.errors,
        taints_of(annotations.get(TAINTS, "")),
    )


def sync_target_of(obj: Raw) -> SyncTarget:
    """Read a SyncTarget object."""
    metadata = obj["metadata"]
    closed = bool((obj.get("spec") or {}).get("unschedulable"))
    return SyncTarget(
        ObjectRef.of(_SYNC_TARGET, obj),
        metadata.get("uid", ""),
        metadata.get("labels") or {},
        not closed and is_ready(obj),
    )


def is_ready(obj: Raw) -> bool:
    """Tell whether the condition Ready is True; one that is not there yet is not."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)


# To select by, to see a deletion, and to write by: the preconditions of a write are all here.
_KEPT_METADATA = ("name", "uid", "resourceVersion", "labels", "deletionTimestamp")
_KEPT_OF_MAILBOX = ("name", "uid", "resourceVersion", "deletionTimestamp")
_KEPT_STATUS = ("lastSyncerHeartbeatTime", "objects", "syncerVersion")
_KEPT_ANNOTATIONS = (
    CLUSTER_ANNOTATION,
    PATH_ANNOTATION,
    TAINTS,
    HEARTBEAT_LEASE_SECONDS,
    CHANGED_BY,
)


def lean_location(obj: Raw) -> dict[str, Any]:
    """Return the part of a Location that any controller reads, to be cached in its stead."""
    said = obj.get("spec") or {}
    spec = {key: said[key] for key in ("instanceSelector", "resource") if said.get(key) is not None}
    status = obj.get("status") or {}
    return {"metadata": _lean_metadata(obj["metadata"]), "spec": spec, "status": status}


def lean_sync_target(obj: Raw) -> dict[str, Any]:
    """Return the part of a SyncTarget that any controller reads, to be cached in its stead.

    It is one part for all of them, so that those of a process share one cache: each heartbeat of
    an edge is read once, and not once for every controller.
    """
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    kept: dict[str, Any] = {name: status[name] for name in _KEPT_STATUS if status.get(name)}
    kept["conditions"] = status.get("conditions") or []
    evict = {"evictAfter": spec["evictAfter"]} if spec.get("evictAfter") else {}
    return {
        "metadata": _lean_metadata(obj["metadata"]),
        "spec": {"unschedulable": bool(spec.get("unschedulable")), **evict},
        "status": kept,
    }


def lean_mailbox(obj: Raw) -> dict[str, Any]:
    """Return the part of a mailbox's Workspace that any controller reads; they share one cache."""
    metadata = obj["metadata"]
    kept = {key: metadata[key] for key in _KEPT_OF_MAILBOX if key in metadata}
    annotations = metadata.get("annotations") or {}
    notes = (CLUSTER_ANNOTATION, SYNC_TARGET_NAME)
    kept["annotations"] = {key: annotations[key] for key in notes if key in annotations}
    cluster = str((obj.get("spec") or {}).get("cluster") or "")
    return {"metadata": kept, "spec": {"cluster": cluster}}


def _lean_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: metadata[key] for key in _KEPT_METADATA if key in metadata}
    annotations = metadata.get("annotations") or {}
    kept["annotations"] = {key: annotations[key] for key in _KEPT_ANNOTATIONS if key in annotations}
    return kept


def is_being_deleted(obj: Raw) -> bool:
    """Tell whether an object is being deleted."""
    return bool(obj["metadata"].get("deletionTimestamp"))


def placement_of(obj: Raw) -> Placement:
    """Read an EdgePlacement object."""
    spec = obj.get("spec") or {}
    selectors: list[Terms] = []
    errors: list[str] = []
    impossible: list[str] = []
    for number, selector in enumerate(spec.get("locationSelectors") or ()):
        path = f"spec.locationSelectors[{number}]"
        read = read_selector(selector, path)
        errors += read.errors
        if read.terms is not None:
            selectors.append(read.terms)
            impossible += _impossible(read.terms, path)
    workspaces: Terms | None = None
    if spec.get("locationWorkspaceSelector") is not None:
        path = "spec.locationWorkspaceSelector"
        read = read_selector(spec["locationWorkspaceSelector"], path)
        errors += read.errors
        workspaces = read.terms
        impossible += _impossible(read.terms or (), path)
    return Placement(
        ObjectRef.of(_EDGE_PLACEMENT, obj),
        # Any of them is enough, so one that is written twice says nothing new.
        tuple(dict.fromkeys(selectors)),
        workspaces,
        strategy_of(spec.get("strategy")),
        tuple(errors),
        tuple(impossible),
    )


def _impossible(terms: Terms, path: str) -> list[str]:
    """Return what no label can satisfy: no error to Kubernetes, and seldom what was meant."""
    return [f"{path}: no value of label {key!r} can satisfy it" for key in contradictions(terms)]
