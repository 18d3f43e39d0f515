"""What the translator's event handlers read of an object or a record."""

from __future__ import annotations

from skerry.api.edge import edge_placement_ref as placement_ref
from skerry.api.edge import mailbox_named, placement_of_slice
from skerry.api.objects import Object
from skerry.api.refs import ClusterName, ObjectRef
from skerry.logic.fleet.translation.sources import Record
from skerry.runtime.client import cluster_of


def placement_ref_of_slice(piece: Object) -> ObjectRef:
    """Return the placement a slice belongs to."""
    return placement_ref(cluster_of(piece), placement_of_slice(piece))


def mailbox_cluster(workspace: Object | None) -> ClusterName:
    """Return the cluster of a Workspace that is a mailbox and can be used; else nothing."""
    if workspace is None or "deletionTimestamp" in workspace["metadata"]:
        return ""
    if mailbox_named(workspace["metadata"]["name"]) is None:
        return ""
    return str((workspace.get("spec") or {}).get("cluster", ""))


def shown_placement(placement: ObjectRef) -> str:
    """Return a placement as conditions and logs show it."""
    return f"{placement.cluster}:{placement.name}"


def location_terms(location: Object) -> tuple[object, object]:
    """Return what grants and customizers read of a Location: labels and annotations."""
    metadata = location["metadata"]
    return metadata.get("labels"), metadata.get("annotations")


def lean_value(record: Record | None) -> bytes | None:
    """Return what is copied of a record; None when it is gone or being deleted."""
    return None if record is None or record.being_deleted else record.lean


def is_source(record: Record | None) -> bool:
    """Tell whether there is a record, and of an object that others are made of."""
    return record is not None and record.is_source


def is_same(old: Record, new: Record) -> bool:
    """Tell whether a copy is still what it was, its status and the like aside."""
    return _standing(old) == _standing(new)


def _standing(copy: Record) -> tuple[object, ...]:
    return (
        copy.uid,
        copy.digest,
        copy.projected,
        copy.being_deleted,
        copy.owned,
        copy.generation,
    )
