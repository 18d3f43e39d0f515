"""The facts of Locations, SyncTargets and EdgePlacements that placement depends on.

A change of anything else about the objects enqueues nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from skerry.api.edge import (
    CHANGED_BY,
    EDGE_PLACEMENTS,
    HEARTBEAT_LEASE_SECONDS,
    TAINTS,
    location_ref,
)
from skerry.api.kcp.resources import LOCATIONS, SYNC_TARGETS
from skerry.api.objects import Raw
from skerry.api.refs import CLUSTER_ANNOTATION, ClusterName, ObjectRef
from skerry.logic.fleet.placement.strategy import Strategy, strategy_of, taints_of
from skerry.logic.fleet.placement.terms import Terms, contradictions, read_selector
from skerry.logic.machinery.taints import Taint

_EDGE_PLACEMENT = EDGE_PLACEMENTS.group_resource
_LOCATION = LOCATIONS.group_resource
_SYNC_TARGET = SYNC_TARGETS.group_resource


class Destination(NamedTuple):
    """A SyncTarget, and the Location by which it was chosen; in the order of slices."""

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
    """An edge cluster. ``available``: it lives, and new workloads are welcome."""

    ref: ObjectRef
    uid: str
    labels: Mapping[str, str]
    available: bool = False


@dataclass(frozen=True, slots=True)
class Placement:
    """An EdgePlacement's *where*. With ``errors`` its destinations are unknown."""

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
    """Tell whether the condition Ready is True."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)


_KEPT_METADATA = ("name", "uid", "resourceVersion", "labels", "deletionTimestamp")
_KEPT_ANNOTATIONS = (CLUSTER_ANNOTATION, TAINTS, HEARTBEAT_LEASE_SECONDS, CHANGED_BY)


def lean_location(obj: Raw) -> dict[str, Any]:
    """Return the part of a Location that is read here, to be cached in its stead."""
    selector = (obj.get("spec") or {}).get("instanceSelector")
    spec = {} if selector is None else {"instanceSelector": selector}
    return {"metadata": _lean_metadata(obj["metadata"]), "spec": spec}


def lean_sync_target(obj: Raw) -> dict[str, Any]:
    """Return the part of a SyncTarget that edge controllers read, to be cached in its stead."""
    status = obj.get("status") or {}
    conditions = [c for c in status.get("conditions") or () if c.get("type") == "Ready"]
    heartbeat = status.get("lastSyncerHeartbeatTime")
    return {
        "metadata": _lean_metadata(obj["metadata"]),
        "spec": {"unschedulable": bool((obj.get("spec") or {}).get("unschedulable"))},
        "status": {"conditions": conditions, "lastSyncerHeartbeatTime": heartbeat},
    }


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
        tuple(dict.fromkeys(selectors)),
        workspaces,
        strategy_of(spec.get("strategy")),
        tuple(errors),
        tuple(impossible),
    )


def _impossible(terms: Terms, path: str) -> list[str]:
    return [f"{path}: no value of label {key!r} can satisfy it" for key in contradictions(terms)]
