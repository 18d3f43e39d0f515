"""``tenancy.kcp.io`` and ``core.kcp.io``: workspaces, their types, and the clusters behind them."""

from __future__ import annotations

from typing import Any

from skerry.api.kcp.building import (
    AGE,
    Raw,
    anything,
    column,
    conditions,
    definition,
    label_selector,
    listing,
    mapping,
    struct,
    text,
    truth,
)

TENANCY = "tenancy.kcp.io"
CORE = "core.kcp.io"

# A workspace name is one segment of a path.
WORKSPACE_NAME = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
_TYPE_NAME = r"^[a-z]([a-z0-9-]{0,61}[a-z0-9])?"
_PATH = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(:[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
_INITIALIZER = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(:[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(:[a-z0-9][a-z0-9]([-a-z0-9]*[a-z0-9])?))|(system:.+)$"  # noqa: E501
_PHASES = ("Scheduling", "Initializing", "Ready")


def _type_reference(description: str, **more: Any) -> Raw:
    return struct(
        {
            "name": text("Name of the type.", pattern=_TYPE_NAME),
            "path": text("Path of the workspace that has the type.", pattern=_PATH),
        },
        description,
        required=("name",),
        **more,
    )


def _initializers(description: str) -> Raw:
    return listing(text(pattern=_INITIALIZER), description)


def workspace() -> Raw:
    """Workspace: a child of a workspace."""
    spec = struct(
        {
            "URL": text("URL of the workspace; set by the server."),
            "cluster": text("Name of the workspace's logical cluster; set by the server."),
            "location": struct(
                {"selector": label_selector("Shards that the workspace may be on.")},
                "Where the workspace may be placed.",
            ),
            "type": _type_reference("Type of the workspace; cannot be changed."),
        }
    )
    status = struct(
        {
            "conditions": conditions(),
            "initializers": _initializers(
                "Initializers that must still complete before it is ready."
            ),
            "phase": text("Phase of the workspace.", enum=list(_PHASES), default="Scheduling"),
        }
    )
    return definition(
        TENANCY,
        "Workspace",
        "workspaces",
        {"spec": spec, "status": status},
        "Workspace is a cluster of its own to its users, and a child of the workspace it is in.",
        columns=[
            column("Type", ".spec.type.name"),
            column("Region", ".metadata.labels['region']"),
            column("Phase", ".metadata.labels['tenancy\\.kcp\\.io/phase']"),
            column("URL", ".spec.URL"),
            AGE,
        ],
        short_names=("ws",),
        categories=("kcp",),
    )


def cluster_workspace() -> Raw:
    """ClusterWorkspace: the old name, still discoverable."""
    return definition(
        TENANCY,
        "ClusterWorkspace",
        "clusterworkspaces",
        {"spec": anything(), "status": anything()},
        "ClusterWorkspace is the former name of Workspace.",
        columns=[column("Phase", ".status.phase"), AGE],
        categories=("kcp",),
    )


def workspace_type() -> Raw:
    """WorkspaceType: what a workspace of a type begins with and may contain."""
    limit = struct(
        {
            "none": truth("Whether none are allowed."),
            "types": listing(_type_reference(""), "Types that are allowed."),
        }
    )
    spec = struct(
        {
            "additionalWorkspaceLabels": mapping(text(), "Labels added to workspaces."),
            "defaultAPIBindings": listing(
                struct(
                    {
                        "export": text("Name of the APIExport."),
                        "path": text("Path of the workspace that has it."),
                    },
                    required=("export",),
                ),
                "APIs bound in every workspace of the type.",
            ),
            "defaultChildWorkspaceType": _type_reference(
                "Type of children that name none. Not inherited from types that this one extends.",
                default={"name": "universal", "path": "root"},
            ),
            "extend": struct(
                {"with": listing(_type_reference(""), "Types that this one extends.")},
                "What this type inherits from others.",
            ),
            "initializer": truth("Whether workspaces of the type have an initializer."),
            "limitAllowedChildren": limit,
            "limitAllowedParents": limit,
        }
    )
    status = struct(
        {
            "conditions": conditions(),
            "virtualWorkspaces": listing(
                struct({"url": text("URL of the view.")}, required=("url",)),
                "Virtual workspaces for initializers.",
            ),
        }
    )
    return definition(
        TENANCY,
        "WorkspaceType",
        "workspacetypes",
        {"spec": spec, "status": status},
        "WorkspaceType defines what workspaces of a type are created with.",
        columns=[AGE],
        categories=("kcp",),
    )


def logical_cluster() -> Raw:
    """LogicalCluster: what a workspace is to itself."""
    owner = struct(
        {
            "apiVersion": text("API version of the owner."),
            "cluster": text("Logical cluster the owner is in."),
            "name": text("Name of the owner."),
            "namespace": text("Namespace of the owner."),
            "resource": text("Resource of the owner."),
            "uid": text("UID of the owner."),
        },
        "The object this cluster belongs to.",
        required=("apiVersion", "cluster", "name", "resource", "uid"),
    )
    spec = struct(
        {
            "directlyDeletable": truth("Whether it can be deleted directly.", default=False),
            "initializers": _initializers("Initializers that complete before it is ready."),
            "owner": owner,
        }
    )
    status = struct(
        {
            "URL": text("URL of the logical cluster."),
            "conditions": conditions(),
            "initializers": _initializers(
                "Initializers that must still complete before it is ready."
            ),
            "phase": text(
                "Phase of the logical cluster.", enum=list(_PHASES), default="Scheduling"
            ),
        }
    )
    return definition(
        CORE,
        "LogicalCluster",
        "logicalclusters",
        {"spec": spec, "status": status},
        "LogicalCluster describes the logical cluster it is in.",
        columns=[column("Phase", ".status.phase"), column("URL", ".status.URL"), AGE],
        categories=("kcp",),
    )


def shard() -> Raw:
    """Shard: where logical clusters are kept."""
    spec = struct(
        {
            "baseURL": text("Base URL of the shard."),
            "externalURL": text("URL that clients use."),
            "virtualWorkspaceURL": text("Base URL of the virtual workspaces."),
        },
        required=("baseURL",),
    )
    status = struct({"capacity": anything(), "conditions": conditions()})
    return definition(
        CORE,
        "Shard",
        "shards",
        {"spec": spec, "status": status},
        "Shard is a server that hosts logical clusters.",
        columns=[
            column("Region", ".metadata.labels['region']"),
            column("URL", ".spec.baseURL"),
            column("External URL", ".spec.externalURL"),
            AGE,
        ],
        categories=("kcp",),
    )
