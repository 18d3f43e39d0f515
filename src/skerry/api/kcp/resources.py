"""GroupVersionResources of kcp's own groups, once."""

from __future__ import annotations

from typing import Final

from skerry.api.kinds import GroupVersionResource
from skerry.api.refs import ClusterName, ObjectRef

WORKSPACES: Final = GroupVersionResource("tenancy.kcp.io", "v1alpha1", "workspaces")
LOGICAL_CLUSTERS: Final = GroupVersionResource("core.kcp.io", "v1alpha1", "logicalclusters")
API_EXPORTS: Final = GroupVersionResource("apis.kcp.io", "v1alpha1", "apiexports")
API_BINDINGS: Final = GroupVersionResource("apis.kcp.io", "v1alpha1", "apibindings")
API_RESOURCE_SCHEMAS: Final = GroupVersionResource("apis.kcp.io", "v1alpha1", "apiresourceschemas")
LOCATIONS: Final = GroupVersionResource("scheduling.kcp.io", "v1alpha1", "locations")
PLACEMENTS: Final = GroupVersionResource("scheduling.kcp.io", "v1alpha1", "placements")
SYNC_TARGETS: Final = GroupVersionResource("workload.kcp.io", "v1alpha1", "synctargets")


def workspace_ref(cluster: ClusterName, name: str) -> ObjectRef:
    """Return the identity of a Workspace object; *cluster* is the one it lies in, its parent."""
    return ObjectRef(cluster, WORKSPACES.group, WORKSPACES.resource, "", name)
