"""``workload.kcp.io``, ``scheduling.kcp.io``, ``topology.kcp.io``, ``apiresource.kcp.io``.

SyncTarget stands for an edge cluster, Location describes where edge clusters are.
"""

from __future__ import annotations

from skerry.api.kcp.building import (
    AGE,
    Raw,
    anything,
    column,
    condition_path,
    conditions,
    definition,
    label_selector,
    listing,
    mapping,
    moment,
    struct,
    text,
    truth,
    whole,
)

WORKLOAD = "workload.kcp.io"
SCHEDULING = "scheduling.kcp.io"
TOPOLOGY = "topology.kcp.io"
API_RESOURCE = "apiresource.kcp.io"

_QUANTITY: Raw = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}


def _counts() -> Raw:
    return struct(
        {
            "wanted": whole("To be there.", format="int32"),
            "applied": whole("There as wanted.", format="int32"),
            "refused": whole("Not taken by the cluster.", format="int32"),
            "unhealthy": whole("There and not well.", format="int32"),
            "held": whole("Waiting for a person to be deleted.", format="int32"),
        },
        "How many objects the cluster has, as its syncer last reported.",
    )


def sync_target() -> Raw:
    """SyncTarget: an edge cluster."""
    spec = struct(
        {
            "cells": mapping(text(), "Cells the cluster is part of."),
            "evictAfter": moment("When workloads are to leave."),
            "supportedAPIExports": listing(
                struct(
                    {"export": text("Name of the export."), "path": text("Path of its workspace.")},
                    required=("export",),
                ),
                "Exports whose objects the cluster can run.",
                default=[{"export": "kubernetes"}],
            ),
            "unschedulable": truth("Whether no more workloads may come.", default=False),
        }
    )
    synced = struct(
        {
            "group": text(),
            "identityHash": text(),
            "resource": text(),
            "state": text(enum=["Pending", "Accepted", "Incompatible"]),
            "versions": listing(text()),
        },
        required=("resource", "versions"),
    )
    views = struct({"syncerURL": text(), "upsyncerURL": text()})
    status = struct(
        {
            "allocatable": mapping(_QUANTITY, "What workloads can use."),
            "capacity": mapping(_QUANTITY, "What is there."),
            "conditions": conditions(),
            "lastSyncerHeartbeatTime": moment("When the syncer last said it lives."),
            "objects": _counts(),
            "syncerVersion": text("Version of the syncer."),
            "syncedResources": listing(synced, "Resources that are synced."),
            "virtualWorkspaces": listing(views, "Views for the syncer."),
        }
    )
    return definition(
        WORKLOAD,
        "SyncTarget",
        "synctargets",
        {"spec": spec, "status": status},
        "SyncTarget stands for a cluster that workloads can be synced to.",
        columns=[
            # In kcp these are shown on request; whether an edge lives is what people look for.
            column("Ready", condition_path("Ready")),
            column("Last heartbeat", ".status.lastSyncerHeartbeatTime", "date"),
            column("Location", ".metadata.name", priority=1),
            column("Synced API resources", ".status.syncedResources", priority=2),
            column("Held", condition_path("Held"), priority=1),
            column("Key", ".metadata.labels['internal\\.workload\\.kcp\\.io/key']", priority=3),
            AGE,
        ],
        categories=("kcp",),
    )


def _resource_reference() -> Raw:
    return struct(
        {
            "group": text("API group.", enum=[WORKLOAD], default=WORKLOAD),
            "resource": text("Resource.", enum=["synctargets"], default="synctargets"),
            "version": text("Version.", enum=["v1alpha1"], default="v1alpha1"),
        },
        "The kind of instances a location has.",
        required=("resource", "version"),
    )


def location() -> Raw:
    """Location: where edge clusters are."""
    available = struct(
        {
            "description": text(),
            "key": text(),
            "values": listing(text()),
        },
        required=("key",),
    )
    spec = struct(
        {
            "availableSelectorLabels": listing(available, "Labels users may select by."),
            "description": text("What the location is, for people."),
            "instanceSelector": label_selector(
                "Instances of the location; absent means none, empty means all."
            ),
            "resource": _resource_reference(),
        },
        required=("resource",),
    )
    status = struct(
        {
            "availableInstances": whole("Instances that are ready.", format="int32"),
            "instances": whole("Instances there are.", format="int32"),
            "conditions": conditions(),
        }
    )
    return definition(
        SCHEDULING,
        "Location",
        "locations",
        {"spec": spec, "status": status},
        "Location stands for instances that are in one place, to users of that place.",
        columns=[
            column("Resource", ".spec.resource.resource"),
            column("Available", ".status.availableInstances"),
            column("Instances", ".status.instances"),
            # In kcp the column stays empty: it names an annotation that nobody writes any more.
            column("Labels", ".metadata.annotations['scheduling\\.kcp\\.io/labels']"),
            AGE,
        ],
        categories=("kcp",),
    )


def placement() -> Raw:
    """Placement: which Location the namespaces of a workspace are meant for."""
    spec = struct(
        {
            "locationResource": _resource_reference(),
            "locationSelectors": listing(label_selector()),
            "locationWorkspace": text(),
            "namespaceSelector": label_selector(),
        },
        required=("locationResource",),
    )
    status = struct(
        {
            "conditions": conditions(),
            "phase": text(enum=["Pending", "Unbound", "Bound"], default="Pending"),
            "selectedLocation": struct(
                {"locationName": text(), "path": text()}, required=("locationName", "path")
            ),
        }
    )
    return definition(
        SCHEDULING,
        "Placement",
        "placements",
        {"spec": spec, "status": status},
        "Placement binds namespaces to a location.",
        columns=[AGE],
        categories=("kcp",),
    )


def topology() -> list[Raw]:
    """Partition and PartitionSet: groups of shards."""
    partition = definition(
        TOPOLOGY,
        "Partition",
        "partitions",
        {"spec": struct({"selector": label_selector("Shards of the partition.", checked=True)})},
        "Partition is a group of shards.",
        status=False,
        columns=[AGE],
        categories=("kcp",),
    )
    partition_set = definition(
        TOPOLOGY,
        "PartitionSet",
        "partitionsets",
        {
            "spec": struct(
                {"dimensions": listing(text()), "shardSelector": label_selector(checked=True)},
            ),
            "status": struct({"conditions": conditions(), "count": whole(format="int32")}),
        },
        "PartitionSet makes Partitions.",
        columns=[column("Count", ".status.count", "string"), AGE],
        categories=("kcp",),
    )
    return [partition, partition_set]


def api_resources() -> list[Raw]:
    """APIResourceImport and NegotiatedAPIResource: kept as data."""
    return [
        definition(
            API_RESOURCE,
            kind,
            plural,
            {"spec": anything(), "status": anything()},
            description,
            columns=[AGE],
            categories=("kcp",),
        )
        for kind, plural, description in (
            (
                "APIResourceImport",
                "apiresourceimports",
                "APIResourceImport is a resource type found at a cluster.",
            ),
            (
                "NegotiatedAPIResource",
                "negotiatedapiresources",
                "NegotiatedAPIResource is a resource type several clusters agree on.",
            ),
        )
    ]
