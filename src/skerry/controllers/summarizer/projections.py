"""The little that is kept of the objects that are watched.

Objects of a kind are seen in all workspaces at once, so what is kept of each counts: of a copy its
report, of a source its labels. Contents, Secrets' among them, are gone once read.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from sys import intern
from typing import Any, NamedTuple

from skerry.api.edge import (
    REVISIONS,
    edge_placement_ref,
    is_projected,
    is_system_object,
    placement_of_slice,
)
from skerry.api.edge_categories import category_of
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.api.refs import CLUSTER_ANNOTATION, ObjectRef
from skerry.logic.fleet.revision.noted import noted_revisions
from skerry.logic.fleet.summary.report import delivery_of, digest_of, report_of
from skerry.logic.fleet.summary.standing import Hold
from skerry.logic.fleet.syncing.reported import held_clusters, hold_of
from skerry.runtime.client import cluster_of

BY_CLUSTER = "cluster"
BY_PLACEMENT = "placement"

_IDENTITY = ("name", "namespace", "uid", "resourceVersion", "deletionTimestamp")
# What thousands of objects have in common is kept once.
_COMMON = ("name", "namespace")
_OWNERSHIP = ("labels", "ownerReferences")


class Kind(NamedTuple):
    """A type that is watched, at the version its workspace prefers."""

    group: str
    version: str
    resource: str
    kind: str
    has_status: bool

    @property
    def group_resource(self) -> GroupResource:
        return GroupResource(self.group, self.resource)

    def item(self, obj: Object) -> ObjectRef:
        """Return who an object of this kind is, in whichever cluster."""
        metadata = obj["metadata"]
        namespace = metadata.get("namespace", "")
        return ObjectRef("", self.group, self.resource, namespace, metadata["name"])

    def project(self, obj: Object) -> Object:
        """Return what is kept of an object of this kind."""
        if is_system_object(self.group_resource, obj):
            return {"metadata": lean_metadata(obj), "system": True}
        if is_projected(obj):
            report = report_of(self.group, self.kind, obj) if self.has_status else delivery_of(obj)
            return {"metadata": lean_metadata(obj), "report": report}
        kept: Object = {"metadata": lean_metadata(obj, ("labels",))}
        if self.has_status:
            kept["digest"] = digest_of(obj.get("status"))
        return kept


def matters(kept: Object) -> bool:
    """Tell whether what is kept of an object is of any use.

    Nothing is said of the objects that each namespace has for itself, unless somebody asked for
    parts of them.
    """
    return "system" not in kept or "extract" in kept


def lean_metadata(obj: Object, also: Iterable[str] = ()) -> Object:
    """Return who an object is and where, and what else is asked for."""
    metadata = obj["metadata"]
    kept: Object = {name: metadata[name] for name in (*_IDENTITY, *also) if name in metadata}
    for name in _COMMON:
        if name in kept:
            kept[name] = intern(kept[name])
    cluster = cluster_of(obj)
    if cluster:
        kept["annotations"] = _within(intern(cluster))
    return kept


@lru_cache(maxsize=65536)
def _within(cluster: str) -> dict[str, str]:
    """Return the annotation that says where an object is: one for all that are there."""
    return {CLUSTER_ANNOTATION: cluster}


def lean_summary(obj: Object) -> Object:
    """Keep of a summary who it is, whose, and a digest of what it says."""
    return {
        "metadata": lean_metadata(obj, _OWNERSHIP),
        "digest": summary_digest(obj),
    }


def summary_digest(obj: Object) -> str:
    """Return what tells one summary's content from another's."""
    skipped = ("apiVersion", "kind", "metadata")
    return digest_of({name: value for name, value in obj.items() if name not in skipped})


def lean_slice(obj: Object) -> Object:
    """Keep of a slice whose it is and where it sends things."""
    return {
        "metadata": lean_metadata(obj, _OWNERSHIP),
        "destinations": obj.get("destinations") or [],
    }


def lean_config(obj: Object) -> Object:
    """Keep of a SyncerConfig what its edge holds back, and the revisions it notes; no scope."""
    kept: Object = {"metadata": lean_metadata(obj), "hold": list(hold_of(obj) or ())}
    noted = (obj["metadata"].get("annotations") or {}).get(REVISIONS)
    if noted:
        kept["noted"] = {REVISIONS: noted}
    return {**kept, "clusters": list(held_clusters(obj)) if kept["hold"] else []}


def hold_in(config: Object) -> Hold | None:
    """Return what a lean SyncerConfig says its edge holds back."""
    if not config["hold"]:
        return None
    reason, message = config["hold"]
    return Hold(reason, message, tuple(config["clusters"]))


def noted_in(config: Object) -> dict[ObjectRef, int]:
    """Return at which revisions of placements a lean SyncerConfig says that its mailbox is."""
    return noted_revisions({"annotations": config.get("noted") or {}})


def lean_definition(obj: Object) -> Object:
    """Keep of a CustomResourceDefinition what its type is called and has; no schemas."""
    spec = obj["spec"]
    versions = [
        {name: version[name] for name in ("name", "served", "subresources") if name in version}
        for version in spec.get("versions") or ()
    ]
    names = {"group", "names", "scope"}
    return {
        "metadata": lean_metadata(obj),
        "spec": {**{n: v for n, v in spec.items() if n in names}, "versions": versions},
        "status": {"conditions": (obj.get("status") or {}).get("conditions") or []},
    }


def lean_binding(obj: Object) -> Object:
    """Keep of an APIBinding which types it brings that go to edges, under which identity."""
    bound = (obj.get("status") or {}).get("boundResources") or ()
    types = tuple(
        (each.get("group", ""), each["resource"], each["schema"].get("identityHash", ""))
        for each in bound
        if travels(GroupResource(each.get("group", ""), each["resource"]))
    )
    return {"metadata": lean_metadata(obj), "bound": _bound(types)}


def brings_any(binding: Object) -> bool:
    """Tell whether a lean binding brings types that go to edges.

    Most do not: every workspace binds what the hub itself is made of.
    """
    return bool(binding["bound"])


def travels(resource: GroupResource) -> bool:
    """Tell whether objects of a type go on to edges."""
    return category_of(resource).to_edge


@lru_cache(maxsize=4096)
def _bound(types: tuple[tuple[str, str, str], ...]) -> tuple[tuple[str, str, str], ...]:
    """Return the first tuple equal to *types*: thousands of workspaces bind alike."""
    return types


def by_cluster(obj: Object) -> tuple[str]:
    """Index under the logical cluster."""
    return (cluster_of(obj),)


def by_placement(obj: Object) -> tuple[ObjectRef]:
    """Index slices under the placement they belong to."""
    return (edge_placement_ref(cluster_of(obj), placement_of_slice(obj)),)


def labels_of(obj: Object) -> dict[str, Any]:
    """Return an object's labels."""
    return obj["metadata"].get("labels") or {}
