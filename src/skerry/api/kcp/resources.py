"""GroupVersionResources of kcp's own groups, once."""

from __future__ import annotations

from typing import Final

from skerry.api.kinds import GroupVersionResource

WORKSPACES: Final = GroupVersionResource("tenancy.kcp.io", "v1alpha1", "workspaces")
LOGICAL_CLUSTERS: Final = GroupVersionResource("core.kcp.io", "v1alpha1", "logicalclusters")
API_EXPORTS: Final = GroupVersionResource("apis.kcp.io", "v1alpha1", "apiexports")
API_BINDINGS: Final = GroupVersionResource("apis.kcp.io", "v1alpha1", "apibindings")
API_RESOURCE_SCHEMAS: Final = GroupVersionResource("apis.kcp.io", "v1alpha1", "apiresourceschemas")
LOCATIONS: Final = GroupVersionResource("scheduling.kcp.io", "v1alpha1", "locations")
PLACEMENTS: Final = GroupVersionResource("scheduling.kcp.io", "v1alpha1", "placements")
SYNC_TARGETS: Final = GroupVersionResource("workload.kcp.io", "v1alpha1", "synctargets")
