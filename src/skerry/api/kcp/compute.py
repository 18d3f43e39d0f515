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
            "wanted": whole("Desired at the cluster.", format="int32"),
            "applied": whole("Applied at the cluster.", format="int32"),
            "refused": whole("Refused by the cluster.", format="int32"),
            "unhealthy": whole("At the cluster and unhealthy.", format="int32"),
            "held": whole("Waiting for approval of their deletion.", format="int32"),
        },
        "Number of objects, by state, as the syncer last reported.",
    )


def sync_target() -> Raw:
    """SyncTarget: an edge cluster."""
    spec = struct(
        {
            "cells": mapping(text(), "Cells that the cluster is part of."),
            "evictAfter": moment("Time after which workloads are evicted."),
            "supportedAPIExports": listing(
                struct(
                    {"export": text("Name of the export."), "path": text("Path of its workspace.")},
                    required=("export",),
                ),
                "Exports whose objects the cluster can run.",
                default=[{"export": "kubernetes"}],
            ),
            "unschedulable": truth("Whether new workloads are refused.", default=False),
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
            "allocatable": mapping(_QUANTITY, "Resources available to workloads."),
            "capacity": mapping(_QUANTITY, "Total resources of the cluster."),
            "conditions": conditions(),
            "lastSyncerHeartbeatTime": moment("Time of the syncer's last heartbeat."),
            "objects": _counts(),
            "syncerVersion": text("Version of the syncer."),
            "syncedResources": listing(synced, "Resources that are synced."),
            "virtualWorkspaces": listing(views, "Virtual workspaces for the syncer."),
        }
    )
    return definition(
        WORKLOAD,
        "SyncTarget",
        "synctargets",
        {"spec": spec, "status": status},
        "SyncTarget represents a cluster that workloads can be synced to.",
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
        "Type of the instances of the Location.",
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
            "availableSelectorLabels": listing(available, "Labels that users may select by."),
            "description": text("Human-readable description of the Location."),
            "instanceSelector": label_selector(
                "Instances of the Location; absent means none, empty means all."
            ),
            "resource": _resource_reference(),
        },
        required=("resource",),
    )
    status = struct(
        {
            "availableInstances": whole("Number of instances that are ready.", format="int32"),
            "instances": whole("Number of instances.", format="int32"),
            "conditions": conditions(),
        }
    )
    return definition(
        SCHEDULING,
        "Location",
        "locations",
        {"spec": spec, "status": status},
        "Location represents the instances that are in one place.",
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
        "PartitionSet creates Partitions.",
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
